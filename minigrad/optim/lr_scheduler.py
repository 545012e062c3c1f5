"""Schedules: how the rate of an optimizer changes from step to step.

A schedule is a formula for the rate after t steps, from the rate that the optimizer was made with.  Count and rate are
tensors, so `schedule.step()` works in a jitted training step, which is traced once, and outside one.  Call it after
`optimizer.step()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtypes
from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..nn.state import StateError, beside, like, load_tensors, write
from ..ops.creation import full
from ..ops.elementwise import abs, cos, floor, maximum, minimum, power, where
from ..support.errors import ConversionError
from ..support.table import counted
from ..support.words import a_type
from .groups import checked_rate
from .optimizer import Optimizer

__all__ = [
    "Schedule", "LambdaLR", "StepLR", "MultiStepLR", "ExponentialLR", "LinearLR", "CosineAnnealingLR", "OneCycleLR",
    "SequentialLR", "ChainedScheduler", "ReduceLROnPlateau",
]


class Schedule:
    """A rate that follows a formula: subclasses define `rate(base, t)`, in operations on tensors.

    The schedule sets the rate at each of its steps: a rate that you write to `optimizer.lr` lasts until the next one.

    >>> class Halving(mg.optim.lr_scheduler.Schedule):
    ...     def rate(self, base, t):
    ...         return base * 0.5**t
    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = Halving(optimizer)
    >>> schedule.step()
    >>> optimizer.lr
    0.25
    """

    def __init__(self, optimizer: Optimizer) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise ConversionError(f"{name}: the first argument is an optimizer, not {a_type(optimizer)}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if group.initial_rate is None:  # the first schedule of an optimizer
                group.initial_rate = group["lr"]
        self.bases: list[Any] = [group.initial_rate for group in optimizer.param_groups]
        self.count = full((), 0.0, dtypes.float64, optimizer.param_groups[0].rate.device)
        self._set()

    def rate(self, base: Any, t: Tensor) -> Any:
        """The rate after t steps (a float64 tensor without dimensions) of a group that began with the rate `base`."""
        raise NotImplementedError(f"{type(self).__name__} has no rate method")

    def step(self) -> None:
        """Set the next rate."""
        with no_grad():
            self.count += 1.0
        self._set()

    def _set(self) -> None:
        with no_grad():
            for group, base in zip(self.optimizer.param_groups, self.bases):
                write([group.rate], [self.rate(base, self.count)])

    def get_last_lr(self) -> list[float]:
        """The current rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def tensors(self) -> list[Tensor]:
        """All tensors that a step writes, except the rates, which belong to the optimizer."""
        return [self.count]

    def state_dict(self) -> dict[str, Any]:
        """The number of steps, and the first rates."""
        return {"last_epoch": int(self.count.item()), "base_lrs": list(self.bases)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue a saved schedule."""
        name = type(self).__name__
        lost = [key for key in self.state_dict() if key not in state]
        if lost or len(state["base_lrs"]) != len(self.bases):
            raise StateError(f"load_state_dict: the state does not fit {name}, and nothing was loaded",
                             expect=f"{', '.join(self.state_dict())}, and {len(self.bases)} base_lrs",
                             actual=", ".join(map(str, state)))
        bases = [float(checked_rate(name, base)) for base in state["base_lrs"]]
        load_tensors({"last_epoch": self.count}, {"last_epoch": float(state["last_epoch"])}, name)
        self.bases = bases
        self._set()

    def __repr__(self) -> str:
        rates = ", ".join(f"{rate:g}" for rate in self.get_last_lr())
        return f"{type(self).__name__}(after {counted(int(self.count.item()), 'step')}, lr={rates})"


class LambdaLR(Schedule):
    """The first rate times a factor: a function of the number of steps, a tensor.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = mg.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (1 + t))
    >>> schedule.step()
    >>> optimizer.lr
    0.25
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[Tensor], Any]) -> None:
        if not callable(lr_lambda):
            raise ConversionError(f"LambdaLR: lr_lambda is a function of the number of steps, not a "
                                  f"{type(lr_lambda).__name__}")
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        factor = self.lr_lambda(t)
        if not isinstance(factor, (Tensor, int, float)):
            raise ConversionError(f"LambdaLR: lr_lambda returns a number, not {a_type(factor)}")
        return factor * base if isinstance(factor, Tensor) else t * 0.0 + factor * base


class StepLR(Schedule):
    """The rate times `gamma` after every `step_size` steps.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule, rates = mg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5), []
    >>> for _ in range(5):
    ...     rates.append(optimizer.lr)
    ...     schedule.step()
    >>> rates
    [0.5, 0.5, 0.25, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = _count("StepLR", "step_size", step_size), gamma
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        return base * power(self.gamma, floor(t / self.step_size))


class MultiStepLR(Schedule):
    """The rate times `gamma` after each of these numbers of steps."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = tuple(milestones), gamma
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        factor = t * 0.0 + base
        for milestone in self.milestones:
            factor = where(t >= milestone, factor * self.gamma, factor)
        return factor


class ExponentialLR(Schedule):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        return base * power(self.gamma, t)


class LinearLR(Schedule):
    """A warm-up: in a straight line from `start_factor` to `end_factor` times the rate, in `total_iters` steps.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule, rates = mg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3), []
    >>> for _ in range(5):
    ...     rates.append(optimizer.lr)
    ...     schedule.step()
    >>> rates
    [0.125, 0.25, 0.375, 0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5) -> None:
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = _count("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        done = minimum(t / self.total_iters, 1.0)
        return ((self.end_factor - self.start_factor) * done + self.start_factor) * base


class CosineAnnealingLR(Schedule):
    """The rate falls along half a cosine to `eta_min` in `T_max` steps, and then rises again.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule.step()
    >>> optimizer.lr
    0.25
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self.period, self.eta_min = _count("CosineAnnealingLR", "T_max", T_max), eta_min
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        return (base - self.eta_min) * (cos(t * (math.pi / self.period)) + 1) * 0.5 + self.eta_min


class OneCycleLR(Schedule):
    """Rises from `max_lr / div_factor` to `max_lr` in the share `pct_start` of `total_steps`, then falls to almost 0.

    The lowest rate is the first divided by `final_div_factor`.  Momentum does not change: that would need another
    program in each step.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10, pct_start=0.5)
    >>> for _ in range(4):
    ...     schedule.step()
    >>> optimizer.lr
    1.0
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float, total_steps: int, pct_start: float = 0.3,
        anneal_strategy: str = "cos", div_factor: float = 25.0, final_div_factor: float = 1e4,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ConversionError(f"OneCycleLR: no anneal_strategy {anneal_strategy!r}", expect="cos or linear")
        if not 0 <= pct_start <= 1:
            raise ConversionError(f"OneCycleLR: pct_start is a share, from 0 to 1, not {pct_start}")
        self.total_steps = _count("OneCycleLR", "total_steps", total_steps)
        self.max_lr, self.up, self.cosine = max_lr, pct_start * total_steps - 1, anneal_strategy == "cos"
        self.first = max_lr / div_factor
        self.last = self.first / final_div_factor
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        falling = self._between(self.max_lr, self.last, (t - self.up) / max(self.total_steps - 1 - self.up, 1e-9))
        if self.up <= 0:
            return falling
        return where(t <= self.up, self._between(self.first, self.max_lr, t / self.up), falling)

    def _between(self, start: float, end: float, share: Any) -> Any:
        share = minimum(maximum(share, 0.0), 1.0)
        if self.cosine:
            share = 0.5 - cos(share * math.pi) * 0.5
        return share * (end - start) + start


class SequentialLR(Schedule):
    """One schedule after the other: the next takes over at each of the milestones, and counts from there.

    >>> from minigrad.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> warm_up = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> schedule, rates = SequentialLR(optimizer, [warm_up, CosineAnnealingLR(optimizer, T_max=4)], milestones=[2]), []
    >>> for _ in range(5):
    ...     rates.append(optimizer.lr)
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [0.25, 0.375, 0.5, 0.427, 0.25]
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[Schedule], milestones: Sequence[int]) -> None:
        if len(schedulers) != len(milestones) + 1:
            raise ConversionError("SequentialLR: there is one milestone between two schedules",
                                  expect=f"{counted(len(schedulers) - 1, 'milestone')}", actual=f"{len(milestones)}")
        if list(milestones) != sorted(set(milestones)):
            raise ConversionError(f"SequentialLR: milestones increase, but {list(milestones)} do not")
        self.schedulers, self.milestones = _formulas("SequentialLR", optimizer, schedulers), tuple(milestones)
        super().__init__(optimizer)

    def rate(self, base: Any, t: Tensor) -> Any:
        now = self.schedulers[0].rate(base, t)
        for schedule, milestone in zip(self.schedulers[1:], self.milestones):
            now = where(t < milestone, now, schedule.rate(base, maximum(t - milestone, 0.0)))
        return now


class ChainedScheduler(Schedule):
    """Several schedules at once: each changes the rate of the one before.

    >>> from minigrad.optim.lr_scheduler import ChainedScheduler, ExponentialLR, StepLR
    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = ChainedScheduler([ExponentialLR(optimizer, 0.5), StepLR(optimizer, step_size=1, gamma=0.25)])
    >>> schedule.step()
    >>> optimizer.lr
    0.0625
    """

    def __init__(self, schedulers: Sequence[Schedule]) -> None:
        if not schedulers:
            raise ConversionError("ChainedScheduler: there are no schedules to chain")
        optimizer = getattr(schedulers[0], "optimizer", None)
        self.schedulers = _formulas("ChainedScheduler", optimizer, schedulers)
        super().__init__(optimizer)  # type: ignore[arg-type]

    def rate(self, base: Any, t: Tensor) -> Any:
        for schedule in self.schedulers:
            base = schedule.rate(base, t)
        return base


class ReduceLROnPlateau:
    """The rate times `factor` when a number, such as a loss, has not improved for more than `patience` steps.

    `mode` says whether less ("min") or more ("max") is better.  `threshold` is the smallest improvement that counts: a
    share of the best number, or with `threshold_mode="abs"` an amount.  After a cut, `cooldown` steps are not counted.

    >>> optimizer = mg.optim.SGD([mg.asarray([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> optimizer.lr
    0.25
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0,
                 eps: float = 1e-8) -> None:
        name = "ReduceLROnPlateau"
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ConversionError(f"{name}: mode is min or max, threshold_mode rel or abs",
                                  actual=f"{mode!r}, {threshold_mode!r}")
        if not 0 < factor < 1:
            raise ConversionError(f"{name}: factor is between 0 and 1, not {factor}")
        self.optimizer, self.sign, self.relative = optimizer, 1 if mode == "min" else -1, threshold_mode == "rel"
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        device = optimizer.param_groups[0].rate.device
        self.best = full((), self.sign * math.inf, dtypes.float64, device)
        self.bad, self.cooling = (full((), 0.0, dtypes.float64, device) for _ in range(2))

    def step(self, metric: Any) -> None:
        """Use the next number, a Python number or a tensor without dimensions."""
        with no_grad():
            given = isinstance(metric, Tensor)
            value = metric.detach() if given else full((), float(metric), dtypes.float64, self.best.device)
            self._look_at(like(value, self.best))

    def _look_at(self, value: Tensor) -> None:
        margin = abs(self.best) * self.threshold if self.relative else self.threshold
        better = value * self.sign < self.best * self.sign - where(abs(self.best) < math.inf, margin, 0.0)
        best = where(better, value, self.best)
        bad = where(better, 0.0, self.bad + 1.0)
        bad = where(self.cooling > 0.0, 0.0, bad)
        cooling = maximum(self.cooling - 1.0, 0.0)
        cut = bad > self.patience
        write(self.tensors(), [best, where(cut, 0.0, bad), where(cut, float(self.cooldown), cooling)])
        for group in self.optimizer.param_groups:
            lower = maximum(group.rate * self.factor, self.min_lr)
            use = beside(cut, group.rate) & (group.rate - lower > self.eps)
            write([group.rate], [where(use, lower, group.rate)])

    def tensors(self) -> list[Tensor]:
        """All tensors that a step writes, except the rates, which belong to the optimizer."""
        return [self.best, self.bad, self.cooling]

    def state_dict(self) -> dict[str, Any]:
        """The state, to continue training later; the rates are in the optimizer's state."""
        bad, cooling = int(self.bad.item()), int(self.cooling.item())
        return {"best": self.best.item(), "num_bad_epochs": bad, "cooldown_counter": cooling}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue a saved schedule."""
        own = dict(zip(self.state_dict(), self.tensors()))
        load_tensors(own, {name: float(value) for name, value in state.items() if name in own}, "ReduceLROnPlateau")


def _formulas(name: str, optimizer: Any, schedulers: Sequence[Schedule]) -> tuple[Schedule, ...]:
    for schedule in schedulers:
        if not isinstance(schedule, Schedule):
            raise ConversionError(f"{name}: {a_type(schedule)} is not a formula of the number of steps",
                                  hint="call its step() beside this one's")
        if schedule.optimizer is not optimizer:
            raise ConversionError(f"{name}: its schedules are all of the same optimizer")
    return tuple(schedulers)


def _count(name: str, what: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ConversionError(f"{name}: {what} is a whole number, 1 or more, not {value!r}")
    return value
