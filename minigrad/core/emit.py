"""The one door that every operation goes through.

`emit` asks the current mode's interpreter to *manifest* the node.  Eager mode computes its value at once; others record
it for later, carry a batch dimension through, or carry a derivative along.  That is the whole difference between them.
`emit1` and `binary` are the same door for the commonest cases in eager mode, without the loops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .clock import tick
from .dtypes import float32
from .errors import ConversionError, DeviceError, DtypeError, MinigradError, TraceError
from .mode import Mode, current_mode, switch
from .node import Constant, Node
from .primitive import P, Plan, Primitive
from .source import LIBRARY, show
from .tensor import NUMBERS, StandIn, Tensor, as_tensor, default_device, new_tensor, wrap
from .view import alias_of, link

LARGE = 1 << 16  # elements from which a device may find memory for the result itself, and share the work
_getframe = sys._getframe
_new_node = Node.__new__
NO_ATTRS: dict[str, Any] = {}


def emit(op: Primitive, *inputs: Any, **attrs: Any) -> Any:
    """Apply a primitive to tensors and Python numbers, in the current mode."""
    return (current_mode().interpreter or EAGER).manifest(op, inputs, attrs)


class Interpreter:
    """Who manifests nodes.  A mode differs from eager in `lift` and `compute`, hardly ever in the rest."""

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The result of `op` as a tensor, recorded where gradients may be asked for."""
        device = common_device(op, inputs, attrs)
        lifted = [x if x.__class__ in NUMBERS else self.lift(as_tensor(x, device)) for x in inputs]
        if op.casting:  # by nodes like any other: a kernel never sees mixed types
            dtype, wrong = op.casts(lifted)
            for i in wrong:
                lifted[i] = emit(P.astype, as_tensor(lifted[i], device), dtype=dtype)
        if op.kind == "view":
            alias_of(lifted[0])
        mask = sum([1 << i for i, x in enumerate(lifted) if x.__class__ is Tensor and x.tracked])
        values = [x._data if x.__class__ is Tensor else x for x in lifted]
        out = self.manifest_values(op, lifted, values, mask, attrs, device)
        return link(out, lifted[0], (op, attrs)) if op.kind == "view" else out

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: dict[str, Any], device: Any
    ) -> Any:
        """The second half of `manifest`: compute, wrap and record.  Bit i of `mask` says that input i is tracked."""
        try:
            data = self.compute(op, values, attrs, device)
        except MinigradError:
            raise
        except Exception as error:
            now = [v.evaluated() if isinstance(v, StandIn) else v for v in values]
            recorded = any(a is not b for a, b in zip(now, values))
            if recorded and self is EAGER:  # in graph mode, and wanted here after it
                return self.manifest_values(op, inputs, now, mask, attrs, device)
            raise explained(op, inputs, attrs, error) from error
        mode = current_mode()
        if not mode.grad:
            mask = 0  # a recipe that is kept all the same carries no gradient
        if data.__class__ is tuple:
            return several(op, inputs, attrs, mask, values, data, mode, device)
        out = wrap(data, device)
        if mask or mode.keep:
            out.node = record_any(op, inputs, attrs, mask, values, data, mode, device)
            out.tracked = 1 if out.node.plan.rules else 0
        return out

    def lift(self, tensor: Tensor) -> Tensor:
        """What this interpreter works on in place of a tensor from outside."""
        return tensor

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        """The data of the result: an array, or what stands for one."""
        raise NotImplementedError

    # State that outlives an operation.  Only tracing keeps some of its own; others ask whom they were entered from. ---

    @property
    def below(self) -> Interpreter:
        """The interpreter that this one works on top of."""
        outer: Mode | None = getattr(self, "outer", None)
        return EAGER if outer is None or outer.interpreter is None else outer.interpreter

    def stand_in(self, tensor: Tensor) -> Tensor:
        """The tensor that is read and written in place of `tensor`."""
        return tensor if self.below is EAGER else self.below.stand_in(tensor)

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        """What `tensor.grad` is."""
        return tensor._grad if self.below is EAGER else self.below.gradient_of(tensor)

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        """What `tensor.grad = gradient` does."""
        if self.below is EAGER:
            tensor._grad = gradient
        else:
            self.below.set_gradient(tensor, gradient)

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """A tensor just made from data in host memory, as this interpreter goes on with it."""
        return tensor if self.below is EAGER else self.below.admitted(tensor, source)

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int] | None:
        """The random numbers that a draw will be made from; None leaves it to the generator."""
        return None if self.below is EAGER else self.below.take_blocks(generator, count)

    @property
    def seals_generators(self) -> bool:
        """Whether the state of a generator is not to be read: a program will not read it again."""
        return False if self.below is EAGER else self.below.seals_generators

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        """Whether it keeps to itself that a generator starts again; else the generator does so now."""
        return False if self.below is EAGER else self.below.seeded(generator, key, block)

    # Programs -------------------------------------------------------------------------------------------------------

    runs_programs = False  # whether what is jitted runs as a program; others see through it, operation by operation

    def hunting(self, hunter: Any) -> Any:
        """A block in which every value is looked at by `hunter`, which is an interpreter."""
        raise TraceError(
            "debug_nans begins inside of vmap or jvp, where a tensor stands for several values",
            hint="`with mg.debug_nans():` around the call",
        )

    # Control flow ---------------------------------------------------------------------------------------------------

    @property
    def control(self) -> Any:
        """What makes nodes of branches and loops (`cond`, `while_loop`, `scan`); None where Python runs them."""
        return None if self.below is EAGER else self.below.control

    def for_body(self, body: Interpreter) -> Interpreter:
        """Who manifests the nodes of a branch or body that `body` traces here."""
        return body if self.below is EAGER else self.below.for_body(body)

    def outcomes(self, test: Tensor) -> tuple[bool, bool]:
        """Whether a bool is true of any, and of all, that the tensor stands for."""
        holds = bool(test)
        return holds, holds

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        """Let `check` look at the values of integers that name rows, once these are known to be wrong."""
        self.below.expect(indices, check)

    def taken_by(self, test: Tensor) -> Any:
        """A block that is run for all examples, although only those take part for which the bool `test` holds."""
        return nullcontext() if self.below is EAGER else self.below.taken_by(test)

    def before_write(self, tensor: Tensor) -> None:
        """Refuse a write in place, where it cannot be made."""
        if self.below is not EAGER:
            self.below.before_write(tensor)

    def look_ahead(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> None:
        """Refuse a write of `op(*values)` into the first of the values, where the result may not be."""
        if self.below is not EAGER:
            self.below.look_ahead(op, values, attrs, device)

    def sealed(self, what: str) -> Any:
        """A block in which a write to anything from outside of it is refused, by an error that begins with `what`."""
        return self.below.sealed(what)


class Eager(Interpreter):
    """Compute the value now, with the device's kernel."""

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The same in one pass, where the inputs are tensors on one device and numbers, of types that go together."""
        device, mask, bit = None, 0, 1
        values = []
        for x in inputs:
            if x.__class__ is Tensor:
                if device is None:
                    device = x.device
                elif x.device is not device:
                    break
                values.append(x._data)
                if x.tracked:
                    mask += bit
            elif x.__class__ in NUMBERS:
                values.append(x)
            else:
                break
            bit += bit
        else:
            plain = device is not None and op.kind != "view" and "device" not in attrs  # not a copy to another device
            if plain and not (op.casting and op.casts(values).indices):
                return self.manifest_values(op, inputs, values, mask, attrs, device)
        return super().manifest(op, inputs, attrs)

    def hunting(self, hunter: Any) -> Any:
        return switch(interpreter=hunter)

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        check(indices._data)

    def sealed(self, what: str) -> Any:
        return nullcontext()  # Python runs one branch, once: what it writes is written

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        kernel = device.kernels[op.name]
        if op.kind == "elementwise":
            for v in values:
                if v.__class__ is device.ndarray and v.size >= LARGE:
                    return device.elementwise(kernel, op, values, attrs)
        data = kernel(*values, **attrs)
        if data.__class__ is not device.ndarray and data.__class__ is not tuple:
            data = device.asarray(data)  # NumPy makes scalars of 0-d results, which can be neither viewed nor written
        return data


EAGER = Eager()


def emit1(op: Primitive, x: Any, attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """`emit(op, x, **attrs)`, quickly."""
    mode = current_mode()
    if mode.interpreter is not None or x.__class__ is not Tensor:
        return emit(op, x, **attrs)
    a, device = x._data, x.device
    if (op.casting and a.dtype is not float32) or (a.size >= LARGE and op.kind == "elementwise"):
        return emit(op, x, **attrs)
    try:
        kernel = device.kernels[op.name]
        data = kernel(a, **attrs) if attrs else kernel(a)
    except Exception as error:
        raise explained(op, (x,), attrs, error) from error
    if data.__class__ is not a.__class__:
        data = device.asarray(data)
    out = new_tensor(Tensor)
    out._data, out.device, out._grad, out.alias = data, device, None, None
    if x.tracked and mode.grad:
        plan = op.plans.get(0b11) or op.plan(1, 1)
        keep = plan.keep
        saved = None if keep is None else (a if keep[0] else None, data if keep[1] else None)
        out.node = record(op, (x.node,), attrs, plan, saved, data, mode, device)
        out.tracked = 1 if plan.rules else 0
    elif mode.keep:
        return emit(op, x, **attrs)
    else:
        out.node, out.tracked = None, 0
    return out


def emit_view(op: Primitive, x: Any, attrs: dict[str, Any]) -> Any:
    """`emit(op, x, **attrs)` for a view, quickly: its kernel takes one attribute, and its rule needs nothing kept."""
    mode = current_mode()
    if mode.interpreter is not None or x.__class__ is not Tensor or mode.keep:
        return emit(op, x, **attrs)
    if x.alias is None:
        alias_of(x)
    device = x.device
    try:
        data = device.kernels[op.name](x._data, *attrs.values())
    except Exception as error:
        raise explained(op, (x,), attrs, error) from error
    out = new_tensor(Tensor)
    out._data, out.device, out._grad, out.alias, out.node, out.tracked = data, device, None, None, None, 0
    if x.tracked and mode.grad:
        plan = op.plans.get(0b11) or op.plan(1, 1)
        out.node, out.tracked = record(op, (x.node,), attrs, plan, None, data, mode, device), 1
    return link(out, x, (op, attrs))


def binary(op: Primitive) -> Callable[[Any, Any], Any]:
    """`emit(op, a, b)`, quickly: the door made for one operation of two operands."""
    name = op.name

    def apply(x: Any, y: Any) -> Any:
        mode = current_mode()
        if mode.interpreter is not None:
            return emit(op, x, y)
        if x.__class__ is Tensor:
            a, device, mask = x._data, x.device, x.tracked
            if a.dtype is not float32 or a.size >= LARGE:
                return emit(op, x, y)
            kind = a.__class__
            if y.__class__ is Tensor:
                b = y._data
                if b.dtype is not float32 or y.device is not device:
                    return emit(op, x, y)
                if y.tracked:
                    mask += 2
            elif y.__class__ in NUMBERS:
                b = device.weak.get(y)
                if b is None:
                    b = device.weak_number(y)
            else:
                return emit(op, x, y)
        elif y.__class__ is Tensor and x.__class__ in NUMBERS:
            b, device, mask = y._data, y.device, y.tracked * 2
            if b.dtype is not float32 or b.size >= LARGE:
                return emit(op, x, y)
            kind = b.__class__
            a = device.weak.get(x)
            if a is None:
                a = device.weak_number(x)
        else:
            return emit(op, x, y)
        try:
            data = device.kernels[name](a, b)
        except Exception as error:
            raise explained(op, (x, y), NO_ATTRS, error) from error
        if data.__class__ is not kind:
            data = device.asarray(data)
        out = new_tensor(Tensor)
        out._data, out.device, out._grad, out.alias = data, device, None, None
        if mask and mode.grad:
            plan = op.plans.get(mask | 0b100) or op.plan(mask, 2)
            keep = plan.keep
            saved = None
            if keep is not None:
                saved = (a if keep[0] else None, b if keep[1] else None, data if keep[2] else None)
            nodes = (
                (x.node or constant(x)) if x.__class__ is Tensor else x,
                (y.node or constant(y)) if y.__class__ is Tensor else y,
            )
            out.node = record(op, nodes, NO_ATTRS, plan, saved, data, mode, device)
            out.tracked = 1 if plan.rules else 0
        elif mode.keep:
            return emit(op, x, y)
        else:
            out.node, out.tracked = None, 0
        return out

    return apply


def record(
    op: Primitive,
    inputs: tuple[Any, ...],
    attrs: dict[str, Any],
    plan: Plan,
    saved: tuple[Any, ...] | None,
    data: Any,
    mode: Mode,
    device: Any,
) -> Node:
    """The node for a result: its recipe, and of the values what the gradient rules declared that they need."""
    node = _new_node(Node)
    node.op, node.inputs, node.attrs, node.plan, node.saved = op, inputs, attrs, plan, saved
    node.shape, node.dtype, node.device, node.mode = data.shape, data.dtype, device, mode
    node.serial = tick()
    frame = _getframe(2)  # past the door: mostly the caller's own code already; as in `caller`, without the call
    code = frame.f_code
    while LIBRARY[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    node.code, node.offset = code, frame.f_lasti
    return node


def record_any(
    op: Primitive,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    mask: int,
    values: Sequence[Any],
    data: Any,
    mode: Mode,
    device: Any,
) -> Node:
    """`record` for any number of inputs: bit i of `mask` says that gradients flow to input i."""
    if data.__class__ is not Results and data.dtype.kind != "f":
        mask = 0  # no gradient flows through integers
    plan = op.plan(mask, len(inputs))
    saved = None if plan.keep is None else tuple([v if k else None for v, k in zip((*values, data), plan.keep)])
    nodes = tuple([x.node or constant(x) if x.__class__ is Tensor else x for x in inputs])
    return record(op, nodes, attrs, plan, saved, data, mode, device)


def constant(tensor: Tensor) -> Node:
    """The node of an untracked input, made when it is first needed."""
    node = tensor.node = Constant(tensor)
    return node


class Results(tuple[Any, ...]):
    """The data of an operation with several results: the shape of its node is a tuple of shapes."""

    @property
    def shape(self) -> Any:
        return tuple([d.shape for d in self])

    @property
    def dtype(self) -> Any:
        return tuple([d.dtype for d in self])


def several(
    op: Primitive,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    mask: int,
    values: Sequence[Any],
    data: tuple[Any, ...],
    mode: Mode,
    device: Any,
) -> tuple[Tensor, ...]:
    """The results of an operation that has several: a tuple node, and a projection of it for each."""
    outs = tuple(wrap(d, device) for d in data)
    if mask or mode.keep:
        whole = record_any(op, inputs, attrs, mask, values, Results(data), mode, device)
        for i, out in enumerate(outs):
            out.tracked = 1 if whole.plan.rules and out.dtype.kind == "f" else 0
            plan = P.project.plan(out.tracked, 1)
            out.node = record(P.project, (whole,), {"index": i}, plan, None, out._data, mode, device)
    return outs


def common_device(op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Where the result will be: on the device that the attributes say, else on the one that all the inputs are on."""
    device = None
    for x in inputs:
        if x.__class__ is Tensor:
            if device is None:
                device = x.device
            elif x.device is not device and op.name != "call":  # a function may copy from one to the other by itself
                raise DeviceError(
                    f"{op.name}: its inputs are on different devices, {device} and {x.device}",
                    expect="all inputs on one device: nothing is copied between devices behind your back",
                    actual=described(op, inputs),
                    hint=f'x.to("{device}") or x.to("{x.device}")',
                )
    return attrs.get("device") or device or default_device()


def described(op: Primitive, inputs: Sequence[Any]) -> str:
    """`x (2, 3) float32 on cpu, y 2.0`: the inputs, for a message."""
    words = []
    for i, x in enumerate(inputs):
        if isinstance(x, (Tensor, Node)):
            words.append(f"{op.name_of(i)} {x.shape} {x.dtype} on {x.device}")
        else:
            words.append(f"{op.name_of(i)} {x!r}")
    return ", ".join(words)


def explained(op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any], error: Exception) -> Exception:
    """The array library's error in our words: what `infer` has to say, which is what graph mode says too."""
    for x in inputs:
        if x.__class__ is Tensor and isinstance(x._data, StandIn) and current_mode().interpreter is None:
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
        pass  # Python refuses too, and says no more than the array library did
    given = described(op, inputs) or None
    kind = DtypeError if isinstance(error, (TypeError, OverflowError)) else ConversionError
    return kind(f"{op.name}: {error}", actual=given)
