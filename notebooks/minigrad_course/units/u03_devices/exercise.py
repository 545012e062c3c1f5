"""Unit 03: which line stops, the dispatcher, a coarse kernel, and when a fast device saves time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.devices.registry import as_device
from minigrad.ops.creation import ones

from ...compare import Difference, difference
from ...feedback import Wrong, stopped, written
from ...forms import parts_of
from ...tasks import ROUNDS, FunctionTask, ValueTask
from .about import UNIT
from .chips import ChipKernels, Metered, check_array, f32
from .training import readings


class Line(NamedTuple):
    """A line of a program: the copies that it makes, and why it does not stop."""

    code: str
    copies: int
    why: str = ""


SAFE = (
    Line("c = a * 2 + 1", 0, "a Python number lives on no device: it goes to the kernel with the array"),
    Line('d = b + a.to("cpu:1")', 1, "the copy of a is on cpu:1, where b is"),
    Line('e = (b * b).to("cpu") + a', 1, "the product is copied to cpu, where a is"),
    Line('f = b.to("cpu:1") * 3', 0, "b is on cpu:1 already, so nothing is copied"),
    Line("g = b.sum() / 2", 0, "everything is on cpu:1"),
    Line('h = (a + 1).to("cpu:1") - b', 1, "the copy of a + 1 is on cpu:1, where b is"),
)
LOST = Line('a.to("cpu:1")', 1, "it makes a copy, which is lost: a itself stays on cpu")
STOPPING = (Line("p = a + b.sum()", 0), Line("p = b * a.sum()", 0), Line("p = b - a", 0))
MADE = (Line("a = mg.ones(3)", 0, "it makes an array, on cpu"),
        Line('b = mg.ones(3, device="cpu:1")', 0, "it makes an array, on cpu:1"))


@UNIT.task
class Stops(ValueTask):
    """A program of eight lines: which line stops, and how many arrays were copied before?"""

    name = "stops"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        lines, self.at = draw.sample(SAFE, 4), draw.choice([3, 4])
        lines.insert(draw.randrange(self.at - 1), LOST)
        lines.insert(self.at, draw.choice(STOPPING))
        self.lines = [*MADE, *lines]
        self.at += len(MADE)

    def listed(self) -> str:
        """The list in the text."""
        return "\n".join(f"{number}  {line.code}" for number, line in enumerate(self.lines, 1))

    def given(self) -> dict[str, Any]:
        return {"lines": [line.code for line in self.lines]}

    def right(self) -> tuple[int, int]:
        return self.at + 1, sum(line.copies for line in self.lines[: self.at])

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        line, copies = parts_of(answer, 2)
        if not isinstance(line, int) or not isinstance(copies, int):
            raise self.misformed(answer)
        if not 1 <= line <= len(self.lines):
            raise Wrong(self.name, f"there is no line {line}", self.otherwise)
        if line != self.right()[0]:
            raise Wrong(self.name, f"line {line} does not stop", self.lines[line - 1].why)
        if copies != self.right()[1]:
            raise Wrong(self.name, f"line {line} stops, but {copies} is not the number of copies", self._copies(copies))
        return self.explained()

    def _copies(self, copies: int) -> str:
        before, right = self.lines[: self.at], self.right()[1]
        known = {
            right - 1: 'the line a.to("cpu:1") makes a copy too, even though the copy is not kept',
            sum(line.code.count(".to(") for line in before): 'b.to("cpu:1") copies nothing: b is there already',
            sum(line.copies for line in self.lines): "below the line that stops, no other line runs: count above it",
        }
        return known.get(copies, "each x.to(device) above the line makes one copy, unless x is on that device already")


# ---- the dispatcher --------------------------------------------------------------------------------------------------

CPU = "cpu"
NAMES = (CPU, "cpu:1", "cpu:2")
REFUSED, RETURNED, NOTHING = "an exception", "an exception that was returned", "None"
ACCIDENTS = (NameError, TypeError, AttributeError, IndexError, KeyError)
Names = Sequence[str | None]  # the device of each input; None for a Python number


def fake_table() -> dict[str, dict[str, Any]]:
    """A table of kernels, in which each only says which one it is; the third device has no tanh."""
    every = [(op, name) for name in NAMES for op in ("add", "where", "tanh") if (op, name) != ("tanh", NAMES[2])]
    return {name: {op: Fake(op, name) for op, there in every if there == name} for name in NAMES}


class Fake(NamedTuple):
    """A kernel that computes nothing."""

    op: str
    device: str

    def __call__(self, *values: Any) -> str:
        return f"the result of {self.op} on {self.device}"

    def __repr__(self) -> str:
        return f"the kernel of {self.op} on {self.device}"


def places(inputs: Sequence[Any]) -> Names:
    """The names of the devices of some inputs."""
    return [x.device.name if isinstance(x, Tensor) else None for x in inputs]


def devices(names: Names) -> list[str]:
    """The devices of the tensors among some inputs."""
    return [name for name in names if name is not None]


def mixed(names: Names) -> bool:
    """Whether tensors are on several devices."""
    return len(set(devices(names))) > 1


def entry(table: Any, device: str, op: str) -> str:
    """The kernel at a place of the table, or an outcome that is not a device."""
    return repr(table[device][op]) if op in table.get(device, {}) else REFUSED if device in table else device


@UNIT.task
class Dispatch(FunctionTask):
    name = "dispatch"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        cpu, one, two = (ones(2, device=name) for name in NAMES)
        for inputs in ([cpu, cpu], [one, one], [2.0, one], [two, 0.5], [cpu, one], [one, cpu]):
            yield "add", inputs, fake_table()
        for inputs in ([two, two, one], [one, 1.0, two], [one, two, one]):
            yield "where", inputs, fake_table()
        yield "tanh", [one], fake_table()
        yield "tanh", [two], fake_table()

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        return super().check(lambda *args: self.described(answer, args), rounds)

    def described(self, answer: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What a dispatcher does, in words."""
        try:
            found = answer(*args)
        except NotImplementedError:
            raise
        except Exception as error:
            if isinstance(error, ACCIDENTS) and not (isinstance(error, KeyError) and self.right(*args) == REFUSED):
                raise stopped(self.name, error, self.advice, self._call(args)) from None
            self._message(str(error), args)
            return REFUSED
        if isinstance(found, BaseException) or (isinstance(found, type) and issubclass(found, BaseException)):
            return RETURNED
        return repr(found) if isinstance(found, Fake) or found is None else found

    def _message(self, message: str, args: tuple[Any, ...]) -> None:
        """Raise `Wrong` for an exception on a mix that does not name the devices."""
        names = devices(places(args[1]))
        if mixed(names) and not all(name in message for name in names):
            said = f"the message of your exception is {message!r}\n  in {self._call(args)}"
            hint = 'put the devices into its text, f"... {x.device}", so that a reader finds the wrong line'
            raise Wrong(self.name, said, hint)

    def _call(self, args: tuple[Any, ...]) -> str:
        shown = [f"x on {each.device}" if isinstance(each, Tensor) else written(each) for each in args[1]]
        return f"dispatch({args[0]!r}, [{', '.join(shown)}], table)"

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if not isinstance(yours, str) or yours.startswith("the result"):
            hint = "return one entry of the table, table[device][op], without calling it: the engine calls it"
            raise Wrong(self.name, f"it returned {written(yours)}, not a kernel\n  in {self._call(args)}", hint)
        right = self.right(*args)
        return None if yours == right else Difference("the choice is wrong", right, yours)

    def right(self, op: str, inputs: list[Any], table: Any) -> Any:
        d = places(inputs)
        names = devices(d)
        return entry(table, REFUSED if mixed(d) else names[0], op)


# ---- a coarse kernel -------------------------------------------------------------------------------------------------


def coarse(x: Any, steps: float, nearest: Any = np.round) -> Any:
    """An array whose numbers have steps of 1/steps."""
    return (nearest(x * steps) / steps).astype(x.dtype)


@UNIT.task
class CoarseMatmul(FunctionTask):
    """`coarse_matmul(x, y)` is the matrix product of a chip whose numbers have steps."""

    name, shared = "coarse_matmul", True

    def vary(self, draw: random.Random) -> None:
        self.steps = draw.choice([8, 9, 12, 16])

    def given(self) -> dict[str, Any]:
        return {"steps": self.steps, "read": self.read}

    def read(self) -> Any:
        """What networks read on cpu:1, with the kernel that is registered there."""
        as_device("cpu:1").kernels["matmul"](f32([1.0]), f32([1.0]))  # a stub stops here, with its own error
        return readings("cpu:1")

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield f32([2.4, -6.16], [10.1, 16.0]) / self.steps, f32([1.0, 0.4], [-0.9, 0.21])
        yield f32([10.9, -3.36, 7.2]) / self.steps, f32([0.66], [1.4], [-2.7])

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        check_array(self.name, yours, "it")
        return difference(yours, self.right(*args))

    def right(self, x: Any, y: Any) -> Any:
        return coarse(x, self.steps) @ coarse(y, self.steps)


# ---- when it saves time ----------------------------------------------------------------------------------------------

for each in (ChipKernels, Metered):
    UNIT.task(each)


@UNIT.task
class Additions(ValueTask):
    """How many additions must there be until a faster device saves time?"""

    name = "additions"

    def vary(self, draw: random.Random) -> None:
        self.cpu, self.chip = draw.choice([500, 600, 700]), draw.choice([5, 10, 20])
        self.copy = draw.choice([1300, 1500, 1700, 1900])

    def after(self, copies: int) -> int:
        """The first k at which the chip is quicker, with so many copies."""
        return copies * self.copy // (self.cpu - self.chip) + 1

    def right(self) -> int:
        return self.after(3)
