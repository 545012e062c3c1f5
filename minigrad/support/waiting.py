"""Progress bars for work that takes longer than expected."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds before a bar appears


def is_drawn() -> bool:
    """Whether a bar can be drawn: in a terminal, and in a cell of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return (shell is not None and hasattr(shell, "kernel")) or sys.stderr.isatty()


def with_bar(work: Sequence[T], label: str) -> Iterator[T]:
    """Go through the work.  If it takes more than two seconds, a bar appears, and disappears at the end.

    >>> [*with_bar("ab", "letters")]
    ['a', 'b']
    """
    begun, bar = time.monotonic(), None
    try:
        for done, each in enumerate(work):
            if bar is None and time.monotonic() - begun > PATIENCE and is_drawn():
                from tqdm.auto import tqdm  # only now: it would make each first call slower

                bar = tqdm(desc=label, total=len(work), initial=done, leave=False, dynamic_ncols=True)
            yield each
            if bar is not None:
                bar.update()
    finally:
        if bar is not None:
            bar.close()
