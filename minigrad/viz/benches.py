"""`mg.viz.bench`: one operation, with sliders for its inputs and for the gradient of its output, and its kernels.

The operation and its gradient rule compute values and derivatives here, for every setting of the sliders.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import minigrad

from ..autodiff import vjp
from ..compile.look.watching import watching
from ..core.dtypes import float32, float64
from ..core.mode import no_grad
from ..core.primitive import P
from ..core.tensor import Tensor
from ..core.tree import leaves
from ..ops.creation import asarray
from ..ops.joining import concat
from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import ConversionError, MinigradError
from ..support.table import counted
from .callpaths import EXAMPLE, called, defined, formulas_of, in_words, pages_of, paths_of
from .compiled import not_jitted
from .curves import curve_name
from .drawing import DASHES, SERIES, Axes, Drawing
from .flipbook import Flipbook, Knob, Page, settings_of
from .numbers import short

SETTINGS = {1: 41, 2: 13, 3: 5, 4: 3}  # of each slider, by the number of sliders
GRADIENTS = {1: (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)}
RANGE, AROUND = (-3.0, 3.0), 2.0  # the two ends of a slider
POINTS, ROUNDS, MOST = 13, 13, 400  # of a curve: at first; how often it is refined, and in how many places at once
BETWEEN = 0.45  # where a part is cut: half of it may be a period of a wave
SMOOTH, JUMP = 1 / 400, 1 / 20  # of the height of a chart
BELOW = 74.0  # each chart, and above it
PATHS = 8  # calls of kernels that have a page beside the sliders
Setting = tuple[int, ...]


class Reading(NamedTuple):
    """The results at some inputs, their derivatives by the gradient rule, and by differences to both sides."""

    value: Any  # 1-d
    rows: Any  # a row for each result, a column for each input
    sides: Any  # two such arrays
    step: float  # of the differences, of a small input


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
    multiply at x = 2.67, y = 1.33: 3.56. With the gradient 1, it passes back 1.33 to x, 2.67 to y.
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
    if not callable(function):
        raise MinigradError(f"bench needs a function, and a {type(function).__name__} is not one", hint=EXAMPLE)
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
                    expect="two numbers, the smaller first, or an array in brackets", hint=f"{key}=(-2, 2)",
                )
            shapes.append(())
            sliders.append((key, *given, 2 / 3))
            continue
        array = np.asarray(given.numpy() if isinstance(given, Tensor) else given, np.float64)
        shapes.append(array.shape)
        for at, value in np.ndenumerate(array):
            label = f"{key}[{', '.join(map(str, at))}]" if at else key
            sliders.append((label, value - AROUND, value + AROUND, 1 / 2))
    if len(sliders) not in SETTINGS or not np.all(np.isfinite([ends for _, *ends, _ in sliders])):
        raise ConversionError(
            f"bench: {counted(len(sliders), 'number')} for the sliders of {name}", expect="one to four finite numbers",
            hint=f"a lambda that fixes some of them; or {EXAMPLE}, which needs no sliders",
        )
    made = _Bench(function, name, shapes, [], {}, DEFAULT_GENERATOR.get_state())
    for label, low, high, start in sliders:
        values = np.linspace(low, high, SETTINGS[len(sliders)]).round(5 - math.frexp(high - low)[1] // 3).tolist()
        made.values[label] = values
        made.sliders.append(Knob(label, tuple(map(short, values)), int(start * len(values))))
    return made


@dataclass
class _Bench:
    """The operation, the shapes of its arguments, and the sliders of all numbers in them, with the values of each."""

    function: Callable[..., Any]
    name: str
    shapes: list[Any]
    sliders: list[Knob]
    values: dict[str, list[float]]
    random: dict[str, int]  # the state of the generator: each run draws the same numbers

    def book(self) -> Flipbook:
        """The page with the sliders for every setting, and the pages of the kernels."""
        sliders = tuple(self.sliders)
        start = self.at([slider.start for slider in sliders])
        readings = {setting: self.read(self.at(setting)) for setting in settings_of(sliders)}
        width = len(self.value(start))
        gradients = _gradients(width, len(sliders))
        draw = _Charts(self, readings).drawn
        # The numbers are float32, as users have them.
        inputs = self.inputs(start, float32)
        with watching() as calls:
            self.function(*inputs)
        paths = paths_of(calls, PATHS)
        kernels = pages_of(calls, paths, f" It ran at {self.where(start)}.")
        pages = [
            [self._page(draw, setting, reading, *gradient), *kernels]
            for setting, reading in readings.items() for gradient in gradients.items()
        ]
        names = ", ".join(self.values)
        title = f"{self.name} on the bench: {counted(len(sliders), 'slider')} for {names}, 1 for the gradient"
        words = tuple(gradients)
        knob = Knob("gradient", words, words.index("1") if width == 1 else 0, choice=width > 1)
        book = Flipbook(title, pages, (*sliders, knob), cover=0)
        page = book.pages[book.opening][0]
        _, (_, table) = page.blocks[0]
        said = [", ".join([f"{head}: {cell}" for head, cell in zip(table["head"], row)]) for row in table["rows"]]
        book.words = "\n".join([page.say, *said, in_words(paths)])
        return book

    def at(self, setting: Sequence[int]) -> Any:
        """The values of the sliders at a setting."""
        return np.array([values[i] for values, i in zip(self.values.values(), setting)])

    def inputs(self, values: Any, dtype: Any = float64) -> list[Tensor]:
        """The arguments of the function."""
        parts = np.split(values, np.cumsum([math.prod(shape) for shape in self.shapes]))
        return [asarray(part.reshape(shape), dtype=dtype) for part, shape in zip(parts, self.shapes)]

    def results(self, *inputs: Tensor) -> Tensor:
        """The numbers of all results that have a derivative, in a row."""
        DEFAULT_GENERATOR.set_state(self.random)
        try:
            made = self.function(*inputs)
        except MinigradError as error:
            raise ConversionError(
                f"bench: {self.name} does not take these inputs: {str(error).splitlines()[0]}",
                expect="numbers, or arrays by the names of the inputs, of at most four numbers in all",
                hint=f"an array in brackets, as x=[[1.0, 2.0]]; or {EXAMPLE}",
            ) from error
        floats = [each for each in leaves(made) if each.dtype.kind == "f"]
        size = sum([each.size for each in floats])
        if not 1 <= size <= 8:
            what = made.dtype if isinstance(made, Tensor) else type(made).__name__
            raise ConversionError(
                f"bench: {self.name} returns {counted(size, 'float')}: {what}",
                expect="from one to eight, which have a derivative",
                hint=f"{EXAMPLE}, with its arguments, needs none",
            )
        return concat(floats, axis=None)

    def value(self, values: Any) -> Any:
        """The numbers of the results."""
        with no_grad():
            return np.asarray(self.results(*self.inputs(values)).numpy(), np.float64)

    def read(self, values: Any) -> Reading:
        """The results and their derivatives at some values of the sliders."""
        inputs = self.inputs(values)
        result, back = vjp(self.results, *inputs)
        value = np.asarray(result.detach().numpy(), np.float64)
        units = [asarray(unit, dtype=result.dtype) for unit in np.eye(len(value))]
        rows = [np.concatenate([_row(g, x) for g, x in zip(back(unit), inputs)]) for unit in units]
        step = float(np.finfo(result.dtype).eps) ** (1 / 3)
        moves = np.diag(step * np.sqrt(np.maximum(1.0, np.abs(values))))  # rounding grows with a number
        sides = [[(self.value(values + s * move) - value) / (s * move.sum()) for move in moves] for s in (-1, 1)]
        return Reading(value, np.array(rows), np.array(sides).swapaxes(1, 2), step)

    def where(self, values: Any) -> str:
        """The values of the sliders in words."""
        return ", ".join([f"{name} = {short(value)}" for name, value in zip(self.values, values.tolist())])

    @cached_property
    def formulas(self) -> list[tuple[str, Any]]:
        """What the operation computes, as formulas or as code."""
        if getattr(minigrad, self.name, None) is self.function and hasattr(P, self.name):
            return formulas_of(getattr(P, self.name))
        code = getattr(inspect.unwrap(getattr(self.function, "forward", self.function)), "__code__", None)
        return [("what it computes", ("code", defined(code)))] * (code is not None)

    def _page(self, draw: Callable[..., Drawing], setting: Setting, reading: Reading, called: str, g: Any) -> Page:
        """The page of the sliders at a setting, for a gradient and what it is called."""
        passed = _tidy(g @ reading.rows)
        back = ", ".join([f"{short(gradient)} to {name}" for name, gradient in zip(self.values, passed)])
        results = ", ".join(map(short, reading.value))
        passes = f"With the gradient {called}, it passes back {back}."
        say = f"{self.name} at {self.where(self.at(setting))}: {results}. {passes}"
        columns = {"passed back": passed}
        if len(g) == 1:
            columns = {"derivative": reading.rows[0], f"× {called}": passed}
        marks = [_mark(*each, reading.step) for each in zip(passed, *_tidy(g @ reading.sides))]
        lines = zip(self.values, marks, *columns.values())
        rows = [[name, *map(short, numbers), mark] for name, mark, *numbers in lines]
        table = {"head": ["by", *columns, "by differences"], "rows": rows}
        return Page(draw(setting, reading, g, passed), say, (("numbers", ("table", table)), *self.formulas), "sliders")


def _row(gradient: Tensor | None, given: Tensor) -> Any:
    """A gradient as a row; zeros where none flows."""
    return np.zeros(given.size) if gradient is None else gradient.detach().numpy().reshape(-1)


def _gradients(width: int, sliders: int) -> dict[str, Any]:
    """The settings of the gradient: of one result, numbers; of several, a one for a single result, or for all."""
    if width == 1:
        return {short(g): np.array([g]) for g in GRADIENTS.get(sliders, (-1.0, 0.5, 1.0))}
    units = {f"1 for result {i}, 0 for the others": unit for i, unit in enumerate(np.eye(width)[:3])}
    return units | {"1 for all results": np.ones(width)}


def _tidy(numbers: Any) -> Any:
    """The numbers, with zeros in place of rounding errors."""
    return np.where(np.abs(numbers) < 1e-9, 0.0, numbers)


def _mark(rule: float, before: float, after: float, step: float) -> str:
    """The derivative by differences, beside what the gradient rule says."""
    slope = (before + after) / 2
    if not (math.isfinite(rule) and math.isfinite(slope)):
        return short(slope)
    near = (1e-4 + step / 10) * max(1.0, abs(rule))
    if abs(rule - slope) <= near:
        return f"✓ {short(slope)}"
    return f"✗ {short(slope)}: " + ("the rule differs" if abs(before - after) <= near else "a kink or a jump")


class _Charts:
    """A chart for each number: the results as functions of it, and at a setting, their slopes and what is passed back.

    All charts have the same heights.  That of a single number also has the slopes as a curve.
    """

    def __init__(self, measure: _Bench, readings: dict[Setting, Reading]) -> None:
        self.measure, many = measure, len(measure.sliders)
        self.wide, self.high = (460.0, 260.0) if many == 1 else (300.0, 142.0)
        width = len(next(iter(readings.values())).value)
        self.slope = width == many == 1
        self.names = [f"result {k}" for k in range(width)] if width > 1 else ["the operation", "its slope"] * self.slope
        every = np.concatenate([self.levels(reading) for reading in readings.values()])
        seen = every[np.isfinite(every)]
        low, most = np.percentile(seen if len(seen) else [-1.0, 1.0], [2, 98]).tolist()
        room = 0.15 * (most - low) or 1.0
        self.up = low - room, most + room
        self.axes = cache(self._axes)

    def levels(self, reading: Reading) -> Any:
        """What the curves show: the results, or the only one and its slope, which ends where that ends."""
        return np.append(reading.value, reading.rows + 0 * reading.value) if self.slope else reading.value

    def drawn(self, setting: Setting, reading: Reading, g: Any, passed: Any) -> Drawing:
        """The charts at a setting, for a gradient of the results and what is passed back."""
        rows, right = (len(setting) + 1) // 2, min(len(setting), 2) * (self.wide + 16)
        drawing = Drawing(right + 95 * bool(self.names), rows * (self.high + BELOW) + 4)
        for k, name in enumerate(self.names):
            curve_name(drawing, right - 8, 34 + 16 * k, name, k)
        for i, (name, values) in enumerate(self.measure.values.items()):
            x, low, high = values[setting[i]], values[0], values[-1]
            axes, piece = self.axes(i, (*setting[:i], 0, *setting[i + 1 :]))
            drawing.add(piece)
            axes.drawing = drawing
            slopes, reach = reading.rows[:, i], (high - low) / 5
            around = max(low, x - reach), min(high, x + reach)
            with drawing.piece():
                for tangent in _curves(partial(_tangents, reading.value, slopes, x), around, self.up):
                    axes.curve(tangent, "ink", thick=1.2)
                for k, level in enumerate(self.levels(reading)):
                    if self.up[0] <= level <= self.up[1]:
                        drawing.dot(*axes.at(x, level), fill="back" if self.slope and k else "now")
            parts = [f"{short(slope)} × {short(each)}" for slope, each in zip(slopes, g) if each or len(g) == 1]
            left, top, wide = axes.x, axes.y + axes.height + 26, axes.width
            drawing.rect(left, top, wide, 28, "back-fill", "back")
            text = f"∂{name}: {' + '.join(parts)} = {short(passed[i])}"
            drawing.text(left + wide / 2, top + 18, text, size=12, bold=True, anchor="middle", room=wide - 8)
        note = "At the dot: the tangent.  In the box: its slope × the gradient, passed back."
        drawing.text(Axes.LEFT, drawing.height - 2, note, fill="quiet")
        return drawing

    def _axes(self, i: int, others: Setting) -> tuple[Axes, str]:
        """The axes and the curves of number `i` where the others have these settings; many pages share them."""
        drawing, measure, place = Drawing(0, 0), self.measure, self.measure.at(others)
        name, values = [*measure.values.items()][i]
        left, top = i % 2 * (self.wide + 16), i // 2 * (self.high + BELOW)
        drawing.heading(left + Axes.LEFT, top + 12, f"{measure.name} by {name}")
        ends = values[0], values[-1]
        axes = Axes(drawing, (left, top + 22, self.wide, self.high), ends, self.up)

        def at(x: float) -> Any:
            place[i] = x
            return self.levels(measure.read(place)) if self.slope else measure.value(place)

        for k, curve in enumerate(_curves(at, ends, self.up)):
            axes.curve(curve, SERIES[k % len(SERIES)], dashes=DASHES[k % len(DASHES)])
        return axes, "".join(drawing.pieces)


def _tangents(levels: Any, slopes: Any, x: float, at: float) -> Any:
    return levels + slopes * (at - x)


def _curves(
    at: Callable[[float], Any], ends: tuple[float, float], up: tuple[float, float]
) -> list[list[tuple[float, float]]]:
    """Points of some curves: more where one bends, not a number where one jumps, and beyond the heights `up`.

    >>> _curves(lambda x: np.array([2 * x]), (0.0, 12.0), (0.0, 24.0))[0][-2:]
    [(11.45, 22.9), (12.0, 24.0)]
    >>> (stairs,) = _curves(lambda x: np.array([math.floor(x)]), (0.0, 1.5), (0.0, 1.5))
    >>> [round(x, 3) for x, y in stairs if np.isnan(y)]
    [1.0]
    """
    known: dict[float, Any] = {}
    fresh, parts, height = np.linspace(*ends, POINTS).tolist(), [], up[1] - up[0]
    for _ in range(ROUNDS):
        for x in fresh:
            known[x] = np.where((up[0] <= (levels := at(x))) & (levels <= up[1]), levels, np.nan)
        bent = [part for a, x, b in parts if _bends(known[a], known[x], known[b], height) for part in ((a, x), (x, b))]
        parts = [(a, a + BETWEEN * (b - a), b) for a, b in (bent if parts else [*pairwise(fresh)])[:MOST]]
        fresh = [x for _, x, _ in parts]
    for a, x, b in parts:
        known[x] = np.where(np.abs(known[a] - known[b]) > JUMP * height, np.nan, known[a])
    across = sorted(known)
    return [[*zip(across, curve)] for curve in np.transpose([known[x] for x in across]).tolist()]


def _bends(first: Any, between: Any, last: Any, height: float) -> Any:
    straight = np.abs(first + BETWEEN * (last - first) - between) <= SMOOTH * height
    return not np.all(straight | np.isnan([first, between, last]).all(0))
