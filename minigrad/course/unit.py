"""What a unit of the course is, and a task in it: declared once, for the notebooks, the checks, and the tests of both.

A class is a task, and an instance of it is one student's variant: what `vary` draws is the student's own, so that an
answer found elsewhere is the answer to another question.  What students are known to get wrong is declared as programs:
a hint is given where the student's results are those of the mistake.
"""

from __future__ import annotations

import hashlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .compare import difference, numerical, plain, same
from .feedback import Misused, Wrong, written

ROUNDS, HIDDEN_ROUNDS = 1, 10  # how often the cases are drawn anew, in the student's notebook and in the instructor's


class Misconception(NamedTuple):
    """What many believe and is not so: where it was seen, and the task or cell that brings it to light."""

    belief: str
    source: str  # an address, or a title and page
    met_in: str  # the name of a task, or the id of a cell


class Seed(NamedTuple):
    """An idea that the course must cover, and the task or cell where a student predicts, computes or changes it."""

    idea: str
    met_in: str


class Mistake(NamedTuple):
    """A known wrong answer, as a program, and what to say to those who give it."""

    name: str
    hint: str
    program: Callable[..., Any]
    source: str | None  # where somebody really made it


def mistake(hint: str, source: str | None = None) -> Callable[[Callable[..., Any]], Mistake]:
    """Declare a method of a task as what somebody gets who makes a known mistake."""

    def declare(program: Callable[..., Any]) -> Mistake:
        return Mistake(program.__name__, hint, program, source)

    return declare


class Task:
    """Something that a student writes and a check looks at: the base of the kinds below."""

    name: ClassVar[str]  # of the function or variable that the student defines; unique in the course
    points: ClassVar[int] = 1
    minutes: ClassVar[int] = 3
    outcome: ClassVar[str]  # the key of the outcome that it shows
    seconds: ClassVar[float] = 5.0  # that an answer may take
    kind: ClassVar[str]  # "function" or "value"
    strict: ClassVar[bool] = True  # whether what is not right stops the notebook, as nbgrader wants it
    otherwise: str | None = None  # the hint where no known mistake was made
    mistakes: ClassVar[tuple[Mistake, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = [value for value in vars(cls).values() if isinstance(value, Mistake)]
        cls.mistakes = (*cls.mistakes, *own)

    def __init__(self, student: str = "") -> None:
        self.student = student
        self.random = random.Random(digest(self.name, student))
        self.vary(self.random)

    def vary(self, draw: random.Random) -> None:
        """Draw what is this student's own; nothing unless the task says so."""

    def text(self) -> str:
        """The task in Markdown, with this student's numbers: the docstring unless the task says otherwise."""
        return inspect.getdoc(type(self)) or ""

    def given(self) -> dict[str, Any]:
        """What the notebook can read of this variant, besides the text: nothing that the answer is made of."""
        return {}

    @property
    def title(self) -> str:
        """The first line of what the task says of itself."""
        return (inspect.getdoc(type(self)) or "").partition("\n")[0]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        """Raise `Wrong` where the answer is not right; what is returned is said to those whose answer is."""
        raise NotImplementedError

    def solution(self) -> Any:
        """A right answer to this variant."""
        raise NotImplementedError

    def wrong(self, known: Mistake) -> Any:
        """The answer of somebody who makes the mistake."""
        raise NotImplementedError


class FunctionTask(Task):
    """A function to write.  It is called with each of the `cases`, and what it gives is compared with `right`."""

    kind = "function"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        """What to call it with, in the order in which a failure says most."""
        raise NotImplementedError

    def right(self, *args: Any) -> Any:
        """The right result."""
        raise NotImplementedError

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        found: list[tuple[tuple[Any, ...], Any, str]] = []
        for args in self._all_cases(rounds):
            yours = answer(*args)
            problem = self.judge(yours, args)
            if problem is not None:
                found.append((args, yours, problem))
        if found:
            args, yours, problem = found[0]
            raise Wrong(self.name, f"{problem}\n  called as {self._call(args)}", self._hint(found))
        return None

    def judge(self, yours: Any, args: tuple[Any, ...]) -> str | None:
        """What is wrong with a result, in a line."""
        return difference(yours, self.right(*args))

    def solution(self) -> Any:
        return self.right

    def wrong(self, known: Mistake) -> Any:
        return known.program.__get__(self)

    def _all_cases(self, rounds: int) -> Iterator[tuple[Any, ...]]:
        for number in range(rounds):
            yield from self.cases(random.Random(digest(self.name, self.student, number)))

    def _call(self, args: tuple[Any, ...]) -> str:
        names = list(inspect.signature(self.right).parameters)
        given = [f"{name}={written(value)}" for name, value in zip(names, args)]
        return f"{self.name}({', '.join(given)})"

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        """The hint of the mistake that explains every wrong result."""
        for known in self.mistakes:
            if all(_same_result(self.wrong(known), args, yours) for args, yours, _ in found):
                return known.hint
        return self.otherwise


class GradientTask(FunctionTask):
    """A gradient rule to write, `(g, out, *inputs)`: compared with finite differences of `forward`, asked no rule."""

    def forward(self, *inputs: Any) -> Any:
        """The function whose gradients these are, for arrays of NumPy."""
        raise NotImplementedError

    def right(self, g: Any, out: Any, *inputs: Any) -> Any:
        return numerical(self.forward, inputs, g)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> str | None:
        form = self._form(yours)
        if form is not None:
            raise Wrong(self.name, f"it returned {written(yours)}, and not two gradients", form)
        names = [f"the gradient of {name}" for name in inspect.signature(self.forward).parameters]
        return difference(yours, self.right(*args), names, "measured")

    def _form(self, yours: Any) -> str | None:
        """How gradients should be returned, where they are returned as something else."""
        if inspect.isgenerator(yours):
            return "return both at once: return ..., ..., and not yield"
        if isinstance(yours, str) or (isinstance(yours, tuple | list) and any(isinstance(each, str) for each in yours)):
            return "numbers, and no text: without quotation marks and str"
        if isinstance(yours, dict | set) or (np.ndim(plain(yours)) > 0 and not isinstance(yours, tuple | list)):
            return "nothing around the two: return ..., ..., with a comma between"
        return None

    def _call(self, args: tuple[Any, ...]) -> str:
        names = ["g", "out", *inspect.signature(self.forward).parameters]
        return f"{self.name}({', '.join(f'{name}={written(value)}' for name, value in zip(names, args))})"


class ValueTask(Task):
    """A value to find: the student assigns it to a variable, and it is compared with what `right` gives."""

    kind = "value"
    example: ClassVar[str] = ""  # what an answer looks like
    tolerance: ClassVar[float] = 0.0  # how far from the right number an answer may be, as a part of it

    def read(self, answer: Any) -> Any:
        """The answer as it was meant."""
        return answer

    def right(self) -> Any:
        """The right value."""
        raise NotImplementedError

    def explained(self) -> str | None:
        """What to say to those who are right."""
        return None

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        form = other_form(answer, self.right())
        if form is not None:
            kind = Misused if isinstance(self, Prediction) else Wrong  # a guess in another form is no guess yet
            raise kind(self.name, f"your answer {written(answer)} is of another form", form)
        answer = self.read(answer)
        problem = difference(answer, self.right(), "your answer")
        close = self.tolerance and isinstance(answer, int | float) and abs(answer / self.right() - 1) <= self.tolerance
        if problem is None or close:
            return self.explained()
        hint = next((known.hint for known in self.mistakes if same(answer, self.wrong(known))), self.otherwise)
        if np.ndim(plain(answer)) == 1 and np.ndim(self.right()) <= 1 and "shape" in problem:
            problem = f"your answer has {len(answer)} number{'s' if len(answer) > 1 else ''}"
        elif "shape" not in problem and "of type" not in problem:  # which would give the right one away
            problem = f"your answer {written(answer)} is not right"
        raise Wrong(self.name, problem.partition(", expected")[0], hint)

    def solution(self) -> Any:
        return self.right()

    def wrong(self, known: Mistake) -> Any:
        return known.program(self)


class Question(ValueTask):
    """Something to find out by looking: as often as one likes, without points."""

    points = 0
    minutes = 1
    strict = False


class Prediction(ValueTask):
    """A guess, before the answer is shown.  It is noted, right or wrong: what counts is to have committed oneself."""

    points = 0
    minutes = 1
    strict = False


@dataclass
class Unit:
    """A unit of the course.  Its lecture, notebook and exercise have the same number and name."""

    number: int
    name: str
    title: str
    question: str  # that it starts from, with a surprising answer
    minutes: int
    outcomes: dict[str, str]  # what a student can do afterwards, each by a key that tasks refer to
    prerequisites: tuple[str, ...] = ()  # units, as "00_start"
    misconceptions: tuple[Misconception, ...] = ()
    seeds: tuple[Seed, ...] = ()
    tasks: dict[str, type[Task]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The number and name: `00_start`."""
        return f"{self.number:02}_{self.name}"

    @property
    def points(self) -> int:
        """Of all tasks together."""
        return sum(task.points for task in self.tasks.values())

    def task(self, cls: type[Task]) -> type[Task]:
        """Add a task to the unit: a decorator of the class."""
        self.tasks[cls.name] = cls
        return cls


def other_form(answer: Any, right: Any) -> str | None:
    """How an answer that may be right should be written, where it is written as something else.

    >>> other_form("0.1", 0.1), other_form((0, 1), 0.1), other_form([0.1], 0.1), other_form({1, 3}, [1, 3])
    ('without the quotation marks', 'with a point and no comma: 0.1', ..., 'in brackets, [ ], which keep the order')
    """
    if isinstance(right, str | dict | bool) or _of_words(right):
        return None
    if isinstance(answer, str):
        return "without the quotation marks" if _is_number(answer) else None
    if isinstance(answer, list | tuple) and any(isinstance(each, str) and _is_number(each) for each in answer):
        return "the numbers without quotation marks"
    if isinstance(right, int | float):
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == int(right) != right:
            return f"with a point and no comma: {answer[0]}.{answer[1]}"
        if isinstance(answer, list | tuple) and len(answer) == 1:
            return "one number, without brackets"
    elif isinstance(answer, set):
        return "in brackets, [ ], which keep the order"
    return None


def _of_words(right: Any) -> bool:
    return isinstance(right, list | tuple) and all(isinstance(each, str) for each in right)


def _is_number(text: str) -> bool:
    """Whether a text is a number, or numbers with commas between them."""
    try:
        parts = [float(part) for part in text.strip("[]() ").split(",")]
    except ValueError:
        return False
    return bool(parts)


def digest(*parts: Any) -> int:
    """A number that is drawn from, the same on every machine."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _same_result(program: Callable[..., Any], args: tuple[Any, ...], yours: Any) -> bool:
    try:
        return same(yours, program(*args))
    except Exception:  # a known mistake may fail on some of the cases, as the student's own does
        return False


def units() -> dict[str, Unit]:
    """Every unit that is there, by its key, in order.

    >>> list(units())[0]
    '00_start'
    """
    from . import units as package

    found = [import_module(f"{package.__name__}.{each.name}").UNIT for each in iter_modules(package.__path__)]
    return {unit.key: unit for unit in sorted(found, key=lambda unit: unit.number)}
