"""Writes programs to files, to run without the functions that they were made from.

A file is a zip archive without compression.  `program.json` has the traced graph and the containers of arguments and
results; `arrays/0` and so on are the values of tensors that the function uses by name.  There is no code in it: the
version that loads a file compiles the graph, as `jit` does.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable
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
from ..nodes.graph import Graph
from ..tracing.guards import join
from ..tracing.signature import kind_of, replaced
from .codec import ProgramError, Slot, encoded
from .graphs import graph_as_data

FORMAT = 4  # of the files; other formats are refused
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
    whole = recording.traced.graph
    _refuse(recording, whole)
    places = zip(whole.inputs, [*recording.inputs, *recording.others])
    given = {node: place.what for node, place in places if place.kind == "argument"}
    results = recording.rebuild([Slot(result.number) for result in recording.results])
    store = _Store(recording, set(given))
    outputs = [copy.inputs[0] for copy in whole.outputs]  # a program copies those that it must
    data = {
        "format": FORMAT,
        "minigrad": sys.modules["minigrad"].__version__,
        "name": getattr(function, "__qualname__", type(function).__name__),
        "args": encoded(numbered[0], "args"),
        "kwargs": encoded(numbered[1], "kwargs"),
        "result": encoded(results, "the result"),
        "arguments": list(given.values()),
        "graph": graph_as_data(Graph(tuple(given), outputs), store),
    }
    _write(Path(path), data, store.arrays)


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


def _refuse(recording: Recording, graph: Graph) -> None:
    """Refuse what a file cannot hold, with the reason."""
    reason, hint = effects_of(recording)
    if reason:
        pass
    elif not all(node.device.hosted for node in (*graph.inputs, *graph.nodes)):
        reason, hint = "runs on a device that is not a CPU", "move the model to a CPU first"
    elif graph.effects:
        node = graph.effects[0]
        reason = f"does more than compute its result: {node.name}, at {show(node.where)}"
    if reason:
        raise ProgramError(f"save: the function {reason}", hint=hint or None)


def names_of(recording: Recording) -> dict[int, str]:
    """The names of tensors that the function reads by name, by id."""
    return {
        id(value): join(guard.name, key)
        for guard in recording.guards
        for key, value in guard.values.items()
        if value.__class__ is Tensor
    }


class _Store:
    """Keeps the arrays of a program, and describes each: its number, its name, and whether it rarely changes."""

    def __init__(self, recording: Recording, arguments: set[Node]) -> None:
        self.names, self.arrays, self.used = names_of(recording), list[Any](), set[str]()
        places = zip(recording.traced.sources, [*recording.inputs, *recording.others])
        self.tensors = {node: place.find([]) for node, place in places if node not in arguments}

    def __call__(self, node: Node) -> dict[str, Any]:
        tensor, number = self.tensors.get(node), len(self.arrays)
        array = node.array() if tensor is None else tensor._data  # type: ignore[attr-defined]
        self.arrays.append(np.ascontiguousarray(array))
        name = self.names.get(id(tensor)) or f"constant {number}"
        name = name if name not in self.used else f"{name} {number}"
        self.used.add(name)
        return {"array": number, "name": name, "lasting": tensor is not None}


def _write(path: Path, data: dict[str, Any], arrays: list[Any]) -> None:
    """Write the whole file or nothing."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(CONTENT, json.dumps(data, allow_nan=False))
        for number, array in enumerate(arrays):
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            archive.writestr(f"{ARRAYS}{number}", little.tobytes())
