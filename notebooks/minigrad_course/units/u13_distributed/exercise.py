"""Unit 13: the ring that the student writes, in two halves, and a ring with other cables."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from minigrad.support.table import counted
from minigrad.viz.flipbook import Flipbook

from ...compare import same
from ...feedback import Feedback, Wrong, stopped
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT
from .cables import Rank, check_waits, on_cables
from .chunks import Sent, counts, faults, rounds_of
from .training import train

Chunks = list[list[Any]]  # of each rank
UNCHANGED = (
    "`chunks[i] = ...` and `x = a + b` give a name to another array: the memory of the chunk is as before. Write into "
    "it, `chunks[i][...] = ...` or `chunks[i] += ...`"
)


class RingTask(FunctionTask):
    """A function that all ranks call, each with its own chunks: `(comm, chunks)`.

    It runs on counts first, so that a wrong result says what is counted twice or missing; then on numbers.
    """

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        for workers in (4, 2, 3, 5):
            yield (self.before(counts(workers)),)
        rng = np.random.default_rng(draw.randrange(2**32))
        for workers, size in ((4, 8), (3, 7)):  # the second one with chunks of different lengths
            arrays = [rng.integers(-9, 9, size).astype(np.float32) for _ in range(workers)]
            yield (self.before([np.array_split(array, workers) for array in arrays]),)

    def before(self, chunks: Chunks) -> Chunks:
        """What the ranks begin with."""
        return chunks

    def wanted(self, chunks: Chunks) -> dict[tuple[int, int], Any]:
        """What chunk c of rank r must hold afterwards, by (r, c)."""
        raise NotImplementedError

    def ran(self, function: Callable[..., Any], chunks: Chunks) -> tuple[Chunks, list[Rank], bool]:
        """The chunks after a run, what each rank did, and whether a rank has replaced arrays of its list."""
        memory = [[chunk.copy() for chunk in row] for row in chunks]
        lists = [list(row) for row in memory]

        def call(rank: Rank) -> None:
            lists[rank.rank][:] = memory[rank.rank]  # the rank may have begun before
            function(rank, lists[rank.rank])

        ranks = on_cables(call, len(chunks), self.name, 1, 0.6 * self.seconds, memory)
        replaced = any(len(a) != len(b) or any(x is not y for x, y in zip(a, b)) for a, b in zip(lists, memory))
        return memory, ranks, replaced

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        for (chunks,) in self._all_cases(rounds):
            found, ranks, replaced = self.ran(answer, chunks)
            wrong = self.what_is_wrong(chunks, found)
            if wrong:
                words = f"{wrong[0]}\n  on {len(chunks)} ranks" + (f", and {len(wrong) - 1} more" if wrong[1:] else "")
                raise Wrong(self.name, words, UNCHANGED if replaced else self.known(chunks, found))
            check_waits(ranks)
            self._sent(chunks, ranks)
        yours, own = (max(len(rank.sent) for rank in each) for each in (ranks, self.ran(self.right, chunks)[1]))
        return (f"no rank waits for ever. On {len(chunks)} ranks each sends {counted(yours, 'message')}, one n-th of "
                f"its array each; minigrad's ring sends {own}.")

    def what_is_wrong(self, chunks: Chunks, found: Chunks) -> list[str]:
        """What is wrong with the chunks of the ranks."""
        right = {place: value for place, value in self.wanted(chunks).items()
                 if not np.allclose(found[place[0]][place[1]], value, atol=1e-4)}
        if len(chunks[0][0]) == len(chunks) ** 2:  # counts
            named = [each.replace("worker", "rank") for each in faults(found, list(right))]
            if named:
                return named
        return [
            f"chunk {c} of rank {r} is wrong\n  Expected: {value.tolist()}\n  Got: {found[r][c].tolist()}"
            for (r, c), value in right.items()
        ]

    def known(self, chunks: Chunks, found: Chunks) -> str | None:
        """The hint of the mistake that leaves the same numbers in all chunks."""
        for each in self.mistakes:
            try:
                theirs, _, _ = self.ran(self.wrong(each), chunks)
            except Exception:  # a known mistake may fail, as the student's own does
                continue
            if all(same(x, y) for one, other in zip(theirs, found) for x, y in zip(one, other)):
                return each.hint
        return self.otherwise

    def _sent(self, chunks: Chunks, ranks: Sequence[Rank]) -> None:
        most = max(ranks, key=lambda rank: len(rank.sent))
        if len(most.sent) >= len(chunks):
            words = f"right, but rank {most.rank} of {len(chunks)} sends {len(most.sent)} messages"
            hint = "the last round changes nothing any more: n - 1 rounds are enough"
            raise Wrong(self.name, f"{words}\n  Expected: {len(chunks) - 1}", hint)

    def solution(self) -> Any:
        return self.right

    def right(self, comm: Any, chunks: Any) -> None:
        n, r = comm.size, comm.rank
        for i in range(n - 1):
            sent, into = chunks[(r + self.first - i) % n], chunks[(r + self.first - i - 1) % n]
            sending = comm.start_send(sent, (r + 1) % n)
            got = comm.recv((r - 1) % n, into)
            sending.wait()
            self.put(into, got)

    first: ClassVar[int]  # the chunk that rank 0 sends first

    def put(self, into: Any, got: Any) -> None:
        """What is done with a chunk that has come."""
        raise NotImplementedError

    def show(self, function: Callable[..., Any]) -> Flipbook:
        """What a function does on four ranks, round by round: right or wrong."""
        chunks = self.before(counts(4))
        try:
            found, ranks, _ = self.ran(function, chunks)
        except (Feedback, NotImplementedError):
            raise
        except Exception as error:
            raise stopped(self.name, error, self.advice) from None
        many = max(len(rank.sent) for rank in ranks)
        states = [[(rank.held[i] if i < len(rank.held) else rank.held[-1]) for rank in ranks] for i in range(many)]
        rounds = [
            [Sent(rank.rank, rank.sent[i][0], rank.sent[i][1]) for rank in ranks if i < len(rank.sent)
             and rank.sent[i][1] >= 0] for i in range(many)
        ]
        wrong = self.what_is_wrong(chunks, found)
        says = f"{wrong[0]}." if wrong else "Each chunk is complete where it should be."
        return rounds_of(f"your {self.name} on 4 ranks: {many} rounds", [*states, found], rounds, says)

    def given(self) -> dict[str, Any]:
        return {"show": self.show, "train": train}


@UNIT.task
class ReduceScatter(RingTask):
    name = "reduce_scatter"

    def wanted(self, chunks: Chunks) -> dict[tuple[int, int], Any]:
        return {(r, r): sum(row[r] for row in chunks) for r in range(len(chunks))}

    def put(self, into: Any, got: Any) -> None:
        into += got


@UNIT.task
class AllGather(RingTask):
    name = "all_gather"

    def before(self, chunks: Chunks) -> Chunks:
        total = [sum(row[c] for row in chunks) for c in range(len(chunks))]
        return [[total[c].copy() if c == r else chunk for c, chunk in enumerate(row)] for r, row in enumerate(chunks)]

    def wanted(self, chunks: Chunks) -> dict[tuple[int, int], Any]:
        return {(r, c): chunks[c][c] for r in range(len(chunks)) for c in range(len(chunks))}

    def put(self, into: Any, got: Any) -> None:
        np.copyto(into, got)


OPS: dict[str, tuple[str, Any]] = {
    "maximum": ("the largest", np.maximum), "minimum": ("the smallest", np.minimum),
    "multiply": ("the product", np.multiply),
}


@UNIT.task
class OtherRing(FunctionTask):
    """An all-reduce in a ring with other cables, and another operation."""

    name = "other_ring"

    def vary(self, draw: random.Random) -> None:
        self.stride, self.op = draw.choice([2, 3]), draw.choice(list(OPS))

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        rng = np.random.default_rng(draw.randrange(2**32))
        for workers, size in ((5, 20), (7, 21), (5, 23)):
            yield ([rng.integers(2, 5, size) * rng.choice([-0.5, 0.5], size) for _ in range(workers)],)

    def ran(self, function: Callable[..., Any], arrays: list[Any]) -> tuple[list[Any], list[Rank]]:
        """The arrays after a run, and what each rank did."""
        memory = [array.copy() for array in arrays]
        ranks = on_cables(lambda rank: function(rank, memory[rank.rank]), len(arrays), self.name, self.stride,
                          0.6 * self.seconds, [[array] for array in memory])
        return memory, ranks

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        for (arrays,) in self._all_cases(rounds):
            found, ranks = self.ran(answer, arrays)
            total, n = OPS[self.op][1].reduce(arrays), len(arrays)
            wrong = [rank for rank in range(n) if not np.allclose(found[rank], total)]
            if wrong:
                at = int(np.flatnonzero(~np.isclose(found[wrong[0]], total))[0])
                words = (
                    f"x[{at}] of rank {wrong[0]} is wrong on {n} ranks\n  Expected: {total[at]:g}\n  "
                    f"Got: {found[wrong[0]][at]:g} ({len(wrong)} of {n} ranks have wrong numbers)"
                )
                raise Wrong(self.name, words, self._known(arrays, found, total))
            check_waits(ranks)
            most = 2 * (n - 1) * -(-arrays[0].size // n) * arrays[0].itemsize
            sent = max(sum(size for *_, size in rank.sent) for rank in ranks)
            if sent > most:
                words = f"right, but a rank of {n} sends {sent} bytes\n  Expected: at most {most}"
                hint = "send chunks, np.array_split(x, n), and not whole arrays; twice n - 1 rounds"
                raise Wrong(self.name, words, hint)
        return "2 (n − 1) / n of the array, with any cables that make a ring"

    def _known(self, arrays: list[Any], found: list[Any], total: Any) -> str | None:
        if all(((old == new) | np.isclose(new, total)).all() for old, new in zip(arrays, found)):
            return (
                "x is as before, or a part of it: write into its memory. np.array_split(x, n) gives views of it: "
                "chunks[i][...] = ..., and not chunks[i] = ..."
            )
        for each in self.mistakes:
            theirs, _ = self.ran(self.wrong(each), arrays)
            if all(np.allclose(x, y) for x, y in zip(theirs, found)):
                return each.hint
        return self.otherwise

    def solution(self) -> Any:
        return self.right

    def right(self, comm: Any, x: Any) -> None:
        n, s = comm.size, self.stride
        p = [i * s % n for i in range(n)].index(comm.rank)
        chunks = np.array_split(x, n)
        for half in range(2):
            for i in range(n - 1):
                sent, into = chunks[(p - 1 - i + half) % n], chunks[(p - 2 - i + half) % n]
                sending = comm.start_send(sent, (comm.rank + s) % n)
                got = comm.recv((comm.rank - s) % n, into)
                sending.wait()
                into[...] = got if half else OPS[self.op][1](into, got)
