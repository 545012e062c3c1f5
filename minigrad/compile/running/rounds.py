"""Loops in machine code: all rounds of a `scan` or `while_loop` whose steps are all in machine code, in one call.

A round needs no Python.  The addresses in the tables of the steps move from round to round: those of stacked values by
one row; those of carried values between two copies, because a round reads one copy and writes the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...core.mode import current_mode
from ...devices.control import EACH_ROUND
from ...devices.registry import REGISTRATIONS
from ..codegen.step_code import ROUND_FIELDS, rounds_function
from ..codegen.workers import WORKERS
from ..fusion.count import Count
from ..nodes.thresholds import FEWEST_LOOP_ROUNDS, MOST_ROUNDS, UNINTERRUPTED_BYTES
from .frame import Frame, Table
from .plain import PlainProgram
from .plan import INPUT, RESULT, SLOT
from .program import Program
from .steps import ROUNDS, RUNNING, Entry, address, listed, work_of
from .targets import HOST

Places = list[tuple[Table, int, int]]  # where the address of a value is stored, with an offset in bytes
AnyProgram = Program | PlainProgram


def runs_in_rounds(program: AnyProgram) -> bool:
    """Whether a loop of a program may run in machine code: each result is a whole buffer."""
    if not isinstance(program, Program) or program.target is not HOST or program.constants:
        return False
    plan = program.plan
    kinds = {plan.buffers[read.buffer].kind for read in plan.outputs}
    return kinds <= {INPUT, RESULT, SLOT} and all(map(plan.is_whole, plan.outputs))


def in_rounds(
    function: Any, test: Any, fixed: Sequence[Any], carry: Sequence[Any], stacks: Sequence[Any], kept: bool,
    rounds: int, reverse: bool = False,
) -> tuple[list[Any], int] | None:
    """Run the body of a loop, a `Function`, again and again in machine code; None if that is not possible.

    The carried values after the loop, and the number of rounds.  `test` is the function of a condition.
    """
    interpreter, noting = current_mode().interpreter, RUNNING.get()
    apart = noting is not None and noting.apart
    if rounds < FEWEST_LOOP_ROUNDS or apart or (interpreter is not None and interpreter.runs_programs):
        return None
    key = test, len(fixed), len(carry), kept, *REGISTRATIONS  # else other kernels
    if key not in function.loops:
        programs = [each.program for each in (function, test) if each is not None]
        function.loops[key] = [] if all(map(runs_in_rounds, programs)) else None
    idle = function.loops[key]
    if idle is None:
        return None
    try:
        loop = idle.pop()
    except IndexError:
        condition: Any = None if test is None else test.program
        loop = NativeLoop(function.program, condition, len(fixed), len(carry), kept)
    if not loop.is_native:
        function.loops[key] = None
        return None
    try:
        found, done = loop.run(fixed, carry, stacks, rounds, reverse)
    finally:
        idle.append(loop)
    function.tally.runs += done
    if test is not None:
        test.tally.runs += done + (done < rounds)  # the last test ends the loop
    return found, done


class RoundFrame(Frame):
    """The body or the condition of a loop: its steps as a list, and where the addresses of its values are stored."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.layout, program.functions)
        plan = self.plan
        self.work = sum(map(work_of, plan.steps))
        self.entries = [self.native[number].entry for turn in plan.turns for number in turn if number in self.native]
        self.is_native = len(self.entries) == len(plan.steps)
        self.inputs: list[Places] = [
            [place for number in numbers for place in self.slots[number]] for numbers in self.layout.arriving
        ]
        self.outputs: list[Places] = [[] for _ in plan.outputs]
        for number, read in enumerate(plan.outputs):
            buffer = self.buffers[read.buffer]
            if buffer.kind == RESULT and buffer.number == number:
                self.outputs[number] += self.slots[read.buffer]
        for number, read in enumerate(plan.outputs):
            buffer = self.buffers[read.buffer]
            if buffer.kind == SLOT:
                self.copy(self.outputs[number], self.address(self.arrays[read.buffer]), buffer.nbytes)
            elif buffer.kind == INPUT:
                self.copy(self.outputs[number], self.inputs[buffer.number], buffer.nbytes)
            elif buffer.number != number:
                self.copy(self.outputs[number], self.outputs[buffer.number], buffer.nbytes)

    def copy(self, target: Places, source: Places | int, size: int, first: bool = False) -> None:
        """Add a step that copies `size` bytes; `source` is an address, or where an address is stored."""
        table = (ctypes.c_void_p * 2)()
        self.keep.append(table)
        target.append((table, 0, 0))
        if isinstance(source, int):
            table[1] = source
        else:
            source.append((table, 1, 0))
        self.entries.insert(0 if first else len(self.entries), (0, ctypes.addressof(table), size))


class NativeLoop:
    """A loop that runs in machine code, one run at a time."""

    def __init__(self, body: Program, test: Program | None, fixed: int, carries: int, kept: bool) -> None:
        self.fixed, self.body = fixed, RoundFrame(body)
        self.is_native, self.work = self.body.is_native, self.body.work
        inputs, outputs = self.body.inputs, self.body.outputs
        keeps: list[Places] = [[] for _ in range(carries if kept else 0)]
        for number, places in enumerate(keeps, start=fixed):
            self.body.copy(places, inputs[number], self.body.plan.inputs[number].nbytes, first=True)
        self.table = (ctypes.c_longlong * len(ROUND_FIELDS))()
        self.lists = [self._listed(6, self.body.entries)]  # kept alive: the table has their addresses
        if test is not None:
            self.test = RoundFrame(test)
            self.is_native, self.work = self.is_native and self.test.is_native, self.work + self.test.work
            for number, places in enumerate(self.test.inputs):
                inputs[number] += places
            self.flag = (ctypes.c_uint8 * 1)()
            _set(self.test.outputs[0], ctypes.addressof(self.flag))
            self.lists.append(self._listed(3, self.test.entries))
            self.table[5] = ctypes.addressof(self.flag)
        self.into = outputs[:carries]
        self.stacks = [*inputs[fixed + carries :], *outputs[carries:], *keeps]

    def _listed(self, field: int, rows: Sequence[Entry]) -> Any:
        """Write the address and the length of a list into the table."""
        made = listed(rows)
        self.table[field], self.table[field + 1] = ctypes.addressof(made), len(rows)
        return made

    def run(
        self, fixed: Sequence[Any], carry: Sequence[Any], stacks: Sequence[Any], rounds: int, reverse: bool
    ) -> tuple[list[Any], int]:
        """The carried values after the loop, and the number of rounds.

        `stacks` are the stacked inputs, the results of each round, and the kept carries, which have a row per round.
        """
        inputs = self.body.inputs
        fixed, stacks = [np.ascontiguousarray(x) for x in fixed], [np.ascontiguousarray(x) for x in stacks]
        copies = [(np.array(value, order="C"), np.empty(value.shape, value.dtype)) for value in carry]
        moves: list[Entry] = []
        for places, value in zip(inputs, fixed):
            _set(places, address(value))
        for places, into, (one, other) in zip(inputs[self.fixed :], self.into, copies):
            apart = address(other) - address(one)
            moves += _set(places, address(one), apart, -apart) + _set(into, address(other), -apart, apart)
        for places, stack in zip(self.stacks, stacks):
            row = stack.nbytes // max(1, len(stack))
            begin, step = (address(stack) + (rounds - 1) * row, -row) if reverse else (address(stack), row)
            moves += _set(places, begin, step, step)
        kept = self._listed(8, moves)
        begin = perf_counter()
        done = self._run(rounds)
        if (noting := RUNNING.get()) is not None:
            noting.note(ROUNDS, begin, perf_counter(), Count())
        del kept  # nothing else keeps it alive meanwhile
        return [pair[done % 2] for pair in copies], done

    def _run(self, rounds: int) -> int:
        """Run at most `rounds` rounds, with pauses in which Python can raise an interrupt."""
        run, table, where = rounds_function(), self.table, ctypes.addressof(self.table)
        done, most = 0, min(MOST_ROUNDS, max(1, int(UNINTERRUPTED_BYTES / (self.work or 1))))
        look = EACH_ROUND.get()
        WORKERS.ready()
        while done < rounds:
            look()
            table[0], table[1] = done, min(most, rounds - done)
            run(where)
            done += table[2]
            if table[2] < table[1]:
                break
        return done


def _set(places: Places, where: int, even: int = 0, odd: int = 0) -> list[Entry]:
    """Store an address at its places.  Its moves after even and odd rounds."""
    for table, index, further in places:
        table[index] = where + further
    return [(ctypes.addressof(table) + 8 * index, even, odd) for table, index, _ in places]
