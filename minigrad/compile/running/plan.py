"""Plans: the result of the compiler, plain data with the steps of a program and the memory of each value.

A run needs only the plan.  Steps refer to buffers by number, and buffers hold no values.  The runtime, the views and
the cost model read plans.

Values that are not needed at the same time share memory, the arena.  Only values between steps are in it.  Inputs
belong to the caller, and results get new memory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, TypeGuard

from ...core.dtypes import float32, float64
from ...core.primitive import P, Primitive
from ...support.source import Where
from ...support.table import bytes_text
from ..fusion.count import Count
from ..fusion.group import Factor
from ..loops.ir import Kernel
from ..nodes.graph import later
from ..nodes.view import in_order


@dataclass
class Arena:
    """`slots` are the sizes of the arena's pieces in bytes; `place` maps each value to its slot."""

    slots: list[int] = field(default_factory=list)
    place: dict[Hashable, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of the arena."""
        return sum(self.slots)


def arena_for(steps: Sequence[tuple[Iterable[Any], Iterable[Any]]], size_of: Callable[[Any], int | None]) -> Arena:
    """An arena for steps, each of which reads some values and then writes some.

    A value lives from the step that writes it to the last step that reads it.  `size_of` returns its bytes, or None if
    it has memory elsewhere.  A value takes the smallest free slot that is large enough, or enlarges the largest one.

    >>> sizes = {"a": 100, "b": 60, "c": 80}
    >>> made = arena_for([((), "a"), ("a", "b"), ("b", "c"), ("c", ())], sizes.get)
    >>> made.slots, made.place
    ([100, 60], {'a': 0, 'b': 1, 'c': 0})
    """
    last = {value: number for number, (reads, writes) in enumerate(steps) for value in (*reads, *writes)}
    made = Arena()
    free: list[tuple[int, int, int]] = []  # free slots, sorted: (bytes, the step that freed it, its number)
    for number, (reads, writes) in enumerate(steps):
        written = list(writes)
        for value in written:
            size = size_of(value)
            if size is not None and value not in made.place:
                made.place[value] = _slot(made.slots, free, size)
        for value in dict.fromkeys((*reads, *written)):
            if last[value] == number and value in made.place:
                slot = made.place[value]
                insort(free, (made.slots[slot], number, slot))
    return made


def _slot(slots: list[int], free: list[tuple[int, int, int]], size: int) -> int:
    if not free:
        slots.append(size)
        return len(slots) - 1
    smallest_fitting = bisect_left(free, (size,))
    _, _, slot = free.pop(min(smallest_fitting, len(free) - 1))
    slots[slot] = max(slots[slot], size)
    return slot


# Plans ----------------------------------------------------------------------------------------------------------------


INPUT, IN_PLACE, SLOT, RESULT, LIBRARY = "input", "in place", "slot", "result", "library"
CHECK = "check_"  # the names of checks begin so


@dataclass(frozen=True)
class Buffer:
    """The memory of a value; for several results, `shape` and `dtype` are tuples.

    `kind` says where it lies: in an input, in place of an input (which is overwritten), in a slot of the arena, in a
    result, or in memory of a library.  `number` is the number of the input, slot or result; for memory of a library,
    the number of the result that it becomes, or -1.  `where` is the line of code that made the value.  `lasting` marks
    an input that rarely differs between runs.
    """

    name: str
    shape: tuple[Any, ...]
    dtype: Any
    device: Any
    where: Where | None = None
    kind: str = ""
    number: int = -1
    lasting: bool = False

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all results."""
        if isinstance(self.dtype, tuple):
            return sum(prod(shape) * dtype.itemsize for shape, dtype in zip(self.shape, self.dtype))
        return int(self.size * self.dtype.itemsize)


@dataclass(frozen=True)
class Read:
    """A view of a buffer: element (i, j) lies at `offset` + i · strides[0] + j · strides[1], in elements."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Launch:
    """A call of a compiled kernel: the buffer of each parameter (None: scratch memory), and the first element.

    `computes` names the values that the kernel computes, also those that it does not store.  `by_nodes` returns
    what is called like machine code, where there is none.
    """

    name: str
    kernel: Kernel
    buffers: tuple[int | None, ...]
    offsets: tuple[int, ...]
    count: Count
    computes: tuple[str, ...] = ()
    where: Where | None = None
    by_nodes: Callable[[], Callable[[int], object] | None] = lambda: None


@dataclass(frozen=True)
class Call:
    """A library call, on views of buffers and on numbers.

    The library fills the buffer `out` (`fills`), or allocates its result.  The result then is the buffer, or moves into
    the arena.
    """

    name: str
    op: Primitive
    reads: tuple[Any, ...]  # a Read or a number for each operand
    attrs: dict[str, Any]
    out: int
    fills: bool
    count: Count
    effect: str | None = None  # what it does apart from computing its result, such as "print"
    where: Where | None = None
    in_place: bool = False  # whether a `put` writes into the memory of its operand, which nothing reads afterwards


@dataclass(frozen=True)
class Check:
    """A check that integers are valid positions in a dimension of this size, for the operation `op`."""

    name: str
    read: Read
    size: int
    op: str
    count: Count
    where: Where | None = None


@dataclass(frozen=True)
class Blocked:
    """A kernel that runs on blocks of `rows` rows, after the products `into` and before the products `out`.

    `shape` is the shape of the stack and of a matrix of the kernel.  `scratch` has a dtype for each matrix in scratch
    memory, and `given` the parameter of the kernel and the number of the matrix that it points to.  If `triangular`,
    only columns up to the last row of a block are computed.
    """

    prepared = later("minigrad.compile.running.blocked", "BlockedRun")
    calls = later("minigrad.compile.running.blocked", "calls_of")
    launch: Launch
    into: tuple[Factor, ...]
    out: tuple[Factor, ...]
    scratch: tuple[Any, ...]
    given: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    rows: int
    triangular: bool
    count: Count
    computes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.launch.name

    @property
    def where(self) -> Where | None:
        """The line of the first value."""
        return self.launch.where

    @property
    def reads(self) -> list[Read]:
        """The operands of the products in memory."""
        read = [part for factor in (*self.into, *self.out) for part in (factor.left, factor.right)]
        return [part for part in read if isinstance(part, Read)]

    @property
    def writes(self) -> list[Read]:
        """The results of the products in memory."""
        return [factor.out for factor in self.out if isinstance(factor.out, Read)]


Step = Launch | Call | Check | Blocked
Turns = Callable[["Plan"], Sequence[Sequence[int]]]
Used = Sequence[tuple[list[int], list[int]]]  # what each turn reads and writes


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs.  The first buffers are the inputs; `outputs` are the views that are returned.

    `turns` lists the numbers of the steps in the order of a run; the steps of one turn run at the same time.  The first
    `early` turns are steps that read lasting inputs only.  Their results are kept in the arena between runs.
    """

    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Read, ...]
    turns: tuple[tuple[int, ...], ...] = ()
    early: int = 0

    @cached_property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers of the inputs."""
        return tuple([buffer for buffer in self.buffers if buffer.kind == INPUT])

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The bytes of each slot of the arena: the size of the largest value in it."""
        sizes: dict[int, int] = {}
        for buffer in self.buffers:
            if buffer.kind == SLOT:
                sizes[buffer.number] = max(sizes.get(buffer.number, 0), buffer.nbytes)
        return tuple([sizes[number] for number in range(len(sizes))])

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the numbers of the steps that it waits for.

        A step waits for the steps that write what it reads.  A step that overwrites an input also waits for all steps
        that read the input.  Steps that cannot be undone (overwriting, effects) wait for all checks before them, which
        may stop the run, and effects wait for each other.

        >>> f = mg.jit(lambda x: mg.tanh(x @ x) @ x)
        >>> f.program(mg.ones((2, 2))).plan.after
        ((), (0,), (1,))
        """
        return tuple(self._waits())

    _waits = later("minigrad.compile.running.schedule", "waits")
    __str__ = later("minigrad.compile.look.texts", "plan_listing")

    def is_whole(self, read: Read) -> bool:
        """Whether a view is all of its buffer, in the order in memory."""
        return in_order(self.buffers[read.buffer].size, read.offset, read.shape, read.strides)

    def is_permuted(self, read: Read) -> bool:
        """Whether a view is all of its buffer, in any order of the dimensions."""
        dims = sorted(zip(read.shape, read.strides), key=lambda dim: -dim[1])
        shape, strides = tuple([size for size, _ in dims]), tuple([stride for _, stride in dims])
        return in_order(self.buffers[read.buffer].size, read.offset, shape, strides)

    def __repr__(self) -> str:
        kernels = sum(isinstance(step, (Launch, Blocked)) for step in self.steps)
        return f"<Plan of {len(self.steps)} steps, {kernels} of them kernels, arena {bytes_text(sum(self.slots))}>"

    @cached_property
    def copied(self) -> dict[int, Read]:
        """The results that are copied after all steps, because they do not own their memory, by their numbers."""
        owned = (RESULT, LIBRARY)
        made = [(number, read, self.buffers[read.buffer]) for number, read in enumerate(self.outputs)]
        return {number: read for number, read, buffer in made
                if buffer.kind != IN_PLACE and (buffer.kind not in owned or buffer.number != number)}

    def uses(self, step: Step) -> tuple[list[int], list[int]]:
        """The buffers that a step reads, and those that it writes."""
        if isinstance(step, Call):
            return list(dict.fromkeys(read.buffer for read in step.reads if isinstance(read, Read))), [step.out]
        if isinstance(step, Check):
            return [step.read.buffer], []
        if isinstance(step, Blocked):
            reads, writes = self.uses(step.launch)
            reads += [read.buffer for read in step.reads if read.buffer not in writes]
            return list(dict.fromkeys(reads)), writes + [each.buffer for each in step.writes]
        given = [(n, p.role) for n, p in zip(step.buffers, step.kernel.parameters) if n is not None]
        reads = [number for number, role in given if role == "in"]
        reads += [self.buffers[number].number for number, role in given if role == "inout"]  # the input it overwrites
        return list(dict.fromkeys(reads)), list(dict.fromkeys(number for number, role in given if role != "in"))

def has_effect(step: Step) -> bool:
    """Whether a step does more than compute its results."""
    return isinstance(step, Call) and step.effect is not None


def is_product(op: Primitive, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether a library can write the result into existing memory: not for halves and integers."""
    return op is P.matmul and dtype in (float32, float64) and prod(shape) > 0


def one_by_one(plan: Plan) -> list[list[int]]:
    """Each step alone."""
    return [[number] for number in range(len(plan.steps))]


# Places -------------------------------------------------------------------------------------------------------------


def laid_out(
    buffers: Sequence[Buffer], steps: Sequence[Step], outputs: Sequence[Read], turns: Turns, any_layout: bool = False
) -> Plan:
    """The plan of these steps, with a place for each buffer; with `any_layout`, results may be permuted."""
    draft = Plan(tuple(buffers), tuple(steps), tuple(outputs))
    places = _places(draft, draft.is_permuted if any_layout else draft.is_whole)
    early, kept = _early(draft, places)
    later = [tuple([number for number in turn if number not in early]) for turn in turns(draft)]
    order = (*[(number,) for number in early], *filter(None, later))
    used = []
    for turn in order:
        each = [draft.uses(draft.steps[number]) for number in turn]
        used.append(([n for reads, _ in each for n in reads], [n for _, writes in each for n in writes]))
    used.append(([read.buffer for read in outputs], []))
    sizes: list[int | None] = [b.nbytes if kind == SLOT else None for b, (kind, _) in zip(buffers, places)]
    for i in kept:
        sizes[i] = None
    home = _homes(draft, order, used, sizes)
    joined = [([home[i] for i in reads], [home[i] for i in writes]) for reads, writes in used]
    arena = arena_for(joined, sizes.__getitem__)
    slots = {i: arena.place[h] for i, h in enumerate(home) if h in arena.place}
    slots |= {i: number for number, i in enumerate(kept, start=len(arena.slots))}
    placed = [
        b if b.kind else Buffer(b.name, b.shape, b.dtype, b.device, b.where, kind, slots.get(i, number))
        for i, (b, (kind, number)) in enumerate(zip(buffers, places))
    ]
    put = tuple([_put(step, buffers[step.out], home) if _is_put(step) else step for step in steps])
    return Plan(tuple(placed), put, draft.outputs, order, len(early))


def _is_put(step: Step) -> TypeGuard[Call]:
    return isinstance(step, Call) and step.op is P.put


def _put(step: Call, out: Buffer, home: Sequence[int]) -> Call:
    """A write into the memory of its operand, or into a copy, which costs more."""
    in_place = step.in_place or home[step.out] != step.out
    return replace(step, in_place=in_place, count=step.count + Count(out.nbytes, out.nbytes) * (not in_place))


def _homes(plan: Plan, order: Sequence[Sequence[int]], used: Used, sizes: Sequence[int | None]) -> list[int]:
    """The buffer whose place each buffer has: another one's where a `put` is the last step that reads that one."""
    home = list(range(len(plan.buffers)))
    last = {buffer: at for at, (reads, _) in enumerate(used) for buffer in reads}
    for at, turn in enumerate(order):
        for step in filter(_is_put, [plan.steps[number] for number in turn]):
            base, reads = step.reads[0], [read.buffer for read in step.reads if isinstance(read, Read)]
            alone = last[base.buffer] == at and [*reads, *used[at][0]].count(base.buffer) == 2  # it is in both lists
            if alone and plan.is_whole(base) and None not in (sizes[base.buffer], sizes[step.out]):
                home[step.out] = home[base.buffer]
    return home


def _early(plan: Plan, places: Sequence[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """The steps whose results can be kept between runs, because they read lasting inputs only; and these results.

    A step that reads checked positions is not among them: the check runs each time, and comes first.
    """
    lasting = {number for number, buffer in enumerate(plan.buffers) if buffer.lasting}
    early: list[int] = []
    kept: list[int] = []
    for number, step in enumerate(plan.steps):
        reads, writes = plan.uses(step)
        if isinstance(step, Check):
            lasting.difference_update(reads)
        elif reads and lasting.issuperset(reads) and all(places[i][0] == SLOT for i in writes) and not has_effect(step):
            early.append(number)
            kept += writes
            lasting.update(writes)
    return early, kept


def _places(plan: Plan, is_result: Callable[[Read], bool]) -> list[tuple[str, int]]:
    """The kind and the number of each buffer: a library's memory, a result if it is one as a whole, or the arena."""
    calls = {step.out: step for step in plan.steps if isinstance(step, Call) and not step.fills}
    results: dict[int, int] = {}
    for number, read in enumerate(plan.outputs):
        if is_result(read):
            results.setdefault(read.buffer, number)
    found = []
    for number, buffer in enumerate(plan.buffers):
        kind = RESULT if number in results else SLOT
        if number in calls and (kind == RESULT or _stays_in_place(calls[number], buffer)):
            kind = LIBRARY
        found.append((buffer.kind or kind, results.get(number, -1)))
    return found


def _stays_in_place(call: Call, buffer: Buffer) -> bool:
    """Whether the result of a library call stays where the library put it, instead of moving into the arena.

    Several results are one tuple of arrays, of which `project` takes one.  GPUs keep memory for results themselves.
    A transfer that has begun goes on in its own memory.
    """
    alone = isinstance(buffer.dtype, tuple) or call.op is P.project or bool(call.op.effect)
    return alone or not buffer.device.is_standard
