"""Unit 12: an order for two workers, found by hand, and the longest chain from each job."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, Mistake, ValueTask
from .about import UNIT
from .gantts import After, Costs, Jobs, length, play
from .jobs import GRAHAM, best_length, by_chain, chains, followers, listed, random_jobs, taken

JOBS = 40  # in the graph on which a function is measured
# Jobs by numbers: how long each takes, and what it waits for.  In each graph, the longest chain first is best, and the
# longest job first and the shortest first are not.
GRAPHS: tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...] = (
    ((4, 3, 4, 4, 1, 1), ((), (0,), (0,), (0,), (1,), (0, 3))),
    ((2, 5, 1, 4, 2, 4), ((), (0,), (1,), (), (0, 3), ())),
    ((3, 2, 4, 4, 3, 3), ((), (), (), (), (1, 3), (4,))),
    ((1, 1, 1, 4, 3, 4), ((), (0,), (1,), (0,), (2,), ())),
    ((3, 2, 1, 5, 5, 2), ((), (0,), (0, 1), (), (), (0, 1))),
    ((1, 3, 1, 4, 1, 5), ((), (), (1,), (), (0, 2), (0,))),
    ((3, 5, 1, 3, 5, 1), ((), (), (0, 1), (0, 2), (), (2,))),
)


@UNIT.task
class BestOrder(ValueTask):
    """An order in which two workers are done as early as possible."""

    name = "best_order"
    mistakes: ClassVar[tuple[Mistake, ...]] = ()

    def vary(self, draw: random.Random) -> None:
        times, waits = draw.choice(GRAPHS)
        for _ in range(100):
            letters = draw.sample("ABCDEFGH"[: len(times)], len(times))
            numbers = sorted(range(len(times)), key=letters.__getitem__)
            self.jobs = Jobs({letters[i]: times[i] for i in numbers},
                             {letters[i]: [letters[j] for j in waits[i]] for i in numbers})
            self.best = best_length(self.jobs, 2)
            wrong = [self.wrong(known) for known in self.mistakes]
            distinct = len({*map(tuple, wrong)}) == len(wrong)
            if distinct and min(map(self.takes, wrong)) > self.best == self.takes(self.right()):
                break

    def takes(self, order: Any) -> float:
        """When two workers are done."""
        return length(self.jobs.costs, taken(*self.jobs, 2, order))

    def rows(self) -> str:
        """The rows of the table in the text."""
        return "".join(
            f"\n| {job} | {time} | {', '.join(self.jobs.after[job]) or 'nothing'} |"
            for job, time in self.jobs.costs.items())

    def given(self) -> dict[str, Any]:
        return {"board": play(self.jobs, 2, self.best)}

    def right(self) -> list[str]:
        return by_chain(*self.jobs)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        names = [answer] if isinstance(answer, str) else answer
        if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str):
            names = [each for each in names[0] if each.isalnum()]
        if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
            raise Wrong(self.name, f"your answer {written(answer)} is not a list of names", f"like {self.example}")
        order = [each.strip().upper() for each in names]
        jobs = set(self.jobs.costs)
        for problem, those in (
            ("is not a job", [job for job in order if job not in jobs]),
            ("is missing", sorted(jobs - set(order))),
            ("is there twice", [job for job in order if order.count(job) > 1]),
        ):
            if those:
                raise Wrong(self.name, f"{those[0]} {problem}", f"each of {', '.join(sorted(jobs))} once")
        takes = self.takes(order)
        if takes <= self.best:
            return f"all are done after {takes:g}, and no order is faster."
        hint = next((known.hint for known in self.mistakes if self.wrong(known) == order), None)
        raise Wrong(self.name, f"in this order all are done after {takes:g}, and {self.best:g} is possible",
                    hint or self._urgent(order) or self.otherwise)

    def _urgent(self, order: Sequence[str]) -> str | None:
        """The first moment at which a job begins while one with a longer chain is ready."""
        costs, after = self.jobs
        ends, longest = dict[str, float](), chains(costs, after)
        for job, _, begin in taken(costs, after, 2, order):
            ready = [each for each in costs if each not in ends and all(ends.get(i, begin + 1) <= begin
                                                                        for i in after[each])]
            urgent = max(ready, key=lambda each: longest[each])
            if longest[urgent] > longest[job]:
                return (f"at {begin:g}, {job} begins. But {urgent} is ready too, and a longer chain of jobs begins "
                        f"with it: {longest[urgent]:g}")
            ends[job] = begin + costs[job]
        return None


# ---- the longest chain -----------------------------------------------------------------------------------------------


class Counted(dict[str, Sequence[str]]):
    """What jobs wait for; `reads` is how many entries have been read."""

    reads = 0

    def __getitem__(self, job: str) -> Sequence[str]:
        self.reads += 1
        return super().__getitem__(job)

    def items(self) -> Any:
        self.reads += len(self)
        return super().items()


@UNIT.task
class LongestChains(FunctionTask):
    name = "longest_chains"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield {"a": 2, "b": 3, "c": 1}, {"a": [], "b": ["a"], "c": ["b"]}
        yield {"a": 2, "b": 3, "c": 1, "d": 5}, {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
        yield dict(GRAHAM.costs), dict(GRAHAM.after)
        for _ in range(4):
            yield tuple(random_jobs(draw, 9))

    def right(self, costs: Costs, after: After) -> dict[str, float]:
        found: dict[str, float] = {}
        for job in reversed(list(costs)):
            later = [found[each] for each in followers(costs, after)[job]]
            found[job] = costs[job] + max(later, default=0)
        return {job: found[job] for job in costs}

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        jobs = random_jobs(random.Random(0), JOBS)
        after = Counted(jobs.after)
        answer(dict(jobs.costs), after)
        often = "once for each job" if after.reads <= JOBS else f"{JOBS} would do: look back from a job to those before"
        return f"{JOBS} jobs: it reads {after.reads:,} entries of `after`: {often}."

    def _call(self, args: tuple[Any, ...]) -> str:
        return listed(*args)
