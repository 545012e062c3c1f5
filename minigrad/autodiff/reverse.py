"""Reverse mode: one walk back through the recipes, which `backward()` exhausts and a debugger steps.

Fix one output ℓ and compute ∂ℓ/∂y for each value y that it was made from, last made first: when the walk comes to a
node, everything that used its value has been passed, so its gradient is complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from ..core.clock import LastWrite, tick, written_since
from ..core.emit import part
from ..core.errors import ConversionError, DeviceError, GradError, MutationError
from ..core.forking import new_lock
from ..core.interrupts import all_or_none
from ..core.mode import current_mode, switch
from ..core.node import FREED, Leaf, Node, topological_order
from ..core.primitive import INDEX, NODE, OUT, REST, P
from ..core.source import show
from ..core.tensor import NUMBERS, Tensor, method, new_tensor, wrap
from ..core.words import shown
from ..ops.creation import ones_like, zeros
from ..ops.elementwise import add
from ..ops.view import unbroadcast


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


_contribution = tuple.__new__  # half the price of calling the class
Walk = Generator[Contribution, "Tensor | None", dict[Node, Tensor]]
HOOKS: Any = weakref.WeakKeyDictionary()  # node -> list of functions of its gradient
RETAINED: Any = weakref.WeakValueDictionary()  # by id: tensors whose .grad is filled although an operation made them
ACCUMULATING = new_lock()  # several threads may add to the gradient of one leaf


def walk(
    roots: Sequence[Node],
    cotangents: Sequence[Tensor],
    wanted: Iterable[Node] | None = None,
    retain: bool = False,
    announced: bool = True,
    besides: Collection[Node] = (),
) -> Walk:
    """Go back from the roots, yielding each contribution; return the gradients of the leaves (or of `wanted`).

    Sending a tensor in answer to a contribution puts it in its place.  Only contributions on a path to a wanted node
    are computed.  `retain` keeps what the nodes saved, for another walk; nothing is yielded where nobody would look
    (`announced=False`).  `besides` are nodes whose gradients are returned as well as those of the leaves.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> y = x * x
    >>> for step in mg.autodiff.walk([y.node], [mg.ones(())]):
    ...     print(step.node.name, step.index, step.value.item())
    multiply 0 3.0
    multiply 1 3.0
    """
    pending: dict[Node, Any] = {}
    lent: set[Any] = set()  # references to tensors whose memory several nodes, or the caller, may hold; ids are reused
    for node, cotangent in zip(roots, cotangents):
        pending[node] = cotangent if node not in pending else pending[node] + cotangent
        lent.add(ref(_owner(cotangent)))
    order = topological_order(pending)
    targets = None if wanted is None else set(wanted)
    useful = None if targets is None else _leading_to(targets, order)
    found: dict[Node, Tensor] = {}
    mode = current_mode()
    recording, project = mode.grad, P.project
    for node in reversed(order):
        g = pending.pop(node, None)
        if g is None:
            continue
        if HOOKS.data and node in HOOKS:
            g = _after_hooks(node, g)
            lent.add(ref(_owner(g)))
        if (node.op is None or node in besides) if targets is None else (node in targets):
            if g.device is not node.device:
                raise _moved(node, g)
            passed_on = announced or node.op is not None or ref(_owner(g)) in lent
            found[node] = g.copy() if passed_on else _own(g)
        if node.op is project:
            _gather_results(node, g, pending)
            continue
        saved = node.saved
        if saved is not None:
            if saved is FREED:
                raise _freed(node)
            if saved.__class__ is not tuple:  # a checkpoint: the values are computed again
                saved.restore()
                saved = node.saved
            if LastWrite.time > node.serial:
                check_unchanged(node)
        inputs, rules = node.inputs, node.plan.rules
        for index, function, reads, only in rules:
            source = inputs[index]
            if useful is not None and source not in useful:
                continue
            if recording or mode.interpreter is not None:  # which may want to know whose gradient it is
                with switch(mode, origin=node):
                    value = function(g, *[read(node, slot, recording, index) for slot in reads])
            elif not reads:
                value = function(g)
            elif only is None:
                value = function(g, *[read(node, slot, False, index) for slot in reads])
            elif (inputs[only] if only >= 0 else node).__class__ in NUMBERS:
                value = function(g, inputs[only])
            else:  # a handle on what was saved, without history: `read`, without the call
                tensor = new_tensor(Tensor)
                tensor._data, tensor.device, tensor.alias, tensor._grad = saved[only], node.device, None, None
                tensor.node, tensor.tracked = None, 0
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
            if announced:
                replaced = yield _contribution(Contribution, (node, index, g, value, so_far))
                if replaced is not None:
                    value = _replacement(source, replaced, "what was sent to the walk")
            pending[source] = value if so_far is None else add(so_far, value)
        if saved is not None and not retain:
            node.saved = FREED
    return found


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


def _owner(tensor: Tensor) -> Tensor:
    """The tensor whose memory this one looks at."""
    alias = tensor.alias
    return tensor if alias is None or alias.base is None else alias.base


def _own(g: Tensor) -> Tensor:
    """A gradient that nobody else holds, as a tensor to keep: a view of all of its owner's elements needs no copy."""
    if g.alias is None or g.alias.base is None:
        return g
    data = g._data
    whole = data.__class__ is g.device.ndarray and data.flags.c_contiguous and data.size == g.alias.base._data.size
    return wrap(data, g.device) if whole and not g.tracked else g.copy()


def _gather_results(node: Node, g: Tensor, pending: dict[Node, Any]) -> None:
    """The gradient of one of several results: the node that has them all is given a list, zeros where nothing came."""
    whole, index = node.inputs[0], node.attrs["index"]
    parts = pending.get(whole)
    if parts is None:
        parts = pending[whole] = [zeros(s, d, node.device) for s, d in zip(whole.shape, whole.dtype)]
    parts[index] = parts[index] + g


def _leading_to(targets: set[Node], order: list[Node]) -> set[Any]:
    """The nodes on a path from a target to a root."""
    useful: set[Any] = set(targets)
    for node in order:
        if node not in useful and any(node.inputs[rule.index] in useful for rule in node.plan.rules):
            useful.add(node)
    return useful


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


def _freed(node: Node) -> GradError:
    return GradError(
        f"backward a second time through {node.name}, made at {show(node.where)}: what it had saved was let go",
        hint="backward(retain_graph=True) the first time, or compute the loss again",
    )


def _moved(node: Node, g: Tensor) -> DeviceError:
    return DeviceError(
        f"the gradient of a tensor on {node.device}, made at {show(node.where)}, has come out on {g.device}",
        expect="a hook or a gradient rule of yours gives an answer on the device of what it was given",
        hint=f'g.to("{node.device}")',
    )


def _after_hooks(node: Node, g: Tensor) -> Tensor:
    for hook in list(HOOKS[node]):  # a hook may remove itself
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
            g = _replacement(node, answer, "the answer of a hook")
    return g


def _replacement(node: Node, g: Any, what: str) -> Tensor:
    """A gradient that came from outside, for the one of `node`, in its dtype."""
    if not isinstance(g, Tensor):
        raise GradError(f"{what} takes the place of a gradient: it is a tensor or None, not a {type(g).__name__}",
                        hint="mg.asarray(...) makes a tensor")  # fmt: skip
    if g.shape != node.shape:
        raise GradError(
            f"{what} takes the place of the gradient of {node.name}, made at {show(node.where)}, and has another shape",
            expect=str(node.shape), actual=str(g.shape),
        )  # fmt: skip
    if g.device is not node.device:
        raise _moved(node, g)
    return g if g.dtype is node.dtype else g.astype(node.dtype)


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
                            hint="mg.asarray(...) makes a tensor")  # fmt: skip
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
    interpreter = current_mode().interpreter
    if interpreter is not None:
        outs, ins = [interpreter.stand_in(t) for t in outs], [interpreter.stand_in(t) for t in ins]
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
    interpreter = current_mode().interpreter
    if interpreter is not None:
        tensor = interpreter.stand_in(tensor)
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
