"""A student's update rule as an optimizer of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.optim.groups import Group
from minigrad.optim.optimizer import Optimizer

from ...digits import EPOCHS, Trained, fitted, in_batches, tanh_network
from ...feedback import at_its_line


class Rule(Optimizer):
    """An optimizer whose step is a student's function: `rule(w, g, *kept)` returns the new w and the new kept values.

    `kept` names the values that are kept for each parameter, which are 0 at first.  With `counted`, the rule gets the
    number of the step too, 1 in the first.

    >>> def momentum(w, g, v):
    ...     v = 0.5 * v + g
    ...     return w - 0.25 * v, v
    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer = Rule([w], momentum, ["v"])
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     w.sum().backward()
    ...     optimizer.step()
    >>> w.tolist()
    [0.375]
    """

    def __init__(self, parameters: Any, rule: Callable[..., Any], kept: Sequence[str], counted: bool = False) -> None:
        self.rule, self.kept, self.counted = rule, list(kept), counted
        super().__init__(parameters, lr=0.0)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0} | dict.fromkeys(self.kept, 0.0)

    def update(self, group: Group) -> None:
        steps = group.counted()
        for i, w, g, *kept in group.moving(*self.kept):
            count = [int(steps[i].item())] if self.counted else []
            new = self.rule(w, g, *kept, *count)
            for old, value in zip((w, *kept), new, strict=True):
                old[...] = value


def train_with(name: str, optimizer_of: Callable[[Any], Optimizer]) -> Trained:
    """Train a small network on the digits.  An error of the student's rule is shown at the student's line."""
    model = tanh_network()
    with at_its_line(name):
        return fitted(model, optimizer_of(model.parameters()), in_batches() * EPOCHS)
