"""`mg.viz.graph`: a picture of anything that has a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..compile.jitted import Jitted, JittedMethod, jit
from ..compile.look.ran import Ran
from ..core.errors import MinigradError
from ..core.node import Leaf, Node, topological_order
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..nn.module import Module
from .folding import BUDGET
from .mirror import with_gradients
from .numbers import Summary
from .opening import views_of
from .picture import Picture
from .scene import Scene, names_in_code, scene_of
from .steps import record_steps, values_of

MOST = 500  # boxes; past that, a picture says nothing


def graph(
    what: Any, *args: Any, backward: bool = False, names: Mapping[str, Tensor] | Module | None = None,
    values: bool = False, direction: str = "auto", budget: int = BUDGET, engine: str = "minigrad", **kwargs: Any,
) -> Picture:
    """A picture of how a tensor came about, or of what a function or a model does with these arguments.

    `backward=True` shows the gradients beside it, and `values=True` the numbers, if it is a tensor's history.  Names
    come from your code, from a model's parameters, and from `names`.  Scopes are closed until at most `budget` boxes
    are seen.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> mg.viz.graph(loss, backward=True)
    <picture of a graph of 1 parameter, 2 operations, 3 gradient operations>
    >>> mg.viz.graph(lambda x: mg.tanh(x) + 1, mg.ones(3))
    <picture of a graph of 1 input, 2 operations>
    """
    heading = getattr(what, "title", "")
    if isinstance(what, Tensor):
        nodes, results = _history(what), [what.node]
        known = names_of(nodes, names)
    elif hasattr(what, "nodes") and hasattr(what, "outputs"):
        nodes, results = [*what.inputs, *what.nodes], what.outputs
        known = names_in_code(nodes)
    elif callable(what):
        nodes, results, known, heading = _traced(what, args, kwargs, backward)
    else:
        raise MinigradError(
            f"there is no graph in a {type(what).__name__}",
            expect="a tensor, a Graph, or a function or model and its arguments",
        )
    found = _numbers(what, values, backward)
    views = views_of(scene_of(nodes, results, known, found[0]), budget, MOST)
    if backward:
        views = [view._replace(scene=with_gradients(view.scene, found[1])) for view in views]
    return Picture(_drawable(views[0].scene), direction, engine, views).titled(heading)


def _numbers(what: Any, values: bool, backward: bool) -> tuple[dict[Node, Summary] | None, dict[Node, Summary]]:
    """What is known of the values and of the gradients."""
    if not values:
        return None, {}
    if not isinstance(what, Tensor):
        raise MinigradError(
            "a function or a graph that was only recorded has no values", expect="values=True for a tensor",
            hint="mg.viz.graph(function(*arguments), values=True)",
        )
    if not backward:
        return values_of(_history(what))[0], {}
    recording = record_steps(what)
    return recording.values, {step.target: step.total for step in recording.steps}


def shown(what: Any) -> dict[str, str]:
    """What a notebook shows of a graph: a picture; of what is too large for one, the words."""
    try:
        return graph(what)._repr_mimebundle_()
    except MinigradError as error:
        return {"text/plain": f"{what!r}: {error}"}


def _history(tensor: Tensor) -> list[Node]:
    if tensor.node is None:
        raise MinigradError(
            "nothing was recorded for this tensor, so there is nothing to draw",
            expect="a tensor made from one that requires a gradient",
            hint="with mg.record(): around the computation, or mg.viz.graph(function, *arguments)",
        )
    return topological_order([tensor.node])


def names_of(nodes: list[Node], names: Mapping[str, Tensor] | Module | None) -> dict[Node, str]:
    """What the values are called in the user's code, and the leaves by a model or a dictionary."""
    if names is None:
        return names_in_code(nodes)
    named = names.named_parameters() if isinstance(names, Module) else names.items()
    called = {id(tensor): name for name, tensor in named}
    leaves = {node: node.tensor() for node in nodes if isinstance(node, Leaf)}
    known = {node: called[id(tensor)] for node, tensor in leaves.items() if id(tensor) in called}
    return names_in_code(nodes) | known


def _traced(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backward: bool
) -> tuple[list[Node], list[Node], dict[Node, str], str]:
    """What a function records, and what its inputs are called."""
    named = named_tensors(function, args, kwargs)
    if backward:
        result = function(*args, **kwargs)
        tensors = [t for t in flatten(result)[0] if t.tracked]
        if not tensors:
            raise MinigradError(
                "no gradient flows through this function", hint="requires_grad=True for what it should be taken by"
            )
        nodes = topological_order([t.node for t in tensors])
        leaves = {id(node.tensor()): node for node in nodes if isinstance(node, Leaf)}
        names = names_in_code(nodes) | {leaves[key]: name for key, name in named.items() if key in leaves}
        return nodes, [t.node for t in tensors], names, ""
    ran = ran_of(function, args, kwargs)
    graph = ran.graph
    known = {node: named[id(tensor)] for node, tensor in ran.tensors_of_inputs.items() if id(tensor) in named}
    used = {source for node in graph.nodes for source in node.inputs if isinstance(source, Node)}
    nodes = [*[node for node in graph.inputs if node in used or node in graph.outputs], *graph.nodes]
    return nodes, list(graph.outputs), names_in_code(graph.nodes) | known, graph.title


def ran_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Ran:
    """What ran in the last call of a jitted function; of another function, what would run if it were jitted."""
    jitted = function if isinstance(function, (Jitted, JittedMethod)) else jit(function)
    return jitted.ran(*args, **kwargs)


def named_tensors(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, str]:
    """The names of tensors that a function is given, that it closes over, and that belong to a model it uses."""
    if isinstance(getattr(function, "jitted", None), Jitted):
        args = (function.__self__, *args)  # type: ignore[attr-defined]
    target: Any = function.forward if isinstance(function, Module) else function
    target = inspect.unwrap(getattr(target, "function", target))
    found: dict[int, str] = {}
    sources: dict[str, Any] = {}
    if isinstance(function, Module):
        found |= {id(t): name for name, t in function.named_tensors()}
    try:
        closed = inspect.getclosurevars(target)
        sources |= {**closed.globals, **closed.nonlocals}
        sources |= inspect.signature(target).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        pass  # built in, or called wrongly, which the call itself will say better
    for name, value in sources.items():
        if isinstance(value, Tensor):
            found.setdefault(id(value), name)
        elif isinstance(value, Module):
            for path, tensor in value.named_tensors():
                found.setdefault(id(tensor), path)
    return found


def _drawable(scene: Scene) -> Scene:
    if len(scene.boxes) > MOST:
        raise MinigradError(
            f"a picture of {len(scene.boxes):,} boxes would show nothing",
            expect=f"at most {MOST}",
            hint="with mg.scope('name'): around parts of the computation, which are then drawn as one box each",
        )
    return scene
