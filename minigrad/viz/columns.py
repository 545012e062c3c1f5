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
BETTER = 1.15  # how much larger a picture is in columns, or it is not cut


def in_columns(layout: Layout, sides: int = 1) -> Layout:
    """The layout in one column or in two, as it is larger; `sides` is 2 where its mirror image stands beside it."""

    def scale(each: Layout) -> float:
        return min(WIDE / (sides * each.width + 1.0), HIGH / (each.height + 1.0))

    found = [divided for cut in _cuts(layout) if (divided := _divided(layout, *cut, 2 // sides))]
    scales = [(min(1.0, scale(each)), -lanes, scale(each)) for lanes, each in found]
    best = max(scales, default=(0.0,))
    return found[scales.index(best)][1] if best[0] > BETTER * scale(layout) else layout


def _cuts(layout: Layout) -> Iterator[tuple[float, float]]:
    """The free stripes between layers: where each begins and ends."""
    end, places = 0.0, [frame.place for frame in layout.frames]
    for top, bottom in sorted([(box.y, _end(box)) for box in layout.boxes]):
        if top > end > 0.0:
            over = [_end(r) for r in places if end < _end(r) < top]
            under = [r.y for r in places if end < r.y < top]
            yield max(over, default=end), min(under, default=top)
        end = max(end, bottom)


def _divided(layout: Layout, end: float, begin: float, nested: int) -> tuple[int, Layout] | None:
    """The layout cut in the stripe from `end` to `begin`, and how many ways lead on; None where too much is cut.

    At most so many frames, one in the other, are cut.
    """
    ways = [route.points for route in layout.routes]
    above = [sum(y <= end for _, y in way) for way in ways]  # points of each way
    passing = [i for i, way in enumerate(ways) if 0 < above[i] < len(way)]
    first: dict[int, int] = {}  # the ways that others share, by the boxes that they lead to
    for i in sorted(passing, key=lambda i: -ways[i][above[i] - 1][0]):
        first.setdefault(_at(layout.boxes, ways[i][-1]), i)
    split = [frame for frame in layout.frames if frame.place.y < end and _end(frame.place) > begin]
    turned = any(layout.routes[i].backwards for i in passing)
    if end >= begin or turned or len(first) > PASSING or len(split) > nested:
        return None
    things = layout.boxes + [Rectangle(*point, 0.0, 0.0) for way in ways for point in way]
    frames = [frame for frame in layout.frames if frame not in split]
    for n, frame in enumerate(reversed(split), 1):  # the innermost first
        inside = things + [other.place for other in frames]
        r = frame.place
        for ends in ((r.y, end + MARGIN * n), (begin - HEADER * n, _end(r))):
            frames.insert(0, frame._replace(place=_around(r, inside, *ends)))
    things += [frame.place for frame in frames]
    right = max([r.x + r.width for r in things if _end(r) < begin])
    across = right + APART + LANE * len(first) - min([r.x for r in things if _end(r) >= begin])
    top, bottom = LANE * (len(first) + 1), end + MARGIN * len(split)
    up = begin - HEADER * len(split) - top

    def moved(r: Rectangle) -> Rectangle:
        return r if _end(r) < begin else r._replace(x=r.x + across, y=r.y - up)

    routes = []
    for i, (route, way) in enumerate(zip(layout.routes, ways)):
        target = _at(layout.boxes, way[-1])
        shared = first[target] if i in passing else i
        after = [(x + across, y - up) for x, y in ways[shared] if y >= begin]
        before = [point for point in way if point[1] < begin]
        if i in passing:
            lane = LANE * ([*first].index(target) + 1)
            beside, down, over = right + lane, bottom + lane, top - lane
            before += [(before[-1][0], down), (beside, down), (beside, over), (after[0][0], over)]
        routes.append(route._replace(points=(*after, *before) if route.backwards else (*before, *after)))
    boxes = [moved(box) for box in layout.boxes]
    frames = [frame._replace(place=moved(frame.place)) for frame in frames]
    ends_of = [*boxes, *[frame.place for frame in frames]]
    width = max([*[r.x + r.width for r in ends_of], *[x for route in routes for x, _ in route.points]])
    return len(first), Layout(boxes, frames, routes, width, max([*map(_end, ends_of), bottom + top - LANE]))


def _end(r: Rectangle) -> float:
    return r.y + r.height


def _at(boxes: list[Rectangle], point: tuple[float, float]) -> int:
    """The box where a way ends."""
    x, y = point
    return min(range(len(boxes)), key=lambda i: abs(boxes[i].y - y) + abs(boxes[i].x + boxes[i].width / 2 - x))


def _around(frame: Rectangle, things: list[Rectangle], top: float, bottom: float) -> Rectangle:
    """A frame from `top` to `bottom` around those of some things that lie in it."""
    inside = [r for r in things if frame.x < r.x < frame.x + frame.width and top < r.y < bottom]
    left, right = min([r.x for r in inside]) - MARGIN, max([r.x + r.width for r in inside]) + MARGIN
    return Rectangle(left, top, right - left, bottom - top)
