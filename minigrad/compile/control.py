"""Branches and loops where operations are only recorded: one node each, and what becomes of it.

`cond`, `while_loop` and `scan` are what the public functions of these names call in a trace.  The functions that they
are given are traced once, into closed functions, which are attributes of the node.  What follows them are the rules of
the three primitives: their gradients, their batched forms and their forward-mode forms, which are made of the same
three primitives on other closed functions.

The gradient of a loop is a loop backwards.  The loop keeps what it carried into each round, and going back a round is
computed again from that: a value of each round for the carry, in place of one for each operation of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..autodiff.control import Values, carry_and_result, predicate, same_results
from ..core.dtypes import int64
from ..core.emit import emit
from ..core.errors import GradError, TraceError
from ..core.mode import current_mode
from ..core.node import Node
from ..core.primitive import P
from ..core.source import show
from ..core.tensor import Tensor
from ..ops.creation import arange, zeros, zeros_like
from ..ops.elementwise import where
from ..ops.reduce import any as any_of
from ..ops.view import broadcast_to, moveaxis, reshape
from .closed import Body, Closed, Draw, closed, draws_of, floats_of, is_zero, traced

Attrs = dict[str, Any]


# Making the nodes -----------------------------------------------------------------------------------------------------


def cond(test: Tensor, true_fun: Callable[..., Any], false_fun: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """One node for a choice between two functions."""
    chosen, other = Body("cond: true_fun"), Body("cond: false_fun")
    results: list[Values] = []

    def branch(function: Callable[..., Any]) -> Callable[[list[Tensor]], list[Tensor]]:
        def run(_: list[Tensor]) -> list[Tensor]:
            values = Values(function(*operands))
            results.append(values)
            return same_results(results[0], values) if len(results) > 1 else values.tensors

        return run

    outputs = traced(chosen, branch(true_fun), [])
    otherwise = traced(other, branch(false_fun), [])
    around = _around(chosen, other)
    then, instead = _closed(chosen, around, outputs), _closed(other, around, otherwise)
    if then.drawn != instead.drawn:
        raise TraceError(
            "cond: the branches draw different amounts of random numbers, and which one runs is not known yet",
            actual=f"true_fun {_blocks(then.drawn)}, false_fun {_blocks(instead.drawn)}",
            hint="draw them before the cond and give them to the branches",
        )
    found = emit(P.cond, test, *around, then=then, otherwise=instead, draws=draws_of(then.drawn))
    return results[0].rebuild(list(found[: len(outputs)]))


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Values, max_steps: int | None
) -> Any:
    """One node for a loop that ends when a condition does not hold any more."""
    test, body = Body("while_loop: cond_fun"), Body("while_loop: body_fun")

    def asked(given: list[Tensor]) -> list[Tensor]:
        return [predicate("while_loop: cond_fun", cond_fun(carry.rebuild(given)))]

    def stepped(given: list[Tensor]) -> list[Tensor]:
        return carry.again("while_loop", body_fun(carry.rebuild(given)))

    verdict = traced(test, asked, _arguments(test, "carry", carry.tensors))
    outputs = traced(body, stepped, _arguments(body, "carry", carry.tensors))
    around = _around(test, body)
    condition, again = _closed(test, around, verdict), _closed(body, around, outputs)
    if condition.drawn or again.drawn:
        raise TraceError(
            "while_loop: random numbers are drawn in a loop whose number of rounds is not known yet",
            hint="fori_loop or scan, which know it; or draw the numbers before the loop",
        )
    if max_steps is not None and not carry.tensors:
        max_steps = None  # nothing to keep
    found = _emit_while([*around, *carry.tensors], condition=condition, body=again, consts=len(around), limit=max_steps)
    return carry.rebuild(list(found[: len(carry.tensors)]))


def scan(
    name: str, f: Callable[[Any, Any], Any], carry: Values, xs: Values, length: int, reverse: bool
) -> tuple[Any, Any]:
    """One node for a loop over the first dimension of some tensors."""
    body = Body(f"{name}: the body")
    results: list[Values] = []

    def stepped(given: list[Tensor]) -> list[Tensor]:
        count = len(carry.tensors)
        new, y = carry_and_result(name, f(carry.rebuild(given[:count]), xs.rebuild(given[count:])))
        results.append(Values(y))
        return [*carry.again(name, new), *results[0].tensors]

    rows = [_Like(x.shape[1:], x.dtype, x.device) for x in xs.tensors]
    arguments = [*_arguments(body, "carry", carry.tensors), *_arguments(body, "x", rows)]
    outputs = traced(body, stepped, arguments)
    around = _around(body)
    function = _closed(body, around, outputs)
    found = _emit_scan(
        [*around, *carry.tensors, *xs.tensors], body=function, consts=len(around), carries=len(carry.tensors),
        length=length, reverse=reverse, counted=False, draws=draws_of(function.drawn, length),
    )  # fmt: skip
    last = list(found[: len(carry.tensors)])
    return carry.rebuild(last), results[0].rebuild(list(found[len(last) : len(outputs)]))


class _Like:
    """The shape and dtype of an argument."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device


def _arguments(body: Body, name: str, likes: Sequence[Any]) -> list[Tensor]:
    return [body.argument(name, like) for like in likes]


def _around(*bodies: Body) -> list[Tensor]:
    """The tensors from around that any of them uses."""
    found = {id(entry.tensor): entry.tensor for body in bodies for entry in body.captured.values()}
    return list(found.values())


def _closed(body: Body, around: Sequence[Tensor], outputs: Sequence[Tensor]) -> Closed:
    """A closed function that takes all of `around`; one without results gives a number that nobody reads."""
    for tensor in around:
        body.stand_in(tensor)
    return body.closed(around, outputs or traced(body, lambda _: [zeros(())], []))


def _blocks(drawn: Mapping[Any, int]) -> str:
    return f"{sum(drawn.values())} blocks"


def _emit_while(inputs: Sequence[Tensor], **attrs: Any) -> tuple[Tensor, ...]:
    """The node, which keeps what it carried in each round if somebody may want the gradient, and there is a limit."""
    keep = attrs.pop("keep", False) or (attrs["limit"] is not None and _differentiated(inputs))
    found: tuple[Tensor, ...] = emit(P.while_loop, *inputs, keep=keep, **attrs)
    return found


def _emit_scan(inputs: Sequence[Tensor], **attrs: Any) -> tuple[Tensor, ...]:
    keep = attrs.pop("keep", False) or _differentiated(inputs)
    found: tuple[Tensor, ...] = emit(P.scan, *inputs, keep=keep, **attrs)
    return found


def _differentiated(inputs: Sequence[Tensor]) -> bool:
    return current_mode().grad and any(t.tracked for t in inputs)


# Gradients ------------------------------------------------------------------------------------------------------------


def once(body: Closed, g: Any, node: Node, index: int, compute: Callable[[], dict[int, Tensor]]) -> Tensor | None:
    """The gradient of one input, of those that are computed together when a walk asks for the first of them."""
    asked, found = body.pulled
    if asked is not g:
        found = compute()
    body.pulled = (None, None) if index == node.plan.rules[-1].index else (g, found)
    answer: Tensor | None = found.get(index)
    return answer


def gradient_of_cond(g: Any, pred: Tensor, inputs: Sequence[Tensor], node: Node, index: int) -> Tensor | None:
    """A cond between the gradients of the branches."""
    then, otherwise = node.attrs["then"], node.attrs["otherwise"]

    def compute() -> dict[int, Tensor]:
        wanted = [i - 1 for i in _asked(node, 1)]
        roots = [i for i in floats_of(then.outputs) if not is_zero(g[i])]
        unused = then.gradient_by(wanted, roots).unused & otherwise.gradient_by(wanted, roots).unused
        wanted = [i for i in wanted if i not in unused]
        if not wanted:
            return {}
        branches = then.gradient_by(wanted, roots), otherwise.gradient_by(wanted, roots)
        found = emit(
            P.cond, pred, *inputs, *[g[i] for i in roots], then=branches[0], otherwise=branches[1],
            draws=node.attrs["draws"],
        )  # fmt: skip
        return {i + 1: part for i, part in zip(wanted, found)}

    return once(then, g, node, index, compute)


def gradient_of_while(g: Any, inputs: Sequence[Tensor], out: Sequence[Tensor], node: Node, index: int) -> Any:
    """The rounds backwards, as many as there were."""
    attrs = node.attrs
    if attrs["limit"] is None:
        raise GradError(
            f"there is no gradient of the while_loop at {show(node.where)} where operations are only recorded",
            expect="room for what each round keeps has to be made before, and how many rounds there will be is unknown",
            hint="while_loop(..., max_steps=n), fori_loop or scan, which know it; or eager mode, where Python loops; "
            "or x.detach() where no gradient is meant to flow",
        )

    def compute() -> dict[int, Tensor]:
        count = len(inputs) - attrs["consts"]
        loop = _Loop(attrs["body"], attrs["consts"], count, attrs["limit"], False, ())
        return loop.pulled_back(
            _asked(node, 0), inputs, g[:count], [], g[count + 1 :], out[count + 1 :], rounds=out[count]
        )

    return once(attrs["body"], g, node, index, compute)


def gradient_of_scan(g: Any, inputs: Sequence[Tensor], out: Sequence[Tensor], node: Node, index: int) -> Any:
    """The rounds backwards."""
    attrs = node.attrs
    body, count = attrs["body"], attrs["carries"]

    def compute() -> dict[int, Tensor]:
        first = int(attrs["counted"])
        loop = _Loop(body, attrs["consts"], count, attrs["length"], attrs["reverse"], attrs["draws"])
        ys = len(body.outputs)
        found = loop.pulled_back(
            [i - first for i in _asked(node, first)], inputs[first:], g[:count], g[count:ys], g[ys:], out[ys:],
            rounds=inputs[0] if first else None,
        )  # fmt: skip
        return {i + first: part for i, part in found.items()}

    return once(body, g, node, index, compute)


def _asked(node: Node, first: int) -> list[int]:
    """The inputs, from number `first`, whose gradients a walk may ask for."""
    return [rule.index for rule in node.plan.rules if rule.index >= first and node.inputs[rule.index].dtype.kind == "f"]


class _Loop:
    """A loop to go back through: its body of `consts` fixed inputs, `carries` carried ones and those of each round."""

    def __init__(
        self, body: Closed, consts: int, carries: int, length: int, reverse: bool, draws: Sequence[Draw]
    ) -> None:  # fmt: skip
        self.body, self.consts, self.carries = body, consts, carries
        self.length, self.reverse, self.draws = length, reverse, draws

    def pulled_back(
        self, asked: Sequence[int], inputs: Sequence[Tensor], g_carry: Sequence[Tensor], g_ys: Sequence[Tensor],
        g_kept: Sequence[Tensor], kept: Sequence[Tensor], rounds: Tensor | None,
    ) -> dict[int, Tensor]:  # fmt: skip
        """The gradients of the inputs that are asked for, by number.

        The loop back carries the gradient of the carry, and adds up those of the fixed inputs; it is given what was
        carried into each round, and what comes to that from elsewhere.
        """
        body, consts, carries = self.body, self.consts, self.carries
        fixed, xs = list(inputs[:consts]), list(inputs[consts + carries :])
        moving = floats_of(body.outputs[:carries])
        ys = [i for i in floats_of(body.outputs) if i >= carries and not is_zero(g_ys[i - carries])]
        elsewhere = [i for i in moving if not is_zero(g_kept[i])]
        through = [consts + i for i in moving]
        fixed_or_each = [i for i in asked if not consts <= i < consts + carries]
        unused = body.gradient_by([*fixed_or_each, *through], [*moving, *ys]).unused
        summed = [i for i in fixed_or_each if i < consts and i not in unused]
        stacked = [i for i in fixed_or_each if i >= consts and i not in unused]
        gradient = body.gradient_by([*summed, *through, *stacked], [*moving, *ys])

        def back(given: list[Tensor]) -> list[Tensor]:
            parts = iter(given)
            consts_, g, totals, before, x, g_y, more = [
                [next(parts) for _ in group] for group in (fixed, moving, summed, kept, xs, ys, elsewhere)
            ]
            found = list(gradient.inlined([*consts_, *before, *x, *g, *g_y]))
            added = [total + part for total, part in zip(totals, found)]
            carried = found[len(summed) : len(summed) + len(moving)]
            for i, part in zip(elsewhere, more):
                carried[moving.index(i)] = carried[moving.index(i)] + part
            return [*carried, *added, *found[len(summed) + len(moving) :]]

        starts = [*[g_carry[i] for i in moving], *[zeros_like(fixed[i]) for i in summed]]
        each = [*kept, *xs, *[g_ys[i - carries] for i in ys], *[g_kept[i] for i in elsewhere]]
        rows = [_Like(t.shape[1:], t.dtype, t.device) for t in each]
        results = _emit_scan(
            [*([] if rounds is None else [rounds]), *fixed, *starts, *each],
            body=closed(f"the gradient of {body._body.what}", back, [*fixed, *starts, *rows]),
            consts=consts, carries=len(starts), length=self.length, reverse=not self.reverse,
            counted=rounds is not None, draws=tuple([self._backwards(draw) for draw in self.draws]),
        )  # fmt: skip
        numbers = [*through, *summed, *stacked]
        return {i: r for i, r in zip(numbers, results) if i in asked}

    def _backwards(self, draw: Draw) -> Draw:
        """The same random numbers for each round, from the last to the first."""
        generator, key, block, step = draw
        return generator, key, block + step * max(self.length - 1, 0), -step


# Batches --------------------------------------------------------------------------------------------------------------


def _repeated(tensor: Tensor, many: bool, size: int) -> Tensor:
    return tensor if many else broadcast_to(tensor, (size, *tensor.shape))


def batch_cond(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """A choice for all examples, or, where they differ, both branches and a choice for each."""
    then, otherwise, rest = attrs["then"], attrs["otherwise"], list(inputs[1:])
    every = [True] * len(then.outputs)
    if not many[0]:
        likes = [_example(t, m) for t, m in zip(rest, many[1:])]
        branches = [
            closed(f._body.what, f.batched(many[1:], every, size), [_many(t, m, size) for t, m in zip(likes, many[1:])])
            for f in (then, otherwise)
        ]
        found: tuple[Tensor, ...] = emit(
            P.cond, *inputs, then=branches[0], otherwise=branches[1], draws=attrs["draws"]
        )
        return found
    starts = {generator: (key, block) for generator, key, block, _ in attrs["draws"]}
    both = [_side_by_side(f, rest, many[1:], size, starts) for f in (then, otherwise)]
    return tuple([where(_column(inputs[0], a.ndim), a, b) for a, b in zip(*both)])


def _side_by_side(
    function: Closed, tensors: Sequence[Tensor], many: Sequence[bool], size: int, starts: Any
) -> list[Tensor]:
    """The results of a closed function for all examples, written out here."""
    from ..autodiff.batching import vmap

    if not any(many):
        return [_repeated(t, False, size) for t in function.inlined(tensors, starts)]
    axes = tuple([0 if m else None for m in many])
    return list(vmap(lambda *xs: function.inlined(xs, starts), in_axes=axes)(*tensors))


def _example(tensor: Tensor, many: bool) -> _Like:
    return _Like(tensor.shape[1:] if many else tensor.shape, tensor.dtype, tensor.device)


def _many(like: Any, many: bool, size: int) -> _Like:
    return _Like((size, *like.shape) if many else like.shape, like.dtype, like.device)


def _settled(body: Closed, consts: Sequence[bool], carry: list[bool], each: Sequence[bool], size: int) -> list[bool]:
    """Which parts of the carry differ from example to example, in some round."""
    if not size:
        return [True] * len(carry)
    while True:
        after = body.depends([*consts, *carry, *each])[: len(carry)]
        now = [a or b for a, b in zip(carry, after)]
        if now == carry:
            return now
        carry = now


def batch_scan(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """One loop whose body works on all examples at once."""
    if attrs["counted"] and many[0]:
        return _batch_of_counts(inputs, many, size, attrs)
    body, first, carries = attrs["body"], int(attrs["counted"]), attrs["carries"]
    begin = first + attrs["consts"]
    fixed, xs = list(inputs[first:begin]), list(inputs[begin + carries :])
    m_fixed, m_xs = list(many[first:begin]), list(many[begin + carries :])
    m_carry = _settled(body, m_fixed, list(many[begin : begin + carries]), m_xs, size)
    carry = [
        t if now == before else _repeated(t, False, size)
        for t, before, now in zip(inputs[begin:], many[begin:], m_carry)
    ]
    xs = [moveaxis(x, 0, 1) if m else x for x, m in zip(xs, m_xs)]
    every = [*m_fixed, *m_carry, *m_xs]
    kept = [*m_carry, *[True] * (len(body.outputs) - carries)]
    likes = [*fixed, *carry, *[_Like(x.shape[1:], x.dtype, x.device) for x in xs]]
    wide = closed(body._body.what, body.batched(every, kept, size), likes) if any(every) else body
    found = _emit_scan([*inputs[:first], *fixed, *carry, *xs], **(attrs | {"body": wide}))
    outs = list(found[: len(body.outputs) + (carries if attrs["keep"] else 0)])
    results = [_repeated(t, m, size) for t, m in zip(outs, m_carry)]
    return (*results, *[_stack_of_examples(t, m, size) for t, m in zip(outs[carries:], [*kept[carries:], *m_carry])])


def _batch_of_counts(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """The same where each example has so many rounds of its own: as many as any has, idle where it has fewer."""
    body, consts, carries, length = attrs["body"], attrs["consts"], attrs["carries"], attrs["length"]
    rest = list(inputs[1:])

    def step(given: list[Tensor]) -> list[Tensor]:
        rounds, number = given[0], given[-1]
        found = body.inlined(given[1:-1])
        idle = [*given[1 + consts : 1 + consts + carries], *[zeros_like(y) for y in found[carries:]]]
        return [where(number < rounds, new, old) for new, old in zip(found, idle)]

    one = [_example(t, m) for t, m in zip(rest, many[1:])]
    each = [_Like(x.shape[1:], x.dtype, x.device) for x in one[consts + carries :]]
    count, number = _Like((), int64, inputs[0].device), arange(length, device=inputs[0].device)
    likes = [count, *one[: consts + carries], *each, count]
    wide = attrs | {"body": closed(body._body.what, step, likes), "consts": consts + 1}
    longest = inputs[0].max() if size else inputs[0].sum()
    return batch_scan([longest, *inputs, number], [False, *many, False], size, wide)


def _stack_of_examples(stack: Tensor, many: bool, size: int) -> Tensor:
    """A stack of rounds of examples, as one of examples of rounds."""
    return moveaxis(stack, 0, 1) if many else _repeated(stack, False, size)


def batch_while(inputs: Sequence[Tensor], many: Sequence[bool], size: int, attrs: Attrs) -> tuple[Tensor, ...]:
    """One loop for all examples; where they end in different rounds, until the last does: what has ended stays."""
    test, body, consts = attrs["condition"], attrs["body"], attrs["consts"]
    fixed, m_fixed = list(inputs[:consts]), list(many[:consts])
    m_carry = _settled(body, m_fixed, list(many[consts:]), [], size)
    differ = test.depends([*m_fixed, *m_carry])[0]
    if differ:
        m_carry = [True] * len(m_carry)
    carry = [
        t if now == before else _repeated(t, False, size)
        for t, before, now in zip(inputs[consts:], many[consts:], m_carry)
    ]
    every = [*m_fixed, *m_carry]
    asked, stepped = test.batched(every, [differ], size), body.batched(every, m_carry, size)
    count, inputs = len(carry), [*fixed, *carry]

    def going(given: list[Tensor]) -> list[Tensor]:
        return [any_of(asked(given[: consts + count])[0])] if differ else asked(given)

    def step(given: list[Tensor]) -> list[Tensor]:
        if not differ:
            return stepped(given)
        old, rounds = given[consts : consts + count], given[-1]
        goes, new = asked([*given[:consts], *old])[0], stepped([*given[:consts], *old])
        return [*[where(_column(goes, n.ndim), n, o) for n, o in zip(new, old)], rounds + goes.astype(rounds.dtype)]

    if differ:
        inputs.append(zeros((size,), int64, inputs[0].device))  # how many rounds each example has had
    wide = {"condition": closed(test._body.what, going, inputs), "body": closed(body._body.what, step, inputs)}
    found = _emit_while(inputs, **(attrs | wide))
    results = [_repeated(t, m, size) for t, m in zip(found, m_carry)]
    rounds, behind = _repeated(found[count], differ, size), len(inputs) - consts + 1
    kept = found[behind : behind + count] if attrs["keep"] else ()
    return (*results, rounds, *[_stack_of_examples(t, m, size) for t, m in zip(kept, m_carry)])


def _column(of_examples: Tensor, ndim: int) -> Tensor:
    """A number for each example, so that it broadcasts with examples of other dimensions."""
    return reshape(of_examples, (of_examples.shape[0], *[1] * (ndim - 1)))


# Forward mode ---------------------------------------------------------------------------------------------------------

Pushed = tuple[tuple[Tensor, ...], list[Tensor | None]]


def _tangents(primals: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """A tangent for each float."""
    return [zeros_like(p) if t is None else t for p, t in zip(primals, tangents) if p.dtype.kind == "f"]


def _spread(outputs: Sequence[Any], moved: Sequence[Tensor]) -> list[Tensor | None]:
    """The tangents of all outputs, None for those that are no floats."""
    left = iter(moved)
    return [next(left) if o.dtype.kind == "f" else None for o in outputs]


def push_cond(primals: Sequence[Tensor], tangents: Sequence[Tensor | None], attrs: Attrs) -> Pushed:
    """A choice between what the branches make of values and tangents."""
    rest, count = list(primals[1:]), len(primals) - 1
    moving = _tangents(rest, tangents[1:])

    def both(branch: Closed) -> Closed:
        def run(given: list[Tensor]) -> list[Tensor]:
            outputs, moved = branch.pushed(given[:count], given[count:])
            return [*outputs, *moved]

        return closed(branch._body.what, run, [*rest, *moving])

    then = attrs["then"]
    found = emit(
        P.cond, primals[0], *rest, *moving, then=both(then), otherwise=both(attrs["otherwise"]), draws=attrs["draws"]
    )
    outs = found[: len(then.outputs)]
    return outs, _spread(outs, found[len(outs) :])


def push_while(primals: Sequence[Tensor], tangents: Sequence[Tensor | None], attrs: Attrs) -> Pushed:
    """A loop that carries values and tangents."""
    consts, test, body = attrs["consts"], attrs["condition"], attrs["body"]
    fixed, carry = list(primals[:consts]), list(primals[consts:])
    t_fixed, t_carry = _tangents(fixed, tangents[:consts]), _tangents(carry, tangents[consts:])
    groups = fixed, t_fixed, carry, t_carry

    def asked(given: list[Tensor]) -> list[Tensor]:
        c, _, now, _ = _grouped(given, groups)
        return list(test.inlined([*c, *now]))

    def step(given: list[Tensor]) -> list[Tensor]:
        c, tc, now, moving = _grouped(given, groups)
        outputs, moved = body.pushed([*c, *now], [*tc, *moving])
        return [*outputs, *moved]

    likes = [t for group in groups for t in group]
    wide = {
        "condition": closed(test._body.what, asked, likes), "body": closed(body._body.what, step, likes),
        "consts": len(fixed) + len(t_fixed),
    }  # fmt: skip
    found = _emit_while(likes, **(attrs | wide))
    count, both = len(carry), len(carry) + len(t_carry)
    kept = found[both + 1 :] if attrs["keep"] else ()
    moved = _spread(carry, found[count:both])
    outs = (*found[:count], found[both], *kept[:count])
    return outs, [*moved, None, *(_spread(carry, kept[count:both]) if attrs["keep"] else [])]


def push_scan(primals: Sequence[Tensor], tangents: Sequence[Tensor | None], attrs: Attrs) -> Pushed:
    """A loop that carries values and tangents, and gives both in each round."""
    first, carries, body = int(attrs["counted"]), attrs["carries"], attrs["body"]
    begin = first + attrs["consts"]
    cuts = slice(first, begin), slice(begin, begin + carries), slice(begin + carries, None)
    fixed, carry, xs = [list(primals[cut]) for cut in cuts]
    t_fixed, t_carry, t_xs = [_tangents(primals[cut], tangents[cut]) for cut in cuts]
    groups = fixed, t_fixed, carry, t_carry, xs, t_xs
    moving = len(t_carry)

    def step(given: list[Tensor]) -> list[Tensor]:
        c, tc, now, tn, x, tx = _grouped(given, groups)
        outputs, moved = body.pushed([*c, *now, *x], [*tc, *tn, *tx])
        return [*outputs[:carries], *moved[:moving], *outputs[carries:], *moved[moving:]]

    each = [_Like(t.shape[1:], t.dtype, t.device) for t in (*xs, *t_xs)]
    wide = {
        "body": closed(body._body.what, step, [*fixed, *t_fixed, *carry, *t_carry, *each]),
        "consts": len(fixed) + len(t_fixed), "carries": carries + moving,
    }  # fmt: skip
    found = list(_emit_scan([*primals[:first], *[t for group in groups for t in group]], **(attrs | wide)))
    ys = len(body.outputs) - carries
    y_floats = len(floats_of(body.outputs[carries:]))
    sizes = [carries, moving, ys, y_floats, *([carries, moving] if attrs["keep"] else [])]
    parts = _grouped(found, [range(n) for n in sizes])
    outs, moved = [], []
    for values, changes in zip(parts[::2], parts[1::2]):
        outs += values
        moved += _spread(values, changes)
    return tuple(outs), moved


def _grouped(given: Sequence[Tensor], groups: Sequence[Sequence[Any]]) -> list[list[Tensor]]:
    """The tensors in groups as long as these."""
    left = iter(given)
    return [[next(left) for _ in group] for group in groups]
