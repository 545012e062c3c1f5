"""Mixed precision: the operations in half precision, and scaled losses that keep small gradients."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.train import GradScaler, autocast

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(16, 6)).astype(np.float32), rng.integers(0, 3, 16)


def expect(dtype, tensor):
    if tensor.dtype != dtype:  # pytest rewrites `assert` into code that cannot be traced
        raise AssertionError(f"{tensor.dtype} instead of {dtype}")


def modes(step):
    def in_graph_mode():
        with mg.graph():
            return step()

    return {"eager": step, "graph": in_graph_mode, "jit": mg.jit(step)}


def test_debug_nans_finds_the_first_nan_under_autocast():
    def f(x):
        with autocast(), mg.debug_nans():
            return mg.log(x)

    for run in (f, mg.jit(f)):
        with pytest.raises(mg.NanError, match=r"log(.|\n)*made a nan"):
            run(mg.asarray([1.0, -1.0]))


def test_autocast_dtypes_of_operations():
    x, w = mg.ones((2, 3)), mg.ones((3, 4), requires_grad=True)
    with autocast():
        y = x @ w
        assert (y.dtype, mg.exp(y).dtype, y.sum().dtype, (y * 2).dtype) == ("float16", "float32", "float32", "float16")
        assert mg.softmax(y).dtype == nn.LayerNorm(4)(y).dtype == (y + mg.ones(4)).dtype == "float32"
        assert mg.conv2d(mg.ones((1, 2, 4, 4)), mg.ones((3, 2, 2, 2))).dtype == "float16"
        assert (mg.ones((2, 2), dtype=mg.float64) @ mg.ones((2, 2), dtype=mg.float64)).dtype == "float64"
        with autocast(enabled=False):
            assert (x @ w).dtype == "float32"
        with autocast():
            assert (x @ w).dtype == "float16"
        z = mg.zeros(2)
        z += 1.0
        assert mg.sum(mg.full((3,), 60000.0, dtype=mg.float16)).item() == pytest.approx(180000, rel=1e-3)
    assert (x @ w).dtype == "float32" and z.tolist() == [1.0, 1.0] and y.device == "cpu"
    y.astype(mg.float32).sum().backward()
    assert w.grad.dtype == "float32" and w.grad.tolist() == [[2.0] * 4] * 3


def test_autocast_inside_and_around_other_transformations():
    w = mg.asarray(rng.normal(size=(3, 3)).astype(np.float32))

    def f(x):
        y = mg.tanh(x @ w)
        assert y.dtype == "float16"
        return y.sum()

    x = mg.asarray(rng.normal(size=(4, 3)).astype(np.float32))
    with autocast():
        plain, slope = f(x), mg.grad(f)(x)
        inside = mg.vmap(f)(x), mg.jvp(f, (x,), (x,))[1]
        with mg.debug_nans():
            assert f(x).item() == plain.item()
            with pytest.raises(mg.NanError, match="log made a nan"):
                mg.log(x @ w - 100.0)

    def entered(x):
        with autocast():
            return f(x)

    outside = mg.vmap(entered)(x), mg.jvp(entered, (x,), (x,))[1]
    for values, moved in (inside, outside):
        np.testing.assert_allclose(values.sum().item(), plain.item(), rtol=1e-2, atol=1e-2)
        np.testing.assert_allclose(moved.item(), (slope * x).sum().item(), rtol=2e-2, atol=1e-2)
    assert slope.dtype == "float32"


@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_autocast_with_branches_and_loops(mode, numpy_kernels):
    w = mg.asarray(rng.normal(size=(3, 3)).astype(np.float32), requires_grad=True)
    x, xs = mg.asarray(X[:2, :3]), mg.asarray(X[:8, :3].reshape(4, 2, 3))

    def full(h):
        with autocast(enabled=False):
            expect("float32", h @ w)
            return mg.cond(h.sum() > 0.0, lambda h: h @ w, lambda h: h * 2.0, h)

    def step():
        w.grad = None
        with autocast():
            h, _ = mg.scan(lambda h, x: (mg.tanh(h @ w + x @ w), ()), x @ w, xs)  # the carry and the result are float16
            h = mg.cond(h.sum() > 100.0, lambda h: h, lambda h: h @ w, h)
            expect("float16", h)
            loss = full(h.astype(mg.float32)).sum()
        loss.backward()
        return loss

    loss = modes(step)[mode]().item()
    h, m = X[:2, :3] @ w.numpy_copy(), w.numpy_copy()
    for x in X[:8, :3].reshape(4, 2, 3):
        h = np.tanh(h @ m + x @ m)
    h = h @ m
    np.testing.assert_allclose(loss, (h @ m if h.sum() > 0 else h * 2).sum(), rtol=2e-2, atol=2e-2)
    assert w.grad.dtype == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_a_mixed_training_comes_close_to_a_full_one(mode, numpy_kernels):
    def trained(mixed, mode):
        mg.random.seed(0)
        model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
        optimizer, scaler = mg.optim.AdamW(model.parameters(), lr=0.02), GradScaler(growth_interval=5)
        x, y = mg.asarray(X), mg.asarray(Y)

        def step():
            optimizer.zero_grad()
            with autocast(enabled=mixed):
                loss = mg.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale(optimizer)
            norm = mg.optim.clip_grad_norm(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            return loss, norm

        run = modes(step)[mode]
        seen = [[t.item() for t in run()] for _ in range(12)]
        assert mode != "jit" or len(run.traces) == 1
        assert {p.dtype.name for p in model.parameters()} == {"float32"} and scaler.get_scale() == 2.0**18
        return np.array(seen)

    full, mixed = trained(False, "eager"), trained(True, mode)
    np.testing.assert_allclose(mixed, full, rtol=0.02)
    assert mixed[-1, 0] < 0.7 * mixed[0, 0] and not np.array_equal(mixed, full)


@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_a_step_with_infinite_gradients_is_left_out(mode, numpy_kernels):
    w, x = mg.asarray([[1.0]], requires_grad=True), mg.asarray([[1.0]])
    optimizer = mg.optim.Adam([w], lr=0.25)
    scaler = GradScaler(init_scale=2.0**18, growth_interval=3)

    def step():
        optimizer.zero_grad()
        with autocast():
            loss = (x @ w).astype(mg.float32).sum()
        scaler.scale(loss).backward()  # the factor exceeds the range of half precision
        scaler.step(optimizer)
        scaler.update()

    run, scales, weights = modes(step)[mode], [], []
    for _ in range(8):
        run()
        scales.append(np.log2(scaler.get_scale()))
        weights.append(w.item())
    assert scales == [17, 16, 15, 15, 15, 16, 15, 15]
    np.testing.assert_allclose(weights, [1, 1, 1, 0.75, 0.5, 0.25, 0.25, 0], atol=1e-6)
    assert optimizer.param_groups[0].state["step"].item() == 4


def test_scaler_keeps_small_gradients():
    def gradient(scaler):
        w, x = mg.asarray([[1.0]], requires_grad=True), mg.asarray([[1.0]])
        optimizer = mg.optim.SGD([w], lr=1.0)
        with autocast():
            loss = (x @ w).astype(mg.float32).sum() * 1e-9
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is not None:
            scaler.unscale(optimizer)
        return w.grad.item()

    assert gradient(None) == 0.0 and gradient(GradScaler()) == pytest.approx(1e-9, rel=1e-2)


def test_a_scaler_is_saved_and_restored():
    w = mg.asarray([1.0], requires_grad=True)
    optimizer, scaler, other = mg.optim.SGD([w], lr=0.0), GradScaler(8.0, growth_interval=4), GradScaler()
    scaler.scale((w * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.state_dict() == {"scale": 8.0, "growth_tracker": 1}
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and len(other.tensors()) == 3


W = mg.asarray([1.0], requires_grad=True)


def twice():
    scaler, optimizer = GradScaler(), mg.optim.SGD([W], lr=0.1)
    scaler.unscale(optimizer)
    scaler.unscale(optimizer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (twice, r"these gradients are unscaled already\n  Hint: unscale\(\) once, step\(\)"),
        (lambda: GradScaler(init_scale=0.0), "init_scale is above 0.*\n  Got: 0.0, 2.0, 0.5"),
        (lambda: GradScaler(backoff_factor=1.0), "backoff_factor below 1"),
        (lambda: GradScaler().load_state_dict({"scale": 1.0}), "the state lacks growth_tracker, of a GradScaler"),
        (lambda: autocast(mg.float64), "autocast: float16 is the type to compute in, not float64"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


@pytest.mark.slow
def test_an_optimizer_is_not_taken_for_one_that_is_gone():
    """Notes by id refer to living objects: a new object can get the id of a deleted one."""
    w, scaler = mg.asarray([1.0], requires_grad=True), GradScaler(init_scale=8.0)
    w.grad = mg.asarray([8.0])
    optimizer = mg.optim.SGD([w], lr=0.25)
    alive = weakref.ref(optimizer)
    scaler.unscale(optimizer)
    del optimizer
    gc.collect()
    assert alive() is not None
    scaler.step(alive())
    gc.collect()
    assert alive() is None


def after_gradients(scaler, *gradients):
    """The factor after an update; each list of gradients is that of one optimizer, and says whether it stepped."""
    stepped = []
    for listed in gradients:
        parameters = [mg.asarray([1.0], requires_grad=True) for _ in listed]
        optimizer = mg.optim.SGD(parameters, lr=0.5)
        for parameter, gradient in zip(parameters, listed):
            parameter.grad = mg.asarray([gradient])
        scaler.step(optimizer)
        stepped.append([p.item() != 1.0 for p in parameters])
    scaler.update()
    return scaler.get_scale(), stepped


def test_good_steps_are_counted_from_the_last_bad_one():
    scaler = mg.train.GradScaler(init_scale=8.0, growth_interval=3)
    factors = [after_gradients(scaler, [g])[0] for g in (1.0, np.inf, 1.0, 1.0, 1.0, 1.0, 1.0)]
    assert factors == [8.0, 4.0, 4.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize("place", range(3))
def test_one_gradient_that_is_not_finite_stops_the_whole_step(place):
    gradients = [np.nan if i == place else 1.0 for i in range(3)]
    assert after_gradients(mg.train.GradScaler(init_scale=8.0), gradients) == (4.0, [[False] * 3])


@pytest.mark.parametrize("gradients", [([np.inf], [1.0]), ([1.0], [np.inf])])
def test_one_of_two_optimizers_with_a_bad_step_halves_the_factor(gradients):
    factor, stepped = after_gradients(mg.train.GradScaler(init_scale=8.0), *gradients)
    assert factor == 4.0 and stepped == [[bool(np.isfinite(g[0]))] for g in gradients]


def test_autocast_decorates_a_function_that_calls_itself():
    @mg.train.autocast()
    def product(x, times):
        return x @ x if times == 0 else product(x, times - 1)

    x = mg.ones((2, 2))
    assert product(x, 2).dtype == mg.float16 and (x @ x).dtype == mg.float32
