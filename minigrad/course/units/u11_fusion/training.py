"""Unit 11: a training step written by hand, compiled by the student's passes, and what each stage saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .... import nn, optim, random
from ....compile.jitted import jit
from ....compile.look.cost import Cost, eager_peak, node_costs
from ....compile.fusion.count import Count
from ....compile.nodes.graph import Graph
from ....compile.rewriting.log import Log
from ....compile.rewriting.passes import PASSES
from ....core.mode import no_grad
from ....core.override import override_of
from ....core.tensor import Tensor
from ....data import digits
from ....ops.creation import asarray
from ....ops.elementwise import exp, sqrt
from ....ops.losses import cross_entropy
from ....support.table import as_table, bytes_text
from ....viz.drawing import Drawing
from ....viz.flipbook import Flipbook, Page
from ...digits import Trained
from ...session import SESSION

WIDTH, HIDDEN, BATCH, EPOCHS, RATE = 64, 256, 64, 4, 0.5
PICTURE, LEFT, BAR = 900.0, 190.0, 20.0
MEASURES = ("launches", "bytes moved", "peak of memory")


class ByHand(nn.Module):
    """A network for the digits, with a layer norm and a SiLU that are written out, as in many tutorials."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        variance = ((h - h.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
        h = (h - h.mean(-1, keepdims=True)) / sqrt(variance + 1e-5)
        return self.second(h / (1 + exp(-h)))


class Stage(NamedTuple):
    """What a step takes after a pass: launches, bytes of traffic, and the most bytes in use."""

    name: str
    launches: int
    bytes: int
    peak: int


def stages_of(log: Log, cost: Cost) -> list[Stage]:
    """The step as recorded, after each pass that changed it, and fused."""
    found = [_of_graph("as recorded", log.first)]
    for run in log.runs:
        if run.changed:
            found.append(_of_graph(_whose(run.name), run.after))
    program = cost.program
    return [*found, Stage("fused", program.launches, program.bytes, cost.memory.total)]


def _whose(name: str) -> str:
    replaced = any(each.name == name and override_of(each.function) for each in PASSES)
    return f"{name}, yours" if replaced else name


def _of_graph(name: str, graph: Graph) -> Stage:
    count = sum([each.eager for each in node_costs(graph)], Count())
    return Stage(name, count.launches, count.bytes, eager_peak(graph))


@dataclass(frozen=True, repr=False)
class Compiled:
    """A training whose step the passes compiled: what each stage takes, and what was learnt."""

    stages: list[Stage]
    trained: Trained

    def __repr__(self) -> str:
        first, last = self.stages[0], self.stages[-1]
        return (
            f"{first.launches} → {last.launches} launches, {bytes_text(first.bytes)} → {bytes_text(last.bytes)}; "
            f"{self.trained.right} of {self.trained.shown} digits read"
        )

    @cached_property
    def picture(self) -> Flipbook:
        """The stages as bars; then the curve of the loss and the digits, before and after."""
        says = f"{self!r}. Each bar is the step after a pass, node by node; the last one is fused."
        pages = [Page(drawn(self.stages), says, (), "what a step takes"), *self.trained.picture.pages[0]]
        rows = [(s.name, str(s.launches), bytes_text(s.bytes), bytes_text(s.peak)) for s in self.stages]
        return Flipbook(repr(self), [pages], cover=0, unit="picture", words=as_table(("step", *MEASURES), rows, left=1))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": f"{self!r}\n{self.picture.text()}"}


def drawn(stages: Sequence[Stage]) -> Drawing:
    """Three groups of bars: launches, bytes and peak of memory after each stage, to scale."""
    drawing = Drawing(PICTURE, 3 * (30 + BAR * len(stages) + 12))
    y = 0.0
    for number, measure in enumerate(MEASURES, start=1):
        drawing.heading(0, y + 14, measure)
        y += 26
        most = max(stage[number] for stage in stages) or 1
        for stage in stages:
            own, value = stage.name.endswith("yours"), stage[number]
            wide = (PICTURE - LEFT - 90) * value / most
            colour = "back-fill" if own else "leaf-fill" if stage.name == "fused" else "there-fill"
            border = "back" if own else "good" if stage.name == "fused" else "there"
            drawing.text(LEFT - 10, y + 13, stage.name, anchor="end", bold=own)
            drawing.rect(LEFT, y + 2, max(wide, 1.0), BAR - 5, colour, border, round=2)
            drawing.text(LEFT + wide + 8, y + 13, f"{value:,}" if number == 1 else bytes_text(value), bold=own)
            y += BAR
        y += 16
    return drawing


def train() -> Compiled:
    """Train the network on the digits by a compiled step, with the passes that are in the pipeline now."""
    random.seed(0)
    model = ByHand()
    optimizer = optim.SGD(model.parameters(), lr=RATE)

    @jit
    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    (images, labels), test = digits()[0].arrays, digits()[1]
    starts = range(0, len(labels) - BATCH + 1, BATCH)
    batches = [(_pictures(images[i : i + BATCH]), asarray(labels[i : i + BATCH].copy())) for i in starts]
    before = _read(model, test)
    losses = [float(step(*batch).item()) for _ in range(EPOCHS) for batch in batches]
    stages = stages_of(step.passes(*batches[0]), step.cost(*batches[0]))
    return Compiled(stages, Trained(SESSION.author, None, losses, before, _read(model, test)))


def _pictures(images: Any) -> Tensor:
    return asarray(images.reshape(len(images), WIDTH).copy())


def _read(model: nn.Module, test: Any) -> Any:
    with no_grad():
        return model(_pictures(test.arrays[0])).argmax(1).numpy()
