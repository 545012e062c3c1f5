"""What each rank runs, by `python -m minigrad.distributed -n 4 on_ranks.py ORDER RESULT`: a training with pieces."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from minigrad.distributed import communicator
from minigrad_course.framework.collected import Collected
from minigrad_course.framework.training import PROGRAMS, Pieces, by_pieces


def main(order: str, result: str) -> None:
    """Train by the order in a file; rank 0 writes the result."""
    given, comm = json.loads(Path(order).read_text(encoding="utf-8")), communicator()
    file = Collected(given["text"], given["names"], [])
    run = by_pieces(Pieces(given["student"], file.loaded()), PROGRAMS[given["program"]], comm)
    if comm.rank == 0:
        shown = {"before": np.asarray(run.before).tolist(), "after": np.asarray(run.after).tolist()}
        Path(result).write_text(json.dumps(run._asdict() | shown), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
