"""The walk of `reverse.py`, unrolled: used when the caller does not look at its steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from weakref import ref

from ..core.clock import LastWrite
from ..core.mode import CURRENT, current_mode
from ..core.node import FREED, Node, topological_order
from ..core.primitive import P
from ..core.programs import closes, opened_order
from ..core.tensor import NUMBERS, Tensor, new_tensor, wrap
from ..ops.elementwise import add
from ..ops.view import unbroadcast
from .visits import (
    HOOKS,
    after_hooks,
    check_unchanged,
    fitted,
    freed,
    gather_results,
    hooked,
    leading_to,
    on_device_of,
    read,
)


def quick_steps(
    roots: Sequence[Node],
    cotangents: Sequence[Tensor],
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
    recording, interpreted, project = mode.grad, mode.interpreter is not None, P.project
    # The gradients of closed nodes have no history, and are computed here and now.
    order = (opened_order if recording or not closes(mode) else topological_order)(pending)
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
        saved = node.saved
        if saved is not None:
            if saved is FREED:
                raise freed(node)
            if saved.__class__ is not tuple:  # a checkpoint: the values are computed again
                saved.restore()
                saved = node.saved
            if LastWrite.time > node.serial:
                check_unchanged(node)
        inputs, rules, whole = node.inputs, node.plan.rules, node.plan.whole
        values = None
        for index, function, reads, only in rules:
            source = inputs[index]
            if useful is not None and source not in useful:
                continue
            if whole is not None:
                if values is None:  # not before an input needs it
                    if interpreted:
                        CURRENT.set(mode.but(origin=node))
                    values = whole(g, node)
                    CURRENT.set(mode)
                value = values[index]
            elif recording or interpreted:  # an interpreter may use the origin
                CURRENT.set(mode.but(origin=node, toward=index))
                value = function(g, *[read(node, slot, recording, index) for slot in reads])
                value = None if value is None else fitted(value, source)
                CURRENT.set(mode)
            elif not reads:
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
            if value is None:
                continue
            if len(rules) > 1 and (value is g or (value.alias is not None and _owner(value) is _owner(g))):
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
    """A tensor to keep, from a gradient that nothing else holds.  A view of all elements of its owner needs no copy."""
    if g.alias is None or g.alias.base is None:
        return g
    data = g._data
    whole = data.__class__ is g.device.ndarray and data.flags.c_contiguous and data.size == g.alias.base._data.size
    return wrap(data, g.device) if whole and not g.tracked else g.copy()
