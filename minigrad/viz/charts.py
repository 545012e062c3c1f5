"""Charts: drawings with marks in them, bars and points, that somebody can point at."""

from __future__ import annotations

from ..support.table import escape
from .drawing import Drawing, cleaned
from .svg import LINE, text_width

# what a mark stands for -> the colours of its border and of its fill
KINDS = {
    "kernel": ("there", "there-fill"), "library": ("library", "library-fill"), "result": ("good", "leaf-fill"),
    "input": ("there", "input-fill"), "other": ("back", "back-fill"), "quiet": ("line", "tint"),
}
ROOMY = 22.0  # how wide a bar is that has room for some of its label


class Chart(Drawing):
    """A drawing that grows mark by mark.  A mark's `key` says what it stands for.

    >>> chart = Chart(100, 50)
    >>> chart.bar(0, 0, 40, 10, "kernel", "a", "first")
    >>> chart.to_svg("two bars").count("data-mark")
    1
    """

    def __init__(self, width: float, height: float) -> None:
        super().__init__(width, height)
        self._labels: list[tuple[float, float, float]] = []  # of points: from, to, and at which height

    def bar(
        self, x: float, y: float, width: float, height: float, kind: str, key: str, label: str = "", about: str = ""
    ) -> None:
        """A rectangle, with as much of its label as it has room for."""
        begin, (border, fill) = len(self.pieces), KINDS[kind]
        self.rect(x, y, max(width, 1.0), height, fill, border, round=2.0)
        if label and width > ROOMY:
            self.text(x + width / 2, y + height / 2 + 3.5, label, anchor="middle", room=width - 6.0)
        self._mark(begin, key, about or label)

    def point(self, x: float, y: float, kind: str, key: str, label: str, about: str = "") -> None:
        """A dot with its label beside it, if there is room for that."""
        begin, (border, fill) = len(self.pieces), KINDS[kind]
        self.dot(x, y, fill, radius=5.5, stroke=border)
        place = self._beside(x, y, text_width(label, LINE))
        if place is not None:
            self.text(*place, label)
        self._mark(begin, key, about or label)

    def _beside(self, x: float, y: float, wide: float) -> tuple[float, float] | None:
        """Where a label has room beside a point: where it begins, and the line it stands on."""
        for left, middle in ((x + 8, y), (x - 8 - wide, y), (x - wide / 2, y - 13), (x - wide / 2, y + 13)):
            inside = left > 0 and left + wide < self.width
            taken = any(abs(middle - m) < LINE and left < b and a < left + wide for a, b, m in self._labels)
            if inside and not taken:
                self._labels.append((left, left + wide, middle))
                return left, middle + 3.5
        return None

    def _mark(self, begin: int, key: str, about: str) -> None:
        """Make a mark of all pieces since number `begin`."""
        self.merge(begin)
        told = f"<title>{escape(cleaned(about))}</title>"
        self.pieces[begin] = f'<g class="mg-mark" data-mark="{escape(key)}">{told}{self.pieces[begin]}</g>'
