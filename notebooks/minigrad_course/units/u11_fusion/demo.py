"""Unit 11: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...tasks import Prediction
from ...views.descents import descent
from .about import UNIT


class Guess(Prediction):
    """A prediction; `also` holds other ways to write an answer."""

    also: ClassVar[dict[str, Any]] = {}

    def read(self, answer: Any) -> Any:
        text = " ".join(answer.lower().replace("−", "-").split()) if isinstance(answer, str) else answer
        return self.also.get(str(text), text)


@UNIT.task
class WhichZero(Guess):
    """A compiler may delete one of these: x + 0.0 or x - 0.0. Which one?"""

    name, outcome, example, right_value = "which_zero", "rules", '"x + 0.0"', "x - 0.0"
    why = "floats have two zeros. -0.0 + 0.0 is 0.0, so adding zero changes a number. Subtracting it never does."
    otherwise = 'one of "x + 0.0" and "x - 0.0", in quotation marks'
    also: ClassVar = {"x-0.0": "x - 0.0", "x - 0": "x - 0.0", "x+0.0": "x + 0.0", "x + 0": "x + 0.0"}
    wrong_values = (
        ("x + 0.0", "floats have two zeros, 0.0 and -0.0. What is -0.0 + 0.0, and what is -0.0 - 0.0?"),
        ("both", "one of them changes a number: try both with x = -0.0"),
        ("neither", "one of them may go: try both with x = -0.0"),
    )


@UNIT.task
class AfterPasses(Guess):
    """A training step takes 158 operations. After all rewriting passes, are there about half, a few fewer, or more?"""

    name, outcome, example, right_value = "after_passes", "rewrite", '"half"', "more"
    why = "the last pass replaces two lookups by comparisons: more operations, but loops, which can be fused."
    otherwise = 'one of "half", "fewer" and "more"'
    also: ClassVar = {"about half": "half", "a few fewer": "fewer", "less": "fewer", "the same": "same"}
    wrong_values = (
        ("half", "the step was written with care: there is little to simplify. One pass adds operations on purpose"),
        ("fewer", "the algebra removes a few. But the last pass adds some: simple ones, which can be fused"),
        ("same", "not exactly: the algebra removes a few, and the last pass adds others"),
    )


@UNIT.task
class TwinsLeft(Guess):
    """sin(x * 2) + cos(2 * x) + sin(x * 3) takes 8 operations. How many are left after equal ones are merged?"""

    name, outcome, example, right_value = "twins_left", "common", "8", 7
    why = "x * 2 and 2 * x are the same product. sin(x * 2) and sin(x * 3) have different inputs."
    otherwise = "three products, three functions, two sums are eight. Which of them compute the same number?"
    wrong_values = (
        (8, "x * 2 and 2 * x are the same product"),
        (6, "sin(x * 2) and sin(x * 3) are different numbers: their inputs differ"),
        (5, "x * 3 is not x * 2, and its sine is another number"),
    )


@UNIT.task
class MergedPeak(Guess):
    """exp(x) is needed first and last. It is merged. Is the peak of memory then lower, the same, or higher?"""

    name, outcome, example, right_value = "merged_peak", "common", '"lower"', "higher"
    why = "the one exp(x) is kept from the beginning to the end. Computed twice, its memory is free in between."
    otherwise = 'one of "lower", "same" and "higher"'
    also: ClassVar = {"the same": "same", "unchanged": "same", "more": "higher", "less": "lower"}
    wrong_values = (
        ("lower", "there is one array fewer to compute. But how long does the one that is left have to be kept?"),
        ("same", "the merged value is kept until its last reader has run. Before, it was freed in between"),
    )


@UNIT.task
class FusedMegabytes(Guess):
    """tanh(x) * 2 + 1 for 4 MB of numbers moves 24 MB node by node. How many MB does the fused kernel move?"""

    name, outcome, example, right_value = "fused_megabytes", "fuse", "24", 8
    why = "x is read, the result is written: 2 arrays instead of 6, however long the chain is."
    otherwise = "x is read once, 4 MB, and the result is written. What is between them stays in registers"
    also: ClassVar = {"8 mb": 8, "8mb": 8, "24 mb": 24, "4 mb": 4}
    wrong_values = (
        (24, "that is node by node: each operation reads 4 MB and writes 4 MB. Which of them remain?"),
        (4, "that is what is read. The result is written too"),
        (16, "each operation would still write its result. In one kernel the values between stay in registers"),
        (12, "that would be three arrays. Only x and the result have to be in memory"),
        (8_000_000, "right, but in bytes. Write it in MB"),
        (20, "three operations in one kernel: what is left to read and to write at its ends?"),
    )


@UNIT.task
class FusedOperations(Guess):
    """The same chain takes 3 million operations node by node. How many million does the fused kernel compute?"""

    name, outcome, example, right_value = "fused_operations", "fuse", "2", 3
    why = "the arithmetic is the same. Fusion saves traffic and launches, and most of the time is traffic."
    otherwise = "for each number there is still a tanh, a product and a sum"
    wrong_values = (
        (1, "one kernel, but its loop computes three operations for each number"),
        (2, "nothing is left out: for each number a tanh, a product and a sum"),
        (0, "the values between are not stored, but they are still computed"),
        (3_000_000, "right, but the question is: how many million?"),
        (6, "that counts what is read and written. Each number still takes a tanh, a product and a sum"),
    )


@UNIT.task
class ByColumns(Guess):
    """x - x.max(-1, keepdims=True) takes one kernel. How many does x - x.max(0) take?"""

    name, outcome, example, right_value = "by_columns", "why", "1", 2
    why = "the largest number of a column is known only after the last row. So a second kernel reads x again."
    otherwise = "the largest number of a column is known only after the last row: how many times must x be read?"
    wrong_values = (
        (1, "the largest number of a row is known at the end of the row. And that of a column?"),
        (3, "one finds the largest numbers, one subtracts them. No third one is needed"),
        (256, "one kernel handles all columns together"),
        (257, "one kernel finds the largest numbers of all 256 columns: it goes through the table once"),
        (0, "the compiler makes at least one kernel of what is not a library call"),
    )


@UNIT.task
class DraggedAlone(Guess):
    """Drag multiply_1 alone into a new kernel. Why is that refused?"""

    name, outcome, example, right_value = "dragged_alone", "fuse", '"library"', "circle"
    why = "the new kernel needs tanh from the old one, and the old one needs the product: each waits for the other."
    otherwise = 'one of "circle", "rows" and "library": read the sentence above the kernels when you drag'
    also: ClassVar = {"cycle": "circle", "a circle": "circle"}
    wrong_values = (
        ("rows", "all three have the same number of elements, and none of them is reduced"),
        ("library", "a product is a loop of the compiler. Which kernel would have to wait for which?"),
    )


@UNIT.task
class SoftmaxPasses(Guess):
    """In the loops of softmax: how many loops go over a row?"""

    name, outcome, example, right_value = "softmax_passes", "lower", "1", 3
    why = "the largest number, the sum of the exponentials, the quotients. One launch is not one pass."
    otherwise = "choose `loops` above the picture, and count the lines that begin with `for` and r0, r1, ..."
    wrong_values = (
        (1, "one kernel, but the sum needs the maximum first, and the quotients need the sum"),
        (2, "the exponentials and their sum share a loop; the maximum has its own, and the quotients too"),
        (4, "one of the four goes over the rows. How many are inside of it?"),
        (6, "that is the number of operations. Several share a loop"),
        (5, "each of these values is a line of a loop. How many lines begin with `for`, and r0, r1, ...?"),
    )

    def given(self) -> dict[str, Any]:
        return {"descent": descent}
