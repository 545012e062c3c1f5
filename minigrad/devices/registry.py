"""Devices: `cpu`, more CPU devices for practice (`cpu:1`), `cuda` on CuPy, and devices that users register."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np

from ..core.mode import switch
from ..core.primitive import P, Primitive
from ..core.tensor import DEFAULT, default_device
from ..support.errors import ConversionError, DeviceError
from ..support.source import OURS
from ..support.words import shown
from .compiled import with_machine_code
from .kernel_table import Kernels, dispatch_table
from .library import Kernel
from .pool import Pool
from .threads import elementwise_in_blocks
from .user_kernels import check_parameters, checked_once, with_out

# The sizes from which the pool and the threads save time, measured on two cores.  The C library already reuses blocks
# of up to some MB.  Waking up a helper thread and waiting for it takes about 100 µs.
WORTH_KEEPING = 1 << 16  # elements of an array whose memory the pool reuses
WORTH_SHARING = 1 << 22  # elements × cost of the operation: 350,000 for tanh, 2 million for a division


class WeakNumbers(dict[Any, Any]):
    """Python numbers as arrays for float32 kernels, made when they are first used: NumPy takes 0.3 µs to inspect one.

    Other array libraries take the numbers as they are, and refuse NumPy's arrays.

    >>> numbers = WeakNumbers(hosted=True)
    >>> numbers[2] is numbers[2.0], numbers[0.0]
    (True, 0.0)
    """

    def __init__(self, hosted: bool) -> None:
        self.hosted = hosted

    def __missing__(self, number: Any) -> Any:
        if self.hosted and number and abs(number) < 1e38 and len(self) < 4096:  # not 0.0, because -0.0 is the same key
            self[number] = made = np.array(number, np.float32)
            return made
        return number


class Device:
    """An array type, and a kernel for every primitive.  `cpu` and `cpu:1` are instances; other devices are subclasses.

    `kernel_class` is the class of the device's kernels: see `Kernels`.  A device equals its name: `x.device == "cuda"`.

    >>> CPU.kernels["add"](np.ones(2), 1)
    array([2., 2.])
    >>> CPU == "cpu", CPU.kind, CPU.index
    (True, 'cpu', 0)
    """

    kind = "cpu"
    ndarray: type = np.ndarray  # the class of the device's arrays
    kernel_class: type[Kernels] = Kernels
    hosted = True  # whether from_numpy and to_numpy may share memory with the NumPy array

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = _parsed(name)[1]
        self.pool = Pool()
        self.own_kernels: dict[str, Kernel] = self.make_kernels()
        self.kernels: dict[str, Kernel] = dict(self.own_kernels)  # including those of `register_kernel`
        self.weak = WeakNumbers(self.hosted)

    @property
    def is_standard(self) -> bool:
        """Whether arrays and kernels are NumPy's, so that compiled code for this processor may replace the kernels."""
        made_here = type(self).make_kernels is Device.make_kernels
        return self.hosted and self.kernel_class is Kernels and made_here

    def make_kernels(self) -> dict[str, Kernel]:
        """The kernels of this device, by the names of their primitives."""
        return dispatch_table(self.kernel_class(self))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory for a result.  A large result gets memory from the pool."""
        return self.pool.take(shape, dtype) if math.prod(shape) >= WORTH_KEEPING else np.empty(shape, dtype)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and self.name == _full_name(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return as_device, (self.name,)

    def asarray(self, data: Any) -> Any:
        """An array of this device's type from a result that may be a scalar."""
        return np.asarray(data)

    def from_numpy(self, array: Any) -> Any:
        """A NumPy array as an array on this device.  The device may keep the NumPy array."""
        return array

    def to_numpy(self, data: Any) -> Any:
        """An array on this device as a NumPy array, which may share its memory."""
        return data

    def receive(self, data: Any, source: Device) -> Any:
        """An array of another device, copied to this one; `x.to(device)` calls this."""
        array = source.to_numpy(data)
        return self.from_numpy(np.array(array) if self.hosted and source.hosted else array)

    def contiguous(self, data: Any) -> Any:
        """A copy whose elements are in row-major order."""
        return data.copy(order="C")

    def is_writable(self, data: Any) -> bool:
        """Whether the array can be written to.  A broadcast view cannot: its elements share memory."""
        return bool(data.flags.writeable)

    def elementwise(self, kernel: Kernel, op: Primitive, values: list[Any], attrs: dict[str, Any]) -> Any:
        """An elementwise result.  Large results reuse memory, and several threads compute very large ones."""
        size: int = max([value.size for value in values if hasattr(value, "size")])
        shared = size * op.cost >= WORTH_SHARING
        if not shared and size < WORTH_KEEPING:
            return kernel(*values, **attrs)
        shape, dtype = op.infer(*values, **attrs)
        order = memory_order(values, shape)
        if order is not None:  # the result has the layout of its inputs, and all are read in the order of memory
            turned = [in_axes(value, order) for value in values]
            return self.elementwise(kernel, op, turned, attrs).transpose(np.argsort(order))
        out = self.pool.take(shape, dtype)
        if self.is_standard and kernel is self.own_kernels.get(op.name):
            kernel = with_machine_code(kernel, op, values, dtype)
        if not shared:
            return kernel(*values, **attrs, out=out)
        elementwise_in_blocks(kernel, values, attrs, out)
        return out

    def fault(self, error: Exception) -> tuple[str, str] | None:
        """A description and a hint for an error that the device caused, or None for an error of the operation."""
        if isinstance(error, MemoryError):
            hint = "smaller batches, mg.checkpoint, or `del` of tensors that are not needed any more"
            return f"no memory is left on {self} for the result", hint
        return None

    def synchronize(self) -> None:
        """Wait until the device has finished all work.  On a CPU the work is finished when a function returns."""

    def settle(self) -> None:
        """Raise errors of work that ran while Python continued.  Called before a value is read."""


def memory_order(values: list[Any], shape: tuple[int, ...]) -> list[int] | None:
    """The axes from the widest stride to the narrowest, if all values of this shape are permuted alike; else None.

    >>> turned = np.zeros((2, 3)).T
    >>> memory_order([turned, 1.0], (3, 2)), memory_order([np.zeros((3, 2)), turned], (3, 2))
    ([1, 0], None)
    """
    found = None
    for value in values:
        if hasattr(value, "shape") and value.shape == shape:
            if value.flags.c_contiguous:
                return None
            order = sorted(range(value.ndim), key=lambda axis: -value.strides[axis])
            if found not in (None, order):
                return None
            found = order
    return None if found is None or found == sorted(found) else found


def in_axes(value: Any, order: list[int]) -> Any:
    """A value with its axes, and those that broadcasting adds in front, in a different order.  Numbers stay numbers."""
    if not hasattr(value, "ndim") or not value.ndim:
        return value
    return value.reshape((1,) * (len(order) - value.ndim) + value.shape).transpose(order)


def _parsed(name: str) -> tuple[str, int]:
    """`"cuda:1"` as its kind and its number.  The number is -1 if this is not the name of a device."""
    kind, colon, number = name.partition(":")
    if colon:
        return kind, int(number) if number.isdecimal() else -1
    return kind, 0


def _full_name(name: str) -> str:
    """The standard form of a name: `cuda`, not `cuda:0`."""
    kind, index = _parsed(name)
    return name if index < 0 else f"{kind}:{index}" if index else kind


CPU = Device("cpu")
DEVICES: dict[str, Device] = {"cpu": CPU}
MAKERS: dict[str, Callable[[str], Device]] = {"cpu": Device}
DEFAULT.device = CPU


def register_device(kind: str, make: Callable[[str], Device]) -> None:
    """Register a kind of device: `make("npu:1")`, mostly a subclass of `Device`, is called when its name is first used.

    Registering a kind again (for example, by running a notebook cell twice) replaces it.

    >>> class Counting(Device):
    ...     kind = "counting"
    >>> register_device("counting", Counting)
    >>> as_device("counting:3")
    counting:3
    """
    if not isinstance(kind, str) or not kind.isidentifier():
        raise DeviceError(f"register_device: {shown(kind)} can't be a kind of device", expect="a name such as 'npu'")
    if kind == CPU.kind:
        raise DeviceError("register_device: 'cpu' cannot be replaced", expect="another name",
                          hint='register_kernel("tanh", "cpu", function) replaces one of its kernels')
    if not callable(make):
        raise DeviceError(f"register_device: make is a function of a name, not {shown(make)}")
    if isinstance(make, type) and not issubclass(make, Device):
        raise DeviceError(
            f"register_device: the class {make.__name__} is not a device", expect="a subclass of Device",
            hint=f"class My(Device): kernel_class = {make.__name__}" if issubclass(make, Kernels) else None,
        )
    MAKERS[kind] = make
    for name in [n for n in DEVICES if _parsed(n)[0] == kind]:
        del DEVICES[name]


def as_device(device: Any) -> Device:
    """The device with a name.  A device is returned unchanged, and None gives the current device.

    >>> as_device("cpu:1") is as_device("cpu:1"), as_device("cpu:0")
    (True, cpu)
    """
    if device is None:
        return default_device()  # type: ignore[no-any-return]
    if isinstance(device, Device):
        return device
    if isinstance(device, switch):
        raise DeviceError("mg.device(...) is a block, for `with`, and not a device",
                          hint='its name alone: device = "cpu"')
    name = _full_name(device if isinstance(device, str) else shown(device))
    found = DEVICES.get(name)
    if found is None:
        kind, index = _parsed(name)
        if kind not in MAKERS or index < 0:
            raise DeviceError(
                f"there is no device named {name!r}", expect=" or ".join(f"{k!r}, '{k}:1'" for k in MAKERS)
            )
        made = MAKERS[kind](name)
        if not isinstance(made, Device):
            raise DeviceError(f"register_device: make({name!r}) returned {shown(made)}", expect="a Device")
        made.kind = kind
        for op in P:
            if op.name in made.own_kernels:
                kernel = with_out(op, made.own_kernels[op.name])
                ours = type(made).__module__.partition(".")[0] in OURS
                made.own_kernels[op.name] = kernel if ours else _guarded(op, kernel)
        install_kernels(made)
        found = DEVICES.setdefault(name, made)  # another thread may have been first
    return found


def available_devices() -> list[str]:
    """The names of the devices in use, and the first device of each kind that is available here.

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


# Kernels that users register ----------------------------------------------------------------------------------------


class Registration:
    """A kernel that replaces a device's own kernel until `undo()` or the end of a `with` block."""

    def __init__(self, op: Primitive, device: str, function: Kernel) -> None:
        self.op, self.device, self.function = op, device, function

    def __repr__(self) -> str:
        return f"<{self.op.name} on {self.device}: {getattr(self.function, '__name__', self.function)}>"

    def put_in(self, kernel: Kernel) -> bool:
        """Whether this is its kernel, also inside the check of the first call."""
        return unwrap(self.function) is unwrap(kernel)

    def concerns(self, device: Device) -> bool:
        kind = self.device.removesuffix(":*")
        return device.kind == kind if self.device.endswith(":*") else device == self.device

    def undo(self) -> None:
        """Restore the previous kernel.  A second call does nothing."""
        if self in REGISTRATIONS:
            REGISTRATIONS.remove(self)
            _changed(self)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


REGISTRATIONS: list[Registration] = []
CHANGES: list[Callable[[Registration], object]] = []  # called with each registration that begins or ends


def register_kernel(op: str, device: Any, function: Kernel) -> Registration:
    """Use `function` as the kernel of a primitive on a device (`"cpu:1"`), or on every device of a kind (`"cpu:*"`).

    The function takes the inputs as raw arrays or Python numbers, and the attributes as keywords.  It returns a raw
    array, and may take `out=`, one for an elementwise result.  The kernel registered last runs, in programs too.

    >>> with mg.devices.register_kernel("tanh", "cpu", lambda x: x * 0 + 7):
    ...     mg.tanh(mg.ones(2)).tolist()
    [7.0, 7.0]
    >>> mg.tanh(mg.zeros(2)).tolist()
    [0.0, 0.0]
    """
    if not callable(function):
        raise ConversionError(f"register_kernel: a kernel is a function, not {type(function).__name__}")
    primitive = P[op]
    name = str(device)
    if name.endswith(":*") and name[:-2] not in MAKERS:
        raise DeviceError(f"register_kernel: there is no kind of device named {name[:-2]!r}", expect=", ".join(MAKERS))
    if not name.endswith(":*"):
        name = as_device(device).name
    registration = Registration(primitive, name, _guarded(primitive, with_out(primitive, function)))
    REGISTRATIONS.append(registration)
    _changed(registration)
    return registration


def _changed(registration: Registration) -> None:
    for device in list(DEVICES.values()):
        install_kernels(device)
    for concerned in CHANGES:
        concerned(registration)


def install_kernels(device: Device) -> None:
    """Set the kernels of a device: its own, replaced by the registered ones in their order."""
    device.kernels.update(device.own_kernels)
    for registration in REGISTRATIONS:
        if registration.concerns(device):
            device.kernels[registration.op.name] = registration.function


def _guarded(op: Primitive, kernel: Kernel) -> Kernel:
    """A user's kernel: its parameters are checked now, and its result at the first call."""
    check_parameters(op, unwrap(kernel))
    return checked_once(op, kernel, _accept)


def _accept(name: str, checking: Kernel, function: Kernel) -> None:
    """Replace the kernel that checks its first result."""
    for registration in REGISTRATIONS:
        if registration.function is checking:
            registration.function = function
    for device in list(DEVICES.values()):
        for table in (device.own_kernels, device.kernels):
            if table.get(name) is checking:
                table[name] = function
