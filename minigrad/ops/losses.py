"""Losses: one number for the distance of predictions from targets.

Each takes `reduction`: "mean", "sum", or "none" for the loss of each element.
"""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.primitive import P
from ..core.tensor import FloatTensor, Tensor, as_floats, as_tensor
from ..support.errors import ClassesWarning, ConversionError, ShapeError, warn_once
from ..support.words import shown
from . import reduce
from .composite import program
from .creation import arange, full
from .declare import as_integers, broadcast_shapes, normal_axis
from .elementwise import abs, exp, log, log1p, maximum, multiply, not_equal, sqrt, where
from .functional import _check_range, _top, log_softmax, softplus
from .view import broadcast_to, reshape

__all__ = [
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cosine_similarity",
]

# Over classes -------------------------------------------------------------------------------------------------------


@program()
def cross_entropy(logits: FloatTensor, targets: Any, reduction: str = "mean", weight: Tensor | None = None,
                  ignore_index: int | None = None, label_smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of softmax(logits) and the targets: minus the log-probability of each target.

    The classes are the last dimension of `logits`.  `targets` are integers, one for each position, or probabilities,
    one for each class.  `weight` has a factor for each class, and the mean divides by the sum of the factors.  Targets
    equal to `ignore_index` are skipped.  `label_smoothing` is the share of each target given to all classes equally.

    >>> mg.cross_entropy(mg.asarray([[0.0, 0.0], [0.0, 1000.0]]), mg.asarray([1, 1])).item()
    0.346...
    """
    name = "cross_entropy"
    if not 0 <= label_smoothing <= 1:
        raise ConversionError(f"{name}: label_smoothing is between 0 and 1, not {label_smoothing}")
    targets = as_tensor(targets, logits.device)
    if targets.dtype.kind == "f" and targets.shape == logits.shape and logits.ndim:
        return _of_probabilities(name, logits, targets, reduction, weight, label_smoothing)
    if weight is None and ignore_index is None and not label_smoothing:
        logits, targets = _rows(name, "logits", logits, targets)
        shifted = logits - _top(logits, (logits.ndim - 1,))
        normaliser = log(reduce.sum(exp(shifted), axis=-1))
        return _reduced(name, normaliser - _picked(shifted, targets), reduction)
    given = targets
    logits, targets, factors = _weighted(name, "logits", logits, targets, weight, ignore_index)
    rows = log_softmax(logits)
    losses = -_picked(rows, targets) * factors
    if label_smoothing:
        others = reduce.mean(rows if weight is None else rows * weight, axis=-1)
        if ignore_index is not None:
            others = where(given == ignore_index, 0.0, others)
        losses = losses * (1 - label_smoothing) - others * label_smoothing
    return _reduced(name, losses, reduction, factors)


@program()
def nll_loss(log_probabilities: FloatTensor, targets: Any, reduction: str = "mean", weight: Tensor | None = None,
             ignore_index: int | None = None) -> Tensor:
    """Minus the log-probability of each target: `cross_entropy` is this after `log_softmax`.

    >>> mg.nll_loss(mg.asarray([[-1.0, -2.0]]), mg.asarray([1])).item()
    2.0
    """
    what = "log_probabilities"
    if weight is None and ignore_index is None:
        rows, targets = _rows("nll_loss", what, log_probabilities, targets)
        return _reduced("nll_loss", -_picked(rows, targets), reduction)
    rows, targets, factors = _weighted("nll_loss", what, log_probabilities, targets, weight, ignore_index)
    return _reduced("nll_loss", -_picked(rows, targets) * factors, reduction, factors)


def _of_probabilities(name: str, logits: Tensor, targets: Tensor, reduction: str, weight: Tensor | None,
                      smoothing: float) -> Tensor:
    if smoothing:
        targets = targets * (1 - smoothing) + smoothing / logits.shape[-1]
    terms = log_softmax(logits) * targets
    if weight is not None:
        terms = terms * _class_weight(name, weight, logits)
    return _reduced(name, -reduce.sum(terms, axis=-1), reduction)


def _weighted(name: str, what: str, scores: Tensor, targets: Any, weight: Tensor | None,
              ignore_index: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, targets in range, and a factor for each target: the weight of its class, or 0 if it is ignored."""
    targets = as_integers(name, "targets", targets, scores)
    kept = None
    if ignore_index is not None:
        kept = not_equal(targets, ignore_index)
        targets = where(kept, targets, 0)
    scores, targets = _rows(name, what, scores, targets)
    if weight is not None:
        factors = P.gather.apply(_class_weight(name, weight, scores), targets)
    else:
        factors = full(targets.shape, 1.0, scores.dtype, scores.device)
    return scores, targets, factors if kept is None else where(kept, factors, 0.0)


def _class_weight(name: str, weight: Tensor, scores: Tensor) -> Tensor:
    weight = as_floats(name, weight)
    if weight.shape != scores.shape[-1:]:
        raise ShapeError(f"{name}: a weight of shape {weight.shape} for {scores.shape[-1]} classes",
                         expect=f"({scores.shape[-1]},)")
    return weight


def _rows(name: str, what: str, scores: Tensor, targets: Any) -> tuple[Tensor, Tensor]:
    """The scores and targets of a loss over classes, after a check of their shapes."""
    targets = as_integers(name, "targets", targets, scores)
    if not scores.ndim or scores.shape[:-1] != targets.shape:
        raise ShapeError(
            f"{name}: {what} of shape {scores.shape} do not fit targets of shape {targets.shape}",
            expect=f"targets of shape {scores.shape[:-1]}: the last dimension are the classes",
            hint=f"mg.moveaxis({what}, 1, -1) brings the classes from dimension 1 to the end"
            if _fits_dimension_1(scores, targets) else None,
        )
    if scores.ndim > 2 and _fits_dimension_1(scores, targets):
        warn_once(
            f"{name}: the classes are the last dimension of {what}, whose shape {scores.shape} would fit classes in "
            f"dimension 1 too, as in PyTorch\n  Hint: mg.moveaxis({what}, 1, -1) if the classes are in dimension 1; if "
            f"they are last, {what}.reshape((-1, {scores.shape[-1]})) and targets.reshape((-1,)) are unambiguous",
            ClassesWarning,
        )
    targets = _check_range(f"{name}: target", targets, scores.shape[-1], f"{what} have shape {scores.shape}")
    return scores, targets


def _fits_dimension_1(scores: Tensor, targets: Tensor) -> bool:
    """Whether the shapes fit if dimension 1 are the classes."""
    return scores.ndim > 1 and (scores.shape[0], *scores.shape[2:]) == targets.shape


def _picked(scores: Tensor, targets: Tensor) -> Tensor:
    """For each position, the score of its target."""
    if scores.ndim == 2:
        picked: Tensor = P.gather.apply(scores, arange(scores.shape[0], device=scores.device), targets)
        return picked
    flat = reshape(scores, (targets.size, scores.shape[-1])) if scores.ndim else scores
    return reshape(_picked(flat, reshape(targets, (targets.size,))), targets.shape)


# Yes or no, and distributions ---------------------------------------------------------------------------------------


@program()
def binary_cross_entropy_with_logits(logits: FloatTensor, targets: Any, reduction: str = "mean", weight: Any = None,
                                     pos_weight: Any = None) -> Tensor:
    """The cross-entropy of sigmoid(logits) and targets between 0 and 1, exact for logits of any size.

    `weight` is a factor for each element, `pos_weight` a factor for the part of the loss from a target of 1.

    >>> mg.binary_cross_entropy_with_logits(mg.asarray([0.0, -1000.0]), mg.asarray([1.0, 0.0])).item()
    0.346...
    """
    name = "binary_cross_entropy_with_logits"
    targets = _alike(name, "logits", logits, targets)
    if pos_weight is None:
        losses = softplus(logits) - logits * targets
    else:
        losses = logits * (1.0 - targets) + softplus(-logits) * ((pos_weight - 1.0) * targets + 1.0)
    return _reduced(name, losses if weight is None else losses * weight, reduction)


@program()
def binary_cross_entropy(probabilities: FloatTensor, targets: Any, reduction: str = "mean",
                         weight: Any = None) -> Tensor:
    """The cross-entropy of probabilities and targets between 0 and 1; a logarithm below -100 counts as -100.

    `binary_cross_entropy_with_logits` is more precise: wrong probabilities of 0, 1 or almost 0 have no gradient.

    >>> mg.binary_cross_entropy(mg.asarray([0.5, 0.0]), mg.asarray([1.0, 1.0]), "none").tolist()
    [0.693..., 100.0]
    """
    name = "binary_cross_entropy"
    targets = _alike(name, "probabilities", probabilities, targets)
    low, high = probabilities == 0, probabilities == 1
    steep = probabilities < dtypes.finfo(probabilities.dtype).smallest_normal  # there the slope of log overflows
    yes = where(low, -100.0, maximum(log(where(low, 1.0, where(steep, probabilities.detach(), probabilities))), -100.0))
    no = where(high, -100.0, maximum(log1p(-where(high, 0.0, probabilities)), -100.0))
    losses = (targets - 1.0) * no - targets * yes
    return _reduced(name, losses if weight is None else losses * weight, reduction)


@program()
def kl_div(log_probabilities: FloatTensor, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence of probabilities from `target`: the sum of target (log target - log_probabilities).

    The reduction "batchmean" divides the sum by the number of rows, as in the formula; "mean" divides by the number
    of elements.  With `log_target` the target holds logarithms too.

    >>> mg.kl_div(mg.log_softmax(mg.asarray([[0.0, 0.0]])), mg.asarray([[1.0, 0.0]]), "batchmean").item()
    0.693...
    """
    target = _alike("kl_div", "log_probabilities", log_probabilities, target)
    if log_target:
        losses = exp(target) * (target - log_probabilities)
    else:
        positive = target > 0.0
        losses = multiply(target, log(where(positive, target, 1.0)) - log_probabilities)
    if reduction == "batchmean":
        return reduce.sum(losses) / max(losses.shape[0] if losses.ndim else 1, 1)
    return _reduced("kl_div", losses, reduction)


# Of numbers ---------------------------------------------------------------------------------------------------------


@program()
def mse_loss(prediction: FloatTensor, target: Any, reduction: str = "mean") -> Tensor:
    """The mean of the squared differences.

    >>> mg.mse_loss(mg.asarray([1.0, 2.0]), mg.asarray([1.0, 4.0])).item()
    2.0
    """
    target = _alike("mse_loss", "prediction", prediction, target)
    off = prediction - target
    return _reduced("mse_loss", off * off, reduction)


@program()
def l1_loss(prediction: FloatTensor, target: Any, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences.

    >>> mg.l1_loss(mg.asarray([1.0, 2.0]), mg.asarray([1.0, 4.0])).item()
    1.0
    """
    target = _alike("l1_loss", "prediction", prediction, target)
    return _reduced("l1_loss", abs(prediction - target), reduction)


@program()
def huber_loss(prediction: FloatTensor, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half of the squared difference up to `delta`, and beyond it the tangent: outliers have smaller gradients.

    >>> mg.huber_loss(mg.asarray([1.0, 2.0]), mg.asarray([1.5, 5.0]), "none").tolist()
    [0.125, 2.5]
    """
    if delta <= 0:
        raise ConversionError(f"huber_loss: delta is larger than 0, not {delta}")
    target = _alike("huber_loss", "prediction", prediction, target)
    far = abs(prediction - target)
    return _reduced("huber_loss", where(far <= delta, far * far * 0.5, (far - delta / 2) * delta), reduction)


@program()
def smooth_l1_loss(prediction: FloatTensor, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The absolute difference, squared below `beta`: `huber_loss` divided by beta.

    >>> mg.smooth_l1_loss(mg.asarray([1.0, 2.0]), mg.asarray([1.5, 5.0]), "none").tolist()
    [0.125, 2.5]
    """
    if beta < 0:
        raise ConversionError(f"smooth_l1_loss: beta is 0 or more, not {beta}")
    if beta == 0:
        return l1_loss(prediction, target, reduction)
    return huber_loss(prediction, target, reduction, beta) / beta


@program()
def cosine_similarity(x: FloatTensor, y: FloatTensor, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `axis`; lengths below `eps` count as `eps`.

    >>> mg.cosine_similarity(mg.asarray([1.0, 0.0]), mg.asarray([3.0, 4.0])).item()
    0.6...
    """
    name = "cosine_similarity"
    shape = broadcast_shapes(name, [x.shape, y.shape])
    place = normal_axis(name, axis, len(shape))
    x, y = _stretched(x, shape, place), _stretched(y, shape, place)
    sizes = [maximum(reduce.sum(t * t, axis=place), eps * eps) for t in (x, y)]
    return reduce.sum(x * y, axis=place) / (sqrt(sizes[0]) * sqrt(sizes[1]))


def _stretched(x: Tensor, shape: tuple[int, ...], axis: int) -> Tensor:
    """The tensor with as many dimensions as `shape`, and its size along `axis`: the others still broadcast."""
    own = (1,) * (len(shape) - x.ndim) + x.shape
    return broadcast_to(x, (*own[:axis], shape[axis], *own[axis + 1 :]))


# What they share ----------------------------------------------------------------------------------------------------


def check_reduction(name: str, reduction: Any, also: str | None = None) -> None:
    """Raise an error for an unknown reduction.

    >>> check_reduction("mse_loss", "mean")
    """
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none", also):
        raise ConversionError(f"{name}: reduction is 'mean', 'sum' or 'none', not {shown(reduction)}")


def _reduced(name: str, losses: Tensor, reduction: str, factors: Tensor | None = None) -> Tensor:
    check_reduction(name, reduction)
    if reduction == "mean":
        return reduce.mean(losses) if factors is None else reduce.sum(losses) / reduce.sum(factors)
    return reduce.sum(losses) if reduction == "sum" else losses


def _alike(name: str, what: str, given: Tensor, target: Any) -> Tensor:
    """The target of a prediction, after a check that their shapes are equal."""
    target = as_tensor(target, given.device)
    if given.shape != target.shape:
        raise ShapeError(
            f"{name}: the {what} {'has' if what == 'prediction' else 'have'} shape {given.shape} and the target "
            f"{target.shape}",
            expect="the same shape: broadcasting here would compare each prediction with every target",
            hint="reshape or expand_dims one of them",
        )
    return target
