"""What a node passes back: its gradient rules, applied to the gradient of its result."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from ..core.clock import LastWrite, tick, written_since
from ..core.emit import part
from ..core.mode import current_mode, switch
from ..core.node import FREED, Leaf, Node
from ..core.primitive import INDEX, NODE, OUT, REST, Rule
from ..core.tensor import NUMBERS, Tensor, wrap
from ..ops.view import unbroadcast
from ..support.errors import DeviceError, GradError, MutationError
from ..support.source import show

HOOKS: Any = weakref.WeakKeyDictionary()  # node -> list of functions of its gradient


def contributions(
    node: Node, g: Tensor, useful: Collection[Any] | None = None
) -> Iterator[tuple[int, Tensor]]:
    """What a node of gradient g passes back: the index of an input, and its gradient.

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
            with switch(origin=node):
                value = pulled(rule, g, reading)
            if value is not None:
                yield rule.index, fitted(value, source)


def pulled(rule: Rule, g: Any, reading: Callable[[int], Any]) -> Any:
    """What a gradient rule gives for g; `reading(slot)` is what the rule reads."""
    return rule.function(g, *[reading(slot) for slot in rule.reads])


def fitted(value: Tensor, source: Node) -> Tensor:
    """A contribution in the shape and dtype of the node that it goes to."""
    if value.shape != source.shape:
        value = unbroadcast(value, source.shape)
    return value if value.dtype is source.dtype else value.astype(source.dtype)


def read(node: Node, slot: int, recording: bool, index: int = 0) -> Any:
    """What a rule named: an input or the result as a tensor (with its history, if the gradient is recorded too)."""
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
    if isinstance(node.saved[slot], tuple):
        return _read_results(node, recording)
    tensor = wrap(node.saved[slot], node.device)
    if recording:
        tensor.node = source
        tensor.tracked = 1 if source.plan.rules or source.__class__ is Leaf else 0
    return tensor


def _read_results(node: Node, recording: bool) -> tuple[Tensor, ...]:
    """The results of an operation that has several."""
    results = tuple([wrap(data, node.device) for data in node.saved[OUT]])
    if recording:
        for i, result in enumerate(results):
            result.tracked = 1 if result.dtype.kind == "f" else 0
            result.node = part(node, i, result)
    return results


def make_readable(node: Node) -> None:
    """See to it that the values which a node saved are there, and are what they were."""
    if node.saved is None:
        return
    if node.saved is FREED:
        raise freed(node)
    if node.saved.__class__ is not tuple:
        node.saved.restore()  # a checkpoint: the values are computed again
    if LastWrite.time > node.serial:
        check_unchanged(node)


def check_unchanged(node: Node) -> None:
    """Something was overwritten since this node was recorded; raise if it was something that its gradient needs."""
    values = node.saved or ()
    for i, value in enumerate(values):
        if not hasattr(value, "base"):
            continue  # a number, or nothing
        changed = written_since(value, node.serial)
        if changed is not None:
            op = node.op
            is_result = i == len(values) - 1
            maker = node if is_result else node.inputs[i]
            what = f"the result of {op.name}" if is_result else f"input {op.name_of(i)} of {op.name}"  # type: ignore[union-attr]
            raise MutationError(
                f"{what}, a tensor of shape {value.shape} that its gradient needs, was changed in place\n"
                + (f"  made:    {show(maker.where)}\n" if maker.where else "")
                + f"  used:    {show(node.where)}\n"
                f"  changed: {show(changed)}",
                hint="x = x + 1 instead of x += 1, or x.copy() before the change",
            )


def freed(node: Node) -> GradError:
    return GradError(
        f"backward a second time through {node.name}, made at {show(node.where)}: what it had saved was let go",
        hint="backward(retain_graph=True) the first time, or compute the loss again",
    )


def moved(node: Node, g: Tensor) -> DeviceError:
    return DeviceError(
        f"the gradient of a tensor on {node.device}, made at {show(node.where)}, has come out on {g.device}",
        expect="a hook or a gradient rule of yours gives an answer on the device of what it was given",
        hint=f'g.to("{node.device}")',
    )


def on_device_of(node: Node, g: Tensor) -> Tensor:
    """The gradient, which has to be where its tensor is."""
    if g.device is not node.device:
        raise moved(node, g)
    return g


def after_hooks(node: Node, g: Tensor) -> Tensor:
    """The gradient of a node, as its hooks leave it."""
    for hook in list(HOOKS.get(node, ())):  # a hook may remove itself
        called = tick()
        answer = hook(g)
        changed = written_since(g._data, called) if hasattr(g._data, "base") else None
        if changed is not None:
            raise MutationError(
                f"a hook changed the gradient of {node.name} {node.shape} in place, and others may hold it too\n"
                f"  changed: {show(changed)}",
                hint="return the gradient to go on with: g * 2 instead of g *= 2",
            )
        if answer is not None:
            g = replacement(node, answer, "the answer of a hook")
    return g


def replacement(node: Node, g: Any, what: str) -> Tensor:
    """A gradient that came from outside, for the one of `node`, in its dtype."""
    if not isinstance(g, Tensor):
        raise GradError(f"{what} takes the place of a gradient: it is a tensor or None, not a {type(g).__name__}",
                        hint="mg.asarray(...) makes a tensor")
    if g.shape != node.shape:
        raise GradError(
            f"{what} takes the place of the gradient of {node.name}, made at {show(node.where)}, and has another shape",
            expect=str(node.shape), actual=str(g.shape),
        )
    if g.device is not node.device:
        raise moved(node, g)
    return g if g.dtype is node.dtype else g.astype(node.dtype)
