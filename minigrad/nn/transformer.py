"""Transformer blocks, with PyTorch's names of weights: attention and a small network, with residual connections."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ..core.tensor import Tensor
from ..ops.functional import gelu, relu
from ..support.errors import ConversionError
from ..support.words import check_memory, shown
from .attention import MultiheadAttention
from .containers import ModuleList
from .init import xavier_uniform_
from .layers import Dropout, Linear, check_sizes
from .module import Module
from .norm import LayerNorm

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu}


class TransformerLayer(Module):
    """The layers of encoders and decoders: self-attention, a network of two layers, and a norm for each.

    With `has_memory` there is attention to another sequence too.
    """

    has_memory = False

    def __init__(self, size: int, heads: int, hidden: int = 2048, dropout: float = 0.1, activation: Any = "relu",
                 eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 rotary: bool = False, dtype: Any = None, device: Any = None) -> None:
        if not callable(activation) and activation not in ACTIVATIONS:
            raise ConversionError(f"{type(self).__name__}: activation is 'relu', 'gelu' or a function, "
                                  f"not {activation!r}")
        self.activation = activation if callable(activation) else ACTIVATIONS[activation]
        self.norm_first, options = norm_first, {"dtype": dtype, "device": device}
        self.self_attn = MultiheadAttention(size, heads, dropout, bias, batch_first, rotary, **options)
        self.linear1, self.linear2 = Linear(size, hidden, bias, **options), Linear(hidden, size, bias, **options)
        self.norm1, self.norm2 = (LayerNorm(size, eps, bias=bias, **options) for _ in range(2))
        self.dropout, self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        if self.has_memory:
            self.multihead_attn = MultiheadAttention(size, heads, dropout, bias, batch_first, **options)
            self.norm3, self.dropout3 = LayerNorm(size, eps, bias=bias, **options), Dropout(dropout)

    def around(self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus the result of a part for x, with the norm before the part or after the sum."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))  # type: ignore[no-any-return]

    def feed(self, x: Tensor) -> Tensor:
        """The network of two layers."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then two linear layers; the result of each is added to its input and normalised.

    With `norm_first` the norm comes before each part, which makes training easier.

    >>> block = mg.nn.TransformerEncoderLayer(8, heads=2, hidden=16, batch_first=True)
    >>> block(mg.ones((5, 7, 8)), causal=True).shape
    (5, 7, 8)
    """

    def forward(self, x: Tensor, mask: Any = None, causal: bool = False, key_padding_mask: Any = None) -> Tensor:
        """`mask`, `causal` and `key_padding_mask` as in `MultiheadAttention`."""
        options = {"mask": mask, "causal": causal, "key_padding_mask": key_padding_mask}
        x = self.around(x, self.norm1, lambda x: self.dropout1(self.self_attn(x, **options)))
        return self.around(x, self.norm2, lambda x: self.dropout2(self.feed(x)))


class TransformerDecoderLayer(TransformerLayer):
    """An encoder layer with attention to another sequence, the memory, between its two parts.

    >>> block = mg.nn.TransformerDecoderLayer(8, heads=2, hidden=16, batch_first=True)
    >>> block(mg.ones((5, 7, 8)), mg.ones((5, 3, 8)), causal=True).shape
    (5, 7, 8)
    """

    has_memory = True

    def forward(self, x: Tensor, memory: Tensor, mask: Any = None, memory_mask: Any = None, causal: bool = False,
                key_padding_mask: Any = None, memory_key_padding_mask: Any = None) -> Tensor:
        """Masks and `causal` as in `MultiheadAttention`; those of the memory are for the attention to it."""
        own = {"mask": mask, "causal": causal, "key_padding_mask": key_padding_mask}
        other = {"mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
        x = self.around(x, self.norm1, lambda x: self.dropout1(self.self_attn(x, **own)))
        x = self.around(x, self.norm2, lambda x: self.dropout2(self.multihead_attn(x, memory, **other)))
        return self.around(x, self.norm3, lambda x: self.dropout3(self.feed(x)))


class _Stack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        check_sizes(type(self).__name__, num_layers=num_layers)
        if not isinstance(layer, Module):
            raise ConversionError(f"{type(self).__name__}: layer is a module, not {shown(layer)}")
        size = 1024 + sum(p.nbytes for p in layer.parameters())  # Python objects take memory too
        check_memory(f"{type(self).__name__}: {num_layers} layers", (num_layers, size))
        self.layers = ModuleList([deepcopy(layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Apply the layers in a row, with the same further arguments, and then the norm, if there is one."""
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class TransformerEncoder(_Stack):
    """Copies of an encoder layer, one after the other, with equal initial parameters.

    >>> layer = mg.nn.TransformerEncoderLayer(8, heads=2, hidden=16)
    >>> mg.nn.TransformerEncoder(layer, 2)(mg.ones((7, 5, 8))).shape
    (7, 5, 8)
    """


class TransformerDecoder(_Stack):
    """Copies of a decoder layer, one after the other, with equal initial parameters and the same memory.

    >>> layer = mg.nn.TransformerDecoderLayer(8, heads=2, hidden=16)
    >>> mg.nn.TransformerDecoder(layer, 2)(mg.ones((7, 5, 8)), mg.ones((3, 5, 8))).shape
    (7, 5, 8)
    """


class Transformer(Module):
    """An encoder of one sequence and a decoder of another, which attends to the first, with PyTorch's weights.

    Both are (length, examples, size), or with `batch_first` (examples, length, size).

    >>> model = mg.nn.Transformer(8, heads=2, encoder_layers=1, decoder_layers=1, hidden=16, batch_first=True)
    >>> model(mg.ones((5, 7, 8)), mg.ones((5, 3, 8)), causal=True).shape
    (5, 3, 8)
    """

    def __init__(self, size: int = 512, heads: int = 8, encoder_layers: int = 6, decoder_layers: int = 6,
                 hidden: int = 2048, dropout: float = 0.1, activation: Any = "relu", eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        options: Any = {"bias": bias, "dtype": dtype, "device": device}
        given: Any = (size, heads, hidden, dropout, activation, eps, batch_first, norm_first)
        norms = [LayerNorm(size, eps, **options) for _ in range(2)]
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*given, **options), encoder_layers, norms[0])
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*given, **options), decoder_layers, norms[1])
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)

    def forward(self, source: Tensor, target: Tensor, source_mask: Any = None, target_mask: Any = None,
                memory_mask: Any = None, causal: bool = False, source_key_padding_mask: Any = None,
                target_key_padding_mask: Any = None, memory_key_padding_mask: Any = None) -> Tensor:
        """The decoder's result.  The masks are those of `MultiheadAttention`, and `causal` is for the target."""
        memory = self.encoder(source, mask=source_mask, key_padding_mask=source_key_padding_mask)
        return self.decoder(  # type: ignore[no-any-return]
            target, memory, target_mask, memory_mask, causal, target_key_padding_mask, memory_key_padding_mask
        )
