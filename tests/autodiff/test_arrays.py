"""Transformations of functions of NumPy's arrays: arrays in, arrays out, in their own dtype and in every mode."""

import threading

import numpy as np
import pytest

import minigrad as mg

X = np.array([1.0, -2.0, 3.0])
V = np.array([0.5, 1.0, 0.0])


def cubes(x):
    return (x**3).sum()


def modes():
    return pytest.mark.parametrize("mode", ["eager", "graph", "jit", "jit of f", "checked"])


def in_mode(mode, transform):
    """A function of `f` and arrays in one of the modes."""
    def run(f, *args):
        if mode == "graph":
            with mg.graph():
                return transform(f)(*args)
        if mode == "jit of f":
            return transform(mg.jit(f))(*args)
        transformed = transform(f)
        if mode == "eager":
            return transformed(*args)
        compiled = mg.jit(transformed, check=mode == "checked")
        compiled(*args)
        return compiled(*args)  # the second call takes the quick check
    return run


CASES = {
    "grad": (mg.grad, (X,), 3 * X**2),
    "value_and_grad": (mg.value_and_grad, (X,), (20.0, 3 * X**2)),
    "jacobian": (lambda f: mg.jacobian(lambda x: f(x) * x), (X,), 20 * np.eye(3) + np.outer(X, 3 * X**2)),
    "jacobian forward": (lambda f: mg.jacobian(f, mode="forward"), (X,), 3 * X**2),
    "hessian": (mg.hessian, (X,), np.diag(6 * X)),
    "hvp": (lambda f: lambda x, v: mg.hvp(f, (x,), (v,)), (X, V), 6 * X * V),
    "jvp": (lambda f: lambda x, v: mg.jvp(f, (x,), (v,)), (X, V), (20.0, (3 * X**2 * V).sum())),
    "vjp": (lambda f: lambda x, g: mg.vjp(f, x)[1](g), (X, np.array(2.0)), (6 * X**2,)),
    "vmap": (mg.vmap, (np.stack([X, V]),), np.array([20.0, 1.125])),
    "vmap of grad": (lambda f: mg.vmap(mg.grad(f)), (np.stack([X, V]),), 3 * np.stack([X, V]) ** 2),
    "grad of grad": (lambda f: mg.grad(lambda x: (mg.grad(f)(x) * V).sum()), (X,), 6 * X * V),
}


@modes()
@pytest.mark.parametrize("name", CASES)
def test_arrays_give_arrays_of_their_dtype(name, mode):
    transform, args, expected = CASES[name]
    found = in_mode(mode, transform)(cubes, *args)
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert isinstance(ours, np.generic if np.ndim(theirs) == 0 else np.ndarray) and ours.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@modes()
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_dtypes_and_shapes_are_those_of_the_argument(shape, dtype, mode):
    x = np.full(shape, 2.0, dtype)
    value, gradient = in_mode(mode, mg.value_and_grad)(lambda x: (x * x).sum(), x)
    assert value.dtype == gradient.dtype == dtype and gradient.shape == shape
    assert value == 4 * x.size and (gradient == 4).all()


def test_numbers_of_numpy_give_numbers_of_numpy():
    slope = mg.grad(lambda x: x**3)(np.float64(2.0))
    assert type(slope) is np.float64 and slope == 12


def test_python_floats_give_tensors():
    assert isinstance(mg.grad(lambda x: x**3)(2.0), mg.Tensor)


@pytest.mark.parametrize("jit", [False, True])
def test_containers_of_arrays(jit):
    def loss(p):
        return (p["w"] ** 2).sum() * p["rest"][0]

    gradient = mg.jit(mg.grad(loss)) if jit else mg.grad(loss)
    found = gradient({"w": X, "rest": (np.array(2.0), "name")})
    assert isinstance(found["w"], np.ndarray) and (found["w"] == 4 * X).all()
    assert found["rest"][0] == 14 and found["rest"][1] == "name"


def test_only_arguments_to_differentiate_by_decide():
    data = mg.asarray(X)
    assert isinstance(mg.grad(lambda w, x: (w * x).sum())(X, data), np.ndarray)
    assert isinstance(mg.grad(lambda w, x: (w * x).sum())(data, X), mg.Tensor)
    assert isinstance(mg.jit(mg.grad(lambda w, x: (w * x).sum()))(X, data), np.ndarray)
    assert isinstance(mg.jit(mg.grad(lambda w, x: (w * x).sum()))(data, X), mg.Tensor)
    mixed = mg.grad(lambda w, x: (w * x).sum(), argnums=(0, 1))(data, X)
    assert [type(each) for each in mixed] == [mg.Tensor, mg.Tensor]


def test_jit_keeps_what_tensors_give():
    """The same jitted function has another trace for tensors."""
    gradient = mg.jit(mg.grad(cubes))
    assert isinstance(gradient(X), np.ndarray) and isinstance(gradient(mg.asarray(X)), mg.Tensor)
    assert len(gradient.traces) == 2
    doubled = mg.jit(lambda x: x * 2)
    assert isinstance(doubled(X), mg.Tensor)


def test_jitted_derivatives_with_tensors_by_name():
    matrix = mg.asarray(np.diag(X))
    hvp = mg.jit(lambda x, v: mg.hvp(lambda y: (y * (matrix @ y)).sum(), (x,), (v,)))
    for _ in range(3):
        found = hvp(X, V)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, 2 * X * V, rtol=1e-12)
    assert len(hvp.traces) == 1


def test_results_are_new_and_writable():
    def linear(x):
        return (x * X).sum()

    for gradient in (mg.grad(linear), mg.jit(mg.grad(linear))):
        first = gradient(V)
        second = gradient(V)
        first[0] = 9
        assert second[0] == 1 and X[0] == 1


def test_a_result_with_a_history_stays_a_tensor():
    w = mg.asarray(X, requires_grad=True)
    penalty = (mg.grad(lambda x: (x * x * w).sum())(V) ** 2).sum()
    penalty.backward()
    np.testing.assert_allclose(w.grad.numpy(), 8 * X * V**2, rtol=1e-12)
    outer = mg.grad(lambda w: (mg.grad(lambda x: (x * x * w).sum())(V) ** 2).sum())(X)
    np.testing.assert_allclose(outer, 8 * X * V**2, rtol=1e-12)
    assert isinstance(outer, np.ndarray)


def test_no_grad_cuts_the_history_of_other_leaves():
    w = mg.asarray(X, requires_grad=True)
    with mg.no_grad():
        value, gradient = mg.value_and_grad(lambda x: (x * w).sum())(V)
        again, of_tensor = mg.value_and_grad(lambda x: (x * w).sum())(mg.asarray(V))
    assert type(value) is np.float64 and isinstance(gradient, np.ndarray)
    assert not again.requires_grad and not of_tensor.requires_grad


def test_auxiliary_results_become_arrays_too():
    (value, aux), gradient = mg.value_and_grad(lambda x: (x.sum(), {"twice": x * 2, "name": "a"}), has_aux=True)(X)
    assert value == 2 and aux["name"] == "a" and (aux["twice"] == 2 * X).all() and (gradient == 1).all()
    assert isinstance(aux["twice"], np.ndarray)


def test_inside_other_transformations_tensors_stay():
    rows = mg.vmap(lambda w: mg.grad(lambda x: (x * x * w).sum())(V))(mg.ones((2, 3), dtype="float64"))
    assert isinstance(rows, mg.Tensor) and rows.tolist() == [(2 * V).tolist()] * 2
    moved = mg.jvp(lambda w: mg.grad(lambda x: (x * x * w).sum())(V), (mg.asarray(X),), (mg.asarray(X),))[1]
    assert isinstance(moved, mg.Tensor) and moved.tolist() == (2 * V * X).tolist()


def test_nan_and_infinity_pass():
    found = mg.grad(lambda x: (x * x).sum())(np.array([np.nan, np.inf, -np.inf]))
    assert np.isnan(found[0]) and found[1] == np.inf and found[2] == -np.inf


def test_threads():
    found = {}
    gradient = mg.jit(mg.value_and_grad(cubes))

    def work(number):
        found[number] = [gradient(X * number)[1] for _ in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, rows in found.items():
        assert all(isinstance(row, np.ndarray) and np.allclose(row, 3 * (X * number) ** 2) for row in rows)
    assert sorted(found) == [1, 2, 3, 4]


def test_integers_are_refused():
    with pytest.raises(mg.GradError, match="no tensor of floats"):
        mg.grad(cubes)(np.arange(3))


def test_a_list_of_results_gets_a_hint():
    with pytest.raises(mg.GradError, match=r"jacobian: the function must return a tensor, not list\n.*np.stack"):
        mg.jacobian(lambda x: [x[0], x[1]])(X)


def test_vmap_of_arrays_and_numbers():
    found = mg.vmap(lambda x, s: x * s, in_axes=(0, None))(np.eye(2), 3.0)
    assert isinstance(found, np.ndarray) and (found == 3 * np.eye(2)).all()
    found = mg.vmap(lambda x, y: (x * y).sum(), in_axes=(1, 0))({"a": np.ones((2, 3))}["a"], np.ones((3, 2)))
    assert (found == 2).all() and found.shape == (3,)


def test_vmap_takes_an_array_beside_a_tensor_as_a_batch():
    """It was a constant before, and the results were wrong where shapes happened to fit."""
    x = np.arange(6.0).reshape(2, 3)
    found = mg.vmap(lambda a, b: (a * b).sum())(mg.asarray(x), x)
    assert isinstance(found, mg.Tensor) and found.tolist() == (x * x).sum(1).tolist()


def test_a_leaf_of_a_finished_transformation_needs_no_history():
    inner = mg.asarray(V)
    found = mg.grad(lambda w: (mg.grad(lambda x: (x * x * w).sum())(inner) ** 2).sum())(mg.asarray(X))
    assert not found.requires_grad
