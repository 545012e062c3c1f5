"""Programs in eager mode: a composed function is compiled for each kind of call, and so is its gradient.

A kind is compiled in its first call, so that equal calls have equal results.  Each function has at most `MOST` kinds:
calls of later kinds run operation by operation, because sequences that grow would compile without end.  Convolutions
have more, because each layer of a network has a different shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import ref

import numpy as np

from ..compile.codegen.native import is_available
from ..compile.control.body import function_of
from ..compile.functions.derivatives import read_by
from ..compile.functions.function import TracedFunction
from ..compile.nodes.graph import Source
from ..compile.rewriting.layouts import Axes, on_stored
from ..compile.running.profiler import copied, inside
from ..compile.running.program import Program, program_for
from ..compile.running.steps import is_profiled
from ..compile.tracing.tracer import Pending
from ..core.clock import tick
from ..core.dtypes import float16
from ..core.emit import constant
from ..core.mode import current_mode
from ..core.node import Node, topological_order
from ..core.primitive import Plan, Rule
from ..core.programs import PROGRAMS, Closed
from ..core.tensor import Tensor, wrap
from ..devices.registry import REGISTRATIONS
from ..ops.composite import COMPOSED
from ..support.collector import no_collection
from ..support.errors import MinigradError
from ..support.forking import new_lock
from ..support.source import caller

MOST = 16  # kinds of calls of one function
LAYOUTS = 4  # of the inputs of one function
KEPT = 1 << 22  # bytes of memory that a program may keep between calls; to make a frame takes 0.1 ms
PLAIN = frozenset((int, bool, str, type(None)))
STATIC = PLAIN | {float}
COMPILING = new_lock()


def compiled(function: Callable[..., Any], most: int | None = None) -> Callable[..., Any]:
    """The function, whose calls run as programs where that is possible; at most `most` kinds of calls, or `MOST`."""
    kinds: dict[Hashable, Kind | None] = {}

    def call(*args: Any) -> Any:
        device, recorder = args[0].device, current_mode().interpreter
        held = np.ndarray if recorder is None else Pending
        key: list[Any] = [device]
        tensors, arrays, mask, bit = [], [], 0, 1
        for x in args:
            if x.__class__ is Tensor:
                if recorder is not None:
                    x = recorder.lift(x)
                array = x._data
                if array.__class__ is not held or x.device is not device:
                    return function(*args)
                tensors.append(x)
                arrays.append(array)
                key.append(array.shape)
                key.append(array.dtype)
                if x.tracked:
                    mask += bit
                bit += bit
            elif x.__class__ in PLAIN:
                key.append(x.__class__)  # 1 is not True
                key.append(x)
            elif _is_static(x):
                key.append(repr(x))  # 0.0 is not -0.0
            else:
                return function(*args)
        try:
            kind = kinds[tuple(key)]
        except KeyError:
            kind = _new_kind(kinds, tuple(key), most, function, args, tensors)
        if kind is None or REGISTRATIONS:
            return function(*args)
        try:
            gradient = None
            if mask and kind.has_gradient and current_mode().grad:
                gradient = kind.gradients.get(mask) or kind.gradient(mask)
            out, *others = (kind if gradient is None else gradient).forward(arrays, device)
        except MinigradError:
            return function(*args)  # which raises the same error, with the function's own message
        further = kind.further
        if gradient is not None:
            kept = [each._data for each in others[further:]]
            out.node, out.tracked = gradient.node(tensors, arrays, out._data, kept), True
        return (out, *others[:further]) if further else out

    return call


def _is_static(x: Any) -> bool:
    """Whether an argument is a number, a text or None, or a tuple of these."""
    return x.__class__ in STATIC or (x.__class__ is tuple and all(map(_is_static, x)))


def new_kind(kinds: dict[Any, Any], key: Hashable, make: Callable[[], Any], most: int | None = None) -> Any:
    """What `make()` compiles for a new kind of call; None if that is nothing, or if there are `most` kinds already."""
    with COMPILING:
        if key in kinds:
            return kinds[key]
        if len(kinds) >= (most or MOST) or not is_available():
            return None
        with no_collection():
            kinds[key] = make()
        return kinds[key]


def _new_kind(
    kinds: dict[Hashable, Kind | None], key: Hashable, most: int | None, function: Callable[..., Any],
    args: tuple[Any, ...], tensors: Sequence[Tensor],
) -> Any:
    """The programs for a new kind of call, if the call is possible; an error is left to the function itself."""

    def make() -> Kind | None:
        made = Kind(function, args, tensors)
        return made if made.is_usable() else None

    try:
        return new_kind(kinds, key, make, most)
    except (MinigradError, TypeError, ValueError, ArithmeticError, AttributeError):
        return None


class Kind:
    """Calls of a composed function with the same shapes, dtypes, device and other arguments: programs for them."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], tensors: Sequence[Tensor]) -> None:
        places = tuple([i for i, x in enumerate(args) if x.__class__ is Tensor])
        names = tuple([function.__code__.co_varnames[i] for i in places])
        fixed = tuple([None if x.__class__ is Tensor else x for x in args])
        name = function.__name__
        self.op = Closed(
            name, "structural", names, None, promotes=(), function=function, arguments=fixed,  # type: ignore[arg-type]
            places=places,
        )
        marked = replace(self.op, function=COMPOSED.get(name, function))  # views show it as one
        self.traced: TracedFunction = function_of(name, marked.call, tensors)
        self.further = len(self.traced.outputs) - 1  # results after the first one, which have no history
        self.has_gradient = self.traced.outputs[0].tracked
        self.attrs = {function.__code__.co_varnames[i]: x for i, x in enumerate(fixed) if i not in places}
        self.gradients: dict[int, Gradient] = {}

    @cached_property
    def forward(self) -> Programs:
        """The programs that compute the result."""
        return Programs(self.op.name, self.traced)

    def is_usable(self) -> bool:
        """Whether the call is a pure function of its tensors: it draws no random numbers, and returns new floats."""
        tracer, outputs = self.traced.tracer, self.traced.outputs
        bases = [t._data if t._data.base is None else t._data.base for t in outputs]
        pure = not tracer.drawn and not tracer.effects
        new = all(t.dtype.kind == "f" and not isinstance(base.node, Source) for t, base in zip(outputs, bases))
        full = all(t.dtype is not float16 for t in (*self.traced.inputs, *outputs))
        return pure and new and full and self.traced.is_hosted

    def gradient(self, mask: int) -> Gradient:
        """Make the gradient by the inputs in `mask`."""
        with COMPILING, no_collection():
            return self.gradients.setdefault(mask, Gradient(self, mask))


class Programs:
    """A function as programs: one for each layout of the inputs, because results may lie permuted in memory.

    After `LAYOUTS` layouts, inputs in another one are copied into row-major order.  In graph mode, a run is one node.
    """

    def __init__(self, name: str, traced: TracedFunction) -> None:
        self.name, self.traced = name, traced
        self.made: dict[tuple[Axes | None, ...], Any] = {}
        self.plain: Any = None  # the program for arrays in row-major order

    def __call__(self, values: Sequence[Any], device: Any) -> list[Tensor]:
        """The results, which may lie permuted in memory."""
        recorder = current_mode().interpreter
        if recorder is not None:
            return recorder.closed(self.traced.closed, values, device)  # type: ignore[no-any-return]
        return [wrap(data, device) for data in self._computed(values)]

    def _computed(self, arrays: Sequence[Any]) -> list[Any]:
        if is_profiled():
            with inside(self.name):
                return self._run(arrays)
        if self.plain is not None:
            for array in arrays:
                if not array.flags.c_contiguous:
                    break
            else:
                return self.plain(arrays)  # type: ignore[no-any-return]
        return self._run(arrays)

    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        program, orders = self.program(arrays)
        return program([a if order is None else a.transpose(order) for a, order in zip(arrays, orders)])  # type: ignore[no-any-return]

    def program(self, arrays: Sequence[Any]) -> tuple[Any, tuple[Axes | None, ...]]:
        """The program for arrays in these layouts, and the order of the dimensions that it takes each one in."""
        orders = tuple([None if a.flags.c_contiguous else _order(a) for a in arrays])
        program: Any = self.made.get(orders)
        if program is None:
            with COMPILING, no_collection():
                if len(self.made) >= LAYOUTS:
                    orders = (None,) * len(orders)
                program = self.made.get(orders)
                if program is None:
                    program = self.made[orders] = program_for(on_stored(self.traced.graph, orders), any_layout=True)
                    program.keeps_frames = not isinstance(program, Program) or sum(program.plan.slots) <= KEPT
                    self.plain = self.made.get((None,) * len(orders))
        return program, orders


def _order(array: Any) -> Axes | None:
    """The dimensions of an array from the slowest to the fastest; None if there are gaps between its elements."""
    strides = array.strides
    order = tuple(sorted(range(array.ndim), key=lambda axis: -strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None


class Gradient:
    """The gradient of a kind of call by some inputs.

    A closed node saves the inputs that its gradient needs, which computes from them again what else it needs.  The
    operations would not save all of these.  A user may write to an input that they would not save: such an input is
    copied.  If the values that they would save are much smaller, as the mask of a relu is, then the closed node saves
    these instead.
    """

    def __init__(self, kind: Kind, mask: int) -> None:
        self.kind, traced = kind, kind.traced
        wanted = [i for i, t in enumerate(traced.inputs) if mask >> i & 1 and t.tracked]
        self.traced, self.op, self.keeps = traced.gradient_by(wanted, [0]), kind.op, False
        _, read = read_by(traced, self.traced, self.traced.outputs)
        self.reads = {i for i, node in enumerate(traced.own) if node in read}  # inputs that the operations would save
        others = sum([t._data.node.nbytes for i, t in enumerate(traced.inputs) if i not in self.reads])
        if len(wanted) == len(traced.inputs) and 2 * sum([node.nbytes for node in traced.left]) <= others:
            history = topological_order([traced.outputs[0].node])
            values = [v.node for node in history for v in node.saved or () if v.__class__ is Pending]
            if set(values) == set(traced.left):
                self.traced, self.keeps = traced.gradient, True
                self.op = replace(kind.op, saves=tuple([traced.left.index(v) for v in values]))
        read = {source for node in self.traced.graph.nodes for source in node.sources}
        self.needs = [i for i, node in enumerate(traced.own) if node in read]
        self.wanted = [i for i in self.traced.wanted if i not in self.traced.unused]
        self.plan = Plan(tuple([Rule(i, self.pulled, (), None) for i in self.wanted]), None, self.pulled)

    @cached_property
    def forward(self) -> Programs:
        """The programs that compute the result, and the values to save if these are not the inputs."""
        return Programs(self.op.name, self.kind.traced.keeping) if self.keeps else self.kind.forward

    @cached_property
    def backward(self) -> Programs:
        """The programs that compute the gradients of the inputs."""
        traced = self.traced
        read = [*[traced.inputs[i] for i in self.needs], *traced.inputs[len(self.kind.traced.inputs) :]]
        return Programs(
            f"gradient of {self.op.name}", TracedFunction(traced.tracer, read, traced.outputs, kept=traced.kept)
        )

    def node(self, tensors: Sequence[Tensor], arrays: Sequence[Any], data: Any, kept: Sequence[Any]) -> Node:
        """The closed node of a call."""
        made = Node.__new__(Node)
        made.op, made.attrs, made.plan = self.op, self.kind.attrs, self.plan
        made.inputs = tuple([t.node or constant(t) for t in tensors])
        saved = kept if self.keeps else map(self._saved, range(len(arrays)), tensors, arrays)
        made.saved = (*saved, None)  # the last slot is for the result
        made.shape, made.dtype, made.device = data.shape, data.dtype, tensors[0].device
        made.mode, made.serial = current_mode(), tick()
        if data.__class__ is Pending:
            made.code, made.offset, made.value = data.node.code, data.node.offset, ref(data.node)
        else:
            made.code, made.offset = caller(3)
        return made

    def _saved(self, index: int, tensor: Tensor, array: Any) -> Any:
        """An input to save, if it is needed: a copy if the operations would not save it and it may be overwritten."""
        if index not in self.needs:
            return None if array.__class__ is np.ndarray else array
        alias = tensor.alias
        fixed = tensor.tracked and tensor.node.op is not None and (alias is None or alias.base is None)
        return array if fixed or index in self.reads else copied(array, self.op.name)

    def pulled(self, g: Tensor, node: Node) -> dict[int, Tensor]:
        """The gradients of the inputs of a closed node, by index."""
        *saved, _ = node.saved
        given = [g._data, *saved] if self.keeps else [*[saved[i] for i in self.needs], g._data]
        return dict(zip(self.traced.wanted, self.backward(given, node.device)))


PROGRAMS.compiled = compiled
