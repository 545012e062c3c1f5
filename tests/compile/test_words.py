"""The messages of errors in programs name the user's values and operations, as in eager mode."""

import copy

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("numpy_kernels")


@pytest.mark.parametrize(("ask", "advice"), [
    (lambda x: 1 if x else 0, "mg.where, mg.cond, or @mg.script"),
    (lambda x: x.item(), "mg.print\\(x\\) shows the number"), (lambda x: float(x), "compute with the tensor itself"),
    (lambda x: int(x), "mg.print"), (lambda x: f"{x:.2f}", "mg.print"), (lambda x: x.tolist(), "mg.print"),
    (lambda x: x.numpy(), "the function of mg in place of NumPy's"), (np.asarray, "in place of NumPy's"),
    (np.from_dlpack, "convert it outside"), (lambda x: range(x.astype(mg.int64)), "a Python number"),
    (lambda x: mg.nonzero(mg.stack([x])), "keeps the shape"), (copy.copy, "x.copy"),
])
@pytest.mark.parametrize("transform", [lambda f: mg.jit(f)(mg.ones(2)), lambda f: mg.vmap(f)(mg.ones((2, 2)))])
def test_hint_depends_on_how_a_value_is_read(ask, advice, transform):
    with pytest.raises(mg.TraceError, match=rf"needs the value of a tensor .*\n  Hint: .*{advice}"):
        transform(lambda x: ask(x.sum()))


def in_graph_mode(function):
    def run(*args):
        with mg.graph():
            return function(*args)

    return run


def of_one(function):
    return lambda x, y: mg.vmap(lambda row, label: function(row, label))(x, y)


@pytest.mark.parametrize("label", [-1, 3, -100])
@pytest.mark.parametrize("wrap", [mg.jit, mg.grad, in_graph_mode, of_one, lambda f: mg.jit(mg.grad(f)),
                                  lambda f: mg.jit(of_one(f)), lambda f: in_graph_mode(mg.grad(f))])
def test_labels_out_of_range_raise_the_error_of_eager_mode(label, wrap):
    labels = mg.asarray([0, label])
    logits = mg.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for name, function in [("cross_entropy: target", mg.cross_entropy), ("nll_loss: target", mg.nll_loss)]:
        expected = rf"^{name} {label} is out of range, .* shape \(.*3,?\)\n  Expected: integers from 0 to 2"
        with pytest.raises(mg.IndexingError, match=expected):
            wrap(function)(logits, labels)


def test_rows_out_of_range_raise_the_error_of_eager_mode():
    table = mg.ones((3, 2), requires_grad=True)
    with pytest.raises(mg.IndexingError, match=r"embedding: index -1 is out of range, the table has shape \(3, 2\)"):
        mg.jit(lambda i: mg.embedding(table, i * 1))(mg.asarray([0, -1]))
    with pytest.raises(mg.IndexingError, match="segment_sum: segment 2 is out of range, with 2 segments"):
        mg.jit(lambda x, i: mg.segment_sum(x, i, 2))(mg.ones((2, 2)), mg.asarray([0, 2]))
    with pytest.raises(mg.IndexingError, match=r"index 5 is out of range for a dimension of size 3"):
        mg.jit(lambda x, i: mg.exp(x)[mg.arange(2), i])(mg.ones((2, 3)), mg.asarray([0, 5]))
