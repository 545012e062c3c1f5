"""Products of windows by loops: convolutions and their gradients against float64, blocks, parts of long sums."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.loops.ir import Accumulate, Lanes, statements
from minigrad.compile.lowering.lower import lower
from minigrad.compile.lowering.product import Rows, blocks
from minigrad.compile.rewriting.passes import optimise
from tests.compile.interpreter import run_kernel
from tests.compile.partitions import Runner, by_nodes, natively

NARROW, WIDE = Chunking(), Chunking(lanes=16, registers=32)


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def products_of(partition):
    """The kernels of all products by loops."""
    return [lower(partition, g).kernel for g in partition.kernels if g.library is not None]


def convolve(name, **options):
    def loss(x, weight):
        return mg.sum(mg.tanh(getattr(mg, name)(x, weight, **options)) ** 2)

    return loss


CASES = {  # a function, the shapes of image and weights, options, the number of products by loops in its gradient
    "plain": ("conv2d", (2, 8, 9, 11), (16, 8, 3, 3), {"padding": 1}, 3),
    "columns that overlap": ("conv2d", (2, 9, 5, 6), (21, 9, 2, 3), {}, 3),
    "stride": ("conv2d", (2, 8, 9, 12), (16, 8, 3, 2), {"stride": (2, 1), "padding": 1}, 2),
    "dilation": ("conv2d", (1, 8, 9, 9), (8, 8, 3, 3), {"dilation": 2, "padding": 2}, 3),
    "uneven padding": ("conv2d", (2, 8, 6, 9), (8, 8, 2, 2), {"padding": ((1, 0), (0, 2))}, 3),
    "one example": ("conv2d", (1, 8, 8, 8), (8, 8, 3, 3), {}, 3),
    "sequences": ("conv1d", (3, 8, 40), (8, 8, 5), {"padding": "same"}, 3),
    "one channel": ("conv1d", (2, 1, 70), (1, 1, 9), {}, 3),
    "groups": ("conv2d", (2, 16, 6, 6), (16, 8, 3, 3), {"groups": 2}, 0),
}


RUNS = [(case, natively, chunking) for case in CASES for chunking in (NARROW, WIDE)]
RUNS += [(case, run, NARROW) for case in ("columns that overlap", "one channel") for run in (run_kernel, by_nodes)]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "run", "chunking"), RUNS)
def test_convolutions_and_their_gradients(case, run, chunking):
    name, *shapes, options, count = CASES[case]
    x, weight = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    both = mg.value_and_grad(convolve(name, **options), (0, 1))
    value, grads = both(*[mg.asarray(a, dtype=mg.float64) for a in (x, weight)])
    graph, _ = optimise(mg.trace(both, mg.asarray(x), mg.asarray(weight)))
    partition = fuse(graph, chunking)
    assert len(products_of(partition)) == count, partition
    one, three = [Runner(partition, threads, run)([x, weight]) for threads in (1, 3)]
    for result, expected, again in zip(one, (value, *grads), three):
        expected = expected.numpy()
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
        np.testing.assert_array_equal(result, again, "threads make no difference")


def test_long_sums_are_added_up_in_parts():
    x, grads = mg.asarray(normal(4, 2, 34, 34)), mg.asarray(normal(8, 4 * 1024))

    def columns(x):
        return mg.reshape(mg.permute_dims(mg.windows(x, (3, 3), (2, 3)), (1, 4, 5, 0, 2, 3)), (18, 4096))

    partition = fuse(mg.trace(lambda x, g: columns(x) @ g.T, x, grads), WIDE)
    (kernel,) = products_of(partition)
    assert any(isinstance(s, Accumulate) for s in statements(kernel.body))
    (result,) = Runner(partition, 2, natively)([x.numpy(), grads.numpy()])
    expected = columns(mg.asarray(x, dtype=mg.float64)).numpy() @ grads.numpy().T.astype(np.float64)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


def test_blocks_fit_into_the_registers_and_cover_all_rows():
    dims = [(5, 100), (7, 9), (3, 1)]
    for most in (1, 4, 9, 30):
        found = list(blocks(dims, most))
        assert all(block.rows <= most for block in found)
        assert all(block.rounds(dims) * block.rows >= 105 for block in found)
    assert Rows(1, 4, 3).rounds(dims) == 5 * 2, "the second block of a dimension of 7 overlaps the first"


def test_products_stay_with_the_library():
    x, w = mg.asarray(normal(2, 8, 6, 6)), mg.asarray(normal(8, 8, 1, 1))
    for function in (lambda x, w: mg.tanh(mg.conv2d(x, w)), lambda x, w: mg.tanh(x[0, 0] @ w[0, :6, 0])):
        assert not products_of(fuse(optimise(mg.trace(function, x, w))[0])), "nothing is read through windows"
    w = mg.asarray(normal(8, 8, 3, 3))
    graph, _ = optimise(mg.trace(lambda x, w: mg.tanh(mg.conv2d(x, w)), x, w))
    assert len(products_of(fuse(graph))) == 1 and not products_of(fuse(graph, Chunking(lanes=0)))


def test_threads_share_the_columns_of_few_rows():
    x, w = mg.asarray(normal(1, 1, 500)), mg.asarray(normal(1, 1, 9))
    partition = fuse(optimise(mg.trace(lambda x, w: mg.conv1d(x, w), x, w))[0], NARROW)
    (kernel,) = products_of(partition)
    assert kernel.units > 3
    (one,), (four,) = [Runner(partition, threads, natively)([x.numpy(), w.numpy()]) for threads in (1, 4)]
    np.testing.assert_array_equal(one, four)
    np.testing.assert_allclose(one, mg.conv1d(x, w).numpy()[0], rtol=1e-4, atol=1e-5)


def test_lanes_are_in_the_kernel_and_its_listing():
    x, w = mg.asarray(normal(2, 8, 6, 6)), mg.asarray(normal(16, 8, 3, 3))
    f = mg.jit(lambda x, w: mg.tanh(mg.conv2d(x, w)))
    program = f.program(x, w)
    assert "by loops" in program.partition.listing()
    (kernel,) = products_of(program.partition)
    assert sum(isinstance(s, Lanes) for s in statements(kernel.body)) == 1
    np.testing.assert_allclose(f(x, w).numpy(), mg.tanh(mg.conv2d(x, w)).numpy(), rtol=1e-5, atol=1e-5)


def everything(*shape, dtype, seed=0):
    """Integers of the whole range of a dtype: their products wrap around."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shapes", [((3, 5), (5, 8)), ((2, 2600), (2600, 16)), ((33, 40), (40, 9)), ((9, 2), (2, 70))])
def test_products_of_integers_are_loops_and_exact(shapes, dtype):
    x, y = [everything(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    tall = np.resize(x, (9, x.shape[1]))  # with rows enough to copy columns that are not neighbours
    for function, left, right in ((lambda x, y: x @ y, x, y), (lambda x, y: x @ y.T, tall, y.T.copy()),
                                  (lambda x, y: x.T @ y, x.T.copy(), y)):
        given = [mg.asarray(left), mg.asarray(right)]
        for chunking in (NARROW, WIDE):
            partition = fuse(optimise(mg.trace(function, *given))[0], chunking)
            assert len(products_of(partition)) == 1 and partition.listing().endswith("by loops")
            (found,) = Runner(partition, 2, natively)([left, right])
            np.testing.assert_array_equal(found, function(left, right))


def test_products_of_small_integers_and_of_few_columns_are_the_library_s():
    for dtype, columns in (("int8", 9), ("int64", 7)):
        x, y = [mg.ones(shape, dtype=dtype) for shape in ((4, 3), (3, columns))]
        assert not products_of(fuse(mg.trace(lambda x, y: x @ y, x, y)))
