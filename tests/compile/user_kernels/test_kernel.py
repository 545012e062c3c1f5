"""Users' kernels: where they are used, the reasons where not, gradients, and results that are refused."""

import ctypes
import shutil
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting.passes import PASSES, optimise
from minigrad.compile.user_kernels.own import OWN

pytestmark = pytest.mark.usefixtures("numpy_kernels")


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    left = list(OWN)
    for name in left:
        OWN[name].forget()
    assert left == []


def rowwise(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Counted:
    """A softmax that records the shapes of its inputs."""

    __name__ = "my_softmax"

    def __init__(self):
        self.shapes = []

    def __call__(self, x):
        self.shapes.append(x.shape)
        return rowwise(x)


def last_softmax(x):
    return mg.softmax(x, axis=-1)


def normal(*shape, dtype="float32"):
    return mg.random.normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (7,), (2, 3, 4), (1, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pattern_is_found_in_any_shape_and_dtype(shape, dtype):
    mine = Counted()
    x = normal(*shape, dtype=dtype)
    with mg.kernel(last_softmax)(mine):
        f = mg.jit(lambda x: mg.softmax(x * 2, axis=-1).sum(0))
        result = f(x)
    assert mine.shapes == [shape]
    np.testing.assert_allclose(result.numpy_copy(), rowwise(x.numpy_copy() * 2).sum(0), rtol=1e-5)


def test_matches_of_a_pattern():
    def by_hand(x, axis=1):
        e = mg.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    mine = Counted()
    with mg.kernel(by_hand)(mine):
        x = normal(3, 5)
        mg.jit(lambda x: by_hand(x) * 1)(x)
        assert mine.shapes == [(3, 5)]
        f = mg.jit(lambda x: by_hand(x, axis=0))
        f(x)
        assert len(mine.shapes) == 1
        missed = f.passes(x).missed
        assert {m.rule for m in missed} == {"my_softmax"}
        assert all("max with axis=(0,)" in m.why and "in the pattern with axis=(1,)" in m.why for m in missed)
        assert "my_softmax: not at divide, max with axis=(0,)" in str(f.passes(x))


def test_the_log_says_where_it_was_put_in_and_the_kernels_show_it():
    with mg.kernel(last_softmax)(Counted()) as own:
        f = mg.jit(lambda x, y: mg.softmax(x, axis=-1) @ y / 3)
        x, y = normal(3, 5), normal(5, 2)
        log = f.passes(x, y)
        assert log.counts()["my_softmax"] == 1
        assert "_1 -> my_softmax_1" in str(log) and "mg.softmax(x, axis=-1) @ y / 3" in str(log)
        text = str(f.kernels(x, y))
        assert "my_softmax_1(tensor_1), by a kernel of your own" in text
        assert "my_softmax_1 → matmul_1: matmul is a library call" in text
        assert f.program(x, y).schedule.steps[0].name == "my_softmax_1"
        assert repr(own) == "<kernel my_softmax>"
        with mg.profile() as run:
            f(x, y)
        assert run.events[0].name == "my_softmax_1"
    assert repr(own) == "<kernel my_softmax, forgotten>"


def test_gradients_are_those_of_the_pattern():
    def loss(x):
        return (mg.softmax(x, axis=-1) * mg.arange(5)).sum()

    x = normal(3, 5)
    expected = mg.grad(loss)(x).numpy_copy()
    mine = Counted()
    with mg.kernel(last_softmax)(mine):
        leaf = mg.asarray(x.numpy_copy(), requires_grad=True)
        mg.jit(loss)(leaf).backward()
        np.testing.assert_allclose(leaf.grad.numpy_copy(), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(mg.jit(mg.grad(loss))(x).numpy_copy(), expected, rtol=1e-4, atol=1e-6)
    assert mine.shapes


def test_inputs_keep_their_order_and_shapes():
    seen = []

    def layer(x, w, b):
        return mg.maximum(x @ w + b, 0.0)

    def fused_layer(x, w, b):
        seen.append((x.shape, w.shape, b.shape))
        return np.maximum(x @ w + b, 0)

    x, w, b = normal(6, 4), normal(4, 3), normal(3)
    with mg.kernel(layer)(fused_layer):
        for f in (layer, lambda x, w, b: mg.maximum(b + x @ w, 0.0)):  # a sum is the same in either order
            np.testing.assert_allclose(mg.jit(f)(x, w, b).numpy_copy(), f(x, w, b).numpy_copy(), rtol=1e-5)
        mg.jit(lambda x, w, b: mg.maximum(x @ w + b, 0.5))(x, w, b)  # another number
        mg.jit(lambda x, w, b: mg.maximum(x @ w - b, 0.0))(x, w, b)  # another operation
    assert seen == [((6, 4), (4, 3), (3,))] * 2


def test_an_input_used_twice_must_be_the_same():
    def square_sum(x):
        return x * x + x

    def mine(x):
        raise AssertionError("this is not the pattern")

    with mg.kernel(square_sum)(mine):
        f = mg.jit(lambda x, y: x * y + x)
        f(normal(3), normal(3))
        assert any("two tensors where the pattern has one" in m.why for m in f.passes(normal(3), normal(3)).missed)


def test_values_of_the_optimised_graph_and_hunting_for_nans():
    with mg.kernel(lambda x: mg.log(x) * 2)(lambda x: np.log(x) * 2):
        f = mg.jit(lambda x: (mg.log(x) * 2).sum())
        with mg.debug_nans(), pytest.raises(mg.NanError, match="log"):
            f(mg.asarray([1.0, -1.0]))
        graph = f.program(mg.ones(2)).optimised
        node = next(n for n in graph.nodes if n.op.kind == "own")
        assert graph.values(mg.full(2, 1.0))[node].tolist() == [0, 0]


def test_when_decides_whether_a_kernel_is_used():
    mine = Counted()
    with mg.kernel(last_softmax, when=lambda x: x.shape[-1] < 10 and x.dtype == "float32")(mine):
        f = mg.jit(last_softmax)
        for x in (normal(2, 9), normal(2, 10), normal(2, 9, dtype="float64")):
            f(x)
        assert mine.shapes == [(2, 9)]
        assert [m.why for m in f.passes(normal(2, 10)).missed] == ["`when` returned False"]


def test_a_kernel_registered_again_replaces_the_first_and_can_be_forgotten():
    names = [each.name for each in PASSES]
    for factor in (2, 3):
        decorate = mg.kernel(lambda x: mg.tanh(x) + 1)

        def scaled(x, factor=factor):
            return np.full_like(x, factor)

        own = decorate(scaled)
    f = mg.jit(lambda x: mg.tanh(x) + 1)
    assert f(mg.zeros(2)).tolist() == [3, 3]
    own.forget()
    own.forget()
    assert f(mg.zeros(2)).tolist() == [3, 3]  # a program that contains it
    assert mg.jit(lambda x: mg.tanh(x) + 1)(mg.zeros(2)).tolist() == [1, 1]
    assert [each.name for each in PASSES] == names
    assert own(np.zeros(1)).tolist() == [3]


def test_kernel_can_be_left_out_of_the_passes():
    with mg.kernel(last_softmax)(Counted()):
        graph = mg.trace(last_softmax, normal(2, 3))
        assert len(optimise(graph)[0]) == 1 and len(optimise(graph, without="my_softmax")[0]) > 1


def test_results_are_never_the_callers_memory():
    with mg.kernel(lambda x: (x + 1) - 1)(lambda x: x):
        x = mg.ones(3)
        y = mg.jit(lambda x: (x + 1) - 1)(x)
        y += 5
        assert x.tolist() == [1, 1, 1]


def test_inputs_cannot_be_written():
    def greedy(x):
        x[0] = 7
        return x

    with mg.kernel(last_softmax)(greedy):
        with pytest.raises(ValueError, match="read-only") as caught:
            mg.jit(last_softmax)(normal(2, 3))
        assert "in the kernel greedy, which replaces the operation made at" in caught.value.__notes__[0]


@pytest.mark.parametrize(("returned", "kind", "message"), [
    (lambda x: x[0], mg.ShapeError, r"kernel wrong returned a shape that(.|\n)*Expected: \(2, 3\)\n  Got: \(3,\)"),
    (lambda x: x.astype("float64"), mg.DtypeError, r"a dtype that(.|\n)*float64\n  Hint: result.astype"),
    (lambda x: x.tolist(), mg.ConversionError, r"the kernel wrong returned a list\n  Expected: a NumPy array"),
    (lambda x: None, mg.ConversionError, "returned a NoneType"),
])
def test_kernel_results_of_a_wrong_type_or_shape_are_refused(returned, kind, message):
    def wrong(x):
        return returned(x)

    with mg.kernel(last_softmax)(wrong), pytest.raises(kind, match=message) as caught:
        mg.jit(last_softmax)(normal(2, 3))
    assert "while computing wrong, made at" in caught.value.__notes__[0]


@pytest.mark.parametrize(("pattern", "message"), [
    (lambda x: (x, x + 1), "it returns a tuple"),
    (lambda x: x, "it does not have one result that it computes"),
    (lambda x, y: mg.exp(x), "does not depend on all"),
    (lambda x: mg.ones(3) + 1, "does not depend on all"),
    (lambda x: x * mg.random.normal(4), "it draws random numbers"),
    (lambda x: x * HERE, "it uses a tensor that is not an argument"),
    (lambda *xs: xs[0], "any number of tensors"),
])
def test_functions_that_are_not_patterns_are_refused(pattern, message):
    with pytest.raises(mg.ConversionError, match=message):
        mg.kernel(pattern)


HERE = mg.ones(4)


def test_kernel_names_that_are_taken_are_refused():
    for name in ("tanh", "simplify"):

        def function(x):
            return x

        function.__name__ = name
        with pytest.raises(mg.ConversionError, match=f"'{name}'"):
            mg.kernel(last_softmax)(function)


def test_patterns_with_constants_and_examples():
    weights = np.float32([1, 2, 4])

    def weighted(x):
        return (x * mg.asarray(weights)).sum(-1)

    with mg.kernel(weighted, mg.ones(3))(lambda x: x @ weights) as own:
        assert own.name == "<lambda>"
        x = normal(5, 3)
        assert mg.jit(weighted).passes(x).counts()["<lambda>"] == 1
        other = mg.jit(lambda x: (x * mg.asarray(np.float32([1, 2, 5]))).sum(-1)).passes(x)
        assert "another constant than in the pattern" in str(other)


SOURCE = """
#include <math.h>
void rows(const float *x, float *y, long n, long k) {
    for (long i = 0; i < n; i++, x += k, y += k) {
        float top = x[0], total = 0;
        for (long j = 1; j < k; j++) if (x[j] > top) top = x[j];
        for (long j = 0; j < k; j++) total += y[j] = expf(x[j] - top);
        for (long j = 0; j < k; j++) y[j] /= total;
    }
}
"""


@pytest.mark.skipif(not shutil.which("cc") or sys.platform == "win32", reason="no C compiler")
def test_a_kernel_in_c(tmp_path):
    (tmp_path / "rows.c").write_text(SOURCE)
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", "rows.so", "rows.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    rows = ctypes.CDLL(str(tmp_path / "rows.so")).rows
    rows.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]

    @mg.kernel(last_softmax, when=lambda x: x.dtype == "float32" and x.ndim == 2)
    def softmax_in_c(x):
        x = np.ascontiguousarray(x)
        y = np.empty_like(x)
        rows(x.ctypes.data, y.ctypes.data, *x.shape)
        return y

    with softmax_in_c:
        x = normal(5, 7)
        f = mg.jit(lambda x: mg.softmax(x.T, axis=-1))
        np.testing.assert_allclose(f(x).numpy_copy(), rowwise(x.numpy_copy().T), rtol=1e-5)
        assert f.passes(x).counts()["softmax_in_c"] == 1


def test_graph_mode_uses_user_kernels():
    mine = Counted()
    with mg.kernel(last_softmax)(mine), mg.graph():
        y = last_softmax(normal(2, 3))
        total = y.sum().item()
    assert mine.shapes and total == pytest.approx(2, rel=1e-5)
