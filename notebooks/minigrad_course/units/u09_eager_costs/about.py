"""Unit 09: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=9,
    name="eager_costs",
    title="What eager costs: reads, computes, writes",
    question="gelu reads 4 MB and returns 4 MB. How many MB does eager mode move?",
    minutes=140,
    outcomes={
        "traffic": "count the bytes that a program reads and writes in eager mode, before it runs",
        "bound": "say whether dispatch, memory or arithmetic decides how long an operation takes",
        "fuse": "write a kernel that computes several operations in one pass, and its gradient in another",
        "register": "put two operators into an engine, and say what they save and what they cost",
        "compose": "compose softmax and layer norm from primitives, and predict their cost",
        "operators": "explain why a library that fuses by hand has thousands of operators",
    },
    prerequisites=("00_start", "05_gradient_functions"),
    misconceptions=(
        Misconception(
            "The arithmetic decides how long an operation takes, so a formula costs the same however it is written.",
            "Written as several operations, GELU took several times as long as one kernel: "
            "https://github.com/huggingface/transformers/pull/2988. The same for layer norm: "
            "https://github.com/huggingface/nanotron/issues/86",
            "gelu_bytes",
        ),
        Misconception(
            "An operation in place moves fewer bytes.",
            "A compiler's own measurement had counted them once: https://github.com/pytorch/pytorch/pull/97057",
            "in_place",
        ),
        Misconception(
            "An array of half the size takes half the time.",
            "https://github.com/nomonosound/numpy-minmax/issues/16, https://github.com/numpy/numpy/pull/21463",
            "small",
        ),
        Misconception(
            "A library has as many operators as there are functions in its documentation.",
            "PyTorch had 2,055 in 2021: https://dev-discuss.pytorch.org/t/373",
            "pytorch",
        ),
    ),
    seeds=(
        Seed("000: each operation reads from memory, computes, and writes to memory", "gelu_bytes"),
        Seed("000: eager mode needs more memory bandwidth", "eager_bytes"),
        Seed("000: operator fusion: several functions are computed in one pass", "gelu"),
        Seed("000: fusion saves operator dispatch", "small"),
        Seed("000: fusion saves memory bandwidth", "step_bytes"),
        Seed("000: memory size, and how fusion saves it", "eager_costs-gpt"),
        Seed("000: fusing by hand makes operators: PyTorch came to have more than 2,000", "pytorch"),
        Seed("001: front-end and back-end languages", "eager_costs-languages"),
        Seed("000: Triton", "eager_costs-languages"),
        Seed("001: operators have kernels for CPUs and GPUs", "kernels_needed"),
        Seed("001: launching kernels from Python often has a large overhead", "small"),
        Seed("002: the library calls an optimised function for each operation", "in_softmax"),
    ),
)
