"""Unit 00: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=0,
    name="start",
    title="Start: one number, one picture",
    question="x becomes 1.01. By about how much does y = a * a + a rise, where a = 2 * x?",
    minutes=35,
    outcomes={
        "contributions": "say which contributions a gradient is the sum of",
        "order": "say in which order the values pass gradients back, and what goes wrong in another order",
        "rule": "write the gradient rule of a product, and explain its three arguments",
    },
    misconceptions=(
        Misconception(
            "One per cent more x makes one per cent more y (here 0.06).",
            "D. De Bock, W. Van Dooren, D. Janssens, L. Verschaffel: Improper use of linear reasoning. Educational "
            "Studies in Mathematics 50 (2002), 311-334. https://doi.org/10.1023/A:1021205413749",
            "rise",
        ),
        Misconception(
            "A gradient that has not been computed yet is 0.",
            "A picture drawn before backward() showed zeros, and people asked what was missing: "
            "https://github.com/karpathy/nn-zero-to-hero/issues/40, "
            "https://github.com/karpathy/nn-zero-to-hero/pull/80",
            "empty",
        ),
        Misconception(
            "Each value can pass a gradient back as soon as one contribution has come to it.",
            "https://github.com/karpathy/micrograd/issues/68, https://github.com/karpathy/micrograd/issues/21",
            "early",
        ),
    ),
    seeds=(
        Seed("001: gradients are computed automatically by the chain rule", "numbers"),
        Seed("001: an example of automatic differentiation", "order"),
        Seed("001: the gradient function takes the gradient of the final output by its output", "mul_grad"),
        Seed("002: reverse mode goes backward through the computation", "order"),
    ),
)
