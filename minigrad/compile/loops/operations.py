"""The operations of the loop language: a table, and the steps by which primitives are computed with them.

One entry has everything needed to count, legalise and print an operation.  A text is the form of an operation in one
language, for operands of one kind of dtype: "f" float, "i" integer, "u" unsigned, "b" bool.  It is a name (a function
of C's library, an intrinsic or instruction of LLVM), or a template with `{x}`, `{y}` and `{z}` for the operands.  In
LLVM, `{t}` is their type, `{b}` the type of a bool, `{none}` a number without bits, and `{every}` one with all bits.
In WebAssembly, a text is an instruction, or several in order.  There, `x`, `y`, `z` and numbers are put on the stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ...core.primitive import Primitive
from ...core.tensor import NUMBERS
from ...devices.special import erf
from ...support.source import parsed
from .ir import BOOL, Let, Writer

Text = str | dict[str, str]


@dataclass(frozen=True)
class Operation:
    """An operation on `arity` values of one dtype; `takes` lists the kinds of dtypes.

    `c`, `llvm` and `wasm` are its texts; `cuda` is needed only where CUDA differs from C.  A C text that starts with
    `return` is the body of a function.  Without a text for LLVM or WebAssembly, kernels call the function of C's
    library.
    """

    name: str
    arity: int
    takes: str
    numpy: Any = None  # a function of arrays
    syntax: type[ast.AST] | None = None  # the operator in a primitive's `expr`; without it, a call by name
    c: Text = ""
    llvm: Text = ""
    gives: str = "same"  # the result's dtype: that of the operands, "bool", "any", or "bits" for one of equal size
    cuda: Text = ""
    wasm: Text = ""
    flops: int = 1
    on_bools: str = ""  # the operation that replaces it on bools
    rule: Callable[..., str | None] | None = None  # writes it as simpler operations, see `arithmetic`
    written_out: Callable[..., str | None] | None = None  # the same for float32 and float64 only, see `maths`
    refused: str = ""  # kinds for which the array library raises errors on some values, so that loops cannot replace it
    internal: bool = False  # exists only in legalised kernels

    def text(self, language: str, kind: str) -> str:
        """The text of the operation in a language, for a kind of dtype; "" if there is none.

        >>> OPERATIONS["add"].text("llvm", "i"), OPERATIONS["add"].text("c", "i"), OPERATIONS["exp"].text("c", "i")
        ('add', '{x} + {y}', '')
        """
        text = getattr(self, language)
        if isinstance(text, dict):
            return str(text.get(kind, ""))
        return text if kind in self.takes else ""


def by(**texts: str) -> dict[str, str]:
    """Texts by kind of dtype.

    >>> by(f="fadd", iu="add")
    {'f': 'fadd', 'i': 'add', 'u': 'add'}
    """
    return {kind: text for kinds, text in texts.items() for kind in kinds}


def _position(x: Any, size: Any) -> Any:
    """The position of each number in a dimension, as `arithmetic.position` computes it."""
    return np.minimum(np.maximum(np.where(x < 0, x + size, x), 0), size - 1)


def _of_floats(rounding: Callable[..., Any]) -> Callable[[Any], Any]:
    """The function on floats; integers stay unchanged."""
    return lambda x: rounding(x) if x.dtype.kind == "f" else x


class Rules:
    """The rules in a file of this room, which is loaded when one of them is first used: a kernel needs few of them."""

    def __init__(self, file: str) -> None:
        self.file = f"{__package__}.{file}"

    def __getattr__(self, name: str) -> Callable[..., str | None]:
        def rule(w: Writer, *operands: Any) -> str | None:
            written: str | None = getattr(import_module(self.file), name)(w, *operands)
            return written

        return rule


angles, arithmetic, maths, powers = map(Rules, ("angles", "arithmetic", "maths", "powers"))
ABS = by(f="fabs", i="{x} < 0 ? -{x} : {x}")
MAX = by(f="return {x} > {y} || {x} != {x} ? {x} : {y};", iu="return {x} > {y} ? {x} : {y};")
MIN = by(f="return {x} < {y} || {x} != {x} ? {x} : {y};", iu="return {x} < {y} ? {x} : {y};")
NOT = "xor {t} {x}, {every}"
TABLE = (
    # Arithmetic
    Operation("add", 2, "fiub", np.add, ast.Add, "{x} + {y}", by(f="fadd", iu="add"), on_bools="or", wasm="add"),
    Operation("sub", 2, "fiu", np.subtract, ast.Sub, "{x} - {y}", by(f="fsub", iu="sub"), wasm="sub"),
    Operation("mul", 2, "fiub", np.multiply, ast.Mult, "{x} * {y}", by(f="fmul", iu="mul"), on_bools="and", wasm="mul"),
    Operation("div", 2, "f", np.divide, ast.Div, "{x} / {y}", "fdiv", wasm="div"),
    Operation(
        "neg", 1, "fiu", np.negative, ast.USub, "-{x}", by(f="fneg", iu="sub {t} {none}, {x}"),
        wasm=by(f="neg", iu="0 x sub"),
    ),
    Operation(
        "abs", 1, "fiub", np.absolute, None, ABS, by(f="llvm.fabs", i="llvm.abs false"), rule=arithmetic.size,
        wasm=by(f="abs", i="0 x sub x x 0 lt_s select"),
    ),
    Operation(
        "max", 2, "fiub", np.maximum, None, MAX, by(f="llvm.maximum", i="llvm.smax", u="llvm.umax"), on_bools="or",
        wasm=by(f="max", i="x y y x lt_s select", u="x y y x lt_u select"),
    ),
    Operation(
        "min", 2, "fiub", np.minimum, None, MIN, by(f="llvm.minimum", i="llvm.smin", u="llvm.umin"), on_bools="and",
        wasm=by(f="min", i="x y x y lt_s select", u="x y x y lt_u select"),
    ),
    Operation("floordiv", 2, "fiu", np.floor_divide, ast.FloorDiv, rule=arithmetic.floordiv, refused="iub"),
    Operation("mod", 2, "fiu", np.remainder, ast.Mod, rule=arithmetic.mod, refused="iub"),
    Operation(
        "floor", 1, "fiu", _of_floats(np.floor), c="floor", llvm="llvm.floor", rule=arithmetic.rounded, wasm="floor"
    ),
    Operation(
        "rint", 1, "fiu", _of_floats(np.rint), c="rint", llvm="llvm.rint", rule=arithmetic.rounded, wasm="nearest"
    ),
    # Functions
    Operation("sqrt", 1, "f", np.sqrt, c="sqrt", llvm="llvm.sqrt", wasm="sqrt"),
    Operation("exp", 1, "f", np.exp, c="exp", written_out=maths.exp),
    Operation("expm1", 1, "f", np.expm1, c="expm1", written_out=maths.expm1),
    Operation("log", 1, "f", np.log, c="log", written_out=maths.log),
    Operation("log1p", 1, "f", np.log1p, c="log1p", written_out=maths.log1p),
    Operation("sin", 1, "f", np.sin, c="sin", written_out=angles.sin),
    Operation("cos", 1, "f", np.cos, c="cos", written_out=angles.cos),
    Operation("tanh", 1, "f", np.tanh, c="tanh", written_out=maths.tanh),
    Operation("erf", 1, "f", erf, c="erf", written_out=maths.erf),
    Operation(
        "pow", 2, "f", np.power, ast.Pow, c="pow", rule=powers.pow_of_number, written_out=powers.pow, refused="iub"
    ),
    Operation("atan2", 2, "f", np.arctan2, c="atan2", written_out=angles.atan2),
    # Comparisons and bits
    Operation(
        "lt", 2, "fiub", np.less, ast.Lt, "{x} < {y}", by(f="fcmp olt", i="icmp slt", ub="icmp ult"), "bool",
        wasm=by(f="lt", i="lt_s", ub="lt_u"),
    ),
    Operation(
        "le", 2, "fiub", np.less_equal, ast.LtE, "{x} <= {y}", by(f="fcmp ole", i="icmp sle", ub="icmp ule"), "bool",
        wasm=by(f="le", i="le_s", ub="le_u"),
    ),
    Operation("eq", 2, "fiub", np.equal, ast.Eq, "{x} == {y}", by(f="fcmp oeq", iub="icmp eq"), "bool", wasm="eq"),
    Operation("and", 2, "iub", np.bitwise_and, ast.BitAnd, "{x} & {y}", "and", wasm="and"),
    Operation("or", 2, "iub", np.bitwise_or, ast.BitOr, "{x} | {y}", "or", wasm="or"),
    Operation("xor", 2, "iub", np.bitwise_xor, ast.BitXor, "{x} ^ {y}", "xor", wasm="xor"),
    Operation(
        "invert", 1, "iub", np.invert, ast.Invert, by(iu="~{x}", b="!{x}"), NOT, wasm=by(iu="x -1 xor", b="x 1 xor")
    ),
    Operation("lshift", 2, "iu", np.left_shift, ast.LShift, "{x} << {y}", "shl", rule=arithmetic.lshift, wasm="shl"),
    Operation(
        "rshift", 2, "iu", np.right_shift, ast.RShift, "{x} >> {y}", by(i="ashr", u="lshr"), rule=arithmetic.rshift,
        wasm=by(i="shr_s", u="shr_u"),
    ),
    # A choice by a bool, and conversions, which the printers write themselves
    Operation(
        "select", 3, "fiub", np.where, None, "{x} ? {y} : {z}", "select {b} {x}, {t} {y}, {t} {z}", "any",
        wasm="y z x select",
    ),
    Operation("cast", 1, "fiub", gives="any", flops=0),
    Operation("bitcast", 1, "fiu", gives="bits", flops=0),
    # A position read from memory, within a dimension of a given size: its value is an index like a loop's variable
    Operation("position", 2, "i", _position, rule=arithmetic.position, flops=0),
    # For legalised kernels only: C's division, and the int32 of a float that is in range
    Operation(
        "quotient", 2, "iu", c="{x} / {y}", llvm=by(i="sdiv", u="udiv"), internal=True, wasm=by(i="div_s", u="div_u")
    ),
    Operation(
        "remainder", 2, "fiu", c=by(f="fmod", iu="{x} % {y}"), llvm=by(i="srem", u="urem"), internal=True,
        wasm=by(i="rem_s", u="rem_u"),
    ),
    Operation("copysign", 2, "f", np.copysign, c="copysign", llvm="llvm.copysign", internal=True, wasm="copysign"),
    # A product that the sum of a loop may take in: see `bands`
    Operation("term", 2, "f", np.multiply, c="{x} * {y}", llvm="fmul contract", internal=True, wasm="mul"),
    Operation("fma", 3, "f", c="fma", llvm="llvm.fma", internal=True),
    Operation("whole", 1, "f", gives="any", internal=True),
)
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in TABLE}
# The operation of each reduction.
REDUCTIONS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
ROUNDED = ("sum", "prod")  # the reductions whose steps round their results
SCANS = {"cumulative_sum": "sum", "cumulative_prod": "prod"}  # the reduction of each running total


def operand_dtypes(let: Let, dtype_of: Callable[[str], Any]) -> list[Any]:
    """The dtypes of the operands: a number has the dtype of a named operand, and a choice has a bool first."""
    if let.op == "select":
        return [BOOL, let.dtype, let.dtype]
    given = let.dtype
    for operand in let.args:
        if operand.__class__ is str:
            given = dtype_of(operand)
            break
    return [given] * len(let.args)


# Primitives as steps: a declaration has the formula in Python syntax (`expr="x if condition else y"`) -----------------


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
    if names & {"lshift", "rshift"}:  # the result of a shift by the width of the dtype or more depends on the machine
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
