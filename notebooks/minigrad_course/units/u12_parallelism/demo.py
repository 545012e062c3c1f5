"""Unit 12: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from minigrad.viz.timelines import Timeline, timeline

from ...predicting import Choice
from ...tasks import Prediction
from ...views.costs import passes
from .about import UNIT
from .gantts import Jobs, gantt
from .jobs import GRAHAM, taken
from .placing import compared, gains, in_front

DIAMOND = Jobs({"a": 2, "b": 3, "c": 5, "d": 4, "e": 2, "f": 4},
               {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["b", "c"], "f": ["d"]})


def starts(step: Any, *batch: Any) -> Timeline:
    """What Python starts in a call of a jitted function, in eager mode and as a program; and the times of both."""
    step.function(*batch)  # the first call makes more: the optimizer's arrays
    step(*batch)
    (frame, *_) = step.program(*batch)._idle
    counts = len(passes(step.function, *batch)), len(frame.early) + len(frame.steps)
    return in_front("started by Python in one step: eagerly, and as a program", *counts, timeline(step, *batch),
                    ("eager mode", "program"))


@UNIT.task
class FourthWorker(Prediction):
    """Nine jobs, taken in the order of a list, are done after 12 minutes on three workers. And on four?"""

    name, outcome, example, right_value = "fourth_worker", "schedule", "9", 15
    why = "the fourth worker begins a job early that could wait, and I, the longest of all, begins three minutes later."
    otherwise = "play it through: at each moment each free worker takes the first job of the list that is ready"
    wrong_values: ClassVar = (
        (9, "that is a quarter less. But I takes 9 and waits for A, so these two alone take 12"),
        (12, "A and I alone take 12, so it cannot be less. But when does I begin? Play it through"),
        (8.5, "all the work divided by four. But I takes 9 and waits for A, which takes 3"),
        (10, "A and I take 12, one after the other: it cannot be less"),
        (13, "more, indeed! When does I begin? At 3, H is ready too, and earlier in the list"),
        (16, "more, indeed! H begins at 3, when A is done. When is the next worker free for I?"),
    )

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(GRAHAM, {n: taken(*GRAHAM, n, "ABCDEFGHI") for n in range(1, 7)})}


@UNIT.task
class EagerLaunches(Prediction):
    """How many kernels does Python launch for one training step: about 16, 50 or 160?"""

    name, outcome, example, right_value, tolerance = "eager_launches", "launch", "50", 160, 0.1
    why = "159: the forward pass is a tenth of them. Gradients and AdamW's update of six tensors are the rest."
    otherwise = "one of 16, 50 and 160"
    wrong_values: ClassVar = (
        (16, "that is about the forward pass alone. The backward pass and the update of six tensors follow"),
        (50, "GELU alone is several operations, forward and backward. And AdamW takes about 13 for each of 6 tensors"),
    )


@UNIT.task
class ProgramStarts(Prediction):
    """The same step as a program of 21 kernels: how many times does Python start something: 159, 21 or 3?"""

    name, outcome, example, right_value = "program_starts", "launch", "21", 3
    why = "two stretches of machine code, in which kernels start each other, and between them a check of the labels."
    otherwise = "one of 159, 21 and 3"
    wrong_values: ClassVar = (
        (21, "so many kernels there are. But one that ends may start the next one itself, in machine code"),
        (159, "that is operation by operation, in eager mode. The program is one object, and has 21 kernels"),
        (1, "nearly: your loop starts one function. Inside, Python comes back once, to check the labels"),
        (2, "nearly: there are two stretches of machine code, and between them Python checks the labels"),
    )

    def given(self) -> dict[str, Any]:
        return {"starts": starts}


@UNIT.task
class ThousandWorkers(Prediction):
    """Six jobs. How long do a thousand workers take?"""

    name, outcome, example, right_value = "thousand_workers", "path", "5", 9
    why = "a, c, e: 2 + 5 + 2. Each waits for the one before, so no number of workers is faster."
    otherwise = "which chain of jobs, each waiting for the one before, takes longest?"
    wrong_values: ClassVar = (
        (20, "that is one worker: all jobs one after the other"),
        (5, "that is the longest job. But c waits for a, and e waits for c"),
        (0.02, "work divided by workers. But e cannot begin before c has ended"),
        (8, "d and f take 8. Another chain takes longer"),
        (7, "a and c, or a, b and e. After c comes e: add it"),
        (10, "b and c both wait for a, but not for each other: they run at the same time"),
        (3, "that is the number of jobs in the longest chain. How long do they take?"),
        (11, "that is two workers. A thousand workers begin each job as soon as it is ready"),
    )

    def given(self) -> dict[str, Any]:
        return {"gantt": gantt(DIAMOND, {n: taken(*DIAMOND, n, "acbdef") for n in range(1, 5)})}


@UNIT.task
class TwoWorkers(Choice, Prediction):
    """The training step of the network: how many times as fast is it with two workers?"""

    name, outcome, right_value = "two_workers", "path", "1.4"
    why = "layer after layer waits for the one before. Side by side run the two products of each gradient, and updates."
    options: ClassVar = {
        "2": "that would need two halves that never wait for each other. But layer 2 waits for layer 1",
        "1.7": "less. In the forward pass each step waits for the one before",
        "1.4": "",
        "1": "a little faster: the gradient of a layer is two products, which do not wait for each other",
    }


@UNIT.task
class Together(Choice, Prediction):
    """Each of three operations alone takes longer on a chip, because its data have to go there. And all three?"""

    name, outcome, right_value = "together", "offload", "faster"
    why = "what is between them stays there. Only two thin tables and one row cross the link."
    options: ClassVar = {
        "slower": "three losses do not add up: which tables cross the link if all three are there?",
        "the same": "less crosses the link: what is between two of them stays there",
        "faster": "",
    }

    def given(self) -> dict[str, Any]:
        return {"gains": gains, "picture": compared}


@UNIT.task
class Transfers(Prediction):
    """`mg.tanh(u @ v).sum(0)` in a block `with mg.offload("cpu:1"):`. How many transfers has the compiled program?"""

    name, outcome, example, right_value = "transfers", "offload", "5", 3
    why = "u and v go, the row comes back. A transfer back that is followed by the same transfer again is removed."
    otherwise = "what goes there, and what comes back, if everything between stays there?"
    wrong_values: ClassVar = (
        (7, "that is operation by operation: each moves its inputs there and its result back. The compiler sees pairs"),
        (2, "the product has two inputs, u and v, and a result comes back"),
        (6, "that is one there and one back for each operation. What lies between two of them may stay"),
        (1, "the inputs go there too"),
        (4, "u and v go there. What comes back is one row: tanh(u @ v) stays there"),
        (0, "the block computes on another device: its inputs have to go there"),
        (5, "what lies between two operations stays there"),
    )
