"""A stand-in for CuPy without a GPU: NumPy behind a class that is as strict as CuPy's and differs in the same ways.

* Its arrays are not NumPy arrays and do not mix with them.  Each is on one device, and only the current one computes.
* It has only names that CuPy has (a test compares names and signatures with the real CuPy if it is installed).
* Where CuPy's behaviour is undefined or differs from NumPy's, the stand-in chooses the worst case for code that
  relies on NumPy: integer indices wrap around, the *first* of equal indices wins, wide shifts are taken modulo the
  width, float divisions round twice, negative powers of integers are silent, `maximum` cannot reduce, and few types
  can be added atomically.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any

import numpy as np

CURRENT = [0]  # the current device, innermost last
LINALG = ["ignore"]  # the reaction to a singular matrix: cupyx.errstate(linalg=...)
SCALARS = (bool, int, float, np.generic)
CALLS: list[str] = []  # the ufuncs that ran


def host(x: Any) -> Any:
    """The NumPy array behind an argument.  Arguments that CuPy would refuse are refused."""
    if isinstance(x, ndarray):
        if x._device != CURRENT[-1]:
            raise ValueError(
                "Array device must be same as the current device: "
                f"array device = {x._device} while current = {CURRENT[-1]}"
            )
        return x._host
    if isinstance(x, SCALARS):
        return x
    raise TypeError(f"Unsupported type {type(x)}")


def made(result: Any, base: ndarray | None = None) -> ndarray:
    """An array of the stand-in; a view if it shares the memory of `base`."""
    array = object.__new__(ndarray)
    array._host = np.asarray(result)
    array._device = CURRENT[-1] if base is None else base._device
    is_view = base is not None and np.may_share_memory(array._host, base._host)
    array.base = (base if base.base is None else base.base) if is_view else None
    return array


class Flags:
    """Stands for CuPy's flags: no array is read-only."""

    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous, self.f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.owndata = array.base is None


class ndarray:
    """Stands for cupy.ndarray."""

    __slots__ = ("__weakref__", "_device", "_host", "base")
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None) -> None:
        raise NotImplementedError("the stand-in makes arrays by asarray, zeros ...")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    strides = property(lambda self: self._host.strides)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    flags = property(lambda self: Flags(self._host))
    device = property(lambda self: Device(self._device))
    T = property(lambda self: made(self._host.T, self))

    def get(self) -> np.ndarray:
        return self._host.copy()

    def item(self) -> Any:
        return self._host.item()

    def tolist(self) -> Any:
        return self._host.tolist()

    def __len__(self) -> int:
        return len(self._host)

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    # in other shapes and types

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        return made(self._host.reshape(*shape, order=order), self)

    def swapaxes(self, first: int, second: int) -> ndarray:
        return made(self._host.swapaxes(first, second), self)

    def transpose(self, *axes: Any) -> ndarray:
        return made(self._host.transpose(*axes), self)

    def view(self, dtype: Any = None) -> ndarray:
        return made(self._host.view(dtype), self)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return made(host(self).astype(dtype, order=order))

    def copy(self, order: str = "C") -> ndarray:
        return made(self._host.copy(order=order))  # to the current device, from any device

    def fill(self, value: Any) -> None:
        host(self).fill(host(value))

    # reductions

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).sum(axis=axis, dtype=dtype, keepdims=keepdims))

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).prod(axis=axis, dtype=dtype, keepdims=keepdims))

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).max(axis=axis, keepdims=keepdims))

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).min(axis=axis, keepdims=keepdims))

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).any(axis=axis, keepdims=keepdims))

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).all(axis=axis, keepdims=keepdims))

    def argmax(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).argmax(axis))

    def argmin(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return made(host(self).argmin(axis))

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
        return made(host(self).cumsum(axis, dtype))

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
        return made(host(self).cumprod(axis, dtype))

    def dot(self, b: Any, out: Any = None) -> ndarray:
        return made(host(self).dot(host(b)))

    # indexing

    def __getitem__(self, index: Any) -> ndarray:
        found = self._host[_wrapped(self, index)]
        return made(found, self) if _is_view(index) else made(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        target, value = host(self), np.asarray(host(value))
        key = _wrapped(self, index)
        if _is_view(index) or isinstance(key, np.ndarray) or key[0].dtype.kind == "b":
            target[key] = value
            return
        places = np.broadcast_arrays(*key)
        values = np.broadcast_to(value, target[key].shape).reshape(-1, *target.shape[len(key) :])
        for n in range(places[0].size)[::-1]:
            target[tuple(p.flat[n] for p in places)] = values[n]


def _is_view(index: Any) -> bool:
    return not any(isinstance(i, ndarray) for i in (index if isinstance(index, tuple) else (index,)))


def _wrapped(array: ndarray, index: Any) -> Any:
    items = index if isinstance(index, tuple) else (index,)
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, (int, np.integer, slice, ndarray))):
            raise TypeError(f"the stand-in is not indexed with {type(item)}")
    if _is_view(index):
        return index
    if not all(isinstance(item, ndarray) for item in items):
        raise NotImplementedError("the stand-in knows arrays of indices for the leading dimensions only")
    if items[0].dtype.kind == "b":
        return tuple(host(item) for item in items)
    return tuple(host(item).astype(np.int64) % max(size, 1) for item, size in zip(items, array.shape))


class ufunc:
    """Stands for cupy.ufunc; `at` names the types that its atomic form takes."""

    def __init__(self, name: str, function: Any, inputs: int, reduces: bool = False, at: str = "") -> None:
        self.name = self.__name__ = f"cupy_{name}"
        self.function, self.nin, self.reduces, self.types_at = function, inputs, reduces, at.split()

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> ndarray:
        CALLS.append(self.name)
        if len(args) > self.nin:
            *args, out = args
        if out is None and not any(isinstance(a, ndarray) for a in args):
            return made(self.function(*map(host, args)))
        result = made(self.function(*map(host, args)))
        if out is None:
            return result
        if not np.can_cast(result.dtype, out.dtype, casting):
            raise TypeError(f"output (typecode '{result.dtype.char}') could not be coerced to '{out.dtype.char}'")
        host(out)[...] = result._host
        return out

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if not self.reduces:
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return made(self.function.reduce(host(array), axis, dtype, None, keepdims))

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if a.dtype.name not in self.types_at:
            raise TypeError(f"{self.name}.at only supports {self.types_at}")
        self.function.at(host(a), _wrapped(a, indices) if indices != () else (), host(b))


def _power(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind == "f":
        return np.power(x, y)
    return np.where(y < 0, np.where(x == 1, 1, 0), np.power(x, np.where(y < 0, 0, y))).astype(np.result_type(x, y))


def _floor_divide(x: Any, y: Any) -> Any:
    return np.floor(x / y) if np.result_type(x, y).kind == "f" else np.floor_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    return x - np.floor(x / y) * y if np.result_type(x, y).kind == "f" else np.remainder(x, y)


def _shift(function: Any) -> Any:
    return lambda x, y: function(x, y % (8 * np.result_type(x, y).itemsize))


UFUNCS = {
    1: "negative absolute exp expm1 log log1p sqrt sin cos tanh floor rint invert isnan signbit",
    2: "true_divide arctan2 less less_equal equal greater greater_equal not_equal subtract fmod copysign "
       "bitwise_and bitwise_or bitwise_xor",
}
ATOMIC_ADD = "int32 uint32 uint64 float16 float32 float64"
ATOMIC_MAX = "int32 uint32 uint64 float32 float64"


def _functions() -> dict[str, Any]:
    table: dict[str, Any] = {n: ufunc(n, getattr(np, n), k) for k, names in UFUNCS.items() for n in names.split()}
    table["add"] = ufunc("add", np.add, 2, reduces=True, at=ATOMIC_ADD)
    table["multiply"] = ufunc("multiply", np.multiply, 2, reduces=True)
    table["maximum"] = ufunc("maximum", np.maximum, 2, at=ATOMIC_MAX)
    table["minimum"] = ufunc("minimum", np.minimum, 2, at=ATOMIC_MAX)
    table["power"] = ufunc("power", _power, 2)
    table["floor_divide"] = ufunc("floor_divide", _floor_divide, 2)
    table["remainder"] = ufunc("remainder", _remainder, 2)
    table["left_shift"] = ufunc("left_shift", _shift(np.left_shift), 2)
    table["right_shift"] = ufunc("right_shift", _shift(np.right_shift), 2)
    return table


FUNCTIONS = _functions()
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift",
}
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}


def _add_operators() -> None:
    def forward(f: ufunc) -> Any:
        return lambda self, other: f(self, other)

    def reflected(f: ufunc) -> Any:
        return lambda self, other: f(other, self)

    def in_place(f: ufunc) -> Any:
        return lambda self, other: f(self, other, out=self)

    for short, name in OPERATORS.items():
        setattr(ndarray, f"__{short}__", forward(FUNCTIONS[name]))
        setattr(ndarray, f"__r{short}__", reflected(FUNCTIONS[name]))
        setattr(ndarray, f"__i{short}__", in_place(FUNCTIONS[name]))
    for short, name in COMPARISONS.items():
        setattr(ndarray, f"__{short}__", forward(FUNCTIONS[name]))
    for short, name in {"neg": "negative", "abs": "absolute", "invert": "invert"}.items():
        setattr(ndarray, f"__{short}__", (lambda f: lambda self: f(self))(FUNCTIONS[name]))


_add_operators()

# Functions with CuPy's signatures -------------------------------------------------------------------------------------


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    return made(np.array(a, dtype, order=order))


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
) -> ndarray:
    return made(np.array(host(obj), dtype, copy=copy, order=order))


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return made(np.ascontiguousarray(host(a), dtype), a)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> np.ndarray:
    return np.array(a._host, order=order) if isinstance(a, ndarray) else np.asarray(a, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return made(np.zeros(shape, dtype))


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    array = np.empty(shape, dtype)
    array.view(np.uint8 if array.ndim else array.dtype).fill(1)  # whatever was there before
    return made(array)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    return made(np.arange(start, stop, step, dtype) if stop is not None else np.arange(0, start, step, dtype))


def where(condition: Any, x: Any = None, y: Any = None) -> ndarray:
    return made(np.where(condition.astype("?", copy=False)._host, host(x), host(y)))


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    np.copyto(host(dst), host(src), casting=casting, where=True if where is None else host(where))


def broadcast_to(array: ndarray, shape: Any) -> ndarray:
    if not isinstance(array, ndarray):
        raise TypeError(f"unsupported type {type(array)}")
    return made(np.lib.stride_tricks.as_strided(array._host, np.broadcast_to(array._host, shape).shape,
                                                np.broadcast_to(array._host, shape).strides), array)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    return made(np.lib.stride_tricks.as_strided(x._host, shape, strides), x)


def concatenate(tup: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    return made(np.concatenate([host(t) for t in tup], axis))


def stack(tup: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    return made(np.stack([host(t) for t in tup], axis))


def flip(a: ndarray, axis: Any = None) -> ndarray:
    return made(np.flip(host(a), axis), a)


def argmax(a: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    return a.argmax(axis)


def argmin(a: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    return a.argmin(axis)


def argsort(a: ndarray, axis: int = -1, kind: Any = None) -> ndarray:
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    if not a.size:
        raise RuntimeError("nothing to sort")
    return made(np.argsort(host(a), axis, kind="stable"))


def take_along_axis(a: ndarray, indices: ndarray, axis: int) -> ndarray:
    return made(np.take_along_axis(host(a), host(indices), axis))


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    return tuple(made(i) for i in np.nonzero(host(a)))


def argwhere(a: ndarray) -> ndarray:
    return made(np.argwhere(host(a)))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*[a.dtype if isinstance(a, ndarray) else a for a in arrays_and_dtypes])


def matmul(*args: Any, **kwargs: Any) -> ndarray:
    return made(np.matmul(*map(host, args), **kwargs))


def _linalg(function: Any) -> Any:
    def apply(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*map(host, args), **kwargs)
        except np.linalg.LinAlgError:
            if LINALG[-1] == "raise":
                raise
            return made(np.full_like(host(args[-1]), np.nan))
        return tuple(map(made, result)) if isinstance(result, tuple) else made(result)

    return apply


@contextlib.contextmanager
def errstate(
    *, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None, linalg: Any = None
) -> Any:
    LINALG.append(linalg or LINALG[-1])
    try:
        yield
    finally:
        LINALG.pop()


def _erf(x: Any) -> Any:
    from math import erf

    doubled = np.vectorize(erf, otypes=[np.float64])(x)
    return doubled.astype(np.float32) if np.asarray(x).dtype == np.float32 else doubled  # 'e->d', 'f->f', 'd->d'


class Device:
    """Stands for cupy.cuda.Device; `SYNCHRONIZED` lists the devices that were synchronised."""

    def __init__(self, device: int = 0) -> None:
        self.id = device

    def __enter__(self) -> Device:
        CURRENT.append(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        CURRENT.pop()

    def synchronize(self) -> None:
        SYNCHRONIZED.append(self.id)


SYNCHRONIZED: list[int] = []


class CUDARuntimeError(RuntimeError):
    """Stands for cupy.cuda.runtime.CUDARuntimeError."""


def modules(count: int = 2, failure: str | None = None) -> dict[str, types.ModuleType]:
    """The modules for `sys.modules`: of a machine with `count` GPUs, or of one whose CUDA fails with this message."""

    def count_or_fail() -> int:
        if failure:
            raise CUDARuntimeError(failure)
        return count

    here = globals()
    names = (
        "ndarray asarray array ascontiguousarray asnumpy zeros empty arange where copyto broadcast_to concatenate "
        "stack flip argmax argmin argsort take_along_axis nonzero argwhere result_type matmul"
    ).split()
    cupy = types.ModuleType("cupy")
    vars(cupy).update(FUNCTIONS | {name: here[name] for name in names})
    for name in ("uint8", "uint32", "uint64", "int32", "int64", "float16", "float32", "float64"):
        setattr(cupy, name, getattr(np, name))
    cupy.linalg = types.SimpleNamespace(  # type: ignore[attr-defined]
        **{name: _linalg(getattr(np.linalg, name)) for name in "solve cholesky slogdet eigh svd qr pinv".split()}
    )
    strides = types.SimpleNamespace(as_strided=as_strided)
    cupy.lib = types.SimpleNamespace(stride_tricks=strides)  # type: ignore[attr-defined]
    runtime = types.SimpleNamespace(getDeviceCount=count_or_fail, CUDARuntimeError=CUDARuntimeError)
    cupy.cuda = types.SimpleNamespace(Device=Device, runtime=runtime)  # type: ignore[attr-defined]
    cupyx, scipy, special = (types.ModuleType(n) for n in ("cupyx", "cupyx.scipy", "cupyx.scipy.special"))
    cupyx.errstate, special.erf = errstate, ufunc("erf", _erf, 1)  # type: ignore[attr-defined]
    cupyx.scipy, scipy.special = scipy, special  # type: ignore[attr-defined]
    return {m.__name__: m for m in (cupy, cupyx, scipy, special)}
