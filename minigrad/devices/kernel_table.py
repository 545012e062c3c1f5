"""The kernel table: for each primitive, the function that computes it on raw arrays.

`Kernels` has a method for each primitive, in the words of NumPy. Other array libraries
use the same words: a device on another library is a subclass with another `xp` that
overrides what this library does differently (`cuda_kernels.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.primitive import P
from ..support.errors import DeviceError
from . import rows, special
from .control import ControlKernels
from .effects import EffectKernels
from .library import Kernel, Library, positions
from .matrices import MatrixKernels
from .philox import draw
from .reductions import ReductionKernels
from .sorting import positions_in_order, sorted_values
from .special import cast, choose_bits
from .threads import BLOCK, elementwise_in_blocks
from .windows import WindowKernels

MANY = 1 << 14  # elements from which arithmetic on bits is faster than branches
FLAGS: Any = ("multi_index", "zerosize_ok")  # of an iterator over a view of one array


class Kernels(
    ReductionKernels, MatrixKernels, WindowKernels, ControlKernels, EffectKernels
):
    """Every primitive's kernel on NumPy: its inputs are raw arrays or Python numbers.

    Attributes are keywords.  An elementwise kernel may take `out=`, the array to put the
    result in.  A device of your own overrides the kernels that it computes differently:

    >>> from minigrad.devices import Device, Kernels, register_device
    >>> class Careful(Kernels):
    ...     def divide(self, x, y):
    ...         return super().divide(x, np.where(y == 0, 1, y))
    >>> class CarefulDevice(Device):
    ...     kind, kernel_class = "careful", Careful
    >>> register_device("careful", CarefulDevice)
    >>> (mg.ones(2, device="careful") / 0).tolist()
    [1.0, 1.0]
    """

    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            if callable(value) or isinstance(value, Library):
                _check_name(cls, name)

    # Elementwise: one function of the library

    add = Library("add")
    subtract = Library("subtract")
    multiply = Library("multiply")
    divide = Library("true_divide")
    floor_divide = Library("floor_divide")
    remainder = Library("remainder")
    pow = Library("power")
    negative = Library("negative")
    abs = Library("absolute")
    maximum = Library("maximum")
    minimum = Library("minimum")
    sqrt = Library("sqrt")
    exp = Library("exp")
    expm1 = Library("expm1")
    log = Library("log")
    log1p = Library("log1p")
    sin = Library("sin")
    cos = Library("cos")
    tanh = Library("tanh")
    atan2 = Library("arctan2")
    less = Library("less")
    less_equal = Library("less_equal")
    equal = Library("equal")
    bitwise_and = Library("bitwise_and")
    bitwise_or = Library("bitwise_or")
    bitwise_xor = Library("bitwise_xor")
    bitwise_invert = Library("invert")
    bitwise_left_shift = Library("left_shift")
    bitwise_right_shift = Library("right_shift")

    # Elementwise: more than that

    def astype(self, x: Any, dtype: Any, out: Any = None) -> Any:
        return cast(self.xp, x, dtype, out)

    def bitcast(self, x: Any, dtype: Any, out: Any = None) -> Any:
        # Copied, so that the memory is not the input's.
        return self.astype(x.view(dtype), dtype, out)

    def floor(self, x: Any, out: Any = None) -> Any:
        if x.dtype.kind == "f":
            return self.xp.floor(x, out)
        return self.astype(x, x.dtype, out)  # NumPy may return floats here

    def round(self, x: Any, out: Any = None) -> Any:
        if x.dtype.kind == "f":
            return self.xp.rint(x, out)
        return self.astype(x, x.dtype, out)

    def sigmoid(self, x: Any, out: Any = None) -> Any:
        # The power is at most 1, so nothing overflows. For a large negative x the
        # result is the power itself.
        power = self.xp.exp(-self.xp.absolute(x))
        return self.xp.true_divide(self.xp.maximum(power, x >= 0), 1 + power, out=out)

    erf = staticmethod(special.erf)

    def where(self, condition: Any, x: Any, y: Any, out: Any = None) -> Any:
        if out is None:
            if getattr(condition, "size", 1) < MANY:
                return np.where(condition, x, y)
            dtype = x.dtype if hasattr(x, "dtype") else y.dtype
            out = self.empty(np.broadcast(condition, x, y).shape, dtype)
        if out.size > 16 * BLOCK:  # below, waking threads costs more than it saves
            elementwise_in_blocks(choose_bits, [condition, x, y], {}, out)
        else:
            choose_bits(condition, x, y, out)
        return out

    # Views

    @staticmethod
    def reshape(x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    @staticmethod
    def permute_dims(x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @staticmethod
    def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
        if x.ndim:  # as `np.broadcast_to` does it, in half the time for small arrays
            return np.nditer((x,), FLAGS, order="C", itershape=shape).itviews[0]
        # The gradient of a sum begins with this; written by hand, it takes a third of the time.
        out = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        out.flags.writeable = False
        return out

    @staticmethod
    def slice(x: Any, index: tuple[Any, ...]) -> Any:
        return x[index]

    # Indexing

    def gather(self, x: Any, *indices: Any) -> Any:
        return rows.gather(x, indices, self.empty)

    scatter_add = staticmethod(rows.scatter_add)
    scatter_max = staticmethod(rows.scatter_max)

    def put(
        self, base: Any, value: Any, *indices: Any, chain: Any, out: Any = None
    ) -> Any:
        """A copy of `base` in which a view has the elements of `value`.

        `chain` has the view operations that lead from `base` to the view.
        """
        out = base.copy(order="C") if out is None else out
        target = out
        for op, attrs in chain:
            target = getattr(self, op.name)(target, **attrs)
        if hasattr(value, "dtype") and value.dtype != out.dtype:
            value = self.astype(value, out.dtype)
        if indices:
            self._assign(target, indices, value)
        else:
            target[...] = value
        return out

    def _assign(self, target: Any, indices: tuple[Any, ...], value: Any) -> None:
        """If indices are equal, the last one wins.

        NumPy follows the strides, so everything is put into row-major order first.
        """
        in_order = [np.ascontiguousarray(i).reshape(i.shape) for i in indices]
        target[tuple(in_order)] = np.array(value, order="C")

    def place(self, x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        out = self.empty(shape, x.dtype)
        out.fill(0)
        out[index] = x
        return out

    def concat(self, *xs: Any, axis: int) -> Any:
        return self.xp.concatenate(xs, axis)

    argsort = staticmethod(positions(positions_in_order))
    sort = staticmethod(sorted_values)

    def nonzero(self, x: Any) -> Any:
        return tuple([i.astype(np.int64, copy=False) for i in self.xp.nonzero(x)])

    # Creation

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any, device: Any) -> Any:
        out = self.empty(shape, dtype)
        out.fill(value)
        return out

    def arange(self, start: Any, step: Any, count: int, dtype: Any, device: Any) -> Any:
        return cast(self.xp, start + self.xp.arange(count) * step, dtype)

    random = staticmethod(draw)

    # Structure

    @staticmethod
    def to_device(x: Any, source: Any, device: Any) -> Any:
        return device.receive(x, source)

    @staticmethod
    def project(x: tuple[Any, ...], index: int) -> Any:
        """One of several results."""
        return x[index]

    @staticmethod
    def call(*values: Any, application: Any) -> Any:
        """One call of a jitted function: `application`.  `project` takes its results."""
        return application.compute(*values)


def _check_name(kernels: type, name: str) -> None:
    """Raise an error if a class defines a kernel for which there is no primitive."""
    names = {op.name for op in P}
    if name not in names and not name.startswith("_"):
        raise DeviceError(
            f"{kernels.__name__}.{name}: there is no primitive named {name!r}",
            expect=", ".join(sorted(names)),
            hint=f"if it is a helper method, name it _{name}",
        )


def dispatch_table(kernels: Kernels) -> dict[str, Kernel]:
    """The kernels by name of the primitive: every public method, bound once.

    >>> dispatch_table(Kernels(mg.devices.CPU))["tanh"]
    <ufunc 'tanh'>
    """
    found = {name: getattr(kernels, name) for name in _public(type(kernels))}
    return {name: kernel for name, kernel in found.items() if callable(kernel)}


def _public(kernels: type) -> list[str]:
    return [name for name in dir(kernels) if not name.startswith("_")]
