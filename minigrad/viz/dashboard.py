"""`mg.viz.Dashboard`: a training run: curves with every step, weights and their gradients.

Any loop can log to it: `board.log(step, loss=loss, model=model)`.  In a notebook the dashboard updates
itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar

from ..nn.module import Module
from ..support.errors import ConversionError
from ..support.source import notebook_shell
from .drawing import SERIES
from .exhibit import Data, Exhibit, in_theme
from .flipbook import Flipbook
from .logs import Log, steps_of
from .runs import NUMBERS, rows_of, runs_book

OFTEN = 1.0  # seconds between two pictures in a notebook


class Dashboard(Log, Exhibit):
    """The log of a training run, step by step.

    `show` is "auto", which draws the run in a notebook while it goes
    on, or "nothing".  In a notebook, the other runs of the notebook that logged the same numbers are shown with this
    one, each under its `name`; a new run replaces one with its name.  `Dashboard.forget()` takes the other runs away.

    >>> board = mg.viz.Dashboard(show="nothing")
    >>> for step in range(1, 5):
    ...     board.log(step, loss=1.0 / step, accuracy=0.25 * step)
    >>> board
    <training: 4 steps, loss 1 → 0.25, accuracy 0.25 → 1>
    >>> print(board.text())
              first  last  least  most
    loss          1  0.25   0.25     1
    accuracy   0.25     1   0.25     1
    """

    script = "flipbook"
    _begun_here: ClassVar[dict[str, Log]] = {}  # the last runs of this notebook, by name

    def __init__(self, *, show: str = "auto", name: str | None = None) -> None:
        if show not in ("auto", "nothing"):
            raise ConversionError(f"Dashboard: there is no way to show {show!r}", expect="'auto' or 'nothing'")
        super().__init__()
        self.show = show
        self._screen: Any = None
        self._drawn, self._late = 0.0, False  # when a picture was drawn, and whether a step came after it
        here = self._begun_here if _in_a_notebook() else {}
        self.name = name or next(new for i in count(1) if (new := f"run {i}") not in here)
        here.pop(self.name, None)
        here[self.name] = self
        for oldest in [*here][: -len(SERIES)]:
            del here[oldest]

    @classmethod
    def forget(cls) -> None:
        """Forget all runs of this notebook, so that the next ones are shown without them."""
        cls._begun_here.clear()

    def runs(self) -> dict[str, Log]:
        """This run, and the other runs of the notebook that logged some of its numbers."""
        here = self._begun_here if self._begun_here.get(self.name) is self else {}
        return {self.name: self, **{name: log for name, log in here.items() if self.numbers.keys() & log.numbers}}

    # logging --------------------------------------------------------------------------------------------------------

    def log(self, step: int, *, model: Module | None = None, **numbers: Any) -> None:
        """Log a step: numbers by name, and the weights and the gradient of the model.

        Of the model, the norm of the gradient and the parameters that are single numbers become curves, too.

        Call this after `backward()` and before the gradients are cleared.
        """
        self.record(step, numbers, model)
        if not self._late and self.show == "auto" and _in_a_notebook():
            self._late = True
            notebook_shell().events.register("post_run_cell", self._draw)
        if time.monotonic() - self._drawn > OFTEN:
            self._draw()

    def _draw(self, *_: Any) -> None:
        """Draw what came after the last picture: from time to time, and at the end of each cell."""
        if not self._late:
            return
        from IPython.display import HTML, display

        picture = HTML(in_theme(self._static()))
        if self._screen is None:
            self._screen = display(picture, display_id=True)
        else:
            self._screen.update(picture)
        self._drawn, self._late = time.monotonic(), False
        notebook_shell().events.unregister("post_run_cell", self._draw)  # which would keep the log alive

    # how it is shown ------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:  # type: ignore[override]
        """The first and the last of each number."""
        if not self.numbers:
            return "training: nothing logged yet"
        ends = [f"{name} {first} → {last}" for name, first, last, *_ in rows_of({"": self})[:NUMBERS]]
        ends += ["…"] * (len(self.numbers) > NUMBERS)
        return f"training: {', '.join([steps_of([self]), *ends])}"

    def in_words(self) -> str:
        """The numbers as a table."""
        return self.book(live=True).text()

    def data(self) -> Data:
        """All that is shown, as plain data."""
        return self.book().data()

    def to_svg(self) -> str:
        """The state at the last step."""
        return self.book(live=True).to_svg()

    def frames(self) -> Iterator[tuple[str, str]]:
        """Each of some moments."""
        return self.book().frames()

    def book(self, live: bool = False) -> Flipbook:
        """A page for each of some moments; the last moment is shown first.  If `live`, it is the only one."""
        return runs_book(self.runs(), self.said(), live)


def _in_a_notebook() -> bool:
    return hasattr(notebook_shell(), "kernel")
