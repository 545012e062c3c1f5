"""`cuda`, `cuda:1`…: NVIDIA GPUs by CuPy, which is imported when such a device is first used.

The kernels are those of the CPU, with CuPy in place of NumPy; `cuda_kernels.py` overrides what CuPy does differently.
"""

from __future__ import annotations

import sys
from functools import cached_property, wraps
from typing import Any

from ..support.errors import DeviceError
from ..support.forking import new_lock
from ..support.packages import how_to_install
from ..support.table import counted
from .cublas import Products
from .cuda_kernels import CudaKernels
from .kernel_table import dispatch_table
from .library import Kernel
from .registry import Device

INSTALL = how_to_install("cupy") + "; and an NVIDIA driver"
TOOLKIT = 'pip install "cupy-cuda13x[ctk]", which includes the libraries of the CUDA toolkit'


class CudaDevice(Device):
    """A GPU.  Work is queued and runs in the background; reading a value waits for it.

    `check_indices` says whether integer indices are checked: CuPy takes them modulo the size, NumPy raises an error.
    A check costs a small reduction and a wait for the queue.  Programs do not wait: an error is raised when a value is
    next read, or at once with `check_at_once`.  `replays` says whether programs run as CUDA graphs.
    """

    kind = "cuda"
    kernel_class = CudaKernels
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
        self.queueing = new_lock()  # one thread at a time queues the steps of a program, or records them
        self.findings: dict[Any, None] = {}  # errors that programs may have found, not read yet

    def make_kernels(self) -> dict[str, Kernel]:
        kernels = self.kernel_class(self)
        table = dispatch_table(kernels)
        self.for_programs = kernels.for_programs
        # CuPy works on its current device, by default the first; for another device, each kernel switches to it.
        return table if self.index == 0 else {op: self._here(kernel) for op, kernel in table.items()}

    def _here(self, kernel: Kernel) -> Kernel:
        @wraps(kernel)
        def run(*values: Any, **attrs: Any) -> Any:
            with self.gpu:
                return kernel(*values, **attrs)

        return run

    @cached_property
    def products(self) -> Products | None:
        """The matrix products of cuBLAS; None where CuPy's are used."""
        try:
            return Products(self.cupy)
        except (ImportError, OSError, RuntimeError, AttributeError):  # CuPy's own products explain what is missing
            return None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.cupy.empty(shape, dtype)

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
        # CuPy has no such flag: only broadcast arrays cannot be written
        return 0 not in data.strides or all(s or n < 2 for s, n in zip(data.strides, data.shape))

    def elementwise(self, kernel: Kernel, op: Any, values: list[Any], attrs: dict[str, Any]) -> Any:
        return kernel(*values, **attrs)  # CuPy has a memory pool of its own, and the GPU threads enough

    def fault(self, error: Exception) -> tuple[str, str] | None:
        if isinstance(error, ImportError):  # CuPy searches for cuBLAS and similar libraries at their first use
            return "CuPy does not find a library of CUDA", TOOLKIT
        if isinstance(error, self.cupy.cuda.runtime.CUDARuntimeError):
            way_out = f'mg.as_device("{self}").synchronize() after each line finds the operation: the GPU is behind'
            return "CUDA reports an error, of this operation or one before it", way_out
        return super().fault(error)

    def synchronize(self) -> None:
        self.gpu.synchronize()
        self.settle()

    def found_later(self, findings: Any) -> None:
        """Call `findings.look()` when a value is next read: it raises the error that a program has found."""
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
    """Raise a `DeviceError` if there is no GPU of this number."""
    name, runtime = device.name, device.cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        said = str(error)
        if "NoDevice" in said:
            problem = "the NVIDIA driver finds no GPU"
            hint = "`nvidia-smi` lists the GPUs; CUDA_VISIBLE_DEVICES may hide some"
        else:
            problem = "CuPy is installed, but there is no NVIDIA driver that works with it"
            hint = "install or update the NVIDIA driver; `nvidia-smi` shows whether it runs, and its version of CUDA"
        raise _no_device(name, f"{problem} ({said})", hint) from error
    if device.index >= count:
        there = ", ".join(f"cuda:{i}" if i else "cuda" for i in range(count)) or "none"
        raise DeviceError(
            f"there is no device named {name!r}: this machine has {counted(count, 'GPU')}",
            expect=there, hint='devices are counted from "cuda", which is "cuda:0"',
        )


def _no_device(name: str, problem: str, hint: str) -> DeviceError:
    return DeviceError(f"the device {name!r} can't be used here: {problem}", hint=hint)
