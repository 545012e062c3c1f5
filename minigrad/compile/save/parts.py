"""Makes the graph and the plan of a saved program from plain data, and checks each part."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.clock import tick
from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import NO_RULES, P
from ...devices import Device, as_device
from ..fusion.count import Count
from ..loops.ir import Kernel, Parameter
from ..nodes.graph import Graph
from ..nodes.source import Source
from ..running.frame import Frame
from ..running.plan import INPUT, Buffer, Call, Check, Launch, Plan, Read, Step, is_product
from .codec import ProgramError, decoded
from .kernels import kernel_from_data

KEPT_OUT = ("random", "own")  # kinds of primitives that a file cannot have


def input_of(entry: dict[str, Any], arrays: list[bytes]) -> Source:
    """The node of an argument or of an array in the file."""
    shape, dtype, device = tuple(entry["shape"]), dtypes.ALL[entry["dtype"]], as_device(entry["device"])
    _check_shape(shape)
    if not device.hosted:
        raise ProgramError("load: an input is not on a CPU")
    kind, held = "tensor", None
    if "argument" not in entry:
        raw = arrays[entry["array"]]
        if len(raw) != prod(shape) * dtype.itemsize:
            raise ProgramError(f"load: the array {entry['name']!r} has {len(raw)} bytes, which is not {dtype} {shape}")
        little = np.frombuffer(raw, dtype.newbyteorder("<"))
        kind, held = "constant", np.array(little.reshape(shape), dtype)
    return Source(kind, held, shape, dtype, device, Mode())


class Parts:
    """The graph and the parts of the plan in a file, each checked."""

    def __init__(self, data: dict[str, Any], inputs: list[Source]) -> None:
        self.data = data
        self.nodes: list[Node] = [*inputs]
        for entry in data["nodes"]:
            self.nodes.append(self._node(entry))
        self.graph = Graph(inputs, [self._at(i) for i in data["outputs"]])
        self.names = self.graph.names()
        self.kernels = [kernel_from_data(kernel) for kernel in data["kernels"]]
        self.buffers = [
            Buffer(self.names[node], node.shape, node.dtype, node.device, None, INPUT, number, node.kind == "constant")
            for number, node in enumerate(inputs)
        ]
        self.buffers += [_buffer(entry) for entry in data["buffers"]]
        self.steps = [self._step(entry) for entry in data["steps"]]
        self.results = [self._read(entry) for entry in data["results"]]
        _check_order(Plan(tuple(self.buffers), tuple(self.steps), tuple(self.results)), len(inputs))

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
            raise ProgramError(f"load: {name} returns {node.dtype} {node.shape}, and the file says something else")
        for shape in node.shape if isinstance(node.dtype, tuple) else (node.shape,):
            _check_shape(shape)
        devices = [i.device for i in node.inputs if isinstance(i, Node)]
        node.device = node.attrs.get("device") or devices[0]
        if not isinstance(node.device, Device) or not node.device.hosted:
            raise ProgramError(f"load: {name} is not computed on a CPU")
        return node

    def _step(self, step: dict[str, Any]) -> Step:
        count = Count(*map(_count, step["costs"]))
        if "node" in step:
            return self._call(self._at(step["node"]), step, count)
        if "check" in step:
            size, axis = _count(step["size"]), _count(step["axis"])
            return Check(str(step["name"]), self._read(step["check"]), size, axis, str(step["op"]), count)
        kernel = self.kernels[step["kernel"]]
        buffers = tuple([None if number is None else _count(number) for number in step["buffers"]])
        offsets = tuple(map(_count, step["offsets"]))
        for parameter, number, offset in zip(kernel.parameters, buffers, offsets, strict=True):
            _check_argument(parameter, None if number is None else self.buffers[number], offset)
        _check_roles(kernel, buffers)
        computed = [self._at(place) for place in step["computes"]]
        if any(node.op is None for node in computed):
            raise ProgramError("load: a kernel computes an input")
        computes = tuple([self.names[node] for node in computed])
        return Launch(str(step["name"]), kernel, buffers, offsets, count, computes)

    def _call(self, node: Node, step: dict[str, Any], count: Count) -> Call:
        """The library call that computes a node."""
        reads, out = [self._read(read) for read in step["reads"]], _count(step["out"])
        found = [(read.shape, self.buffers[read.buffer].dtype) for read in reads]
        found.append((self.buffers[out].shape, self.buffers[out].dtype))
        nodes = [i for i in (*node.inputs, node) if isinstance(i, Node)]
        fits = found == [(n.shape, n.dtype) for n in nodes] and self.buffers[out].device is node.device
        if node.op is None or not fits:
            raise ProgramError(f"load: the call of {node.name} has other operands than its node")
        left = iter(reads)
        given = tuple([next(left) if isinstance(i, Node) else i for i in node.inputs])
        fills = is_product(node.op, node.shape, node.dtype)
        return Call(self.names[node], node.op, given, node.attrs, out, fills, count)

    def _read(self, data: Any) -> Read:
        number, offset, shape, strides = _count(data[0]), _count(data[1]), decoded(data[2]), decoded(data[3])
        buffer = self.buffers[number]
        if isinstance(buffer.dtype, tuple):
            inside = (offset, shape, strides) == (0, buffer.shape, ())
        else:
            _check_shape(shape)
            ends = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
            low, high = [offset + sum([extreme(end, 0) for end in ends]) for extreme in (min, max)]
            whole = all(stride.__class__ is int for stride in strides)
            inside = whole and (0 in shape or 0 <= low <= high < buffer.size)
        if not inside:
            raise ProgramError(f"load: {buffer.name} is read beyond its memory")
        return Read(number, offset, shape, strides)


def _buffer(entry: dict[str, Any]) -> Buffer:
    shape, dtype, device = decoded(entry["shape"]), decoded(entry["dtype"]), as_device(entry["device"])
    for part in shape if isinstance(dtype, tuple) else (shape,):
        _check_shape(part)
    typed = all(isinstance(part, np.dtype) for part in (dtype if isinstance(dtype, tuple) else (dtype,)))
    if not typed or not device.hosted:
        raise ProgramError("load: a buffer has no dtype, or is not on a CPU")
    return Buffer(str(entry["name"]), shape, dtype, device)


class CheckedFrame(Frame):
    """A frame that checks the size and dtype of each library result.

    The attributes of a library call come from the file, and kernels read as much memory as the node's shape says.
    """

    def bind(self, number: int, array: Any) -> None:
        buffer = self.buffers[number]
        shape, dtype = buffer.shape, buffer.dtype
        several = isinstance(dtype, tuple)
        made = array if several else (array,)
        said: Any = zip(shape, dtype) if several else ((shape, dtype),)
        if [(part.size, part.dtype) for part in made] != [(prod(shape), dtype) for shape, dtype in said]:
            raise ProgramError(f"{buffer.name} of a loaded program is not what the file says")
        super().bind(number, array)


def _check_shape(shape: Any) -> None:
    if shape.__class__ is not tuple:
        raise ProgramError("load: a shape is not a tuple")
    for extent in shape:
        _count(extent)


def _count(number: Any) -> int:
    """An integer from a file, checked to be 0 or more."""
    if number.__class__ is not int or number < 0:
        raise ProgramError(f"load: {number!r} is not a size, an offset or a number of operations")
    return number


def _check_windows(x: Any, axis: Any, size: Any, stride: Any, dilation: Any) -> None:
    """Refuse windows beyond the memory of `x`: array libraries make such views without a check."""
    whole = all(given.__class__ is tuple and len(given) == len(axis) for given in (axis, size, stride, dilation))
    numbers = [*axis, *size, *stride, *dilation] if whole else [None]
    if any(number.__class__ is not int for number in numbers) or min((*size, *stride, *dilation), default=1) < 1:
        raise ProgramError("load: a size or a step of windows is not a whole number above 0")
    if len({*axis}) < len(axis) or not set(axis) <= set(range(len(x.shape))):
        raise ProgramError("load: windows along a dimension that does not exist, or along one twice")


def _check_argument(parameter: Parameter, buffer: Buffer | None, offset: int) -> None:
    """Refuse a buffer that does not fit the parameter."""
    role = parameter.role
    if buffer is None:
        fits = role == "scratch"
    elif role == "in" and parameter.size == 1:
        fits = parameter.dtype == buffer.dtype and offset < buffer.size
    else:
        same = (parameter.size, parameter.dtype, 0) == (buffer.size, buffer.dtype, offset)
        fits = same and role in ("in", "out", "partial")
    if not fits:
        raise ProgramError(f"load: {parameter.name} of a kernel has another size or role than its buffer")


def _check_roles(kernel: Kernel, buffers: tuple[int | None, ...]) -> None:
    """Refuse a kernel that writes to a buffer which it has as two parameters."""
    given = [(number, parameter.role) for number, parameter in zip(buffers, kernel.parameters) if number is not None]
    written = [number for number, role in given if role != "in"]
    if len({*written}) < len(written) or {*written} & {number for number, role in given if role == "in"}:
        raise ProgramError("load: a kernel writes to a buffer that it has twice")


def _check_order(plan: Plan, inputs: int) -> None:
    """Refuse steps that read a buffer before it is written, or write it twice."""
    written = set(range(inputs))
    for step in plan.steps:
        reads, writes = plan.uses(step)
        if not written.issuperset(reads) or written.intersection(writes):
                raise ProgramError("load: a step reads what is not there yet, or writes what is there already")
        written.update(writes)
    if not written.issuperset([read.buffer for read in plan.outputs]):
        raise ProgramError("load: no step computes a result")
