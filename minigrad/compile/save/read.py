"""Reading a saved program.  Nothing in the file is believed: see `saved`."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.clock import tick
from ...core.errors import DtypeError, GradError, MinigradError, ShapeError, TraceError
from ...core.mode import Mode, current_mode
from ...core.node import Node
from ...core.primitive import NO_RULES, P
from ...core.tensor import Tensor, as_tensor, wrap
from ...devices import Device, as_device
from ..fusion.compute import Compute, Library, computes_of
from ..fusion.count import Count
from ..fusion.group import Group, Partition
from ..look.cost import Cost
from ..lowering.lower import Argument, Lowered
from ..nodes.graph import Check, Graph
from ..nodes.source import Source
from ..running.frame import Frame
from ..running.order import uses
from ..running.program import Program
from ..running.targets import HOST
from .codec import ProgramError, Slot, decoded, filled, slots
from .kernels import kernel_from_data
from .write import ARRAYS, CONTENT, FORMAT

KEPT_OUT = ("random", "own")  # kinds of primitives that no file has
FAULTS = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, AssertionError, RecursionError,
    MemoryError, MinigradError,
)  # fmt: skip


def load_program(path: str | os.PathLike[str]) -> LoadedProgram:
    """The program in a file that `f.save(path, ...)` wrote; it runs without the function that it was made from.

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
    turn  step      writes                 reads
    0     kernel_0  multiply_1 [result 0]  tensor_1 [input 0]
    arena of 0 B in 0 slots
    """
    raw = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            content, arrays = _parts(archive, len(raw))
    except (zipfile.BadZipFile, struct.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise ProgramError(f"load_program: {os.fspath(path)} is no saved program, or damaged: {error}") from None
    try:
        data = json.loads(content)
        version, made_by = data["format"], str(data["minigrad"])
    except FAULTS:
        raise ProgramError(f"load_program: {os.fspath(path)} is no saved program") from None
    if version != FORMAT:
        raise ProgramError(
            "load_program: the file is in another format",
            expect=f"format {FORMAT}", actual=f"format {version!r}, written by minigrad {made_by[:20]}",
            hint="save the function again with this version of minigrad",
        )  # fmt: skip
    try:
        return LoadedProgram(data, arrays)
    except FAULTS as error:
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise ProgramError(
            f"load_program: {os.fspath(path)} cannot be run here: {why}",
            hint=f"it was written by minigrad {made_by[:20]}; save the function again",
        ) from error


def _parts(archive: zipfile.ZipFile, size: int) -> tuple[bytes, list[bytes]]:
    """The files in an archive of `size` bytes: stored as they are and apart, so that reading them takes no more."""
    members = archive.infolist()
    names = [CONTENT, *[f"{ARRAYS}{i}" for i in range(len(members) - 1)]]
    stored = all(m.compress_type == zipfile.ZIP_STORED for m in members)
    if [m.filename for m in members] != names or not stored or sum(m.file_size for m in members) > size:
        raise zipfile.BadZipFile("it holds something else")
    content, *arrays = [archive.read(member) for member in members]
    return content, arrays


class LoadedProgram:
    """A program from a file: called like the function, with arguments of the same kinds.  It has no gradients.

    `args`, `kwargs` and `result` are the containers of the example, with a `Slot` for each tensor; `arrays` the values
    that the function used by name; and `program` has the graph, the kernels and the schedule.
    """

    def __init__(self, data: dict[str, Any], arrays: list[bytes]) -> None:
        self.name = str(data["name"])
        self.args, self.kwargs, self.result = [decoded(data[key]) for key in ("args", "kwargs", "result")]
        if self.args.__class__ is not list or self.kwargs.__class__ is not dict:
            raise ProgramError("load: the arguments are no list and no dict")
        inputs = [_input(entry, arrays) for entry in data["inputs"]]
        given = {entry["argument"]: node for entry, node in zip(data["inputs"], inputs) if "argument" in entry}
        count = len([node for node in inputs if node.kind == "tensor"])
        if inputs[:count] != list(given.values()):
            raise ProgramError("load: arguments come before arrays, each once")
        self.arrays = {
            f"{entry['name']}": node.held for entry, node in zip(data["inputs"], inputs) if "argument" not in entry
        }
        partition, lowered = _Reader(data, inputs).partition()
        self.program = Program.restored(partition, lowered, inputs[count:], replace(HOST, frame=CheckedFrame))
        self.given = given  # by number of the tensor among the arguments
        numbers = slots((self.args, self.kwargs))
        right = sorted(numbers) == list(range(len(numbers))) and set(given) <= set(numbers)
        if not right or not set(slots(self.result)) <= set(range(len(partition.outputs))):
            raise ProgramError("load: a tensor is not there")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors: dict[int, Tensor] = {}
        if len(args) != len(self.args) or kwargs.keys() != self.kwargs.keys():
            raise ProgramError(
                f"{self.name} is called in another way than when it was saved",
                expect=_call(len(self.args), self.kwargs), actual=_call(len(args), kwargs),
            )  # fmt: skip
        for number, (saved, value) in enumerate(zip(self.args, args)):
            _collect(saved, value, f"argument {number}", tensors)
        for name, saved in self.kwargs.items():
            _collect(saved, kwargs[name], f"argument {name}", tensors)
        for number, node in self.given.items():
            _check_tensor(tensors[number], node, number)
        results = self.program([tensors[number]._data for number in self.given])
        devices = [node.device for node in self.program.graph.outputs]
        return filled(self.result, [wrap(array, device) for array, device in zip(results, devices)])

    def cost(self) -> Cost:
        """What the program takes, and what its graph takes node by node."""
        return Cost(self.program)

    def __str__(self) -> str:
        return f"{self!r}\n{self.program}"

    def __repr__(self) -> str:
        inputs = ", ".join(f"{node.dtype} {node.shape}" for node in self.given.values())
        return f"<program of {self.name}, for {inputs or 'no tensors'}>"


def _input(entry: dict[str, Any], arrays: list[bytes]) -> Source:
    """The node of an argument, or of an array in the file."""
    shape, dtype, device = tuple(entry["shape"]), dtypes.ALL[entry["dtype"]], as_device(entry["device"])
    _check_shape(shape)
    if not device.hosted:
        raise ProgramError("load: an input is not on a CPU")
    kind, held = "tensor", None
    if "argument" not in entry:
        raw = arrays[entry["array"]]
        if len(raw) != prod(shape) * dtype.itemsize:
            raise ProgramError(f"load: the array {entry['name']!r} has {len(raw)} bytes, and should be {dtype} {shape}")
        little = np.frombuffer(raw, dtype.newbyteorder("<"))
        kind, held = "constant", np.array(little.reshape(shape), dtype)
    return Source(kind, held, shape, dtype, device, Mode())


class _Reader:
    """Makes the nodes and kernels again that a file describes, each checked."""

    def __init__(self, data: dict[str, Any], inputs: list[Source]) -> None:
        self.data = data
        self.nodes: list[Node] = [*inputs]
        for entry in data["nodes"]:
            self.nodes.append(self._node(entry))
        self.graph = Graph(inputs, [self._at(i) for i in data["outputs"]])
        self.kernels = [kernel_from_data(kernel) for kernel in data["kernels"]]

    def _at(self, place: Any) -> Node:
        if place.__class__ is not int or not 0 <= place < len(self.nodes):
            raise ProgramError(f"load: there is no node {place!r}")
        return self.nodes[place]

    def _node(self, entry: dict[str, Any]) -> Node:
        name = entry["op"]
        op = next((op for op in P if op.name == name), None)
        if op is None or op.effect is not None or op.kind in KEPT_OUT or op is P.call:
            raise ProgramError(f"load: there is no primitive {name!r} that a saved program may have")
        node = Node.__new__(Node)
        node.op, node.plan, node.saved, node.mode, node.serial = op, NO_RULES, None, Mode(), tick()
        node.code, node.offset = None, 0
        inputs = [self._at(i["at"]) if isinstance(i, dict) and "at" in i else decoded(i) for i in entry["inputs"]]
        node.inputs = tuple(inputs)
        node.attrs = {str(key): decoded(value) for key, value in entry["attrs"]}
        if op is P.windows:
            _check_windows(*node.inputs, **node.attrs)
        node.shape, node.dtype = op.infer(*node.inputs, **node.attrs)
        if node.shape != decoded(entry["shape"]) or node.dtype != decoded(entry["dtype"]):
            raise ProgramError(f"load: {name} gives {node.dtype} {node.shape}, which is not what the file says")
        for shape in node.shape if isinstance(node.dtype, tuple) else (node.shape,):
            _check_shape(shape)
        devices = [i.device for i in node.inputs if isinstance(i, Node)]
        node.device = node.attrs.get("device") or devices[0]
        if not isinstance(node.device, Device) or not node.device.hosted:
            raise ProgramError(f"load: {name} is not computed on a CPU")
        return node

    def partition(self) -> tuple[Partition, dict[Group, Lowered]]:
        computes, views = computes_of(self.graph)
        lowered: dict[Group, Lowered] = {}
        groups = [self._group(step, computes, lowered) for step in self.data["steps"]]
        checks = [Check(self._at(node), _count(size)) for node, size in self.data["checks"]]
        asked = [views[node].base for node in (*self.graph.outputs, *[check.node for check in checks])]
        _check_order(self.graph, groups, lowered, asked)
        return Partition(self.graph, groups, computes, views, {}, [], checks), lowered

    def _group(self, step: dict[str, Any], computes: dict[Node, Compute], lowered: dict[Group, Lowered]) -> Group:
        if "library" in step:
            compute = computes[self._at(step["library"])]
            if not isinstance(compute, Library):
                raise ProgramError(f"load: {compute.node.name} is no library call")
            group = Group(0, library=compute)
            group.stores = [compute.node]
            return group
        kernel = self.kernels[step["kernel"]]
        given = [(at, kind, _count(offset)) for at, kind, offset in step["arguments"]]
        arguments = [Argument(None if at is None else self._at(at), kind, offset) for at, kind, offset in given]
        for argument, parameter in zip(arguments, kernel.parameters, strict=True):
            _check_argument(argument, parameter)
        read, written, flops = map(_count, step["costs"])
        group = Group(0, kernel.units)
        lowered[group] = Lowered(group, kernel, arguments, Count(read, written, flops, 1))
        reads, writes = uses(group, lowered)
        group.loads = {key: None for key in reads if isinstance(key, Node)}
        group.stores = [key for key in writes if isinstance(key, Node)]
        return group


class CheckedFrame(Frame):
    """A frame whose kernels read what a library has made only if it is what the graph says.

    The attributes of a library call come from the file, and kernels read as much memory as the node's shape says.
    """

    def bind(self, node: Node, array: Any) -> None:
        shape, dtype = node.shape, node.dtype
        several = isinstance(dtype, tuple)
        made = array if several else (array,)
        said: Any = zip(shape, dtype) if several else ((shape, dtype),)  # type: ignore[call-overload]
        if [(part.size, part.dtype) for part in made] != [(prod(shape), dtype) for shape, dtype in said]:
            raise ProgramError(f"{node.name} of a loaded program gave something else than the file says")
        super().bind(node, array)


def _check_shape(shape: Any) -> None:
    if shape.__class__ is not tuple:
        raise ProgramError("load: a shape is not a tuple")
    for extent in shape:
        _count(extent)


def _count(number: Any) -> int:
    """A whole number that is not negative, from a file."""
    if number.__class__ is not int or number < 0:
        raise ProgramError(f"load: {number!r} is not a size, an offset or a number of operations")
    return number


def _check_windows(x: Any, axis: Any, size: Any, stride: Any, dilation: Any) -> None:
    """See to it that windows lie within what they look at: array libraries make such views without a check."""
    whole = all(given.__class__ is tuple and len(given) == len(axis) for given in (axis, size, stride, dilation))
    numbers = [*axis, *size, *stride, *dilation] if whole else [None]
    if any(number.__class__ is not int for number in numbers) or min((*size, *stride, *dilation), default=1) < 1:
        raise ProgramError("load: windows of which a size or a step is not a whole number above 0")
    if len({*axis}) < len(axis) or not set(axis) <= set(range(len(x.shape))):
        raise ProgramError("load: windows along a dimension that does not exist, or along one twice")


def _check_argument(argument: Argument, parameter: Any) -> None:
    """See to it that a kernel is given as much memory as it says it has."""
    node, kind, offset = argument
    memory, role = (parameter.size, parameter.dtype), parameter.role
    if node is None:
        fits = kind == "scratch" and role == "scratch"
    elif kind == "number":
        fits = memory == (1, node.dtype) and 0 <= offset < node.size and role == "in"
    elif kind == "value":
        fits = memory == (node.size, node.dtype) and offset == 0 and role in ("in", "out")
    else:
        fits = kind == "partial" and role in ("in", "partial", "out")
    if not fits:
        raise ProgramError(f"load: {parameter.name} of a kernel has another size or role than what it stands for")


def _check_order(graph: Graph, groups: list[Group], lowered: dict[Group, Lowered], asked: list[Node]) -> None:
    """See to it that everything is written once, and before it is read."""
    written: set[Any] = set(graph.inputs)
    sizes: dict[Any, Any] = {}
    for group in groups:
        reads, writes = uses(group, lowered)
        if not written.issuperset(reads) or written.intersection(writes) or len({*writes}) < len(writes):
            raise ProgramError("load: a step reads what is not there yet, or writes what is there already")
        written.update(writes)
        if group in lowered:
            for argument, parameter in zip(lowered[group].arguments, lowered[group].kernel.parameters):
                memory = (parameter.size, parameter.dtype)
                if argument.kind == "partial" and sizes.setdefault(argument, memory) != memory:
                    raise ProgramError("load: two kernels differ about the size of what they pass on")
    if not written.issuperset(asked):
        raise ProgramError("load: a result is computed by nobody")


# Calls ----------------------------------------------------------------------------------------------------------------


def _collect(saved: Any, value: Any, where: str, tensors: dict[int, Tensor]) -> None:
    """The tensors of an argument by their numbers; everything else has to be what it was when the program was saved."""
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
        raise ProgramError(f"{where} is part of the program, and another one now", expect=saved, actual=_short(value))


def _check_tensor(tensor: Tensor, node: Node, number: int) -> None:
    interpreter = current_mode().interpreter
    if not isinstance(tensor._data, np.ndarray) or (interpreter is not None and not interpreter.runs_programs):
        raise TraceError("a loaded program was called inside a trace or a transformation", hint="call it outside")
    if tensor.shape != node.shape:
        raise ShapeError(f"tensor {number} of a loaded program's arguments", expect=node.shape, actual=tensor.shape)
    if tensor.dtype != node.dtype:
        raise DtypeError(
            f"tensor {number} of a loaded program's arguments", expect=node.dtype, actual=tensor.dtype,
            hint=f"x.astype({node.dtype.name!r})",
        )  # fmt: skip
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
