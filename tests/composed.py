"""Sample calls of the functions that are composed of primitives, with NumPy's results for the same calls.

`composed("name", call, arrays...)`: `call(mg, *tensors)` must equal `call(np, *arrays)`, or `like(*arrays)` where
NumPy's function has a different name or does not exist.  Functions with their own tests are named at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.samples import SPECIAL, bools, integers, values


class Composed(NamedTuple):
    name: str
    call: Callable[..., Any]  # (mg or np, *tensors or *arrays)
    arrays: tuple[Any, ...]
    like: Callable[..., Any]  # (*arrays)
    smooth: bool


COMPOSED: dict[str, list[Composed]] = {}


def composed(name: str, call: Any, *arrays: Any, like: Any = None, smooth: bool = True) -> None:
    """Add a sample call.  Its gradient is checked by differences if the function is `smooth` there."""
    reference = like or (lambda *given: call(np, *given))
    COMPOSED.setdefault(name, []).append(Composed(name, call, arrays, reference, smooth))


def everywhere(name: str, like: Any, count: int, low: float = -2.0, high: float = 2.0, smooth: bool = True) -> None:
    """Samples of an elementwise function: plain, broadcast, empty, without dimensions, special values, integers."""

    def call(m: Any, *xs: Any) -> Any:
        return getattr(m, name)(*xs)

    shapes = [(2, 3), (3,)] if count == 2 else [(2, 3)]
    composed(name, call, *[values(*s, low=low, high=high) for s in shapes], like=like, smooth=smooth)
    composed(name, call, *[values(low=low, high=high) for _ in shapes], like=like, smooth=smooth)
    composed(name, call, *[values(0, 3) for _ in shapes], like=like, smooth=smooth)
    composed(name, call, *[values(4, low=low, high=high, dtype=np.float32) for _ in shapes], like=like, smooth=False)
    composed(name, call, *([SPECIAL[:, None], SPECIAL] if count == 2 else [SPECIAL]), like=like, smooth=False)


# Elementwise ----------------------------------------------------------------------------------------------------------

for _name in ("greater", "greater_equal", "not_equal", "logical_and", "logical_or", "logical_xor"):
    everywhere(_name, getattr(np, _name), 2)
for _name in ("isnan", "isinf", "isfinite", "signbit", "logical_not", "sign", "trunc", "ceil"):
    everywhere(_name, getattr(np, _name), 1)
for _name in ("square", "reciprocal", "positive", "sinh", "cosh"):
    everywhere(_name, getattr(np, _name), 1)
everywhere("tan", np.tan, 1, low=-1.4, high=1.4)
everywhere("conj", np.conj, 1)
everywhere("real", np.real, 1)
everywhere("imag", lambda x: x * 0, 1, smooth=False)
del COMPOSED["imag"][-1]  # the sign of nan is 0
composed("imag", lambda m, x: m.imag(x), SPECIAL, like=lambda x: np.zeros(x.shape), smooth=False)
for _name, _like, _low, _high in (
    ("log2", np.log2, 0.1, 3), ("log10", np.log10, 0.1, 3), ("acosh", np.arccosh, 1.1, 3),
    ("asin", np.arcsin, -0.9, 0.9), ("acos", np.arccos, -0.9, 0.9), ("atanh", np.arctanh, -0.9, 0.9),
    ("atan", np.arctan, -2, 2), ("asinh", np.arcsinh, -2, 2),
):
    everywhere(_name, _like, 1, low=_low, high=_high)
everywhere("hypot", np.hypot, 2)
everywhere("logaddexp", np.logaddexp, 2)
everywhere("copysign", np.copysign, 2)
everywhere("nextafter", np.nextafter, 2, smooth=False)
everywhere("copy", np.copy, 1)
composed("pow", lambda m, x, y: m.pow(x, y), values(2, 3, low=0.1), values(3), like=np.power)
for _exponent in (2, 0.5, -1, 3, 0, 1, -2.0):
    composed(
        "pow",
        lambda m, x, e=_exponent: m.pow(x, e),
        values(2, 3, low=0.1),
        like=lambda x, e=_exponent: np.power(x, float(e)),
    )
composed("pow", lambda m, x: m.pow(x, 2), integers(3), like=lambda x: x**2)
composed("pow", lambda m, x: m.pow(x, 0.5), np.array([0.0, np.inf, np.nan]), like=lambda x: x**0.5, smooth=False)
for _name in ("logical_and", "greater"):
    composed(_name, lambda m, x, y, n=_name: getattr(m, n)(x, y), bools(3), bools(2, 3), smooth=False)
    composed(_name, lambda m, x, y, n=_name: getattr(m, n)(x, y), integers(3), integers(3), smooth=False)
for _name in ("ceil", "trunc", "sign", "square", "isfinite", "isnan"):
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x), integers(2, 3), smooth=False)
everywhere("exp2", np.exp2, 1)
for _name in ("fmax", "fmin"):
    everywhere(_name, getattr(np, _name), 2)
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, 1), integers(2, 3))
for _equal in (False, True):
    everywhere("isclose", np.isclose, 2)
    composed("isclose", lambda m, x, y, e=_equal: m.isclose(x, y, equal_nan=e), SPECIAL[:, None], SPECIAL)
composed("isclose", lambda m, x: m.isclose(x, x + 0.01, rtol=0.01), values(9, low=0.5))
composed("isclose", lambda m, x, y: m.isclose(x, y, atol=1), integers(9), integers(9))
composed("isclose", lambda m, x, y: m.isclose(x, y), bools(9), bools(9))
composed("allclose", lambda m, x: m.allclose(x, x + 1e-9), values(2, 3))
composed("allclose", lambda m, x, y: m.allclose(x, y), values(2, 3), values(3))
for _decimals in (2, 1, 0, -1):
    composed("round", lambda m, x, d=_decimals: m.round(x, d), values(2, 5, low=-30, high=30), smooth=False)
    composed("round", lambda m, x, d=_decimals: m.round(x, d), integers(5, low=-30, high=30))
composed("clip", lambda m, x: m.clip(x, -1.0, 1.0), values(2, 5))
composed("clip", lambda m, x: m.clip(x, -0.5), values(5), like=lambda x: np.clip(x, -0.5, None))
composed("clip", lambda m, x: m.clip(x, max=0.5), values(5), like=lambda x: np.clip(x, None, 0.5))
composed(
    "clip", lambda m, x, a, b: m.clip(x, a, b), values(2, 3), values(3, low=-2, high=-1), values(2, 1, low=1, high=2)
)
composed("clip", lambda m, x: m.clip(x), values(3), like=np.copy)
composed("clip", lambda m, x: m.clip(x, 0, 1), SPECIAL, smooth=False)
composed("clip", lambda m, x: m.clip(x, -1, 3), integers(5), smooth=False)

# Reductions -----------------------------------------------------------------------------------------------------------

for _name in ("mean", "var", "std"):
    for _axis in (None, 0, -1, (0, 2), ()):
        composed(
            _name, lambda m, x, n=_name, a=_axis: getattr(m, n)(x, axis=a), values(2, 3, 2),
            smooth=_name != "std" or _axis != (),
        )
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, axis=1, keepdims=True), values(2, 3))
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x), values(4, dtype=np.float32), smooth=False)
composed("mean", lambda m, x: m.mean(x, axis=0), values(0, 2), like=lambda x: np.full(2, np.nan), smooth=False)
composed("mean", lambda m, x: m.mean(x), SPECIAL, smooth=False)
for _correction in (1, 0.5, 3):
    composed(
        "var",
        lambda m, x, c=_correction: m.var(x, correction=c),
        values(4),
        like=lambda x, c=_correction: np.var(x, ddof=c),
    )
composed("std", lambda m, x: m.std(x, axis=0, correction=1), values(3, 2), like=lambda x: np.std(x, axis=0, ddof=1))
for _name in ("nansum", "nanmean"):
    for _axis in (None, 0, (0, 1)):
        composed(_name, lambda m, x, n=_name, a=_axis: getattr(m, n)(x, axis=a), values(2, 3))
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, axis=1, keepdims=True), np.array([[1, np.nan], [2.5, 4]]),
             smooth=False)
for _name in ("all", "any", "count_nonzero"):
    for _axis in (None, 0, -1):
        composed(_name, lambda m, x, n=_name, a=_axis: getattr(m, n)(x, axis=a), bools(2, 3))
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, axis=1, keepdims=True), integers(2, 3, low=0, high=2))
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x), SPECIAL)
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, axis=0), values(0, 2))
for _name in ("mean", "var", "std"):
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x, axis=0), bools(4, 3))
for _axis in (None, 0, -1, (0, 2)):
    composed("median", lambda m, x, a=_axis: m.median(x, axis=a), values(2, 5, 2))
    composed("quantile", lambda m, x, a=_axis: m.quantile(x, 0.3, axis=a, keepdims=True), values(2, 5, 2))
    composed("quantile", lambda m, x, a=_axis: m.quantile(x, np.array([[0, 0.25], [0.6, 1]]), axis=a), values(2, 5, 2))
    composed("median", lambda m, x, a=_axis: m.median(x, axis=a, keepdims=True), values(2, 1, 3))
composed("median", lambda m, x: m.median(x), integers(4))
composed("median", lambda m, x: m.median(x, axis=0), np.array([[1, np.inf, np.nan], [np.inf, np.inf, 1]]), smooth=False)
composed("quantile", lambda m, x, q: m.quantile(x, q), values(4), np.array(0.25), smooth=False)
composed("interp", lambda m, x, xp, fp: m.interp(x, xp, fp), values(2, 9, low=-1, high=5), np.arange(4.0), values(4))
composed("interp", lambda m, x, xp, fp: m.interp(x, xp, fp), values(3), np.arange(1.0), values(1), smooth=False)
composed("diff", lambda m, x: m.diff(x, axis=0), values(4, 2))
composed("diff", lambda m, x: m.diff(x, n=2), values(5))
composed("diff", lambda m, x, y: m.diff(x, prepend=y), values(3), values(1))

# Views ----------------------------------------------------------------------------------------------------------------

composed("expand_dims", lambda m, x: m.expand_dims(x, axis=1), values(2, 3))
composed("expand_dims", lambda m, x: m.expand_dims(x, axis=(0, -1)), values(2, 3))
composed("squeeze", lambda m, x: m.squeeze(x), values(1, 2, 1))
composed("squeeze", lambda m, x: m.squeeze(x, axis=-1), values(1, 2, 1))
composed("flatten", lambda m, x: m.flatten(x), values(2, 3), like=np.ravel)
composed("flatten", lambda m, x: m.flatten(x, 1), values(2, 3, 2), like=lambda x: x.reshape(2, 6))
composed("flatten", lambda m, x: m.flatten(x), values(), like=np.ravel)
for _axis in (None, 0, -1, (0, 1)):
    composed("flip", lambda m, x, a=_axis: m.flip(x, axis=a), values(2, 3))
composed("moveaxis", lambda m, x: m.moveaxis(x, 0, -1), values(2, 3, 4))
composed("moveaxis", lambda m, x: m.moveaxis(x, (0, 2), (1, 0)), values(2, 3, 4))
composed("swapaxes", lambda m, x: m.swapaxes(x, 0, -1), values(2, 3, 4))
composed("matrix_transpose", lambda m, x: m.matrix_transpose(x), values(2, 3, 4), like=lambda x: np.swapaxes(x, -1, -2))
composed("unstack", lambda m, x: m.unstack(x, axis=1), values(2, 3), like=lambda x: tuple(x[:, i] for i in range(3)))
composed("broadcast_arrays", lambda m, x: tuple(m.broadcast_arrays([[1], [2]], x)), values(3), smooth=False)
composed("broadcast_arrays", lambda m, x, y: tuple(m.broadcast_arrays(x, y)), values(2, 1), values(3))

# Index ----------------------------------------------------------------------------------------------------------------

composed("take", lambda m, x, i: m.take(x, i, axis=1), values(2, 4), np.array([0, -1, 0]))
composed("take", lambda m, x, i: m.take(x, i, axis=0), values(3, 2), np.array([[0, 1], [2, 2]]))
composed("take", lambda m, x, i: m.take(x, i), values(4), np.array([3, 0]))
composed("take_along_axis", lambda m, x, i: m.take_along_axis(x, i, axis=1), values(2, 3), np.array([[2, 0], [1, 1]]))
composed("take_along_axis", lambda m, x, i: m.take_along_axis(x, i, axis=0), values(3, 2), np.array([[-1, 0]]))
composed("scatter_max", lambda m, b, i, v: m.scatter_max(b, i, v), values(3), np.array([0, 2, 0]), values(3),
         like=lambda b, i, v: np.array([max(b[0], v[0], v[2]), b[1], max(b[2], v[1])]))
composed("scatter_add", lambda m, b, i, v: m.scatter_add(b, i, v), values(3), np.array([0, 2, 0]), values(3),
         like=lambda b, i, v: b + np.array([v[0] + v[2], 0, v[1]]))
composed("concat", lambda m, x, y: m.concat([x, y], axis=None), values(2, 2), values(3),
         like=lambda x, y: np.concatenate([x.ravel(), y]))
composed("stack", lambda m, x, y: m.stack([x, y]), values(2, 3), values(2, 3))
composed("stack", lambda m, x, y: m.stack([x, y], axis=-1), values(2, 3), values(2, 3))
composed("split", lambda m, x: tuple(m.split(x, 3)), values(6))
composed("split", lambda m, x: tuple(m.split(x, [1, 3], axis=1)), values(2, 4))
composed("pad", lambda m, x: m.pad(x, 1), values(2, 3))
composed("pad", lambda m, x: m.pad(x, ((1, 0), (0, 2)), value=3.0), values(2, 3),
         like=lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=3.0))
composed(
    "pad", lambda m, x: m.pad(x, (0, 2), value=1), integers(3), like=lambda x: np.pad(x, (0, 2), constant_values=1)
)
for _mode in ("edge", "reflect", "symmetric", "wrap"):
    composed("pad", lambda m, x, d=_mode: m.pad(x, ((1, 0), (0, 2)), mode=d), values(2, 3))
    composed("pad", lambda m, x, d=_mode: m.pad(x, 5, mode=d), values(3))
composed("pad", lambda m, x: m.pad(x, ((0, 0), (1, 1)), mode="edge"), values(0, 3))
for _shift, _axis in ((1, None), (-2, 0), (7, 1), ((1, 2), (0, 1)), (0, 0)):
    composed("roll", lambda m, x, s=_shift, a=_axis: m.roll(x, s, axis=a), values(3, 4))
for _counts in (2, (2,), (2, 1, 3), (0, 1)):
    composed("tile", lambda m, x, c=_counts: m.tile(x, c), values(2, 3))
for _repeats, _axis in ((2, None), (3, 0), (2, 1), (0, 1), ([1, 0, 2], 1)):
    composed("repeat", lambda m, x, r=_repeats, a=_axis: m.repeat(x, r, axis=a), values(2, 3))
composed("nonzero", lambda m, x: m.nonzero(x), integers(3, 4, low=0, high=2))
composed("nonzero", lambda m, x: m.nonzero(x), SPECIAL)
composed("topk", lambda m, x: m.topk(x, 2), values(3, 4), like=lambda x: (-np.sort(-x)[:, :2], np.argsort(-x)[:, :2]))
composed("topk", lambda m, x: m.topk(x, 1, axis=0, largest=False), values(3, 2),
         like=lambda x: (np.sort(x, axis=0)[:1], np.argsort(x, axis=0)[:1]))
composed("searchsorted", lambda m, x, v: m.searchsorted(x, v), np.array([1.0, 2.0, 2.0, 5.0]), values(2, 3) * 3)
composed("searchsorted", lambda m, x, v: m.searchsorted(x, v, side="right"), np.array([1, 2, 2, 5]), integers(6))
composed("unique_values", lambda m, x: m.unique_values(x), integers(9), like=np.unique)
composed(
    "unique_counts",
    lambda m, x: tuple(m.unique_counts(x)),
    integers(9),
    like=lambda x: np.unique(x, return_counts=True),
)
composed("unique_inverse", lambda m, x: m.unique_inverse(x)[1], integers(3, 3),
         like=lambda x: np.unique(x, return_inverse=True)[1].reshape(x.shape))
composed("unique_all", lambda m, x: tuple(m.unique_all(x)), integers(9),
         like=lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True))

# Creation -------------------------------------------------------------------------------------------------------------

for _name in ("zeros_like", "ones_like"):
    composed(_name, lambda m, x, n=_name: getattr(m, n)(x), integers(2, 3))
composed("empty_like", lambda m, x: m.empty_like(x), values(2, 3), like=np.zeros_like)
composed("full_like", lambda m, x: m.full_like(x, 3), values(2, 3, dtype=np.float32))
for _k in (-3, -1, 0, 2):
    for _name in ("tril", "triu"):
        composed(_name, lambda m, x, n=_name, k=_k: getattr(m, n)(x, k=k), values(2, 3, 4))
composed("tril", lambda m, x: m.tril(x), bools(3, 3))
composed("meshgrid", lambda m, x, y: tuple(m.meshgrid(x, y)), values(2), values(3))
composed("meshgrid", lambda m, x, y: tuple(m.meshgrid(x, y, indexing="ij")), values(2), values(3))
composed("zeros", lambda m: m.zeros((2, 0)))
composed("ones", lambda m: m.ones(3))
composed("empty", lambda m: m.empty((2, 2)), like=lambda: np.zeros((2, 2)))
for _rows, _columns, _k in ((3, None, 0), (2, 4, 1), (4, 2, -2), (0, None, 0), (2, 2, 5)):
    composed("eye", lambda m, r=_rows, c=_columns, k=_k: m.eye(r, c, k=k))
for _start, _stop, _count in ((0.0, 1.0, 5), (2, -1, 4), (1.0, 1.0, 1), (0.0, 1.0, 0)):
    composed("linspace", lambda m, a=_start, b=_stop, c=_count: m.linspace(a, b, c), smooth=False)
composed("linspace", lambda m: m.linspace(0.0, math.pi, 7, endpoint=False), smooth=False)

# Windows --------------------------------------------------------------------------------------------------------------

composed("windows", lambda m, x: m.windows(x, 3), values(2, 5),
         like=lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1))
composed(
    "windows", lambda m, x: m.windows(x, (2, 3), axis=(0, 2), stride=(1, 2)), values(3, 2, 7),
    like=lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), (0, 2))[:, :, ::2],
)
composed("overlap_add", lambda m, x: m.overlap_add(x, (2, 4)), values(2, 3, 2),
         like=lambda x: np.pad(x[..., 0], ((0, 0), (0, 1))) + np.pad(x[..., 1], ((0, 0), (1, 0))))

# The modules whose functions have their own tests and references.
ELSEWHERE = {
    "minigrad.ops.contract": "tests/ops/test_contract.py",
    "minigrad.ops.functional": "tests/ops/test_functional.py",
    "minigrad.ops.linalg": "tests/ops/test_linalg.py",
    "minigrad.ops.special": "tests/ops/test_special.py",
    "minigrad.ops.interop": "tests/ops/test_interop.py",
    "minigrad.ops.transfer": "tests/devices/test_devices.py",
}
