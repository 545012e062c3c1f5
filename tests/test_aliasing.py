"""Shared memory: a result is fresh memory, unless it is declared below as a view of an input.

Each call is made twice.  A write to the result must not change an input, and a write to the inputs must not change
the result.  The same holds in a program.
"""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.composed import COMPOSED
from tests.composed_nn import plain  # noqa: F401 - adds its samples
from tests.samples import SAMPLES

# Functions whose result is a view of an input or the input itself, as their docstrings say.
VIEWS = {
    "broadcast_arrays", "diagonal", "einsum", "expand_dims", "flatten", "flip", "matrix_transpose", "moveaxis", "split",
    "squeeze", "swapaxes", "unstack", "windows",
} | {op.name for op in P if op.kind == "view"}

X = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
ROW = np.arange(1.0, 4.0, dtype=np.float32)
YES = np.ones((2, 3), bool)
PLACES = np.arange(2)

# Calls without any work, where a shortcut could return the input; then calls that return views.
FRESH = {
    "roll by 0": (lambda x: mg.roll(x, 0, axis=1), X),
    "roll by the size": (lambda x: mg.roll(x, 3, axis=1), X),
    "roll by the size of all": (lambda x: mg.roll(x, 6), X),
    "roll along no axis": (lambda x: mg.roll(x, 1, axis=()), X),
    "roll of nothing": (lambda x: mg.roll(x, 1), X[:0]),
    "roll to and fro": (lambda x: mg.roll(x, (1, -1), axis=(1, 1)), X),
    "repeat once": (lambda x: mg.repeat(x, 1, axis=0), X),
    "repeat each once": (lambda x: mg.repeat(x, np.array([1, 1]), axis=0), X),
    "repeat of one dimension": (lambda x: mg.repeat(x, 1), ROW),
    "tile once": (lambda x: mg.tile(x, (1, 1)), X),
    "tile along no dimension": (lambda x: mg.tile(x, ()), X),
    "pad by 0": (lambda x: mg.pad(x, 0), X),
    "pad by 0 with a value": (lambda x: mg.pad(x, 0, 7.0), X),
    "clip without bounds": (lambda x: mg.clip(x), X),
    "clip that changes nothing": (lambda x: mg.clip(x, -math.inf, math.inf), X),
    "astype to its own dtype": (lambda x: x.astype(mg.float32), X),
    "copy": (lambda x: x.copy(), X),
    "asarray with a copy": (lambda x: mg.asarray(x, copy=True), X),
    "positive": (lambda x: +x, X),
    "real": (lambda x: mg.real(x), X),
    "conj": (lambda x: mg.conj(x), X),
    "concat of one": (lambda x: mg.concat([x]), X),
    "concat of one, flattened": (lambda x: mg.concat([x], axis=None), X),
    "concat with nothing": (lambda x, y: mg.concat([x, y]), X, X[:0]),
    "stack of one": (lambda x: mg.stack([x]), X),
    "where all": (lambda c, x: mg.where(c, x, 0.0), YES, X),
    "where none": (lambda c, x: mg.where(c, 0.0, x), ~YES, X),
    "add 0": (lambda x: x + 0, X),
    "times 1": (lambda x: x * 1, X),
    "power of 1": (lambda x: x**1, X),
    "over 1": (lambda x: x / 1, X),
    "maximum of itself": (lambda x: mg.maximum(x, x), X),
    "or False": (lambda x: x | False, YES),
    "logical_or of itself": (lambda x: mg.logical_or(x, x), YES),
    "sum along no axis": (lambda x: mg.sum(x, axis=()), X),
    "mean along no axis": (lambda x: mg.mean(x, axis=()), X),
    "max along an axis of 1": (lambda x: mg.max(x, axis=0), X[:1]),
    "cumulative sum of one": (lambda x: mg.cumulative_sum(x, axis=0), X[:1]),
    "cumulative product of one": (lambda x: mg.cumulative_prod(x, axis=0), X[:1]),
    "sort of one": (lambda x: mg.sort(x, axis=0), X[:1]),
    "topk of all": (lambda x: mg.topk(x, 3), X),
    "take all": (lambda x, i: mg.take(x, i, axis=0), X, PLACES),
    "take_along_axis of all": (lambda x, i: mg.take_along_axis(x, i, axis=0), X, np.array([[0], [1]])),
    "index by all": (lambda x, i: x[i], X, PLACES),
    "index by a list": (lambda x: x[[0, 1]], X),
    "scatter_add of 0": (lambda x, i: mg.scatter_add(x, i, 0.0), X, PLACES),
    "diff of none": (lambda x: mg.diff(x, n=0), X),
    "tril of all": (lambda x: mg.tril(x, 9), X),
    "triu of all": (lambda x: mg.triu(x, -9), X),
    "matmul by one": (lambda x: x @ mg.eye(3), X),
    "tensordot with a number": (lambda x: mg.tensordot(x, mg.asarray(1.0), 0), X),
    "norm of order 1 of one": (lambda x: mg.linalg.vector_norm(x, axis=0, ord=1), X[:1]),
    "vector_norm of order inf": (lambda x: mg.linalg.vector_norm(x, axis=(), ord=math.inf), X),
    "meshgrid": (lambda x, y: mg.meshgrid(x, y), ROW, ROW),
    "meshgrid of one": (lambda x: mg.meshgrid(x), ROW),
    "relu of positive numbers": (lambda x: mg.relu(x), X),
    "leaky_relu without a slope": (lambda x: mg.leaky_relu(x, 1.0), X),
    "dropout of all": (lambda x: mg.dropout(x, 1.0), X),
    "linear": (lambda x, w: mg.linear(x, w), X, X),
    "embedding of all": (lambda w, i: mg.embedding(w, i), X, PLACES),
    "avg_pool of size 1": (lambda x: mg.avg_pool1d(x, 1), X[None]),
    "max_pool of size 1": (lambda x: mg.max_pool1d(x, 1), X[None]),
    "adaptive pooling to its size": (lambda x: mg.adaptive_avg_pool1d(x, 3), X[None]),
    "overlap_add of windows of 1": (lambda x: mg.overlap_add(x, (2, 3), axis=1), X[..., None]),
    "segment_sum of one each": (lambda x, i: mg.segment_sum(x, i, 2), X, PLACES),
    "loss without a reduction": (lambda x: mg.l1_loss(x, 0.0 * x, reduction="none"), X),
    "rotary_embedding at 0": (lambda x: mg.rotary_embedding(x, mg.zeros(2, dtype=mg.int64)), X[:, :2]),
    "full_like": (lambda x: mg.full_like(x, 1.0), X),
    "floor of integers": (lambda x: mg.floor(x), PLACES),
    "ceil of integers": (lambda x: mg.ceil(x), PLACES),
    "round of integers": (lambda x: mg.round(x), PLACES),
    "trunc of integers": (lambda x: mg.trunc(x), PLACES),
    "bitcast to itself": (lambda x: mg.bitcast(x, mg.float32), X),
    "reshape with a copy": (lambda x: mg.reshape(x, (2, 3), copy=True), X),
    "fori_loop without rounds": (lambda x: mg.fori_loop(0, 0, lambda i, c: c, x), X),
    "while_loop without rounds": (lambda x: mg.while_loop(lambda c: c.sum() < 0, lambda c: c, x), X),
    "while_loop that returns its carry": (
        lambda x: mg.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, c[1]), (0, x))[1], X),
    "scan that returns its carry": (lambda x: mg.scan(lambda c, i: (c, None), x, length=2)[0], X),
    "scan that stacks its carry": (lambda x: mg.scan(lambda c, i: (c, c), x, length=1), X),
    "scan that stacks its input": (lambda x: mg.scan(lambda c, row: (c, row), 0.0, x)[1], X),
    "vmap of nothing": (lambda x: mg.vmap(lambda row: row * 1.0)(x), X),
    "gradient that is handed on": (lambda x, g: mg.vjp(lambda x: x + 1.0, x)[1](g), X, X),
    "ReLU of positive numbers": (lambda x: nn.ReLU()(x), X),
}

ITSELF = {
    "to its own device": (lambda x: x.to("cpu"), X),
    "to its own dtype": (lambda x: x.to(mg.float32), X),
    "to_device": (lambda x: mg.to_device(x, "cpu"), X),
    "asarray": (lambda x: mg.asarray(x), X),
    "astype without a copy": (lambda x: x.astype(mg.float32, copy=False), X),
    "detach": (lambda x: x.detach(), X),
    "dropout of none": (lambda x: mg.dropout(x, 0.0), X),
    "dropout when not training": (lambda x: mg.dropout(x, 0.5, training=False), X),
    "Dropout when not training": (lambda x: nn.Dropout(0.5).eval()(x), X),
    "Identity": (lambda x: nn.Identity()(x), X),
    "Sequential of nothing": (lambda x: nn.Sequential()(x), X),
    "Flatten": (lambda x: nn.Flatten()(x), X),
    "a slice of all": (lambda x: x[:], X),
    "an ellipsis": (lambda x: x[...], X),
    "a new axis": (lambda x: x[None], X),
    "rows": (lambda x: list(x), X),
    "T": (lambda x: x.T, X),
    "mT": (lambda x: x.mT, X),
    "reshape to its shape": (lambda x: x.reshape(2, 3), X),
    "squeeze of nothing": (lambda x: mg.squeeze(x), X),
    "broadcast_to its shape": (lambda x: mg.broadcast_to(x, (2, 3)), X),
    "einsum of itself": (lambda x: mg.einsum("ij->ij", x), X),
    "einsum transposed": (lambda x: mg.einsum("ij->ji", x), X),
    "einsum of a diagonal": (lambda x: mg.einsum("ii->i", x), X[:, :2]),
    "diagonal": (lambda x: mg.linalg.diagonal(x), X[:, :2]),
    "cond": (lambda x: mg.cond(True, lambda x: x, lambda x: x * 2, x), X),
}


def tensors_of(result):
    return [t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, mg.Tensor)]


def shared(call, arrays):
    """The pairs (result, input) in which a write to one changes the other."""
    links = set()
    for number in range(sum(isinstance(a, np.ndarray) for a in arrays)):
        inputs, results = called(call, arrays)
        before = [r.numpy_copy() for r in results]
        spoil(inputs[number])
        changed = [i for i, (r, old) in enumerate(zip(results, before)) if not same(r.numpy_copy(), old)]
        links |= {(i, number) for i in changed}
    for i in range(len(called(call, arrays)[1])):
        inputs, results = called(call, arrays)
        before = [x.numpy_copy() for x in inputs]
        try:
            spoil(results[i])
        except mg.MutationError:  # a view whose elements share memory
            continue
        links |= {(i, n) for n, (x, old) in enumerate(zip(inputs, before)) if not same(x.numpy_copy(), old)}
    return links


def called(call, arrays):
    given = [mg.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]
    return [t for t in given if isinstance(t, mg.Tensor)], tensors_of(call(*given))


def spoil(tensor):
    """Change every element."""
    tensor[...] = ~tensor if tensor.dtype == mg.bool else tensor * 0 + 77


def same(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_results_of_composed_functions_are_fresh_or_declared_views(name):
    for number, sample in enumerate(COMPOSED[name]):
        links = shared(lambda *xs, call=sample.call: call(mg, *xs), sample.arrays)
        assert not links or name in VIEWS, f"{name}, sample {number}: {links}"


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_results_of_primitives_are_fresh_or_declared_views(name):
    for sample in SAMPLES[name]:
        links = shared(lambda *xs, s=sample: emit(P[name], *xs, **s.attrs), sample.inputs)
        assert not links or name in VIEWS, f"{sample}: {links}"


@pytest.mark.parametrize("name", FRESH)
def test_results_are_fresh_even_when_there_is_nothing_to_compute(name):
    call, *arrays = FRESH[name]
    assert shared(call, arrays) == set()


@pytest.mark.parametrize("name", ITSELF)
def test_declared_views_share_memory(name):
    call, *arrays = ITSELF[name]
    assert shared(call, arrays)


@pytest.mark.parametrize("name", [*FRESH, *ITSELF])
def test_a_program_shares_the_same_memory(name):
    call, *arrays = (FRESH | ITSELF)[name]
    assert shared(mg.jit(call), arrays) == shared(call, arrays)


@pytest.mark.parametrize("name", [*FRESH, *ITSELF])
def test_graph_mode_shares_the_same_memory(name):
    call, *arrays = (FRESH | ITSELF)[name]

    def recorded(*tensors):
        with mg.graph():
            results = tensors_of(call(*tensors))
        return results

    assert shared(recorded, arrays) == shared(call, arrays)


def test_views_say_in_their_description_that_they_are_views():
    for name in VIEWS - {"slice"}:
        assert "view" in getattr(mg, name).__doc__, name
