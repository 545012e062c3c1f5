"""Unit 14: the missing pieces of the four programs, and the floors that their scores have to reach."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from minigrad import random as seeds
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import exp
from minigrad.ops.functional import softmax
from minigrad.ops.losses import cross_entropy

from ...compare import difference, same
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT
from .programs import LENGTH, MEMBERS, Application, Club, Digits, Names, Piece, Pole, window_of
from .runs import Run


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
        found = [(args, self.formed(answer(*args))) for args in self._all_cases(rounds)]
        other = [each for each in found if not same(each[1], self.right(*each[0]))]
        if other:
            hints = [known.hint for known in self.mistakes
                     if all(same(yours, self.wrong(known)(*args).detach()) for args, yours in other)]
            problem = difference(other[0][1], self.right(*other[0][0]), self.form.partition(",")[0])
            raise Wrong(self.name, str(problem), [*hints, self.otherwise][0])
        run = Run(self.application(answer))
        said = f"{run.scored}; the floor is {run.program.floor:g}"
        if not run.passed:
            raise Wrong(self.name, f"the score is not reached: {said}", (
                "the result is right for the example, but not in training: take all sizes and numbers from the "
                "arguments, and leave the arguments as they are"))
        return f"{said}."

    def formed(self, yours: Any) -> Any:
        """The result; `Wrong` is raised for one of another form."""
        if isinstance(yours, Tensor) and yours.shape == self.shape:
            return yours.detach()
        got = f"a tensor of shape {yours.shape}" if isinstance(yours, Tensor) else written(yours)
        hint = "compute with mg and the tensors that you get: a NumPy array or a plain number has no gradient"
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

    def text(self) -> str:
        s = self.smooth
        return (
            "The network gives 10 **scores** for each picture. No loss is computed: the backward pass starts at the "
            "scores, from **your gradient**. Write `scores_grad(scores, targets)`; `targets` has a row for each "
            f"picture, 1 for its digit and 0 elsewhere.\n\n1. Smooth the targets: `(1 - {s}) * targets + {s} / 10`. "
            "With a target of 1 the network would have to be quite sure.\n2. The mean cross-entropy of a batch has a "
            "short gradient: the **probability** of each digit (`mg.softmax` of the scores of a picture) **minus its "
            "smoothed target, divided by the number of pictures**.\n\nFloor: 97 % of the test digits."
        )

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        scores = [[draw.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]) for _ in range(10)] for _ in range(5)]
        targets = np.eye(10, dtype=np.float32)[[draw.randrange(10) for _ in range(5)]]
        yield asarray(np.array(scores, dtype=np.float32)), asarray(targets)

    def smoothed(self, targets: Tensor) -> Tensor:
        """The targets, in which every digit has some probability."""
        return (1 - self.smooth) * targets + self.smooth / 10

    def right(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (softmax(scores, axis=-1) - self.smoothed(targets)) / len(scores)

    wrong_programs = (
        (lambda self, z, t: -self.right(z, t),
         "the sign: a gradient points to where the loss grows, so it is positive where a probability is too high"),
        (lambda self, z, t: len(z) * self.right(z, t),
         "the loss is a mean over the pictures: divide by len(scores). Otherwise a larger batch means larger steps"),
        (lambda self, z, t: self.right(z, t) / 10,
         "divide by the number of pictures only: the 10 scores of a picture belong to one loss"),
        (lambda self, z, t: softmax(z, axis=-1) - self.smoothed(t) / len(z),
         "only the target is divided: put the difference in brackets, (p − target) / len(scores)"),
        (lambda self, z, t: softmax(z, axis=-1) / len(z),
         "the targets are missing: with the probabilities alone, every score comes down"),
        (lambda self, z, t: (z - self.smoothed(t)) / len(z),
         "the scores are not probabilities: mg.softmax(scores, axis=-1) makes them probabilities"),
        (lambda self, z, t: (softmax(z, axis=0) - self.smoothed(t)) / len(z),
         "axis 0 goes over the pictures. The 10 probabilities of one picture add up to 1: axis=-1"),
        (lambda self, z, t: (softmax(z, axis=-1) - t) / len(z),
         "the targets are not smoothed: no probability reaches 1, so the scores would grow without end"),
        (lambda self, z, t: softmax(z, axis=-1) - t,
         "two things are missing: smooth the targets, and divide by len(scores)"),
        (lambda self, z, t: softmax(z, axis=-1) * (1 - softmax(z, axis=-1)) * self.right(z, t),
         "the slope p · (1 − p) is not needed: in the gradient of cross-entropy it cancels"),
        (lambda self, z, t: -(self.smoothed(t) / softmax(z, axis=-1)) / len(z),
         "that is the gradient for the probabilities. The backward pass starts at the scores: p − target"),
    )


# ---- names -----------------------------------------------------------------------------------------------------------

READ, SAY = slice(0, -1), slice(1, None)


def language(seen: Callable[[int], Any], read: slice = READ, say: slice = SAY) -> Callable[..., Any]:
    """A loss, for the mask of a window, for the letters that are read, and those that should be said."""

    def loss(self: Any, model: Any, text: Tensor) -> Any:
        scores = model(text[:, read], asarray(seen(self.window)))
        return cross_entropy(scores.reshape(-1, 27), text[:, say].reshape(-1))

    return loss


@UNIT.task
class NamesLoss(MissingPiece):
    """The loss of a language model: what it sees, and what it should say."""

    name, program = "names_loss", Names

    def vary(self, draw: random.Random) -> None:
        self.window = draw.choice([4, 5, 6])

    def text(self) -> str:
        w = self.window
        return (
            "`text` is a tensor. A row of it is a name as 13 numbers: 0 at its beginning, its letters as 1 to 26, and "
            "0 until the end. `model(letters, mask)` takes 12 numbers of each name, and returns 27 scores at each of "
            "the 12 places. `mask` has 12 rows and 12 columns: `mask[i, j]` is True where **place i sees place j**.\n\n"
            "Write `names_loss(model, text)`. Each place reads a letter and should say **the next one**. Place i sees "
            f"**itself and the {w - 1} places before it**, {w} in all, and no later place. Return "
            "`mg.cross_entropy(scores, targets)` for scores of shape (many, 27), with a target for each (`.reshape`)."
            "\n\nFloor: at most 2.4 nats for each letter of names that were held out. Guessing costs 3.3."
        )

    def application(self, piece: Piece) -> Application:
        return Names(piece, window=self.window)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        text = [[0, *[draw.randrange(1, 27) for _ in range(8)], 0, 0, 0, 0] for _ in range(3)]
        program = self.application(self.right)
        seeds.seed(draw.randrange(1000))
        yield Names.scores.__get__(program), asarray(np.array(text))

    right = language(window_of)
    wrong_programs = (
        (language(lambda w: np.ones((LENGTH, LENGTH), dtype=bool)),
         "the mask hides nothing: place i sees place i + 1, which holds the letter that it should say. The loss in "
         "training is too good to be true, and new names are gibberish"),
        (language(lambda w: window_of(w).T), "the mask is turned round: mask[i, j] is True where j <= i"),
        (language(lambda w: window_of(LENGTH).T),
         "the mask is turned round, and the window is missing: True where j <= i and j > i - window"),
        (language(lambda w: window_of(LENGTH)),
         "the window is missing: place i sees all places before it. Also ask for j > i - window"),
        (language(lambda w: window_of(w + 1)), "the window is one too long: place i itself counts too"),
        (language(lambda w: window_of(w - 1)), "the window is one too short: itself, and so many places before it"),
        (language(lambda w: window_of(w) & ~np.eye(LENGTH, dtype=bool)),
         "place i does not see itself: j <= i, not j < i. The last letter says most about the next one"),
        (language(lambda w: window_of(w) | window_of(w).T), "a window to both sides: hide the later places, j <= i"),
        (language(lambda w: ~window_of(w)), "True and False are exchanged: True is where place i sees place j"),
        (language(window_of, say=READ),
         "the targets are not shifted: each place should say the letter that it reads. The loss falls to 0, and "
         "nothing is learned. Read text[:, :-1], say text[:, 1:]"),
        (language(window_of, SAY), "the targets are not shifted: read text[:, :-1], say text[:, 1:]"),
        (language(window_of, SAY, READ),
         "shifted the wrong way: each place should say the letter before it. Read text[:, :-1], say text[:, 1:]"),
    )


# ---- the club --------------------------------------------------------------------------------------------------------


def ties(pairs: Any, own: float = 1.0, both: bool = True) -> Any:
    """A matrix with 1 for each tie, and with `own` on the diagonal."""
    matrix = own * np.eye(MEMBERS)
    matrix[pairs[:, 0], pairs[:, 1]] = 1
    matrix[pairs[:, 1], pairs[:, 0]] = 1 if both else matrix[pairs[:, 1], pairs[:, 0]]
    return matrix


def normalised(matrix: Any, like: Any = None, power: float = 0.5) -> Any:
    """A matrix of messages: divided by √(dᵢ · dⱼ), with the sums of the rows of the matrix, or of another one."""
    degree = np.maximum((matrix if like is None else like).sum(1), 1e-9)
    return matrix / (degree[:, None] * degree) ** power


def messages(matrix: Callable[[Any], Any], read: Callable[[Any], Any] = lambda known: known) -> Callable[..., Any]:
    """A loss, for a matrix that is made of the pairs, and for the members whose labels are read."""

    def loss(self: Any, network: Any, pairs: Any, labels: Tensor, known: Any) -> Any:
        scores, members = network(asarray(matrix(pairs).astype(np.float32))), asarray(read(known))
        return cross_entropy(scores[members], labels[members])

    return loss


@UNIT.task
class ClubLoss(MissingPiece):
    """The loss of a graph network: who sends messages to whom, and whose label is known."""

    name, program = "club_loss", Club

    def vary(self, draw: random.Random) -> None:
        self.known = draw.choice([(0, 33), (0, 32), (1, 33), (1, 32), (3, 33)])

    def text(self) -> str:
        a, b = self.known
        return (
            "A club of 34 members splits in two. `pairs` (a NumPy array) lists the 78 ties between them, `[i, j]`, "
            "**once for each tie**. `network(matrix)` sends messages twice, and returns 2 scores for each member: "
            f"`matrix[i, j]` is the weight of what **i gets from j**. `known` holds members {a} and {b}. `labels` (a "
            "tensor) has 34 entries, but **only those of the known members are real**; the others are made up.\n\n"
            "Write `club_loss(network, pairs, labels, known)`:\n1. a 34 × 34 matrix A, with 1 for each tie **in both "
            "directions**, and **1 on the diagonal**: a member keeps its own numbers;\n2. divide A[i, j] by "
            "√(dᵢ · dⱼ), where dᵢ is the sum of row i: a member with many ties must not be louder;\n3. return the mean "
            "`mg.cross_entropy` of the scores of the **known** members.\n\n`mg.asarray(A, dtype=mg.float32)` makes a "
            "tensor of an array; `scores[mg.asarray(known)]` are some rows. Floor: 90 % of the 32 others."
        )

    def application(self, piece: Piece) -> Application:
        return Club(piece, two=self.known)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        program = Club(self.right, two=self.known)
        yield program.scores, *program.batch()

    right = messages(lambda pairs: normalised(ties(pairs)))
    wrong_programs = (
        (messages(lambda pairs: normalised(ties(pairs)), lambda known: np.arange(MEMBERS)),
         "the labels of the others are read. They are made up here; in real data they would be the answers of the "
         "test. Take the known members only, scores[known] and labels[known]"),
        (messages(lambda pairs: normalised(ties(pairs, 0.0))),
         "the diagonal is missing: a member gets the others' numbers, and loses its own. Begin with np.eye(34)"),
        (messages(ties), "the matrix is not divided: a member with 17 ties would be 17 times as loud"),
        (messages(lambda pairs: normalised(ties(pairs, both=False))),
         "each tie is listed once, but both members hear from each other: set A[j, i] = 1 too"),
        (messages(lambda pairs: normalised(ties(pairs), power=1.0)),
         "divide by the square root of dᵢ · dⱼ: by the product, hardly anything is left of a message"),
        (messages(lambda pairs: normalised(ties(pairs), ties(pairs, 0.0))),
         "the sums of the rows were taken too early, without the diagonal: a member counts itself too"),
        (messages(lambda pairs: normalised(ties(pairs, 0.0)) + np.eye(MEMBERS)),
         "the diagonal comes too late: add it to the ties, then divide"),
        (messages(lambda pairs: ties(pairs) / ties(pairs).sum(1, keepdims=True)),
         "that is a mean over the ties of i: divide by √(dᵢ · dⱼ), with the ties of the sender too"),
        (messages(lambda pairs: np.eye(MEMBERS)), "no message is sent: set a 1 for each tie"),
        (lambda self, network, *data: self.right(lambda matrix: softmax(network(matrix), axis=-1), *data),
         "these are probabilities: cross_entropy takes the scores, and applies softmax itself"),
    )


# ---- the pole --------------------------------------------------------------------------------------------------------


def returns_of(stood: Any, discount: float) -> Any:
    """For each step, the sum of the rewards from there on, of which later ones count less."""
    found, ahead = np.zeros(stood.shape), np.zeros(stood.shape[1])
    for t in reversed(range(len(stood))):
        found[t] = ahead = stood[t] + discount * ahead
    return found


def better(returns: Any, stood: Any) -> Any:
    """Returns minus their mean; 0 after a fall."""
    return (returns - returns[stood > 0].mean()) * stood


def policy(weights: Callable[[Any, float], Any], share: Callable[[Any], float] = np.sum) -> Callable[..., Any]:
    """A loss, for the weights of the steps, and for the number that the sum is divided by."""

    def loss(self: Any, log_chances: Tensor, stood: Any) -> Any:
        return -(log_chances * asarray(weights(stood, self.discount).astype(np.float32))).sum() / float(share(stood))

    return loss


def right_weights(stood: Any, discount: float) -> Any:
    """The returns minus the baseline."""
    return better(returns_of(stood, discount), stood)


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

    right = policy(right_weights)
    wrong_programs = (
        (lambda self, *args: -self.right(*args),
         "the sign: pushes with a high return should become more likely, so the loss is minus the sum. With this one "
         "the poles fall as fast as they can"),
        (policy(lambda stood, discount: better(returns_of(stood[::-1], discount)[::-1], stood)),
         "the returns run from the beginning: a step gets what came before it. Go from the last step to the first, "
         "for t in reversed(range(len(stood)))"),
        (policy(lambda stood, discount: better(returns_of(stood, discount)[0] * np.ones(stood.shape), stood)),
         "every step gets the return of the whole episode. What came before a push is not its merit"),
        (policy(lambda stood, discount: better(stood.sum(0) * stood, stood)),
         "every step gets the reward of the whole episode. Go from the last step to the first, with the discount"),
        (policy(lambda stood, discount: (stood.sum(0) - stood.sum(0).mean()) * stood),
         "every step gets the reward of the whole episode. Go from the last step to the first, with the discount"),
        (policy(lambda stood, discount: better(stood, stood)),
         "the weights are the rewards themselves, which are all 1. A push is good if the pole stands for long "
         "afterwards: add up the rewards from there on"),
        (policy(returns_of),
         "the baseline is missing: all returns are positive, so every push becomes more likely, good or bad"),
        (policy(lambda stood, discount: (returns_of(stood, discount) - returns_of(stood, discount).mean()) * stood),
         "the baseline is a mean over all places, also over those after a fall: returns[stood > 0].mean()"),
        (policy(lambda stood, discount: returns_of(stood, discount) - returns_of(stood, discount)[stood > 0].mean()),
         "steps after a fall have a weight: minus the baseline. Multiply by stood"),
        (policy(lambda stood, discount: right_weights(stood, 1.0)),
         "the discount is missing: multiply the return of the next step by it"),
        (policy(lambda stood, discount: discount * right_weights(stood, discount)),
         "the discount belongs to the return of the next step, not to the reward of this one"),
        (policy(lambda stood, discount: (r := returns_of(stood, discount)) * stood - stood * r.sum(0) / stood.sum(0)),
         "each cart has a baseline of its own: take one mean, over the steps of all carts"),
        (policy(lambda stood, discount: right_weights(stood, discount) / returns_of(stood, discount)[stood > 0].std()),
         "the weights are also divided by a standard deviation. Some libraries do that, but the text does not"),
        (policy(lambda stood, discount: better(stood + discount * np.vstack([stood[1:], 0 * stood[:1]]), stood)),
         "only one step ahead: take the *return* of the next step, not its reward"),
        (policy(right_weights, np.size), "divide by stood.sum(), the steps that were played, not by all places"),
        (policy(right_weights, lambda stood: 1.0),
         "the sum is not divided by stood.sum(): rounds with long episodes would count more"),
        (lambda self, log_chances, stood: self.right(exp(log_chances), stood),
         "these are probabilities: take log_chances as they are"),
    )


PIECES: tuple[type[MissingPiece], ...] = (ScoresGrad, NamesLoss, ClubLoss, PoleLoss)
