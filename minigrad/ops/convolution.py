"""Convolutions in one and two dimensions, and the transposed one.

A convolution is a matrix product of the kernel with all windows of the input ("im2col"): the windows are a view, and a
reshape turns them into columns, so the gradients need no code.  There is one product for all examples, because one
large matrix takes half the time of many small ones.  Images are (examples, channels, height, width).
"""

from __future__ import annotations

import math
from typing import Any

from ..core.primitive import P
from ..core.tensor import FloatTensor, Tensor
from ..support.errors import ConversionError, ShapeError
from ..support.table import counted
from .composite import program
from .contract import matmul
from .index import pad
from .view import expand_dims, permute_dims, raw_slice, reshape, squeeze
from .windows import Sizes, for_each, raw_windows, window_count

__all__ = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "fold", "unfold"]

Pairs = tuple[tuple[int, int], ...]


@program(most=64)
def conv1d(x: FloatTensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
    """Slide kernels along sequences (examples, channels, length): see `conv2d`.

    >>> x, weight = mg.asarray([[[1.0, 2.0, 4.0, 8.0]]]), mg.asarray([[[-1.0, 1.0]]])
    >>> mg.conv1d(x, weight).tolist()
    [[[1.0, 2.0, 4.0]]]
    """
    return _convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@program(most=64)
def conv2d(x: FloatTensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
    """Slide kernels over images: each output is a sum of products of a kernel and the part of the image below it.

    `x` is (examples, channels, height, width) or a single image without the first, and `weight` (outputs, channels /
    groups, height, width).  `padding` zeros are put on each side of the image.  A pair for each dimension, such as
    `((1, 0), (2, 2))`, gives the numbers before and behind, and "same" keeps the size.  Kernels move by `stride`, their
    elements are `dilation` apart, and with `groups` each group of outputs reads its own group of channels only.

    >>> x, weight = mg.reshape(mg.arange(9.0), (1, 1, 3, 3)), mg.ones((1, 1, 2, 2))
    >>> mg.conv2d(x, weight).tolist()
    [[[[8.0, 12.0], [20.0, 24.0]]]]
    >>> mg.conv2d(x, weight, padding="same").shape
    (1, 1, 3, 3)
    """
    return _convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


@program(most=64)
def conv_transpose2d(x: FloatTensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
    """The transpose of `conv2d`: each element of the image, times a kernel, is added to a larger image.

    `weight` is (channels, outputs / groups, height, width).  `padding` is cut off the result on each side.
    `output_padding` is the number of extra rows and columns, which the stride leaves open.

    >>> mg.conv_transpose2d(mg.asarray([[[[1.0, 10.0]]]]), mg.ones((1, 1, 1, 2)), stride=(1, 2)).tolist()
    [[[[1.0, 1.0, 10.0, 10.0]]]]
    """
    return _transposed("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


@program(most=64)
def conv_transpose1d(x: FloatTensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
    """The transpose of `conv1d`, along sequences (examples, channels, length): see `conv_transpose2d`.

    >>> mg.conv_transpose1d(mg.asarray([[[1.0, 10.0]]]), mg.ones((1, 1, 2)), stride=2).tolist()
    [[[1.0, 1.0, 10.0, 10.0]]]
    """
    return _transposed("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _transposed(name: str, count: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                output_padding: Any, groups: int, dilation: Any) -> Tensor:
    x, single = _examples(name, count, x)
    _check_weight(name, count, x, weight, groups, channels=weight.shape[0] if weight.ndim else 0)
    steps, gaps = for_each(name, "stride", stride, count), for_each(name, "dilation", dilation, count)
    cut = for_each(name, "padding", padding, count, least=0)
    extra = for_each(name, "output_padding", output_padding, count, least=0)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, gaps)):
        raise ConversionError(
            f"{name}: output_padding {extra} must be smaller than the stride {steps} or the dilation {gaps}"
        )
    (examples, channels, *image), kernel = x.shape, weight.shape[2:]
    outputs, axes = groups * weight.shape[1], tuple(range(2, 2 + count))
    pixels = reshape(permute_dims(x, (1, 0, *axes)), (groups, channels // groups, examples * math.prod(image)))
    rows = reshape(weight, (groups, channels // groups, math.prod(weight.shape[1:])))
    columns = reshape(matmul(rows.mT, pixels), (outputs, *kernel, examples, *image))  # type: ignore[attr-defined]
    parts = permute_dims(columns, (1 + count, 0, *range(2 + count, 2 + 2 * count), *range(1, 1 + count)))
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(image, steps, kernel, gaps)]
    out = P.overlap_add.apply(parts, axis=axes, stride=steps, dilation=gaps, shape=(examples, outputs, *full))
    out = padded(out, tuple([(0, e) for e in extra]))
    if any(cut):
        kept = [slice(c, n + e - c) for c, n, e in zip(cut, full, extra)]
        out = raw_slice(out, index=(..., *kept))
    return _finished(name, out, bias, single)


@program()
def unfold(x: FloatTensor, size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The patches of images as columns, in reading order: (examples, channels · elements of a patch, patches).

    >>> mg.unfold(mg.reshape(mg.arange(6.0), (1, 1, 2, 3)), 2).tolist()
    [[[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]]
    """
    x, single = _examples("unfold", 2, x)
    kernel, steps, gaps, pads = _patches("unfold", size, stride, padding, dilation)
    x = padded(x, pads)
    places = math.prod([window_count("unfold", *sizes) for sizes in zip(x.shape[2:], kernel, steps, gaps)])
    rows = reshape(_columns(x, kernel, steps, gaps), (x.shape[1] * math.prod(kernel), x.shape[0], places))
    out = permute_dims(rows, (1, 0, 2))
    return squeeze(out, 0) if single else out


@program()
def fold(x: FloatTensor, shape: Any, size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """Images of `shape` (height, width) from the columns of `unfold`; where patches overlap, they add up.

    >>> mg.fold(mg.ones((1, 4, 2)), (2, 3), 2).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]
    """
    kernel, steps, gaps, pads = _patches("fold", size, stride, padding, dilation)
    inner = for_each("fold", "shape", shape, 2)
    outer = [before + side + behind for side, (before, behind) in zip(inner, pads)]
    image = [window_count("fold", *sizes) for sizes in zip(outer, kernel, steps, gaps)]
    length, places = math.prod(kernel), math.prod(image)
    if x.ndim not in (2, 3) or x.shape[-2] % length or x.shape[-1] != places:
        raise ShapeError(f"fold: columns of shape {x.shape} are not the patches {kernel} of images {inner}",
                         expect=f"(examples, channels · {length}, {places}), or the same without examples")
    parts = reshape(x, (*x.shape[:-2], x.shape[-2] // length, *kernel, *image))
    axes = (parts.ndim - 4, parts.ndim - 3)
    parts = permute_dims(parts, (*range(axes[0]), *range(axes[0] + 2, parts.ndim), *axes))
    whole = P.overlap_add.apply(parts, axis=axes, stride=steps, dilation=gaps, shape=(*parts.shape[:-4], *outer))
    kept = [slice(before, before + side) for side, (before, _) in zip(inner, pads)]
    return raw_slice(whole, index=(..., *kept))  # type: ignore[no-any-return]


def _patches(name: str, size: Any, stride: Any, padding: Any, dilation: Any) -> tuple[Sizes, Sizes, Sizes, Pairs]:
    kernel, steps, gaps = [
        for_each(name, what, v, 2) for what, v in (("size", size), ("stride", stride), ("dilation", dilation))
    ]
    return kernel, steps, gaps, zeros_around(name, padding, kernel, steps, gaps)


def _convolution(name: str, count: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                 dilation: Any, groups: int) -> Tensor:
    x, single = _examples(name, count, x)
    _check_weight(name, count, x, weight, groups, channels=groups * weight.shape[1] if weight.ndim > 1 else 0)
    steps, gaps = for_each(name, "stride", stride, count), for_each(name, "dilation", dilation, count)
    kernel = weight.shape[2:]
    x = padded(x, zeros_around(name, padding, kernel, steps, gaps))
    image = tuple([window_count(name, *sizes) for sizes in zip(x.shape[2:], kernel, steps, gaps)])
    columns = _columns(x, kernel, steps, gaps)
    outputs, length, places = weight.shape[0], math.prod(weight.shape[1:]), x.shape[0] * math.prod(image)
    if groups == 1:
        out = matmul(reshape(weight, (outputs, length)), reshape(columns, (length, places)))
    else:
        rows = reshape(weight, (groups, outputs // groups, length))
        out = matmul(rows, reshape(columns, (groups, length, places)))
    out = permute_dims(reshape(out, (outputs, x.shape[0], *image)), (1, 0, *range(2, 2 + count)))
    return _finished(name, out, bias, single)


def _columns(x: Tensor, kernel: Sizes, steps: Sizes, gaps: Sizes) -> Tensor:
    """The inputs for each element of a kernel: (channels, *kernel, examples, *image), a view."""
    count = len(kernel)
    axes = tuple(range(2, 2 + count))
    parts = raw_windows(x, axis=axes, size=kernel, stride=steps, dilation=gaps)
    return permute_dims(parts, (1, *range(2 + count, 2 + 2 * count), 0, *axes))


def padded(x: Tensor, pads: Pairs, value: float = 0.0) -> Tensor:
    """The tensor with `pads` elements of `value` around the last dimensions; itself if there are none.

    >>> padded(mg.ones(2), ((1, 0),)).tolist()
    [0.0, 1.0, 1.0]
    """
    if not any(map(any, pads)):
        return x
    return pad(x, ((0, 0),) * (x.ndim - len(pads)) + pads, value)


def zeros_around(name: str, padding: Any, kernel: Sizes, steps: Sizes, gaps: Sizes) -> Pairs:
    """The numbers of zeros that a convolution puts before and behind each dimension of its images.

    >>> zeros_around("conv2d", "same", kernel=(3, 2), steps=(1, 1), gaps=(1, 1))
    ((1, 1), (0, 1))
    """
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(step != 1 for step in steps):
            raise ConversionError(f'{name}: padding="same" keeps the size, and a stride of {steps} does not')
        totals = [(size - 1) * gap for size, gap in zip(kernel, gaps)]
        return tuple([(total // 2, total - total // 2) for total in totals])
    if isinstance(padding, str):
        raise ConversionError(f"{name}: padding is numbers, 'same' or 'valid', not {padding!r}")
    if isinstance(padding, (tuple, list)) and padding and all(isinstance(p, (tuple, list)) for p in padding):
        before, behind = zip(*padding)
        sizes = [for_each(name, "padding", each, len(kernel), least=0) for each in (before, behind)]
        return tuple(zip(*sizes))
    return tuple([(p, p) for p in for_each(name, "padding", padding, len(kernel), least=0)])


def _finished(name: str, out: Tensor, bias: Tensor | None, single: bool) -> Tensor:
    if bias is not None:
        if bias.shape != out.shape[1:2]:
            raise ShapeError(f"{name}: a bias of shape {bias.shape} for {counted(out.shape[1], 'output')}",
                             expect=f"({out.shape[1]},)")
        out = out + reshape(bias, (-1, *[1] * (out.ndim - 2)))
    return squeeze(out, 0) if single else out


def _examples(name: str, count: int, x: Tensor) -> tuple[Tensor, bool]:
    """The input with a dimension for the examples, and whether the dimension was added."""
    if x.ndim not in (count + 1, count + 2):
        sides = ("length",) if count == 1 else ("height", "width")
        raise ShapeError(
            f"{name}: an input of shape {x.shape} has {counted(x.ndim, 'dimension')}",
            expect=f"(examples, channels, {', '.join(sides)}), or the same without examples",
        )
    single = x.ndim == count + 1
    return (expand_dims(x, 0) if single else x), single


def _check_weight(name: str, count: int, x: Tensor, weight: Tensor, groups: int, channels: int) -> None:
    if weight.ndim != count + 2 or x.shape[1] != channels:
        per_group = f" in {groups} groups" if groups != 1 else ""
        raise ShapeError(
            f"{name}: an input of shape {x.shape} has {x.shape[1]} channels, and the weight of shape {weight.shape}"
            f" is for {channels}{per_group}",
            expect=f"(examples, {channels}, ...)",
        )
    if groups < 1 or weight.shape[0] % groups or channels % groups:
        raise ShapeError(f"{name}: {weight.shape[0]} and {channels} channels can't be divided into {groups} groups")
