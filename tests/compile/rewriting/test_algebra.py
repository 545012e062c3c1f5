"""Each rule fires where it should, changes no bit of any value, and does not fire where results would differ."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.nodes.graph import Graph, node_like
from minigrad.compile.rewriting import optimise
from minigrad.compile.rewriting.algebra import rule as rules
from minigrad.compile.rewriting.equation import EVERY as EQUATION_KINDS
from minigrad.compile.rewriting.equation import Equation, Operation, same_number, wrapped
from minigrad.compile.tracing.tracer import Source
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.compile.rewriting.recording import Recorded, assert_same_bits, hard_values

FLOATS, SIGNED, UNSIGNED, BOOLS = "float16 float32 float64", "int8 int16 int32 int64", "uint8", "bool"
INTEGERS = f"{SIGNED} {UNSIGNED}"
EVERY = f"{FLOATS} {INTEGERS} {BOOLS}"
SCALES = [0.25, 4.0, -2.0, 2.0**10, 2.0**-10]

# Rule, dtypes, function of one operand (a column of hard values) or of two (the second holds the same values in a row).
# NumPy 2.0 calculates squares like other powers, and rounds some of them to the float next to x * x.
SAMPLE = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
SAME_SQUARES = np.array_equal(np.power(SAMPLE, 2), SAMPLE * SAMPLE)
SMALL_POWERS = {0: "x ** 0 -> 1", 1: "x ** 1 -> x"} | ({2: "x ** 2 -> x * x"} if SAME_SQUARES else {})
CASES = [
    ("x + -0.0 -> x", FLOATS, lambda x: x + -0.0),
    ("x + -0.0 -> x", FLOATS, lambda x: -0.0 + x),
    ("x + 0 -> x", INTEGERS, lambda x: x + 0),
    ("x + 0 -> x", BOOLS, lambda x: x + False),
    ("x - 0 -> x", FLOATS, lambda x: x - 0.0),
    ("x - 0 -> x", FLOATS, lambda x: x - 0),
    ("x - 0 -> x", INTEGERS, lambda x: x - 0),
    ("x - x -> 0", INTEGERS, lambda x: x - x),
    ("x * 1 -> x", f"{FLOATS} {INTEGERS}", lambda x: x * 1),
    ("x * 1 -> x", FLOATS, lambda x: 1.0 * x),
    ("x * 1 -> x", BOOLS, lambda x: x * True),
    ("x / 1 -> x", FLOATS, lambda x: x / 1),
    ("x * -1 -> -x", f"{FLOATS} {SIGNED}", lambda x: x * -1),
    ("x * 0 -> 0", INTEGERS, lambda x: x * 0),
    ("x * 0 -> 0", BOOLS, lambda x: False * x),
    *[(text, f"{FLOATS} {INTEGERS}", lambda x, n=n: emit(P.pow, x, n))
      for n, text in SMALL_POWERS.items()],
    ("-(-x) -> x", f"{FLOATS} {INTEGERS}", lambda x: mg.negative(-x)),
    ("x + -y -> x - y", f"{FLOATS} {INTEGERS}", lambda x, y: x + -y),
    ("x + -y -> x - y", f"{FLOATS} {INTEGERS}", lambda x, y: -x + y),
    ("x + -y -> x - y", f"{FLOATS} {INTEGERS}", lambda x: -x + 3),
    ("x - -y -> x + y", f"{FLOATS} {INTEGERS}", lambda x, y: x - -y),
    ("x - -y -> x + y", f"{FLOATS} {INTEGERS}", lambda x: 2 - -x),
    ("-(n / x) -> -n / x", FLOATS, lambda x: -(3.0 / x)),
    ("-(n / x) -> -n / x", FLOATS, lambda x: -(0 / x)),
    ("(x + n) + m -> x + (n + m)", INTEGERS, lambda x: (x + 100) + 100),
    *[("x / n -> x * (1 / n)", FLOATS, lambda x, c=c: x / c) for c in SCALES],
    *[("x // n -> x >> log2(n)", INTEGERS, lambda x, n=n: x // n) for n in (2, 64)],
    *[("x % n -> x & (n - 1)", INTEGERS, lambda x, n=n: x % n) for n in (2, 64)],
    ("where(~c, x, y) -> where(c, y, x)", EVERY, lambda x, y: mg.where(~(x == y), x, y)),
    ("astype(x) -> x", EVERY, lambda x: x.copy()),
    ("concat of one", EVERY, lambda x: mg.concat([x])),
    ("concat of one", EVERY, lambda x: mg.concat([x[:0], x, x[3:3], x])),
    ("join by position", EVERY, lambda x: mg.concat([x, x[::-1], x])),
    ("join by position", EVERY, lambda x: mg.roll(x, 1, 0)),
    ("number operand", EVERY, lambda x: mg.maximum(x, mg.full_like(x, 1))),
    ("number operand", EVERY, lambda x: mg.less(mg.full((3, 1, 1), 1, dtype=x.dtype), x)),
    ("number operand", FLOATS, lambda x: mg.where(x < 1, mg.full_like(x, -0.0), mg.full((), np.nan, dtype=x.dtype))),
    ("number operand", EVERY, lambda x: mg.where(x == x, x, mg.ones_like(x))),
    ("view of a constant", EVERY, lambda x: mg.where(x == x, mg.ones((2, 3), dtype=x.dtype).T[1:2, :1], x)),
]


def operands(dtype, function):
    column = hard_values(dtype)[:, None]
    count = function.__code__.co_argcount - len(function.__defaults__ or ()) if hasattr(function, "__code__") else 1
    return [column, hard_values(dtype)][:count]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_a_rule_fires_and_keeps_every_bit(number):
    name, dtypes, function = CASES[number]
    for dtype in dtypes.split():
        with np.errstate(all="ignore"):
            recorded = Recorded(function, *operands(dtype, function))
            after, log = optimise(recorded.graph, only="simplify")
            assert log.counts()[name] >= 1, f"{dtype}\n{recorded.graph}"
            assert_same_bits(recorded.values(after), [r.data for r in recorded.results], f"{dtype}\n{after}")
            kept, log = optimise(recorded.graph, only="simplify", without=(name,))
            assert name not in log.counts()
            assert_same_bits(recorded.values(kept), [r.data for r in recorded.results], f"{dtype}\n{kept}")


def windows_of(shape, size, dtype, dilation):
    rng = np.random.default_rng(0)
    counts = [n - (k - 1) * dilation for n, k in zip(shape, size)]
    return rng.standard_normal((2, *counts, *size)).astype(dtype) * 3


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_overlapping_windows_become_parts_that_are_added_up(dtype, dilation):
    shape, size = (2, 7, 9), (3, 2)
    parts = mg.asarray(windows_of(shape[1:], size, dtype, dilation))
    recorded = Recorded(lambda x: mg.overlap_add(x, shape, axis=(1, 2), dilation=dilation), parts.data)
    after, log = optimise(recorded.graph, only="simplify")
    assert log.counts()["windows as parts"] == 1 and {n.name for n in after.nodes} == {"slice", "place", "add"}
    assert_same_bits(recorded.values(after), [r.data for r in recorded.results], str(after))


@pytest.mark.parametrize("options", [{"stride": 2}, {"size": 26}])
def test_windows_that_are_apart_or_long_stay_with_the_library(options):
    size, stride = options.get("size", 2), options.get("stride", 1)
    parts = mg.ones(((40 - size) // stride + 1, size))
    recorded = Recorded(lambda x: mg.overlap_add(x, (40,), stride=stride), parts.data)
    assert "windows as parts" not in optimise(recorded.graph, only="simplify")[1].counts()


# Rules with separate tests below.
FOLDED = {"windows as parts", "fold constants", "small constant", "windows as product",
          "slice of a convolution"}  # the last two: test_channels_last


def test_rules_all_have_a_case():
    assert {rule.name for rule in rules} == {case[0] for case in CASES} | FOLDED | {"x ** 2 -> x * x"}
    assert all(rule.says.endswith((".", ")")) and "\n" not in rule.says for rule in rules)


def accepted(part):
    """The kinds of dtypes that all operations of a pattern accept."""
    own = set(P[part.name].accepts) if isinstance(part, Operation) else set(EQUATION_KINDS)
    return own.intersection(*map(accepted, part.inputs))


OTHER_KINDS = {  # rules whose cases have other kinds of dtypes than their operations accept
    **dict.fromkeys(["x / 1 -> x", "-(n / x) -> -n / x"], "f"),  # a quotient is always a float
    "where(~c, x, y) -> where(c, y, x)": "biuf",
}


def test_cases_have_all_kinds_of_dtypes_that_a_rule_is_declared_for():
    tested = {}
    for name, dtypes, _ in CASES:
        tested.setdefault(name, set()).update(np.dtype(dtype).kind for dtype in dtypes.split())
    for rule in rules:
        if isinstance(rule.function, Equation) and rule.name in tested:
            kinds = set(rule.function.on) & accepted(rule.function.pattern)
            assert tested[rule.name] == set(OTHER_KINDS.get(rule.name, kinds)), rule.name


@pytest.mark.parametrize(
    ("dtypes", "function"),
    [
        (FLOATS, lambda x: x + 0.0),
        (FLOATS, lambda x: x + 0),
        (FLOATS, lambda x: x - -0.0),
        (FLOATS, lambda x: 0.0 - x),
        (FLOATS, lambda x: x * 0.0),
        (FLOATS, lambda x: x - x),
        (FLOATS, lambda x: x == x),
        (FLOATS, lambda x: x <= x),
        (FLOATS, lambda x: x / 3.0),
        ("float32", lambda x: x / 2.0**-130),  # the reciprocal is too large
        ("float32", lambda x: x / 2.0**127),  # and here too small to be a normal number
        (FLOATS, lambda x: (x + 1.0) + 1.0),
        (FLOATS, lambda x: (x * 3.0) * 5.0),
        (FLOATS, lambda x: (x * 0.5) * 0.25),  # rounds twice where it is denormal
        (FLOATS, lambda x: (x * 2.0) * 0.5),  # overflows
        ("float16", lambda x: (x * 512.0) * 512.0),  # a factor that float16 does not have
        (FLOATS, lambda x, y: -(x - y)),
        (FLOATS, lambda x, y: ~(x < y)),
        (FLOATS, lambda x: x // 1),  # inf gives nan
        (FLOATS, lambda x: x % 1),
        (FLOATS, lambda x: emit(P.pow, x, 0.5)),
        (FLOATS, lambda x: emit(P.pow, x, -1)),
        (FLOATS, lambda x: emit(P.pow, x, 3)),
        (FLOATS, lambda x: mg.maximum(x, np.inf)),
        (FLOATS, lambda x: mg.maximum(x, np.nan)),
        (FLOATS, lambda x: mg.maximum(mg.maximum(x, 1.0), np.nan)),
        (FLOATS, lambda x: mg.maximum(mg.minimum(x, 1.0), 0.5)),
        (FLOATS, lambda x: mg.where(x < 1, mg.where(x < 2, x, 3.0), 4.0)),
        (FLOATS, lambda x, y: mg.sum(mg.sum(x * y, axis=0), axis=0)),
        (INTEGERS, lambda x: x // 3),
        (INTEGERS, lambda x: x // -2),
        (SIGNED, lambda x: x % -8),
        (INTEGERS, lambda x: x << 1),
        ("uint8", lambda x: mg.minimum(x, 254)),
        ("float64", lambda x: x.astype("float32").astype("float64")),
        ("int64", lambda x: x.astype("float64").astype("int64")),
        ("int16", lambda x: x.astype("float16").astype("int16")),
        ("int32", lambda x: x.astype("float64").astype("int8")),  # out of range is undefined from floats
        ("float16", lambda x: x.astype("float32").astype("int32")),
        ("int32", lambda x: x.astype("int8").astype("int32")),
        ("uint8", lambda x: x.astype("int8").astype("int32")),
        ("int8", lambda x: x.astype("bool").astype("int8")),
        (FLOATS, lambda x: mg.floor(x * 2)),
        (FLOATS, lambda x: mg.concat([x] * 5)),
    ],
)
def test_expressions_without_an_exact_rule_stay(dtypes, function):
    for dtype in dtypes.split():
        if dtype == "uint8" and "-2" in repr(function.__code__.co_consts):
            continue  # there is no -2
        with np.errstate(all="ignore"):
            graph = Recorded(function, *operands(dtype, function)).graph
        assert optimise(graph, only="simplify")[0] is graph, dtype


def test_a_rule_that_is_alone_fires_only_where_nothing_else_reads_the_input():
    x, rule = np.ones((2, 3), np.float32), "-(n / x) -> -n / x"

    def both(x):
        inner = 3.0 / x
        return inner, -inner

    graph, log = optimise(Recorded(both, x).graph)
    assert (len(graph), log.counts()[rule]) == (2, 0)
    graph, log = optimise(Recorded(lambda x: both(x)[1], x).graph)
    assert (len(graph), log.counts()[rule]) == (1, 1)


# Constants ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", EVERY.split())
def test_folding_gives_what_eager_gives(dtype):
    kind = np.dtype(dtype).kind
    values = hard_values(dtype).tolist()
    done = 0
    folded = [op for op in P if op.kind == "elementwise" and kind in op.accepts]
    for op in [op for op in folded if op.name not in ("where", "bitcast")]:
        attrs = {"dtype": np.dtype("float32")} if op.name == "astype" else {}
        for i, a in enumerate(values):
            b = values[(7 * i + 3) % len(values)]
            shift, whole = "shift" in op.name, op.name in ("floor_divide", "remainder")
            if kind in "iu" and ((shift and not 0 <= b < 8) or (whole and not b) or (op.name == "pow" and b < 0)):
                continue

            def apply(op=op, a=a, b=b, attrs=attrs):
                tensors = [mg.full((2,), v, dtype=dtype) for v in (a, b)][: len(op.inputs)]
                return emit(op, *tensors, **attrs)

            with np.errstate(all="ignore"):
                recorded = Recorded(apply)
                graph, log = optimise(recorded.graph, only="simplify")
            assert [node.name for node in graph.nodes] == ["full"], f"{op.name} {a} {b}\n{graph}"
            assert_same_bits(recorded.values(graph), [recorded.results[0].data], f"{op.name} {a} {b}")
            done += log.counts()["fold constants"]
    assert done > len(values)


def test_an_error_is_not_folded():
    for wrong in (
        lambda: mg.full((2,), 1, dtype=mg.int32) // mg.full((2,), 0, dtype=mg.int32),
        lambda: mg.full((2,), 1, dtype=mg.int32) % mg.full((2,), 0, dtype=mg.int32),
    ):
        graph = Recorded(wrong).graph
        assert optimise(graph)[0].nodes[-1].name in ("floor_divide", "remainder")


def test_operation_on_numbers_alone_keeps_the_dtype_of_one():
    recorded = Recorded(lambda x: mg.where(x, mg.ones(2), mg.zeros(2)), np.array([True, False]))
    graph, _ = optimise(recorded.graph)
    assert [node.name for node in graph.nodes] == ["full", "where"]
    assert graph.outputs[0].inputs[2] == 0.0
    assert recorded.values(graph)[0].tolist() == [1.0, 0.0]


def test_a_constant_of_one_element_that_a_trace_holds_is_a_number():
    recorded = Recorded(lambda x: x * 2.0, np.ones(3, np.float32))
    (x,), (double,) = recorded.graph.inputs, recorded.graph.outputs
    held = Source("constant", np.array([1.0], np.float32), (1,), mg.float32, x.device, x.mode)
    product = node_like(P.multiply, (x, held), {}, like=double)
    graph, log = optimise(Graph([x], [product]))
    assert graph.outputs == (x,)
    assert log.counts() == {"small constant": 1, "number operand": 1, "x * 1 -> x": 1}
    graph, log = optimise(Graph([x, held], [product]))  # a value from outside may change
    assert graph.outputs == (product,)
    assert not log.fired


def test_wrapped_numbers_and_same_number():
    assert [wrapped(n, np.dtype("int8")) for n in (127, 128, -129, 256)] == [127, -128, 127, 0]
    assert same_number(0, 0.0)
    assert not same_number(1.0, np.nan)
