"""The loss of connectionist temporal classification: sequences whose targets are shorter, without an alignment."""

from __future__ import annotations

from typing import Any

from ..control.flow import scan
from ..core import dtypes
from ..core.tensor import Tensor
from ..ops import reduce
from ..ops.creation import arange, asarray, full
from ..ops.declare import as_integers
from ..ops.elementwise import maximum, where
from ..ops.functional import logsumexp
from ..ops.index import take_along_axis
from ..ops.joining import concat, stack
from ..ops.losses import check_reduction
from ..ops.view import broadcast_to, expand_dims, reshape
from ..support.errors import ShapeError
from .module import Module


class CTCLoss(Module):
    """Minus the log-probability of all ways to spread a target over a sequence, with blanks between its letters.

    `log_probs` are (length, examples, classes), `targets` integers (examples, letters).  A target that does not fit
    into its sequence has an infinite loss, or with `zero_infinity` a loss of 0.  "mean" divides each loss by the length
    of its target first, as in PyTorch.

    >>> log_probs = mg.log_softmax(mg.zeros((3, 1, 2)))
    >>> mg.nn.CTCLoss()(log_probs, mg.asarray([[1]]), [3], [1]).item()  # 6 of the 8 sequences of 3 are "1"
    0.287...
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        check_reduction("CTCLoss", reduction)
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        inputs, letters = [_lengths(each, log_probs) for each in (input_lengths, target_lengths)]
        targets = as_integers("CTCLoss", "targets", targets, log_probs)
        examples = log_probs.shape[1] if log_probs.ndim == 3 else -1
        if targets.ndim != 2 or not inputs.shape == letters.shape == (examples,) == targets.shape[:1]:
            raise ShapeError(
                f"CTCLoss: log_probs {log_probs.shape}, targets {targets.shape} and lengths {inputs.shape} and "
                f"{letters.shape} do not go together",
                expect="(length, examples, classes), (examples, letters), (examples,) and (examples,)",
            )
        losses = -self._log_likelihood(log_probs, targets, inputs, letters)
        impossible = losses > -_low(losses) / 2
        losses = where(impossible, 0.0 if self.zero_infinity else float("inf"), losses)
        if self.reduction == "mean":
            return reduce.mean(losses / maximum(letters, 1))
        return reduce.sum(losses) if self.reduction == "sum" else losses

    def _log_likelihood(self, log_probs: Tensor, targets: Tensor, inputs: Tensor, letters: Tensor) -> Tensor:
        """The forward algorithm: how probable each prefix of a target, with blanks, is after each step."""
        count, places = targets.shape[1], 2 * targets.shape[1] + 1
        blanks = full((len(targets), count + 1), self.blank, targets.dtype, targets.device)
        with_blanks = stack([blanks[:, :count], targets], axis=-1)
        labels = concat([reshape(with_blanks, (len(targets), 2 * count)), blanks[:, count:]], axis=1)
        emitted = take_along_axis(log_probs, broadcast_to(labels, (len(log_probs), *labels.shape)), -1)
        low = _low(log_probs)
        place = arange(places, device=log_probs.device)
        skips = concat([full(labels[:, :2].shape, False, dtypes.bool, labels.device),
                        (labels[:, 2:] != self.blank) & (labels[:, 2:] != labels[:, :-2])], axis=1)

        def step(before: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[()]]:
            emits, t = now
            ways = [before, _shifted(before, 1, low), where(skips, _shifted(before, 2, low), low)]
            after = maximum(logsumexp(stack(ways), axis=0) + emits, low)  # a sum of impossible ones stays finite
            return where(expand_dims(t < inputs, 1), after, before), ()

        steps = arange(1, len(log_probs), device=log_probs.device)
        last, _ = scan(step, where(place < 2, emitted[0], low), (emitted[1:], steps))
        ends = stack([2 * letters, maximum(2 * letters - 1, 0)], axis=1)
        found = take_along_axis(last, ends, 1)
        both = logsumexp(found, axis=1)
        return where(letters > 0, both, found[:, 0])

    def extra_repr(self) -> str:
        return ", ".join([f"blank={self.blank}"] * bool(self.blank) + [self.reduction] * (self.reduction != "mean"))


def _lengths(given: Any, like: Tensor) -> Tensor:
    lengths = given if given.__class__ is Tensor else asarray(given, device=like.device)
    return as_integers("CTCLoss", "lengths", lengths, like)


def _low(x: Tensor) -> float:
    """The logarithm of an impossible probability: finite, because the gradient of a sum of infinities is nan."""
    return float(dtypes.finfo(x.dtype).min) / 4


def _shifted(x: Tensor, by: int, low: float) -> Tensor:
    """The columns of a matrix, moved to the right."""
    return concat([full((len(x), by), low, x.dtype, x.device), x[:, :-by]], axis=1)
