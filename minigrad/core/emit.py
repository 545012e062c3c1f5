"""The one door that every operation goes through: compute, wrap, record.

`emit` applies a primitive by the interpreter of the current mode.  Eager mode computes
the result at once.  Other interpreters record it for later, or carry a batch dimension
or a derivative along.  They differ in `lift` and `compute`, and share all the rest.

`quick.py` is the same for eager mode, unrolled for the commonest cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .errors import MinigradError, TraceError
from .explain import common_device, explained
from .mode import Mode, current_mode, switch
from .node import Constant, Node
from .primitive import Attrs, P, Primitive
from .tensor import NUMBERS, Tensor, as_tensor, wrap
from .view import alias_of, link

LARGE = 1 << 16  # elements from which a device finds the memory and shares the work


def emit(op: Primitive, *inputs: Any, **attrs: Any) -> Any:
    """Apply a primitive to tensors and Python numbers, in the current mode.

    >>> emit(P.sum, mg.ones((2, 3)), axis=(0,), keepdims=False, dtype=None).tolist()
    [2.0, 2.0, 2.0]
    """
    return (current_mode().interpreter or EAGER).manifest(op, inputs, attrs)


class Interpreter:
    """Decides what applying a primitive does.  Most override only `lift` and `compute`."""

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Attrs) -> Any:
        """The result of `op` as a tensor, or as a tuple of tensors."""
        device = common_device(op, inputs, attrs)
        lifted = [x if x.__class__ in NUMBERS else self.lift(as_tensor(x, device)) for x in inputs]
        if op.casting:  # casts are nodes like any other: no kernel sees mixed types
            dtype, wrong = op.casts(lifted)
            for i in wrong:
                lifted[i] = emit(P.astype, as_tensor(lifted[i], device), dtype=dtype)
        if op.kind == "view":
            alias_of(lifted[0])
        values = [x._data if x.__class__ is Tensor else x for x in lifted]
        tracked = [i for i, x in enumerate(lifted) if x.__class__ is Tensor and x.tracked]
        mask = sum([1 << i for i in tracked]) if tracked else 0
        out = self.manifest_values(op, lifted, values, mask, attrs, device)
        return link(out, lifted[0], (op, attrs)) if op.kind == "view" else out

    def manifest_values(
        self,
        op: Primitive,
        inputs: Sequence[Any],
        values: list[Any],
        mask: int,
        attrs: Attrs,
        device: Any,
    ) -> Any:
        """Compute, wrap, record.  Bit i of `mask` says that input i is tracked."""
        try:
            data = self.compute(op, values, attrs, device)
        except MinigradError:
            raise
        except Exception as error:
            raise explained(op, inputs, attrs, error) from error
        mode = current_mode()
        if not mode.grad:
            mask = 0
        if data.__class__ is tuple:
            return several(op, inputs, values, mask, attrs, data, device)
        out = wrap(data, device)
        if mask or mode.keep:
            out.node = recorded(op, inputs, values, mask, attrs, data, device)
            out.tracked = 1 if out.node.plan.rules else 0
        return out

    def lift(self, tensor: Tensor) -> Tensor:
        """What this interpreter works on in place of a tensor from outside."""
        return tensor

    def compute(self, op: Primitive, values: list[Any], attrs: Attrs, device: Any) -> Any:
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

    def look_ahead(self, op: Primitive, values: list[Any], attrs: Attrs, device: Any) -> None:
        """Refuse a write of `op(*values)` into the first of the values, where the result may not be."""
        if self.below is not EAGER:
            self.below.look_ahead(op, values, attrs, device)

    def sealed(self, what: str) -> Any:
        """A block in which a write to anything from outside of it is refused, by an error that begins with `what`."""
        return self.below.sealed(what)


class Eager(Interpreter):
    """Computes the value now, with the device's kernel."""

    def lift(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        if data.__class__ is tensor.device.ndarray or data.evaluated() is data:
            return tensor
        lifted = wrap(data.evaluated(), tensor.device)  # recorded in graph mode, used after it
        lifted.node, lifted.tracked, lifted.alias = tensor.node, tensor.tracked, tensor.alias
        return lifted

    def compute(self, op: Primitive, values: list[Any], attrs: Attrs, device: Any) -> Any:
        kernel = device.kernels[op.name]
        if op.kind == "elementwise":
            for v in values:
                if v.__class__ is device.ndarray and v.size >= LARGE:
                    return device.elementwise(kernel, op, values, attrs)
        data = kernel(*values, **attrs)
        if data.__class__ is not device.ndarray and data.__class__ is not tuple:
            data = device.asarray(data)  # NumPy makes scalars of 0-d results
        return data

    def hunting(self, hunter: Any) -> Any:
        return switch(interpreter=hunter)

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        check(indices._data)

    def sealed(self, what: str) -> Any:
        return nullcontext()  # Python runs one branch, once: what it writes is written


EAGER = Eager()


def recorded(
    op: Primitive,
    inputs: Sequence[Any],
    values: Sequence[Any],
    mask: int,
    attrs: Attrs,
    data: Any,
    device: Any,
) -> Node:
    """The node of a result: its recipe, and of the values those that its rules read."""
    if data.__class__ is not Results and data.dtype.kind != "f":
        mask = 0  # no gradient flows through integers
    plan = op.plan(mask, len(inputs))
    nodes = tuple([x.node or constant(x) if x.__class__ is Tensor else x for x in inputs])
    saved = None
    if plan.keep is not None:
        saved = tuple([v if keep else None for v, keep in zip((*values, data), plan.keep)])
    return Node(op, nodes, attrs, plan, saved, data, device)


def constant(tensor: Tensor) -> Node:
    """The node of an input without a recipe, made when it is first needed."""
    node = tensor.node = Constant(tensor)
    return node


class Results(tuple[Any, ...]):
    """The data of several results: the shape of their node is a tuple of shapes."""

    @property
    def shape(self) -> Any:
        return tuple([d.shape for d in self])

    @property
    def dtype(self) -> Any:
        return tuple([d.dtype for d in self])


def several(
    op: Primitive,
    inputs: Sequence[Any],
    values: Sequence[Any],
    mask: int,
    attrs: Attrs,
    results: tuple[Any, ...],
    device: Any,
) -> tuple[Tensor, ...]:
    """Wrap and record several results: one node for all, and a projection for each."""
    outs = tuple([wrap(data, device) for data in results])
    if mask or current_mode().keep:
        whole = recorded(op, inputs, values, mask, attrs, Results(results), device)
        for i, out in enumerate(outs):
            out.tracked = 1 if whole.plan.rules and out.dtype.kind == "f" else 0
            out.node = part(whole, i, out)
    return outs


def part(node: Node, index: int, result: Tensor) -> Node:
    """The node of one of several results: a projection of the node of them all."""
    plan = P.project.plan(result.tracked, 1)
    return Node(P.project, (node,), {"index": index}, plan, None, result._data, result.device)
