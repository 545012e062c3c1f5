"""More kinds of answers: one of some options, which is which, a formula, and what a program prints.

Each is a form of `ValueTask`.  It is a prediction, which is noted right or wrong, if the task is a `Prediction` too:
`class Maker(Choice, Prediction)`.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, ClassVar

import numpy as np

from .answers import bare_number
from .compare import same
from .expressions import value
from .feedback import Wrong
from .forms import names_in
from .source_code import run_code
from .tasks import ROUNDS, ValueTask

TURNED = re.compile(r"\s*\^ *T\b|ᵀ|\.t\(\)|\.transpose\(\)")  # ways to write .T


class Choice(ValueTask):
    """One of some options.  `options` has the hint for each, and `right_value` is the right one.

    Case, spaces and articles do not count, and other words and units beside the option.  Any other answer is refused
    with a list of the options.

    >>> class Maker(Choice):
    ...     name, right_value = "maker", "multiply"
    ...     options = {"log": "that is an infinity", "multiply": ""}
    >>> Maker().check(" Multiply "), Maker().check("the multiply")
    (None, None)
    >>> Maker().check("log")
    Traceback (most recent call last):
    minigrad_course.feedback.Wrong: ✗ maker: your answer 'log' is not right
      Hint: that is an infinity
    """

    options: ClassVar[dict[str, str]]

    @classmethod
    def _declare(cls) -> None:
        if hasattr(cls, "options"):
            cls.wrong_values = [each for each in cls.options.items() if each[0] != cls.right_value]
            cls.example = f'"{cls.wrong_values[0][0]}"'
        super()._declare()

    def read(self, answer: Any) -> Any:
        given, number = _words(answer), bare_number(answer)
        options = {option: _words(option) for option in self.options}
        like = [option for option, words in options.items() if number == bare_number(option) or (
            len(option) > 1 and given and (set(given) <= set(words) or set(words) <= set(given)))]
        exact = next((option for option, words in options.items() if words == given), None)
        return exact or (like[0] if len(like) == 1 else answer)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if self.read(answer) not in list(self.options):  # a list cannot be a key
            raise self.misformed(answer, "one of " + ", ".join(f'"{each}"' for each in self.options))
        return super().check(answer, rounds)


def _words(text: Any) -> list[str]:
    """The words of a text in small letters, without commas and articles; a single "A" is an option."""
    return re.sub(r"[,;!?'\"]|\b(an?|the) +(?=\w)", " ", str(text).lower()).rstrip(" .").split()


class Matches(ValueTask):
    """A dictionary from letters to names: which is which?  `signs` says for each name what to look at.

    >>> class Which(Matches):
    ...     name, signs = "which", {"late": "is there a box that waits?", "lost": "is there a box without a number?"}
    ...     def right(self):
    ...         return {"A": "late", "B": "lost"}
    >>> Which().check({"a": "Late", "b": "lost"})
    >>> Which().check({"A": "late", "B": "late"})
    Traceback (most recent call last):
    minigrad_course.feedback.Wrong: ✗ which: 1 of 2 is not right: B
      Hint: you say "late" for B: is there a box that waits?
    """

    mistakes = ()
    signs: ClassVar[dict[str, str]]

    def read(self, answer: Any) -> Any:
        listed = isinstance(answer, list | tuple) and len(answer) == len(self.right())  # in the order of the letters
        pairs = answer.items() if isinstance(answer, dict) else zip(self.right(), answer) if listed else ()
        return {str(letter).strip().upper(): str(name).strip().lower() for letter, name in pairs}

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given, right = self.read(answer), self.right()
        if set(given) != set(right) or not set(given.values()) <= set(self.signs):
            raise self.misformed(answer)
        wrong = [letter for letter in right if given[letter] != right[letter]]
        if not wrong:
            return self.explained()
        said = given[wrong[0]]
        problem = f"{len(wrong)} of {len(right)} {'is' if len(wrong) == 1 else 'are'} not right: {', '.join(wrong)}"
        raise Wrong(self.name, problem, f'you say "{said}" for {wrong[0]}: {self.signs[said]}')


class Formula(ValueTask):
    """A formula of arrays, as a text.  It is right if it gives the same as `right_value`, for arrays of `shapes`.

    >>> class Both(Formula):
    ...     name, right_value, shapes = "both", "X.T @ g", {"X": [5, 4], "g": [5, 3]}
    >>> Both().check("(g.T @ X).T"), Both().check("∂W = Xᵀ · g"), Both().read("X@g")
    (None, None, 'X @ g')
    """

    shapes: ClassVar[dict[str, Sequence[int]]]

    def read(self, answer: Any) -> Any:
        text = TURNED.sub(".T", str(answer).rpartition("=")[2].strip(" .")).replace("·", "@")
        draw = np.random.default_rng(0)
        names: dict[str, Any] = {name: draw.normal(size=shape) for name, shape in self.shapes.items()}
        names |= {"matmul": np.matmul, "transpose": np.transpose, "mg": np}
        try:
            is_right = same(value(text, None, names), value(self.right_value, None, names))
        except ValueError:  # shapes that do not go together
            is_right = False
        except Exception:  # words
            raise self.misformed(answer, f"a formula, as text: {self.example}") from None
        return self.right_value if is_right else " @ ".join(text.replace(" ", "").split("@"))


class Lettered(ValueTask):
    """Some lines with letters, drawn for each student: for which of them is it so?

    `signs` has all lines, and says of each why.  `shown` of them get letters, and it is so for `wanted` of these.

    >>> class Even(Lettered):
    ...     name, shown, wanted, signs = "even", 2, 1, {"2 + 2": "4 is even", "2 + 1": "3 is odd", "1 + 4": "5 is odd"}
    ...     def is_so(self, line):
    ...         return eval(line) % 2 == 0
    >>> [letter] = Even().right()
    >>> Even().check(letter)
    """

    mistakes = ()
    any_order = True
    signs: ClassVar[dict[str, str]]
    shown: ClassVar[int]
    wanted: ClassVar[int]

    def is_so(self, line: str) -> bool:
        """Whether the answer holds this line's letter."""
        raise NotImplementedError

    def vary(self, draw: random.Random) -> None:
        right, rest = ([line for line in self.signs if self.is_so(line) is so] for so in (True, False))
        chosen = draw.sample(right, self.wanted) + draw.sample(rest, self.shown - self.wanted)
        self.lines = dict(zip(ascii_uppercase, draw.sample(chosen, self.shown)))
        self.listed = " · ".join(f"{letter} `{line}`" for letter, line in self.lines.items())
        self.because = ". ".join(f"{letter}: {self.signs[self.lines[letter]]}" for letter in self.right())

    def right(self) -> list[str]:
        return [letter for letter, line in self.lines.items() if self.is_so(line)]

    def read(self, answer: Any) -> Any:
        letters = {line: letter for letter, line in self.lines.items()}
        names = names_in(letters.get(answer, answer) if isinstance(answer, str) else answer)
        if names is None:
            return answer
        named = [letters.get(name, name).upper() for name in names]
        return [] if named == ["NONE"] else sorted("".join(named))  # "ABC" is an answer too

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given = self.read(answer)
        if not isinstance(given, list) or not {*map(str, given)} <= {*self.lines}:
            raise self.misformed(answer)
        try:
            return super().check(answer, rounds)
        except Wrong as wrong:
            first = min({*given} ^ {*self.right()})
            wrong.hint = f"look at {first}: {self.signs[self.lines[first]]}"
            raise


class Printed(ValueTask):
    """The lines that a program prints, in order.  The right answer is found by running `program`.

    The answer is a list of texts, or one text with a line for each.

    >>> class Order(Printed):
    ...     name, program = "order", "print('one')\\nprint('two')"
    >>> Order().right(), Order().check("one\\ntwo")
    (['one', 'two'], None)
    """

    program: ClassVar[str]

    def right(self) -> list[str]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run_code(self.program, {"__name__": "program"})
        return printed.getvalue().splitlines()

    def read(self, answer: Any) -> Any:
        lines = answer.strip().splitlines() if isinstance(answer, str) else answer
        if isinstance(lines, list) and len(lines) == 1 < len(self.right()):
            lines = str(lines[0]).split(",")
        if not isinstance(lines, list | tuple):
            return answer
        known = {line.lower(): line for line in self.right()}
        return [known.get(str(line).strip().lower(), line) for line in lines]
