"""A task of the course: what a student writes, how it is checked, and the wrong answers that are known.

A class is a task, and an instance of it is one student's variant: `vary` draws the student's own numbers, so a copied
answer is the answer to another question.  A known wrong answer is a program, and its hint is given where the student's
results are the same.  Most are rows of the texts: the right program with a change, or an expression (`mistakes.py`).
One that needs more is a method with `@mistake`.  The kinds of tasks derive the common wrong answers from the right one
(swapped, without g, summed, only the first); `hints` replaces the words of these where a task can say more.

What is text or a plain value is in the texts of the unit, `texts.en.toml`, by the name of the task: see `texts.py`.
"""

from __future__ import annotations

import hashlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.support.table import counted

from .answers import bare_number, beside, in_numbers, other_form, other_shape, right_parts
from .compare import Difference, copied, difference, factor, numerical, plain, same
from .expressions import filled
from .expressions import value as value_of
from .feedback import Feedback, Misused, Wrong, written
from .mistakes import program_of
from .texts import attributes, problem

ROUNDS, HIDDEN_ROUNDS = 1, 10  # how often the cases are drawn anew, in the student's notebook and in the instructor's
MANY = 8  # numbers; of a larger array a call shows the shape


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


def common(**programs: Callable[..., Any]) -> tuple[Mistake, ...]:
    """The mistakes that a kind of tasks has in common: programs that derive the wrong result.

    Their words are in the texts, in the hints of the kind.
    """
    return tuple([Mistake(name, "", program, None) for name, program in programs.items()])


class Task:
    """The base of the kinds of tasks below."""

    name: ClassVar[str]  # of the function or variable that the student defines; unique in the course
    points: ClassVar[int] = 1
    minutes: ClassVar[int] = 3
    outcome: ClassVar[str]  # the key of an outcome of the unit
    seconds: ClassVar[float] = 5.0  # the time limit
    kind: ClassVar[str]  # "function" or "value"
    further: ClassVar[bool] = False  # whether it stands below "Further": its points come on top of the unit's
    strict: ClassVar[bool] = True  # whether a wrong answer stops the notebook, as nbgrader needs it
    template: ClassVar[str] = ""  # the task in Markdown; an attribute of the variant stands in braces: {k}
    why: ClassVar[str | None] = None  # what to say about a right answer
    otherwise: str | None = None  # the hint where no known mistake was made
    hints: ClassVar[dict[str, str]] = {}  # the words for mistakes, by their names; common ones have words already
    advice: ClassVar[dict[str, str]] = {}  # a part of the message of an error -> the hint, where the answer raises it
    written_mistakes: ClassVar[Sequence[Sequence[str]]] = ()  # rows, each with its hint: see `mistakes.py`
    draws: ClassVar[dict[str, Sequence[Any]]] = {}  # a name -> the values of which each student's variant has one
    slips_of: ClassVar[str] = "right"  # the method with the right program, which their slips change
    mistakes: ClassVar[tuple[Mistake, ...]] = ()  # those of the class itself first

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._read_texts()
        cls._declare()
        for number, (*row, hint) in enumerate(vars(cls).get("written_mistakes", ()), 1):
            name = f"{cls.__name__}_{number}"
            setattr(cls, name, Mistake(name, hint, program_of(cls, row), None))
        own = [value for value in vars(cls).values() if isinstance(value, Mistake)]
        inherited = [known for known in cls.mistakes if known.name not in vars(cls)]
        cls.mistakes = tuple([cls._with_hint(known) for known in (*own, *inherited)])
        for unknown in vars(cls).get("hints", {}).keys() - {known.name for known in cls.mistakes}:
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
        self.otherwise = self.otherwise and filled(self.otherwise, self)

    def vary(self, draw: random.Random) -> None:
        """Draw the numbers of this student's variant: from `draws`, unless the task says otherwise."""
        for name, choices in self.draws.items():
            setattr(self, name, draw.choice(choices))

    def text(self) -> str:
        """The task in Markdown, with this student's numbers; where the texts have none, the docstring."""
        return filled(self.template, self) or inspect.getdoc(type(self)) or ""

    def given(self) -> dict[str, Any]:
        """Attributes of this variant that the notebook can read; they must not give the answer away."""
        return {name: getattr(self, name) for name in self.draws}

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        """Raise `Wrong` for a wrong answer; for a right one, return what to say to the student."""
        raise NotImplementedError

    def explained(self) -> str | None:
        """What to say to students with the right answer."""
        return None if self.why is None else filled(self.why, self)

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
        """The hint for a known mistake, with this student's numbers."""
        return filled(known.hint, self)


class FunctionTask(Task):
    """A function to write.  It is called with each of the `cases`, and its results are compared with `right`."""

    kind = "function"
    shared: ClassVar[bool] = False  # whether others read the arguments too: then a function must not write into them

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        """The arguments to call it with; the case whose failure says most comes first."""
        raise NotImplementedError

    def right(self, *args: Any) -> Any:
        """The right result."""
        raise NotImplementedError

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        found: list[tuple[tuple[Any, ...], Any, str]] = []
        for args in self._all_cases(rounds):
            given = [copied(each) for each in args]
            try:
                yours = answer(*given)
            except ArithmeticError:
                if not found:
                    raise
                break  # the wrong results say more
            problem = self.judge(yours, args)
            if problem is not None:
                found.append((args, yours, str(problem)))
            elif self.shared:
                self.refuse_writes(given, args)
        if found:
            args, yours, words = found[0]
            raise Wrong(self.name, f"{words}\n  in {self._call(args)}", self._hint(found))
        return self.explained()

    def refuse_writes(self, given: Sequence[Any], before: Sequence[Any]) -> None:
        """Raise `Wrong` if a right program has changed an array that it was given."""
        for name, now, was in zip(self.parameters(), given, before):
            if isinstance(was, np.ndarray | Tensor) and not same(now, was):
                hint = f"others read the same array. Make a new array: `{name} = {name} * 2`, not `{name} *= 2`"
                raise Wrong(self.name, f"the result is right, but it writes into {name}", hint)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        """What is wrong with a result."""
        return "it returned None: is there a `return`?" if yours is None else difference(yours, self.right(*args))

    def solution(self) -> Any:
        return self.right

    def _all_cases(self, rounds: int) -> Iterator[tuple[Any, ...]]:
        for number in range(rounds):
            yield from self.cases(random.Random(digest(self.name, self.student, number)))

    def parameters(self) -> list[str]:
        """The names of the parameters of the function to write."""
        return list(inspect.signature(self.right).parameters)

    def _call(self, args: tuple[Any, ...]) -> str:
        sizes = [np.shape(value) if hasattr(value, "shape") else () for value in args]
        given = [f"{name} of shape {size}" if np.prod(size) > MANY else f"{name}={written(value)}"
                 for name, value, size in zip(self.parameters(), args, sizes)]
        return f"{self.name}({', '.join(given)})"

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        """The hint of the mistake that explains every wrong result."""
        for known in self.mistakes:
            if all(self.explains(known, args, yours) for args, yours, _ in found):
                return self.words(known)
        return self.nearly([(yours, args) for args, yours, _ in found]) or self.otherwise

    def nearly(self, found: Iterable[tuple[Any, tuple[Any, ...]]]) -> str | None:
        """A hint for results that have the right ones in them."""
        try:
            pairs = [(yours, self.right(*args)) for yours, args in found]
        except Exception:  # what is right is not a result to compare
            return None
        if all(type(yours) is tuple and len(yours) == 1 and same(yours[0], right) for yours, right in pairs):
            return "right, in a tuple: a comma at the end of `return` makes one. Leave it out"
        times = factor(pairs)
        if times is None:
            return None
        said = "minus" if times == -1 else f"{times:g} times"
        return "; ".join(filter(None, [f"what is wrong is {said} the right result", self.otherwise]))

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

    shared = True
    mistakes = common(
        swapped=lambda self, *args: self.right(*args)[::-1],
        without_g=_without_g,
        swapped_without_g=lambda self, *args: _without_g(self, *args)[::-1],
        summed=lambda self, *args: sum(self.right(*args)),
        summed_for_each=lambda self, *args: (sum(self.right(*args)),) * len(args[2:]),
        first_only=lambda self, *args: self.right(*args)[0],
        last_only=lambda self, *args: self.right(*args)[-1],
        first_and_a_comma=lambda self, *args: (self.right(*args)[0],),
        value=lambda self, g, out, *inputs: out,
        times_out=lambda self, g, out, *inputs: (g * out,) * len(inputs),
        nothing_returned=lambda self, *args: [self.right(*args), None][1],
        rule_of_a_sum=lambda self, g, out, *inputs: (g,) * len(inputs),
        g_added=lambda self, g, *rest: tuple([g + slope for slope in _without_g(self, g, *rest)]),
        g_overwritten=_g_overwritten,
        first_overwritten=_first_overwritten,
        rounded=lambda self, *args: tuple(map(np.round, self.right(*args))),
        cut=lambda self, *args: tuple(map(np.trunc, self.right(*args))),
        numbers_only=lambda self, *args: self.right(*next(iter(self.cases(random.Random(0))))),
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
        return filled(known.hint.replace("{first}", names[0]).replace("{last}", names[-1]), self)

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
        turned=_parts(lambda right: right[::-1]),
        without_sign=lambda self: -self.right() if type(self.right()) in (int, float) else None,
        first_only=_parts(lambda right: right[:1]),
        last_only=_parts(lambda right: right[-1:]),
        without_the_last=_parts(lambda right: right[:-1]),
        all_like_the_first=_parts(lambda right: right[:1] * len(right)),
        all_like_the_last=_parts(lambda right: right[-1:] * len(right)),
        differences=_parts(lambda right: None if isinstance(right[0], str) else [right[0], *np.diff(right)]),
    )
    kind = "value"
    example: ClassVar[str] = ""  # the form of an answer
    tolerance: ClassVar[float] = 0.0  # the largest relative error of a number
    any_order: ClassVar[bool] = False  # whether the answer is a choice of several, in any order
    # The right value, or a formula of what `draws` has drawn, and wrong values with hints.
    right_value: ClassVar[Any]
    formula: ClassVar[str] = ""
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

    def misformed(self, answer: Any, hint: str | None = None) -> Feedback:
        """The refusal of an answer that has another form; the hint is `otherwise` if there is no better one."""
        kind = Misused if isinstance(self, Prediction) else Wrong  # such a prediction is not noted
        return kind(self.name, f"your answer {written(answer)} has another form", hint or self.otherwise)

    def right(self) -> Any:
        """The right value."""
        return value_of(self.formula, self) if self.formula else self.right_value

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        answer = in_numbers(answer, self.right())
        is_known = isinstance(answer, str) and any(answer == self.wrong(known) for known in self.mistakes)
        form = None if is_known else other_form(answer, self.right(), self.example)
        if form is not None:
            raise self.misformed(answer, form)
        answer = self.read(answer)
        problem = difference(answer, self.right(), "your answer")
        if problem is None or self._is_close(answer):
            return self.explained()
        hint = next((self.words(known) for known in self.mistakes if same(answer, self.wrong(known))), None)
        form = None if hint is not None else other_shape(answer, self.right(), self.example)
        if form is not None:
            raise self.misformed(answer, "; ".join(filter(None, [form, self.otherwise])))
        raise Wrong(self.name, self._described(answer, problem), hint or self.otherwise)

    def _is_close(self, answer: Any) -> bool:
        """Whether a number is right within the tolerance."""
        if not self.tolerance or not isinstance(answer, int | float):
            return False
        return bool(abs(answer / self.right() - 1) <= self.tolerance)

    def _described(self, answer: Any, problem: Difference) -> str:
        """What is wrong with an answer, without the right one."""
        if "shape" in problem.what and np.ndim(plain(answer)) == 1 and np.ndim(self.right()) <= 1:
            return f"your answer has {counted(len(answer), 'number')}"
        if "shape" in problem.what:
            return f"{problem.what}, {problem.got}"
        if "of type" in problem.got:
            return f"your answer {problem.got}, is not right"
        half = right_parts(answer, self.right(), self.any_order)
        return f"your answer {written(answer)} is not right" + (f". {half}" if half else "")

    def solution(self) -> Any:
        return self.right()

    def wrong(self, known: Mistake) -> Any:
        return known.program(self)

    def words(self, known: Mistake) -> str:
        return filled(known.hint, self)


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
        own = vars(type(self))
        hints = [hint for name, hint in own.get("hints", {}).items() if name not in own]
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

    def turned_out(self, given: Any) -> str:
        """How the right answer differs from a guess, as a sentence."""
        right = self.right()
        try:
            answer = self.read(in_numbers(given, right))
        except Feedback:  # of an answer that cannot be read
            answer = given
        said = f"The answer turns out to be {beside(answer, right)}."
        return " ".join(filter(None, [said, right_parts(answer, right, self.any_order)]))


class Bet(Prediction):
    """A prediction of what the next cell measures on the student's machine: each of `choices` may turn out right."""

    mistakes = ()
    choices: ClassVar[Sequence[Any]]

    def right(self) -> Any:
        return self.choices[0]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if answer not in self.choices and bare_number(answer) not in self.choices:
            choices = written(list(self.choices))
            raise Misused(self.name, f"{written(answer)} is not among the choices", f"one of {choices}")
        return "The next cell measures it."


def digest(*parts: Any) -> int:
    """A number to seed random draws with, the same on every machine."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _same_result(program: Callable[..., Any], args: tuple[Any, ...], yours: Any) -> bool:
    try:
        return same(yours, program(*args))
    except Exception:  # a known mistake may fail on some cases, as the student's own does
        return False
