"""`mg.viz.Dashboard`: a training run: curves, norms of gradients, pictures of weights.

Any loop can log to it: `board.log(step, loss=loss, model=model)`.  In a notebook the dashboard updates itself;
elsewhere it prints a line from time to time.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import ConversionError
from ..support.table import as_table
from .drawing import Drawing
from .exhibit import Exhibit
from .flipbook import Block, Flipbook, Page
from .heat import curves, heat_map, largest, matrix_of, norm_of, size_text, spark
from .numbers import short

PICTURES, PARAMETERS, LAYERS, NUMBERS = 24, 6, 5, 5  # the most moments, weights, norms and other numbers
POINTS = 400  # of a curve
OFTEN = 1.0  # seconds between two pictures in a notebook
Points = list[tuple[float, float]]  # (step, value)


class Weights(NamedTuple):
    """A small picture of a parameter, and its shape and norm."""

    matrix: Any
    about: str


class Dashboard(Exhibit):
    """The log of a training run, step by step.

    `total` is the number of steps, if it is known.  Only every `every`-th step is logged.  `show` is "auto" (a picture
    in a notebook, lines of text elsewhere), "text" or "nothing".

    >>> board = mg.viz.Dashboard(show="nothing")
    >>> for step in range(1, 5):
    ...     board.log(step, loss=1.0 / step, accuracy=0.25 * step)
    >>> board
    <training: 4 steps, loss 1 → 0.25, accuracy 0.25 → 1>
    >>> print(board.text())
              first  last  least  most
    loss          1  0.25   0.25     1  █▃▂▁
    accuracy   0.25     1   0.25     1  ▁▃▆█
    """

    script = "flipbook"

    def __init__(self, total: int | None = None, every: int = 1, show: str = "auto") -> None:
        if show not in ("auto", "text", "nothing"):
            raise ConversionError(f"Dashboard: there is no way to show {show!r}", expect="'auto', 'text' or 'nothing'")
        if every < 1 or (total is not None and total < 1):
            raise ConversionError("Dashboard: total and every count steps", expect="at least 1")
        self.total, self.every, self.show = total, every, show
        self.numbers: dict[str, Points] = {}
        self.norms: dict[str, Points] = {}  # of gradients, by parameter
        self.weights: dict[int, dict[str, Weights]] = {}  # by step: small pictures of parameters
        self.last = 0
        self._gap = 1  # steps between two pictures
        self._begun = time.monotonic()
        self._screen: Any = None
        self._printed, self._drawn = 0, 0.0

    # logging --------------------------------------------------------------------------------------------------------

    def log(self, step: int, *, model: Module | None = None, **numbers: Any) -> None:
        """Log a step: numbers by name, and the weights and gradients of the model.

        Call it after `backward()` and before the gradients are cleared.
        """
        if model is not None and not isinstance(model, Module):
            raise ConversionError(
                f"Dashboard.log: a {type(model).__name__} is not a model", expect="model=an nn.Module"
            )
        if step % self.every and step != self.total:
            return
        read = {name: _number(name, value) for name, value in numbers.items()}
        for name, value in read.items():
            self.numbers.setdefault(name, []).append((float(step), value))
        if model is not None:
            self._look_at(step, model)
        self.last = max(self.last, int(step))
        self._announce(step, read)

    def _look_at(self, step: int, model: Module) -> None:
        named = model.named_parameters()
        for name, parameter in named:
            if parameter.grad is not None:
                self.norms.setdefault(name, []).append((float(step), norm_of(parameter.grad.numpy())))
        if step >= max(self.weights, default=-self._gap) + self._gap:
            shown = sorted(named, key=lambda item: item[1].ndim < 2)[:PARAMETERS]
            arrays = [(name, p.detach().numpy()) for name, p in shown]  # type: ignore[attr-defined]
            self.weights[step] = {name: Weights(matrix_of(a, 12, 16), size_text(a)) for name, a in arrays}
            if len(self.weights) > PICTURES:  # keep every second picture
                self.weights = {s: w for i, (s, w) in enumerate(self.weights.items()) if i % 2 == 0}
                kept = list(self.weights)
                self._gap = kept[1] - kept[0]

    # progress -------------------------------------------------------------------------------------------------------

    def _announce(self, step: int, read: dict[str, float]) -> None:
        if self.show == "nothing":
            return
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        if self.show == "auto" and hasattr(shell, "kernel"):
            self._draw(last=step == self.total)
        elif self._worth_printing(step):
            self._printed = step
            print(self._line(step, read), file=sys.stderr)

    def _worth_printing(self, step: int) -> bool:
        """Ten times in all; if the number of steps is not known, after longer and longer pauses."""
        if self.total is None:
            return step >= 1.5 * self._printed
        tenth, before = (each * 10 // self.total for each in (step, self._printed))
        return step == self.total or tenth > before or not self._printed

    def _line(self, step: int, read: dict[str, float]) -> str:
        of = "" if self.total is None else f"/{self.total}"
        width = len(str(self.total or step))
        parts = [f"step {step:>{width}}{of}"]
        for name, value in read.items():
            parts.append(f"{name} {short(value)} {spark([v for _, v in self.numbers[name]], 16)}")
        norms = [values[-1][1] for values in self.norms.values() if values[-1][0] == step]
        if norms:
            parts.append(f"‖gradient‖ {short(norm_of(norms))}")
        taken = time.monotonic() - self._begun
        left = "" if self.total is None or not step else f", {taken * (self.total - step) / step:.0f} s to go"
        return "  ".join([*parts, f"{taken:.1f} s{left}"])

    def _draw(self, last: bool) -> None:
        from IPython.display import HTML, display

        if self._screen is not None and not last and time.monotonic() - self._drawn < OFTEN:
            return
        picture = HTML(self._static())
        if self._screen is None:
            self._screen = display(picture, display_id=True)
        else:
            self._screen.update(picture)
        self._drawn = time.monotonic()

    # how it is shown ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not self.numbers and not self.weights:
            return "<training: nothing logged yet>"
        ends = [f"{name} {short(v[0][1])} → {short(v[-1][1])}" for name, v in self.numbers.items()]
        return f"<training: {', '.join([f'{self.last} steps', *ends])}>"

    def text(self) -> str:
        """The numbers as a table, with a small curve in each line."""
        rows = []
        for name, points in self._all().items():
            values = [value for _, value in points]
            finite = [v for v in values if math.isfinite(v)] or [math.nan]
            rows.append([name, *map(short, (values[0], values[-1], min(finite), max(finite)))])
        if not rows:
            return "nothing logged yet"
        lines = as_table(["", "first", "last", "least", "most"], rows, left=1).splitlines()
        sparks = [spark([v for _, v in points]) for points in self._all().values()]
        return "\n".join([lines[0], *[f"{line}  {curve}" for line, curve in zip(lines[1:], sparks)]])

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        return self.book().data()

    def to_svg(self) -> str:
        """The state at the last step."""
        return self._picture(self._moments()[-1]).to_svg(repr(self))

    def book(self) -> Flipbook:
        """A page for each moment that has a picture; the last moment is shown first."""
        moments = self._moments()
        pages = [Page(self._picture(moment), self._said(moment), self._blocks(moment)) for moment in moments]
        return Flipbook(repr(self)[1:-1], [pages], unit="moment", start=len(pages) - 1)

    def _moments(self) -> list[int]:
        """The steps that have a page."""
        steps = sorted({int(step) for points in self.numbers.values() for step, _ in points})
        few = [steps[int(i * (len(steps) - 1) / (PICTURES - 1))] for i in range(PICTURES)] if steps else []
        return sorted(set(self.weights) | ({*few, self.last} if not self.weights else {self.last}))

    def _said(self, step: int) -> str:
        values = {name: _at(points, step) for name, points in self.numbers.items()}
        here = [f"{name} is {short(value)}" for name, value in values.items() if value is not None]
        return f"After step {step}" + (f": {', '.join(here)}." if here else ".")

    def _blocks(self, step: int) -> tuple[tuple[str, Block], ...]:
        def here(points: Points) -> str:
            value = _at(points, step)
            return "–" if value is None else short(value)

        rows = [[name, short(points[0][1]), here(points)] for name, points in self.numbers.items()]
        few = list(self.norms.items())[:12]
        norms = [[name, here(points), short(max(v for _, v in points))] for name, points in few]
        strange = [f"{name}: step {int(s)}" for name, points in self._all().items()
                   for s, v in points if not math.isfinite(v)][:3]
        found: list[tuple[str, Block]] = []
        if rows:
            found.append(("numbers", ("table", {"head": ["", "at first", "here"], "rows": rows})))
        if norms:
            found.append(("norms of gradients", ("table", {"head": ["", "here", "most"], "rows": norms})))
        if strange:
            found.append(("not finite", ("text", ", ".join(strange))))
        return tuple(found)

    def _picture(self, step: int) -> Drawing:
        """Curves on the left, the weights at a step on the right."""
        charts: list[tuple[str, dict[str, Points]]] = [
            (name, {name: _thinned(points)}) for name, points in list(self.numbers.items())[:NUMBERS]
        ]
        if self.norms:
            largest_first = sorted(self.norms.items(), key=lambda item: -max(v for _, v in item[1] if v == v))[:LAYERS]
            charts.append(("norms of gradients", {name: _thinned(points) for name, points in largest_first}))
        near = max([s for s in self.weights if s <= step], default=None)
        weights = {} if near is None else self.weights[near]
        width = 330.0 if weights else 560.0
        heights = [34 + 13 * w.matrix.shape[0] for w in weights.values()]
        drawing = Drawing(width + (150 + 250 if weights else 150), max(190.0 * len(charts), sum(heights) + 20, 60))
        ends = self._first(), float(self.last)
        for i, (title, series) in enumerate(charts):
            curves(drawing, (0, 190.0 * i, width, 176), series, title, float(step), ends)
        y = 0.0
        for (name, (matrix, about)), height in zip(weights.items(), heights):
            drawing.text(width + 150, y + 12, f"{name}  {about}", room=240, bold=True)
            most = largest([moment[name].matrix for moment in self.weights.values() if name in moment])
            heat_map(drawing, width + 150, y + 18, matrix, 13.0, most, f"{name} after step {near}")
            y += height
        return drawing

    def _first(self) -> float:
        return min([points[0][0] for points in self._all().values()], default=0.0)

    def _all(self) -> dict[str, Points]:
        """The logged numbers, and the norms of the gradients."""
        return {**self.numbers, **{f"‖∂{name}‖": points for name, points in self.norms.items()}}


def _number(name: str, value: Any) -> float:
    """A logged value as a number."""
    if isinstance(value, Tensor) and value.size == 1:
        return float(value.item())
    if isinstance(value, (bool, int, float, np.number)):
        return float(value)
    what = f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
    raise ConversionError(f"Dashboard.log: {name} is {what}", expect="a number, or a tensor with one element",
                          hint=f"{name}={name}.mean(), or model= for a model")


def _at(points: Points, step: int) -> float | None:
    """The last value at a step or before it."""
    return next((value for at, value in reversed(points) if at <= step), None)


def _thinned(points: Points) -> Points:
    """At most `POINTS` points of a curve, its last point among them."""
    if len(points) <= POINTS:
        return points
    skip = -(-len(points) // POINTS)
    return points[::skip][:-1] + points[-1:]
