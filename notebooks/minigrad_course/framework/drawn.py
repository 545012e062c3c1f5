"""The picture of a framework: the rooms of the library, each filled as far as it is the student's, and two curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from minigrad.data import digits
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ..letters import names_drawn
from ..views.readings import reading
from .pieces import COMPILED, EAGER, JOBS
from .training import ARGUMENTS

if TYPE_CHECKING:
    from . import Framework

WIDE, HIGH, APART, ACROSS = 196.0, 62.0, 14.0, 4


def drawn(framework: Framework) -> Flipbook:
    """The rooms, the curves, and what the network made before and after."""
    said = repr(framework)
    pages = [Page(_rooms(framework), said.replace("\n", ". ") + ".", (), "rooms"),
             Page(_curves(framework), "The loss of each step, by your framework and by minigrad alone.", (), "curves"),
             _before_and_after(framework)]
    return Flipbook(said.partition("\n")[0], [pages], cover=0, unit="picture", words=f"{said}\n{framework.table()}")


def _before_and_after(framework: Framework) -> Page:
    run = framework.run
    losses = [(float(i), value) for i, value in enumerate(run.losses, 1)]
    if framework.program == "digits":
        images, labels = digits()[1].arrays
        book = reading("", losses, images.reshape(-1, 8, 8), labels, np.asarray(run.before), np.asarray(run.after))
        return book.pages[0][0]
    return Page(names_drawn(losses, run.before, run.after), "Names that the GPT made up.", (), "before and after")


def _rooms(framework: Framework) -> Drawing:
    """A box for each job, as full as it is the student's, with the pieces that do it."""
    written: dict[str, list[str]] = {}
    for each in (*EAGER, *COMPILED):
        if all(name in framework.file.names for name in each.tasks):
            written.setdefault(each.job, []).extend(each.tasks)
    for job, names in ARGUMENTS.items():
        written.setdefault(job, []).extend([name for name in names if name in framework.file.names][:1])
    drawing = Drawing(ACROSS * (WIDE + APART) - APART, 0)
    column, y = 0, 16.0
    for room, says in ROOMS.items():
        jobs = [job for job in JOBS if JOBS[job][1] == room]
        if column + len(jobs) > ACROSS:
            column, y = 0, y + HIGH + 44
        drawing.heading(column * (WIDE + APART), y, f"{room}: {says}")
        for i, job in enumerate(jobs):
            x, times = (column + i) * (WIDE + APART), framework.jobs.get(job, (0, 0))
            _box(drawing, x, y + 8, job, times, written.get(job, []))
        column += len(jobs)
    drawing.height = y + 8 + HIGH
    return drawing


ROOMS = {  # in an order that fills the rows of the picture
    "ops": "arrays", "nn": "layers", "devices": "kernels", "train": "the loop", "autodiff": "gradients",
    "optim": "updates", "core": "what is recorded", "distributed": "ranks", "compile": "a step as a program",
}


def _box(drawing: Drawing, x: float, y: float, job: str, times: tuple[int, int], names: list[str]) -> None:
    mine, every = times
    drawing.rect(x, y, WIDE, HIGH, "paper", "line", round=5)
    if mine:
        drawing.rect(x, y, WIDE * mine / every, HIGH, "leaf-fill", "good", round=5)
    count = f"{mine:,} of {every:,} yours" if every else "not measured yet"
    drawing.text(x + 8, y + 18, JOBS[job][0], size=13, bold=True, room=WIDE - 12)
    drawing.text(x + 8, y + 36, count, size=12, fill="quiet" if not mine else "ink", room=WIDE - 12)
    drawing.text(x + 8, y + 53, ", ".join(names), size=11, code=True, room=WIDE - 12)


def _curves(framework: Framework) -> Drawing:
    drawing = Drawing(760, 300)
    runs = {"your framework": framework.run.losses, "minigrad alone": framework.engine}
    points = {name: [(float(i), loss) for i, loss in enumerate(losses, 1)] for name, losses in runs.items()}
    curves(drawing, (0, 0, 640, 280), points, "loss of each step")
    return drawing
