"""Makes tensors from data, filled with a number, or counted; graphs record the primitives `full` and `arange`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.clock import mark_shared
from ..core.emit import emit
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, from_host, method, wrap
from ..devices import as_device
from ..devices.special import cast
from ..support.errors import ConversionError, ShapeError
from ..support.words import DEEPEST, a_type, check_memory, shown, whole
from .composite import composed
from .declare import broadcast_shapes, declare
from .elementwise import less_equal, where
from .joining import stack
from .view import broadcast_to, reshape, swapaxes


def _infer_full(shape: tuple[int, ...], value: Any, dtype: Any, device: Any) -> Any:
    dtypes.check_fits("full", value, value, dtype)
    return shape, dtype


declare(Primitive("full", "creation", (), _infer_full, formula=r"\mathrm{full}"))
declare(
    Primitive(
        "arange", "creation", (), lambda start, step, count, dtype, device: ((count,), dtype),
        formula=r"\mathrm{start} + i \cdot \mathrm{step}",
    )
)

__all__ = [
    "asarray", "full", "zeros", "ones", "empty", "full_like", "zeros_like", "ones_like", "empty_like", "arange",
    "linspace", "eye", "tril", "triu", "broadcast_arrays", "meshgrid",
]


def asarray(
    data: Any, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of numbers, nested lists, a NumPy array, another tensor, or an object that supports DLPack.

    Data from outside minigrad are copied, so that no other program can change them.  `copy=False` shares the memory of
    a NumPy array at your own risk: writes to the tensor reach the array, and the file of an `np.memmap` opened with
    "r+"; writes to a copy do not.  Python floats become float32; NumPy arrays keep their type.

    >>> mg.asarray([[1, 2], [3, 4]], dtype=mg.float32).shape
    (2, 2)
    >>> mg.asarray(2.5, requires_grad=True)
    Tensor(2.5, shape=(), dtype=float32, device=cpu, requires_grad=True)
    """
    tensor = _from_anything(data, dtype, device, copy)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _from_anything(data: Any, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    where_to = None if device is None else as_device(device)
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, (list, tuple)) and (found := _first_tensor(data)) is not None:
        data = _stacked(data, found.device)
    if data.__class__ is Tensor:
        if where_to is not None and data.device is not where_to:
            data, copied = data.to(where_to), True
        else:
            copied = False
        if wanted is not None and wanted is not data.dtype:
            if copy is False:
                raise ConversionError(f"asarray(copy=False): {data.dtype} can't become {wanted} without a copy")
            return data.astype(wanted)
        return data.copy() if copy and not copied else data
    where_to = where_to or as_device(None)
    if not isinstance(data, (np.ndarray, np.generic, list, tuple, int, float)) and hasattr(data, "__dlpack__"):
        from .interop import from_dlpack

        return _from_anything(from_dlpack(data), dtype, device, copy)
    array = _numpy_array(data, wanted)
    if copy is False:
        if (array is not data and array.base is not data) or where_to.kind != "cpu":
            raise ConversionError("asarray(copy=False) needs a NumPy array of the dtype wanted, for a CPU device")
        array = array.view(np.ndarray)  # a memmap's writes reach its file: the memory is the same
        mark_shared(array)
        return wrap(array, where_to)
    if array is data or array.base is not None or not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")
    return from_host(array, where_to, data if isinstance(data, np.ndarray) else None)




def _numpy_array(data: Any, wanted: Any) -> Any:
    if isinstance(data, np.ndarray):
        array = data
    else:
        try:
            array = np.asarray(data)
        except (ValueError, TypeError) as error:
            raise not_an_array(data, error) from error
        if not isinstance(data, np.generic) and array.dtype == np.float64:
            wanted = wanted or dtypes.default_float
        elif not isinstance(data, np.generic) and array.dtype == np.int_:  # which is int32 in a browser
            wanted = wanted or dtypes.default_int
        elif isinstance(data, (list, tuple)) and array.size == 0:
            wanted = wanted or dtypes.default_float
    if array.dtype.name not in dtypes.ALL and (wanted is None or array.dtype.kind not in "biuf"):
        raise dtypes.unknown_dtype(array.dtype, "asarray: ")
    wanted = wanted or dtypes.ALL[array.dtype.name]
    if array.dtype is wanted:
        return array
    if wanted.kind in "iu" and array.size and not isinstance(data, (np.ndarray, np.generic)):
        dtypes.check_fits("asarray", array.min(), array.max(), wanted)
    # A dtype may be equal to ours but another object (in an unpickled array), or have another byte order.
    return array.view(wanted) if array.dtype == wanted else cast(np, array, wanted)


def not_an_array(data: Any, error: Exception) -> Exception:
    """The error for nested lists that NumPy cannot convert, mostly because two lists differ in length."""
    if len(_shape_of(data)) > DEEPEST:
        return ShapeError(f"asarray: the lists are nested more than {DEEPEST} deep")
    ragged = _first_ragged(data, ())
    if ragged is None:
        return ConversionError(f"asarray: {a_type(data)} cannot become a tensor: {error}")
    (path, shape), (other, otherwise) = ragged
    return ShapeError(
        f"asarray: nested lists of one shape are needed: {_entry(path)} has shape {shape} and {_entry(other)} "
        f"has shape {otherwise}",
        hint="fill up the shorter ones: a tensor has no rows of different lengths",
    )


def _first_ragged(data: Any, path: tuple[int, ...]) -> Any:
    """The first two entries of nested lists that differ in shape, each with its path; None if all shapes are equal."""
    if not isinstance(data, (list, tuple)) or len(path) > DEEPEST:
        return None
    for i, item in enumerate(data):
        inner = _first_ragged(item, (*path, i))
        if inner is not None:
            return inner
    shapes = [_shape_of(item) for item in data]
    others = [i for i, shape in enumerate(shapes) if shape != shapes[0]]
    return (((*path, others[0]), shapes[others[0]]), ((*path, 0), shapes[0])) if others else None


def _shape_of(data: Any) -> tuple[int, ...]:
    """The shape of nested lists whose entries have equal shapes."""
    shape: tuple[int, ...] = ()
    while isinstance(data, (list, tuple)) and len(shape) <= DEEPEST:
        shape = (*shape, len(data))
        if not data:
            return shape
        data = data[0]
    return (*shape, *getattr(data, "shape", ()))


def _entry(path: tuple[int, ...]) -> str:
    """
    >>> _entry((1, 0))
    'x[1][0]'
    """
    return "x" + "".join(f"[{i}]" for i in path)


def _first_tensor(data: Any) -> Tensor | None:
    """The first tensor in nested lists."""
    for item in data:
        found = item if item.__class__ is Tensor else _first_tensor(item) if isinstance(item, (list, tuple)) else None
        if found is not None:
            return found
    return None


def _stacked(data: Any, device: Any) -> Tensor:
    """Nested lists with tensors as one tensor; gradients flow back to each of them."""
    return stack([_stacked(d, device) if isinstance(d, (list, tuple)) else asarray(d, device=device) for d in data])


def _listed(shape: Any) -> Any:
    if isinstance(shape, (bytes, str, dict, set)):
        raise TypeError("not a sequence of integers")
    return shape


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple([operator.index(s) for s in ((shape,) if hasattr(shape, "__index__") else _listed(shape))])
    except (TypeError, ConversionError):
        hint = "the generator has the functions: generator.normal((2, 3))" if hasattr(shape, "take_blocks") else None
        raise ShapeError(f"a shape is an integer or a sequence of integers, not {shown(shape)}", hint=hint) from None
    if sizes and min(sizes) < 0:
        raise ShapeError(f"a shape has no negative sizes: {shown(sizes)}")
    check_memory("a new tensor", sizes)
    return sizes


def _made(tensor: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def full(
    shape: int | Sequence[int], fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor filled with one number.

    >>> mg.full((2,), 7).tolist()
    [7, 7]
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if not isinstance(value, (int, float, np.generic)):
        raise ConversionError(f"full: the value is a number, not {shown(value)}")
    made = dtypes.scalar_type(value) if dtype is None else dtypes.as_dtype(dtype)
    if value.__class__ is float:
        dtypes.check_fits("full", value, value, made)  # which NumPy would wrap around
    return _made(emit(P.full, shape=_shape(shape), value=value, dtype=made, device=as_device(device)), requires_grad)


def zeros(shape: int | Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros, of dtype float32 by default.

    >>> mg.zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return full(shape, 0, dtypes.default_float if dtype is None else dtype, device, requires_grad)


def ones(shape: int | Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones, of dtype float32 by default.

    >>> mg.ones(3).tolist()
    [1.0, 1.0, 1.0]
    """
    return full(shape, 1, dtypes.default_float if dtype is None else dtype, device, requires_grad)


def empty(shape: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor to be filled later.  It holds zeros, so that unwritten elements are the same everywhere.

    >>> mg.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, device)


def full_like(x: Tensor, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one number, of the shape, dtype and device of another.

    >>> mg.full_like(mg.ones(2), 3).tolist()
    [3.0, 3.0]
    """
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, x.device if device is None else device)


def zeros_like(x: Tensor, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape, dtype and device of another tensor.

    >>> mg.zeros_like(mg.ones(2)).tolist()
    [0.0, 0.0]
    """
    return full_like(x, 0, dtype, device)


def ones_like(x: Tensor, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape, dtype and device of another tensor.

    >>> mg.ones_like(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return full_like(x, 1, dtype, device)


def empty_like(x: Tensor, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor to be filled later, of the shape, dtype and device of another.

    >>> mg.empty_like(mg.ones((2, 3))).shape
    (2, 3)
    """
    return zeros_like(x, dtype, device)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers from `start` up to, not including, `stop`.

    >>> mg.arange(3).tolist(), mg.arange(1.0, 2.0, 0.5).tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ConversionError("arange: the step must not be 0")
    if not all(math.isfinite(number) for number in (start, stop, step)):
        raise ConversionError(f"arange: start, stop and step are finite numbers, not {start}, {stop} and {step}")
    made = dtypes.result_type(start, stop, step) if dtype is None else dtypes.as_dtype(dtype)
    count = max(0, math.ceil((stop - start) / step))
    check_memory("arange", (count,))
    return emit(P.arange, start=start, step=step, count=count, dtype=made, device=as_device(device))


def linspace(
    start: float, stop: float, num: int, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` numbers from `start` to `stop`, evenly spaced.

    >>> mg.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    made = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    if whole(num, 0) is None:
        raise ConversionError(f"linspace: num is an integer, 0 or more, not {shown(num)}")
    check_memory("linspace", (num,))
    return asarray(np.linspace(start, stop, num, endpoint=endpoint), dtype=made, device=device)


@composed
def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on its `k`-th diagonal and zeros elsewhere.

    >>> mg.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    made = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    here = as_device(device)
    width = rows if columns is None else columns
    for what, size in (("rows", rows), ("columns", width)):
        if whole(size, 0) is None:
            raise ConversionError(f"eye: {what} is an integer, 0 or more, not {shown(size)}")
    _check_k("eye", k)
    check_memory("eye", (rows, width))
    row = reshape(arange(rows, device=here), (rows, 1))
    return (row + min(max(k, -rows), width) == arange(width, device=here)).astype(made)


def _check_k(name: str, k: Any) -> None:
    if whole(k) is None:
        raise ConversionError(f"{name}: k is the number of a diagonal, an integer, not {shown(k)}")


def _corner(x: Tensor, k: int, lower: bool) -> Tensor:
    if x.ndim < 2:
        raise ShapeError(f"tril and triu are for matrices, and this tensor has shape {x.shape}")
    rows, columns = x.shape[-2:]
    _check_k("tril" if lower else "triu", k)
    k = min(max(k, -rows), columns)
    row, column = reshape(arange(rows, device=x.device), (rows, 1)), arange(columns, device=x.device)
    keep = less_equal(column, row + k) if lower else less_equal(row + k, column)
    return where(keep, x, False if x.dtype.kind == "b" else 0)


@method
@composed
def tril(x: Tensor, k: int = 0) -> Tensor:
    """The lower triangle, up to the `k`-th diagonal, zeros above it.

    >>> mg.tril(mg.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _corner(x, k, lower=True)


@method
@composed
def triu(x: Tensor, k: int = 0) -> Tensor:
    """The upper triangle, from the `k`-th diagonal, zeros below it.

    >>> mg.triu(mg.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _corner(x, k, lower=False)


def broadcast_arrays(*tensors: Any) -> list[Tensor]:
    """The tensors, or lists of numbers, broadcast against each other: views, or the tensors themselves.

    >>> [t.shape for t in mg.broadcast_arrays(mg.ones((2, 1)), [1, 2, 3])]
    [(2, 3), (2, 3)]
    """
    first = _first_tensor(tensors)
    made = [asarray(t, device=None if first is None else first.device) for t in tensors]
    shape = broadcast_shapes("broadcast_arrays", [t.shape for t in made])
    return [broadcast_to(t, shape) for t in made]


@composed
def meshgrid(*tensors: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid from coordinates along its axes.

    >>> [t.tolist() for t in mg.meshgrid(mg.arange(2), mg.arange(2), indexing="ij")]
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise ConversionError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    count = len(tensors)
    lined = [reshape(t, (*[1] * i, t.size, *[1] * (count - i - 1))) for i, t in enumerate(tensors)]
    grid = broadcast_arrays(*lined) if count > 1 else lined
    swap = indexing == "xy" and count > 1
    return [(swapaxes(t, 0, 1) if swap else t).copy() for t in grid]




declare(  # one of several results; the backward pass collects the gradients of all of them
    Primitive("project", "structural", ("x",), lambda x, index: (x.shape[index], x.dtype[index]), {"x": lambda g: g},
              promotes=(), linear=("x",), formula="x_i")
)
