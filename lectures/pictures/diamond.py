"""The example that comes back in several units, `a = 2 * x; y = a * a + a`, drawn from x on the left to y on the right."""

from __future__ import annotations

from collections.abc import Mapping

from lectures.drawn import Box, Point, Sketch

HIGH = 42.0  # of a value, and of its gradient below
PLACES: dict[str, Point] = {"x": (56, 150), "a": (318, 150), "a · a": (540, 52), "y": (742, 150)}
WIDE = {"x": 104.0, "a": 172.0, "a · a": 132.0, "y": 104.0}
GRADIENT = {"a · a": "∂(a·a)"}  # the others are called by their names: ∂a
# edge -> the value that uses another one, that one, and how far the arrow is bent
EDGES = {"sum": ("y", "a", 42.0), "out": ("y", "a · a", 0.0), "left": ("a · a", "a", 22.0),
         "right": ("a · a", "a", -22.0), "twice": ("a", "x", 0.0)}


class Diamond(Sketch):
    """The four values, each with room for its gradient below; without `gradients` the values alone.

    `looks` says how some of the gradients look, `values` what stands below the names where there are no gradients.
    """

    def __init__(
        self, gradients: Mapping[str, str] | None = None, looks: Mapping[str, str] | None = None,
        values: Mapping[str, str] = {},  # noqa: B006 - read only
    ) -> None:
        super().__init__(796, 250)
        self.cards: dict[str, Box] = {}
        for name, (x, y) in PLACES.items():
            kind, width = "leaf" if name == "x" else "value", WIDE[name]
            if gradients is None:
                self.cards[name] = self.box(x, y, name, kind, width=width, height=60 if values else 44, under=values.get(name, ""))
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

    def send(self, name: str, text: str = "", *, colour: str = "back", dashes: str = "", at: float = 0.5) -> None:
        """A contribution, on its way back."""
        user, source, bend = EDGES[name]
        self.arrow(self.cards[user], self.cards[source], text, bend=bend, colour=colour, dashes=dashes, at=at)
