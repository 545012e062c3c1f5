"""Unit 09: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question
from .about import UNIT

ELEMENTWISE = 36  # primitives of minigrad that work element by element; a test counts them
VERSION = "2.13.0"  # of PyTorch, whose operators `python3 course bench operators` counted:
PYTORCH = {
    "operators": 2584, "names": 1348, "in place": 327, "out=": 544, "backward": 209, "kernels": 3723, "gradients": 687,
}
IN_BYTES = "these are bytes. The question is how many MB: a MB is a million bytes"


@UNIT.task
class Moved(Prediction):
    """x is 4 MB, gelu(x) is 4 MB, five operations. How many MB does eager mode read and write?"""

    name = "gelu_bytes"
    outcome = "traffic"
    example = "10"
    otherwise = "five operations: each reads its inputs and writes its result. The last one reads two arrays"
    right_value = 44
    why = "four times 4 + 4, and 8 + 4 for the last one, which reads two arrays. Only 8 of the 44 are needed."
    wrong_values = (
        (8, "that is what one pass needs: read x, write y. But each of five operations reads and writes"),
        (12, "that is the last operation alone: it reads x and d, and writes y. Four others run before it"),
        (20, "that is what is written. Each operation reads its inputs too"),
        (24, "that is what is read. Each operation also writes its result. (x, a, b, c, d and y are 24 MB too. But a, "
             "for example, is written by one operation and read by the next one)"),
        (28, "five results are written, but a, b, c and d are also read again, and x is read twice"),
        (36, "nearly: the last operation reads two arrays and writes one. And each of the others moves 8"),
        (40, "five operations of 4 + 4. The last one multiplies two arrays, so it reads 8"),
        (48, "x is read twice, that is right. But the 0.5 is a number, not an array: it costs nothing"),
        (60, "five operations with two arrays each as input? Four of them have one array and a number"),
        (44e6, IN_BYTES),
    )


@UNIT.task
class OneInMemory(Question):
    """In the picture: one of the four values has to be in memory. How many MB are moved at least?"""

    name = "one_in_memory"
    outcome = "traffic"
    example = "10"
    otherwise = "three of the four in a register, one in memory: read the number below the picture"
    right_value = 20
    why = "two kernels: 8 and 12, because x is read twice. The last value saves 12: then x is read once."
    wrong_values = (
        (8, "then all four are in registers. Put one of them into memory"),
        (12, "8 + 4? The value in memory is written and read again, and the second kernel reads x again"),
        (16, "nearly: the value in memory is written and read again. But the second kernel also reads x again"),
        (28, "that is for two in memory: put one more into a register"),
        (36, "then one is in a register. Put three of them into registers"),
        (44, "then all four are in memory. Put three of them into registers"),
        (20e6, IN_BYTES),
    )


@UNIT.task
class ByArithmetic(Question):
    """On the page `time`: which kernel is far from the speed of memory?"""

    name = "by_arithmetic"
    outcome = "bound"
    example = '"add"'
    otherwise = "press the button time. Which bar is much longer than the thin bar below it? Its name is on its left"
    right_value = "erf"
    why = "erf is some thirty steps of arithmetic for each number: here these decide. The others wait for memory."
    wrong_values = (
        ("multiply", "a multiplication takes less time than to fetch its operands. Look for a bar that is much longer"),
        ("add", "an addition takes less time than to fetch its operands. Look for a bar that is much longer"),
    )

    def read(self, answer: Any) -> Any:
        return "erf" if "erf" in str(answer).lower() else answer  # also mg.erf, or its line of code


@UNIT.task
class InPlace(Prediction):
    """x has 4 MB. How many MB does `x *= 2` read and write, in place?"""

    name = "in_place"
    outcome = "traffic"
    example = "10"
    otherwise = "each number comes from memory, is multiplied, and goes back to memory"
    right_value = 8
    why = "4 read and 4 written, as with `x * 2`. No new array is needed, but each number still comes and goes."
    wrong_values = (
        (0, "x is in memory. The processor has to read it, and to write it back"),
        (4, "each number is read, and written back to the same place: that is 4 + 4"),
        (12, "that would be two arrays read and one written. The 2 is a number, not an array"),
        (8e6, IN_BYTES),
    )


@UNIT.task
class Small(Prediction):
    """`x + 1` for 10 numbers takes a time. How many times as long does it take for 1,000 numbers: 1, 10 or 100?"""

    name = "small"
    outcome = "bound"
    example = "10"
    tolerance = 0.5
    otherwise = "one of 1, 10 and 100"
    right_value = 1
    why = "about as long. Finding the kernel, checking shapes and making the result cost more than the numbers."
    wrong_values = (
        (100, "a hundred times as many bytes. But most of the time is spent before the first byte is read"),
        (10, "less than the bytes suggest, but still too much: most of the time does not depend on the size"),
    )


@UNIT.task
class InSoftmax(Prediction):
    """minigrad has no kernel for softmax. How many operations does it run for one?"""

    name = "in_softmax"
    outcome = "compose"
    example = "2"
    otherwise = "for each row: the largest number, minus it, exp, the sum, one divided by the sum, times it"
    right_value = 6
    why = "max, subtract, exp, sum, divide, multiply. softmax is a composite of six primitives."
    wrong_values = (
        (1, "softmax is called once, but it is composed: open it in the picture below"),
        (2, "exp and a division? The sum is an operation too, and two more keep exp from an overflow"),
        (3, "exp, sum and a division are the formula. Without subtracting the largest number, exp would overflow"),
        (4, "two more: the largest number of each row is found and subtracted, so that exp cannot overflow"),
        (5, "nearly: the division is done as two, 1 / sum for each row, and a product"),
        (7, "nearly: exp(x − largest) is computed once, and used above and below the line"),
    )


@UNIT.task
class Pairs(Prediction):
    """A kernel for each chain of two of 36 operations: how many are these?"""

    name = "pairs"
    outcome = "operators"
    example = "72"
    otherwise = "any of 36 operations first, then any of 36"
    right_value = ELEMENTWISE**2
    why = "36 · 36. For chains of three: 46,656. Too many to write by hand: unit 11 has a compiler."
    wrong_values = (
        (2 * ELEMENTWISE, "any of the 36 can follow any of the 36: multiply, not add"),
        (ELEMENTWISE * (ELEMENTWISE - 1), "that leaves out an operation after itself, such as exp(exp(x))"),
        (ELEMENTWISE * (ELEMENTWISE - 1) // 2, "the order counts: exp(−x) is not −exp(x)"),
        (ELEMENTWISE * (ELEMENTWISE + 1) // 2, "the order counts: exp(−x) is not −exp(x)"),
        (2 * ELEMENTWISE**2, "the order is counted already: 36 · 36 has exp after minus, and minus after exp"),
        (2**ELEMENTWISE, "two operations in a chain: 36², not 2³⁶"),
    )


@UNIT.task
class PyTorch(Prediction):
    """How many operators does PyTorch 2.13 declare?"""

    name = "pytorch"
    outcome = "operators"
    example = "100"
    tolerance = 0.25
    otherwise = "more than 2,000 and fewer than 3,000"
    right_value = PYTORCH["operators"]
    why = f"{PYTORCH['operators']:,}, with {PYTORCH['kernels']:,} kernels for kinds of devices."
    wrong_values = (
        (84, "that is about what minigrad has as primitives. Others are composed of these"),
        (PYTORCH["names"], "about so many names there are. Most names have variants: in place, with out=, with other "
                           "arguments"),
        (PYTORCH["kernels"], "about so many kernels there are. An operator has kernels for several kinds of devices"),
    )
