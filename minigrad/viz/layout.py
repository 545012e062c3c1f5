"""Where the boxes of a picture go: layers from the inputs to the results, and a frame around each open scope.

A box lies in the layer after its last input.  An edge that passes a layer has a point in it, which is arranged like a
very thin box: so edges run between boxes and not through them.  The contents of a frame are arranged first, and then
the frame is one wide box among the others: so frames overlap only if one is inside the other.

A frame takes as many layers as its contents need.  A box that comes after any box of a frame comes after the whole
frame.  So parts that depend on each other stand in a column, and independent parts stand side by side.

All arithmetic is done in a fixed order: the same graph gives the same picture, to the last digit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

from .scene import Path, common

SWEEPS = 6  # rounds of moving boxes to where their neighbours are, once down and once up
ORDERING = 4  # rounds in which they may change places
BETWEEN_LAYERS, BETWEEN_BOXES, BETWEEN_EDGES = 34.0, 18.0, 10.0
MARGIN, HEADER = 10.0, 22.0  # inside a frame: around its contents, and for its name
BUNDLE = 3  # edges that pass layers and share an end: from this number on, they are one line with branches
PORT = 14.0  # the largest distance between the ends of edges at a box


Point = tuple[float, float]  # or a size
Route = tuple[Point, ...]  # the way of an edge: points joined by a curve, a straight line, and so on


class Rectangle(NamedTuple):
    """Its corner with the least coordinates, and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its largest x."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its largest y."""
        return self.y + self.height

    def touches(self, other: Rectangle) -> bool:
        """Whether the two overlap."""
        return self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom


class Frame(NamedTuple):
    """The rectangle around everything in one scope."""

    path: Path
    place: Rectangle


@dataclass
class Layout:
    """Places for the boxes, frames and edges of a picture, and its size."""

    boxes: list[Rectangle]
    frames: list[Frame]
    routes: list[Route]
    width: float
    height: float


@dataclass
class Unit:
    """A box, a point of an edge, or a frame with its contents, which moves as a whole.  `where` lists the contents."""

    layers: range  # that it reaches over
    width: float
    gap: float  # to its neighbours
    where: dict[Hashable, float]  # item, or path of a frame -> the distance of its middle from the unit's left
    x: float = 0.0


@dataclass
class Scope:
    """A frame before it has a place, or the whole picture: the items directly in it, and the frames in it."""

    path: Path
    items: list[int] = field(default_factory=list)
    inner: dict[str, Scope] = field(default_factory=dict)
    layers: tuple[int, int] = (0, 0)
    over: float = 0.0  # from its top to its first layer: its name, and those of the frames that begin there too
    under: float = 0.0  # from its last layer to its bottom
    width: float = 0.0

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Scope:
        """The whole picture, with each item in the frame that its path names."""
        whole = cls(())
        for item, path in enumerate(paths):
            whole.at(path).items.append(item)
        return whole

    def at(self, path: Path) -> Scope:
        """The frame with a path."""
        scope = self
        for depth, name in enumerate(path, 1):
            scope = scope.inner.setdefault(name, Scope(path[:depth]))
        return scope

    def all(self) -> Iterator[Scope]:
        """It and the frames in it, each after those that it is in."""
        yield self
        for each in self.inner.values():
            yield from each.all()

    def measure(self, layer: Sequence[int]) -> None:
        """Find where it begins and ends, by the layers of items and of the frames in it, which are known."""
        inner = [*self.inner.values()]
        layers = [layer[item] for item in self.items] + [end for each in inner for end in each.layers]
        first, last = self.layers = (min(layers, default=0), max(layers, default=0))
        self.over = HEADER + max([each.over for each in inner if each.layers[0] == first], default=0.0)
        self.under = MARGIN + max([each.under for each in inner if each.layers[1] == last], default=0.0)


class Arrangement(Layout):
    """The layout of boxes of these sizes, from top to bottom; the path of a box names the frame that it is in.

    The distances are that of layers, and that of arrows where they arrive at a box, at most.  Frames are at least as
    `wide` as is found for their paths.

    Items are the boxes, by number, and after them the points where edges pass layers.

    >>> layout = Arrangement([(40, 20), (60, 20)], [(0, 1)], [(), ()])
    >>> layout.boxes[0].y < layout.boxes[1].y
    True
    """

    def __init__(
        self, sizes: Sequence[Point], edges: Sequence[tuple[int, int]], paths: Sequence[Path],
        distances: Point = (BETWEEN_LAYERS, PORT),
        wide: Callable[[Path], float] = lambda _: 0.0,
    ) -> None:
        self.sizes, self.wide = sizes, wide
        self.between, self.port = distances
        self.count = len(sizes)
        # The edges that close a circle run against the order in which the boxes were made: what folded boxes stand for
        # may have been made before and after others.
        self.turned = [source > target for source, target in edges]
        self.edges = [(b, a) if back else (a, b) for (a, b), back in zip(edges, self.turned)]
        self.layer = layers(self.edges, paths)
        self.paths = list(paths)
        self.root = Scope.of(paths)
        _, *self.scopes = whole = [*self.root.all()]
        for scope in reversed(whole):
            scope.measure(self.layer)
        self.above: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
        self.below: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
        arrows = Counter([target for _, target in self.edges])
        self.arriving = {target: -self.port * (count - 1) / 2 for target, count in arrows.items()}
        # Edges that pass layers on their way to each box, and of its number inverted, from each box.
        self.passing = Counter([end for a, b in edges if self.layer[b] - self.layer[a] > 1 for end in (~a, b)])
        self.shared: dict[tuple[Hashable, ...], int] = {}  # points of bundles
        self.chains = [*map(self._chain, self.edges, self.turned)]
        self._place()

    # what there is ---------------------------------------------------------------------------------------------------

    def _chain(self, edge: tuple[int, int], back: bool) -> list[int]:
        """The items along an edge: its ends, and a point in each layer between them.

        Many edges on their way to one box, or from one box, share their points: they are one line with branches, and no
        edge that leads `back` is among them.  They move no boxes: so a column beside them is straight.
        """
        source, target = edge
        chain, bundle = [source], max(target, ~source, key=self.passing.__getitem__)
        points = self.shared if self.passing[bundle] >= BUNDLE and not back else {}
        for layer in range(self.layer[source] + 1, self.layer[target]):
            scope = self._passing(self.paths[source], self.paths[target], layer)
            point = points.setdefault((bundle, layer, scope.path), len(self.paths))
            if point == len(self.paths):
                self.layer.append(layer)
                self.paths.append(scope.path)
                scope.items.append(point)
            chain.append(point)
        chain.append(target)
        line = chain[1:-1] if points is self.shared and len(chain) > 2 else chain
        for a, b in pairwise(line):
            self.above[b].append((a, 0.0))
            self.below[a].append((b, self.arriving[target] * (b == target)))
        self.arriving[target] += self.port  # inputs stand in their order, from left to right
        return chain

    def _passing(self, source: Path, target: Path, layer: int) -> Scope:
        """The innermost frame at a layer that an edge on its way from one to the other is in."""
        around = self.root.at(common(source, target))
        for path in (target, source):
            scope = around
            for name in path[len(around.path) :]:
                inner = scope.inner[name]
                if not inner.layers[0] <= layer <= inner.layers[1]:
                    break
                scope = inner
            if scope is not around:
                return scope
        return around

    # across ----------------------------------------------------------------------------------------------------------

    def _unit(self, item: int) -> Unit:
        width, gap = (self.sizes[item][0], BETWEEN_BOXES) if item < self.count else (0.0, BETWEEN_EDGES)
        return Unit(range(self.layer[item], self.layer[item] + 1), width, gap, {item: width / 2})

    def _placed(self, scope: Scope) -> Unit:
        """A frame whose contents have places in it."""
        units = [self._unit(item) for item in scope.items] + [self._placed(s) for s in scope.inner.values()]
        home = {item: unit for unit in units for item in unit.where}
        down = _layers_of(units, home, self.above, True)
        up = _layers_of(units, home, self.below, False)
        _start(units)
        for sweep in range(SWEEPS):
            for ways in (down, up):
                _sweep(ways, sweep < ORDERING)
        _separate(_in_order(units))
        self._draw_near(scope.path, home)
        left = min((unit.x for unit in units), default=0.0)
        inside = max((unit.x + unit.width for unit in units), default=0.0) - left
        scope.width = max(inside + 2 * MARGIN, self.wide(scope.path))
        left -= (scope.width - inside) / 2
        where: dict[Hashable, float] = {
            item: unit.x - left + off for unit in units for item, off in unit.where.items()
        }
        where[scope.path] = scope.width / 2
        return Unit(range(scope.layers[0], scope.layers[1] + 1), scope.width, BETWEEN_BOXES, where)

    def _draw_near(self, path: Path, home: Mapping[Hashable, Unit]) -> None:
        """Move lines with branches, which nothing pulls, to what they pass: from the left, and then from the right."""
        lines: dict[Hashable, list[Unit]] = defaultdict(list)
        for (bundle, _, within), point in self.shared.items():
            if within == path:
                lines[bundle].append(home[point])
        for side in (1, -1):
            for line in sorted(lines.values(), key=lambda line: -side * line[0].x):
                room = [
                    side * (unit.x - each.x) - unit.gap - unit.width * (side < 0)
                    for each in line for unit in home.values()
                    if each.layers[0] in unit.layers and side * (unit.x - each.x) > 0
                ]
                for each in line:
                    each.x += side * max(0.0, min(room, default=0.0))

    # along -----------------------------------------------------------------------------------------------------------

    def _bands(self) -> tuple[list[Point], float]:
        """Where each layer begins and ends, and all: frames that begin or end there make room for their edges."""
        count = max(self.layer, default=-1) + 1
        heights, before, after = [0.0] * count, [0.0] * count, [0.0] * count
        for item in range(self.count):
            heights[self.layer[item]] = max(heights[self.layer[item]], self.sizes[item][1])
        for scope in self.scopes:
            first, last = scope.layers
            before[first], after[last] = max(before[first], scope.over), max(after[last], scope.under)
        bands, y = list[Point](), 0.0
        for layer in range(count):
            y += before[layer] + self.between * (layer > 0)
            bands.append((y, y + heights[layer]))
            y += heights[layer] + after[layer]
        return bands, y

    # together --------------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Set the places of everything."""
        whole = self._placed(self.root)
        # Rounded, so that what stands in one column has one x, to the last digit.
        self.middle = {item: round(x - MARGIN, 3) for item, x in whole.where.items()}
        bands, height = self._bands()
        boxes = []
        for item, (width, high) in enumerate(self.sizes):
            top, bottom = bands[self.layer[item]]
            boxes.append(self._around(item, width, (top + bottom - high) / 2, high))
        frames = []
        for scope in self.scopes:
            top, bottom = bands[scope.layers[0]][0] - scope.over, bands[scope.layers[1]][1] + scope.under
            frames.append(Frame(scope.path, self._around(scope.path, scope.width, top, bottom - top)))
        super().__init__(boxes, frames, self._routes(boxes, bands), whole.width - 2 * MARGIN, height)

    def _around(self, item: Hashable, width: float, top: float, height: float) -> Rectangle:
        return Rectangle(self.middle[item] - width / 2, top, width, height)

    def _routes(self, boxes: list[Rectangle], bands: list[Point]) -> list[Route]:
        lines = [(self.middle[chain[-2]], chain[-2] if chain[-2] >= self.count else -edge)
                 for edge, chain in enumerate(self.chains)]  # edges with one last point arrive as one
        arriving: dict[int, set[tuple[float, int]]] = defaultdict(set)
        for line, chain in zip(lines, self.chains):
            arriving[chain[-1]].add(line)
        routes = list[Route]()
        for line, turned, (source, *points, target) in zip(lines, self.turned, self.chains):
            ways = sorted(arriving[target])
            step = min(self.port, boxes[target].width / (len(ways) + 1))
            port = self.middle[target] + step * (ways.index(line) - (len(ways) - 1) / 2)
            through = [(self.middle[point], y) for point in points for y in bands[self.layer[point]]]
            route = (self.middle[source], boxes[source].bottom), *through, (port, boxes[target].y)
            routes.append(route[::-1] if turned else route)
        return routes


# The neighbours on one side, how far right of their left a unit should be, and the distance that decides the order.
Near = list[tuple[Unit, float, float]]
Layer = list[tuple[Unit, Near]]


def _layers_of(
    units: list[Unit], home: dict[Hashable, Unit], neighbours: Mapping[Hashable, list[tuple[int, float]]],
    forwards: bool,
) -> list[Layer]:
    """The units with their neighbours on one side, layer by layer, beginning on that side."""
    layers: dict[int, Layer] = defaultdict(list)
    for unit in units:
        near: Near = []
        for item, off in unit.where.items():
            for other, aside in neighbours.get(item, ()):
                neighbour = home.get(other)
                if neighbour is not None and neighbour is not unit:
                    near.append((neighbour, neighbour.where[other] - off, aside))
        layers[unit.layers[0] if forwards else -unit.layers[-1]].append((unit, near))
    return [layers[layer] for layer in sorted(layers)]


def _start(units: list[Unit]) -> None:
    """Put units side by side, in the order in which they were made."""
    ends: dict[int, float] = defaultdict(float)
    for unit in units:
        unit.x = max(ends[layer] for layer in unit.layers)
        for layer in unit.layers:
            ends[layer] = unit.x + unit.width + unit.gap


def _sweep(layers: list[Layer], may_change_places: bool) -> None:
    """Move each unit towards its neighbours in earlier layers, layer by layer."""
    for layer in layers:
        units = [unit for unit, _ in layer]
        if not may_change_places:
            units.sort(key=lambda unit: unit.x)
        for unit, near in layer:
            if near:
                unit.x = sum([other.x + off + aside * may_change_places for other, off, aside in near]) / len(near)
        if len(layer) > 1:
            _separate(_in_order(units) if may_change_places else units)


def _in_order(units: list[Unit]) -> list[Unit]:
    return sorted(units, key=lambda unit: unit.x + unit.width / 2)


def _separate(order: list[Unit]) -> None:
    """Move units apart, in this order, until nothing overlaps; frames reach over several layers.

    All distances hold if everything that overlaps moves to the right, and also if it moves to the left.  So they hold
    for the mean of both, which prefers no side.
    """
    rights: dict[int, float] = defaultdict(lambda: float("-inf"))
    lefts: dict[int, float] = defaultdict(lambda: float("inf"))
    pushed = []
    for unit in order:
        x = max([unit.x, *[rights[layer] for layer in unit.layers]])
        for layer in unit.layers:
            rights[layer] = x + unit.width + unit.gap
        pushed.append(x)
    for unit, right in zip(reversed(order), reversed(pushed)):
        x = min([unit.x, *[lefts[layer] - unit.width - unit.gap for layer in unit.layers]])
        for layer in unit.layers:
            lefts[layer] = x
        unit.x = (right + x) / 2


# layers of boxes -----------------------------------------------------------------------------------------------------


def layers(edges: Sequence[tuple[int, int]], paths: Sequence[Path]) -> list[int]:
    """The layer of each box, which is in the frame that its path names.

    >>> layers([(0, 1), (1, 2)], [("a",), ("a",), ("b",)])
    [0, 1, 2]
    """
    without: list[Path] = [()] * len(paths)  # for scopes that the computation leaves and enters again
    return _frame_by_frame(edges, paths) or _frame_by_frame(edges, without) or []


def _frame_by_frame(edges: Sequence[tuple[int, int]], paths: Sequence[Path]) -> list[int] | None:
    """Each frame's contents by themselves, the innermost first; then it is one tall box among the others."""
    between: dict[Path, list[Sequence[Hashable]]] = defaultdict(list)
    for ends in edges:
        depth = len(common(*[paths[end] for end in ends]))
        things = [paths[end][: depth + 1] if len(paths[end]) > depth else end for end in ends]
        between[paths[ends[0]][:depth]].append(things)
    heights: dict[Hashable, int] = {}
    starts: dict[Hashable, int] = {}
    for scope in reversed([*Scope.of(paths).all()]):
        inside = [*scope.items, *[each.path for each in scope.inner.values()]]
        found = _stacked(inside, between[scope.path], heights)
        if found is None:
            return None
        starts |= found
        heights[scope.path] = max([start + heights.get(each, 1) for each, start in found.items()], default=0)
    return [starts[box] + sum([starts[path[:depth]] for depth in range(1, len(path) + 1)])
            for box, path in enumerate(paths)]


def _stacked(
    things: Sequence[Hashable], edges: Sequence[Sequence[Hashable]], heights: Mapping[Hashable, int]
) -> dict[Hashable, int] | None:
    """Where each thing begins: first as early as possible, after what it depends on.  Then it moves to as late as
    possible, if at least as many edges become shorter as longer.  So a weight comes right before it is used.

    None if things go round in a circle.
    """
    before: dict[Hashable, list[Hashable]] = {thing: [] for thing in things}
    after: dict[Hashable, list[Hashable]] = {thing: [] for thing in things}
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    try:
        order = [*TopologicalSorter(before).static_order()]
    except CycleError:
        return None
    start = dict[Hashable, int]()
    for thing in order:
        start[thing] = max([start[each] + heights.get(each, 1) for each in before[thing]], default=0)
    for thing in reversed(order):
        if after[thing] and len(before[thing]) <= len(after[thing]):
            start[thing] = min([start[target] for target in after[thing]]) - heights.get(thing, 1)
    return start
