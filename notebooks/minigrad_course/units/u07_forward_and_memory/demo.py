"""Unit 07: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question
from .about import UNIT
from .tangents import moving
from .wrong import by_formula


@UNIT.task
class StepKeeps(Prediction):
    """A GPT with 0.2 MB of weights, 64 names at once: how many MB are kept for the backward pass?"""

    name = "step_keeps"
    outcome = "kept"
    tolerance = 0.1
    example = "0.2"
    right_value = 12
    why = "nearly sixty times the weights: hundreds of results, with numbers for each letter of 64 names."
    otherwise = "one of 0.2, 2 and 12"
    wrong_values = (
        (0.2, "that is the weights alone. What do the rules of the operations read in the backward pass?"),
        (2, "more. The rules read results of hundreds of operations, and each result has numbers for 64 names"),
    )


@UNIT.task
class Speed(Prediction):
    """x = 3 moves at a speed of 2 per second. How fast does x * x move?"""

    name = "speed"
    outcome = "tangent"
    example = "5"
    right_value = 12
    why = "the slope of x · x at 3 is 6, and x moves at 2: 6 · 2."
    otherwise = "x * x grows 2 · x = 6 times as fast as x, and x moves at 2"
    wrong_values = (
        (6, "that is the slope, for x at a speed of 1. x moves at 2"),
        (4, "that is the speed squared. x · x moves 6 times as fast as x, for x = 3"),
        (9, "that is the value of x · x. How fast does it change?"),
        (2, "the speed goes through the slope: x · x moves 6 times as fast as x"),
        (16, "a whole second later x is 5, and x · x has grown by 16. The question is how fast it moves now"),
        (25, "a whole second later x is 5, and x · x is 25. The question is how fast it moves now"),
        (5, "that is where x is a whole second later. How fast does x · x move now, at x = 3?"),
    )


@UNIT.task
class ForwardKeeps(Prediction):
    """100 times tanh on 1,000 floats, 4 kB each time. Reverse mode keeps 400 kB. And forward mode?"""

    name = "forward_keeps"
    outcome = "tangent"
    example = "100"
    right_value = 0
    why = "each value has its tangent at once. Nothing has to wait for a backward pass: there is none."
    otherwise = "a number of kB. After tanh has computed its value and its tangent, what is still needed later?"
    wrong_values = (
        (400, "that is what reverse mode keeps. Is there a backward pass in forward mode that has to read it?"),
        (800, "twice the numbers are computed, but each pair is needed by the next operation only"),
        (8, "one value and one tangent exist at a time. But kept for later? The next operation uses them at once"),
        (4, "one value exists at a time. But kept for later? The next operation uses it at once"),
    )


@UNIT.task
class WeightPasses(Prediction):
    """2,410 weights, one loss: how many passes of forward mode give the gradient?"""

    name = "weight_passes"
    outcome = "passes"
    example = "10"
    right_value = 2410
    why = "one for each weight. Reverse mode needs one pass for all: so networks are trained backward."
    otherwise = "one pass moves the weights in one direction. The gradient has 2,410 numbers: one for each weight"
    mistakes = by_formula(
        ("1", "that is reverse mode. A pass of forward mode moves the weights in one direction, and gives one number"),
        ("2411", "finite differences need one more run, to compare with. Forward mode does not"),
        ("4820", "a pass computes the values and the tangents together: it counts once for each weight"),
    )


@UNIT.task
class SpotPasses(Prediction):
    """A picture of 24 × 24 numbers is computed from one angle. How many passes for all derivatives?"""

    name = "spot_passes"
    outcome = "passes"
    example = "2, 2"
    right_value = (1, 576)
    why = "one input: one pass of forward mode. 576 outputs: 576 passes of reverse mode."
    otherwise = "forward mode: one pass for each input. Reverse mode: one for each output. How many of each are there?"
    hints = {
        "turned": "the other way round: first forward mode, then reverse mode",
        "all_like_the_first": "right for forward mode. Reverse mode fixes one output: there are 24 · 24 of them",
        "all_like_the_last": "right for reverse mode. Forward mode moves the one input, and sees all outputs move",
    }
    mistakes = by_formula(
        ("1 24", "24 is one side of the picture. It has 24 · 24 numbers"),
        ("24 24", "24 is a side of the picture. Count its numbers, which are outputs. How many inputs are there?"),
        ("24 1", "the other way round; and 24 is one side of the picture: it has 24 · 24 numbers, the outputs"),
    )

    def given(self) -> dict[str, Any]:
        return {"moving": moving}


@UNIT.task
class Shared(Prediction):
    """h = tanh(x @ W) has 64 kB, and y = h * h. How many kB are kept?"""

    name = "shared"
    outcome = "kept"
    example = "100"
    right_value = 64
    why = "both rules read the same array, h. x and W exist anyway: they are data and parameters."
    otherwise = "tanh reads its output h, the product reads its inputs, h and h. How often must h be kept?"
    wrong_values = (
        (128, "both rules read h, but h is one array: it is kept once"),
        (192, "tanh and both inputs of the product read h, but h is one array: it is kept once"),
        (0, "something is kept: tanh passes back g · (1 − h²). What does this rule read?"),
    )


@UNIT.task
class OneCheckpoint(Prediction):
    """The whole chain of 100 tanh, which keeps 400 kB, goes into one checkpoint. What is the most that is kept?"""

    name = "one_checkpoint"
    outcome = "checkpoint"
    example = "100"
    right_value = 400
    why = "0 kB after the forward pass, and 400 kB as soon as the backward pass has computed all of it again."
    otherwise = "after the forward pass next to nothing is kept. But what happens when the backward pass begins?"
    wrong_values = (
        (0, "that is true after the forward pass. Then the backward pass computes the whole chain again, all at once"),
        (4, "4 kB is one array. The backward pass computes the whole chain again, and keeps all of it"),
        (800, "a result that is computed a second time is kept once: the first one was not kept"),
        (404, "nearly: the input of this checkpoint is data, which exists anyway, and is not counted"),
        (396, "nearly: the rule of tanh reads its output, so all 100 results are computed again and kept"),
        (200, "the backward pass needs the chain from its end, and computes all of it again: nothing is saved"),
    )


@UNIT.task
class TenCheckpoints(Prediction):
    """The chain in 10 parts of 10, and 9 of them are checkpoints: how many arrays are kept at most, about?"""

    name = "ten_checkpoints"
    outcome = "checkpoint"
    tolerance = 0.12
    example = "50"
    right_value = 18
    why = "an input for nearly each part, and the ten results of one part: about 10 + 10, in place of 100."
    otherwise = "an input for each checkpoint, and the inside of one part at a time. How many arrays are that?"
    wrong_values = (
        (10, "that is the inputs of the parts. When a part is computed again, its inside is there too"),
        (9, "that is the inputs of the parts. When a part is computed again, its inside is there too"),
        (11, "the inside of one part, and its input. But the inputs of the parts before it still wait, too"),
        (50, "that is 2 parts. With 10 parts: the inputs that wait, and the inside of one part at a time"),
        (90, "the nine checkpoints are not computed again at the same time: each is freed before the next one"),
        (100, "the ten parts are not computed again at the same time: each is freed before the next one"),
        (110, "one part at a time is computed again: each is freed before the next one comes"),
    )


@UNIT.task
class Slider(Question):
    """On the slider: how many checkpoints keep less than 4 MB at most, and compute as little as possible again?"""

    name = "slider"
    outcome = "plan"
    example = "1"
    right_value = 3
    why = "3.59 MB at most, and 74 % of the forward pass runs a second time."
    otherwise = "move the slider, and read the sentence above the chart"
    mistakes = by_formula(
        ("4", "it is below 4 MB, but 98 % is computed again. Do fewer checkpoints do it?"),
        ("2", "after the forward pass less than 4 MB are kept. But at most? Read on in the sentence"),
        ("1", "one checkpoint keeps 6.37 MB at most"),
        ("0", "without a checkpoint 12.3 MB are kept"),
        *[(more, "it is below 4 MB, but nearly everything is computed again. Do fewer checkpoints do it?")
          for more in "56789"],
    )


@UNIT.task
class WithDropout(Prediction):
    """A block with dropout goes into a checkpoint. In how many of its gradients' numbers does anything change?"""

    name = "with_dropout"
    outcome = "checkpoint"
    example = "100"
    right_value = 0
    why = "a node stores the key of its random numbers, so they are the same when it is computed again."
    otherwise = "dropout would draw other numbers if the generator went on. A node is a recipe: it stores which numbers"
