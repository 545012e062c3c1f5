"""Kernels of branches and loops: Python that runs one closed function after another, on any array library.

A closed function is called with raw arrays and with where each generator of random numbers begins, and returns a list
of raw arrays of its own.  (`compile/control/closed.py` has them; here nobody asks what they are.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Draws = Sequence[tuple[Any, Any, int, int]]  # generator, key, first block, and how many blocks a round goes on


def control_kernels(xp: Any) -> dict[str, Callable[..., Any]]:
    """`cond`, `while_loop` and `scan` for one array library."""

    def cond(pred: Any, *values: Any, then: Any, otherwise: Any, draws: Draws) -> Any:
        return tuple((then if pred else otherwise)(values, _starts(draws, 0)))

    def while_loop(*values: Any, condition: Any, body: Any, consts: int, limit: int | None, keep: bool) -> Any:
        fixed, carry = values[:consts], [v.copy() for v in values[consts:]]
        kept = [xp.zeros((limit, *c.shape), c.dtype) for c in carry] if keep else []
        rounds = 0
        while (limit is None or rounds < limit) and condition([*fixed, *carry], {})[0]:
            for stack, value in zip(kept, carry):
                stack[rounds] = value
            carry = body([*fixed, *carry], {})[: len(carry)]
            rounds += 1
        return (*carry, xp.asarray(rounds, dtype=xp.int64), *kept)

    def scan(
        *values: Any, body: Any, consts: int, carries: int, length: int, reverse: bool, counted: bool, keep: bool,
        draws: Draws,
    ) -> Any:  # fmt: skip
        rounds, values = (int(values[0]), values[1:]) if counted else (length, values)
        fixed, xs = values[:consts], values[consts + carries :]
        carry = [v.copy() for v in values[consts : consts + carries]]
        made = xp.zeros if counted else xp.empty  # there may be fewer rounds than there is room for
        ys = [made((length, *shape), dtype) for shape, dtype in body.results[carries:]]
        kept = [made((length, *c.shape), c.dtype) for c in carry] if keep else []
        for turn in range(rounds):
            i = rounds - 1 - turn if reverse else turn
            for stack, value in zip(kept, carry):
                stack[i] = value
            results = body([*fixed, *carry, *[x[i, ...] for x in xs]], _starts(draws, turn))
            carry = results[:carries]
            for stack, value in zip(ys, results[carries:]):
                stack[i] = value
        return (*carry, *ys, *kept)

    return {"cond": cond, "while_loop": while_loop, "scan": scan}


def _starts(draws: Draws, turn: int) -> dict[Any, tuple[Any, int]]:
    return {generator: (key, block + turn * step) for generator, key, block, step in draws}
