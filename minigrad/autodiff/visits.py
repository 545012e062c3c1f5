"""The parts of a walk: gradient rules, hooks, and the gradients that have come to a node so far.

`steps` in `reverse.py` is written with all of them.  `quick_steps`, which `backward` and `grad` run, has the common
cases inlined and uses those for hooks, saved values, errors and several results.

From small to large: `pulled` is one rule, `contributions` all rules of a node, `walk` all nodes, `pulled_back` a walk
from outputs to inputs, and `gradients` the public function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..core.clock import LastWrite, tick, written_since
from ..core.emit import part
from ..core.mode import current_mode, switch
from ..core.node import FREED, Leaf, Node
from ..core.primitive import INDEX, NODE, OUT, REST, Rule
from ..core.tensor import NUMBERS, Tensor, checked_gradient, wrap
from ..ops.creation import zeros
from ..ops.elementwise import add
from ..ops.view import unbroadcast
from ..support.errors import DeviceError, GradError, MutationError
from ..support.source import show

HOOKS: Any = weakref.WeakKeyDictionary()  # node -> list of functions of its gradient


def contributions(
    node: Node, g: Tensor, useful: Collection[Any] | None = None
) -> Iterator[tuple[int, Tensor]]:
    """The contributions of a node to the gradients of its inputs: (index of the input, gradient).

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> y = x * x
    >>> [(i, value.item()) for i, value in contributions(y.node, mg.ones(()))]
    [(0, 3.0), (1, 3.0)]
    """
    make_readable(node)
    recording = current_mode().grad
    for rule in node.plan.rules:
        source = node.inputs[rule.index]
        if useful is None or source in useful:
            reading = partial(read, node, recording=recording, index=rule.index)
            with switch(origin=node, toward=rule.index):
                value = pulled(rule, g, reading)
                value = None if value is None else fitted(value, source)
            if value is not None:
                yield rule.index, value


def pulled(rule: Rule, g: Any, reading: Callable[[int], Any]) -> Any:
    """Call a gradient rule on g; `reading(slot)` returns each value that the rule reads."""
    return rule.function(g, *[reading(slot) for slot in rule.reads])


def fitted(value: Tensor, source: Node) -> Tensor:
    """A contribution in the shape and dtype of the node that it goes to."""
    if value.shape != source.shape:
        value = unbroadcast(value, source.shape)
    return value if value.dtype is source.dtype else value.astype(source.dtype)


def read(node: Node, slot: int, recording: bool, index: int = 0) -> Any:
    """The value of a rule's parameter: an input or the result, with its history if the gradient is recorded too."""
    if slot == NODE:
        return node
    if slot == INDEX:
        return index
    if slot == REST:
        first = len(node.op.inputs) - 1  # type: ignore[union-attr]
        return tuple([read(node, i, recording) for i in range(first, len(node.inputs))])
    source = node if slot == OUT else node.inputs[slot]
    if source.__class__ in NUMBERS:
        return source
    saved = node.saved[slot]
    if isinstance(saved, tuple):  # an operation with several results
        results = tuple([wrap(data, node.device) for data in saved])
        for i, result in enumerate(results if recording else ()):
            result.tracked = result.dtype.kind == "f"
            result.node = part(node, i, result)
        return results
    tensor = wrap(saved, node.device)
    if recording:
        tensor.node = source
        tensor.tracked = bool(source.plan.rules) or isinstance(source, Leaf)
    return tensor


def make_readable(node: Node) -> None:
    """Make sure that the values which a node saved are there and unchanged."""
    if node.saved is None:
        return
    if node.saved is FREED:
        raise freed(node)
    if node.saved.__class__ is not tuple:
        node.saved.restore()  # a checkpoint: the values are computed again
    if LastWrite.time > node.serial:
        check_unchanged(node)


def check_unchanged(node: Node) -> None:
    """Raise an error if a value that the gradient of this node needs was overwritten since the node was recorded."""
    values = node.saved or ()
    for i, value in enumerate(values):
        changed = written_since(value, node.serial)
        if changed is not None:
            op: Any = node.op
            is_result = i == len(values) - 1
            maker = node if is_result else node.inputs[i]
            what = f"the result of {op.name}" if is_result else f"input {op.name_of(i)} of {op.name}"
            raise MutationError(
                f"{what}, a tensor of shape {value.shape} that its gradient needs, was changed in place\n"
                + (f"  made:    {show(maker.where)}\n" if maker.where else "")
                + f"  used:    {show(node.where)}\n"
                f"  changed: {show(changed)}",
                hint="x = x + 1 instead of x += 1, or x.copy() before the change",
            )


def freed(node: Node) -> GradError:
    return GradError(
        f"backward a second time through {node.name}, made at {show(node.where)}: its saved values were deleted",
        hint="backward(retain_graph=True) the first time, or compute the loss again; detach() what a next step keeps",
    )


def on_device_of(node: Node, g: Tensor) -> Tensor:
    """The gradient g of a node.  It must be on the device of the node's value."""
    if g.device is not node.device:
        raise DeviceError(
            f"the gradient of a tensor on {node.device}, made at {show(node.where)}, is on {g.device}",
            expect="a hook or a gradient rule returns a gradient on the device of its argument",
            hint=f'g.to("{node.device}")',
        )
    return g


def after_hooks(node: Node, g: Tensor) -> Tensor:
    """The gradient of a node after its hooks were called."""
    for hook in list(HOOKS.get(node, ())):  # a hook may remove itself
        called = tick()
        answer = hook(g)
        changed = written_since(g._data, called)
        if changed is not None:
            raise MutationError(
                f"a hook changed the gradient of {node.name} {node.shape} in place, and other code may use it too\n"
                f"  changed: {show(changed)}",
                hint="return the new gradient: g * 2 instead of g *= 2",
            )
        if answer is not None:
            g = checked_gradient(f"the result of a hook on {node.name}", answer, node)
    return g


# The gradients that have come to each node so far --------------------------------------------------------------------


def add_to(pending: dict[Node, Any], node: Node, value: Tensor) -> None:
    """Add a contribution to those that came to a node before."""
    pending[node] = add(pending[node], value) if node in pending else value


def hooked(order: list[Node]) -> list[Node]:
    """The order of a walk, with each leaf that has hooks before its first user: they are called early."""
    late = {node for node in order if node.op is None and node in HOOKS} if HOOKS.data else None
    if not late:
        return order
    placed: list[Node] = []
    for node in order:
        for source in node.inputs:
            if source in late:
                late.remove(source)
                placed.append(source)
        if node.op is not None or node not in HOOKS:
            placed.append(node)
    return placed + [node for node in order if node in late]  # roots


def targets_of(order: Sequence[Node], wanted: Iterable[Node] | None, also: Collection[Node]) -> set[Node]:
    """The nodes whose gradients a walk returns."""
    if wanted is not None:
        return set(wanted)
    return {node for node in order if node.op is None or node in also}


def leading_to(targets: set[Node], order: list[Node]) -> set[Any]:
    """The nodes on a path from a target to a root."""
    useful: set[Any] = set(targets)
    for node in order:
        if node not in useful and any(node.inputs[rule.index] in useful for rule in node.plan.rules):
            useful.add(node)
    return useful


def gather_results(node: Node, g: Tensor, pending: dict[Node, Any]) -> None:
    """Add the gradient of one of several results to the list for their common node, which begins with zeros."""
    whole, index = node.inputs[0], node.attrs["index"]
    parts = pending.get(whole)
    if parts is None:
        parts = pending[whole] = [zeros(s, d, node.device) for s, d in zip(whole.shape, whole.dtype)]
    parts[index] = parts[index] + g
