"""Unit 07: what each operation keeps, and checkpoints as the student applies them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad.autodiff.checkpointing import checkpoint
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import ones
from minigrad.ops.elementwise import exp, sigmoid, tanh
from minigrad.ops.functional import relu
from minigrad.support.table import bytes_text, counted

from ...compare import plain
from ...counting import kept_bytes, most_bytes
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, Mistake, ValueTask, mistake
from .about import UNIT

FIRST = {"tanh": tanh, "sigmoid": sigmoid, "exp": exp}  # their rules read the output
MIDDLE: dict[str, Callable[[Any], Any]] = {"3 * h": lambda h: 3 * h, "h + 1": lambda h: h + 1, "-h": lambda h: -h}


@UNIT.task
class KeptList(ValueTask):
    """The bytes that each operation of a program keeps."""

    name = "kept_list"

    def vary(self, draw: random.Random) -> None:
        self.rows, self.columns = draw.choice([10, 20, 50]), draw.choice([8, 16])
        self.mask = self.rows * self.columns  # the bytes of an array of truth values, and of one of floats
        self.full, self.bits = 4 * self.mask, self.mask // 8
        self.first, self.middle = draw.choice(list(FIRST)), draw.choice(list(MIDDLE))

    def lines(self) -> Iterator[Tensor]:
        """The results of the lines of the program."""
        p = ones((self.rows, 5)) @ ones((5, self.columns), requires_grad=True)
        h = FIRST[self.first](p)
        q = MIDDLE[self.middle](h)
        r = relu(q)
        y = r * h
        yield from (p, h, q, r, y, y.sum())

    def right(self) -> list[int]:
        return np.diff([0, *map(kept_bytes, self.lines())]).tolist()


# ---- checkpoints by a plan -------------------------------------------------------------------------------------------

PLANS: Sequence[tuple[int, tuple[int, ...]]] = (
    (6, (2, 3)), (6, (1, 2)), (5, ()), (4, (4,)), (7, (3, 1, 2)))  # numbers of blocks, and plans
Run = Callable[..., Any]


def in_a_row(blocks: Sequence[Run]) -> Run:
    """The blocks as one function."""

    def run(x: Any) -> Any:
        for block in blocks:
            x = block(x)
        return x

    return run


def planned(blocks: Sequence[Run], x: Any, plan: Sequence[int]) -> Any:
    """Run blocks; the first ones go into checkpoints of the sizes that the plan lists."""
    at = 0
    for size in plan:
        x = checkpoint(in_a_row(blocks[at : at + size]))(x)
        at += size
    return in_a_row(blocks[at:])(x)


def tanh_blocks(count: int) -> list[Run]:
    """Blocks that keep one array each, and differ."""
    return [lambda h, i=i: tanh(h) + 0.1 * (i + 1) for i in range(count)]


@UNIT.task
class RunBlocks(FunctionTask):
    name = "run_blocks"

    def cases(self, draw: random.Random) -> Iterator[tuple[Any, ...]]:
        for count, plan in PLANS:
            yield tanh_blocks(count), plan

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        found = [(args, self.measured(answer, *args)) for args in self._all_cases(1)]
        wrong = [(args, yours, "") for args, yours in found if yours != self.measured(planned, *args)]
        if wrong:
            args, yours, _ = wrong[0]
            problem = self._problem(yours, self.measured(planned, *args))
            raise Wrong(self.name, f"{problem}\n  in {self._call(args)}", self._hint(wrong))
        return "the values are right, and the engine keeps what the plan says"

    def measured(self, answer: Run, blocks: Sequence[Run], plan: Sequence[int]) -> tuple[Any, ...]:
        """What a run computes, and the bytes that the engine keeps after it and at most."""
        given = list(blocks)
        out = answer(given, ones(1000, requires_grad=True), list(plan))
        if not isinstance(out, Tensor):
            return (None if out is None else written(out),)
        after = kept_bytes(out)
        return round(float(plain(out).reshape(-1)[0]), 5), after, most_bytes(out) if out.tracked else 0

    def _problem(self, yours: tuple[Any, ...], right: tuple[Any, ...]) -> str:
        if len(yours) == 1:
            return f"it returned {yours[0]}, not the result of the last block"
        if yours[0] != right[0]:
            wrong = "the result is wrong: not every block runs once, in order"
            return f"{wrong}\n  Expected: {right[0]}\n  Got: {yours[0]}"
        named = ("kept after the forward pass", "kept at most in the backward pass")
        name, want, got = next(each for each in zip(named, right[1:], yours[1:]) if each[1] != each[2])
        kept = f"the result is right, but not what is {name}"
        return f"{kept}\n  Expected: {bytes_text(want)}\n  Got: {bytes_text(got)}"

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        nothing = found[0][1] == (None,)
        return "a function gives back only the value after `return`" if nothing else super()._hint(found)

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        try:
            return bool(self.measured(self.wrong(known), *args) == yours)
        except Exception:  # a known mistake may fail on some plans
            return False

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"run_blocks(blocks, x, {list(args[1])}), with {counted(len(args[0]), 'block')} that keep 4 kB each"

    def right(self, blocks: Any, x: Any, plan: Any) -> Any:
        return planned(blocks, x, plan)

    @mistake
    def not_advanced(self, blocks: Any, x: Any, plan: Any) -> Any:
        for size in plan:
            x = checkpoint(in_a_row(blocks[:size]))(x)
        return in_a_row(blocks)(x)

    @mistake
    def sizes_as_places(self, blocks: Any, x: Any, plan: Any) -> Any:
        at = 0
        for end in plan:
            x = checkpoint(in_a_row(blocks[at:end]))(x)
            at = end
        return in_a_row(blocks[at:])(x)
