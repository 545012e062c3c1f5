"""Jobs that wait for each other, and workers: who does what when, as a Gantt chart, and handed out by clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minigrad.compile.running.profiler import Event
from minigrad.support.table import counted, time_text
from minigrad.viz.drawing import KINDS, Drawing, fitting
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.svg import path_of

from ...boards import TURNED, sideways

Costs = Mapping[str, float]  # job -> how long it takes
After = Mapping[str, Sequence[str]]  # job -> the jobs that it waits for

WIDTH, LEFT, LANE = 660.0, 84.0, 34.0


class Jobs(NamedTuple):
    """A graph of jobs."""

    costs: Costs
    after: After


class Turn(NamedTuple):
    """A job that a worker does, and when it begins."""

    job: str
    worker: int
    begin: float


def length(costs: Costs, turns: Sequence[Turn]) -> float:
    """When the last job ends."""
    return max([turn.begin + costs[turn.job] for turn in turns], default=0.0)


def lanes(
    drawing: Drawing, costs: Costs, turns: Sequence[Turn], workers: int, top: float, scale: float,
    look: Callable[[str], str] = lambda job: "kernel", names: bool = True, lane: float = LANE,
) -> None:
    """A lane for each worker, and in it a bar for each job."""
    for worker in range(workers):
        name = f"worker {worker + 1}"
        drawing.text(LEFT - 10, top + lane * (worker + 0.5) + 4, name, size=13, fill="quiet", anchor="end")
        drawing.path([(LEFT, top + lane * (worker + 1)), (WIDTH - 10, top + lane * (worker + 1))], "line", thick=0.8)
    for turn in turns:
        x, y, wide = LEFT + turn.begin * scale, top + lane * turn.worker + 3, costs[turn.job] * scale
        border, fill = KINDS[look(turn.job)]
        drawing.rect(x, y, max(wide - 1, 0.6), lane - 6, fill, border, about=f"{turn.job}: {costs[turn.job]:g}")
        label = fitting(turn.job, wide - 4) if names else ""
        if label:
            drawing.text(x + wide / 2, y + lane / 2, label, size=13, anchor="middle", bold=True)


def clock(drawing: Drawing, y: float, most: float, scale: float, end: float, top: float) -> None:
    """Whole numbers below the lanes, and a line where the last job ends."""
    step = 1 if most <= 20 else 5
    for time in range(0, int(most) + 1, step):
        drawing.text(LEFT + time * scale, y + 14, str(time), size=12, fill="quiet", anchor="middle")
    drawing.path([(LEFT + end * scale, top - 4), (LEFT + end * scale, y)], "bad", thick=2.4)


class Map:
    """The graph of some jobs: a box for each, with its name and its time."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.names = jobs, list[str]()
        while len(self.names) < len(jobs.costs):  # a job after those that it waits for, as `Arrangement` needs it
            left = [job for job in jobs.costs if job not in self.names]
            self.names += [job for job in left if not {*jobs.after[job]} & {*left}]
        at = {name: i for i, name in enumerate(self.names)}
        self.edges = [(at[each], at[job]) for job in self.names for each in jobs.after[job]]
        self.layout = sideways([(74.0, 34.0)] * len(at), self.edges, 46.0, 12.0)
        self.height = self.layout.height

    def draw(self, drawing: Drawing, looks: Mapping[str, str], go: Mapping[str, str], left: float = 0.0) -> None:
        """The boxes, in the kinds of `looks`; a click on a box leads to `go`."""
        for route in self.layout.routes:
            moved = tuple([(y, x + left) for y, x in route])
            with drawing.piece(TURNED):
                drawing.shape(path_of(moved), stroke="quiet", thick=1.4)
            y, x = moved[-1]
            drawing.path([(x - 8, y), (x, y)], "quiet", arrow=True)
        for name, (x, y, wide, high) in zip(self.names, self.layout.boxes):
            border, fill = KINDS[looks.get(name, "kernel")]
            dashes = "4 3" if name in go else ""
            drawing.rect(x + left, y, wide, high, fill, border, thick=2, round=6, about=name, go=go.get(name, ""),
                         dashes=dashes)
            takes = f"{name} · {self.jobs.costs[name]:g}"
            drawing.text(x + left + wide / 2, y + high / 2 + 5, takes, size=14, anchor="middle", bold=True)


def gantt(jobs: Jobs, runs: Mapping[int, Sequence[Turn]]) -> Flipbook:
    """The graph, and who does what when, with a slider for the number of workers: `runs` has the turns for each number.

    >>> jobs = Jobs({"a": 2, "b": 1}, {"a": [], "b": []})
    >>> one, two = [Turn("a", 0, 0), Turn("b", 0, 2)], [Turn("a", 0, 0), Turn("b", 1, 0)]
    >>> print(gantt(jobs, {1: one, 2: two}).text())
    1 worker: done after 3
    2 workers: done after 2
    """
    picture, pages, deepest = Map(jobs), [], max(runs)
    times = {count: length(jobs.costs, run) for count, run in runs.items()}
    scale, top = (WIDTH - 20 - LEFT) / max(times.values()), picture.height + 22
    for count, run in runs.items():
        bottom = top + LANE * deepest
        drawing = Drawing(WIDTH, bottom + 24)
        picture.draw(drawing, {}, {}, left=40)
        lanes(drawing, jobs.costs, run, count, top, scale)
        clock(drawing, bottom, max(times.values()), scale, times[count], top)
        pages.append(Page(drawing, f"{counted(count, 'worker')}: done after {times[count]:g}"))
    title = f"{len(jobs.costs)} jobs on {min(runs)} to {deepest} workers"
    return Flipbook(title, [pages], unit="workers", cover=0, words="\n".join([page.say for page in pages]))


def play(jobs: Jobs, workers: int, best: float) -> Flipbook:
    """Jobs to hand out by clicks: the next job goes to the worker that is free first."""
    costs, after = jobs
    states: dict[frozenset[Turn], int] = {frozenset(): 0}
    listed: list[tuple[Turn, ...]] = [()]
    moves: list[dict[str, int]] = []
    for placed in listed:  # grows while the loop runs
        found: dict[str, int] = {}
        for job in costs:
            ends = {turn.job: turn.begin + costs[turn.job] for turn in placed}
            if job in ends or any(each not in ends for each in after[job]):
                continue
            free = [max([ends[turn.job] for turn in placed if turn.worker == i], default=0.0) for i in range(workers)]
            worker = min(range(workers), key=free.__getitem__)
            turns = (*placed, Turn(job, worker, max([free[worker], *[ends[each] for each in after[job]]])))
            number = states.setdefault(frozenset(turns), len(listed))
            if number == len(listed):
                listed.append(turns)
            found[job] = number
        moves.append(found)
    picture, scale = Map(jobs), (WIDTH - 20 - LEFT) / (sum(costs.values()) * 0.8)
    pages = [[_state(picture, workers, placed, go, states, scale, best)] for placed, go in zip(listed, moves)]
    knob = Knob("placed", tuple(map(str, range(len(listed)))), drawn=True)
    title = f"{len(costs)} jobs to hand out to {workers} workers by clicks"
    waits = {job: f", waits for {', '.join(after[job])}" if after[job] else "" for job in costs}
    words = "\n".join([title, *[f"{job} takes {costs[job]:g}{waits[job]}" for job in costs]])
    return Flipbook(title, pages, (knob,), words=words)


def _state(
    picture: Map, workers: int, placed: tuple[Turn, ...], moves: Mapping[str, int], states: Mapping[Any, int],
    scale: float, best: float,
) -> Page:
    costs = picture.jobs.costs
    top = picture.height + 22
    bottom = top + LANE * workers
    drawing = Drawing(WIDTH, bottom + 26)
    done = {turn.job for turn in placed}
    looks = {job: "result" if job in done else "kernel" if job in moves else "quiet" for job in costs}
    picture.draw(drawing, looks, {job: f"0:{number}" for job, number in moves.items()}, left=40)
    lanes(drawing, costs, placed, workers, top, scale)
    end = length(costs, placed)
    clock(drawing, bottom, (WIDTH - 20 - LEFT) / scale, scale, end, top)
    for x, name, back in ((WIDTH - 196, "take back", placed[:-1]), (WIDTH - 96, "start again", ())):
        drawing.rect(x, 4, 88, 26, "tint", "line", about=name, go=f"0:{states[frozenset(back)]}")
        drawing.text(x + 44, 21, name, size=13, anchor="middle")
    order = ", ".join(turn.job for turn in placed)
    if len(done) < len(costs):
        said = f"Handed out: {order}" if placed else "Click a job"
        return Page(drawing, f"{said}. Jobs with dashed borders can be handed out.")
    verdict = "That is as fast as possible" if end <= best else f"It is possible in {best:g}"
    return Page(drawing, f"{order}: done after {end:g}. {verdict}.")


def ran(events: Sequence[Event]) -> Drawing:
    """What the threads of this machine did when: the events of a profile."""
    start, end = min(event.begin for event in events), max(event.end for event in events)
    threads = list(dict.fromkeys(event.thread for event in events))
    costs = {str(i): event.end - event.begin for i, event in enumerate(events)}
    turns = [Turn(str(i), threads.index(event.thread), event.begin - start) for i, event in enumerate(events)]
    drawing = Drawing(WIDTH, 250.0)
    drawing.heading(LEFT, 16, f"one step on this machine, {time_text(end - start)}: who did what when")
    lanes(drawing, costs, turns, len(threads), 30, (WIDTH - 20 - LEFT) / (end - start), names=False)
    return drawing
