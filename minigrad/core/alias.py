"""Views: which tensors share memory, and through which view operations."""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import Any

from .clock import buffer_of
from .node import Node
from .primitive import Primitive
from .tensor import Tensor, contiguous_base, method, wrap

new_alias = object.__new__
Step = tuple[Primitive, dict[str, Any]]  # one view operation and its attributes


class Alias:
    """The memory of a tensor: that of `base`, seen through the view operations in `chain`.

    `base` is None if the tensor is not a view.  `linked` is False after a `detach()`: such a view shares the memory but
    not the history.  It is None if writes are not checked either: a gradient then reads the changed value.
    """

    __slots__ = ("base", "chain", "linked", "views")

    base: Tensor | None
    chain: tuple[Step, ...]
    linked: bool | None
    views: list[Any]  # weak references to the live views of the base; one list for all of them


def alias_of(tensor: Tensor) -> Alias:
    """The alias record of a tensor, made at its first view or write."""
    alias = tensor.alias
    if alias is None:
        contiguous_base(tensor)
        alias = new_alias(Alias)
        alias.base, alias.chain, alias.linked, alias.views = None, (), True, []
        tensor.alias = alias
    return alias


def link(out: Tensor, source: Tensor, step: Step | None) -> Tensor:
    """Record that `out` is a view of `source` through one more step (None: detached)."""
    seen = source.alias or alias_of(source)
    alias = new_alias(Alias)
    base, chain = seen.base, seen.chain
    if step is None:
        alias.chain, alias.linked = chain, False
    else:
        if step[0].name == "reshape" and _copied(out._data, source._data):
            return out  # NumPy made a copy: the elements are not evenly spaced
        alias.chain, alias.linked = (*chain, step), seen.linked
    alias.base = source if base is None else base
    alias.views = views = seen.views
    out.alias = alias
    views.append(weakref.ref(out))  # last: other code reads the alias of each view
    if not len(views) & 15:
        views[:] = [view for view in views if view() is not None]  # sometimes, remove the dead ones
    return out


@method
def detach(tensor: Tensor) -> Tensor:
    """A tensor with the same values in the same memory, without the history.

    >>> import minigrad as mg
    >>> mg.asarray([1.0], requires_grad=True).detach()
    Tensor([1.], shape=(1,), dtype=float32, device=cpu)
    """
    alias_of(tensor)
    data = tensor._data
    if data.__class__ is tensor.device.ndarray:
        return link(wrap(data, tensor.device), tensor, None)
    data = data.detached()  # abstract data has its own histories and tangents
    out = link(wrap(data, tensor.device), tensor, None)
    data.held_by(out)
    return out


def history_from(view: Tensor, nodes: Collection[Node]) -> tuple[Node | None, tuple[Step, ...]]:
    """The newest of the nodes in the history of a view, and the steps from it to the view; or None, and all steps."""
    chain, node = view.alias.chain, view.node  # type: ignore[union-attr]
    for start in range(len(chain), 0, -1):
        if node in nodes:
            return node, chain[start:]
        if node is not None and node.inputs:
            node = node.inputs[0]
    return None, chain


def _copied(data: Any, source: Any) -> bool:
    base = getattr(data, "base", source)  # abstract data is never copied
    return base is not source and buffer_of(data) is not buffer_of(source)
