"""Loads saved programs.  Nothing in a file is trusted: see `graphs`, `forms` and `limits`."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ...core.mode import current_mode
from ...core.node import Node
from ...core.tensor import Tensor, as_tensor, wrap
from ...devices.control import EACH_ROUND
from ...support.context import setting
from ...support.errors import ConversionError, DtypeError, GradError, MinigradError, ShapeError, TraceError
from ...support.words import shown
from ..look.cost import Cost
from ..running.program import Program
from .codec import ProgramError, Slot, decoded, filled, slots
from .graphs import GraphReader, check_name
from .limits import check_memory, check_size, clock, too_much
from .write import ARRAYS, CONTENT, FORMAT

MOST_CONTENT = 1 << 24  # bytes of a graph as text


def load_program(path: str | os.PathLike[str], *, trusted: bool = False) -> LoadedProgram:
    """Load a program that `f.save(path, ...)` wrote; it is compiled here, and runs without the original function.

    A file holds no code, and all of it is checked, so it may come from anyone.  Its program may need 256 MiB of memory,
    or 16 times the bytes of its arguments and arrays if that is more; it may compute for about four seconds, and its
    loops end after four.  With `trusted=True` there are no such limits, for files from people that you know.

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
    if trusted.__class__ is not bool:
        raise ConversionError(f"load_program: trusted is True or False, not {shown(trusted)}")
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_members(archive, os.fstat(file.fileno()).st_size)
                size = archive.getinfo(CONTENT).file_size
                if size > MOST_CONTENT and not trusted:
                    raise too_much(f"its description has {size} bytes", f"at most {MOST_CONTENT}")
                data = json.loads(archive.read(CONTENT))
                _check_format(data)
                return LoadedProgram(data, archive, trusted)
        except ProgramError:
            raise
        except Exception as error:  # a file can hold anything, so any error is possible
            raise ProgramError(
                f"load_program: {os.fspath(path)} is not a saved program, or damaged: {_why(error)}",
                hint="save the function again",
            ) from error


def _why(error: Exception) -> str:
    if isinstance(error, MinigradError):
        return error.first_line
    return "it is not an archive" if isinstance(error, zipfile.BadZipFile) else "its parts do not fit together"


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse members that take more memory than the file has bytes: they are not compressed and do not overlap."""
    members = archive.infolist()
    names = [CONTENT, *[f"{ARRAYS}{number}" for number in range(len(members) - 1)]]
    stored = all(m.compress_type == zipfile.ZIP_STORED for m in members)
    if [m.filename for m in members] != names or not stored or sum(m.file_size for m in members) > size:
        raise ProgramError("load: this is not a saved program: it holds something else")


def _check_format(data: Any) -> None:
    """Refuse a file of another format, with the version that wrote it."""
    if data["format"] != FORMAT:
        version = check_name(data["minigrad"])
        raise ProgramError(
            "load_program: the file is in another format", expect=f"format {FORMAT}",
            actual=f"format {shown(data['format'])}, which minigrad {version} wrote and reads",
            hint=f"save the function again with minigrad {sys.modules['minigrad'].__version__}",
        )


class LoadedProgram:
    """A program from a file: called like the function, with arguments of the same kinds.  It has no gradients.

    `args`, `kwargs` and `result` are the containers of the example, with a `Slot` for each tensor.  `arrays` are the
    values that the function used by name, and `program` is the graph, compiled.
    """

    def __init__(self, data: dict[str, Any], archive: zipfile.ZipFile, trusted: bool) -> None:
        self.name, self.trusted = check_name(data["name"]), trusted
        self.args, self.kwargs, self.result = [decoded(data[key]) for key in ("args", "kwargs", "result")]
        if self.args.__class__ is not list or self.kwargs.__class__ is not dict:
            raise ProgramError("load: the arguments are not a list and a dict")
        reader = GraphReader(lambda number: archive.read(f"{ARRAYS}{number}"))
        graph = reader.graph(data["graph"])
        self.arrays = {name: source.held for name, source in reader.constants.items()}
        self.given: dict[int, Node] = dict(zip(data["arguments"], graph.inputs, strict=True))
        self.devices = [node.device for node in graph.outputs]
        self._check_slots()
        if not trusted:
            check_size([graph, *[function.graph for function in reader.functions]])
        self.program = Program(graph, any_layout=True)
        if not trusted:
            check_memory(self.program, reader.functions)
        self.loops = bool(reader.functions)

    def _check_slots(self) -> None:
        """Refuse containers that name tensors which do not exist."""
        numbers = slots((self.args, self.kwargs))
        right = sorted(numbers) == list(range(len(numbers))) and set(self.given) <= set(numbers)
        if not right or not set(slots(self.result)) <= set(range(len(self.devices))):
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
        results = self._run([tensors[number]._data for number in self.given])
        return filled(self.result, [wrap(array, device) for array, device in zip(results, self.devices)])

    def _run(self, arrays: list[Any]) -> list[Any]:
        """The results as arrays.  An error of a library becomes one of ours, because the file chose its operands."""
        try:
            if self.trusted or not self.loops:
                return self.program(arrays)
            with setting(EACH_ROUND, clock()):
                return self.program(arrays)
        except MinigradError:
            raise
        except Exception as error:
            raise ProgramError(f"{self.name} cannot run: {type(error).__name__}: {error}") from error

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
            raise ProgramError(f"{where} must be a tensor", actual=f"a {type(value).__name__}")
        tensors[saved.number] = as_tensor(value)
    elif isinstance(saved, (list, tuple)):
        kind = list if isinstance(saved, list) else tuple
        if not isinstance(value, kind) or len(value) != len(saved):
            raise ProgramError(f"{where} must be a {kind.__name__} of {len(saved)}", actual=_short(value))
        for number, (a, b) in enumerate(zip(saved, value)):
            _collect(a, b, f"{where}[{number}]", tensors)
    elif isinstance(saved, dict):
        if not isinstance(value, dict) or value.keys() != saved.keys():
            raise ProgramError(f"{where} must be a dict with the keys {list(saved)}", actual=_short(value))
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
