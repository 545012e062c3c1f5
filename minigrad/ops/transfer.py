"""Copies from one device to another: the primitive `to_device`, and `x.to("cuda")`."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.emit import emit
from ..core.mode import switch
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, method
from ..devices import Device, as_device
from ..support.errors import DeviceError
from .declare import declare
from .elementwise import astype

declare(
    Primitive(
        "to_device", "structural", ("x",), lambda x, source, device: (x.shape, x.dtype), promotes=(), linear=("x",),
        formula="x",
        rules={"x": lambda g, node: P.to_device.apply(g, source=node.attrs["device"], device=node.attrs["source"])},
    )
)


@method
def to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device: a copy, through which gradients flow back; itself if it is already there.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.to_device(x, "cpu:1").sum().backward()
    >>> x.grad
    Tensor([1., 1.], shape=(2,), dtype=float32, device=cpu)
    """
    if stream is not None:
        raise DeviceError("to_device: stream has to be None: minigrad uses one stream for each device")
    target = as_device(device)
    if target is x.device:
        return x
    return emit(P.to_device, x, source=x.device, device=target)


@method
def to(x: Tensor, target: Any = None) -> Tensor:
    """The tensor on another device or in another dtype; the tensor itself if both are right already.

    >>> mg.ones(2).to("cpu:1").device, mg.ones(2).to(mg.float64).dtype
    (cpu:1, dtype('float64'))
    """
    if isinstance(target, (Device, switch)) or (isinstance(target, str) and target not in dtypes.ALL):
        return to_device(x, target)
    return astype(x, target, copy=False)
