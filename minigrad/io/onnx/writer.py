"""Writes ONNX graphs: nodes, names, constants, and numbers that depend on the batch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from ...core.node import Node
from ...support.errors import FileError
from ...support.packages import needed
from .sizes import Share, Size

OPSET = 18  # ONNX 1.13, of 2023, which today's runtimes read: it has computed axes of reductions, and scatters that add
IR_VERSION = 8  # of the file format, from the same year


class Writer:
    """The nodes of one graph, and what it shares with the graphs within it: names, constants, and the batch size."""

    def __init__(self) -> None:
        self.onnx = needed("onnx", "export_onnx")
        self.outer: Writer | None = None
        self.nodes: list[Any] = []
        self.label, self.scope = "value", ""  # for the names of the next nodes
        self.taken: set[str] = set()
        self.initializers: list[Any] = []
        self.constants: dict[Any, str] = {}
        self.batch: tuple[str, int] | None = None  # the name of an input whose axis is the batch, and the axis
        self.sizes: dict[tuple[int, int], str] = {}

    def within(self) -> Writer:
        """A writer for a branch or a body, which can use the names of both."""
        inner = copy(self)
        inner.outer, inner.nodes = self, []
        return inner

    def fresh(self, name: str) -> str:
        """A name that is not taken yet."""
        candidate, number = name, 1
        while candidate in self.taken:
            candidate, number = f"{name}.{number}", number + 1
        self.taken.add(candidate)
        return candidate

    def add(self, op_type: str, *inputs: str, outputs: int | None = None, **attributes: Any) -> Any:
        """Append a node; the name of its result, or a list with as many names as there are `outputs`."""
        names = [self.fresh(self.label) for _ in range(outputs or 1)]
        name = f"{self.scope}/{names[0]}" if self.scope else names[0]
        node = self.onnx.helper.make_node(op_type, list(inputs), names, name, **attributes)
        self.nodes.append(node)
        return names[0] if outputs is None else names

    # values ---------------------------------------------------------------------------------------------------------

    def constant(self, array: Any, name: str = "constant") -> str:
        """An array as part of the file; equal arrays are stored once."""
        array = np.asarray(array, order="C")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = self.initializer(self.fresh(name), array)
        return self.constants[key]

    def initializer(self, name: str, array: Any) -> str:
        """An array as part of the file, by this name."""
        self.initializers.append(self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def number(self, value: Any, dtype: Any) -> str:
        """A Python number as a value of this dtype."""
        if isinstance(value, Share):
            return self.add("Reciprocal", self.cast(self.scalar(value.size), dtype))
        if isinstance(value, Size):
            return self.cast(self.scalar(value), dtype)
        return self.constant(np.array(value).astype(dtype), "number")

    def scalar(self, value: int) -> str:
        """An integer, which may depend on the batch, as int64 without dimensions."""
        if not isinstance(value, Size):
            return self.constant(np.array(value, np.int64), "number")
        return self.add("Reshape", self._size(value.factor, value.offset), self.vector([]))

    def vector(self, values: Sequence[int]) -> str:
        """Integers, which may depend on the batch, as an int64 vector."""
        if not any(isinstance(v, Size) for v in values):
            return self.constant(np.array(values, np.int64).reshape(-1), "shape")
        parts = [self._size(v.factor, v.offset) if isinstance(v, Size) else self.vector([v]) for v in values]
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)

    def _size(self, factor: int, offset: int) -> str:
        """factor × batch + offset, as a vector of one element, computed once in the outermost graph."""
        if self.outer is not None:
            return self.outer._size(factor, offset)
        key = factor, offset
        if key not in self.sizes:
            assert self.batch is not None
            name, axis = self.batch
            if key == (1, 0):
                found = self.add("Shape", name, start=axis, end=axis + 1)
            else:
                found = self._size(1, 0)
                for op, number, neutral in (("Mul", factor, 1), ("Add", offset, 0)):
                    if number != neutral:
                        found = self.add(op, found, self.vector([number]))
            self.sizes[key] = found
        return self.sizes[key]

    def cast(self, name: str, dtype: Any) -> str:
        """A value in a different dtype."""
        return self.add("Cast", name, to=self.element(dtype))

    def element(self, dtype: Any) -> int:
        """ONNX's number for a dtype."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    # shapes ---------------------------------------------------------------------------------------------------------

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The same elements in a different shape."""
        if [isinstance(extent, Size) for extent in shape].count(True) == 1 and 0 not in shape:
            shape = [-1 if isinstance(extent, Size) else extent for extent in shape]  # the others determine it
        empty = {"allowzero": 1} if 0 in shape else {}  # otherwise 0 means the size before
        return self.add("Reshape", name, self.vector(shape), **empty)

    def info(self, name: str, dtype: Any, shape: Sequence[int], symbol: str = "batch") -> Any:
        """The declaration of an input or output: its dtype and shape, with names for sizes that depend on the batch."""
        sizes = [self._symbol(extent, symbol) if isinstance(extent, Size) else int(extent) for extent in shape]
        return self.onnx.helper.make_tensor_value_info(name, self.element(dtype), sizes)

    def _symbol(self, size: Size, symbol: str) -> str:
        times = symbol if size.factor == 1 else f"{size.factor}*{symbol}"
        return f"{times}+{size.offset}" if size.offset else times


def fixed(values: Any, what: str, node: Node) -> Any:
    """Numbers that must be part of the file; an error if they depend on the batch."""
    listed = values if isinstance(values, (tuple, list)) else [values]
    if any(isinstance(v, (Size, Share)) for v in listed):
        raise FileError(
            f"{node.name}: in ONNX the {what} is fixed, and here it depends on the batch size",
            actual=values, hint="batch_axes=None for a model with exactly these shapes",
        )
    return values
