"""Forward mode: an interpreter that computes a derivative together with each value.

A tensor inside `jvp` is a pair: a value, and its tangent, the rate at which it changes.  Most operations use their
gradient rule for this too.  An elementwise rule multiplies by the local derivative, which is the same in both
directions; a linear operation is its own derivative; any other rule is linear in the gradient it gets, so
differentiating the rule gives its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.delegating import Nested
from ..core.emit import Results, emit
from ..core.mode import TANGENT, current_mode, switch
from ..core.override import overridable
from ..core.primitive import INDEX, NODE, OUT, REST, Primitive, Rule
from ..core.tensor import AbstractData, Tensor, wrap
from ..core.tree import flatten
from ..ops.creation import zeros, zeros_like
from ..ops.view import broadcast_to
from ..support.errors import ConversionError
from ..support.words import a_type
from .arrays import ARRAYS, are_arrays, handed_back, with_tensors
from .reverse import gradients
from .visits import pulled


class Dual(AbstractData):
    """The data of a tensor inside `jvp`: a value and its tangent (None: the value does not change)."""

    __slots__ = ("dtype", "owner", "primal", "shape", "tangent")
    no_value = "inside jvp, which has a value and a tangent"

    def __init__(self, owner: Forward, primal: Tensor, tangent: Tensor | None) -> None:
        self.owner, self.primal, self.tangent = owner, primal, tangent
        self.shape, self.dtype = primal.shape, primal.dtype

    @property
    def behind(self) -> Tensor:
        """The value alone."""
        return self.primal

    def detached(self) -> Dual:
        return Dual(self.owner, self.primal.detach(), None)


class Facts(NamedTuple):
    """The facts that a rule reads from `node`, where no node was recorded."""

    inputs: Sequence[Any]
    attrs: dict[str, Any]
    shape: tuple[int, ...]
    dtype: Any
    device: Any


class Forward(Nested):
    """Computes each value and its tangent, in the mode outside."""

    def __init__(self) -> None:
        self.outer = current_mode()
        self.tangents = self.outer if self.outer.origin is not None else self.outer.once("toward", TANGENT)

    def lift(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor._data, Dual) and tensor._data.owner is self:
            return tensor
        return wrap(Dual(self, tensor, None), tensor.device)

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        primals = [v.primal if isinstance(v, Dual) else v for v in values]
        tangents = [v.tangent if isinstance(v, Dual) else None for v in values]
        with switch(self.outer):
            if op.jvp is not None and op.kind == "structural":  # both together
                outs, moved = op.jvp(primals, tangents, **attrs)
                return tuple([Dual(self, o, m) for o, m in zip(outs, moved)])
            out = op.apply(*primals, **attrs)
        with switch(self.tangents):
            if isinstance(out, tuple):
                moved = _pushed_to_several(op, primals, tangents, Results(out), attrs)
                return tuple([Dual(self, o, m) for o, m in zip(out, moved)])
            return Dual(self, out, pushed_forward(op, primals, tangents, out, attrs))


@overridable
def pushed_forward(
    op: Primitive,
    primals: list[Any],
    tangents: list[Tensor | None],
    out: Tensor,
    attrs: dict[str, Any],
) -> Tensor | None:
    """The tangent of a result, from the tangents of the inputs."""
    moving = [i for i, t in enumerate(tangents) if t is not None]
    if not moving or out.dtype.kind != "f":
        return None
    if op.jvp is not None:
        return op.jvp(primals, tangents, out, **attrs)  # type: ignore[no-any-return]
    plan = op.plan(sum(1 << i for i in moving), len(primals))
    rules = {rule.index: rule for rule in plan.rules}
    if all(op.is_linear(i) for i in moving):
        pairs = enumerate(zip(primals, tangents))
        inputs = [_along(p, t) if op.is_linear(i) else p for i, (p, t) in pairs]
        return emit(op, *inputs, **attrs)  # type: ignore[no-any-return]
    facts = Facts(primals, attrs, out.shape, out.dtype, out.device)
    if op.kind != "elementwise":
        return _transposed(plan.rules, tangents, op, facts, out)[0]  # type: ignore[no-any-return]
    total = None
    for i in moving:
        if i in rules:
            part = _diagonal(rules[i], tangents[i], op, facts, out)
            total = part if total is None else total + part
    return total


def _pushed_to_several(op: Primitive, primals: list[Any], tangents: list[Any], outs: Results, attrs: Any) -> list[Any]:
    """The tangents of several results."""
    rules = op.plan(sum(1 << i for i, t in enumerate(tangents) if t is not None), len(primals)).rules
    facts = Facts(primals, attrs, outs.shape, outs.dtype, outs[0].device)
    return _transposed(rules, tangents, op, facts, outs) if rules else [None] * len(outs)


def _along(primal: Any, tangent: Tensor | None) -> Any:
    return tangent if tangent is not None else zeros_like(primal) if isinstance(primal, Tensor) else 0.0


def _diagonal(rule: Rule, tangent: Any, op: Primitive, facts: Facts, out: Tensor) -> Tensor:
    """The tangent through an elementwise operation, whose derivative is diagonal and so its own transpose."""
    part = pulled(rule, broadcast_to(tangent, out.shape), _reading(rule, op, facts, out))
    return broadcast_to(part, out.shape)


def _transposed(rules: Sequence[Rule], tangents: list[Any], op: Primitive, facts: Facts, out: Any) -> list[Any]:
    """The transpose of rules, applied to tangents: the gradients of <rule(g), tangent> with respect to each g."""
    outs = out if isinstance(out, Results) else (out,)
    with switch(grad=True):
        given = [zeros(o.shape, o.dtype, o.device) for o in outs]
        for g in given:
            g.requires_grad = g.dtype.kind == "f"
        parts = [(r.index, pulled(r, given if outs is out else given[0], _reading(r, op, facts, out))) for r in rules]
        total: Any = sum([(part * tangents[i]).sum() for i, part in parts if part is not None])
    if not (isinstance(total, Tensor) and total.tracked):  # the rules do not depend on g
        return [zeros_like(g) if g.tracked else None for g in given]
    floats = [g for g in given if g.tracked]
    moved = iter(gradients(total, floats, create_graph=current_mode().grad, allow_unused=True))
    found = [next(moved) if g.tracked else None for g in given]
    return [zeros_like(g) if f is None and g.tracked else f for f, g in zip(found, given)]


def _reading(rule: Rule, op: Primitive, facts: Facts, out: Tensor) -> Callable[[int], Any]:
    """A function that returns each value that a rule reads, where no node was recorded."""
    special = {NODE: facts, OUT: out, INDEX: rule.index, REST: tuple(facts.inputs[len(op.inputs) - 1 :])}
    return lambda slot: facts.inputs[slot] if slot >= 0 else special[slot]


def _tangent(primal: Tensor, given: Tensor) -> Tensor | None:
    """A tangent in the dtype of its value; None for integers, which have no tangent."""
    if primal.dtype.kind != "f":
        return None
    return given if given.dtype is primal.dtype else given.astype(primal.dtype)


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The value of a function, and the rate at which it changes along `tangents`.

    One forward pass, at about twice the cost of the function, for any number of outputs.

    >>> value, change = mg.jvp(lambda x: x**2, (mg.asarray(3.0),), (mg.asarray(1.0),))
    >>> value.item(), change.item()
    (9.0, 6.0)
    """
    check_arguments("jvp", primals=primals, tangents=tangents)
    points, rebuild = flatten(with_tensors(tuple(primals), ARRAYS))
    moves, _ = flatten(with_tensors(tuple(tangents), ARRAYS))
    _check_tangents(points, moves)
    forward = Forward()
    pairs = [(p, Dual(forward, p, _tangent(p, m))) for p, m in zip(points, moves)]
    with switch(interpreter=forward):
        arguments = rebuild([wrap(dual, p.device) for p, dual in pairs])
        outputs, rebuild_output = flatten(function(*arguments))
        duals = [forward.lift(o)._data for o in outputs]
    changes = [zeros_like(d.primal) if d.tangent is None else d.tangent for d in duals]
    pair = rebuild_output([d.primal for d in duals]), rebuild_output(changes)
    return handed_back(pair, are_arrays(primals))


def _check_tangents(points: Sequence[Tensor], moves: Sequence[Tensor]) -> None:
    """Raise an error for tangents that do not belong to the primals."""
    if len(points) != len(moves) or any(p.shape != m.shape for p, m in zip(points, moves)):
        raise ConversionError(
            "jvp: the tangents have the structure and shapes of the primals",
            expect=str([p.shape for p in points]), actual=str([m.shape for m in moves]),
        )
    if not points:
        raise ConversionError("jvp: there is no tensor among the primals", hint="mg.asarray(3.0) instead of 3.0")


def check_arguments(name: str, **given: Any) -> None:
    """Raise an error for a tensor in place of a tuple of arguments: its rows would be taken for arguments."""
    for what, arguments in given.items():
        if not isinstance(arguments, (tuple, list)):
            raise ConversionError(
                f"{name}: {what} is {a_type(arguments)}",
                expect="a tuple, with one entry for each argument of the function",
                hint=f"mg.{name}(f, (x,), (v,)) for a function of one argument",
            )
