"""`mg.viz.training`: some steps of a training run, phase by phase; or the logs of whole runs over each other.

A step has four phases: batch, forward, backward, update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..core.tree import leaves
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..support.errors import ConversionError, GradError
from ..support.table import counted
from .curves import ends_of
from .drawing import SERIES, Axes, Drawing
from .flipbook import Flipbook, Page
from .images import gallery, pictures_of
from .logs import FIRST, Log, Seen, Weights, steps_of
from .numbers import Summary, norm_of, shape_text, short
from .runs import (
    KEY,
    NUMBERS,
    WHOLE,
    WIDE,
    all_numbers,
    all_weights,
    by_name,
    described,
    moments,
    rows_of,
    runs_book,
    weights_drawn,
)

STEPS = 24  # the most that are shown phase by phase
SINCE = {"loss": 1, "norm of the gradient": 2}  # the phase of four that makes it; a parameter is there from the first
LEFT, POINTS = WIDE + 30, 220.0  # where the batch stands; the height of points
PICTURES, ROW = 24, 8  # of a batch, and in a row of it
LINES, LETTERS, WRITTEN = 6, 32, 24  # of numbers as text, at most
NONE = np.zeros(0)  # instead of labels or scores that are not one array
MOVED = ", not against the gradient: momentum or decay can do that"


class Phase(NamedTuple):
    """One phase of one step: what is said of it, and the values that exist then."""

    step: int
    phase: str
    says: str
    weights: Weights
    arrays: dict[str, Any]  # the batch by name, and what the model makes of it, or the classes that it gives examples


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
    if optimizer is None and not isinstance(what, Module):
        given = what if isinstance(what, Mapping) else {getattr(what, "name", "run"): what}
        if not 1 <= len(given) <= len(SERIES):
            raise ConversionError(f"training: {len(given)} runs can't be drawn together",
                                  expect=f"from 1 to {len(SERIES)}")
        runs = {str(name): Log.of(run) for name, run in given.items()}
        return runs_book(runs, f"training: {counted(len(runs), 'run')}, {steps_of(runs.values())}")
    if optimizer is None or loss is None or not isinstance(what, Module):
        raise ConversionError("training: a model is trained with an optimizer and a loss",
                              expect="training(model, optimizer, loss, batches)", actual=f"a {type(what).__name__}",
                              hint="mg.viz.Dashboard logs any loop, and training({'name': losses}) draws its log")
    phases, log = list[Phase](), Log()
    for number, batch in enumerate(islice(batches, STEPS), 1):
        phases += _step(what, optimizer, loss, batch, number, log)
    if not phases:
        raise ConversionError("training: there is no batch to train with", expect="at least one pair (x, y)")
    charts = by_name({"": log}, NUMBERS)
    known = {name: [(i + 4 - at) // 4 for i in range(len(phases))] for name, at in SINCE.items()}
    drawings = moments(charts, [each.step for each in phases], [_beside(phases, phase) for phase in phases], wide=WIDE,
                       along="step; values before its update", known=known)
    pages, table = list[Page](), all_numbers(rows_of({"": log}), ", before each update")
    for drawing, phase in zip(drawings, phases):
        moment = f"step {phase.step}, {phase.phase}"
        pages.append(Page(drawing, f"{moment.capitalize()}: {phase.says}", table + all_weights(phase.weights),
                          count=moment))
    many = [p.size for p in what.parameters()]
    held = f"{counted(len(many), 'parameter tensor')}, {counted(sum(many), 'number')}"
    sizes = f"{counted(len(log.steps), 'step')}, {held}"
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
    arrays = {**_arrays("x", images), **_arrays("y", labels)}
    optimizer.zero_grad()
    early, outputs = Weights.of(model, number), model(images)
    value = loss(outputs, labels)
    if not isinstance(value, Tensor) or not value.tracked or value.size != 1:
        raise GradError("training: the loss is not a number that depends on the parameters", expect="a scalar tensor",
                        actual=repr(value))
    value.backward()
    log.record(number, {"loss": value}, model)
    made, lost, weights, right = _arrays("model(x)", outputs), short(value.item()), log.weights[number], ""
    y, scores = arrays.get("y", NONE), made.get("model(x)", NONE)
    if y.dtype.kind in "iu" and y.shape == scores.shape[:-1] and scores.shape[-1] > 1 and np.isfinite(scores).all():
        classes = scores.argmax(-1)
        made, right = {"predicted": classes}, f", {(classes == y).sum()} of {(y >= 0).sum()} right"
    rates = ", ".join(dict.fromkeys([short(float(group["lr"])) for group in optimizer.param_groups]))
    parameters = model.parameters()
    before = [np.array(p.detach().numpy()) for p in parameters]
    slopes = [np.array(0.0 if p.grad is None else p.grad.numpy(), np.float64) for p in parameters]
    optimizer.step()
    moves = [p.detach().numpy() - old for p, old in zip(parameters, before)]
    along = sum([(move * slope).sum() for move, slope in zip(moves, slopes)])
    way = ", against the gradient" if along < 0 else MOVED * bool(along > 0)
    norm, change = (short(norm_of([*map(norm_of, each)])) for each in (slopes, moves))
    sizes = [f"{name} {shape_text(each)}" for name, each in arrays.items()]
    yield Phase(number, "batch", f"take a batch: {', '.join(sizes)}.", early, arrays)
    arrays = arrays | made
    yield Phase(number, "forward", f"the model computes model(x){right}; the loss is {lost}.", early, arrays)
    yield Phase(number, "backward", f"the gradient of the loss is computed: its norm is {norm}.", weights, arrays)
    moved = f"{type(optimizer).__name__} (lr {rates}) changes the parameters by {change} in all"
    yield Phase(number, "update", f"{moved}{way}; the loss was {lost}{right}.", Weights.of(model, number), arrays)


def _arrays(name: str, value: Any) -> dict[str, Any]:
    """Copies of arrays of numbers, by name: those in a container have its name and their keys."""
    if isinstance(value, Tensor):
        return {name: np.array(value.detach().numpy())}
    if isinstance(value, Mapping) or (isinstance(value, (tuple, list)) and leaves(value)):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        return {path: each for key, part in items for path, each in _arrays(f"{name}[{key!r}]", part).items()}
    array = np.array(value)
    return {name: array} if array.dtype.kind in "biufc" else {}


def _beside(phases: list[Phase], phase: Phase) -> Drawing:
    """The parameters, and below them the batch: points and a line through the predictions for them, if both are single
    numbers; else each array as pictures, or as a heat map.

    Few numbers are text, and so are whole ones, with the same count in each row of all arrays: they count, or they name
    classes, and their mean says nothing.
    """
    arrays = {**phase.arrays}
    x, y, outputs = (arrays.get(name, NONE) for name in ("x", "y", "model(x)"))
    drawing = weights_drawn(phase.weights, "after" if phase.phase == "update" else "before")
    top = drawing.height + 14
    drawing.heading(LEFT, top, "batch" + "; model(x) before the update" * (phase.phase != "batch"))
    single = x.shape[1:] == (1,) and 0 < x.size == y.size and x.dtype.kind == y.dtype.kind == "f"
    if single and np.isfinite([*x.flat, *y.flat]).all():
        shown = [outputs] * (outputs.size == x.size)
        across = ends_of(np.concatenate([each.arrays["x"] for each in phases], None))
        up = ends_of(np.concatenate([*shown, *[each.arrays.get("y", y) for each in phases]], None))
        about = "points: (x, y)" + ", the first 100" * (x.size > 100) + "; line: model(x)" * len(shown)
        drawing.text(LEFT, top + 16, about, fill="quiet")
        chart = Axes(drawing, (LEFT, top + 24, WHOLE - LEFT, POINTS), across, up)
        for values in shown:
            chart.curve(sorted(zip(x.flat, values.flat)))
        for point in zip(x.flat[:100], y.flat):
            drawing.dot(*chart.at(*point), fill="quiet", radius=3)
        drawing.height = top + 24 + POINTS
        return drawing
    pictures = {name: pictures_of(each, PICTURES) for name, each in arrays.items()
                if each.ndim != 3 or each.shape[1] == each.shape[2]}  # else (count, steps, features), it seems
    captions = [*map(short, y.tolist())] if pictures.get("x") is not None and y.shape == x.shape[:1] else []
    if captions:
        taken = arrays.pop("predicted", [])
        captions[: len(taken)] = [a if a == str(b) else f"{a} as {b}" for a, b in zip(captions, taken)]
        del arrays["y"]
    texts = {name: [*map(short, each.flat[:100].tolist())] for name, each in arrays.items()
             if each.dtype.kind in "biu" or each.size <= WRITTEN}
    many = (LETTERS + 2) // (max(map(len, sum(texts.values(), [""]))) + 2) or 1
    drawing.height = top + 8
    mapped = [name for name in arrays if name not in texts and pictures.get(name) is None]
    if mapped and not any(each.cells for each in phase.weights.values.values()):  # else it stands above
        drawing.text(LEFT, top + 16, KEY[0], fill="quiet")
        drawing.height += 14
    for name, array in arrays.items():
        start, made = drawing.height, pictures.get(name)
        if made is not None:
            own = captions * (name == "x")
            more = f", the first {len(made)}" * (len(made) < len(array)) + "; below: y" * bool(own)
            more += "; 2 as 7: the model takes 2 for 7" * (" as " in str(own))
            drawing.text(LEFT, start + 10, f"{name}: {shape_text(array)}{more}", fill="quiet", room=WHOLE - LEFT)
            drawing.height += 18 + gallery(drawing, LEFT, start + 18, made, own, ROW, 34.0)
            continue
        own, note = texts.get(name, []), "the largest score" * (name == "predicted")
        about = shape_text(array), Summary.of(array).short() * (array.size > WRITTEN), note
        rows = [", ".join(own[i : i + many]) for i in range(0, len(own), many)]
        rows[LINES:] = ["…"] * (len(rows) > LINES)
        maps = {} if name in texts else {FIRST: Seen.of(array)}
        below = described(drawing, LEFT, start, name, [*filter(None, about)], maps)
        for line, text in enumerate(rows):
            drawing.text(LEFT + FIRST, start + 10 + 14 * line, text, room=WHOLE - LEFT - FIRST)
        drawing.height = max(below, start + 4 + 14 * len(rows))
    return drawing
