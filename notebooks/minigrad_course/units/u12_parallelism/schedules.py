"""Unit 12: the student's scheduler: checked against bounds, drawn for real training steps, and run in the executor."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from minigrad import nn, optim
from minigrad import random as seeds
from minigrad.compile.jitted import jit
from minigrad.compile.running.profiler import profile
from minigrad.compile.running.program import Program
from minigrad.compile.running.schedule import ScheduledStep
from minigrad.data import digits
from minigrad.examples.names_gpt import GPT
from minigrad.ops.creation import asarray, ones, zeros
from minigrad.ops.losses import cross_entropy
from minigrad.support.table import counted
from minigrad.viz.compiled import Shown
from minigrad.viz.drawing import KINDS, Drawing, legend
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.phases import PHASES
from minigrad.viz.titles import Titles

from ...compare import Difference, copied
from ...counting import fastest
from ...digits import Trained, read_by
from ...feedback import Misused
from ...session import SESSION
from ...swapping import in_lists, scheduler, whose
from ...tasks import FunctionTask, Mistake
from ...views.costs import pairs
from .about import UNIT
from .gantts import LEFT, WIDTH, After, Costs, Jobs, Turn, lanes, length, ran
from .jobs import CLOSE, GRAHAM, by_chain, chains, fault, form_of, in_levels, listed, random_jobs, taken, turns_of

Scheduler = Callable[[Costs, After, int], Any]
WORKERS = (1, 2, 3, 4, 8)
BATCH, HIDDEN, EPOCHS, RATE = 64, 256, 4, 3e-3  # of the training


# ---- the network's steps ---------------------------------------------------------------------------------------------


class Network(NamedTuple):
    """The training step of a network: its steps as jobs, and the phase of each."""

    name: str
    jobs: Jobs
    phases: dict[str, str]


def jobs_of(steps: Sequence[ScheduledStep]) -> Jobs:
    """The steps of a program as jobs.  A job takes as long as so many kB of memory traffic."""
    return Jobs({step.name: step.cost / 1000 for step in steps},
                {step.name: [steps[i].name for i in step.after] for step in steps})


def _stepper(model: Any, loss_of: Callable[..., Any]) -> Any:
    optimizer = optim.AdamW(model.parameters(), lr=RATE)

    @jit
    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, 10))


@cache
def networks() -> list[Network]:
    """The training steps of an MLP, a CNN and a GPT of the examples, without dropout."""
    seeds.seed(0)
    mlp = _mlp()
    cnn = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))
    gpt = GPT(27, 32, heads=4, layers=2, dropout=0.0)
    labels = zeros(BATCH, dtype="int64")
    made: dict[str, Any] = {
        "MLP": (mlp, lambda x, y: cross_entropy(mlp(x), y), (ones((BATCH, 64)), labels)),
        "CNN": (cnn, lambda x, y: cross_entropy(cnn(x), y), (ones((BATCH, 1, 8, 8)), labels)),
        "GPT": (gpt, gpt.loss, (zeros((BATCH, 13), dtype="int64"),)),
    }
    found = []
    for name, (model, loss_of, batch) in made.items():
        graph = _stepper(model, loss_of).graph(*batch)
        program = Program(graph, backend="numpy")  # the same kernels on every machine
        phases = {step: section.phase for step, section in Titles(Shown(name, program)).sections.items()}
        found.append(Network(name, jobs_of(program.schedule.steps), phases))
    return found


# ---- a schedule and its faults ---------------------------------------------------------------------------------------


@UNIT.task
class ListSchedule(FunctionTask):
    name = "list_schedule"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        chain = Jobs({"a": 2, "b": 3, "c": 1}, {"a": [], "b": ["a"], "c": ["b"]})
        fork = Jobs({"a": 4, "b": 4, "c": 1, "d": 4, "e": 4}, {"a": [], "b": [], "c": [], "d": ["c"], "e": ["d"]})
        others = Jobs({"s": 1, "a": 1, "b": 1, "c": 1, "x": 6, "t": 1},
                      {"s": [], "a": ["s"], "b": ["s"], "c": ["s"], "x": ["s"], "t": ["x", "a"]})
        for jobs, workers in ((chain, 1), (chain, 2), (fork, 2), (GRAHAM, 3), (GRAHAM, 4), (others, 2)):
            yield dict(jobs.costs), {job: list(each) for job, each in jobs.after.items()}, workers
        for workers in (2, 3, 4):
            jobs = random_jobs(draw, 40)
            yield dict(jobs.costs), dict(jobs.after), workers

    def right(self, costs: Costs, after: After, workers: int) -> Any:
        return form_of(taken(costs, after, workers, by_chain(costs, after)))

    def in_turn(self, costs: Costs, after: After, workers: int, around: bool = False, waits: bool = True) -> Any:
        """A wrong schedule, which places the jobs in the order of the list: on the worker that is free first."""
        free, ends, found = [0.0] * workers, dict[str, float](), dict[str, Any]()
        for i, job in enumerate(costs):
            worker = i % workers if around else free.index(min(free))
            begin = max([free[worker], *[ends[each] for each in after[job] if waits]])
            free[worker] = ends[job] = begin + costs[job]
            found[job] = worker, begin
        return found

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        jobs, workers = Jobs(*args[:2]), args[2]
        turns = turns_of(yours)
        problem = turns if isinstance(turns, str) else fault(jobs, workers, turns)
        if problem is None:
            done, chosen = (length(jobs.costs, each) for each in (turns, turns_of(self.right(*args))))  # type: ignore
            self.done.append((done, length(jobs.costs, in_levels(jobs, workers))))
            if done > chosen * (1.0 if len(jobs.costs) < 10 else 1.1) + CLOSE:
                return f"all are done after {done:g}, and {chosen:g} is possible"
        return problem

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        self.done: list[tuple[float, float]] = []
        super().check(answer, rounds)
        yours, levels = map(sum, zip(*self.done))
        return (f"valid on {len(self.done)} graphs. Your schedules take {yours:g} together; level by level, as the "
                f"executor runs steps, the jobs take {levels:g}.")

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"{counted(args[2], 'worker')}; {listed(*args[:2])}"

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        known = super()._hint(found)
        return known or next((hint for part, hint in self.advice.items() if part in found[0][2]), None)

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return bool(self.wrong(known)(*args) == yours)

    def given(self) -> dict[str, Any]:
        return {"networks": compared, "train": train, "in_turns": in_turns}


# ---- pictures of real steps ------------------------------------------------------------------------------------------


def drawn(function: Scheduler, jobs: Jobs, workers: int) -> list[Turn]:
    """The turns of a student's scheduler for the steps of a program; `Misused` if it is not valid."""
    turns = turns_of(function(dict(jobs.costs), copied(dict(jobs.after)), workers))
    problem = turns if isinstance(turns, str) else fault(jobs, workers, turns)
    if problem is not None and "although" not in problem:
        raise Misused("list_schedule", problem, 'first pass course.check("list_schedule")')
    return turns  # type: ignore[return-value]


def compared(function: Scheduler) -> Flipbook:
    """Training steps of three networks: the executor's levels above, the student's schedule below."""
    pages, words = [], []
    for network in networks():
        pages.append([_page(network, function, workers) for workers in WORKERS])
        words += [page.say for page in pages[-1]]
    knob = Knob("network", tuple(network.name for network in networks()), choice=True)
    title = f"{whose('list_schedule')} on training steps of {len(pages)} networks"
    return Flipbook(title, pages, (knob,), unit="workers", cover=1, words="\n".join(words), start=1)


def _page(network: Network, function: Scheduler, workers: int) -> Page:
    costs, after = network.jobs
    work, path = sum(costs.values()), max(chains(costs, after).values())
    scale, lane = (WIDTH - 20 - LEFT) / work, min(30.0, 150.0 / workers)
    runs = {"by levels, as the executor does it": in_levels(network.jobs, workers),
            whose("list_schedule"): drawn(function, network.jobs, workers)}
    drawing, top = Drawing(WIDTH, 400.0), 40.0
    legend(drawing, LEFT, 14, [(*KINDS[phase], phase) for phase in PHASES])
    drawing.path([(LEFT + path * scale, 30), (LEFT + path * scale, 380)], "good", thick=2, dashes="5 4")
    drawing.text(LEFT + path * scale, 394, "the critical path", size=13, fill="good", anchor="middle")
    times = []
    for name, run in runs.items():
        times.append(length(costs, run))
        drawing.heading(LEFT, top + 8, f"{name}: {work / times[-1]:.2f} times as fast as one worker")
        lanes(drawing, costs, run, workers, top + 14, scale, lambda job: network.phases.get(job) or "other",
              names=workers < 3, lane=lane)
        end = LEFT + times[-1] * scale
        drawing.path([(end, top + 14), (end, top + 14 + lane * workers)], "bad", thick=2.4)
        top += 176.0
    first, second = (work / time for time in times)
    says = (f"{network.name}, {len(costs)} steps, {workers} worker{'s' * (workers > 1)}: by levels {first:.2f}, "
            f"by {whose('list_schedule')} {second:.2f} times as fast as one. The limit is {work / path:.2f}.")
    return Page(drawing, says)


# ---- in the executor -------------------------------------------------------------------------------------------------


def in_turns(function: Scheduler, workers: int = 2) -> Callable[[Sequence[ScheduledStep]], list[list[int]]]:
    """A student's `list_schedule` for the executor: lists of steps that run at the same time, in their order."""

    def list_schedule(steps: Sequence[ScheduledStep]) -> list[list[int]]:
        turns = drawn(function, jobs_of(steps), workers)
        begins = {turn.job: turn.begin for turn in turns}
        return in_lists(sorted(steps, key=lambda step: (begins[step.name], step.number)), workers)

    return list_schedule


def train(function: Scheduler, workers: int = 2) -> Flipbook:
    """Train a network on the digits, with the steps of the program in the student's order, several at the same time."""
    with scheduler(in_turns(function, workers)) as mine:
        trained, step, batch = _trained()
    own = step.program(*batch).plan.turns
    count, together = sum(map(len, own)), sum(len(turn) > 1 for turn in own)
    _, serial, _ = _trained(epochs=0)
    title = (f"{whose(mine.name)} in the executor: {count} steps in {len(own)} turns, {together} of them with several "
             f"steps; {trained.right} of {trained.shown} digits read")
    pages = [*trained.picture.pages[0], _measured(step, serial, batch)]
    return Flipbook(title, [pages], cover=0, unit="picture", words=title)


def _trained(epochs: int = EPOCHS) -> tuple[Trained, Any, Any]:
    """A network that has been trained on the digits, its step, and a batch."""
    seeds.seed(0)
    model = _mlp()
    step = _stepper(model, lambda x, y: cross_entropy(model(x), y))
    images, labels = digits()[0].arrays
    parts = [slice(i, i + BATCH) for i in range(0, len(labels) - BATCH + 1, BATCH)]
    batches = [(asarray(images[part].reshape(BATCH, 64)), asarray(labels[part].copy())) for part in parts]
    before = read_by(model)
    losses = [float(step(*batch).item()) for _ in range(epochs) for batch in batches]
    step(*batches[0])
    return Trained(SESSION.author, None, losses, before, read_by(model)), step, batches[0]


def _measured(step: Any, serial: Any, batch: Any) -> Page:
    """What the workers did in one step on this machine, and the time of a step beside that of one step at a time."""
    best = fastest([lambda: serial(*batch), lambda: step(*batch)], 20)
    with profile() as run:
        step(*batch)
    drawing = ran(run.events)
    pairs(drawing, 130, WIDTH, [("a step: one by one, and in your turns", 1e3 * best[0], 1e3 * best[1], " ms")],
          ("one by one", "in turns"))
    return Page(drawing, "Steps as short as these gain little: a second thread must be woken for each turn.", (),
                "this machine")
