"""Unit 10: a bug that only graph mode has."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from ...feedback import Wrong
from ...forms import parts_of
from ...source_code import Program
from ...tasks import ROUNDS, ValueTask
from .about import UNIT

VARIABLE = "MINIGRAD_COURSE_SCALE"  # an environment variable


class Place(NamedTuple):
    """Where a function reads a number: the code before it, the code that reads, the code that changes it, in words."""

    before: str
    reads: str
    change: str
    words: str


PLACES = (
    Place("class settings:\n    scale = 2.0\n\n", "settings.scale", "settings.scale = 5.0", "an attribute"),
    Place("scales = [2.0, 3.0]\n\n", "scales[0]", "scales[0] = 5.0", "an entry of a list"),
    Place("scale = 2.0\n\n", "scale", "scale = 5.0", "a global name"),
    Place("import os\n\n", f'float(os.environ["{VARIABLE}"])', f'os.environ["{VARIABLE}"] = "5.0"', ""),
)
OPERATIONS = {"h * {}": "multiply", "h + {}": "add", "h - {}": "subtract", "h / {}": "divide"}


@UNIT.task
class OnlyGraph(ValueTask):
    """Four functions, one with a bug that only graph mode has: which, and at which node?"""

    name = "only_graph"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        self.places = dict(zip("ABCD", draw.sample(PLACES, 4)))
        operations = dict(zip("ABCD", draw.sample(list(OPERATIONS), 4)))
        self.programs = {}
        for letter, place in self.places.items():
            first, last = draw.choice(["tanh", "exp"]), operations[letter].format(place.reads)
            code = f"{place.before}def {letter}(x):\n    h = mg.{first}(x)\n    return {last}\n"
            self.programs[letter] = Program(code, place.change)
        self.letter = next(letter for letter, place in self.places.items() if place is PLACES[-1])
        self.node = OPERATIONS[operations[self.letter]]

    def listed(self) -> str:
        """The list in the text."""
        return "\n".join(f"{each.code}\n" for each in self.programs.values())

    def given(self) -> dict[str, Any]:
        return {"f": self.function, "change": self.change}

    def _at(self, letter: str) -> Program:
        if letter not in self.programs:
            raise KeyError(f"the functions are called A, B, C and D, not {letter!r}")
        return self.programs[letter]

    def function(self, letter: str) -> Callable[..., Any]:
        """One of the four.  The number that it reads is 2.0 again."""
        os.environ[VARIABLE] = "2.0"
        return self._at(letter).fresh()

    def change(self, letter: str) -> None:
        """Change the number that a function reads from 2.0 to 5.0."""
        self._at(letter).run()

    def right(self) -> tuple[str, str]:
        return self.letter, self.node

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        letter, node = [each.strip() if isinstance(each, str) else each for each in parts_of(answer, 2)]
        letter = letter.upper() if isinstance(letter, str) else letter
        if letter not in self.programs or not isinstance(node, str):
            raise self.misformed(answer)
        if letter != self.letter:
            read = self.places[letter].words
            hint = f"it reads {read}: a guard compares it, and {letter} is traced again. What has no guard?"
            raise Wrong(self.name, f"{letter} is right in graph mode too", hint)
        if node.lower().partition("_")[0] != self.node:
            hint = (
                "mg.jit(f, check=True) raises a CheckError after the change. It names the first node that differs: an "
                "operation on tensors that reads the changed number"
            )
            raise Wrong(self.name, f"{letter} is the one, but {node} is not the first node that differs", hint)
        return self.why
