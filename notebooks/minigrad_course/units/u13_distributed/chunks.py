"""The ring, acted out: which workers' numbers are in each chunk, after each round, also where it goes wrong.

A chunk holds counts: entry (i, c) says how many times chunk c of worker i is in it.  Any program that only adds and
copies can run on counts instead of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.svg import number

WIDE, HIGH, APART, TOP, LEFT = 84.0, 42.0, 26.0, 48.0, 84.0  # of a chunk, between workers, and of the table
SMALL, BETWEEN = 54.0, 92.0  # a chunk where three tables stand side by side, and the room between two tables
THREE = 3  # workers of `act_out`


class Sent(NamedTuple):
    """A chunk that a worker sends to another one."""

    sender: int
    receiver: int
    chunk: int


def counts(workers: int) -> list[list[Any]]:
    """What the workers begin with: each chunk holds itself, once."""
    ones = np.eye(workers * workers).reshape(workers, workers, workers * workers)
    return [[chunk.copy() for chunk in row] for row in ones]


def problem(chunk: Any, number: int) -> str:
    """What is wrong with a chunk that should be the total of chunk `number` of all workers; empty if it is right.

    >>> problem(counts(2)[0][1], 1)
    'the part of worker 1 is missing'
    """
    workers = round(len(chunk) ** 0.5)
    table = np.asarray(chunk).reshape(workers, workers)
    own, others = table[:, number], np.delete(table, number, axis=1)
    twice = [f"worker {i} is counted {own[i]:g} times" for i in range(workers) if own[i] > 1]
    missing = [f"the part of worker {i} is missing" for i in range(workers) if own[i] == 0]
    odd = [f"the part of worker {i} is {own[i]:g} of itself" for i in range(workers) if 0 != own[i] < 1]
    mixed = [f"numbers of chunk {c} are in it" for c in range(workers) if c != number and table[:, c].any()]
    return ", ".join([*twice, *missing, *odd, *(mixed if others.any() else [])])


def after(held: list[list[Any]], messages: Sequence[Sent]) -> list[list[Any]]:
    """The chunks after messages that are sent at the same time, and added by their receivers."""
    found = [[chunk.copy() for chunk in row] for row in held]
    for sender, receiver, chunk in messages:
        found[receiver][chunk] += held[sender][chunk]
    return found


def by_plan(plan: Sequence[Sequence[int]], n: int, way: int = 1) -> tuple[list[list[list[Any]]], list[list[Sent]]]:
    """The chunks before each round and at the end, and the messages: `plan[round][worker]` is the chunk it sends."""
    states: list[list[list[Any]]] = [counts(n)]
    rounds = []
    for row in plan:
        rounds.append([Sent(worker, (worker + way) % n, chunk) for worker, chunk in enumerate(row)])
        states.append(after(states[-1], rounds[-1]))
    return states, rounds


# ---- one table: a row for each worker, a column for each chunk -------------------------------------------------------


@cache
def _cell(x: float, y: float, wide: float, column: int, chunk: tuple[float, ...], go: str, chosen: bool) -> str:
    """A chunk as a piece of SVG: a mark for each worker, filled where its part is in the chunk, red where twice."""
    workers = round(len(chunk) ** 0.5)
    table = np.array(chunk).reshape(workers, workers)
    wrong, complete = (table > 1).any() or np.delete(table, column, axis=1).any(), not problem(chunk, column)
    drawing = Drawing(0, 0)
    fill = "leaf-fill" if complete else "there-fill" if table.sum() > 1 and not wrong else "paper"
    stroke = "now" if chosen else "bad" if wrong else "good" if complete else "line"
    about = problem(chunk, column) or "complete"
    thick = 3.2 if chosen else 1.4
    drawing.rect(x, y, wide, HIGH, fill, stroke, thick=thick, about=f"chunk {column}: {about}", go=go)
    apart = min(19.0, (wide - 6) / workers)
    for i in range(workers):
        many, left = table[i, column], x + wide / 2 + (i - workers / 2) * apart + 1
        colour = "bad" if many > 1 else "good" if complete else "there"
        mark = f"M{number(left)} {number(y + 13)}h{number(apart - 3)}v15h-{number(apart - 3)}z"
        drawing.shape(mark, colour if many else "line", 1 if many else 0.4)
        shown = f"{many:g}" if many not in (0, 1) else ""
        drawing.text(left + (apart - 3) / 2, y + 25, shown, size=12, bold=True, fill="paper", anchor="middle")
    if np.delete(table, column, axis=1).any():
        drawing.text(x + wide / 2, y + 11, "mixed", size=10, fill="bad", anchor="middle")
    return "".join(drawing.pieces)


def _table(drawing: Drawing, held: list[list[Any]], x: float, wide: float, go: Any, chosen: Any) -> None:
    for worker, row in enumerate(held):
        for column, chunk in enumerate(row):
            place = x + column * wide, TOP + worker * (HIGH + APART)
            drawing.add(_cell(*place, wide - 6, column, tuple(chunk), go(worker, column), chosen(worker, column)))


def _names(drawing: Drawing, workers: int, x: float, wide: float, title: str, rows: bool) -> None:
    drawing.heading(x, 12, title)
    for i in range(workers):
        drawing.text(x + i * wide + wide / 2 - 3, TOP - 19, f"chunk {i}", fill="quiet", anchor="middle")
        if rows:
            y = TOP + i * (HIGH + APART) + HIGH / 2 + 4
            drawing.text(x - 12, y, f"worker {i}", size=12, bold=True, anchor="end")


# ---- programs and plans, round by round ------------------------------------------------------------------------------


def rounds_of(title: str, states: Sequence[list[list[Any]]], rounds: Sequence[Sequence[Sent]], says: str) -> Flipbook:
    """A page for each round: what the workers hold before it, what they send, and in the end what is wrong."""
    n = len(states[0])
    pages = []
    for i, held in enumerate(states):
        messages = rounds[i] if i < len(rounds) else ()
        sent = {(each.sender, each.chunk) for each in messages}
        drawing = Drawing(LEFT + n * WIDE + 60, TOP + n * (HIGH + APART) - 10)
        _names(drawing, n, LEFT, WIDE, f"round {i + 1} of {len(rounds)}" if messages else "in the end", True)
        _table(drawing, held, LEFT, WIDE, lambda worker, column: "",
               lambda worker, column: (worker, column) in sent)  # noqa: B023
        for each in messages:
            _arrow(drawing, each, n)
        pages.append(Page(drawing, "Each worker sends the framed chunk." if messages else says))
    return Flipbook(title, [pages], cover=len(pages) - 1, unit="round")


def _arrow(drawing: Drawing, each: Sent, workers: int) -> None:
    """From the row of the sender to that of the receiver; the long ones go around on the right."""
    x, down = LEFT + each.chunk * WIDE + (WIDE - 6) / 2, each.sender > each.receiver
    rows = [TOP + worker * (HIGH + APART) for worker in (each.sender, each.receiver)]
    if abs(each.receiver - each.sender) == 1:
        ends = [(x, rows[0] - 2), (x, rows[1] + HIGH + 3)] if down else [(x, rows[0] + HIGH + 2), (x, rows[1] - 3)]
        drawing.path(ends, "back", thick=2.2, arrow=True)
        return
    start, end = (rows[0] + HIGH + 2, rows[1] - 3) if down else (rows[0] - 2, rows[1] + HIGH + 3)
    way, edge = 9 if down else -9, LEFT + workers * WIDE + 8
    drawing.path([(x, start), (x, start + way), (edge, start + way), (edge, end - way), (x, end - way), (x, end)],
                 "back", thick=2.2, arrow=True)


def faults(held: list[list[Any]], places: Sequence[tuple[int, int]]) -> list[str]:
    """What is wrong with chunks, given as (worker, chunk)."""
    found = [(worker, chunk, problem(held[worker][chunk], chunk)) for worker, chunk in places]
    return [f"chunk {chunk} of worker {worker}: {words}" for worker, chunk, words in found if words]


# ---- three workers, to click -----------------------------------------------------------------------------------------


@cache
def act_out() -> Flipbook:
    """Three workers, two rounds: a click on a chunk of a worker makes it the chunk that this worker sends.

    >>> act_out()
    <three workers, two rounds: click the chunk that each worker sends>
    """
    knobs = tuple(
        Knob(f"round {i + 1}, worker {worker}", tuple(f"chunk {c}" for c in range(THREE)), worker, drawn=True)
        for i in range(THREE - 1) for worker in range(THREE)
    )
    pages = []
    for choice in product(range(THREE), repeat=len(knobs)):
        plan = choice[:THREE], choice[THREE:]
        states, rounds = by_plan(plan, THREE)
        pages.append([Page(_side_by_side(states, rounds, plan), _said(states[-1]))])
    title = "three workers, two rounds: click the chunk that each worker sends"
    return Flipbook(title, pages, knobs, cover=0, words=_said(by_plan([[0, 1, 2]] * 2, THREE)[0][-1]))


def _side_by_side(states: Any, rounds: Any, plan: Any) -> Drawing:
    step = THREE * SMALL + BETWEEN
    drawing = Drawing(LEFT + 3 * step - BETWEEN, TOP + THREE * (HIGH + APART))
    for i, held in enumerate(states):
        x = LEFT + i * step
        _names(drawing, THREE, x, SMALL, ("before", "after round 1", "after round 2")[i], i == 0)

        def go(worker: int, column: int, i: int = i) -> str:
            return f"{THREE * i + worker}:{column}" if i < len(plan) else ""

        def chosen(worker: int, column: int, i: int = i) -> bool:
            return i < len(plan) and plan[i][worker] == column

        _table(drawing, held, x, SMALL, go, chosen)
        for sender, receiver, chunk in rounds[i] if i < len(rounds) else ():
            ys = [TOP + worker * (HIGH + APART) + HIGH / 2 for worker in (sender, receiver)]
            start, end = x + (THREE * SMALL) + 2, x + step - 6
            drawing.path([(start, ys[0]), (end, ys[1])], "back", thick=2.2, arrow=True)
            middle = start + 0.16 * (end - start), ys[0] + 0.16 * (ys[1] - ys[0])
            drawing.dot(*middle, "back", 9.0)
            drawing.text(middle[0], middle[1] + 4, str(chunk), size=12, bold=True, fill="paper", anchor="middle")
    return drawing


def _said(held: list[list[Any]]) -> str:
    cells = [(worker, chunk) for worker in range(THREE) for chunk in range(THREE)]
    ready = {chunk for worker, chunk in cells if not problem(held[worker][chunk], chunk)}
    twice = [(worker, chunk) for worker, chunk in cells if (held[worker][chunk] > 1).any()]
    if len(ready) == THREE:
        return "Every chunk is complete in one of the workers: the totals can go round now."
    if twice:
        return faults(held, twice[:1])[0].capitalize() + "."
    missing = [str(chunk) for chunk in range(THREE) if chunk not in ready]
    return f"No worker has all of chunk {' or '.join(missing)}. Click the chunks that the workers should send."
