"""Data-parallel training steps on 1 and 2 ranks, beside PyTorch's DistributedDataParallel on gloo.

The ranks divide a batch.  "one bucket" starts its all-reduce when the last gradient is there, so nothing overlaps;
"alone" leaves the all-reduce out.

    python3 course bench data_parallel --threads 1
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _harness import Case, Options, Row, options, report
from _ranks import joined, meeting_point, ran, seconds
from training import RATES, Task, examples, gpt, mlp

CONTENDERS = ("minigrad", "eager", "one bucket", "alone", "torch")
BUCKETS = (0.25, 1.0, 4.0, 25.0)  # MB


def tasks(smoke: bool) -> list[Task]:
    """The models; one has as many parameters as fill buckets."""
    if smoke:
        return [Task("MLP 8-6-3, batch 4", "mlp", (8, 6, 3), "SGD", 4)]
    return [
        Task("MLP 784-256-128-10, batch 512", "mlp", (784, 256, 128, 10), "Adam", 512),
        Task("MLP 784-1024-1024-10, batch 512", "mlp", (784, 1024, 1024, 10), "Adam", 512),
        Task("GPT, 4 layers of 128, batch 16 × 64", "gpt", (4, 128, 4, 64, 65), "Adam", 16),
    ]


def work(contender: str, task: Task, bucket_mb: float, torch: Any) -> Callable[[], Any]:
    """A step of one contender, on this rank's part of the batch."""
    import minigrad as mg

    comm = mg.distributed.communicator()
    ours = contender != "torch"
    library = mg if ours else torch
    model: Any = {"mlp": mlp, "gpt": gpt}[task.model](None if ours else torch, *task.sizes)
    x, y = [part(array, comm) for array in examples(task)]
    inputs, labels = [mg.asarray(a) if ours else torch.tensor(a) for a in (x, y)]
    cross_entropy = mg.cross_entropy if ours else torch.nn.functional.cross_entropy
    if ours:
        mb = 1e6 if contender == "one bucket" else bucket_mb
        model = mg.distributed.DataParallel(model, bucket_mb=mb)
        model.averages = contender != "alone"
    elif comm.size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket_mb)
    more = {} if ours else {"fused": True}
    optimizer = getattr(library.optim, task.optimizer)(model.parameters(), lr=RATES[task.optimizer], **more)

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return mg.jit(step) if ours and contender != "eager" else step


def part(array: np.ndarray, comm: Any) -> np.ndarray:
    """The rows of this rank."""
    count = len(array) // comm.size
    return array[comm.rank * count : (comm.rank + 1) * count]


def rank(rounds: int, smoke: bool, meeting: str) -> None:
    """One rank: the seconds of a step of each contender, in turns; rank 0 prints them."""
    world, torch = joined(meeting)
    found = {}
    for task in tasks(smoke):
        for bucket_mb in BUCKETS if world.size > 1 and task.model == "mlp" and not smoke else [4.0]:
            works = {
                name: work(name, task, bucket_mb, torch) for name in CONTENDERS
                if (name != "torch" or meeting) and (world.size > 1 or name in ("minigrad", "eager", "torch"))
            }
            for step in works.values():
                for _ in range(3):
                    step()
            calls = 1 if smoke else 5
            buckets = f" {bucket_mb:g} MB" if world.size > 1 else ""
            found[f"{task.name}, {world.size} rank{'s' * (world.size > 1)}{buckets}"] = [
                {name: seconds(step, calls, world) for name, step in works.items()} for _ in range(rounds)
            ]
    if world.rank == 0:
        print(json.dumps(found))


def rows(opts: Options) -> list[Row]:
    """The lines of the table; none without mpi4py."""
    found: list[Row] = []
    for size in (1, 2) if opts.has("mpi4py") else ():
        threads = {"OMP_NUM_THREADS": str(opts.threads), "OPENBLAS_NUM_THREADS": str(opts.threads)}
        with meeting_point(opts) as meeting:
            times = ran(__file__, size, "--rank", opts.rounds, opts.smoke, meeting, variables=threads)
        for name, rounds in times.items():
            found.append(Row(Case(name, tuple(rounds[0]), lambda _: lambda: None, 1.0, "torch"), rounds))
    return found


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=15)
    return report("Data-parallel steps", rows(opts), opts)


if __name__ == "__main__":
    if sys.argv[1:2] == ['"--rank"']:
        rank(*map(json.loads, sys.argv[2:]))
    else:
        main()
