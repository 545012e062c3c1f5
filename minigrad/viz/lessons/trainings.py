"""`mg.viz.training`: some steps of a training run, to step through: batch, forward, backward, update."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...core.mode import no_grad
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.creation import asarray
from ...optim.optimizer import Optimizer
from ...support.errors import ConversionError, GradError
from ...support.table import counted
from ..cells import largest, matrix_of
from ..curves import curves, dots
from ..drawing import Axes, Drawing
from ..flipbook import Flipbook, Page
from ..heat import heat_map, norm_of, size_text
from ..images import gallery, pictures_of
from ..numbers import short

STEPS, PARAMETERS = 24, 6  # the most that are shown
LEFT = 300.0  # the width of the data
PHASES = ("batch", "forward", "backward", "update")


class Moment(NamedTuple):
    """One phase of one step, with the values that exist then."""

    step: int
    phase: str
    batch: tuple[Any, ...]
    loss: float | None
    before: dict[str, Any]  # the parameters
    gradients: dict[str, Any]
    after: dict[str, Any]
    curve: Any  # the output of the model over a range of inputs, if it can be drawn
    read: Any = None  # the class that the model gives each example, where the labels are classes


def training(
    model: Module, optimizer: Optimizer, loss: Callable[..., Any], batches: Iterable[Any], steps: int = STEPS
) -> Flipbook:
    """Train a model for some steps with `loss(model(x), y)` on batches `(x, y)`, and show each step.

    The steps change the parameters of the model.

    >>> model = mg.nn.Linear(1, 1)
    >>> x = mg.asarray([[0.0], [1.0], [2.0]])
    >>> batches = [(x, 2 * x + 1)] * 3
    >>> book = mg.viz.training(model, mg.optim.SGD(model.parameters(), lr=0.1), mg.nn.MSELoss(), batches)
    >>> book
    <training of Linear: 3 steps, 2 parameters>
    """
    if not isinstance(model, Module):
        raise ConversionError(f"training: a {type(model).__name__} is not a model", expect="an nn.Module")
    if not 1 <= steps <= STEPS:
        raise ConversionError(f"training: {steps} steps can't be shown", expect=f"from 1 to {STEPS}",
                              hint="mg.viz.Dashboard shows a long training")
    moments: list[Moment] = []
    for number, batch in enumerate(islice(batches, steps), 1):
        moments += _step(model, optimizer, loss, _pair(batch), number)
    if not moments:
        raise ConversionError("training: there is no batch to train with", expect="at least one pair (x, y)")
    count, many = moments[-1].step, len(model.parameters())
    losses = [(float(s.step), float(s.loss)) for s in moments if s.phase == "forward" and s.loss is not None]
    pages = [_page(model, moments, i, losses) for i in range(len(moments))]
    title = f"training of {type(model).__name__}: {counted(count, 'step')}, {counted(many, 'parameter')}"
    words = "\n".join(f"step {int(step)}: loss {short(value)}" for step, value in losses)
    return Flipbook(title, [pages], cover=-1, unit="phase", words=words)


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2 or not isinstance(batch[0], Tensor):
        raise ConversionError(
            f"training: a batch is a pair of tensors, not a {type(batch).__name__}", expect="(x, y)",
            hint="[(x, y)] * 10 trains ten steps on the same data",
        )
    return batch[0], batch[1]


def _step(model: Module, optimizer: Any, loss: Callable[..., Any], batch: tuple[Any, Any], number: int) -> list[Moment]:
    """Run a training step, and return the state after each of its phases."""
    arrays = tuple(_array(each) for each in batch)
    before, curve = _parameters(model), _curve(model, *arrays)
    optimizer.zero_grad()
    outputs = model(batch[0])
    value = loss(outputs, batch[1])
    if not isinstance(value, Tensor) or not value.tracked or value.size != 1:
        raise GradError("training: the loss is not a number that depends on the parameters", expect="a scalar tensor",
                        actual=repr(value))
    value.backward()
    gradients = {name: _array(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    after, found = _parameters(model), float(value.item())
    classes = arrays[1].ndim == 1 and arrays[1].dtype.kind in "iu" and getattr(outputs, "ndim", 0) == 2
    read = _array(outputs.detach()).argmax(1) if classes else None
    known = [(None, {}, before, curve, None), (found, {}, before, curve, read), (found, gradients, before, curve, read),
             (found, gradients, after, _curve(model, *arrays), read)]
    return [
        Moment(number, phase, arrays, amount, before, some, then, line, seen)
        for phase, (amount, some, then, line, seen) in zip(PHASES, known)
    ]


def _array(tensor: Any) -> Any:
    return np.array(tensor.numpy()) if isinstance(tensor, Tensor) else np.array(tensor)


def _parameters(model: Module) -> dict[str, Any]:
    return {name: _array(p.detach()) for name, p in model.named_parameters()}


def _curve(model: Module, x: Any, y: Any) -> Any:
    """The output of a model with one input and one output, from the smallest input to the largest."""
    if x.ndim != 2 or x.shape[1] != 1 or y.size != x.size or not x.size or x.dtype.kind != "f":
        return None
    xs = np.linspace(float(x.min()), float(x.max()), 41, dtype=x.dtype).reshape(-1, 1)
    training = model.training
    with no_grad():
        ys = _array(model.eval()(asarray(xs)))
    model.train(training)
    return np.stack([xs.reshape(-1), ys.reshape(-1)], 1) if ys.size == xs.size else None


def _page(model: Module, moments: list[Moment], at: int, losses: list[tuple[float, float]]) -> Page:
    moment = moments[at]
    shapes = " and ".join(" × ".join(map(str, array.shape)) or "scalar" for array in moment.batch)
    total = norm_of([norm_of(g) for g in moment.gradients.values()])
    right = "" if moment.read is None else f", {(moment.read == moment.batch[1]).sum()} of {len(moment.read)} right"
    said = {
        "batch": f"take a batch: {shapes}.",
        "forward": f"the model computes its predictions{right}, and the loss is {short(moment.loss)}.",
        "backward": f"the loss is differentiated by every parameter: the norm of the gradient is {short(total)}.",
        "update": "the optimizer changes the parameters, against the gradient.",
    }[moment.phase]
    rows = []
    for name, array in list(moment.after.items())[:PARAMETERS]:
        gradient = moment.gradients.get(name)
        norm = "–" if gradient is None else short(norm_of(gradient))
        rows.append([name, norm, short(norm_of(array - moment.before[name])) if moment.phase == "update" else "–"])
    blocks = (
        ("where we are", ("text", " · ".join(f"[{p}]" if p == moment.phase else p for p in PHASES))),
        ("parameters", ("table", {"head": ["", "‖gradient‖", "moved by"], "rows": rows})),
    )
    return Page(_drawn(moments, at, losses), f"Step {moment.step}: {said}", blocks)


def _drawn(moments: list[Moment], at: int, losses: list[tuple[float, float]]) -> Drawing:
    """On the left the data and the loss so far, on the right the parameters and their gradients."""
    moment = moments[at]
    names = list(moment.before)[:PARAMETERS]
    places, y = [], 24.0
    for name in names:
        places.append(y)
        y += 34 + _side(moment.before[name]) * _small(moment.before[name]).shape[0]
    hidden = len(moment.before) - len(names)
    drawing = Drawing(LEFT + 360, max(y + 14 * (hidden > 0), 404.0))
    _data(drawing, moments, moment)
    begin = len(drawing.pieces)
    drawing.heading(LEFT + 20, 12, "parameter")
    drawing.heading(LEFT + 190, 12, "its gradient")
    for name, place in zip(names, places):
        _parameter(drawing, moments, moment, name, place)
    if hidden > 0:
        drawing.text(LEFT + 20, y + 6, f"{hidden} more", fill="quiet")
    drawing.merge(begin, "mg-beside")
    now = moment.step
    known = [point for point in losses if point[0] < now or (point[0] == now and moment.phase != "batch")]
    values = [value for _, value in losses]
    chart = curves(drawing, (0, 254, LEFT - 20, 150), {"loss": known}, "loss",
                   ends=(1.0, float(moments[-1].step)), within=(min(values), max(values)))
    if not known:
        chart.curve(losses, "quiet", thick=0.8, dashes="2 3")
    dots(drawing, chart, {"loss": known}, float(moment.step))
    return drawing


def _data(drawing: Drawing, moments: list[Moment], moment: Moment) -> None:
    """The batch: points and the curve of the model if it has one input and one output, else a heat map."""
    x, y = moment.batch
    drawing.heading(0, 12, "batch and model" if moment.curve is not None else "batch")
    pictures = pictures_of(x, 16) if moment.curve is None else None
    if pictures is not None:
        labels = [str(label) for label in y[:16]] if y.ndim == 1 else ()
        if moment.read is not None:
            labels = [str(a) if a == b else f"{a} as {b}" for a, b in zip(y[:16], moment.read)]
        gallery(drawing, 1, 22, pictures, labels, 6 if len(pictures) > 9 else 4, 38.0 if len(pictures) > 9 else 56.0)
        return
    if moment.curve is None:
        matrix = matrix_of(x, 14, 14)
        most = largest([matrix_of(s.batch[0], 14, 14) for s in moments])
        heat_map(drawing, 1, 26, matrix, min(15.0, 200 / max(matrix.shape)), most, f"x: {size_text(x)}")
        return
    lines = [s.curve for s in moments if s.curve is not None]
    ups = [float(v) for line in lines for v in line[:, 1]] + [float(v) for s in moments for v in s.batch[1].reshape(-1)]
    across = [float(v) for s in moments for v in s.batch[0].reshape(-1)]
    begin = len(drawing.pieces)
    room = 0.05 * (max(ups) - min(ups))
    up = min(ups) - room, max(ups) + room
    chart = Axes(drawing, (0, 22, LEFT - 20, 210), (min(across), max(across)), up)
    for a, b in list(zip(x.reshape(-1), y.reshape(-1)))[:100]:
        drawing.dot(*chart.at(float(a), float(b)), fill="quiet", radius=3)
    drawing.merge(begin)
    colour = "good" if moment.phase == "update" else "there"
    chart.curve([(float(a), float(b)) for a, b in moment.curve], colour, thick=2.2)


def _small(array: Any) -> Any:
    return matrix_of(array, 6, 10)


def _side(array: Any) -> float:
    """The side of a square, so that the matrix fits into its column."""
    rows, columns = _small(array).shape
    return min(15.0, 72 / rows, 150 / columns)


def _parameter(drawing: Drawing, moments: list[Moment], moment: Moment, name: str, y: float) -> None:
    array, gradient = moment.after[name], moment.gradients.get(name)
    lit = moment.phase == "update"
    title = f"{name}  {' × '.join(map(str, array.shape))}"
    drawing.text(LEFT + 20, y + 10, title, fill="ink" if lit else "quiet", bold=lit, room=165)
    side, about = _side(array), f"{name}: {size_text(array)}"
    heat_map(drawing, LEFT + 20, y + 18, _small(array), side, largest([_small(s.after[name]) for s in moments]), about)
    if gradient is None:
        drawing.text(LEFT + 190, y + 30, "none yet", fill="quiet")
        return
    drawing.text(LEFT + 190, y + 10, f"‖·‖ {short(norm_of(gradient))}", fill="quiet", room=165)
    most = largest([_small(s.gradients[name]) for s in moments if name in s.gradients])
    heat_map(drawing, LEFT + 190, y + 18, _small(gradient), side, most, f"∂{name}: {size_text(gradient)}")
