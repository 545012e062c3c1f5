"""Flattens containers of tensors (nested tuples, lists, dicts and registered classes) and rebuilds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .tensor import Tensor

Rebuild = Callable[[list[Any]], Any]
REGISTRY: dict[type, tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]] = {}


def register_container(
    cls: type, parts: Callable[[Any], list[Any]], rebuild: Callable[[Any, list[Any]], Any]
) -> None:
    """Register a class (and its subclasses) as a container: `parts(tree)`, and `rebuild(tree, parts)`, a new object.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_container(Pair, lambda p: [p.a, p.b], lambda p, parts: Pair(*parts))
    >>> leaves(Pair(mg.ones(1), [mg.zeros(1)]))[1].tolist()
    [0.0]
    """
    REGISTRY[cls] = parts, rebuild


def _registered(tree: Any) -> Any:
    for cls in type(tree).__mro__:
        if cls in REGISTRY:
            return REGISTRY[cls]
    return None


def flatten(tree: Any, also: tuple[type, ...] = ()) -> tuple[list[Tensor], Rebuild]:
    """The tensors in a container, and a function that rebuilds it with others; `also` names more types of leaves.

    >>> tensors, rebuild = flatten({"a": mg.ones(1), "b": (2, mg.zeros(1))})
    >>> rebuild([1, 2])
    {'a': 1, 'b': (2, 2)}
    """
    if tree.__class__ is Tensor or isinstance(tree, also):
        found: list[Any] = [tree]
        return found, lambda new: new[0]
    opened = _opened(tree)
    if opened is None:
        return [], lambda new: tree
    parts, make = opened
    flat = [flatten(part, also) for part in parts]
    counts = [len(tensors) for tensors, _ in flat]

    def rebuild(new: list[Any]) -> Any:
        rest = iter(new)
        return make([back([next(rest) for _ in range(n)]) for (_, back), n in zip(flat, counts)])

    return [t for tensors, _ in flat for t in tensors], rebuild


def _opened(tree: Any) -> tuple[list[Any], Rebuild] | None:
    """The parts of a container, and a function that makes a container of others; None if it is not a container."""
    if isinstance(tree, (tuple, list)):
        return list(tree), _sequence_maker(tree)
    if isinstance(tree, dict):
        keys = list(tree)
        return list(tree.values()), lambda new: dict(zip(keys, new))
    registered = _registered(tree)
    if registered is None:
        return None
    return registered[0](tree), lambda new: registered[1](tree, new)


def structure(tree: Any, also: tuple[type, ...] = ()) -> Any:
    """The structure of a container without its tensors, for comparing containers.

    >>> structure([mg.ones(1), None]) == structure([mg.zeros(2), None]), structure((1,)) == structure((2,))
    (True, False)
    """
    if tree.__class__ is Tensor or isinstance(tree, also):
        return Tensor
    opened = _opened(tree)
    if opened is None:
        return "as it is", tree
    keys = tuple(tree) if isinstance(tree, dict) else None
    return type(tree), keys, tuple([structure(part, also) for part in opened[0]])


def _sequence_maker(tree: Any) -> Callable[[list[Any]], Any]:
    cls = type(tree)
    if hasattr(cls, "_make"):
        return cls._make  # type: ignore[no-any-return]
    return cls


def leaves(tree: Any) -> list[Tensor]:
    """The tensors in a container, in order.

    >>> len(leaves([mg.ones(1), {"a": mg.ones(2)}, "text"]))
    2
    """
    return flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The same container with `function` applied to each tensor (and to the tensors in its place in others).

    >>> tree_map(lambda t: t.shape, {"a": mg.ones(2)})
    {'a': (2,)}
    """
    tensors, rebuild = flatten(tree)
    return rebuild([function(*row) for row in zip(tensors, *map(leaves, others))])
