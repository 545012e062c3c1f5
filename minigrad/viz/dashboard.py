"""`mg.viz.Dashboard`: a training run: curves with every step, norms of gradients, weights, and pictures of the data.

Any loop can log to it: `board.log(step, loss=loss, model=model, misread=images)`.  In a notebook the dashboard updates
itself; elsewhere it prints a line from time to time.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import ConversionError
from ..support.table import as_table
from .cells import largest, matrix_of
from .curves import LEGEND, curves, dots
from .drawing import Drawing
from .exhibit import Exhibit
from .flipbook import Block, Flipbook, Page
from .heat import heat_map, norm_of, size_text, spark
from .images import gallery, pictures_of
from .numbers import short
from .page import in_theme
from .svg import LINE, text_width

PICTURES, PARAMETERS, LAYERS, NUMBERS = 24, 6, 5, 5  # the most moments, weights, norms and other numbers
IMAGES, ROW, SIDE = 12, 4, 62.0  # the most images of a name, images in a row, and the side of one
WIDE, TALL, LOW = 620.0, 250.0, 170.0  # the width of the curves; the height of the first one, and of the others
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
        self.images: dict[int, dict[str, Any]] = {}  # by step: pictures of the data
        self.last = 0
        self._gap = 1  # steps between two pictures
        self._begun = time.monotonic()
        self._screen: Any = None
        self._printed, self._drawn = 0, 0.0

    # logging --------------------------------------------------------------------------------------------------------

    def log(self, step: int, *, model: Module | None = None, **numbers: Any) -> None:
        """Log a step: numbers and images by name, and the weights and gradients of the model.

        A tensor of shape (count, height, width) is a batch of grey images, and so are rows of 64 or 784 numbers.  Call
        this after `backward()` and before the gradients are cleared.
        """
        if model is not None and not isinstance(model, Module):
            raise ConversionError(
                f"Dashboard.log: a {type(model).__name__} is not a model", expect="model=an nn.Module"
            )
        if step % self.every and step != self.total:
            return
        images = {name: _images(value) for name, value in numbers.items()}
        images = {name: found for name, found in images.items() if found is not None}
        read = {name: _number(name, value) for name, value in numbers.items() if name not in images}
        if images:
            self.images = _kept({**self.images, step: images})
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
            found = {name: Weights(matrix_of(a, 12, 16), size_text(a)) for name, a in arrays}
            self.weights = _kept({**self.weights, step: found})
            steps = list(self.weights)
            self._gap = steps[1] - steps[0] if len(steps) > 1 else self._gap

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
        picture = HTML(in_theme(self._static()))
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
        return next(self._drawings(self._moments()[-1:])).to_svg(repr(self))

    def book(self) -> Flipbook:
        """A page for each moment that has a picture; the last moment is shown first."""
        moments = self._moments()
        drawn = zip(self._drawings(moments), moments)
        pages = [Page(drawing, self._said(moment), self._blocks(moment)) for drawing, moment in drawn]
        return Flipbook(repr(self)[1:-1], [pages], unit="moment", start=len(pages) - 1)

    def _moments(self) -> list[int]:
        """The steps that have a page: those with pictures, and the last one."""
        steps = sorted({int(step) for points in self.numbers.values() for step, _ in points})
        few = [steps[int(i * (len(steps) - 1) / (PICTURES - 1))] for i in range(PICTURES)] if steps else []
        return sorted({*(self.weights or self.images or few), self.last})

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

    def _charts(self) -> list[tuple[str, dict[str, Points]]]:
        """The titles and the curves of the charts."""
        charts: list[tuple[str, dict[str, Points]]] = [(n, {n: v}) for n, v in list(self.numbers.items())[:NUMBERS]]
        if self.norms:
            largest_first = sorted(self.norms.items(), key=lambda item: -max(v for _, v in item[1] if v == v))[:LAYERS]
            charts.append(("norms of gradients", dict(largest_first)))
        return charts

    def _drawings(self, moments: list[int]) -> Iterator[Drawing]:
        """For each moment: the curves of all steps on the left; the images and the weights of the moment on the right.

        The curves are the same for all moments, and are drawn once.
        """
        charts, all_curves = self._charts(), Drawing(WIDE, 60)
        ends, y, axes = (self._first(), float(self.last)), 0.0, []
        for i, (title, series) in enumerate(charts):
            height, names = TALL if i == 0 else LOW, list(series) if len(series) > 1 else []
            legend = max([40.0 + min(LEGEND, text_width(name, LINE)) for name in names], default=0.0)
            axes.append(curves(all_curves, (0, y, WIDE - legend, height), series, title, ends))
            y += height + 14
        for moment in moments:
            drawing = Drawing(WIDE, max(y, 60))
            drawing.pieces = list(all_curves.pieces)
            for chart, (_, series) in zip(axes, charts):
                dots(drawing, chart, series, float(moment))
            self._pictures(drawing, moment, WIDE + 40)
            yield drawing

    def _pictures(self, drawing: Drawing, step: int, x: float) -> None:
        """The images and the weights of the last moment until a step, from the top down."""
        begin, y = len(drawing.pieces), 0.0
        near = max([s for s in self.images if s <= step], default=None)
        for name, pictures in self.images[near].items() if near is not None else ():
            drawing.heading(x, y + 12, f"{name} after step {near:,}")
            y += 22 + gallery(drawing, x, y + 22, pictures, (), ROW, SIDE) + 10
        near = max([s for s in self.weights if s <= step], default=None)
        for name, (matrix, about) in self.weights[near].items() if near is not None else ():
            drawing.text(x, y + 12, name, room=270, bold=True)
            most = largest([moment[name].matrix for moment in self.weights.values() if name in moment])
            drawing.text(x, y + 26, about, fill="quiet")
            heat_map(drawing, x, y + 32, matrix, 13.0, most, f"{name} after step {near}")
            y += 48 + 13 * matrix.shape[0]
        if y:
            drawing.merge(begin, "mg-beside")
            drawing.width, drawing.height = x + 272, max(drawing.height, y)

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
                          hint=f"{name}={name}.mean(), or images of shape (count, height, width), or model=")


def _at(points: Points, step: int) -> float | None:
    """The last value at a step or before it."""
    return next((value for at, value in reversed(points) if at <= step), None)


def _images(value: Any) -> Any:
    """The first images of a batch; None for a value that is not a batch of images."""
    array = value.detach().numpy() if isinstance(value, Tensor) else value
    return pictures_of(array, IMAGES) if getattr(array, "ndim", 0) > 1 else None


def _kept(moments: dict[int, Any]) -> dict[int, Any]:
    """At most `PICTURES` moments: of more, every second one."""
    if len(moments) <= PICTURES:
        return moments
    return {step: each for i, (step, each) in enumerate(moments.items()) if i % 2 == 0}
