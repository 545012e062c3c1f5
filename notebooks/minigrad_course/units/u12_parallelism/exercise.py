"""Unit 12: an order for two workers, found by hand, and the longest chain from each job."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, Mistake, ValueTask
from .about import UNIT
from .gantts import After, Costs, Jobs, length, play
from .jobs import GRAHAM, best_length, by_chain, chains, followers, listed, random_jobs, taken

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


def sorted_by(key: Callable[[Costs, After, str], float]) -> Callable[[Costs, After], list[str]]:
    """A rule for orders: the job with the smallest key first."""
    return lambda costs, after: sorted(costs, key=lambda job: key(costs, after, job))


RULES = (  # wrong rules for orders, with their hints
    ("alphabet",
        "that is the alphabet. Which job begins the longest chain? Everything in a chain runs one after the other",
        sorted_by(lambda costs, after, job: 0)),
    ("longest_job",
        "the longest job first is the rule for jobs that do not wait. Here a short job may have a long chain behind it",
        sorted_by(lambda costs, after, job: -costs[job])),
    ("shortest_job",
        "the shortest job first keeps the long ones for the end, where one worker waits for the other",
        sorted_by(lambda costs, after, job: costs[job])),
    ("shortest_chain",
        "the shortest chain first is the wrong way round: the longest chain decides the end, so it begins first",
        sorted_by(lambda costs, after, job: chains(costs, after)[job])),
)


@UNIT.task
class BestOrder(ValueTask):
    """An order in which two workers are done as early as possible."""

    name = "best_order"
    mistakes = tuple([
        Mistake(name, hint, lambda task, rule=rule: rule(*task.jobs), None) for name, hint, rule in RULES])

    def vary(self, draw: random.Random) -> None:
        times, waits = draw.choice(GRAPHS)
        for _ in range(100):
            letters = draw.sample("ABCDEFGH"[: len(times)], len(times))
            numbers = sorted(range(len(times)), key=letters.__getitem__)
            self.jobs = Jobs({letters[i]: times[i] for i in numbers},
                             {letters[i]: [letters[j] for j in waits[i]] for i in numbers})
            self.best = best_length(self.jobs, 2)
            wrong = [rule(*self.jobs) for _, _, rule in RULES]
            distinct = len({*map(tuple, wrong)}) == len(wrong)
            if distinct and min(map(self.takes, wrong)) > self.best == self.takes(self.right()):
                break

    def takes(self, order: Any) -> float:
        """When two workers are done."""
        return length(self.jobs.costs, taken(*self.jobs, 2, order))

    def text(self) -> str:
        rows = "".join(
            f"\n| {job} | {time} | {', '.join(self.jobs.after[job]) or 'nothing'} |"
            for job, time in self.jobs.costs.items())
        return (
            "Two workers. Whenever a worker is free, it takes **the first job of your list that is ready**: a job is "
            f"ready when all jobs that it waits for are done.\n\n| job | takes | waits for |\n|---|---|---|{rows}\n\n"
            f"**Write the jobs in an order in which all are done after {self.best:g}.** Try it in the view below: each "
            "job that you click goes to the worker that is free first."
        )

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


def on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """A student's function with dictionaries of its own, which it may empty."""
    return lambda costs, after, *rest: function(dict(costs), {job: list(each) for job, each in after.items()}, *rest)


# ---- the longest chain -----------------------------------------------------------------------------------------------


def from_the_end(combine: Callable[[float, list[float]], float]) -> Callable[..., dict[str, float]]:
    """A function that combines the time of a job and the results of the jobs that wait for it."""

    def function(task: Any, costs: Costs, after: After) -> dict[str, float]:
        found: dict[str, float] = {}
        later = followers(costs, after)
        for job in reversed(list(costs)):
            found[job] = combine(costs[job], [found[each] for each in later[job]])
        return found

    return function


def _to_job(task: Any, costs: Costs, after: After) -> dict[str, float]:
    found: dict[str, float] = {}
    for job in costs:
        found[job] = costs[job] + max([found[each] for each in after[job]], default=0)
    return found


SHORTER = (  # wrong functions, with their hints
    ("without_itself", "a chain begins with the job: its own time is missing",
                       lambda task, costs, after: {job: time - costs[job]
                                                   for job, time in chains(costs, after).items()}),
    ("itself_twice", "the time of each job is there twice: in found at the beginning, and added again later",
                     from_the_end(lambda time, later: time + max(time, *later, 0))),
    ("overwritten", "several jobs may wait for one job. Keep the longer chain: max(found.get(each, 0), found[job]), "
                    "for each in after[job]", from_the_end(lambda time, later: time + [*later, 0][0])),
    ("from_the_first", "from the first job to the last, what waits for a job comes too late: reversed(list(costs))",
                       lambda task, costs, after: {job: max([costs[each] for each in (job, *later)])
                                                   for job, later in followers(costs, after).items()}),
    ("of_the_notebook", "these are the jobs of the notebook. Compute with the parameters costs and after",
                        lambda task, costs, after: {"a": 9, "b": 5, "c": 7, "d": 8, "e": 2, "f": 4}),
    ("nothing_returned", "a function gives back only the value after `return`: to print or to assign is not enough",
                         lambda task, costs, after: [costs, None][1]),
    ("summed", "that adds up all chains behind a job. They can run at the same time: only the longest one counts, max",
               from_the_end(lambda time, later: time + sum(later))),
    ("shortest", "that is the shortest chain behind a job. All have to be done, so the longest one counts, max",
                 from_the_end(lambda time, later: time + min(later, default=0))),
    ("to_the_job", "that is the chain that *ends* with each job. Look at the jobs that wait for it, not at those "
                   "before", _to_job),
    ("counted", "that counts the jobs of a chain. Add up their times, costs[job]",
                from_the_end(lambda time, later: 1 + max(later, default=0))),
    ("one_further", "right for chains of two jobs. Behind the next job there may be more: use its chain, not its time",
                    lambda task, costs, after: {
                        job: costs[job] + max([costs[each] for each in later], default=0)
                        for job, later in followers(costs, after).items()}),
    ("alone", "these are the times of the jobs alone. What waits for each of them?",
              lambda task, costs, after: dict(costs)),
    ("one_number", "that is one number, the critical path. A scheduler needs the chain of each job: return the "
                   "dictionary", lambda task, costs, after: max(chains(costs, after).values())),
)


@UNIT.task
class LongestChains(FunctionTask):
    name = "longest_chains"
    mistakes = tuple([Mistake(name, hint, program, None) for name, hint, program in SHORTER])
    hints = {name: hint for name, hint, _ in SHORTER}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield {"a": 2, "b": 3, "c": 1}, {"a": [], "b": ["a"], "c": ["b"]}
        yield {"a": 2, "b": 3, "c": 1, "d": 5}, {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
        yield dict(GRAHAM.costs), dict(GRAHAM.after)
        for _ in range(4):
            yield tuple(random_jobs(draw, 9))

    def right(self, costs: Costs, after: After) -> dict[str, float]:
        return chains(costs, after)

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        return super().check(on_copies(answer), rounds)

    def _call(self, args: tuple[Any, ...]) -> str:
        return listed(*args)
