"""Converts kernels to plain data for JSON, and back: each statement is a list of its kind and its fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from ...core import dtypes
from ..loops.ir import Accumulate, Accumulator, For, Kernel, Lanes, Let, Parameter, Prefetch, Running, Statement, Store
from ..loops.verify import verify

STATEMENTS = {cls.__name__.lower(): cls for cls in (Let, Store, Accumulate, Running, For, Lanes, Prefetch)}
FIELDS = {cls: [f.name for f in fields(cls)] for cls in (*STATEMENTS.values(), Accumulator, Parameter, Kernel)}


def kernel_as_data(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain data."""
    return dict(zip(FIELDS[Kernel], _as_data(kernel)))


def kernel_from_data(data: dict[str, Any]) -> Kernel:
    """The kernel of plain data, verified."""
    kernel: Kernel = _record(Kernel, [data[name] for name in FIELDS[Kernel]])
    verify(kernel)
    return kernel


def _as_data(value: Any) -> Any:
    """A part of a kernel.  JSON has no form for infinity and nan."""
    if value.__class__ in FIELDS:
        kind = [value.__class__.__name__.lower()] if isinstance(value, Statement) else []
        return [*kind, *[_as_data(getattr(value, name)) for name in FIELDS[value.__class__]]]
    if isinstance(value, (list, tuple)):
        return [_as_data(v) for v in value]
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, np.generic):
        value = value.item()
    return {"float": str(value)} if value.__class__ is float and not math.isfinite(value) else value


def _record(cls: Any, parts: list[Any]) -> Any:
    given = zip(FIELDS[cls], parts, strict=True)
    return cls(**{name: READERS.get(name, _read_operand)(part) for name, part in given})


def _read_statement(data: Any) -> Any:
    kind, *parts = data
    if kind not in STATEMENTS:
        raise ValueError(f"there is no statement {kind!r}")
    return _record(STATEMENTS[kind], parts)


def _read_operand(data: Any) -> Any:
    """A name, a number, or an index."""
    if isinstance(data, list):
        return tuple([_read_operand(v) for v in data])
    return float(data["float"]) if isinstance(data, dict) else data


READERS: dict[str, Callable[[Any], Any]] = {  # of the fields that are not operands
    "dtype": dtypes.ALL.__getitem__,
    "body": lambda data: [_read_statement(s) for s in data],
    "accumulators": lambda data: [_record(Accumulator, parts) for parts in data],
    "parameters": lambda data: [_record(Parameter, parts) for parts in data],
}
