"""grad, vjp, jacobian, hessian, hvp: against central differences and each other, nested, on containers."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.support.errors import GradError
from tests.numerical import check_gradients


def tensor(*shape, seed=0):
    return mg.asarray(np.random.default_rng(seed).standard_normal(shape))


def f(x):
    return (mg.tanh(x) * x[::-1] ** 2).sum() + mg.exp(x[0])


def test_grad_equals_central_differences():
    check_gradients(f, tensor(4).numpy_copy())
    x = mg.asarray(tensor(4).numpy_copy(), requires_grad=True)
    f(x).backward()
    np.testing.assert_allclose(mg.grad(f)(x.detach()).numpy(), x.grad.numpy(), rtol=1e-12)


def test_grad_does_not_change_its_arguments():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    plain = mg.asarray([3.0, 4.0])
    gx = mg.grad(lambda a: (a * plain).sum())(x)
    assert x.grad is None
    assert plain.requires_grad is False
    assert gx.tolist() == [3.0, 4.0]


def test_value_and_grad_of_several_arguments_with_aux():
    def loss(p, n, q):
        return (p["w"] * q[0]).sum() * n, {"note": "kept", "h": p["w"] + 1}

    p, q = {"w": mg.asarray([1.0, 2.0]), "name": "p"}, (mg.asarray([3.0, 4.0]), mg.asarray([1, 2]))
    (value, aux), (dp, dq) = mg.value_and_grad(loss, argnums=(0, 2), has_aux=True, allow_unused=True)(p, 2, q)
    assert value.item() == 22.0
    assert aux["note"] == "kept"
    assert dp["w"].tolist() == [6.0, 8.0]
    assert dp["name"] == "p"
    assert dq[0].tolist() == [2.0, 4.0]
    assert dq[1] is None, "integers have no gradient"


@pytest.mark.parametrize("point", [2.0, np.float32(2), np.array(2.0)])
def test_functions_are_differentiated_at_python_numbers_and_arrays(point):
    def cube(x):
        return x**3

    assert mg.grad(cube)(point).item() == 12.0 and mg.vjp(cube, point)[1](mg.ones(()))[0].item() == 12.0
    assert mg.grad(mg.grad(cube))(point).item() == mg.hessian(cube)(point).item() == 12.0
    assert mg.jacobian(cube)(point).item() == mg.jacobian(cube, mode="forward")(point).item() == 12.0


def test_python_numbers_in_containers_are_differentiated_and_those_of_modules_are_not():
    value, found = mg.value_and_grad(lambda p: p["w"] * 3.0 + p["b"][0])({"w": 2.0, "b": [1.0], "steps": 3})
    assert value.item() == 7.0 and found["w"].item() == 3.0 and found["b"][0].item() == 1.0
    norm = mg.nn.LayerNorm(2)
    assert mg.grad(lambda m: (m(mg.asarray([1.0, 2.0])) ** 2).sum())(norm).eps == norm.eps


def test_gradients_of_any_order():
    def power(x):
        return x**5

    derivatives = [power]
    for _ in range(5):
        derivatives.append(mg.grad(derivatives[-1]))
    x = mg.asarray(2.0, dtype=mg.float64)
    assert [d(x).item() for d in derivatives] == [32.0, 80.0, 160.0, 240.0, 240.0, 120.0]


def test_grad_inside_a_recorded_computation():
    w = mg.asarray(3.0, dtype=mg.float64, requires_grad=True)
    inner = mg.grad(lambda x: w * x**2)(mg.asarray(2.0, dtype=mg.float64))
    (inner * w).backward()
    assert w.grad.item() == 24.0, "d/dw of 4 w^2"


def test_grad_under_no_grad_still_differentiates():
    with mg.no_grad():
        g = mg.grad(lambda x: x * x)(mg.asarray(3.0))
    assert g.item() == 6.0
    assert not g.requires_grad


def test_vjp_and_its_second_use():
    x, y = tensor(3, seed=1), tensor(3, seed=2)
    value, back = mg.vjp(lambda x, y: {"a": x * y, "b": mg.sin(x)}, x, y)
    for scale in (1.0, 2.0):
        gx, gy = back({"a": mg.ones_like(x) * scale, "b": mg.ones_like(x)})
        np.testing.assert_allclose(gx.numpy(), scale * y.numpy() + np.cos(x.numpy()))
        np.testing.assert_allclose(gy.numpy(), scale * x.numpy())
    assert set(value) == {"a", "b"}


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian(mode):
    def g(x):
        return mg.stack([x[0] * x[1], mg.sin(x[2]), x.sum() ** 2])

    x = tensor(3, seed=4)
    a, b, c = x.tolist()
    s = 2 * (a + b + c)
    expected = [[b, a, 0], [0, 0, np.cos(c)], [s, s, s]]
    np.testing.assert_allclose(mg.jacobian(g, mode=mode)(x).numpy(), expected)
    shaped = mg.jacobian(lambda x: x.reshape(2, 2) * 2, mode=mode)(tensor(4))
    assert shaped.shape == (2, 2, 4)
    np.testing.assert_array_equal(shaped.numpy().reshape(4, 4), 2 * np.eye(4))


def test_hessian_and_hvp():
    x, v = tensor(4, seed=5), tensor(4, seed=6)
    h = mg.hessian(f)(x).numpy()
    np.testing.assert_allclose(h, h.T, atol=1e-12)
    slopes = mg.grad(f)
    e = 1e-6
    units = mg.eye(4, dtype=mg.float64)
    numerical = np.stack([(slopes(x + e * u).numpy() - slopes(x - e * u).numpy()) / (2 * e) for u in units])
    np.testing.assert_allclose(h, numerical, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(mg.hvp(f, (x,), (v,)).numpy(), h @ v.numpy(), rtol=1e-10)
    np.testing.assert_allclose(mg.jacobian(mg.jacobian(f))(x).numpy(), h, rtol=1e-10)


def test_hessian_runs_without_a_python_loop():
    from tests.autodiff.test_batching import kernels_run

    counts = {n: kernels_run(mg.hessian(lambda x: (x**3).sum()), tensor(n)) for n in (2, 50)}
    assert counts[2] == counts[50]


@pytest.mark.parametrize("first", [mg.grad, lambda f: mg.jacobian(f, mode="forward")], ids=["reverse", "forward"])
@pytest.mark.parametrize("second", [mg.grad, lambda f: mg.jacobian(f, mode="forward")], ids=["reverse", "forward"])
def test_modes_nest_in_any_order(first, second):
    def g(x):
        return mg.sin(x) * x**2

    x = 0.7
    expected = 2 * np.sin(x) + 4 * x * np.cos(x) - x**2 * np.sin(x)
    np.testing.assert_allclose(second(first(g))(mg.asarray(x, dtype=mg.float64)).item(), expected)


def test_vmap_of_grad_of_vmap():
    xs = tensor(3, 4)

    def inner(w, x):
        return mg.vmap(lambda a: mg.sin(a * w))(x).sum()

    out = mg.vmap(mg.grad(inner), in_axes=(None, 0))(mg.asarray(0.5, dtype=mg.float64), xs)
    np.testing.assert_allclose(out.numpy(), (np.cos(xs.numpy() * 0.5) * xs.numpy()).sum(axis=1))


def test_transform_errors():
    x = mg.ones(3)
    with pytest.raises(mg.GradError, match=r"only a single number has a gradient, and this output has shape \(3,\)"):
        mg.grad(lambda x: x * 2)(x)
    with pytest.raises(mg.GradError, match="does not depend on input 1"):
        mg.grad(lambda a, b: a.sum(), argnums=(0, 1))(x, x)
    assert mg.grad(lambda a, b: a.sum(), argnums=(0, 1), allow_unused=True)(x, x)[1] is None
    with pytest.raises(mg.GradError, match="must return a tensor, not tuple"):
        mg.grad(lambda a: (a.sum(), a))(x)
    with pytest.raises(mg.GradError, match="argument 3, and 1 were given"):
        mg.grad(lambda a: a, argnums=3)(x)
    with pytest.raises(mg.GradError, match="no history"):
        mg.grad(lambda a: mg.ones(()))(x)
    with pytest.raises(mg.GradError, match="'reverse' or 'forward'"):
        mg.jacobian(lambda a: a, mode="sideways")


@pytest.mark.parametrize("given", [1.0, (mg.ones(2),)])
def test_vjp_takes_a_gradient_for_each_output(given):
    _, back = mg.vjp(lambda x: (x * 2, x), mg.ones(2))
    with pytest.raises(GradError, match=r"vjp: each output of the function needs a gradient[\s\S]*Expected: 2 of"):
        back(given)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian_takes_functions_that_return_a_tensor(mode):
    with pytest.raises(GradError, match="jacobian: the function must return a tensor, not float"):
        mg.jacobian(lambda x: 1.0, mode=mode)(mg.ones(2))


@pytest.mark.parametrize(
    ("argument", "got", "hint"),
    [
        (mg.arange(3), "int64", r"x.astype\(mg.float32\), or argnums="),
        (range(3), "a range", "argnums="),
        ({"n": 3}, "a dict", "argnums="),
    ],
)
def test_an_argument_without_floats_is_named(argument, got, hint):
    """An object that is not a container too, such as a dataclass."""
    with pytest.raises(mg.GradError, match=rf"no tensor of floats\n.*NamedTuple.*\n  Got: {got}\n  Hint: {hint}"):
        mg.grad(lambda argument: mg.ones(2).sum())(argument)
    assert mg.grad(lambda i: (i * 2.0).sum(), allow_unused=True)(mg.arange(3)) is None


def test_argnums_may_be_a_list():
    assert [g.item() for g in mg.grad(lambda a, b: a * b, argnums=[0, 1])(2.0, 3.0)] == [3.0, 2.0]


def test_what_has_aux_adds_has_no_history_of_this_gradient():
    w = mg.asarray(3.0, requires_grad=True)

    def loss(x):
        hidden = x * 2
        return hidden * w, {"hidden": hidden, "x": x, "of w": w * 5, "text": "a"}

    (value, aux), gradient = mg.value_and_grad(loss, has_aux=True)(mg.asarray(1.0))
    assert aux["hidden"].numpy() == 2 and aux["x"].numpy() == 1 and aux["text"] == "a"
    assert gradient.item() == 6 and value.requires_grad and aux["of w"].requires_grad
    outer = mg.grad(lambda x: mg.value_and_grad(lambda y: (y * x, y * x), has_aux=True)(x)[0][1])(mg.asarray(2.0))
    assert outer.item() == 4, "the outer gradient flows through it"
