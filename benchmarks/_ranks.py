"""Benchmarks on several ranks: they start themselves again under mpirun, and rank 0 prints its figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _harness import ROOT, Options


def ran(script: str, ranks: int, *arguments: Any, variables: Mapping[str, str] | None = None) -> Any:
    """What rank 0 prints when this number of ranks runs a script with these arguments."""
    command = [sys.executable, "-m", "minigrad.distributed", "-n", str(ranks), script, *map(json.dumps, arguments)]
    done = subprocess.run(command, env=os.environ | (variables or {}), capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


@contextmanager
def meeting_point(opts: Options) -> Iterator[str]:
    """The path of a file at which the ranks of torch.distributed find each other; empty without torch."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "meeting") if opts.has("torch") else ""


def joined(meeting: str) -> tuple[Any, Any]:
    """All ranks, in MPI and in torch.distributed: the world of mpi4py, and torch, or None without a meeting point."""
    from mpi4py import MPI

    world, torch = MPI.COMM_WORLD, None
    if meeting:
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=world.rank, world_size=world.size
        )
    return world, torch


def seconds(work: Callable[[], Any], calls: int, world: Any) -> float:
    """The time of a call, from when all ranks are there.  The first call, after another contender's, is not timed."""
    work()
    world.Barrier()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls
