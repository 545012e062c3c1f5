"""`mg.viz.bench`: one operation, with sliders for its inputs and for the gradient of its output.

The operation and its gradient rule compute values and derivatives here, for every setting of the sliders.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autodiff import vjp
from ...core.dtypes import float64
from ...core.mode import no_grad
from ...core.primitive import P
from ...core.tensor import Tensor
from ...ops.creation import asarray
from ...support.errors import ConversionError, MinigradError
from ...support.table import counted
from ..charts import DASHED, legend
from ..drawing import DASHES, Axes, Drawing
from ..exhibit import check_function
from ..flipbook import Block, Flipbook, Knob, Page, settings_of
from ..numbers import short
from ..rules import mathml

SETTINGS = {1: 41, 2: 13, 3: 5, 4: 3}  # of each slider, by the number of sliders
GRADIENTS = {1: (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0), 2: (-1.0, 0.5, 1.0), 3: (-1.0, 0.5, 1.0), 4: (-1.0, 1.0)}
RANGE, POSITIVE, AROUND = (-3.0, 3.0), (0.05, 4.0), 2.0
FINE, STEP = 121, 1e-6
LINES = [("there", "there", "the operation"), ("back", "", "its slope")]


class Number(NamedTuple):
    """A number among the inputs: its name, its place, and the values of its slider."""

    name: str
    argument: int
    place: tuple[int, ...] | None  # in the array; None: the argument is a single number
    values: list[float]
    start: int


class Reading(NamedTuple):
    """The result at one setting, its derivatives by the gradient rule, and by finite differences."""

    value: Any  # 1-d
    rows: Any  # a row for each output, a column for each input
    by_differences: Any


def bench(function: Callable[..., Any], **inputs: Any) -> Flipbook:
    """Change the inputs of an operation and the gradient of its output, and see the gradients of its inputs.

    `inputs` are, by the names of the parameters, the two ends of a slider (`x=(-1, 1)`), or an array with a slider for
    each number (`x=[0.5, 1.0]`).  At most four sliders are possible.

    >>> mg.viz.bench(mg.tanh)
    <tanh on the bench: 1 slider for x, 1 for the gradient>
    >>> print(mg.viz.bench(mg.multiply, x=(0, 4), y=(0, 2)).text())
    multiply at x = 2.67, y = 1.33: 3.56
    by x: 1.33 by the rule, 1.33 by differences
    by y: 2.67 by the rule, 2.67 by differences
    """
    name = getattr(function, "__name__", type(function).__name__)
    arguments = _arguments(function, name, inputs)
    numbers = _numbers(function, name, arguments)
    measure = _Bench(function, name, list(arguments.values()), numbers)
    scalar = all(number.place is None for number in numbers)
    first = measure.read(tuple(number.start for number in numbers))
    width = len(first.value)
    gradients = _gradients(len(numbers), width)
    knobs = [Knob(number.name, tuple(map(short, number.values)), number.start) for number in numbers]
    start = [g for _, g in gradients].index([1.0] * width)
    if width > 1 and not np.any(_tidy(np.ones(width) @ first.rows)):  # softmax: the results add up to a constant
        start = 1
    knobs.append(Knob("gradient", tuple(g[0] for g in gradients), start, choice=width > 1))
    draw = _Curves(measure) if scalar and width == 1 else _Matrix(measure)
    pages = []
    for *setting, chosen in settings_of(tuple(knobs)):
        reading = measure.read(tuple(setting))
        pages.append([_page(measure, draw, tuple(setting), reading, np.array(gradients[chosen][1]))])
    names = ", ".join(number.name for number in numbers)
    title = f"{name} on the bench: {counted(len(numbers), 'slider')} for {names}, 1 for the gradient"
    words = _in_words(measure, tuple(number.start for number in numbers), first)
    return Flipbook(title, pages, tuple(knobs), words=words)


def _arguments(function: Callable[..., Any], name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The given value of each parameter, or None."""
    check_function("bench", function, "mg.viz.bench(mg.tanh)")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in kinds]
    unknown = set(inputs) - set(needed)
    if unknown or not needed:
        raise ConversionError(
            f"bench: {name} has no input {', '.join(sorted(unknown))}" if needed else f"bench: {name} has no inputs",
            expect=f"some of {', '.join(needed)}" if needed else "a function of one to four numbers",
            hint="a lambda fixes the other arguments: mg.viz.bench(lambda x: mg.power(x, 3))",
        )
    return {key: inputs.get(key) for key in needed}


def _numbers(function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> list[Number]:
    places: list[tuple[str, int, tuple[int, ...] | None, tuple[float, float], float]] = []
    for i, (key, given) in enumerate(arguments.items()):
        if given is None or isinstance(given, tuple):
            low, high = _ends(name, key, given) if given else RANGE
            places.append((key, i, None, (low, high), low + (high - low) * 2 / 3))
            continue
        array = np.asarray(given.numpy() if isinstance(given, Tensor) else given, np.float64)
        for at in np.ndindex(array.shape):
            label = f"{key}[{', '.join(map(str, at))}]" if at else key
            value = float(array[at])
            places.append((label, i, at, (value - AROUND, value + AROUND), value))
    if len(places) not in SETTINGS:
        raise ConversionError(
            f"bench: {len(places)} numbers go into {name}, too many for sliders", expect="from one to four",
            hint="an array of fewer numbers, or a lambda that fixes some of them",
        )
    count = SETTINGS[len(places)]
    if None in arguments.values() and not np.isfinite(_tried(function, [-1.0] * len(arguments))):
        if np.isfinite(_tried(function, [1.0] * len(arguments))):  # a logarithm, a root
            places = [(*p[:3], POSITIVE, 2.0) if arguments.get(p[0], p) is None else p for p in places]
    numbers = []
    for key, i, place, (low, high), wish in places:
        values = [float(f"{v:.6g}") for v in np.linspace(low, high, count)]
        numbers.append(Number(key, i, place, values, int(np.argmin(np.abs(np.array(values) - wish)))))
    return numbers


def _ends(name: str, key: str, given: tuple[Any, ...]) -> tuple[float, float]:
    if len(given) != 2 or not all(isinstance(x, (int, float)) for x in given) or not given[0] < given[1]:
        raise ConversionError(
            f"bench: {key}={given!r} is not a range", expect="two numbers, the smaller first, or an array in brackets",
            hint=f"mg.viz.bench(mg.{name}, {key}=(-2, 2))",
        )
    return float(given[0]), float(given[1])


def _tried(function: Callable[..., Any], values: list[float]) -> float:
    try:
        with no_grad(), np.errstate(all="ignore"):
            return float(np.asarray(function(*[asarray(v, dtype=float64) for v in values]).numpy()).sum())
    except (MinigradError, AttributeError):
        return math.nan


def _gradients(many: int, width: int) -> list[tuple[str, list[float]]]:
    """The settings of the gradient: numbers; for an output of several numbers, ones, or a one for a single number."""
    if width == 1:
        return [(short(g), [g]) for g in GRADIENTS[many]]
    units = [(f"1 for number {i}, else 0", [float(i == j) for j in range(width)]) for i in range(min(width, 3))]
    return [("1 for all", [1.0] * width), *units]


class _Bench:
    """The operation, and what has been measured so far."""

    def __init__(
        self, function: Callable[..., Any], name: str, arguments: list[Any], numbers: list[Number]
    ) -> None:
        self.function, self.name, self.numbers = function, name, numbers
        self.templates = [
            np.zeros(()) if given is None or isinstance(given, tuple)
            else np.array(given.numpy() if isinstance(given, Tensor) else given, np.float64)
            for given in arguments
        ]
        self.readings: dict[tuple[int, ...], Reading] = {}

    def at(self, setting: Sequence[int]) -> list[float]:
        return [number.values[i] for number, i in zip(self.numbers, setting)]

    def where(self, setting: Sequence[int]) -> str:
        values = zip(self.numbers, self.at(setting))
        return f"{self.name} at {', '.join(f'{number.name} = {short(value)}' for number, value in values)}"

    def inputs(self, values: Sequence[float]) -> list[Tensor]:
        arrays = [template.copy() for template in self.templates]
        for number, value in zip(self.numbers, values):
            arrays[number.argument][number.place or ()] = value
        return [asarray(array, dtype=float64) for array in arrays]

    def value(self, values: Sequence[float]) -> Any:
        with no_grad(), np.errstate(all="ignore"):
            return _flat(self.function(*self.inputs(values)), self.name)

    def read(self, setting: tuple[int, ...]) -> Reading:
        """The result and its derivatives at a setting."""
        if setting not in self.readings:
            values = self.at(setting)
            with np.errstate(all="ignore"):
                value, rows = self._by_rule(values)
                self.readings[setting] = Reading(value, rows, self._by_differences(values))
        return self.readings[setting]

    def _by_rule(self, values: list[float]) -> tuple[Any, Any]:
        result, back = vjp(self.function, *self.inputs(values))
        value = _flat(result, self.name)
        rows = []
        for unit in np.eye(len(value)):
            passed = back(asarray(unit.reshape(result.shape), dtype=float64))
            gradients = [np.asarray(g.numpy()) for g in passed]
            rows.append([float(gradients[n.argument][n.place or ()]) for n in self.numbers])
        return value, np.array(rows)

    def _by_differences(self, values: list[float]) -> Any:
        columns = []
        for i in range(len(values)):
            up, down = [[v + h * (i == j) for j, v in enumerate(values)] for h in (STEP, -STEP)]
            columns.append((self.value(up) - self.value(down)) / (2 * STEP))
        return np.array(columns).T


def _flat(result: Any, name: str) -> Any:
    if not isinstance(result, Tensor) or result.dtype.kind != "f":
        what = f"a tensor of {result.dtype}" if isinstance(result, Tensor) else f"a {type(result).__name__}"
        raise ConversionError(
            f"bench: {name} returns {what}, which has no derivative", expect="a function that returns floats"
        )
    flat = np.asarray(result.numpy(), np.float64).reshape(-1)
    if not 1 <= flat.size <= 8:
        raise ConversionError(f"bench: {name} returns {flat.size} numbers", expect="from one to eight")
    return flat


def _page(
    measure: _Bench, draw: _Curves | _Matrix, setting: tuple[int, ...], reading: Reading, g: Any
) -> Page:
    passed = _tidy(g @ reading.rows)
    names = [number.name for number in measure.numbers]
    value = ", ".join(short(float(v)) for v in reading.value)
    say = f"{measure.where(setting)}: {value}. It passes back " + ", ".join(
        f"{short(float(p))} to {n}" for n, p in zip(names, passed)
    )
    blocks: list[tuple[str, Block]] = []
    op = next((op for op in P if op.name == measure.name), None)
    if op is not None and op.formula:
        blocks.append(("what it computes", ("math", mathml(op.formula))))
        for name, local in op.local.items():
            blocks.append((f"its derivative by {name}", ("math", mathml(local))))
    if len(g) == 1:
        rows = [[n, short(float(d)), short(float(p)), _mark(float(d), float(b))]
                for n, d, p, b in zip(names, reading.rows[0], passed, reading.by_differences[0])]
        head = ["by", "derivative", f"× {short(float(g[0]))}", "by differences"]
    else:
        others = _tidy(g @ reading.by_differences)
        rows = [[n, short(float(p)), _mark(float(p), float(b))] for n, p, b in zip(names, passed, others)]
        head = ["to", "passed back", "by differences"]
    return Page(draw(setting, reading, g, passed), say, (*blocks, ("numbers", ("table", {"head": head, "rows": rows}))))


def _tidy(numbers: Any) -> Any:
    """The numbers, with zeros in place of rounding errors."""
    return np.where(np.abs(numbers) < 1e-9, 0.0, numbers)


def _mark(rule: float, differences: float) -> str:
    if not (math.isfinite(rule) and math.isfinite(differences)):
        return short(differences)
    same = abs(rule - differences) <= 1e-4 * max(1.0, abs(rule))
    return f"✓ {short(differences)}" if same else f"{short(differences)}: a kink or a jump"


class _Curves:
    """A chart for each number: the operation as a function of this number, and its slope at the setting."""

    def __init__(self, measure: _Bench) -> None:
        self.measure = measure
        self.known: dict[tuple[int, tuple[int, ...]], list[tuple[float, float]]] = {}
        self.drawn: dict[tuple[int, tuple[int, ...]], tuple[Axes, str]] = {}
        self.size = {1: (460.0, 240.0), 2: (300.0, 220.0)}.get(len(measure.numbers), (230.0, 180.0))
        points = [point for i in range(len(measure.numbers)) for s in self._others(i) for point in self.curve(i, s)]
        points += self.slopes() if len(measure.numbers) == 1 else []
        finite = [y for _, y in points if math.isfinite(y)]
        low, high = np.percentile(finite, [2, 98]) if finite else (-1.0, 1.0)
        room = 0.15 * (high - low) or 1.0
        self.up = (float(low - room), float(high + room))

    def _others(self, i: int) -> list[tuple[int, ...]]:
        counts = [range(1 if j == i else len(number.values)) for j, number in enumerate(self.measure.numbers)]
        return [tuple(map(int, at)) for at in np.ndindex(*map(len, counts))]

    def curve(self, i: int, setting: tuple[int, ...]) -> list[tuple[float, float]]:
        """The operation as a function of number `i`, with the other numbers at their settings."""
        key = self._key(i, setting)
        if key not in self.known:
            values = self.measure.at(setting)
            ends = self.measure.numbers[i].values
            fine = FINE if len(self.measure.numbers) == 1 else 41
            xs = np.linspace(ends[0], ends[-1], fine)
            points = [[*values[:i], float(x), *values[i + 1 :]] for x in xs]
            self.known[key] = [(p[i], float(self.measure.value(p)[0])) for p in points]
        return self.known[key]

    def slopes(self) -> list[tuple[float, float]]:
        """The slope of an operation of one number, by differences."""
        xs, ys = np.array(self.curve(0, (0,))).T
        return list(zip(xs.tolist(), np.gradient(ys, xs).tolist()))

    @staticmethod
    def _key(i: int, setting: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return i, tuple(0 if j == i else s for j, s in enumerate(setting))

    def _chart(self, i: int, setting: tuple[int, ...]) -> tuple[Axes, str]:
        """The axes and the curve of number `i`, drawn once for each setting of the others."""
        key = self._key(i, setting)
        if key not in self.drawn:
            wide, high = self.size
            drawing, number, left = Drawing(0, 0), self.measure.numbers[i], i * (wide + 16)
            drawing.heading(left + 40, 12, f"{self.measure.name} by {number.name}")
            chart = Axes(drawing, (left, 22, wide, high), (number.values[0], number.values[-1]), self.up)
            if len(self.measure.numbers) == 1:
                legend(drawing, left + wide - 190, 12, LINES)
                chart.curve(self.slopes(), "back", thick=1.0, dashes=DASHED)
            chart.curve(self.curve(i, setting))
            self.drawn[key] = chart, "".join(drawing.pieces)
        return self.drawn[key]

    def __call__(self, setting: tuple[int, ...], reading: Reading, g: Any, passed: Any) -> Drawing:
        numbers = self.measure.numbers
        wide, high = self.size
        drawing = Drawing(len(numbers) * (wide + 16) - 16, high + 96)
        y = float(reading.value[0])
        for i, number in enumerate(numbers):
            left, x, slope = i * (wide + 16), number.values[setting[i]], float(reading.rows[0][i])
            chart, piece = self._chart(i, setting)
            drawing.add(piece)
            begin, chart.drawing = len(drawing.pieces), drawing
            if math.isfinite(y) and math.isfinite(slope):
                reach = (number.values[-1] - number.values[0]) / 10
                line = [(x + t * reach, y + slope * t * reach) for t in (-2, -1, 0, 1, 2)]
                chart.curve(line, "back", dashes=DASHES[1])
                if self.up[0] <= y <= self.up[1]:
                    drawing.dot(*chart.at(x, y))
                if len(numbers) == 1 and self.up[0] <= slope <= self.up[1]:
                    drawing.dot(*chart.at(x, slope), fill="back")
            drawing.merge(begin)
            drawing.rect(left + 40, high + 36, wide - 40, 34, "back-fill", "back")
            text = f"slope {short(slope)} × gradient {short(float(g[0]))} = {short(float(passed[i]))}"
            drawing.text(left + wide / 2 + 20, high + 57, text, size=12, bold=True, anchor="middle", room=wide - 48)
            drawing.text(left + 40, high + 86, f"∂{number.name}: the gradient that is passed back", fill="quiet")
        return drawing


class _Matrix:
    """The table of all derivatives, the incoming gradient beside it, and the gradients passed back below it."""

    SIDE, LEFT, TOP = 74.0, 120.0, 56.0

    def __init__(self, measure: _Bench) -> None:
        self.measure = measure

    def __call__(self, setting: tuple[int, ...], reading: Reading, g: Any, passed: Any) -> Drawing:
        rows, columns = reading.rows.shape
        side = self.SIDE
        drawing = Drawing(self.LEFT + (columns + 1) * side + 60, self.TOP + (rows + 1) * 44 + 56)
        begin = len(drawing.pieces)
        drawing.heading(self.LEFT, 12, "derivative of each result by each number")
        for j, number in enumerate(self.measure.numbers):
            x = self.LEFT + j * side
            drawing.text(x + side / 2, 34, number.name, anchor="middle", bold=True)
            drawing.text(x + side / 2, 48, short(number.values[setting[j]]), anchor="middle", fill="quiet")
        drawing.text(self.LEFT + columns * side + 46, 34, "gradient", anchor="middle", bold=True, fill="back")
        drawing.merge(begin)
        most = float(np.abs(reading.rows[np.isfinite(reading.rows)]).max(initial=1e-12))
        for i in range(rows):
            y = self.TOP + i * 44
            result = f"result {i}: {short(float(reading.value[i]))}"
            drawing.text(self.LEFT - 12, y + 24, result, anchor="end", bold=True)
            for j in range(columns):
                _cell(drawing, self.LEFT + j * side, y, side, float(reading.rows[i][j]), most)
            _cell(drawing, self.LEFT + columns * side + 10, y, side, float(g[i]), 2.0, "back")
        y = self.TOP + rows * 44 + 14
        drawing.text(self.LEFT - 12, y + 24, "passed back", anchor="end", bold=True, fill="back")
        for j in range(columns):
            _cell(drawing, self.LEFT + j * side, y, side, float(passed[j]), most * 2, "back")
        drawing.text(self.LEFT, y + 60, "each column times the gradient, summed", fill="quiet")
        return drawing


def _cell(drawing: Drawing, x: float, y: float, side: float, value: float, most: float, stroke: str = "line") -> None:
    share = min(0.6, 0.6 * abs(value) / most) if math.isfinite(value) else 0.0
    begin = len(drawing.pieces)
    drawing.rect(x + 2, y + 2, side - 4, 40, "back" if value < 0 else "there", stroke, opacity=max(share, 0.01))
    drawing.text(x + side / 2, y + 26, short(value), anchor="middle", bold=True)
    drawing.merge(begin)


def _in_words(measure: _Bench, setting: tuple[int, ...], reading: Reading) -> str:
    lines = [f"{measure.where(setting)}: {', '.join(short(float(v)) for v in reading.value)}"]
    for j, number in enumerate(measure.numbers):
        rule, other = [", ".join(short(float(v)) for v in m[:, j]) for m in (reading.rows, reading.by_differences)]
        lines.append(f"by {number.name}: {rule} by the rule, {other} by differences")
    return "\n".join(lines)
