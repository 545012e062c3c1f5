"""Replay: records the steps of a frame as CUDA graphs, which later runs launch with a single call.

A CUDA graph has fixed addresses.  The frame's memory does not move, but inputs and results may lie elsewhere in each
run.  They often alternate between a few places, because an allocator returns the memory that was freed last.  So a run
is recorded when everything lies where it lay in some run before, and several recordings are kept.  A value that comes
to ever new places gets memory in the frame, and is copied there before each run, or from there after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.primitive import P
from ..nodes.thresholds import MOST_PLACES, MOST_RECORDINGS
from .frame import Frame
from .plan import LIBRARY

# The library calls that only queue work: others read results, or wait for the GPU.
REPLAYABLE = {
    P.matmul, P.random, P.gather, P.scatter_add, P.scatter_max, P.concat, P.place, P.full, P.arange, P.reshape,
    P.argmax, P.argmin, P.cumulative_sum, P.cumulative_prod,
}


class Passing(NamedTuple):
    """An input or a result, by number, and the buffers that lie in its memory."""

    number: int
    buffers: Sequence[int]
    comes: bool
    goes: bool


class Recorded(NamedTuple):
    """A recorded run: its graph, the memory that libraries allocated, and the results that are in that memory."""

    graph: Any
    pool: Any
    made: dict[int, Any]


class Replay:
    """The recorded runs of a frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        layout = frame.layout
        self.passing = [
            Passing(number, buffers, True, len(buffers) > 1) for number, buffers in enumerate(layout.arriving)
        ]
        self.passing += [Passing(number, [buffer], False, True) for buffer, number, *_ in layout.results]
        self.where: list[Any] = [None] * len(self.passing)  # the address of each: a table that the frame writes
        for place, each in enumerate(self.passing):
            frame.slots[each.buffers[0]].append((self.where, place, 0))
        self.recorded: dict[tuple[Any, ...], Recorded] = {}  # by the addresses
        self.seen: set[tuple[Any, ...]] = set()  # the addresses of runs that were not recorded
        self.places: list[set[Any]] = [set() for _ in self.passing]  # where each value has been
        self.copies: dict[int, Any] = {}  # the values with memory in the frame
        self.slots: dict[int, Any] = {}  # what `frame.slots` held for these values
        self.refused = ""  # why runs cannot be recorded

    def run(self, arrays: Sequence[Any], results: Sequence[Any], starts: Any) -> None:
        """Run the steps, by a recording if there is one."""
        recorded = self.recorded.get(tuple(self.where))
        again = recorded is None and not self.refused and self._noted()
        for place, copy in self.copies.items():
            self._use(copy, self.passing[place], arrays)
        if again:
            recorded = self._record(starts)
        if recorded is not None:
            self._launch(recorded)
        else:
            for step in self.frame.steps:
                step(starts)
        for place, copy in self.copies.items():
            number, buffers, comes, goes = self.passing[place]
            if goes:
                there = (arrays if comes else results)[number]
                self.frame.library.copyto(there, copy)
                self._set_arrays(buffers, there)  # what is returned may be a view of them
        if self.refused and self.copies:
            self._drop_copies()

    # values that move -----------------------------------------------------------------------------------------------

    def _noted(self) -> bool:
        """Note where everything is; return whether it was there in an earlier run.

        Values that have been at many places get memory in the frame.
        """
        where = tuple(self.where)
        for places, address in zip(self.places, where):
            places.add(address)
        few = MOST_PLACES if len(self.recorded) < MOST_RECORDINGS else 1
        moving = [place for place, places in enumerate(self.places) if len(places) > few and place not in self.copies]
        if moving:
            for place in moving:
                self._give_place(place)
            self.recorded.clear()
            self.seen.clear()
            where = tuple(self.where)
        again = where in self.seen
        self.seen.add(where)
        return again

    def _give_place(self, place: int) -> None:
        frame, numbers = self.frame, self.passing[place].buffers
        like = frame.buffers[numbers[0]]
        copy = self.copies[place] = frame.library.empty(like.shape, like.dtype)
        for number in numbers:
            frame._write_address(number, frame.address(copy))
            self.slots[number], frame.slots[number] = frame.slots[number], []

    def _drop_copies(self) -> None:
        """Let the values lie where they come from, from the next run on."""
        for number, slots in self.slots.items():
            self.frame.slots[number] = slots
        self.slots.clear()
        self.copies.clear()
        self.frame.forget_inputs()

    def _use(self, copy: Any, passing: Passing, arrays: Sequence[Any]) -> None:
        """Make the steps work on a copy."""
        if passing.comes:
            self.frame.library.copyto(copy, arrays[passing.number])
        self._set_arrays(passing.buffers, copy)

    def _set_arrays(self, numbers: Sequence[int], array: Any) -> None:
        for number in numbers:
            if self.frame.arrays[number] is not None:
                self.frame.arrays[number] = array.reshape(-1)

    # the recordings -------------------------------------------------------------------------------------------------

    def _record(self, starts: Any) -> Recorded | None:
        """Record the steps; None if that is not possible."""
        frame, cuda = self.frame, self.frame.library.cuda
        pool, stream = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        try:
            with cuda.using_allocator(pool.malloc), stream:  # only the recording uses this memory
                stream.begin_capture()
                try:
                    for step in frame.steps:
                        step(starts)
                finally:
                    graph = stream.end_capture()
        except Exception as error:  # any error of a library that cannot be recorded
            self.refused = f"{type(error).__name__}: {error}"
            return None
        returned = {read.buffer for read in frame.plan.outputs}
        made = {number: frame.arrays[number] for number in returned if frame.buffers[number].kind == LIBRARY}
        recorded = self.recorded[tuple(self.where)] = Recorded(graph, pool, made)
        return recorded

    def _launch(self, recorded: Recorded) -> None:
        recorded.graph.launch()
        for number, array in recorded.made.items():
            self.frame.arrays[number] = array.copy()  # the next launch writes to the same memory
