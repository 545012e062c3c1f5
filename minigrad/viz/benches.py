"""`mg.viz.bench`: one operation, with sliders for its inputs and for the gradient of its output, and its kernels.

The operation and its gradient rule compute values and derivatives here, for every setting of the sliders.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import vjp
from ..compile.look.watching import watching
from ..core.dtypes import float32, float64
from ..core.mode import no_grad
from ..core.primitive import P
from ..core.tensor import Tensor
from ..ops.creation import asarray
from ..support.errors import ConversionError, MinigradError
from ..support.table import counted
from .callpaths import EXAMPLE, called, in_words, pages_of, paths_of
from .charts import DASHED, legend
from .compiled import not_jitted
from .curves import curve_name
from .drawing import DASHES, SERIES, Axes, Drawing
from .exhibit import check_function
from .flipbook import Block, Flipbook, Knob, Page, settings_of
from .numbers import short
from .rules import mathml

SETTINGS = {1: 41, 2: 13, 3: 5, 4: 3}  # of each slider, by the number of sliders
GRADIENTS = {1: (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)}
RANGE, AROUND = (-3.0, 3.0), 2.0  # the two ends of a slider
STEP = 1e-6
POINTS = 81  # of a curve
LINES = [("there", "there", "the operation"), ("back", "", "its slope")]
PATHS = 8  # calls of kernels that have a page beside the sliders
Setting = tuple[int, ...]


class Reading(NamedTuple):
    """The result at one setting, its derivatives by the gradient rule, and by finite differences."""

    value: Any  # 1-d
    rows: Any  # a row for each output, a column for each input
    by_differences: Any


def bench(function: Callable[..., Any], *args: Any, **inputs: Any) -> Flipbook:
    """Change the inputs of an operation and the gradient of its output, and see the gradients of its inputs.

    `inputs` are, by the names of the parameters, the two ends of a slider (`x=(-1, 1)`), or an array with a slider for
    each number (`x=[0.5, 1.0]`).  At most four sliders are possible.  A second page shows why this kernel runs: each
    level between your line and the kernel, and what is decided there.

    With `args`, or without inputs, the function runs once as it is, so a training step trains, and there are only the
    pages of kernels: those of eager mode, also for a jitted function.  All that ran is counted, also what no result
    needs and a recorded graph leaves out.

    >>> mg.viz.bench(mg.tanh)
    <tanh on the bench: 1 slider for x, 1 for the gradient>
    >>> print(mg.viz.bench(mg.multiply, x=(0, 4), y=(0, 2)).text())
    multiply at x = 2.67, y = 1.33: 3.56. It passes back 1.33 to x, 2.67 to y
    by: x, derivative: 1.33, × 1: 1.33, by differences: ✓ 1.33
    by: y, derivative: 2.67, × 1: 2.67, by differences: ✓ 2.67
    1. multiply on cpu runs numpy.multiply: () float32, () float32 → () float32
    ...
    >>> x = mg.asarray([[1], [2]])
    >>> book = mg.viz.bench(lambda: mg.tanh(x) + mg.ones(3))
    >>> book
    <why these kernels run in eager mode (4 operations, 0 views, 4 kernels)>
    >>> print(book.text())
    1. astype on cpu runs minigrad's own astype (it calls numpy): (2, 1) int64 → (2, 1) float32
    ...
    4. add on cpu runs numpy.add: (2, 1) float32, (3,) float32 → (2, 3) float32
      your line      <lambda>
      dispatch       add
      the primitive  add
      kernel table   cpu × add
      kernel         numpy.add
    """
    check_function("bench", function, "mg.viz.bench(mg.tanh)")
    function = not_jitted(function)
    name = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "f")
    needed = _needed(function)
    if args or not (needed or inputs):
        return called(function, args, inputs)
    unknown = set(inputs) - set(needed)
    if unknown:
        raise ConversionError(
            f"bench: {name} has no input {', '.join(sorted(unknown))}",
            expect=f"some of {', '.join(needed)}" if needed else "a function of one to four numbers",
            hint="a lambda fixes the other arguments: mg.viz.bench(lambda x: mg.power(x, 3))",
        )
    made = _bench(function, name, dict.fromkeys(needed, RANGE) | inputs)
    with np.errstate(all="ignore"):
        try:
            made.value(made.at(made.start))
        except MinigradError as error:
            raise ConversionError(
                f"bench: {name} does not take these inputs: {str(error).splitlines()[0]}",
                expect="numbers, or arrays by the names of the inputs, of at most four numbers in all",
                hint=f"mg.viz.bench(mg.{name}, {needed[0] if needed else 'x'}=[[1.0, 2.0]], ...), or {EXAMPLE}",
            ) from error
        return made.book()


def _needed(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters without which a function can't be called."""
    try:
        parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())  # of a module
    except ValueError:
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]


def _bench(function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> _Bench:
    shapes, sliders = [], []
    for key, given in arguments.items():
        if isinstance(given, tuple):
            if len(given) != 2 or not all(isinstance(x, (int, float)) for x in given) or not given[0] < given[1]:
                raise ConversionError(
                    f"bench: {key}={given!r} is not a range",
                    expect="two numbers, the smaller first, or an array in brackets",
                    hint=f"mg.viz.bench(mg.{name}, {key}=(-2, 2))",
                )
            low, high = given
            shapes.append(())
            sliders.append((key, low, high, 2 / 3))
            continue
        array = np.asarray(given.numpy() if isinstance(given, Tensor) else given, np.float64)
        shapes.append(array.shape)
        for at, value in np.ndenumerate(array):
            label = f"{key}[{', '.join(map(str, at))}]" if at else key
            sliders.append((label, value - AROUND, value + AROUND, 1 / 2))
    if len(sliders) not in SETTINGS:
        raise ConversionError(
            f"bench: {len(sliders)} numbers go into {name}, too many for sliders", expect="from one to four",
            hint=f"a lambda that fixes some of them; mg.viz.bench(mg.{name}, x) needs no sliders",
        )
    made = _Bench(function, name, shapes, [], [])
    for label, low, high, start in sliders:
        values = [float(f"{value:.6g}") for value in np.linspace(low, high, SETTINGS[len(sliders)])]
        made.values.append(values)
        made.sliders.append(Knob(label, tuple(map(short, values)), int(start * len(values))))
    return made


@dataclass
class _Bench:
    """The operation, the shapes of its arguments, and the sliders of all numbers in them, with the values of each."""

    function: Callable[..., Any]
    name: str
    shapes: list[Any]
    sliders: list[Knob]
    values: list[list[float]]

    def book(self) -> Flipbook:
        """The page with the sliders for every setting, and the pages of the kernels."""
        sliders, first = tuple(self.sliders), self.read(self.start)
        gradients, usual = _gradients(len(sliders), first)
        readings = {setting: self.read(setting) for setting in settings_of(sliders)}
        draw = _Charts(self, readings).drawn
        calls, paths = self._paths(self.start)
        pages = [
            [self._page(draw, setting, reading, g), *paths]
            for setting, reading in readings.items() for _, g in gradients
        ]
        names = ", ".join([slider.name for slider in sliders])
        title = f"{self.name} on the bench: {counted(len(sliders), 'slider')} for {names}, 1 for the gradient"
        knob = Knob("gradient", tuple([name for name, _ in gradients]), usual, choice=len(first.value) > 1)
        book = Flipbook(title, pages, (*sliders, knob), cover=0)
        page = book.pages[book.opening][0]
        _, (_, table) = page.blocks[-1]
        said = [", ".join([f"{head}: {cell}" for head, cell in zip(table["head"], row)]) for row in table["rows"]]
        book.words = "\n".join([page.say, *said, calls])
        return book

    @property
    def start(self) -> Setting:
        """The setting at the start."""
        return tuple([slider.start for slider in self.sliders])

    def at(self, setting: Setting) -> Any:
        """The values of the sliders at a setting."""
        return np.array([values[i] for values, i in zip(self.values, setting)])

    def inputs(self, values: Any, dtype: Any = float64) -> list[Tensor]:
        """The arguments of the function."""
        parts = np.split(values, np.cumsum([math.prod(shape) for shape in self.shapes]))
        return [asarray(part.reshape(shape), dtype=dtype) for part, shape in zip(parts, self.shapes)]

    def value(self, values: Any) -> Any:
        """The results."""
        with no_grad():
            return _flat(self.function(*self.inputs(values)), self.name)

    def read(self, setting: Setting) -> Reading:
        """The result and its derivatives at a setting."""
        values = self.at(setting)
        inputs = self.inputs(values)
        result, back = vjp(self.function, *inputs)
        value = _flat(result, self.name)
        units = [asarray(unit.reshape(result.shape), dtype=float64) for unit in np.eye(len(value))]
        rows = [np.concatenate([_row(g, x) for g, x in zip(back(unit), inputs)]) for unit in units]
        steps = STEP * np.eye(len(values))
        columns = [(self.value(values + step) - self.value(values - step)) / (2 * STEP) for step in steps]
        return Reading(value, np.array(rows), np.array(columns).T)

    def _paths(self, setting: Setting) -> tuple[str, list[Page]]:
        """The kernels that run at a setting, as text and as pages.  The numbers are float32, as users have them."""
        inputs = self.inputs(self.at(setting), float32)
        with watching() as calls:
            self.function(*inputs)
        paths = paths_of(calls, PATHS)
        return in_words(paths), pages_of(calls, paths)

    def _page(self, draw: Callable[..., Drawing], setting: Setting, reading: Reading, g: Any) -> Page:
        """The page of the sliders at a setting, for a gradient."""
        passed = _tidy(g @ reading.rows)
        names = [slider.name for slider in self.sliders]
        where = ", ".join(f"{name} = {short(value)}" for name, value in zip(names, self.at(setting)))
        back = ", ".join(f"{short(gradient)} to {name}" for name, gradient in zip(names, passed))
        say = f"{self.name} at {where}: {', '.join(map(short, reading.value))}. It passes back {back}"
        blocks: list[tuple[str, Block]] = []
        op = next((op for op in P if op.name == self.name), None)
        if op is not None and op.formula:
            blocks.append(("what it computes", ("math", mathml(op.formula))))
            blocks += [(f"its derivative by {name}", ("math", mathml(local))) for name, local in op.local.items()]
        columns = {"passed back": passed}
        if len(g) == 1:
            columns = {"derivative": reading.rows[0], f"× {short(g[0])}": passed}
        marks = map(_mark, passed, _tidy(g @ reading.by_differences))
        rows = [[name, *map(short, numbers), mark] for name, mark, *numbers in zip(names, marks, *columns.values())]
        blocks.append(("numbers", ("table", {"head": ["by", *columns, "by differences"], "rows": rows})))
        return Page(draw(setting, reading, g, passed), say, tuple(blocks), "sliders")


def _row(gradient: Tensor | None, given: Tensor) -> Any:
    """A gradient as a row; zeros where none flows."""
    return np.zeros(given.size) if gradient is None else gradient.detach().numpy().reshape(-1)


def _flat(result: Any, name: str) -> Any:
    if not isinstance(result, Tensor) or result.dtype.kind != "f":
        what = f"a tensor of {result.dtype}" if isinstance(result, Tensor) else f"a {type(result).__name__}"
        raise ConversionError(
            f"bench: {name} returns {what}, which has no derivative", expect="a function that returns floats",
            hint=f"{EXAMPLE}, with its arguments, needs none",
        )
    flat = np.asarray(result.detach().numpy(), np.float64).reshape(-1)
    if not 1 <= flat.size <= 8:
        raise ConversionError(f"bench: {name} returns {flat.size} numbers", expect="from one to eight")
    return flat


def _gradients(many: int, first: Reading) -> tuple[list[tuple[str, Any]], int]:
    """The settings of the gradient, and the one at the start.

    They are numbers; for an output of several numbers, ones, or a one for a single number.  It starts with ones, or
    with a single one where the results add up to a constant, as those of softmax.
    """
    width = len(first.value)
    if width == 1:
        levels = GRADIENTS.get(many, (-1.0, 0.5, 1.0))
        return [(short(g), np.array([g])) for g in levels], levels.index(1.0)
    units = [(f"1 for number {i}, else 0", unit) for i, unit in enumerate(np.eye(width)[:3])]
    return [("1 for all", np.ones(width)), *units], int(not np.any(_tidy(first.rows.sum(0))))


def _tidy(numbers: Any) -> Any:
    """The numbers, with zeros in place of rounding errors."""
    return np.where(np.abs(numbers) < 1e-9, 0.0, numbers)


def _mark(rule: float, differences: float) -> str:
    if not (math.isfinite(rule) and math.isfinite(differences)):
        return short(differences)
    same = abs(rule - differences) <= 1e-4 * max(1.0, abs(rule))
    return f"✓ {short(differences)}" if same else f"{short(differences)}: a kink or a jump"


class _Charts:
    """A chart for each number: the results as functions of it, and at a setting, their slopes and what is passed back.

    All charts have the same heights.  That of a single number also has the slopes as a curve.
    """

    def __init__(self, measure: _Bench, readings: dict[Setting, Reading]) -> None:
        self.measure, alone = measure, len(measure.sliders) == 1
        self.wide, self.high = (460.0, 240.0) if alone else (300.0, 190.0)
        self.slopes: list[tuple[float, float]] = []
        every = np.concatenate([reading.value for reading in readings.values()])
        if alone and len(every) == len(readings):
            self.slopes = [  # nan where the result is not finite
                (measure.at(setting).item(), (reading.rows + 0 * reading.value).item())
                for setting, reading in readings.items()
            ]
            every = np.append(every, [slope for _, slope in self.slopes])
        seen = every[np.isfinite(every)]
        low, most = np.percentile(seen if len(seen) else [-1.0, 1.0], [2, 98]).tolist()
        room = 0.15 * (most - low) or 1.0
        self.up = low - room, most + room
        self.axes = cache(self._axes)

    def drawn(self, setting: Setting, reading: Reading, g: Any, passed: Any) -> Drawing:
        """The charts at a setting, for a gradient of the results and what is passed back."""
        several, count = len(g) > 1, len(setting)
        right = min(count, 2) * (self.wide + 16) - 16
        drawing = Drawing(right + 80 * several, (count + 1) // 2 * (self.high + 110) - 14)
        for k in range(len(g) * several):
            curve_name(drawing, right + 8, 34 + 16 * k, f"result {k}", k)
        for i, slider in enumerate(self.measure.sliders):
            slopes, values = reading.rows[:, i], self.measure.values[i]
            axes, piece = self.axes(i, (*setting[:i], 0, *setting[i + 1 :]))
            drawing.add(piece)
            axes.drawing = drawing
            with drawing.piece():
                self._tangents(axes, values, values[setting[i]], [*zip(reading.value, slopes)])
            parts = [f"{short(slope)} × {short(each)}" for slope, each in zip(slopes, g) if each or not several]
            left, top, wide = axes.x, axes.y + axes.height + 32, axes.width
            drawing.rect(left, top, wide, 34, "back-fill", "back")
            text = f"{' + '.join(parts)} = {short(passed[i])}"
            drawing.text(left + wide / 2, top + 21, text, size=12, bold=True, anchor="middle", room=wide - 8)
            drawing.text(left, top + 50, f"∂{slider.name}: slope × gradient, passed back", fill="quiet")
        return drawing

    def _axes(self, i: int, others: Setting) -> tuple[Axes, str]:
        """The axes and the curves of number `i` where the others have these settings; many pages share them."""
        drawing, values = Drawing(0, 0), self.measure.at(others)
        left, top = i % 2 * (self.wide + 16), i // 2 * (self.high + 110)
        drawing.heading(left + Axes.LEFT, top + 12, f"{self.measure.name} by {self.measure.sliders[i].name}")
        ends = self.measure.values[i][0], self.measure.values[i][-1]
        axes = Axes(drawing, (left, top + 22, self.wide, self.high), ends, self.up)
        if self.slopes:
            legend(drawing, left + self.wide - 190, 12, LINES)
            axes.curve(self.slopes, "back", thick=1.0, dashes=DASHED)
        across = np.linspace(*ends, POINTS).tolist()
        found = []
        for x in across:
            values[i] = x
            found.append(self.measure.value(values))
        for k, levels in enumerate(np.transpose(found).tolist()):
            axes.curve([*zip(across, levels)], SERIES[k % len(SERIES)], dashes=DASHES[k % len(DASHES)])
        return axes, "".join(drawing.pieces)

    def _tangents(self, axes: Axes, values: Sequence[float], x: float, lines: Sequence[tuple[float, float]]) -> None:
        """The tangent of each result at a value, and dots at the results and on the curve of slopes."""
        reach = (values[-1] - values[0]) / 5
        across = np.clip(np.linspace(x - reach, x + reach, 9), values[0], values[-1]).tolist()
        for y, slope in lines:
            axes.curve([(at, y + slope * (at - x)) for at in across], "back", dashes=DASHES[1])
            for level, fill in ((y, "now"), (slope, "back"))[: 1 + bool(self.slopes)]:
                if self.up[0] <= level <= self.up[1]:
                    axes.drawing.dot(*axes.at(x, level), fill=fill)
