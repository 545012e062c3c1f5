"""Unit 11: a student's own fusion, which divides a training step among kernels, and the league: whose is cheaper?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import unwrap
from typing import Any, NamedTuple

import numpy as np

from minigrad.autodiff.transforms import grad
from minigrad.compile.fusion.by_hand import Finish, divided, members_of
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking, Partition
from minigrad.compile.jitted import trace
from minigrad.compile.look.cost import Cost
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.program import Program
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.data import digits
from minigrad.ops.creation import asarray, ones
from minigrad.ops.elementwise import exp, sqrt
from minigrad.ops.losses import cross_entropy
from minigrad.support.errors import CompileError
from minigrad.support.table import as_table, bytes_text, counted, time_text

from ...compare import Difference
from ...counting import fastest
from ...feedback import Misused, Wrong, written
from ...session import SESSION
from ...swapping import Swapped, compiler_pass, swap
from ...tasks import FunctionTask, Mistake, mistake
from .about import UNIT
from .graphs import SIZE, evaluated
from .kernels import COMBINED

Kernels = list[list[str]]
BATCH, HIDDEN, RATE, RUNS = 64, 256, 0.5, 20
PROGRAMS = (
    "tanh(x) * 2.0 + 1.0", "exp(x) / exp(x).sum()", "(x - x.max(-1, keepdims=True)) * 2.0", "tanh(x @ x) * exp(x)",
    "exp(tanh(x).T + x).sum(0)", "tanh(x) @ x + exp(x) @ x", "(exp(x) @ x).sum() * tanh(x)",
    "(sin(x) @ x) * (cos(x) @ x) + exp(x)",
)
TWICE = "append a name to one kernel only: pop it where `possible` says no, and begin a new kernel if none has taken it"
ALL = "possible takes all kernels, a list of lists of names: possible(kernels), not possible(kernel)"
FORM = 'return a list of kernels, each a list of names: [["tanh_1", "multiply_1"], ["sum_1"]]'


class Division:
    """The operations of a program, which can be divided among kernels."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        names = partition.graph.names()
        members = [member for kernel in members_of(partition) for member in kernel]
        self.members = {names[m.node] + COMBINED if isinstance(m, Finish) else names[m]: m for m in members}

    @property
    def operations(self) -> list[str]:
        """The names of all operations, each after those that it reads."""
        computes = self.partition.computes
        places = {name: (computes[m.node if isinstance(m, Finish) else m].position, isinstance(m, Finish))
                  for name, m in self.members.items()}
        return sorted(self.members, key=places.__getitem__)

    def possible(self, kernels: Sequence[Sequence[str]]) -> bool:
        """Whether the compiler can make these kernels; every other operation has a kernel of its own."""
        try:
            self.divided(kernels)
        except CompileError:
            return False
        return True

    def divided(self, kernels: Sequence[Sequence[str]]) -> Partition:
        """The partition with these kernels."""
        inside = {name for kernel in kernels for name in kernel}
        if unknown := inside - self.members.keys():
            raise Misused("possible", f"{written(min(unknown))} is not an operation of this program", ALL)
        alone = [[member] for name, member in self.members.items() if name not in inside]
        together = [[self.members[name] for name in kernel] for kernel in kernels]
        return divided(self.partition, [*together, *alone])


@contextmanager
def fused_by(function: Callable[..., Kernels]) -> Iterator[Swapped]:
    """Let `function(operations, possible)` divide each program that is compiled among kernels.

    >>> with fused_by(lambda operations, possible: [[name] for name in operations]) as mine:
    ...     mg.jit(lambda x: mg.tanh(x) * 2 + 1).kernels(mg.ones(3))
    <Partition of 3 nodes: 3 groups, 3 of them kernels>
    """
    own, swapped = unwrap(fuse), Swapped(function.__name__)

    def by_student(graph: Graph, chunking: Chunking | None = None) -> Partition:
        swapped.calls += 1
        division = Division(own(graph, chunking))
        return division.divided(function(division.operations, division.possible))

    with swap(fuse, by_student):
        yield swapped


def greedy(operations: Sequence[str], possible: Callable[[Kernels], bool]) -> Kernels:
    """Put each operation into the newest kernel that takes it."""
    kernels: Kernels = []
    for name in operations:
        for kernel in reversed(kernels):
            kernel.append(name)
            if possible(kernels):
                break
            kernel.pop()
        else:
            kernels.append([name])
    return kernels


@UNIT.task
class MyFusion(FunctionTask):
    """`my_fusion(operations, possible)` divides a program among few kernels."""

    name = "my_fusion"
    seconds = 60.0

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        self.divisions = {}
        self.made: dict[str, tuple[int, int, int]] = {}  # of each program: operations, kernels, minigrad's kernels
        for text in draw.sample(PROGRAMS, len(PROGRAMS)):
            division = Division(Program(trace(lambda x: evaluated(text, x=x), ones((SIZE, SIZE)))).partition)  # noqa: B023
            self.divisions[tuple(division.operations)] = text, division
            yield division.operations, division.possible

    def right(self, operations: Sequence[str], possible: Callable[[Kernels], bool]) -> Kernels:
        return greedy(operations, possible)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        operations, possible = args
        if not isinstance(yours, list | tuple) or not all(isinstance(kernel, list | tuple) for kernel in yours):
            raise Wrong(self.name, f"it returned {written(yours)}", FORM)
        inside = [name for kernel in yours for name in kernel]
        strange = [name for name in inside if name not in operations]
        missing = [name for name in operations if name not in inside]
        if strange:
            return f"{written(strange[0])} is not an operation of this program"
        if missing:
            return f"no kernel computes {missing[0]}"
        if len(inside) > len(operations):
            twice = next(name for name in inside if inside.count(name) > 1)
            raise Wrong(self.name, f"{twice} is computed twice\n  in {self._call(args)}", TWICE)
        if not possible(yours):
            return "the compiler cannot make these kernels"
        most = len(self.right(operations, possible))
        text, division = self.divisions[tuple(operations)]
        self.made[text] = len(operations), len(yours), len(division.partition.groups)
        return f"{counted(len(yours), 'kernel')}, and {most} are enough" if len(yours) > most else None

    def explained(self) -> str:
        total, yours, own = map(sum, zip(*self.made.values()))
        programs = len(self.made)
        return f"your {yours} kernels compute the {total} operations of {programs} programs. minigrad makes {own}."

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return bool(self.wrong(known)(*args) == [list(kernel) for kernel in yours])

    def _call(self, args: tuple[Any, ...]) -> str:
        return self.divisions[tuple(args[0])][0]

    @mistake
    def alone(self, operations: Sequence[str], possible: Any) -> Kernels:
        return [[name] for name in operations]

    @mistake
    def newest_only(self, operations: Sequence[str], possible: Any) -> Kernels:
        kernels: Kernels = []
        for name in operations:
            if kernels and possible([*kernels[:-1], [*kernels[-1], name]]):
                kernels[-1].append(name)
            else:
                kernels.append([name])
        return kernels

    @mistake
    def all_in_one(self, operations: Sequence[str], possible: Any) -> Kernels:
        return [list(operations)]

    def given(self) -> dict[str, Any]:
        return {"league": league}


# ---- the league ------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One way to run the training step, and what it takes."""

    name: str
    launches: int
    bytes: int
    seconds: float


class League:
    """A training step node by node, by a student's fusion and by minigrad: launches, bytes and time."""

    def __init__(self, rows: Sequence[Row], same: bool) -> None:
        self.rows, self.same = rows, same

    def __repr__(self) -> str:
        _, yours, own = self.rows
        fewer = yours.launches - own.launches
        than = f"{counted(abs(fewer), 'launch', 'launches')} {'more' if fewer > 0 else 'fewer'} than"
        said = f"{SESSION.author}: {than if fewer else 'as many launches as'} minigrad"
        return said if self.same else f"{said}, but OTHER NUMBERS"

    def table(self) -> str:
        """The three ways as a table."""
        rows = [(row.name, str(row.launches), bytes_text(row.bytes), time_text(row.seconds)) for row in self.rows]
        return as_table(("", "launches", "moved", "fastest run"), rows, left=1)

    def _repr_markdown_(self) -> str:
        return f"**{self!r}**\n\n```text\n{self.table()}\n```"


def training_step(images: Tensor, labels: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    """The weights after a step of a network for the digits, with a layer norm and a SiLU that are written out."""

    def loss(w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> Tensor:
        h = images @ w + b
        centred = h - h.mean(-1, keepdims=True)
        h = centred / sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return cross_entropy(h / (1 + exp(-h)) @ v + c, labels)

    gradients = grad(loss, argnums=(0, 1, 2, 3))(*weights)
    return tuple([weight - RATE * g for weight, g in zip(weights, gradients)])


def league(fusion: Callable[..., Kernels], **passes: Callable[..., Graph]) -> League:
    """Compile a training step by a student's fusion, and passes such as `simplify`; compare it with minigrad's own."""
    args = _arguments()
    graph = trace(training_step, *args)
    own = Program(graph).ready()
    with ExitStack() as mine:
        for name, each in passes.items():
            mine.enter_context(compiler_pass(name, each))
        mine.enter_context(fused_by(fusion))
        yours = Program(graph).ready()
    arrays = [np.asarray(each.numpy()) for each in args]
    plain = eager_programs(False)(training_step)
    seconds = fastest([lambda: plain(*args), lambda: yours(arrays), lambda: own(arrays)], RUNS)
    same = all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(yours(arrays), own(arrays)))
    counts = {"node by node": Cost(own).eager, "your compiler": Cost(yours).program, "minigrad": Cost(own).program}
    return League([Row(name, each.launches, each.bytes, best) for (name, each), best in zip(counts.items(), seconds)],
                  same)


def _arguments() -> list[Tensor]:
    draw = np.random.default_rng(0)
    images, labels = digits()[0].arrays
    shapes = (64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)
    weights = [asarray((draw.standard_normal(shape) / 8).astype(np.float32)) for shape in shapes]
    return [asarray(images[:BATCH].reshape(BATCH, 64).copy()), asarray(labels[:BATCH].copy()), *weights]
