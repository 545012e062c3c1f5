"""What the pictures of several units show: an example, a gradient function, the digits."""

from __future__ import annotations

from collections.abc import Mapping

from lectures.site.drawn import LARGE, LINE, Box, Point, Sketch
from minigrad.data import digits

HIGH = 42.0  # of a value, and of its gradient below
PLACES: dict[str, Point] = {"x": (56, 150), "a": (318, 150), "a · a": (540, 52), "y": (742, 150)}
WIDE = {"x": 104.0, "a": 172.0, "a · a": 132.0, "y": 104.0}
GRADIENT = {"a · a": "∂(a·a)"}  # the others are called by their names: ∂a
# edge -> the value that uses another one, that one, and how far the arrow is bent
EDGES = {"sum": ("y", "a", 42.0), "out": ("y", "a · a", 0.0), "left": ("a · a", "a", 22.0),
         "right": ("a · a", "a", -22.0), "twice": ("a", "x", 0.0)}


class Diamond(Sketch):
    """The example `a = 2 * x; y = a * a + a`, from x on the left to y on the right.

    Below each of the four values is room for its gradient; without `gradients` there are the values alone.

    `looks` says how some of the gradients look, `values` what stands below the names where there are no gradients.
    """

    def __init__(
        self, gradients: Mapping[str, str] | None = None, looks: Mapping[str, str] | None = None,
        values: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(796, 250)
        values = values or {}
        self.cards: dict[str, Box] = {}
        for name, (x, y) in PLACES.items():
            kind, width = "leaf" if name == "x" else "value", WIDE[name]
            if gradients is None:
                high, value = (60.0 if values else 44.0), values.get(name, "")
                self.cards[name] = self.box(x, y, name, kind, width=width, height=high, under=value)
                continue
            given, called = gradients.get(name, ""), GRADIENT.get(name, f"∂{name}")
            look = (looks or {}).get(name, "gradient" if given else "empty")
            self.box(x, y - HIGH / 2 - 2, name, kind, width=width, height=HIGH)
            self.box(x, y + HIGH / 2 + 2, f"{called} = {given}" if given else called, look, width=width, height=HIGH)
            self.cards[name] = Box(x, y, width, 2 * HIGH + 4)
        if gradients is not None:
            for user, source, bend in EDGES.values():
                self.arrow(self.cards[source], self.cards[user], bend=-bend, colour="line", thick=2, tip=False)

    def forward(self) -> None:
        """The arrows of the forward pass."""
        for user, source, bend in EDGES.values():
            self.arrow(self.cards[source], self.cards[user], bend=-bend)

    def send(self, name: str, text: str = "", *, colour: str = "back", dashes: str = "", new: bool = False) -> None:
        """A contribution, on its way back; a `new` one is thick."""
        (user, source, bend), thick = EDGES[name], 5.0 if new else LINE
        start, end = self.cards[user], self.cards[source]
        self.arrow(start, end, text, bend=bend, colour=colour, dashes=dashes, thick=thick, new=new)


def rule() -> Sketch:
    """The gradient function of an operation: what goes in, what comes out."""
    sketch = Sketch(780, 270)
    tall = {"height": 66.0}
    inputs, out = sketch.box(80, 60, "a, b", under="inputs", **tall), sketch.box(690, 60, "out", under="output", **tall)
    operation = sketch.box(380, 60, "operation", "plain", width=220, **tall)
    function = sketch.box(380, 208, "gradient function", "now", width=220, **tall)
    g = sketch.box(690, 208, "g", "gradient", under="gradient of out", **tall)
    result = sketch.box(80, 208, "∂a, ∂b", "gradient", under="one per input", **tall)
    sketch.arrow(inputs, operation)
    sketch.arrow(operation, out)
    sketch.arrow(inputs, function, dashes="6 5")
    sketch.arrow(out, function, dashes="6 5")
    sketch.arrow(g, function, colour="back")
    sketch.arrow(function, result, colour="back")
    return sketch


def _into(text: str, look: str, numbers: tuple[str, ...], x: float = 60.0) -> Sketch:
    """Arrows into a box; one without a number is still missing."""
    sketch = Sketch(220, 200)
    box = sketch.box(x, 100, text, look, width=90, height=64, size=LARGE if look == "gradient" else 22)
    for y, number in zip((20, 100, 180), numbers):
        sketch.arrow((214, y), box, number, colour="back", dashes="" if number else "6 6", at=0.42)
    return sketch


def added() -> Sketch:
    """Three contributions, one sum."""
    return _into("5", "gradient", ("1", "2", "2"))


def wait() -> Sketch:
    """One of three has not come: the box does not send yet."""
    sketch = _into("2 of 3", "empty", ("1", "2", ""), 92.0)
    sketch.cross(22, 100, 13)
    return sketch


def draw_digits(
    sketch: Sketch, x: float, y: float, shape: tuple[int, int], *, side: float, apart: tuple[float, float]
) -> None:
    """The first handwritten digits of the test set, in rows; `side` is that of a pixel."""
    images, _ = digits()[1].arrays
    for i in range(shape[0] * shape[1]):
        row, column = divmod(i, shape[1])
        pixels = images[i].reshape(8, 8) / images[i].max()
        sketch.image(x + column * apart[0], y + row * apart[1], pixels, side)
