"""Multi-head attention, and learned positions for sequences."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor, as_tensor
from ..ops.creation import zeros
from ..ops.elementary import logical_and, logical_not
from ..ops.elementwise import where
from ..ops.functional import attention_weights, linear, scaled_dot_product_attention
from ..ops.joining import split
from ..ops.positions import rotary_embedding
from ..ops.random import DEFAULT_GENERATOR
from ..ops.view import permute_dims, reshape, swapaxes
from ..support.errors import ConversionError, ShapeError
from .init import xavier_uniform_, zeros_
from .layers import Linear, check_sizes
from .module import Module


class MultiheadAttention(Module):
    """Multi-head attention: each position gets a weighted mean of the values at all positions, once for each head.

    Inputs are (length, examples, size), or with `batch_first` (examples, length, size).  `mask` is True where a query
    may attend to a key (or holds floats that are added to the scores), and broadcasts to (examples, heads, queries,
    keys).  `key_padding_mask`, (examples, keys), is True where a key is padding.  With `causal`, no position attends to
    later ones.  With `rotary`, queries and keys get rotary positions.  With `need_weights`, the result is a pair, with
    the weights (examples, heads, queries, keys) before dropout.

    >>> attention = mg.nn.MultiheadAttention(8, heads=2, batch_first=True)
    >>> attention(mg.ones((5, 7, 8)), causal=True).shape, list(attention.state_dict())[::2]
    ((5, 7, 8), ['in_proj_weight', 'out_proj.weight'])
    """

    def __init__(self, size: int, heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False,
                 rotary: bool = False, dtype: Any = None, device: Any = None) -> None:
        check_sizes("MultiheadAttention", 1, size=size, heads=heads)
        if size % heads or (rotary and size // heads % 2):
            even = " of even size" if rotary else ""
            raise ConversionError(f"MultiheadAttention: a size of {size} can't be divided into {heads} heads{even}")
        self.size, self.heads, self.dropout = size, heads, dropout
        self.batch_first, self.rotary = batch_first, rotary
        self.in_proj_weight = xavier_uniform_(zeros((3 * size, size), dtype, device, requires_grad=True))
        self.in_proj_bias = zeros(3 * size, dtype, device, requires_grad=True) if bias else None
        self.out_proj = Linear(size, size, bias, dtype, device)
        if bias:
            zeros_(self.out_proj.bias)  # type: ignore[arg-type]

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, mask: Any = None,
                causal: bool = False, positions: Any = None, need_weights: bool = False,
                key_padding_mask: Any = None) -> Any:
        """The result for each query; without `key` and `value`, this is self-attention."""
        key = query if key is None else key
        value = key if value is None else value
        for x in (query, key, value):
            if x.ndim != 3 or x.shape[-1] != self.size:
                order = "examples, length" if self.batch_first else "length, examples"
                raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=f"({order}, {self.size})")
        q, k, v = [self._by_head(x) for x in self._projected(query, key, value)]
        if self.rotary:
            q, k = rotary_embedding(q, positions), rotary_embedding(k, positions)
        mask = without_padding(mask, key_padding_mask, (k.shape[0], k.shape[2]))
        dropped = self.dropout if self.training else 0.0
        seen = scaled_dot_product_attention(q, k, v, mask, causal, dropout_p=dropped)
        back = (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)
        out = self.out_proj(reshape(permute_dims(seen, back), query.shape))
        return (out, attention_weights(q, k, mask, causal)) if need_weights else out

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if query is key is value:
            return split(linear(query, self.in_proj_weight, self.in_proj_bias), 3, axis=-1)
        weights = split(self.in_proj_weight, 3)
        biases: Any = (None,) * 3 if self.in_proj_bias is None else split(self.in_proj_bias, 3)
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _by_head(self, x: Tensor) -> Tensor:
        """(examples, heads, length, size of a head)."""
        parts = reshape(x, (*x.shape[:2], self.heads, self.size // self.heads))
        return swapaxes(parts, 1, 2) if self.batch_first else permute_dims(parts, (1, 2, 0, 3))

    def extra_repr(self) -> str:
        words = [f"{self.size} in {self.heads} heads"]
        return ", ".join(words + [w for w in ("batch_first", "rotary") if getattr(self, w)])


def without_padding(mask: Any, padding: Any, shape: tuple[int, ...]) -> Any:
    """A mask that also forbids keys that are padding: `padding`, of shape (examples, keys), is True there."""
    if padding is None:
        return mask
    padding = as_tensor(padding)
    if padding.dtype.kind != "b" or padding.shape != shape:
        raise ShapeError(f"a key_padding_mask of {padding.dtype} and shape {padding.shape} does not fit",
                         expect=f"bools of shape {shape}, (examples, keys), True where a key is padding")
    there = logical_not(padding)[:, None, None, :]
    if mask is None:
        return there
    mask = as_tensor(mask)
    return logical_and(mask, there) if mask.dtype.kind == "b" else where(there, mask, -math.inf)


class LearnedPositions(Module):
    """Adds a learned row of numbers for each position of a sequence: (examples, length, size).

    >>> positions = mg.nn.LearnedPositions(16, 8)
    >>> positions, positions(mg.ones((5, 7, 8))).shape
    (LearnedPositions(16 × 8), (5, 7, 8))
    """

    def __init__(self, length: int, size: int, dtype: Any = None, device: Any = None) -> None:
        check_sizes("LearnedPositions", length=length, size=size)
        self.weight = DEFAULT_GENERATOR.normal((length, size), std=0.02, dtype=dtype, device=device, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        length, size = self.weight.shape
        if x.ndim < 2 or x.shape[-1] != size or x.shape[-2] > length:
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}",
                             expect=f"(..., {length} or less, {size})")
        return x + self.weight[: x.shape[-2]]

    def extra_repr(self) -> str:
        return "{} × {}".format(*self.weight.shape)
