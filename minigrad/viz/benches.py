"""`mg.viz.bench`: one operation, with sliders for its inputs and for the gradient of its output, and its kernels.

The operation and its gradient rule compute values and derivatives here, for every setting of the sliders.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import vjp
from ..core.dtypes import float32, float64
from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..core.tree import leaves
from ..ops.creation import asarray
from ..ops.joining import concat
from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import ConversionError, MinigradError
from ..support.table import counted
from .callpaths import EXAMPLE, called
from .compiled import FunctionCall, not_jitted, put_back
from .curves import curve_name, ends_of
from .drawing import DASHES, SERIES, Axes, Drawing
from .flipbook import Flipbook, Knob, Page, settings_of
from .numbers import short

SETTINGS = {1: 41, 2: 13, 3: 5, 4: 3}  # of each slider, by the number of sliders
GRADIENTS = -1.0, 0.5, 1.0, 2.0
RANGE, AROUND = (-3.0, 3.0), 2.0  # the two ends of a slider
POINTS, MANY = 81, 601  # of a curve, and of one alone: more than pixels
JUMP = 1 / 5  # of the height of a chart, between two points
DIGITS = 9  # smaller ones are errors of rounding
NEAR = 6e-4  # differences of float32 are not nearer
BELOW = 74.0  # each chart, and above it
PATHS = 8  # calls of kernels that have a page beside the sliders
Setting = tuple[int, ...]


class Reading(NamedTuple):
    """The results at some inputs, their derivatives by the gradient rule, and by differences to both sides."""

    value: Any  # 1-d
    rows: Any  # a row for each result, a column for each input
    sides: Any  # two such arrays


def bench(function: Callable[..., Any], *args: Any, **inputs: Any) -> Flipbook:
    """Change the inputs of an operation and the gradient of its output, and see the gradients of its inputs.

    `inputs` are, by the names of the parameters, the two ends of a slider (`x=(-1, 1)`), or an array with a slider for
    each number (`x=[0.5, 1.0]`).  At most four sliders are possible.  A second page shows why this kernel runs: each
    level between your line and the kernel, and what is decided there.

    With `args`, or without inputs, the function runs once as it is, what it changes by name is put back, and there are
    only the pages of kernels: those of eager mode, also for a jitted function.  All that ran is counted, also what no
    result needs and a recorded graph leaves out, and what a function with a gradient of its own calls; but not the
    programs of jitted functions that are called inside, and not a write such as `x[1:] = y`, which needs no kernel.

    >>> mg.viz.bench(mg.tanh)
    <tanh on the bench: 1 slider for x, 1 for the gradient>
    >>> print(mg.viz.bench(mg.multiply, x=(0, 4), y=(0, 2)).text())
    multiply at x = 2.67, y = 1.33: 3.56. With the gradient 1, it passes back 1.33 to x, 2.67 to y.
    multiply on cpu runs numpy.multiply: () float32, () float32 → () float32. It ran at x = 2.67, y = 1.33.
    >>> x = mg.asarray([[1], [2]])
    >>> book = mg.viz.bench(lambda: mg.tanh(x) + mg.ones(3))
    >>> book
    <why these kernels run, operation by operation (4 operations, 0 views, 4 kernels)>
    >>> print(book.text())
    1. astype on cpu runs minigrad's own astype (it calls numpy): (2, 1) int64 → (2, 1) float32
    2. tanh on cpu runs numpy.tanh: (2, 1) float32 → (2, 1) float32
    3. full on cpu runs minigrad's own full (it calls numpy): nothing → (3,) float32
    4. add on cpu runs numpy.add: (2, 1) float32, (3,) float32 → (2, 3) float32
    """
    if not callable(function):
        raise MinigradError(f"bench needs a function, and a {type(function).__name__} is not one", hint=EXAMPLE)
    function = not_jitted(function)
    name = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "f")
    needed = _needed(function)
    if args or not (needed or inputs):
        with put_back(call := FunctionCall(function, args, inputs)):
            return called(call.run)
    unknown = set(inputs) - set(needed)
    if unknown:
        raise ConversionError(
            f"bench: {name} has no input {', '.join(sorted(unknown))}",
            expect=f"some of {', '.join(needed)}" if needed else "a function of one to four numbers",
            hint="a lambda fixes the other arguments: mg.viz.bench(lambda x: mg.power(x, 3))",
        )
    with np.errstate(all="ignore"):
        return _Bench(function, name, dict.fromkeys(needed, RANGE) | inputs).book()


def _needed(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters without which a function can't be called."""
    try:
        parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())  # of a module
    except ValueError:
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]


class _Bench:
    """The operation, the sliders of all numbers in its arguments, and what is read at each setting of them.

    There is a chart for each number: the results as functions of it, and at a setting, their slopes and what is passed
    back.  All charts have the same heights.  That of a single number also has the slopes as a curve.
    """

    def __init__(self, function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> None:
        self.function, self.name = function, name
        self.random = DEFAULT_GENERATOR.get_state()  # each run draws the same numbers
        spans = {key: _span(key, given) for key, given in arguments.items()}
        self.shapes = [low.shape for low, *_ in spans.values()]
        self.values, self.sliders = _sliders(name, spans)
        self.readings = {setting: self.read(self.at(setting)) for setting in settings_of(self.sliders)}
        self.width, self.alone = len(next(iter(self.readings.values())).value), len(self.sliders) == 1
        self.slope = self.width == self.alone == 1
        self.wide, self.high = 460.0 if self.alone else 300.0, 142.0 if len(self.sliders) > 2 else 260.0
        self.chart = cache(self._chart)

    def book(self) -> Flipbook:
        """The page with the sliders for every setting, and the pages of the kernels."""
        start = tuple([slider.start for slider in self.sliders])
        gradients = _gradients(self.width)
        inputs = self.inputs(self.at(start), float32)  # as users have them
        kernels = called(partial(self.function, *inputs), f" It ran at {self.where(start)}.", PATHS)
        paths = [page for (page,) in kernels.pages]
        formulas = [block for block in paths[0].blocks if block[1][0] == "math"] * (len(paths) == 1)
        pages = [[self._page(setting, *each, formulas), *paths]
                 for setting in self.readings for each in gradients.items()]
        title = f"{self.name} on the bench: {counted(len(self.sliders), 'slider')} for {', '.join(self.values)}, "
        knob = Knob("gradient", tuple(gradients), GRADIENTS.index(1.0) * (self.width == 1), choice=self.width > 1)
        book = Flipbook(f"{title}1 for the gradient", pages, (*self.sliders, knob), cover=0)
        return book.titled("", nodes=kernels.nodes)

    # what is measured -----------------------------------------------------------------------------------------------

    def at(self, setting: Setting) -> Any:
        """The values of the sliders at a setting."""
        return np.array([values[i] for values, i in zip(self.values.values(), setting)])

    def where(self, setting: Setting) -> str:
        """The values of the sliders in words."""
        return ", ".join([f"{slider.name} = {slider.settings[i]}" for slider, i in zip(self.sliders, setting)])

    def inputs(self, values: Any, dtype: Any = float64) -> list[Tensor]:
        """The arguments of the function."""
        parts = np.split(values, np.cumsum([math.prod(shape) for shape in self.shapes]))
        return [asarray(part.reshape(shape), dtype=dtype) for part, shape in zip(parts, self.shapes)]

    def run(self, *inputs: Tensor) -> Tensor:
        """The numbers of all results that have a derivative, in a row."""
        DEFAULT_GENERATOR.set_state(self.random)
        try:
            made = self.function(*inputs)
        except MinigradError as error:
            raise ConversionError(
                f"bench: {self.name} does not take these inputs: {error.first_line}",
                expect="numbers or arrays by the names of the inputs, at most four",
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
            return np.asarray(self.run(*self.inputs(values)).numpy(), np.float64)

    def read(self, values: Any) -> Reading:
        """The results and their derivatives at some values of the sliders."""
        inputs = self.inputs(values)
        result, back = vjp(self.run, *inputs)
        value = self.value(values)
        rows = []
        for unit in np.eye(len(value)):
            passed = zip(back(asarray(unit, dtype=result.dtype)), inputs)  # nothing where no gradient flows
            rows.append([np.zeros(x.size) if g is None else g.detach().numpy().reshape(-1) for g, x in passed])
        step = float(np.finfo(result.dtype).eps) ** (1 / 3)
        moves = np.diag(step * np.sqrt(np.maximum(1.0, np.abs(values))))  # rounding grows with a number
        sides = [[(self.value(values + s * move) - value) / (s * move.sum()) for move in moves] for s in (-1, 1)]
        return Reading(value, np.array([*map(np.concatenate, rows)]), np.array(sides).swapaxes(1, 2))

    # what is shown --------------------------------------------------------------------------------------------------

    @cached_property
    def results(self) -> list[str]:
        """The names of the curves; a single result of several numbers needs none."""
        several = [f"result {k}" for k in range(self.width)] if self.width > 1 else ["the operation"] * self.alone
        return several + ["its slope"] * self.slope

    @cached_property
    def up(self) -> tuple[float, float]:
        """The lowest and the highest level of all charts: nearly all results are between."""
        every = np.concatenate([self.levels(reading) for reading in self.readings.values()])
        seen = every[np.isfinite(every)]
        return ends_of(np.percentile(seen if len(seen) else [-1.0, 1.0], [2, 98]))

    def _page(self, setting: Setting, called: str, g: Any, formulas: Sequence[Any]) -> Page:
        """The page of the sliders at a setting, for a gradient and what it is called; formulas, of one operation."""
        reading = self.readings[setting]
        passed = [*map(short, np.round(g @ reading.rows, DIGITS))]
        by_both = zip(g @ reading.rows, *np.round(g @ reading.sides, DIGITS))
        marks = [_mark(*each) for each in by_both]
        rows = [*map(list, zip(self.values, passed, marks))]
        table = {"head": ["by", "passed back", "by differences"], "rows": rows}
        back = ", ".join([f"{gradient} to {name}" for name, gradient in zip(self.values, passed)])
        results = ", ".join(map(short, reading.value))
        say = f"{self.name} at {self.where(setting)}: {results}. With the gradient {called}, it passes back {back}."
        blocks = ("numbers", ("table", table)), *formulas
        return Page(self._drawn(setting, g, passed), say, blocks, "sliders")

    def levels(self, reading: Reading) -> Any:
        """What the curves show: the results, or the only one and its slope, which ends where that ends."""
        return np.append(reading.value, reading.rows + 0 * reading.value) if self.slope else reading.value

    def _drawn(self, setting: Setting, g: Any, passed: Sequence[str]) -> Drawing:
        """The charts at a setting, for a gradient of the results and what is passed back."""
        reading, right = self.readings[setting], min(len(setting), 2) * (self.wide + 16)
        drawing = Drawing(right + 95 * bool(self.results), (len(setting) + 1) // 2 * (self.high + BELOW) + 4)
        for k, name in enumerate(self.results):
            curve_name(drawing, right - 8, 34 + 16 * k, name, k)
        for i, (name, values) in enumerate(self.values.items()):
            axes, piece = self.chart(i, (*setting[:i], 0, *setting[i + 1 :]))
            drawing.add(piece)
            axes.drawing = drawing
            slopes = reading.rows[:, i]
            with drawing.piece():
                self._moment(axes, values, values[setting[i]], reading, slopes)
            parts = [f"{short(slope)} × {short(each)}" for slope, each in zip(slopes, g) if each or len(g) == 1]
            left, top, wide = axes.x, axes.y + axes.height + 26, axes.width
            drawing.rect(left, top, wide, 28, "back-fill", "back")
            text = f"∂{name}: {' + '.join(parts)} = {passed[i]}"
            drawing.text(left + wide / 2, top + 18, text, size=12, bold=True, anchor="middle", room=wide - 8)
        note = "In the box: the slope at the dot × the gradient"
        drawing.text(Axes.LEFT, drawing.height - 2, note, fill="quiet")
        return drawing

    def _moment(self, axes: Axes, values: Sequence[float], x: float, reading: Reading, slopes: Any) -> None:
        """The tangents and the dots of a chart at a value."""
        reach = (values[-1] - values[0]) / 5
        across = np.clip(np.linspace(x - reach, x + reach, 9), values[0], values[-1]).tolist()
        for y, slope in zip(reading.value, slopes):
            axes.curve([(at, y + slope * (at - x)) for at in across], "ink", thick=1.2)
        for k, level in enumerate(self.levels(reading)):
            if self.up[0] <= level <= self.up[1]:
                axes.drawing.dot(*axes.at(x, level), fill="back" if self.slope and k else "now")

    def _chart(self, i: int, others: Setting) -> tuple[Axes, str]:
        """The axes and the curves of number `i` where the others have these settings; many pages share them."""
        drawing, place = Drawing(0, 0), self.at(others)
        name, values = [*self.values.items()][i]
        left, top = i % 2 * (self.wide + 16), i // 2 * (self.high + BELOW)
        drawing.heading(left + Axes.LEFT, top + 12, f"{self.name} by {name}")
        ends = values[0], values[-1]
        axes = Axes(drawing, (left, top + 22, self.wide, self.high), ends, self.up)

        def at(x: float) -> Any:
            place[i] = x
            return self.levels(self.read(place)) if self.slope else self.value(place)

        for k, curve in enumerate(_curves(at, ends, self.up, MANY if self.slope else POINTS)):
            axes.curve(curve, SERIES[k % len(SERIES)], dashes=DASHES[k % len(DASHES)])
        return axes, "".join(drawing.pieces)


def _span(key: str, given: Any) -> tuple[Any, Any, float]:
    """The two ends of an argument's sliders, and the share of the way between them where they start."""
    if not isinstance(given, tuple):
        array = asarray(given, dtype=float64).detach().numpy()
        return array - AROUND, array + AROUND, 1 / 2
    if len(given) == 2 and all(isinstance(x, (int, float)) for x in given) and given[0] < given[1]:
        return np.asarray(given[0]), np.asarray(given[1]), 2 / 3
    raise ConversionError(
        f"bench: {key}={given!r} is not a range",
        expect="two numbers, the smaller first, or an array in brackets", hint=f"{key}=(-2, 2)",
    )


def _sliders(name: str, spans: dict[str, Any]) -> tuple[dict[str, Any], tuple[Knob, ...]]:
    """The values and the slider of each number in the arguments."""
    ends = {key + f"[{', '.join(map(str, at))}]" * (at != ()): (low[at], high[at], share)
            for key, (low, high, share) in spans.items() for at in np.ndindex(low.shape)}
    if len(ends) not in SETTINGS or not np.all(np.isfinite([*ends.values()])):
        raise ConversionError(
            f"bench: {counted(len(ends), 'number')} for the sliders of {name}", expect="one to four finite numbers",
            hint=f"a lambda that fixes some of them; or {EXAMPLE}, which needs no sliders",
        )
    count = SETTINGS[len(ends)]
    values = {label: np.linspace(low, high, count).round(5 - math.frexp(high - low)[1] // 3).tolist()
              for label, (low, high, _) in ends.items()}
    return values, tuple([Knob(label, tuple(map(short, values[label])), int(share * count))
                          for label, (_, _, share) in ends.items()])


def _gradients(width: int) -> dict[str, Any]:
    """The settings of the gradient: of one result, numbers; of several, a one for a single result, or for all."""
    if width == 1:
        return {short(g): np.array([g]) for g in GRADIENTS}
    units = {f"1 for result {i}, 0 for the others": unit for i, unit in enumerate(np.eye(width)[:3])}
    return units | {"1 for all results": np.ones(width)}


def _mark(rule: float, before: float, after: float) -> str:
    """The derivative by differences, beside what the gradient rule says."""
    slope = (before + after) / 2
    if not (math.isfinite(rule) and math.isfinite(slope)):
        return short(slope)
    near = NEAR * max(1.0, abs(rule))
    if abs(rule - slope) <= near:
        return f"✓ {short(slope)}"
    return f"✗ {short(slope)}: " + ("the rule differs" if abs(before - after) <= near else "a kink or a jump")


def _curves(
    at: Callable[[float], Any], ends: tuple[float, float], up: tuple[float, float], points: int
) -> list[list[tuple[float, float]]]:
    """Points of some curves; not a number where one jumps, as seen between the heights `up`.

    >>> _curves(lambda x: np.array([2 * x, round(x)]), (0.0, 0.8), (0.0, 4.0), 3)
    [[(0.0, 0.0), (0.4, 0.8), (0.8, 1.6)], [(0.0, 0.0), (0.4, nan), (0.8, 1.0)]]
    """
    across = np.linspace(*ends, points).tolist()
    levels = np.array([*map(at, across)], np.float64)
    levels[:-1][np.abs(np.diff(levels, axis=0)) > JUMP * (up[1] - up[0])] = np.nan
    return [[*zip(across, curve)] for curve in levels.T.tolist()]
