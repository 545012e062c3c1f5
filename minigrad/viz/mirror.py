"""The backward pass, drawn as a mirror image of the forward pass: the gradient of a box lies across from the box.

Only the forward pass is arranged.  A gradient is at the height of its value, and every arrow of the backward pass is
the reflection of an arrow of the forward pass, pointing the other way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..autodiff.visits import leading_to
from ..core.node import Leaf, Node
from .layout import BETWEEN_LAYERS, Frame, Layout, Rectangle
from .notation import gradient_of
from .numbers import Summary
from .scene import Box, Edge, Scene


def flowing(nodes: Sequence[Node]) -> set[Node]:
    """The nodes that the backward pass reaches: the leaves, and every node computed from one of them."""
    return leading_to({node for node in nodes if isinstance(node, Leaf)}, [*nodes])


def with_gradients(scene: Scene, numbers: Mapping[Node, Summary] | None, wanted: Collection[Node]) -> Scene:
    """The scene with a gradient across from each box that has one, and the arrows between the gradients.

    `numbers` are the gradients of nodes that have come so far; without them, none is awaited.  `wanted` are the nodes
    that have a gradient.
    """
    partner: dict[int, int] = {}
    boxes = list(scene.boxes)
    for i, box in enumerate(scene.boxes):
        if any(node in wanted for node in box.nodes):
            partner[i] = len(boxes)
            boxes.append(_gradient(i, box, numbers))
    back = [
        Edge(partner[edge.target], partner[edge.source], edge.slot)
        for edge in scene.edges
        if edge.source in partner and edge.target in partner and (  # and the operation has a gradient for this input
            (box := scene.boxes[edge.target]).path is not None
            or any(rule.index == edge.slot for rule in box.nodes[0].plan.rules)
        )
    ]
    seeds = [Edge(i, partner[i], 0) for i, box in enumerate(scene.boxes) if box.result and i in partner]
    return Scene(tuple(boxes), (*scene.edges, *back, *seeds))


def _gradient(number: int, box: Box, numbers: Mapping[Node, Summary] | None) -> Box:
    title = gradient_of(box.called)
    results = box.results or [("", node) for node in (box.shown,) if node is not None]
    known = [(f"{gradient_of(name)} " * bool(name), (numbers or {}).get(node)) for name, node in results]
    lines = tuple([(name + (each.line() if each else "")).strip() for name, each in known]) or box.lines[:1]
    if any(isinstance(node.dtype, tuple) for _, node in results):
        lines = box.lines  # of several results, there is no gradient in numbers
    alone = known[0][1] if len(known) == 1 else None  # the map of one of several results is not that of all
    kind = "gradient" if numbers is None or any(each for _, each in known) else "awaited"
    return Box(
        title, kind, lines, box.scope, path=box.path, mirrors=number, shown=box.shown,
        cells=alone.cells if alone else "",
    )


def mirrored(layout: Layout, scene: Scene) -> Layout:
    """The layout of a scene with gradients, from the layout of the boxes that they mirror."""
    axis = layout.width + BETWEEN_LAYERS

    def across(r: Rectangle) -> Rectangle:
        return r._replace(x=2 * axis - r.right)

    forward = {(e.source, e.target, e.slot): route for e, route in zip(scene.edges, layout.routes)}
    boxes = [*layout.boxes, *[across(layout.boxes[box.mirrors]) for box in scene.boxes if box.mirrors is not None]]
    routes = list(layout.routes)
    for edge in scene.edges[len(routes) :]:
        source, target = scene.boxes[edge.source], scene.boxes[edge.target]
        if source.mirrors is None:  # from a result across the line to its gradient
            a, b = boxes[edge.source], boxes[edge.target]
            y = a.y + a.height / 2
            routes.append(((a.right, y), (b.x, y)))
            continue
        way = forward[target.mirrors, source.mirrors, edge.slot]  # type: ignore[index]
        routes.append(tuple([(2 * axis - x, y) for x, y in reversed(way)]))
    frames = [*layout.frames, *[Frame(path, across(place)) for path, place in layout.frames]]
    return Layout(boxes, frames, routes, 2 * axis, layout.height)
