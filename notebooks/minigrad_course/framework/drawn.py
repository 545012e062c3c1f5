"""The picture of a framework: the rooms of the library, each filled as far as it is the student's, and two curves."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from minigrad.data import digits
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ..views.readings import reading
from .pieces import COMPILED, EAGER, JOBS
from .training import ARGUMENTS

if TYPE_CHECKING:
    from . import Framework

WIDE, HIGH, APART, ACROSS = 236.0, 62.0, 14.0, 3


def drawn(framework: Framework) -> Flipbook:
    """Three pages: the rooms, the curves, and the digits before and after."""
    said = repr(framework)
    images, labels = digits()[1].arrays
    losses = [(float(i), value) for i, value in enumerate(framework.run.losses, 1)]
    read = reading(said, losses, images.reshape(-1, 8, 8), labels, framework.run.before, framework.run.after)
    pages = [Page(_rooms(framework), said.replace("\n", ". ") + ".", (), "rooms"),
             Page(_curves(framework), "The loss of each step, by your framework and by minigrad alone.", (), "curves"),
             read.pages[0][0]]
    return Flipbook(said.partition("\n")[0], [pages], cover=0, unit="picture", words=f"{said}\n{framework.table()}")


def _rooms(framework: Framework) -> Drawing:
    """A box for each job, as full as it is the student's, with the pieces that do it."""
    written: dict[str, list[str]] = {}
    for each in (*EAGER, *COMPILED):
        if all(name in framework.file.names for name in each.tasks):
            written.setdefault(each.job, []).extend(each.tasks)
    for job, names in ARGUMENTS.items():
        written.setdefault(job, []).extend([name for name in names if name in framework.file.names][:1])
    drawing = Drawing(ACROSS * (WIDE + APART) - APART, 0)
    y = 16.0
    for room, jobs in groupby(sorted(JOBS, key=lambda job: list(ROOMS).index(JOBS[job][1])), key=lambda job: JOBS[job][1]):
        drawing.heading(0, y, f"{room}: {ROOMS[room]}")
        for i, job in enumerate(jobs):
            x, top = i % ACROSS * (WIDE + APART), y + 8 + i // ACROSS * (HIGH + APART)
            _box(drawing, x, top, job, framework.jobs.get(job, (0, 0)), written.get(job, []))
        y = top + HIGH + 34
    drawing.height = y - 30
    return drawing


ROOMS = {
    "ops": "the functions that you call", "nn": "layers", "core": "what is recorded", "devices": "kernels",
    "autodiff": "gradients", "optim": "updates", "train": "the loop", "compile": "a step as one program",
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
