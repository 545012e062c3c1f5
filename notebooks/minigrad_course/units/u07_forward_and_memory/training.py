"""Unit 07: a GPT whose blocks run by the student's function, trained with a plan and without one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from minigrad import optim, random
from minigrad.core.mode import no_grad, record
from minigrad.core.node import topological_order
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.data import Alphabet, names
from minigrad.examples.names_gpt import GPT, made_up, rows_of
from minigrad.ops.creation import asarray, zeros_like
from minigrad.support.table import bytes_text
from minigrad.viz.flipbook import Flipbook
from minigrad.viz.kept import Unit, read_tape

from ...counting import kept_over_time
from ...session import SESSION
from .budgets import Steps, within_budget
from .memory import Run, planned
from .seams import Row

WIDTH, BATCH, STEPS, RATE = 32, 64, 12, 1e-2


class PlannedGPT(GPT):
    """The GPT of the examples; `run(blocks, x, plan)` runs its blocks."""

    def __init__(self, letters: int, blocks: int, run: Run, plan: Sequence[int]) -> None:
        super().__init__(letters, WIDTH, 4, blocks, 0.1)
        self.run, self.plan = run, list(plan)

    def forward(self, letters: Tensor) -> Tensor:
        blocks = [partial(block, causal=True) for block in self.blocks]
        x = self.run(blocks, self.places(self.letters(letters)), list(self.plan))
        return self.head(self.norm(x))  # type: ignore[no-any-return]


@cache
def alphabet() -> Alphabet:
    """The letters of the names."""
    return Alphabet(names()[0])


def gpt(blocks: int, run: Run = planned, plan: Sequence[int] = ()) -> PlannedGPT:
    """A GPT with equal weights and random numbers each time."""
    random.seed(0)
    return PlannedGPT(len(alphabet()), blocks, run, plan)


def batch(number: int) -> Tensor:
    """The numbers of the letters of 64 names."""
    start = BATCH * number
    return asarray(rows_of(names()[0][start : start + BATCH], alphabet()))


@cache
def row_of(blocks: int) -> Row:
    """The tape of one step: what comes before the blocks, the blocks, and the rest."""
    with record():
        loss = gpt(blocks).loss(batch(0))
    tape = read_tape(topological_order([loss.node]))
    units = [Unit("before", []), *[Unit(str(i), []) for i in range(blocks)], Unit("after", [])]
    for node in tape.needs:
        inside = [int(name[7:-1]) for name in node.scope if name.startswith("blocks[")]
        at = inside[0] + 1 if inside else blocks + 1 if units[1].nodes else 0
        units[at].nodes.append(node)
    return Row(tape._replace(units=units), blocks, before=1)


class Side(NamedTuple):
    """A training: the bytes that the engine kept over the first step, the gradients of this step, losses, and names."""

    kept: list[int]
    gradients: list[Any]
    losses: list[float]
    names: list[str]


def trained(blocks: int, run: Run, plan: Sequence[int], steps: int) -> Side:
    """Train a GPT whose blocks run by `run(blocks, x, plan)`."""
    with record():  # so that masks of dropout are not taken for data
        kept = kept_over_time(gpt(blocks, run, plan).loss(batch(0)))
    model = gpt(blocks, run, plan)
    optimizer = optim.AdamW(model.parameters(), lr=RATE)
    side = Side(kept, [], [], [])
    for number in range(steps):
        optimizer.zero_grad()
        loss = model.loss(batch(number))
        loss.backward()
        if not number:
            gradients = [zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
            side.gradients.extend([g.detach().numpy().copy() for g in gradients])
        optimizer.step()
        side.losses.append(float(loss.item()))
    model.eval()
    with no_grad():
        side.names.extend(filter(None, made_up(model, alphabet(), 8, jit=False)))
    return side


@eager_programs(False)
def both_trained(blocks: int, budget: int, run: Run, plan: Sequence[int], steps: int = STEPS) -> Flipbook:
    """Train the GPT without checkpoints and with a plan, from the same weights, on the same names."""
    plain, yours = trained(blocks, planned, (), steps), trained(blocks, run, plan, steps)
    total = sum(each.size for each in plain.gradients)
    differ = sum(int((a != b).sum()) for a, b in zip(plain.gradients, yours.gradients))
    gradients = f"gradients: {total:,} numbers, " + (f"{differ:,} differ" if differ else "all equal to the last bit")
    before, after = Steps("no checkpoint", plain.kept, plain.losses), Steps("your plan", yours.kept, yours.losses)
    fits = "within" if max(yours.kept) <= budget else "OVER"
    title = (f"{SESSION.author}: {bytes_text(max(plain.kept))} → {bytes_text(max(yours.kept))}, {fits} the budget of "
             f"{bytes_text(budget)}; names that this GPT makes up: {', '.join(yours.names)}")
    return within_budget(title, before, after, budget, gradients, bool(differ))
