"""Replay: records the steps of a frame as a CUDA graph, which later runs launch with a single call.

A CUDA graph has fixed addresses.  The frame's memory does not move, but inputs and results may lie elsewhere in each
run.  A run is therefore recorded when all addresses are those of the run before.  A value that has moved twice gets
memory in the frame, and is copied there before each run, or from there after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.primitive import P
from .plan import LIBRARY

if TYPE_CHECKING:
    from .gpu import CudaFrame

# The library calls that only queue work: others read results, or wait for the GPU.
REPLAYABLE = {
    P.matmul, P.random, P.gather, P.scatter_add, P.concat, P.place, P.full, P.arange, P.reshape, P.argmax, P.argmin,
    P.cumulative_sum, P.cumulative_prod,
}
PATIENCE = 2  # a value that has moved this often is copied
FEWEST = 3  # steps of a run that is worth recording


class Passing(NamedTuple):
    """An input or a result, by number, and the buffers that lie in its memory."""

    number: int
    buffers: Sequence[int]
    comes: bool
    goes: bool


class Replay:
    """The recorded run of a frame."""

    def __init__(self, frame: CudaFrame) -> None:
        self.frame = frame
        layout = frame.layout
        self.passing = [
            Passing(number, buffers, True, len(buffers) > 1) for number, buffers in enumerate(layout.arriving)
        ]
        self.passing += [Passing(number, [buffer], False, True) for buffer, number, *_ in layout.results]
        self.where: list[Any] = [None] * len(self.passing)  # the address of each: a table that the frame writes
        for place, each in enumerate(self.passing):
            frame.slots[each.buffers[0]].append((self.where, place, 0))
        self.before: list[Any] | None = None
        self.moves = [0] * len(self.passing)
        self.copies: dict[int, Any] = {}  # the values with memory in the frame
        self.graph: Any = None
        self.pool: Any = None  # the memory that libraries allocate during the recording
        self.made: dict[int, Any] = {}  # the results that libraries allocate
        self.refused = ""  # why the run cannot be recorded

    def run(self, arrays: Sequence[Any], results: Sequence[Any], starts: Any) -> None:
        """Run the steps, by the recording if there is one."""
        moved = self.where != self.before
        if moved:
            self._note_moves()
        for place, copy in self.copies.items():
            self._use(copy, self.passing[place], arrays)
        steps = self.frame.steps
        if self.graph is not None:
            self._launch()
        elif moved or self.refused or len(steps) < FEWEST or not self._record(starts):
            for step in steps:
                step(starts)
        for place, copy in self.copies.items():
            number, _, comes, goes = self.passing[place]
            if goes:
                self.frame.library.copyto((arrays if comes else results)[number], copy)

    # values that move -----------------------------------------------------------------------------------------------

    def _note_moves(self) -> None:
        """Drop the recording; values that have moved often get memory in the frame."""
        before, self.graph = self.before or self.where, None
        for place, (old, new) in enumerate(zip(before, self.where)):
            self.moves[place] += old != new
            if self.moves[place] >= PATIENCE and place not in self.copies:
                self._give_place(place)
        self.before = list(self.where)

    def _give_place(self, place: int) -> None:
        frame, numbers = self.frame, self.passing[place].buffers
        like = frame.buffers[numbers[0]]
        copy = self.copies[place] = frame.library.empty(like.shape, like.dtype)
        for number in numbers:
            frame._write_address(number, frame.address(copy))
            frame.slots[number] = []

    def _use(self, copy: Any, passing: Passing, arrays: Sequence[Any]) -> None:
        """Make the steps work on a copy."""
        frame = self.frame
        if passing.comes:
            frame.library.copyto(copy, arrays[passing.number])
        for number in passing.buffers:
            if frame.arrays[number] is not None:
                frame.arrays[number] = copy.reshape(-1)

    # the recording --------------------------------------------------------------------------------------------------

    def _record(self, starts: Any) -> bool:
        """Record the steps and run them; return whether that was possible."""
        frame, cuda = self.frame, self.frame.library.cuda
        pool, stream = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        try:
            with cuda.using_allocator(pool.malloc), stream:  # only the recording uses this memory
                stream.begin_capture()
                try:
                    for step in frame.steps:
                        step(starts)
                finally:
                    self.graph = stream.end_capture()
        except Exception as error:  # any error of a library that cannot be recorded
            self.graph, self.refused = None, f"{type(error).__name__}: {error}"
            return False
        self.pool = pool
        returned = {read.buffer for read in frame.plan.outputs}
        self.made = {number: frame.arrays[number] for number in returned if frame.buffers[number].kind == LIBRARY}
        self._launch()
        return True

    def _launch(self) -> None:
        self.graph.launch()
        for number, array in self.made.items():
            self.frame.arrays[number] = array.copy()  # the next launch writes to the same memory
