"""`cond`, `while_loop` and `scan` in a trace: each records one node.

The public functions of these names call them.  Branches and bodies are traced once; the traced functions are attributes
of the node.  `gradients.py` has the gradients and batches of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...control.flow import Values, carry_and_result, predicate, same_results
from ...core.emit import emit
from ...core.mode import current_mode
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor
from ...ops.creation import zeros
from ...support.errors import TraceError
from ..functions.function import TracedFunction
from ..nodes.thresholds import TIMES_KEPT
from .body import Body, draws_of, traced


def cond(test: Tensor, true_fun: Callable[..., Any], false_fun: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Record a choice between two functions."""
    then_body, else_body = Body("cond: true_fun"), Body("cond: false_fun")
    results: list[Values] = []

    def branch(function: Callable[..., Any]) -> Callable[[list[Tensor]], list[Tensor]]:
        def run(_: list[Tensor]) -> list[Tensor]:
            values = Values(function(*operands))
            results.append(values)
            return same_results(results[0], values) if len(results) > 1 else values.tensors

        return run

    outputs, else_outputs = traced(then_body, branch(true_fun), []), traced(else_body, branch(false_fun), [])
    around = _around(then_body, else_body)
    then, otherwise = _function(then_body, around, outputs), _function(else_body, around, else_outputs)
    if then_body.drawn != else_body.drawn:
        raise TraceError(
            "cond: the branches draw different amounts of random numbers, and the program decides which one runs",
            actual=f"true_fun {_blocks(then_body.drawn)}, false_fun {_blocks(else_body.drawn)}",
            hint="draw them before the cond and pass them to the branches",
        )
    found = emit(P.cond, test, *around, then=then, otherwise=otherwise, draws=draws_of(then_body.drawn))
    return results[0].rebuild(list(found[: len(outputs)]))


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Values, max_steps: int | None
) -> Any:
    """Record a loop that ends when a condition no longer holds."""
    test, body = Body("while_loop: cond_fun"), Body("while_loop: body_fun")

    def asked(given: list[Tensor]) -> list[Tensor]:
        return [predicate("while_loop: cond_fun", cond_fun(carry.rebuild(given)))]

    def stepped(given: list[Tensor]) -> list[Tensor]:
        return carry.again("while_loop", body_fun(carry.rebuild(given)))

    verdict = traced(test, asked, _arguments(test, "carry", carry.tensors))
    outputs = traced(body, stepped, _arguments(body, "carry", carry.tensors))
    around = _around(test, body)
    condition, again = _function(test, around, verdict), _function(body, around, outputs)
    if test.drawn or body.drawn:
        raise TraceError(
            "while_loop: the loop draws random numbers, and its number of iterations is not known in advance",
            hint="use fori_loop or scan, or draw the numbers before the loop",
        )
    if max_steps is not None and not carry.tensors:
        max_steps = None  # nothing to keep
    found = emit_loop([*around, *carry.tensors], condition=condition, body=again, consts=len(around), limit=max_steps)
    return carry.rebuild(list(found[: len(carry.tensors)]))


def scan(
    name: str, f: Callable[[Any, Any], Any], carry: Values, xs: Values, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Record a loop over the first dimension of some tensors."""
    body = Body(f"{name}: the body")
    results: list[Values] = []

    def stepped(given: list[Tensor]) -> list[Tensor]:
        count = len(carry.tensors)
        new, y = carry_and_result(name, f(carry.rebuild(given[:count]), xs.rebuild(given[count:])))
        results.append(Values(y))
        return [*carry.again(name, new), *results[0].tensors]

    arguments = [*_arguments(body, "carry", carry.tensors), *_arguments(body, "x", map(one_of, xs.tensors))]
    outputs = traced(body, stepped, arguments)
    around = _around(body)
    function = _function(body, around, outputs)
    found = emit_loop(
        [*around, *carry.tensors, *xs.tensors], body=function, consts=len(around), carries=len(carry.tensors),
        length=length, reverse=reverse, counted=False, draws=draws_of(body.drawn, length),
    )
    last = list(found[: len(carry.tensors)])
    return carry.rebuild(last), results[0].rebuild(list(found[len(last) : len(outputs)]))


class Like(NamedTuple):
    """The shape and dtype of an argument."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any


def one_of(stack: Any) -> Like:
    """The shape and dtype of one element along the first dimension."""
    return Like(stack.shape[1:], stack.dtype, stack.device)


def _arguments(body: Body, name: str, likes: Iterable[Any]) -> list[Tensor]:
    return [body.argument(name, like) for like in likes]


def _around(*bodies: Body) -> list[Tensor]:
    """The tensors from around that the bodies use."""
    found = {id(entry.tensor): entry.tensor for body in bodies for entry in body.captured.values()}
    return list(found.values())


def _function(body: Body, around: Sequence[Tensor], outputs: Sequence[Tensor]) -> TracedFunction:
    """A function that takes all of `around`.  Without results it returns a number that nothing reads."""
    for tensor in around:
        body.stand_in(tensor)
    return body.function(around, outputs or traced(body, lambda _: [zeros(())], []))


def _blocks(drawn: Mapping[Any, int]) -> str:
    return f"{sum(drawn.values())} blocks"


def emit_loop(inputs: Sequence[Tensor], keep: bool = False, **attrs: Any) -> tuple[Tensor, ...]:
    """Record a while_loop, which has a condition, or a scan.

    The loop keeps its carry of each iteration if a gradient may need it and the number of iterations is bounded.  A
    scan then also keeps products, as further results of each iteration: a backward loop need not multiply again.
    """
    bounded, op = attrs.get("limit", 0) is not None, P.while_loop if "condition" in attrs else P.scan
    mode = current_mode()
    if not keep and bounded and mode.grad and any(mode.state.stand_in(t).tracked for t in inputs):
        keep = True
        if op is P.scan:
            attrs["body"] = attrs["body"].with_outputs(_products(attrs["body"], attrs["consts"]))
    found: tuple[Tensor, ...] = emit(op, *inputs, keep=keep, **attrs)
    return found


def _products(body: TracedFunction, consts: int) -> list[Node]:
    """The matrix products of an iteration that are not large: keeping them takes as much memory as a few carries."""
    most, found = TIMES_KEPT * sum(node.nbytes for node in body.own[consts:]), list[Node]()
    for node in body.graph.nodes:
        if node.op is P.matmul and node.nbytes <= most:
            most -= node.nbytes
            found.append(node)
    return found
