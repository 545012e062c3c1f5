"""Errors of running programs are those of eager mode, and name the line that made the node."""

import numpy as np
import pytest

import minigrad as mg

BEYOND, NEGATIVE = np.array([0, 7]), np.array([0, -1])


def put(i):
    x = mg.zeros(3)
    x[i] = 1.0
    return x


def put_in_rows(i):
    x = mg.zeros((2, 3))
    x[mg.arange(2), i] = 1.0
    return x


def small(i):
    return i.astype(mg.int8)


FAULTS = {
    "one_hot": (lambda i: mg.one_hot(i, 3), BEYOND),
    "one_hot, negative": (lambda i: mg.one_hot(i, 3), NEGATIVE),
    "one_hot, negative and small": (lambda i: mg.one_hot(small(i), 120), NEGATIVE),
    "embedding": (lambda i: mg.embedding(mg.ones((3, 2)), i), BEYOND),
    "embedding, negative": (lambda i: mg.embedding(mg.ones((3, 2)), i), NEGATIVE),
    "embedding, negative and small": (lambda i: mg.embedding(mg.ones((200, 2)), small(i)), NEGATIVE),
    "embedding's gradient": (lambda i: mg.grad(lambda w: mg.embedding(w, i).sum())(mg.ones((3, 2))), BEYOND),
    "cross_entropy": (lambda i: mg.cross_entropy(mg.ones((2, 3)) * 2, i), BEYOND),
    "cross_entropy, negative": (lambda i: mg.cross_entropy(mg.ones((2, 3)) * 2, i), NEGATIVE),
    "an index": (lambda i: mg.ones((3, 2))[i], BEYOND),
    "an index for each row": (lambda i: (mg.ones((2, 3)) * 2)[mg.arange(2), i], BEYOND),
    "take": (lambda i: mg.take(mg.ones((3, 2)), i, axis=0), BEYOND),
    "take_along_axis": (lambda i: mg.take_along_axis(mg.ones((1, 2)), i[None], axis=0), BEYOND),
    "assignment": (put, BEYOND),
    "assignment in rows": (put_in_rows, BEYOND),
    "segment_sum": (lambda i: mg.segment_sum(mg.ones((2, 3)), i, 3), NEGATIVE),
    "inv": (mg.linalg.inv, np.zeros((2, 2))),
    "solve": (lambda a: mg.linalg.solve(a, mg.ones((2, 1), dtype=mg.float64)), np.zeros((2, 2))),
    "cholesky": (lambda a: mg.linalg.cholesky(a - 1), np.zeros((2, 2))),
    "integer powers": (lambda i: i ** (i - 8), np.array([2, 3])),
    "in a branch": (lambda i: mg.cond(i.sum() > 0, lambda: mg.ones(3)[i], lambda: mg.ones(2)), BEYOND),
    "in a loop": (lambda i: mg.fori_loop(0, 3, lambda n, x: x[i], mg.ones(2)), BEYOND),
}


def in_graph_mode(f):
    def run(*args):
        with mg.graph():
            result = f(*args)
        return result

    return run


@pytest.mark.usefixtures("numpy_kernels")
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("mode", [mg.jit, in_graph_mode], ids=["jit", "graph"])
def test_error_equals_that_of_eager_mode_and_names_the_line(name, mode):
    function, array = FAULTS[name]
    with pytest.raises(mg.MinigradError) as expected:
        function(mg.asarray(array))
    with pytest.raises(type(expected.value)) as error:
        mode(function)(mg.asarray(array))
    assert any("made at" in note and __file__ in note for note in error.value.__notes__)


def test_native_kernels_say_the_same():
    for name in ("one_hot", "cross_entropy", "an index for each row", "integer powers"):
        function, array = FAULTS[name]
        with pytest.raises(mg.MinigradError) as error:
            mg.jit(function)(mg.asarray(array))
        assert any("made at" in note and __file__ in note for note in error.value.__notes__)
