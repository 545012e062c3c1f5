"""`mg.viz.expand`: a composed operation as boxes to open, one for each function, down to the primitives."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from types import CodeType, FrameType
from typing import Any

import minigrad

from ...core.emit import Eager
from ...core.errors import MinigradError
from ...core.mode import current_mode, switch
from ...core.node import Node, topological_order
from ...core.primitive import P, Primitive
from ...core.source import in_library
from ...core.tensor import Tensor
from ...core.tree import leaves
from ..exhibit import check_function
from ..graphs import MOST
from ..opening import views_of
from ..picture import Picture
from ..scene import Scene, names_in_code, scene_of


def expand(function: Callable[..., Any], *args: Any, direction: str = "auto", **kwargs: Any) -> Picture:
    """Show an operation as the functions that it calls, as boxes in boxes, down to the primitives.

    >>> mg.viz.expand(mg.softmax, mg.ones((2, 3)), axis=-1)
    <picture of a graph of 1 input, 1 group>
    >>> mg.viz.expand(mg.tanh, mg.ones(3))
    <picture of a graph of 1 input, 1 operation>
    """
    check_function("expand", function, "mg.viz.expand(mg.softmax, x)")
    own = getattr(function, "__name__", type(function).__name__)
    with switch(interpreter=_Callers(), keep=True):
        result = function(*args, **kwargs)
    roots = [t.node for t in leaves(result) if isinstance(t, Tensor) and t.node is not None]
    nodes = topological_order(roots)
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


class _Callers(Eager):
    """Eager mode that records, as the scope of each node, which functions of minigrad are running."""

    def __init__(self) -> None:
        self.labels: dict[FrameType, str] = {}  # the frames are kept alive, so that each has its own identity
        self.taken: Counter[tuple[str, ...]] = Counter()

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        path = self._running()
        scope = current_mode().scope
        if scope[-len(path) :] == path:  # a cast, which is a part of the operation that needs it
            return super().manifest(op, inputs, attrs)
        with switch(scope=(*scope, *path)):
            return super().manifest(op, inputs, attrs)

    def _running(self) -> tuple[str, ...]:
        """The composed functions that are running, outermost first."""
        frames, top = [], inspect.unwrap(expand).__code__
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and in_library(frame.f_code.co_filename) and frame.f_code is not top:
            name = composed().get(frame.f_code)
            if name is not None:
                frames.append((frame, name))
            frame = frame.f_back
        path: tuple[str, ...] = ()
        for running, name in reversed(frames):
            if running not in self.labels:
                self.taken[*path, name] += 1
                count = self.taken[*path, name]
                self.labels[running] = name if count == 1 else f"{name} ({count})"
            path = (*path, self.labels[running])
        return path


@cache
def composed() -> dict[CodeType, str]:
    """The functions that call other operations, such as `softmax` and `mean`, by their code; not the primitives."""
    found: dict[CodeType, str] = {}
    primitive = {op.name for op in P}
    for source in (minigrad, minigrad.linalg, minigrad.random, Tensor):
        for name, value in list(vars(source).items()):
            function = inspect.unwrap(value) if callable(value) else None
            code = getattr(function, "__code__", None)
            if code is not None and in_library(code.co_filename) and name not in primitive and not name.startswith("_"):
                found.setdefault(code, name)
    return found


def _arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: list[Node]) -> dict[Node, str]:
    """The names of the function's parameters, for the tensors that were given."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}
    there = set(nodes)
    return {value.node: name for name, value in given.items() if isinstance(value, Tensor) and value.node in there}
