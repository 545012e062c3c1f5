"""Unit 02: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...predicting import Choice
from ...tasks import Prediction, Question
from .about import UNIT
from .crossings import SIDE


class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()


@UNIT.task
class WindowNumbers(Guess):
    """A picture has 64 numbers, its 36 windows of 3 × 3 have 324. How many are copied to make the array of windows?"""

    name = "window_numbers"
    outcome = "windows"
    example = "100"
    right_value = 0
    why = "the array of windows reads the 64 numbers where they are. How, is the question of this notebook."
    otherwise = "a whole number. Must a number that is in several windows be in memory several times?"
    wrong_values = (
        (324, "that is how many numbers the windows have together. Must each have a place of its own in memory?"),
        (260, "that is 324 − 64, the numbers that are there several times. Must they be in memory several times?"),
        (64, "the 64 numbers are in memory already. Must they be moved?"),
    )


@UNIT.task
class LoopTimes(Choice, Prediction):
    """Two matrices of 64 × 64: how many times as long as `a @ b` does a Python loop take?"""

    name = "loop_times"
    outcome = "blas"
    right_value = "3000"
    why = "thousands of times. The ladder below measures your machine."
    otherwise = "one of the three texts, in quotation marks"
    options = {
        "3": "a compiled loop alone gains more. The library also computes several products at once, from near memory",
        "30": "that is about what a compiled loop gains. BLAS also computes 8 or 16 products with one instruction",
        "3000": "",
    }

    def read(self, answer: Any) -> Any:
        return super().read(str(answer).replace(",", "").replace(".0", ""))


@UNIT.task
class LibraryCalls(Guess):
    """`row @ column` for each number of the 64 × 64 result: how often does Python call the library?"""

    name = "library_calls"
    outcome = "blas"
    example = "100"
    right_value = SIDE**2
    why = "one call for each of the 64 · 64 numbers of the result. The library does the same arithmetic as before."
    otherwise = "the result has 64 · 64 numbers, and there is one call for each"
    wrong_values = (
        (SIDE, "that is one call for each row. Here there is one for each number of the result"),
        (SIDE**3, "that is the number of products x · y. A call of `row @ column` computes 64 of them"),
        (1, "that is a @ b. Here Python calls once for each number of the result"),
    )


@UNIT.task
class Clock(Guess):
    """Ten calls; the library needs 100 µs for each, and Python 5 µs for each line. When has the tenth line run?"""

    name = "clock"
    outcome = "control"
    tolerance = 0.001
    example = "300"
    right_value = 1050
    why = "Python's 5 µs, then 100 µs in the library, ten times. On the CPU, one function runs at a time."
    otherwise = "Python waits in each call until the library returns. What is one line, and what are ten?"
    wrong_values = (
        (50, "that is Python alone, as if it did not wait. On the CPU a call returns when its function has finished"),
        (1000, "that is the library alone. Before each call Python needs 5 µs, and nothing else runs meanwhile"),
        (1005, "that is as if Python prepared the next call while the library works. It waits in the call"),
        (105, "that is one line. There are ten, one after the other"),
        (945, "that is when nine lines have run. The tenth needs its time too"),
        (950, "that is when Python calls for the tenth time. The line has run when the library has returned"),
        (150, "that is as if the ten calls ran at the same time. By default, one function runs at a time"),
    )


@UNIT.task
class SameBuffer(Guess):
    """a = [1, 2, 3]; b = a; c = a[1:]; d = a + 0; c += 10. What are a[1], b[1] and d[1]?"""

    name = "same_buffer"
    outcome = "aliases"
    example = "[5, 6, 7]"
    right_value = [12, 12, 2]
    why = "a, b and c are in one buffer; a + 0 is the result of an operation, and has a buffer of its own."
    otherwise = "three numbers in brackets. a[1] is 2 at first. Is c a copy of a part of a?"
    wrong_values = (
        ([2, 2, 2], "a slice is not a copy, as it is with lists: c is a view, and += writes into the memory of a"),
        ([12, 2, 2], "right for a and d. b = a makes no second array: b is another name for the same one"),
        ([12, 12, 12], "right for a and b. a + 0 is computed, and the result has a buffer of its own"),
        ([2, 12, 2], "a and b are two names of one array: they always agree"),
        ([11, 11, 1], "these are the places 0. a[1] is the first number of c"),
        ([13, 13, 3], "these are the places 2. Places are counted from 0: a[1] is 2 at first"),
    )


@UNIT.task
class Rebound(Guess):
    """b = a, then b = b * 2; and b = a, then b *= 2. a[0] is 1 at first. What is it after each?"""

    name = "rebound"
    outcome = "aliases"
    example = "[5, 6]"
    right_value = [1, 2]
    why = "b * 2 makes a new array, and the name b now refers to this one. b *= 2 writes into the array."
    otherwise = "two numbers in brackets: a[0] after the first program, and after the second"
    wrong_values = (
        ([2, 2], "b = b * 2 computes a new array, and gives the name b to it. a keeps the old one"),
        ([1, 1], "b *= 2 writes into the array that b refers to, and that is the array of a"),
        ([2, 1], "the other way round: which of the two lines makes a new array?"),
    )


@UNIT.task
class TurnedStrides(Question):
    """On the bench: which two steps turn the table round, so that its first row is 0, 3, 6?"""

    name = "turned_strides"
    outcome = "strides"
    example = "[2, 5]"
    mistakes = ()
    right_value = [1, 3]
    why = "the strides have changed places. The buffer is the same, and no number has moved."
    otherwise = "move both sliders until the first row is 0, 3, 6 and the second 1, 4, 7. The step down comes first"
    wrong_values = (
        ([3, 1], "that is where the sliders began: the first row is 0, 1, 2"),
        ([3, 3], "the second row has to begin with 1: how far is that from 0 in the buffer?"),
    )


@UNIT.task
class OwnedBytes(Guess):
    """mg.broadcast_to of one float32 number to (1000, 1000): how many bytes do its numbers take in memory?"""

    name = "owned_bytes"
    outcome = "strides"
    example = "1000"
    right_value = 4
    why = "both strides are 0, so all million places read the one number. It cannot be written: which place is meant?"
    otherwise = "a float32 number takes 4 bytes. How many different numbers are there?"
    wrong_values = (
        (4_000_000, "that is what a copy would take. All numbers are the same one: which strides read it everywhere?"),
        (1_000_000, "that is the number of places. How many numbers have to be in memory, and a float32 has 4 bytes"),
        (0, "nothing new is made, that is right, but the one number itself has its 4 bytes"),
        (1, "one number, that is right. A float32 has 4 bytes"),
    )


@UNIT.task
class Copies(Guess):
    """Which must copy? A `a.T`, B `a.reshape(-1)`, C `a.T.reshape(-1)`, D `a[::2]`, E `a[[0, 2, 1]]`"""

    name = "copies"
    outcome = "strides"
    example = '["A"]'
    right_value = ["C", "E"]
    why = "no step leads from number to number in C: 0, 4, 8, 1 … And none leads from row to row in E: 0, 2, 1."
    otherwise = "for each letter: is there one step for each axis that leads through the numbers in memory?"
    wrong_values = (
        (["E"], "E is right. In C the numbers come in the order 0, 4, 8, 1, 5 …: which one step leads through them?"),
        (["C"], "C is right. E reads the rows 0, 2, 1: which one step leads from each of them to the next?"),
        (["A", "C", "E"], "C and E are right. a.T only exchanges the strides"),
        (["B", "C", "E"], "C and E are right. In B the numbers come in the order of memory: the step is 1"),
        (["C", "D", "E"], "C and E are right. In D every second row is read: the stride of the rows is doubled"),
        (["A", "B", "C", "D", "E"], "most of these only change shape and strides. Which order has no constant step?"),
        ([], "two of them must. In which order do the numbers of C come, and which step leads through them?"),
    )

    def read(self, answer: Any) -> Any:
        given = answer.replace(",", " ").split() if isinstance(answer, str) else answer
        given = list(given[0]) if isinstance(given, list) and len(given) == 1 and len(str(given[0])) > 1 else given
        return sorted(str(each).strip().upper() for each in given) if isinstance(given, list | tuple | set) else given


@UNIT.task
class ChangedInBetween(Choice, Prediction):
    """y = (w * x).sum(); x += 1; y.backward(). What happens? A, B or C"""

    name = "changed_in_between"
    outcome = "versions"
    right_value = "C"
    why = "the rule of the product needs the x of the forward pass, version 0. The buffer is at version 1: an error."
    options = {
        "A": "the old x is not in memory any more: x += 1 has written over it, and the product had not copied it",
        "B": "that would be the damage: a gradient of another function. The engine compares versions, and stops",
        "C": "",
    }
