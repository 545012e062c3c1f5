"""L-BFGS: the last steps and gradients give the direction of the next step, and a line search gives its length."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

from ..core.mode import enable_grad, no_grad
from ..core.tensor import Tensor
from ..nn.state import StateError
from ..ops.creation import asarray, zeros_like
from ..ops.elementwise import abs as absolute
from ..ops.joining import concat
from ..ops.reduce import max as largest
from ..ops.reduce import sum as total
from ..ops.view import reshape
from ..support.errors import ConversionError
from ..support.words import shown, whole
from .groups import Group
from .optimizer import Optimizer, saved_groups

FALLS, FLATTENS = 1e-4, 0.9  # Wolfe's conditions: by how much the loss falls, and what is left of its slope
CURVED = 1e-10  # below this, a pair says nothing about the curvature
ROUNDS = 25  # of a line search
ROWS = "d", "prev_flat_grad"


class Point(NamedTuple):
    """A step along the direction, and there the loss, its gradient and its slope along the direction."""

    step: float
    loss: float
    gradient: Any
    slope: float


class LBFGS(Optimizer):
    """For smooth losses of the whole data: each step calls a closure several times, and needs few steps.

    The closure computes the loss and its gradients, and returns the loss.  It can be a jitted function; the step itself
    decides by the values of the loss.  `line_search_fn="strong_wolfe"` searches along each direction for a point where
    the loss has fallen and is nearly flat; None takes steps of length `lr`.  A call makes up to `max_iter` steps.

    >>> w = mg.asarray([-1.2, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.LBFGS([w], max_iter=50, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = 100 * (w[1] - w[0] ** 2) ** 2 + (1 - w[0]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> before = optimizer.step(closure)
    >>> before.item() > 24, mg.round(w, 3).tolist()
    (True, [1.0, 1.0])
    """

    caches = (*Optimizer.caches, "memory")  # a jitted closure does not read it

    def __init__(self, parameters: Any, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        most = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(parameters, lr=lr, max_iter=max_iter, max_eval=most, tolerance_grad=tolerance_grad,
                         tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn)
        self.memory: dict[str, Any] = {"func_evals": 0, "n_iter": 0}

    def _add(self, groups: list[Any]) -> None:
        if len(groups) + len(self.param_groups) > 1:
            raise ConversionError("LBFGS: all parameters are in one group, because a step moves them together")
        super()._add(groups)

    def check(self, options: dict[str, Any], parameters: list[Tensor]) -> None:
        super().check(options, parameters)
        for name in ("max_iter", "max_eval", "history_size"):
            if whole(options[name]) is None or options[name] < 1:
                raise ConversionError(f"LBFGS: {name} is an integer, 1 or more, not {shown(options[name])}")
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ConversionError(f"LBFGS: there is no line_search_fn {options['line_search_fn']!r}",
                                  expect='"strong_wolfe" or None')

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` steps, and return the loss before them."""
        if not callable(closure):
            raise ConversionError("LBFGS: step needs a closure, because it computes the loss several times",
                                  hint="optimizer.step(closure), where closure() sets gradients to None, calls "
                                  "loss.backward() and returns the loss")
        with no_grad():
            return self._descend(closure, self.param_groups[0])

    def _descend(self, closure: Callable[[], Any], group: Group) -> Any:
        memory, calls = self.memory, self.memory["func_evals"]
        first, gradient = self._computed(closure)
        loss, flat = float(first), _size(gradient) <= group["tolerance_grad"]
        for remaining in reversed(range(group["max_iter"] if not flat else 0)):
            direction = self._direction(gradient, group["history_size"])
            began = memory["n_iter"] == 1
            step = group["lr"] * (min(1.0, 1.0 / float(total(absolute(gradient)))) if began else 1.0)
            memory |= {"d": direction, "t": step, "prev_flat_grad": gradient, "prev_loss": loss}
            here = Point(0.0, loss, gradient, _dot(gradient, direction))
            if here.slope > -group["tolerance_change"]:
                break
            place, at = self._along(direction, closure)
            if group["line_search_fn"]:
                found = strong_wolfe(at, here, step, _size(direction), group["tolerance_change"])
            else:
                found = at(step) if remaining else here._replace(step=step)  # the last loss is not needed
            place(found.step)
            memory["t"], loss, gradient = found.step, found.loss, found.gradient
            small = found.step * _size(direction) <= group["tolerance_change"]
            still = remaining and abs(loss - here.loss) < group["tolerance_change"]
            enough = memory["func_evals"] - calls >= group["max_eval"]
            if enough or small or still or _size(gradient) <= group["tolerance_grad"]:
                break
        return first

    def _computed(self, closure: Callable[[], Any]) -> tuple[Any, Tensor]:
        """The loss, and the gradients of all parameters in one row."""
        with enable_grad():
            loss = closure()
        if not isinstance(loss, (Tensor, float)):
            raise ConversionError(f"LBFGS: the closure returns the loss, not {shown(loss)}", hint="return loss")
        self.memory["func_evals"] += 1
        return loss, concat([reshape(zeros_like(p) if p.grad is None else p.grad, (-1,)) for p in self.parameters])

    def _direction(self, gradient: Tensor, most: int) -> Tensor:
        """Minus the gradient, times an inverse of the Hessian that fits the last pairs of steps and gradients."""
        memory = self.memory
        memory["n_iter"] += 1
        if memory["n_iter"] == 1:
            memory |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
        else:
            change, step = gradient - memory["prev_flat_grad"], memory["d"] * memory["t"]
            curvature = _dot(change, step)
            if curvature > CURVED:
                memory["H_diag"] = curvature / _dot(change, change)
                for name, new in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
                    memory[name] = [*memory[name], new][-most:]
        pairs = list(zip(memory["old_stps"], memory["old_dirs"], memory["ro"]))
        direction, parts = -gradient, []
        for step, change, inverse in reversed(pairs):
            parts.append(_dot(step, direction) * inverse)
            direction = direction - change * parts[-1]
        direction = direction * memory["H_diag"]
        for step, change, inverse in pairs:
            direction = direction + step * (parts.pop() - _dot(change, direction) * inverse)
        return direction

    def _along(
        self, direction: Tensor, closure: Callable[[], Any]
    ) -> tuple[Callable[[float], None], Callable[[float], Point]]:
        """Two functions of a step along the direction from here: one moves the parameters, the other also looks."""
        ends = list(accumulate([p.size for p in self.parameters]))
        parts = [reshape(direction[end - p.size : end], p.shape) for p, end in zip(self.parameters, ends)]
        line = [(p, p.copy(), part) for p, part in zip(self.parameters, parts)]  # type: ignore[attr-defined]

        def place(step: float) -> None:
            for parameter, start, part in line:
                parameter[...] = start + part * step

        def at(step: float) -> Point:
            place(step)
            loss, gradient = self._computed(closure)
            return Point(step, float(loss), gradient, _dot(gradient, direction))

        return place, at

    # saving ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """A copy of the state, in the format of PyTorch: the first parameter has the numbers and rows of all."""
        kept = {name: copied(value) for name, value in self.memory.items()}
        return super().state_dict() | {"state": {0: kept} if self.memory["n_iter"] else {}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a saved state and options.  If something does not fit, nothing is changed."""
        saved_groups("LBFGS", state, self.param_groups)
        entries, like = list(state["state"].values()), self.parameters[0]
        found = {"func_evals": 0, "n_iter": 0} | (entries[0] if entries else {})
        size = sum(p.size for p in self.parameters)
        rows = [*found.get("old_dirs", ()), *found.get("old_stps", ()), *[found[n] for n in ROWS if n in found]]
        for row in rows:
            if tuple(row.shape) != (size,):
                raise StateError(f"LBFGS: the state does not fit, and nothing was loaded: a row of it has shape "
                                 f"{tuple(row.shape)}", expect=f"({size},), the parameters in one row")
        super().load_state_dict(state | {"state": {}})
        self.memory = {name: copied(value, like) for name, value in found.items() if name != "al"}


def copied(value: Any, like: Any = None) -> Any:
    """A copy of a part of the state: rows on the device of the parameters, and Python numbers."""
    if isinstance(value, list):
        return [copied(each, like) for each in value]
    if not hasattr(value, "shape"):
        return value
    if not len(value.shape):
        return value.item()
    return value.copy() if like is None else asarray(value, dtype=like.dtype, device=like.device)


def strong_wolfe(at: Callable[[float], Point], here: Point, step: float, size: float, tolerance: float) -> Point:
    """A point along a direction where the loss has fallen and is nearly flat.

    First the step grows until such points lie between two steps; then the two come closer, until their distance times
    `size`, the largest part of the direction, is below the tolerance.
    """
    def high(new: Point, low: Point) -> bool:
        return new.loss > here.loss + FALLS * new.step * here.slope or new.loss >= low.loss

    def flat(new: Point) -> bool:
        return abs(new.slope) <= -FLATTENS * here.slope

    before, new, rounds = here, at(step), 0
    pair = [here, new]
    while rounds < ROUNDS:
        pair = [before, new]
        if high(new, before if rounds > 1 else Point(0.0, math.inf, None, 0.0)):
            break
        if flat(new):
            return new
        if new.slope >= 0:
            break
        step = lowest_of_cubic(before, new, new.step + 0.01 * (new.step - before.step), new.step * 10)
        before, new, rounds = new, at(step), rounds + 1
        pair = [here, new]
    stuck, low = False, int(not pair[0].loss <= pair[1].loss)
    while rounds < ROUNDS and abs(pair[1].step - pair[0].step) * size >= tolerance:
        left, right = sorted([pair[0].step, pair[1].step])
        step, margin = lowest_of_cubic(pair[0], pair[1], left, right), 0.1 * (right - left)
        at_edge = min(right - step, step - left) < margin
        if at_edge and (stuck or not left < step < right):
            step, at_edge = right - margin if right - step < step - left else left + margin, False
        stuck = at_edge
        new, rounds = at(step), rounds + 1
        if high(new, pair[low]):
            pair[1 - low] = new
            low = int(not pair[0].loss <= pair[1].loss)
            continue
        if flat(new):
            return new
        if new.slope * (pair[1 - low].step - pair[low].step) >= 0:
            pair[1 - low] = pair[low]
        pair[low] = new
    return pair[low]


def lowest_of_cubic(one: Point, other: Point, least: float, most: float) -> float:
    """The step where the cubic through two points, with their slopes, is lowest; the middle if there is none."""
    left, right = (one, other) if one.step <= other.step else (other, one)
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.step - right.step)
    square = mean * mean - left.slope * right.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    width = right.slope - left.slope + 2 * root
    if not width:
        return most  # a straight line
    share = (right.slope + root - mean) / width
    return min(max(right.step - (right.step - left.step) * share, least), most)


def _dot(x: Tensor, y: Tensor) -> float:
    return float(total(x * y))


def _size(x: Tensor) -> float:
    return float(largest(absolute(x)))
