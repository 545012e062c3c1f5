"""The language of `expr`: one element of an elementwise operation, in Python syntax.

The loop language of the compiler has an operation for each operator and function here.
A test compares the two lists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..support.errors import DeclarationError

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
    ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.USub: "-x", ast.Invert: "~", ast.Lt: "<", ast.LtE: "<=",
    ast.Eq: "==",
}
FUNCTIONS = {
    "abs": 1, "atan2": 2, "bitcast": 1, "cast": 1, "cos": 1, "erf": 1, "exp": 1,
    "expm1": 1, "floor": 1, "log": 1, "log1p": 1, "max": 2, "min": 2, "pow": 2,
    "rint": 1, "sin": 1, "sqrt": 1, "tanh": 1,
}


def check_expression(name: str, text: str, inputs: tuple[str, ...]) -> None:
    """Raise an error unless `text` computes one element from the inputs.

    >>> check_expression("softsign", "x / (1 + abs(x))", ("x",))
    >>> check_expression("cbrt", "cbrt(x)", ("x",))
    Traceback (most recent call last):
    minigrad.support.errors.DeclarationError: cbrt: expr uses cbrt(x), which the loop language does not have
    ...
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise DeclarationError(f"{name}: expr is not a Python expression: {text}") from error
    for part in _unknown(tree, inputs):
        if isinstance(part, ast.Name):
            raise DeclarationError(
                f"{name}: expr names {part.id}, which is not an input", expect=", ".join(inputs)
            )
        calls = [f"{function}({', '.join('xy'[:n])})" for function, n in FUNCTIONS.items()]
        raise DeclarationError(
            f"{name}: expr uses {ast.unparse(part)}, which the loop language does not have",
            expect=", ".join(["inputs", "numbers", "x if c else y", *OPERATORS.values(), *calls]),
            hint="without expr, the operation calls its kernel and is never fused",
        )


def _unknown(tree: ast.expr, inputs: tuple[str, ...]) -> Iterator[ast.expr]:
    """The parts of an expression that the language does not have."""
    known, operands = False, list[ast.expr]()
    match tree:
        case ast.Name(id=name):
            known = name in inputs
        case ast.Constant(value=int() | float()):
            known = True
        case ast.BinOp(left=left, op=op, right=right):
            known, operands = type(op) in OPERATORS, [left, right]
        case ast.UnaryOp(op=op, operand=operand):
            known, operands = type(op) in OPERATORS, [operand]
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            known, operands = type(op) in OPERATORS, [left, right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            known, operands = True, [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]):
            known = FUNCTIONS.get(name) == len(operands)
    if not known:
        yield tree
    for operand in operands:
        yield from _unknown(operand, inputs)
