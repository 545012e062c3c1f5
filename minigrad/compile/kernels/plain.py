"""Kernels as plain data that JSON can hold, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes
from .ir import Accumulate, Accumulator, For, Kernel, Let, Parameter, Prefetch, Statement, Store
from .verify import verify


def kernel_as_data(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain data."""
    return {
        "name": kernel.name,
        "parameters": [[p.name, p.dtype.name, p.size, p.role] for p in kernel.parameters],
        "body": [_statement(s) for s in kernel.body],
        "units": kernel.units,
        "parallel": kernel.parallel,
    }


def kernel_from_data(data: dict[str, Any]) -> Kernel:
    """The kernel that plain data stands for, verified."""
    parameters = [Parameter(name, dtypes.ALL[dtype], size, role) for name, dtype, size, role in data["parameters"]]
    body = [_read_statement(s) for s in data["body"]]
    kernel = Kernel(data["name"], parameters, body, data["units"], data["parallel"])
    verify(kernel)
    return kernel


def _statement(statement: Statement) -> list[Any]:
    if isinstance(statement, Let):
        return ["let", statement.name, statement.op, [_operand(a) for a in statement.args], statement.dtype.name]
    if isinstance(statement, Store):
        return ["store", statement.buffer, _operand(statement.index), _operand(statement.value)]
    if isinstance(statement, Accumulate):
        return ["accumulate", statement.op, statement.buffer, _operand(statement.index), _operand(statement.value)]
    if isinstance(statement, Prefetch):
        return ["prefetch", statement.buffer, _operand(statement.index)]
    accumulators = [[a.name, a.op, _operand(a.value), a.dtype.name] for a in statement.accumulators]
    body = [_statement(s) for s in statement.body]
    low, high = _operand(statement.low), _operand(statement.high)
    return ["for", statement.variable, low, high, body, accumulators, statement.steps]


def _read_statement(data: Any) -> Statement:
    kind, *rest = data
    if kind == "let":
        name, op, args, dtype = rest
        return Let(name, op, tuple([_read_operand(a) for a in args]), dtypes.ALL[dtype])
    if kind == "store":
        buffer, index, value = rest
        return Store(buffer, _read_operand(index), _read_operand(value))
    if kind == "accumulate":
        op, buffer, index, value = rest
        return Accumulate(op, buffer, _read_operand(index), _read_operand(value))
    if kind == "prefetch":
        buffer, index = rest
        return Prefetch(buffer, _read_operand(index))
    if kind != "for":
        raise ValueError(f"there is no statement {kind!r}")
    variable, low, high, body, accumulators, steps = rest
    read = [Accumulator(name, op, _read_operand(v), dtypes.ALL[dtype]) for name, op, v, dtype in accumulators]
    return For(variable, _read_operand(low), _read_operand(high), [_read_statement(s) for s in body], read, steps)


def _operand(value: Any) -> Any:
    """A name, a number, or an index as data: what is infinite or nan has no form in JSON."""
    if isinstance(value, tuple):
        return [_operand(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return {"float": str(value)} if value.__class__ is float and not math.isfinite(value) else value


def _read_operand(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([_read_operand(v) for v in data])
    return float(data["float"]) if isinstance(data, dict) else data
