"""Unit 09: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question, mistake
from .about import UNIT

ELEMENTWISE = 36  # primitives of minigrad that work element by element; a test counts them
VERSION = "2.13.0"  # of PyTorch, whose operators `python3 course bench operators` counted:
PYTORCH = {
    "operators": 2584, "names": 1348, "in place": 327, "out=": 544, "backward": 209, "kernels": 3723, "gradients": 687,
}


@UNIT.task
class Moved(Prediction):
    """x is 4 MB, gelu(x) is 4 MB, five operations. How many MB does eager mode read and write?"""

    name = "gelu_bytes"
    outcome = "traffic"
    example = "10"
    otherwise = "five operations: each reads its inputs and writes its result. The last one reads two arrays"

    def right(self) -> float:
        return 44

    def explained(self) -> str:
        return "four times 4 + 4, and 8 + 4 for the last one, which reads two arrays. Only 8 of the 44 are needed."

    @mistake("that is what one pass needs: read x, write y. But each of five operations reads and writes")
    def one_pass(self) -> float:
        return 8

    @mistake("five operations of 4 + 4. The last one multiplies two arrays, so it reads 8")
    def one_input_each(self) -> float:
        return 40

    @mistake("that is what is written. Each operation reads its inputs too")
    def only_written(self) -> float:
        return 20

    @mistake("that is each array once, or what is read alone. A value between is written once, and read once more")
    def arrays_once(self) -> float:
        return 24

    @mistake("five operations with two arrays each as input? Four of them have one array and a number")
    def two_inputs_each(self) -> float:
        return 60


@UNIT.task
class OneInMemory(Question):
    """In the picture: one of the four values has to be in memory. How many MB are moved at least?"""

    name = "one_in_memory"
    outcome = "traffic"
    example = "10"
    otherwise = "three of the four in a register, one in memory: read the number below the picture"

    def right(self) -> float:
        return 20

    def explained(self) -> str:
        return "two kernels: 8 and 12, because x is read twice. The last value saves 12: then x is read once."

    @mistake("then all four are in registers. Put one of them into memory")
    def none(self) -> float:
        return 8

    @mistake("then one is in a register. Put three of them into registers")
    def three(self) -> float:
        return 36

    @mistake("that is for two in memory: put one more into a register")
    def two(self) -> float:
        return 28


@UNIT.task
class ByArithmetic(Question):
    """On the page `time`: which kernel is far from the speed of memory?"""

    name = "by_arithmetic"
    outcome = "bound"
    example = '"add"'
    otherwise = "press the button time. Which bar is much longer than the thin bar below it?"

    def read(self, answer: Any) -> Any:
        return answer.strip().lower() if isinstance(answer, str) else answer

    def right(self) -> str:
        return "erf"

    def explained(self) -> str:
        return "erf takes some thirty operations for each number: here arithmetic decides. The others wait for memory."

    @mistake("a multiplication takes less time than to fetch its operands. Look for a bar that is much longer")
    def multiply(self) -> str:
        return "multiply"

    @mistake("an addition takes less time than to fetch its operands. Look for a bar that is much longer")
    def add(self) -> str:
        return "add"


@UNIT.task
class InPlace(Prediction):
    """x has 4 MB. How many MB does `x *= 2` read and write, in place?"""

    name = "in_place"
    outcome = "traffic"
    example = "10"
    otherwise = "each number comes from memory, is multiplied, and goes back to memory"

    def right(self) -> float:
        return 8

    def explained(self) -> str:
        return "4 read and 4 written, as without `=`. In place saves memory (no new array), but no pass."

    @mistake("each number is read, and written back to the same place: that is 4 + 4")
    def once(self) -> float:
        return 4

    @mistake("x is in memory. The processor has to read it, and to write it back")
    def nothing(self) -> float:
        return 0

    @mistake("that would be two arrays read and one written. The 2 is a number, not an array")
    def as_for_two(self) -> float:
        return 12


@UNIT.task
class Small(Prediction):
    """`x + 1` for 10 numbers takes a time. How many times as long does it take for 1,000 numbers: 1, 10 or 100?"""

    name = "small"
    outcome = "bound"
    example = "10"
    tolerance = 0.5
    otherwise = "one of 1, 10 and 100"

    def right(self) -> float:
        return 1

    def explained(self) -> str:
        return "about as long. Finding the kernel, checking shapes and making the result cost more than the numbers."

    @mistake("a hundred times as many bytes. But most of the time is spent before the first byte is read")
    def by_numbers(self) -> float:
        return 100

    @mistake("less than the bytes suggest, but still too much: most of the time does not depend on the size")
    def ten(self) -> float:
        return 10


@UNIT.task
class InSoftmax(Prediction):
    """minigrad has no kernel for softmax. How many operations does it run for one?"""

    name = "in_softmax"
    outcome = "compose"
    example = "2"
    otherwise = "for each row: the largest number, minus it, exp, the sum, one divided by the sum, times it"

    def right(self) -> float:
        return 6

    def explained(self) -> str:
        return "max, subtract, exp, sum, divide, multiply. softmax is a composite of six primitives."

    @mistake("softmax is called once, but it is composed: open it in the picture below")
    def one(self) -> float:
        return 1

    @mistake("exp, sum and a division are the formula. Without subtracting the largest number, exp would overflow")
    def formula(self) -> float:
        return 3

    @mistake("nearly: the division is done as two, 1 / sum for each row, and a product")
    def five(self) -> float:
        return 5

    @mistake("two more: the largest number of each row is found and subtracted, so that exp cannot overflow")
    def four(self) -> float:
        return 4


@UNIT.task
class Pairs(Prediction):
    """A kernel for each chain of two of 36 operations: how many are these?"""

    name = "pairs"
    outcome = "operators"
    example = "72"
    otherwise = "any of 36 operations first, then any of 36"

    def right(self) -> float:
        return ELEMENTWISE**2

    def explained(self) -> str:
        return "36 · 36. For chains of three: 46,656. Too many to write by hand: unit 11 has a compiler."

    @mistake("any of the 36 can follow any of the 36: multiply, not add")
    def doubled(self) -> float:
        return 2 * ELEMENTWISE

    @mistake("that leaves out an operation after itself, such as exp(exp(x))")
    def without_itself(self) -> float:
        return ELEMENTWISE * (ELEMENTWISE - 1)

    @mistake("the order counts: exp(−x) is not −exp(x)")
    def without_order(self) -> float:
        return ELEMENTWISE * (ELEMENTWISE - 1) // 2

    @mistake("two operations in a chain: 36², not 2³⁶")
    def subsets(self) -> float:
        return 2**ELEMENTWISE


@UNIT.task
class PyTorch(Prediction):
    """How many operators does PyTorch 2.13 declare?"""

    name = "pytorch"
    outcome = "operators"
    example = "100"
    tolerance = 0.25
    otherwise = "more than 2,000 and fewer than 3,000"

    def right(self) -> float:
        return PYTORCH["operators"]

    def explained(self) -> str:
        return f"{PYTORCH['operators']:,}, with {PYTORCH['kernels']:,} kernels for kinds of devices."

    @mistake("that is about what minigrad has as primitives. Others are composed of these")
    def as_minigrad(self) -> float:
        return 71

    @mistake("about so many names there are. Most names have variants: in place, with out=, with other arguments")
    def names(self) -> float:
        return PYTORCH["names"]
