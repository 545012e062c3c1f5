"""Unit 11: the questions of the notebook."""

from __future__ import annotations

import random
from typing import Any

import minigrad as mg
from minigrad.compile.look.cost import Cost

from ...expressions import value
from ...tasks import Prediction, digest
from ...views.descents import descent
from .about import UNIT
from .equations import both_sides

PAIRS = {  # two rules; the one that holds comes first, and a number that breaks the other one
    ("x + -0.0 -> x", "x - -0.0 -> x"): ("-0.0", "what is -0.0 - -0.0? The second minus sign makes it -0.0 + 0.0"),
    ("x * 1.0 -> x", "x * 0.0 -> 0.0"): ("inf", "infinity times 0 has no value, and -1.0 * 0.0 is -0.0"),
    ("x / 4.0 -> x * 0.25", "x / 3.0 -> x * (1 / 3.0)"): ("5.0", "a quarter is exact in binary. A third is rounded"),
    ("-(-x) -> x", "0.0 - x -> -x"): ("0.0", "what is 0.0 - 0.0, and what is -(0.0)?"),
}
CHAINS = (
    "mg.tanh(x) * 2 + y", "mg.exp(x * y) - x", "mg.sin(x) * x + mg.cos(x)", "(x + y) * (x - y)", "mg.exp(-x) * y + y",
)
ROWS = {  # programs that compute with whole rows
    "(x - x.min(-1, keepdims=True)) / (x.max(-1, keepdims=True) - x.min(-1, keepdims=True))": 2,
    "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)": 3, "x / x.sum(-1, keepdims=True)": 2,
}


@UNIT.task
class WhichZero(Prediction):
    """Which of two rules may a compiler use?"""

    name = "which_zero"

    def vary(self, draw: random.Random) -> None:
        self.pair = draw.choice(list(PAIRS))
        self.number, self.breaks = PAIRS[self.pair]
        self.letters = dict(zip(draw.sample("AB", 2), self.pair))

    @property
    def listed(self) -> str:
        return ", ".join(f"{letter}: `{self.letters[letter]}`" for letter in "AB")

    def right(self) -> str:
        return next(letter for letter, rule in self.letters.items() if rule == self.pair[0])

    def other(self) -> str:
        """The rule that does not hold."""
        return {"A": "B", "B": "A"}[self.right()]

    def read(self, answer: Any) -> Any:
        text = " ".join(str(answer).replace("−", "-").replace("→", "->").split())
        rules = self.letters.items()
        ways = {way: letter for letter, rule in rules for way in (letter, rule, rule.partition(" ->")[0])}
        return text.upper() if text.upper() in ("BOTH", "NEITHER") else ways.get(text, ways.get(text.upper(), answer))

    def given(self) -> dict[str, Any]:
        return {"rules": [self.letters[letter] for letter in "AB"], "both": both_sides}


class ChainTask(Prediction):
    """A question about this student's chain of operations on a million numbers: the same chain in all of them."""

    def vary(self, draw: random.Random) -> None:
        self.code = random.Random(digest("chain", self.student)).choice(CHAINS)

    def chain(self, x: Any, y: Any) -> Any:
        return value(self.code, None, {"x": x, "y": y})

    @property
    def cost(self) -> Cost:
        inputs = [mg.ones(1_000_000), mg.ones(1_000_000)][: 1 + ("y" in self.code)]
        function = self.chain if "y" in self.code else lambda x: self.chain(x, None)
        return mg.jit(function).cost(*inputs)

    def given(self) -> dict[str, Any]:
        return {"cost": self.cost}


@UNIT.task
class FusedMegabytes(ChainTask):
    name = "fused_megabytes"

    def right(self) -> int:
        return self.cost.program.bytes // 1_000_000

    def eager(self) -> int:
        """What moves node by node."""
        return self.cost.eager.bytes // 1_000_000


@UNIT.task
class FusedOperations(ChainTask):
    name = "fused_operations"

    def right(self) -> int:
        return self.cost.program.flops // 1_000_000


@UNIT.task
class ByColumns(Prediction):
    name = "by_columns"

    def vary(self, draw: random.Random) -> None:
        self.code = draw.choice(["x / x.sum(0)", "(x - x.mean(0)) ** 2", "x - x.max()", "x / (x * x).sum(0) ** 0.5"])

    def right(self) -> int:
        return mg.jit(self.function).cost(mg.ones((256, 256))).program.launches

    def function(self, x: Any) -> Any:
        return value(self.code, None, {"x": x})

    def given(self) -> dict[str, Any]:
        return {"code": self.code, "function": self.function}


@UNIT.task
class SoftmaxPasses(Prediction):
    name = "softmax_passes"

    def vary(self, draw: random.Random) -> None:
        self.code = draw.choice(list(ROWS))

    def right(self) -> int:
        return ROWS[self.code]

    def given(self) -> dict[str, Any]:
        return {"descent": lambda: descent(lambda x: value(self.code, None, {"x": x}), mg.ones((64, 32)))}
