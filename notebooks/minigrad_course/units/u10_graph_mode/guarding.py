"""Unit 10: the student's guard, and the training that it saves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from ...digits import tanh_network
from ...feedback import Wrong, place, written
from ...tasks import ROUNDS, FunctionTask
from .saved import train

Values = dict[str, Any]
FORM = "define a function inside that compares, and return it without brackets: return holds"
INVERTED = "holds() is True while nothing has changed. If it is always False, each call traces anew"
BLIND = "it still says True. Is the copy the same dictionary, with another name? Are the values compared, or the names?"
ONCE = "the noted values have changed. The trace is still the old one: note once, in `guard`, and never in `holds`"
IDENTITY = "`is` asks for the same object. An equal value in a new object needs no new trace: compare by =="
ALL = "one of the values has changed, another has not: all must be equal. Is `return True` inside the loop?"
SAME_LIST = "the copy of the dictionary holds the same list, and the list has changed: copy.deepcopy copies both"
TYPES = "1 == 1.0 == True in Python, but these are three types, and their graphs differ: compare the types too"
GONE = "a name that is gone is a change too: compare the names, not only the values that are left"
SWAPPED = "two values have changed places: compare each value with the one that was noted for the same name"
NEW = "a new name is a change too: the function may read it now. Compare the names on both sides"


class Change(NamedTuple):
    """A line that changes the values, and the hint for a guard that is wrong after it."""

    line: str
    hint: str


class Story(NamedTuple):
    """The values at the time of a trace, and changes that follow."""

    values: Values
    changes: tuple[Change, ...]

    def said_by(self, guard: Callable[[Values], Any]) -> Iterator[Any]:
        """What the guard says at once, and after each change."""
        values = deepcopy(self.values)
        holds = guard(values)
        yield holds()
        for change in self.changes:
            exec(change.line, {"values": values})
            yield holds()


STORIES = (
    Story({"rate": 0.0}, (Change("values['rate'] = 0.5", BLIND),)),
    Story({"rate": 0.5, "beta": 0.9}, (
        Change("values['rate'] = 1 / 2", IDENTITY), Change("values['beta'] = 0.99", ALL),
        Change("values['beta'] = 0.9", ONCE), Change("values['rate'] = 0.1", ALL))),
    Story({"rate": 0.5, "beta": 0.9}, (Change("values.update(rate=0.9, beta=0.5)", SWAPPED),)),
    Story({"rates": [0.0, 0.5]}, (Change("values['rates'][1] = 0.1", SAME_LIST),)),
    Story({"rates": [0.0, 0.5]}, (Change("values['rates'] = [0.0, 0.5]", IDENTITY),)),
    Story({"scale": 1}, (Change("values['scale'] = 1.0", TYPES), Change("values['scale'] = True", TYPES))),
    Story({"rate": 0.5, "decay": 0.1}, (Change("del values['decay']", GONE),)),
    Story({"rate": 0.5}, (Change("values['decay'] = 0.1", NEW),)),
)


class Guard(FunctionTask):
    name, slips_of = "guard", "careful"

    def given(self) -> dict[str, Any]:
        return {"network": tanh_network, "train": train}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield from [(story,) for story in STORIES]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        for story in STORIES:
            try:
                self._compare(story, list(story.said_by(lambda values: self._function(answer(values)))))
            except (KeyError, TypeError) as error:
                said = f"{type(error).__name__}: {error}"
                hint = next((words for part, words in self.advice.items() if part in said), None)
                lines = [f"stopped with {said}", *place(error), f"  in guard(values={story.values})"]
                raise Wrong(self.name, "\n".join(lines), hint) from None
        changes = sum(len(story.changes) for story in STORIES)
        return f"of {changes} changes in {len(STORIES)} programs, it has seen all that need a new trace, and no other."

    def _function(self, holds: Any) -> Callable[[], Any]:
        if callable(holds):
            return holds  # type: ignore[no-any-return]
        raise Wrong(self.name, f"guard(values) returned {written(holds)}, not a function", FORM)

    def _compare(self, story: Story, heard: list[Any]) -> None:
        """Compare what a guard says with what it should say."""
        if None in heard:
            raise Wrong(self.name, "holds() returned None", "holds() returns True or False: is there a `return`?")
        for said, right, change in zip(heard, self.right(story), (Change("", INVERTED), *story.changes)):
            if bool(said) != right:
                after = f", after {change.line}" if change.line else ""
                problem = f"holds() is wrong{after}\n  Expected: {right}\n  Got: {bool(said)}"
                raise Wrong(self.name, f"{problem}\n  in guard(values={story.values})", change.hint)

    def careful(self, values: Values) -> Callable[[], bool]:
        """The right guard."""
        noted = repr(values)
        return lambda: repr(values) == noted

    def solution(self) -> Any:
        return self.careful

    def right(self, story: Story) -> list[bool]:
        return Heard(self.careful)(story)

    def wrong(self, known: Any) -> Any:
        return Heard(known.program.__get__(self))


class Heard:
    """A guard as a student's function; for a story, what it says."""

    def __init__(self, guard: Callable[[Values], Any]) -> None:
        self.guard = guard

    def __call__(self, given: Any) -> Any:
        return list(map(bool, given.said_by(self.guard))) if isinstance(given, Story) else self.guard(given)
