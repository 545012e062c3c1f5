"""Reverse mode: one walk back through the recipes, from an output to the leaves.

Fix one output ℓ.  The walk computes ∂ℓ/∂y for each value y that ℓ was made from, and
begins with the value made last.  When it comes to a node, it has passed all nodes that
used the node's value, so the gradient of the node is complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..core.mode import current_mode, switch
from ..core.node import FREED, Leaf, Node, topological_order
from ..core.override import overridable
from ..core.primitive import P
from ..core.tensor import Tensor, method
from ..ops.creation import ones_like
from ..support.errors import ConversionError, DeviceError, GradError
from ..support.forking import new_lock
from ..support.interrupts import all_or_none
from ..support.words import shown
from .passing import HOOKS as HOOKS
from .passing import after_hooks, contributions, on_device_of, replacement
from .pending import add_to, gather_results, leading_to, targets_of
from .quick_steps import quick_steps


class Contribution(NamedTuple):
    """One step of the walk: what `node` passes back to its input number `index`.

    `cotangent` is the finished gradient of the node's result, `value` the contribution, and `so_far` what has come to
    that input from elsewhere before, or None.
    """

    node: Node
    index: int  # type: ignore[assignment]  # of the input; a tuple has a method of that name
    cotangent: Tensor
    value: Tensor
    so_far: Tensor | None


Walk = Generator[Contribution, "Tensor | None", dict[Node, Tensor]]
RETAINED: Any = weakref.WeakValueDictionary()  # by id: tensors whose .grad is filled although an operation made them
ACCUMULATING = new_lock()  # several threads may add to the gradient of one leaf


@overridable
def walk(
    roots: Sequence[Node],
    cotangents: Sequence[Tensor],
    wanted: Iterable[Node] | None = None,
    retain: bool = False,
    announced: bool = True,
    besides: Collection[Node] = (),
) -> Walk:
    """Go back from the roots, yielding each contribution.

    The walk returns the gradients of the leaves (or of `wanted`), and of `besides`.  A
    tensor that is sent in answer to a contribution replaces it.  Only contributions on
    a path to a wanted node are computed.  `retain` keeps what the nodes saved, for
    another walk.  With `announced=False` nothing is yielded, which is quicker.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> y = x * x
    >>> for step in mg.autodiff.walk([y.node], [mg.ones(())]):
    ...     print(step.node.name, step.index, step.value.item())
    multiply 0 3.0
    multiply 1 3.0
    """
    way = steps if announced else quick_steps
    return way(roots, cotangents, wanted, retain, besides)


def steps(
    roots: Sequence[Node],
    cotangents: Sequence[Tensor],
    wanted: Iterable[Node] | None,
    retain: bool,
    besides: Collection[Node],
) -> Walk:
    """The walk, step by step."""
    pending: dict[Node, Any] = {}
    for node, g in zip(roots, cotangents):
        add_to(pending, node, g)
    order = topological_order(pending)
    useful = None if wanted is None else leading_to(set(wanted), order)
    targets = targets_of(order, wanted, besides)
    found: dict[Node, Tensor] = {}
    for node in reversed(order):
        if node not in pending:
            continue
        g = after_hooks(node, pending.pop(node))
        if node in targets:
            found[node] = on_device_of(node, g).copy()
        if node.op is P.project:
            gather_results(node, g, pending)
            continue
        for index, value in contributions(node, g, useful):
            source = node.inputs[index]
            sent = yield Contribution(node, index, g, value, pending.get(source))
            if sent is not None:
                value = replacement(source, sent, "what was sent to the walk")
            add_to(pending, source, value)
        if node.saved is not None and not retain:
            node.saved = FREED
    return found


def exhaust(steps: Walk) -> dict[Node, Tensor]:
    """Run a walk to its end and return what it found."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def seeds(outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], name: str) -> list[Tensor]:
    """The gradients that a walk starts with: 1 for a number, and what the caller says for anything else."""
    seeded = []
    for output, given in zip(outputs, cotangents):
        if not output.tracked:
            raise GradError(
                f"{name}: this tensor has no history to go back through, shape {output.shape}, dtype {output.dtype}",
                hint="requires_grad=True on the tensors that you want gradients for, and no no_grad() or detach() "
                "on the way",
            )
        if given is None:
            if output._data.shape and output.size != 1:
                raise GradError(
                    f"{name}: a gradient is of one number, and this output has shape {output.shape}",
                    hint="reduce it first (.sum() or .mean()), or say with what weights: backward(gradient)",
                )
            given = ones_like(output)
        elif not isinstance(given, Tensor):
            raise GradError(f"{name}: the gradient of an output is a tensor, not a {type(given).__name__}",
                            hint="mg.asarray(...) makes a tensor")
        elif given.shape != output.shape:
            raise GradError(f"{name}: the gradient of an output has its shape, {output.shape}", actual=f"{given.shape}")
        elif given.device is not output.device:
            raise DeviceError(
                f"{name}: the gradient of an output is on its device, {output.device}, not on {given.device}",
                hint=f'gradient.to("{output.device}")',
            )
        seeded.append(given if given.dtype is output.dtype else given.astype(output.dtype))
    return seeded


@method
def backward(tensor: Tensor, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
    """Compute the gradient of this tensor with respect to every leaf it was made from, and add it to their `.grad`.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad.tolist()
    [2.0, 4.0]
    """
    with switch(grad=False):
        start = seeds([tensor], [gradient], "backward")
        retained = {t.node: t for t in (handle() for handle in RETAINED.valuerefs()) if t is not None and t.tracked}
        found = exhaust(walk([tensor.node], start, retain=retain_graph, announced=False, besides=retained))
        with ACCUMULATING:
            holders = [(node.tensor() if isinstance(node, Leaf) else retained[node], g) for node, g in found.items()]
            sums = [(t, g if t.grad is None else t.grad + g) for t, g in holders if t is not None]
            all_or_none(partial(_give, sums))


def _give(gradients: list[tuple[Tensor, Tensor]]) -> None:
    for tensor, gradient in gradients:
        tensor.grad = gradient


def gradients(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    cotangents: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> Any:
    """The gradients of outputs with respect to inputs, leaving every `.grad` alone.

    With `create_graph` the gradients have a history themselves, so that they can be differentiated again.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> dx = mg.gradients(x**3, x, create_graph=True)
    >>> dx.item(), mg.gradients(dx, x).item()
    (27.0, 18.0)
    """
    one_output, one_input = isinstance(outputs, Tensor), isinstance(inputs, Tensor)
    outs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    ins = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    state = current_mode().state
    outs, ins = [state.stand_in(t) for t in outs], [state.stand_in(t) for t in ins]
    given = [cotangents] if one_output or cotangents is None else list(cotangents)
    given = given * len(outs) if cotangents is None else given
    for i, tensor in enumerate(ins):
        if not tensor.tracked:
            raise GradError(
                f"gradients: input {i} does not require a gradient", hint="x.requires_grad = True before it is used"
            )
    with switch(grad=create_graph):
        start = seeds(outs, given, "gradients")
        retain = create_graph if retain_graph is None else retain_graph
        found = exhaust(walk([o.node for o in outs], start, [t.node for t in ins], retain, announced=False))
    result = [found.get(t.node) for t in ins]
    for i, g in enumerate(result):
        if g is None and not allow_unused:
            raise GradError(
                f"gradients: the outputs do not depend on input {i}, of shape {ins[i].shape}",
                hint="allow_unused=True gives None for it",
            )
    return result[0] if one_input else result


@method
def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Callable[[], None]:
    """Call `hook(gradient)` when this tensor's gradient is complete; what it returns takes the gradient's place.

    The answer is a function that removes the hook.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> remove = w.register_hook(lambda g: g * 10)
    >>> (w * 2).sum().backward()
    >>> w.grad.tolist()
    [20.0]
    """
    if not tensor.tracked:
        raise GradError("register_hook: no gradient flows through this tensor", hint="x.requires_grad = True")
    if not callable(hook):
        raise ConversionError(f"register_hook: a hook is a function, not {shown(hook)}")
    tensor = current_mode().state.stand_in(tensor)
    hooks = HOOKS.setdefault(tensor.node, [])
    hooks.append(hook)

    def remove() -> None:
        if hook in hooks:
            hooks.remove(hook)

    return remove


@method
def retain_grad(tensor: Tensor) -> None:
    """Let `backward` fill the `.grad` of this tensor too, although an operation made it.

    It is the gradient by what the tensor is when `backward` is called, after hooks, and after changes in place.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> h = w * 2
    >>> h.retain_grad()
    >>> (h * h).sum().backward()
    >>> h.grad.tolist()
    [4.0]
    """
    if not tensor.tracked:
        raise GradError("retain_grad: no gradient flows through this tensor", hint="x.requires_grad = True")
    RETAINED[id(tensor)] = tensor
