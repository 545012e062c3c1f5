"""The cost model: its figures equal those computed by hand and those of runs that record their reads and memory."""

import gc
import tracemalloc
from functools import cache
from math import prod

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.count import FLOPS, Count, flops_of
from minigrad.compile.look import roofline
from minigrad.compile.look.record import Record
from minigrad.compile.running.frame import Frame
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.program import Program
from minigrad.compile.running.steps import ALIGNMENT
from minigrad.core.emit import EAGER
from minigrad.core.primitive import P
from tests.compile.partitions import fed, graph_of
from tests.compile.programs import random_program

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def floats(*shape, seed=0):
    return mg.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def cost_of(function, *args):
    return mg.jit(function).cost(*args)


def eager_of(function, *args):
    return mg.trace(function, *args).cost().eager


# By hand ------------------------------------------------------------------------------------------------------------


def test_cost_of_a_matrix_product():
    cost = cost_of(lambda x, y: x @ y, floats(3, 5), floats(5, 7))
    assert cost.eager == cost.program == Count(4 * (15 + 35), 4 * 21, 2 * 3 * 5 * 7, 1)
    assert cost.program.intensity == 210 / (4 * 71)
    stacked = cost_of(lambda x, y: x @ y, floats(2, 3, 5), floats(5, 7))
    assert stacked.program == Count(4 * (30 + 35), 4 * 42, 2 * 2 * 3 * 5 * 7, 1)


def test_cost_of_a_chain():
    cost = cost_of(lambda x: mg.tanh(x * 2 + 1) - x, floats(1000))
    assert cost.eager == Count(4000 * 5, 4000 * 4, 4000, 4)
    assert cost.program == Count(4000, 4000, 4000, 1)
    (kernel,) = cost.kernels
    assert [node.name for node in kernel.nodes] == ["multiply_1", "add_1", "tanh_1", "subtract_1"]
    assert kernel.eager == cost.eager and kernel.nodes[3].eager == Count(8000, 4000, 1000, 1)


def test_cost_of_softmax():
    def softmax(x):
        e = mg.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    cost = cost_of(softmax, floats(4, 16))
    whole, row = 4 * 64, 4 * 4
    eager = [(whole, row), (whole + row, whole), (whole, whole), (whole, row), (whole + row, whole)]
    assert [(n.eager.bytes_read, n.eager.bytes_written) for n in cost.nodes] == eager
    assert cost.eager.flops == 5 * 64
    assert cost.program == Count(whole, whole, 5 * 64, 1)


def test_cost_of_layer_norm():
    def layer_norm(x, weight):
        centred = x - x.mean(-1, keepdims=True)
        return centred / mg.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight

    cost = cost_of(layer_norm, floats(8, 32), floats(32))
    assert cost.program.launches == 1
    assert (cost.program.bytes_read, cost.program.bytes_written) == (4 * (8 * 32 + 32), 4 * 8 * 32)
    rows, full = 8, 8 * 32  # sums, differences, squares, quotients, products; means, root and its sum for each row
    assert cost.program.flops == 6 * full + 4 * rows


@pytest.mark.parametrize(
    ("function", "written"),
    [(lambda x: x.sum(), 1), (lambda x: x.max(0), 6), (lambda x: mg.argmax(x, -1), 4 * 2),
     (lambda x: mg.cumulative_sum(x, axis=0), 24)],
)
def test_cost_of_reductions(function, written):
    assert eager_of(function, floats(4, 6)) == Count(4 * 24, 4 * written, 24, 1)


def test_cost_of_a_gradient_that_is_given_results_of_a_loop():
    """One of several results is an input of its graph, and the loop that made it is not in it."""
    layer, x = mg.nn.LSTM(5, 8), mg.ones((7, 3, 5))
    f = mg.jit(lambda x: layer(x)[0].sum())
    f(x).backward()
    assert f.cost(x).gradient.eager_peak > 0


def test_cost_of_views_is_zero():
    def views(x):
        return x.T[1:].reshape(-1)[::2], x.T[1:, ::-1].reshape(5, 2, 2)[0], mg.broadcast_to(x, (3, 4, 6))

    cost = cost_of(views, floats(4, 6))
    assert cost.eager == Count(4 * 20, 4 * 20, 0, 1)  # the reshape of a transposed array is a copy
    assert [n.name for n in cost.nodes if n.eager.launches] == ["reshape_1"]


def test_a_value_read_twice_counts_once():
    assert eager_of(lambda x: x * x, floats(10)) == Count(40, 40, 10, 1)
    assert eager_of(lambda x: x[:6] * x[4:], floats(10)) == Count(40, 24, 6, 1)  # at most the elements that exist
    assert eager_of(lambda x: x + mg.broadcast_to(x[:1], (10,)), floats(10)).bytes_read == 40


def test_cost_of_indexing():
    table, rows = floats(50, 8), mg.asarray([3, 1, 3])
    assert eager_of(lambda t: t[rows], table) == Count(3 * 8 * 4 + 3 * 8, 3 * 8 * 4, 0, 1)
    placed = mg.trace(lambda t: mg.gradients(t[rows].sum(), [t])[0], mg.asarray(table.numpy_copy(), requires_grad=True))
    (added,) = [n for n in placed.nodes if n.op is P.scatter_add]
    assert flops_of(added) == 3 * 8
    assert eager_of(lambda x: mg.overlap_add(x, (6,)), floats(4, 3)).flops == 4 * 3

    def write(t):
        t = t.copy()
        t[2:4, :3] = 1.0
        return t

    cost = mg.trace(write, table).cost()
    assert cost.eager == Count(50 * 8 * 4, 50 * 8 * 4 + 2 * 3 * 4, 0, 2)  # only the written elements


def test_cost_of_factorisations_and_sorts():
    x = mg.eye(6) * 2
    graph = mg.trace(lambda x: (mg.linalg.cholesky(x), mg.linalg.solve(x, x[:, :2]), mg.linalg.slogdet(x)[1]), x)
    flops = {node.name: flops_of(node) for node in graph.nodes}
    assert flops["cholesky"] == 6**3 // 3 and flops["slogdet"] == 2 * 6**3 // 3
    assert flops["solve"] == 2 * 6**3 // 3 + 2 * 36 * 2
    assert eager_of(lambda x: mg.argsort(x), floats(3, 8)).flops == 24 * 3
    assert eager_of(lambda x: mg.sort(x), floats(3, 8)).flops == 24 * 3
    assert set(FLOPS) <= {op.name for op in P}


# Compared with recorded runs ----------------------------------------------------------------------------------------


def footprint(arrays):
    """The bytes of the distinct elements of some arrays."""
    owners = {}
    for array in arrays:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        owners.setdefault(id(owner), (owner, {}))[1][array.ctypes.data, array.shape, array.strides] = array
    total = 0
    for owner, looks in owners.values():
        each = [prod(s for s, stride in zip(a.shape, a.strides) if stride) for a in looks.values()]
        total += min(sum(each), owner.size) * owner.itemsize
    return total


def seen(name, kind, given, out):
    """The bytes that a kernel read and wrote, by its arrays."""
    arrays = [a for a in given if isinstance(a, np.ndarray)]
    results = out if isinstance(out, tuple) else (out,)
    if name == "project" or (kind == "view" and (np.may_share_memory(out, arrays[0]) or not out.size)):
        return Count()
    read = footprint(arrays)
    if name == "gather":
        read = min(out.nbytes, footprint(arrays[:1])) + footprint(arrays[1:])
    flops = 0
    if kind == "elementwise":
        flops = out.size * {"astype": 0, "bitcast": 0, "sigmoid": 7}.get(name, 1)
    elif kind == "reduce":
        flops = arrays[0].size
    elif name == "matmul":
        flops = 2 * out.size * arrays[0].shape[-1]
    return Count(read, sum(r.nbytes for r in results), flops, 1)


def train():
    w, b = floats(6, 4, seed=1), floats(4, seed=2)
    w.requires_grad = b.requires_grad = True
    x, optimizer = floats(5, 6), mg.optim.SGD([w, b], lr=0.1, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = (mg.gelu(x @ w + b) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


X = floats(7, 9)


@pytest.mark.parametrize(
    "step",
    [train(), lambda: mg.softmax(X) @ X.T, lambda: mg.layer_norm(X),
     lambda: mg.value_and_grad(lambda x: (mg.tanh(x[:, ::2]) ** 2).sum())(X)],
)
def test_eager_counts_are_those_of_a_recorded_run(step, monkeypatch):
    step()  # so that optimizers and caches are in their final state
    graph = mg.jit(step).graph()
    total, tables = Count(), mg.devices.CPU
    weak = tables.weak

    def watched(name, kernel):
        def run(*given, **attrs):
            nonlocal total
            out = kernel(*given, **attrs)
            made = out if isinstance(out, (tuple, np.ndarray)) else np.asarray(out)
            numbers = {id(number) for number in weak.values()}
            total += seen(name, P[name].kind, [g for g in given if id(g) not in numbers], made)
            return out

        return run

    for name, kernel in dict(tables.kernels).items():
        monkeypatch.setitem(tables.kernels, name, watched(name, kernel))
    step()
    monkeypatch.undo()
    counted = graph.cost().eager
    assert (total.bytes_read, total.bytes_written) == (counted.bytes_read, counted.bytes_written)
    assert total.launches == counted.launches


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_are_counted_as_they_run(seed, monkeypatch):
    outputs, _alive = random_program(seed, 14)
    graph = graph_of(*outputs)
    if not graph.nodes:
        return
    counted = []
    compute = EAGER.compute

    def watched(op, values, attrs, device):
        out = compute(op, values, attrs, device)
        if op.kind != "view" and isinstance(out, np.ndarray):
            out = np.ascontiguousarray(out).reshape(out.shape)  # eager mode copies views of other arrays
        counted.append(seen(op.name, op.kind, values, out))
        return out

    monkeypatch.setattr(EAGER, "compute", watched)
    with np.errstate(all="ignore"):
        PlainProgram(graph)(fed(graph))
    monkeypatch.undo()
    nodes = [n for n in graph.cost().nodes if n.node.op is not P.put]
    assert len(counted) >= len(nodes)
    for cost, run in zip(graph.cost().nodes, counted):
        if cost.node.name in (
            "put", "scatter_add", "scatter_max", "argsort", "sort", "solve", "cholesky", "slogdet", "eigh", "svd", "qr",
            "pinv", "random",
        ):
            run = Count(run.bytes_read, run.bytes_written, cost.eager.flops, run.launches)
        if cost.node.op is not P.put:
            assert cost.eager == run, cost.name


# Memory -------------------------------------------------------------------------------------------------------------


def numpy_bytes():
    """The bytes that NumPy's arrays hold now, counted from the start of tracemalloc."""
    only = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only]).traces)


@pytest.fixture
def traced_memory():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def several_kernels(x, w):
    h = mg.tanh(x @ w)
    e = mg.softmax(h @ w + h)
    return e.sum(0), mg.argsort(e)[:, :3], (e * 2).T


def test_the_memory_of_a_program_is_what_a_run_allocates(traced_memory, monkeypatch):
    x, w = floats(40, 24), floats(24, 24)
    program = Program(mg.trace(several_kernels, x, w))
    cost = mg.trace(several_kernels, x, w).cost()
    arrays = [x.numpy_copy(), w.numpy_copy()]
    held = []
    run = Frame.run
    before = numpy_bytes()

    def watched(frame, arrays, starts):
        last = frame.steps[-1]
        frame.steps[-1] = lambda starts: (last(starts), held.append(numpy_bytes()))
        return run(frame, arrays, starts)

    monkeypatch.setattr(Frame, "run", watched)
    results = program(arrays)
    assert len(results) == 3
    memory = cost.memory
    copies = sum(k.program.bytes_written for k in cost.kernels if k.kind == "copies")
    assert held[0] - before == memory.total - copies
    assert memory.libraries == 40 * 24 * 8 and memory.scratch == 24 * 4 + ALIGNMENT
    assert memory.arena == sum(program.plan.slots) + ALIGNMENT * len(program.plan.slots)


def test_the_peak_of_eager_mode_is_that_of_a_run_node_by_node(traced_memory, monkeypatch):
    x, w = floats(40, 24), floats(24, 24)
    graph = mg.trace(several_kernels, x, w)
    plain = PlainProgram(graph)
    arrays = [x.numpy_copy(), w.numpy_copy()]
    compute, held = EAGER.compute, []

    def watched(*given):
        out = compute(*given)
        held.append(numpy_bytes())
        return out

    monkeypatch.setattr(EAGER, "compute", watched)
    before = numpy_bytes()
    results = plain(arrays)
    assert len(results) == 3 and max(held) - before == graph.cost().eager_peak


def test_scratch_memory_and_results_in_place():
    x = floats(64, 1024)
    cost = cost_of(lambda x: mg.exp(mg.tanh(x) - mg.tanh(x).max(-1, keepdims=True)), x)
    (kernel,) = cost.kernels
    assert kernel.scratch == cost.memory.scratch == 4 * 1024 + ALIGNMENT
    p = mg.ones(100)

    def update():
        p.__imul__(0.5)

    cost = cost_of(update)
    assert cost.memory.total == 0 and cost.program == Count(400, 400, 100, 1)


# The table ----------------------------------------------------------------------------------------------------------


def test_cost_table():
    cost = cost_of(lambda x: mg.tanh(x @ x) * 2, floats(32, 32))
    steps, sums = repr(cost).split("\n\n")
    assert [line.split()[0] for line in steps.splitlines()] == ["step", "matmul_1", "kernel_1"]
    assert "tanh_1, multiply_1" in steps and "4.1 kB" in steps and "65,536" in steps
    assert [line.split()[:1] for line in sums.splitlines()] == [["launches"], ["node"], ["fused"]]
    assert sums.splitlines()[2].split()[1:] == ["2", "8.19", "kB", "8.19", "kB", "67,584", "8.26", "kB"]
    html = cost._repr_html_()
    assert html.count("<table>") == 2 and "<td>tanh_1, multiply_1</td>" in html


def test_cost_totals():
    cost = cost_of(lambda x: mg.tanh(x @ x) * 2, floats(4, 4))
    assert [[node.name for node in k.nodes] for k in cost.kernels] == [["matmul_1"], ["tanh_1", "multiply_1"]]
    assert cost.program.launches == 2 and cost.eager.launches == 3
    assert cost.after_passes.flops == cost.eager.flops


def test_cost_table_is_shortened_for_many_nodes():
    def chain(x):
        for _ in range(20):
            x = mg.tanh(x) * 1.5
        return x

    cost = cost_of(chain, floats(8))
    assert "and 34 more" in repr(cost)
    assert cost.eager.launches == 40 and cost.program.launches == 1
    assert cost.eager_peak == 64


def test_a_roofline_has_all_steps_and_their_bounds(monkeypatch):
    machine = roofline.Machine(bandwidth=1e9, flops=1e9, launch=1e-6)
    monkeypatch.setattr(roofline, "machine", cache(lambda: machine))
    rows = mg.asarray([0, 2, 1, 1] * 250)

    def f(x, y):
        h = mg.tanh(x @ y)
        return h[rows] + mg.random.normal((1000, 64)), x[0, :2] * 2

    args = floats(64, 64), floats(64, 64)
    cost = cost_of(f, *args)
    made = mg.jit(f).record(*args, runs=1)
    events = [event._replace(begin=0.0, end=1e-3) for event in made.events]
    found = Record(made.way, 1.0, events, made.program).roofline()
    assert [s.kernel.name for s in found.steps] == [k.name for k in cost.kernels]
    bounds = {s.kernel.nodes[0].node.name: s.bound for s in found.steps}
    assert bounds["matmul"] == "flops" and bounds["gather"] == "memory"
    small = next(s for s in found.steps if s.kernel.program.bytes == 16)
    assert small.bound == "launch" and small.best == 1e-6
    assert all(s.seconds > 0 and s.attained == s.best / s.seconds for s in found.steps)
    assert "1.0 GB/s, 1 GFLOP/s, 1.0 µs a launch" in repr(found) and "<td>flops</td>" in found._repr_html_()


def test_the_limit_of_operations_is_that_of_the_fastest_product(monkeypatch):
    """A convolution's generated kernel was faster than the library's product: its share was of a limit below it."""
    seconds = {2: 4.0, 1: 2.0}
    monkeypatch.setattr(roofline, "_of_step", lambda shape, operation: seconds[len(shape)])
    assert roofline._flops() == 2 * roofline.ORDER**3 / 2.0
    seconds[2] = 1.0
    assert roofline._flops() == 2 * roofline.ORDER**3


def test_machine_is_measured_once(monkeypatch):
    monkeypatch.setattr(roofline, "IN_MEMORY", 1 << 12)
    monkeypatch.setattr(roofline, "IN_CACHES", [1 << 10, 1 << 11])
    monkeypatch.setattr(roofline, "ORDER", 8)
    roofline.machine.cache_clear()
    try:
        first = roofline.machine()
        assert first is roofline.machine() and min(first.bandwidth, first.flops, first.launch, *first.caches) > 0
    finally:
        roofline.machine.cache_clear()


def test_the_collector_runs_again_after_a_trace_that_failed():
    def f(x):
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        mg.jit(f)(floats(2))
    assert gc.isenabled()
