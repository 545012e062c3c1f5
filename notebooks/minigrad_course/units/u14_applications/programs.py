"""Unit 14: four programs on one engine.  The student writes a piece of each; the step below is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from minigrad import nn, optim
from minigrad import random as seeds
from minigrad.core.mode import no_grad, scope
from minigrad.core.tensor import Tensor
from minigrad.data import Alphabet, digits, karate, names
from minigrad.examples.cartpole import play
from minigrad.examples.names_gpt import GPT, LENGTH, made_up, rows_of
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import tanh
from minigrad.ops.functional import softmax
from minigrad.ops.losses import cross_entropy
from minigrad.viz.drawing import Drawing
from minigrad.viz.images import pictures_of

from ...views.readings import wall

Piece = Callable[..., Any]
SEED, HALF, TILE, COLUMNS = 0, 350.0, 11.2, 30  # of pictures: the second half begins at HALF


class Application:
    """A program that learns: data, a model, and a piece that says what to learn."""

    name: ClassVar[str]
    kind: ClassVar[str]  # of network
    says: ClassVar[str]  # what the score is
    floor: ClassVar[float]
    steps: ClassVar[int]
    rate, decimals, less_is_better = 0.01, 0, False

    def __init__(self, piece: Piece, **options: Any) -> None:
        seeds.seed(SEED)
        self.piece, self.options, self.draw = piece, options, np.random.default_rng(SEED)
        vars(self).update(options)
        self.model = self.begin()
        self.optimizer = optim.Adam(self.model.parameters(), lr=self.rate)

    def again(self) -> Application:
        """The same program, untrained."""
        return type(self)(self.piece, **self.options)

    def begin(self) -> Any:
        """Get the data, and make the model."""

    def batch(self) -> Any:
        """The data of the next step."""

    def learn(self, *batch: Any) -> Any:
        """The forward pass and the backward pass of a step."""

    def step(self, *batch: Any) -> Tensor:
        """A training step: the same four lines for every application."""
        self.optimizer.zero_grad()
        result: Tensor = self.learn(*batch)
        self.optimizer.step()
        return result

    def loss_of(self, result: Tensor, batch: tuple[Any, ...]) -> float:
        """The loss of a step, for the curve."""
        return float(result.item())

    def score(self) -> Any:
        """How good the model is on data that the student's piece has not seen."""

    def look(self) -> Any:
        """What the model does now, for the picture."""

    def show(self, drawing: Drawing, top: float, before: Any, after: Any) -> None:
        """Draw what the model did before the training and what it does after it."""
        for x, when, seen in ((0.0, "before", before), (HALF, "after", after)):
            self.show_one(drawing, x, top, when, seen)

    def show_one(self, drawing: Drawing, x: float, top: float, when: str, seen: Any) -> None:
        """Draw what the model does at one time."""


# ---- digits ----------------------------------------------------------------------------------------------------------


class Digits(Application):
    """Handwritten digits.  The piece is the gradient where the scores meet the labels; no loss is computed."""

    name, kind, says, floor, steps, rate, decimals = "digits", "DNN", "% of the test digits", 97.0, 230, 0.004, 1

    def begin(self) -> Any:
        (self.images, self.labels), (self.others, self.other_labels) = [part.arrays for part in digits()]
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def batch(self) -> tuple[Any, ...]:
        chosen = self.draw.choice(len(self.labels), 128, replace=False)
        return asarray(self.images[chosen]), asarray(np.eye(10, dtype=np.float32)[self.labels[chosen]])

    def learn(self, images: Tensor, targets: Tensor) -> Any:
        scores = self.model(images)
        with scope("your piece"):
            gradient = self.piece(scores.detach(), targets)
        scores.backward(gradient)
        return scores

    def loss_of(self, result: Tensor, batch: tuple[Any, ...]) -> float:
        return float(cross_entropy(result.detach(), batch[1].argmax(1)).item())

    def score(self) -> float:
        return 100 * float((self.look() == self.other_labels).mean())

    def look(self) -> Any:
        with no_grad():
            return self.model(asarray(self.others)).argmax(1).numpy()

    def show_one(self, drawing: Drawing, x: float, top: float, when: str, seen: Any) -> None:
        wrong = seen != self.other_labels
        drawing.heading(x, top, f"{when}: {wrong.sum()} of {len(wrong)} are read wrongly (framed)")
        pictures = pictures_of(self.others.reshape(-1, 8, 8), len(wrong))
        wall(drawing, x, top + 12, pictures, wrong.tolist(), COLUMNS, TILE)


# ---- names -----------------------------------------------------------------------------------------------------------


class Names(Application):
    """First names, letter by letter.  The piece is the loss: what the model sees, and what it should say."""

    name, kind, says, floor, steps, decimals = "names", "language model", "nats a letter", 2.4, 80, 2
    less_is_better, window, rate = True, LENGTH, 0.015

    def begin(self) -> Any:
        known, held_out = names()
        self.alphabet = Alphabet(known)
        self.text, self.others = [rows_of(part, self.alphabet) for part in (known, held_out)]
        return GPT(len(self.alphabet), 32, heads=4, layers=1, dropout=0.0)

    def batch(self) -> tuple[Any, ...]:
        return (asarray(self.text[self.draw.integers(0, len(self.text), 64)]),)

    def scores(self, text: Tensor, mask: Any) -> Tensor:
        """The scores of the letters at each place; `mask[i, j]` is True where place i sees place j."""
        seen = asarray(np.asarray(mask.numpy() if isinstance(mask, Tensor) else mask, dtype=bool))
        x = self.model.places(self.model.letters(text))
        for block in self.model.blocks:
            x = block(x, mask=seen)
        return self.model.head(self.model.norm(x))  # type: ignore[no-any-return]

    def learn(self, text: Tensor) -> Any:
        with scope("your piece"):
            loss = self.piece(self.scores, text)
        loss.backward()
        return loss

    def score(self) -> float:
        """The negative log-likelihood of a letter, or of the end, in names that were held out."""
        before, after = self.others[:, :-1], self.others[:, 1:]
        with no_grad():
            scores = self.scores(asarray(before), window_of(self.window))
            found = cross_entropy(scores.reshape(-1, 27), asarray(after.reshape(-1)), reduction="none").numpy()
        counts = np.cumsum(after == 0, axis=1) <= (after == 0)  # letters, and the first 0 after them
        return float(found[counts.reshape(-1)].mean())

    def look(self) -> list[str]:
        """Names that the model makes up."""
        seeds.seed(SEED)
        with no_grad():
            return [each or "–" for each in made_up(self.model, self.alphabet, 18, jit=False)]

    def show_one(self, drawing: Drawing, x: float, top: float, when: str, seen: Any) -> None:
        drawing.heading(x, top, f"made up {when}")
        for i, each in enumerate(seen):
            drawing.text(x + 114 * (i % 3), top + 34 + 30 * (i // 3), each, size=14, code=True, room=110)


def window_of(window: int) -> Any:
    """The mask in which each place sees itself, and the window - 1 places before it."""
    i, j = np.arange(LENGTH)[:, None], np.arange(LENGTH)
    return (j <= i) & (j > i - window)


# ---- the club --------------------------------------------------------------------------------------------------------

MEMBERS, WIDE, HIGH = 34, 640.0, 170.0


class Spread(nn.Module):
    """Two graph convolutions: each member's numbers become a sum of messages, with the factors of a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(MEMBERS, 16, bias=False), nn.Linear(16, 2)

    def forward(self, matrix: Tensor) -> Tensor:
        return self.second(matrix @ tanh(matrix @ self.first.weight.T))  # type: ignore[no-any-return]


class Club(Application):
    """The karate club that splits.  The piece is the loss: who sends messages to whom, and whose label is known."""

    name, kind, says, floor, steps, two = "club", "GNN", "% of the other members", 90.0, 60, (0, 33)

    def begin(self) -> Any:
        ties, labels = karate()
        self.pairs, self.labels = ties.numpy()[:, : ties.shape[1] // 2].T.copy(), labels.numpy()
        self.known, self.matrix = np.array(self.two), asarray(np.eye(MEMBERS, dtype=np.float32))
        given = self.draw.integers(0, 2, MEMBERS)  # the labels of the others are made up: a piece must not read them
        given[self.known] = self.labels[self.known]
        self.given = asarray(given)
        return Spread()

    def batch(self) -> tuple[Any, ...]:
        return self.pairs.copy(), self.given, self.known.copy()

    def learn(self, pairs: Any, labels: Tensor, known: Any) -> Any:
        with scope("your piece"):
            loss = self.piece(self.scores, pairs, labels, known)
        loss.backward()
        return loss

    def scores(self, matrix: Any) -> Tensor:
        """Two scores for each member.  The matrix is kept for the score."""
        self.matrix = matrix if isinstance(matrix, Tensor) else asarray(np.asarray(matrix, dtype=np.float32))
        return self.model(self.matrix)  # type: ignore[no-any-return]

    def score(self) -> float:
        return 100 * float(np.delete(self.look() == self.labels, self.known).mean())

    def look(self) -> Any:
        with no_grad():
            return self.model(self.matrix).argmax(1).numpy()

    def show(self, drawing: Drawing, top: float, before: Any, after: Any) -> None:
        """The members, in the colour of the side that the program says."""
        at = places(self.pairs) * [WIDE, HIGH] + [20, top + 30]
        wrong = after != self.labels
        drawing.heading(0, top, f"the sides that the program says; crossed: {wrong.sum()} wrong; squares were known")
        for i, j in self.pairs:
            drawing.path([tuple(at[i]), tuple(at[j])], "line", thick=1)
        for i, (x, y) in enumerate(at):
            colour = "there" if after[i] else "back"
            drawing.rect(x - 11, y - 11, 22, 22, f"{colour}-fill", colour, thick=2, round=3 if i in self.known else 11)
            drawing.text(x, y + 4, str(i), anchor="middle", bold=True)
            drawing.path([(x - 13, y - 13), (x + 13, y + 13)], "bad", thick=3.0 * wrong[i])


def places(pairs: Any) -> Any:
    """A place for each member: ties pull two members together, and all members push each other away."""
    matrix, turns = np.zeros((MEMBERS, MEMBERS, 1)), 2 * np.pi * np.arange(MEMBERS) / MEMBERS
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = 1
    at = np.stack([np.cos(turns), np.sin(turns)], 1)
    for most in np.linspace(0.2, 0.0, 150):
        apart = at[:, None] - at
        far = np.linalg.norm(apart, axis=2, keepdims=True) + 1e-3
        push = (apart * (0.1 / far**2 - matrix * far)).sum(1)
        at += most * push / np.maximum(np.linalg.norm(push, axis=1, keepdims=True), 1)
    return (at - at.min(0)) / np.ptp(at, axis=0)


# ---- the pole --------------------------------------------------------------------------------------------------------

CARTS, MOST, TESTED, SHOWN = 32, 150, 100, 40


class Pole(Application):
    """A pole on a cart.  The piece is the loss: which of the pushes should become more likely, and by how much."""

    name, kind, says, floor, steps, rate = "pole", "deep RL", "steps upright", 80.0, 20, 0.02

    def begin(self) -> Any:
        self.stood: list[float] = []  # the mean number of steps in each round
        return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def play(self, carts: int) -> tuple[Any, Any, Any]:
        """An episode of each cart: states, pushes, and 1.0 for each step in which the pole still stood."""
        found = play(lambda states: softmax(self.model(states))[:, 1], carts, MOST, self.draw)
        states, pushes, stood = [each[: found[2].any(1).sum()] for each in found]
        return states.astype(np.float32), pushes, stood.astype(np.float32)

    def batch(self) -> tuple[Any, ...]:
        states, pushes, stood = self.play(CARTS)
        self.stood.append(float(stood.sum() / CARTS))
        return asarray(states.reshape(-1, 4)), asarray(pushes.reshape(-1)), stood

    def learn(self, states: Tensor, pushes: Tensor, stood: Any) -> Any:
        losses = cross_entropy(self.model(states), pushes, reduction="none")
        with scope("your piece"):
            loss = self.piece(-losses.reshape(stood.shape), stood.copy())
        loss.backward()
        return loss

    def score(self) -> float:
        return float(self.play(TESTED)[2].sum() / TESTED)

    def look(self) -> list[float]:
        """For some carts, how long the pole stands."""
        return sorted(self.play(SHOWN)[2].sum(0).tolist())

    def show_one(self, drawing: Drawing, x: float, top: float, when: str, seen: Any) -> None:
        drawing.heading(x, top, f"{when}: {len(seen)} poles stand for {np.mean(seen):.0f} steps, on average")
        for i, high in enumerate(1.1 * np.array(seen)):
            drawing.rect(x + 8.2 * i, top + 200 - high, 6.5, high, "there-fill", "there", round=1)
        drawing.path([(x, top + 200), (x + 8.2 * len(seen), top + 200)], "quiet")
