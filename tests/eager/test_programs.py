"""Composed functions that run as programs in eager mode, compared with the same functions operation by operation."""

import gc
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.mode import current_mode, switch
from minigrad.core.node import FREED, topological_order
from minigrad.core.programs import PROGRAMS, SMALL, Closed, opened_order
from minigrad.eager import calls

pytestmark = pytest.mark.skipif(not calls.is_available(), reason="llvmlite is not installed")


@pytest.fixture(autouse=True)
def programs_are_on(monkeypatch):
    """Programs run, also where other tests have called a function with as many kinds of arguments as it may have."""
    monkeypatch.setattr("minigrad.eager.calls.MOST", 1000)
    with mg.eager_programs(True):
        yield


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def kinds_of(function):
    """The kinds of calls for which a compiled function has a program, or None."""
    (kinds,) = [cell.cell_contents for cell in function.__closure__ if isinstance(cell.cell_contents, dict)]
    return list(kinds.values())


LABELS = np.arange(128) % 10
CALLS = {
    "softmax": (lambda x: mg.softmax(x, axis=0), (64, 100)),
    "log_softmax": (mg.log_softmax, (64, 100)),
    "logsumexp": (mg.logsumexp, (64, 100)),
    "relu": (mg.relu, (100, 100)),
    "leaky_relu": (lambda x: mg.leaky_relu(x, slope=0.2), (100, 100)),
    "elu": (mg.elu, (100, 100)),
    "silu": (mg.silu, (100, 100)),
    "gelu": (mg.gelu, (100, 100)),
    "tanh gelu": (lambda x: mg.gelu(x, approximate="tanh"), (100, 100)),
    "softplus": (mg.softplus, (100, 100)),
    "linear": (mg.linear, (4, 30, 100), (50, 100), (50,)),
    "linear without bias": (mg.linear, (100, 100), (50, 100)),
    "layer_norm": (mg.layer_norm, (64, 100), (100,), (100,)),
    "group_norm": (lambda *xwb: mg.group_norm(xwb[0], 2, *xwb[1:]), (8, 4, 160), (4,), (4,)),
    "rms_norm": (mg.rms_norm, (64, 100), (100,)),
    "mse_loss": (mg.mse_loss, (64, 100), (64, 100)),
    "binary cross-entropy": (lambda x: mg.binary_cross_entropy_with_logits(x, mg.ones((64, 100)) * 0.3), (64, 100)),
    "binary cross-entropy of probabilities": (
        lambda x: mg.binary_cross_entropy(mg.sigmoid(x), mg.ones((64, 100)) * 0.3), (64, 100)),
    "nll_loss": (lambda x: mg.nll_loss(x, mg.asarray(LABELS)), (128, 10)),
    "kl_div": (lambda *xy: mg.kl_div(*xy, log_target=True), (16, 10), (16, 10)),
    "l1_loss": (mg.l1_loss, (16, 10), (16, 10)),
    "huber_loss": (lambda *xy: mg.huber_loss(*xy, delta=0.5), (16, 10), (16, 10)),
    "smooth_l1_loss": (mg.smooth_l1_loss, (16, 10), (16, 10)),
    "cosine_similarity": (mg.cosine_similarity, (16, 10), (16, 10)),
    "attention": (lambda *qkv: mg.scaled_dot_product_attention(*qkv, causal=True), *[(2, 2, 32, 40)] * 3),
    "cross_entropy": (lambda x: mg.cross_entropy(x, mg.asarray(LABELS)), (128, 10)),
    "conv2d": (lambda *xwb: mg.conv2d(*xwb, padding=1), (4, 8, 12, 12), (16, 8, 3, 3), (16,)),
    "conv2d with steps": (lambda *xwb: mg.conv2d(*xwb, stride=(2, 1), groups=3), (4, 9, 12, 12), (9, 3, 2, 3), (9,)),
    "conv2d of few channels": (lambda *xw: mg.conv2d(*xw, padding="same"), (4, 2, 24, 24), (3, 2, 3, 3)),
    "conv2d of one image": (mg.conv2d, (8, 24, 24), (16, 8, 1, 1)),
    "conv1d": (mg.conv1d, (4, 8, 150), (9, 8, 5), (9,)),
    "conv_transpose2d": (lambda *xw: mg.conv_transpose2d(*xw, stride=2), (4, 8, 12, 12), (8, 16, 2, 2)),
    "max_pool2d": (lambda x: mg.max_pool2d(x, 2), (4, 8, 13, 12)),
    "max_pool2d with steps": (lambda x: mg.max_pool2d(x, 3, 2, 1), (4, 8, 12, 12)),
    "avg_pool2d": (lambda x: mg.avg_pool2d(x, (2, 3)), (4, 8, 12, 12)),
    "adaptive_avg_pool2d": (lambda x: mg.adaptive_avg_pool2d(x, 5), (4, 8, 12, 12)),
    "var": (lambda x: mg.var(x, axis=1, correction=1), (256, 520)),
    "std": (lambda x: mg.std(x, axis=0), (16, 10)),
    "var of everything": (mg.var, (140_000,)),
    "vector_norm": (lambda x: mg.linalg.vector_norm(x, axis=0, keepdims=True), (256, 520)),
    "sum of sizes": (lambda x: mg.linalg.vector_norm(x, ord=1), (256, 520)),
    "instance_norm": (mg.instance_norm, (4, 8, 12, 12), (8,), (8,)),
    "batch_norm": (lambda x, w, b: mg.batch_norm(x, None, None, w, b, True), (4, 8, 12, 12), (8,), (8,)),
    "batch_norm with given means": (lambda x, *mvwb: mg.batch_norm(x, mvwb[0], mvwb[1] ** 2 + 1, *mvwb[2:]),
                                    (4, 8, 12, 12), *[(8,)] * 4),
}
cases = pytest.mark.parametrize("name", CALLS)


def leaves_for(shapes):
    return [mg.asarray(numbers(*shape), requires_grad=True) for shape in shapes]


def is_closed(y):
    return y.node.op.__class__ is Closed


def weights(y):
    return mg.asarray(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape))


def both_ways(function, *args):
    """The results of a function as programs, and operation by operation."""
    ours = function(*args)
    with mg.eager_programs(False):
        return ours, function(*args)


def close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6 * max(1.0, abs(b).max()))


@cases
def test_values_and_gradients_are_those_of_the_operations(name):
    function, *shapes = CALLS[name]

    def run():
        inputs = leaves_for(shapes)
        y = function(*inputs)
        assert is_closed(y) == current_mode().programs
        y.backward(weights(y))
        return [y.detach().numpy(), *[x.grad.numpy() for x in inputs]]

    close(*both_ways(run))


@cases
def test_without_gradients_the_values_are_the_same(name):
    function, *shapes = CALLS[name]
    inputs = [mg.asarray(numbers(*shape)) for shape in shapes]
    ours, theirs = both_ways(lambda: function(*inputs))
    assert ours.node is None and not ours.requires_grad
    close([ours.numpy()], [theirs.numpy()])


@cases
def test_gradients_of_gradients_are_computed_by_the_operations(name):
    function, *shapes = CALLS[name]

    def run():
        inputs = leaves_for(shapes)
        y = function(*inputs)
        first = mg.gradients(y, inputs, weights(y), create_graph=True)
        total = sum((g * g).sum() for g in first)
        second = mg.gradients(total, inputs, allow_unused=True) if total.requires_grad else []
        return [t.detach().numpy() for t in (*first, *second) if t is not None]

    ours, theirs = both_ways(run)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@cases
@pytest.mark.parametrize("after_backward", [False, True])
def test_a_closed_node_opens_into_the_nodes_of_the_operations(name, after_backward):
    function, *shapes = CALLS[name]

    def run():
        inputs = leaves_for(shapes)
        y = function(*inputs)
        if after_backward:
            y.backward(weights(y))
        order = opened_order([y.node])
        assert topological_order([y.node]) == order and order[-1] is y.node
        order = [node for node in order if node.op is not None]
        kept = [node.saved is FREED or node.saved is None for node in order]
        return [(node.name, node.shape, node.attrs, node.where and node.where[0]) for node in order], kept

    ours, theirs = both_ways(run)
    assert [row[:3] for row in ours[0]] == [row[:3] for row in theirs[0]] and ours[1] == theirs[1]
    assert {row[3] for row in ours[0]} == {row[3] for row in theirs[0]}


def test_an_opened_node_has_the_gradient_of_the_closed_one():
    for name in ("gelu", "relu", "linear"):
        function, *shapes = CALLS[name]
        found = []
        for opens in (False, True):
            inputs = leaves_for(shapes)
            y = function(*inputs)
            if opens:
                opened_order([y.node])
            y.backward(weights(y))
            found.append([x.grad.numpy() for x in inputs])
        close(*found)


def test_replay_and_views_open_nodes():
    x = mg.asarray(numbers(100, 100), requires_grad=True)
    y = mg.gelu(mg.softmax(x))
    np.testing.assert_allclose(mg.replay(y).numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert not is_closed(y)
    assert "exp(x − max(x))" in [box.title for box in mg.viz.graph(mg.softmax(x).sum()).parts[-1].scene.boxes]
    assert any(step.node is not None and step.node.name == "erf" for step in
               mg.viz.steps.record_steps(mg.gelu(x).sum()).steps)


# where programs do not run -------------------------------------------------------------------------------------------


def test_a_small_call_runs_operation_by_operation():
    assert not is_closed(mg.softmax(mg.ones(SMALL - 1, requires_grad=True)))
    assert is_closed(mg.softmax(mg.ones(SMALL, requires_grad=True)))


def test_a_gradient_that_no_input_needs_is_not_computed():
    h = mg.softmax(mg.asarray(numbers(23, 29), requires_grad=True))
    gradient = h.node.plan.whole.__self__
    mg.gradients(h.sum(), h, retain_graph=True)
    assert "backward" not in vars(gradient)
    h.sum().backward()
    assert "backward" in vars(gradient)


@pytest.mark.parametrize("name", [*CALLS, "count", "count of rows"])
def test_a_result_requires_a_gradient_where_the_operations_result_does(name):
    counts = {"count": None, "count of rows": 1}
    call, *shapes = CALLS.get(name) or (lambda x: mg.linalg.vector_norm(x, ord=0, axis=counts[name]), (10, 20))
    for which in range(len(shapes)):
        tensors = [mg.asarray(numbers(*shape), requires_grad=i == which) for i, shape in enumerate(shapes)]
        ours = call(*tensors)
        with mg.eager_programs(False):
            theirs = call(*tensors)
        assert ours.requires_grad == theirs.requires_grad, which
        np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=2e-5, atol=2e-5)


def test_record_keeps_all_operations():
    with mg.record():
        y = mg.softmax(mg.ones((100, 100)))
    assert "exp" in [node.name for node in topological_order([y.node])]


def test_transformations_see_all_operations():
    x = mg.asarray(numbers(100, 100))
    names = [node.name for node in mg.trace(mg.softmax, x).nodes]
    assert "exp" in names and "softmax" not in names
    close(*both_ways(lambda: [mg.vmap(mg.softmax)(x).numpy(), mg.jvp(mg.gelu, (x,), (x,))[1].numpy()]))
    close(*both_ways(lambda: [mg.jacobian(lambda v: mg.softmax(v)[:3, 0])(x).numpy()]))
    with mg.debug_nans(), pytest.raises(mg.MinigradError, match="log"):
        mg.softmax(mg.log(x))


def test_the_switch_and_the_variable(monkeypatch):
    x = mg.asarray(numbers(100, 100), requires_grad=True)
    with mg.eager_programs(False):
        assert not is_closed(mg.softmax(x))
        with mg.eager_programs():
            assert is_closed(mg.softmax(x))
    with switch(programs=None):
        monkeypatch.setattr(PROGRAMS, "on", False)
        assert not is_closed(mg.softmax(x))


def test_a_kernel_of_the_user_runs():
    x = mg.asarray(numbers(100, 100))
    with mg.devices.register_kernel("exp", "cpu", lambda x: x * 0 + 7):
        assert mg.softmax(x).numpy()[0, 0] == np.float32(7 * (np.float32(1) / np.float32(700)))


def test_a_profile_shows_the_programs_of_eager_mode():
    x = mg.asarray(numbers(100, 100), requires_grad=True)
    with mg.profile() as run:
        mg.log_softmax(x)[:, 0].sum().backward()
    assert [event.name.partition("/")[0] for event in run.events] == ["log_softmax", "gradient of log_softmax"]
    assert all(event.name.partition("/")[2].startswith("kernel_") and event.cost.bytes for event in run.events)


def test_without_llvmlite_the_operations_run(monkeypatch):
    monkeypatch.setattr(calls, "is_available", lambda: False)
    x = mg.asarray(numbers(101, 99), requires_grad=True)
    assert not is_closed(mg.softmax(x))


def test_half_precision_runs_operation_by_operation():
    x = mg.asarray(numbers(100, 100)).astype(mg.float16)
    x.requires_grad = True
    assert not is_closed(mg.softmax(x))


def test_a_function_has_a_bounded_number_of_kinds(monkeypatch):
    monkeypatch.setattr(calls, "MOST", 2)
    function = calls.compiled(lambda x: mg.tanh(x) * 2)
    made = [function(mg.ones((n, 100), requires_grad=True)) for n in (50, 51, 52, 50)]
    assert [is_closed(y) for y in made] == [True, True, False, True]


def test_numbers_that_compare_equal_are_different_kinds():
    function = calls.compiled(lambda x, number: x * number)
    x = mg.ones((100, 100))
    assert np.signbit([function(x, number).numpy()[0, 0] for number in (0.0, -0.0)]).tolist() == [False, True]


def test_a_pair_of_numbers_is_a_kind():
    x, w = mg.asarray(numbers(4, 8, 12, 12)), mg.asarray(numbers(8, 8, 3, 3))
    shapes = [mg.conv2d(x, w, stride=step).shape[2:] for step in (2, (2, 2), (1, 2))]
    assert shapes == [(5, 5), (5, 5), (10, 5)]


def test_a_function_may_have_more_kinds(monkeypatch):
    monkeypatch.setattr(calls, "MOST", 1)
    function = calls.compiled(lambda x: mg.tanh(x) * 2, most=2)
    made = [function(mg.ones((n, 100), requires_grad=True)) for n in (50, 51, 52)]
    assert [is_closed(y) for y in made] == [True, True, False]


# layouts -------------------------------------------------------------------------------------------------------------


def layer(x, w, b):
    return mg.max_pool2d(mg.relu(mg.conv2d(x, w, b, padding=1)), 2)


def test_images_keep_the_channels_last_from_layer_to_layer():
    def run():
        inputs = leaves_for([(8, 8, 16, 16), (8, 8, 3, 3), (8,)])
        y = layer(layer(*inputs), *inputs[1:])
        y.backward(weights(y))
        order = sorted(range(4), key=lambda axis: -y._data.strides[axis])
        return order, [y.detach().numpy(), *[x.grad.numpy() for x in inputs]]

    (order, ours), (_, theirs) = both_ways(run)
    close(ours, theirs)
    assert order == [0, 2, 3, 1] and all(array.flags.c_contiguous for array in ours)


def test_a_view_of_a_result_shares_its_memory_as_usual():
    with mg.no_grad():
        y = mg.conv2d(*map(mg.asarray, (numbers(4, 8, 12, 12), numbers(8, 8, 3, 3))))
        y[0, 0, 0, :2] = mg.asarray([7.0, 8.0])
        flat = mg.reshape(y, (-1,))
        flat[1] = 9.0
    assert y[0, 0, 0, :2].tolist() == [7.0, 9.0] and flat.numpy()[:2].tolist() == [7.0, 9.0]


def test_inputs_in_many_layouts_share_a_program():
    function, made = calls.compiled(lambda x: mg.tanh(x) + 1.0), []
    array = numbers(6, 8, 10, 12)
    for axes in [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (2, 3, 0, 1), (1, 2, 3, 0)]:
        laid = mg.permute_dims(mg.asarray(array.transpose(axes)), tuple(map(int, np.argsort(axes))))
        made.append(function(laid).numpy())
    close(made, [np.tanh(array) + 1] * len(made))
    (kind,) = kinds_of(function)
    assert len(kind.forward.made) == calls.LAYOUTS


def test_inputs_with_gaps_run_the_program_for_row_major_order():
    function = calls.compiled(lambda x: mg.tanh(x) + 1.0)
    with mg.no_grad():
        for every_second in (mg.asarray(numbers(60, 90))[:, ::2], mg.asarray(numbers(45, 120)).T[::2]):
            close([function(every_second).numpy()], [np.tanh(every_second.numpy()) + 1])
    assert [[*kind.forward.made] for kind in kinds_of(function)] == [[(None,)]]


IMPURE = {
    "draws": lambda x: x * 2 + mg.random.normal(x.shape),
    "prints": lambda x: mg.print("x is {}", x[0]) or x * 2,
    "returns its argument": lambda x: x,
    "returns a view": lambda x: x[::2],
    "returns integers": lambda x: mg.argsort(x),
}


@pytest.mark.parametrize("what", IMPURE)
def test_what_is_no_pure_function_runs_operation_by_operation(what):
    function = calls.compiled(IMPURE[what])
    found = [function(mg.ones(200)).tolist() for _ in range(2)]
    assert kinds_of(function) == [None]
    assert (found[0] == found[1]) == (what != "draws")


def test_large_memory_is_free_between_calls(monkeypatch):
    monkeypatch.setattr(calls, "KEPT", 0)
    x, w = mg.asarray(numbers(5, 8, 13, 12)), mg.asarray(numbers(8, 8, 3, 3))
    first, second = [mg.conv2d(x, w, padding=1) for _ in range(2)]
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    with mg.eager_programs(False):
        close([first.numpy()], [mg.conv2d(x, w, padding=1).numpy()])


def test_batch_norm_moves_its_statistics():
    def run():
        layer = mg.nn.BatchNorm2d(8)
        layer(mg.asarray(numbers(4, 8, 12, 12)))
        return [layer.running_mean.numpy(), layer.running_var.numpy()]

    close(*both_ways(run))


# errors and effects --------------------------------------------------------------------------------------------------

WRONG = {
    "shapes": lambda: mg.linear(mg.ones((100, 100)), mg.ones((50, 99))),
    "an axis": lambda: mg.softmax(mg.ones((100, 100)), axis=3),
    "a name": lambda: mg.gelu(mg.ones((100, 100)), approximate="no"),
    "channels": lambda: mg.conv2d(mg.ones((4, 8, 12, 12)), mg.ones((8, 7, 3, 3))),
    "a stride": lambda: mg.max_pool2d(mg.ones((4, 8, 12, 12)), 2, (1, 2, 3)),
    "a label": lambda: mg.cross_entropy(mg.ones((128, 10)), mg.asarray(LABELS + 1)),
    "devices": lambda: mg.linear(mg.ones((100, 100)), mg.ones((50, 100), device="cpu:1")),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_those_of_the_operations(what):
    def run():
        with pytest.raises(mg.MinigradError) as caught:
            WRONG[what]()
        return str(caught.value)

    ours, theirs = both_ways(run)
    assert ours == theirs


def test_an_input_that_the_operations_would_not_save_may_be_overwritten():
    def run():
        x = mg.asarray(numbers(100, 100), requires_grad=True)
        bias = mg.zeros(50, requires_grad=True)
        y, z = mg.softmax(x), mg.linear(x.detach(), mg.asarray(numbers(50, 100), requires_grad=True), bias)
        with mg.no_grad():
            x *= 2
            bias += 1
        y.backward(weights(y))
        with pytest.raises(mg.MutationError):  # the operations save the input of a product
            z.sum().backward()
        return [x.grad.numpy()]

    close(*both_ways(run))


def test_an_input_that_the_gradient_does_not_need_is_not_saved():
    """The gradient of a weight needs x alone; neither the weight nor the bias is stored or copied."""

    def run():
        weight, bias = [mg.asarray(numbers(*shape), requires_grad=True) for shape in ((50, 100), (50,))]
        y = mg.linear(mg.asarray(numbers(100, 100)), weight, bias)
        saved.append([value is not None for value in y.node.saved or ()])
        found = mg.gradients((y * y).sum(), [weight, bias], create_graph=True)
        return [g.detach().numpy() for g in (*found, *mg.gradients((found[0] * found[0]).sum(), [weight, bias]))]

    saved = []
    close(*both_ways(run))
    assert [True, False, False, False] in saved


def test_a_weight_that_was_overwritten_is_an_error_that_names_it():
    x, w = mg.asarray(numbers(100, 100), requires_grad=True), mg.asarray(numbers(50, 100), requires_grad=True)
    y = mg.linear(x, w)
    with mg.no_grad():
        w *= 2
    with pytest.raises(mg.MutationError, match="input weight of linear"):
        y.sum().backward()
    with pytest.raises(mg.MutationError, match="input weight of linear"):
        mg.gradients(y.sum(), x, create_graph=True)


def test_a_second_backward_pass_needs_retain_graph():
    x = mg.asarray(numbers(100, 100), requires_grad=True)
    y = mg.gelu(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(mg.GradError, match="a second time through"):
        y.backward()


def test_results_own_their_memory():
    x = mg.asarray(numbers(100, 100))
    y = mg.relu(x)
    y += 1
    np.testing.assert_array_equal(y.numpy(), np.maximum(x.numpy(), 0) + 1)
    np.testing.assert_array_equal(mg.relu(x).numpy(), np.maximum(x.numpy(), 0))


def test_relu_saves_a_mask():
    y = mg.relu(mg.asarray(numbers(100, 100), requires_grad=True))
    assert [array.dtype for array in y.node.saved if array is not None] == [np.dtype(bool)]


def test_hooks_and_retained_gradients():
    def run():
        x = mg.asarray(numbers(100, 100), requires_grad=True)
        h = mg.relu(x)
        h.retain_grad()
        h.register_hook(lambda g: g * 10)
        mg.softmax(h)[:, :3].sum().backward()
        return [h.grad.numpy(), x.grad.numpy()]

    close(*both_ways(run))


def test_equal_calls_have_equal_results():
    x = mg.asarray(numbers(90, 110))
    first, *others = [mg.softmax(x).numpy() for _ in range(4)]
    assert all(np.array_equal(first, other) for other in others)


def test_views_and_other_devices():
    x = numbers(100, 120)
    close(*both_ways(lambda: [mg.softmax(mg.asarray(x).T[3:, ::2]).numpy()]))
    close(*both_ways(lambda: [mg.gelu(mg.asarray(x, device="cpu:1")).numpy()]))


def test_threads_share_a_program():
    x = mg.asarray(numbers(100, 130), requires_grad=True)
    found = []

    def work():
        for _ in range(20):
            found.append(mg.gradients(mg.gelu(mg.softmax(x)).sum(), x).numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(np.array_equal(found[0], each) for each in found)


def test_nodes_are_freed_without_the_collector():
    gc.disable()
    try:
        x = mg.asarray(numbers(100, 100), requires_grad=True)
        y = mg.gelu(x)
        dead = mg.core.node.weakref.ref(y.node)
        y.sum().backward()
        del y
        assert dead() is None
    finally:
        gc.enable()
