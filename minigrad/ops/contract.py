"""The matrix product, and functions that rearrange their inputs for one matrix product: `einsum`, `tensordot`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import FloatTensor, Tensor, as_tensor, method
from ..support.errors import AxisError, ConversionError, ShapeError
from ..support.table import counted
from ..support.words import shown, whole
from . import reduce
from .composite import composed
from .creation import eye
from .declare import broadcast_shapes, declare, normal_axes, normal_axis
from .elementwise import astype, multiply, where
from .index import pad
from .view import expand_dims, moveaxis, permute_dims, raw_permute_dims, raw_slice, reshape

# `trace` is `mg.linalg.trace`
__all__ = ["matmul", "outer", "kron", "cdist", "vecdot", "tensordot", "diag", "diagonal", "einsum"]

# The primitive ------------------------------------------------------------------------------------------------------


def _infer_matmul(x: Any, y: Any) -> Any:
    left: tuple[int, ...] = getattr(x, "shape", ())
    right: tuple[int, ...] = getattr(y, "shape", ())
    if len(left) < 2 or len(right) < 2:
        raise ShapeError(
            f"matmul: a matrix has two dimensions, and these operands have shapes {left} and {right}",
            hint="mg.matmul and @ take matrices and vectors; x * y multiplies by a number",
        )
    if left[-1] != right[-2]:
        raise _misfit(left, right)
    return (*broadcast_shapes("matmul", [left[:-2], right[:-2]]), left[-2], right[-1]), P.matmul.common_dtype((x, y))


def _misfit(left: tuple[int, ...], right: tuple[int, ...]) -> ShapeError:
    """The error for these shapes, in the caller's words."""
    columns = f"{left[-1]} {'columns' if len(left) > 1 else 'elements'}"
    rows = counted(right[-2], "row") if len(right) > 1 else counted(right[0], "element")
    return ShapeError(
        f"matmul: shapes {left} and {right} do not go together: {columns} against {rows}",
        expect="as many columns (or elements of a vector) on the left as there are rows (or elements) on the right",
        hint=".T (or .mT, for a stack of matrices) transposes an operand"
        if len(left) > 1 or len(right) > 1 else "mg.outer(x, y) multiplies each element with each",
    )


def _turned(x: Tensor) -> Tensor:
    """Each matrix transposed."""
    ndim = len(x._data.shape)
    turned: Tensor = raw_permute_dims(x, axes=(*range(ndim - 2), ndim - 1, ndim - 2))
    return turned


def _of_right(g: Any, x: Any, node: Any) -> Any:
    """xᵀ g; summed over the stack if all of the stack used the same matrix, as one product of long matrices."""
    y = node.inputs[1]
    if len(y.shape) == 2 < x.ndim:
        count = math.prod(x.shape[:-1])
        x, g = reshape(x, (count, x.shape[-1])), reshape(g, (count, g.shape[-1]))
    if getattr(y, "op", None) is P.permute_dims:  # y is w.T: then the gradient of w is in row-major order
        return _turned(matmul(_turned(g), x))
    return matmul(_turned(x), g)


def _pushed_forward(primals: Any, tangents: Any, out: Any) -> Any:
    """The product rule: dx y + x dy."""
    (x, y), (dx, dy) = primals, tangents
    if dx is None:
        return matmul(x, dy)
    return matmul(dx, y) if dy is None else matmul(dx, y) + matmul(x, dy)


declare(
    Primitive(
        "matmul", "contract", ("x", "y"), _infer_matmul, formula=r"x\,y", jvp=_pushed_forward,
        local={"x": r"\partial\mathrm{out}\,y^{\mathsf T}", "y": r"x^{\mathsf T}\partial\mathrm{out}"},
        rules={"x": lambda g, y: matmul(g, _turned(y)), "y": _of_right},
    )
)
_product = P.matmul.apply


@method
def matmul(x: Any, y: Any) -> Tensor:
    """The matrix product; dimensions before the last two are stacks of matrices, and broadcast.  It takes vectors too.

    >>> mg.matmul(mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.asarray([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    if x.__class__ is Tensor and y.__class__ is Tensor and len(x._data.shape) > 1 < len(y._data.shape):
        return _product(x, y)  # type: ignore[no-any-return]
    x = as_tensor(x, y.device if y.__class__ is Tensor else None)
    y = as_tensor(y, x.device)
    left, right = x.ndim == 1, y.ndim == 1
    if x.ndim and y.ndim and x.shape[-1] != y.shape[-min(y.ndim, 2)]:
        raise _misfit(x.shape, y.shape)
    out = _product(reshape(x, (1, x.size)) if left else x, reshape(y, (y.size, 1)) if right else y)
    if left or right:
        shape = out.shape[:-2] + (() if left else out.shape[-2:-1]) + (() if right else out.shape[-1:])
        out = reshape(out, shape)
    return out  # type: ignore[no-any-return]


# Composed from it ---------------------------------------------------------------------------------------------------


@method
@composed
def outer(x: Tensor, y: Tensor) -> Tensor:
    """The product of each element of one vector with each element of another.

    >>> mg.outer(mg.asarray([1, 2]), mg.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(
            f"outer: two vectors are needed, not shapes {x.shape} and {y.shape}", hint="mg.tensordot(x, y, 0)"
        )
    return multiply(reshape(x, (x.size, 1)), y)


@composed
def kron(x: Tensor, y: Tensor) -> Tensor:
    """The Kronecker product: each element of x becomes a block, y multiplied by that element.

    >>> mg.kron(mg.asarray([1, 10]), mg.asarray([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]
    """
    ndim = max(x.ndim, y.ndim)
    left, right = [(1,) * (ndim - each.ndim) + each.shape for each in (x, y)]
    blocks = multiply(reshape(x, [n for size in left for n in (size, 1)]),
                      reshape(y, [n for size in right for n in (1, size)]))
    return reshape(blocks, [m * n for m, n in zip(left, right)])


@composed
def cdist(x: FloatTensor, y: FloatTensor, p: float = 2.0) -> Tensor:
    """The distance of each row of x from each row of y, by the p-norm: (..., rows of x, rows of y).

    The gradient of a distance of 0 is taken to be 0.

    >>> mg.cdist(mg.asarray([[0.0, 0.0]]), mg.asarray([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[5.0, 0.0]]
    """
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"cdist: shapes {x.shape} and {y.shape} do not go together",
                         expect="(..., rows, d) and (..., rows, d)")
    if not p > 0:
        raise ConversionError(f"cdist: p is a number above 0, not {shown(p)}")
    apart = expand_dims(x, -2) - expand_dims(y, -3)
    return reduce.vector_norm(apart, -1, p)


@method
@composed
def vecdot(x: Tensor, y: Tensor, axis: int = -1) -> Tensor:
    """The sum of products along `axis`; the other dimensions broadcast.

    >>> mg.vecdot(mg.asarray([[1, 2], [3, 4]]), mg.asarray([1, 10])).tolist()
    [21, 43]
    """
    left, right = (t if axis == -1 and t.ndim else moveaxis(t, normal_axis("vecdot", axis, t.ndim), -1) for t in (x, y))
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"vecdot: {counted(left.shape[-1], 'element')} against {right.shape[-1]} along axis {axis}, "
                         f"shapes {x.shape} and {y.shape}")
    return _summed(multiply(left, right), (-1,))


@composed
def tensordot(x: Tensor, y: Tensor, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over axes of both: the last `axes` of x with the first of y, or those listed for each.

    >>> mg.tensordot(mg.ones((2, 3, 4)), mg.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot: {counted(axes, 'axis', 'axes')} of shapes {x.shape} and {y.shape}",
                             expect="as many as both have")
        axes = range(x.ndim - axes, x.ndim), range(axes)
    if len(axes) != 2:
        raise AxisError(f"tensordot: axes are a number, or the axes of each of both tensors, not {shown(axes)}")
    ours, theirs = (normal_axes("tensordot", tuple(a) if hasattr(a, "__iter__") else a, t.ndim)
                    for a, t in zip(axes, (x, y)))
    if len(ours) != len(theirs) or any(x.shape[a] != y.shape[b] for a, b in zip(ours, theirs)):
        raise ShapeError(
            f"tensordot: axes {ours} of shape {x.shape} and axes {theirs} of shape {y.shape} do not go together",
            expect="as many axes of each, in pairs of one size",
        )
    left = tuple(range(x.ndim))
    right = tuple([ours[theirs.index(d)] if d in theirs else x.ndim + d for d in range(y.ndim)])
    free = tuple([d for d in left + right if not (d in left and d in right)])
    return _contracted(Term(x, left), Term(y, right), free).tensor


@method
@composed
def diagonal(x: Tensor, offset: int = 0) -> Tensor:
    """The diagonal of each matrix of a stack: the main one, or `offset` places to the right of it.

    In a matrix with n columns it is every (n + 1)-th element, so it is a view of the same memory.

    >>> mg.diagonal(mg.asarray([[1, 2], [3, 4]])).tolist(), mg.diagonal(mg.asarray([[1, 2], [3, 4]]), 1).tolist()
    ([1, 4], [2])
    """
    if x.ndim < 2:
        raise ShapeError(f"diagonal: a matrix has two dimensions, and this tensor has shape {x.shape}")
    rows, columns = x.shape[-2:]
    if whole(offset) is None:
        raise ConversionError(f"diagonal: offset is an integer, not {shown(offset)}")
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    first = offset if offset >= 0 else -offset * columns
    lined = reshape(x, (*x.shape[:-2], rows * columns))
    every = slice(first, first + length * (columns + 1), columns + 1) if length else slice(0, 0)
    return raw_slice(lined, index=(..., every))


@method
@composed
def diag(x: Tensor, k: int = 0) -> Tensor:
    """The matrix whose `k`-th diagonal is a vector, with zeros elsewhere; of a matrix, a copy of that diagonal.

    >>> mg.diag(mg.asarray([1, 2])).tolist(), mg.diag(mg.asarray([[1, 2], [3, 4]])).tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag: x is a vector or a matrix, not of shape {x.shape}", hint="mg.diagonal takes stacks")
    if x.ndim == 2:
        return diagonal(x, k).copy()
    if whole(k) is None:
        raise ConversionError(f"diag: k is an integer, not {shown(k)}")
    size = x.shape[0] + abs(k)
    row = pad(x, (max(k, 0), max(-k, 0)))
    return where(eye(size, k=k, dtype=dtypes.bool, device=x.device), row, False if x.dtype is dtypes.bool else 0)


@composed
def trace(x: Tensor, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of each matrix of a stack.

    >>> mg.linalg.trace(mg.asarray([[1.0, 2.0], [3.0, 4.0]])).item()
    5.0
    """
    return diagonal(x, offset).sum(axis=-1, dtype=dtype)


# Einstein's summation -----------------------------------------------------------------------------------------------

Label = str | int  # a letter, or a dimension of "...": -1 is the last of these
Labels = tuple[Label, ...]


class Term:
    """A tensor, and a different label for each of its dimensions."""

    __slots__ = ("labels", "tensor")

    def __init__(self, tensor: Tensor, labels: Labels) -> None:
        self.tensor, self.labels = tensor, labels

    def sizes(self) -> dict[Label, int]:
        return dict(zip(self.labels, self.tensor.shape))


@composed
def einsum(subscripts: str, *tensors: Tensor) -> Tensor:
    """Sums of products in Einstein's notation: a letter for each dimension; letters that the result lacks are summed.

    A letter that occurs twice in one operand takes its diagonal, and `...` means any dimensions.  Without `->`, the
    result has the letters that occur once, in alphabetical order.  Several operands are multiplied two at a time,
    smallest first.  Without sums and products, the result is a view.

    >>> x, y = mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.asarray([[1.0, 0.0], [1.0, 1.0]])
    >>> mg.einsum("ij,jk->ik", x, y).tolist(), mg.einsum("ii", x).item()
    ([[3.0, 2.0], [7.0, 4.0]], 5.0)
    """
    operands = [as_tensor(t) for t in tensors]
    inputs, result, sizes = _parsed(subscripts, tuple([t.shape for t in operands]))
    dtype = dtypes.result_type(*[t.dtype for t in operands])
    terms = [_simple(Term(astype(t, dtype, copy=False), ls), sizes) for t, ls in zip(operands, inputs)]
    terms = [_needed(term, _elsewhere(terms, (i,), result)) for i, term in enumerate(terms)]
    while len(terms) > 1:
        i, j = (0, 1) if len(terms) == 2 else _cheapest_pair(terms, result)
        product = _contracted(terms[i], terms[j], _elsewhere(terms, (i, j), result))
        terms = [term for k, term in enumerate(terms) if k not in (i, j)] + [product]
    return _permuted(terms[0], result)


@lru_cache(maxsize=512)
def _parsed(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[Labels], Labels, dict[Label, int]]:
    """The labels of the dimensions of operands and result, and the size of each label."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(shapes):
        raise ConversionError(f"einsum {subscripts!r} is for {counted(len(words), 'operand')}, not for {len(shapes)}")
    inputs = [_labels(subscripts, word, len(shape)) for word, shape in zip(words, shapes)]
    sizes = _sizes(subscripts, inputs, shapes)
    named = [label for labels in inputs for label in labels]
    dots = tuple(sorted({label for label in named if isinstance(label, int)}))
    if not arrow:
        once = [label for label in named if isinstance(label, str) and named.count(label) == 1]
        return inputs, dots + tuple(sorted(once)), sizes
    result = _labels(subscripts, right, len(right.replace("...", "")) + (len(dots) if "..." in right else 0))
    if len(set(result)) != len(result) or not set(result) <= set(named) or ("..." not in right and dots):
        raise ConversionError(
            f"einsum {subscripts!r}: the result {right!r} can't be made of the operands",
            expect="each letter once, all of them from the operands, and '...' if an operand has dimensions for it",
        )
    return inputs, result, sizes


def _labels(subscripts: str, word: str, ndim: int) -> Labels:
    before, dots, after = word.partition("...")
    letters = before + after
    if any(not letter.isalpha() for letter in letters):
        raise ConversionError(f"einsum {subscripts!r}: {word!r} is not made of letters and at most one '...'")
    spare = ndim - len(letters)
    if spare < 0 or (spare and not dots):
        dimensions = counted(len(letters), "dimension")
        raise ShapeError(f"einsum {subscripts!r}: {word!r} is for {dimensions}, its operand has {ndim}")
    return (*before, *range(-spare, 0), *after)


def _sizes(subscripts: str, inputs: list[Labels], shapes: tuple[tuple[int, ...], ...]) -> dict[Label, int]:
    """The size of each label; an operand of size 1 is repeated."""
    sizes: dict[Label, int] = {}
    for number, (labels, shape) in enumerate(zip(inputs, shapes)):
        own: dict[Label, int] = {}
        for label, size in zip(labels, shape):
            known = own.get(label, sizes.get(label, 1))
            if size != known and (label in own or (size != 1 and known != 1)):
                name = repr(label) if isinstance(label, str) else "a dimension of '...'"
                raise ShapeError(
                    f"einsum {subscripts!r}: {name} has size {known} and, in operand {number}, {size}",
                    actual=", ".join(map(str, shapes)),
                )
            own[label] = size
        sizes |= {label: size for label, size in own.items() if size != 1 or label not in sizes}
    return sizes


def _simple(term: Term, sizes: dict[Label, int]) -> Term:
    """The term without repeated labels (the diagonal is taken), and without dimensions of size 1 that broadcast."""
    if term.sizes() == {label: sizes[label] for label in term.labels} and len(set(term.labels)) == len(term.labels):
        return term
    tensor, labels = term.tensor, list(term.labels)
    for label in dict.fromkeys(term.labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = diagonal(moveaxis(tensor, (first, second), (-2, -1)))
            labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label]
    kept = [k for k, label in enumerate(labels) if tensor.shape[k] == sizes[label]]
    if len(kept) < len(labels):
        tensor = reshape(tensor, tuple([tensor.shape[k] for k in kept]))
    return Term(tensor, tuple([labels[k] for k in kept]))


def _elsewhere(terms: list[Term], places: tuple[int, ...], result: Labels) -> Labels:
    """The labels used outside the terms at these places."""
    return result + tuple([label for k, term in enumerate(terms) if k not in places for label in term.labels])


def _needed(term: Term, kept: Labels) -> Term:
    """The term summed over labels that are not used elsewhere."""
    axes = tuple([k for k, label in enumerate(term.labels) if label not in kept])
    if not axes:
        return term
    return Term(_summed(term.tensor, axes), tuple([label for label in term.labels if label in kept]))


def _summed(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum in the tensor's own dtype, like that of a matrix product."""
    axes = normal_axes("sum", axes, x.ndim)
    total: Tensor = P.sum.apply(x, axis=axes, keepdims=False, dtype=None if x.dtype.kind == "f" else x.dtype)
    return total


def _cheapest_pair(terms: list[Term], result: Labels) -> tuple[int, int]:
    """The two terms whose product frees the most memory or takes the least; then the least work."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        i, j = pair
        sizes = terms[i].sizes() | terms[j].sizes()
        kept = set(_elsewhere(terms, pair, result))
        product = math.prod([size for label, size in sizes.items() if label in kept])
        return product - terms[i].tensor.size - terms[j].tensor.size, math.prod(sizes.values())

    return min([(i, j) for j in range(len(terms)) for i in range(j)], key=cost)


def _contracted(x: Term, y: Term, kept: Labels) -> Term:
    """The product of two terms, summed over their common labels that no other term uses: one matrix product."""
    shared = [label for label in x.labels if label in y.labels]
    stack = tuple([label for label in shared if label in kept])
    summed = tuple([label for label in shared if label not in kept])
    rows = tuple([label for label in x.labels if label not in shared])
    columns = tuple([label for label in y.labels if label not in shared])
    sizes = x.sizes() | y.sizes()

    def extents(labels: Labels) -> tuple[int, ...]:
        return tuple([sizes[label] for label in labels])

    if summed:
        inner, height, width = (math.prod(extents(labels)) for labels in (summed, rows, columns))
        left = _shaped(_permuted(x, stack + rows + summed), (*extents(stack), height, inner))
        right = _shaped(_permuted(y, stack + summed + columns), (*extents(stack), inner, width))
        out = _shaped(matmul(left, right), extents(stack + rows + columns))
    else:
        left = _shaped(_permuted(x, stack + rows), (*extents(stack + rows), *[1] * len(columns)))
        right = _shaped(_permuted(y, stack + columns), (*extents(stack), *[1] * len(rows), *extents(columns)))
        out = multiply(left, right)
    return Term(out, stack + rows + columns)


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.shape == shape else reshape(x, shape)


def _permuted(term: Term, labels: Labels) -> Tensor:
    """The tensor with its dimensions in this order."""
    return term.tensor if term.labels == labels else permute_dims(term.tensor, [term.labels.index(la) for la in labels])
