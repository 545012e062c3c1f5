"""What is held in memory, and when: the arrays of a call in eager mode, and the values of a plan.

The call really runs.  An array is held until nothing refers to it any more: weak references notice this.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from ...core.clock import buffer_of, tick
from ...core.primitive import P
from ...support.collector import no_collection
from ...support.source import Where
from ..fusion.count import Count
from ..running.plan import IN_PLACE, INPUT, Plan
from ..running.plan import Call as LibraryCall
from ..running.profiler import AROUND, profile
from ..running.steps import COPIES
from .watching import Call, Calls, frames_above, modules_now, node_now, watching


class Site(NamedTuple):
    """From where a launch of eager mode is called: the functions, the outermost first, and the modules.

    `where` is the line in the code; in the backward pass, that of the operation whose gradient is computed.  The launch
    of this operation has the number `of`.  A step of a program has the number of the first one in its `run`.
    """

    name: str
    begin: float
    frames: Sequence[Where]
    scope: tuple[str, ...]
    cost: Count
    where: Where | None
    of: int
    run: int = -1
    program: Any = None


class Life(NamedTuple):
    """A value in memory: the first and the last step at which it is there; a line; and where it lies in a program.

    `output` is the number of the last output of the program that lies in it.  Work memory has no dtype.  `home` is the
    part of the program that it belongs to.
    """

    name: str
    bytes: int
    begin: int
    end: int
    where: Where | None
    place: str = ""
    output: int = -1
    dtype: Any = None
    home: tuple[str, ...] = ()


class Held(Calls):
    """The sites of a call, the arrays that it made, and the number of the last site before each array was freed.

    The work memory of a program is held when it ends.  Arrays from before the call are not among those made.

    >>> held = Held()
    >>> with held.watch():
    ...     y = (mg.ones(1000) * 2).sum()
    >>> [site.name for site in held.sites], held.freed
    (['full', 'multiply', 'sum'], {0: 1, 1: 2})
    >>> [(life.name, life.bytes, life.begin, life.end) for life in held.lives]
    [('full (1000,)', 4000, 0, 1), ('multiply (1000,)', 4000, 1, 2), ('sum ()', 4, 2, 2)]
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.times: list[int] = []  # by the clock of recorded nodes
        self.made: list[Life] = []
        self.freed: dict[int, int] = {}
        self.alive: dict[int, Any] = {}  # weak references to the others, by the ids of their memory

    @property
    def lives(self) -> list[Life]:
        """The arrays, each with the last site at which it was held."""
        last = len(self.sites) - 1
        return [made._replace(end=self.freed.get(number, last)) for number, made in enumerate(self.made)]

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note what is called, made and freed in this block; the collector waits, so that each run is the same."""
        with no_collection(), watching(programs=True, into=self), _Programs(self):
            yield

    def append(self, call: Call) -> None:
        """Note a kernel that ran.  The memory of its results is new if it is not that of a value that it was given."""
        given = {id(buffer_of(value)) for value in (*call.values, call.attrs.get("out")) if hasattr(value, "base")}
        self.note(call.op.name, call.begin, call.frames, call.count)
        self.keep(call.op.name, call.result if isinstance(call.result, tuple) else (call.result,), given)

    def note(self, name: str, begin: float, frames: Sequence[Where], cost: Count) -> None:
        """Note a launch."""
        node = node_now()
        where = node.where if node else frames[0] if frames else None
        of = bisect(self.times, node.serial) - 1 if node else -1
        self.times.append(tick())
        self.sites.append(Site(name, begin, frames, modules_now(), cost, where, of))

    def keep(self, name: str, results: Iterable[Any], given: Iterable[int] = ()) -> None:
        """Note the new arrays among the results of the last launch."""
        for owner in [buffer_of(array) for array in results if hasattr(array, "base")]:
            if id(owner) not in self.alive and id(owner) not in given:
                self.alive[id(owner)] = ref(owner, partial(self._free, id(owner), len(self.made)))
                self._make(f"{name} {owner.shape}", owner.nbytes, owner.dtype)

    def _make(self, name: str, size: int, dtype: Any = None) -> None:
        at = len(self.sites) - 1
        self.made.append(Life(name, size, at, at, self.sites[at].where, dtype=dtype))

    def _free(self, key: int, number: int, _: Any) -> None:
        self.freed[number] = len(self.sites) - 1
        self.alive.pop(key)


class _Programs(profile):
    """Notes the launches of programs: of composed functions, of updates, and of jitted functions that are called."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held

    def note(self, name: str, begin: float, end: float, cost: Count) -> None:
        self.held.note(AROUND.get() + name, begin, frames_above(2), cost)

    def ended(self, program: Any, results: Sequence[Any]) -> None:
        """Note the steps, the results and the work memory of a program; one without steps makes nothing."""
        sites, around, first = self.held.sites, AROUND.get(), len(self.held.sites)
        if not sites:
            return
        own = {step.name for step in program.plan.steps} | {COPIES}
        for site in reversed(sites):
            step, inside, _ = site.name.removeprefix(around).partition("/")
            if step not in own or (site.run >= 0 and not inside):  # inside a loop, the body has ended before
                break
            first -= 1
        sites[first:] = [site._replace(run=first, program=program) for site in sites[first:]]
        name = around.removesuffix("/") or "program"
        self.held.keep(name, results)
        if work := sum(program.plan.slots):
            self.held.freed[len(self.held.made)] = len(self.held.sites) - 1
            self.held._make(f"work memory of {name}", work)

    def copied(self, array: Any, function: str) -> None:
        """Note a copy of an input of a function, which its gradient needs."""
        self.held.keep(f"copy of an input of {function}", [array])


def lives_of(plan: Plan) -> list[Life]:
    """The values that a program makes: each lives from the step that writes it to the last step that reads it.

    Values in the memory of an input, which belongs to the caller, are not among them.  Outputs that do not own their
    memory are copied at the end.
    """
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    order = [number for turn in plan.turns for number in turn]
    home = {i: i for i in range(len(plan.buffers))}
    for at, number in enumerate(order):
        step = plan.steps[number]
        reads, writes = plan.uses(step)
        if isinstance(step, LibraryCall) and (step.in_place or step.op is P.project):  # in the memory of all results
            home[step.out] = home[step.reads[0].buffer]
        for buffer in writes:
            begin.setdefault(home[buffer], at)
        end |= {home[buffer]: at for buffer in (*reads, *writes)}
    last = len(order) - 1 + bool(plan.copied)  # to copy is one more step
    outputs = {home[read.buffer]: number for number, read in enumerate(plan.outputs) if number not in plan.copied}
    end |= {home[read.buffer]: last for read in plan.outputs}
    lives = []
    for i, first in begin.items():
        made, number = plan.buffers[i], outputs.get(i, -1)
        if made.kind not in (INPUT, IN_PLACE):
            place = f"{made.kind} {made.number}".removesuffix(" -1")
            lives.append(Life(made.name, made.nbytes, first, end[i], made.where, place, number, made.dtype))
    for number, read in plan.copied.items():
        made = plan.buffers[read.buffer]
        size = read.size * made.dtype.itemsize
        lives.append(Life(made.name, size, last, last, made.where, "a copy", number, made.dtype))
    return lives
