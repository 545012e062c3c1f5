"""Kernels of branches and loops: Python that runs one function after another.

A function (`compile/functions/function.py`) is called with raw arrays and with the
place where each generator of random numbers begins. It returns a list of raw arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from .library import KernelGroup

# Generator, key, first block, and how many blocks one iteration takes.
Draws = Sequence[tuple[Any, Any, int, int]]
UNBOUNDED = 1 << 62  # rounds of a while_loop without a limit
# Loops call this in each round, or after some rounds in machine code: an error ends them.  `int()` does nothing.
EACH_ROUND: ContextVar[Callable[[], object]] = ContextVar("minigrad each round", default=int)


class ControlKernels(KernelGroup):
    """`cond`, `while_loop` and `scan`."""

    @staticmethod
    def cond(pred: Any, *values: Any, then: Any, otherwise: Any, draws: Draws) -> Any:
        return tuple((then if pred else otherwise)(values, _starts(draws, 0)))

    def while_loop(
        self, *values: Any, condition: Any, body: Any, consts: int, limit: int | None,
        keep: bool,
    ) -> Any:
        xp = self.xp
        fixed, carry = values[:consts], [v.copy() for v in values[consts:]]
        kept = [xp.zeros((limit, *c.shape), c.dtype) for c in carry] if keep else []
        done = body.in_rounds(condition, fixed, carry, kept, keep, UNBOUNDED if limit is None else limit)
        if done is not None:
            carry, rounds = done
            return (*carry, xp.asarray(rounds, dtype=xp.int64), *kept)
        rounds, look = 0, EACH_ROUND.get()
        while limit is None or rounds < limit:
            look()
            if not condition([*fixed, *carry], {})[0]:
                break
            for stack, value in zip(kept, carry):
                stack[rounds] = value
            carry = body([*fixed, *carry], {})[: len(carry)]
            rounds += 1
        return (*carry, xp.asarray(rounds, dtype=xp.int64), *kept)

    def scan(
        self, *values: Any, body: Any, consts: int, carries: int, length: int,
        reverse: bool, counted: bool, keep: bool, draws: Draws,
    ) -> Any:
        rounds, look = length, EACH_ROUND.get()
        if counted:
            rounds, values = min(int(values[0]), length), values[1:]
        fixed, xs = values[:consts], values[consts + carries :]
        carry = [v.copy() for v in values[consts : consts + carries]]
        # With a count there may be fewer iterations than there is room for.
        new = self.xp.zeros if counted else self.empty
        ys = [new((length, *shape), dtype) for shape, dtype in body.results[carries:]]
        kept = [new((length, *c.shape), c.dtype) for c in carry] if keep else []
        done = None if draws else body.in_rounds(None, fixed, carry, [*xs, *ys, *kept], keep, rounds, reverse)
        if done is not None:
            return (*done[0], *ys, *kept)
        for turn in range(rounds):
            look()
            i = rounds - 1 - turn if reverse else turn
            for stack, value in zip(kept, carry):
                stack[i] = value
            inputs = [*fixed, *carry, *[x[i, ...] for x in xs]]
            results = body(inputs, _starts(draws, turn))
            carry = results[:carries]
            for stack, value in zip(ys, results[carries:]):
                stack[i] = value
        return (*carry, *ys, *kept)


def _starts(draws: Draws, turn: int) -> dict[Any, tuple[Any, int]]:
    return {
        generator: (key, block + turn * step) for generator, key, block, step in draws
    }
