"""Unit 07: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question, mistake
from .about import UNIT
from .spots import moving


@UNIT.task
class StepKeeps(Prediction):
    """A GPT with 0.2 MB of weights, 64 names at once: how many MB are kept for the backward pass?"""

    name = "step_keeps"
    outcome = "kept"
    tolerance = 0.1
    example = "0.2"
    otherwise = "one of 0.2, 2 and 12"

    def right(self) -> float:
        return 12

    def explained(self) -> str:
        return "nearly sixty times the weights: results of hundreds of operations, with numbers for each letter of 64 names."

    @mistake("that is the weights alone. What do the rules of the operations read in the backward pass?")
    def weights(self) -> float:
        return 0.2

    @mistake("more. The rules read results of hundreds of operations, and each result has numbers for 64 names")
    def ten_times(self) -> float:
        return 2


@UNIT.task
class Speed(Prediction):
    """x = 3 moves at a speed of 2 per second. How fast does x * x move?"""

    name = "speed"
    outcome = "tangent"
    example = "5"
    otherwise = "x * x grows 2 · x = 6 times as fast as x, and x moves at 2"

    def right(self) -> float:
        return 12

    def explained(self) -> str:
        return "the slope of x · x at 3 is 6, and x moves at 2: 6 · 2."

    @mistake("that is the slope, for x at a speed of 1. x moves at 2")
    def slope(self) -> float:
        return 6

    @mistake("that is the speed squared. x · x moves 6 times as fast as x, for x = 3")
    def squared(self) -> float:
        return 4

    @mistake("that is the value of x · x. How fast does it change?")
    def value(self) -> float:
        return 9

    @mistake("the speed goes through the slope: x · x moves 6 times as fast as x")
    def unchanged(self) -> float:
        return 2

    @mistake("a whole second later x is 5, and x · x has grown by 16. The question is how fast it moves now")
    def whole_second(self) -> float:
        return 16

    @mistake("multiplied, not added: x · x moves 6 times as fast as x")
    def added(self) -> float:
        return 8


@UNIT.task
class ForwardKeeps(Prediction):
    """100 times tanh on 1,000 floats, 4 kB each time. Reverse mode keeps 400 kB. And forward mode?"""

    name = "forward_keeps"
    outcome = "tangent"
    example = "100"
    otherwise = "a number of kB. After tanh has computed its value and its tangent, what is still needed later?"

    def right(self) -> float:
        return 0

    def explained(self) -> str:
        return "each value has its tangent at once. Nothing has to wait for a backward pass: there is none."

    @mistake("that is what reverse mode keeps. Is there a backward pass in forward mode that has to read it?")
    def same(self) -> float:
        return 400

    @mistake("twice the numbers are computed, but each pair is needed by the next operation only")
    def twice(self) -> float:
        return 800

    @mistake("one value and one tangent exist at a time. But kept for later? The next operation uses them at once")
    def one_pair(self) -> float:
        return 8

    @mistake("one value exists at a time. But kept for later? The next operation uses it at once")
    def one_value(self) -> float:
        return 4


@UNIT.task
class WeightPasses(Prediction):
    """2,410 weights, one loss: how many passes of forward mode give the gradient?"""

    name = "weight_passes"
    outcome = "passes"
    example = "10"
    otherwise = "one pass moves the weights in one direction. The gradient has 2,410 numbers: one for each weight"

    def right(self) -> int:
        return 2410

    def explained(self) -> str:
        return "one for each weight. Reverse mode needs one pass for all: so networks are trained backward."

    @mistake("that is reverse mode. One pass of forward mode moves the weights in one direction, and gives one number")
    def one(self) -> int:
        return 1

    @mistake("that would be finite differences, with one run to compare with. Forward mode needs no run to compare with")
    def differences(self) -> int:
        return 2411

    @mistake("forward mode needs no step to each side: one pass for each weight")
    def both_sides(self) -> int:
        return 4820


@UNIT.task
class SpotPasses(Prediction):
    """A picture of 24 × 24 numbers is computed from one angle. How many passes for all derivatives?"""

    name = "spot_passes"
    outcome = "passes"
    example = "2, 2"
    otherwise = "forward mode: one pass for each input. Reverse mode: one for each output. How many of each are there?"
    hints = {
        "turned": "the other way round: first forward mode, then reverse mode",
        "all_like_the_first": "right for forward mode. Reverse mode fixes one output: there are 24 · 24 of them",
        "all_like_the_last": "right for reverse mode. Forward mode moves the one input, and sees all outputs move",
    }

    def right(self) -> tuple[int, int]:
        return 1, 576

    def given(self) -> dict[str, Any]:
        return {"moving": moving}

    def explained(self) -> str:
        return "one input: one pass of forward mode. 576 outputs: 576 passes of reverse mode."

    @mistake("24 is one side of the picture. It has 24 · 24 numbers")
    def one_side(self) -> tuple[int, int]:
        return 1, 24


@UNIT.task
class Shared(Prediction):
    """h = tanh(x @ W) has 64 kB, and y = h * h. How many kB are kept?"""

    name = "shared"
    outcome = "kept"
    example = "100"
    otherwise = "tanh reads its output h, the product reads its inputs, h and h. How often must h be kept?"

    def right(self) -> float:
        return 64

    def explained(self) -> str:
        return "both rules read the same array, h. x and W exist anyway: they are data and parameters."

    @mistake("both rules read h, but h is one array: it is kept once")
    def twice(self) -> float:
        return 128

    @mistake("tanh and both inputs of the product read h, but h is one array: it is kept once")
    def three_times(self) -> float:
        return 192

    @mistake("something is kept: tanh passes back g · (1 − h²). What does this rule read?")
    def nothing(self) -> float:
        return 0


@UNIT.task
class OneCheckpoint(Prediction):
    """The whole chain of 100 tanh, which keeps 400 kB, goes into one checkpoint. What is the most that is kept?"""

    name = "one_checkpoint"
    outcome = "checkpoint"
    example = "100"
    otherwise = "after the forward pass next to nothing is kept. But what happens when the backward pass begins?"

    def right(self) -> float:
        return 400

    def explained(self) -> str:
        return "0 kB after the forward pass, and 400 kB as soon as the backward pass has computed all of it again."

    @mistake("that is true after the forward pass. Then the backward pass computes the whole chain again, all at once")
    def nothing(self) -> float:
        return 0

    @mistake("4 kB is one array. The backward pass computes the whole chain again, and keeps all of it")
    def one_array(self) -> float:
        return 4

    @mistake("the rules read only the outputs, once each: computing them a second time keeps no more than the first time")
    def twice(self) -> float:
        return 800

    @mistake("the backward pass needs the chain from its end, and computes all of it again: nothing is saved")
    def half(self) -> float:
        return 200


@UNIT.task
class TenCheckpoints(Prediction):
    """The chain in 10 parts of 10, and 9 of them are checkpoints: how many arrays are kept at most, about?"""

    name = "ten_checkpoints"
    outcome = "checkpoint"
    tolerance = 0.12
    example = "50"
    otherwise = "an input for each checkpoint, and the inside of one part at a time. How many arrays are that?"

    def right(self) -> int:
        return 18

    def explained(self) -> str:
        return "an input for nearly each part, and the ten results of one part: about 10 + 10, in place of 100."

    @mistake("that is the inputs of the parts. When a part is computed again, its inside is there too")
    def inputs(self) -> int:
        return 10

    @mistake("that is the inputs of the parts. When a part is computed again, its inside is there too")
    def nine(self) -> int:
        return 9

    @mistake("all parts are never computed again at the same time: each is freed before the next one comes")
    def all_of_them(self) -> int:
        return 100

    @mistake("one part at a time is computed again: each is freed before the next one comes")
    def inputs_and_all(self) -> int:
        return 110


@UNIT.task
class Slider(Question):
    """On the slider: from how many checkpoints on is "most at once" of the GPT as low as it gets?"""

    name = "slider"
    outcome = "plan"
    example = "1"
    otherwise = 'move the slider, and read the row "most at once" of the table beside it'

    def right(self) -> int:
        return 4

    def explained(self) -> str:
        return "one checkpoint for each block. More checkpoints keep more inputs, and save nothing more."

    @mistake("that is as low as it gets after the forward pass. Read the column of the most at once")
    def lowest_after(self) -> int:
        return 5

    @mistake("not yet: one more checkpoint, and the most at once falls again")
    def too_few(self) -> int:
        return 3

    @mistake("it is as low before. Take the first one")
    def too_many(self) -> int:
        return 6


@UNIT.task
class WithDropout(Prediction):
    """A block with dropout goes into a checkpoint. In how many of its gradients' numbers does anything change?"""

    name = "with_dropout"
    outcome = "checkpoint"
    example = "100"
    otherwise = "a number: 0 if the gradients are the same to the last bit"

    def right(self) -> int:
        return 0

    def explained(self) -> str:
        return "a node stores the key of its random numbers, so they are the same when it is computed again."

    def check(self, answer: Any, rounds: int = 1) -> str | None:
        return super().check({"none": 0, "no": 0, "all": 1}.get(answer, 1) if isinstance(answer, str) else answer)

    @mistake("dropout would draw other numbers if the generator went on. A node is a recipe: it stores which numbers")
    def some(self) -> int:
        return 1
