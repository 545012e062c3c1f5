"""Import: an ONNX file as a module, which computes with our operations and is differentiable like any other.

A file may come from anywhere.  All faults are found while it is read and reported in one error, no file outside its
folder is opened, and only operators in our table are executed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ...control.flow import cond, scan, while_loop
from ...core import dtypes
from ...core.mode import Mode, switch
from ...core.tensor import Tensor, as_tensor, from_host
from ...devices import as_device
from ...nn.module import Module
from ...support.errors import DtypeError, FileError, MinigradError, ShapeError
from ...support.packages import needed
from ...support.table import counted
from . import layers, whole_layers  # noqa: F401 - they add operators to the table
from .elementwise import NUMBERS_WELCOME
from .export import TENSORS
from .operator_table import OPERATORS, Operator

USUAL = ("", "ai.onnx")  # the domain of the operators of ONNX itself
OLDEST = 13  # opset: before it, operators took some inputs as attributes
IGNORED = frozenset((  # attributes that do not change a result, or not in the cases that are supported
    "activation_alpha", "activation_beta", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "hidden_size",
    "kernel_shape", "momentum", "saturate", "sorted", "stash_type",
))


class Known:
    """A value that is known before the model runs: a constant, or a result of constants and shapes."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.tensors: dict[Any, Tensor] = {}

    def tensor(self, device: Any) -> Tensor:
        """The same as a tensor on a device."""
        if device not in self.tensors:
            with switch(Mode()):
                self.tensors[device] = from_host(np.array(self.array), device)
        return self.tensors[device]


class Step(NamedTuple):
    """A node of the file."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any]


class Steps(NamedTuple):
    """A graph of the file: the names of inputs and outputs, and the steps between them."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    constants: dict[str, Known]


class Input(NamedTuple):
    """An input or output as the file declares it; a dtype or a shape that is not declared is None."""

    name: str
    dtype: Any
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" ({', '.join(map(str, self.shape))}{',' * (len(self.shape) == 1)})"
        return f"{self.name}: {'' if self.dtype is None else self.dtype}{shape}"


class OnnxModel(Module):
    """A model from an ONNX file: called with the inputs, it returns the output, or a tuple of outputs."""

    caches = (*Module.caches, "inputs", "outputs", "graph")  # not part of the state, which is the tensors

    def __init__(self, inputs: Sequence[Input], outputs: Sequence[Input], graph: Steps, tensors: dict[str, Tensor]):
        self.inputs, self.outputs, self.graph = tuple(inputs), tuple(outputs), graph
        vars(self).update(tensors)  # the names contain dots, because they are those of the exported model

    def forward(self, *values: Any) -> Any:
        given = [as_tensor(v) for v in values]
        self._check(given)
        known: dict[str, Any] = {name: held for name, held in vars(self).items() if isinstance(held, Tensor)}
        results = run(self.graph, given, known)
        device = given[0].device if given else as_device(None)
        results = [r.tensor(device) if isinstance(r, Known) else r for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _check(self, given: list[Tensor]) -> None:
        if len(given) != len(self.inputs):
            raise ShapeError(f"the model takes {counted(len(self.inputs), 'input')}, and was given {len(given)}",
                             expect=", ".join(map(str, self.inputs)))
        symbols: dict[str, int] = {}
        for asked, value in zip(self.inputs, given):
            if asked.dtype is not None and value.dtype is not asked.dtype:
                raise DtypeError(f"the input {asked.name} of the model", expect=asked.dtype, actual=value.dtype,
                                 hint=f"x.astype({asked.dtype.name!r})")
            sizes = value.shape if asked.shape is None else asked.shape
            wanted = [symbols.setdefault(w, n) if isinstance(w, str) and w else w or n
                      for w, n in zip(sizes, value.shape)]
            if len(sizes) != value.ndim or any(w.__class__ is int and w != n for w, n in zip(wanted, value.shape)):
                raise ShapeError(f"the input {asked.name} of the model has a different shape", expect=str(asked),
                                 actual=value.shape)

    def extra_repr(self) -> str:
        count = sum(p.size for p in self.parameters())
        words = f"{', '.join(map(str, self.inputs))} → {', '.join(map(str, self.outputs))}"
        return words + (f", {counted(count, 'parameter')}" if count else "")


def load_onnx(path: str | os.PathLike[str], device: Any = None) -> OnnxModel:
    """Read an ONNX file that `export_onnx` wrote, or another one that uses the same operators.

    Parameters keep their names, so `state_dict()` is that of the exported model.  In a file from another program, no
    tensor requires a gradient until you set `requires_grad`.

    >>> import tempfile
    >>> path, w = tempfile.mkdtemp() + "/double.onnx", mg.asarray([2.0], requires_grad=True)
    >>> mg.io.export_onnx(lambda x: x * w, path, mg.ones(3))
    >>> model = mg.io.load_onnx(path)
    >>> x = mg.ones(5, requires_grad=True)
    >>> model(x).sum().backward()
    >>> x.grad.tolist(), model.w.grad.tolist()
    ([2.0, 2.0, 2.0, 2.0, 2.0], [5.0])
    """
    reader = Reader(Path(path))
    graph = reader.model.graph
    tensors = reader.tensors(as_device(device))
    steps = reader.steps(graph, dict.fromkeys(tensors))
    reader.refuse_unknown()
    own = {i.name for i in graph.initializer}
    inputs = [reader.described(value) for value in graph.input if value.name not in own]
    steps = steps._replace(inputs=tuple([i.name for i in inputs]))
    return OnnxModel(inputs, [reader.described(value) for value in graph.output], steps, tensors)


# Reading -------------------------------------------------------------------------------------------------------------


class Reader:
    """Reads the parts of a file, and collects the operators that are not supported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.onnx = needed("onnx", "load_onnx")
        needed("onnx.checker", "load_onnx")
        self.unknown: dict[str, None] = {}
        raw = path.read_bytes()
        self.model = self.onnx.ModelProto()
        try:
            self.model.ParseFromString(raw)
        except Exception as error:  # protobuf's own class, which has had several names
            raise self.damaged(f"{type(error).__name__}: {error}") from None
        if not self.model.HasField("graph") or not self.model.opset_import:
            raise self.damaged("there is no graph in it")
        self._check()

    def damaged(self, why: str) -> FileError:
        """The error for a file that is not valid ONNX."""
        reason = why.strip().splitlines()[0][:200]
        return FileError(f"load_onnx: {self.path} is not an ONNX file, or it is damaged: {reason}")

    def _check(self) -> None:
        versions = {o.domain: o.version for o in self.model.opset_import}
        self.opset = max([versions[domain] for domain in USUAL if domain in versions], default=OLDEST)
        if self.opset < OLDEST:
            raise FileError(f"load_onnx: {self.path} is written for opset {self.opset}",
                            expect=f"opset {OLDEST} or later",
                            hint="onnx.version_converter.convert_version")
        if self.model.functions:
            raise FileError(f"load_onnx: {self.path} defines operators of its own, which are not supported")
        outside = [t for t in self.model.graph.initializer if t.data_location == self.onnx.TensorProto.EXTERNAL]
        for tensor in outside:
            self._bring_in(tensor)
        try:
            self.onnx.checker.check_model(self.model)
        except UnicodeError as error:
            raise self.damaged(f"a name in it is not text: {error}") from None
        except (self.onnx.checker.ValidationError, ValueError, RuntimeError) as error:
            self.unknown |= {_called(n): None for n in self._nodes(self.model.graph) if not self._is_known(n)}
            self.refuse_unknown()  # the checker's error does not say what to do
            raise self.damaged(str(error)) from None

    def _nodes(self, graph: Any) -> Iterator[Any]:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from self._nodes(attribute.g)

    def _is_known(self, node: Any) -> bool:
        return node.domain in USUAL and (node.op_type in OPERATORS or node.op_type in CONTROL)

    def _bring_in(self, tensor: Any) -> None:
        """Read the bytes of a tensor from another file, which must be in the same folder and large enough."""
        entries = {e.key: e.value for e in tensor.external_data}
        folder = self.path.resolve().parent
        place = entries.get("location", "")
        target = (folder / place).resolve()  # after all links
        if not place or os.path.isabs(place) or not target.is_relative_to(folder) or not target.is_file():
            raise FileError(f"load_onnx: {self.path} keeps the tensor {tensor.name!r} in {place!r}",
                            expect="a file beside it, or in a folder below")
        try:
            start = int(entries.get("offset", 0))
            length = int(entries.get("length", target.stat().st_size - start))
            size = math.prod(self._dims(tensor)) * self._element(tensor.data_type).itemsize
        except ValueError as error:
            raise self.damaged(str(error)) from None
        if start < 0 or length != size or start + length > target.stat().st_size:
            needed = counted(size, "byte")
            raise self.damaged(f"the tensor {tensor.name!r} takes {needed}, which {place!r} does not have there")
        with open(target, "rb") as file:
            file.seek(start)
            tensor.raw_data = file.read(length)
        tensor.data_location = self.onnx.TensorProto.DEFAULT
        del tensor.external_data[:]

    def refuse_unknown(self) -> None:
        """Raise the error that lists all operators that are not supported, if there are any."""
        if self.unknown:
            raise FileError(f"load_onnx: {self.path} has operators that are not supported",
                            actual=", ".join(self.unknown),
                            expect="those that export_onnx writes, and a few more")

    # its parts ------------------------------------------------------------------------------------------------------

    def tensors(self, device: Any) -> dict[str, Tensor]:
        """The parameters and buffers by name: those that our export listed; in other files, all floats with a shape
        that no operator takes as numbers.
        """
        noted = {p.key: p.value for p in self.model.metadata_props}.get(TENSORS)
        try:
            named = None if noted is None else dict(json.loads(noted))
        except (ValueError, TypeError, RecursionError):
            raise self.damaged("the list of its parameters cannot be read") from None
        found: dict[str, Tensor] = {}
        numbers = {name for node in self._nodes(self.model.graph) if node.op_type in OPERATORS
                   for i, name in enumerate(node.input) if i in OPERATORS[node.op_type].numbers}
        for proto in self.model.graph.initializer:
            array = self.array(proto)
            weight = array.dtype.kind == "f" and array.ndim and proto.name not in numbers
            if proto.name in named if named is not None else weight:
                if hasattr(OnnxModel, proto.name) or proto.name in OnnxModel.caches or proto.name.startswith("_"):
                    raise self.damaged(f"a tensor is called {proto.name!r}, as a part of the model is")
                found[proto.name] = from_host(array, device)
                found[proto.name].requires_grad = bool(array.dtype.kind == "f" and (named or {}).get(proto.name))
        return found

    def steps(self, graph: Any, outside: dict[str, None]) -> Steps:
        """A graph as steps; `outside` are the tensors that are not constants of the graph."""
        constants = {t.name: Known(self.array(t)) for t in graph.initializer if t.name not in outside}
        steps = tuple([self._step(node) for node in graph.node])
        return Steps(tuple([i.name for i in graph.input]), tuple([o.name for o in graph.output]), steps, constants)

    def _step(self, node: Any) -> Step:
        attrs, inputs = {a.name: self._attribute(node, a) for a in node.attribute}, tuple(node.input)
        if not self._is_known(node):
            self.unknown[_called(node)] = None
        elif node.op_type in OPERATORS:
            attrs, inputs = self._completed(node, attrs)
        return Step(node.op_type, node.name or node.op_type, inputs, tuple(node.output), attrs)

    def _completed(self, node: Any, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The attributes that our function takes, and all inputs.  What the file leaves out has ONNX's default."""
        schema = self.onnx.defs.get_schema(node.op_type, self.opset)
        attrs = {name: self._attribute(node, a.default_value) if a.default_value.type else None
                 for name, a in schema.attributes.items()}
        taken = OPERATORS[node.op_type].attributes
        self.unknown |= {f"{node.op_type} with {name}={value!r}": None for name, value in given.items()
                         if name not in taken and name not in IGNORED and value != attrs.get(name)}
        attrs |= given
        missing = [""] * (len(schema.inputs) - len(node.input))
        return {name: attrs[name] for name in attrs if name in taken}, (*node.input, *missing)

    def _attribute(self, node: Any, attribute: Any) -> Any:
        kinds = self.onnx.AttributeProto
        if attribute.type == kinds.FLOAT:
            return float(str(np.float32(attribute.f)))  # 1e-5 stays 1e-5, although float32 cannot represent it
        if attribute.type == kinds.INT:
            return self._element(attribute.i) if (node.op_type, attribute.name) == ("Cast", "to") else attribute.i
        if attribute.type == kinds.STRING:
            return attribute.s.decode("utf-8", "replace")
        if attribute.type == kinds.TENSOR:
            return self.array(attribute.t)
        if attribute.type == kinds.GRAPH:
            return self.steps(attribute.g, {})
        if attribute.type == kinds.STRINGS:
            return [s.decode("utf-8", "replace") for s in attribute.strings]
        if attribute.type in (kinds.INTS, kinds.FLOATS):
            return list(attribute.ints if attribute.type == kinds.INTS else attribute.floats)
        raise self.damaged(f"{node.op_type} has an attribute {attribute.name} of an unknown kind")

    def array(self, proto: Any) -> Any:
        """The values of a tensor, after a check that their number fits the shape."""
        dims, dtype = self._dims(proto), self._element(proto.data_type)
        if proto.data_location == self.onnx.TensorProto.EXTERNAL:
            raise FileError(f"load_onnx: {self.path} keeps a constant within a graph in another file")
        lists = (proto.float_data, proto.int32_data, proto.int64_data, proto.double_data, proto.uint64_data)
        held = len(proto.raw_data) / dtype.itemsize if proto.HasField("raw_data") else max(map(len, lists))
        if held != math.prod(dims):
            raise self.damaged(f"the tensor {proto.name!r} of shape {dims} has {held:g} elements")
        try:
            array = self.onnx.numpy_helper.to_array(proto)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.damaged(str(error)) from None
        return np.array(array, dtype)

    def _dims(self, proto: Any) -> tuple[int, ...]:
        dims = tuple(proto.dims)
        if any(extent < 0 for extent in dims):
            raise self.damaged(f"the tensor {proto.name!r} has the shape {dims}")
        return dims

    def _element(self, number: int) -> Any:
        """Our dtype for an element type of ONNX."""
        try:
            return dtypes.as_dtype(self.onnx.helper.tensor_dtype_to_np_dtype(number))
        except (KeyError, ValueError, TypeError, MinigradError):
            kinds = self.onnx.TensorProto.DataType
            name = kinds.Name(number) if number in kinds.values() else number
            raise FileError(f"load_onnx: {self.path} has elements of type {name}, which minigrad lacks",
                            expect=", ".join(dtypes.ALL)) from None

    def described(self, value: Any) -> Input:
        """The declaration of an input or output."""
        kind = value.type.tensor_type
        dtype = self._element(kind.elem_type) if kind.elem_type else None
        if not kind.HasField("shape"):
            return Input(value.name, dtype, None)
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in kind.shape.dim]
        return Input(value.name, dtype, tuple(sizes))


def _called(node: Any) -> str:
    """The operator of a node, with its domain if that is not ONNX's own."""
    return str(node.op_type) if node.domain in USUAL else f"{node.domain}.{node.op_type}"


# Running -------------------------------------------------------------------------------------------------------------


def run(graph: Steps, given: Sequence[Any], outside: dict[str, Any]) -> list[Any]:
    """The outputs of a graph, whose inputs and values from outside are in `values`."""
    values: dict[str, Any] = {**outside, **graph.constants, **dict(zip(graph.inputs, given)), "": None}
    for step in graph.steps:
        try:
            results = _applied(step, [values[name] for name in step.inputs], values)
        except MinigradError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as error:
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise FileError(f"the node {step.name} of the model, {step.op}, is not valid: {why}") from error
        values.update(zip(step.outputs, results))
    return [values[name] for name in graph.outputs]


def _applied(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    """The results of a node."""
    if step.op in CONTROL:
        return CONTROL[step.op](step, values, known)
    operator = OPERATORS[step.op]
    alone = bool(values) and all(v is None or isinstance(v, Known) for v in values)  # then the result is known too
    with switch(Mode(grad=False)) if alone else nullcontext():
        found = operator.compute(*_arguments(step.op, operator, values, alone), **step.attrs)
        results = found if isinstance(found, tuple) else (found,)
        return [Known(r.numpy_copy()) for r in results] if alone else results


def _arguments(op: str, operator: Operator, values: list[Any], alone: bool) -> list[Any]:
    """The inputs as the operator takes them: numbers for parameters annotated `Numbers`, tensors for others."""
    device = next((v.device for v in values if isinstance(v, Tensor)), as_device("cpu"))
    arguments = []
    for i, value in enumerate(values):
        if value is not None and i in operator.numbers:
            if not isinstance(value, Known):
                raise FileError(f"the model computes a shape or an index from its data ({op}), which is not "
                                "supported: shapes can depend on shapes only")
            arguments.append(value.array.reshape(-1).tolist())
        elif isinstance(value, Known):
            number = op in NUMBERS_WELCOME and not value.array.ndim and len(values) > 1
            arguments.append(value.array.item() if number and not alone else value.tensor(device))
        else:
            arguments.append(value)
    return arguments


def _shape(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    shape = values[0].array.shape if isinstance(values[0], Known) else values[0].shape
    return [Known(np.array(shape[step.attrs.get("start", 0) : step.attrs.get("end")], np.int64))]


def _constant(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    ((kind, held),) = step.attrs.items()
    dtype = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    return [Known(np.array(held, dtype.get(kind)))]


def _branch(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    then, otherwise = step.attrs["then_branch"], step.attrs["else_branch"]
    if isinstance(values[0], Known):
        return run(then if values[0].array.item() else otherwise, [], known)
    chosen = cond(values[0].reshape(()), lambda: _tensors(run(then, [], known)),
                  lambda: _tensors(run(otherwise, [], known)))
    return list(chosen)


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [v.tensor(as_device(None)) if isinstance(v, Known) else v for v in values]


def _loop(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    most, go_on, *carry = values
    body = step.attrs["body"]
    if len(body.outputs) != len(carry) + 1:
        raise FileError(f"the node {step.name} of the model, Loop, collects values of each round: not supported")
    if not isinstance(most, (Known, NoneType)):
        raise FileError(f"the node {step.name} of the model, {step.op}, has a limit that depends on its data")
    limit = None if most is None else int(most.array.item())
    start = [as_tensor(np.array(0)), as_tensor(np.array(True)) if go_on is None else go_on, *carry]

    def round_(state: Any) -> Any:
        count, hold, *now = state
        more, *new = _tensors(run(body, [count, hold, *now], known))
        return (count + 1, more.reshape(()), *new)  # type: ignore[attr-defined]

    first = [v.reshape(()) if i < 2 else v for i, v in enumerate(_tensors(start))]  # type: ignore[attr-defined]
    return list(while_loop(lambda state: state[1], round_, tuple(first), limit)[2:])


def _scan(step: Step, values: list[Any], known: dict[str, Any]) -> Sequence[Any]:
    body, rows = step.attrs["body"], step.attrs["num_scan_inputs"]
    ways = {key: held for key, held in step.attrs.items() if key not in ("body", "num_scan_inputs")}
    if any(any(held) for held in ways.values()):
        raise FileError(f"the node {step.name} of the model, Scan, goes along other axes or backwards", actual=ways)
    carry, xs = tuple(_tensors(values[: len(values) - rows])), tuple(_tensors(values[len(values) - rows :]))

    def each(state: Any, row: Any) -> Any:
        results = _tensors(run(body, [*state, *row], known))
        return tuple(results[: len(carry)]), tuple(results[len(carry) :])

    last, ys = scan(each, carry, xs)
    return [*last, *ys]


CONTROL: dict[str, Callable[..., Sequence[Any]]] = {  # operators that are not functions of tensors
    "If": _branch, "Loop": _loop, "Scan": _scan, "Shape": _shape, "Constant": _constant,
}
