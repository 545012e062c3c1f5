"""Unit 03: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...feedback import Misused, written
from ...graphs import OPERATIONS
from ...tasks import Prediction, Question
from ...views.queues import COPY, LAUNCH, batches, ended, queue, scheduled
from .about import UNIT
from .training import NEEDED


class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()

    def read(self, answer: Any) -> Any:
        if isinstance(self.right_value, str):
            return str(answer).strip().upper() if len(self.right_value) == 1 else str(answer).strip()
        if isinstance(answer, str) and not isinstance(self.right_value, list):
            raise Misused(self.name, f"your answer {written(answer)} is a text", f"a number alone, like {self.example}")
        given = answer.split(",") if isinstance(answer, str) else answer
        return given if not isinstance(given, list | tuple) else [
            OPERATIONS.get(each.strip(), each.strip()) if isinstance(each, str) else each for each in given]


@UNIT.task
class NewChip(Guess):
    """How many functions must you write before a network learns to read digits on a new chip?"""

    name = "new_chip"
    outcome = "table"
    example = "100"
    right_value = len(NEEDED)
    why = f"{', '.join(NEEDED)}. Gradient rules are written in operations, so they run on every device."
    otherwise = "how many different operations does a network with two layers need? And does a gradient need new ones?"
    wrong_values = (
        (84, "those are all operations. This network uses only a few of them, in its training too"),
        (76, "no gradient rule is written again: a rule consists of operations, and these run on every device"),
        (160, "all operations and all rules: the network needs few operations, and rules run on every device"),
        (0, "right that no gradient rule is needed. But nothing runs on the chip until it has kernels"),
        (14, "one for each operation of the network, and another for its gradient? The second is not needed"),
        (8, "that is with `full`, which fills memory with one value. It is there already"),
    )


@UNIT.task
class Moved(Guess):
    """After `x = mg.ones(3)` and `x.to("cpu:1")`: on which device is x?"""

    name = "device_of_x"
    outcome = "place"
    example = '"cuda"'
    right_value = "cpu"
    why = "x.to returned a copy on cpu:1, which the line did not keep. x stays where it is."
    otherwise = 'the name of a device in quotation marks, "cpu" or "cpu:1"'
    wrong_values = (
        ("cpu:1", "x.to returns a copy there. The line does not keep the copy, and x itself stays where it is"),
    )


@UNIT.task
class Copied(Guess):
    """x = mg.ones(3); y = x.to("cpu:1"); z = x.to("cpu"); x[0] = 5. What are y[0] and z[0]?"""

    name = "copied"
    outcome = "place"
    example = "[2, 3]"
    right_value = [1, 5]
    why = "y is a copy on another device. z is x itself: x was on cpu already, and nothing had to be copied."
    otherwise = "two numbers in brackets: y[0] and z[0]"
    wrong_values = (
        ([5, 5], "y has its own memory, on another device: x[0] = 5 does not reach it"),
        ([1, 1], 'right for y. x is on cpu already, so x.to("cpu") copies nothing and returns x itself'),
        ([5, 1], "the other way round: y is the copy, on another device, and z is x itself"),
    )


@UNIT.task
class Mixed(Guess):
    """a is on cpu, b on cpu:1. Which stops: A `a + 1`, B `a + b.to("cpu")`, C `a + b.sum()`, D `b * b`?"""

    name = "mixed"
    outcome = "place"
    example = '"A"'
    right_value = "C"
    why = "b.sum() is one number, but it is still an array on cpu:1."
    otherwise = "exactly one of the four stops: write one letter, A, B, C or D, in quotation marks"
    wrong_values = (
        ("A", "1 is a Python number. It lives on no device, and goes to the kernel with the array"),
        ("B", 'b.to("cpu") is a copy on cpu, so both inputs are there'),
        ("D", "both inputs are on cpu:1, and cpu:1 has a kernel for `multiply`"),
    )


@UNIT.task
class BackwardKernels(Guess):
    """The rule of tanh is `g * (1.0 - out * out)`. Which kernels run in its backward pass, in order?"""

    name = "backward_kernels"
    outcome = "table"
    example = '["add", "tanh"]'
    right_value = ["multiply", "subtract", "multiply"]
    why = "out * out, then 1 − …, then g · …. They come from the same table as in the forward pass."
    otherwise = "the names in quotation marks and in brackets: Python computes the innermost operation first"
    wrong_values = (
        (["tanh_grad"], "no kernel belongs to a gradient alone: the rule has three operations, each with a kernel"),
        (["tanh"], "out is kept from the forward pass, so tanh does not run again. What does the rule compute?"),
        (["subtract", "multiply"], "the product out * out is an operation too"),
        (["multiply", "multiply", "subtract"],
         "right operations, other order: out * out comes first, then 1.0 − …, and g · … comes last"),
        (["multiply", "subtract"], "one is missing: g · … is a product too"),
        (["tanh", "multiply", "subtract", "multiply"],
         "out comes from the forward pass, where it was kept: tanh does not run again"),
        (["subtract", "multiply", "multiply"], "1.0 − … needs out * out: the innermost operation runs first"),
        (["square", "subtract", "multiply"], "out * out is written as a product, so `multiply` runs"),
    )


@UNIT.task
class ByWayOfChip(Guess):
    """The CPU adds a and b in 1 ms, a chip in 0.01 ms. A copy takes 1 ms. How long does it take with the chip?"""

    name = "by_way_of_chip"
    outcome = "cost"
    tolerance = 0.005
    example = "1.5"
    right_value = 3.01
    why = "three copies and 0.01 ms: three times as long as on the CPU, with a chip a hundred times as fast."
    otherwise = "a and b go there, the chip adds, and the result comes back: add up the milliseconds"
    wrong_values = (
        (0.01, "that is the addition alone. The chip cannot read the CPU's memory: what has to be copied?"),
        (1.01, "that is one copy. a and b are two arrays, and the result has to come back"),
        (2.01, "two copies: is that a and b? The result has to come back too"),
        (2, "a and b go there, and the chip adds. But the result is needed on the CPU"),
    )


@UNIT.task
class Called(Guess):
    """Ten kernels of 100 µs; Python needs 5 µs to launch one. What does a clock show when the tenth line has run?"""

    name = "called"
    outcome = "queue"
    example = "300"
    right_value = 50
    why = "ten launches. The device still works, until 1,005 µs; reading a result waits for it."
    otherwise = "Python puts a kernel into the device's queue, and goes on with its next line. What does this take?"
    wrong_values = (
        (1000, "that is the kernels alone. Python does not wait for them: it launches the next one"),
        (1050, "that is launch and kernel, ten times. Python does not wait for a kernel"),
        (1005, "that is when the device is done. Python's own ten lines are done long before"),
        (5, "that is one launch. Python launches ten"),
        (150, "Python does not wait for a kernel, not even for the last one"),
        (0, "Python does not wait for the kernels. But each launch takes Python 5 µs"),
    )


@UNIT.task
class Overlapped(Question):
    """Three batches, each 100 µs in, a kernel of 100 µs, 100 µs out, in three streams. When is the device done?"""

    name = "overlapped"
    outcome = "queue"
    tolerance = 0.01
    example = "1000"
    otherwise = "set `streams` to 3 and `kernel` to 100 µs; the sentence below the picture has the number"
    wrong_programs = (
        (lambda self: self.done(1), "that is with one stream, where each waits for the one before it"),
        (lambda self: self.done(2), "that is with two streams, where the third batch waits for the first"),
        (lambda self: 2 * COPY + 100 + LAUNCH, "that is one batch alone: the other two are still on their way"),
        (lambda self: 9 * LAUNCH, "that is when Python is done with its launches. The device works longer"),
    )

    def given(self) -> dict[str, Any]:
        return {"queue": queue}

    def done(self, streams: int) -> float:
        """When the device is done with some streams."""
        return ended(scheduled(batches(streams, 100.0), LAUNCH))

    def right(self) -> float:
        return self.done(3)

    def explained(self) -> str:
        return "a kernel and copies in both directions run at the same time, for different batches."
