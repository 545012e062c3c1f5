"""A front-end: a function of one place, written in Python, is recorded as a kernel of the loop language.

    def gelu(i, x, out):
        a = x[i]                                     # read
        out[i] = a * (erf(a * 0.70710678) + 1) / 2   # compute, write

The function runs once.  `x[i]` and the arithmetic on it are recorded as statements, the back-ends of minigrad print
these in C, LLVM and CUDA, and machine code runs them for every place.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.compile.fusion.count import Count
from minigrad.compile.loops.ir import BOOL, DOUBLE, FLOAT, For, Kernel, Let, Parameter, Statement, Store
from minigrad.compile.loops.operations import OPERATIONS
from minigrad.compile.running.frame import address
from minigrad.compile.running.plan import Launch
from minigrad.compile.running.targets import compiled
from minigrad.viz.flipbook import Flipbook

from ...feedback import Misused, written
from .languages import in_languages

SHOWN = 1 << 20  # places of the kernel that is printed


class Place:
    """The place `i`, the same in all arrays."""

    def _refuse(self, *others: Any) -> Any:
        raise Misused("i", "the place i is not a number yet", "read and write the arrays at i only: x[i], out[i]")

    __index__ = __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = _refuse


class Value:
    """A value in a register: arithmetic on it is recorded."""

    __array_ufunc__ = None  # a NumPy number on the left leaves the arithmetic to this class

    def __init__(self, recorder: Recorder, name: str, dtype: Any) -> None:
        self.recorder, self.name, self.dtype = recorder, name, dtype

    def __repr__(self) -> str:
        return f"<{self.name}, a value in a register>"

    def _apply(self, op: str, *args: Any) -> Value:
        return self.recorder.let(op, args, BOOL if op in ("lt", "le", "eq") else self.dtype)

    def __add__(self, other: Any) -> Value:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._apply("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._apply("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._apply("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._apply("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self._apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._apply("div", other, self)

    def __neg__(self) -> Value:
        return self._apply("neg", self)

    def __pow__(self, power: Any) -> Value:
        if power == 2:
            return self * self
        return self * self * self if power == 3 else self._apply("pow", self, power)

    def __rpow__(self, base: Any) -> Value:
        return self._apply("pow", base, self)

    def __lt__(self, other: Any) -> Value:
        return self._apply("lt", self, other)

    def __le__(self, other: Any) -> Value:
        return self._apply("le", self, other)

    def __gt__(self, other: Any) -> Value:
        return self._apply("lt", other, self)

    def __ge__(self, other: Any) -> Value:
        return self._apply("le", other, self)

    def __bool__(self) -> bool:
        hint = ("`if`, `max` and `and` decide once, when it is recorded. where(a > 0, b, c) of minigrad_course decides "
                "at every place")
        raise Misused("if", "a value in a register is not known yet", hint)

    def __float__(self) -> float:
        raise Misused("math", "a value in a register is not a Python number yet",
                      "use erf, exp, tanh and sqrt of minigrad_course, without math. before them")


class Memory:
    """An array in memory, of which a kernel reads or writes the number at its place."""

    def __init__(self, recorder: Recorder, name: str, is_output: bool) -> None:
        self.recorder, self.name, self.is_output = recorder, name, is_output

    def _at(self, place: Any) -> None:
        if place is not self.recorder.place:
            raise Misused(self.name, f"{self.name}[{written(place)}] is not the number at the place i",
                          f"{self.name}[i]: the kernel runs once for each place")

    def __getitem__(self, place: Any) -> Value:
        self._at(place)
        if self.is_output:
            raise Misused(self.name, f"{self.name}[i] is read, and it is only written",
                          "give a value that you need again a name: it stays in a register, which costs no bytes")
        return self.recorder.load(self.name)

    def __setitem__(self, place: Any, value: Any) -> None:
        self._at(place)
        if not self.is_output:
            raise Misused(self.name, f"{self.name}[i] is written, and it is an input",
                          f"{self.recorder.output}[i] = ... is what the kernel writes")
        self.recorder.store(value)

    def _refuse(self, *others: Any) -> Any:
        raise Misused(self.name, f"{self.name} is a whole array in memory", f"read one number of it: {self.name}[i]")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __neg__ = __pow__ = __lt__ = __gt__ = __float__ = _refuse
    __array_ufunc__ = None

    def __len__(self) -> int:
        raise Misused(self.name, f"{self.name} has no length here", "no loop: the kernel runs once for each place i")


class Recorder:
    """Records the statements of one place."""

    def __init__(self, parameters: Sequence[str], dtype: Any) -> None:
        *self.inputs, self.output = parameters
        self.dtype, self.place = dtype, Place()
        self.body: list[Statement] = []
        self.loaded: dict[str, Value] = {}
        self.stores = 0
        self.memory = [Memory(self, name, name == self.output) for name in parameters]

    def load(self, name: str) -> Value:
        if name not in self.loaded:  # a second read of the same place is served by a register
            self.loaded[name] = self._named(f"{name}_i", "load", (name, "i"), self.dtype)
        return self.loaded[name]

    def let(self, op: str, args: Sequence[Any], dtype: Any) -> Value:
        given = [args[0].name if op == "select" else self._operand(args[0]), *map(self._operand, args[1:])]
        return self._named(f"r{sum(isinstance(each, Let) for each in self.body)}", op, tuple(given), dtype)

    def _named(self, name: str, op: str, args: tuple[Any, ...], dtype: Any) -> Value:
        self.body.append(Let(name, op, args, dtype))
        return Value(self, name, dtype)

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Value):
            number = where(value, 1.0, 0.0) if value.dtype == BOOL else value  # a condition in arithmetic: g * (a > 0)
            return number.name
        if isinstance(value, Memory):
            value._refuse()
        if isinstance(value, bool | int | float | np.number):
            return float(value)
        raise Misused(self.output, f"a kernel computes with numbers, not with {written(value)}",
                      "inside a kernel there are no tensors: no mg. before erf, exp and tanh")

    def store(self, value: Any) -> None:
        self.stores += 1
        self.body.append(Store(self.output, "i", self._operand(value)))


class Program:
    """A recorded function of one place: `program(x)` runs it on arrays, `program.kernel()` is its loop.

    >>> def twice(i, x, out):
    ...     out[i] = 2 * x[i]
    >>> program = Program(twice)
    >>> program(np.array([1.0, 2.0], np.float32)), program.bytes
    (array([2., 4.], dtype=float32), 8)
    """

    def __init__(self, function: Callable[..., Any], parameters: Sequence[str] = ()) -> None:
        self.function, self.name = function, function.__name__
        self.parameters = list(parameters or list(inspect.signature(function).parameters)[1:])
        if len(self.parameters) < 2:
            raise Misused(self.name, f"{self.name} takes {len(self.parameters) + 1} arguments",
                          "first the place i, then the arrays that it reads, and last the array that it writes")
        self._functions: dict[Any, Any] = {}

    def recorded(self, dtype: Any = FLOAT) -> Recorder:
        """The statements of one place."""
        recorder = Recorder(self.parameters, dtype)
        returned = self.function(recorder.place, *recorder.memory)
        if not recorder.stores:
            hint = f"{recorder.output}[i] = ... writes to memory. A kernel returns nothing"
            problem = "it returns a value, and writes nothing" if returned is not None else "it writes nothing"
            if returned is None and not recorder.body:
                raise NotImplementedError
            raise Misused(self.name, problem, hint)
        return recorder

    @cached_property
    def reads(self) -> int:
        """How many arrays it reads."""
        return len(self.recorded().loaded)

    @cached_property
    def bytes(self) -> int:
        """The bytes that it reads and writes for each place, in float32."""
        recorder = self.recorded()
        return 4 * (len(recorder.loaded) + recorder.stores)

    def kernel(self, size: int = SHOWN, dtype: Any = FLOAT) -> Kernel:
        """The kernel for arrays of a size."""
        body: list[Statement] = [For("i", "lo", "hi", self.recorded(dtype).body)]
        *inputs, output = self.parameters
        read = [Parameter(name, dtype, size, "in") for name in inputs]
        return Kernel(self.name, [*read, Parameter(output, dtype, size, "out")], body, size, "elements")

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        dtype = DOUBLE if all(each.dtype == DOUBLE for each in arrays) else FLOAT
        shape = arrays[0].shape
        if any(each.shape != shape or each.dtype != dtype or not each.flags.c_contiguous for each in arrays):
            shape = np.broadcast_shapes(*[each.shape for each in arrays])
            arrays = tuple([np.ascontiguousarray(np.broadcast_to(each, shape), dtype) for each in arrays])
        fits = out is not None and out.dtype == dtype and out.flags.c_contiguous
        result = out if fits else np.empty(shape, dtype)
        if result.size:
            self._launch((*arrays, result), result.size, dtype)
        if out is None or fits:
            return result
        out[...] = result
        return out

    def _launch(self, arrays: tuple[Any, ...], size: int, dtype: Any) -> None:
        if (dtype, size) not in self._functions:
            launch = Launch(self.name, self.kernel(size, dtype), (), (), Count())
            self._functions[dtype, size] = compiled({0: launch})[0]
        if self._functions[dtype, size] is None:
            return self._by_numpy(arrays, dtype)
        table = (ctypes.c_void_p * (len(arrays) + 2))(*map(address, arrays), 0, size)
        self._functions[dtype, size](ctypes.addressof(table))

    def _by_numpy(self, arrays: tuple[Any, ...], dtype: Any) -> None:
        """Compute the statements of all places one after the other, where there is no machine code."""
        values: dict[Any, Any] = dict(zip(self.parameters, arrays))
        with np.errstate(all="ignore"):
            for each in self.recorded(dtype).body:
                if isinstance(each, Store):
                    values[each.buffer][...] = values.get(each.value, each.value)
                elif isinstance(each, Let):
                    given = [values.get(arg, arg) for arg in each.args]
                    values[each.name] = given[0] if each.op == "load" else OPERATIONS[each.op].numpy(*given)

    @property
    def source(self) -> str:
        """The text of the student's function."""
        try:
            return inspect.getsource(self.function)
        except OSError:  # typed at a prompt, which keeps no text
            return f"def {self.name}(i, {', '.join(self.parameters)}): ..."


def languages(function: Callable[..., Any]) -> Flipbook:
    """A program for one place in Python, and what the back-ends print: C, LLVM and CUDA.

    >>> def twice(i, x, out):
    ...     out[i] = 2 * x[i]
    >>> languages(twice)
    <twice in Python, C, LLVM and CUDA>
    """
    program = Program(function)
    return in_languages(program.kernel(), program.source)


def _function(op: str, of_numbers: Callable[[float], float]) -> Callable[[Any], Any]:
    def apply(a: Any) -> Any:
        if isinstance(a, Value):
            return a._apply(op, a)
        if isinstance(a, Memory):
            a._refuse()
        return of_numbers(a)

    apply.__name__ = op
    apply.__doc__ = f"`{op}` of a value in a register, or of a number."
    return apply


exp, log, tanh = _function("exp", math.exp), _function("log", math.log), _function("tanh", math.tanh)
erf, sqrt = _function("erf", math.erf), _function("sqrt", math.sqrt)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, `b` elsewhere."""
    if isinstance(condition, Value):
        recorder = condition.recorder
        return recorder.let("select", (condition, a, b), recorder.dtype)
    return a if condition else b
