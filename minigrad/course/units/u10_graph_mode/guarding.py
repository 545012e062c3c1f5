"""Unit 10: the student's guard, and the training that it saves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, mistake
from .about import UNIT
from .saved import network, train

Values = dict[str, Any]
FORM = "define a function inside that compares, and return it without brackets: return holds"


class Story(NamedTuple):
    """What happens to some values after a trace: changes, each with the words for it."""

    values: Values
    changes: tuple[tuple[str, Callable[[Values], Any]], ...]

    def told(self, guard: Callable[[Values], Any]) -> Iterator[tuple[str, Any]]:
        """What the guard says at once, and after each change."""
        values = deepcopy(self.values)
        holds = guard(values)
        yield "nothing has changed", holds()
        for words, change in self.changes:
            change(values)
            yield words, holds()


def _set(name: str, value: Any) -> tuple[str, Callable[[Values], Any]]:
    return f"values[{name!r}] = {value!r}", lambda values: values.update({name: deepcopy(value)})


STORIES = (
    Story({"rate": 0.0}, (_set("rate", 0.5), _set("rate", 0.0))),
    Story({"rate": 0.5, "beta": 0.9}, (
        _set("rate", float("0.5")), _set("beta", 0.99), _set("beta", 0.9), _set("rate", 0.1))),
    Story({"rates": [0.0, 0.5]}, (
        _set("rates", [0.0, 0.5]), ("values['rates'][1] = 0.1", lambda values: values["rates"].__setitem__(1, 0.1)))),
    Story({"rates": [0.0, 0.5]}, (
        ("values['rates'][1] = 0.1", lambda values: values["rates"].__setitem__(1, 0.1)),)),
    Story({"scale": 1}, (_set("scale", 1.0), _set("scale", True))),
    Story({"rate": 0.5, "decay": 0.1}, (("del values['decay']", lambda values: values.pop("decay")),)),
    Story({"rate": 0.5}, (_set("decay", 0.1),)),
)


@UNIT.task
class Guard(FunctionTask):
    """`guard(values)` returns a function `holds()`: whether the values are still those of the trace."""

    name = "guard"
    points = 0
    minutes = 20
    outcome = "guard"
    otherwise = "copy the values when `guard` is called; `holds` compares the copy with the values of now"

    def given(self) -> dict[str, Any]:
        return {"network": network, "train": train}

    def parameters(self) -> list[str]:
        return ["values"]

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield from [(story,) for story in STORIES]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        heard = [list(story.told(lambda values: self._function(answer(values)))) for story in STORIES]
        said = [[bool(each) for _, each in story] for story in heard]
        for story, told, right in zip(STORIES, heard, map(self.right, STORIES)):
            if None in [each for _, each in told]:
                raise Wrong(self.name, "holds() returned None", "holds() returns True or False: is there a `return`?")
            wrong = next((i for i, (_, each) in enumerate(told) if bool(each) != right[i]), None)
            if wrong is not None:
                before = "" if not wrong else f", after {told[wrong][0]}"
                problem = f"holds() is wrong{before}\n  Expected: {right[wrong]}\n  Got: {bool(told[wrong][1])}"
                known = (known for known in self.mistakes if list(map(self.wrong(known), STORIES)) == said)
                hint = next((found.hint for found in known), self.otherwise)
                raise Wrong(self.name, f"{problem}\n  in guard(values={story.values})", hint)
        return None

    def _function(self, holds: Any) -> Callable[[], Any]:
        if callable(holds):
            return holds  # type: ignore[no-any-return]
        kind = "None" if holds is None else written(holds)
        raise Wrong(self.name, f"guard(values) returned {kind}, not a function", FORM)

    def solution(self) -> Any:
        return careful

    def right(self, story: Story) -> list[bool]:
        return Heard(careful)(story)

    def wrong(self, known: Any) -> Any:
        return Heard(known.program.__get__(self))

    @mistake("it never says False. If both names are the same dictionary, a change is in both: copy it in `guard`")
    def same_dictionary(self, values: Values) -> Any:
        noted = values
        return lambda: noted == values

    @mistake("it never says True, so each call would trace anew, and be slower than eager mode")
    def never(self, values: Values) -> Any:
        return lambda: False

    @mistake("the copy of the dictionary holds the same list, and the list has changed: copy.deepcopy copies both")
    def same_list(self, values: Values) -> Any:
        noted = dict(values)
        return lambda: _alike(noted, values)

    @mistake("`dict` copies the dictionary, not the list in it: copy.deepcopy. And 1 == 1.0 == True in Python")
    def shallow(self, values: Values) -> Any:
        noted = dict(values)
        return lambda: noted == values

    @mistake("1 == 1.0 == True in Python, but these are three types, and their graphs differ: compare the types too")
    def types_ignored(self, values: Values) -> Any:
        noted = deepcopy(values)
        return lambda: noted == values

    @mistake("`is` asks for the same object. An equal value in a new object needs no new trace: compare by ==")
    def by_identity(self, values: Values) -> Any:
        noted = dict(values)
        return lambda: len(noted) == len(values) and all(values.get(name) is noted[name] for name in noted)

    @mistake("the other way round: holds() is True while nothing has changed")
    def inverted(self, values: Values) -> Any:
        holds = careful(values)
        return lambda: not holds()

    @mistake("one value that has not changed is not enough: all of them")
    def any_of_them(self, values: Values) -> Any:
        noted = deepcopy(values)
        return lambda: any(_alike({name: noted[name]}, {name: values.get(name)}) for name in noted)

    @mistake("only the first name is compared: is `return` inside of the loop?")
    def first_only(self, values: Values) -> Any:
        noted = deepcopy(values)
        first = next(iter(noted))
        return lambda: _alike({first: noted[first]}, {first: values.get(first)})

    @mistake("a name that is gone is a change too: compare the names, not only the values that are left")
    def gone_ignored(self, values: Values) -> Any:
        noted = deepcopy(values)
        return lambda: all(name in noted and _alike({"": noted[name]}, {"": values[name]}) for name in values)

    @mistake("a new name is a change too: the function may read it now. Compare the names on both sides")
    def new_ignored(self, values: Values) -> Any:
        noted = deepcopy(values)
        return lambda: all(name in values and _alike({"": noted[name]}, {"": values[name]}) for name in noted)

    @mistake("holds() replaces the noted values when they change. But the trace is still the old one: never note again")
    def notes_again(self, values: Values) -> Any:
        noted = [deepcopy(values)]

        def holds() -> bool:
            same, noted[0] = _alike(noted[0], values), deepcopy(values)
            return same

        return holds


class Heard:
    """A guard as a student's function; for a story, what it says."""

    def __init__(self, guard: Callable[[Values], Any]) -> None:
        self.guard = guard

    def __call__(self, given: Any) -> Any:
        return [bool(said) for _, said in given.told(self.guard)] if isinstance(given, Story) else self.guard(given)


def careful(values: Values) -> Callable[[], bool]:
    """The right guard."""
    noted = deepcopy(values)
    return lambda: _alike(noted, values)


def _alike(one: Values, other: Values) -> bool:
    kinds = [{name: type(value) for name, value in each.items()} for each in (one, other)]
    return one == other and kinds[0] == kinds[1]
