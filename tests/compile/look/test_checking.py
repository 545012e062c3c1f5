"""`jit(check=True)` compares a program with its function and names the node where they differ."""

import os
from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen.native import is_available
from minigrad.compile.look import checking
from minigrad.compile.loops import maths
from minigrad.compile.loops.legalise import written
from minigrad.compile.loops.operations import OPERATIONS
from minigrad.compile.nodes.graph import node_like
from minigrad.compile.rewriting import passes
from minigrad.core.primitive import P
from minigrad.support.errors import CheckError

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def fixed(*values):
    return mg.asarray([float(v) for v in values])


def leaf(*values):
    return mg.asarray([float(v) for v in values], requires_grad=True)


@pytest.mark.slow
def test_a_whole_training_step_agrees_and_is_done_once(capsys):
    mg.random.seed(0)
    model = mg.nn.Linear(3, 2)
    x = mg.random.normal((4, 3))

    def make(check):
        mg.random.seed(1)
        with mg.no_grad():
            for p in model.parameters():
                p[...] = 0.5
        model.zero_grad()
        optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
        total = fixed(0)

        @mg.jit(check=check)
        def step():
            optimizer.zero_grad()
            loss = (mg.dropout(model(x), 0.5) ** 2).mean()
            mg.print("loss")
            loss.backward()
            optimizer.step()
            with mg.no_grad():
                total.__iadd__(loss)
            return loss

        losses = [step().item() for _ in range(3)]
        return losses, total.tolist(), [p.tolist() for p in model.parameters()]

    assert make(True) == make(False)
    assert capsys.readouterr().out == "loss\n" * 6


def test_arguments_views_and_containers():
    buffer = fixed(1, 2, 3)
    part = buffer[1:]

    @mg.jit(check=True)
    def f(pair, *, scale):
        with mg.no_grad():
            part.__imul__(scale)
        return {"sum": pair[0] + pair[1], "view": buffer[:2], "number": 3, "array": np.ones(2)}, buffer

    first, second = fixed(1), fixed(2)
    for factor in (2, 4):
        out, same = f([first, second], scale=2)
        assert same is buffer and buffer.tolist() == [1, 2 * factor, 3 * factor]
        assert out["sum"].tolist() == [3] and out["view"].tolist() == [1, 2 * factor] and out["number"] == 3


def test_gradients_of_results_are_compared_and_can_still_be_taken():
    f = mg.jit(lambda x, w: mg.tanh(x * w).sum(), check=True)
    x, w = fixed(1, 2), leaf(0.5, 0.25)
    y = f(x, w)
    assert w.grad is None
    y.backward()
    np.testing.assert_allclose(w.grad.tolist(), (x.numpy() / np.cosh(0.5) ** 2), rtol=1e-5)
    h = w * 2
    f(x, h).backward()
    assert w.grad is not None


def test_random_numbers_hooks_and_nans():
    calls = []
    w = leaf(1, 2)
    w.register_hook(lambda g: calls.append(1))
    f = mg.jit(lambda: mg.random.uniform((2,)) * w / 0.0, check=True)
    mg.random.seed(7)
    seen = f(), f()
    mg.random.seed(7)
    assert [s.tolist() for s in seen] == [(mg.random.uniform((2,)) * w / 0.0).tolist() for _ in range(2)]
    assert calls == []
    assert np.isnan(mg.jit(lambda x: mg.log(x), check=True)(fixed(-1)).item())


def wrong_rule(graph, note):
    """Replaces sums by products."""

    def replace(node, inputs):
        if node.op is P.add:
            return node_like(P.multiply, inputs, {}, like=node)
        return node if node.op is None else node_like(node.op, inputs, node.attrs, like=node)

    return graph.rebuilt(replace)


@pytest.fixture
def wrong_pass():
    passes.register_pass("sums_to_products", wrong_rule)
    yield
    passes.forget_pass("sums_to_products")


def test_a_wrong_pass_is_named_with_the_node(wrong_pass):
    @mg.jit(check=True)
    def f(x):
        h = mg.exp(x)
        y = h + 3
        return mg.tanh(y) * y

    with pytest.raises(CheckError, match="the program of f differs from eager mode: result 0: 2 of 2 elem") as error:
        f(fixed(1, 2))
    text = str(error.value)
    assert f"add, made at {__file__}:{f.function.__code__.co_firstlineno + 3}  y = h + 3, is the first" in text
    assert "it does not differ without the pass sums_to_products" in text


@pytest.mark.skipif(not is_available(), reason="needs LLVM")
def test_a_wrong_kernel_is_named(monkeypatch):
    monkeypatch.delenv("MINIGRAD_BACKEND", raising=False)
    monkeypatch.setitem(OPERATIONS, "exp", replace(OPERATIONS["exp"], written_out=maths.tanh))
    f = mg.jit(lambda x: mg.exp(x) * 1.8284, check=True)
    try:
        with pytest.raises(CheckError, match="with MINIGRAD_BACKEND=numpy: its kernel is wrong"):
            f(fixed(1, 2))
    finally:
        written.cache_clear()


def test_writes_and_grads_are_compared(wrong_pass):
    w, total = leaf(1, 2), fixed(0)

    @mg.jit(check=True)
    def write():
        total[...] = (w.detach() + 5).sum()

    @mg.jit(check=True)
    def backward():
        (w * (w.detach() + 3)).sum().backward()

    with pytest.raises(CheckError, match=r"a tensor \(1,\) that the function uses, after the call"):
        write()
    with pytest.raises(CheckError, match=r"the \.grad of a tensor \(2,\)"):
        backward()


def test_gradients_of_results_that_are_wrong_are_named(wrong_pass):
    @mg.jit(check=True)
    def f(w):
        return mg.where(w > 0, w * w, w)  # sums appear only in its gradient

    with pytest.raises(CheckError, match="the gradient of the results by a tensor") as error:
        f(leaf(1, 2))
    assert "without the pass sums_to_products" in str(error.value)


def test_a_function_that_depends_on_something_that_no_trace_sees(monkeypatch):
    @mg.jit(check=True)
    def f(x):
        h = x * 2
        return h * float(os.environ["MINIGRAD_TEST_FACTOR"])

    monkeypatch.setenv("MINIGRAD_TEST_FACTOR", "1")
    assert f(fixed(1)).tolist() == [2]
    monkeypatch.setenv("MINIGRAD_TEST_FACTOR", "5")
    with pytest.raises(CheckError, match="the function depends on something that is not in a trace") as error:
        f(fixed(1))
    assert "multiply, made at" in str(error.value) and "return h * float(os.environ" in str(error.value)


def test_errors_of_the_function_are_raised_unchanged():
    f = mg.jit(lambda x, i: x[i], check=True)
    with pytest.raises(mg.IndexingError):
        f(fixed(1, 2), mg.asarray([5]))


def as_double(x):
    return mg.gelu(x.astype(mg.float32)).astype(mg.float64)


MIXED = {
    "cast": as_double,
    "gradient": lambda x: mg.grad(lambda x: as_double(x).sum())(x),
    "loop": lambda x: mg.scan(lambda c, row: (c * 0.5 + as_double(row), None), x[0], x)[0],
    "branch": lambda x: mg.cond(x.sum() > 1e9, lambda: x, lambda: as_double(x)),
    "half precision": lambda x: mg.softmax(x.astype(mg.float16)).astype(mg.float64),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", MIXED)
def test_a_result_is_as_exact_as_the_least_exact_dtype_on_its_way(name, tracked):
    x = np.random.default_rng(0).normal(size=(20, 50))
    mg.jit(MIXED[name], check=True)(mg.asarray(x, requires_grad=tracked))
    rooms = checking.rooms_of(mg.trace(MIXED[name], mg.asarray(x)))
    assert rooms["float64"] > 1e-9 and checking.rooms_of(mg.trace(lambda x: x * 2, mg.asarray(x)))["float64"] == 1e-9


def test_check_lists_differences():
    a = np.float32([1, 100])
    assert checking.difference(a, a + np.float32([1e-3, 0])) == ""
    assert "1 of 2 elements, 1.0 instead of 2.0 at (0,)" in checking.difference(a, np.float32([2, 100]))
    assert "float64" in checking.difference(a.astype("float64"), a)
    nan = np.float32([np.nan, np.inf])
    assert checking.difference(nan, nan) == "" and checking.difference(nan, a) != ""
    assert checking.difference(np.array([1]), np.array([2])) != ""


def test_gradients_of_gradients_and_loops_without_a_bound():
    f = mg.jit(lambda x: (x**3).sum(), check=True)
    assert mg.grad(lambda x: mg.grad(f)(x).sum())(fixed(2)).tolist() == [12]
    g = mg.jit(lambda x: mg.while_loop(lambda v: v < 100, lambda v: v * v, x), check=True)
    assert g(mg.asarray(3.0, requires_grad=True)).item() == 6561  # there is no gradient of the program to compare


def test_an_error_only_in_eager_mode_is_a_difference(monkeypatch):
    @mg.jit(check=True)
    def f(x):
        if os.environ.get("MINIGRAD_TEST_FACTOR"):
            raise mg.ShapeError("eager mode only")
        return x

    f(fixed(1))
    monkeypatch.setenv("MINIGRAD_TEST_FACTOR", "1")
    with pytest.raises(CheckError, match="eager mode raises an error, the program does not: eager mode only"):
        f(fixed(1))
