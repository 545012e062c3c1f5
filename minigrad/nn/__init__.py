"""Neural networks: `Module`, a container of tensors that transformations accept, and the layers."""

from ..arguments.public import public, public_class
from . import init
from .activations import ELU, GELU, LeakyReLU, LogSoftmax, PReLU, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from .attention import LearnedPositions, MultiheadAttention
from .containers import ModuleDict, ModuleList, Sequential
from .conv import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    MaxPool1d,
    MaxPool2d,
)
from .ctc import CTCLoss
from .graph_layers import GAT, GraphConv
from .layers import Dropout, Dropout2d, Embedding, EmbeddingBag, Flatten, Identity, Linear
from .losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from .module import Module, functional_call
from .norm import BatchNorm1d, BatchNorm2d, GroupNorm, InstanceNorm1d, InstanceNorm2d, LayerNorm, RMSNorm
from .padding import (
    CircularPad1d,
    CircularPad2d,
    ConstantPad1d,
    ConstantPad2d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReplicationPad1d,
    ReplicationPad2d,
    ZeroPad1d,
    ZeroPad2d,
)
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .resampling import PixelShuffle, Upsample
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "Module", "functional_call", "init",
    "Sequential", "ModuleList", "ModuleDict",
    "Linear", "Embedding", "EmbeddingBag", "Dropout", "Dropout2d", "Flatten", "Identity",
    "ReLU", "LeakyReLU", "PReLU", "ELU", "GELU", "Sigmoid", "SiLU", "Softplus", "Tanh", "Softmax", "LogSoftmax",
    "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d",
    "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "ZeroPad1d", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d", "ReflectionPad1d", "ReflectionPad2d",
    "ReplicationPad1d", "ReplicationPad2d", "CircularPad1d", "CircularPad2d",
    "Upsample", "PixelShuffle",
    "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "BatchNorm1d", "BatchNorm2d",
    "RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell",
    "MultiheadAttention", "LearnedPositions",
    "Transformer", "TransformerEncoderLayer", "TransformerEncoder", "TransformerDecoderLayer", "TransformerDecoder",
    "GraphConv", "GAT",
    "CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "MSELoss", "L1Loss", "SmoothL1Loss",
    "HuberLoss", "CosineSimilarity", "CTCLoss",
]

public([name for name in __all__ if name != "Module"], globals())
public(init.__all__, vars(init))
public_class(Module, quick=("forward", "train", "eval"))
