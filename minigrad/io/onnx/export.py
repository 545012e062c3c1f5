"""Export: a function or a model as an ONNX file, which other programs run without Python."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...compile.functions.recording import Recording
from ...compile.jitted import Jitted
from ...compile.nodes.graph import Graph
from ...compile.save.write import effects_of, names_of, recorded
from ...compile.tracing.signature import kind_of, replaced
from ...core.mode import current_mode
from ...core.tensor import Tensor, from_host
from ...nn.module import Module
from ...support.errors import FileError, TraceError
from ...support.files import write_whole
from ...support.words import a_type
from . import elementwise, layers, whole_layers  # noqa: F401 - they add operators to the table
from .composites import calls_in
from .decompositions import decomposed
from .nodes import refuse_unknown, write_graph
from .sizes import WAY_OUT, Merged
from .writer import IR_VERSION, OPSET, Writer

TENSORS = "minigrad.tensors"  # in the metadata: names of parameters and buffers, and whether they require a gradient
LARGEST = (1 << 31) - 1  # bytes of a protobuf message


def export_onnx(
    function: Callable[..., Any], path: str | os.PathLike[str], *args: Any, batch_axes: Any = "first",
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None, **kwargs: Any,
) -> None:
    """Write what a function or a model computes, for arguments like these, as an ONNX file (opset 18).

    The first dimension of every tensor among the arguments is the batch, and the file takes batches of any size.  As
    in `vmap`, `batch_axes` may be another axis, or one for each tensor (None: it has no batch).  A model with a layer
    that takes sequences before examples needs it.  With `batch_axes=None` the file takes exactly these shapes.
    Parameters keep their names.  Call `model.eval()` first: a file cannot train.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.onnx"
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())
    >>> mg.io.export_onnx(model, path, mg.ones((5, 2)))
    >>> mg.io.load_onnx(path)
    OnnxModel(input: float32 (batch, 2) → output: float32 (batch, 3), 9 parameters)
    """
    w = Writer()
    if not isinstance(path, (str, os.PathLike)):
        raise FileError(f"export_onnx: the path is {a_type(path)}",
                        expect="export_onnx(model, path, *examples)")
    if current_mode().interpreter is not None:
        raise TraceError("export_onnx: a model can only be exported in eager mode, not inside a trace")
    function = function.function if isinstance(function, Jitted) else function
    tensors: list[Tensor] = []
    for part in (*args, *kwargs.values()):
        kind_of(part, tensors)
    if isinstance(batch_axes, str) and batch_axes == "first":
        _refuse_sequences_first(function)
        batch_axes = 0
    axes = _axes(batch_axes, tensors)
    batch = _batch_of(axes, tensors)
    first = max(2, batch or 0)
    batches: list[Any] = [None] if batch is None else [first, first + 1, 2 * first + 3]
    recordings = [_recorded(function, args, kwargs, tensors, axes, size) for size in batches]
    traced = [recording.traced.graph for recording in recordings]
    graphs = [decomposed(graph, calls) for graph, calls in zip(traced, calls_in(traced))]
    refuse_unknown(graphs[0])
    graph = Merged(graphs, batches).graph
    names = _names_of_inputs(function, args, kwargs, input_names)
    model = _model(w, function, recordings[0], graph, names, axes, output_names)
    if model.ByteSize() > LARGEST:
        raise FileError(f"export_onnx: the model takes {model.ByteSize():,} bytes, and ONNX files hold {LARGEST:,}",
                        hint="model.to(mg.float16), or mg.io.save_file(model.state_dict(), path)")
    write_whole(path, model.SerializeToString(deterministic=True))


def _recorded(
    function: Callable[..., Any], args: Any, kwargs: Any, tensors: list[Tensor], axes: list[int | None],
    batch: int | None,
) -> Recording:
    """The function, traced with a batch of this size."""
    if batch is not None:
        resized = [t if axis is None else _resized(t, axis, batch) for t, axis in zip(tensors, axes)]
        args, kwargs = replaced((args, kwargs), iter(resized))
        tensors = resized
    recording = recorded(function, args, kwargs, tensors)
    reason, hint = effects_of(recording)
    if reason:
        raise FileError(f"export_onnx: the function {reason}, which a file cannot do", hint=hint)
    if not recording.results or any(isinstance(r, np.ndarray) for r in recording.results):
        raise FileError("export_onnx: the function returns no tensor, or a NumPy array among its results",
                        expect="tensors, and tuples, lists and dicts of them")
    if recording.tracer.looked_into:
        raise FileError("export_onnx: what the function computes depends on the values of a NumPy array among its "
                        "arguments", hint="pass a tensor instead, or let the function close over the array")
    return recording


def _resized(tensor: Tensor, axis: int, batch: int) -> Tensor:
    if not tensor.size:
        raise FileError(f"export_onnx: an example needs elements, and this one has shape {tensor.shape}")
    return from_host(tensor.numpy_copy().take(range(batch), axis, mode="wrap"), tensor.device)


# The batch -----------------------------------------------------------------------------------------------------------


def _refuse_sequences_first(function: Any) -> None:
    """Raise an error for a model with a layer that takes (length, examples, ...): its first axis is not the batch."""
    owner = function if isinstance(function, Module) else getattr(function, "__self__", None)
    for name, module in owner.named_modules() if isinstance(owner, Module) else ():
        if getattr(module, "batch_first", True) is False:
            raise FileError(f"export_onnx: which axis is the batch?  The model has a layer that takes sequences as "
                            f"(length, examples, ...)\n  {name or 'the model'}: {module!r}",
                            expect="batch_axes=1 for inputs in this order, or batch_axes=0 if the model takes examples "
                            "first", hint="batch_first=True makes a layer that takes the examples first")


def _axes(batch_axes: Any, tensors: list[Tensor]) -> list[int | None]:
    """For each tensor the axis of its batch, counted from the front."""
    each = list(batch_axes) if isinstance(batch_axes, (list, tuple)) else [batch_axes] * len(tensors)
    if len(each) != len(tensors):
        raise FileError(f"export_onnx: {len(each)} batch_axes do not fit the number of tensors, {len(tensors)}")
    for axis, tensor in zip(each, tensors):
        if axis is not None and not (axis.__class__ is int and -tensor.ndim <= axis < tensor.ndim):
            raise FileError(f"export_onnx: a tensor of shape {tensor.shape} has no axis {axis} for the batch",
                            hint=WAY_OUT)
    return [None if axis is None else axis % tensor.ndim for axis, tensor in zip(each, tensors)]


def _batch_of(axes: list[int | None], tensors: list[Tensor]) -> int | None:
    sizes = {t.shape[axis] for axis, t in zip(axes, tensors) if axis is not None}
    if len(sizes) > 1:
        shapes = ", ".join(str(t.shape) for t in tensors)
        raise FileError(f"export_onnx: the tensors have different batch sizes: {sorted(sizes)}",
                        actual=f"tensors of shapes {shapes}", hint=WAY_OUT)
    return sizes.pop() if sizes else None


# Names ---------------------------------------------------------------------------------------------------------------


def _names_of_inputs(function: Any, args: Any, kwargs: Any, given: Sequence[str] | None) -> list[str]:
    """The names of the tensors among the arguments: those of the parameters that they are passed for."""
    called = function.forward if isinstance(function, Module) else function
    try:
        parameters = [p.name for p in inspect.signature(called).parameters.values() if p.kind < p.VAR_POSITIONAL]
    except (ValueError, TypeError):
        parameters = []
    positional = [parameters[i] if i < len(parameters) else f"input_{i}" for i in range(len(args))]
    values = zip((*positional, *kwargs), (*args, *kwargs.values()))
    named = [found for name, value in values for found in _within(name, value)]
    return _chosen("input_names", given, ["input"] if named == ["x"] else named, "tensor")


def _names_of_outputs(given: Sequence[str] | None, count: int) -> list[str]:
    return _chosen("output_names", given, ["output"] if count == 1 else [f"output_{i}" for i in range(count)], "result")


def _chosen(what: str, given: Sequence[str] | None, usual: list[str], each: str) -> list[str]:
    """The names that were given, after a check; the usual ones if none were."""
    count = len(usual)
    if given is None:
        return usual
    if len(given) != count or len(set(given)) != count or not all(isinstance(n, str) and n for n in given):
        raise FileError(f"export_onnx: {what} needs {count} different strings, one for each {each}",
                        actual=repr(given))
    return list(given)


def _within(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, (Tensor, np.ndarray)):
        yield name
    elif isinstance(value, (list, tuple, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _within(f"{name}.{key}", part)


def _names_of_tensors(function: Any, recording: Recording) -> dict[int, str]:
    """The names of parameters and buffers, by ids: in a model those of its state, else those that the function uses."""
    owner = function if isinstance(function, Module) else getattr(function, "__self__", None)
    if isinstance(owner, Module):
        return {id(tensor): name for name, tensor in reversed([*owner.named_tensors()])}  # the first name of each
    return names_of(recording)


# The model -----------------------------------------------------------------------------------------------------------


def _model(
    w: Writer, function: Any, recording: Recording, graph: Graph, input_names: list[str],
    axes: list[int | None], output_names: Sequence[str] | None,
) -> Any:
    """The graph as an ONNX model."""
    helper = w.onnx.helper
    names, infos = {}, {}
    w.taken.update(input_names)
    outputs = _names_of_outputs(output_names, len(recording.results))
    w.taken.update(outputs)
    known, tensors = _names_of_tensors(function, recording), {}
    for place, node in zip((*recording.inputs, *recording.others), graph.inputs):
        if place.kind == "argument":
            name = input_names[place.what]
            infos[place.what] = w.info(name, node.dtype, node.shape)
            if axes[place.what] is not None and w.batch is None:
                w.batch = name, axes[place.what]  # type: ignore[assignment]
        else:
            tensor = place.find([])
            name = w.fresh(known.get(id(tensor)) or "constant")
            w.initializer(name, tensor.numpy_copy())
            if id(tensor) in known:
                tensors[name] = bool(tensor.requires_grad)
        names[node] = name
    computed = write_graph(w, graph, names)
    results = []
    for name, result in zip(outputs, recording.results):
        node = graph.outputs[result.number]
        w.nodes.append(helper.make_node("Identity", [computed[result.number]], [name], name))
        results.append(w.info(name, node.dtype, node.shape))
    title = getattr(function, "__qualname__", type(function).__name__)
    made = helper.make_graph(w.nodes, title, [infos[i] for i in sorted(infos)], results, w.initializers)
    opset = helper.make_opsetid("", OPSET)
    version = sys.modules["minigrad"].__version__
    model = helper.make_model(made, producer_name="minigrad", producer_version=version, opset_imports=[opset],
                              ir_version=IR_VERSION)
    helper.set_model_props(model, {TENSORS: json.dumps(tensors)})
    return model
