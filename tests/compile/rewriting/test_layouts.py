"""Layouts: arithmetic and reductions follow the order of memory, and values stay the same."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.running.program import Program
from minigrad.core.primitive import P

X = np.random.default_rng(0).normal(size=(3, 4, 5))
B = np.random.default_rng(1).normal(size=(5, 4))
OTHERS = ("simplify", "fold_views", "common", "dead", "pick_rows")


def rewritten(f, without="result_layouts"):
    graph, log = optimise(mg.trace(f, mg.asarray(X)), without)
    return graph, log


def names(graph):
    return [node.name for node in graph.nodes]


FUNCTIONS = {
    "arithmetic": lambda x: mg.tanh(x) * 2 + 1,
    "a sum of arithmetic": lambda x: mg.tanh(x).sum(1),
    "sums over several": lambda x: (x * 2).sum((0, 2), keepdims=True),
    "maxima": lambda x: x.max(-1) - x.min(0).max(),
    "products": lambda x: mg.prod(x, 1),
    "softmax": lambda x: mg.softmax(x, -1),
    "softmax, and a sum": lambda x: (mg.softmax(x, -1) ** 2).sum(0),
    "variance": lambda x: mg.var(x, 1),
    "other operands": lambda x: mg.where(x > 0, x, mg.asarray(np.arange(x.shape[-1])) * 0.5).max(0),
    "an operand with a dimension of 1": lambda x: (x * mg.asarray(np.arange(x.shape[1] * 1.0))[:, None]).sum(-1),
    "mixed": lambda x: mg.tanh(x) + mg.reshape(mg.asarray(X), x.shape),
    "read in rows too": lambda x: (mg.tanh(x), mg.reshape(mg.tanh(x), (-1,))),
    "read by a product": lambda x: mg.sin(x) @ mg.ones((x.shape[-1], 2)),
    "permuted further": lambda x: mg.permute_dims(mg.exp(x), (1, 0, 2)).sum(0),
    "filled": lambda x: x * mg.ones(x.shape) + mg.arange(x.shape[-1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_stay_the_same(name):
    for axes in itertools.permutations(range(3)):
        f = lambda x, axes=axes: FUNCTIONS[name](mg.permute_dims(x, axes))  # noqa: E731
        given, found = f(mg.asarray(X)), mg.jit(f)(mg.asarray(X))
        for ours, theirs in zip(found, given) if isinstance(given, tuple) else [(found, given)]:
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=1e-12, atol=1e-12)


def test_reductions_read_the_tensor_itself():
    graph, log = rewritten(lambda x: mg.permute_dims(x, (2, 0, 1)).sum((0, 1)))
    assert names(graph) == ["sum"] and graph.nodes[0].attrs["axis"] == (0, 2)
    assert log.counts()["reduction of a permutation"] == 1
    graph, _ = rewritten(lambda x: mg.permute_dims(x, (2, 1, 0)).sum(1))
    assert names(graph) == ["sum", "permute_dims"], "only the result is permuted"


def test_arithmetic_before_a_reduction_is_in_order():
    graph, log = rewritten(lambda x: mg.tanh(mg.permute_dims(x, (2, 0, 1)) * 2).sum(0))
    assert names(graph) == ["multiply", "tanh", "sum"]
    assert log.counts()["arithmetic on a permutation"] == 2


def test_values_that_are_read_in_rows_keep_their_layout():
    for f in (
        lambda x: mg.tanh(mg.permute_dims(x, (2, 0, 1))) @ mg.ones((4, 2)),
        lambda x: mg.tanh(mg.permute_dims(x, (2, 0, 1))) + mg.reshape(x, (5, 3, 4)),
        lambda x: mg.tanh(mg.permute_dims(x, (2, 0, 1))),
    ):
        assert rewritten(f)[1].counts()["arithmetic on a permutation"] == 0


def test_results_of_jitted_functions_have_the_layout_of_eager_ones():
    f = lambda x: mg.permute_dims(x, (0, 2, 1)) + 1  # noqa: E731
    x = mg.asarray(X)
    assert mg.jit(f)(x).data.strides == f(x).data.strides == (X + 1).transpose(0, 2, 1).strides
    (launch,) = mg.jit(f).program(x).plan.steps
    assert launch.count.bytes == 2 * X.nbytes, "nothing is copied afterwards"


def test_square_results_are_permuted_too():
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(mg.jit(lambda x: x.T * 2)(mg.asarray(x)).numpy_copy(), x.T * 2)
    both = mg.jit(lambda x: (x.T * 2, mg.permute_dims(x.T * 2, (1, 0))))(mg.asarray(x))
    np.testing.assert_array_equal(both[0].numpy_copy(), x.T * 2)
    np.testing.assert_array_equal(both[1].numpy_copy(), x * 2)


def test_programs_return_rows_unless_any_layout_will_do():
    graph = mg.trace(lambda x: mg.permute_dims(x, (0, 2, 1)) + 1, mg.asarray(X))
    (rows,), (any_layout,) = Program(graph)([X]), Program(graph, any_layout=True)([X])
    assert rows.flags.c_contiguous and not any_layout.flags.c_contiguous
    np.testing.assert_array_equal(rows, any_layout)


def test_state_stays_in_rows():
    tensor = mg.asarray(X.copy())

    @mg.jit
    def step(x):
        tensor[:] = mg.permute_dims(mg.permute_dims(x, (2, 0, 1)) * 2, (1, 2, 0))

    step(mg.asarray(X))
    np.testing.assert_array_equal(tensor.numpy(), X * 2)
    assert tensor.numpy().flags.c_contiguous


def test_gradients_of_permuted_arithmetic():
    def loss(x):
        return (mg.tanh(mg.permute_dims(x, (2, 1, 0)) * mg.asarray(B)[:, :, None]) ** 2).sum(0).max()

    x = mg.asarray(X, requires_grad=True)
    expected = mg.grad(loss)(x).numpy_copy()
    np.testing.assert_allclose(mg.jit(mg.grad(loss))(x).numpy_copy(), expected, rtol=1e-12)
    mg.jit(loss)(x).backward()
    np.testing.assert_allclose(x.grad.numpy_copy(), expected, rtol=1e-12)


def test_passes_by_name():
    graph = mg.trace(lambda x: mg.permute_dims(x, (2, 0, 1)).sum(0), mg.asarray(X))
    kept, _ = optimise(graph, "layouts")
    assert [node.op for node in kept.nodes] == [P.permute_dims, P.sum]
    assert names(optimise(graph, OTHERS)[0]) == ["sum"]
