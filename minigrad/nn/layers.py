"""Basic layers: linear maps, embeddings, dropout, and a change of shape."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops import reduce
from ..ops.creation import arange
from ..ops.functional import dropout, dropout2d, embedding, linear
from ..ops.random import DEFAULT_GENERATOR
from ..ops.segments import segment_max, segment_mean, segment_sum
from ..ops.view import expand_dims, flatten
from ..support.errors import ConversionError, ShapeError
from ..support.words import shown, whole
from .init import uniform_parameter
from .module import Module

BAGS: dict[str, Any] = {  # what an `EmbeddingBag` makes of the rows of a bag, along an axis or in segments
    "sum": (reduce.sum, segment_sum), "mean": (reduce.mean, segment_mean), "max": (reduce.max, segment_max),
}


class Linear(Module):
    """x times the transpose of `weight`, plus `bias`.

    Both start uniform between ±1 / √inputs, so that the outputs are about as large as the inputs.

    >>> layer = mg.nn.Linear(2, 3)
    >>> layer, layer(mg.ones((5, 2))).shape
    (Linear(2 → 3), (5, 3))
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, dtype: Any = None, device: Any = None) -> None:
        check_sizes("Linear", inputs=inputs, outputs=outputs)
        self.weight = uniform_parameter((outputs, inputs), inputs, dtype, device)
        self.bias = uniform_parameter((outputs,), inputs, dtype, device) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not x.shape or x.shape[-1] != self.weight.shape[1]:
            raise ShapeError(
                f"an input of shape {x.shape} does not fit {self!r}", expect=f"(..., {self.weight.shape[1]})"
            )
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs} → {outputs}" + ("" if self.bias is not None else ", bias=False")


class Embedding(Module):
    """A table with a row of numbers for each of `count` items, which start standard normal.

    >>> table = mg.nn.Embedding(10, 4)
    >>> table, table(mg.asarray([[1, 2, 1]])).shape
    (Embedding(10 × 4), (1, 3, 4))
    """

    def __init__(self, count: int, size: int, dtype: Any = None, device: Any = None) -> None:
        check_sizes("Embedding", count=count, size=size)
        self.weight = DEFAULT_GENERATOR.normal((count, size), dtype=dtype, device=device, requires_grad=True)

    def forward(self, indices: Tensor) -> Tensor:
        return embedding(self.weight, indices)

    def extra_repr(self) -> str:
        return "{} × {}".format(*self.weight.shape)


class EmbeddingBag(Embedding):
    """The mean, the sum or the maximum of the rows of each bag of items.

    Bags are the rows of `indices`; or, with `offsets`, parts of one row of indices, each of which begins at an offset.

    >>> table = mg.nn.EmbeddingBag(10, 4)
    >>> table(mg.asarray([[1, 2, 1]])).shape, table(mg.asarray([1, 2, 1]), mg.asarray([0, 2])).shape
    ((1, 4), (2, 4))
    """

    def __init__(self, count: int, size: int, mode: str = "mean", dtype: Any = None, device: Any = None) -> None:
        if mode not in BAGS:
            raise ConversionError(f"EmbeddingBag: mode is {shown(mode)}", expect=", ".join(map(repr, BAGS)))
        super().__init__(count, size, dtype, device)
        self.mode = mode

    def forward(self, indices: Tensor, offsets: Tensor | None = None) -> Tensor:  # type: ignore[override]
        if indices.ndim != (2 if offsets is None else 1):
            raise ShapeError(f"EmbeddingBag: indices of shape {indices.shape}",
                             expect="(bags, items), or (items,) with offsets, where each bag begins")
        rows = super().forward(indices)
        over_axis, over_segments = BAGS[self.mode]
        if offsets is None:
            return over_axis(rows, axis=1)
        places = arange(len(indices), dtype=offsets.dtype, device=indices.device)
        bags = reduce.sum(expand_dims(places, 1) >= offsets, axis=1) - 1
        return over_segments(rows, bags, len(offsets))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.mode}"


class Dropout(Module):
    """In training, zeros each element with probability `p` and scales the others up; otherwise returns its input.

    >>> mg.nn.Dropout(0.5)
    Dropout(0.5)
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ConversionError(f"{type(self).__name__}: a probability is between 0 and 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"{self.p}"


class Dropout2d(Dropout):
    """In training, zeros each channel of images with probability `p` and scales the others up.

    >>> mg.nn.Dropout2d(0.5).eval()(mg.ones((1, 3, 2, 2))).shape
    (1, 3, 2, 2)
    """

    def forward(self, x: Tensor) -> Tensor:
        return dropout2d(x, self.p, self.training)


class Flatten(Module):
    """Joins the dimensions from `start` to `stop` into one: by default all except the examples.

    >>> mg.nn.Flatten()(mg.ones((5, 2, 3))).shape
    (5, 6)
    """

    def __init__(self, start: int = 1, stop: int = -1) -> None:
        self.start, self.stop = start, stop

    def forward(self, x: Tensor) -> Tensor:
        return flatten(x, self.start, self.stop)

    def extra_repr(self) -> str:
        return "" if (self.start, self.stop) == (1, -1) else f"{self.start}, {self.stop}"


class Identity(Module):
    """Returns its input: a placeholder for a layer.

    >>> mg.nn.Identity()(mg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, x: Any) -> Any:
        return x


def check_sizes(name: str, least: int = 0, **sizes: Any) -> None:
    """Raise unless each size is an integer that is large enough.

    >>> check_sizes("Linear", inputs=2.5)
    Traceback (most recent call last):
    minigrad.support.errors.ConversionError: Linear: inputs is an integer, 0 or more, not 2.5
    ...
    """
    for what, size in sizes.items():
        if whole(size, least) is None:
            raise ConversionError(f"{name}: {what} is an integer, {least} or more, not {shown(size)}")
