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
from ...tasks import ROUNDS, FunctionTask, ValueTask, mistake
from .about import UNIT
from .wrong import by_formula

FIRST = {"tanh": tanh, "sigmoid": sigmoid, "exp": exp}  # their rules read the output
MIDDLE: dict[str, Callable[[Any], Any]] = {"3 * h": lambda h: 3 * h, "h + 1": lambda h: h + 1, "-h": lambda h: -h}


@UNIT.task
class KeptList(ValueTask):
    """The bytes that each operation of a program keeps."""

    name = "kept_list"

    mistakes = by_formula(
        ("full full full full full 4",
         "that is every result. A rule keeps only what it reads: a sum, for example, passes g on unchanged"),
        ("full full full mask full 0",
         "no rule reads p or q: the second line's rule reads its output h, and the third line's rule no array"),
        ("0 full full full+mask 2*full+mask 2*full+mask", "that is the total after each line. How much does each add?"),
        ("20*rows+20*columns full 0 mask full 0",
         "only the first line is wrong: its rule reads x and W, which exist anyway, as data and parameter"),
        ("20*rows full 0 mask full 0", "only the first line is wrong: x is data, and exists anyway"),
        ("20*columns full 0 mask full 0", "only the first line is wrong: W is a parameter, and exists anyway"),
        ("0 2*full 0 mask full 0", "only the second line is wrong: its rule reads its output alone, not its input"),
        ("full 0 0 mask full 0", "the rule of the second line reads its output h, not its input p"),
        ("0 full full mask full 0",
         "only the third line is wrong: its rule needs no array. What does g have to be multiplied by?"),
        ("0 full 0 full full 0", "only relu is wrong: its rule reads where q > 0, one byte for each number"),
        ("0 full 0 full 0 0",
         "relu's rule reads where q > 0, one byte for each number, not its output r. So r is new for the product"),
        ("0 full 0 0 full 0", "relu keeps something too: its rule reads where q > 0, one byte for each number"),
        ("0 full 0 full 2*full 0",
         "relu reads where q > 0, one byte for each number. And the product reads h too, which is kept already"),
        ("0 full 0 mask 2*full 0",
         "only the product is wrong: its rules read r and h, and h is kept already. An array is kept once"),
        ("0 0 0 mask 2*full 0", "h is kept earlier: the rule of the second line reads h, its output"),
        ("0 full 0 mask 0 0",
         "the product keeps something new: its rule reads r too, and relu has kept only where q > 0"),
        ("0 full 0 mask full full", "only the last line is wrong: a sum passes g on unchanged, and reads no array"),
        ("0 full 0 mask full 4",
         "only the last line is wrong: a result is kept if a rule reads it. Which rule reads s?"),
        ("0 mask 0 mask mask 0", "that counts numbers. A float has 4 bytes, and a truth value 1"),
        ("0 full 0 bits full 0", "True or False takes a whole byte here, not a bit"),
    )

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

    def explained(self) -> str:
        return (
            f"{bytes_text(sum(self.right()))} together. The product reads r and h: h was kept by {self.first} already, "
            "so only r is new."
        )


# ---- checkpoints by a plan -------------------------------------------------------------------------------------------

PLANS: Sequence[tuple[int, tuple[int, ...]]] = (
    (6, (2, 3)), (6, (1, 2)), (5, ()), (4, (4,)))  # numbers of blocks, and plans
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
        wrong = [(args, yours) for args, yours in found if yours != self.measured(planned, *args)]
        if wrong:
            args, yours = wrong[0]
            problem = self._problem(yours, self.measured(planned, *args))
            raise Wrong(self.name, f"{problem}\n  in {self._call(args)}", self._explained(wrong))
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

    def _explained(self, wrong: Sequence[tuple[Any, Any]]) -> str | None:
        if wrong[0][1] == (None,):
            return "a function gives back only the value after `return`"
        for known in self.mistakes:
            if all(self._same(known, args, yours) for args, yours in wrong):
                return known.hint
        return self.otherwise

    def _same(self, known: Any, args: tuple[Any, ...], yours: Any) -> bool:
        try:
            return bool(self.measured(self.wrong(known), *args) == yours)
        except Exception:  # a known mistake may fail on some plans
            return False

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"run_blocks(blocks, x, {list(args[1])}), with {counted(len(args[0]), 'block')} that keep 4 kB each"

    def right(self, blocks: Any, x: Any, plan: Any) -> Any:
        return planned(blocks, x, plan)

    slips = {
        "plain": ("planned(blocks, x, plan)", "in_a_row(blocks)(x)"),
        "one_by_one": ("x, plan", "x, [1] * sum(plan)"),
        "all_alone": ("x, plan", "x, [1] * len(blocks)"),
        "all_in_one": ("x, plan", "x, [len(blocks)]"),
        "joined": ("x, plan", "x, [sum(plan)]"),
        "rest_lost": (", x,", "[: sum(plan)], x,"),
        "rest_too": ("x, plan", "x, [*plan, len(blocks) - sum(plan)]"),
        "all_again": ("planned(blocks, x, plan)", "in_a_row(blocks)(planned(blocks[: sum(plan)], x, plan))"),
        "detached": ("planned(blocks, x, plan)", "in_a_row(blocks)(x.detach() if plan else x)"),
        "first_size": ("(blocks, x, plan)", "(blocks, x, plan[:1]) if plan else None"),
        "first_x": ("planned(blocks, x, plan)", "in_a_row(blocks[sum(plan) :])(x)"),
    }

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
