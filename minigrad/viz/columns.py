"""A picture that is much taller than wide, in two columns: its lower part goes to the right of the upper one.

It is cut between two layers, where few arrows pass.  These lead below the first column, between the two, and into the
second one from above; those to one box share this way.  A frame that is cut is drawn twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from .layout import HEADER, MARGIN, Layout, Rectangle

WIDE, HIGH = 1250.0, 620.0  # the room of a picture in a window
PASSING = 3  # boxes of the second column to which arrows lead from the first one, at most
LANE, APART = 12.0, 24.0  # between the ways of these arrows, and between the columns
MOST = 1.5  # a larger scale makes nothing easier to read
BETTER = 0.25  # how much larger a picture is in columns, for each box to which arrows lead from one to the other


def in_columns(layout: Layout, sides: int = 1) -> Layout:
    """The layout in one column or in two, as it is larger; `sides` is 2 where its mirror image stands beside it."""

    def scale(each: Layout) -> float:
        return min(WIDE / (sides * each.width + 1.0), HIGH / (each.height + 1.0))

    found = [divided for cut in _cuts(layout) if (divided := _divided(layout, *cut, 2 // sides))]
    scales = [(min(MOST, scale(each)), -cut, scale(each)) for cut, each in found]
    best = max(scales, default=(0.0, 0, 0.0))
    return found[scales.index(best)][1] if best[0] > (1.0 - BETTER * best[1]) * scale(layout) else layout


def _cuts(layout: Layout) -> Iterator[tuple[float, float]]:
    """The stripes without boxes: where each begins and ends."""
    end = 0.0
    for top, bottom in sorted([(box.y, box.bottom) for box in layout.boxes]):
        if top > end > 0.0:
            yield end, top
        end = max(end, bottom)


def _divided(layout: Layout, end: float, begin: float, nested: int) -> tuple[int, Layout] | None:
    """The layout cut in the stripe from `end` to `begin`, and to how many boxes arrows lead across.

    None where too much is cut: at most so many frames, one in the other, are cut.
    """
    ways = [route.points for route in layout.routes]
    passing = {i: sum(y <= end for _, y in way) for i, way in enumerate(ways)}  # points above
    passing = {i: above for i, above in passing.items() if 0 < above < len(ways[i])}
    first: dict[int, int] = {}  # the ways that others share, by the boxes that they lead to
    for i in sorted(passing, key=lambda i: -ways[i][passing[i] - 1][0]):
        first.setdefault(_at(layout.boxes, ways[i][-1]), i)
    frames = [frame for frame in layout.frames if frame.place.y > end or frame.place.bottom < begin]
    split = [frame for frame in layout.frames if frame not in frames]
    if len(first) > PASSING or len(split) > nested or any(layout.routes[i].backwards for i in passing):
        return None
    things = layout.boxes + [Rectangle(*point, 0.0, 0.0) for way in ways for point in way]
    things += [frame.place for frame in frames]
    bottom, top = max([r.bottom for r in things if r.bottom < begin]), min([r.y for r in things if r.bottom >= begin])
    for frame in reversed(split):  # the innermost first
        bottom, top, r = bottom + MARGIN, top - HEADER, frame.place
        halves = [_around(r, things, *ends) for ends in ((r.y, bottom), (top, r.bottom))]
        frames = [*[frame._replace(place=half) for half in halves], *frames]
        things += halves
    right = max([r.right for r in things if r.bottom < begin])
    across = right + APART + LANE * len(first) - min([r.x for r in things if r.bottom >= begin])
    up = top - LANE * (len(first) + 1)

    def moved(r: Rectangle) -> Rectangle:
        return r if r.bottom < begin else r._replace(x=r.x + across, y=r.y - up)

    routes = []
    for i, (route, way) in enumerate(zip(layout.routes, ways)):
        target = _at(layout.boxes, way[-1])
        before = [point for point in way if point[1] < begin]
        after = [(x + across, y - up) for x, y in ways[first[target] if i in passing else i] if y >= begin]
        if i in passing:
            lane = LANE * ([*first].index(target) + 1)
            ends = before[-1][0], after[0][0]
            beside, down, over = right + lane, bottom + lane, top - up - lane
            before += [(ends[0], down), (beside, down), (beside, over), (ends[1], over)]
        routes.append(route._replace(points=(*before, *after)))
    boxes, frames = [*map(moved, layout.boxes)], [frame._replace(place=moved(frame.place)) for frame in frames]
    things = [moved(r) for r in things]
    height = max([*[r.bottom for r in things], bottom + top - up - LANE])
    return len(first), Layout(boxes, frames, routes, max([r.right for r in things]), height)


def _at(boxes: list[Rectangle], point: tuple[float, float]) -> int:
    """The box where a way ends."""
    x, y = point
    return min(range(len(boxes)), key=lambda i: abs(boxes[i].y - y) + abs(boxes[i].x + boxes[i].width / 2 - x))


def _around(frame: Rectangle, things: list[Rectangle], top: float, bottom: float) -> Rectangle:
    """A frame from `top` to `bottom` around those of some things that lie in it."""
    inside = [r for r in things if frame.x < r.x < frame.right and top < r.y < bottom]
    left, right = min([r.x for r in inside]) - MARGIN, max([r.right for r in inside]) + MARGIN
    return Rectangle(left, top, right - left, bottom - top)
