"""All-reduce on 2 ranks: minigrad beside mpi4py, which moves its arrays, and beside torch.distributed on gloo.

    python3 course bench distributed --threads 1
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _harness import ROOT, Case, Options, Row, options, report

SIZES = (1, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)  # floats
ELEMENTS = 2_000_000  # about as many are summed in one timing
WAYS = {"all-reduce": ("minigrad", "mpi4py", "torch"), "all-reduce, started and awaited": ("minigrad", "mpi4py")}


def works(way: str, size: int, torch: Any) -> dict[str, Callable[[], Any]]:
    """The call of each contender."""
    import numpy as np
    from mpi4py import MPI

    import minigrad as mg

    comm, world, array = mg.distributed.communicator(), MPI.COMM_WORLD, np.ones(size, np.float32)
    tensor, out = mg.asarray(array.copy()), np.empty_like(array)
    if way != "all-reduce":
        zeros = np.zeros_like(array)
        return {
            "minigrad": lambda: comm.start_allreduce(tensor, "max").wait(),
            "mpi4py": lambda: world.Iallreduce(MPI.IN_PLACE, zeros, MPI.MAX).Wait(),
        }
    found = {"minigrad": lambda: comm.allreduce(tensor), "mpi4py": lambda: world.Allreduce(array, out)}
    if torch is not None:
        given = torch.zeros(size)
        found["torch"] = lambda: torch.distributed.all_reduce(given)
    return found


def rank(rounds: int, sizes: list[int], meeting: str) -> None:
    """One rank: the seconds of a call of each contender, in turns; rank 0 prints them."""
    from mpi4py import MPI

    world, torch = MPI.COMM_WORLD, None
    if meeting:
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=world.rank, world_size=world.size
        )
    found = {}
    for way in WAYS:
        for size in sizes:
            calls = max(1, min(300, ELEMENTS // size)) if rounds > 1 else 1
            contenders = works(way, size, torch)
            for work in contenders.values():
                work()
            found[f"{way}, {4 * size:,} B"] = [
                {name: _seconds(work, calls, world) for name, work in contenders.items()} for _ in range(rounds)
            ]
    if world.rank == 0:
        print(json.dumps(found))


def _seconds(work: Callable[[], Any], calls: int, world: Any) -> float:
    world.Barrier()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def rows(opts: Options) -> list[Row]:
    """The lines of the table; none without mpi4py."""
    if not opts.has("mpi4py"):
        return []
    sizes = SIZES[:2] if opts.smoke else SIZES
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting") if opts.has("torch") else ""
        arguments = ["--rank", str(opts.rounds), json.dumps(sizes), meeting]
        command = [sys.executable, "-m", "minigrad.distributed", "-n", "2", __file__, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout).items()
    return [Row(_case(name, tuple(rounds[0]), sizes[i % len(sizes)]), rounds) for i, (name, rounds) in enumerate(found)]


def _case(name: str, contenders: tuple[str, ...], size: int) -> Case:
    """0.9 times the bandwidth of mpi4py is the goal of large arrays; small ones show what a call adds in Python."""
    goal = 1.11 if size >= 1_000_000 else None
    return Case(name, contenders, lambda _: lambda: None, goal, "mpi4py", minima=True)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=15)
    return report("All-reduce on 2 ranks", rows(opts), opts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank(int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
    else:
        main()
