"""What the layers of the engine do for each line of a program, counted while the lines run, as a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import unwrap
from typing import Any, NamedTuple

from minigrad.autodiff import reverse
from minigrad.compile.look.watching import watching
from minigrad.core.emit import Eager
from minigrad.core.mode import switch
from minigrad.core.override import overriding
from minigrad.core.primitive import Attrs, Primitive
from minigrad.core.tensor import Tensor
from minigrad.support.source import HOME
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

WIDTH, HEIGHT, LEFT = 146.0, 58.0, 190.0
# What is counted for a line: the layer that does it, its colour, and what the numbers count.
LAYERS = {
    "calls": ("front end", "back", "Python functions called"),
    "recorded": ("execution engine", "there", "operations recorded"),
    "rules": ("execution engine", "there", "gradient rules called"),
    "kernels": ("hardware runtime", "good", "kernels launched"),
}


class Counts(NamedTuple):
    """What one line of code makes the layers do."""

    recorded: int
    rules: int
    kernels: int
    calls: int


class _Recorder(Eager):
    """Eager mode that notes the operations whose results are recorded."""

    def __init__(self, noted: list[Any]) -> None:
        self.noted = noted

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Attrs) -> Any:
        out = super().manifest(op, inputs, attrs)
        if isinstance(out, Tensor) and out.tracked:
            self.noted.append(op)
        return out


@contextmanager
def _recorded() -> Iterator[list[Any]]:
    """The operations that are recorded in the block."""
    noted: list[Any] = []
    with switch(interpreter=_Recorder(noted)):
        yield noted


@contextmanager
def _rules() -> Iterator[list[Any]]:
    """The gradient rules that backward passes call in the block."""
    called: list[Any] = []

    def walk(*args: Any, **options: Any) -> Iterator[Any]:
        steps = unwrap(reverse.walk)(*args, **{**options, "yields": True})
        while True:
            try:
                called.append(next(steps))
            except StopIteration as end:
                return end.value
        yield

    with overriding(reverse.walk, walk):
        yield called


@contextmanager
def _calls() -> Iterator[list[Any]]:
    """The Python functions of minigrad that are called in the block."""
    called: list[Any] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            called.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


def counted_lines(lines: Sequence[str], names: Callable[[], dict[str, Any]]) -> list[Counts]:
    """What each line of a program does.  The program runs once for each count, because counting changes other counts.

    `names()` makes the names that the lines read.

    >>> first, second = counted_lines(["y = a * a", "y.backward()"], lambda: {"a": mg.ones((), requires_grad=True)})
    >>> first.recorded, first.kernels, second.recorded, second.rules
    (1, 1, 0, 2)
    """
    found: list[list[int]] = [[] for _ in lines]
    for counter in (_recorded, _rules, partial(watching, frames=False, keep=False), _calls):
        here = names()
        for line, counts in zip(lines, found):
            with counter() as noted:
                exec(line, here)
            counts.append(len(noted))
    return [Counts(*counts) for counts in found]


def layers(
    lines: Sequence[str], counts: Sequence[Counts], predicted: Mapping[tuple[int, str], Any], calls: bool = True,
    hidden: bool = False,
) -> Flipbook:
    """The layers as a table: a row for each layer, a column for each line.  A right prediction lights its place.

    `predicted` has numbers for pairs of a line and what is counted; dots stand for a missing one.  With `hidden`, a
    number that was asked for is shown only where the prediction is right.  `calls` shows the calls of Python functions,
    whose number depends on the version of Python.

    >>> book = layers(["y = a * a"], [Counts(1, 0, 1, 9)], {(0, "recorded"): 1, (0, "rules"): 2}, hidden=True)
    >>> print(book.text())
    Python functions called: 9
    operations recorded: 1
    gradient rules called: ?
    kernels launched: 1
    """
    rows = [name for name in LAYERS if calls or name != "calls"]
    drawing = Drawing(LEFT + len(lines) * WIDTH - 10, 40 + len(rows) * (HEIGHT + 8) - 8)
    for j, line in enumerate(lines):
        drawing.text(LEFT + j * WIDTH, 14, f"line {j + 1}", bold=True)
        drawing.text(LEFT + j * WIDTH, 31, line, code=True, fill="quiet", room=WIDTH - 12)
    words = []
    for i, name in enumerate(rows):
        layer, colour, what = LAYERS[name]
        y, shown = 40 + i * (HEIGHT + 8), []
        drawing.rect(0, y, LEFT - 12, HEIGHT, "tint", "line", round=4)
        drawing.rect(0, y, 6, HEIGHT, colour, colour, round=2)
        drawing.text(18, y + 25, layer, size=14.0, bold=True)
        drawing.text(18, y + 46, what, fill="quiet")
        for j, each in enumerate(counts):
            right, guess = getattr(each, name), predicted.get((j, name), ...)
            secret = hidden and (j, name) in predicted and guess != right
            shown.append("?" if secret else f"{right:,}")
            _place(drawing, LEFT + j * WIDTH, y, shown[-1], guess, guess == right)
        words.append(f"{what}: {', '.join(shown)}")
    given = {place: guess for place, guess in predicted.items() if guess is not ...}
    lit = sum(getattr(counts[line], name) == guess for (line, name), guess in given.items())
    said = f"{lit} of {len(given)} predictions light their layer." if given else "Predict a number to light its layer."
    return Flipbook("the layers of each line", [[Page(drawing, said)]], words="\n".join(words))


def _place(drawing: Drawing, x: float, y: float, shown: str, guess: Any, good: bool) -> None:
    """One place of the table: the number, and what was predicted."""
    open_ = guess is ...
    stroke = "line" if open_ else "good" if good else "bad"
    drawing.rect(x, y, WIDTH - 10, HEIGHT, "leaf-fill" if good else "paper", stroke, thick=1.0 if open_ else 3.0,
                 round=4, dashes="" if open_ or good else "5 4")
    middle = x + (WIDTH - 10) / 2
    drawing.text(middle, y + 30, shown, size=20.0, bold=True, anchor="middle", fill="quiet" if shown == "?" else "ink")
    if not open_:
        word = "predicted, right" if good else f"predicted {guess}"
        drawing.text(middle, y + 51, word, anchor="middle", fill=stroke, room=WIDTH - 20)
