"""Jobs that wait for each other: the longest chains, schedules for several workers, and what is wrong with one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from ...feedback import written
from .gantts import After, Costs, Jobs, Turn

CLOSE = 1e-9

# Nine jobs of R. L. Graham (1969): in this order, four workers need longer than three.
GRAHAM = Jobs(
    {"A": 3, "B": 2, "C": 2, "D": 2, "E": 4, "F": 4, "G": 4, "H": 4, "I": 9},
    {"A": [], "B": [], "C": [], "D": [], "E": ["D"], "F": ["D"], "G": ["D"], "H": ["D"], "I": ["A"]},
)


def chains(costs: Costs, after: After) -> dict[str, float]:
    """For each job the time of the longest chain of jobs that begins with it.

    >>> chains({"a": 2, "b": 3, "c": 1}, {"a": [], "b": ["a"], "c": ["a"]})
    {'a': 5, 'b': 3, 'c': 1}
    """
    later: dict[str, float] = dict.fromkeys(costs, 0)  # the longest chain after each job
    left = {job: sum(job in after[other] for other in costs) for job in costs}
    ready = [job for job, users in left.items() if not users]
    for job in ready:
        for before in after[job]:
            later[before] = max(later[before], costs[job] + later[job])
            left[before] -= 1
            if not left[before]:
                ready.append(before)
    return {job: costs[job] + later[job] for job in costs}


def followers(costs: Costs, after: After) -> dict[str, list[str]]:
    """For each job those that wait for it."""
    return {job: [other for other in costs if job in after[other]] for job in costs}


def listed(costs: Costs, after: After, most: int = 6) -> str:
    """The first jobs in words.

    >>> listed({"a": 2, "b": 3}, {"a": [], "b": ["a"]})
    'a takes 2; b takes 3 after a'
    """
    jobs = [f"{job} takes {costs[job]:g}" + (f" after {', '.join(after[job])}" if after[job] else "") for job in costs]
    return "; ".join(jobs[:most]) + (f" and {len(jobs) - most} more" if len(jobs) > most else "")


def by_chain(costs: Costs, after: After) -> list[str]:
    """The jobs, that with the longest chain first."""
    longest = chains(costs, after)
    return sorted(costs, key=lambda job: -longest[job])


def taken(costs: Costs, after: After, workers: int, order: Sequence[str]) -> list[Turn]:
    """Who does what when, if each free worker takes the first job of the order that is ready.

    >>> max(turn.begin + GRAHAM.costs[turn.job] for turn in taken(*GRAHAM, 3, "ABCDEFGHI"))
    12.0
    """
    idle, busy, waiting = list(range(workers)), list[tuple[float, int]](), list(order)
    heapify(idle)
    now, ends, found = 0.0, dict[str, float](), list[Turn]()
    while waiting or busy:
        for job in [job for job in waiting if all(ends.get(each, now + 1) <= now for each in after[job])]:
            if idle:
                worker = heappop(idle)
                ends[job] = now + costs[job]
                heappush(busy, (ends[job], worker))
                waiting.remove(job)
                found.append(Turn(job, worker, now))
        now = busy[0][0]
        while busy and busy[0][0] == now:
            heappush(idle, heappop(busy)[1])
    return found


def in_levels(jobs: Jobs, workers: int) -> list[Turn]:
    """Who does what when, if all jobs of a level end before the next level begins, as in minigrad's executor.

    The level of a job is the number of jobs in the longest chain before it.

    >>> in_levels(Jobs({"a": 2, "b": 1, "c": 1}, {"a": [], "b": [], "c": ["b"]}), 2)[-1]
    Turn(job='c', worker=0, begin=2.0)
    """
    depth: dict[str, int] = {}
    for job in jobs.costs:
        depth[job] = 1 + max([depth[each] for each in jobs.after[job]], default=-1)
    now, found = 0.0, list[Turn]()
    for level in range(max(depth.values()) + 1):
        free = [now] * workers
        for job in sorted([job for job in depth if depth[job] == level], key=lambda job: -jobs.costs[job]):
            worker = free.index(min(free))
            found.append(Turn(job, worker, free[worker]))
            free[worker] += jobs.costs[job]
        now = max(free)
    return found


def best_length(jobs: Jobs, workers: int) -> float:
    """The shortest time in which a few jobs can be done; tries all orders in which a job is placed next."""
    costs, after = jobs
    best = sum(costs.values())
    chain = chains(costs, after)
    seen = set()

    def go(ends: dict[str, float], free: tuple[float, ...]) -> None:
        nonlocal best
        key = frozenset(ends.items()), free
        if key in seen:
            return
        seen.add(key)
        if len(ends) == len(costs):
            best = min(best, max(ends.values()))
            return
        for job in costs:
            if job not in ends and all(each in ends for each in after[job]):
                begin = max([free[0], *[ends[each] for each in after[job]]])
                if begin + chain[job] < best or len(ends) + 1 == len(costs):
                    go({**ends, job: begin + costs[job]}, tuple(sorted([begin + costs[job], *free[1:]])))

    go({}, (0.0,) * workers)
    return best


def random_jobs(draw: random.Random, count: int) -> Jobs:
    """Jobs of which each waits for up to two earlier ones."""
    names = [f"j{i}" for i in range(count)]
    costs = {name: draw.choice([1, 2, 3, 5, 8]) for name in names}
    after = {name: sorted(draw.sample(names[:i], min(i, draw.choice([0, 1, 1, 2])))) for i, name in enumerate(names)}
    return Jobs(costs, after)


# ---- schedules as answers --------------------------------------------------------------------------------------------


def turns_of(found: Any) -> list[Turn] | str:
    """A student's schedule as turns, or what is wrong with its form."""
    if isinstance(found, list | tuple) and found and all(isinstance(x, list | tuple) and len(x) == 3 for x in found):
        found = {job: rest for job, *rest in found}
    if not isinstance(found, dict):
        return f"{written(found)} is not a dictionary"
    turns = []
    for job, place in found.items():
        pair = place if isinstance(place, list | tuple) and len(place) == 2 else (None, None)
        if not all(isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in pair):
            return f"the entry of {job}, {written(place)}, has another form"
        turns.append(Turn(job, pair[0], float(pair[1])))  # type: ignore[arg-type]
    return turns


def form_of(turns: Sequence[Turn]) -> dict[str, tuple[int, float]]:
    """Turns as the dictionary that students return."""
    return {turn.job: (turn.worker, turn.begin) for turn in turns}


def fault(jobs: Jobs, workers: int, turns: list[Turn]) -> str | None:
    """What is wrong with a schedule; None if it is valid, and no worker is idle while a job is ready."""
    costs, after = jobs
    at = {turn.job: turn for turn in turns}
    for job in costs:
        if job not in at:
            return f"{job} has no entry"
    for turn in turns:
        if turn.job not in costs:
            return f"{written(turn.job)} is not a job"
        if turn.worker not in range(workers):
            return f"{turn.job} is done by worker {turn.worker}: there is no worker {turn.worker} of {workers}"
    ends = {job: at[job].begin + costs[job] for job in costs}
    for job in costs:
        for before in after[job]:
            if at[job].begin < ends[before] - CLOSE:
                return f"{job} begins at {at[job].begin:g}, but {before}, which it waits for, ends at {ends[before]:g}"
    free: list[tuple[float, float, int]] = []  # when a worker has nothing to do: from, to, who
    for worker in range(workers):
        own = sorted([turn for turn in turns if turn.worker == worker], key=lambda turn: (turn.begin, ends[turn.job]))
        for one, two in pairwise(own):
            if two.begin < ends[one.job] - CLOSE:
                return f"worker {worker} does {one.job} until {ends[one.job]:g}, and {two.job} at the same time"
        edges = [0.0, *[edge for turn in own for edge in (turn.begin, ends[turn.job])], float("inf")]
        free += [(begin, end, worker) for begin, end in zip(edges[::2], edges[1::2]) if end > begin + CLOSE]
    for job, turn in at.items():
        ready = max([ends[each] for each in after[job]], default=0.0)
        for begin, end, worker in free:
            since = max(begin, ready)
            if since < min(end, turn.begin) - CLOSE:
                return f"{job} begins at {turn.begin:g}, although it is ready and worker {worker} is free at {since:g}"
    return None
