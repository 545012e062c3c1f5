"""Pictures of memory: what an in-place write spoils, and which names share an array."""

from __future__ import annotations

from typing import Any, ClassVar

from minigrad.ops.creation import asarray
from minigrad.support.errors import MutationError
from minigrad.viz.drawing import Drawing

from ..source_code import run_code
from .broken_picture import BrokenNames, Thread
from .drawn import Plan, Spot, table

PROGRAMS = {  # the code, what the rule keeps, what the write changes
    "A": ("y = w * c;  c[0] = 7", "c, version 0", "c, to version 1"),
    "B": ("y = w + c;  c[0] = 7", "nothing", "c, to version 1"),
    "C": ("v = c[1:];  y = w * c;  v[0] = 7", "c, version 0", "c, to version 1"),
    "D": ("y = w.exp();  y += 1", "the old y", "a new y"),
    "E": ("y = w * c;  c = c * 7", "c, version 0", "a new c"),
}


class Stopped(BrokenNames):
    """The same write in place stops backward() after one formula, and not after another one that computes the same
    numbers. A user asks which of the two is the bug."""

    name = "stopped"
    thread = Thread("backward pass different behaviors with inplace operation",
                    "https://github.com/pytorch/pytorch/issues/9391")
    taught_in = ("02_arrays", "06_reverse_mode")
    code = "\n".join(f"{code:36} # {letter}" for letter, (code, _, _) in PROGRAMS.items()) + "\ny.sum().backward()"
    names = tuple(PROGRAMS)
    broken = ["A", "B", "C", "D", "E"]

    def right(self) -> list[str]:
        """The programs that the library stops."""
        found = []
        for letter, (code, _, _) in PROGRAMS.items():
            names: dict[str, Any] = {"w": asarray([1.0, 2.0], requires_grad=True), "c": asarray([3.0, 4.0])}
            run_code(code, names)
            try:
                names["y"].sum().backward()
            except MutationError:
                found.append(letter)
        return found

    def draw(self, value: list[str]) -> Drawing:
        rows = {f"{letter}  {code}": (keeps, changes, "stops" if letter in value else "runs")
                for letter, (code, keeps, changes) in PROGRAMS.items()}
        lit = [(i, 2) for i, letter in enumerate(PROGRAMS) if letter in value]
        return table(("kept", "changed", "backward()"), rows, (), lit, first=306)


VIEWS = {
    "b": "a.reshape(2, 3)", "c": "a.reshape(2, 3).T", "d": "a + 0", "e": "a[[0, 1, 2]]", "f": "a[:3]", "g": "a",
}


class SeesTheWrite(BrokenNames):
    """A user reshapes a tensor, saves the result under another name, and changes it. The first tensor has changed too,
    which the user reports as a bug."""

    name = "sees_the_write"
    thread = Thread("Using reshape without clone gives unexpected results",
                    "https://github.com/pytorch/pytorch/issues/100900")
    taught_in = ("02_arrays",)
    code = (
        "a = mg.asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])\n"
        + "\n".join(f"{name} = {code}" for name, code in VIEWS.items()) + "\na[0] = 100"
    )
    names = tuple(VIEWS)  # an answer may list a too
    broken: ClassVar[list[str]] = []

    def read(self, answer: Any) -> Any:
        return [name for name in super().read(answer) if name != "a"]

    def right(self) -> list[str]:
        """The names whose first number is 100 after the write."""
        names: dict[str, Any] = {"a": asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])}
        run_code("\n".join([*[f"{name} = {code}" for name, code in VIEWS.items()], "a[0] = 100"]), names)
        return [name for name in VIEWS if names[name].numpy().reshape(-1)[0] == 100]

    def draw(self, value: list[str]) -> Plan:
        plan = Plan(42.0 * (len(VIEWS) + 1), 600)
        plan.box("a", 40, 21, look="given", width=50)
        plan.box("array", 480, 21, width=190, name="100  1  2  3  4  5")
        plan.link("a", "array")
        for i, (name, code) in enumerate(VIEWS.items(), 1):
            y = 21 + 42.0 * i
            plan.box(name, 40, y, width=50)
            plan.text(74, y + 5, f"= {code}", size=13, code=True)
            plan.spots[f"{name} ends"] = Spot(230, y, 10, 20)
            if name not in value:
                numbers = "0  1  2" if name in "ef" else "0  1  2  3  4  5"
                plan.box(f"own {name}", 480, y, look="waiting", width=190, name=numbers)
            plan.link(f"{name} ends", "array" if name in value else f"own {name}",
                      colour="there" if name in value else "line")
        return plan
