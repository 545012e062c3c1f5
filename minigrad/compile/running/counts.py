"""What the steps of a program cost, loops and branches included: see `fusion.count` for what counts."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ..fusion.count import Count, Part, count_inside, eager_parts, kept_by
from ..nodes.tally import functions_of
from .plan import Call, Check, Plan, Step

COPIES = "copies of results"


def counts_of(plan: Plan) -> list[Count]:
    """The cost of each step.

    >>> f = mg.jit(lambda xs: mg.scan(lambda c, x: (c + mg.tanh(x), None), xs[0], xs)[0])
    >>> counts_of(f.program(mg.ones((20, 5))).plan)[0]
    Count(bytes_read=800, bytes_written=400, flops=200, launches=20)
    """
    return [count_inside(attrs, program_parts) if functions_of(attrs) else count for count, attrs in _parts(plan)]


def program_parts(function: Any) -> list[Part]:
    """The cost of each step of a function's program, and of the copies of its results."""
    plan = getattr(function.program, "plan", None)
    return eager_parts(function) if plan is None else [*_parts(plan), (copies_of(plan), {})]


def _parts(plan: Plan) -> list[Part]:
    return [(Count() if isinstance(step, Check) else step.count, _attrs(step)) for step in plan.steps]


def _attrs(step: Step) -> Mapping[str, Any]:
    return step.attrs if isinstance(step, Call) else {}


def own_count(step: Step) -> Count:
    """The cost of a step alone: nothing for a check; for a loop that ran, its copies, as its steps have their own."""
    attrs = _attrs(step)
    if functions_of(attrs):
        return kept_by(attrs, attrs["body"].tally.last or 0) if "body" in attrs else Count()
    return Count() if isinstance(step, Check) else step.count


def copies_of(plan: Plan) -> Count:
    """The cost of the copies of results at the end of a run."""
    return sum([_copied(plan, number) for number in range(len(plan.outputs)) if plan.is_copied(number)], Count())


def _copied(plan: Plan, number: int) -> Count:
    read = plan.outputs[number]
    buffer = plan.buffers[read.buffer]
    different = prod([size for size, stride in zip(read.shape, read.strides) if stride])
    itemsize = buffer.dtype.itemsize
    return Count(min(different, buffer.size) * itemsize, read.size * itemsize, 0, 1)
