"""All-reduce on 2 ranks: minigrad beside mpi4py, which moves its arrays, and beside torch.distributed on gloo.

The second table compares the model of `mg.distributed.step_time` with data-parallel steps on 2 and 4 ranks.

    python3 course bench distributed --threads 1
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _harness import ROOT, Case, Options, Row, options, report, text_of

SIZES = (1, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)  # floats
RANKS, WIDTH, BATCH = (2, 4), 512, 64  # of the steps that the model predicts
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
        found = _ran(2, "--rank", opts.rounds, sizes, meeting).items()
    return [Row(_case(name, tuple(rounds[0]), sizes[i % len(sizes)]), rounds) for i, (name, rounds) in enumerate(found)]


def _ran(ranks: int, *arguments: Any) -> Any:
    """What rank 0 of a run of this script prints."""
    command = [sys.executable, "-m", "minigrad.distributed", "-n", str(ranks), __file__, *map(json.dumps, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def _case(name: str, contenders: tuple[str, ...], size: int) -> Case:
    """0.9 times the bandwidth of mpi4py is the goal of large arrays; small ones show what a call adds in Python."""
    goal = 1.11 if size >= 1_000_000 else None
    return Case(name, contenders, lambda _: lambda: None, goal, "mpi4py", minima=True)


# The model beside real steps ------------------------------------------------------------------------------------------


def steps(rounds: int, width: int, alone: Any) -> None:
    """One rank: the latency and bandwidth, and the fastest and median step with and without overlap.

    `alone` is the step of one rank, which was measured before; None: measure it.
    """
    import numpy as np

    import minigrad as mg

    comm = mg.distributed.communicator()
    model = mg.nn.Sequential(*[mg.nn.Linear(width, width, bias=False) for _ in range(3)])
    x, optimizer = mg.ones((BATCH, width)), mg.optim.SGD(model.parameters(), lr=0.01)
    if alone is None:
        step = mg.distributed.measure_step(lambda: model(x).mean(), model.parameters(), optimizer.step, runs=rounds)
        print(json.dumps([step.layers, step.update]))
        return
    requests: list[Any] = []

    def work(overlap: bool) -> None:
        def start(p: Any, g: Any) -> None:
            requests.append((p, comm.start_allreduce(g.copy(), "mean")))

        removers = [p.register_hook(lambda g, p=p: start(p, g)) for p in model.parameters() if overlap]
        model(x).mean().backward()
        for p in () if overlap else model.parameters()[::-1]:
            start(p, p.grad)
        for p, request in requests:
            p.grad = request.wait()
        optimizer.step()
        optimizer.zero_grad()
        requests.clear()
        for remove in removers:
            remove()

    machine = mg.distributed.measure_machine(comm, runs=rounds)
    layers = [mg.distributed.Layer(*layer) for layer in alone[0]]
    step = mg.distributed.Step(layers, alone[1], bucket=max(layer.gradients for layer in layers))
    crowded = max(1.0, comm.size / (os.cpu_count() or 1))  # ranks that share a core wait for each other
    lines = []
    for overlap in (True, False):
        times = []
        for _ in range(rounds + 1):
            comm.barrier()
            begin = time.perf_counter()
            work(overlap)
            times.append(time.perf_counter() - begin)
        slowest = sorted(comm.allreduce(np.array(times[1:]), "max").tolist())
        model_of = mg.distributed.step_time(step, machine, comm.size, overlap=overlap, slow=comm.size, slowdown=crowded)
        lines.append([overlap, model_of.compute, model_of.seconds, slowest[0], slowest[len(slowest) // 2]])
    if comm.rank == 0:
        print(json.dumps([machine.latency, machine.bandwidth, lines]))


def predicted(opts: Options) -> str:
    """The table of predicted and measured steps."""
    title = "## Data-parallel steps: the model beside real ranks\n\n"
    if not opts.has("mpi4py"):
        return f"{title}nothing was measured\n"
    rounds, width = (2, 16) if opts.smoke else (4 * opts.rounds, WIDTH)
    alone = _ran(1, "--steps", rounds, width, None)
    head = ("ranks", "latency", "bandwidth", "overlap", "computing", "predicted", "fastest", "median",
            "predicted / fastest")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for ranks in RANKS:
        latency, bandwidth, found = _ran(ranks, "--steps", rounds, width, alone)
        for overlap, *times in found:
            cells = [str(ranks), text_of(latency), f"{bandwidth / 1e9:.2f} GB/s", "yes" if overlap else "no",
                     *map(text_of, times), f"{times[1] / times[2]:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    layers, update = alone
    size = sum(layer[2] for layer in layers) / 1e6
    seconds = sum(layer[0] + layer[1] for layer in layers) + update
    about = (
        f"A step of 3 linear layers of {width}, batch {BATCH}, {size:.3g} MB of gradients, a bucket for each layer. "
        f"One rank alone takes {text_of(seconds)}.\nThe network is the memory of this machine, and the processors of "
        f"the ranks copy the messages, so overlap gains less than the model says.\nMore ranks than processors "
        f"({os.cpu_count()}) compute slower in proportion: the model gets `slow` and `slowdown` for that.\n\n"
    )
    return title + about + "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=15)
    first = report("All-reduce on 2 ranks", rows(opts), opts)
    second = predicted(opts)
    print(second)
    return f"{first}\n{second}"


if __name__ == "__main__":
    roles = {'"--rank"': rank, '"--steps"': steps}
    if sys.argv[1:] and sys.argv[1] in roles:
        roles[sys.argv[1]](*map(json.loads, sys.argv[2:]))
    else:
        main()
