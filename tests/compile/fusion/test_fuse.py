"""Fusion: which nodes share a kernel, why others do not, and that kernels can run in the order of their depths."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.compute import ONCE, PER_ELEMENT
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.nodes.thresholds import MOST_NODES
from minigrad.compile.nodes.view import View
from tests.compile.partitions import check, graph_of, recorded
from tests.compile.programs import random_program

SMALL = Chunking(most=4, least=16)
ROWS = (16, 24)


def floats(*shape, seed=0):
    """Random numbers in a tensor that requires a gradient."""
    return mg.asarray(np.random.default_rng(seed).standard_normal(shape).astype("f4"), requires_grad=True)


def steps(partition):
    """The groups in order: the names of library calls, and "kernel"."""
    return [g.library.node.name if g.library else "kernel" for g in partition.groups]


# General rules --------------------------------------------------------------------------------------------------------


def forward_and_backward(function, *inputs):
    """The outputs of a function and its gradients by all inputs, and tensors to keep alive."""
    cotangent = floats(*function(*inputs).shape, seed=9)
    with recorded() as alive:
        y = function(*inputs)
        grads = mg.gradients(y, list(inputs), cotangents=cotangent, create_graph=True)
    return [y, *grads], (alive, cotangent, inputs)


def by_hand_softmax(x):
    e = mg.exp(x - mg.max(x, -1, keepdims=True))
    return e / mg.sum(e, -1, keepdims=True)


def rms_norm(x, w):
    return x / mg.sqrt(mg.mean(x * x, -1, keepdims=True) + 1e-6) * w


CASES = {
    "softmax": (mg.softmax, [ROWS]),
    "log_softmax": (mg.log_softmax, [ROWS]),
    "softmax by hand": (by_hand_softmax, [ROWS]),
    "layer_norm": (mg.layer_norm, [ROWS, (24,), (24,)]),
    "rms norm by hand": (rms_norm, [ROWS, (24,)]),
    "gelu": (mg.gelu, [ROWS]),
    "a chain": (lambda x: mg.tanh(mg.gelu(x * 1.5 + 0.5)) * mg.sigmoid(x) - mg.exp(-x * x), [ROWS]),
    "three dimensions": (lambda x: mg.softmax(x * 2.0), [(2, 8, 24)]),
}


@pytest.mark.parametrize("name", CASES)
def test_row_functions_and_their_gradients_are_one_kernel(name):
    function, shapes = CASES[name]
    tensors, _alive = forward_and_backward(function, *[floats(*s, seed=i) for i, s in enumerate(shapes)])
    assert steps(check(tensors[0])) == ["kernel"]
    assert steps(check(*tensors)) == ["kernel"]


def test_sums_across_rows_are_finished_by_one_kernel():
    inputs = [floats(64, 16), floats(16, seed=1), floats(16, seed=2)]
    tensors, _alive = forward_and_backward(mg.layer_norm, *inputs)
    partition = check(*tensors, chunking=SMALL)
    assert steps(partition) == ["kernel", "kernel"]
    assert len(partition.groups[1].finishes) == 2


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_cross_entropy_and_its_gradient_are_one_kernel_of_rows(reduction):
    x, targets = floats(*ROWS), mg.asarray(np.arange(16) % 24)
    with recorded() as _alive:
        losses = mg.cross_entropy(x, targets, reduction)
        seed = mg.ones(losses.shape)
        (g,) = mg.gradients(losses, [x], cotangents=seed, create_graph=True)
    partition = check(losses, g)
    rows, *finish = partition.groups
    assert rows.row == 24 and {x.node, targets.node} <= set(rows.loads)
    assert [group.elements for group in finish] == ([1] if reduction == "mean" else [])


def test_adam_is_one_kernel_for_a_parameter():
    p, g, m = floats(*ROWS), floats(*ROWS, seed=1), floats(*ROWS, seed=2)
    v, steps_done = mg.abs(floats(*ROWS, seed=3)).detach(), mg.asarray(3.0)
    with recorded() as _alive:
        t = steps_done + 1.0
        weight, root = -mg.expm1(t * math.log(0.9)), mg.sqrt(-mg.expm1(t * math.log(0.999)))
        mean = m * 0.9 + g * 0.1
        square = v * 0.999 + g * g * 0.001
        new = p - mean * (root * 1e-3 / weight) / (mg.sqrt(square) + root * 1e-8)
    partition = check(new, mean, square, t)
    assert steps(partition) == ["kernel"]
    levels = partition.groups[0].levels
    assert levels[t.node] is ONCE and levels[new.node] is PER_ELEMENT


def test_an_mlp_step_is_products_and_few_kernels():
    x, targets = floats(16, 20), mg.asarray(np.arange(16) % 10)
    parameters = [floats(32, 20), floats(32), floats(10, 32), floats(10)]
    w1, b1, w2, b2 = parameters
    with recorded() as _alive:
        loss = mg.cross_entropy(mg.linear(mg.gelu(mg.linear(x, w1, b1)), w2, b2), targets)
        grads = mg.gradients(loss, parameters, create_graph=True)
        new = [p - 0.1 * g for p, g in zip(parameters, grads)]
    partition = check(loss, *new)
    done = steps(partition)
    assert done.count("matmul") == 5 and len(done) == 13, str(partition)


# Reductions across rows -----------------------------------------------------------------------------------------------


def test_a_sum_over_rows_is_finished_where_it_is_used():
    x, b = floats(64, 8), floats(8)
    with recorded() as _alive:
        total = mg.sum(mg.exp(x), 0)
        new = b - 0.1 * total
    partition = check(new, chunking=SMALL)
    assert steps(partition) == ["kernel", "kernel"]
    first, second = partition.groups
    assert list(first.partials) == [total.node] and list(second.finishes) == [total.node]
    assert partition.chunks_of[total.node] == 4
    assert first.stores == []


def test_sums_over_rows_of_several_values_share_a_kernel():
    x = floats(64, 8)
    with recorded() as _alive:
        results = [mg.sum(x, 0), mg.sum(x * x, 0), mg.max(x, 0), mg.exp(x)]
    assert steps(check(*results)) == ["kernel"]
    assert steps(check(*results, chunking=SMALL)) == ["kernel", "kernel"]


def test_a_sum_of_everything_in_the_middle_parts_two_kernels():
    x = floats(64, 8)
    with recorded() as _alive:
        y = x / mg.sqrt(mg.sum(x * x))
    partition = check(y, chunking=SMALL)
    assert steps(partition) == ["kernel", "kernel"]
    assert partition.groups[1].levels[y.node.inputs[1]] is ONCE


def test_half_precision_is_summed_in_single():
    x = mg.asarray(np.full((4096,), 0.1), dtype=mg.float16)
    with recorded() as _alive:
        y = mg.sum(x)
    partition = check(y, chunking=SMALL)
    assert partition.chunks_of[y.node] == 4


# Boundaries and their reasons -----------------------------------------------------------------------------------------


def reason(partition, reader):
    """The reason why a node is not in the kernel of its input."""
    return next(why for (_, b), why in partition.reasons.items() if b is reader.node)


def test_boundaries_between_kernels_have_reasons():
    x = floats(8, 8)
    with recorded() as _alive:
        e = mg.exp(x)
        turned = e.T + 1.0
        product = e @ x
        after = product * 2.0
        halves = mg.softmax(mg.exp(floats(8, 8)).reshape(16, 4)) * 2.0
        longer = halves.reshape(8, 8) - mg.sum(halves.reshape(8, 8), -1, keepdims=True)
    partition = fuse(graph_of(turned, after, longer, e))
    assert "other positions" in reason(partition, turned)
    assert reason(partition, product) == "matmul is a library call" == reason(partition, after)
    assert any("rows of 4" in why for why in partition.reasons.values())


def test_a_print_names_kernels_nodes_and_reasons():
    x = floats(8, 16)
    with recorded() as _alive:
        y = mg.sum(mg.softmax(x @ mg.ones((16, 16))), 0)
    text = str(fuse(graph_of(y), Chunking(2, 16)))
    for words in ("matmul_1(leaf_1, full_1), by a library", "for each row: max_1", "across rows",
                  "8 rows of 16 in 2 chunks", "not in one kernel:",
                  "matmul_1 → subtract_1: matmul is a library call"):
        assert words in text, text


def test_integer_division_is_a_library_call():
    x = mg.asarray([1, 2, 3])
    with recorded() as _alive:
        y, z, floating = x // 2, x << 70, mg.asarray([1.5]) // 0.5
    assert steps(fuse(graph_of(y))) == ["floor_divide"]
    assert steps(fuse(graph_of(z))) == ["bitwise_left_shift"]
    assert steps(check(floating)) == ["kernel"]


def test_tensors_without_elements_are_library_calls():
    x = floats(0, 3)
    with recorded() as _alive:
        y = mg.sum(mg.exp(x), 0)
    assert steps(check(y)) == ["exp", "sum"]


def test_a_kernel_has_only_so_many_nodes():
    x = floats(4, 8)
    with recorded() as _alive:
        y = x
        for _ in range(500):
            y = mg.tanh(y)
    partition = check(y)
    assert len(partition.groups) == 3
    assert max(g.size for g in partition.groups) <= MOST_NODES


def test_a_kernel_has_only_so_many_outputs():
    x = floats(4, 8)
    with recorded() as _alive:
        results = [x * float(i) for i in range(40)]
    partition = check(*results)
    assert max(len(g.stores) for g in partition.groups) <= 16
    assert len(partition.groups) == 3


# Sharing --------------------------------------------------------------------------------------------------------------


def test_readers_of_one_array_share_its_kernel():
    x = floats(8, 16)
    with recorded() as _alive:
        results = [mg.exp(x), mg.softmax(x), mg.sum(x, -1)]
    assert steps(check(*results)) == ["kernel"]


def test_independent_values_join_the_kernel_of_a_later_reader():
    x, w = floats(16, 16), floats(16, 16)
    with recorded() as _alive:
        scale = mg.exp(w)
        y = (x @ x) * scale
    partition = check(y)
    assert steps(partition) == ["matmul", "kernel"]
    assert partition.reasons == {(y.node.inputs[0], y.node): "matmul is a library call"}


def test_filled_tensors_are_stored_only_where_a_library_reads_them():
    x = floats(4, 6)
    with recorded() as _alive:
        ones = mg.ones((6, 5))
        y = x @ ones
        z = x * mg.full((6,), 2.0)
    assert steps(check(y, z)) == ["kernel", "kernel", "matmul"]
    assert steps(check(z)) == ["kernel"]
    assert steps(check(ones)) == ["kernel"]


# Order ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_groups_read_only_what_earlier_stages_have_stored():
    for seed in range(60):
        outputs, _alive = random_program(seed, 40)
        partition = fuse(graph_of(*outputs), SMALL)
        inputs = set(partition.graph.inputs)
        depth = {node: group.depth for group in partition.groups for node in group.stores}
        partials = {node: group.depth for group in partition.groups for node in group.partials}
        for group in partition.groups:
            assert all(base in inputs or depth[base] < group.depth for base in group.loads)
            assert all(partials[node] < group.depth for node in group.finishes)
        assert all(isinstance(v, View) and (v.base in inputs or v.base in depth) for v in partition.outputs)


def test_outputs_may_be_views_inputs_and_the_same_twice():
    x = floats(4, 6)
    with recorded() as _alive:
        e = mg.exp(x)
        results = [e.T, e, e, x[1:], mg.permute_dims(e).reshape(-1)]
    partition = check(*results)
    assert partition.outputs[0].base is e.node and partition.outputs[3].base is x.node


def test_the_order_is_the_same_every_time():
    outputs, _alive = random_program(7, 40)
    texts = {str(fuse(graph_of(*outputs))) for _ in range(3)}
    assert len(texts) == 1


# Picking --------------------------------------------------------------------------------------------------------------


def picked(rows, columns, targets, dtype=mg.int64):
    """The elements of computed rows at the targets, and their gradient."""
    x, t = floats(rows, columns), mg.asarray(targets, dtype=dtype)
    with recorded() as alive:
        y = mg.exp(x)[mg.arange(rows), t]
        (g,) = mg.gradients(mg.sum(y * y), [x], create_graph=True)
    return [y, g], (x, t, alive)


@pytest.mark.parametrize("dtype", [mg.int64, mg.int32, mg.int8, mg.uint8])
def test_picking_one_element_of_each_row_needs_no_library(dtype):
    tensors, _alive = picked(4, 6, [0, 5, 2, 2], dtype)
    assert "gather" not in steps(check(*tensors)) and "scatter_add" not in steps(check(*tensors))


def test_negative_positions_count_from_the_back():
    tensors, _alive = picked(4, 6, [-1, -6, 2, 0])
    check(*tensors)


def test_positions_are_to_be_checked():
    tensors, (_, t, _alive) = picked(4, 6, [0, 5, 2, 2])
    partition = check(*tensors)
    assert [(c.node, c.size) for c in partition.checks] == [(t.node, 6)]


def test_elements_at_positions_are_read_from_memory_by_the_kernel_that_uses_them():
    x, i = floats(4, 6), mg.asarray([1, -4, 0, 2])
    with recorded() as _alive:
        y = mg.tanh(x[i] * 2)
        z = mg.tanh(mg.exp(x)[i, mg.asarray([1, 2, -6, 4])])
    one, two = check(y), check(z)
    assert [len(group.levels) for group in one.groups] == [3]
    assert [len(group.levels) for group in two.groups] == [1, 2]
    assert "it is read at positions that an index array holds" in two.reasons.values()
    assert [c.size for c in two.checks] == [4, 6]


def test_counted_positions_need_no_check():
    x, i = floats(4, 6), mg.asarray([3, 0, 2])
    with recorded() as _alive:
        y = mg.take_along_axis(x[:3], i[:, None], axis=1)
        z = x[mg.arange(3, -1, -1), mg.arange(2, 6)]
    assert [c.size for c in check(y).checks] == [6] and not check(z).checks


def test_rows_are_added_at_positions_by_the_kernel_that_computes_them():
    x, i = floats(5, 12), mg.asarray([1, -1, 1, 0, 2])
    with recorded() as _alive:
        y = mg.scatter_add(mg.zeros((3, 12)), i, mg.tanh(x)) + 1
        z = mg.scatter_add(mg.zeros((3, 2, 4)), (i, mg.asarray([1, 0, 1, 0, 0])), 1.0)
    assert steps(check(y)) == ["kernel", "kernel"] and steps(check(z)) == ["kernel"]


def at_positions(x, i):
    """Elements and rows at positions, from whole arrays and views of them, and sums at positions."""
    rows, half = x.shape[0], mg.asarray(np.arange(6) % 4 - 2, dtype=mg.int8)
    yield mg.exp(x[i])
    yield x.T[mg.asarray([0, -1])][:, ::-1] * 2
    yield mg.tanh(x[::2, :1])[i % (rows // 2)] + x[i, :1]
    yield x[i, half % x.shape[1]]
    yield x[i[:, None], half % x.shape[1]]
    yield mg.arange(5, 5 + 3 * rows, 3)[i] + mg.full((rows, 3), 2.0)[i, 0]
    yield (x.sum(axis=1, keepdims=True) * 2)[i, half * 0]
    yield mg.sum(x[i] * x[:6], axis=1)
    yield mg.sum(x[i] * x[:6], axis=0)
    yield mg.scatter_add(mg.zeros((rows, 3)), (i, half % 3), mg.exp(x[:6, 0]))
    yield mg.scatter_add(mg.zeros((rows, *x.shape)), (i, i), x) * 2
    yield mg.scatter_add(mg.zeros((rows,)), i, 1.0) + mg.scatter_add(mg.zeros((rows,), dtype=mg.int32), i, 2)
    yield mg.scatter_add(mg.zeros((rows, 2, 6)), i, x[0, 0] * mg.ones((6, 1, 6)))
    yield mg.scatter_add(mg.exp(x), i, 2 * x)
    yield mg.scatter_max(mg.exp(x), i, 2 * x)
    yield mg.scatter_max(mg.full((rows, *x.shape[1:]), -np.inf), i, mg.exp(x))
    yield mg.scatter_add(x.T, mg.asarray([0] * 6), x[:, :1] * mg.ones((1, rows))) + 1


@pytest.mark.parametrize("shape", [(6, 2), (6, 7), (6, 16), (6, 1)], ids=str)
@pytest.mark.parametrize("number", range(17))
def test_reads_and_sums_at_positions_equal_those_of_eager_mode(shape, number):
    x, i = floats(*shape), mg.asarray([1, -1, 5, 0, 5, -6])
    with recorded() as _alive:
        y = list(at_positions(x, i))[number]
    assert "gather" not in steps(check(y)) and not {"scatter_add", "scatter_max"} & {*steps(check(y))}


@pytest.mark.slow
def test_the_sum_of_rows_at_positions_has_chunks_if_there_are_few_places():
    x, i = mg.asarray(np.arange(1 << 19, dtype="f4").reshape(-1, 64) % 5), mg.asarray(np.arange(1 << 13) % 3)
    with recorded() as _alive:
        y = mg.scatter_add(mg.zeros((3, 64)), i, x * 2)
        z = mg.scatter_add(x[:4], i, x)
    assert [check(each).groups[0].loops.chunks for each in (y, z)] == [8, 8]


def one_number_and_rows(pick, objective):
    """Values and gradients where every row uses one number of `a`, whose gradient is added at one place."""
    def function(a, b):
        y = pick(a) * b
        return objective(y * floats(*b.shape, seed=2).detach()).sum(), y

    a, b = floats(5), mg.permute_dims(floats(7, 5, seed=1), (1, 0))
    return mg.value_and_grad(function, argnums=(0, 1), has_aux=True), (a.detach(), b.detach())


@pytest.mark.parametrize("objective", [lambda y: y, lambda y: y - y.mean(-1, keepdims=True), mg.softmax], ids=range(3))
@pytest.mark.parametrize("pick", [mg.median, lambda a: mg.take(a, mg.asarray(2), axis=0), lambda a: a[1]], ids=range(3))
@pytest.mark.parametrize("more", [lambda y: y, lambda y: (y.sum(-1), y.mT + 1)], ids=range(2))
def test_a_number_added_at_one_place_is_added_once(pick, objective, more):
    differentiated, inputs = one_number_and_rows(pick, objective)

    def function(a, b):
        (value, y), gradients = differentiated(a, b)
        return value, more(y), gradients

    ours, theirs = [mg.control.flow.flatten(f(*inputs))[0] for f in (mg.jit(function), function)]
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.numpy_copy(), b.numpy_copy(), rtol=1e-4, atol=1e-4)
