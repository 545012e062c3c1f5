"""The errors of operations: they name shapes, dtypes and devices.  The array library's text is the last resort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..support.errors import (
    ConversionError,
    DeviceError,
    DtypeError,
    MinigradError,
    TraceError,
    WideningWarning,
    warn_once,
)
from ..support.source import show
from . import dtypes
from .mode import current_mode
from .node import Node
from .primitive import Casts, Primitive
from .tensor import AbstractData, Tensor, default_device


def common_device(op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """The device of the result: the attribute `device`, else that of all inputs."""
    device = None
    for x in inputs:
        if x.__class__ is Tensor:
            if device is None:
                device = x.device
            elif x.device is not device and op.name != "call":  # a function may copy
                raise DeviceError(
                    f"{op.name}: its inputs are on different devices, "
                    f"{device} and {x.device}",
                    expect="all inputs on one device: minigrad does not copy between "
                    "devices by itself",
                    actual=described(op, inputs),
                    hint=f'x.to("{device}") or x.to("{x.device}")',
                )
    return attrs.get("device") or device or default_device()


def described(op: Primitive, inputs: Sequence[Any]) -> str:
    """The inputs, for a message: `x (2, 3) float32 on cpu, y 2.0`."""
    words = []
    for i, x in enumerate(inputs):
        if isinstance(x, (Tensor, Node)):
            words.append(f"{op.name_of(i)} {x.shape} {x.dtype} on {x.device}")
        else:
            words.append(f"{op.name_of(i)} {x!r}")
    return ", ".join(words)


def explained(op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any], error: Exception) -> Exception:
    """A clear error for the array library's error.  Mostly it is that of `infer`, which graph mode raises too."""
    for x in inputs:
        if x.__class__ is Tensor and isinstance(x._data, AbstractData) and current_mode().interpreter is None:
            return TraceError(
                f"{op.name}: a tensor {x._data.no_value} is used after that has ended"
                + (f", made at {show(x._data.where)}" if x._data.where else ""),
                hint="return it from the function instead of storing it",
            )
    device = common_device(op, inputs, attrs)
    if op.name not in device.kernels:
        return DeviceError(
            f"{op.name} has no kernel on the device {device}",
            hint=f'mg.devices.register_kernel("{op.name}", "{device}", function)',
        )
    fault = device.fault(error)
    if fault is not None:
        return DeviceError(f"{op.name}: {fault[0]}: {error}", actual=described(op, inputs), hint=fault[1])
    try:
        op.infer(*inputs, **attrs)
    except MinigradError as ours:
        return ours
    except (TypeError, ValueError, OverflowError):
        pass  # the error of `infer` adds nothing to that of the array library
    given = described(op, inputs) or None
    kind = DtypeError if isinstance(error, (TypeError, OverflowError)) else ConversionError
    return kind(f"{op.name}: {str(error) or type(error).__name__}", actual=given)


# Rules of promotion for files that speak another library: functions of (op, inputs, lifted, casts), see `compat`.
PROMOTIONS: list[Any] = []


def promoted(op: Primitive, inputs: Sequence[Any], lifted: Sequence[Any], casts: Casts) -> Casts:
    """The casts of inputs of several dtypes.

    Warns once for each line where a number of NumPy makes float32 tensors float64, which is rarely meant.
    """
    for rule in PROMOTIONS:
        casts = rule(op, inputs, lifted, casts)
    narrower = [i for i in casts.indices if lifted[i].__class__ is Tensor and lifted[i].dtype.kind == "f"]
    if narrower and casts.dtype is dtypes.float64 and any(x.__class__ is np.float64 for x in inputs):
        warn_once(
            f"{op.name}: a NumPy number of float64 makes the result float64. "
            "Hint: float(number) keeps the tensor's dtype",
            WideningWarning,
        )
    return casts
