"""The steps of the loop language that compute one element of an elementwise primitive.

The declaration of a primitive has the formula in Python syntax (`expr="x if condition else y"`), which is parsed once.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ...core.primitive import Primitive
from ...core.tensor import NUMBERS
from ...support.source import parsed
from .operations import OPERATIONS


class Given(NamedTuple):
    """An operand of a step: an input of the primitive."""

    input: int


class Done(NamedTuple):
    """An operand of a step: the result of an earlier one."""

    step: int


class ScalarStep(NamedTuple):
    """One operation of the loop language; its operands are inputs, earlier results and numbers."""

    op: str
    operands: tuple[Any, ...]


SYNTAX: dict[type, str] = {each.syntax: each.name for each in OPERATIONS.values() if each.syntax is not None}


@cache
def steps_of(op: Primitive) -> tuple[ScalarStep, ...]:
    """The steps of a primitive's expression; the last one is its result.

    >>> from minigrad.core.primitive import P
    >>> steps_of(P.where)
    (ScalarStep(op='select', operands=(Given(input=0), Given(input=1), Given(input=2))),)
    """
    steps: list[ScalarStep] = []

    def visit(tree: ast.expr) -> Any:
        if isinstance(tree, ast.Name):
            return Given(op.inputs.index(tree.id))
        if isinstance(tree, ast.Constant):
            return tree.value
        name, operands = _operation(tree)
        step = ScalarStep(name, tuple([visit(operand) for operand in operands]))
        if step not in steps:  # a repeated part of the expression is computed once
            steps.append(step)
        return Done(steps.index(step))

    visit(parsed(op.expr or "", "eval").body)
    return tuple(steps)


def operator_of(tree: ast.expr) -> tuple[type | None, list[ast.expr]]:
    """The operator of an expression, None if it has none, and its operands."""
    if isinstance(tree, ast.BinOp):
        return type(tree.op), [tree.left, tree.right]
    if isinstance(tree, ast.UnaryOp):
        return type(tree.op), [tree.operand]
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return type(tree.ops[0]), [tree.left, *tree.comparators]
    return None, []


def _operation(tree: ast.expr) -> tuple[str, list[ast.expr]]:
    operator, operands = operator_of(tree)
    if operator is not None:
        return SYNTAX[operator], operands
    if isinstance(tree, ast.IfExp):
        return "select", [tree.test, tree.body, tree.orelse]
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return tree.func.id, tree.args
    raise ValueError(f"kernels cannot compute {ast.unparse(tree)}")


def computed_in(node: Node) -> Any:
    """The dtype to which operands are cast: the common dtype of the promoted inputs, where numbers are weak."""
    assert node.op is not None
    return node.op.common_dtype(node.inputs) or node.dtype


def typed(number: Any, dtype: Any) -> Any:
    """A Python number as a value of a dtype.

    >>> typed(2, np.dtype("float32")), typed(True, np.dtype("int64"))
    (2.0, 1)
    """
    return {"f": float, "b": bool}.get(dtype.kind, int)(number)


def has_steps(node: Node) -> bool:
    """Whether loops give the same results as the array library for all values."""
    op = node.op
    if op is None or op.kind != "elementwise" or op.expr is None:
        return False
    names = {step.op for step in steps_of(op)}
    refused = "".join([OPERATIONS[name].refused for name in names])
    if refused and computed_in(node).kind in refused:  # division by zero and negative exponents are errors there
        return False
    if names & {"lshift", "rshift"}:  # machines disagree on shifts by the width of the dtype or more
        by = node.inputs[1]
        return by.__class__ in NUMBERS and 0 <= by < 8 * node.dtype.itemsize
    return True


def accumulated_in(node: Node) -> Any:
    """The dtype in which a reduction accumulates: float16 would lose small terms."""
    if node.dtype == dtypes.float16:
        return dtypes.float32
    return dtypes.int8 if node.dtype.kind == "b" else node.dtype


def identity(op: str, dtype: Any) -> Any:
    """The number that a reduction starts with."""
    if op in ("sum", "prod"):
        return typed(op == "prod", dtype)
    if dtype.kind == "f":
        return -np.inf if op == "max" else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if op == "max" else limits.max)
