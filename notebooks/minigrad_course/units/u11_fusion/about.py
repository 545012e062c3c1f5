"""Unit 11: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

PYTORCH, JAX = "https://github.com/pytorch/pytorch", "https://github.com/jax-ml/jax"

UNIT = Unit(
    number=11,
    name="fusion",
    title="Optimising graphs, and fusion",
    question="A compiler may delete one of x + 0.0 and x − 0.0 from your graph. Which one, and why not the other?",
    minutes=150,
    outcomes={
        "rules": "say which rules of algebra hold for floating-point numbers, and break one that does not",
        "rewrite": "write rewrite rules, and run them in the pipeline of a compiler",
        "common": "write a pass that merges equal computations, and say what it costs in memory",
        "fuse": "divide a graph among kernels within a budget of bytes, and say what fusion saves and what it does not",
        "why": "explain why a compiler does not fuse two operations",
        "change": "change a program so that the compiler fuses what it refused before",
        "lower": "follow softmax from the graph to loops and to machine code",
    },
    prerequisites=("00_start", "05_gradient_functions"),
    misconceptions=(
        Misconception(
            "x + 0 is x, and x * 0 is 0, so a compiler may use the algebra of school.",
            f"A compiler did: {PYTORCH}/issues/189799 (x + 0), {PYTORCH}/pull/186281 (x * 0)",
            "which_zero",
        ),
        Misconception(
            "Merging repeated computations always helps.",
            f"It undoes checkpointing: {JAX}/issues/13999, {JAX}/pull/24062",
            "merged_peak",
        ),
        Misconception(
            "Two programs that compute the same are fused in the same way.",
            f"Filed as a bug: {PYTORCH}/issues/142316; {PYTORCH}/issues/130015",
            "one_kernel",
        ),
        Misconception(
            "Fusion is fast because it saves arithmetic.",
            "H. He: Making Deep Learning Go Brrrr From First Principles (2022), https://horace.io/brrr_intro.html",
            "fused_operations",
        ),
    ),
    seeds=(
        Seed("000: operator fusion: several functions are computed in one pass", "fused_megabytes"),
        Seed("000: fusion minimises reads and writes of memory", "my_kernels"),
        Seed("000: fusion saves memory bandwidth", "fused_megabytes"),
        Seed("000: memory size, and how fusion saves it", "merged_peak"),
        Seed("000: fusion saves operator dispatch", "by_columns"),
        Seed("000: the deferred execution of an optimised version of the graph", "merge_same"),
        Seed("000: nodes represent operations or variables", "merge_same"),
        Seed("001: execution engine: gradient-based computation", "fusion-training"),
        Seed("001: front-end and back-end languages", "row_loops"),
        Seed("001: sub-graphs are discovered and launched as one", "why_not_fused"),
    ),
)
