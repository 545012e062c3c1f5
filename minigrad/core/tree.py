"""Flattens containers of tensors (nested tuples, lists, dicts and registered classes) and rebuilds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.errors import ConversionError
from ..support.words import shown, too_deep
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


def is_container(tree: Any) -> bool:
    """Whether tensors are found in it: a tuple, a list, a dict, or an object of a registered class.

    >>> is_container([]), is_container(mg.nn.ReLU()), is_container("text")
    (True, True, False)
    """
    return _opened(tree) is not None


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
    try:
        flat = [flatten(part, also) for part in parts]
    except RecursionError as error:
        raise too_deep("a container", tree, error) from None
    counts = [len(tensors) for tensors, _ in flat]

    def rebuild(new: list[Any]) -> Any:
        rest = iter(new)
        return make([back([next(rest) for _ in range(n)]) for (_, back), n in zip(flat, counts)])

    return [t for tensors, _ in flat for t in tensors], rebuild


def _opened(tree: Any) -> tuple[list[Any], Rebuild] | None:
    """The parts of a container, and a function that makes a container of others; None if it is not a container."""
    if isinstance(tree, (tuple, list)):
        return list(tree), getattr(tree, "_make", type(tree))  # a NamedTuple takes its fields one by one
    if isinstance(tree, dict):
        keys = list(tree)
        if {*map(type, keys)} - {str, int} and leaves(keys):
            raise ConversionError("a tensor is a key of a dict, where only values are found",
                                  hint="a name or a number as the key, or pairs in a list")
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
    try:
        return type(tree), keys, tuple([structure(part, also) for part in opened[0]])
    except RecursionError as error:
        raise too_deep("a container", tree, error) from None


def leaves(tree: Any) -> list[Tensor]:
    """The tensors in a container, in order.

    >>> len(leaves([mg.ones(1), {"a": mg.ones(2)}, "text"]))
    2
    """
    return flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The same containers, with `function` applied to each tensor, array or number in them; None stays None.

    Containers are tuples, lists, dicts and modules; of a module, only tensors are mapped.  The other trees have the
    same structure; where the first has a tensor, another may have a container, which is one argument.

    >>> params, grads = {"w": mg.ones(2), "b": [0.5]}, {"w": mg.ones(2), "b": [1.0]}
    >>> mg.tree_map(lambda p, g: p - 0.5 * g, params, grads)
    {'w': Tensor([0.5, 0.5], shape=(2,), dtype=float32, device=cpu), 'b': [0.0]}
    """
    if not callable(function):
        raise ConversionError(f"tree_map: function is a function, not {shown(function)}")
    opened = _opened(tree)
    if opened is None:
        return None if tree is None else function(tree, *others)
    parts, make = opened
    rows = zip(parts, *[_parts_like(tree, parts, other) for other in others])
    if _registered(tree) is not None:
        every, function = function, lambda t, *rest: every(t, *rest) if t.__class__ is Tensor else t
    try:
        return make([tree_map(function, *row) for row in rows])
    except RecursionError as error:
        raise too_deep("tree_map: the tree", tree, error) from None


def _parts_like(tree: Any, parts: list[Any], other: Any) -> list[Any]:
    """The parts of another container of the same structure, in the same order."""
    if isinstance(tree, dict) and isinstance(other, dict) and tree.keys() == other.keys():
        return [other[key] for key in tree]
    opened = _opened(other) if type(other) is type(tree) and not isinstance(tree, dict) else None
    if opened is None or len(opened[0]) != len(parts):
        raise ConversionError("tree_map: the trees have different structures", expect=shown(tree), actual=shown(other))
    return opened[0]
