"""What a function records for some arguments, and the names of the tensors in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..compile.jitted import Jitted, JittedMethod, jit
from ..compile.look.ran import Ran
from ..core.node import Leaf, Node, topological_order
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..nn.module import Module
from ..support.errors import MinigradError
from .naming import names_in_code


def traced(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backward: bool
) -> tuple[list[Node], list[Node], dict[Node, str], str]:
    """The nodes that a function records, its results, the names of its inputs, and a heading."""
    named = named_tensors(function, args, kwargs)
    if backward:
        result = function(*args, **kwargs)
        tensors = [t for t in flatten(result)[0] if t.tracked]
        if not tensors:
            raise MinigradError(
                "no gradient flows through this function", hint="requires_grad=True for the tensors to differentiate by"
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
    """The graphs of the last call of a jitted function; another function is jitted first."""
    jitted = function if isinstance(function, (Jitted, JittedMethod)) else jit(function)
    return jitted.ran(*args, **kwargs)


def named_tensors(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, str]:
    """The names of the tensors that a function can use: its arguments, its closure, and the parameters of models."""
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
        pass  # a built-in function, or wrong arguments: the call itself raises the better error
    for name, value in sources.items():
        if isinstance(value, Tensor):
            found.setdefault(id(value), name)
        elif isinstance(value, Module):
            for path, tensor in value.named_tensors():
                found.setdefault(id(tensor), path)
    return found
