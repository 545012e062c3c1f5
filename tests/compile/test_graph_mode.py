"""Graph mode in loops: a structure is compiled once, and memory stays constant."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import graph_mode
from minigrad.compile.functions import structure
from minigrad.compile.functions.structure import PROGRAMS
from minigrad.compile.rewriting import passes
from minigrad.core.node import Node
from minigrad.core.tensor import Tensor
from minigrad.core.tree import flatten
from minigrad.support.source import line_of

pytestmark = pytest.mark.usefixtures("numpy_kernels")


@pytest.fixture
def compiled(monkeypatch):
    """A list that collects the graphs that are compiled."""
    made = []

    def counting(graph, *args, **kwargs):
        made.append(graph)
        return program_for(graph, *args, **kwargs)

    program_for = structure.program_for
    for module in ("structure", "function"):
        monkeypatch.setattr(f"minigrad.compile.functions.{module}.program_for", counting)
    monkeypatch.setattr(PROGRAMS, "_kept", type(PROGRAMS._kept)())
    return made


def in_use(kind):
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


def training(steps, mode=mg.graph, read=True):
    mg.random.seed(1)
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Dropout(0.25), mg.nn.Linear(8, 3))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rng, losses, counts = np.random.default_rng(0), [], []
    with mode():
        for step in range(steps):
            x, y = mg.asarray(rng.standard_normal((5, 4), "f4")), mg.asarray(rng.integers(0, 3, 5))
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if read:
                losses.append(loss.item())
            if step in (20, steps - 1):
                counts.append((in_use(Tensor), in_use(Node), in_use(np.ndarray)))
    return losses, [p.numpy_copy() for p in model.parameters()], counts


@pytest.mark.slow
def test_a_training_loop_is_compiled_once_and_equals_eager_mode(compiled):
    expected, parameters, _ = training(8, nullcontext)
    losses, found, _ = training(8)
    assert len(compiled) <= 3  # the first step makes the momentum
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for ours, theirs in zip(found, parameters, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_training_loop_keeps_no_more_from_step_to_step(monkeypatch):
    monkeypatch.setattr(graph_mode, "SHOWN", 100)
    _, _, counts = training(40)
    for late, later in zip(*counts):
        assert later <= late + 4


def test_reads_in_a_loop_compile_once(compiled):
    x = mg.ones(4)
    with mg.graph() as g:
        for i in range(20):
            x = mg.tanh(x * 2 + 0.5)
            assert x.sum().item() == pytest.approx(4 * np.tanh(2.5) if i == 0 else x.sum().item())
        assert len(g.programs) <= 2
    assert len(compiled) <= 3  # x from outside, x computed before, and nothing else


def test_programs_are_kept_from_block_to_block(compiled):
    for _ in range(3):
        with mg.graph():
            assert (mg.ones(3) * 3).sum().item() == 9
    assert len(compiled) == 1


def test_the_programs_used_last_are_kept(compiled, monkeypatch):
    monkeypatch.setattr("minigrad.compile.functions.latest.KEPT", 2)
    for length in (1, 2, 1, 3, 1, 2):
        with mg.graph():
            assert (mg.ones(length) * 3).sum().item() == 3 * length
    assert len(PROGRAMS) == 2
    assert len(compiled) == 4  # 2 was forgotten when 3 came


def test_numbers_that_change_become_inputs(compiled):
    """A learning rate that falls from step to step does not cause a compilation in each step."""
    x = mg.asarray([1.0, -2.0])
    for step in range(6):
        rate = 0.5**step
        with mg.graph():
            z = mg.where(x > rate, x - rate * x, step / 3 - x) / 3
        expected = np.where(x.numpy() > rate, x.numpy() * (1 - rate), step / 3 - x.numpy()) / 3
        np.testing.assert_allclose(z.numpy(), expected, rtol=1e-6)
    assert len(compiled) == 2, "once with the numbers as they are, and once with inputs in their place"


def test_numbers_among_integers_do_not_become_inputs(compiled):
    """The value of such a number decides the dtype of the result and the range check."""
    for number in (2, 3, 4):
        with mg.graph():
            z = mg.asarray([1, 2]) * number
        assert z.tolist() == [number, 2 * number] and z.dtype == mg.int64
    assert len(compiled) == 3


@pytest.mark.parametrize(
    "one, other",
    [
        (lambda x: x * 2, lambda x: x * 2.0),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x * 1, lambda x: x * True),
        (lambda x: x.sum(0), lambda x: x.sum(1)),
        (lambda x: x[0] * 2, lambda x: x[1] * 2),
        (lambda x: x - 2, lambda x: 2 - x),
        (lambda x: x.astype(mg.float64), lambda x: x.astype(mg.int32)),
        (lambda x: x + x.T, lambda x: x + x),
        (lambda x: mg.full((2,), 1), lambda x: mg.full((2,), True)),
    ],
)
def test_structures_of_different_computations_differ(one, other):
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    keys = []
    for f in (one, other, one):
        with mg.graph() as g:
            found = f(x)
            recorded = g._recorder.structure
            keys.append((recorded.prefix, [repr(node.inputs[i]) for node, i, _ in recorded.numbers]))
    assert keys[0] == keys[2] != keys[1]
    for f in (one, other):
        with mg.graph():
            found = f(x)
        np.testing.assert_array_equal(found.numpy(), f(x).numpy())
        assert found.dtype == f(x).dtype


def test_random_numbers_are_drawn_in_each_round(compiled):
    def numbers(mode):
        mg.random.seed(3)
        with mode():
            return [(mg.random.uniform(3) + mg.random.normal(3)).tolist() for _ in range(5)]

    np.testing.assert_allclose(numbers(mg.graph), numbers(nullcontext), rtol=1e-6)
    assert len(compiled) == 1


def test_constants_are_not_those_of_the_first_round(compiled):
    with mg.graph():
        found = [(mg.asarray([1.0, i]) * 2).tolist() for i in range(4)]
    assert found == [[2, 2 * i] for i in range(4)] and len(compiled) == 1


def test_values_that_nothing_refers_to_are_freed():
    with mg.graph():
        x = mg.ones(1000)
        y = x * 2
        first = weakref.ref(y._data)
        assert y.sum().item() == 2000
        z = y + 1
        held = weakref.ref(first().value)
        del y
        assert held() is not None  # z is computed from it
        assert z.sum().item() == 3000
        assert first() is None and held() is None
    assert z.sum().item() == 3000


def test_a_value_is_freed_though_the_recipe_of_another_names_it():
    with mg.graph() as g:
        y = mg.ones(3) * 2
        y.tolist()
        value = weakref.ref(y._data.value)
        z = y + 1
        z.tolist()
        del y
        assert value() is None
        assert [node.name for node in g.recorded(z).nodes] == ["full", "multiply", "add"]


def test_recipes_go_back_to_the_last_operations(monkeypatch):
    monkeypatch.setattr(graph_mode, "SHOWN", 10)
    x = mg.ones(3)
    with mg.graph() as g:
        for _ in range(20):
            x = x * 1.5
            x.tolist()
        recorded = g.recorded(x)
    assert len(recorded) == 10 and [node.name for node in recorded.inputs] == ["multiply"]
    assert str(recorded).startswith("multiply_1: float32 (3,)\nmultiply_2: float32 (3,) = multiply(multiply_1, 1.5)")


def test_an_error_names_the_line_of_this_round(compiled):
    x, notes = mg.ones(3), []
    with mg.graph():
        assert x[mg.asarray([2])].sum().item() == 1  # the first line with this structure
        try:
            x[mg.asarray([7])].sum().item()  # another line
        except mg.IndexingError as error:
            notes += error.__notes__
        gc.collect()  # the error and its traceback, which keep the tensor
        assert x[mg.asarray([1])].sum().item() == 1
    assert any("another line" in note for note in notes)


def test_a_kernel_that_is_registered_later_is_used():
    def gated():
        with mg.graph():
            return (mg.tanh(mg.ones(2) * 0.5) * 3).tolist()

    before = gated()
    with mg.kernel(lambda x: mg.tanh(x) * 3)(lambda x: x * 0 + 7):
        assert gated() == [7, 7]
    assert gated() == before


def test_added_rule_causes_a_new_compilation(compiled):
    def read():
        with mg.graph():
            return mg.abs(mg.ones(3) * mg.ones(3)).sum().item()

    rules = passes.PASSES[0].rules
    before = [read(), read(), len(compiled)]
    rules("abs(x * x) -> x * x", on="f")
    try:
        added = [read(), read(), len(compiled)]
    finally:
        rules.forget("abs(x * x) -> x * x")
    assert (before, added, [read(), len(compiled)]) == ([3.0, 3.0, 1], [3.0, 3.0, 2], [3.0, 3])


def test_effects_happen_once_and_in_order(compiled, capsys):
    x = mg.zeros(2)
    with mg.graph():
        for _ in range(3):
            x = x + 1
            mg.print("x is {:.1f}", x.sum())
            x.tolist()
        mg.print("the end")
    assert capsys.readouterr().out.split("\n") == ["x is 2.0", "x is 4.0", "x is 6.0", "the end", ""]


def test_writes_after_reads_reach_views_and_tensors_outside():
    outside = mg.zeros(4)
    with mg.graph():
        x = mg.ones(4) * 1
        row = x[1:3]
        assert row.tolist() == [1, 1]
        x += 1
        outside[0] = 5
        assert row.tolist() == [2, 2] and outside.tolist() == [5, 0, 0, 0]
        row *= 3
        outside += 1
        assert x.tolist() == [2, 6, 6, 2] and outside.tolist() == [6, 1, 1, 1]
        detached = x.detach()
        x[0] = 0
        assert detached.tolist() == [0, 6, 6, 2]
    row += 1
    assert x.tolist() == [0, 7, 7, 2] and detached.tolist() == [0, 7, 7, 2] and outside.tolist() == [6, 1, 1, 1]


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:, ::-1], lambda x: x[1]])
def test_values_with_a_history_are_written_through_views_of_tensors_outside(view):
    w = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    outside = mg.zeros((2, 3))
    written, column = view(outside), outside[:, 1]
    with mg.graph():
        written[...] = w * 2
    (column.sum() + (outside * outside).sum()).backward()
    rows = outside.numpy_copy().any(axis=1).sum()
    assert column.numpy_copy().tolist() == outside.numpy_copy()[:, 1].tolist() and column.tracked
    assert w.grad.tolist() == [rows * g for g in (8.0, 18.0, 24.0)]


def test_a_graph_of_values_from_before_and_after_the_block_is_drawn():
    a = mg.ones(3)
    with mg.record():
        with mg.graph():
            doubled = a * 2.0
        result = doubled - a
    assert "2 operations" in repr(mg.viz.graph(result, values=True))
    with pytest.raises(mg.Gone, match="constant"):
        mg.replay(result)


def in_a_graph(x):
    """A sum that a block of graph mode computes, after a write."""
    with mg.graph():
        y = x * 2
        y[0] += 1
        total = (y * y).sum()
    return total + x[0]


AROUND = {
    "a graph": lambda x: inside(mg.graph(), lambda: (in_a_graph(x), in_a_graph(x + 1))),
    "vmap": mg.vmap(in_a_graph),
    "jvp": lambda x: mg.jvp(in_a_graph, (x,), (x,)),
    "hvp": lambda x: mg.hvp(lambda x: in_a_graph(x.reshape(-1)), (x,), (x,)),
    "vmap of grad in a graph": lambda x: inside(mg.graph(), lambda: mg.vmap(mg.grad(in_a_graph))(x)),
    "scan": lambda x: mg.scan(lambda total, row: (total + in_a_graph(row), in_a_graph(row)), 0.0, x),
    "check": mg.jit(in_a_graph, check=True),
    "autocast": lambda x: inside(mg.train.autocast("float16"), lambda: in_a_graph(x @ x.T)),
    "offload": lambda x: inside(mg.offload("cpu:1"), lambda: in_a_graph(x)),
}


def inside(block, function):
    with block:
        return function()


@pytest.mark.parametrize("around", AROUND)
def test_a_block_inside_another_mode_computes_what_eager_mode_computes(around, monkeypatch):
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    found = flatten(AROUND[around](x))[0]
    monkeypatch.setattr(mg, "graph", nullcontext)
    expected = flatten(AROUND[around](x))[0]
    assert [(t.tolist(), t.dtype) for t in found] == [(t.tolist(), t.dtype) for t in expected]


def test_branches_and_loops_equal_eager_mode():
    def rounds(x):
        y = mg.cond(x.sum() > 2, lambda x: x * 2, lambda x: x - 1, x)
        return mg.fori_loop(0, 3, lambda i, y: y + i, y)

    with mg.graph():
        found = [rounds(mg.asarray([i, 1.0])).tolist() for i in range(4)]
    assert found == [[2, 3], [3, 3], [7, 5], [9, 5]]


def controlled(x, number):
    """A branch, a loop that draws random numbers, and a scan that a gradient goes through."""
    y = mg.cond(x.sum() > number, lambda x: mg.tanh(x) * 2, lambda x: x - mg.asarray([1.0, 2.0, 3.0]), x)
    y = mg.fori_loop(0, 3, lambda i, y: y * 0.5 + mg.random.uniform(3) * i, y)
    last, each = mg.scan(lambda carry, row: (carry + row, carry * row), y, mg.stack([x, y, x]))
    return last.sum() + (each * each).sum()


def control_flow(rounds, mode=mg.graph, counted=()):
    """The values and gradients of some iterations, and the numbers of objects in the counted iterations."""
    mg.random.seed(5)
    found, counts = [], []
    with mode():
        for i in range(rounds):
            x = mg.asarray([0.5, 1.0, i % 7 - 3.0], requires_grad=True)
            loss = controlled(x, 0.25)
            loss.backward()
            found.append([loss.item(), *x.grad.tolist()])
            if i in counted:
                counts.append((in_use(Tensor), in_use(Node), in_use(np.ndarray)))
    return found, counts


@pytest.mark.slow
def test_a_thousand_reads_of_branches_and_loops_compile_once(compiled):
    x = mg.asarray([0.5, 1.0, -1.0])
    with mg.graph() as g:
        for _ in range(1000):
            controlled(x, 0.25).item()
        assert len(g.programs) == 1
    assert len(compiled) == 4, "the graph, the branch that is taken, and the two bodies"


@pytest.mark.slow
def test_gradients_of_branches_and_loops_compile_once(compiled):
    found, _ = control_flow(20)
    first = len(compiled)
    assert first <= 12
    np.testing.assert_allclose(found, control_flow(20, nullcontext)[0], rtol=1e-5)
    assert control_flow(5)[0] == found[:5] and len(compiled) == first


@pytest.mark.slow
def test_reads_of_branches_and_loops_keep_no_more_from_round_to_round(monkeypatch):
    monkeypatch.setattr(graph_mode, "SHOWN", 100)
    _, counts = control_flow(91, counted=(30, 90))
    for late, later in zip(*counts):
        assert later <= late + 20


def test_programs_with_branches_keep_no_history():
    w = mg.ones(3, requires_grad=True)
    references = [weakref.ref(w)]
    with mg.graph():
        y = mg.cond(w.sum() > 2, lambda w: w * 2, lambda w: w - 1, w)
        assert y.sum().item() == 6
        references.append(weakref.ref(y._data.node.inputs[0].attrs["then"]))
    del w, y
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(
    "one, other",
    [
        (lambda x: x * 2, lambda x: x * 3),
        (lambda x: x * 2, lambda x: x * 2.0),
        (lambda x: x + mg.asarray([1.0, 2.0]), lambda x: x + mg.random.uniform(2)),
        (lambda x: mg.cond(x[0] > 0, mg.abs, mg.tanh, x), lambda x: mg.cond(x[1] > 0, mg.abs, mg.tanh, x)),
    ],
)
def test_loops_with_other_bodies_have_other_structures(one, other):
    def looped(body, mode):
        mg.random.seed(2)
        with mode():
            return mg.fori_loop(0, 3, lambda i, x: body(x), mg.asarray([1.0, -2.0])).tolist()

    for body in (one, other):
        np.testing.assert_allclose(looped(body, mg.graph), looped(body, nullcontext), rtol=1e-6)


def test_loops_draw_new_numbers_in_each_round(compiled):
    def numbers(mode):
        found = []
        mg.random.seed(3)
        with mode():
            for _ in range(4):
                x = mg.fori_loop(0, 2, lambda i, x: x + mg.random.uniform(2), mg.zeros(2))
                y = mg.cond(x[0] > 0, lambda x: x + mg.random.uniform(2), lambda x: x - mg.random.uniform(2), x)
                found.append((x + y + mg.random.normal(2)).tolist())
        return found

    np.testing.assert_allclose(numbers(mg.graph), numbers(nullcontext), rtol=1e-6)
    assert len(compiled) <= 4


def test_branches_in_loops_in_loops_draw_and_print_in_each_round(compiled, capsys):
    def inner(y):
        y = mg.cond(y.sum() > 0, lambda y: y + mg.random.normal(2), lambda y: y - mg.random.normal(2), y)
        return mg.fori_loop(0, 2, lambda j, y: (mg.print("{:.3f}", y.sum()), y * 0.9 + mg.random.uniform(2))[1], y)

    def numbers(mode):
        mg.random.seed(7)
        with mode():
            return [mg.fori_loop(0, 3, lambda i, y: inner(y), mg.asarray([k - 2.0, 1])).tolist() for k in range(4)]

    expected = numbers(nullcontext), capsys.readouterr().out
    np.testing.assert_allclose(numbers(mg.graph), expected[0], rtol=1e-5)
    assert capsys.readouterr().out == expected[1]
    assert len(compiled) == 5, "the graph, the body of each loop, and both branches"


def test_programs_that_are_kept_keep_no_tensor_of_the_user():
    w, x = mg.ones(3, requires_grad=True), mg.ones(3)
    references = [weakref.ref(t) for t in (w, x)]
    with mg.graph() as g:
        loss = (w * x).sum()
        loss.backward()
        assert loss.item() == 3 and w.grad.tolist() == [1, 1, 1]
    references.append(weakref.ref(g))
    del w, x, loss, g
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


@pytest.mark.slow
def test_chain_of_many_operations_is_computed_and_freed():
    with mg.graph():
        x = mg.zeros(2)
        for _ in range(3000):
            x = x + 1
        assert x.tolist() == [3000, 3000]
        del x
        gc.collect()


def test_the_operations_of_a_value_that_is_computed_are_kept_for_gradients_only():
    x = mg.ones(3)
    with mg.graph() as g:
        y = x * 2
        assert [node.name for node in g.recorded(y).nodes] == ["multiply"]
    with pytest.raises(mg.TraceError, match=r"the operations of a value of shape \(3,\) are not kept any more"):
        g.recorded(y)


def test_untracked_results_have_nodes_where_all_are_recorded():
    x = mg.ones(3)
    with mg.record(), mg.graph():
        y = x * 2
    with mg.graph():
        z = x * 2
    assert y.node.op.name == "multiply" and z.node is None


def test_prefixes_of_recordings_go_with_their_programs(monkeypatch):
    monkeypatch.setattr("minigrad.compile.functions.latest.KEPT", 2)
    monkeypatch.setattr(PROGRAMS, "_kept", type(PROGRAMS._kept)())
    counts = []
    for length in range(1, 8):
        with mg.graph():
            assert (mg.ones(length) * 3).sum().item() == 3 * length
        counts.append(in_use(structure.Prefix))
    assert counts[-1] <= counts[2] + 3


# Operations that were recorded before at the same place ---------------------------------------------------------------


def steps(x, w, views):
    """Operations with histories, views, attributes and numbers."""
    for step in range(3):
        y = mg.tanh(x * (0.5 + step) + w.T) if views else mg.tanh(x * (0.5 + step) + w)
        x = (y[::-1] if views else y) - y.sum(axis=0, keepdims=True) / 300
        yield x


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("block", [nullcontext, mg.no_grad, mg.record])
def test_known_operations_compute_what_eager_mode_computes(views, block):
    found = []
    for mode in (nullcontext, mg.graph, mg.graph):
        x, w = mg.reshape(mg.arange(9.0), (3, 3)) / 9, mg.asarray(np.eye(3, dtype=np.float32), requires_grad=True)
        with mode(), block():
            values = []
            for y in steps(x, w, views):
                values.append(y.numpy_copy())
            if block is not mg.no_grad:
                y.sum().backward()
                values.append(w.grad.numpy_copy())
        found.append(values)
    for values in found[1:]:
        for value, expected in zip(values, found[0], strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_a_known_operation_has_its_own_line():
    lines = []
    with mg.graph() as g:
        x = mg.ones(3)
        y = mg.tanh(x * 2)
        lines.append([line_of(node.where)[1] for node in g.recorded(y).nodes])
        y.numpy_copy()
        x = mg.ones(3)
        y = mg.tanh(x * 2)
        lines.append([line_of(node.where)[1] for node in g.recorded(y).nodes])
    assert [after - before for before, after in zip(*lines, strict=True)] == [4, 4, 4]


def test_numbers_of_known_operations_must_fit_the_dtype():
    x = mg.asarray(np.ones(3, np.int8))
    with mg.graph():
        for number in (1, 2, 127):
            assert (x * number).sum().item() == 3 * number
        with pytest.raises(mg.DtypeError, match="300 out of bounds for int8"):
            x * 300



@pytest.mark.parametrize("mode", [nullcontext, mg.graph])
@pytest.mark.parametrize("value", [[2, 3], 2])
def test_a_negative_power_of_integers_fails_where_it_is_written(mode, value):
    x = mg.asarray(value)
    with mode(), pytest.raises(mg.ConversionError, match="Integers to negative integer powers are not allowed"):
        x**-1


def test_a_negative_power_of_no_integers_is_allowed():
    x = mg.asarray(np.ones((0, 2), np.int64))
    with mg.graph():
        y = x**-1
    assert y.shape == (0, 2) and ((-2) ** mg.asarray([2, 3])).tolist() == [4, -8]


def test_an_error_names_the_code_of_this_round(compiled):
    read = "def read(x, i):\n    return x[mg.asarray([i])].sum().item()  # {}"
    x, notes = mg.ones(3), []
    with mg.graph():
        for name, i in (("first", 1), ("second", 7)):
            names = {"mg": mg}
            exec(compile(read.format(name), f"{name}.py", "exec"), names)
            try:
                names["read"](x, i)
            except mg.IndexingError as error:
                notes += error.__notes__
    assert any("second.py:2" in note for note in notes)


def test_a_module_keeps_no_graph_alive():
    layer = mg.nn.Sequential(mg.nn.Linear(2, 2))
    with mg.graph() as g:
        y = layer(mg.ones((1, 2)))
    recorder = weakref.ref(g._recorder)
    del g, y
    gc.collect()
    assert recorder() is None


def test_a_reshape_of_views_of_views_shares_memory_as_in_eager_mode(views=50):
    found = []
    for mode in (nullcontext, mg.graph):
        with mode():
            x = mg.reshape(mg.arange(120.0), (60, 2)) * 1
            y = x
            for _ in range(views):
                y = y[1:]
            whole, turned = y.reshape(-1), y.T.reshape(-1)
            whole[0], turned[1] = 100.0, 200.0
            found.append((x.numpy_copy(), turned.numpy_copy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


DETACHED = {
    "a view": lambda x: x[1:].detach(),
    "a view of a view": lambda x: x[1:].detach()[1:].detach(),
    "an operation": lambda x: (x * 2).detach(),
    "the argument of a gradient": lambda x: mg.value_and_grad(lambda x: (mg.sum(x * x), x), has_aux=True)(x)[0][1],
    "a view of this argument": lambda x: mg.value_and_grad(lambda x: (mg.sum(x), x[::-1]), has_aux=True)(x)[0][1],
    "the result of vjp": lambda x: mg.vjp(lambda x: x[::-1], x)[0],
}


@pytest.mark.parametrize("name", DETACHED)
def test_a_detached_tensor_has_its_values_after_the_block(name):
    x = mg.asarray([1.0, 2.0, 3.0])
    with mg.graph():
        found = DETACHED[name](x)
    assert found.tolist() == DETACHED[name](x).tolist()
