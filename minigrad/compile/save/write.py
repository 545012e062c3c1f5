"""Writes programs to files, to run without the functions that they were made from.

A file is a zip archive without compression.  `program.json` has the plan, the kernels in the loop language, the graph,
and the containers of arguments and results; `arrays/0` and so on are the values of tensors that the function uses by
name.  A file is checked when it is read, because anyone may have written it: shapes are computed again, every index of
every kernel stays within its memory, and kernels are the only code.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from ...core.emit import emit
from ...core.mode import Mode, current_mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import Tensor, wrap
from ...core.tree import flatten
from ...support.files import whole_file
from ...support.source import show
from ..functions.recording import Recording
from ..running.plan import Buffer, Call, Check, Launch, Read, Step
from ..running.program import Program
from ..tracing.guards import Guard, join
from ..tracing.signature import kind_of, replaced
from .codec import ProgramError, Slot, encoded
from .kernels import kernel_as_data

FORMAT = 3  # of the files; other formats are refused
CONTENT, ARRAYS = "program.json", "arrays/"


def save_program(function: Callable[..., Any], path: str | os.PathLike[str], args: Any, kwargs: Any) -> None:
    """Write the program of a function for arguments like these."""
    if current_mode().interpreter is not None:
        raise ProgramError("save: a program can be saved only in eager mode, not inside a trace")
    tensors: list[Tensor] = []
    for part in (*args, *kwargs.values()):
        kind_of(part, tensors)
    slots: Any = iter([Slot(number) for number in range(len(tensors))])
    numbered = replaced((list(args), dict(kwargs)), slots)
    recording = recorded(function, args, kwargs, tensors)
    program = recording.traced.program
    _refuse(recording, program)
    assert isinstance(program, Program)
    if program.partition.blocks:  # a file has only kernels, library calls and checks
        program = Program(recording.traced.graph, blocks=False)
    results = recording.rebuild([Slot(result.number) for result in recording.results])
    data = {
        "format": FORMAT,
        "minigrad": sys.modules["minigrad"].__version__,
        "name": getattr(function, "__qualname__", type(function).__name__),
        "args": encoded(numbered[0], "args"),
        "kwargs": encoded(numbered[1], "kwargs"),
        "result": encoded(results, "the result"),
    }
    described, arrays = _described(recording, program)
    _write(Path(path), data | described, arrays)


def recorded(function: Callable[..., Any], args: Any, kwargs: Any, tensors: list[Tensor]) -> Recording:
    """The function traced with new tensors, and with results that are copies, not views."""

    @wraps(function)
    def with_copied_results(*args: Any, **kwargs: Any) -> Any:
        tensors, rebuild = flatten(function(*args, **kwargs))
        return rebuild([emit(P.astype, t, dtype=t.dtype) for t in tensors])

    fresh = [wrap(t._data, t.device) for t in tensors]
    with switch(Mode(grad=False)):
        inside = replaced((args, kwargs), iter(fresh))
        return Recording(with_copied_results, inside[0], inside[1], fresh)


def effects_of(recording: Recording) -> tuple[str, str]:
    """What a function does other than compute results, and a hint; empty if it does nothing else."""
    tracer = recording.tracer
    names = names_of(recording)
    written = [names.get(id(e.tensor), "a tensor") for e in tracer.captured.values() if e.written]
    if written:
        hint = "return the new value, and assign it outside; model.eval() for running statistics"
        return f"changes {', '.join(written)} in place", hint
    if recording.gradients:
        return "replaces a .grad", "a saved program only computes results: train outside"
    if tracer.drawn:
        return "draws random numbers", "model.eval() switches dropout off; or pass the numbers as an argument"
    return "", ""


def _refuse(recording: Recording, program: Any) -> None:
    """Refuse what a file cannot hold, with the reason."""
    reason, hint = effects_of(recording)
    if reason:
        pass
    elif not isinstance(program, Program) or not all(node.device.hosted for node in program.graph.inputs):
        reason, hint = "runs on a device that is not a CPU", "move the model to a CPU first"
    elif program.final.effects:
        node = program.final.effects[0]
        reason = f"does more than compute its result: {node.name}, at {show(node.where)}"
    else:
        own = [node for node in program.final.nodes if node.op is not None and node.op.kind == "own"]
        if own:
            reason = f"uses your kernel {own[0].name}, and a file holds no Python code"
            hint = "call forget() on the kernel first"
    if reason:
        raise ProgramError(f"save: the function {reason}", hint=hint or None)


def names_of(recording: Recording) -> dict[int, str]:
    """The names of tensors that the function reads by name, by id."""
    return {
        id(value): join(guard.name, key)
        for guard in recording.guards
        if isinstance(guard, Guard)
        for key, value in guard.values.items()
        if value.__class__ is Tensor
    }


def _described(recording: Recording, program: Program) -> tuple[dict[str, Any], list[Any]]:
    """A program as plain data, and the arrays that go with it."""
    graph, plan = program.final, program.plan
    at = {node: i for i, node in enumerate((*graph.inputs, *graph.nodes))}
    named = {name: at[node] for node, name in graph.names().items()}
    arrays: list[Any] = []
    kernels: dict[str, int] = {}
    data = {
        "inputs": _inputs(recording, program, arrays),
        "nodes": [_node(node, at) for node in graph.nodes],
        "outputs": [at[node] for node in graph.outputs],
        "buffers": [_buffer(buffer) for buffer in plan.buffers[len(plan.inputs) :]],
        "steps": [_step(step, named, kernels) for step in plan.steps],
        "results": [_read(read) for read in plan.outputs],
        "kernels": [json.loads(text) for text in kernels],
    }
    return data, arrays


def _inputs(recording: Recording, program: Program, arrays: list[Any]) -> list[dict[str, Any]]:
    names = names_of(recording)
    places = [*recording.inputs, *recording.others]
    data = []
    for number, node in enumerate(program.final.inputs):
        described = {"shape": list(node.shape), "dtype": node.dtype.name, "device": node.device.name}
        place = places[number] if number < len(places) else None
        if place is not None and place.kind == "argument":
            described["argument"] = place.what
        else:
            tensor = None if place is None else place.find([])
            array = tensor._data if tensor is not None else program.constants[number - len(places)].array()
            described |= {"array": len(arrays), "name": names.get(id(tensor)) or f"constant {len(arrays)}"}
            arrays.append(np.ascontiguousarray(array))
        data.append(described)
    return data


def _node(node: Node, at: dict[Node, int]) -> dict[str, Any]:
    assert node.op is not None
    return {
        "op": node.op.name,
        "inputs": [{"at": at[i]} if isinstance(i, Node) else encoded(i) for i in node.inputs],
        "attrs": [[key, encoded(value, f"{key} of {node.name}")] for key, value in node.attrs.items()],
        "shape": encoded(node.shape),
        "dtype": encoded(node.dtype),
    }


def _buffer(buffer: Buffer) -> dict[str, Any]:
    """A buffer without its place, which depends on the machine that loads the program."""
    shape, dtype = encoded(buffer.shape), encoded(buffer.dtype)
    return {"name": buffer.name, "shape": shape, "dtype": dtype, "device": buffer.device.name}


def _step(step: Step, named: Mapping[str, int], kernels: dict[str, int]) -> dict[str, Any]:
    costs = [step.count.bytes_read, step.count.bytes_written, step.count.flops, step.count.launches]
    if isinstance(step, Call):  # its operation and its numbers are those of the node
        reads = [_read(read) for read in step.reads if isinstance(read, Read)]
        return {"node": named[step.name], "reads": reads, "out": step.out, "costs": costs}
    if isinstance(step, Check):
        place = {"size": step.size, "axis": step.axis, "op": step.op}
        return {"check": _read(step.read), "name": step.name, **place, "costs": costs}
    assert isinstance(step, Launch)
    text = json.dumps(kernel_as_data(step.kernel), allow_nan=False)
    return {
        "kernel": kernels.setdefault(text, len(kernels)),
        "name": step.name,
        "buffers": list(step.buffers),
        "offsets": list(step.offsets),
        "computes": [named[name] for name in step.computes],
        "costs": costs,
    }


def _read(read: Read) -> list[Any]:
    return [read.buffer, read.offset, encoded(read.shape), encoded(read.strides)]


def _write(path: Path, data: dict[str, Any], arrays: list[Any]) -> None:
    """Write the whole file or nothing."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(CONTENT, json.dumps(data, allow_nan=False))
        for number, array in enumerate(arrays):
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            archive.writestr(f"{ARRAYS}{number}", little.tobytes())
