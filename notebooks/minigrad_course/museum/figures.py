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
    heading = "Two switches"
    thread = Thread("Why not use torch.no_grad when evaluating test data?",
                    "https://github.com/codertimo/BERT-pytorch/issues/92")
    taught_in = ("08_training",)
    code = (
        "model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))\nmodel.eval()\nwith "
        "mg.no_grad():\n"
        "    model(x)"
    )
    ask = (
        'Which of the two causes each effect? The arrows begin at the wrong box. **Put "eval" or "no_grad" for '
        'each.**'
    )
    broken: ClassVar[dict[str, str]] = {"dropout": "no_grad", "batch_norm": "no_grad", "graph": "no_grad"}
    clue = "no_grad() takes no model: how would it reach a layer inside of one? model.eval() reaches its layers"
    said = "model.eval() leads to dropout and batch norm, no_grad() leads to the graph that is not recorded."
    why = (
        "eval() sets `training` in each layer; no_grad() sets whether operations are recorded. Neither does the "
        "other's work."
    )
    otherwise = "which of them reaches the layers of a model, and which one the recording of operations?"
    wrong_values = (
        ({"dropout": "eval", "batch_norm": "eval", "graph": "eval"},
         "right for the layers. But after eval() gradients can still be computed: operations are recorded"),
        ({"dropout": "no_grad", "batch_norm": "no_grad", "graph": "eval"}, "the other way round, all three"),
        ({"dropout": "eval", "batch_norm": "no_grad", "graph": "no_grad"},
         "right for dropout. Batch norm is a layer too, and reads the same attribute, `training`"),
        ({"dropout": "no_grad", "batch_norm": "eval", "graph": "no_grad"},
         "right for batch norm. Dropout is a layer too, and reads the same attribute, `training`"),
        ({"dropout": "eval", "batch_norm": "no_grad", "graph": "eval"},
         "right for dropout alone: batch norm is a layer too"),
        ({"dropout": "no_grad", "batch_norm": "eval", "graph": "eval"},
         "right for batch norm alone: dropout is a layer too"),
    )

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
    heading = "Sum or mean of four workers"
    thread = Thread("same behavior in multi-gpu DataParallel vs single GPU", "https://github.com/pytorch/pytorch/issues/5778")
    taught_in = ("13_distributed",)
    code = (
        "# the gradient of each row; a worker's loss is the mean of its rows\n"
        + "\n".join(f"worker_{i} = {list(rows)}".ljust(34) + f"# mean {sum(rows) / len(rows):g}" for i, rows in
                    enumerate(ROWS, 1))
        + "\ngradient = sum(factor * mean for factor, mean in zip(factors, means))"
    )
    ask = (
        "The dashed line is the gradient on one machine: the mean over all ten rows. The picture adds the four "
        "means, and "
        "is far off. **Which factor must each worker's mean have?**"
    )
    broken = [1, 1, 1, 1]
    clue = "together 17, and the mean over all rows is 3.5. How many of the ten rows does each mean stand for?"
    said = "The factors are 0.3, 0.3, 0.3 and 0.1: the bars together reach the dashed line."
    why = "each factor is the worker's share of the ten rows. With equal shares, 1/4 each, it is the mean of the means."
    otherwise = "the mean over all rows is the sum of the ten, divided by 10. How many rows does each mean stand for?"
    wrong_values = (
        ([0.25, 0.25, 0.25, 0.25],
         "the mean of the means counts the one row of worker 4 three times as much as other rows. Right for "
         "equal parts"),
        ([3, 3, 3, 1], "that is the sum over all ten rows. Divide by their number"),
        ([0.1, 0.1, 0.1, 0.1], "a mean stands for three rows with workers 1 to 3, and for one with worker 4"),
        ([1 / 3, 1 / 3, 1 / 3, 1], "these divide by the rows once more: the means have done this already"),
        ([1, 1, 1, 1 / 3], "in the right proportion. But these add up to 3⅓, and shares of one whole add up to 1"),
        ([0.3, 0.3, 0.3, 0.3], "right for workers 1 to 3. Worker 4 has one row of ten"),
        ([0.75, 0.75, 0.75, 0.25], "these shares add up to 2.5. Shares of one whole add up to 1"),
    )

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
    heading = "The same numbers, two sums"
    thread = Thread("Sum of entries of a matrix depends on row ordering", "https://github.com/numpy/numpy/issues/9723")
    taught_in = ("11_fusion", "12_parallelism")
    code = (
        "a, b, c, d = mg.asarray([1e8, 1.0, -1e8, 1.0])     # float32\none_by_one = ((a + b) + c) + d\n"
        "in_pairs = (a + b) + (c + d)"
    )
    ask = (
        "The picture gives both sums as 2, as on paper. In float32 the neighbours of 100,000,000 are 8 apart, "
        "and a sum is "
        "rounded to the nearest. **What does the library compute?**"
    )
    broken: ClassVar[dict[str, float]] = {"one_by_one": 2, "in_pairs": 2}
    clue = "a + b would be 100,000,001, which is not a float32. What is the nearest one?"
    said = "One by one gives 1, in pairs gives 0."
    why = (
        "a + b is rounded to a, and c + d to c: each loses a 1. One by one, the second 1 is added to 0, and is "
        "kept."
    )
    otherwise = "go through the additions one at a time, and round each: 100,000,001 becomes 100,000,000"
    wrong_values = (
        ({"one_by_one": 0, "in_pairs": 0}, "right in pairs. One by one, d is added last: 0 + 1 needs no rounding"),
        ({"one_by_one": 1, "in_pairs": 1}, "right one by one. In pairs, c + d is rounded too"),
        ({"one_by_one": 0, "in_pairs": 1}, "the other way round: in which of the two is d added to 0?"),
        ({"one_by_one": 2, "in_pairs": 0}, "right in pairs. One by one, a + b is rounded, and b is lost"),
        ({"one_by_one": 1, "in_pairs": 2}, "right one by one. In pairs, both 1s are added to something large"),
    )

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
