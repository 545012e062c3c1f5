"""Declarations of primitives: a contradiction is an error at the declaration."""

import pytest

import minigrad as mg
from minigrad.compile.loops.operations import OPERATIONS, steps_of
from minigrad.core.expression import FUNCTIONS, OPERATORS
from minigrad.core.primitive import P, Primitive
from minigrad.support.errors import DeclarationError


def declared(kind="elementwise", inputs=("x",), **fields):
    return Primitive("cube", kind, inputs, lambda x: (x.shape, x.dtype), **fields)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"kind": "pointwise"}, ["cube: there is no kind 'pointwise'", "elementwise, reduce, view"]),
        ({"kind": "view", "inputs": ("x", "y")}, ["cube: a view shares the memory of one tensor", "x, y"]),
        ({"kind": "view", "inputs": ()}, ["cube: a view shares the memory of one tensor", "none"]),
        ({"kind": "view", "inputs": ("*xs",)}, ["cube: a view shares the memory of one tensor", "*xs"]),
        ({"rules": {"y": lambda g: g}}, ["cube: rules names y, which is not an input"]),
        ({"local": {"y": "1"}}, ["cube: local names y, which is not an input"]),
        ({"linear": ("y",)}, ["cube: linear names y, which is not an input"]),
        ({"promotes": ("x", "y")}, ["cube: promotes names y, which is not an input"]),
        (
            {"rules": {"x": lambda g, y: g * y}},
            ["cube: the gradient rule of x names y, which is not an input", "after g, any of x, out, node, index"],
        ),
        ({"rules": {"x": abs}}, ["cube: the gradient rule of x is a function of g", "<built-in function abs>"]),
        ({"rules": {"x": lambda: 0}}, ["cube: the gradient rule of x is a function of g"]),
        ({"expr": "x *"}, ["cube: expr is not a Python expression: x *"]),
        ({"expr": "x * y"}, ["cube: expr names y, which is not an input"]),
        ({"expr": "x + cbrt(x)"}, ["cube: expr uses cbrt(x), which the loop language does not have", "sqrt(x)"]),
        ({"expr": "max(x)"}, ["cube: expr uses max(x), which the loop language does not have", "max(x, y)"]),
        ({"expr": "x > 0"}, ["cube: expr uses x > 0, which the loop language does not have", "<"]),
        ({"expr": "0 < x < 1"}, ["cube: expr uses 0 < x < 1, which the loop language does not have"]),
        ({"expr": "x.real"}, ["cube: expr uses x.real, which the loop language does not have"]),
        ({"expr": "'x'"}, ["cube: expr uses 'x', which the loop language does not have"]),
    ],
)
def test_contradictory_declarations_are_refused(fields, parts):
    with pytest.raises(DeclarationError) as caught:
        declared(**fields)
    for part in parts:
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_declaration_names_the_line():
    with pytest.raises(DeclarationError, match=r'test_primitive\.py:\d+  Primitive\("cube", "elementwise"'):
        Primitive("cube", "elementwise", ("x",), None, linear=("y",))


def test_second_primitive_of_a_name_is_refused():
    with pytest.raises(DeclarationError, match="there is a primitive named 'add' already"):
        P.declare(Primitive("add", "elementwise", ("x",), None))


def test_a_primitive_that_is_forgotten_is_not_in_the_table_and_can_be_declared_again():
    count = len(P)
    for _ in range(2):
        op = P.declare(Primitive("short_lived", "elementwise", ("x",), lambda x: (x.shape, x.dtype)))
        assert P.short_lived is op and len(P) == count + 1
        P.forget(op)
        P.forget(op)  # a second time does nothing
        assert not hasattr(P, "short_lived") and len(P) == count


def test_rules_may_name_inputs_with_a_star_and_what_is_not_an_input():
    declared("index", ("x", "*indices"), rules={"x": lambda g, indices, node, out, index: g})


CALLS = [f"{name}({', '.join('xy'[:count])})" for name, count in FUNCTIONS.items()]
UNARY = ("-x", "~")


@pytest.mark.parametrize("text", [
    *CALLS, *[f"x {symbol} y" for symbol in OPERATORS.values() if symbol not in UNARY], "-x", "~x", "x if y else 1",
])
def test_the_loop_language_computes_every_expression(text):
    op = declared(inputs=("x", "y"), expr=text)
    assert len(steps_of(op)) == 1


def test_expressions_can_use_every_operation_of_the_loop_language():
    operations = {name: each for name, each in OPERATIONS.items() if not each.internal}
    operations.pop("select")  # it is written as x if condition else y
    operations.pop("position")  # an index from memory
    assert {name: each.arity for name, each in operations.items() if each.syntax not in OPERATORS} == FUNCTIONS
    assert {each.syntax for each in operations.values()} >= set(OPERATORS)


def test_an_error_without_words_is_named():
    class Mute(Exception):
        pass

    def fails(x, y):
        raise Mute

    with mg.devices.register_kernel("atan2", "cpu", fails), pytest.raises(mg.ConversionError, match="atan2: Mute"):
        mg.atan2(mg.ones(2), mg.ones(2))
