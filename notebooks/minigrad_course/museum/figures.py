"""Pictures of numbers: two modes of a network, the sum of several workers, and sums of floats."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from minigrad import nn
from minigrad.ops.creation import asarray, ones
from minigrad.viz.drawing import Drawing
from minigrad.viz.numbers import short

from .broken_picture import BrokenPicture, Thread
from .drawn import Plan, bars

EFFECTS = {
    "dropout": "dropout drops nothing", "batch_norm": "batch norm: stored statistics", "graph": "nothing is recorded",
}


class Switches(BrokenPicture):
    """A user misses `torch.no_grad()` in the evaluation of a network: without it, dropout would still be applied. Would
    it not be with it?"""

    name = "switches"
    thread = Thread("Why not use torch.no_grad when evaluating test data?",
                    "https://github.com/codertimo/BERT-pytorch/issues/92")
    taught_in = ("08_training",)
    code = (
        "model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))\nmodel.eval()\nwith "
        "mg.no_grad():\n"
        "    model(x)"
    )
    broken: ClassVar[dict[str, str]] = {"dropout": "no_grad", "batch_norm": "no_grad", "graph": "no_grad"}

    def read(self, answer: Any) -> dict[str, str]:
        return {key: str(each).strip().lower().partition("()")[0].rpartition(".")[2] for key, each in answer.items()}

    def other_form(self, answer: Any) -> str | None:
        form = super().other_form(answer)
        if form is None and not set(self.read(answer).values()) <= {"eval", "no_grad"}:
            return 'each is "eval" or "no_grad"'
        return form

    def right(self) -> dict[str, str]:
        """Which effects eval() alone has in the library: the others are those of no_grad()."""
        x = asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))

        dropout, norm = nn.Dropout(0.5).eval(), nn.BatchNorm1d(4).eval()
        out = norm(x)
        by_eval = {
            "dropout": bool((dropout(ones(100)).numpy() == 1).all()),
            "batch_norm": np.allclose(out.detach().numpy(), x.numpy(), atol=1e-3),  # the stored mean is 0
            "graph": not out.requires_grad,
        }
        return {name: "eval" if by_eval[name] else "no_grad" for name in EFFECTS}

    def draw(self, value: dict[str, str]) -> Plan:
        plan = Plan(160)
        plan.box("model.eval()", 90, 40, look="given", width=150)
        plan.box("mg.no_grad()", 90, 120, look="given", width=150)
        for i, (name, effect) in enumerate(EFFECTS.items()):
            plan.box(effect, 470, 25 + 55 * i, width=260)
            plan.link("model.eval()" if value[name] == "eval" else "mg.no_grad()", effect)
        return plan


ROWS = ((2.0, 4.0, 6.0), (1.0, 1.0, 1.0), (3.0, 3.0, 6.0), (8.0,))  # the gradients of the rows of each worker


class Factors(BrokenPicture):
    """On one GPU a network trains, on four it behaves differently. Are the gradients of the workers added, or is their
    mean taken? A user asks for the same behaviour in both."""

    name = "factors"
    thread = Thread("same behavior in multi-gpu DataParallel vs single GPU", "https://github.com/pytorch/pytorch/issues/5778")
    taught_in = ("13_distributed",)
    code = (
        "# the gradient of each row; a worker's loss is the mean of its rows\n"
        + "\n".join(f"worker_{i} = {list(rows)}".ljust(34) + f"# mean {sum(rows) / len(rows):g}" for i, rows in
                    enumerate(ROWS, 1))
        + "\ngradient = sum(factor * mean for factor, mean in zip(factors, means))"
    )
    broken = [1, 1, 1, 1]

    def is_right(self, value: list[float]) -> bool:
        return bool(np.allclose(value, self.right(), atol=0.005))

    def right(self) -> list[float]:
        total = sum(map(len, ROWS))
        return [len(rows) / total for rows in ROWS]

    def alone(self) -> float:
        """The gradient on one machine, by the library: the loss is the mean of `row * w`."""
        w = asarray(1.0, requires_grad=True)
        (asarray([gradient for rows in ROWS for gradient in rows]) * w).mean().backward()
        assert w.grad is not None
        return float(w.grad.item())

    def together(self, factors: list[float]) -> float:
        """The gradient of all workers with these factors."""
        return float(sum(factor * np.mean(rows) for factor, rows in zip(factors, ROWS)))

    def problem(self, value: list[float]) -> str:
        return f"together {short(self.together(value))}, and one machine computes {short(self.alone())}"

    def draw(self, value: list[float]) -> Drawing:
        means = [float(np.mean(part)) for part in ROWS]
        rows = [(f"worker {i}", factor * mean, "there", f"{short(factor)} · {short(mean)}")
                for i, (factor, mean) in enumerate(zip(value, means), 1)]
        total = self.together(value)
        return bars([*rows, ("together", total, "back", short(total))], mark=self.alone())


NUMBERS = (1e8, 1.0, -1e8, 1.0)


class TwoSums(BrokenPicture):
    """The rows of a matrix are put into another order, and the sum of all its entries changes in the last digits. A
    user reports a bug: a sum cannot depend on the order."""

    name = "two_sums"
    thread = Thread("Sum of entries of a matrix depends on row ordering", "https://github.com/numpy/numpy/issues/9723")
    taught_in = ("11_fusion", "12_parallelism")
    code = (
        "a, b, c, d = mg.asarray([1e8, 1.0, -1e8, 1.0])     # float32\none_by_one = ((a + b) + c) + d\n"
        "in_pairs = (a + b) + (c + d)"
    )
    broken: ClassVar[dict[str, float]] = {"one_by_one": 2, "in_pairs": 2}

    def right(self) -> dict[str, float]:
        a, b, c, d = (asarray(np.float32(each)) for each in NUMBERS)
        return {"one_by_one": (((a + b) + c) + d).item(), "in_pairs": ((a + b) + (c + d)).item()}

    def draw(self, value: dict[str, float]) -> Plan:
        plan, known = Plan(230), self.is_right(value)
        a, _, c, _ = NUMBERS
        trees = {  # the additions of each sum: a name, its place, its inputs, and the library's result
            "one_by_one": (
                ("+1", 60, 85, "ab", a), ("+2", 125, 142, ("+1", "c"), 0.0), ("+3", 195, 200, ("+2", "d"), 1.0)),
            "in_pairs": (("+1", 60, 100, "ab", a), ("+2", 205, 100, "cd", c), ("+3", 132, 190, ("+1", "+2"), 0.0)),
        }
        for left, (name, additions) in zip((0.0, 335.0), trees.items()):
            for i, (letter, number) in enumerate(zip("abcd", NUMBERS)):
                plan.box(f"{letter} {name}", left + 33 + 69 * i, 24, look="given", width=62, name=_written(number))
            for key, x, y, inputs, result in additions:
                last = key == "+3"
                words = _written(value[name]) if last else _written(result) if known else "+"
                plan.box(f"{key} {name}", left + x, y, width=86 if last else 62, name=words,
                         look="chosen" if last else "plain")
                for each in inputs:
                    plan.link(f"{each} {name}", f"{key} {name}")
            at = left + (60 if name == "one_by_one" else 245)
            plan.text(at, 204, name, size=13, code=True, anchor="middle", fill="quiet")
        return plan


def _written(number: float) -> str:
    """A number for a small box: `1e8`."""
    return f"{number:.0e}".replace("e+0", "e").replace("-", "−") if abs(number) > 1000 else short(number)
