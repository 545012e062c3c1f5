"""Gradients, batches and forward mode of `cond`, `while_loop` and `scan`, by the same primitives with other functions.

For these rules, a while_loop is a scan without inputs for each iteration, whose condition decides when it ends.

The gradient of a loop is a loop that runs backwards.  The forward loop keeps the carry of each iteration, and a scan
also keeps matrix products.  The backward loop computes everything else of the iteration again from these values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autodiff.batching import lent_rows
from ...core.dtypes import int64
from ...core.emit import emit
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor
from ...ops.creation import arange, zeros, zeros_like
from ...ops.elementwise import where
from ...ops.reduce import any as any_of
from ...ops.view import broadcast_to, moveaxis, reshape
from ...support.errors import GradError
from ...support.source import show
from ..functions.derivatives import floats_of
from ..functions.function import TracedFunction
from .body import Draw, function_of, is_zero
from .recorded import Like, emit_loop, one_of

Attrs = dict[str, Any]
Pushed = tuple[tuple[Tensor, ...], list[Tensor | None]]


class Loop:
    """The parts of a loop.  The body has `consts` fixed inputs, `carries` carried ones, and those of each iteration."""

    def __init__(self, attrs: Attrs, inputs: Sequence[Any]) -> None:
        self.attrs, self.body, self.consts = attrs, attrs["body"], attrs["consts"]
        self.test: TracedFunction | None = attrs.get("condition")
        self.first = int(attrs.get("counted", False))  # inputs before these: the number of iterations, if counted
        self.carries = attrs.get("carries", len(inputs) - self.consts)
        self.length = attrs["length"] if self.test is None else attrs["limit"]
        # Results between the carry and the kept carries: those of each iteration, or the number of iterations.
        self.between = len(self.body.outputs) - self.carries if self.test is None else 1

    def given(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The inputs in three parts: fixed, carried, and those of each iteration."""
        begin = self.first + self.consts
        end = begin + self.carries
        return list(inputs[self.first : begin]), list(inputs[begin:end]), list(inputs[end:])

    def made(self, results: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The results in three parts: the carry, those in between, and the kept carries."""
        end = self.carries + self.between
        return list(results[: self.carries]), list(results[self.carries : end]), list(results[end:])

    def again(self, inputs: Sequence[Tensor], body: TracedFunction, **changes: Any) -> tuple[Tensor, ...]:
        """A loop like this one, with another body."""
        return emit_loop(inputs, **(self.attrs | {"body": body} | changes))


def _both(attrs: Attrs, made: Callable[[TracedFunction], TracedFunction]) -> Attrs:
    """The attributes of a cond with other branches, made from these."""
    return attrs | {"then": made(attrs["then"]), "otherwise": made(attrs["otherwise"])}


# Gradients ------------------------------------------------------------------------------------------------------------


def once(
    body: TracedFunction, g: Any, node: Node, index: int, compute: Callable[[], dict[int, Tensor]]
) -> Tensor | None:
    """The gradient of one input.  All are computed when the backward pass reads the first one."""
    asked, found = body.pulled
    if asked is not g:
        found = compute()
    body.pulled = (None, None) if index == node.plan.rules[-1].index else (g, found)
    answer: Tensor | None = found.get(index)
    return answer


def _asked(node: Node, first: int) -> list[int]:
    """The inputs that can have a gradient, counted from number `first`."""
    asked = [rule.index for rule in node.plan.rules if node.inputs[rule.index].dtype.kind == "f"]
    return [index - first for index in asked if index >= first]


def gradient_of_cond(g: Any, pred: Tensor, inputs: Sequence[Tensor], node: Node, index: int) -> Tensor | None:
    """A cond between the gradients of the branches."""
    then, otherwise = node.attrs["then"], node.attrs["otherwise"]

    def compute() -> dict[int, Tensor]:
        wanted = _asked(node, 1)
        roots = [i for i in floats_of(then.outputs) if not is_zero(g[i])]
        unused = then.gradient_by(wanted, roots).unused & otherwise.gradient_by(wanted, roots).unused
        wanted = [i for i in wanted if i not in unused]
        if not wanted:
            return {}
        branches = _both(node.attrs, lambda branch: branch.gradient_by(wanted, roots))
        found = emit(P.cond, pred, *inputs, *[g[i] for i in roots], **branches)
        return {i + 1: part for i, part in zip(wanted, found)}

    return once(then, g, node, index, compute)


def gradient_of_loop(g: Any, inputs: Sequence[Tensor], out: Sequence[Tensor], node: Node, index: int) -> Tensor | None:
    """A loop over the iterations in reverse."""
    loop = Loop(node.attrs, inputs)
    if loop.length is None:
        raise GradError(
            f"the while_loop at {show(node.where)} has no gradient in a trace",
            expect="a bound on the number of iterations: memory for the value of each is allocated in advance",
            hint="while_loop(..., max_steps=n), fori_loop or scan; or eager mode, where Python loops; "
            "or x.detach() where no gradient should flow",
        )

    def compute() -> dict[int, Tensor]:
        return _pulled_back(loop, _asked(node, loop.first), inputs, g, out)

    return once(loop.body, g, node, index, compute)


def _pulled_back(
    loop: Loop, asked: Sequence[int], inputs: Sequence[Tensor], g: Sequence[Tensor], out: Sequence[Tensor]
) -> dict[int, Tensor]:
    """The gradients of the inputs `asked`, by number.

    The backward loop carries the gradient of the carry and the sums of the gradients of the fixed inputs.  In each
    iteration it reads the kept carry, and the gradient that comes to the kept carry from elsewhere.  It also reads the
    results and products that the forward loop stacks, and does not compute them again.
    """
    body, consts, carries = loop.body, loop.consts, loop.carries
    (fixed, _, xs), (g_carry, g_ys, g_kept) = loop.given(inputs), loop.made(g)
    _, rounds, kept = loop.made(out)
    results: dict[Node, Tensor] = {}
    if loop.test is None:
        results = {output._data.node: stack for output, stack in zip(body.outputs[carries:], rounds)}
        rounds = list(inputs[: loop.first])
    moving = floats_of(body.outputs[:carries])
    ys = [i for i in floats_of(body.outputs) if i >= carries and not is_zero(g_ys[i - carries])]
    elsewhere = [i for i in moving if not is_zero(g_kept[i])]
    through = [consts + i for i in moving]
    fixed_or_each = [i for i in asked if not consts <= i < consts + carries]
    unused = body.gradient_by([*fixed_or_each, *through], [*moving, *ys]).unused
    summed = [i for i in fixed_or_each if i < consts and i not in unused]
    stacked = [i for i in fixed_or_each if i >= consts and i not in unused]
    gradient = body.gradient_by([*summed, *through, *stacked], [*moving, *ys])
    known = gradient.reads(list(results))

    def back(given: list[Tensor]) -> list[Tensor]:
        groups = fixed, moving, summed, kept, xs, ys, elsewhere, known
        same, g_now, totals, before, x, g_y, more, values = _grouped(given, groups)
        found = list(gradient.inlined([*same, *before, *x, *g_now, *g_y, *values], known=known))
        added = [total + part for total, part in zip(totals, found)]
        carried = found[len(summed) : len(summed) + len(moving)]
        for i, part in zip(elsewhere, more):
            carried[moving.index(i)] = carried[moving.index(i)] + part
        return [*carried, *added, *found[len(summed) + len(moving) :]]

    starts = [*[g_carry[i] for i in moving], *[zeros_like(fixed[i]) for i in summed]]
    each = [*kept, *xs, *[g_ys[i - carries] for i in ys], *[g_kept[i] for i in elsewhere]]
    each += [results[node] for node in known]
    found = emit_loop(
        [*rounds, *fixed, *starts, *each],
        body=function_of(f"the gradient of {body.what}", back, [*fixed, *starts, *map(one_of, each)]),
        consts=consts, carries=len(starts), length=loop.length, reverse=not loop.attrs.get("reverse", False),
        counted=bool(rounds), draws=tuple([_backwards(draw, loop.length) for draw in loop.attrs.get("draws", ())]),
    )
    return {i + loop.first: r for i, r in zip([*through, *summed, *stacked], found) if i in asked}


def _backwards(draw: Draw, length: int) -> Draw:
    """The random numbers of each iteration, from the last to the first."""
    generator, key, block, step = draw
    return generator, key, block + step * max(length - 1, 0), -step


# Batches --------------------------------------------------------------------------------------------------------------


def _repeated(tensor: Tensor, many: bool, size: int) -> Tensor:
    return tensor if many else broadcast_to(tensor, (size, *tensor.shape))


def _stack_of_examples(stack: Tensor, many: bool, size: int) -> Tensor:
    """Move the batch axis in front of the axis of iterations."""
    return moveaxis(stack, 0, 1) if many else _repeated(stack, False, size)


def _column(of_examples: Tensor, ndim: int) -> Tensor:
    """A number for each example, shaped to broadcast with examples of `ndim` dimensions."""
    return reshape(of_examples, (of_examples.shape[0], *[1] * (ndim - 1)))


def batch_cond(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """One choice for all examples; where they differ, run both branches and choose for each example."""
    pred, rest, m_rest = inputs[0], list(inputs[1:]), many[1:]
    every = [True] * len(attrs["then"].outputs)
    if not many[0]:
        wide = _both(attrs, lambda branch: function_of(branch.what, branch.batched(m_rest, every), rest))
        found: tuple[Tensor, ...] = emit(P.cond, *inputs, **wide)
        return found
    starts = {generator: (key, block) for generator, key, block, _ in attrs["draws"]}

    def of_all(branch: TracedFunction, taken: Tensor) -> list[Tensor]:
        given = [_of_those(t, m, taken) for t, m in zip(rest, m_rest)]
        if any(m_rest):
            return list(branch.batched(m_rest, every, starts)(given))
        return [_repeated(t, False, size) for t in branch.inlined(given, starts)]

    both = zip(of_all(attrs["then"], pred), of_all(attrs["otherwise"], ~pred))  # type: ignore[operator]
    return tuple([where(_column(pred, a.ndim), a, b) for a, b in both])


def _of_those(x: Tensor, many: bool, taken: Tensor) -> Tensor:
    """The input of a branch that only the `taken` examples use: no gradient comes back from the others."""
    if x.dtype.kind != "f" or not taken.shape[0]:
        return x
    return lent_rows(x, taken) if many else where(any_of(taken), x, x.detach())  # type: ignore[attr-defined]


def batch_loop(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """One loop whose body works on all examples at once.

    Where examples end in different iterations, the loop runs until the last one ends; the others stay unchanged.
    """
    loop = Loop(attrs, inputs)
    if loop.first and many[0]:
        return _batch_of_counts(loop, inputs, many, size)
    body, test, carries = loop.body, loop.test, loop.carries
    (fixed, carry, xs), (m_fixed, m_before, m_xs) = loop.given(inputs), loop.given(many)
    m_carry = _settled(body, m_fixed, m_before, m_xs, size)
    differ = test is not None and test.depends([*m_fixed, *m_carry])[0]
    if differ:
        m_carry = [True] * carries
    carry = [t if now == before else _repeated(t, False, size) for t, before, now in zip(carry, m_before, m_carry)]
    xs = [moveaxis(x, 0, 1) if m else x for x, m in zip(xs, m_xs)]
    m_ys = [True] * (len(body.outputs) - carries)
    stepped = body.batched([*m_fixed, *m_carry, *m_xs], [*m_carry, *m_ys])
    asked = None if test is None else test.batched([*m_fixed, *m_carry], [differ])

    def going(given: list[Tensor]) -> list[Tensor]:
        assert asked is not None
        verdict = asked(given[: loop.consts + carries])
        return [any_of(verdict[0])] if differ else list(verdict)

    def step(given: list[Tensor]) -> list[Tensor]:
        if not differ or asked is None:
            return list(stepped(given))
        *now, rounds = given
        goes = asked(now)[0]
        new = stepped([_of_those(t, m, goes) if m else t for t, m in zip(now, [*m_fixed, *m_carry])])
        stays = [where(_column(goes, n.ndim), n, old) for n, old in zip(new, now[loop.consts :])]
        return [*stays, rounds + goes.astype(rounds.dtype)]

    if differ:
        carry.append(zeros((size,), int64, inputs[0].device))  # the number of iterations of each example so far
    likes = [*fixed, *carry, *map(one_of, xs)]
    condition = {} if test is None else {"condition": function_of(test.what, going, likes)}
    found = loop.again([*inputs[: loop.first], *fixed, *carry, *xs], function_of(body.what, step, likes), **condition)
    carried, between, rest = loop.made(found)
    kept = rest[differ : differ + carries] if attrs["keep"] else []
    if test is None:
        between = [_stack_of_examples(y, True, size) for y in between]
    else:
        between = [_repeated(between[0], differ, size)]
    return (
        *[_repeated(t, m, size) for t, m in zip(carried, m_carry)], *between,
        *[_stack_of_examples(t, m, size) for t, m in zip(kept, m_carry)],
    )


def _settled(
    body: TracedFunction, consts: Sequence[bool], carry: list[bool], each: Sequence[bool], size: int
) -> list[bool]:
    """Which parts of the carry differ between examples in some iteration."""
    if not size:
        return [True] * len(carry)
    while True:
        after = body.depends([*consts, *carry, *each])[: len(carry)]
        now = [a or b for a, b in zip(carry, after)]
        if now == carry:
            return now
        carry = now


def _batch_of_counts(loop: Loop, inputs: Sequence[Tensor], many: Sequence[bool], size: int) -> tuple[Tensor, ...]:
    """The same where examples have different numbers of iterations: as many as the longest, idle in the others."""
    body, consts, carries, length = loop.body, loop.consts, loop.carries, loop.length
    counts = inputs[0]

    def step(given: list[Tensor]) -> list[Tensor]:
        rounds, number = given[0], given[-1]
        found = body.inlined(given[1:-1])
        idle = [*given[1 + consts : 1 + consts + carries], *[zeros_like(y) for y in found[carries:]]]
        return [where(number < rounds, new, old) for new, old in zip(found, idle)]

    one = [one_of(t) if m else Like(t.shape, t.dtype, t.device) for t, m in zip(inputs[1:], many[1:])]
    count, number = Like((), int64, counts.device), arange(length, device=counts.device)
    likes = [count, *one[: consts + carries], *map(one_of, one[consts + carries :]), count]
    wide = loop.attrs | {"body": function_of(body.what, step, likes), "consts": consts + 1}
    longest = counts.max() if size else counts.sum()
    return batch_loop([longest, *inputs, number], [False, *many, False], size, wide)


# Forward mode ---------------------------------------------------------------------------------------------------------


def _tangents(primals: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """A tangent for each float."""
    return [zeros_like(p) if t is None else t for p, t in zip(primals, tangents) if p.dtype.kind == "f"]


def _spread(outputs: Sequence[Any], moved: Sequence[Tensor]) -> list[Tensor | None]:
    """The tangents of all outputs, None for those that are not floats."""
    left = iter(moved)
    return [next(left) if o.dtype.kind == "f" else None for o in outputs]


def _grouped(given: Sequence[Tensor], groups: Sequence[Sequence[Any]]) -> list[list[Tensor]]:
    """The tensors, split into groups of the same lengths."""
    left = iter(given)
    return [[next(left) for _ in group] for group in groups]


def push_cond(primals: Sequence[Tensor], tangents: Sequence[Tensor | None], attrs: Attrs) -> Pushed:
    """A choice between branches that compute values and tangents."""
    rest, count = list(primals[1:]), len(primals) - 1
    moving = _tangents(rest, tangents[1:])

    def both(branch: TracedFunction) -> TracedFunction:
        def run(given: list[Tensor]) -> list[Tensor]:
            outputs, moved = branch.pushed(given[:count], given[count:])
            return [*outputs, *moved]

        return function_of(branch.what, run, [*rest, *moving])

    found = emit(P.cond, primals[0], *rest, *moving, **_both(attrs, both))
    outs = found[: len(attrs["then"].outputs)]
    return outs, _spread(outs, found[len(outs) :])


def push_loop(primals: Sequence[Tensor], tangents: Sequence[Tensor | None], attrs: Attrs) -> Pushed:
    """A loop that carries values and tangents, and returns both in each iteration."""
    loop = Loop(attrs, primals)
    body, test, carries = loop.body, loop.test, loop.carries
    fixed, carry, xs = loop.given(primals)
    t_fixed, t_carry, t_xs = map(_tangents, (fixed, carry, xs), loop.given(tangents))
    groups = fixed, t_fixed, carry, t_carry, xs, t_xs
    moving = len(t_carry)

    def asked(given: list[Tensor]) -> list[Tensor]:
        c, _, now, *_ = _grouped(given, groups)
        return list(test.inlined([*c, *now])) if test is not None else []

    def step(given: list[Tensor]) -> list[Tensor]:
        c, tc, now, tn, x, tx = _grouped(given, groups)
        outputs, moved = body.pushed([*c, *now, *x], [*tc, *tn, *tx])
        return [*outputs[:carries], *moved[:moving], *outputs[carries:], *moved[moving:]]

    likes = [*fixed, *t_fixed, *carry, *t_carry, *map(one_of, (*xs, *t_xs))]
    if test is None:
        changes: Attrs = {"carries": carries + moving}
    else:
        changes = {"condition": function_of(test.what, asked, likes)}
    inputs = [*primals[: loop.first], *[t for group in groups for t in group]]
    found = loop.again(inputs, function_of(body.what, step, likes), consts=len(fixed) + len(t_fixed), **changes)
    sizes = [carries, moving, loop.between, len(floats_of(body.outputs[carries:]))]
    parts = _grouped(found, [range(n) for n in (*sizes, *([carries, moving] if attrs["keep"] else []))])
    outs, moved = [], []
    for values, of_floats in zip(parts[::2], parts[1::2]):
        outs += values
        moved += _spread(values, of_floats)
    return tuple(outs), moved
