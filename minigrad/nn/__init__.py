"""Neural networks: `Module`, a container of tensors that transformations accept, and the layers."""

from .layers import GELU, Dropout, Embedding, LayerNorm, Linear, ReLU, Sequential, Tanh
from .module import Module, functional_call

__all__ = [
    "Module", "functional_call",
    "Linear", "Embedding", "LayerNorm", "Dropout", "Sequential",
    "ReLU", "GELU", "Tanh",
]  # fmt: skip
