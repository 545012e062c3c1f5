"""More kinds of answers: one of some options, and what a program prints.

Each is a form of `ValueTask`.  It is a prediction, which is noted right or wrong, if the task is a `Prediction` too:
`class Maker(Choice, Prediction)`.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, ClassVar

from .feedback import Misused, Wrong, written
from .source_code import run_code
from .tasks import ROUNDS, Prediction, ValueTask


class Choice(ValueTask):
    """One of some options.  `options` has the hint for each, and `right_value` is the right one.

    Case and spaces do not count.  Any other answer is refused with a list of the options.

    >>> class Maker(Choice):
    ...     name, right_value = "maker", "multiply"
    ...     options = {"log": "that is an infinity", "multiply": ""}
    >>> Maker().check(" Multiply ")
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
        given = " ".join(str(answer).split()).lower()
        return next((each for each in self.options if each.lower() == given), answer)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if self.read(answer) not in list(self.options):  # a list cannot be a key
            kind = Misused if isinstance(self, Prediction) else Wrong
            listed = ", ".join(f'"{each}"' for each in self.options)
            raise kind(self.name, f"your answer {written(answer)} has another form", f"one of {listed}")
        return super().check(answer, rounds)


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
