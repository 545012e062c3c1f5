"""All passes together: their options, their log, and random programs with each pass on and off."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import minigrad as mg
from minigrad.compile.nodes.graph import Graph, node_like
from minigrad.compile.rewriting import PASSES, Rules, forget_pass, optimise, passes, register_pass, rule_names
from minigrad.compile.rewriting.algebra import rule as simplify_rule
from minigrad.compile.rewriting.rules import apply_rules
from minigrad.core.primitive import P, Primitive
from tests.compile.rewriting.recording import Recorded, assert_same_bits, evaluated

X = np.array([1.0, 2.0, 3.0], np.float32)
NAMES = [each.name for each in PASSES]


def chain(length):
    def function(x):
        y = x
        for _ in range(length):
            y = mg.tanh((y * 1.0).reshape((1, 3)).reshape((3,)))
        return y

    return Recorded(function, X).graph


# Random programs ------------------------------------------------------------------------------------------------------

UNARY = [
    lambda x: x * 1.0, lambda x: x + -0.0, lambda x: x + 0.0, lambda x: -x, lambda x: x / 2.0, lambda x: x * 2.0 * 4.0,
    lambda x: mg.tanh(x), lambda x: mg.maximum(mg.maximum(x, 0.1), 0.2), lambda x: mg.abs(-x), lambda x: x * x,
    lambda x: mg.where(x < 0.0, x, x * 0.5), lambda x: x.astype(mg.float64) * 0.5, lambda x: mg.exp(-mg.abs(x)),
    lambda x: x.reshape((x.size,)).reshape(x.shape), lambda x: x.T if x.ndim == 2 else x[None], lambda x: x[..., ::-1],
    lambda x: x[1:][::-1] if x.shape[0] > 1 else x[0:1], lambda x: mg.broadcast_to(x, (2, *x.shape))[1],
    lambda x: mg.sum(x, axis=-1, keepdims=True) if x.ndim else x, lambda x: mg.max(mg.max(x, axis=-1, keepdims=True)),
    lambda x: mg.softmax(x), lambda x: mg.mean(x, axis=0, keepdims=True), lambda x: x + mg.ones(x.shape),
    lambda x: mg.where(mg.ones(x.shape) < 2.0, x, 5.0), lambda x: mg.concat([x, x[:0]]), lambda x: mg.pad(x, 1)[1:-1],
]
BINARY = [
    lambda x, y: x + y, lambda x, y: x - -y, lambda x, y: -x * -y, lambda x, y: -(x - y), lambda x, y: mg.minimum(x, y),
    lambda x, y: x / (y * y + 1.0), lambda x, y: mg.where(~(x == y), x, y), lambda x, y: (x + y) * (y + x),
    lambda x, y: mg.where(x < y, mg.where(x < y, x, 1.0), y),
]
steps = st.lists(st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 9)), min_size=1, max_size=12)


def program(steps):
    def run(x, w):
        pool = [x, w]
        for choice, which in steps:
            a, b = pool[which % len(pool)], pool[-1]
            a = a if a.ndim else a.reshape((1,))
            if choice < len(UNARY):
                new = UNARY[choice](a if which % 2 else b if b.ndim else b.reshape((1,)))
            elif a.shape == b.shape or 1 in (a.size, b.size):
                new = BINARY[choice - len(UNARY)](a, b)
            else:
                new = a * mg.sum(b)
            pool.append(new if new.size <= 64 else mg.sum(new))
        return pool[-1], pool[len(pool) // 2]

    def everything(x, w):
        first, second = run(x, w)

        def loss(x, w):
            return sum([mg.sum(r.astype(mg.float64)) for r in run(x, w)]) + mg.sum(x * w)

        return first, second, *mg.grad(loss, argnums=(0, 1))(x, w)

    return everything


@pytest.mark.slow
@given(steps, st.integers(0, 2**16))
def test_random_programs_keep_values_and_gradients_with_each_pass_on_and_off(steps, seed):
    rng = np.random.default_rng(seed)
    x, w = mg.asarray(rng.standard_normal((2, 3))), mg.asarray(rng.standard_normal((2, 3)))
    graph = mg.jit(program(steps)).graph(x, w)
    arrays = [node.held.data for node in graph.inputs]
    with np.errstate(all="ignore"):
        expected = evaluated(graph, arrays)
        for how in [{}, *[{"without": name} for name in NAMES], *[{"only": name} for name in NAMES]]:
            after, log = optimise(graph, **how)
            assert log.finished, log
            assert len(after.inputs) == len(graph.inputs) and len(after.nodes) <= len(graph.nodes) + 20
            assert optimise(after, **how)[0] is after  # a second run changes nothing
            for ours, theirs, node in zip(evaluated(after, arrays), expected, after.outputs):
                assert (ours.dtype, ours.shape) == (node.dtype, node.shape) == (theirs.dtype, theirs.shape)
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=f"{how}\n{graph}\n{log}")


INTEGER = [
    lambda x, y: x + 0, lambda x, y: (x + 100) + 100, lambda x, y: (x * 5) * 7, lambda x, y: x - y, lambda x, y: x - x,
    lambda x, y: -(x - y), lambda x, y: -x * 3, lambda x, y: x * 0 + y, lambda x, y: x & y, lambda x, y: (x | 3) | 4,
    lambda x, y: x ^ y, lambda x, y: ~~x, lambda x, y: x // 8, lambda x, y: x % 8, lambda x, y: mg.maximum(x, y),
    lambda x, y: mg.where(~(x < y), x, y), lambda x, y: x.astype(mg.int64).astype(x.dtype), lambda x, y: abs(-x),
    lambda x, y: mg.max(mg.max(x, axis=0, keepdims=True)) + y, lambda x, y: (x == x).astype(x.dtype),
]


choices = st.lists(st.tuples(st.sampled_from(INTEGER), st.integers(0, 9)), max_size=15)


@given(choices, st.sampled_from(["int8", "int64"]))
def test_random_programs_of_integers_are_exact(steps, dtype):
    def run(x, y):
        pool = [x, y]
        for function, which in steps:
            pool.append(function(pool[-1], pool[which % len(pool)]))
        return pool[-1], pool[len(pool) // 2]

    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, -1, 0, 1, 77], dtype)
    recorded = Recorded(run, values, values[::-1])
    after, _ = optimise(recorded.graph)
    assert_same_bits(recorded.values(after), [r.data for r in recorded.results], f"{recorded.graph}\n{after}")


# Options and the log --------------------------------------------------------------------------------------------------


def test_passes_and_rules_are_switched_off_by_name():
    graph = chain(3)
    assert len(optimise(graph)[0]) == 3
    assert len(optimise(graph, without="simplify")[0]) == 6
    assert len(optimise(graph, without=("fold_views",))[0]) == 9
    assert optimise(graph, without=("x * 1 -> x", "fold_views"))[0] is graph
    assert len(optimise(graph, only="simplify")[0]) == 9
    with pytest.raises(mg.ConversionError, match="there is no pass and no rule named 'fusion'"):
        optimise(graph, without=("fusion",))


def test_the_log_says_what_fired_where():
    def function(x):
        y = x * 1.0
        return mg.exp(y) + mg.exp(x)

    recorded = Recorded(function, X)
    line = function.__code__.co_firstlineno + 1
    graph, log = optimise(recorded.graph)
    assert (log.first, len(log.last)) == (recorded.graph, len(graph))
    assert log.counts() == {"x * 1 -> x": 1, "same recipe": 1}
    (fired,) = log.at(line)
    assert (fired.rule, fired.node.name, fired.replacement) == ("x * 1 -> x", "multiply", recorded.graph.inputs[0])
    run = log["simplify"][0]
    assert (len(run.before), len(run.after), run.changed, run.round) == (4, 3, True, 1)
    text = str(log).splitlines()
    assert text[0].split() == ["pass", "round", "nodes", "what", "fired"]
    assert text[1].split(maxsplit=2) == ["simplify", "1", "4 -> 3  x * 1 -> x"]
    assert f"simplify: x * 1 -> x: multiply_1 -> constant_1   {__file__}:{line}  y = x * 1.0" in text
    log = optimise(chain(2))[1]
    assert f"... and {len(log.fired) - 1} more" in log.details(1)


def test_replacements_keep_the_line_scope_and_origin_of_the_node():
    def function(x):
        with mg.scope("head"):
            return x / 4.0

    recorded = Recorded(function, X)
    before, after = recorded.graph.outputs[0], optimise(recorded.graph)[0].outputs[0]
    assert after.name == "multiply"
    assert (after.where, after.scope, after.origin, after.device) == (before.where, ("head",), None, before.device)


def test_nodes_are_visited_a_bounded_number_of_times():
    def visits(graph):
        count = 0

        @simplify_rule(kind=("elementwise", "view", "reduce"))
        def counting(node):
            """Counts visits."""
            nonlocal count
            count += 1

        try:
            optimise(graph)
        finally:
            simplify_rule.forget("counting")
        return count

    short, long = visits(chain(50)), visits(chain(400))
    assert 50 < short <= 50 * 8
    assert long <= 400 * 8
    assert "counting" not in rule_names()


def test_rules_that_undo_each_other_come_to_an_end():
    @simplify_rule("add")
    def there(node):
        """x + y is y + x."""
        return node_like(P.add, node.inputs[::-1], {}, like=node)

    try:
        log = optimise(Recorded(lambda x: x + 2.5, X).graph)[1]
    finally:
        simplify_rule.forget("there")
    assert not log.finished
    assert "still changed something" in str(log)


def test_a_rule_that_changes_a_shape_is_an_error():
    rules = Rules()

    @rules("add")
    def wrong(node):
        """x + y is a sum."""
        return node_like(P.sum, node.inputs[:1], {"axis": (0,), "keepdims": False, "dtype": None}, like=node)

    with pytest.raises(ValueError, match=r"the rule 'wrong' replaced float32 \(3,\) by float32 \(\)"):
        apply_rules(Recorded(lambda x: x + 1.0, X).graph, rules, lambda *fired: None)
    with pytest.raises(ValueError, match="there is a rule named 'wrong' already"):
        rules("add")(wrong)


def test_user_pass_runs_in_the_pipeline():
    seen = []

    def count(graph, note):
        """Counts nodes."""
        seen.append(len(graph))
        return graph

    register_pass("count", count, before="fold_views")
    try:
        repeated = ["simplify", "count", "fold_views", "common", "dead"]
        last = ["pick_rows", "positions", "channels_last", "packed", "layouts"]
        assert [each.name for each in PASSES] == [*repeated, *last]
        assert PASSES[1].says == "Counts nodes."
        optimise(chain(1))
        assert seen[0] == 3
        with pytest.raises(mg.ConversionError, match="there is a pass named 'count' already"):
            register_pass("count", count)
    finally:
        forget_pass("count")
    assert [each.name for each in PASSES] == NAMES
    with pytest.raises(mg.ConversionError, match="there is no pass named 'count'"):
        forget_pass("count")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_each_pass_of_ours_can_be_forgotten(backend, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    monkeypatch.setattr(passes, "PASSES", [])
    f = mg.jit(lambda x: mg.tanh(x * 1 + 2))
    np.testing.assert_allclose(f(mg.asarray(X)).numpy_copy(), np.tanh(X + 2), rtol=1e-6)
    with pytest.raises(mg.ConversionError, match="there is no pass and no rule named 'unknown'"):
        optimise(chain(1), without="unknown")


def test_passes_do_not_look_behind_the_inputs_of_a_graph():
    recorded = Recorded(lambda x: mg.abs(-x) * (mg.exp(x) + 0.0), X)
    nodes = {node.name: node for node in recorded.graph.nodes}
    begins = (nodes["negative"], nodes["exp"])
    graph = Graph(begins, [nodes["multiply"], nodes["exp"], nodes["abs"]])
    after, log = optimise(graph)
    assert after.inputs == begins and after.outputs[1] is nodes["exp"]
    assert [node.name for node in after.nodes] == ["abs", "add", "multiply"]
    assert not log.fired
    folded, log = optimise(Graph(begins, [mg_after(nodes)]))
    assert (folded.outputs, log.counts()) == ((nodes["exp"],), {"x * 1 -> x": 1})


def mg_after(nodes):
    return node_like(P.multiply, (nodes["exp"], 1.0), {}, like=nodes["multiply"])


def test_effects_stay_in_their_order():
    say = Primitive("say", "structural", ("x",), lambda x, text: (x.shape, x.dtype), promotes=(), effect="says")
    recorded = Recorded(lambda x: (mg.exp(x) * 1.0, mg.exp(x) + 2.5), X)
    product, total = recorded.graph.outputs
    effects = [node_like(say, (node,), {"text": text}, like=total) for node, text in (
        (total, "a"), (product, "b"), (total, "b"), (total, "b"), (product, "c"))]
    graph = Graph(recorded.graph.inputs, [total], effects)
    after, _ = optimise(graph)
    assert [node.attrs["text"] for node in after.effects] == ["a", "b", "b", "b", "c"]
    in_order = [node.attrs["text"] for node in after.nodes if node.name == "say"]
    assert in_order == ["a", "b", "b", "b", "c"]
    assert sorted(node.name for node in after.nodes if node.name != "say") == ["add", "exp"]
