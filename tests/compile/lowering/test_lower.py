"""Lowering: the results of kernels, their memory, their chunks and their cost."""

from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.loops.ir import Accumulate, For, Let, Store, statements
from minigrad.compile.loops.operations import steps_of
from minigrad.compile.lowering.lower import lower
from minigrad.core.primitive import P
from tests.compile.interpreter import run_kernel
from tests.compile.partitions import Runner, by_nodes, check, fed, graph_of, natively, recorded
from tests.compile.programs import random_program

SMALL = Chunking(most=4, least=16)  # so that small sums have several chunks


def floats(*shape, seed=0, dtype=mg.float32, requires_grad=True):
    """Random numbers in a tensor that requires a gradient."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return mg.asarray(values, dtype=dtype, requires_grad=requires_grad)


def tame(tensor):
    """Whether float32 is precise enough for a comparison after sums and differences."""
    value = tensor.numpy_copy().astype(np.float64)
    return np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e4


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 30))
def test_random_programs_compute_what_eager_computes(start):
    count = 0
    for seed in range(start, start + 30):
        outputs, _alive = random_program(seed, 8 + seed % 30)
        if all(map(tame, outputs)):
            check(*outputs, threads=1 + seed % 3, rtol=2e-4, atol=2e-4, chunking=SMALL if seed % 2 else None)
            count += 1
    assert count > 15


@pytest.mark.slow
@pytest.mark.parametrize(("run", "count"), [(by_nodes, 60), (natively, 12)])
def test_printers_agree_on_random_programs(run, count):
    if run is natively:
        pytest.importorskip("llvmlite")
    for seed in range(1000, 1000 + count):
        outputs, _alive = random_program(seed, 8 + seed % 30)
        if all(map(tame, outputs)):
            check(*outputs, threads=2, rtol=2e-4, atol=2e-4, chunking=SMALL if seed % 2 else None, run=run)


# Expressions ----------------------------------------------------------------------------------------------------------


def test_expressions_of_primitives_use_operations_of_the_loop_language():
    for op in P:
        if op.expr is not None:
            assert steps_of(op)[-1].op


@pytest.mark.parametrize("dtype", [mg.float16, mg.float32, mg.float64, mg.int8, mg.uint8, mg.int32, mg.int64, mg.bool])
def test_arithmetic_in_every_dtype(dtype):
    rng = np.random.default_rng(1)
    a, b = (mg.asarray(rng.integers(0, 2 if dtype == mg.bool else 9, (3, 4)), dtype=dtype) for _ in range(2))
    with recorded() as _alive:
        results = [a + b, a * b, mg.maximum(a, b), mg.minimum(a, b), a < b, a <= b, a == b, mg.where(a < b, a, b),
                   a.astype(mg.float32), a + 1, a * 2.5, mg.max(a), mg.min(a, 0), mg.sum(a, 1), mg.prod(a + 1, 0),
                   mg.round(a) if dtype != mg.bool else a | b]
        if dtype != mg.bool:
            results += [a - b, -a, mg.abs(a), a.astype(mg.bool), mg.floor(a), mg.exp(a / 4)]
    check(*results, rtol=1e-5)


def test_numbers_take_the_dtype_of_what_is_beside_them():
    x = floats(3, dtype=mg.float64)
    with recorded() as _alive:
        y = 0.1 + x
    partition = check(y, rtol=1e-15)
    lets = [s for s in statements(lower(partition, partition.kernels[0]).kernel.body) if isinstance(s, Let)]
    (let,) = [s for s in lets if s.op == "add"]
    assert let.dtype == mg.float64 and 0.1 in let.args


def test_constants_and_ranges_take_no_memory():
    x = floats(4, 6)
    with recorded() as _alive:
        y = mg.triu(x) * mg.full((6,), 2.0) + mg.arange(1.0, 4.0, 0.5)
    partition = check(y)
    (kernel,) = partition.kernels
    assert lower(partition, kernel).count.bytes_read == x.size * 4


# Rows -----------------------------------------------------------------------------------------------------------------


def row_loops(lowered):
    """The loops over the columns of a row."""
    return [s for s in statements(lowered.kernel.body) if isinstance(s, For) and s.variable.startswith("r")]


def test_softmax_takes_three_passes_and_keeps_the_exponentials():
    x = floats(4, 64)
    with recorded() as _alive:
        y = mg.softmax(x)
    partition = check(y)
    lowered = lower(partition, partition.kernels[0])
    assert [[a.op for a in loop.accumulators] for loop in row_loops(lowered)] == [["max"], ["sum"], []]
    assert [p.role for p in lowered.kernel.parameters] == ["in", "out", "scratch"]
    assert lowered.kernel.parameters[-1].size == 64
    exponentials = [s for s in statements(lowered.kernel.body) if isinstance(s, Let) and s.op == "exp"]
    assert len(exponentials) == 1


def test_values_that_are_cheap_are_computed_again_in_later_passes():
    x = floats(4, 64)
    with recorded() as _alive:
        y = mg.layer_norm(x)
    lowered = lower(*(lambda p: (p, p.kernels[0]))(check(y)))
    assert [p.role for p in lowered.kernel.parameters] == ["in", "out"]


def test_stored_values_are_loaded_again():
    x = floats(4, 64)
    with recorded() as _alive:
        e = mg.exp(x)
        y = e / mg.sum(e, -1, keepdims=True)
    lowered = lower(*(lambda p: (p, p.kernels[0]))(check(e, y)))
    assert [p.role for p in lowered.kernel.parameters] == ["in", "out", "out"]


def test_a_row_is_divided_by_its_number():
    x = mg.asarray([[49.0, 7.0, 1.0] * 20, [1e-40, 2e-40, 0.0] * 20])
    quotients = mg.jit(lambda x: x / mg.max(x, axis=-1, keepdims=True))(x).numpy()
    np.testing.assert_array_equal(quotients, x.numpy() / x.numpy().max(axis=-1, keepdims=True))
    with mg.graph():
        y = mg.floor(mg.asarray([49.0] * 8) / mg.asarray(49.0))
    assert y.tolist() == [1.0] * 8


# Chunks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, (0, 2), 1])
def test_sums_do_not_depend_on_the_number_of_threads(axis):
    x = floats(32, 5, 48)
    with recorded() as _alive:
        y = mg.sum(mg.exp(x), axis)
    graph = graph_of(y)
    partition = fuse(graph, SMALL)
    results = [Runner(partition, threads)(fed(graph))[0] for threads in (1, 2, 3, 7)]
    assert lower(partition, partition.kernels[0]).kernel.parallel == "chunks"
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes()
    np.testing.assert_allclose(results[0], y.numpy_copy(), rtol=1e-4)


def test_chunks_follow_from_the_shape():
    x = floats(1 << 20)
    with recorded() as _alive:
        y = mg.sum(x)
    partition = fuse(graph_of(y))
    assert partition.kernels[0].loops.chunks == 16
    assert [p.size for p in lower(partition, partition.kernels[0]).kernel.parameters] == [1 << 20, 16]


@pytest.mark.parametrize("axis, apart", [(1, 5), ((1, 3), 5), (2, 30), ((1, 2), 5), (0, 0), ((0, 2), 0)], ids=str)
def test_chunks_before_the_first_reduced_dimension_have_their_own_results(axis, apart):
    x = floats(5, 6, 4, 9)
    with recorded() as _alive:
        results = [mg.sum(mg.exp(x), axis), mg.max(x, axis), mg.mean(x.astype(mg.float16), axis)]
    graph = graph_of(*results)
    partition = fuse(graph, SMALL)
    loops = partition.kernels[0].loops
    assert (loops.apart, loops.parts) == ((True, 1) if apart else (False, loops.chunks))
    assert not apart or loops.chunks == apart
    for found, wanted in zip(Runner(partition, 2)(fed(graph)), results):
        np.testing.assert_allclose(found, wanted.numpy_copy(), rtol=1e-3 if found.dtype == np.float16 else 1e-5)


def test_reductions_with_different_outer_dimensions_share_no_chunks_of_their_own():
    x = floats(6, 4, 16)
    with recorded() as _alive:
        results = [mg.sum(x, 1), mg.max(x, 0)]
    graph = graph_of(*results)
    partition = fuse(graph, SMALL)
    assert not any(group.loops.apart for group in partition.kernels)
    for found, wanted in zip(Runner(partition, 2)(fed(graph)), results):
        np.testing.assert_allclose(found, wanted.numpy_copy(), rtol=1e-5)


def test_the_only_chunk_of_a_small_kernel_leaves_the_result_itself():
    x = floats(8, 8)
    with recorded() as _alive:
        y = mg.sum(x, 0)
    partition = check(y)
    assert len(partition.groups) == 1
    assert [p.role for p in lower(partition, partition.kernels[0]).kernel.parameters] == ["in", "out"]


# In place -------------------------------------------------------------------------------------------------------------


def updated():
    """A parameter and its next value, in a graph."""
    w, g = floats(4, 6, seed=1), floats(4, 6, seed=2)
    with recorded() as alive:
        new = w - g * 0.1
    return w, new, (g, alive)


def test_a_result_may_take_the_place_of_an_input():
    w, new, _alive = updated()
    graph = graph_of(new)
    partition = fuse(graph).donated({new.node: w.node})
    lowered = lower(partition, partition.kernels[0])
    assert sorted(p.role for p in lowered.kernel.parameters) == ["in", "inout"]
    arrays = [a.copy() for a in fed(graph)]
    (result,) = Runner(partition)(arrays)
    np.testing.assert_allclose(result, new.numpy_copy(), rtol=1e-6)
    stores = [s for s in statements(lowered.kernel.body) if isinstance(s, Store)]
    inout = next(p.name for p in lowered.kernel.parameters if p.role == "inout")
    assert [s.buffer for s in stores] == [inout]


def test_inputs_that_are_still_read_are_not_overwritten():
    w = floats(4, 4)
    with recorded() as _alive:
        turned = w + w.T
        total = w * 2.0
        later = mg.sum(w * (total @ total), axis=0)
        softened = mg.softmax(w)
    for outputs in ((turned,), (softened,), (total, later)):  # other positions, several passes, a later reader
        partition = fuse(graph_of(*outputs)).donated({outputs[0].node: w.node})
        assert not any(group.inplace for group in partition.groups)


def test_update_without_readers_is_moved_to_the_end():
    w = floats(4, 4)
    with recorded() as _alive:
        y = w @ w
        new = w * 0.5
    before = fuse(graph_of(new, y))
    partition = before.donated({new.node: w.node})
    assert partition.groups[-1].inplace == {new.node: w.node}
    assert not any(group.inplace for group in before.groups)
    with pytest.raises(FrozenInstanceError):
        partition.groups = before.groups


# Bytes and operations -------------------------------------------------------------------------------------------------


def test_bytes_and_operations_are_exact():
    x, b = floats(128, 64), floats(64)
    with recorded() as _alive:
        y = mg.tanh(x * 2.0 + b)
    lowered = lower(*(lambda p: (p, p.kernels[0]))(check(y)))
    assert lowered.count.bytes_read == (128 * 64 + 64) * 4
    assert lowered.count.bytes_written == 128 * 64 * 4
    assert lowered.count.flops == 3 * 128 * 64


def test_bytes_count_what_is_read_of_a_view():
    x = floats(128, 64)
    with recorded() as _alive:
        y = x[::2] + x[::2]
    lowered = lower(*(lambda p: (p, p.kernels[0]))(check(y)))
    assert lowered.count.bytes_read == 64 * 64 * 4


def test_rows_count_what_is_computed_for_each_row_once():
    x = floats(16, 64)
    with recorded() as _alive:
        y = x - mg.log(mg.sum(x * x, -1, keepdims=True))
    lowered = lower(*(lambda p: (p, p.kernels[0]))(check(y)))
    assert lowered.count.flops == 16 * 64 * 3 + 16  # the products, their sums, the differences; the logarithms


def test_parameters_are_named_by_what_they_stand_for():
    x = floats(64, 64)
    with recorded() as _alive:
        y = mg.sum(x, 0) * 2.0
    partition = check(y, chunking=SMALL)
    first, second = (lower(partition, g) for g in partition.kernels)
    assert [(a.node, a.kind) for a in first.arguments] == [(x.node, "value"), (y.node.inputs[0], "partial")]
    assert (y.node.inputs[0], "partial") in [(a.node, a.kind) for a in second.arguments]
    assert (y.node, "value") in [(a.node, a.kind) for a in second.arguments]
    assert any(isinstance(s, Accumulate) for s in statements(first.kernel.body))


def test_equal_kernels_have_equal_texts():
    x, z = floats(8, 8), floats(8, 8, seed=3)
    with recorded() as _alive:
        y = (mg.exp(x) * 2.0) @ x + (mg.exp(z) * 2.0) @ z
    partition = check(y)
    first, second = (lower(partition, g).kernel for g in partition.kernels[:2])
    assert first == second


# Parts placed in a whole ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [(0,), (slice(1, 3),), (slice(None), 2), (slice(None), slice(2, 5)), (slice(None), None, slice(None, 4)),
     (..., slice(3, None)), (slice(0, 1), slice(1, 2)), (slice(None, None, 2),), (slice(None), -1), (2, 3)],
)
def test_gradients_of_slices_are_loops(index):
    x, c = floats(4, 24), floats(4, 24, seed=1)[index].detach()
    with recorded() as _alive:
        y = mg.exp(x)[index] * 1.0
        (g,) = mg.gradients(y, [x], cotangents=c, create_graph=True)
        column = mg.sum(g, 0)
    partition = check(y, g, column, threads=2)
    libraries = [group.library.node.name for group in partition.groups if group.library]
    assert libraries == (["place"] if index == (slice(None, None, 2),) else [])


def test_gradients_of_several_slices_add_up_in_one_kernel():
    x, weight = floats(2, 6, 96), floats(96)
    cotangents = [floats(2, 4, 6, 8, seed=i) for i in range(3)]
    with recorded() as _alive:
        parts = (x + weight).reshape(2, 6, 3, 4, 8)
        heads = [mg.permute_dims(parts[:, :, i], (0, 2, 1, 3)) * 1.0 for i in range(3)]
        grads = mg.gradients(heads, [x, weight], cotangents=cotangents, create_graph=True)
    partition = check(*grads)
    assert all(group.library is None for group in partition.groups)
    last = partition.groups[-1]
    assert sum(node.name == "place" for node in last.levels) == 3 and last.partials


def test_padding_is_a_loop():
    x = floats(3, 5)
    with recorded() as _alive:
        y = mg.pad(x, ((1, 2), (0, 3))) + 1.0
        z = mg.pad(x, 1, value=2.5)
    partition = check(y, z)
    assert all(group.library is None for group in partition.groups)
    (group,) = partition.kernels[:1]
    assert lower(partition, group).count.bytes_read == x.size * 4


# Several elements in one round ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [run_kernel, by_nodes, natively])
@pytest.mark.parametrize("chunking", [None, SMALL, Chunking(long=False)])
@pytest.mark.parametrize("size", [2, 3])
def test_runs_that_are_short_are_computed_together(run, chunking, size):
    if run is natively:
        pytest.importorskip("llvmlite")
    x = floats(2, 3, 4 * size, 5 * size)
    with recorded() as _alive:
        y = mg.tanh(x * 2)
        pooled = mg.max_pool2d(y, size) + mg.avg_pool2d(y, size)
        (gradient,) = mg.gradients((pooled * pooled).sum(), [x], create_graph=True)
        by_channel = gradient.sum((0, 2, 3))
        outputs = [pooled, gradient, by_channel]
    check(*outputs, threads=2, rtol=1e-5, atol=1e-5, chunking=chunking, run=run)
    loops = [k.loops for k in fuse(graph_of(*outputs), chunking).kernels]
    taken = {(each.columns, each.steps) for each in loops if each.steps > 1}
    assert taken == (set() if chunking is not None and not chunking.long else {(5 * size, size)})
    assert all(f"rows of 5 × {size}" in str(each) for each in loops if each.steps > 1)


def test_elements_with_no_run_in_common_are_not_taken_together():
    x, y = floats(6, 35, 2), floats(6, 14, 5)
    with recorded() as _alive:
        total = x.sum(2, keepdims=True).broadcast_to((6, 35, 2)).reshape((6, 70)) + mg.exp(
            y.max(2, keepdims=True).broadcast_to((6, 14, 5)).reshape((6, 70))
        )
    check(total, rtol=1e-5, atol=1e-5)
    assert all(k.loops.steps == 1 for k in fuse(graph_of(total)).kernels)


def test_numbers_that_stand_elsewhere_do_not_make_another_kernel():
    x, rates, w = floats(8, 8, seed=1), floats(5, seed=3), floats(8, 8, seed=2)
    with recorded() as _alive:
        y = mg.tanh(x * rates[3] + mg.exp(rates[1])) @ w
        z = mg.tanh(y * rates[0] + mg.exp(rates[4])) @ w
    partition = check(z)
    lowered = [lower(partition, group) for group in partition.kernels]
    numbers = [each.offset for one in lowered for each in one.arguments if each.kind == "number"]
    assert sorted(numbers) == [0, 1, 3, 4]
    bodies = {repr((one.kernel.parameters, one.kernel.body)) for one in lowered}
    assert len(lowered) == 2 and len(bodies) == 1


@pytest.mark.parametrize(("edges", "loops"), [
    ((0, 32, 64, 96), 3), ((0, 8, 88, 96), 3), ((0, 40, 80), 2), ((0, 13, 26, 39), 1),
])
def test_a_row_of_parts_has_a_loop_for_each_part(edges, loops):
    x = floats(6, edges[-1])
    with recorded() as _alive:
        parts = [x[:, low:high] * 2.0 for low, high in pairwise(edges)]
        cotangents = [floats(*part.shape, seed=i) for i, part in enumerate(parts)]
        (g,) = mg.gradients(parts, [x], cotangents=cotangents, create_graph=True)
    partition = check(g, threads=2)
    (rows,) = lower(partition, partition.groups[-1]).kernel.body
    assert sum(isinstance(each, For) for each in rows.body) == loops
    with recorded() as _alive:
        columns = mg.sum(g, 0)
    partition = check(g, columns, threads=2)
    both = lower(partition, partition.groups[-1]).kernel
    assert sum(isinstance(each, Accumulate) for each in statements(both.body)) == loops  # each adds to its columns
