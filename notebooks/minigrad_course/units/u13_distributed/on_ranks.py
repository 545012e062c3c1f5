"""What each rank runs: it trains the digits, over the student's ring.

Real ranks run this file as a script, `python -m minigrad.distributed -n 4 on_ranks.py FILE RESULT NAMES`, so they load
neither the course nor its views.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from minigrad import nn, optim
from minigrad.core.mode import no_grad
from minigrad.core.programs import PROGRAMS
from minigrad.data import digits
from minigrad.distributed import Communicator, DataParallel, communicator, measure_machine
from minigrad.distributed.engine import Engine, Handle
from minigrad.ops.creation import asarray
from minigrad.ops.losses import cross_entropy

BATCH, HIDDEN, RATE, STEPS, SEED = 64, 32, 0.5, 66, 0
LIMIT = 40.0  # seconds of a run on ranks
SIZES = tuple(4**power for power in range(4, 10))  # of the all-reduces that calibrate the machine
Ring = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]  # reduce_scatter, all_gather


def network(seed: int = SEED, norm: bool = False) -> nn.Module:
    """The network, with first weights that depend on the seed alone, in any thread."""
    layers = [nn.Linear(64, HIDDEN), *[nn.BatchNorm1d(HIDDEN)] * norm, nn.Tanh(), nn.Linear(HIDDEN, 10)]
    model, draw = nn.Sequential(*layers), np.random.default_rng(seed)
    with no_grad():
        for parameter in model.parameters():
            bound = parameter.shape[-1] ** -0.5
            parameter[...] = asarray(draw.uniform(-bound, bound, parameter.shape).astype(np.float32))
    return model


def batches() -> Iterator[tuple[Any, Any]]:
    """The same batches in each run: images and labels."""
    images, labels = digits()[0].arrays
    order = np.random.default_rng(SEED).permutation(len(labels))
    for step in range(STEPS):
        start = step * BATCH % (len(labels) - BATCH)
        chosen = order[start : start + BATCH]
        yield images[chosen].reshape(BATCH, 64), labels[chosen]


class Ringed(Engine):
    """An engine whose all-reduce is the student's: it sends and receives by another engine."""

    name = "your ring"

    def __init__(self, engine: Engine, ring: Ring) -> None:
        self.engine, self.ring = engine, ring
        self.rank, self.size, self.calls, self.sent = engine.rank, engine.size, 0, 0

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        self.sent += x.nbytes
        return self.engine.start_send(x, to, tag)

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        self.start_send(x, to, tag).wait()

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        return self.engine.start_recv(out, source, tag)

    def allreduce(self, x: Any, out: Any, op: str) -> None:
        self.calls += 1
        out[...] = x
        chunks = np.array_split(out.reshape(-1), self.size)
        for function in self.ring:
            function(self, chunks)


@dataclass
class Run:
    """A training on some ranks, as rank 0 saw it."""

    ranks: int
    losses: list[float]
    seconds: float  # of the fastest step
    before: list[int]
    after: list[int]
    calls: int = 0
    sent: int = 0
    machine: tuple[float, float] = (0.0, 1e9)  # latency and bandwidth


def run(comm: Communicator, ring: Ring | None = None) -> Run:
    """Train on the ranks of a communicator by the library's `DataParallel`, over the student's ring."""
    engine = comm.host if ring is None else Ringed(comm.host, ring)
    model = DataParallel(network(), Communicator(engine))
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    before, losses, times, size = read(model), [], [], BATCH // comm.size
    part = slice(comm.rank * size, (comm.rank + 1) * size)
    with np.errstate(all="ignore"):  # with a wrong ring the numbers may overflow
        for images, labels in batches():
            begin = perf_counter()
            optimizer.zero_grad()
            loss = cross_entropy(model(asarray(images[part])), asarray(labels[part]))
            loss.backward()
            optimizer.step()
            times.append(perf_counter() - begin)
            losses.append(float(comm.allreduce(np.asarray(loss.item()), "mean")))
        after = read(model)
    more = (engine.calls, engine.sent) if isinstance(engine, Ringed) else (0, 0)
    return Run(comm.size, losses, min(times), before, after, *more)


def measured(comm: Communicator, ring: Ring) -> Run:
    """A training, and then the latency and the bandwidth between these ranks."""
    found = run(comm, ring)
    machine = measure_machine(comm, SIZES, 5)
    return replace(found, machine=(machine.latency, max(machine.bandwidth, 1.0)))


def read(model: nn.Module) -> list[int]:
    """The digits that the model reads."""
    with no_grad():
        return model(asarray(digits()[1].arrays[0].reshape(-1, 64))).argmax(1).tolist()  # type: ignore[no-any-return]


def _end() -> None:
    sys.stderr.write(f"minigrad: not done after {LIMIT:g} seconds: do the ranks wait for each other?\n")
    os._exit(3)


def main(source: str, result: str, *names: str) -> None:
    """Train with the ring in a file; rank 0 writes the result."""
    last = threading.Timer(LIMIT, _end)  # no rank outlives the limit, whatever the ring does
    last.daemon = True
    last.start()
    PROGRAMS.on = False
    comm, found = communicator(), runpy.run_path(source)
    run = measured(comm, (found[names[0]], found[names[1]]))
    if comm.rank == 0:
        Path(result).write_text(json.dumps(asdict(run)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
