"""Sample calls for every primitive and every composed function: the registry's tests run all of them.

To test a new primitive, add `sample("name", inputs..., attribute=...)` here and its NumPy version to `references.py`.
Cover the special cases: no elements, no dimensions, sizes of 1, zeros in products, ties, infinities, nans, integers
and bools, half precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minigrad.core.primitive import P


@dataclass(frozen=True)
class Sample:
    """One call of a primitive: NumPy arrays and Python numbers, and the attributes."""

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True  # whether central differences approximate the gradient here: not at kinks, ties and infinities

    def __str__(self) -> str:
        words = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        return f"{self.op}({', '.join([*words, *(f'{k}={v}' for k, v in self.attrs.items())])})".replace("::", ":")


SAMPLES: dict[str, list[Sample]] = {}
_random = np.random.default_rng(20)
_offset = 0.0


def sample(op: str, *inputs: Any, smooth: bool = True, **attrs: Any) -> None:
    """Add a sample call of a primitive."""
    SAMPLES.setdefault(op, []).append(Sample(op, inputs, attrs, smooth))


def values(*shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = np.float64) -> Any:
    """Random numbers that are not close to an integer or to each other, and so not close to a kink."""
    size = int(np.prod(shape))
    global _offset
    _offset = (_offset + 0.0007) % 0.01
    grid = np.arange(low, high, 0.01) + _offset
    away = grid[(np.abs(grid - np.round(grid)) > 0.05)]
    step = max(1, len(away) // max(size, 1) - 1)
    chosen = _random.permutation(away[::step])[:size]
    assert len(chosen) == size, "too many values for this range"
    return chosen.reshape(shape).astype(dtype)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: Any = np.int64) -> Any:
    """Random integers, the upper limit excluded."""
    return _random.integers(low, high, shape).astype(dtype)


def bools(*shape: int) -> Any:
    """Random bools."""
    return _random.random(shape) < 0.5


INF, NAN = np.inf, np.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, INF, -INF, NAN])

# Elementwise: of one input --------------------------------------------------------------------------------------------

RANGES = {"log": (0.1, 3.0), "log1p": (-0.8, 3.0), "sqrt": (0.1, 3.0)}
for _name in ("negative", "abs", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf",
              "floor", "round"):
    _low, _high = RANGES.get(_name, (-2.0, 2.0))
    sample(_name, values(2, 3, low=_low, high=_high))
    sample(_name, values(low=_low, high=_high))
    sample(_name, values(0, 3))
    sample(_name, values(1, 4, low=_low, high=_high, dtype=np.float32))
    sample(_name, values(5, low=_low, high=_high, dtype=np.float16))
    sample(_name, SPECIAL, smooth=False)
    sample(_name, SPECIAL.astype(np.float32), smooth=False)
    sample(_name, integers(2, 3, low=1), smooth=False)
    sample(_name, integers(4, low=1, dtype=np.int8), smooth=False)
    sample(_name, integers(4, low=0, dtype=np.uint8), smooth=False)
for _name in ("exp", "log", "sqrt", "tanh"):
    sample(_name, bools(3), smooth=False)

# Elementwise: of two inputs -------------------------------------------------------------------------------------------

ARITHMETIC = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum", "atan2",
              "less", "less_equal", "equal")
for _name in ARITHMETIC:
    sample(_name, values(2, 3), values(2, 3))
    sample(_name, values(3, 1), values(1, 4))
    sample(_name, values(2, 1, 3), values(3))
    sample(_name, values(2, 3), 1.75)
    sample(_name, 1.75, values(2, 3))
    sample(_name, values(), values(3))
    sample(_name, values(), values())
    sample(_name, values(0, 3), values(3))
    sample(_name, values(3, 4, dtype=np.float32), values(4, dtype=np.float32))
    sample(_name, values(3, dtype=np.float16), values(2, 3, dtype=np.float16), smooth=False)
    sample(_name, values(3, dtype=np.float32), 2, smooth=False)
    sample(_name, values(3, dtype=np.float32), integers(3, low=1), smooth=False)
    sample(_name, SPECIAL[:, None], SPECIAL, smooth=False)
    sample(_name, SPECIAL[:, None].astype(np.float32), SPECIAL.astype(np.float32), smooth=False)
    sample(_name, integers(2, 3, low=1), integers(2, 3, low=1), smooth=False)
    sample(_name, integers(2, 3), 3, smooth=False)
    sample(_name, integers(4, low=1, dtype=np.int8), integers(4, low=1, dtype=np.uint8), smooth=False)
for _name in ("add", "multiply", "maximum", "minimum", "less", "less_equal", "equal"):
    sample(_name, bools(2, 3), bools(3), smooth=False)
sample("pow", values(2, 3, low=0.1), values(2, 3))
sample("pow", values(3, 1, low=0.1), values(4))
sample("pow", values(2, 3), 3.0)
sample("pow", values(2, 3), -2.0)
sample("pow", values(2, 3, low=0.1), 0.5)
sample("pow", values(2, 3), 0.0)
sample("pow", values(2, 3), 1.0)
sample("pow", 2.5, values(2, 3))
sample("pow", values(0), 2.0)
sample("pow", values(3, dtype=np.float32), 3)
sample("pow", values(3, low=0.1, dtype=np.float16), values(3, dtype=np.float16))
sample("pow", np.array([0.0, 0.0, 0.0, 2.0]), np.array([3.0, 1.0, 2.0, 0.0]), smooth=False)
sample("pow", SPECIAL[:, None], SPECIAL, smooth=False)
sample("pow", 0.0, values(3, low=0.1))
sample("pow", integers(2, 3), integers(3, low=0), smooth=False)
sample("pow", integers(2, 3), 2, smooth=False)

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    sample(_name, integers(2, 3), integers(3))
    sample(_name, bools(2, 3), bools(3))
    sample(_name, integers(3, low=0, dtype=np.uint8), 5)
    sample(_name, integers(2, dtype=np.int8), integers(2, dtype=np.int32))
    sample(_name, bools(0), bools(0))
sample("bitwise_invert", integers(2, 3))
sample("bitwise_invert", bools(3))
sample("bitwise_invert", integers(low=0, dtype=np.uint8))
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    sample(_name, integers(2, 3), integers(3, low=0))
    sample(_name, integers(4, dtype=np.int32), 2)
    sample(_name, integers(low=0, dtype=np.uint8), 1)

sample("where", bools(2, 3), values(2, 3), values(2, 3))
sample("where", bools(3), values(2, 1), values(3))
sample("where", bools(2, 3), values(2, 3), 0.5)
sample("where", bools(2, 3), 0.5, values(2, 3))
sample("where", np.array([0.0, -2.0, NAN]), 1.5, -0.5, smooth=False)
sample("where", True, values(3), 0.5)
sample("where", bools(), values(), values(2))
sample("where", bools(3), np.array([NAN, 1.0, INF]), values(3), smooth=False)
sample("where", bools(3), values(3, dtype=np.float32), integers(3), smooth=False)
sample("where", bools(3), integers(3, dtype=np.int8), 3, smooth=False)
sample("where", bools(0, 3), values(3), values(0, 1))

sample("astype", values(2, 3), dtype=np.dtype("float64"))
sample("astype", values(2, 3), dtype=np.dtype("float32"), smooth=False)
sample("astype", values(2, 3), dtype=np.dtype("int32"))
sample("astype", values(), dtype=np.dtype("float16"), smooth=False)
sample("astype", np.array([0.0, -0.0, 2.0, NAN]), dtype=np.dtype("bool"))
sample("astype", bools(3), dtype=np.dtype("float32"))
sample("astype", integers(2, 0), dtype=np.dtype("float64"))

sample("bitcast", SPECIAL.astype(np.float32), dtype=np.dtype("int32"))
sample("bitcast", values(2, 3), dtype=np.dtype("int64"))
sample("bitcast", integers(), dtype=np.dtype("float64"))
sample("bitcast", integers(0, 3, dtype=np.int8), dtype=np.dtype("uint8"))

# Views ----------------------------------------------------------------------------------------------------------------

sample("reshape", values(2, 6), shape=(3, 4))
sample("reshape", values(2, 3), shape=(6,))
sample("reshape", values(1), shape=())
sample("reshape", values(), shape=(1, 1))
sample("reshape", values(0, 3), shape=(3, 0))
sample("reshape", integers(2, 3), shape=(3, 1, 2))
sample("permute_dims", values(2, 3, 4), axes=(2, 0, 1))
sample("permute_dims", values(2, 3), axes=(0, 1))
sample("permute_dims", values(), axes=())
sample("permute_dims", values(0, 3), axes=(1, 0))
sample("permute_dims", bools(2, 3), axes=(1, 0))
sample("broadcast_to", values(3), shape=(2, 3))
sample("broadcast_to", values(2, 1, 3), shape=(4, 2, 5, 3))
sample("broadcast_to", values(), shape=(2, 2))
sample("broadcast_to", values(1), shape=(0,))
sample("broadcast_to", values(1, 1), shape=(1, 1))
sample("broadcast_to", integers(1), shape=(3,))
_all = slice(None)
sample("slice", values(4, 5), index=(slice(1, 3), ...))
sample("slice", values(4, 5), index=(_all, slice(None, None, -2), ...))
sample("slice", values(4, 5), index=(-1, ...))
sample("slice", values(4, 5), index=(..., 2))
sample("slice", values(4, 5), index=(1, 2, ...))
sample("slice", values(4, 5), index=(None, ..., None, slice(3, None)))
sample("slice", values(4), index=(slice(3, 1), ...))
sample("slice", values(), index=(...,))
sample("slice", integers(2, 3, 4), index=(slice(None, None, -1), ..., 0))
_pair = {"axis": (1, 2), "size": (2, 3), "stride": (2, 1), "dilation": (1, 2)}
sample("windows", values(2, 5, 6), **_pair)
sample("windows", values(6), axis=(0,), size=(3,), stride=(1,), dilation=(1,))
sample("windows", values(2, 3, 4), axis=(2, 0), size=(2, 1), stride=(1, 1), dilation=(1, 3))
sample("windows", values(0, 4), axis=(1,), size=(4,), stride=(3,), dilation=(1,))
sample("windows", integers(5, 2), axis=(0,), size=(2,), stride=(3,), dilation=(1,))

# Reductions -----------------------------------------------------------------------------------------------------------

for _name in ("sum", "prod", "max", "min"):
    _dtype = {"dtype": None} if _name in ("sum", "prod") else {}
    sample(_name, values(2, 3), axis=(1,), keepdims=False, **_dtype)
    sample(_name, values(2, 3), axis=(0, 1), keepdims=False, **_dtype)
    sample(_name, values(2, 3), axis=(0,), keepdims=True, **_dtype)
    sample(_name, values(2, 3, 2), axis=(2, 0), keepdims=False, **_dtype)
    sample(_name, values(2, 3), axis=(), keepdims=False, **_dtype)
    sample(_name, values(), axis=(), keepdims=True, **_dtype)
    sample(_name, values(2, 1, 3), axis=(1,), keepdims=False, **_dtype)
    sample(_name, values(0, 3), axis=(1,), keepdims=False, **_dtype)
    sample(_name, values(3, 4, dtype=np.float32), axis=(0,), keepdims=False, **_dtype)
    sample(_name, values(4, dtype=np.float16), axis=(0,), keepdims=True, **_dtype)
    sample(_name, SPECIAL, axis=(0,), keepdims=False, smooth=False, **_dtype)
    sample(_name, SPECIAL[:6].reshape(2, 3), axis=(1,), keepdims=False, smooth=False, **_dtype)
    sample(_name, integers(2, 3), axis=(1,), keepdims=False, smooth=False, **_dtype)
for _name in ("sum", "prod"):
    sample(_name, values(0, 3), axis=(0,), keepdims=True, dtype=None)
    sample(_name, values(0), axis=(0,), keepdims=False, dtype=None)
    sample(_name, integers(2, 3, dtype=np.int8), axis=(0,), keepdims=False, dtype=np.dtype("int64"), smooth=False)
    sample(_name, bools(2, 3), axis=(0, 1), keepdims=False, dtype=np.dtype("int64"), smooth=False)
    sample(_name, values(5, dtype=np.float32), axis=(0,), keepdims=False, dtype=np.dtype("float64"), smooth=False)
sample("prod", np.array([2.0, 0.0, 3.0]), axis=(0,), keepdims=False, dtype=None)
sample("prod", np.array([[2.0, 0.0, 0.0], [1.0, 5.0, 0.0]]), axis=(1,), keepdims=False, dtype=None)
sample("prod", np.array([[2.0, 0.0], [0.0, 5.0]]), axis=(1, 0), keepdims=True, dtype=None)
sample("max", np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), axis=(1,), keepdims=False, smooth=False)
sample("min", bools(2, 3), axis=(0,), keepdims=False, smooth=False)
for _name in ("argmax", "argmin"):
    sample(_name, values(2, 3), axis=1)
    sample(_name, values(2, 3), axis=0)
    sample(_name, values(3, 1, 2), axis=1)
    sample(_name, np.array([2, 5, 5, 2]), axis=0)
    sample(_name, np.array([1.0, NAN, 3.0]), axis=0)
    sample(_name, bools(4), axis=0)
    sample(_name, values(0, 3), axis=1)
for _name in ("cumulative_sum", "cumulative_prod"):
    sample(_name, values(2, 3), axis=1, dtype=None)
    sample(_name, values(2, 3), axis=0, dtype=None)
    sample(_name, values(2, 3, 2), axis=1, dtype=None)
    sample(_name, values(0, 3), axis=0, dtype=None)
    sample(_name, values(2, 1), axis=1, dtype=None)
    sample(_name, np.array([2.0, 0.0, 3.0, 0.0, 5.0]), axis=0, dtype=None)
    sample(_name, values(4, dtype=np.float32), axis=0, dtype=None)
    sample(_name, integers(4, dtype=np.int8), axis=0, dtype=np.dtype("int64"), smooth=False)
    sample(_name, np.array([1.0, INF, 2.0, NAN]), axis=0, dtype=None, smooth=False)

# Index ----------------------------------------------------------------------------------------------------------------

sample("gather", values(4, 3), np.array([2, 0, 2]))
sample("gather", values(4, 3), np.array([[-1, 0], [1, 1]]))
sample("gather", values(4, 3), np.array([1, 2]), np.array([0, -1]))
sample("gather", values(4, 3), np.array([[1], [2]]), np.array([0, 2]))
sample("gather", values(4, 3), np.array(1))
sample("gather", values(4), np.array([], np.int64))
sample("gather", values(0, 3), np.array([], np.int64))
sample("gather", integers(4, 3), np.array([1, 1], np.int8))
sample("scatter_add", values(4, 3), values(2, 3), np.array([0, 2]))
sample("scatter_add", values(4, 3), values(3, 3), np.array([1, 1, -3]))
sample("scatter_add", values(4), values(), np.array([1, 1]))
sample("scatter_add", values(4, 3), values(2), np.array([0, 0]), np.array([1, 1]))
sample("scatter_add", values(4, 3), values(0, 3), np.array([], np.int64))
sample("scatter_add", integers(4), integers(3), np.array([0, 0, 3]))
sample("scatter_max", values(4, 3), values(2, 3), np.array([0, 2]))
sample("scatter_max", values(4, 3), values(3, 3), np.array([1, 1, -3]))
sample("scatter_max", values(4), values(), np.array([1, 1]), smooth=False)
sample("scatter_max", values(4, 3), values(2), np.array([0, 0]), np.array([1, 1]))
sample("scatter_max", values(4, 3), values(0, 3), np.array([], np.int64))
sample("scatter_max", integers(4), integers(3), np.array([0, 0, 3]))
sample("scatter_max", np.array([1.0, NAN, -INF]), np.array([NAN, 5.0, -INF]), np.array([0, 1, 2]), smooth=False)
_rows = (P.slice, {"index": (slice(1, None), ...)})
_back = (P.slice, {"index": (..., slice(None, None, -1))})
_turn = (P.permute_dims, {"axes": (1, 0)})
sample("put", values(4, 3), values(3, 3), chain=(_rows,))
sample("put", values(4, 3), values(4, 3), chain=())
sample("put", values(4, 3), 2.0, chain=(_rows, _back))
sample("put", values(4, 3), values(3, 1), chain=(_turn,))
sample("put", values(4, 3), values(3), chain=(_turn, (P.slice, {"index": (..., 0)})))
sample("put", values(4, 3), values(2, 3), np.array([0, 2]), chain=())
sample("put", values(4, 3), values(3, 3), np.array([1, 1, -3]), chain=())
sample("put", values(4, 3), values(2), np.array([0, 0]), np.array([1, 1]), chain=(_back,))
sample("put", values(4, 3), values(2, 4), np.array([2, 0]), chain=(_turn,))
sample("put", values(4), values(), np.array([[0, 1], [1, 3]]), chain=())
sample("put", integers(4), integers(2), np.array([0, 3]), chain=())
sample("put", values(0, 3), values(3), chain=())
sample("place", values(2, 3), shape=(4, 3), index=(slice(1, 3), ...))
sample("place", values(2), shape=(4, 3), index=(slice(None, None, -2), 1, ...))
sample("place", values(), shape=(2,), index=(1, ...))
sample("place", values(0, 3), shape=(2, 3), index=(slice(2, None), ...))
sample("place", bools(2), shape=(4,), index=(slice(0, 2), ...))
_pair = {"axis": (1, 2), "stride": (2, 1), "dilation": (1, 2)}
sample("overlap_add", values(2, 2, 2, 2, 3), **_pair, shape=(2, 5, 6))
sample("overlap_add", values(4, 3), axis=(0,), stride=(1,), dilation=(1,), shape=(6,))
sample("overlap_add", values(3, 3, 2, 2, 1), axis=(2, 0), stride=(1, 1), dilation=(1, 3), shape=(3, 3, 3))
sample("overlap_add", values(0, 1, 4), axis=(1,), stride=(3,), dilation=(1,), shape=(0, 4))
sample("overlap_add", integers(2, 2, 2), axis=(0,), stride=(3,), dilation=(1,), shape=(6, 2))
sample("overlap_add", values(2, 2, dtype=np.float16), axis=(0,), stride=(1,), dilation=(1,), shape=(3,))
sample("concat", values(2, 3), values(1, 3), axis=0)
sample("concat", values(2, 3), values(2, 0), values(2, 2), axis=1)
sample("concat", values(2), axis=0)
sample("concat", values(2, dtype=np.float32), integers(2), axis=0, smooth=False)
sample("concat", bools(2), bools(1), axis=0)
for _down in (False, True):
    sample("argsort", values(3, 4), axis=1, descending=_down)
    sample("argsort", np.array([2, 1, 2, 1, 3]), axis=0, descending=_down)
    sample("argsort", np.array([[1.0, NAN, -INF, 0.0]]), axis=1, descending=_down)
    sample("argsort", values(0, 2), axis=0, descending=_down)
    sample("argsort", bools(4), axis=0, descending=_down)
    sample("argsort", values(4, 3), axis=0, descending=_down, count=2)
    sample("sort", values(3, 4), axis=1, descending=_down)
    sample("sort", integers(6), axis=0, descending=_down, smooth=False)
    sample("sort", np.array([[1.0, NAN, -INF, 0.0]]), axis=1, descending=_down, smooth=False)
    sample("sort", values(0, 2), axis=0, descending=_down)
    sample("sort", bools(4), axis=0, descending=_down, smooth=False)
    sample("sort", values(5, 2, dtype=np.float16), axis=0, descending=_down, smooth=False)

# Contractions ---------------------------------------------------------------------------------------------------------


def positive(*shape: int, dtype: Any = np.float64) -> Any:
    """Symmetric matrices whose eigenvalues are all positive, and far from 0."""
    x = values(*shape)
    return (x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


sample("matmul", values(2, 3), values(3, 4))
sample("matmul", values(2, 3, 4), values(4, 5))
sample("matmul", values(2, 1, 3, 4), values(5, 4, 2))
sample("matmul", values(3, 4), values(2, 4, 1))
sample("matmul", values(2, 0), values(0, 3))
sample("matmul", values(0, 3, 2), values(2, 4))
sample("matmul", values(1, 1), values(1, 1))
sample("matmul", values(3, 4, dtype=np.float32), values(4, 2, dtype=np.float32))
sample("matmul", values(2, 3, dtype=np.float16), values(3, 2, dtype=np.float16), smooth=False)
sample("matmul", values(2, 3, dtype=np.float32), integers(3, 2), smooth=False)
sample("matmul", integers(2, 3), integers(3, 2), smooth=False)
sample("matmul", integers(2, 3, dtype=np.int8, low=-3, high=4), integers(2, 3, 2, dtype=np.int16), smooth=False)
sample("matmul", bools(2, 3), bools(3, 2), smooth=False)
sample("solve", positive(3, 3), values(3, 2))
sample("solve", positive(2, 3, 3), values(3, 1))
sample("solve", positive(3, 3), values(2, 1, 3, 2))
sample("solve", positive(1, 1), values(1, 0))
sample("solve", values(0, 0), values(0, 2))
sample("solve", positive(0, 2, 2), values(0, 2, 1))
sample("solve", positive(3, 3, dtype=np.float32), values(3, 2, dtype=np.float32))
sample("solve", positive(2, 2, dtype=np.float16), values(2, 1, dtype=np.float16), smooth=False)
sample("solve", np.array([[2, 1], [0, 4]]), integers(2, 3), smooth=False)
for _name in ("cholesky", "slogdet", "eigh", "svd"):
    sample(_name, positive(3, 3))
    sample(_name, positive(2, 1, 2, 2))
    sample(_name, positive(1, 1))
    sample(_name, values(0, 0))
    sample(_name, positive(0, 3, 3))
    sample(_name, positive(3, 3, dtype=np.float32))
    sample(_name, positive(2, 2, dtype=np.float16), smooth=False)
    sample(_name, np.array([[4, 2], [2, 5]]), smooth=False)
sample("slogdet", values(3, 3))
sample("slogdet", np.array([[0.0, 1.0], [1.0, 0.0]]))

for _shape in ((4, 2), (2, 4), (2, 3, 2)):
    sample("svd", values(*_shape))
    sample("pinv", values(*_shape), np.full((1, 1), 1e-15))
for _shape in ((3, 3), (4, 2), (2, 3, 1), (0, 3, 2)):
    sample("qr", values(*_shape), complete=False)
sample("qr", integers(3, 2), complete=True, smooth=False)  # which has no gradient
sample("qr", values(3, 2, dtype=np.float32), complete=False)
sample("qr", np.array([[4, 2], [2, 5]]), complete=False, smooth=False)
sample("pinv", positive(2, 3, 3), np.full((2, 1, 1), 1e-15))
sample("pinv", positive(3, 3, dtype=np.float32), np.full((1, 1), 1e-6, np.float32))

# Creation -------------------------------------------------------------------------------------------------------------

sample("full", shape=(2, 3), value=2.5, dtype=np.dtype("float32"), device=None)
sample("full", shape=(), value=True, dtype=np.dtype("bool"), device=None)
sample("full", shape=(0, 2), value=-3, dtype=np.dtype("int16"), device=None)
sample("arange", start=2, step=3, count=4, dtype=np.dtype("int64"), device=None)
sample("arange", start=1.5, step=-0.25, count=3, dtype=np.dtype("float32"), device=None)
sample("arange", start=0, step=1, count=0, dtype=np.dtype("float64"), device=None)

# Primitives whose tests are elsewhere.
ELSEWHERE = {
    "to_device": "tests/devices: its result is on another device",
    "print": "tests/compile/test_effects.py: what it does is not its result",
    "breakpoint": "tests/compile/test_effects.py: what it does is not its result",
    **dict.fromkeys(
        ("allreduce", "allreduce_max", "broadcast", "allgather", "reduce_scatter", "start_allreduce", "wait"),
        "tests/distributed/test_collectives.py: an attribute is a communicator",
    ),
    "call": "tests/autodiff/test_custom.py: its gradient rule is the caller's",
    "random": "tests/test_random.py: its values are not NumPy's",
    "cond": "tests/compile/control/test_control.py: its attributes are traced functions",
    "while_loop": "tests/compile/control/test_control.py",
    "scan": "tests/compile/control/test_control.py",
    "project": "tests/autodiff/test_reverse.py, with an operation of several results",
}
