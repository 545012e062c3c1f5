"""Unit 03: which line stops, the dispatcher, a coarse kernel, and when a fast device saves time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.devices.registry import as_device
from minigrad.ops.creation import ones

from ...compare import Difference, difference
from ...feedback import Wrong, stopped, written
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

    def text(self) -> str:
        listed = "\n".join(f"{number}  {line.code}" for number, line in enumerate(self.lines, 1))
        return (
            f"```\n{listed}\n```\n\n**One of these lines stops with an error, because its arrays are on two devices. "
            "Which line, and how many arrays were copied from one device to another before it?** "
            "Work it out, and then check your answer."
        )

    def given(self) -> dict[str, Any]:
        return {"lines": [line.code for line in self.lines]}

    def right(self) -> tuple[int, int]:
        return self.at + 1, sum(line.copies for line in self.lines[: self.at])

    def explained(self) -> str:
        return f"{self.lines[self.at].code[4:]} would mix two devices."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        line, copies = answer if isinstance(answer, tuple | list) and len(answer) == 2 else (None, None)
        if not isinstance(line, int) or not isinstance(copies, int):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
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


def choosing(*wrong: tuple[Callable[[Names], str], str]) -> list[tuple[Callable[..., Any], str]]:
    """Wrong dispatchers: for each a function from the inputs' devices to a device or an outcome, and a hint."""
    return [(lambda task, op, inputs, table, choose=choose: entry(table, choose(places(inputs)), op), hint)
            for choose, hint in wrong]


def entry(table: Any, device: str, op: str) -> str:
    """The kernel at a place of the table, or an outcome that is not a device."""
    return repr(table[device][op]) if op in table.get(device, {}) else REFUSED if device in table else device


@UNIT.task
class Dispatch(FunctionTask):
    name = "dispatch"
    wrong_programs = choosing(
        (lambda d: REFUSED if any(mixed(pair) for pair in pairwise(d)) else devices(d)[0],
         "you compare neighbours, and a number may stand between two tensors: compare all tensors"),
        (lambda d: REFUSED if mixed((devices(d)[0], devices(d)[-1])) else devices(d)[0],
         "you compare the first tensor with the last. One between them may be on another device"),
        (lambda d: REFUSED if mixed(d[:2]) else devices(d)[0],
         "you compare the first two inputs. There may be three, as in where(condition, x, y)"),
        (lambda d: CPU if devices(d)[0] == NAMES[2] else devices(d)[0],
         "there is no such kernel on that device, and the CPU's cannot read its arrays: let the error happen"),
        (lambda d: NOTHING if devices(d)[0] == NAMES[2] else devices(d)[0],
         "a missing kernel gives None here: table[device][op] raises an error, and .get(op) does not"),
        (lambda d: CPU if mixed(d) else devices(d)[0],
         "a mix goes to the CPU here, and the CPU cannot read arrays of another device: raise an exception"),
        (lambda d: RETURNED if mixed(d) else devices(d)[0], "raise the exception: `raise ValueError(...)`, not return"),
        (lambda d: NOTHING if mixed(d) else devices(d)[0],
         "on a mix it returned None, and the program goes on without a result: raise an exception"),
        (lambda d: REFUSED if None in d or mixed(d) else devices(d)[0],
         "a number and a tensor are not a mix: a number lives on no device. Leave numbers out"),
        (lambda d: devices(d)[0],
         "you look at the first tensor only. Compare the devices of all tensors, and raise if there are two"),
        (lambda d: devices(d)[-1],
         "you look at the last tensor only. Compare the devices of all tensors, and raise if there are two"),
        (lambda d: CPU,
         "that is always the kernel of the CPU. The kernel runs where the inputs are: table[device][op]"),
        (lambda d: REFUSED if mixed(d) else NOTHING, "is there a `return` before table[device][op]?"),
    )

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
        names = devices(places(inputs))
        return REFUSED if mixed(names) else entry(table, names[0], op)


# ---- a coarse kernel -------------------------------------------------------------------------------------------------


def coarse(x: Any, steps: float, nearest: Any = np.round) -> Any:
    """An array whose numbers have steps of 1/steps."""
    return (nearest(x * steps) / steps).astype(x.dtype)


@UNIT.task
class CoarseMatmul(FunctionTask):
    """`coarse_matmul(x, y)` is the matrix product of a chip whose numbers have steps."""

    name = "coarse_matmul"
    wrong_programs = (
        (lambda self, x, y: x @ y,
         "that is the exact product (np.round(x, n) keeps n decimals). Round both inputs to steps first"),
        (lambda self, x, y: coarse(x, self.steps) * coarse(y, self.steps),
         "`*` multiplies place by place. The matrix product is x @ y"),
        (lambda self, x, y: coarse(x @ y, self.steps),
         "you round the result. The chip rounds the inputs, before it multiplies"),
        (lambda self, x, y: coarse(self.right(x, y), self.steps),
         "you round the inputs and then the result too. Only the inputs are rounded"),
        (lambda self, x, y: coarse(x, self.steps) @ y, "y is not rounded: both inputs are"),
        (lambda self, x, y: x @ coarse(y, self.steps), "x is not rounded: both inputs are"),
        (lambda self, x, y: coarse(x, 1) @ coarse(y, 1),
         "that rounds to whole numbers: multiply by the steps before rounding, and divide by them after it"),
        (lambda self, x, y: self.right(x, y) * self.steps**2,
         "you forget to divide by the steps after rounding: the numbers are too large"),
        (lambda self, x, y: self.right(x, y) * self.steps,
         "divided once only: each of the two rounded arrays is divided by the steps"),
        (lambda self, x, y: coarse(x, 1 / self.steps) @ coarse(y, 1 / self.steps),
         "the other way round: multiply by the steps, round, and divide by them"),
        (lambda self, x, y: coarse(x, self.steps, np.trunc) @ coarse(y, self.steps, np.trunc),
         "that cuts off, towards 0: np.round goes to the nearest step"),
        (lambda self, x, y: coarse(x, self.steps, np.floor) @ coarse(y, self.steps, np.floor),
         "that always rounds down: np.round goes to the nearest step"),
        (lambda self, x, y: coarse(x, 100) @ coarse(y, 100),
         "np.round(x, n) keeps n decimals, in steps of 1/10, 1/100 …: multiply by the steps first"),
        (lambda self, x, y: coarse(x, 10) @ coarse(y, 10),
         "the example has steps of 1/10. The steps of your chip are in the text of the task"),
    )

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

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def careful(x: Any, y: Any) -> Any:
            given = x.copy(), y.copy()
            try:
                found = answer(*given)
            except (TypeError, ValueError) as error:
                raise stopped(self.name, error, self.advice, self._call((x, y))) from None
            if not all(np.array_equal(one, other) for one, other in zip(given, (x, y))):
                hint = "these may be the weights of a network: make new arrays, x = np.round(...), and no x *= ..."
                raise Wrong(self.name, "it has changed its inputs", hint)
            return found

        return super().check(careful, rounds)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        check_array(self.name, yours, "it")
        return difference(yours, self.right(*args))

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"coarse_matmul({', '.join(written(np.round(each, 4)) for each in args)})"

    def right(self, x: Any, y: Any) -> Any:
        return coarse(x, self.steps) @ coarse(y, self.steps)


# ---- when it saves time ----------------------------------------------------------------------------------------------

for each in (ChipKernels, Metered):
    UNIT.task(each)


@UNIT.task
class Additions(ValueTask):
    """How many additions must there be until a faster device saves time?"""

    name = "additions"
    wrong_programs = (
        (lambda self: self.after(2),
         "that is with two copies. a and b go to the chip, and the last out comes back: three"),
        (lambda self: self.after(1),
         "that is with one copy. a and b go to the chip, and the last out comes back: three copies"),
        (lambda self: self.after(4),
         "that is with four copies. out stays on the chip between the additions, and b is copied once"),
        (lambda self: self.after(3) - 1,
         "one too few: at this k the CPU is still quicker. Put it into both formulas"),
        (lambda self: self.after(3) + 1,
         "one too many: the chip is quicker before that. Put the k before it into both formulas"),
        (lambda self: 1, "for one addition, the chip takes three copies and its own time: use these"),
        *[(lambda self, digits=digits: round(3 * self.copy / (self.cpu - self.chip), digits),
           "there both take the same time. k is a whole number: the first one after it") for digits in (1, 2, 3, 9)],
    )

    def vary(self, draw: random.Random) -> None:
        self.cpu, self.chip = draw.choice([500, 600, 700]), draw.choice([5, 10, 20])
        self.copy = draw.choice([1300, 1500, 1700, 1900])

    def after(self, copies: int) -> int:
        """The first k at which the chip is quicker, with so many copies."""
        return copies * self.copy // (self.cpu - self.chip) + 1

    def right(self) -> int:
        return self.after(3)

    def explained(self) -> str:
        k = self.right()
        chip = 3 * self.copy + k * self.chip
        return f"{k} · {self.cpu} = {k * self.cpu} µs against 3 · {self.copy} + {k} · {self.chip} = {chip} µs."
