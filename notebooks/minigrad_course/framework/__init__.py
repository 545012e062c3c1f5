"""A student's own framework: all that passed its check, collected in a file, and put into the engine together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.data import digits
from minigrad.support.files import write_whole
from minigrad.support.packages import how_to_install
from minigrad.support.table import as_table, counted
from minigrad.viz.flipbook import Flipbook

from ..feedback import Misused, NotWritten
from ..session import SESSION, opened
from ..units.u13_distributed.training import missing, on_real_ranks
from .collected import FILE, Collected, collected
from .drawn import drawn
from .pieces import COMPILED, JOBS
from .training import PROGRAMS, Pieces, Run, by_engine, by_pieces, compiled

VALUES = ("my_rules", "gpt_plan")  # the right answers without a function that the engine takes


@dataclass(frozen=True, repr=False)
class Framework:
    """A student's framework: its file, a training with it, and the same training by the engine alone."""

    author: str
    program: str
    path: Path | None
    file: Collected
    run: Run
    engine: list[float]
    jobs: dict[str, tuple[int, int]]

    @property
    def apart(self) -> float:
        """How far the two curves of the loss are from each other."""
        return float(np.abs(np.subtract(self.run.losses, self.engine)).max())

    def __repr__(self) -> str:
        mine, every = (sum(part) for part in zip(*self.jobs.values()))
        said = [
            f"{self.author}: {counted(len(self.file.names), 'piece')} in {FILE}" if self.path else
            f"{self.author}: {counted(len(self.file.names), 'piece')}",
            f"{mine / every:.0%} of what the engine does is your code: {mine:,} of {every:,} calls, "
            f"{self.run.share:.0%} of the time",
            f"{self.learned()}; " + (
                "the losses are those of minigrad alone" if self.apart < 1e-3 else
                f"the losses are up to {self.apart:.2g} from those of minigrad alone"),
        ]
        if self.file.missing:
            them = "them" if self.file.missing[1:] else "it"
            said.append(f"without {', '.join(self.file.missing)}: check {them} again")
        return "\n".join(said)

    def learned(self) -> str:
        """What the network can do after the training, in words."""
        if self.program == "names":
            return f"loss {self.run.losses[0]:.2f} → {self.run.losses[-1]:.2f}, and names like {self.run.after[0]}"
        labels = digits()[1].arrays[1]
        return f"{(np.asarray(self.run.after) == labels).sum()} of {len(labels)} digits read"

    def table(self) -> str:
        """What each room of the library does in the training, and how much of it is the student's."""
        rows = [(room, what, f"{mine:,}", f"{every:,}") for (what, room), (mine, every) in
                [(JOBS[job], times) for job, times in self.jobs.items()]]
        return as_table(("room", "what", "yours", "all"), rows, left=2)

    @cached_property
    def picture(self) -> Flipbook:
        """The rooms of the library, with the student's part of each, and the two curves."""
        return drawn(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


def my_pieces() -> dict[str, Any]:
    """What you wrote and what passed its check, by name: functions, rules and plans.

    >>> my_pieces()
    {}
    """
    return collected(opened(), VALUES).loaded()


def my_framework(program: str = "digits", ranks: int = 1) -> Framework:
    """Collect what you wrote in `my_framework.py`, and train a network with all of it in the engine's place.

    `program` is "digits" or "names", a small GPT.  With `ranks=4`, four processes train it, and your ring adds up their
    gradients.  The file is beside the file of your progress; without that, the framework lasts as long as the kernel.
    """
    if program not in PROGRAMS:
        raise Misused(program, "there is no such program", 'write "digits" or "names"')
    progress = opened()
    file = collected(progress, VALUES)
    path = None if progress.path is None else progress.path.with_name(FILE)
    if path is not None:
        write_whole(path, file.text)
    pieces = Pieces(progress.student, file.loaded())
    if not pieces.found:
        raise NotWritten("my_framework", "no function of yours has passed its check yet", "begin with unit 00")
    if ranks > 1:
        run = _on_ranks(progress.student, file, program)
    else:
        run = by_pieces(pieces, PROGRAMS[program])
    jobs = run.jobs | (compiled(pieces) if any(set(each.tasks) <= pieces.found.keys() for each in COMPILED) else {})
    return Framework(SESSION.author, program, path, file, run, by_engine(pieces, PROGRAMS[program]), jobs)


def _on_ranks(student: str, file: Collected, program: str) -> Run:
    if lacks := missing():
        raise Misused("my_framework", f"{lacks} is not installed", f"{how_to_install('mpi4py')}, or leave ranks out")
    order = {"student": student, "text": file.text, "names": file.names, "program": program}
    found = on_real_ranks(str(Path(__file__).with_name("on_ranks.py")), json.dumps(order))
    return Run(**found | {"jobs": {job: tuple(times) for job, times in found["jobs"].items()}})
