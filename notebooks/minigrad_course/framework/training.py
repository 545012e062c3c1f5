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
from minigrad.distributed import Communicator, DataParallel
from minigrad.ops.composite import COMPOSED
from minigrad.ops.elementwise import maximum, sigmoid
from minigrad.ops.functional import softmax

from ..digits import in_batches, read_by, training_step
from ..interpreting import Students
from ..letters import GPT, LETTERS, letters_in_batches, made_up
from ..unit import task_of
from ..units.u08_training.updating import Rule
from ..units.u13_distributed.on_ranks import Ringed
from .pieces import COMPILED, EAGER, JOBS, Clock, Piece

MAPS, HIDDEN, RATE, SEED, EPOCHS, STEPS, CALLS = 6, 32, 0.3, 0, 2, 16, 20
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


class Program(NamedTuple):
    """What is trained: a model, batches of examples and labels, and what to show of a trained model."""

    name: str
    model: Callable[[float, Any], nn.Module]  # of the epsilon of a layer norm, and a function that runs blocks in a row
    batches: Callable[[], list[tuple[Tensor, Tensor]]]
    shown: Callable[[nn.Module], Any]


class Names(nn.Module):
    """The GPT of `train_names`, with a row of scores for each letter of a batch."""

    def __init__(self, epsilon: float, in_a_row: Any) -> None:
        self.gpt = GPT()
        for each in self.gpt.modules():
            if isinstance(each, nn.LayerNorm):
                each.eps = epsilon
        self.in_a_row = in_a_row

    def forward(self, text: Tensor) -> Tensor:
        return self.in_a_row([self.gpt], text).reshape(-1, len(LETTERS))  # type: ignore[no-any-return]


def names_by(model: Any) -> list[str]:
    """Names that the GPT makes up."""
    return made_up(model.gpt)


DIGITS = Program("digits", Reader, lambda: in_batches()[:-1] * EPOCHS, read_by)  # whole batches, which ranks can share
NAMES = Program("names", Names, lambda: [(x, y.reshape(-1)) for x, y in letters_in_batches(STEPS)], names_by)
PROGRAMS = {each.name: each for each in (DIGITS, NAMES)}


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
    """A training: losses, what was made before and after, how often each job was done, the student's share of time."""

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
        found = task_of(name)
        assert found is not None
        return found(self.student)

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

    def model(self, program: Program, yours: bool) -> nn.Module:
        """A model with its first weights.  A student's layer norm has an epsilon of its own."""
        random.seed(SEED)
        by_plan = yours and "run_blocks" in self.found
        return program.model(self.task("norm").epsilon, self.in_a_row if by_plan else in_a_row)

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
def by_engine(pieces: Pieces, program: Program) -> list[float]:
    """The losses of the engine's own training."""
    model = pieces.model(program, yours=False)
    optimizer = pieces.optimizer(model, None)
    return [float(training_step(model, optimizer, *batch).item()) for batch in program.batches()]


@eager_programs(False)
def by_pieces(pieces: Pieces, program: Program, comm: Communicator | None = None) -> Run:
    """The training with all pieces in the engine's place; on one of several ranks, with a part of each batch."""
    clock, census, batches = Clock(), Census(), program.batches()
    model = pieces.model(program, yours=True)
    parallel, ring = _on_ranks(model, pieces, comm, clock)
    optimizer, step = pieces.optimizer(model, clock), pieces.found.get("training_step", training_step)
    before, losses = program.shown(model), []
    with ExitStack() as stack, np.errstate(all="ignore"):  # with a wrong piece the numbers may overflow
        stack.enter_context(switch(interpreter=census))
        for name in LAYERS:
            stack.enter_context(_counting(name, census.counts))
        entered = pieces.entered(stack, EAGER, clock)
        clock.begin()
        for batch in batches:
            loss = step(parallel, optimizer, *_part(batch, comm))
            census.counts["rules"] += sum(len(node.plan.rules) for node in topological_order([loss.node]))
            losses.append(float(loss.item() if comm is None else comm.allreduce(loss.detach(), "mean").item()))
        share = clock.share()
    yours = Counter({job: sum(each.calls for each in found) for job, found in entered.items()})
    every = census.counts + Counter(layers=yours["layers"])
    each_step = dict.fromkeys(("order", "walk", "blocks", "steps"), 1) | {"updates": len(list(model.parameters()))}
    for job, times in each_step.items():
        every[job] = len(batches) * times
        if job in ARGUMENTS and pieces.first(job):
            yours[job] = every[job]
    every["sums"] = yours["sums"] = 0 if ring is None else ring.calls
    jobs = {job: (min(yours[job], every[job]), every[job]) for job in JOBS if every[job]}
    return Run(losses, before, program.shown(model), jobs, share)


def _on_ranks(
    model: nn.Module, pieces: Pieces, comm: Communicator | None, clock: Clock
) -> tuple[nn.Module, Ringed | None]:
    """The model as one of several ranks trains it, with all gradients through the student's ring where there is one."""
    if comm is None:
        return model, None
    if not {"reduce_scatter", "all_gather"} <= pieces.found.keys():
        return DataParallel(model, comm), None
    ring = Ringed(comm.host, (clock.yours(pieces.found["reduce_scatter"]), clock.yours(pieces.found["all_gather"])))
    return DataParallel(model, Communicator(ring)), ring


def _part(batch: tuple[Tensor, Tensor], comm: Communicator | None) -> tuple[Tensor, ...]:
    """This rank's part of a batch."""
    if comm is None:
        return batch
    sizes = [len(each) // comm.size for each in batch]
    return tuple([each[comm.rank * size : (comm.rank + 1) * size] for each, size in zip(batch, sizes)])


def _counting(name: str, counts: Counter[str]) -> overriding:
    """Count the calls of a composed function that no piece of the student's replaces."""
    own = unwrap(COMPOSED[name])

    def counting(*args: Any, **options: Any) -> Any:
        counts["layers"] += 1
        return own(*args, **options)

    return overriding(own, counting)


def compiled(pieces: Pieces) -> dict[str, tuple[int, int]]:
    """Compile a training step with the student's guard, passes and schedule: how often each job was done, by whom."""
    model, clock = pieces.model(DIGITS, yours=False), Clock()
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    with ExitStack() as stack:
        entered = pieces.entered(stack, COMPILED, clock)
        step = jit(lambda images, labels: training_step(model, optimizer, images, labels))
        for images, labels in in_batches()[:CALLS]:
            step(images, labels)
    yours = {job: sum(each.calls for each in found) for job, found in entered.items()}
    every = {"guards": CALLS - 1, "passes": len(PASSES), "kernels_made": 1, "turns": 1}
    return {job: (min(yours.get(job, 0), times), times) for job, times in every.items()}
