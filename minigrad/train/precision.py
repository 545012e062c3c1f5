"""Mixed precision: matrix products in half precision, which GPUs compute many times faster, and the rest in float32.

The parameters stay float32.  `autocast` is an interpreter, like graph mode and `vmap`: it casts the inputs of an
operation, by nodes that gradients flow through, and passes the operation on to the mode outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core import dtypes
from ..core.delegating import Delegating
from ..core.emit import emit
from ..core.mode import Mode, current_mode, no_grad, switch
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor
from ..nn.state import beside, check_complete, like, load_tensors, write
from ..ops import reduce
from ..ops.creation import full, full_like
from ..ops.elementary import isfinite
from ..ops.elementwise import where
from ..optim.optimizer import Optimizer
from ..support.errors import ConversionError, DtypeError
from ..support.interrupts import all_or_none

NARROW = ("matmul",)  # convolutions and attention too: they are composed of it
# Where half precision has too few digits, or its largest number, 65504, is too small.
WIDE = ("exp", "expm1", "log", "log1p", "pow", "sum", "prod", "cumulative_sum", "cumulative_prod")


class Autocast(Delegating):
    """Casts the inputs of some operations, and leaves all else to the interpreter outside."""

    def __init__(self, dtype: Any, outer: Mode) -> None:
        super().__init__(outer)
        self.dtype = dtype

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        if op.name in NARROW:
            inputs = [self._cast(x, dtypes.float32, self.dtype) for x in inputs]
        elif op.name in WIDE:
            inputs = [self._cast(x, self.dtype, dtypes.float32) for x in inputs]
        return self.below.manifest(op, inputs, attrs)

    def _cast(self, x: Any, source: Any, target: Any) -> Any:
        fits = isinstance(x, Tensor) and x.dtype is source
        return emit(P.astype, x, dtype=target) if fits else x


class autocast(switch):
    """In this block, multiply matrices in half precision; sums, exponentials and logarithms stay in float32.

    Put the forward pass in it, and the backward pass after it.  In a jitted function, use it inside.

    >>> layer = mg.nn.Linear(2, 3)
    >>> with mg.train.autocast():
    ...     y = layer(mg.ones((1, 2)))
    >>> mg.cross_entropy(y, mg.asarray([0])).backward()
    >>> layer.weight.dtype, layer.weight.grad.dtype
    (dtype('float32'), dtype('float32'))
    """

    def __init__(self, dtype: Any = None, enabled: bool = True) -> None:
        self.dtype, self.enabled = dtypes.as_dtype(dtypes.float16 if dtype is None else dtype), enabled
        if self.dtype is not dtypes.float16:
            raise DtypeError(f"autocast: float16 is the type to compute in, not {self.dtype}")
        super().__init__()

    def value(self) -> Mode:
        outer = mode = current_mode()
        if isinstance(mode.interpreter, Autocast):
            outer = mode.but(interpreter=mode.interpreter.outer.interpreter)
        return mode.but(interpreter=Autocast(self.dtype, outer) if self.enabled else outer.interpreter)


class GradScaler:
    """Keeps small gradients from vanishing in half precision: `scale` multiplies the loss by a large factor.

    The gradients are divided by the factor before the step.  A step with gradients that are not finite is skipped, and
    the factor is halved; after `growth_interval` good steps it is doubled.  All of this works in a jitted step.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer, scaler = mg.optim.SGD([w], lr=0.25), mg.train.GradScaler()
    >>> with mg.train.autocast():
    ...     loss = (w * w).sum()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.tolist()
    [0.5]
    """

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, device: Any = None) -> None:
        if not init_scale > 0 or not growth_factor >= 1 or not 0 < backoff_factor < 1:
            raise ConversionError("GradScaler: init_scale is above 0, growth_factor 1 or more, backoff_factor below 1",
                                  actual=f"{init_scale}, {growth_factor}, {backoff_factor}")
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval
        self.factor, self.good = full((), init_scale, dtypes.float32, device), full((), 0.0, dtypes.float32, device)
        self.fine = full((), 1.0, dtypes.float32, device)  # whether all gradients since the last update were finite
        # By id: the optimizers that have not stepped since (so each keeps its id), and whether their gradients were.
        self._unscaled: dict[int, tuple[Optimizer, Tensor]] = {}

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the factor: call `backward()` on it."""
        wide = loss if loss.dtype is not dtypes.float16 else loss.astype(dtypes.float32)  # type: ignore[attr-defined]
        return wide * like(self.factor, wide)

    def unscale(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the factor, to clip them before `step`; otherwise `step` divides them."""
        if id(optimizer) in self._unscaled:
            raise ConversionError("GradScaler: these gradients are unscaled already", hint="unscale() once, step()")
        gradients = [g for g in [p.grad for p in optimizer.parameters] if g is not None]
        with no_grad():
            inverse = 1.0 / self.factor
            finite = self.factor == self.factor
            for gradient in gradients:
                gradient *= like(inverse, gradient)
                finite = finite & beside(reduce.all(isfinite(gradient)), finite)
        self._unscaled[id(optimizer)] = optimizer, finite

    def step(self, optimizer: Optimizer) -> None:
        """Let the optimizer step, if all gradients are finite."""
        if id(optimizer) not in self._unscaled:
            self.unscale(optimizer)
        _, finite = self._unscaled.pop(id(optimizer))
        with no_grad():
            tensors = optimizer.tensors()
            before = [t.detach().copy() for t in tensors]  # type: ignore[attr-defined]
            try:
                optimizer.step()
                chosen = [where(beside(finite, tensor), tensor, old) for tensor, old in zip(tensors, before)]
            except BaseException as error:  # it is not known yet whether the step is skipped
                write(tensors, before)
                error.add_note("GradScaler.step() has set them back to what they were before")
                raise
            all_or_none(partial(write, tensors, chosen))
            self.fine *= finite.astype(dtypes.float32)  # type: ignore[attr-defined]

    def update(self) -> None:
        """Change the factor, after the step."""
        with no_grad():
            fine = self.fine > 0.0
            good = where(fine, self.good + 1.0, 0.0)
            grown = good >= float(self.growth_interval)
            larger = where(grown, self.factor * self.growth_factor, self.factor)
            factor = where(fine, larger, self.factor * self.backoff_factor)
            write(self.tensors(), [factor, where(grown, 0.0, good), full_like(self.fine, 1.0)])

    def get_scale(self) -> float:
        """The factor, as a number."""
        return float(self.factor.item())

    def tensors(self) -> list[Tensor]:
        """All tensors that it writes."""
        return [self.factor, self.good, self.fine]

    def state_dict(self) -> dict[str, Any]:
        """The state, to continue training later."""
        return {"scale": self.get_scale(), "growth_tracker": int(self.good.item())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with a saved factor."""
        own = {"scale": self.factor, "growth_tracker": self.good}
        check_complete(state, own, "a GradScaler")
        load_tensors(own, {name: float(state[name]) for name in own}, "GradScaler")
