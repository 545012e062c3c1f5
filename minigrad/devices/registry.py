"""The devices: `cpu`, further CPU devices to practise with (`cpu:1`), `cuda` on CuPy, and those that users register."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..core.errors import DeviceError
from ..core.mode import current_mode, switch
from ..core.primitive import P, Primitive
from ..core.tensor import DEFAULT
from .kernels import kernel_table
from .pool import Pool


class Device:
    """One copy of NumPy: an array type, and a kernel for every primitive.

    >>> CPU.kernels["add"](np.ones(2), 1)
    array([2., 2.])
    """

    ndarray: type = np.ndarray
    kind = "cpu"

    def __init__(self, name: str) -> None:
        self.name = name
        self.kernels: dict[str, Callable[..., Any]] = dict(kernel_table(np))
        self.pool = Pool()
        self.weak: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return as_device, (self.name,)

    def asarray(self, data: Any) -> Any:
        """An array of this device's type from a result that may be a scalar."""
        return np.asarray(data)

    def from_numpy(self, array: Any) -> Any:
        """A NumPy array as an array on this device.  The array is ours to keep."""
        return array

    def to_numpy(self, data: Any) -> Any:
        """An array on this device as a NumPy array, which may share its memory."""
        return data

    def weak_number(self, number: Any) -> Any:
        """A Python number for a float32 kernel: as an array, because NumPy takes 0.3 µs to look at a number."""
        if number and abs(number) < 1e38 and len(self.weak) < 4096:  # not 0.0, which as a key is -0.0 too
            self.weak[number] = np.array(number, np.float32)
            return self.weak[number]
        return number

    def elementwise(self, kernel: Any, op: Primitive, values: list[Any], attrs: dict[str, Any]) -> Any:
        """A large elementwise result, in memory that is used again."""
        shape, dtype = op.infer(*values, **attrs)
        return kernel(*values, **attrs, out=self.pool.take(shape, dtype))

    def synchronize(self) -> None:
        """Wait until all that was started here is done; a CPU is done when a function returns."""


class VirtualDevice(Device):
    """A further CPU device, with memory of its own as far as minigrad is concerned: transfers to it really copy."""

    kind = "cpu"

    def from_numpy(self, array: Any) -> Any:
        return np.array(array)


CPU = Device("cpu")
DEVICES: dict[str, Device] = {"cpu": CPU}
MAKERS: dict[str, Callable[[str], Device]] = {}
DEFAULT.device = CPU


def register_device(kind: str, make: Callable[[str], Device]) -> None:
    """Make a kind of device known: `make("npu:1")` is called the first time that its name is used.

    >>> class Counting(Device):
    ...     kind = "counting"
    >>> register_device("counting", Counting)
    >>> as_device("counting:3")
    counting:3
    """
    MAKERS[kind] = make


def _make_cuda(name: str) -> Device:
    from .cuda import CudaDevice

    return CudaDevice(name)


register_device("cpu", VirtualDevice)
register_device("cuda", _make_cuda)


def as_device(device: Any) -> Device:
    """The device meant by a name or a device; None is the current one.

    >>> as_device("cpu:1") is as_device("cpu:1")
    True
    """
    if device is None:
        return current_mode().device or CPU
    if isinstance(device, Device):
        return device
    name = str(device)
    kind, _, number = name.partition(":")
    if number == "0":
        name = kind
    found = DEVICES.get(name)
    if found is not None:
        return found
    make = MAKERS.get(kind)
    if make is None or (number and not number.isdecimal()):
        raise DeviceError(
            f"there is no device named {name!r}",
            expect=" or ".join(f"{k!r}, {k + ':1'!r}" for k in MAKERS),
        )
    found = DEVICES[name] = make(name)
    return found


def available_devices() -> list[str]:
    """The names of the devices that are in use, and of the first of each kind that could be.

    >>> "cpu" in available_devices()
    True
    """
    names = list(DEVICES)
    for kind in MAKERS:
        try:
            name = as_device(kind).name
        except DeviceError:
            continue
        if name not in names:
            names.append(name)
    return names


def device(name: Any) -> switch:
    """Make new tensors on another device in this block.

    >>> import minigrad as mg
    >>> with mg.device("cpu:1"):
    ...     mg.zeros(2).device
    cpu:1
    """
    return switch(device=as_device(name))


def kernels(*names: str) -> dict[str, dict[str, str]]:
    """The dispatch table, operation × device: the name of the kernel that runs there.

    >>> kernels("cpu")["tanh"]
    {'cpu': 'tanh'}
    """
    devices = [as_device(n) for n in names] or list(DEVICES.values())
    return {
        op.name: {d.name: getattr(d.kernels.get(op.name), "__name__", "–") for d in devices} for op in P
    }
