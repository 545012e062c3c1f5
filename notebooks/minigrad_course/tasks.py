"""A task of the course: what a student writes, how it is checked, and the wrong answers that are known.

A class is a task, and an instance of it is one student's variant: `vary` draws the student's own numbers, so a copied
answer is the answer to another question.  A known wrong answer is a program (`@mistake`), and its hint is given where
the student's results are the same.  If it is the right program with one change, it is declared as this change in
`slips`.  Short ones are pairs in `wrong_programs`, and constants in `wrong_values`.  The kinds of tasks derive the
common wrong answers from the right one (swapped, without g, summed, only the first); `hints` replaces the words of
these where a task can say more.

What is text or a plain value is in the texts of the unit, `texts.en.toml`, by the name of the task: see `texts.py`.
"""

from __future__ import annotations
import __future__

import hashlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from string import ascii_letters
from textwrap import dedent
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minigrad.support.errors import DeclarationError
from minigrad.support.table import counted

from .compare import Difference, difference, numerical, plain, same
from .feedback import Misused, Wrong, written
from .texts import attributes, filled, problem

ROUNDS, HIDDEN_ROUNDS = 1, 10  # how often the cases are drawn anew, in the student's notebook and in the instructor's


class Mistake(NamedTuple):
    """A known wrong answer as a program, with a hint."""

    name: str
    hint: str
    program: Callable[..., Any]
    source: str | None  # where a student made it


def mistake(hint: str | Callable[..., Any], source: str | None = None) -> Any:
    """Declare a method of a task as a known mistake: it returns the wrong result.

    `@mistake` alone takes the hint from the unit's texts, where it has the name of the method.
    """
    if isinstance(hint, str):
        return lambda program: Mistake(program.__name__, hint, program, source)
    return Mistake(hint.__name__, "", hint, source)


def common(**mistakes: tuple[str, Callable[..., Any]]) -> tuple[Mistake, ...]:
    """The mistakes that a kind of tasks has in common: for each a hint and a program that derives the wrong result."""
    return tuple([Mistake(name, hint, program, None) for name, (hint, program) in mistakes.items()])


class Task:
    """The base of the kinds of tasks below."""

    name: ClassVar[str]  # of the function or variable that the student defines; unique in the course
    points: ClassVar[int] = 1
    minutes: ClassVar[int] = 3
    outcome: ClassVar[str]  # the key of an outcome of the unit
    seconds: ClassVar[float] = 5.0  # the time limit
    kind: ClassVar[str]  # "function" or "value"
    strict: ClassVar[bool] = True  # whether a wrong answer stops the notebook, as nbgrader needs it
    template: ClassVar[str] = ""  # the task in Markdown; an attribute of the variant stands in braces: {k}
    otherwise: str | None = None  # the hint where no known mistake was made
    hints: ClassVar[dict[str, str]] = {}  # the words for mistakes, by their names; common ones have words already
    advice: ClassVar[dict[str, str]] = {}  # a part of the message of an error -> the hint, where the answer raises it
    wrong_programs: ClassVar[Sequence[tuple[Callable[..., Any], str]]] = ()  # more known mistakes, with their hints
    # Known mistakes that are the right program with one change, by their names: a part of its text, and what a student
    # writes in its place.  `slips_of` is the method with the right program.
    slips: ClassVar[dict[str, tuple[str, str]]] = {}
    slips_of: ClassVar[str] = "right"
    faults: ClassVar[Sequence[tuple[str, ...]]] = ()  # known mistakes as words, each with its hint: see `faulty`
    mistakes: ClassVar[tuple[Mistake, ...]] = ()  # those of the class itself first

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._read_texts()
        cls._declare()
        for number, (*words, hint) in enumerate(vars(cls).get("faults", ()), 1):
            setattr(cls, f"fault_{number}", Mistake(f"fault_{number}", hint, _faulty(words), None))
        for name, (right, slip) in vars(cls).get("slips", {}).items():
            setattr(cls, name, Mistake(name, "", _slipped(cls, right, slip), None))
        own = [value for value in vars(cls).values() if isinstance(value, Mistake)]
        for number, (program, hint) in enumerate(vars(cls).get("wrong_programs", ()), 1):
            own.append(Mistake(f"wrong_program_{number}", hint, program, None))
        inherited = [known for known in cls.mistakes if known.name not in vars(cls)]
        cls.mistakes = tuple([cls._with_hint(known) for known in (*own, *inherited)])
        for unknown in cls.hints.keys() - {known.name for known in cls.mistakes}:
            raise problem(cls, f"hints names {unknown}, which is not a common mistake", "hints", unknown)

    @classmethod
    def _read_texts(cls) -> None:
        """Take over what the unit's texts say about the task."""
        declared = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
        for name, value in attributes(cls, declared).items():
            mine = vars(cls).get(name)
            both = {**value, **mine} if isinstance(mine, dict) else value if mine is None else [*value, *mine]
            setattr(cls, name, both)

    @classmethod
    def _declare(cls) -> None:
        """Derive attributes of the class from others, before its mistakes are collected."""

    @classmethod
    def _with_hint(cls, known: Mistake) -> Mistake:
        hint = cls.hints.get(known.name, known.hint)
        if not hint:
            raise problem(cls, f"hints has no words for the mistake {known.name}", "hints")
        return known._replace(hint=hint)

    def __init__(self, student: str = "") -> None:
        self.student = student
        self.vary(random.Random(digest(self.name, student)))

    def vary(self, draw: random.Random) -> None:
        """Draw the numbers of this student's variant."""

    def text(self) -> str:
        """The task in Markdown, with this student's numbers; where the texts have none, the docstring."""
        return filled(self.template, self) or inspect.getdoc(type(self)) or ""

    def given(self) -> dict[str, Any]:
        """Attributes of this variant that the notebook can read; they must not give the answer away."""
        return {}

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        """Raise `Wrong` for a wrong answer; for a right one, return what to say to the student."""
        raise NotImplementedError

    def illustration(self, answer: Any) -> Any:
        """A view of an answer, which a notebook shows below the feedback; None where there is none."""
        return None

    def solution(self) -> Any:
        """A right answer to this variant."""
        raise NotImplementedError

    def wrong(self, known: Mistake) -> Any:
        """The answer of a student who makes the mistake."""
        return known.program.__get__(self)

    def words(self, known: Mistake) -> str:
        """The hint for a known mistake."""
        return known.hint

    def faulty(self, words: Sequence[str], *args: Any) -> Any:
        """The result of the mistake that these words of `faults` name: which part is left out, or another formula."""
        raise NotImplementedError


def _faulty(words: Sequence[str]) -> Callable[..., Any]:
    return lambda task, *args: task.faulty(words, *args)


def _slipped(cls: type[Task], right: str, slip: str) -> Callable[..., Any]:
    """The right program of a task with a slip in its text.  It is made when it is used."""

    @cache
    def made() -> Callable[..., Any]:
        function = getattr(cls, cls.slips_of)
        text = dedent(inspect.getsource(function))
        if text.count(right) != 1:
            times = counted(text.count(right), "time")
            raise DeclarationError(f"{cls.__name__}.{cls.slips_of}: {right!r} of a slip is there {times}, not once")
        names: dict[str, Any] = {}
        flags = __future__.annotations.compiler_flag  # those of the signature are not evaluated
        exec(compile(text.replace(right, slip), "<slip>", "exec", flags), function.__globals__, names)
        program: Callable[..., Any] = names[function.__name__]
        return program

    return lambda task, *args: made()(task, *args)


class FunctionTask(Task):
    """A function to write.  It is called with each of the `cases`, and its results are compared with `right`."""

    kind = "function"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        """The arguments to call it with; the case whose failure says most comes first."""
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
                found.append((args, yours, str(problem)))
        if found:
            args, yours, words = found[0]
            raise Wrong(self.name, f"{words}\n  in {self._call(args)}", self._hint(found))
        return None

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        """What is wrong with a result."""
        return difference(yours, self.right(*args))

    def solution(self) -> Any:
        return self.right

    def _all_cases(self, rounds: int) -> Iterator[tuple[Any, ...]]:
        for number in range(rounds):
            yield from self.cases(random.Random(digest(self.name, self.student, number)))

    def parameters(self) -> list[str]:
        """The names of the parameters of the function to write."""
        return list(inspect.signature(self.right).parameters)

    def _call(self, args: tuple[Any, ...]) -> str:
        given = [f"{name}={written(value)}" for name, value in zip(self.parameters(), args)]
        return f"{self.name}({', '.join(given)})"

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        """The hint of the mistake that explains every wrong result."""
        for known in self.mistakes:
            if all(self.explains(known, args, yours) for args, yours, _ in found):
                return self.words(known)
        return self.otherwise

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        """Whether a known mistake leads to the same result."""
        return _same_result(self.wrong(known), args, yours)


def _without_g(task: Any, g: Any, *rest: Any) -> Any:
    return task.right(np.ones_like(g), *rest)


def _g_overwritten(task: Any, g: Any, *rest: Any) -> Any:
    found = [g]
    for i in range(len(rest) - 1):
        found.append(task.right(found[-1], *rest)[i])
    return tuple(found[1:])


def _first_overwritten(task: Any, g: Any, out: Any, first: Any, *rest: Any) -> Any:
    changed = task.right(g, out, first, *rest)[0]
    return (changed, *task.right(g, out, changed, *rest)[1:])


class GradientTask(FunctionTask):
    """A gradient rule to write, `(g, out, *inputs)`: compared with finite differences of `forward`."""

    mistakes = common(
        swapped=("swapped: the gradient of {first} comes first, and the gradient of {last} last",
                 lambda self, *args: self.right(*args)[::-1]),
        without_g=("g is missing: this is how fast the result changes, and y changes g times as fast as the result",
                   _without_g),
        swapped_without_g=("swapped, and g is missing", lambda self, *args: _without_g(self, *args)[::-1]),
        summed=("you added the gradients. Each input has its own gradient: return all, with commas between them",
                lambda self, *args: sum(self.right(*args))),
        summed_for_each=("each is the sum of all. The effect of {first} belongs to the gradient of {first} alone",
                         lambda self, *args: (sum(self.right(*args)),) * len(args[2:])),
        first_only=(
            "that is the gradient of {first}. Return the gradient of {last} too, after a comma in the same line",
            lambda self, *args: self.right(*args)[0]),
        last_only=("that is the gradient of {last}. Return the gradient of {first} before it, and a comma",
                   lambda self, *args: self.right(*args)[-1]),
        first_and_a_comma=("that is one gradient in brackets. The gradient of {last} comes after the comma",
                           lambda self, *args: (self.right(*args)[0],)),
        value=("that is the result itself, not its slope: how does it *change* when {first} rises and {last} does not?",
               lambda self, g, out, *inputs: out),
        times_out=("that is g times the result. How does the result *change* when {first} rises and {last} does not?",
                   lambda self, g, out, *inputs: (g * out,) * len(inputs)),
        nothing_returned=("a function gives back only the value after `return`: to print or to assign is not enough",
                          lambda self, *args: [self.right(*args), None][1]),
        rule_of_a_sum=("that is the rule of a sum, which passes g on unchanged. This operation is not a plain sum",
                       lambda self, g, out, *inputs: (g,) * len(inputs)),
        g_added=("added, but it must be multiplied: y changes g times as fast as the result",
                 lambda self, g, *rest: tuple([g + slope for slope in _without_g(self, g, *rest)])),
        g_overwritten=("the second line uses the g that the first line has changed: compute both before you change g",
                       _g_overwritten),
        first_overwritten=(
            "the second line uses the {first} that the first line has changed: give your result another name",
            _first_overwritten),
        rounded=("that is rounded: a gradient can be any number. Return it without rounding",
                 lambda self, *args: tuple(map(np.round, self.right(*args)))),
        cut=("that is rounded: a gradient can be any number. Return it without rounding",
             lambda self, *args: tuple(map(np.trunc, self.right(*args)))),
        numbers_only=("this is right for one example only. Use the names g, {first} and {last} in place of numbers",
                      lambda self, *args: self.right(*next(iter(self.cases(random.Random(0)))))),
    )

    def forward(self, *inputs: Any) -> Any:
        """The function to differentiate, for NumPy arrays."""
        raise NotImplementedError

    def right(self, g: Any, out: Any, *inputs: Any) -> Any:
        return numerical(self.forward, inputs, g)

    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return list(inspect.signature(self.forward).parameters)

    def parameters(self) -> list[str]:
        return ["g", "out", *self.inputs()]

    def words(self, known: Mistake) -> str:
        names = self.inputs()
        return known.hint.replace("{first}", names[0]).replace("{last}", names[-1])

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        form = self._form(yours)
        if form is not None:
            raise Wrong(self.name, f"it returned {written(yours)}, not {len(self.inputs())} gradients", form)
        names = [f"the gradient of {name}" for name in self.inputs()]
        return difference(yours, self.right(*args), names, "by finite differences")

    def _form(self, yours: Any) -> str | None:
        """How to return gradients, where they are returned in another form."""
        if inspect.isgenerator(yours):
            return "return both at once: return ..., ..., not yield"
        if isinstance(yours, str) or (isinstance(yours, tuple | list) and any(isinstance(each, str) for each in yours)):
            return "numbers, not text: without quotation marks and str"
        if isinstance(yours, dict | set) or (np.ndim(plain(yours)) > 0 and not isinstance(yours, tuple | list)):
            return "nothing around the gradients: return ..., ..., with a comma between them"
        return None


def _parts(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A mistake in a right answer of several parts; None where it has only one."""

    def program(task: Any) -> Any:
        right = task.right()
        return change(right) if isinstance(right, list | tuple) and len(right) > 1 else None

    return program


class ValueTask(Task):
    """A value to find: the student assigns it to a variable, and it is compared with `right`."""

    mistakes = common(
        turned=("the other way round", _parts(lambda right: right[::-1])),
        without_sign=("mind the sign", lambda self: -self.right() if type(self.right()) in (int, float) else None),
        first_only=("that is the first part only", _parts(lambda right: right[:1])),
        last_only=("that is the last part only", _parts(lambda right: right[-1:])),
        without_the_last=("the last part is missing", _parts(lambda right: right[:-1])),
        all_like_the_first=("the first is right. Are all the same?", _parts(lambda right: right[:1] * len(right))),
        all_like_the_last=("the last is right. Are all the same?", _parts(lambda right: right[-1:] * len(right))),
        differences=("these are the steps from each to the next", _parts(
            lambda right: None if isinstance(right[0], str) else [right[0], *np.diff(right)])),
    )
    kind = "value"
    example: ClassVar[str] = ""  # the form of an answer
    tolerance: ClassVar[float] = 0.0  # the largest relative error of a number
    # Where the numbers are the same for all students: the right value, why it is right, and wrong values with hints.
    right_value: ClassVar[Any]
    why: ClassVar[str | None] = None
    wrong_values: ClassVar[Sequence[tuple[Any, str]]] = ()

    @classmethod
    def _declare(cls) -> None:
        super()._declare()
        for number, (value, hint) in enumerate(vars(cls).get("wrong_values", ()), 1):
            name = f"wrong_value_{number}"
            setattr(cls, name, Mistake(name, hint, lambda task, value=value: value, None))

    def read(self, answer: Any) -> Any:
        """The answer in its usual form, where several forms are accepted."""
        return answer

    def right(self) -> Any:
        """The right value."""
        return self.right_value

    def explained(self) -> str | None:
        """What to say to students with the right answer."""
        return None if self.why is None else filled(self.why, self)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        form = other_form(answer, self.right())
        if form is not None:
            kind = Misused if isinstance(self, Prediction) else Wrong  # such a prediction is not noted
            raise kind(self.name, f"your answer {written(answer)} has another form", form)
        answer = self.read(answer)
        problem = difference(answer, self.right(), "your answer")
        close = self.tolerance and isinstance(answer, int | float) and abs(answer / self.right() - 1) <= self.tolerance
        if problem is None or close:
            return self.explained()
        hint = next((self.words(known) for known in self.mistakes if same(answer, self.wrong(known))), self.otherwise)
        raise Wrong(self.name, self._described(answer, problem), hint)

    def _described(self, answer: Any, problem: Difference) -> str:
        """What is wrong with an answer, without the right one."""
        if "shape" in problem.what and np.ndim(plain(answer)) == 1 and np.ndim(self.right()) <= 1:
            return f"your answer has {counted(len(answer), 'number')}"
        if "shape" in problem.what:
            return f"{problem.what}, {problem.got}"
        return f"your answer {problem.got} is not right" if "of type" in problem.got else (
            f"your answer {written(answer)} is not right"
        )

    def solution(self) -> Any:
        return self.right()

    def wrong(self, known: Mistake) -> Any:
        return known.program(self)


class ByHandTask(ValueTask):
    """The gradient of the first input of a rule, worked out by hand for `args`: (g, *inputs), which `vary` draws."""

    rule: ClassVar[type[GradientTask]]
    args: tuple[Any, ...]

    @classmethod
    def _declare(cls) -> None:
        super()._declare()
        rule = getattr(cls, "rule", None)  # the kind itself has none
        derived = [known._replace(program=_by_hand(known)) for known in rule.mistakes] if rule is not None else []
        cls.mistakes = (*cls.mistakes, *derived)

    def right(self) -> float:
        return self.result_of(self.rule.right)

    def result_of(self, program: Callable[..., Any]) -> Any:
        """What a program gives for the first input."""
        rule, (g, *inputs) = self.rule(), self.args
        found = program(rule, g, rule.forward(*inputs), *inputs)
        found = found[0] if isinstance(found, tuple) else found
        return None if found is None else round(float(found), 6)

    def words(self, known: Mistake) -> str:
        return self.rule().words(known)

    def distinct(self) -> bool:
        """Whether no mistake that has a hint of this task gives the right number, or the number of another."""
        hints = [hint for name, hint in self.hints.items() if name not in vars(type(self))]
        found = [self.right(), *[self.wrong(known) for known in self.mistakes if known.hint in hints]]
        return len(set(found)) == len(found)


def _by_hand(known: Mistake) -> Callable[[ByHandTask], Any]:
    return lambda task: task.result_of(known.program)


class Question(ValueTask):
    """Something to find out by looking: any number of tries, no points."""

    points = 0
    minutes = 1
    strict = False


class Prediction(ValueTask):
    """A guess before the answer is shown.  It is noted, right or wrong."""

    points = 0
    minutes = 1
    strict = False


class Bet(Prediction):
    """A prediction of what the next cell measures on the student's machine: each of `choices` may turn out right."""

    mistakes = ()
    choices: ClassVar[Sequence[Any]]

    def right(self) -> Any:
        return self.choices[0]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if answer not in self.choices:
            choices = written(list(self.choices))
            raise Misused(self.name, f"{written(answer)} is not among the choices", f"one of {choices}")
        return "The next cell measures it."


def other_form(answer: Any, right: Any) -> str | None:
    """How to write an answer that may be right, where it is written in another form.

    >>> other_form("0.1", 0.1), other_form((0, 1), 0.1), other_form([0.1], 0.1), other_form({1, 3}, [1, 3])
    ('without the quotation marks', 'with a point, not a comma: 0.1', ..., 'in brackets, [ ], which keep the order')
    """
    several = isinstance(right, list | tuple)
    if isinstance(right, str | dict | bool) or (several and all(isinstance(each, str) for each in right)):
        return None
    if isinstance(answer, str):
        alone = answer.strip().rstrip(ascii_letters + " ")
        if _is_number(alone) and isinstance(right, int | float):
            return "without the quotation marks" if _is_number(answer) else f"the number alone: {alone}"
        return "without the quotation marks" if _is_number(answer) else None
    if isinstance(answer, list | tuple) and any(isinstance(each, str) and _is_number(each) for each in answer):
        return "the numbers without quotation marks"
    if isinstance(right, int | float):
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == int(right) != right:
            return f"with a point, not a comma: {answer[0]}.{answer[1]}"
        if isinstance(answer, list | tuple) and len(answer) == 1:
            return "one number, without brackets"
    elif isinstance(answer, set):
        return "in brackets, [ ], which keep the order"
    return None


def _is_number(text: str) -> bool:
    """Whether a text is a number, or numbers with commas between them."""
    try:
        return bool([float(part) for part in text.strip("[]() ").split(",")])
    except ValueError:
        return False


def digest(*parts: Any) -> int:
    """A number to seed random draws with, the same on every machine."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _same_result(program: Callable[..., Any], args: tuple[Any, ...], yours: Any) -> bool:
    try:
        return same(yours, program(*args))
    except Exception:  # a known mistake may fail on some cases, as the student's own does
        return False
