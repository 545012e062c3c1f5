"""Unit 14: the order of the rooms, and the report on the four programs."""

from __future__ import annotations

import random
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from minigrad.support.files import write_whole
from minigrad.support.table import as_table

from ...feedback import Misused, Wrong, written
from ...forms import names_in
from ...results import STYLE
from ...session import SESSION
from ...tasks import ROUNDS, ValueTask
from .about import UNIT
from .constellations import constellations
from .runs import LAST

STATIONS = {  # rooms of the library, in the order in which a line meets them
    "ops": "checks the arguments, and declares formula and gradient rule",
    "core": "makes a node: the operation and its inputs",
    "autodiff": "goes back through the nodes, and adds those of the gradient",
    "rewriting": "applies equations to the graph, and merges what is the same",
    "fusion": "decides which operations run in one kernel",
    "lowering": "makes loops of a kernel",
    "codegen": "prints loops as text for LLVM or CUDA",
    "running": "launches the kernels on arrays",
}

@UNIT.task
class LineRooms(ValueTask):
    """The rooms of the library in the order in which a line of code meets them."""

    name, mistakes = "line_rooms", ()

    def vary(self, draw: random.Random) -> None:
        letters = list("ABCDEFGH")
        draw.shuffle(letters)
        self.letters = dict(zip(STATIONS, letters))

    def listed(self) -> str:
        """The list in the text."""
        return "".join(f"\n- **{letter}** {STATIONS[room]}"
                         for room, letter in sorted(self.letters.items(), key=lambda item: item[1]))

    def right(self) -> list[str]:
        return list(self.letters.values())

    def explained(self) -> str:
        return ", ".join(STATIONS) + ": the rooms of the library are the stages of a line."

    def read(self, answer: Any) -> Any:
        parts = names_in(answer)
        if parts is None:
            raise self.misformed(answer, f"letters: {self.example}")
        letters = list("".join(parts).upper())
        if sorted(letters) != sorted(self.letters.values()):
            raise Wrong(self.name, f"{''.join(letters)} does not have each of the eight letters once", self.example)
        return letters

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given = self.read(answer)
        places = [given.index(letter) for letter in self.right()]
        late = [number for number, (one, two) in enumerate(pairwise(places)) if one > two]
        self.otherwise = self.words(self.mistakes[late[0]]) if late else type(self).otherwise
        return super().check(answer, rounds)

    def swapped(self, one: str, two: str) -> list[str]:
        """The right order, with two rooms exchanged."""
        change = {self.letters[one]: self.letters[two], self.letters[two]: self.letters[one]}
        return [change.get(each, each) for each in self.right()]


# ---- the report ------------------------------------------------------------------------------------------------------

SENTENCES, LEAST = 3, 5  # sentences, and words of a sentence


class Report:
    """A page on the four programs: scores, curves, graphs, launches, and the student's sentences."""

    def __init__(self, sentences: Any) -> None:
        self.runs = {name: run for name, run in LAST.items() if run is not None}
        if not self.runs:
            raise Misused("report", "no training yet", "run the cells that train the programs")
        self.sentences = list(sentences) if isinstance(sentences, list | tuple) else []

    def __repr__(self) -> str:
        passed = sum(run.passed for run in self.runs.values())
        return f"<report of {SESSION.author}: {passed} of {len(self.runs)} floors reached>"

    def rows(self) -> list[tuple[str, ...]]:
        """For each program: its score, its floor, and what a step takes."""
        found: list[tuple[str, ...]] = []
        for name, run in self.runs.items():
            program, taken = run.program, run.taken
            counts = ("–",) * 3 if taken is None else (
                str(taken.nodes), str(taken.launches), str(taken.fused))
            sign = "✓" if run.passed else "✗"
            found.append((name, program.kind, f"{sign} {run.scored}", f"{program.floor:g}", *counts))
        return found + [(name, "not trained", "–", "–", "–", "–", "–") for name, run in LAST.items() if run is None]

    def table(self) -> str:
        """The rows as a table of text."""
        return as_table(HEAD, self.rows(), left=3)

    def picture(self) -> Any:
        """The graphs of the steps that can be recorded, with the shared primitives lit."""
        return constellations({name: run.taken.graph for name, run in self.runs.items() if run.taken is not None})

    def page(self) -> str:
        """The report as HTML."""
        body = [f"<h1>One engine, {len(self.runs)} applications: {escape(SESSION.author)}</h1>"]
        body += [f"<p>{escape(str(each))}</p>" for each in self.sentences]
        cells = [[f"<td>{escape(each)}</td>" for each in row] for row in (HEAD, *self.rows())]
        body.append("<table>" + "".join(f"<tr>{''.join(row)}</tr>" for row in cells) + "</table>")
        pictures = [self.picture(), *[run.picture for run in self.runs.values()]]
        body += [f"<h2>{escape(each.title)}</h2>{each.to_svg()}" for each in pictures]
        return "\n".join(body)

    def _repr_html_(self) -> str:
        return f'<div style="background:#fff;color:#111;padding:1em">{self.page()}</div>'

    def save(self, path: str = "capstone.html") -> None:
        """Write the report to a file, to print or to hand in."""
        head = f'<meta charset="utf-8"><title>{escape(repr(self)[1:-1])}</title><style>{STYLE}</style>'
        write_whole(Path(path), f'<!doctype html><html lang="en"><head>{head}</head><body>{self.page()}</body></html>')
        print(f"The report is {Path(path).name}.")


HEAD = ("program", "kind", "score", "floor", "nodes", "launches", "fused")


@UNIT.task
class Sentences(ValueTask):
    name, mistakes = "sentences", ()

    def given(self) -> dict[str, Any]:
        return {"report": Report}

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        parts = [answer] if isinstance(answer, str) else answer
        if not isinstance(parts, list | tuple) or not all(isinstance(each, str) for each in parts):
            raise self.misformed(answer)
        if len(parts) != SENTENCES:
            raise Wrong(self.name, f"there are {len(parts)} texts in the list, not three", self.otherwise)
        for each in parts:
            if len(each.split()) < LEAST:
                raise Wrong(self.name, f"{written(each)} is not a sentence yet", f"at least {LEAST} words")
        if len({each.strip().lower() for each in parts}) < SENTENCES:
            raise Wrong(self.name, "two of the sentences are the same", "one on each of the three things")
        return "they are in the report. Only a person can judge what they say."
