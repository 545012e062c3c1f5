"""Losses as layers: the functions of `ops.losses` with their options kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops import losses
from ..ops.losses import check_reduction
from .module import Module


class _Loss(Module):
    """A function of predictions and targets, with its options as attributes."""

    function: Callable[..., Tensor]
    options: tuple[str, ...] = ()
    also: str | None = None  # another reduction that it supports

    def __init__(self, reduction: str = "mean") -> None:
        check_reduction(type(self).__name__, reduction, self.also)
        self.reduction = reduction

    def forward(self, prediction: Tensor, target: Any) -> Tensor:
        options = {name: getattr(self, name) for name in self.options}
        return type(self).function(prediction, target, reduction=self.reduction, **options)

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else self.reduction


class CrossEntropyLoss(_Loss):
    """`mg.cross_entropy` as a layer: of logits (..., classes) and targets.

    >>> mg.nn.CrossEntropyLoss()(mg.zeros((1, 2)), mg.asarray([1])).item()
    0.693...
    """

    function = staticmethod(losses.cross_entropy)
    options = ("weight", "ignore_index", "label_smoothing")

    def __init__(self, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing


class NLLLoss(_Loss):
    """`mg.nll_loss` as a layer: of log-probabilities (..., classes) and targets.

    >>> mg.nn.NLLLoss()(mg.asarray([[-1.0, -2.0]]), mg.asarray([1])).item()
    2.0
    """

    function = staticmethod(losses.nll_loss)
    options = ("weight", "ignore_index")

    def __init__(self, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index


class BCELoss(_Loss):
    """`mg.binary_cross_entropy` as a layer: of probabilities and targets.

    >>> mg.nn.BCELoss()(mg.asarray([0.5]), mg.ones(1)).item()
    0.693...
    """

    function = staticmethod(losses.binary_cross_entropy)
    options = ("weight",)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight


class BCEWithLogitsLoss(_Loss):
    """`mg.binary_cross_entropy_with_logits` as a layer.

    >>> mg.nn.BCEWithLogitsLoss()(mg.zeros(1), mg.ones(1)).item()
    0.693...
    """

    function = staticmethod(losses.binary_cross_entropy_with_logits)
    options = ("weight", "pos_weight")

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight


class KLDivLoss(_Loss):
    """`mg.kl_div` as a layer.

    >>> mg.nn.KLDivLoss("batchmean")(mg.zeros((1, 1)), mg.ones((1, 1))).item()
    0.0
    """

    function = staticmethod(losses.kl_div)
    options = ("log_target",)
    also = "batchmean"

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target


class MSELoss(_Loss):
    """`mg.mse_loss` as a layer.

    >>> mg.nn.MSELoss()(mg.zeros(2), mg.asarray([1.0, 3.0])).item()
    5.0
    """

    function = staticmethod(losses.mse_loss)


class L1Loss(_Loss):
    """`mg.l1_loss` as a layer.

    >>> mg.nn.L1Loss("sum")(mg.zeros(2), mg.asarray([1.0, 3.0])).item()
    4.0
    """

    function = staticmethod(losses.l1_loss)


class SmoothL1Loss(_Loss):
    """`mg.smooth_l1_loss` as a layer.

    >>> mg.nn.SmoothL1Loss()(mg.zeros(1), mg.asarray([3.0])).item()
    2.5
    """

    function = staticmethod(losses.smooth_l1_loss)
    options = ("beta",)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """`mg.huber_loss` as a layer.

    >>> mg.nn.HuberLoss(delta=2.0)(mg.zeros(1), mg.asarray([3.0])).item()
    4.0
    """

    function = staticmethod(losses.huber_loss)
    options = ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta


class CosineSimilarity(Module):
    """`mg.cosine_similarity` as a layer.

    >>> mg.nn.CosineSimilarity()(mg.ones(2), mg.ones(2)).item()
    1.0...
    """

    def __init__(self, axis: int = -1, eps: float = 1e-8) -> None:
        self.axis, self.eps = axis, eps

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return losses.cosine_similarity(x, y, self.axis, self.eps)
