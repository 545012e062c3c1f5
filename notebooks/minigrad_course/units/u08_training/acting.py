"""Tasks whose answers act on what they are given, on a model for example: the effects are compared.

The effects of the right answer and of each known mistake are known, so an answer may take any way to them.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, ClassVar

from ...compare import Difference, difference, same
from ...tasks import FunctionTask, Mistake


class ActingTask(FunctionTask):
    """A function that changes what it is given.  `effects` runs it in a small world, and returns what is compared.

    The cases are the same for all students, so the effects of known programs are computed once.  `program` is a right
    answer.

    >>> class Append(ActingTask):
    ...     name, parts, world = "append", ["the length"], "a list of two numbers"
    ...     written_mistakes = [["found + [3]", "that makes another list"]]
    ...     def effects(self, program, number):
    ...         found = [1, 2]
    ...         program(found)
    ...         return (len(found),)
    ...     def program(self, found):
    ...         found.append(3)
    >>> Append().check(lambda found: found + [3])
    Traceback (most recent call last):
    minigrad_course.feedback.Wrong: ✗ append: the length is wrong
      Expected: 3.0
      Got: 2.0
      in a list of two numbers
      Hint: that makes another list
    """

    points = 0
    slips_of = "program"
    parts: ClassVar[list[str]]  # the names of the effects
    world: ClassVar[str]  # what the answer acts on, in words

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (0,)

    def _call(self, args: tuple[Any, ...]) -> str:
        return self.world

    def effects(self, program: Callable[..., Any], *args: Any) -> Any:
        """Run an answer, and return everything that is compared."""
        raise NotImplementedError

    def solution(self) -> Any:
        return self.program

    def parameters(self) -> list[str]:
        return list(inspect.signature(self.program).parameters)

    def program(self, *args: Any) -> Any:
        """A right answer."""
        raise NotImplementedError

    def right(self, *args: Any) -> Any:
        kind: Any = type(self)
        return effects_of(kind, args)

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        return super().check(partial(self.effects, answer), 1)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(yours, self.right(*args), self.parts)

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        kind: Any = type(self)
        try:
            return same(yours, effects_of(kind, args, known))
        except Exception:  # a known mistake may fail on some cases
            return False


@cache
def effects_of(task: Callable[[], ActingTask], args: tuple[Any, ...], known: Mistake | None = None) -> Any:
    """The effects of the right answer, or of a known mistake."""
    made = task()
    return made.effects(made.solution() if known is None else made.wrong(known), *args)
