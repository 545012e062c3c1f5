"""`mg.viz.training`: some steps of a training run, phase by phase; or the logs of whole runs over each other.

A step has four phases: batch, forward, backward, update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..support.errors import ConversionError, GradError
from ..support.table import counted
from .curves import ends_of
from .drawing import SERIES, Axes, Drawing
from .flipbook import Flipbook, Page
from .images import gallery, pictures_of
from .logs import Log, Seen, Weights, steps_of
from .numbers import FEW, Summary, norm_of, shape_text, short
from .runs import NUMBERS, WHOLE, WIDE, all_numbers, all_weights, by_name, moments, runs_book, weights_drawn

STEPS = 24  # the most that are shown phase by phase
LEFT, THIRD, POINTS = WIDE + 30, 122.0, 220.0  # where the batch stands; the width of an array; the height of points
PICTURES, ROW = 24, 8  # of a batch, and in a row of it
LINES, LETTERS = 6, 18  # of numbers as text, at most
MOVED = ", not against the gradient, which momentum or weight decay can do"


class Phase(NamedTuple):
    """One phase of one step: what is said of it, and the values that exist then."""

    step: int
    phase: str
    says: str
    weights: Weights
    batch: tuple[Any, Any]
    outputs: Any = None  # of the model


def training(
    what: Any, optimizer: Optimizer | None = None, loss: Callable[..., Any] | None = None,
    batches: Iterable[Any] = (),
) -> Flipbook:
    """Train a model for some steps and show each of them, or show runs that are over.

    `training(model, optimizer, loss, batches)` trains with `loss(model(x), y)` on batches `(x, y)`, at most the first
    24, and shows the four phases of each step.  The steps change the parameters of the model.  The loss, the norm of
    the gradient and parameters that are single numbers are curves; a table lists what is known of the last steps.

    >>> model = mg.nn.Linear(1, 1)
    >>> x = mg.asarray([[0.0], [1.0], [2.0]])
    >>> batches = [(x, 2 * x + 1)] * 3
    >>> book = mg.viz.training(model, mg.optim.SGD(model.parameters(), lr=0.1), mg.nn.MSELoss(), batches)
    >>> book
    <training of Linear: 3 steps, 2 parameter tensors, 2 numbers>

    `training(runs)`, with logs by name, draws the runs over each other: curves that can be smoothed, with linear and
    logarithmic axes.  A log is a `Dashboard`, what `mg.train.fit` returns, or a list of losses.

    >>> mg.viz.training({"lr 0.1": [1.0, 0.8, 0.7], "lr 0.3": [1.0, 0.5, 0.3]})
    <training: 2 runs, 3 steps>
    """
    if not isinstance(what, Module):
        if optimizer is None:
            given = what if isinstance(what, Mapping) else {getattr(what, "name", "run"): what}
            if not 1 <= len(given) <= len(SERIES):
                raise ConversionError(f"training: {len(given)} runs can't be drawn over each other",
                                      expect=f"from 1 to {len(SERIES)}")
            runs = {str(name): Log.of(run) for name, run in given.items()}
            return runs_book(runs, f"training: {counted(len(runs), 'run')}, {steps_of(runs.values())}")
        raise ConversionError(f"training: a {type(what).__name__} is not a model", expect="an nn.Module",
                              hint="mg.viz.Dashboard logs any loop, and training({'name': losses}) draws its log")
    if optimizer is None or loss is None:
        raise ConversionError("training: a model is trained with an optimizer and a loss",
                              expect="training(model, optimizer, loss, batches)")
    phases, log = list[Phase](), Log()
    for number, batch in enumerate(islice(batches, STEPS), 1):
        phases += _step(what, optimizer, loss, batch, number, log)
    if not phases:
        raise ConversionError("training: there is no batch to train with", expect="at least one pair (x, y)")
    charts = by_name({"": log}, NUMBERS)
    known = [phase.step - (phase.phase in ("batch", "forward")) for phase in phases]  # the step whose gradient is known
    drawings = moments(charts, known, [_beside(phases, phase) for phase in phases], wide=WIDE,
                       along="step; values before its update")
    pages = list[Page]()
    for drawing, phase in zip(drawings, phases):
        moment = f"step {phase.step}, {phase.phase}"
        said = f"{moment.capitalize()}: {phase.says}"
        table = all_numbers({"": log}, ", before each update")
        pages.append(Page(drawing, said, (*table, *all_weights(phase.weights)), count=moment))
    tensors, many = len(what.parameters()), sum([p.size for p in what.parameters()])
    sizes = f"{counted(len(log.steps), 'step')}, {counted(tensors, 'parameter tensor')}, {counted(many, 'number')}"
    return Flipbook(f"training of {type(what).__name__}: {sizes}", [pages], unit="phase", start=len(pages) - 1)


def _step(
    model: Module, optimizer: Optimizer, loss: Callable[..., Any], batch: Any, number: int, log: Log
) -> Iterator[Phase]:
    """Run a training step, and describe its phases.  The weights change in the last one alone."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2 or not isinstance(batch[0], Tensor):
        raise ConversionError(
            f"training: a batch is a pair of tensors, not a {type(batch).__name__}", expect="(x, y)",
            hint="[(x, y)] * 10 trains ten steps on the same data",
        )
    images, labels = batch
    _, y = arrays = _array(images), _array(labels)
    optimizer.zero_grad()
    early, outputs = Weights.of(model, number), model(images)
    value = loss(outputs, labels)
    if not isinstance(value, Tensor) or not value.tracked or value.size != 1:
        raise GradError("training: the loss is not a number that depends on the parameters", expect="a scalar tensor",
                        actual=repr(value))
    value.backward()
    log.record(number, {"loss": value}, model)
    predicted = _array(outputs) if isinstance(outputs, Tensor) else None
    read, lost, weights = _read(y, predicted), short(value.item()), log.weights[number]
    right = "" if read is None else f", {(read == y).sum()} of {(y >= 0).sum()} right"
    rates = ", ".join(dict.fromkeys([short(float(group["lr"])) for group in optimizer.param_groups]))
    parameters = model.parameters()
    before = [*map(_array, parameters)]
    slopes = [np.array(0.0 if p.grad is None else p.grad.numpy(), np.float64) for p in parameters]
    optimizer.step()
    moves = [_array(p) - old for p, old in zip(parameters, before)]
    along = sum([(move * slope).sum() for move, slope in zip(moves, slopes)])
    way = ", against the gradient" if along < 0 else MOVED * bool(along > 0)
    norm, change = (short(norm_of([*map(norm_of, each)])) for each in (slopes, moves))
    yield Phase(number, "batch", f"take a batch: {' and '.join(map(shape_text, arrays))}.", early, arrays)
    says = f"the model computes model(x){right}; the loss is {lost}."
    yield Phase(number, "forward", says, early, arrays, predicted)
    says = f"the gradient of the loss is computed: its norm is {norm}."
    yield Phase(number, "backward", says, weights, arrays, predicted)
    name, weights = type(optimizer).__name__, weights._replace(values=Weights.of(model).values)
    says = f"{name} (lr {rates}) changes the parameters by {change} in all{way}; the loss was {lost}{right}."
    yield Phase(number, "update", says, weights, arrays, predicted)


def _read(labels: Any, scores: Any) -> Any:
    """The class that the model gives each example, where the labels are classes."""
    if np.ndim(scores) < 2 or labels.dtype.kind not in "iu" or labels.shape != scores.shape[:-1]:
        return None
    return scores.argmax(-1) if scores.shape[-1] > 1 and np.isfinite(scores).all() else None


def _array(tensor: Any) -> Any:
    return np.array(tensor.detach().numpy() if isinstance(tensor, Tensor) else tensor)


def _beside(phases: list[Phase], phase: Phase) -> Drawing:
    """The parameters, and below them the batch: points and a line through the predictions for them, if both are single
    numbers; else pictures, or heat maps."""
    (x, y), outputs = phase.batch, phase.outputs
    drawing = weights_drawn(phase.weights, "after" if phase.phase == "update" else "before")
    top = drawing.height + 14
    drawing.heading(LEFT, top, "batch" + "; model(x) before the update" * (outputs is not None))
    single = x.shape[1:] == (1,) and 0 < x.size == y.size and x.dtype.kind == y.dtype.kind == "f"
    if single and np.isfinite([*x.flat, *y.flat]).all():
        shown = [] if outputs is None or outputs.size != x.size else [outputs]
        across = ends_of(np.concatenate([each.batch[0] for each in phases], None))
        up = ends_of(np.concatenate([*shown, *[each.batch[1] for each in phases]], None))
        about = "points: (x, y)" + ", the first 100" * (x.size > 100) + "; line: model(x)" * len(shown)
        drawing.text(LEFT, top + 16, about, fill="quiet")
        chart = Axes(drawing, (LEFT, top + 24, WHOLE - LEFT, POINTS), across, up)
        for values in shown:
            chart.curve(sorted(zip(x.flat, values.flat)))
        for point in zip(x.flat[:100], y.flat):
            drawing.dot(*chart.at(*point), fill="quiet", radius=3)
        drawing.height = top + 24 + POINTS
        return drawing
    sequences = x.ndim == 3 and x.shape[1] != x.shape[2]  # (count, steps, features), as far as a shape can tell
    pictures = None if sequences else pictures_of(x, PICTURES)
    if pictures is None:
        _arrays(drawing, top, phase)
        return drawing
    first = f", the first {len(pictures)}" * (len(pictures) < len(x))
    labels = [*map(short, y.tolist())] if y.shape == x.shape[:1] else []
    if (read := _read(y, outputs)) is not None:
        labels = [a if a == str(b) else f"{a} as {b}" for a, b in zip(labels, read)]
    why = "; below: y" * bool(labels) + "; 2 as 7: the model takes 2 for 7" * (" as " in str(labels))
    drawing.text(LEFT, top + 16, f"x: {shape_text(x)}{first}{why}", fill="quiet", room=WHOLE - LEFT)
    drawing.height = top + 24 + gallery(drawing, LEFT, top + 24, pictures, labels, ROW, 34.0)
    if outputs is not None and (made := pictures_of(outputs, PICTURES)) is not None:
        drawing.text(LEFT, drawing.height + 12, f"model(x): {shape_text(outputs)}", fill="quiet")
        drawing.height += 20 + gallery(drawing, LEFT, drawing.height + 20, made, (), ROW, 34.0)
    return drawing


def _arrays(drawing: Drawing, top: float, phase: Phase) -> None:
    """The batch and the predictions.

    Many real numbers are a heat map.  Few are text, and so are whole ones, with the same count in each row of all
    arrays: they count, or they name classes, and their mean says nothing.
    """
    (x, y), outputs = phase.batch, phase.outputs
    arrays, read = {"x": x, "y": y}, _read(y, outputs)
    if outputs is not None:
        arrays |= {"model(x)": outputs} if read is None else {"predicted": read}
    texts = {name: [*map(short, each.flat[:100].tolist())] for name, each in arrays.items()
             if each.dtype.kind in "biu" or each.size <= FEW}
    many = (LETTERS + 2) // (max(map(len, sum(texts.values(), [""]))) + 2) or 1
    drawing.height = top + 80 + 14 * LINES
    for i, (name, array) in enumerate(arrays.items()):
        left, note = LEFT + i * THIRD, "the largest score" * (name == "predicted")
        drawing.text(left, top + 18, name, bold=True)
        about = shape_text(array), Summary.of(array).short() * (array.size > FEW), note
        for line, text in enumerate(filter(None, about)):
            drawing.text(left, top + 32 + 14 * line, text, fill="quiet", room=THIRD - 6)
        if name in texts:
            rows = [", ".join(texts[name][i : i + many]) for i in range(0, len(texts[name]), many)]
            rows[LINES:] = ["…"] * (len(rows) > LINES)
            for line, text in enumerate(rows):
                drawing.text(left, top + 80 + 14 * line, text, room=THIRD - 6)
        else:
            Seen.of(array).draw(drawing, left, top + 70, name)
