"""Kernels of `register_kernel` run in every program, from the moment when they are registered until they are undone."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.functions.structure import PROGRAMS
from minigrad.core.primitive import P
from minigrad.devices.registry import CHANGES, Device, register_device, register_kernel

x = np.linspace(-1.0, 1.0, 6).astype(np.float32).reshape(2, 3)


def nines(x):
    return x * 0 + 9


def in_graph_mode(function):
    def call(*args):
        with mg.graph():
            return function(*args)

    return call


def rounds(body):
    return lambda x: mg.scan(lambda c, v: (body(c) + v, c), x[0], mg.concat([x] * 4))[0]


FUNCTIONS = {
    "elementwise": lambda x: mg.tanh(x) * 3 + 1,
    "in one row": lambda x: mg.softmax(mg.tanh(x) - 1, axis=-1),
    "scan": rounds(mg.tanh),
    "fori_loop": lambda x: mg.fori_loop(0, 5, lambda i, c: mg.tanh(c) + 1, x),
    "while_loop": lambda x: mg.while_loop(lambda c: c.sum() < 40, lambda c: c + mg.tanh(c) + 0.1, x + 2),
    "condition": lambda x: mg.while_loop(lambda c: mg.tanh(c).sum() < 40, lambda c: c + 3, x, max_steps=7),
    "cond": lambda x: mg.cond(x.sum() < 1, lambda: mg.tanh(x), lambda: x),
    "gradient": mg.grad(lambda x: (mg.tanh(x) * x).sum()),
    "scan of a cond": rounds(lambda c: mg.cond(c.sum() < 1e9, lambda: mg.tanh(c), lambda: c)),
    "vmap": mg.vmap(lambda row: mg.tanh(row) * 2),
    "written in place": lambda x: _written(x.copy()),
    "jitted inside": lambda x: mg.jit(mg.tanh)(x) + 1,
}


def _written(y):
    y[0] = mg.tanh(y[1])
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
@pytest.mark.parametrize("how", [mg.jit, in_graph_mode])
def test_programs_follow_what_is_registered(name, device, how):
    function, given = FUNCTIONS[name], mg.asarray(x).to(device)
    plain, call = function(given).numpy_copy(), how(function)
    np.testing.assert_allclose(call(given).numpy(), plain, rtol=1e-6)
    with register_kernel("tanh", device, nines):
        expected = function(given).numpy_copy()
        assert not np.allclose(expected, plain)
        np.testing.assert_allclose(call(given).numpy(), expected, rtol=1e-6)
        with register_kernel("tanh", f"{device.partition(':')[0]}:*", lambda x: x * 0 + 5):
            np.testing.assert_allclose(call(given).numpy(), function(given).numpy(), rtol=1e-6)
        np.testing.assert_allclose(call(given).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(call(given).numpy(), plain, rtol=1e-6)


def test_a_kernel_for_another_device_changes_nothing():
    f, given = mg.jit(mg.tanh), mg.asarray(x)
    program = f.program(given)
    before = program.plan
    with register_kernel("tanh", "cpu:1", nines), register_kernel("exp", "cpu", nines):
        np.testing.assert_allclose(f(given).numpy(), np.tanh(x), rtol=1e-6)
        assert program.plan is before  # it is not even compiled again


def test_a_function_that_was_traced_in_the_block_loses_the_kernel_after_it():
    f = mg.jit(lambda x: mg.tanh(x) * 3)
    with register_kernel("tanh", "cpu", nines):
        assert f(mg.ones(2)).tolist() == [27, 27]
    np.testing.assert_allclose(f(mg.ones(2)).numpy(), 3 * np.tanh(np.ones(2)), rtol=1e-6)
    assert len(f.traces) == 1


def test_the_programs_that_graph_mode_keeps_are_not_made_twice():
    call = in_graph_mode(lambda x: mg.tanh(x) * 77)
    call(mg.ones(2))
    kept = len(PROGRAMS)
    with register_kernel("tanh", "cpu", nines):
        assert call(mg.ones(2)).tolist() == [693, 693]
    np.testing.assert_allclose(call(mg.ones(2)).numpy(), 77 * np.tanh(np.ones(2)), rtol=1e-6)
    assert len(PROGRAMS) == kept


def test_eager_programs_run_the_kernel():
    given = mg.ones((16, 16), requires_grad=True)
    before = mg.softmax(given).numpy_copy()
    with register_kernel("exp", "cpu", lambda x: np.exp(2 * x + np.arange(x.shape[-1], dtype=np.float32))):
        y = mg.softmax(given)
        assert not np.allclose(y.numpy_copy(), before)
        with mg.eager_programs(False):
            np.testing.assert_allclose(y.numpy_copy(), mg.softmax(given).numpy_copy())
    np.testing.assert_allclose(mg.softmax(given).numpy_copy(), before)


def test_a_model_runs_the_kernel():
    model = nn.Sequential(nn.Linear(3, 200), nn.Tanh(), nn.Linear(200, 1))
    step = mg.jit(lambda given: model(given).sum())
    before = step(mg.asarray(x)).item()
    with register_kernel("tanh", "cpu", nines):
        assert step(mg.asarray(x)).item() == pytest.approx(model(mg.asarray(x)).sum().item(), rel=1e-5)
    assert step(mg.asarray(x)).item() == pytest.approx(before, rel=1e-5)


class Renamed(Device):
    """A device with NumPy's kernels, so that programs are compiled for it."""

    kind = "renamed"


def test_a_device_of_a_class_of_ones_own():
    register_device("renamed", Renamed)
    f = mg.jit(lambda x: mg.tanh(x) + 1)
    given = mg.asarray(x).to("renamed")
    np.testing.assert_allclose(f(given).numpy(), np.tanh(x) + 1, rtol=1e-6)
    with register_kernel("tanh", "renamed:*", nines):
        assert (f(given).numpy() == 10).all() and "own_tanh_1" in str(f.kernels(given))
        assert "own" not in str(mg.jit(lambda x: mg.tanh(x) + 1).kernels(mg.asarray(x)))


# any operation --------------------------------------------------------------------------------------------------------


def _times_two(name):
    """A kernel that returns twice the result of the built-in one, in new memory."""
    kernel = mg.devices.CPU.own_kernels[name]
    return lambda *xs, **attrs: np.asarray(kernel(*xs, **attrs) * 2)


OPERATIONS = {
    "multiply": lambda x: x * 1 + 0 * x,  # rules would remove both
    "sum": lambda x: x.sum(axis=0) * 2,
    "max": lambda x: x - x.max(axis=-1, keepdims=True),
    "matmul": lambda x: mg.relu(x @ x.mT),
    "reshape": lambda x: x.reshape(6)[::2] + 1,
    "permute_dims": lambda x: mg.permute_dims(x, (1, 0)) * 3,
    "slice": lambda x: x[:, 1:] + x[:, :2],
    "gather": lambda x: x[mg.asarray([1, 0, 1])] * 2,
    "full": lambda x: x + mg.full((2, 3), 4.0),
    "sort": lambda x: mg.sort(x, axis=-1) + 1,
    "cumulative_sum": lambda x: mg.cumulative_sum(x, axis=-1) * 2,
    "scatter_add": lambda x: mg.segment_sum(x, mg.asarray([1, 0]), 2) + 1,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_kernel_of_any_operation_can_be_replaced(name):
    assert hasattr(P, name)
    function, given = OPERATIONS[name], mg.asarray(x)
    call = mg.jit(function)
    before = call(given).numpy_copy()
    with register_kernel(name, "cpu", _times_two(name)):
        expected = function(given).numpy_copy()
        assert not np.allclose(expected, before)
        np.testing.assert_allclose(call(given).numpy(), expected, rtol=1e-6)
        assert f"own_{name}_1" in str(call.kernels(given))
    np.testing.assert_array_equal(call(given).numpy(), before)


def test_random_numbers_of_a_kernel_of_ones_own_follow_the_seed():
    kernel = mg.devices.CPU.own_kernels["random"]
    f = mg.jit(lambda: mg.random.uniform((4,)) * 1)
    with register_kernel("random", "cpu", lambda *xs, **attrs: kernel(*xs, **attrs)):
        mg.random.seed(3)
        first, second = f().tolist(), f().tolist()
        mg.random.seed(3)
        assert mg.random.uniform((4,)).tolist() == first != second


# what a kernel returns ------------------------------------------------------------------------------------------------


def test_a_kernel_that_returns_its_input_gets_a_copy():
    """The memory of a value is used again, and an input belongs to the caller."""
    f = mg.jit(lambda x: mg.tanh(x))
    g = mg.jit(lambda x: mg.sin(mg.exp(mg.tanh(x * 2) @ x.mT) @ x) * 3)
    given = mg.asarray(x)
    with register_kernel("tanh", "cpu", lambda x: x):
        assert not np.may_share_memory(f(given).numpy(), given.numpy())
        expected = np.sin(np.exp(2 * x @ x.T) @ x) * 3
        np.testing.assert_allclose(g(given).numpy(), expected, rtol=1e-5)


def test_a_kernel_cannot_write_to_its_input():
    def wrong(x):
        x[...] = 0
        return x

    with register_kernel("tanh", "cpu", wrong), pytest.raises(mg.MinigradError, match="read-only"):
        mg.jit(mg.tanh)(mg.ones(2))


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (lambda x: np.zeros(1, np.float32), "registered for tanh returned a shape that is not"),
        (lambda x: np.zeros(x.shape, np.float64), "registered for tanh returned a dtype that is not"),
    ],
)
def test_another_result_later_is_an_error(later, says):
    """Eager mode checks the first result.  Other kernels read the memory of each, so that programs check all."""
    called = []

    def kernel(x):
        called.append(x)
        return later(x) if len(called) > 1 else x * 2

    f = mg.jit(lambda x: mg.tanh(x) + 1)
    with register_kernel("tanh", "cpu", kernel):
        f(mg.ones(5))
        with pytest.raises(mg.MinigradError, match=says):
            f(mg.ones(5))


def test_an_error_names_the_line_and_the_operation():
    def broken(x):
        raise ValueError("the oven is cold")

    with register_kernel("tanh", "cpu", broken), pytest.raises(mg.MinigradError, match="tanh: the oven") as caught:
        mg.jit(mg.tanh)(mg.ones(2))
    assert any("while computing tanh, made at" in note for note in caught.value.__notes__)


# what is shown --------------------------------------------------------------------------------------------------------


def test_the_boundary_has_the_reason():
    f = mg.jit(lambda x: mg.tanh(x * 2) * 3)
    with register_kernel("tanh", "cpu", nines):
        text = str(f.kernels(mg.ones(4)))
        assert "own_tanh_1(multiply_1), by a kernel of your own" in text
        assert "multiply_1 → own_tanh_1: own_tanh is a kernel of your own" in text
        assert "own_tanh is a kernel of your own" in mg.viz.fusion(f, mg.ones(4)).text()
        assert f.cost(mg.ones(4)).program.launches == 3
        assert f.cost(mg.ones(4)).program.flops == f.cost(mg.ones(4)).eager.flops == 12
    assert f.cost(mg.ones(4)).program.launches == 1


def test_a_program_that_nothing_uses_is_not_kept_alive():
    import gc
    import weakref

    f = mg.jit(lambda x: mg.tanh(x) + 7)
    f(mg.ones(2))
    program = weakref.ref(f.program(mg.ones(2)))
    with register_kernel("tanh", "cpu", nines):
        f(mg.ones(2))
    del f
    gc.collect()
    assert program() is None and CHANGES


def test_a_saved_function_uses_the_kernel_where_it_is_registered(tmp_path):
    f, x = mg.jit(lambda x: mg.tanh(x)), mg.ones(2)
    with register_kernel("tanh", "cpu", nines):
        f.save(tmp_path / "a.program", x)
        loaded = mg.load_program(tmp_path / "a.program")
        assert loaded(x).tolist() == f(x).tolist() == [9, 9]
    assert loaded(x).tolist() == f(x).tolist() == mg.tanh(x).tolist()
