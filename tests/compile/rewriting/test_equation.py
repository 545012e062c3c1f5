"""Equations: the nodes that letters match, malformed equations, and rules of users."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.nodes.graph import node_like
from minigrad.compile.rewriting import Rules, optimise, rule
from minigrad.compile.rewriting.equation import Equation
from minigrad.compile.rewriting.rules import apply_rules
from minigrad.core.primitive import P
from tests.compile.rewriting.recording import Recorded

X, N = np.array([1.5, -2.0], np.float32), np.array([3, 4], np.int32)


def after(text, function, *arrays, **options):
    """The recipes of the outputs after one equation was applied to the graph, and how many times it fired."""
    fired = []
    rules = Rules()
    rules(text, **options)
    graph = apply_rules(Recorded(function, *arrays).graph, rules, lambda *what: fired.append(what))
    (out,) = graph.outputs
    return [out.name, *[getattr(i, "name", i) for i in out.inputs]], len(fired)


def test_letter_matches_one_node():
    assert after("x - x -> 0", lambda x: x - x, N) == (["full"], 1)
    assert after("x - x -> 0", lambda x, y: x - y, N, N) == (["subtract", "constant", "constant"], 0)
    choice = Recorded(lambda x: mg.where(x < 0, x, 1.5), X).graph.outputs[0]
    for x, y, same in ((2.0, 2, True), (0.0, -0.0, False)):
        numbers = node_like(P.where, (choice.inputs[0], x, y), {}, like=choice)
        assert (Equation("where(c, x, x) -> x")(numbers) is not None) == same


def test_numbers_are_compared_by_value_and_sign():
    for text, number, count in (("x * 1 -> x", 1, 1), ("x + 0 -> x", 0.0, 1), ("x + 0 -> x", -0.0, 0)):
        assert after(text, lambda x, n=number, text=text: x * n if "*" in text else x + n, X)[1] == count
    assert after("x * n -> -x", lambda x: x * mg.full((2,), 7.0), X) == (["negative", "constant"], 1)


def test_operations_that_commute_are_found_in_either_order():
    assert after("x + -y -> x - y", lambda x, y: -x + y, X, X)[0][0] == "subtract"
    assert after("n - -x -> x + n", lambda x: -x - 2.0, X)[1] == 0
    assert after("maximum(exp(x), y) -> y", lambda x, y: mg.maximum(y, mg.exp(x)), X, X)[1] == 1
    both = "(x * y) + (x * z) -> x * (y + z)"  # here every order of three operations must be tried
    function = lambda x, y, z: z * x + x * y  # noqa: E731
    assert after(both, function, N, N, N)[0] == ["multiply", "constant", "add"]


def test_numbers_on_the_right_are_calculated_in_the_dtype():
    assert after("x + n -> x * (n * 100)", lambda x: x + 3, np.array([1], np.int8))[0] == ["multiply", "constant", 44]
    assert after("x + n -> x * (1 / n)", lambda x: x + 4, X)[0] == ["multiply", "constant", 0.25]
    assert after("x + n -> x * (1 / n)", lambda x: x + 0, X)[1] == 0  # there is no such number
    assert after("x // n -> x >> log2(n)", lambda x: x // 6, N)[1] == 0
    assert after("n / x -> -n * x", lambda x: 0 / x, X)[0][1:] in (["constant", -0.0], [-0.0, "constant"])
    assert after("x | ALL -> ALL", lambda x: x | 255, np.array([1], np.uint8)) == (["full"], 1)


def test_kinds_and_conditions():
    assert after("x + x -> x", lambda x: x + x, X, on="iu")[1] == 0
    assert after("x < y -> y < x", lambda x: x < 3.0, X, on="f")[1] > 0  # the kind of the operands
    small = lambda n: n < 3  # noqa: E731
    assert after("x * n -> x", lambda x: x * 2.5, X, when=small)[1] == 1
    assert after("x * n -> x", lambda x: x * 3.5, X, when=small)[1] == 0


def test_attributes_have_letters():
    text = "max(exp(x), axis=a, keepdims=k) -> exp(max(x, axis=a, keepdims=k))"
    assert after(text, lambda x: mg.max(mg.exp(x)), X)[0] == ["exp", "max"]
    text = "permute_dims(permute_dims(x, axes=a), axes=a) -> x"
    for second, count in (((1, 0, 2), 1), ((0, 2, 1), 0)):
        turned = lambda x, axes=second: mg.permute_dims(mg.permute_dims(x, (1, 0, 2)), axes)  # noqa: E731
        assert after(text, turned, np.ones((2, 2, 2)))[1] == count


def test_an_equation_never_changes_a_dtype():
    double = np.array([True, False])
    assert after("where(c, x, y) -> where(c, 1, 2)", lambda c: mg.where(c, mg.full((2,), 1.5, dtype="float64"), 2.0),
                 double)[1] == 0


def test_options_alone_and_reads_restrict_a_rule():
    def twice(x):
        y = x * 3.0
        return -y + y

    assert after("-(x * n) -> x * -n", twice, X, alone=True)[1] == 0
    assert after("-(x * n) -> x * -n", twice, X)[1] == 1
    rules, seen = Rules(), []

    @rules("multiply", reads="exp")
    def look(node):
        """Looks at products that read an exponential."""
        seen.append(node)

    apply_rules(Recorded(lambda x: mg.exp(x) * (x * x), X).graph, rules, lambda *what: None)
    assert len(seen) == 1


def test_an_equation_from_outside_is_one_line():
    f = mg.jit(lambda x: mg.abs(x * x))
    rule("abs(x * x) -> x * x", on="f")
    try:
        log = mg.jit(lambda x: mg.abs(x * x)).passes(mg.ones(3))
        assert log.counts()["abs(x * x) -> x * x"] == 1 and "abs(x * x) -> x * x: abs_1 -> multiply_1" in str(log)
        assert not optimise(f.graph(mg.ones(3)), without="abs(x * x) -> x * x")[1].fired
        with pytest.raises(ValueError, match="there is a rule named 'abs"):
            rule("abs(x * x) -> x * x")
    finally:
        rule.forget("abs(x * x) -> x * x")
    assert not f.passes(mg.ones(3)).fired


@pytest.mark.parametrize(("text", "options", "message"), [
    ("x -> x * 1", {}, "the left side of 'x -> x \\* 1' is not an operation"),
    ("x + y -> z", {}, "lacks a letter(.|\n)*Expected: x, y\n  Got: z"),
    ("x + y -> x * n", {}, "lacks a letter"),
    ("reshape(x) -> reshape(x, shape=s)", {}, "lacks a letter"),
    ("sine(x) -> x", {}, r"cannot contain 'sine\(x\)'(.|\n)*Expected: numbers, primitives, and letters of the left"),
    ("x > y -> y < x", {}, "cannot contain 'x > y'"),
    ("x + 0 -> x -> x", {}, "'x \\+ 0 -> x -> x' on 'biuf' is not an equation"),
    ("x + 0 -> x", {"on": "q"}, "on 'q' is not an equation(.|\n)*kinds of dtypes among 'biuf'"),
    ("x + 0 -> x", {"when": lambda y: y}, "lacks a letter(.|\n)*Expected: x\n  Got: x, y"),
])
def test_malformed_equations_are_refused(text, options, message):
    with pytest.raises(mg.ConversionError, match=message):
        Equation(text, **options)


@pytest.mark.parametrize("text", ["x + 0 = x", "x * 1", "tahn"])
def test_text_that_is_neither_an_equation_nor_a_primitive_is_refused(text):
    with pytest.raises(mg.ConversionError) as caught:
        Rules()(text)
    assert f"rule: {text!r} is not an equation and not the name of a primitive\n  Expected: 'left" in str(caught.value)


def test_description_of_an_equation():
    assert Equation("x + 0 -> x").says == "For all dtypes."
    assert Equation("x // n -> x", "iu", lambda n: n > 0).says == "For integers and unsigned integers, where <lambda>."
