"""Unit 08: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...predicting import Choice
from ...tasks import ROUNDS, Prediction, Question
from .about import UNIT


def hints(*lines: str) -> tuple[tuple[float, str], ...]:
    """Wrong values, each with its hint, from lines such as `"1 2: the hint for both"`."""
    pairs = [line.split(": ", 1) for line in lines]
    return tuple((float(value), hint) for values, hint in pairs for value in values.split())


@UNIT.task
class FirstStep(Prediction):
    """Adam, first step: gradients 1000 and 0.001. How many times as far does the first weight move?"""

    name, outcome, example, right_value, tolerance = "first_step", "optimizer", "1000000", 1, 0.01
    why = "the mean is the gradient, and it is divided by the root of the mean square, which is as large: ±1, times lr."
    otherwise = "m / √v: in the first step, both are made of this one gradient"
    wrong_values = hints(
        "1000000: so it would be for descent, lr · g. Adam divides each gradient by its own size",
        "1000: Adam divides each gradient by the root of its mean square, and not by the root of its size",
        "0.1: that is lr, and both weights move by it. How many times as far does the first one move?",
        "0: both weights move by lr. How many times as far as the second does the first one move?",
    )


@UNIT.task
class Learned(Prediction):
    """Linear(64, 32), Tanh, Linear(32, 10): how many numbers does the network learn?"""

    name, outcome, example, right_value = "learned", "module", "1000", 2410
    why = "64 · 32 + 32, and 32 · 10 + 10. A Tanh has nothing to learn."
    otherwise = "each Linear has a weight for each pair of an input and an output, and a bias for each output"
    wrong_values = hints(
        "2368: these are the weights. Each output has a bias too: 32 and 10 of them",
        "2442: the Tanh in the middle learns nothing: its 32 numbers are outputs",
        "2464: a bias belongs to an output, not to an input: 32 and 10 of them",
        "2378: the first layer has biases too: one for each of its 32 outputs",
        "2400: the second layer has biases too: one for each of its 10 outputs",
        "106: these are the sizes. A Linear has a weight for each pair of an input and an output: 64 · 32 of them",
        "20480: the layers stand one after the other: their numbers are added, 64 · 32 + 32 · 10, and the biases",
        "4: these are the tensors: two weights and two biases. How many numbers do they hold?",
    )


@UNIT.task
class Spread(Prediction):
    """Ten layers of 100 inputs and outputs, weights with spread 0.05: the spread after the tenth?"""

    name, outcome, example, right_value, tolerance = "spread", "initialise", "0.5", 0.5**10, 0.1
    why = "each layer multiplies the spread by 0.05 · √100, which is 0.5; ten layers by 0.5¹⁰, about 0.001."
    otherwise = "a sum of 100 products: its spread is √100 times the spread of one product, 0.05 · 1"
    wrong_values = hints(
        "0.5: that is after one layer. Each layer halves the spread again",
        "5: that is 100 · 0.05: the products have both signs, so their sum grows with √100",
        "9765625: 100 products of both signs partly cancel: their sum has the spread √100 · 0.05, not 100 · 0.05",
        "9.765625000000005e-14: one product has the spread 0.05. The sum of 100 products has √100 times as much",
        "1: it would stay at 1 if the weights had the spread 1 / √100",
    )


@UNIT.task
class Keeps(Question):
    """Which setting of the slider keeps the spread of all ten layers nearest to 1, without activation?"""

    name, outcome, example, right_value = "keeps", "initialise", "0.05", 0.1
    why = "1 / √100: then the sum of 100 products has the spread 1 again."
    otherwise = "move the slider until the spread is 1 in all layers: then there is no bar on either side of the middle"
    wrong_values = hints(
        "0.05: with 0.05 each layer halves the spread",
        "0.2: with 0.2 each layer doubles the spread",
        "1: 1 is the spread that the layers should keep. Which spread of the weights keeps it?",
        "0.14: with 0.14 the spread grows by 1.4 in each layer. That is right for relu, which drops half of the "
        "squares",
    )


@UNIT.task
class Chance(Prediction):
    """An untrained network reads one of ten digits. Its loss is −log of the share that it gives to the right one."""

    name, outcome, example, right_value, tolerance = "chance", "step", "1.0", 2.302585, 0.04
    why = "−log(1/10) is log 10. A first loss far from it means a mistake in the data, the loss or the first weights."
    otherwise = "it gives each digit about the same share, 1/10: what is −log(0.1)? (math.log is the natural logarithm)"
    wrong_values = hints(
        "-2.302585 -2.3: mind the sign: log(0.1) is −2.3, and the loss is −log(0.1)",
        "10: each digit has the share 1/10, so the loss is −log(1/10), which is log 10",
        "0.1: that is the share. The loss is −log of it",
        "1: that would be the logarithm to base 10. In machine learning log is the natural one: −log(0.1) is about "
        "2.3",
        "0.9: that is the share of wrong answers. The loss is −log of the share of the right one",
    )


@UNIT.task
class Phase(Choice, Question):
    """In which phase of a step do the weights change?"""

    name, outcome, right_value = "phase", "step", "update"
    why = "only the optimizer changes weights. backward() writes gradients beside them."
    same: ClassVar[dict[str, str]] = dict(pair.split(": ") for pair in (  # words of the text and of the code
        "take a batch: batch", "compute the loss: forward", "loss: forward", "compute the gradients: backward",
        "gradients: backward", "update the weights: update", "optimizer.step(): update", "step: update",
    ))
    options = {
        "batch": "a batch is data: it changes no weight",
        "forward": "the forward pass reads the weights, and computes the loss",
        "backward": "backward writes gradients. Compare the weights before and after: they are the same",
        "update": "",
    }

    def read(self, answer: Any) -> Any:
        return super().read(self.same.get(str(answer).strip().lower(), answer))


@UNIT.task
class Forgotten(Prediction):
    """w = 1, loss = 3 w, lr = 0.1. Two steps without zero_grad. What is w?"""

    name, outcome, example, right_value = "forgotten", "step", "0.5", 0.1
    why = "the first step subtracts 0.1 · 3. The second subtracts 0.1 · 6, because backward() adds to .grad."
    otherwise = "backward() adds the new gradient to .grad. What is in .grad in the second step?"
    wrong_values = hints(
        "0.4: so it would be with zero_grad. Without it, .grad still holds the 3 of the first step",
        "0.7: that is after one step",
        "-0.8: in the second step .grad is 3 + 3, not 3 + 3 + 3 or more",
        "-0.2: .grad is 3 in the first step and 3 + 3 in the second",
        "1.9: w gets smaller: a step subtracts lr · .grad",
        "-8 -5: each step subtracts lr · .grad, and lr is 0.1",
        "6: that is .grad in the second step. w loses 0.1 times .grad in each step",
    )


@UNIT.task
class TopSpeed(Prediction):
    """The gradient is 1 in every step, and β is 0.9. Towards which number does the velocity β · v + g grow?"""

    name, outcome, example, right_value, tolerance = "top_speed", "optimizer", "2", 10, 0.01
    why = "1 + 0.9 + 0.81 + ... is 1 / (1 − 0.9): on a slope that stays the same, momentum makes ten times the steps."
    otherwise = "in the end v does not change any more: v = 0.9 · v + 1"
    wrong_values = hints(
        "1: that is the first velocity. The second is 0.9 + 1",
        "1.9: that is the second velocity. It goes on growing: 0.9 · 1.9 + 1",
        "0: each step adds 1 to 0.9 · v: v grows",
        "100: that would be with β = 0.99: v = β · v + 1, so (1 − β) · v is 1",
        "9: nearly: v = 0.9 · v + 1, so 0.1 · v is 1",
        "inf: it grows more and more slowly: at v = 10, the new velocity is 0.9 · 10 + 1",
    )


@UNIT.task
class Refused(Prediction):
    """How many of these seven texts does float() refuse: "71.3", " 71.3 ", "1e3", "n/a", "nan", "inf", ""?"""

    name, outcome, example, right_value = "refused", "data", "7", 2
    why = 'float() refuses "n/a" and "". It reads "nan" and "inf" as numbers, and one nan makes a whole model nan.'
    otherwise = "float() refuses what it cannot read as a number. Try float(...) with each of them"
    wrong_values = hints(
        '4: float() accepts "nan" and "inf": they are numbers of the machine, and a loader has to refuse them itself',
        '5: float() skips spaces, reads "1e3" as 1000, and accepts "nan" and "inf"',
        '3: two only: "n/a" and "". Spaces, "1e3", "nan" and "inf" are accepted',
        '1: "n/a", and one more: the empty text is not a number either',
        '6: float() reads more than figures and a point: spaces around them, "1e3", "nan" and "inf"',
        '7: float() reads the first three, and also "nan" and "inf"',
        '0: "n/a" and the empty text are not numbers',
    ) + ((["n/a", ""], "these are the two. How many are they?"),)


@UNIT.task
class FirstDifference(Prediction):
    """Weights, random numbers and the place in the epoch are restored, Adam begins anew. Which loss differs first?"""

    name, outcome, example, right_value = "first_difference", "resume", "3", 2
    why = (
        "loss 1 is computed with the same weights from the same batch. Then Adam makes its step with running means "
        "that begin at 0: from loss 2 on the weights are others."
    )
    otherwise = "count from 1. The loss of a step is computed before the optimizer changes the weights"
    wrong_values = hints(
        "1: loss 1 depends on the weights, the batch and the masks, and these are restored. Adam comes after the loss",
        "0: count from 1: loss 1 is the first after the restart",
        "3: the first step after the restart is another one already, and loss 2 is computed with its weights",
        "21: count from the restart: step 21 has loss 1",
        "22: count from the restart: that would be loss 2",
    )

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        number = str(answer).lower().removeprefix("loss").strip()  # "loss 2" is an answer too
        return super().check(int(number) if number.isdecimal() else answer, rounds)


@UNIT.task
class SortedPictures(Prediction):
    """The network with batch norm, in training mode, gets the test pictures sorted, each digit as one batch: how many
    of 360 does it read right?
    """

    name, outcome, example, right_value, tolerance = "sorted_pictures", "modes", "300", 43, 0.4
    why = (
        "fewer than one in eight. Batch norm subtracts the mean of the batch. In a batch of zeros, this is what all "
        "zeros have in common, so exactly that is gone."
    )
    otherwise = (
        "about as many as by guessing: batch norm subtracts the mean of the batch, and in a batch of one digit this is "
        "what its pictures have in common"
    )
    wrong_values = hints(
        "350 352 353 345 340: so many in mixed batches. In a batch of zeros the mean is what all zeros have in common",
        "360: not even in evaluation mode. And here the mean of zeros is subtracted from zeros",
        "300: the damage is larger: in a batch of zeros the mean is what all zeros have in common, and it is gone",
        "0: some are right by chance. A network that guesses reads about 36 of 360",
        "180: fewer: in a batch of zeros the mean is what all zeros have in common, and it is gone",
    )
