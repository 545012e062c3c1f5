"""Unit 01: the questions of the notebook."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

from minigrad.ops import elementwise
from minigrad.ops.creation import ones
from minigrad.optim import SGD
from minigrad.viz.flipbook import Flipbook

from ...feedback import Wrong
from ...predicting import Choice
from ...session import SESSION
from ...tasks import ROUNDS, Prediction, Question, ValueTask
from .about import UNIT
from .by_hand import SIGMOID, STEPS, beside, train
from .layers import Counts, counted_lines, layers
from .systems import board, systems

YES_NO = 'six words in brackets, such as ["yes", "no", "no", "no", "no", "no"]'


def predicted(name: str) -> Any:
    """The student's recorded prediction: the right one where it was given, else the first; dots where there is none."""
    known = SESSION.progress.tasks.get(name, {})
    try:
        return literal_eval(known.get("answer") or known.get("first") or "...")
    except (ValueError, SyntaxError):
        return ...


def without_biases(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient by hand of W and V alone, as one of all weights: the biases stay 0."""

    def all_weights(x: Any, t: Any, W: Any, b: Any, V: Any, c: Any) -> tuple[Any, ...]:
        dW, dV = gradient(x, t, W, V)
        return dW, 0 * b, dV, 0 * c

    return all_weights


@UNIT.task
class ForgottenLine(Choice, Prediction):
    """tanh became sigmoid in the forward pass only. Compared with the right gradient, what happens in 60 steps?"""

    name = "forgotten_line"
    outcome = "silent"
    right_value = "more"
    why = "the wrong slope is too large, so the first steps are longer. There is no error, and it looks like success."
    options = {
        "an error": "the shapes fit and all numbers are finite. What could Python complain about?",
        "fewer": "that is what one should expect of a wrong gradient. Run the next cell",
        "none": "the gradient is wrong, but most of its signs are right",
        "as many": "1 − h² and h · (1 − h) differ at every h between 0 and 1: 0.75 and 0.25 at h = 0.5",
        "more": "",
    }

    def given(self) -> dict[str, Any]:
        return {
            "train": lambda gradient, steps=STEPS: train(SIGMOID, without_biases(gradient), steps),
            "beside": lambda **runs: beside("tanh becomes sigmoid", runs),
        }


@UNIT.task
class LinesToChange(Prediction):
    """How many lines of `gradient` have to change, when tanh becomes sigmoid?"""

    name = "lines_to_change"
    outcome = "by_hand"
    example = "3"
    otherwise = "one line computes h. Which others were right only because h was a tanh?"
    right_value = 2
    why = "one line forward, one line backward. They stand apart, and nothing in the code connects them."
    wrong_values = (
        (1, "the forward line, yes. And a line of the backward pass that is right for tanh only"),
        (0, "the line that computes h has to change. And which line contains the slope of tanh?"),
        (3, "dW uses dz, but its line stays as it is"),
        (4, "dW and dV get other values. Do their lines change?"),
        (9, "the lines of matrix products are the same for every activation"),
    )


@UNIT.task
class NewLayer(Prediction):
    """A library of layers for CPU and GPU, such as Caffe: how many functions does a new activation need?"""

    name = "new_layer"
    outcome = "systems"
    example = "6"
    otherwise = "forward and backward, for each of two processors"
    right_value = 4
    why = "forward and backward, each for CPU and GPU. In a fork of Caffe two backward functions did not agree."
    wrong_values = (
        (1, "that is the forward pass on one processor"),
        (2, "forward and backward: on one processor. The library has two"),
        (3, "is the backward pass needed on one processor only?"),
        (8, "a new activation has no weights: two functions for each of two processors"),
    )


def _parts_of(answer: Any) -> list[Any]:
    """The parts of an answer: of a dictionary, its values."""
    parts = answer.values() if isinstance(answer, dict) else answer
    return list(parts) if isinstance(answer, dict | list | tuple) else []


class ByParts(ValueTask):
    """An answer of several parts.  Where it is not a known mistake, the hint is that of the first wrong part."""

    part_hints: ClassVar[Sequence[str]]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        try:
            return super().check(answer, rounds)
        except Wrong as wrong:
            yours, right = _parts_of(self.read(answer)), _parts_of(self.right())
            in_form = len(yours) == len(right) and (isinstance(right[0], int) or {*yours} <= {*right})
            if in_form and wrong.hint == self.otherwise:
                hints = (hint for one, other, hint in zip(yours, right, self.part_hints) if one != other)
                wrong.hint = next(hints, self.otherwise)
            raise


class Row(ByParts, Prediction):
    """A row of the table: which of the six programs run?"""

    minutes = 2
    outcome = "systems"
    example = '["yes", "no", "no", "no", "no", "no"]'
    otherwise = YES_NO

    def read(self, answer: Any) -> Any:
        return [str(each).strip().lower() for each in answer] if isinstance(answer, list | tuple) else answer

@UNIT.task
class LayersRow(Row):
    """The library of layers: which of the six programs run on it?"""

    name = "layers_row"
    right_value = ["yes", "no", "no", "no", "no", "no"]
    why = "a network, and nothing else. x / (1 + exp(−x)) is not one of its layers, so it has no gradient."
    wrong_values = (
        (["yes", "yes", "no", "yes", "no", "no"], "which method saves a weight, or differentiates your function?"),
        (["yes", "yes", "no", "no", "yes", "no"], "NumPy runs on one processor, and your function has no `backward`"),
    )
    part_hints = (
        "program 1: Chain, Dense and Tanh make a network",
        "program 2: its own layers have a `backward`. A function of yours has none",
        "program 3: no class here reads text",
        "program 4: no class here can save its weights to a file and load them",
        "program 5: Caffe had functions for CPU and GPU. This library has NumPy alone",
        "program 6: no class here reaches another machine",
    )

    def given(self) -> dict[str, Any]:
        return {"board": self.board}

    def board(self, *classes: Any) -> Flipbook:
        """The table, from runs of the programs with the classes of the notebook; right predictions light places."""
        offered = systems(*classes)
        return board(offered, dict(zip(offered, (predicted("layers_row"), predicted("parallel_row")))))


@UNIT.task
class ParallelRow(Row):
    """The data-parallel system: which of the six programs run on it?"""

    name = "parallel_row"
    right_value = ["no", "no", "yes", "no", "no", "yes"]
    why = "it reads text and uses many machines. It has no layers, no gradients, no second kind of processor."
    wrong_values = (
        (["no", "no", "no", "no", "no", "yes"], "that is the lecture's row. But `map` runs any function on each line, "
                                                "also one that reads JSON and returns None for a damaged line"),
    )
    part_hints = (
        "program 1: `map` can run any function, but you would write the whole network",
        "program 2: `map` runs a function. What would find its gradient?",
        "program 3: `map` runs any function on each line, also one that reads JSON",
        "program 4: without networks there is nothing to train",
        "program 5: several machines are not several kinds of processors",
        "program 6: the three machines hold three parts. What do `map` and `reduce` do with them?",
    )


@UNIT.task
class TwiceInChain(Choice, Prediction):
    """The same layer stands twice in a chain. What is the gradient of its weights?"""

    name = "twice_in_chain"
    outcome = "systems"
    right_value = "wrong, without an error"
    why = "forward keeps only the last input, and backward assigns dW twice: one part is lost, the other is wrong."
    options = {
        "right": "the weights are used twice, so two contributions must be added. Where does the library add them?",
        "an error": "every call is legal: forward twice, backward twice. What do they overwrite?",
        "wrong, without an error": "",
    }

LINES = ("y = mg.tanh(x @ W + b).sum()", "y.backward()", "optimizer.step()")


@cache
def counts_of(*lines: str) -> list[Counts]:
    """What lines make the layers do.  x is data; W, b and c are weights, and those that are used are optimized."""

    def names() -> dict[str, Any]:
        sizes = {"W": (4, 3), "b": (3,), "c": (3,)}
        used = re.findall(r"\b[Wbc]\b", lines[0])
        weights = {name: ones(sizes[name], requires_grad=True) for name in used}
        return {"mg": elementwise, "x": ones((5, 4)), "optimizer": SGD(list(weights.values()), lr=0.1), **weights}

    return counted_lines(lines, names)


@UNIT.task
class LineCounts(ByParts, Prediction):
    """Operations that line 1 records, operations that line 2 records, gradient rules that line 2 calls."""

    name = "line_counts"
    minutes = 2
    outcome = "layers"
    example = "[1, 1, 1]"
    otherwise = "line 1: count its operations. Line 2 records nothing. A rule for each input that leads to a weight"
    why = "@, +, tanh and sum are recorded; backward is not. Rules: sum 1, tanh 1, + 2 (x @ W, b), @ 1 (W: x is data)."
    wrong_values = (
        ([1, 1, 1], "the engine never sees a line: it sees operations. `@` is the first of them"),
        ([4, 4, 4], "line 2 computes, but who would use a record of it? And `+` has two inputs that need a gradient"),
        ([4, 0, 4], "one rule for each operation? `+` has two inputs that need a gradient, and each has its rule"),
        ([4, 0, 6], "x is data: the engine does not compute what no weight needs"),
    )
    part_hints = (
        "line 1: each operator and each function is one operation, `@` and `.sum()` too. The assignment is not",
        "line 2 computes, but records nothing: a record would serve a second backward pass",
        "rules: go back from `sum`. Each operation calls a rule for each input that leads to a weight",
    )

    def right(self) -> list[int]:
        first, second, _ = counts_of(*LINES)
        return [first.recorded, second.recorded, second.rules]

    def given(self) -> dict[str, Any]:
        return {"stack": self.stack}

    def stack(self) -> Flipbook:
        """The picture of the layers; right predictions light their places."""
        places, answer = ((0, "recorded"), (1, "recorded"), (1, "rules")), predicted(self.name)
        given = answer if isinstance(answer, list | tuple) and len(answer) == 3 else [...] * 3
        return layers(LINES, counts_of(*LINES), dict(zip(places, given)), calls=False)


@UNIT.task
class Components(ByParts, Prediction):
    """Four lines, four components: L linear algebra, H hardware support, B backpropagation engine, N networks."""

    name = "components"
    minutes = 2
    outcome = "components"
    example = '{"A": "L", "B": "L", "C": "L", "D": "L"}'
    otherwise = "each letter once: L, H, B, N"
    right_value = {"A": "L", "B": "H", "C": "B", "D": "N"}
    why = "and all four are called from one language, Python."
    wrong_values = (
        ({"A": "N", "B": "H", "C": "B", "D": "L"}, "a product of matrices is linear algebra, in a network or not. "
                                                   "nn.Linear owns weights"),
        ({"A": "H", "B": "L", "C": "B", "D": "N"}, "the product is linear algebra, and moving an array to a device is "
                                                   "hardware support"),
        ({"A": "L", "B": "H", "C": "N", "D": "B"}, "backward differentiates any program. nn.Linear has weights and a "
                                                   "forward pass, and no backward pass of its own"),
        ({"A": "B", "B": "H", "C": "L", "D": "N"}, "`@` computes a value. `backward` computes gradients"),
    )
    part_hints = (
        "line A: a product of matrices is linear algebra",
        'line B: "cpu:1" names a processor',
        "line C: it computes gradients, for any program",
        "line D: a layer of a network, with its weights",
    )

    def read(self, answer: Any) -> Any:
        return {key: str(each).strip().upper() for key, each in answer.items()} if isinstance(answer, dict) else answer


@UNIT.task
class LastPython(Choice, Question):
    """Read down to the last level. Which level is not Python?"""

    name = "last_python"
    outcome = "layers"
    right_value = "kernel"
    why = "numpy.tanh is compiled C. The front-end language is Python, the back-end languages are C, C++ and CUDA."
    options = {
        "your line": "that is the front-end language itself, Python",
        "the door": "its source is shown, and it is Python",
        "the primitive": "a record, written in Python",
        "kernel table": "a Python dictionary: from the name of an operation to a function",
        "kernel": "",
    }


@UNIT.task
class Petabyte(Prediction):
    """A disk reads 1 GB in a second. How many days does one machine need to read 1 PB, a million GB?"""

    name = "petabyte"
    outcome = "scale"
    example = "30"
    otherwise = "a million seconds. A day has 86,400"
    right_value = 12
    why = "12 days, to read it once. With 100,000 machines it takes 10 seconds, if each reads its own part."
    wrong_values = (
        (1000000, "that is in seconds. A day has 86,400"),
        (280, "that is in hours"),
        (17000, "that is in minutes"),
        (1, "a day has 86,400 seconds, and it takes a million"),
        (11, "11.57 days are nearly 12"),
        (10, "a day has 86,400 seconds, not 100,000"),
        (12000, "a thousand times too long: 1 PB is a million GB, not a thousand million"),
        (0.012, "a thousand times too short: 1 PB is a million GB, not a thousand"),
    )

    def read(self, answer: Any) -> Any:
        return float(f"{answer:.2g}") if isinstance(answer, int | float) else answer
