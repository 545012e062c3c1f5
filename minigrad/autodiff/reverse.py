"""Reverse mode: one walk back through the recorded nodes, from an output to the leaves.

Fix one output ℓ.  The walk computes ∂ℓ/∂y for each value y that ℓ depends on, the newest
value first.  When the walk visits a node, it has already visited every node that used its
value, so the gradient of the node is complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.emit import emit
from ..core.mode import CURRENT, current_mode, switch
from ..core.node import FREED, Leaf, Node
from ..core.override import overridable
from ..core.primitive import P
from ..core.programs import opened_order
from ..core.tensor import Tensor, checked_gradient, method
from ..support.context import setting, switched_variable
from ..support.errors import ConversionError, GradError
from ..support.forking import new_lock
from ..support.interrupts import all_or_none
from ..support.words import shown
from .quick_steps import quick_steps
from .visits import HOOKS as HOOKS
from .visits import add_to, after_hooks, contributions, gather_results, hooked, leading_to, on_device_of, targets_of


class Contribution(NamedTuple):
    """One step of the walk: what `node` passes back to its input number `index`.

    `cotangent` is the complete gradient of the node's result, `value` the contribution, and `so_far` the sum of the
    earlier contributions to that input, or None.
    """

    node: Node
    index: int  # type: ignore[assignment]  # of the input; a tuple has a method of that name
    cotangent: Tensor
    value: Tensor
    so_far: Tensor | None


Walk = Generator[Contribution, "Tensor | None", dict[Node, Tensor]]
RETAINED: Any = weakref.WeakValueDictionary()  # by id: tensors that are not leaves and get a .grad too
AFTER: ContextVar[list[Callable[[], None]] | None] = switched_variable("minigrad after backward", None)
ACCUMULATING = new_lock()  # threads may add to the gradient of the same leaf


@overridable
def walk(
    roots: Sequence[Node],
    cotangents: Iterable[Tensor],
    wanted: Iterable[Node] | None = None,
    retain: bool = False,
    yields: bool = True,
    also: Collection[Node] = (),
) -> Walk:
    """Go back from the roots, yielding each contribution.

    The walk returns the gradients of the leaves (or of `wanted`), and of `also`.  A
    tensor that is sent to the generator replaces the contribution.  Only contributions
    on a path to a wanted node are computed.  `retain` keeps the saved values for another
    walk.  With `yields=False` the walk yields nothing and is faster (`quick_steps`).

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> y = x * x
    >>> for step in mg.autodiff.walk([y.node], [mg.ones(())]):
    ...     print(step.node.name, step.index, step.value.item())
    multiply 0 3.0
    multiply 1 3.0
    """
    way: Any = steps if yields else quick_steps  # First reader: follow `steps`; the other is the same loop, inlined
    with setting(CURRENT, current_mode()):  # which `quick_steps` changes from rule to rule
        return way(roots, cotangents, wanted, retain, also)  # type: ignore[no-any-return]


def steps(
    roots: Sequence[Node],
    cotangents: Iterable[Tensor],
    wanted: Iterable[Node] | None,
    retain: bool,
    also: Collection[Node],
) -> Walk:
    """The walk, step by step."""
    pending: dict[Node, Any] = {}
    for node, g in zip(roots, cotangents):
        add_to(pending, node, g)
    order = opened_order(pending)
    useful = None if wanted is None else leading_to(set(wanted), order)
    targets = targets_of(order, wanted, also)
    found: dict[Node, Tensor] = {}
    for node in reversed(hooked(order)):
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
                value = checked_gradient("what was sent to the walk", sent, source)
            add_to(pending, source, value)
        if node.saved is not None and not retain:
            node.saved = FREED
    return found


def exhaust(steps: Walk | dict[Node, Tensor]) -> dict[Node, Tensor]:
    """Run a walk to its end and return what it found.  `quick_steps` has run to its end already."""
    if isinstance(steps, dict):
        return steps
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def seeds(outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], name: str) -> list[Tensor]:
    """The gradients that a walk starts with: 1 for a number; for other outputs the caller gives them."""
    seeded = []
    for output, given in zip(outputs, cotangents):
        if not output.tracked:
            raise GradError(
                f"{name}: this tensor has no history, shape {output.shape}, dtype {output.dtype}",
                hint="requires_grad=True on the tensors that you want gradients for, and no no_grad() or detach() "
                "between them and this tensor",
            )
        if given is None and output._data.shape and output.size != 1:
            raise GradError(
                f"{name}: only a single number has a gradient, and this output has shape {output.shape}",
                hint="reduce it first (.sum() or .mean()), or pass a weight for each element: backward(gradient)",
            )
        seeded.append(
            emit(P.full, shape=output.shape, value=1, dtype=output.dtype, device=output.device) if given is None
            else checked_gradient(f"{name}: the gradient of an output", given, output)
        )
    return seeded


@method
def backward(tensor: Tensor, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
    """Compute the gradient of this tensor with respect to every leaf it depends on, and add it to the leaf's `.grad`.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad.tolist()
    [2.0, 4.0]
    """
    with setting(CURRENT, current_mode().untracked):
        start = seeds([tensor], [gradient], "backward")
        handles = [handle() for handle in RETAINED.valuerefs()] if RETAINED.data else ()
        retained = {t.node: t for t in handles if t is not None and t.tracked}
        after: list[Callable[[], None]] = []
        with setting(AFTER, after) if HOOKS.data else nullcontext():  # only hooks call `after_backward`
            found = exhaust(walk([tensor.node], start, retain=retain_graph, yields=False, also=retained))
        with ACCUMULATING:
            holders = [(node.tensor() if isinstance(node, Leaf) else retained[node], g) for node, g in found.items()]
            sums = [(t, g if t.grad is None else t.grad + g) for t, g in holders if t is not None]

            def writes() -> None:
                for tensor, gradient in sums:
                    tensor.grad = gradient

            all_or_none(writes)
        for function in after:
            function()


def after_backward(function: Callable[[], None]) -> bool | None:
    """Let the running `backward` call a function at its end.  False: it will already; None: no `backward` runs."""
    after = AFTER.get()
    if after is None or function in after:
        return None if after is None else False
    after.append(function)
    return True


def gradients(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    cotangents: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> Any:
    """The gradients of outputs with respect to inputs.  No `.grad` changes.

    With `create_graph` the gradients have a history, so that they can be differentiated again.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> dx = mg.gradients(x**3, x, create_graph=True)
    >>> dx.item(), mg.gradients(dx, x).item()
    (27.0, 18.0)
    """
    state = current_mode().state
    outs, ins = [
        [state.stand_in(t) for t in ([given] if isinstance(given, Tensor) else given)] for given in (outputs, inputs)
    ]
    given = [cotangents] * len(outs) if cotangents is None or isinstance(outputs, Tensor) else list(cotangents)
    for i, tensor in enumerate(ins):
        if not tensor.tracked:
            raise GradError(
                f"gradients: input {i} does not require a gradient", hint="x.requires_grad = True before it is used"
            )
    retain = create_graph if retain_graph is None else retain_graph
    result = pulled_back("gradients", outs, given, ins, create_graph, retain, allow_unused)
    return result[0] if isinstance(inputs, Tensor) else result


def pulled_back(
    name: str,
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    record: bool,
    retain: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    """The gradients of outputs with respect to inputs, by one walk; None for inputs without a history."""
    with switch(grad=record):
        wanted = [t.node for t in inputs if t.tracked]
        start = seeds(outputs, cotangents, name)
        found = exhaust(walk([o.node for o in outputs], start, wanted, retain, yields=False))
    result = [found.get(t.node) if t.tracked else None for t in inputs]
    for i, (t, g) in enumerate(zip(inputs, result)):
        if g is None and t.tracked and not allow_unused:
            raise GradError(
                f"{name}: the output does not depend on input {i}, of shape {t.shape}",
                hint="allow_unused=True returns None for it",
            )
    return result


@method
def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Callable[[], None]:
    """Call `hook(gradient)` when this tensor's gradient is complete.  A tensor that it returns replaces the gradient.

    Returns a function that removes the hook.

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
    """Let `backward` fill the `.grad` of this tensor too, although the tensor is not a leaf.

    The gradient is that of the tensor's value when `backward` is called: after changes in place, and after hooks.

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
