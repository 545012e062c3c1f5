"""`mg.viz.expand`: a composed operation down to its primitives, with a box to open for each composed function."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...core.emit import Eager
from ...core.mode import current_mode, switch
from ...core.node import Node
from ...core.primitive import Primitive
from ...core.programs import opened_order
from ...core.tensor import Tensor
from ...core.tree import leaves
from ...ops.composite import Composite
from ...support.errors import MinigradError
from ..exhibit import check_function
from ..graphs import MOST
from ..naming import names_in_code
from ..opening import views_of
from ..picture import Picture
from ..scene import Scene, scene_of


def expand(function: Callable[..., Any], *args: Any, direction: str = "auto", **kwargs: Any) -> Picture:
    """Open an operation: the composed functions that it calls as boxes in boxes, and the primitives in them.

    >>> mg.viz.expand(mg.softmax, mg.ones((2, 3)), axis=-1)
    <picture of a graph of 1 input, 1 group>
    >>> mg.viz.expand(mg.tanh, mg.ones(3))
    <picture of a graph of 1 input, 1 operation>
    """
    check_function("expand", function, "mg.viz.expand(mg.softmax, x)")
    own = getattr(function, "__name__", type(function).__name__)
    with switch(interpreter=_Calls(), record_all=True):
        result = function(*args, **kwargs)
    roots = [t.node for t in leaves(result) if isinstance(t, Tensor) and t.node is not None]
    nodes = opened_order(roots)
    if not any(node.op is not None for node in nodes):
        raise MinigradError(
            f"{own} computed nothing, so there is nothing to open",
            expect="a function that computes its result from its inputs",
            hint="mg.viz.graph(f, *arguments) shows the program of mg.jit",
        )
    given = _arguments(function, args, kwargs, nodes)
    scene = scene_of(nodes, roots, names_in_code(nodes) | given)
    boxes = [
        replace(box, kind="input") if box.kind == "constant" and box.nodes[0] in given else box for box in scene.boxes
    ]
    views = views_of(Scene(tuple(boxes), scene.edges), 1, MOST)
    return Picture(views[0].scene, direction, views=views)


class _Calls(Eager):
    """Eager mode in which the calls of composed functions are marked, and are part of the scope of each node."""

    def __init__(self) -> None:
        self.labels: dict[Composite, tuple[str, ...]] = {}
        self.taken: Counter[tuple[str, ...]] = Counter()

    def node_of(self, tensor: Tensor) -> Node | None:
        """The node of a tensor, for the marks."""
        return tensor.node

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        mode = current_mode()
        path = self._path(mode.composite)
        if mode.scope[-len(path) :] == path:  # a cast inside of an operation, which has the scope already
            return super().manifest(op, inputs, attrs)
        with switch(scope=(*mode.scope, *path)):
            return super().manifest(op, inputs, attrs)

    def _path(self, call: Composite | None) -> tuple[str, ...]:
        """The names of the calls that are open, outermost first: the second call of `mean` is `mean (2)`."""
        if call is None:
            return ()
        if call not in self.labels:
            outer = self._path(call.outer)
            self.taken[*outer, call.name] += 1
            count = self.taken[*outer, call.name]
            self.labels[call] = (*outer, call.name if count == 1 else f"{call.name} ({count})")
        return self.labels[call]


def _arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: list[Node]) -> dict[Node, str]:
    """The names of the function's parameters, for the tensors that were given."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}
    there = set(nodes)
    return {value.node: name for name, value in given.items() if isinstance(value, Tensor) and value.node in there}
