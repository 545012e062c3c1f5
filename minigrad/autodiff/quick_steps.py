"""The walk of `reverse.py`, unrolled: used when the caller does not look at its steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from weakref import ref

from ..core.clock import LastWrite
from ..core.mode import CURRENT, Mode, current_mode
from ..core.node import FREED, Node, topological_order
from ..core.primitive import P
from ..core.programs import closes, opened_order
from ..core.tensor import NUMBERS, Tensor, new_tensor, wrap
from ..ops.elementwise import add
from ..ops.view import unbroadcast
from .visits import (
    HOOKS,
    after_hooks,
    contributions,
    gather_results,
    hooked,
    leading_to,
    make_readable,
    on_device_of,
    read,
)


def quick_steps(
    roots: Sequence[Node],
    cotangents: Iterable[Tensor],
    wanted: Iterable[Node] | None,
    retain: bool,
    also: Collection[Node],
) -> dict[Node, Tensor]:
    """`steps` without its yields, run to its end.  `tests/autodiff/test_quick_steps.py` compares the two.

    The caller sets the mode back: an error leaves that of a rule.
    A leaf's gradient is copied only if its memory may be used elsewhere.
    """
    pending: dict[Node, Any] = {}
    lent: set[Any] = set()  # weak references to tensors whose memory is used elsewhere (ids are reused)
    for node, cotangent in zip(roots, cotangents):
        pending[node] = cotangent if node not in pending else pending[node] + cotangent
        lent.add(ref(_owner(cotangent)))
    mode = current_mode()
    general, project = mode.grad or mode.interpreter is not None, P.project  # an interpreter may use the origin
    # The gradients of closed nodes have no history, and are computed here and now.
    order = (opened_order if mode.grad or not closes(mode) else topological_order)(pending)
    targets = None if wanted is None else set(wanted)
    useful = None if targets is None else leading_to(targets, order)
    found: dict[Node, Tensor] = {}
    for node in reversed(hooked(order)):
        g = pending.pop(node, None)
        if g is None:
            continue
        if HOOKS.data and node in HOOKS:
            g = after_hooks(node, g)
            lent.add(ref(_owner(g)))
        if (node.op is None or node in also) if targets is None else (node in targets):
            found[node] = _kept(node, g, lent)
        if node.op is project:
            gather_results(node, g, pending)
            continue
        inputs, saved, plan = node.inputs, node.saved, node.plan
        several = len(plan.rules) > 1
        if saved is not None and (saved.__class__ is not tuple or LastWrite.time > node.serial):
            make_readable(node)
        values: Iterable[tuple[int, Tensor]]
        if plan.whole is not None:
            values = _all_at_once(node, g, useful, mode)
        elif general:
            values = contributions(node, g, useful)
        else:
            values = _one_by_one(node, g, useful)
        for index, value in values:
            source = inputs[index]
            if several and (value is g or (value.alias is not None and _owner(value) is _owner(g))):
                lent.add(ref(_owner(g)))
            data = value._data
            if data.shape != source.shape:
                value = unbroadcast(value, source.shape)
            if data.dtype is not source.dtype:
                value = P.astype.apply(value, dtype=source.dtype)
            so_far = pending.get(source)
            pending[source] = value if so_far is None else add(so_far, value)
        if saved is not None and not retain:
            node.saved = FREED
    return found


def _one_by_one(node: Node, g: Tensor, useful: Collection[Node] | None) -> list[tuple[int, Tensor]]:
    """`contributions` without a history, as the rules return them."""
    inputs, saved, found = node.inputs, node.saved, []
    for index, function, reads, only in node.plan.rules:
        if useful is not None and inputs[index] not in useful:
            continue
        if not reads:
            value = function(g)
        elif only is None:
            value = function(g, *[read(node, slot, False, index) for slot in reads])
        elif (inputs[only] if only >= 0 else node).__class__ in NUMBERS:
            value = function(g, inputs[only])
        else:  # `read` without the call: a handle on the saved value, without history
            tensor = new_tensor(Tensor)
            tensor._data, tensor.device, tensor.alias, tensor._grad = saved[only], node.device, None, None
            tensor.node, tensor.tracked = None, False
            value = function(g, tensor)
        if value is not None:
            found.append((index, value))
    return found


def _all_at_once(node: Node, g: Tensor, useful: Collection[Node] | None, mode: Mode) -> list[tuple[int, Tensor]]:
    """The contributions of an operation that has one rule for all inputs, where an input needs them."""
    wanted = [index for index, *_ in node.plan.rules if useful is None or node.inputs[index] in useful]
    if not wanted:
        return []
    if mode.interpreter is not None:
        CURRENT.set(mode.but(origin=node))
    values = node.plan.whole(g, node)  # type: ignore[misc]
    CURRENT.set(mode)
    return [(index, values[index]) for index in wanted if values[index] is not None]


def _kept(node: Node, g: Tensor, lent: Collection[Any]) -> Tensor:
    """A gradient for the caller, copied if its memory may be used elsewhere."""
    if g.device is not node.device:
        on_device_of(node, g)
    return g.copy() if node.op is not None or ref(_owner(g)) in lent else _own(g)


def _owner(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory of this one."""
    alias = tensor.alias
    return tensor if alias is None or alias.base is None else alias.base


def _own(g: Tensor) -> Tensor:
    """A tensor to keep, from a gradient that nothing else holds.  A view of all elements of its owner needs no copy.

    A value that is traced has no strides: a view of all elements is taken as it is.
    """
    if g.alias is None or g.alias.base is None:
        return g
    data = g._data
    is_traced = data.__class__ is not g.device.ndarray
    if g.tracked or data.size != g.alias.base._data.size or not (is_traced or data.flags.c_contiguous):
        return g.copy()
    own = wrap(data, g.device)
    if is_traced:
        data.held_by(own)
    return own
