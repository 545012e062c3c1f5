"""More kinds of answers: one of some options, and what a program prints; and wrong answers that are constants.

Each is a form of `ValueTask`.  It is a prediction, which is noted right or wrong, if the task is a `Prediction` too:
`class Maker(Choice, Prediction)`.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, ClassVar

from .feedback import Misused, Wrong, written
from .tasks import ROUNDS, Mistake, Prediction, ValueTask


def known_answers(**answers: tuple[Any, str]) -> tuple[Mistake, ...]:
    """The known mistakes of a task whose wrong answers are constants: for each, by its name, the answer and a hint.

    The common mistakes of `ValueTask` come after them.

    >>> class Half(Prediction):
    ...     name, mistakes = "half", known_answers(twice=(2, "that is twice as much"))
    ...     def right(self):
    ...         return 0.5
    >>> Half().check(2)
    Traceback (most recent call last):
    minigrad.course.feedback.Wrong: ✗ half: your answer 2 is not right
      Hint: that is twice as much
    """
    own = [Mistake(name, hint, _returns(answer), None) for name, (answer, hint) in answers.items()]
    return (*own, *[known for known in ValueTask.mistakes if known.name not in answers])


class Choice(ValueTask):
    """One of some options.  `options` has the hint for each, and `answer` is the right option.

    Case and spaces do not count.  Any other answer is refused with a list of the options.

    >>> class Maker(Choice):
    ...     name, answer = "maker", "multiply"
    ...     options = {"log": "that is an infinity", "multiply": ""}
    >>> Maker().check(" Multiply ")
    >>> Maker().check("log")
    Traceback (most recent call last):
    minigrad.course.feedback.Wrong: ✗ maker: your answer 'log' is not right
      Hint: that is an infinity
    """

    options: ClassVar[dict[str, str]]
    answer: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "options"):
            wrong = {each: (each, hint) for each, hint in cls.options.items() if each != cls.answer}
            cls.mistakes, cls.example = known_answers(**wrong), f'"{next(iter(wrong))}"'
        super().__init_subclass__()

    def right(self) -> str:
        return self.answer

    def read(self, answer: Any) -> Any:
        given = " ".join(str(answer).split()).lower()
        return next((each for each in self.options if each.lower() == given), answer)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if self.read(answer) not in self.options:
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
            exec(compile(self.program, f"<{self.name}>", "exec"), {"__name__": "program"})
        return printed.getvalue().splitlines()

    def read(self, answer: Any) -> Any:
        lines = answer.strip().splitlines() if isinstance(answer, str) else answer
        if isinstance(lines, list) and len(lines) == 1 < len(self.right()):
            lines = str(lines[0]).split(",")
        if not isinstance(lines, list | tuple):
            return answer
        known = {line.lower(): line for line in self.right()}
        return [known.get(str(line).strip().lower(), line) for line in lines]


def _returns(value: Any) -> Any:
    return lambda task: value
