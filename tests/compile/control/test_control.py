"""`cond`, `while_loop`, `fori_loop` and `scan` in a trace do the same as in eager mode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compile.functions.function import TracedFunction
from tests.numerical import check_gradients

pytestmark = pytest.mark.usefixtures("numpy_kernels")

X = np.array([0.5, -1.5, 0.75])
M = np.array([[0.5, -0.25, 0.75], [0.25, 0.5, -0.5], [-0.7, 0.3, 0.55]])


# A case gives its results, the gradients of their sum of squares, and second gradients --------------------------------


def differentiated(call, tensors):
    found = results = mg.control.flow.Values(call(*tensors)).tensors
    for level in range(2):
        tracked = [r for r in results if r.requires_grad]
        if tracked:
            total = sum([(r.astype(mg.float64) ** 2).sum() for r in tracked])
            results = mg.gradients(total, tensors, create_graph=level == 0, allow_unused=True)
            results = [mg.zeros_like(t) if r is None else r for t, r in zip(tensors, results)]
        else:
            results = [mg.zeros_like(t) for t in tensors]
        found = [*found, *results]
    return [f.detach() for f in found]


def leaves(arrays):
    return [mg.asarray(a, requires_grad=True) for a in arrays]


def eagerly(call, arrays):
    return differentiated(call, leaves(arrays))


def in_graph_mode(call, arrays):
    with mg.graph():
        return differentiated(call, leaves(arrays))


def jitted(call, arrays):
    return mg.jit(lambda *ts: differentiated(call, ts))(*leaves(arrays))


def differentiated_outside(call, arrays):
    return differentiated(mg.jit(call), leaves(arrays))


MODES = [in_graph_mode, jitted, differentiated_outside]

# The cases ------------------------------------------------------------------------------------------------------------


def choose(x, m):
    return mg.cond(x.sum() > 0, lambda x: (x * m).sum(0), lambda x: mg.tanh(x), x)


def choose_one_that_ignores(x, m):
    return mg.cond(x.sum() < 0, lambda: x * 2, lambda: mg.ones_like(x))


def choose_without_operands(x, m):
    return mg.cond(m.sum() > 0, lambda: {"a": x * x, "b": (m @ x, None)}, lambda: {"a": x, "b": (x, None)})["b"][0]


def recurrent(x, m):
    h, hs = mg.scan(lambda h, row: (mg.tanh(m @ h + row), h * 2), x, m)
    return h, hs


def backwards(x, m):
    return mg.scan(lambda h, row: (h * row, (h, row.sum())), x, m, reverse=True)[1]


def without_xs(x, m):
    return mg.scan(lambda h, _: (mg.sin(m @ h), None), x, length=4)[0]


def unread_ys(x, m):
    return mg.scan(lambda h, row: (h + row * x, h @ h), x, m)[0]


def no_rounds(x, m):
    return mg.scan(lambda h, row: (h * row, h + row), x, m[:0])


def counted(x, m):
    return mg.fori_loop(1, 5, lambda i, h: h * x + i * 0.25, x)


def counted_with_integers(x, m):
    total, h = mg.fori_loop(0, 3, lambda i, s: (s[0] + i, s[1] * (s[0] + 1)), (0, x))
    return h, total


def counted_not_at_all(x, m):
    return mg.fori_loop(3, 1, lambda i, h: h * x, x)


def bounded(x, m):
    return mg.while_loop(lambda h: (h * h).sum() < 20, lambda h: h * 1.5 + x * x, x, max_steps=10)


def bounded_and_stopped(x, m):
    return mg.while_loop(lambda h: (h * h).sum() < 1e9, lambda h: m @ h + x, x, max_steps=3)


def bounded_no_rounds(x, m):
    return mg.while_loop(lambda h: h[0] > 100, lambda h: m @ h + x, x, max_steps=3)


def bounded_state(x, m):
    n, h = mg.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, mg.tanh(m @ s[1])), (0, x), max_steps=6)
    return h, n


def nested(x, m):
    def step(h, row):
        again = mg.fori_loop(0, 2, lambda i, v: mg.cond(v.sum() > 0, lambda: v * row, lambda: v + x), h)
        return again, mg.scan(lambda c, t: (c + t, c * t), again.sum(), row)[1]

    return mg.scan(step, x, m)


def nested_in_while(x, m):
    def body(h):
        return mg.cond(h[0] > 0, lambda: mg.scan(lambda c, r: (c + r * 0.5, None), h, m)[0], lambda: h + 0.7)

    return mg.while_loop(lambda h: (h * h).sum() < 30, body, x, max_steps=5)


def checkpointed(x, m):
    return mg.checkpoint(lambda x: mg.cond(x[0] > 0, lambda: mg.sin(m @ x), lambda: x))(x)


def changes_its_own(x, m):
    def step(h, row):
        h *= row
        row += 1
        h[0] = h[1] * row[0]
        return h, row

    return mg.scan(step, x, m)


def gradient_inside(x, m):
    return mg.scan(lambda h, row: (h - 0.1 * mg.grad(lambda v: ((m @ v - row) ** 2).sum())(h), None), x, m)[0]


def detached(x, m):
    return mg.scan(lambda h, row: (h.detach() * row + h, h.detach()), x, m)


@mg.custom_vjp
def twice_in_reverse(x):
    return x


twice_in_reverse.gradient(lambda kept, g: (g * 2,))


def with_a_rule_of_its_own(x, m):
    return mg.scan(lambda h, row: (twice_in_reverse(h) * row, h), x, m)


def batched(x, m):
    def f(r):
        return mg.cond(r.sum() > 0, lambda: mg.scan(lambda c, t: (c * t, c), r.sum(), r)[1], lambda: r * x)
    return mg.vmap(f)(m)


def batched_while(x, m):
    def f(r):
        return mg.while_loop(lambda h: (h * h).sum() < 20, lambda h: h * 1.5 + r * x, r, max_steps=9)
    return mg.vmap(f)(m)


def batched_counter(x, m):
    def f(r):
        return mg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * r), (0, r), max_steps=5)
    return mg.vmap(f)(m)[1]


def gradients_of_a_batch(x, m):
    def f(r):
        return mg.scan(lambda c, t: (mg.sin(c * t) + x.sum(), c), r[0], r)[1].sum()
    return mg.vmap(mg.grad(f))(m)


def gradients_of_a_batch_of_choices(x, m):
    def f(r):
        return mg.cond(r.sum() > 0, lambda: (r * r * x).sum(), lambda: mg.sin(r).sum())
    return mg.vmap(mg.grad(f))(m)


def gradients_of_a_batch_of_whiles(x, m):
    def f(r):
        return mg.while_loop(lambda h: (h * h).sum() < 20, lambda h: h * 1.5 + r * r, r, max_steps=9).sum()
    return mg.vmap(mg.grad(f))(m)


def forward_mode(x, m):
    return mg.jvp(lambda v: mg.scan(lambda h, row: (mg.tanh(m @ h + row), h), v, m), (x,), (x * x,))[1]


def forward_mode_of_choice(x, m):
    return mg.jvp(lambda v: mg.cond(v[0] > 0, lambda: v * v * x, lambda: v), (x,), (x * x,))[1]


def forward_mode_of_while(x, m):
    def f(v):
        return mg.while_loop(lambda h: (h * h).sum() < 20, lambda h: h * 1.5 + v * v, v, max_steps=9)
    return mg.jvp(f, (x,), (x * x,))[1]


def forward_over_reverse(x, m):
    return mg.hvp(lambda v: mg.scan(lambda h, row: (mg.sin(h * row), h * h), v, m)[1].sum(), (x,), (x + 1,))


def forward_over_reverse_of_choice(x, m):
    def f(v):
        h = mg.cond(v[0] > 0, lambda: v * v, lambda: mg.sin(v))
        return (h * h * m).sum()  # the gradient that reaches the branches also has a tangent
    return mg.hvp(f, (x,), (x + 1,))


CASES = [
    choose, choose_one_that_ignores, choose_without_operands, recurrent, backwards, without_xs, unread_ys, no_rounds,
    counted, counted_with_integers, counted_not_at_all, bounded, bounded_and_stopped, bounded_no_rounds, bounded_state,
    nested, nested_in_while, checkpointed, changes_its_own, gradient_inside, detached, with_a_rule_of_its_own, batched,
    batched_while, batched_counter, gradients_of_a_batch, gradients_of_a_batch_of_choices,
    gradients_of_a_batch_of_whiles, forward_mode, forward_mode_of_choice, forward_mode_of_while, forward_over_reverse,
    forward_over_reverse_of_choice,
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def agree(ours, theirs, rtol=1e-10):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.numpy_copy(), b.numpy_copy(), rtol=rtol, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@every_case
def test_values_and_gradients_of_gradients_are_those_of_eager_mode(case, mode):
    for arrays in ([X, M], [-X, -M]):
        agree(mode(case, arrays), eagerly(case, arrays))


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c is not detached and c is not with_a_rule_of_its_own])
def test_gradients_are_central_differences(case):
    def values(x, m):
        return tuple([t for t in mg.control.flow.Values(case(x, m)).tensors if t.dtype.kind == "f"])

    if case is not gradient_inside:
        check_gradients(mg.jit(values), X, M)


# Recorded nodes -------------------------------------------------------------------------------------------------------


def nodes_of(graph, name):
    return [node for node in graph.nodes if node.name == name]


def test_a_loop_is_one_node_whose_body_is_traced_once(capsys):

    def step(carry, x):
        print("traced")
        return carry * 0.5 + x, carry

    graph = mg.trace(lambda xs: mg.scan(step, 0.0, xs), mg.ones((1000, 2)).sum(1))
    assert capsys.readouterr().out == "traced\n"
    [node] = nodes_of(graph, "scan")
    assert isinstance(node.attrs["body"], TracedFunction)
    body = node.attrs["body"].graph
    assert [n.name for n in body.inputs] == ["carry", "x"]
    assert [n.name for n in body.nodes] == ["multiply", "add"]
    assert node.attrs["length"] == 1000 and not node.attrs["reverse"]
    assert len(graph) < 10


def test_the_gradient_of_a_loop_is_one_node_too_and_traces_nothing_again(capsys):
    def f(x, m):
        def step(h, row):
            print("traced")
            return mg.tanh(m @ h + row), None

        return mg.scan(step, x, m)[0].sum()

    graph = mg.trace(mg.grad(f, (0, 1)), mg.asarray(X), mg.asarray(M))
    assert capsys.readouterr().out == "traced\n"
    assert [n.attrs["reverse"] for n in nodes_of(graph, "scan")] == [False, True]


def test_tensors_that_branches_capture_are_inputs_of_the_node_once():
    w, b = mg.ones(3), mg.zeros(3)
    graph = mg.trace(lambda p, x: mg.cond(p, lambda: w * x + b, lambda: w - x), mg.asarray(True), mg.ones(3))
    [node] = nodes_of(graph, "cond")
    assert len(node.inputs) == 4
    assert [n.name for n in node.attrs["then"].graph.nodes] == ["multiply", "add"]
    assert [n.name for n in node.attrs["otherwise"].graph.nodes] == ["subtract"]


def test_a_graph_prints_the_graphs_of_its_branches():
    text = str(mg.trace(lambda x: mg.cond(x > 0, lambda: x * 2, lambda: mg.exp(x)), mg.asarray(1.0)))
    assert "then:" in text and "otherwise:" in text
    assert text.index("cond_1") < text.index("multiply_1") < text.index("exp_1") < text.index("return cond_1[0]")


def test_predicates_and_numbers_of_rounds_depend_on_the_data():
    loop = mg.jit(lambda n: mg.fori_loop(0, n, lambda i, s: s + i, 0))
    collatz = mg.jit(lambda n: mg.while_loop(
        lambda s: s[0] != 1,
        lambda s: (mg.cond(s[0] % 2 == 0, lambda: s[0] // 2, lambda: 3 * s[0] + 1), s[1] + 1), (n, 0))[1])
    assert [loop(mg.asarray(n)).item() for n in (0, 1, 5)] == [0, 0, 10]
    assert [collatz(mg.asarray(n)).item() for n in (1, 6, 27)] == [0, 8, 111]
    assert len(loop.traces) == len(collatz.traces) == 1


def test_parameters_that_a_body_uses_are_captured_and_may_change_between_calls():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    f = mg.jit(lambda xs: mg.scan(lambda c, x: (c * w + x, None), mg.zeros(2), xs)[0].sum())
    xs = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert f(xs).item() == 1 + 3 + 2 * 2 + 4
    f(xs).backward()
    assert w.grad.tolist() == [1.0, 2.0]
    with mg.no_grad():
        w *= 2
    assert f(xs).item() == 2 + 3 + 2 * 4 + 4
    assert len(f.traces) == 1


def test_a_training_step_with_a_scan_inside_compiles_whole():
    def train(jit):
        mg.random.seed(0)
        w = mg.random.normal((4, 4), dtype="float64", requires_grad=True)
        optimizer = mg.optim.Adam([w], lr=0.1)

        def step(xs):
            optimizer.zero_grad()
            loss = (mg.scan(lambda h, x: (mg.tanh(w @ h + x), h), mg.zeros(4, dtype="float64"), xs)[0] ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = mg.jit(step) if jit else step
        return [run(mg.asarray(np.linspace(-1, 1, 20).reshape(5, 4))).item() for _ in range(4)], run

    expected, _ = train(False)
    found, run = train(True)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert len(run.traces) <= 2  # the first time there was no .grad


def test_numbers_become_tensors_in_every_mode():
    def f(p):
        return mg.cond(p, lambda: (1, 2.5, [True]), lambda: (0, 1, [False]))
    for run in (f, mg.jit(f), mg.vmap(f)):
        a, b, [c] = run(mg.asarray([True, False]) if run is not f and not hasattr(run, "traces") else mg.asarray(True))
        assert (a.dtype, b.dtype, c.dtype) == (mg.int64, mg.float32, mg.bool)


@pytest.mark.parametrize("run", [lambda f: f, mg.jit], ids=["eager", "jit"])
def test_loops_run_where_their_tensors_are(run):
    def f(x):
        counted = mg.fori_loop(0, 3, lambda i, h: h + i, x)
        total, rows = mg.scan(lambda c, v: (c + v, c * v), 0.0, x)
        return counted, mg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1], total, rows

    x = mg.asarray([1.0, 2.0], device="cpu:1")
    results = run(f)(x)
    assert [str(t.device) for t in results] == ["cpu:1"] * 4
    assert [t.tolist() for t in results] == [[4, 5], [8, 16], 3, [0, 2]]


def test_a_predicate_that_is_known_chooses_while_tracing():
    graph = mg.trace(lambda x: mg.cond(True, lambda: x * 2, lambda: x), mg.ones(2))
    assert [n.name for n in graph.nodes] == ["multiply"]


# Random numbers and effects -------------------------------------------------------------------------------------------


def draws_in_a_loop(x):
    def f(h, _):
        return (h + mg.random.uniform(3), mg.random.normal(2))
    h, ys = mg.scan(f, x, length=3)
    return h, ys, mg.random.uniform(2)


def draws_in_loops_in_loops(x):
    def step(h, _):
        return mg.fori_loop(0, 2, lambda i, v: v * mg.random.uniform(3), h), mg.random.uniform()

    return mg.scan(step, x, length=3, reverse=True), mg.random.uniform(2)


def draws_in_both_branches(x):
    def noise(scale):
        return mg.random.uniform(3) * scale
    return mg.cond(x.sum() > 0, lambda: x + noise(1.0), lambda: x * noise(2.0)), mg.random.uniform(2)


def draws_in_a_gradient(x):
    def drop(h):
        return h * (mg.random.uniform(3) + 0.5)
    return mg.grad(lambda v: (mg.scan(lambda h, _: (drop(h * v), None), x, length=4)[0] ** 2).sum())(x)


def draws_in_branches_of_a_batch(x):
    def f(r):
        return mg.cond(r > 0, lambda: r * mg.random.uniform(), lambda: r + mg.random.uniform())
    return mg.vmap(f)(x), mg.random.uniform(2)


@pytest.mark.parametrize("mode", ["graph", "jit"])
@pytest.mark.parametrize(
    "case",
    [draws_in_a_loop, draws_in_loops_in_loops, draws_in_both_branches, draws_in_a_gradient],
    ids=lambda case: case.__name__,
)
def test_random_numbers_are_those_of_eager_mode_in_every_round_and_call(case, mode):
    run = mg.jit(case)

    def recorded(x):
        if mode == "jit":
            return run(x)
        with mg.graph():
            return case(x)

    def values(function):
        calls = [mg.control.flow.Values(function(mg.asarray(X))).tensors for _ in range(2)]
        return [t.numpy_copy() for tensors in calls for t in tensors]

    mg.random.seed(3)
    expected = values(case)
    mg.random.seed(3)
    for ours, theirs in zip(values(recorded), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert not np.array_equal(expected[0], expected[len(expected) // 2])


def test_branches_of_a_batch_both_draw():
    mg.random.seed(3)
    first, after = mg.jit(draws_in_branches_of_a_batch)(mg.asarray([1.0, -1.0]))
    mg.random.seed(3)
    r, s = mg.random.uniform(), mg.random.uniform()
    assert first.tolist() == [r.item(), (s * 0 + r - 1).item()]
    assert after.shape == (2,)


def test_prints_in_branches_and_bodies_keep_their_order(capsys):
    def step(h, row):
        mg.print("h", h.sum())
        return mg.cond(h.sum() > 2, lambda: (mg.print("large"), h * 0)[1], lambda: h + row), None

    def f(x, m):
        last = mg.scan(step, x, m)[0]
        mg.cond(last.sum() > 0, lambda: mg.print("end"), lambda: None)
        return last

    printed = []
    for run in (f, mg.jit(f), mg.grad(mg.jit(lambda x, m: f(x, m).sum()))):
        run(mg.ones(2), mg.ones((3, 2)))
        printed.append(capsys.readouterr().out)
    assert printed == ["h: 2.\nh: 4.\nlarge\nh: 0.\nend\n"] * 3


def test_random_numbers_that_cannot_be_those_of_eager_mode_are_refused():
    p = mg.asarray(1.0)
    with pytest.raises(mg.TraceError, match=r"different amounts of random[\s\S]*true_fun 1 blocks, false_fun 0"):
        mg.jit(lambda x: mg.cond(x > 0, lambda: x * mg.random.uniform(), lambda: x))(p)
    with pytest.raises(mg.TraceError, match=r"while_loop: the loop draws random numbers[\s\S]*fori_loop or scan"):
        mg.jit(lambda x: mg.while_loop(lambda v: v < 3, lambda v: v + mg.random.uniform(), x))(p)


# Refusals -------------------------------------------------------------------------------------------------------------


def test_an_unbounded_while_loop_has_values_and_names_the_ways_out_of_its_gradient():
    def f(x):
        return mg.while_loop(lambda v: v < 100, lambda v: v * v, x)
    x = mg.asarray(3.0, requires_grad=True)
    y = mg.jit(f)(x)
    assert y.item() == 6561
    with pytest.raises(mg.GradError, match=r"while_loop at .*test_control.py:\d+[\s\S]*max_steps=n\), fori_loop"):
        y.backward()
    with pytest.raises(mg.GradError, match=r"while_loop at .*test_control.py:\d+"):
        mg.jit(mg.grad(f))(x.detach())
    with mg.graph():
        z = f(x)
        with pytest.raises(mg.GradError, match="while_loop at"):
            z.backward()
    assert f(x).item() == 6561
    f(x).backward()
    assert x.grad.item() == 8 * 3**7


def writes_in_a_branch(x, buffer):
    def change():
        buffer[0] = x[0]
        return x

    return mg.cond(x.sum() > 0, change, lambda: x)


def adds_in_a_body(x, buffer):
    def step(h, _):
        buffer.__iadd__(h)
        return h, None

    return mg.scan(step, x, length=2)[0]


def writes_through_a_view(x, buffer):
    def body(h):
        view = buffer[1:]
        view[0] = 5.0
        return h * 2

    return mg.while_loop(lambda h: h.sum() < 10, body, x)


@pytest.mark.parametrize("case", [writes_in_a_branch, adds_in_a_body, writes_through_a_view], ids=lambda c: c.__name__)
def test_writes_to_captured_tensors_work_eagerly_and_are_refused_in_a_trace(case):
    buffer = mg.zeros(3)
    case(mg.ones(3), buffer)
    changed = buffer.tolist()
    assert changed != [0, 0, 0]
    with_a_captured_buffer = mg.jit(lambda x: case(x, buffer))
    for run in (mg.jit(case), lambda x, _: with_a_captured_buffer(x)):
        buffer = mg.zeros(3)
        with pytest.raises(mg.MutationError, match=r"in place that was made outside .*it[\s\S]*test_control.py:\d+"):
            run(mg.ones(3), buffer)
        assert buffer.tolist() == [0, 0, 0]


def test_setting_a_gradient_inside_is_refused():
    w = mg.asarray([1.0, 2.0], requires_grad=True)

    def step(h, _):
        (w * h).sum().backward()
        return h, None

    with pytest.raises(mg.TraceError, match=r"sets the .grad of a tensor that was made outside"):
        mg.jit(lambda x: mg.scan(step, x, length=2)[0])(mg.ones(2))
    assert w.grad is None


def test_python_that_needs_a_value_inside_is_refused_with_the_line():
    with pytest.raises(mg.TraceError, match=r"bool\(\) needs the value[\s\S]*test_control.py:\d+"):
        mg.jit(lambda x: mg.scan(lambda h, _: (h if h.sum() > 0 else -h, None), x, length=2)[0])(mg.ones(2))


def test_a_tensor_that_leaks_out_of_a_body_is_refused():
    leaked = []

    def f(x):
        mg.scan(lambda h, _: (leaked.append(h * 2) or h, None), x, length=2)
        return leaked[0] + 1

    with pytest.raises(mg.TraceError, match="trace"):
        mg.jit(f)(mg.ones(2))


def test_an_error_in_a_program_names_the_line_of_the_body():
    f = mg.jit(lambda x, n: mg.scan(lambda h, i: (h, x[i]), x[0], n)[1])
    assert f(mg.ones(3), mg.asarray([0, 2])).tolist() == [1, 1]
    with pytest.raises(mg.IndexingError, match="5 is out of") as raised:
        f(mg.ones(3), mg.asarray([0, 5]))
    assert any("test_control.py" in note for note in raised.value.__notes__)


def test_kept_carries_that_nothing_reads_are_not_computed():
    def eightfold(h):
        return mg.scan(lambda c, _: (c * 2, None), h, length=3)[0]

    f = mg.jit(lambda x: mg.scan(lambda h, _: (eightfold(h), None), x, length=2)[0])
    outer = nodes_of(f.program(mg.ones(2)).optimised, "scan")[0]
    inner = nodes_of(outer.attrs["body"].program.optimised, "scan")[0]
    assert not outer.attrs["keep"] and not inner.attrs["keep"]


# Passes, random bodies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", [(), ("simplify",), ("fold_views",), ("common",), ("dead",)])
def test_passes_may_each_be_left_out(without):
    from minigrad.compile.running.program import Program

    def f(x, m):
        return mg.grad(lambda x: sum([(t * t).sum() for t in mg.control.flow.Values(nested(x, m)).tensors]))(x)
    graph = mg.trace(f, mg.asarray(X), mg.asarray(M))
    arrays = [n.held.data for n in graph.inputs]
    np.testing.assert_allclose(Program(graph, without=without)(arrays)[0], f(mg.asarray(X), mg.asarray(M)).numpy_copy())


UNARY = [mg.sin, mg.tanh, mg.negative, lambda v: v * 0.5, lambda v: v[::-1] if hasattr(v, "ndim") else v]
BINARY = [mg.add, mg.multiply, mg.subtract, mg.maximum]
steps = st.lists(
    st.tuples(st.sampled_from(range(len(UNARY))), st.sampled_from(range(len(BINARY))), st.integers(0, 9)),
    min_size=1, max_size=5,
)


def made_of(recipe, tensors):
    known = list(tensors)
    for unary, two, place in recipe:
        known.append(BINARY[two](UNARY[unary](known[place % len(known)]), known[-1]))
    return known[-1]


@pytest.mark.slow
@settings(max_examples=12)
@given(steps, steps, st.sampled_from(["scan", "fori", "while", "cond"]), st.booleans(), st.sampled_from(range(3)))
def test_random_bodies_agree_with_eager_mode(first, second, kind, reverse, mode):
    def case(x, m):
        def body(h, r):
            return made_of(first, [h, r, x])
        if kind == "scan":
            return mg.scan(lambda h, r: (body(h, r), made_of(second, [r, h])), x, m, reverse=reverse)
        if kind == "fori":
            return mg.fori_loop(0, 3, lambda i, h: body(h, m[0] * i), x)
        if kind == "while":
            def going(h):
                return made_of(second, [h, x]).sum() < 3
            return mg.while_loop(going, lambda h: body(h, m[1]), x, max_steps=4)
        return mg.cond(x.sum() > 0, lambda: body(x, m[0]), lambda: made_of(second, [x, m[1]]))

    agree(MODES[mode](case, [X, M]), eagerly(case, [X, M]), rtol=1e-8)


def test_the_line_of_an_error_in_a_programs_gradient_is_the_callers():
    f = mg.jit(lambda x: mg.while_loop(lambda v: v < 100, lambda v: v * v, x))
    y = f(mg.asarray(3.0, requires_grad=True))
    with pytest.raises(mg.GradError, match=r"Line: .*test_control.py:\d+  y.backward\(\)  # here"):
        y.backward()  # here


def scans_of(function, *args):
    """The scans in the optimised graph of a jitted function: their bodies' graphs, and whether they keep carries."""
    nodes = nodes_of(function.program(*args).optimised, "scan")
    return [(node.attrs["body"].program.optimised, node.attrs["keep"]) for node in nodes]


def test_the_gradient_of_a_scan_does_not_multiply_again():
    w, x = mg.asarray(M), mg.asarray(np.stack([X, 2 * X]))

    def total(x):
        return mg.scan(lambda c, row: (mg.tanh(c @ w + row), None), mg.zeros(3, dtype=mg.float64), x)[0].sum()

    gradient = mg.jit(mg.grad(total))
    assert np.allclose(gradient(x).numpy(), mg.grad(total)(x).numpy(), rtol=1e-12)
    (forward, _), (backward, _) = scans_of(gradient, x)
    assert len(forward.outputs) == 2
    assert [len(nodes_of(graph, "matmul")) for graph in (forward, backward)] == [1, 1]


def test_a_scan_keeps_no_large_products():
    w, x = mg.asarray(np.ones((3, 50))), mg.asarray(np.stack([X, 2 * X]))

    def total(x):
        return mg.scan(lambda c, row: (mg.tanh(c @ w).sum() + row, None), mg.zeros(3, dtype=mg.float64), x)[0].sum()

    (forward, keeps), (backward, _) = scans_of(mg.jit(mg.grad(total)), x)
    assert keeps and len(forward.outputs) == 1 and len(nodes_of(backward, "matmul")) == 2


def test_a_scan_stacks_only_results_that_are_read():
    w, x = mg.asarray(M), mg.asarray(np.stack([X, 2 * X]))

    def second(x):
        step = lambda c, row: (mg.tanh(c @ w + row), (c * 2, c * 3))  # noqa: E731
        return mg.scan(step, mg.zeros(3, dtype=mg.float64), x)[1][1]

    ((body, _),) = scans_of(mg.jit(second), x)
    assert len(body.outputs) == 2
    assert np.allclose(mg.jit(second)(x).numpy(), second(x).numpy(), rtol=1e-12)


def rule_with_constants(x, m):
    @mg.custom_vjp
    def weighted(v):
        return (v * v).sum()

    @weighted.gradient
    def _(kept, g):
        weights = mg.asarray([1.0, 2.0, 3.0])
        weights[0] = 5.0
        return (g * kept[0] * weights * mg.asarray(np.full(3, 0.5)),)

    return mg.scan(lambda carry, row: (carry + weighted(row * x), None), m.sum(), m)[0]


@pytest.mark.parametrize("mode", MODES)
def test_gradient_rules_may_make_constants(mode):
    agree(mode(rule_with_constants, [X, M]), eagerly(rule_with_constants, [X, M]))
