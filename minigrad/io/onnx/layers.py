"""Layers: activations, normalisation, convolutions and pooling, most of which are one function and one operator."""

from __future__ import annotations

import math
from typing import Any

from ...core.node import Node
from ...core.tensor import Tensor
from ...ops import contract, convolution, functional, normalization, pooling, resampling, view
from ...ops.declare import normal_axis
from ...support.errors import FileError
from .decompositions import decomposes
from .operator_table import both, operator

# Linear layers -------------------------------------------------------------------------------------------------------


@decomposes("linear")
def _linear(node: Node, x: Tensor, weight: Tensor, *bias: Tensor) -> Any:
    """ONNX has it for matrices."""
    if x.ndim == 2:
        return None
    product = contract.matmul(x, view.permute_dims(weight))
    return product + bias[0] if bias else product


def _gemm(function: Any, x: Tensor, weight: Tensor, bias: Any, alpha: float, beta: float, transA: int,
          transB: int) -> Any:
    a, b = (view.permute_dims(x) if transA else x), (weight if transB else view.permute_dims(weight))
    bias = bias if bias is None or beta == 1.0 else bias * beta
    if alpha == 1.0 and (bias is None or bias.ndim == 1):
        return function(a, b, bias)
    out = contract.matmul(a, view.permute_dims(b)) * alpha
    return out if bias is None else out + bias


both("Gemm", functional.linear, needed="x weight", optional="bias", compute=_gemm, alpha=1.0, beta=1.0, transA=0,
     transB=1)


# Activations and normalisation ---------------------------------------------------------------------------------------


def _is_along_last_axis(node: Node) -> bool:
    ndim = node.inputs[0].ndim
    return normal_axis(node.name, node.attrs["axis"], ndim) == ndim - 1


def _layer_norm(function: Any, axis: int, x: Tensor, **given: Any) -> Any:
    if axis % x.ndim != x.ndim - 1:
        raise FileError(f"LayerNormalization: only the last axis is supported, not axis {axis}")
    return function(x, **given)


def _pixel_shuffle(function: Any, mode: str, **given: Any) -> Any:
    if mode != "CRD":
        raise FileError(f"DepthToSpace: mode {mode!r} is not supported", expect="CRD")
    return function(**given)


operator(functional.gelu, "Gelu")
both("Relu", functional.relu)
both("Softplus", functional.softplus)
both("Elu", functional.elu, arguments="alpha")
both("LeakyRelu", functional.leaky_relu, arguments="slope")
both("Softmax", functional.softmax, arguments="axis")
both("LogSoftmax", functional.log_softmax, arguments="axis")
both("LayerNormalization", normalization.layer_norm, arguments="eps", needed="x weight", optional="bias", axis=-1,
     covers=_is_along_last_axis, compute=_layer_norm)
both("BatchNormalization", normalization.batch_norm, arguments="eps", needed="x weight bias running_mean running_var",
     covers=lambda node: not node.attrs["training"])
both("DepthToSpace", resampling.pixel_shuffle, arguments="factor", mode="CRD", compute=_pixel_shuffle,
     covers=lambda node: node.inputs[0].ndim == 4)


# Convolutions and pooling --------------------------------------------------------------------------------------------

Pairs = tuple[tuple[int, int], ...]  # the padding before and behind each dimension


def _conv_transpose(function: Any, padding: Pairs = (), **given: Any) -> Any:
    if any(before != behind for before, behind in padding):
        raise FileError("ConvTranspose: only images with equal padding on both sides are supported",
                        actual=[pad for side in zip(*padding) for pad in side])
    return function(padding=_before(padding), **given)


def _before(padding: Pairs) -> Any:
    return [before for before, _ in padding] or 0


def _max_pool(function: Any, **given: Any) -> Any:
    return _pooled(function, -math.inf, **given)


def _avg_pool(function: Any, count_include_pad: int, padding: Pairs = (), **given: Any) -> Any:
    if not count_include_pad and any(map(any, padding)):
        raise FileError("AveragePool: a mean without the padding is not supported",
                        expect="count_include_pad=1, or no pads")
    return _pooled(function, 0.0, padding=padding, **given)


def _pooled(function: Any, outside: float, x: Tensor, size: Any, stride: Any = 1, padding: Pairs = (),
            **given: Any) -> Any:
    """Pooling with these pads; pads that the function does not take are put around the image first."""
    if all(before == behind and 2 * before <= extent for (before, behind), extent in zip(padding, size)):
        return function(x, size, stride, padding=_before(padding), **given)
    return function(convolution.padded(x, padding, outside), size, stride, **given)


both("Conv", convolution.conv1d, convolution.conv2d, arguments="padding stride dilation groups",
     needed="x weight", optional="bias")
both("ConvTranspose", convolution.conv_transpose2d, arguments="padding stride dilation output_padding groups",
     needed="x weight", optional="bias", compute=_conv_transpose)
both("MaxPool", pooling.max_pool1d, pooling.max_pool2d, arguments="dilation size stride padding", compute=_max_pool)
both("AveragePool", pooling.avg_pool1d, pooling.avg_pool2d, arguments="size stride padding", count_include_pad=1,
     compute=_avg_pool)
