"""The arrays that a call makes in eager mode: at which step each of them is made, and until when it is held.

The call really runs.  An array is held until nothing refers to it any more: weak references notice this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from ..compile.look.watching import Call, Calls, frames_above, modules_now, node_now, watching
from ..compile.running.profiler import AROUND, profile
from ..core.clock import buffer_of
from ..support.collector import no_collection
from ..support.source import Where
from .phases import phase_of


class Step(NamedTuple):
    """A kernel, or a composed function as a program, that ran: its phase, its modules, and the line in the code.

    In the backward pass, it is the line of the operation whose gradient is computed.
    """

    name: str
    phase: str
    scope: tuple[str, ...]
    where: Where | None


class Made(NamedTuple):
    """An array: its name, its bytes, and the step that made it."""

    name: str
    bytes: int
    begin: int


class Held(Calls):
    """The steps of a call, the arrays that they made, and the last step of each array that was freed, by its number.

    The work memory of a program is held at its step alone.  Arrays from before the call are not among those made.

    >>> held = Held()
    >>> with held.watch():
    ...     y = (mg.ones(1000) * 2).sum()
    >>> [step.name for step in held.steps], held.freed
    (['full', 'multiply', 'sum'], {0: 1, 1: 2})
    >>> held.made[0]
    Made(name='full (1000,)', bytes=4000, begin=0)
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.made: list[Made] = []
        self.freed: dict[int, int] = {}
        self.alive: dict[int, Any] = {}  # weak references to the others, by the ids of their memory

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note what is made and freed in this block; the collector waits, so that this is the same in each run."""
        with no_collection(), watching(programs=True, into=self), _Programs(self):
            yield

    def append(self, call: Call) -> None:
        """Note a kernel that ran.  A view makes no array, unless it must copy."""
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        new = self._new(results, (*call.values, call.attrs.get("out")))
        if new or call.op.kind != "view":
            self.note(call.op.name, new, call.frames, call.scope)

    def note(self, name: str, new: Iterable[Any], frames: Sequence[Where], scope: tuple[str, ...]) -> None:
        """Note a step that made new arrays."""
        node = node_now()
        where = next(iter(frames), None) if node is None else node.where
        for array in new:
            self.alive[id(array)] = ref(array, partial(self._free, id(array), len(self.made)))
            self.made.append(Made(f"{name} {array.shape}", array.nbytes, len(self.steps)))
        self.steps.append(Step(name, phase_of(frames), scope, where))

    def _new(self, results: Iterable[Any], given: Iterable[Any] = ()) -> list[Any]:
        """The arrays that own the memory of results, if it is neither that of a given array nor noted before."""
        before = {id(buffer_of(array)) for array in given if hasattr(array, "base")}
        owners = {id(owner): owner for array in results if array is not None for owner in [buffer_of(array)]}
        return [owner for key, owner in owners.items() if key not in before and key not in self.alive]

    def _free(self, key: int, number: int, _: Any) -> None:
        """Note that an array is freed: it was held until the last step."""
        self.freed[number] = len(self.steps) - 1
        self.alive.pop(key)


class _Programs(profile):
    """Notes programs that end: those of composed functions, of updates, and of jitted functions in the call."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held

    def ended(self, plan: Any, results: Sequence[Any]) -> None:
        """Note a program, its results, and its work memory."""
        held, at = self.held, len(self.held.steps)
        name = AROUND.get().strip("/") or "program"
        held.note(name, held._new(results), frames_above(2), modules_now())
        if work := sum(plan.slots):
            held.freed[len(held.made)] = at
            held.made.append(Made(f"work memory of {name}", work, at))
