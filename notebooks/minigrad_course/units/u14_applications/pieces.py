"""Unit 14: the missing pieces of the four programs, and the floors that their scores have to reach."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from minigrad import random as seeds
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.functional import softmax
from minigrad.ops.losses import cross_entropy
from minigrad.support.table import counted

from ...compare import Difference, difference
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT
from .programs import LENGTH, MEMBERS, Application, Club, Digits, Names, Piece, Pole, window_of  # noqa: F401  (in the texts)
from .runs import Run, taken


class MissingPiece(FunctionTask):
    """A piece of a program.  It is right if it computes what the text says, and the trained program reaches the floor.

    A piece that computes something else is refused before the training, even if it would reach the floor.
    """

    program: ClassVar[type[Application]]
    form: ClassVar[str] = "the loss, one number"
    shape: ClassVar[tuple[int, ...]] = ()
    seconds = 60.0  # on a busy machine

    def application(self, piece: Piece) -> Application:
        """The program with a piece in it."""
        return self.program(piece)

    def given(self) -> dict[str, Any]:
        return {"train": lambda piece: Run(self.application(piece))}

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        run = Run(self.application(answer))
        said = f"{run.scored}; the floor is {run.program.floor:g}"
        if not run.passed:
            raise Wrong(self.name, f"the score is not reached: {said}", (
                "the result is right for the example, but not in training: take all sizes and numbers from the "
                "arguments, and leave the arguments as they are"))
        return f"{said}. {self.counted(run)}".strip()

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(self.formed(yours), self.right(*args), self.form.partition(",")[0])

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"a small example of {self.name}"

    def counted(self, run: Run) -> str:
        """What a step takes with this piece, beside a step with the course's own."""
        usual = taken(self.application(self.right))
        if run.taken is None or usual is None:
            return ""
        own = counted(run.taken.launches, "launch", "launches")
        return (f"Your step takes {own}, {run.taken.fused} when it is fused; "
                f"with the course's own piece it takes {usual.launches}, and {usual.fused}.")

    def formed(self, yours: Any) -> Any:
        """The result; `Wrong` is raised for one of another form."""
        if isinstance(yours, Tensor) and yours.shape == self.shape:
            return yours.detach()
        got = f"a tensor of shape {yours.shape}" if isinstance(yours, Tensor) else written(yours)
        hint = "compute with mg and the tensors that you get: a NumPy array or a plain number has no gradient"
        if isinstance(yours, tuple):
            hint = "a comma at the end of `return` makes a tuple. Leave it out"
        if yours is None or isinstance(yours, Tensor):
            hint = "a number for each score" if self.shape else "one number: a mean, or a sum"
            hint = hint if yours is not None else "a function gives back only the value after `return`"
        raise Wrong(self.name, f"it returned {got}, not {self.form}", hint)


# ---- digits ----------------------------------------------------------------------------------------------------------

@UNIT.task
class ScoresGrad(MissingPiece):
    """The gradient at the scores of a network for digits."""

    name = "scores_grad"
    program, shape = Digits, (5, 10)

    def vary(self, draw: random.Random) -> None:
        self.smooth = draw.choice([0.05, 0.1, 0.15, 0.2])

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        scores = [[draw.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]) for _ in range(10)] for _ in range(5)]
        targets = np.eye(10, dtype=np.float32)[[draw.randrange(10) for _ in range(5)]]
        yield asarray(np.array(scores, dtype=np.float32)), asarray(targets)

    def smoothed(self, targets: Tensor) -> Tensor:
        """The targets, in which every digit has some probability."""
        return (1 - self.smooth) * targets + self.smooth / 10

    def right(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (softmax(scores, axis=-1) - self.smoothed(targets)) / len(scores)


# ---- names -----------------------------------------------------------------------------------------------------------

@UNIT.task
class NamesLoss(MissingPiece):
    """The loss of a language model: what it sees, and what it should say."""

    name, program = "names_loss", Names

    def vary(self, draw: random.Random) -> None:
        self.window = draw.choice([4, 5, 6])

    def application(self, piece: Piece) -> Application:
        return Names(piece, window=self.window)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        text = [[0, *[draw.randrange(1, 27) for _ in range(8)], 0, 0, 0, 0] for _ in range(3)]
        program = self.application(self.right)
        seeds.seed(draw.randrange(1000))
        yield Names.scores.__get__(program), asarray(np.array(text))

    def right(self, model: Any, text: Tensor) -> Any:
        read, say = text[:, :-1], text[:, 1:]
        scores = model(read, asarray(window_of(self.window)))
        return cross_entropy(scores.reshape(-1, 27), say.reshape(-1))


# ---- the club --------------------------------------------------------------------------------------------------------


def ties(pairs: Any, own: float = 1.0, both: bool = True) -> Any:
    """A matrix with 1 for each tie, and with `own` on the diagonal."""
    matrix = own * np.eye(MEMBERS)
    matrix[pairs[:, 0], pairs[:, 1]] = 1
    matrix[pairs[:, 1], pairs[:, 0]] = 1 if both else matrix[pairs[:, 1], pairs[:, 0]]
    return matrix


@UNIT.task
class ClubLoss(MissingPiece):
    """The loss of a graph network: who sends messages to whom, and whose label is known."""

    name, program = "club_loss", Club

    def vary(self, draw: random.Random) -> None:
        self.known = draw.choice([(0, 33), (0, 32), (1, 33), (1, 32), (3, 33)])

    def application(self, piece: Piece) -> Application:
        return Club(piece, two=self.known)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        program = Club(self.right, two=self.known)
        yield program.scores, *program.batch()

    def right(self, network: Any, pairs: Any, labels: Tensor, known: Any) -> Any:
        matrix = ties(pairs)
        degree = np.maximum(matrix.sum(1), 1e-9)
        matrix = matrix / np.sqrt(degree[:, None] * degree)
        scores, members = network(asarray(matrix.astype(np.float32))), asarray(known)
        return cross_entropy(scores[members], labels[members])


# ---- the pole --------------------------------------------------------------------------------------------------------


def returns_of(stood: Any, discount: float) -> Any:
    """For each step, the sum of the rewards from there on, of which later ones count less."""
    found, ahead = np.zeros(stood.shape), np.zeros(stood.shape[1])
    for t in reversed(range(len(stood))):
        found[t] = ahead = stood[t] + discount * ahead
    return found


@UNIT.task
class PoleLoss(MissingPiece):
    """The loss of a policy: which of the pushes should become more likely, and by how much."""

    name, program = "pole_loss", Pole

    def vary(self, draw: random.Random) -> None:
        self.discount = draw.choice([0.95, 0.96, 0.97, 0.98])

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        lengths = np.array([draw.randrange(2, 7), draw.randrange(3, 7), 7])
        stood = (np.arange(7)[:, None] < lengths).astype(np.float32)
        chances = [[-draw.choice([0.2, 0.5, 0.7, 1.1]) for _ in lengths] for _ in stood]
        yield asarray(np.array(chances, dtype=np.float32)), stood

    def right(self, log_chances: Tensor, stood: Any) -> Any:
        returns = returns_of(stood, self.discount)
        weights = (returns - returns[stood > 0].mean()) * stood
        return -(log_chances * asarray(weights.astype(np.float32))).sum() / float(stood.sum())


PIECES: tuple[type[MissingPiece], ...] = (ScoresGrad, NamesLoss, ClubLoss, PoleLoss)
