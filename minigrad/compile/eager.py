"""Programs in eager mode: a composed function is compiled for each kind of call, and so is its gradient.

A kind is compiled in its first call, so that equal calls have equal results.  Each function has at most `MOST` kinds:
calls of later kinds run operation by operation, because sequences that grow would compile without end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core.clock import tick
from ..core.dtypes import float16
from ..core.emit import constant
from ..core.mode import current_mode
from ..core.node import Node
from ..core.primitive import INDEX, NODE, Plan, Rule
from ..core.programs import PROGRAMS, Closed
from ..core.tensor import Tensor, new_tensor, wrap
from ..devices.registry import REGISTRATIONS
from ..support.errors import MinigradError
from ..support.forking import new_lock
from ..support.source import caller
from .control.body import function_of
from .functions.function import TracedFunction
from .nodes.source import Source
from .running.program import Program
from .running.targets import HOST
from .tracing.collector import no_collection

MOST = 16  # kinds of calls of one function
STATIC = (int, float, bool, str, type(None))
COMPILING = new_lock()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls run as programs where that is possible."""
    kinds: dict[Hashable, Kind | None] = {}

    def call(*args: Any) -> Any:
        device = args[0].device
        key: list[Any] = [device]
        tensors, arrays, mask, bit = [], [], 0, 1
        for x in args:
            if x.__class__ is Tensor:
                array = x._data
                if array.__class__ is not np.ndarray or x.device is not device:
                    return function(*args)
                tensors.append(x)
                arrays.append(array)
                key.append(array.shape)
                key.append(array.dtype)
                if x.tracked:
                    mask += bit
                bit += bit
            elif x is None:
                key.append(x)
            elif x.__class__ in STATIC:
                key.append((x.__class__, x or str(x)))  # 0.0 is not -0.0
            else:
                return function(*args)
        try:
            kind = kinds[tuple(key)]
        except KeyError:
            kind = _new_kind(kinds, tuple(key), function, args, tensors)
        if kind is None or REGISTRATIONS:
            return function(*args)
        try:
            (data,) = kind.program(arrays)
        except MinigradError:
            return function(*args)  # which raises the same error, with the function's own message
        out = new_tensor(Tensor)
        out._data, out.device, out.alias, out._grad = data, device, None, None
        if mask and current_mode().grad:
            out.node, out.tracked = kind.node(tensors, arrays, mask, data), 1
        else:
            out.node, out.tracked = None, 0
        return out

    return call


def available() -> bool:
    """Whether kernels are compiled to machine code: otherwise, programs would not be faster than the operations."""
    return os.environ.get("MINIGRAD_BACKEND", "llvm") in ("", "llvm") and find_spec("llvmlite") is not None


def _new_kind(kinds: dict[Hashable, Kind | None], key: Hashable, *call: Any) -> Kind | None:
    """Compile the program for a new kind of call, if the call is possible; an error is left to the function itself."""
    with COMPILING:
        if key in kinds:
            return kinds[key]
        if len(kinds) >= MOST or not available():
            return None
        try:
            with no_collection():
                made = Kind(*call)
                usable = made.is_usable
        except MinigradError:
            return None
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            return None
        kinds[key] = made if usable else None
        return kinds[key]


class Kind:
    """Calls of a composed function with the same shapes, dtypes, device and other arguments: programs for them."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], tensors: Sequence[Tensor]) -> None:
        places = tuple([i for i, x in enumerate(args) if x.__class__ is Tensor])
        names = tuple([function.__code__.co_varnames[i] for i in places])
        fixed = tuple([None if x.__class__ is Tensor else x for x in args])
        name = function.__name__
        self.op = Closed(name, "structural", names, _no_infer, promotes=(), function=function, arguments=fixed,
                         places=places)
        self.traced: TracedFunction = function_of(name, lambda given: [self.op.call(given)], tensors)
        self.attrs = {function.__code__.co_varnames[i]: x for i, x in enumerate(fixed) if i not in places}
        self.gradients: dict[int, Gradient] = {}

    @cached_property
    def program(self) -> Any:
        """Computes the result."""
        return self.traced.program

    @property
    def is_usable(self) -> bool:
        """Whether the call is a pure function of its tensors: it draws no random numbers, and returns a new float."""
        tracer, (output,) = self.traced.tracer, self.traced.outputs
        base = output._data if output._data.base is None else output._data.base
        pure = not tracer.drawn and not tracer.effects and not tracer.looked_into
        new = output.dtype.kind == "f" and not isinstance(base.node, Source)
        full = all(t.dtype is not float16 for t in (*self.traced.inputs, output))
        return pure and new and full and isinstance(self.program, Program) and self.program.target is HOST

    def gradient(self, mask: int) -> Gradient:
        """The gradient by the inputs in `mask`."""
        found = self.gradients.get(mask)
        if found is None:
            with COMPILING, no_collection():
                found = self.gradients.setdefault(mask, Gradient(self, mask))
        return found

    def node(self, tensors: Sequence[Tensor], arrays: Sequence[Any], mask: int, data: Any) -> Node:
        """The closed node of a call."""
        gradient = self.gradients.get(mask) or self.gradient(mask)
        saved, inputs = [], []
        for i, (x, array) in enumerate(zip(tensors, arrays)):
            node = x.node or constant(x)
            alias = x.alias
            fixed = x.tracked and node.op is not None and (alias is None or alias.base is None)
            saved.append(array if fixed or i in gradient.reads else array.copy())
            inputs.append(node)
        made = Node.__new__(Node)
        made.op, made.inputs, made.attrs, made.plan = self.op, tuple(inputs), self.attrs, gradient.plan
        made.shape, made.dtype, made.device = data.shape, data.dtype, tensors[0].device
        made.saved, made.mode, made.serial = tuple(saved), current_mode(), tick()
        made.code, made.offset = caller(3)
        return made


class Gradient:
    """The gradient of a kind of call by some inputs.  It computes what it needs from the inputs again.

    So a closed node saves its inputs only.  The operations themselves would not save all of them.  A user may write to
    an input that they would not save: that input is copied, unless it is in `reads`, the inputs that they would save.
    """

    def __init__(self, kind: Kind, mask: int) -> None:
        wanted = [i for i, t in enumerate(kind.traced.inputs) if mask >> i & 1 and t.tracked]
        self.traced = kind.traced.gradient_by(wanted, [0])
        self.wanted = [i for i in wanted if i not in self.traced.unused]
        self.reads = _read_directly(kind.traced, self.traced)
        self.plan = Plan(tuple([Rule(i, self.pulled, (NODE, INDEX), None) for i in self.wanted]), None)

    @cached_property
    def program(self) -> Any:
        """Computes the gradients of the inputs."""
        with COMPILING, no_collection():
            return self.traced.program

    def pulled(self, g: Tensor, node: Node, index: int) -> Tensor | None:
        """The gradient rule of a closed node: one run for all inputs, although a walk takes one at a time."""
        answers = ANSWERS
        if answers.node is not node or answers.g is not g:
            data = self.program([*node.saved, g._data])
            answers.values = {i: wrap(array, node.device) for i, array in zip(self.traced.wanted, data)}
            answers.node, answers.g = node, g
        value = answers.values.pop(index)
        if not answers.values:
            answers.node = answers.g = None
        return value


def _read_directly(function: TracedFunction, gradient: TracedFunction) -> set[int]:
    """The inputs of a function that its gradient reads, except to compute values of the forward pass again."""
    inside = {node for node in function.graph.nodes if node.op is not None and node.op.kind != "view"}
    stack, seen = [t._data.node for t in gradient.outputs], set()
    while stack:
        node = stack.pop()
        if node not in seen and node not in inside:
            seen.add(node)
            stack += [i for i in node.inputs if isinstance(i, Node)]
    return {i for i, node in enumerate(function.own) if node in seen}


class Answers(threading.local):
    """The gradients of one node that a walk has not taken yet."""

    node: Node | None = None
    g: Tensor | None = None
    values: dict[int, Tensor] = {}


ANSWERS = Answers()


def _no_infer(*inputs: Any, **attrs: Any) -> Any:
    raise NotImplementedError


PROGRAMS.compiled = compiled
