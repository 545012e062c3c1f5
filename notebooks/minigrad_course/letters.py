"""Trains a small GPT on first names, letter by letter, with the student's own code in the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad import nn, optim
from minigrad import random as seeds
from minigrad.core.mode import no_grad, scope
from minigrad.core.node import Node
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.data import names
from minigrad.ops.creation import arange, asarray
from minigrad.ops.losses import cross_entropy
from minigrad.viz.curves import Points, curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.graphs import graph

from .session import SESSION

LETTERS = ".abcdefghijklmnopqrstuvwxyz"  # a name ends with a dot
LENGTH, SIZE, BATCH, RATE, SEED = 10, 32, 32, 0.01, 0
SHOWN = 12  # names that are made up before and after the training


class GPT(nn.Module):
    """Letters and their places as vectors, two blocks of a transformer, and a score for each next letter."""

    def __init__(self) -> None:
        self.letters, self.places = nn.Embedding(len(LETTERS), SIZE), nn.Embedding(LENGTH, SIZE)
        layer = nn.TransformerEncoderLayer(
            SIZE, heads=4, hidden=64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(SIZE, len(LETTERS))

    def forward(self, text: Tensor) -> Tensor:
        vectors = self.letters(text) + self.places(arange(text.shape[1]))
        return self.head(self.blocks(vectors, causal=True))  # type: ignore[no-any-return]


@dataclass(frozen=True, repr=False)
class Learned:
    """A training: losses, names that the model made up before and after, the model, and the last loss."""

    author: str
    losses: list[float]
    before: list[str]
    after: list[str]
    model: nn.Module
    last: Tensor
    nodes: list[Node]  # the results of all steps, for `same_graph`

    def __repr__(self) -> str:
        return f"{self.author}: a GPT, {len(self.losses)} steps, loss {self.losses[0]:.2f} → {self.losses[-1]:.2f}"

    @cached_property
    def graph(self) -> Any:
        """The picture of the graph of the last step."""
        return graph(self.last, budget=25)

    @cached_property
    def picture(self) -> Flipbook:
        """The loss of each step, and names that the network made up, before and after."""
        drawing = names_drawn([(float(i), value) for i, value in enumerate(self.losses, 1)], self.before, self.after)
        words = f"before: {', '.join(self.before)}\nafter: {', '.join(self.after)}"
        return Flipbook(repr(self), [[Page(drawing, f"{self!r}.")]], words=words)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


def names_drawn(losses: Points, before: Sequence[str], after: Sequence[str]) -> Drawing:
    """The loss of each step, and names that were made up before and after a training."""
    drawing = Drawing(760, 330)
    curves(drawing, (0, 0, 760, 150), {"loss": losses}, "loss of each step")
    for x, title, made in ((20, "made up before", before), (400, "made up after", after)):
        drawing.heading(x, 190, title)
        for i, name in enumerate(made):
            drawing.text(x + 115 * (i % 3), 216 + 24 * (i // 3), name, size=15, code=True)
    return drawing


@eager_programs(False)  # operation by operation, as students see them
def train_names(steps: int = 100) -> Learned:
    """Train a small GPT on first names; a notebook shows the loss, and names that it makes up before and after."""
    seeds.seed(SEED)
    model = GPT()
    optimizer = optim.Adam(model.parameters(), lr=RATE)
    before, losses, nodes = made_up(model), [], []
    for letters, following in letters_in_batches(steps):
        scores = model(letters)
        with scope("loss"):
            loss = cross_entropy(scores.reshape(-1, len(LETTERS)), following.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.item()))
        nodes.append(loss.node)
    return Learned(SESSION.author, losses, before, made_up(model), model, loss, nodes)


def letters_in_batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of names, always the same: letters, and for each letter the letter that follows it."""
    text = np.array([[0, *_numbers(name)][: LENGTH + 1] for name in names()[0] if len(name) <= LENGTH])
    draw = np.random.default_rng(SEED)
    for _ in range(count):
        batch = text[draw.integers(0, len(text), BATCH)]
        yield asarray(batch[:, :-1]), asarray(batch[:, 1:].copy())


def _numbers(name: str) -> list[int]:
    """The letters of a name as numbers, and dots up to the length of all rows."""
    return [LETTERS.index(letter) for letter in name.lower().ljust(LENGTH, ".")]


def made_up(model: nn.Module) -> list[str]:
    """Names that a model makes up, letter by letter."""
    draw, text = np.random.default_rng(SEED), np.zeros((SHOWN, 1), dtype=np.int64)
    with no_grad(), np.errstate(all="ignore"):
        for _ in range(LENGTH - 1):
            scores = model(asarray(text)).numpy()[:, -1]
            chances = np.exp(scores - scores.max(1, keepdims=True)).astype(np.float64)
            letters = [draw.choice(len(LETTERS), p=_sound(row)) for row in chances]
            text = np.column_stack([text, letters])
    return ["".join(LETTERS[letter] for letter in row[1:]).partition(".")[0] or "–" for row in text]


def _sound(chances: Any) -> Any:
    """Chances that add up to 1, also where a wrong order has spoiled them."""
    return chances / chances.sum() if np.isfinite(chances).all() else np.full(len(chances), 1 / len(chances))
