"""Unit 02: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=2,
    name="arrays",
    title="Arrays: one buffer, many views",
    question="A picture has 64 numbers. All its windows of 3 × 3, as one array, have 324. "
    "How many numbers are copied to make this array?",
    minutes=115,
    outcomes={
        "blas": "say what a numerical library does better than a Python loop, and what each call costs",
        "control": "say when control leaves the interpreter, when it returns, and how many functions run at once",
        "aliases": "predict which names change when an array is written in place",
        "versions": "explain a damaged gradient by the version counter of a buffer, and repair the program",
        "strides": "describe a view by shape, strides and offset, and write views that the library then uses",
        "windows": "write a convolution as windows and one matrix product",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "Arrays are values: b = a, or b = a[1:], is a second array.",
            "Filed as bugs: https://github.com/numpy/numpy/issues/21439, https://github.com/numpy/numpy/issues/19150, "
            "https://github.com/numpy/numpy/issues/12487",
            "same_buffer",
        ),
        Misconception(
            "b = b * 2 and b *= 2 are the same.",
            "https://github.com/numpy/numpy/issues/18094",
            "rebound",
        ),
        Misconception(
            "An array operation is quicker than Python, however small the array is.",
            "https://github.com/rougier/from-python-to-numpy/issues/74, https://github.com/numpy/numpy/issues/8532",
            "arrays-race",
        ),
        Misconception(
            "reshape never copies (or: always copies).",
            "https://github.com/ml-explore/mlx/issues/466, https://github.com/nv-legate/cupynumeric/issues/1154",
            "copies",
        ),
        Misconception(
            "A broadcast array has memory for each of its numbers, so each can be written alone.",
            "One number of 1 became 21: https://github.com/pytorch/pytorch/issues/4664",
            "owned_bytes",
        ),
        Misconception(
            "The error about in-place changes is a whim of the framework, and .data or detach() is the way around it.",
            "https://github.com/pytorch/pytorch/issues/6990, https://github.com/pytorch/pytorch/issues/197054",
            "refilled",
        ),
    ),
    seeds=(
        Seed("002: NumPy is a numerical linear algebra library", "arrays-ladder"),
        Seed("002: core component: a numerical linear algebra library", "convolve"),
        Seed("002: arrays are objects that the library owns", "same_buffer"),
        Seed("002: all arithmetic on arrays goes through the library", "library_calls"),
        Seed("002: the library calls an optimised function for each operation", "loop_times"),
        Seed("002: the function runs outside the Python interpreter", "arrays-there-and-back"),
        Seed("002: control returns to Python when the function is finished", "clock"),
        Seed("002: by default one such function runs at a time", "clock"),
        Seed("002: arrays are mutable", "rebound"),
        Seed("002: an array can have several references", "who_changes"),
    ),
)
