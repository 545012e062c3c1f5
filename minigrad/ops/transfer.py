"""Copies from one device to another: the primitive `to_device`, `x.to("cuda")`, and `offload`, which copies by itself.

`offload` is an interpreter, as autocast is.  It computes an operation on the other device between two transfers: of its
inputs to that device, and of its results back.  So tensors stay where they were, and views and writes mean what they
always mean.  The transfers are nodes, so each gradient is computed where its operation was.  In a program, the pass
`fold_views` removes a transfer back that is followed by the same transfer again: a result that is used only on the
other device stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import dtypes
from ..core.delegating import Delegating
from ..core.emit import emit
from ..core.explain import common_device
from ..core.mode import Mode, current_mode, switch
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, method
from ..devices import Device, as_device
from ..support.context import setting, switched_variable
from ..support.errors import DeviceError
from .declare import declare
from .elementwise import astype

OFFLOADED = switched_variable("minigrad offloaded", False)  # inside an operation whose device is chosen already

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
        raise DeviceError("to_device: stream must be None: minigrad uses one stream for each device")
    target = as_device(device)
    if target is x.device:
        return x
    return emit(P.to_device, x, source=x.device, device=target)


@method
def to(x: Tensor, target: Any = None) -> Tensor:
    """The tensor on another device or in a different dtype; the tensor itself if both are right already.

    >>> mg.ones(2).to("cpu:1").device, mg.ones(2).to(mg.float64).dtype
    (cpu:1, dtype('float64'))
    """
    if isinstance(target, (Device, switch)) or (isinstance(target, str) and target not in dtypes.ALL):
        return to_device(x, target)
    return astype(x, target, copy=False)


class Offloading(Delegating):
    """Computes on another device, and leaves all else to the interpreter outside.  The innermost block decides.

    A view stays where the memory is that it shares, as a write does.  Effects stay as well, and functions and loops,
    whose operations come here one by one.
    """

    def __init__(self, device: Device, outer: Mode) -> None:
        super().__init__(outer)
        self.device = device

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        if OFFLOADED.get() or op.kind in ("view", "structural") or op is P.put or "device" in attrs:
            return self.below.manifest(op, inputs, attrs)
        elsewhere = [x for x in inputs if x.__class__ is Tensor and x.device is not self.device]
        home = common_device(op, elsewhere, attrs)
        tensors = {id(x): x for x in inputs if x.__class__ is Tensor}  # an input that is given twice moves once
        there = {key: to_device(x, self.device) for key, x in tensors.items()}
        moved = [there.get(id(x), x) for x in inputs]
        with setting(OFFLOADED, True):
            results = self.below.manifest(op, moved, attrs)
        if not elsewhere:
            return results
        return tuple([to_device(r, home) for r in results]) if results.__class__ is tuple else to_device(results, home)


class offload(switch):
    """Compute on another device in this block.  Tensors stay where they are: their values move there and back.

    New tensors do not move either: `mg.device` says where they are made.  The backward pass of an operation runs where
    the operation ran.  Under `jit`, a value moves at most once in each direction, and stays on the device if only the
    block uses it; in eager mode, each operation moves its inputs and its result.  Put the block into the jitted
    function: a block around the call runs the function operation by operation.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> with mg.offload("cpu:1"):
    ...     y = mg.exp(x).sum()
    >>> y.device, y.node.inputs[0].device
    (cpu, cpu:1)
    """

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = as_device(device)

    def value(self) -> Mode:
        mode = current_mode()
        return mode.but(interpreter=Offloading(self.device, mode))
