"""Replay: the steps of a frame, recorded once as a CUDA graph, and launched by a single call from then on.

A graph has fixed addresses.  The frame's own memory stays where it is; what comes in and what goes out may lie
elsewhere each time.  So a run is recorded when everything lies where it lay the last time.  A value that has moved
twice gets a place in the frame, where it is copied to before each run, or from after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.primitive import P
from .plan import LIBRARY

if TYPE_CHECKING:
    from .gpu import CudaFrame

# The library calls that only queue work: others read something back, or ask the GPU to finish.
REPLAYABLE = {
    P.matmul, P.random, P.gather, P.scatter_add, P.concat, P.place, P.full, P.arange, P.reshape, P.argmax, P.argmin,
    P.cumulative_sum, P.cumulative_prod,
}
PATIENCE = 2  # how often a value may lie elsewhere before it is copied
FEWEST = 3  # steps that are worth it


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
        self.copies: dict[int, Any] = {}  # what has a place in the frame
        self.graph: Any = None
        self.pool: Any = None  # the memory of what libraries make on the way
        self.made: dict[int, Any] = {}  # the results that libraries make
        self.refused = ""  # why it can't be recorded

    def run(self, arrays: Sequence[Any], results: Sequence[Any], starts: Any) -> None:
        """Run the steps, by the recording where there is one."""
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

    # what lies elsewhere --------------------------------------------------------------------------------------------

    def _note_moves(self) -> None:
        """Forget the recording; what has moved often gets a place in the frame."""
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
        """Let the steps work on a copy."""
        frame = self.frame
        if passing.comes:
            frame.library.copyto(copy, arrays[passing.number])
        for number in passing.buffers:
            if frame.arrays[number] is not None:
                frame.arrays[number] = copy.reshape(-1)

    # the recording --------------------------------------------------------------------------------------------------

    def _record(self, starts: Any) -> bool:
        """Record the steps and run them; whether that was possible."""
        frame, cuda = self.frame, self.frame.library.cuda
        pool, stream = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        try:
            with cuda.using_allocator(pool.malloc), stream:  # this memory is the recording's, and nobody else's
                stream.begin_capture()
                try:
                    for step in frame.steps:
                        step(starts)
                finally:
                    self.graph = stream.end_capture()
        except Exception as error:  # whatever a library says when it wants to ask the GPU something
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
