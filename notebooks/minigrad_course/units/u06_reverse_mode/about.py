"""Unit 06: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...orders import MICROGRAD
from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=6,
    name="reverse_mode",
    title="Reverse mode: one walk back",
    question="Thirty doublings make 2³⁰ paths from y back to x. How many contributions does backward() compute?",
    minutes=120,
    outcomes={
        "why": "say what reverse mode fixes, what it computes, and why one backward pass is enough for all inputs",
        "order": "give an order for the backward pass, and find the damage of a wrong order",
        "walk": "write the backward pass that accumulates gradients, and run it in the engine of a framework",
        "kept": "say which values are kept for the backward pass, how many bytes they take, and when they are freed",
        "seeds": "take gradients of an output of several numbers, one backward pass for each number",
        "diagnose": "recognise a lost accumulation, a wrong order and a stale value by their effects",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "The chain rule adds up over all paths, so the time of the backward pass grows with the number of paths.",
            f"{MICROGRAD}/issues/91, {MICROGRAD}/issues/81: engines that walk every path. C. Olah: Calculus on "
            "Computational Graphs (2015), https://colah.github.io/posts/2015-08-Backprop/",
            "paths",
        ),
        Misconception(
            "No topological order is needed: go on to each input at once, depth first.",
            ", ".join(f"{MICROGRAD}/{thread}" for thread in (
                "issues/96", "issues/68", "issues/67", "issues/21", "pull/64", "pull/23", "issues/91", "issues/2")),
            "two_ways",
        ),
        Misconception(
            "A gradient can be added to in place, because no other value shares it.",
            "Another value shared it, in a framework too: https://github.com/Oneflow-Inc/oneflow/pull/9497",
            "walk_back",
        ),
        Misconception(
            "backward() can be called as often as one likes.",
            "https://discuss.pytorch.org/t/6795: one of the forum's most read threads",
            "again",
        ),
        Misconception(
            "backward() of several numbers gives the derivative of each.",
            "https://discuss.pytorch.org/t/116079, https://forums.fast.ai/t/pytorch-gradient-runtimeerror/99118",
            "from_ones",
        ),
    ),
    seeds=(
        Seed("002: reverse mode fixes one output ℓ over ℝ", "walks"),
        Seed("002: reverse mode computes ∂ℓ/∂y for each value y", "walk_back"),
        Seed("002: reverse mode goes backward through the computation", "backward_order"),
        Seed("002: core component: a backpropagation engine", "walk_back"),
        Seed("001: support for automatic differentiation", "walk_back"),
        Seed("001: gradients are computed automatically by the chain rule", "paths"),
        Seed("001: the gradient function takes the inputs of its primitive", "kept"),
        Seed("001: the gradient function takes the output of its primitive", "kept"),
        Seed("000: memory size, and how fusion saves it", "kept"),
    ),
)
