"""Operators of ONNX that are one function of ours: each row is for both ways.

Export writes a call of the function as the operator.  Load computes the operator with the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.node import Node
from ...core.tensor import Tensor
from ...ops import convolution, functional, normalization, pooling, resampling
from ...ops.declare import normal_axis
from ...ops.windows import for_each
from ...support.errors import FileError
from ...support.table import counted
from .composites import as_node
from .counterparts import writes
from .operators import OPERATORS, Operator
from .writer import Writer, fixed

DIMENSIONS = {"1d": 3, "2d": 4}  # of what a function takes, by the end of its name: conv2d takes examples of images


def both(
    op_type: str, *functions: Callable[..., Any], arguments: str = "", needed: str = "x", optional: str = "",
    covers: Callable[[Node], bool] = lambda call: True, compute: Callable[..., Any] | None = None, **constants: Any,
) -> None:
    """Put an operator into the tables of both ways.

    `arguments` are those of our functions that are attributes of the operator, `needed` and `optional` those that are
    its inputs, in ONNX's order.  `constants` are attributes that are always written.  Load calls the function for the
    dimensions of x, or `compute(function, ...)`, which takes the same arguments and the constants.
    """
    ours = {ATTRIBUTES[argument][0]: argument for argument in arguments.split()}

    def is_covered(call: Node) -> bool:
        return call.inputs[0].ndim == _dimensions(call.name, call.inputs[0]) and covers(call)

    names = [function.__name__ for function in functions]
    as_node(*names, needed=needed, optional=optional, covers=is_covered)

    @writes(*names)
    def write(w: Writer, node: Node, *names: str) -> str:
        values = {theirs: ATTRIBUTES[argument][1](node, argument) for theirs, argument in ours.items()}
        return w.add(op_type, *names, **values, **constants)  # type: ignore[no-any-return]

    def computed(x: Tensor, *others: Any, **attributes: Any) -> Any:
        given = {ours.get(name, name): value for name, value in attributes.items() if value is not None}
        given |= zip(f"{needed} {optional}".split(), (x, *others))
        function = next((f for f in functions if _dimensions(f.__name__, x) == x.ndim), None)
        if function is None:
            raise FileError(f"{op_type}: not supported for these dimensions", actual=counted(x.ndim, "dimension"))
        return function(**given) if compute is None else compute(function, **given)

    OPERATORS[op_type] = Operator(computed, {*ours, *constants})


def _dimensions(function: str, x: Node | Tensor) -> int:
    """The number of dimensions that a function takes; that of x if it takes any number."""
    return DIMENSIONS.get(function[-2:], x.ndim)


# Arguments as attributes ---------------------------------------------------------------------------------------------


def _same(node: Node, argument: str) -> Any:
    return node.attrs[argument]


def _number(node: Node, argument: str) -> float:
    return float(node.attrs[argument])


def _axis(node: Node, argument: str) -> int:
    return normal_axis(node.name, node.attrs[argument], node.inputs[0].ndim)


def _sizes(node: Node, what: str) -> tuple[int, ...]:
    """An argument that is a number for each dimension of an image, or one for all of them."""
    return for_each(node.name, what, node.attrs[what], node.inputs[0].ndim - 2, least=0)


def _steps(node: Node, argument: str) -> tuple[int, ...]:
    """Windows without a stride are side by side."""
    return _sizes(node, "size" if node.attrs[argument] is None else argument)


def _pads(node: Node, argument: str) -> list[int]:
    kernel = _sizes(node, "size") if "size" in node.attrs else fixed(node.inputs[1].shape[2:], "kernel's size", node)
    gaps = _sizes(node, "dilation") if "dilation" in node.attrs else (1,) * len(kernel)
    pairs = convolution.zeros_around(node.name, node.attrs[argument], kernel, _steps(node, "stride"), gaps)
    before, behind = zip(*pairs)
    return [*before, *behind]


ATTRIBUTES: dict[str, tuple[str, Callable[..., Any]]] = {  # our argument: ONNX's attribute, and how it is written
    "alpha": ("alpha", _number), "axis": ("axis", _axis),
    "dilation": ("dilations", _sizes), "eps": ("epsilon", _number), "factor": ("blocksize", _same),
    "groups": ("group", _same), "output_padding": ("output_padding", _sizes), "padding": ("pads", _pads),
    "size": ("kernel_shape", _sizes), "slope": ("alpha", _number), "stride": ("strides", _steps),
}


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


both("Relu", functional.relu)
both("Softplus", functional.softplus)
both("Elu", functional.elu, arguments="alpha")
both("LeakyRelu", functional.leaky_relu, arguments="slope")
both("Softmax", functional.softmax, arguments="axis")
both("LogSoftmax", functional.log_softmax, arguments="axis")
both("LayerNormalization", functional.layer_norm, arguments="eps", needed="x weight", optional="bias", axis=-1,
     covers=_is_along_last_axis, compute=_layer_norm)
both("BatchNormalization", normalization.batch_norm, arguments="eps", needed="x weight bias running_mean running_var",
     covers=lambda node: not node.attrs["training"])
both("DepthToSpace", resampling.pixel_shuffle, arguments="factor", mode="CRD", compute=_pixel_shuffle,
     covers=lambda node: node.inputs[0].ndim == 4)


# Convolutions and pooling --------------------------------------------------------------------------------------------


def _pairs(padding: Sequence[int] | None, count: int) -> tuple[tuple[int, int], ...]:
    """ONNX's pads, all that are before the image and then all behind it, as a pair for each dimension."""
    pads = padding or [0] * (2 * count)
    return tuple(zip(pads[:count], pads[count:]))


def _conv(function: Any, x: Tensor, padding: Any = None, **given: Any) -> Any:
    return function(x, padding=_pairs(padding, x.ndim - 2), **given)


def _conv_transpose(function: Any, padding: Any = None, **given: Any) -> Any:
    pairs = _pairs(padding, 2)
    if any(before != behind for before, behind in pairs):
        raise FileError("ConvTranspose: only images with equal padding on both sides are supported", actual=padding)
    return function(padding=[before for before, _ in pairs], **given)


def _max_pool(function: Any, **given: Any) -> Any:
    return _pooled(function, -math.inf, **given)


def _avg_pool(function: Any, count_include_pad: int, padding: Any = None, **given: Any) -> Any:
    if not count_include_pad and any(padding or ()):
        raise FileError("AveragePool: a mean without the padding is not supported",
                        expect="count_include_pad=1, or no pads")
    return _pooled(function, 0.0, padding=padding, **given)


def _pooled(function: Any, outside: float, x: Tensor, size: Any, stride: Any = 1, padding: Any = None,
            **given: Any) -> Any:
    """Pooling with these pads; pads that the function does not take are put around the image first."""
    pairs = _pairs(padding, x.ndim - 2)
    if all(before == behind and 2 * before <= extent for (before, behind), extent in zip(pairs, size)):
        return function(x, size, stride, padding=[before for before, _ in pairs], **given)
    return function(convolution.padded(x, pairs, outside), size, stride, **given)


both("Conv", convolution.conv1d, convolution.conv2d, arguments="padding stride dilation groups",
     needed="x weight", optional="bias", compute=_conv)
both("ConvTranspose", convolution.conv_transpose2d, arguments="padding stride dilation output_padding groups",
     needed="x weight", optional="bias", compute=_conv_transpose)
both("MaxPool", pooling.max_pool1d, pooling.max_pool2d, arguments="dilation size stride padding", compute=_max_pool)
both("AveragePool", pooling.avg_pool1d, pooling.avg_pool2d, arguments="size stride padding", count_include_pad=1,
     compute=_avg_pool)
