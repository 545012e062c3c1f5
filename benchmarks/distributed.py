"""All-reduce on 2 ranks: minigrad beside mpi4py, which moves its arrays, and beside torch.distributed on gloo.

The second table compares the model of `mg.distributed.step_time` with data-parallel steps on 2 and 4 ranks.

    python3 course bench distributed --threads 1
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from _harness import Case, Options, Row, options, report, text_of
from _ranks import joined, meeting_point, ran, seconds

SIZES = (1, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)  # floats
RANKS, WIDTH, BATCH = (2, 4), 512, 64  # of the steps that the model predicts
ELEMENTS = 20_000_000  # about as many are summed in one timing
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}  # for more ranks than processors
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
    world, torch = joined(meeting)
    found = {}
    for way in WAYS:
        for size in sizes:
            calls = max(1, min(300, ELEMENTS // size)) if rounds > 1 else 1
            contenders = works(way, size, torch)
            for work in contenders.values():
                work()
            found[f"{way}, {4 * size:,} B"] = [
                {name: seconds(work, calls, world) for name, work in contenders.items()} for _ in range(rounds)
            ]
    if world.rank == 0:
        print(json.dumps(found))


def rows(opts: Options) -> list[Row]:
    """The lines of the table; none without mpi4py."""
    if not opts.has("mpi4py"):
        return []
    sizes = SIZES[:2] if opts.smoke else SIZES
    with meeting_point(opts) as meeting:
        found = ran(__file__, 2, "--rank", opts.rounds, sizes, meeting).items()
    return [Row(_case(name, tuple(rounds[0]), sizes[i % len(sizes)]), rounds) for i, (name, rounds) in enumerate(found)]


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


def emulated(ranks: int, step: Any, machine: Any) -> float:
    """The seconds of a step of threads that sleep instead of computing and sending; the real ring moves the arrays."""
    import numpy as np

    import minigrad as mg
    from minigrad.distributed import ring

    def run(comm: Any) -> float:
        wire, slower = _Wire(comm.host, machine), machine.slowdown if comm.rank < machine.slow else 1.0
        comm.barrier()
        begin, before = time.perf_counter(), 0.0
        with ThreadPoolExecutor(1) as sender:
            time.sleep(slower * sum(layer.forward for layer in step.layers))
            for full, size in step.buckets():
                time.sleep(slower * (full - before))
                before = full
                sending = sender.submit(ring.allreduce, wire, np.zeros(int(size) // 4, np.float32))
            sending.result()
        return time.perf_counter() - begin

    return max(mg.distributed.ThreadCommunicators(ranks).run(run))


class _Wire:
    """A rank whose messages take the time of a machine."""

    def __init__(self, engine: Any, machine: Any) -> None:
        self.engine, self.machine, self.rank, self.size = engine, machine, engine.rank, engine.size
        self.recv = engine.recv

    def start_send(self, x: Any, to: int) -> Any:
        time.sleep(self.machine.latency + x.nbytes / self.machine.bandwidth)
        return self.engine.start_send(x, to)


def predicted(opts: Options) -> str:
    """The table of predicted and measured steps."""
    title = "## Data-parallel steps: the model beside real ranks\n\n"
    if not opts.has("mpi4py"):
        return f"{title}nothing was measured\n"
    rounds, width = (2, 16) if opts.smoke else (4 * opts.rounds, WIDTH)
    alone = ran(__file__, 1, "--steps", rounds, width, None, variables=YIELDING)
    head = ("ranks", "latency", "bandwidth", "overlap", "computing", "predicted", "fastest", "median",
            "predicted / fastest")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for ranks in RANKS:
        latency, bandwidth, found = ran(__file__, ranks, "--steps", rounds, width, alone, variables=YIELDING)
        for overlap, *times in found:
            cells = [str(ranks), text_of(latency), f"{bandwidth / 1e9:.2f} GB/s", "yes" if overlap else "no",
                     *map(text_of, times), f"{times[1] / times[2]:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    lines += _emulated_lines(opts)
    layers, update = alone
    size = sum(layer[2] for layer in layers) / 1e6
    takes = sum(layer[0] + layer[1] for layer in layers) + update
    about = [
        f"A step of 3 linear layers of {width}, batch {BATCH}, {size:.3g} MB of gradients, a bucket for each layer. "
        f"One rank alone takes {text_of(takes)}.",
        "The network is the memory of this machine, and the processors of the ranks copy the messages, so overlap "
        "gains less than the model says.  Other work on the machine delays the ranks, which wait for each other.",
        f"More ranks than processors ({os.cpu_count()}) compute slower in proportion: the model gets `slow` and "
        "`slowdown` for that.",
        "Emulated ranks are threads that sleep instead of computing and sending, so only the model of the ring, the "
        "buckets and the overlap is compared.",
    ]
    return title + "\n".join([*about, "", *lines, ""])


def _emulated_lines(opts: Options) -> list[str]:
    """Steps of 0.3 s, or 3 ms, on networks that are emulated."""
    import minigrad as mg

    scale, lines = (0.01 if opts.smoke else 1.0), []
    step = mg.distributed.Step.even(4, 0.1 * scale, 0.2 * scale, 4e6 * scale, bucket=1e6 * scale, algorithm="ring")
    for ranks, latency, slow in ((2, 1e-3, 0), (4, 1e-3, 0), (8, 1e-3, 0), (8, 1e-3, 1), (8, 10e-3, 0)):
        machine = mg.distributed.Machine(latency, 20e6, slow=slow, slowdown=1.5)
        model_of = mg.distributed.step_time(step, machine, ranks)
        times = sorted(emulated(ranks, step, machine) for _ in range(1 if opts.smoke else 5))
        cells = [f"{ranks}, emulated{', 1 slow' * slow}", text_of(latency), "0.02 GB/s", "yes",
                 *map(text_of, (model_of.compute, model_of.seconds, times[0], times[len(times) // 2])),
                 f"{model_of.seconds / times[0]:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


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
