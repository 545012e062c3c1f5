"""`cuda`, `cuda:1`…: NVIDIA GPUs by CuPy, which is imported when such a device is first asked for.

The kernels are those of the CPU, made of CuPy instead of NumPy.  What CuPy does in another way than NumPy stands here,
in `differences`, and nowhere else.
"""

from __future__ import annotations

import math
import sys
from functools import wraps
from typing import Any

import numpy as np

from ..core.errors import DeviceError
from .kernel_table import Kernel, check_range, kernel_table
from .registry import Device, register_device

INSTALL = 'pip install "minigrad[gpu]" (or: pip install cupy-cuda13x), and an NVIDIA driver'
TOOLKIT = 'pip install "cupy-cuda13x[ctk]", which brings the libraries of the CUDA toolkit along'
ADDS_ATOMICALLY = {"int32", "uint32", "uint64", "float16", "float32", "float64"}  # what cupy.add.at is made for


class CudaDevice(Device):
    """A GPU.  Work is queued on it and goes on while Python does; reading a value waits for it.

    `check_indices` is whether integer arrays are looked at before they index: CuPy takes them modulo the size, where
    NumPy raises.  It costs a small reduction, and a wait for what is queued.  Programs do not wait: what they find is
    an error when a value is next read, or at once with `check_at_once`.  `replays` says if they run as CUDA graphs.
    """

    kind = "cuda"
    hosted = False
    check_indices = True
    check_at_once = False
    replays = True

    def __init__(self, name: str) -> None:
        self.cupy = _imported_cupy(name)
        super().__init__(name)
        _check_present(self)
        self.ndarray = self.cupy.ndarray
        self.gpu = self.cupy.cuda.Device(self.index)
        self.findings: dict[Any, None] = {}  # what programs may have found and nobody has looked at

    def make_kernels(self) -> dict[str, Kernel]:
        common = kernel_table(self.cupy)
        table = common | differences(self, common)
        # What programs call, which look at positions by themselves, and on the device that is current by then.
        self.unchecked = {"gather": common["gather"], "scatter_add": scatter_add_kernel(self, common)}
        # CuPy works on its current device, which is the first one; for another, each kernel has to switch to it.
        return table if self.index == 0 else {op: self._here(kernel) for op, kernel in table.items()}

    def _here(self, kernel: Kernel) -> Kernel:
        @wraps(kernel)
        def run(*values: Any, **attrs: Any) -> Any:
            with self.gpu:
                return kernel(*values, **attrs)

        return run

    def asarray(self, data: Any) -> Any:
        with self.gpu:
            return self.cupy.asarray(data)

    def from_numpy(self, array: Any) -> Any:
        return self.asarray(array)

    def to_numpy(self, data: Any) -> Any:
        with self.gpu:
            return self.cupy.asnumpy(data)

    def receive(self, data: Any, source: Device) -> Any:
        if source.kind != self.kind:
            return super().receive(data, source)
        with source.gpu:  # type: ignore[attr-defined]
            whole = self.cupy.ascontiguousarray(data)
        with self.gpu:
            return whole.copy().reshape(data.shape)  # from GPU to GPU, not by way of the CPU

    def contiguous(self, data: Any) -> Any:
        with self.gpu:
            return data.copy(order="C")

    def is_writable(self, data: Any) -> bool:
        return all(stride or extent < 2 for stride, extent in zip(data.strides, data.shape))  # CuPy has no such flag

    def weak_number(self, number: Any) -> Any:
        return number  # CuPy hands numbers to the GPU with the call; a NumPy array of one would be refused

    def elementwise(self, kernel: Kernel, op: Any, values: list[Any], attrs: dict[str, Any]) -> Any:
        return kernel(*values, **attrs)  # CuPy has a memory pool of its own, and the GPU threads enough

    def fault(self, error: Exception) -> tuple[str, str] | None:
        if isinstance(error, ImportError):  # CuPy looks for cuBLAS and its like when they are first used
            return "CuPy does not find a library of CUDA", TOOLKIT
        if isinstance(error, self.cupy.cuda.runtime.CUDARuntimeError):
            way_out = f'mg.as_device("{self}").synchronize() after each line shows whose it is: the GPU works behind'
            return "CUDA reports an error, of this operation or one before it", way_out
        return super().fault(error)

    def synchronize(self) -> None:
        self.gpu.synchronize()
        self.settle()

    def found_later(self, findings: Any) -> None:
        """Let `findings.look()` be called when a value is next read: it raises what a program has found wrong."""
        self.findings[findings] = None
        if self.check_at_once:
            self.settle()

    def settle(self) -> None:
        while self.findings:
            findings, _ = self.findings.popitem()
            findings.look()


# Whether there is one -----------------------------------------------------------------------------------------------


def _imported_cupy(name: str) -> Any:
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _no_device(name, f"CuPy does not start: {error}", TOOLKIT) from error
        if sys.platform == "darwin":
            hint = 'the devices "cpu" and "cpu:1" work everywhere'
            raise _no_device(name, "there is no CUDA on macOS", hint) from error
        raise _no_device(name, "CuPy is not installed", INSTALL) from error
    except ImportError as error:
        raise _no_device(name, f"CuPy does not start: {error}", TOOLKIT) from error
    return cupy


def _check_present(device: CudaDevice) -> None:
    """Raise, in our words, where the GPU of this number is not there."""
    name, runtime = device.name, device.cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        said = str(error)
        if "NoDevice" in said:
            problem = "the NVIDIA driver finds no GPU"
            hint = "`nvidia-smi` lists what it finds, and CUDA_VISIBLE_DEVICES may hide it"
        else:
            problem = "CuPy is installed, but there is no NVIDIA driver that works with it"
            hint = "install or update the NVIDIA driver; `nvidia-smi` says whether it runs, and for which CUDA"
        raise _no_device(name, f"{problem} ({said})", hint) from error
    if device.index >= count:
        there = ", ".join(f"cuda:{i}" if i else "cuda" for i in range(count)) or "none"
        raise DeviceError(
            f"there is no device named {name!r}: this machine has {count} GPU{'s' * (count != 1)}",
            expect=there, hint='devices are counted from "cuda", which is "cuda:0"',
        )  # fmt: skip


def _no_device(name: str, problem: str, hint: str) -> DeviceError:
    return DeviceError(f"the device {name!r} can't be used here: {problem}", hint=hint)


# Where CuPy is not NumPy --------------------------------------------------------------------------------------------


def differences(device: CudaDevice, table: dict[str, Kernel]) -> dict[str, Kernel]:
    """The kernels that have to be written differently for CuPy, by name of the primitive."""
    xp = device.cupy
    own: dict[str, Kernel] = {}

    def kernel(function: Kernel) -> Kernel:
        own[function.__name__] = function
        return function

    # cupy.maximum and cupy.minimum can't reduce

    def reduction(name: str) -> None:
        def reduce(x: Any, axis: tuple[int, ...], keepdims: bool, dtype: Any = None) -> Any:
            if not axis:
                return x.astype(dtype or x.dtype)
            typed = {} if dtype is None else {"dtype": dtype}
            return getattr(x, name)(axis=axis, keepdims=keepdims, **typed)

        reduce.__name__ = name
        own[name] = reduce

    for name in ("sum", "prod", "max", "min"):
        reduction(name)

    # indices out of range wrap around; which of equal ones wins is left open; atomic additions are for a few types

    def checked(x: Any, indices: tuple[Any, ...]) -> None:
        if device.check_indices:
            for axis, index in enumerate(indices):
                check_range(index, x.shape[axis], axis)

    @kernel
    def gather(x: Any, *indices: Any) -> Any:
        checked(x, indices)
        return x[indices]

    add_at = scatter_add_kernel(device, table)

    @kernel
    def scatter_add(base: Any, value: Any, *indices: Any) -> Any:
        checked(base, indices)
        return add_at(base, value, *indices)

    @kernel
    def put(base: Any, value: Any, *indices: Any, chain: Any, out: Any = None) -> Any:
        out = base.copy(order="C") if out is None else out
        target = out
        for op, attrs in chain:
            target = table[op.name](target, **attrs)
        if hasattr(value, "dtype"):
            value = table["astype"](value, out.dtype) if value.dtype != out.dtype else value
        if not indices:
            target[...] = value
            return out
        checked(target, indices)
        shape = np.broadcast_shapes(*[index.shape for index in indices])
        order = xp.arange(1, math.prod(shape) + 1, dtype="uint64").reshape(shape)
        latest = xp.zeros(target.shape[: len(indices)], "uint64")
        xp.maximum.at(latest, indices, order)
        wins = latest[indices] == order
        if hasattr(value, "ndim"):
            value = xp.broadcast_to(value, shape + target.shape[len(indices) :])[wins]
        target[tuple([xp.broadcast_to(index, shape)[wins] for index in indices])] = value
        return out

    # floats are divided as floor(x / y), which rounds twice; C leaves open what a wide shift gives

    @kernel
    def floor_divide(x: Any, y: Any, out: Any = None) -> Any:
        if xp.result_type(x, y).kind != "f":
            return xp.floor_divide(x, y, out=out)
        return _into(out, divided(xp, x, y)[0])

    @kernel
    def remainder(x: Any, y: Any, out: Any = None) -> Any:
        if xp.result_type(x, y).kind != "f":
            return xp.remainder(x, y, out=out)
        return _into(out, divided(xp, x, y)[1])

    @kernel
    def pow(x: Any, y: Any, out: Any = None) -> Any:
        if xp.result_type(x, y).kind != "f" and bool((y < 0).any() if hasattr(y, "any") else y < 0):
            raise ValueError("Integers to negative integer powers are not allowed.")
        return xp.power(x, y, out=out)

    def shifted(shift: Kernel, x: Any, y: Any, keeps_sign: bool) -> Any:
        dtype = xp.result_type(x, y)
        x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
        wide = (y < 0) | (y >= 8 * dtype.itemsize)
        beyond = -(x < 0).astype(dtype) if keeps_sign else 0
        return xp.where(wide, beyond, shift(x, xp.where(wide, 0, y)))

    @kernel
    def bitwise_left_shift(x: Any, y: Any, out: Any = None) -> Any:
        return _into(out, shifted(xp.left_shift, x, y, False))

    @kernel
    def bitwise_right_shift(x: Any, y: Any, out: Any = None) -> Any:
        return _into(out, shifted(xp.right_shift, x, y, True))

    # the error function of halves comes out in double precision; sorting nothing was an error (CuPy's issue 9816)

    @kernel
    def erf(x: Any, out: Any = None) -> Any:
        if x.dtype.itemsize == 2:
            return _into(out, table["erf"](x.astype("float32")).astype(x.dtype))
        return table["erf"](x, out=out)

    @kernel
    def argsort(x: Any, axis: int, descending: bool) -> Any:
        return table["argsort"](x, axis, descending) if x.size else xp.zeros(x.shape, "int64")

    return own


def scatter_add_kernel(device: CudaDevice, table: dict[str, Kernel]) -> Kernel:
    """`scatter_add` for every dtype, by atomic additions of the few that there are."""
    xp, add = device.cupy, table["scatter_add"]

    def scatter_add(base: Any, value: Any, *indices: Any) -> Any:
        dtype = base.dtype
        value = xp.asarray(value, dtype)
        if dtype.name in ADDS_ATOMICALLY:
            return add(base, value, *indices)
        if dtype.name == "int64":  # the bits of a sum are the same without a sign
            return add(base.view("uint64"), value.view("uint64"), *indices).view(dtype)
        return add(base.astype("int32"), value.astype("int32"), *indices).astype(dtype)

    return scatter_add


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out


def divided(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The quotient rounded down and the remainder, as NumPy (and Python) define them for floats.

    >>> divided(np, np.array([1.0, -5.0, 5.0]), np.array([0.1, np.inf, 0.0]))
    (array([ 9., -1., inf]), array([0.1, inf, nan]))
    """
    dtype = xp.result_type(x, y)
    x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
    rest = xp.fmod(x, y)
    quotient = (x - rest) / y
    other_side = (rest != 0) & ((rest < 0) != (y < 0))
    rest, quotient = xp.where(other_side, rest + y, rest), xp.where(other_side, quotient - 1, quotient)
    whole = xp.floor(quotient)
    whole = xp.where(quotient - whole > 0.5, whole + 1, whole)
    exact = x / y
    whole = xp.where(whole == 0, xp.copysign(whole, exact), whole)
    return xp.where(y == 0, exact, whole), xp.where(rest == 0, xp.copysign(rest, y), rest)


register_device("cuda", CudaDevice)
