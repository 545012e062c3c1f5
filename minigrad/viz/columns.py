"""A picture that is much taller than wide, in two columns: its lower part goes to the right of the upper one.

It is cut between two layers, where few arrows pass.  These lead below the first column, between the two, and into the
second one from above; those to one box share this way.  A frame that is cut is drawn twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from .layout import HEADER, MARGIN, Frame, Layout, Rectangle

WIDE, HIGH = 1250.0, 620.0  # the room of a picture in a window
PASSING = 3  # boxes of the second column to which arrows lead from the first one, at most
NESTED = 2  # frames that are cut, at most
LANE, APART = 12.0, 24.0  # between the ways of these arrows, and between the columns
BETTER = 1.1  # how much larger a picture is in columns, or it is not cut


def in_columns(layout: Layout, sides: int = 1) -> Layout:
    """The layout in one column or in two, as it is larger; `sides` is 2 where its mirror image stands beside it."""

    def scale(each: Layout) -> float:
        return min(WIDE / (sides * each.width + 1.0), HIGH / (each.height + 1.0))

    found = [divided for cut in _cuts(layout) if (divided := _divided(layout, *cut))]
    scales = [(min(1.0, scale(each)), -lanes, scale(each)) for lanes, each in found]
    best = max(scales, default=(0.0,))
    return found[scales.index(best)][1] if best[0] > BETTER * scale(layout) else layout


def _cuts(layout: Layout) -> Iterator[tuple[float, float]]:
    """The free stripes between layers: where each begins and ends."""
    end, places = 0.0, [frame.place for frame in layout.frames]
    for top, bottom in sorted([(box.y, box.y + box.height) for box in layout.boxes]):
        if top > end > 0.0:
            over = [r.y + r.height for r in places if end < r.y + r.height < top]
            under = [r.y for r in places if end < r.y < top]
            yield max(over, default=end), min(under, default=top)
        end = max(end, bottom)


def _divided(layout: Layout, end: float, begin: float) -> tuple[int, Layout] | None:
    """The layout cut in the stripe from `end` to `begin`, and how many ways lead on; None where too much is cut."""
    ways = [route.points[::-1] if route.backwards else route.points for route in layout.routes]
    above = [sum(y <= end for _, y in way) for way in ways]  # points of each way
    targets = {i: _at(layout.boxes, way[-1]) for i, way in enumerate(ways) if 0 < above[i] < len(way)}
    order = sorted(targets, key=lambda i: -ways[i][above[i] - 1][0])
    passing = {target: LANE * n for n, target in enumerate(dict.fromkeys([targets[i] for i in order]), 1)}
    split = [frame for frame in layout.frames if frame.place.y < end and frame.place.y + frame.place.height > begin]
    if end >= begin or len(passing) > PASSING or len(split) > NESTED:
        return None
    points = [Rectangle(*point, 0.0, 0.0) for way in ways for point in way]
    whole = [frame for frame in layout.frames if frame not in split]
    top, bottom = LANE * (len(passing) + 1), end + MARGIN * len(split)
    parts = []  # of each column: the frame that is cut, and what is outside of it
    for lower in (False, True):
        own = [r for r in [*layout.boxes, *[f.place for f in whole], *points] if (r.y > end) == lower]
        cut: list[Frame] = []
        for n, frame in enumerate(reversed(split), 1):  # the innermost first
            r = frame.place
            ends = (begin - HEADER * n, r.y + r.height) if lower else (r.y, end + MARGIN * n)
            cut.insert(0, frame._replace(place=_around(r, own, *ends)))
            own.append(cut[0].place)
        parts.append((cut, own))
    (upper, left), (under, rest) = parts
    right = max([r.x + r.width for r in left])
    across = right + APART + LANE * len(passing) - min([r.x for r in rest])
    up = begin - HEADER * len(split) - top

    def moved(r: Rectangle) -> Rectangle:
        return r._replace(x=r.x + across, y=r.y - up) if r in rest else r

    routes = list(layout.routes)
    for i, way in enumerate(ways):
        before, first = [*way[: above[i]]], i
        if i in targets:
            first = next(other for other in order if targets[other] == targets[i])
        after = [(x + across, y - up) for x, y in ways[first][above[first] :]]
        if i in targets:
            lane = passing[targets[i]]
            beside, down, over = right + lane, bottom + lane, top - lane
            before += [(before[-1][0], down), (beside, down), (beside, over), (after[0][0], over)]
        points_now = tuple(before + after)
        routes[i] = routes[i]._replace(points=points_now[::-1] if routes[i].backwards else points_now)
    boxes = [moved(box) for box in layout.boxes]
    frames = [f._replace(place=moved(f.place)) for f in [*upper, *under, *whole]]
    ends = [*boxes, *[frame.place for frame in frames]]
    width = max([*[r.x + r.width for r in ends], *[x for route in routes for x, _ in route.points]])
    height = max([*[r.y + r.height for r in ends], bottom + top - LANE])
    return len(passing), Layout(boxes, frames, routes, width, height)


def _at(boxes: list[Rectangle], point: tuple[float, float]) -> int:
    """The box where a way ends."""
    return min(range(len(boxes)), key=lambda i: abs(boxes[i].y - point[1]) + abs(boxes[i].x + boxes[i].width / 2 - point[0]))


def _around(frame: Rectangle, things: list[Rectangle], top: float, bottom: float) -> Rectangle:
    """A frame from `top` to `bottom` around those of some things that lie in it."""
    inside = [r for r in things if frame.x < r.x < frame.x + frame.width and top < r.y < bottom]
    left, right = min([r.x for r in inside]) - MARGIN, max([r.x + r.width for r in inside]) + MARGIN
    return Rectangle(left, top, right - left, bottom - top)
