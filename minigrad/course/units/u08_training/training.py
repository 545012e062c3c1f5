"""Unit 08: a student's update rule as an optimizer of the library, and a race of optimizers on the digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .... import optim
from ....core.tensor import Tensor
from ....data import digits
from ....nn.module import Module
from ....ops.creation import asarray
from ....ops.losses import cross_entropy
from ....optim.groups import Group
from ....optim.optimizer import Optimizer
from ....viz.curves import curves
from ....viz.drawing import Drawing
from ....viz.flipbook import Flipbook, Page
from ....viz.images import pictures_of
from ....viz.lessons.readings import half_by_half
from ...digits import BATCH, read_by, tanh_network
from ...feedback import Feedback, NotWritten, stopped
from ...session import SESSION

EPOCHS, WIDE, CHART = 4, 760.0, 240.0


class Options(NamedTuple):
    """The numbers of an update rule; those that it does not have are None."""

    lr: float
    beta: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    eps: float | None = None
    decay: float | None = None


class Update(NamedTuple):
    """A student's update rule: `function(w, g, *kept)`, and with the number of the step if it is `counted`."""

    name: str
    function: Callable[..., Any]
    kept: tuple[str, ...]
    counted: bool
    options: Options


class Yours(Optimizer):
    """An optimizer whose rule is a student's function; it keeps the values in `kept` for each parameter."""

    def __init__(self, parameters: Any, rule: Update) -> None:
        self.rule = rule
        super().__init__(parameters, lr=rule.options.lr)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0} | dict.fromkeys(self.rule.kept, 0.0)

    def update(self, group: Group) -> None:
        steps = group.counted()
        for i, w, g, *kept in group.moving(*self.rule.kept):
            count = [int(steps[i].item())] if self.rule.counted else []
            new = self.rule.function(w, g, *kept, *count)
            for old, value in zip((w, *kept), new, strict=True):
                old[...] = value


class Run(NamedTuple):
    """The loss of each batch of a training, and the digits that were read before and after."""

    losses: list[float]
    before: Any
    after: Any

    @property
    def right(self) -> int:
        """How many digits of the test set the trained network reads correctly."""
        return int((self.after == digits()[1].arrays[1]).sum())


def train_step(model: Module, optimizer: Optimizer, images: Tensor, labels: Tensor) -> Tensor:
    """One step of a training; the loss before the step is returned."""
    optimizer.zero_grad()
    loss = cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


def train(optimizer_of: Callable[[list[Tensor]], Optimizer], epochs: int = EPOCHS) -> Run:
    """Train a small network on the digits, always from the same weights and in the same order."""
    model = tanh_network()
    optimizer, before, losses = optimizer_of(model.parameters()), read_by(model), []
    images, labels = map(asarray, digits()[0].arrays)
    images = images.reshape(len(images), 64)
    with np.errstate(all="ignore"):  # with a wrong rule the numbers may overflow
        for start in [*range(0, len(images), BATCH)] * epochs:
            part = slice(start, start + BATCH)
            losses.append(float(train_step(model, optimizer, images[part], labels[part]).item()))
    return Run(losses, before, read_by(model))


def train_with(rule: Update) -> Run:
    """Train with a student's rule.  An error in the rule is shown at the student's line."""
    try:
        return train(lambda parameters: Yours(parameters, rule))
    except NotImplementedError:
        raise NotWritten(rule.name, "not written yet", "write it first, and run its cell") from None
    except Feedback:
        raise
    except Exception as error:
        raise stopped(rule.name, error) from None


def race(momentum: Update, adam: Update) -> Flipbook:
    """Train with plain descent, with both rules, and with the library's optimizers for the same options."""
    one, two = momentum.options, adam.options
    yours = {"momentum": train_with(momentum), "Adam": train_with(adam)}
    references = {
        "momentum": train(lambda p: optim.SGD(p, one.lr, momentum=one.beta or 0.0)),
        "Adam": train(lambda p: optim.AdamW(p, two.lr, (two.beta1 or 0.0, two.beta2 or 0.0), two.eps or 0.0,
                                            two.decay or 0.0)),
    }
    plain = train(lambda p: optim.SGD(p, one.lr))
    return _pictures(plain, yours, references)


def _pictures(plain: Run, yours: dict[str, Run], references: dict[str, Run]) -> Flipbook:
    labels = digits()[1].arrays[1]
    apart = {name: _apart(yours[name].losses, references[name].losses) for name in yours}
    said = [f"your {name} reads {run.right} of {len(labels)}, {_distance(apart[name])}" for name, run in yours.items()]
    series = {"descent, no momentum": plain.losses}
    for name in yours:
        series |= {f"your {name}": yours[name].losses, f"minigrad's {name}": references[name].losses}
    chart = Drawing(WIDE, CHART)
    points = {name: [(float(i), loss) for i, loss in enumerate(losses, 1)] for name, losses in series.items()}
    curves(chart, (0, 0, WIDE - 190, CHART), points, "loss of each batch")
    pages = [Page(chart, "; ".join(said).capitalize() + ".", (), "curves")]
    for name, run in yours.items():
        before, after = (f"{when} training with your {name}" for when in ("before", "after"))
        pages.append(Page(_walls(run, labels, before, after), f"{before} and after.".capitalize(), (), name))
    title = f"{SESSION.author}: {'; '.join(said)}; descent without momentum reads {plain.right}"
    return Flipbook(title, [pages], cover=0, unit="picture", words=title)


def _walls(run: Run, labels: Any, before: str, after: str) -> Drawing:
    drawing = Drawing(2 * 450 + 40, 0)
    images = pictures_of(digits()[1].arrays[0].reshape(-1, 8, 8), len(labels))
    half_by_half(drawing, 14, images, [(before, labels, run.before), (after, labels, run.after)])
    return drawing


def _apart(one: list[float], other: list[float]) -> float:
    return float(np.nanmax(np.abs(np.subtract(one, other)))) if np.isfinite(one).all() else float("inf")


def _distance(apart: float) -> str:
    return "on the curve of minigrad's" if apart < 1e-3 else f"up to {apart:.2g} away from the curve of minigrad's"
