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
from ...tasks import ROUNDS, Prediction, ValueTask
from .about import UNIT
from .by_hand import SIGMOID, STEPS, beside, train
from .layers import Counts, counted_lines, layers
from .systems import board, systems

OTHER_WORDS = {"y": "yes", "true": "yes", "1": "yes", "n": "no", "false": "no", "0": "no"}


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
    name = "forgotten_line"

    def given(self) -> dict[str, Any]:
        return {
            "train": lambda gradient, steps=STEPS: train(SIGMOID, without_biases(gradient), steps),
            "beside": lambda **runs: beside("tanh becomes sigmoid", runs),
        }


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


@UNIT.kind
class Row(ByParts, Prediction):
    """A row of the table: which of the six programs run?"""

    mistakes = ()

    def read(self, answer: Any) -> list[str]:
        given = answer.replace(",", " ").split() if isinstance(answer, str) else answer
        words = [str(each).strip().lower() for each in given] if isinstance(given, list | tuple) else []
        row = [OTHER_WORDS.get(word, word) for word in words]
        if len(row) != len(self.right()) or not {*row} <= {"yes", "no"}:
            raise self.misformed(answer)
        return row


@UNIT.task
class LayersRow(Row):
    name = "layers_row"

    def given(self) -> dict[str, Any]:
        return {"board": self.board}

    def board(self, *classes: Any) -> Flipbook:
        """The table, from runs of the programs with the classes of the notebook; right predictions light places."""
        offered = systems(*classes)
        return board(offered, dict(zip(offered, (predicted("layers_row"), predicted("parallel_row")))))


LINES = ("y = mg.exp(mg.tanh(x @ W + b)).sum()", "y.backward()", "optimizer.step()")


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
    name = "line_counts"

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
    name = "components"

    def read(self, answer: Any) -> Any:
        if not isinstance(answer, dict):  # the letters in order
            parts = list(answer) if isinstance(answer, str | list | tuple) else []
            answer = dict(zip(self.right(), parts)) if len(parts) == len(self.right()) else {}
        letters = {str(key).strip().upper(): str(each).strip().upper()[:1] for key, each in answer.items()}
        if set(letters) != set(self.right()):
            raise self.misformed(answer)
        return {key: letters[key] for key in self.right()}


@UNIT.task
class Petabyte(Prediction):
    name = "petabyte"

    def read(self, answer: Any) -> Any:
        return float(f"{answer:.2g}") if isinstance(answer, int | float) and answer != float("inf") else answer
