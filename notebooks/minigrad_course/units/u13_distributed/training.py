"""Unit 13: the digits, trained on several ranks: by hand in five ways, and with the student's ring below the library's.

Real ranks are processes that the launcher starts.  They read the student's functions from a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import optim
from minigrad.core.programs import eager_programs
from minigrad.distributed import Communicator, Machine, Step, ThreadCommunicators, measure_step, step_time
from minigrad.distributed.__main__ import mpirun
from minigrad.distributed.engine import Engine
from minigrad.ops.creation import asarray
from minigrad.ops.losses import cross_entropy
from minigrad.support.host import IN_BROWSER
from minigrad.support.packages import how_to_install
from minigrad.support.table import counted, time_text
from minigrad.viz.clusters import cluster
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ...apart import search_path
from ...digits import Trained
from ...feedback import Stopped
from ...limits import TimeIsUp, at_most
from ...session import SESSION
from ...source_code import source_of
from . import on_ranks
from .lockstep import in_lockstep
from .on_ranks import BATCH, LIMIT, RATE, SEED, Ring, Ringed, Run, batches, measured, network, read, run

RANKS = 4


# ---- by hand, in five ways -------------------------------------------------------------------------------------------

WAYS = ("mean", "sum", "seeds", "norm", "whole")  # the notebook says what they are


def by_hand(
    comm: Communicator, way: str = "mean", steps: int = 4 if IN_BROWSER else 12, rate: float = RATE
) -> list[float]:
    """Data-parallel training written out; the losses of some steps, as means over the ranks."""
    model = network(comm.rank if way == "seeds" else SEED, way == "norm")
    optimizer = optim.SGD(model.parameters(), lr=rate)
    size, losses = BATCH // comm.size, []
    for (images, labels), _ in zip(batches(), range(steps)):
        first = 0 if way == "whole" else comm.rank * size
        part = slice(first, first + size)
        optimizer.zero_grad()
        loss = cross_entropy(model(asarray(images[part])), asarray(labels[part]))
        loss.backward()
        for parameter in model.parameters():
            parameter.grad = comm.allreduce(parameter.grad, "sum" if way == "sum" else "mean")
        optimizer.step()
        losses.append(float(comm.allreduce(np.asarray(loss.item()), "mean")))
    return losses


def compared(way: str, faster: float = 1) -> bool:
    """Whether 4 ranks, trained in one of the ways, have the loss curve of one process, whose rate may be larger."""
    alone = by_hand(Communicator(Engine()), "norm" if way == "norm" else "mean", rate=faster * RATE)
    ranks = ThreadCommunicators(RANKS).run(lambda comm: by_hand(comm, way))
    return bool(np.allclose(ranks[0], alone, rtol=1e-3))


# ---- with the student's ring -----------------------------------------------------------------------------------------


def missing() -> str:
    """What real ranks need and this machine does not have."""
    return "mpi4py" if find_spec("mpi4py") is None else "mpirun" if mpirun() is None else ""


def on_real_ranks(script: str, source: str, *names: str) -> dict[str, Any]:
    """Start the launcher with a script, whose arguments are a file with this source, a file for the result, and names.

    Returns what rank 0 wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, result = Path(folder) / "source.py", Path(folder) / "result.json"
        file.write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "minigrad.distributed", "-n", str(RANKS), "--timeout", "20",
                   script, str(file), str(result), *names]
        try:
            variables = os.environ | {"PYTHONPATH": search_path()}
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT + 20)
            said = [line for line in done.stderr.splitlines() if line.strip()]
        except subprocess.TimeoutExpired:
            said = [f"not done after {LIMIT + 20:g} seconds"]
        if not result.exists():
            ours = list(dict.fromkeys(line for line in said if line.startswith("minigrad:"))) or said[-3:]
            raise Stopped("training", "\n  ".join(["the ranks have stopped", *ours[:3]]), "is each check above right?")
        return json.loads(result.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def in_turns(ring: Ring) -> Run:
    """What `measured` does, for a browser: only the ring takes turns."""
    models, sent = [network() for _ in range(RANKS)], []

    def reduced(gradients: list[Any], comm: Communicator) -> Any:
        engine = Ringed(comm.host, ring)
        total = Communicator(engine).allreduce(gradients[comm.rank])
        sent.append(engine.sent)
        return total

    losses, seconds = in_lockstep(
        models, RATE, batches(), lambda given: ThreadCommunicators(RANKS).run(partial(reduced, given)))
    return Run(RANKS, losses, seconds, read(network()), read(models[0]), len(losses), sum(sent) // RANKS)


@eager_programs(False)
def train(reduce_scatter: Callable[..., Any], all_gather: Callable[..., Any]) -> Flipbook:
    """Train the digits in one process, and on 4 ranks with the student's ring.

    The ranks are processes, or threads where there is no MPI; in a browser they take turns.
    """
    ring = reduce_scatter, all_gather
    alone = run(Communicator(Engine()))
    if lacks := missing():
        print(f"{lacks} is not installed, so the 4 ranks {'take turns' if IN_BROWSER else 'are threads'}. "
              f"For real ranks: {how_to_install('mpi4py')}")
        try:
            together = at_most(LIMIT)(in_turns)(ring) if IN_BROWSER else ThreadCommunicators(RANKS, 20).run(
                at_most(LIMIT)(partial(measured, ring=ring)))[0]
        except (Exception, TimeIsUp) as error:
            said = f"{type(error).__name__}: {str(error) or f'not done after {LIMIT:g} seconds'}"
            raise Stopped("training", f"the ranks have stopped with {said}", "is each check above right?") from None
    else:
        names = [function.__name__ for function in ring]
        together = Run(**on_real_ranks(on_ranks.__file__, str(source_of(*ring)), *names))
    return picture(alone, together, "ranks in turns" if IN_BROWSER else "threads" if lacks else "processes")


def scaled(step: Step, machine: Machine, what_if: dict[str, Any], workers: Sequence[int]) -> Flipbook:
    """`mg.viz.cluster`, whose text has no times."""
    times = [step_time(step, machine, count) for count in workers]
    said = [f"{t.workers:,} workers: efficiency {t.efficiency:.0%}, waiting {t.waiting:.0%}" for t in times]
    return replace(cluster(step, machine, what_if, workers), words="\n".join(said))


def one_step() -> Step:
    """A training step of this process: its layers, seconds and bytes; the workers share one batch."""
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    images, labels = map(asarray, next(batches()))
    step = measure_step(lambda: cross_entropy(model(images), labels), model.parameters(), optimizer.step)
    return replace(step, fixed_batch=True)


def picture(alone: Run, together: Run, what: str) -> Flipbook:
    """The two curves, the digits, and the model: from these ranks to thousands."""
    trained = Trained(SESSION.author, None, together.losses, np.array(together.before), np.array(together.after))
    same = np.allclose(alone.losses, together.losses, rtol=1e-3)
    title = (
        f"{SESSION.author}: {RANKS} {what}, {together.calls:,} all-reduces by your ring, {together.sent / 1e6:.2f} MB "
        f"sent by each; {trained.right} of {trained.shown} digits read"
    )
    verdict = (
        f"the curves are {'the same' if same else 'NOT the same'}: at most "
        f"{np.abs(np.subtract(alone.losses, together.losses)).max():.1g} apart"
    )
    book = cluster(
        one_step(), Machine(*together.machine), {"each worker its own batch": {"fixed_batch": False}},
        measured={1: alone.seconds, RANKS: together.seconds},
    )
    grown = [Page(page.drawing, f"{page.say} The ranks of this machine share {os.cpu_count()} processors.", page.blocks,
                  name) for page, name in zip(book.pages[-4], ("thousands", "one step of 512"))]
    first = Page(_curves(alone, together, verdict, bool(same)), f"{title}; {verdict}.", (), "curves")
    return Flipbook(title, [[first, trained.picture.pages[0][0], *grown]], cover=0, unit="picture",
                    words=f"{title}\n{verdict}")


def _curves(alone: Run, together: Run, verdict: str, same: bool) -> Drawing:
    """Both curves, one on top of the other, and the time of a step."""
    drawing = Drawing(760, 330)
    runs = alone, together
    points = {counted(run.ranks, "rank"): [(float(i), loss) for i, loss in enumerate(run.losses, 1)] for run in runs}
    curves(drawing, (0, 0, 640, 280), points, "loss of each batch, on one rank and on four")
    drawing.text(40, 306, verdict, size=15, bold=True, fill="good" if same else "bad")
    times = ", ".join(f"{run.ranks}: {time_text(run.seconds)}" for run in runs)
    drawing.text(40, 326, f"the fastest step on this machine, by ranks: {times}", fill="quiet")
    return drawing
