"""Running totals in kernels: against NumPy in float64, on every backend, alone and with neighbours."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen.c import c_source
from minigrad.compile.codegen.cuda import cuda_source
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.lowering.lower import lower
from minigrad.compile.running import frame
from tests.compile.partitions import check, recorded

X = np.random.default_rng(0).normal(size=(5, 12, 16))


def graph_of(f, *arrays):
    return mg.trace(f, *[mg.asarray(array) for array in arrays])


def reversed_exclusive(x, axis):
    """The sum of all later elements."""
    return mg.flip(mg.cumulative_sum(mg.flip(x, axis=axis), axis=axis), axis=axis) - x


FUNCTIONS = {
    "a sum": mg.cumulative_sum,
    "a product": lambda x, axis: mg.cumulative_prod(x * 0.1 + 1, axis=axis),
    "dear before": lambda x, axis: mg.cumulative_sum(mg.exp(x), axis=axis),
    "dear after": lambda x, axis: mg.exp(mg.cumulative_sum(x * 0.1, axis=axis)) + x,
    "dear on both sides": lambda x, axis: mg.tanh(mg.cumulative_sum(mg.sin(x), axis=axis) * 2),
    "a sum of a sum": lambda x, axis: mg.cumulative_sum(mg.cumulative_sum(x, axis=axis), axis=axis),
    "two sums": lambda x, axis: mg.cumulative_sum(x, axis=axis) * mg.cumulative_sum(x * x, axis=axis),
    "along both axes": lambda x, axis: mg.cumulative_sum(mg.cumulative_sum(x, axis=axis), axis=(axis + 1) % 3),
    "the sum of all": lambda x, axis: (mg.cumulative_sum(x, axis=axis) ** 2).sum(),
    "sums across": lambda x, axis: mg.cumulative_sum(x, axis=axis).sum((0, 1)),
    "sums along": lambda x, axis: x - mg.cumulative_sum(x, axis=axis).mean(-1, keepdims=True),
    "after a row's sum": lambda x, axis: mg.cumulative_sum(mg.softmax(x, -1), axis=axis),
    "totals of row sums": lambda x, axis: mg.cumulative_sum(x.sum(-1), axis=0) + x.max(-1),
    "backwards": reversed_exclusive,
    "of permuted data": lambda x, axis: mg.cumulative_sum(mg.permute_dims(x, (2, 0, 1)), axis=axis),
    "of a part": lambda x, axis: mg.cumulative_sum(x[:, 1:11, ::2], axis=axis),
    "of bools": lambda x, axis: mg.cumulative_sum(x > 0, axis=axis),
    "of integers": lambda x, axis: mg.cumulative_prod((x * 2).astype(mg.int8), axis=axis),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name, backend, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    for axis in range(3):
        f = mg.jit(lambda x, axis=axis: FUNCTIONS[name](x, axis))
        expected = FUNCTIONS[name](mg.asarray(X), axis)
        np.testing.assert_allclose(f(mg.asarray(X)).numpy_copy(), expected.numpy_copy(), rtol=1e-11, atol=1e-11)


def test_totals_are_those_of_numpy():
    for axis in range(3):
        found = mg.jit(lambda x, axis=axis: (mg.cumulative_sum(x, axis=axis), mg.cumulative_prod(x, axis=axis)))
        sums, products = found(mg.asarray(X))
        np.testing.assert_allclose(sums.numpy_copy(), X.cumsum(axis), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(products.numpy_copy(), X.cumprod(axis), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_in_poisoned_memory(name):
    x = mg.asarray(X)
    for axis in range(3):
        with recorded() as _alive:
            y = FUNCTIONS[name](x, axis)
        check(y, threads=2, rtol=1e-10, atol=1e-10)


def test_dear_operations_run_in_passes_of_their_own():
    partition = fuse(graph_of(lambda x: mg.exp(mg.cumulative_sum(mg.exp(x), axis=2)), X))
    (group,) = partition.kernels
    text = c_source(lower(partition, group).kernel).split("\n\n")[-1]
    assert text.count("for (") == 4, "rows, exp, totals, exp"
    partition = fuse(graph_of(lambda x: mg.cumulative_sum(x * 2, axis=2) + 1, X))
    (group,) = partition.kernels
    assert c_source(lower(partition, group).kernel).split("\n\n")[-1].count("for (") == 2


def test_short_columns_and_gpus_call_the_library():
    assert fuse(graph_of(lambda x: mg.cumulative_sum(x[..., :3], axis=1), X)).kernels == []
    assert fuse(graph_of(lambda x: mg.cumulative_sum(x, axis=1), X), Chunking(long=False)).kernels == []
    partition = fuse(graph_of(lambda x: mg.cumulative_sum(x, axis=2), X))
    with pytest.raises(mg.CompileError, match="running totals cannot be shared among threads"):
        cuda_source(lower(partition, partition.kernels[0]).kernel)


def test_reason_for_two_kernels():
    partition = fuse(graph_of(lambda x: mg.cumulative_sum(x, axis=1).sum((0, 1)), X))
    assert "running totals need a kernel without other sums across rows" in str(partition)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(frame, "WORTH_SHARING_BYTES", 0)
    before, results = mg.devices.num_threads(), []
    for count in (1, 2, 3):
        mg.devices.set_num_threads(count)
        f = mg.jit(lambda x: [mg.cumulative_sum(mg.exp(x), axis=axis) for axis in range(3)])
        results.append([each.numpy_copy() for each in f(mg.asarray(X.astype(np.float32)))])
    mg.devices.set_num_threads(before)
    for other in results[1:]:
        for ours, theirs in zip(results[0], other):
            np.testing.assert_array_equal(ours, theirs)


def test_gradients():
    for axis in range(3):
        loss = lambda x, axis=axis: (mg.cumulative_sum(mg.sin(x), axis=axis) * X).sum()  # noqa: E731
        expected = mg.grad(loss)(mg.asarray(X)).numpy_copy()
        np.testing.assert_allclose(mg.jit(mg.grad(loss))(mg.asarray(X)).numpy_copy(), expected, rtol=1e-10, atol=1e-10)
