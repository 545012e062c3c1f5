"""NumPy's results for the same calls: `tests.odd_inputs` compares accepted calls with these."""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from tests.references import REFERENCES


def _sorted(function: Any) -> Any:
    def ordered(x: Any, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
        found = function(np.flip(x, axis) if descending else x, axis, stable=True)
        if not descending:
            return found
        return np.flip(found if function is np.sort else np.shape(x)[operator.index(axis)] - 1 - found, axis)

    return ordered


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    return np.arange(*((0, start) if stop is None else (start, stop)), step, dtype)


def _eye(rows: Any, columns: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    return np.eye(rows, columns, k, dtype)


def _flatten(x: Any, start: Any = 0, stop: Any = -1) -> Any:
    x = np.atleast_1d(x)
    first, last = range(x.ndim)[start], range(x.ndim)[stop]
    return x.reshape(*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    return np.linalg.norm(x, ord, axis, bool(keepdims))


def _set(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


def _reshape(x: Any, shape: Any, *sizes: Any, copy: Any = None) -> Any:
    return np.reshape(x, (shape, *sizes) if sizes else shape)


# Functions whose NumPy counterpart has a different name or other parameters, or does not exist.
OTHERS: dict[str, Callable[..., Any]] = {
    "mg.arange": _arange,
    "mg.asarray": lambda data, dtype=None: np.asarray(data, dtype),
    "mg.argsort": _sorted(np.argsort),
    "mg.sort": _sorted(np.sort),
    "mg.clip": lambda x, min=None, max=None: np.clip(x, min, max),
    "mg.erf": REFERENCES["erf"],
    "mg.expand_dims": lambda x, axis=0: np.expand_dims(x, axis),
    "mg.eye": _eye,
    "mg.flatten": _flatten,
    "mg.linalg.norm": _norm,
    "mg.pad": lambda x, widths, value=0.0, mode="constant": (
        np.pad(x, widths, constant_values=value) if mode == "constant" else np.pad(x, widths, mode)
    ),
    "mg.relu": lambda x: np.maximum(x, 0),
    "mg.reshape": _reshape,
    "mg.sigmoid": lambda x: REFERENCES["sigmoid"](np.asarray(x) * 1),
    "mg.swapaxes": lambda x, first, second: np.swapaxes(x, first, second),
    "mg.take_along_axis": lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis),
    "mg.astype": lambda x, dtype: np.asarray(x).astype(dtype),
    "mg.unique_values": np.unique,  # NumPy's own leaves the order open
    "Tensor.__getitem__": operator.getitem,
    "Tensor.__setitem__": _set,
    "Tensor.__radd__": lambda x, y: y + x,
    "Tensor.item": lambda x: x.item(),
    "Tensor.tolist": lambda x: x.tolist(),
}
# NumPy's function of this name is a different one, or the result is not a value, or another where it is empty.
NONE = (
    "mg.linalg.lstsq", "mg.trace", "mg.device", "mg.to_device", "mg.empty", "mg.empty_like", "mg.from_dlpack",
    "mg.isdtype",
)
WITHOUT_MEANING = ("device", "requires_grad", "copy", "stream")  # NumPy's results do not depend on these
RENAMED = {"sections": "indices_or_sections", "values": "v"}


def counterpart(name: str, function: Any) -> Callable[..., Any] | None:
    """NumPy's counterpart of a public function, with our function's parameters; None if it does not exist."""
    room, _, own = name.rpartition(".")
    if room == "Tensor" and name not in OTHERS and getattr(mg, own, None) is function:
        name, room = f"mg.{own}", "mg"
    if name in OTHERS:
        return OTHERS[name]
    if name in NONE:
        return None
    if room == "Tensor" and own.startswith("__"):
        return getattr(operator, own, None)
    if room in ("mg", "mg.linalg"):
        return getattr(np if room == "mg" else np.linalg, own, None)
    return None


def plain(given: Any) -> Any:
    """A value with arrays instead of tensors."""
    if isinstance(given, mg.Tensor):
        return given.numpy_copy()
    if type(given) in (list, tuple):
        return type(given)([plain(value) for value in given])
    return given


def called(found: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
    """Calls NumPy's function with the arguments of a call of our function, required ones by position."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    given: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in bound.signature.parameters.values():
        value = bound.arguments.get(parameter.name, parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += plain(bound.arguments.get(parameter.name, ()))
        elif parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            given.append(plain(value))
        elif value is not parameter.default and parameter.name not in WITHOUT_MEANING:
            named[RENAMED.get(parameter.name, parameter.name)] = plain(value)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return found(*given, **named)


def difference(ours: Any, theirs: Any) -> str:
    """The difference of two results; '' if they are equal."""
    if isinstance(ours, (tuple, list)):
        if not isinstance(theirs, (tuple, list)) or len(ours) != len(theirs):
            return f"{len(ours)} results, not {len(theirs) if isinstance(theirs, (tuple, list)) else 'one'}"
        return next((found for pair in zip(ours, theirs) if (found := difference(*pair))), "")
    if isinstance(ours, mg.finfo | mg.iinfo):
        return "" if (ours.bits, ours.max) == (theirs.bits, theirs.max) else f"{ours} not {theirs}"
    if isinstance(ours, np.dtype):
        return "" if ours == theirs else f"{ours}, not {theirs}"
    a, b = np.asarray(plain(ours)), np.asarray(theirs)
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if a.dtype.kind != b.dtype.kind and "u" not in (a.dtype.kind, b.dtype.kind):
        return f"dtype {a.dtype}, not {b.dtype}"
    narrow = np.float32 if a.dtype.kind == "f" else a.dtype
    close = 1e-3 if a.dtype.kind == "f" and 2 in (a.dtype.itemsize, b.dtype.itemsize) else 1e-5
    with np.errstate(all="ignore"):
        same = np.allclose(a.astype(narrow), b.astype(narrow), close, close / 10, equal_nan=True)
    return "" if same else f"{a.tolist()!r:.60}, not {b.tolist()!r:.60}"
