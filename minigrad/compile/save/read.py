"""Loads saved programs.  Nothing in a file is trusted: see `parts`."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.mode import current_mode
from ...core.node import Node
from ...core.tensor import Tensor, as_tensor, wrap
from ...support.errors import DtypeError, GradError, MinigradError, ShapeError, TraceError
from ..look.cost import Cost
from ..running.plan import laid_out
from ..running.program import Executable
from ..running.targets import HOST
from .codec import ProgramError, Slot, decoded, filled, slots
from .parts import CheckedFrame, Parts, input_of
from .write import ARRAYS, CONTENT, FORMAT

FAULTS = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, AssertionError, RecursionError,
    MemoryError, MinigradError,
)


def load_program(path: str | os.PathLike[str]) -> LoadedProgram:
    """Load a program that `f.save(path, ...)` wrote; it runs without the original function.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "double.program")
    >>> mg.jit(lambda x: {"double": x * 2}).save(path, mg.ones(3))
    >>> program = mg.load_program(path)
    >>> program
    <program of <lambda>, for float32 (3,)>
    >>> program(mg.asarray([1.0, 2.0, 3.0]))["double"].tolist()
    [2.0, 4.0, 6.0]
    >>> print(program)
    <program of <lambda>, for float32 (3,)>
    turn  step      writes                 reads               after
    0     kernel_0  multiply_1 [result 0]  tensor_1 [input 0]  -
    arena of 0 B in 0 slots
    """
    raw = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            content, arrays = _parts(archive, len(raw))
    except (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise ProgramError(f"load_program: {os.fspath(path)} is not a saved program, or damaged: {error}") from None
    try:
        data = json.loads(content)
        version, made_by = data["format"], str(data["minigrad"])
    except FAULTS:
        raise ProgramError(f"load_program: {os.fspath(path)} is not a saved program") from None
    if version != FORMAT:
        raise ProgramError(
            "load_program: the file is in another format",
            expect=f"format {FORMAT}", actual=f"format {version!r}, written by minigrad {made_by[:20]}",
            hint=f"save the function again with minigrad {sys.modules['minigrad'].__version__}",
        )
    try:
        return LoadedProgram(data, arrays)
    except FAULTS as error:
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise ProgramError(
            f"load_program: {os.fspath(path)} cannot run here: {why}",
            hint=f"it was written by minigrad {made_by[:20]}; save the function again",
        ) from error


def _parts(archive: zipfile.ZipFile, size: int) -> tuple[bytes, list[bytes]]:
    """The files in an archive of `size` bytes: not compressed and not overlapping, so that they need no more memory."""
    members = archive.infolist()
    names = [CONTENT, *[f"{ARRAYS}{i}" for i in range(len(members) - 1)]]
    stored = all(m.compress_type == zipfile.ZIP_STORED for m in members)
    if [m.filename for m in members] != names or not stored or sum(m.file_size for m in members) > size:
        raise zipfile.BadZipFile("it holds something else")
    content, *arrays = [archive.read(member) for member in members]
    return content, arrays


class LoadedProgram:
    """A program from a file: called like the function, with arguments of the same kinds.  It has no gradients.

    `args`, `kwargs` and `result` are the containers of the example, with a `Slot` for each tensor.  `arrays` are the
    values that the function used by name, and `program` has the graph, the plan and the schedule.
    """

    def __init__(self, data: dict[str, Any], arrays: list[bytes]) -> None:
        self.name = str(data["name"])
        self.args, self.kwargs, self.result = [decoded(data[key]) for key in ("args", "kwargs", "result")]
        if self.args.__class__ is not list or self.kwargs.__class__ is not dict:
            raise ProgramError("load: the arguments are not a list and a dict")
        inputs = [input_of(entry, arrays) for entry in data["inputs"]]
        given = {entry["argument"]: node for entry, node in zip(data["inputs"], inputs) if "argument" in entry}
        count = len([node for node in inputs if node.kind == "tensor"])
        if inputs[:count] != list(given.values()):
            raise ProgramError("load: arguments come before arrays, each once")
        self.arrays = {
            f"{entry['name']}": node.held for entry, node in zip(data["inputs"], inputs) if "argument" not in entry
        }
        parts = Parts(data, inputs)
        self.program = Executable(parts.graph, inputs[count:], replace(HOST, frame=CheckedFrame))
        self.program.load(laid_out(parts.buffers, parts.steps, parts.results, self.program.turns))
        self.devices = [self.program.plan.buffers[read.buffer].device for read in parts.results]
        self.given = given  # by the number of the tensor among the arguments
        numbers = slots((self.args, self.kwargs))
        right = sorted(numbers) == list(range(len(numbers))) and set(given) <= set(numbers)
        if not right or not set(slots(self.result)) <= set(range(len(parts.results))):
            raise ProgramError("load: a tensor is missing")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors: dict[int, Tensor] = {}
        if len(args) != len(self.args) or kwargs.keys() != self.kwargs.keys():
            raise ProgramError(
                f"{self.name} is called with other arguments than those it was saved with",
                expect=_call(len(self.args), self.kwargs), actual=_call(len(args), kwargs),
            )
        for number, (saved, value) in enumerate(zip(self.args, args)):
            _collect(saved, value, f"argument {number}", tensors)
        for name, saved in self.kwargs.items():
            _collect(saved, kwargs[name], f"argument {name}", tensors)
        for number, node in self.given.items():
            _check_tensor(tensors[number], node, number)
        results = self.program([tensors[number]._data for number in self.given])
        return filled(self.result, [wrap(array, device) for array, device in zip(results, self.devices)])

    def cost(self) -> Cost:
        """The cost of the program, and of its graph node by node."""
        return Cost(self.program)

    def __str__(self) -> str:
        return f"{self!r}\n{self.program}"

    def __repr__(self) -> str:
        inputs = ", ".join(f"{node.dtype} {node.shape}" for node in self.given.values())
        return f"<program of {self.name}, for {inputs or 'no tensors'}>"


# Calls ----------------------------------------------------------------------------------------------------------------


def _collect(saved: Any, value: Any, where: str, tensors: dict[int, Tensor]) -> None:
    """Collect the tensors of an argument by number; everything else must be the same as in the saved program."""
    if isinstance(saved, Slot):
        if not isinstance(value, (Tensor, np.ndarray)):
            raise ProgramError(f"{where} has to be a tensor", actual=f"a {type(value).__name__}")
        tensors[saved.number] = as_tensor(value)
    elif isinstance(saved, (list, tuple)):
        kind = list if isinstance(saved, list) else tuple
        if not isinstance(value, kind) or len(value) != len(saved):
            raise ProgramError(f"{where} has to be a {kind.__name__} of {len(saved)}", actual=_short(value))
        for number, (a, b) in enumerate(zip(saved, value)):
            _collect(a, b, f"{where}[{number}]", tensors)
    elif isinstance(saved, dict):
        if not isinstance(value, dict) or value.keys() != saved.keys():
            raise ProgramError(f"{where} has to be a dict with the keys {list(saved)}", actual=_short(value))
        for key in saved:
            _collect(saved[key], value[key], f"{where}[{key!r}]", tensors)
    elif type(value) is not type(saved) or not (value == saved or value != value != saved != saved):
        raise ProgramError(f"{where} is part of the program, and has another value", expect=saved, actual=_short(value))


def _check_tensor(tensor: Tensor, node: Node, number: int) -> None:
    interpreter = current_mode().interpreter
    if not isinstance(tensor._data, np.ndarray) or (interpreter is not None and not interpreter.runs_programs):
        raise TraceError("a loaded program cannot be called inside a trace or a transformation", hint="call it outside")
    if tensor.shape != node.shape:
        raise ShapeError(f"tensor {number} of a loaded program's arguments", expect=node.shape, actual=tensor.shape)
    if tensor.dtype != node.dtype:
        raise DtypeError(
            f"tensor {number} of a loaded program's arguments", expect=node.dtype, actual=tensor.dtype,
            hint=f"x.astype({node.dtype.name!r})",
        )
    if tensor.tracked and current_mode().grad:
        raise GradError(
            "a loaded program has no gradients, and an argument requires one",
            hint="with mg.no_grad(): around the call, or x.detach()",
        )


def _call(count: int, names: Any) -> str:
    return f"{count} arguments" + (f" and {', '.join(names)} by name" if names else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"
