"""Where the launches of a call in eager mode come from, and which arrays they make: the call really runs.

An array is held until nothing refers to it any more: weak references notice this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from ...core.clock import buffer_of
from ...support.collector import no_collection
from ...support.source import Where
from ..fusion.count import Count
from ..running.profiler import AROUND, profile
from .watching import Call, Calls, frames_above, modules_now, node_now, watching


class Site(NamedTuple):
    """From where a launch of eager mode is called: the functions, the outermost first, and the modules.

    `where` is the line in the code; in the backward pass, that of the operation whose gradient is computed.
    """

    name: str
    begin: float
    frames: Sequence[Where]
    scope: tuple[str, ...]
    cost: Count
    where: Where | None


class Made(NamedTuple):
    """An array that a call made: a name, the bytes, and the number of the site."""

    name: str
    bytes: int
    begin: int


class Held(Calls):
    """The sites of a call, the arrays that it made, and the number of the last site before each array was freed.

    The work memory of a program is held when it ends.  Arrays from before the call are not among those made.

    >>> held = Held()
    >>> with held.watch():
    ...     y = (mg.ones(1000) * 2).sum()
    >>> [site.name for site in held.sites], held.freed
    (['full', 'multiply', 'sum'], {0: 1, 1: 2})
    >>> held.made[0]
    Made(name='full (1000,)', bytes=4000, begin=0)
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.made: list[Made] = []
        self.freed: dict[int, int] = {}
        self.alive: dict[int, Any] = {}  # weak references to the others, by the ids of their memory

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
        self.sites.append(Site(name, begin, frames, modules_now(), cost, where))

    def keep(self, name: str, results: Iterable[Any], given: Iterable[int] = ()) -> None:
        """Note the new arrays among the results of the last launch."""
        for owner in [buffer_of(array) for array in results if array is not None]:
            if id(owner) not in self.alive and id(owner) not in given:
                self.alive[id(owner)] = ref(owner, partial(self._free, id(owner), len(self.made)))
                self.made.append(Made(f"{name} {owner.shape}", owner.nbytes, len(self.sites) - 1))

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

    def ended(self, plan: Any, results: Sequence[Any]) -> None:
        """Note the results and the work memory of a program."""
        name = self.held.sites[-1].name.rpartition("/")[0] or "program"
        self.held.keep(name, results)
        if work := sum(plan.slots):
            self.held.freed[len(self.held.made)] = last = len(self.held.sites) - 1
            self.held.made.append(Made(f"work memory of {name}", work, last))
