"""A training of one network, by the engine alone or with a student's pieces in the engine's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from inspect import unwrap
from typing import Any, NamedTuple

import numpy as np

from minigrad import nn, optim, random
from minigrad.compile.jitted import jit
from minigrad.compile.rewriting.passes import PASSES
from minigrad.core.mode import current_mode, switch
from minigrad.core.node import topological_order
from minigrad.core.override import overriding
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.ops.composite import COMPOSED
from minigrad.ops.elementwise import maximum, sigmoid
from minigrad.ops.functional import softmax

from ..digits import in_batches, read_by, training_step
from ..interpreting import Students
from ..unit import parts
from ..units.u08_training.updating import Rule
from .pieces import COMPILED, EAGER, JOBS, Clock, Piece

MAPS, HIDDEN, RATE, SEED, EPOCHS, CALLS = 6, 32, 0.3, 0, 2, 20
VIEWS = ("permute_dims", "broadcast_to", "windows")
LAYERS = ("conv2d", "layer_norm", "gelu", "softmax")  # the composed functions that the course has tasks for
ARGUMENTS = {"updates": ("adam", "momentum"), "blocks": ("run_blocks",), "steps": ("training_step",)}  # no overrides


class Reader(nn.Module):
    """A network for the digits that uses what the course has tasks for; `in_a_row(blocks, x)` runs its blocks."""

    def __init__(self, epsilon: float, in_a_row: Callable[[Sequence[Any], Any], Any]) -> None:
        self.windows, self.first = nn.Conv2d(1, MAPS, 3), nn.Linear(MAPS * 36, HIDDEN)
        self.norm, self.gelu = nn.LayerNorm(HIDDEN, eps=epsilon), nn.GELU()
        self.gate, self.focus, self.last = [nn.Linear(HIDDEN, size) for size in (HIDDEN, HIDDEN, 10)]
        self.in_a_row = in_a_row

    def looked(self, x: Tensor) -> Tensor:
        maps = maximum(self.windows(x.reshape(len(x), 1, 8, 8)), 0.0)
        return self.first(maps.reshape(len(x), MAPS * 36))  # type: ignore[no-any-return]

    def gated(self, x: Tensor) -> Tensor:
        return x * sigmoid(self.gate(x))

    def focused(self, x: Tensor) -> Tensor:
        return x * softmax(self.focus(x), axis=-1) * float(HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return self.in_a_row([self.looked, self.norm, self.gelu, self.gated, self.focused, self.last], x)  # type: ignore[no-any-return]


class Census(Students):
    """The student's or the engine's interpreter, which counts what happens."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def compute(self, op: Any, values: list[Any], attrs: Any, device: Any) -> Any:
        self.counts["kernels"] += "device" not in attrs
        self.counts["views"] += op.name in VIEWS
        return super().compute(op, values, attrs, device)

    def manifest_values(self, op: Any, inputs: Any, values: Any, mask: int, attrs: Any, device: Any) -> Any:
        mode = current_mode()
        self.counts["nodes"] += bool(mode.record_all or (mask and mode.grad))
        return super().manifest_values(op, inputs, values, mask, attrs, device)


class Run(NamedTuple):
    """A training: the loss of each step, what was read, how often each job was done, and the student's share of time."""

    losses: list[float]
    before: Any
    after: Any
    jobs: dict[str, tuple[int, int]]  # job -> (times that the student's code did it, all times)
    share: float


class Pieces:
    """What one student has written, by name, and the student's variants of the tasks."""

    def __init__(self, student: str, found: Mapping[str, Any]) -> None:
        self.student, self.found = student, found

    def task(self, name: str) -> Any:
        """The student's variant of a task."""
        return next(unit.tasks[name] for unit in parts().values() if name in unit.tasks)(self.student)

    def first(self, job: str) -> str | None:
        """The first of the pieces that the training calls for a job."""
        return next((name for name in ARGUMENTS[job] if name in self.found), None)

    def optimizer(self, model: nn.Module, clock: Clock | None) -> Any:
        """The student's newest rule; without a clock, the library's optimizer with the same numbers."""
        name = self.first("updates")
        if name is None:
            return optim.SGD(model.parameters(), lr=RATE)
        task = self.task(name)
        if clock is None:
            return task.reference(model.parameters())
        return Rule(model.parameters(), clock.yours(self.found[name]), task.kept, task.counted)

    def in_a_row(self, blocks: Sequence[Any], x: Any) -> Any:
        """The blocks by the student's plan."""
        return self.found["run_blocks"](blocks, x, self.found.get("gpt_plan", [2, 2]))

    def network(self, yours: bool) -> Reader:
        """The network with its first weights.  A student's layer norm has an epsilon of its own."""
        random.seed(SEED)
        by_plan = yours and "run_blocks" in self.found
        return Reader(self.task("norm").epsilon, self.in_a_row if by_plan else in_a_row)

    def entered(self, stack: ExitStack, kinds: Sequence[Piece], clock: Clock) -> dict[str, list[Any]]:
        """Put the pieces that are complete into the engine: the functions of each job."""
        found: dict[str, list[Any]] = {}
        for each in kinds:
            if all(name in self.found for name in each.tasks):
                functions = [self.found[name] for name in each.tasks]
                found.setdefault(each.job, []).append(stack.enter_context(each.enter(clock, *functions)))
        return found


def in_a_row(blocks: Sequence[Any], x: Any) -> Any:
    """Run blocks, one after the other."""
    for block in blocks:
        x = block(x)
    return x


@eager_programs(False)
def by_engine(pieces: Pieces, epochs: int = EPOCHS) -> list[float]:
    """The losses of the engine's own training."""
    model = pieces.network(yours=False)
    optimizer = pieces.optimizer(model, None)
    return [float(training_step(model, optimizer, *batch).item()) for batch in in_batches() * epochs]


@eager_programs(False)
def by_pieces(pieces: Pieces, epochs: int = EPOCHS) -> Run:
    """The training with all pieces in the engine's place."""
    clock, census, batches = Clock(), Census(), in_batches() * epochs
    model = pieces.network(yours=True)
    optimizer, step = pieces.optimizer(model, clock), pieces.found.get("training_step", training_step)
    before, losses = read_by(model), []
    with ExitStack() as stack, np.errstate(all="ignore"):  # with a wrong piece the numbers may overflow
        stack.enter_context(switch(interpreter=census))
        for name in LAYERS:
            stack.enter_context(_counting(name, census.counts))
        entered = pieces.entered(stack, EAGER, clock)
        clock.begin()
        for images, labels in batches:
            loss = step(model, optimizer, images, labels)
            census.counts["rules"] += sum(len(node.plan.rules) for node in topological_order([loss.node]))
            losses.append(float(loss.item()))
        share = clock.share()
    yours = Counter({job: sum(each.calls for each in found) for job, found in entered.items()})
    every = census.counts + Counter(layers=yours["layers"])
    for job, times in {"order": 1, "walk": 1, "blocks": 1, "steps": 1, "updates": len(list(model.parameters()))}.items():
        every[job] = len(batches) * times
        if job in ARGUMENTS and pieces.first(job):
            yours[job] = every[job]
    jobs = {job: (min(yours[job], every[job]), every[job]) for job in JOBS if every[job]}
    return Run(losses, before, read_by(model), jobs, share)


def _counting(name: str, counts: Counter[str]) -> overriding:
    """Count the calls of a composed function that no piece of the student's replaces."""
    own = unwrap(COMPOSED[name])

    def counting(*args: Any, **options: Any) -> Any:
        counts["layers"] += 1
        return own(*args, **options)

    return overriding(own, counting)


def compiled(pieces: Pieces) -> dict[str, tuple[int, int]]:
    """Compile a training step with the student's guard, passes and schedule: how often each job was done, and by whom."""
    model, clock = pieces.network(yours=False), Clock()
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    with ExitStack() as stack:
        entered = pieces.entered(stack, COMPILED, clock)
        step = jit(lambda images, labels: training_step(model, optimizer, images, labels))
        for images, labels in in_batches()[:CALLS]:
            step(images, labels)
    yours = {job: sum(each.calls for each in found) for job, found in entered.items()}
    every = {"guards": CALLS, "passes": len(PASSES), "turns": 1}
    return {job: (min(yours.get(job, 0), times), times) for job, times in every.items()}
