"""SciPy's solvers take transformations of functions of arrays as they are, jitted or not."""

import warnings

import numpy as np
import pytest

import minigrad as mg

optimize = pytest.importorskip("scipy.optimize")
integrate = pytest.importorskip("scipy.integrate")

START = np.array([-1.2, 1.0, 0.7])


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def hvp(x, v):
    return mg.hvp(rosenbrock, (x,), (v,))


FORMS = {
    "jac=True": lambda: {"fun": mg.value_and_grad(rosenbrock), "jac": True},
    "grad": lambda: {"fun": rosenbrock, "jac": mg.grad(rosenbrock)},
    "jit outside": lambda: {"fun": mg.jit(mg.value_and_grad(rosenbrock)), "jac": True},
    "jit inside": lambda: {"fun": mg.value_and_grad(mg.jit(rosenbrock)), "jac": True},
}
SECOND = {
    "hess": lambda: {"hess": mg.hessian(rosenbrock)},
    "hessp": lambda: {"hessp": hvp},
    "jitted hess": lambda: {"hess": mg.jit(mg.hessian(rosenbrock))},
    "jitted hessp": lambda: {"hessp": mg.jit(hvp)},
}
NEEDS_MATRIX = {"dogleg", "trust-exact"}


def agrees(found):
    """A minimum in float64, as NumPy's arrays."""
    assert isinstance(found.x, np.ndarray) and found.x.dtype == np.float64
    assert found.success, found.message
    np.testing.assert_allclose(found.x, 1, atol=1e-3)
    np.testing.assert_allclose(float(found.fun), 0, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "SLSQP", "Newton-CG", "TNC", "trust-constr"])
def test_methods_with_gradients(method, form):
    options = {"maxfun": 1000} if method == "TNC" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agrees(optimize.minimize(x0=START, method=method, options=options, **FORMS[form]()))


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr", "dogleg", "trust-exact"])
def test_methods_with_second_derivatives(method, second):
    if method in NEEDS_MATRIX and "hessp" in second:
        pytest.skip("this method takes the matrix only")
    start = START if method != "dogleg" else np.array([1.1, 1.2, 1.3])  # it needs a Hessian that is positive
    agrees(optimize.minimize(mg.value_and_grad(rosenbrock), start, jac=True, method=method, **SECOND[second]()))


def test_methods_without_gradients_take_jitted_functions():
    found = optimize.minimize(mg.jit(rosenbrock), START, method="Nelder-Mead", options={"maxiter": 2000})
    agrees(found)


def test_the_path_is_that_of_the_exact_derivatives():
    """Each number that scipy sees is that of its own functions, to the last places."""
    ours = optimize.minimize(mg.value_and_grad(rosenbrock), START, jac=True, method="BFGS")
    theirs = optimize.minimize(optimize.rosen, START, jac=optimize.rosen_der, method="BFGS")
    assert ours.nit == theirs.nit and ours.nfev == theirs.nfev
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-9)


def test_bounds_and_arguments():
    data = mg.asarray(np.array([3.0, -2.0, 0.5]))
    found = optimize.minimize(
        mg.value_and_grad(lambda x, target: ((x - target) ** 2).sum()), np.zeros(3), args=(data,), jac=True,
        bounds=[(0, 1)] * 3,
    )
    np.testing.assert_allclose(found.x, [1, 0, 0.5], atol=1e-6)


def circle(x):
    return 1.5 - x[0] ** 2 - x[1] ** 2


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA", "COBYQA"])
def test_constraints(method, jit):
    made = mg.jit if jit else lambda f: f
    if method == "COBYQA":
        pytest.importorskip("scipy", minversion="1.14")
    first = {} if method.startswith("COB") else {"jac": made(mg.grad(rosenbrock))}
    inside = {"type": "ineq", "fun": circle, **({"jac": made(mg.grad(circle))} if first else {})}
    found = optimize.minimize(rosenbrock, np.array([0.5, 0.5, 0.5]), method=method, constraints=[inside], **first)
    theirs = optimize.minimize(optimize.rosen, np.array([0.5, 0.5, 0.5]), method="SLSQP",
                               constraints={"type": "ineq", "fun": circle})
    np.testing.assert_allclose(found.fun, theirs.fun, atol=1e-2)


def pair(x):
    return np.stack([x[0] ** 2 + x[1], x[0] * x[1]])


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_of_several_values(method):
    weighted = mg.hessian(lambda x, v: (pair(x) * v).sum())
    more = {"hess": weighted} if method == "trust-constr" else {}
    constraint = optimize.NonlinearConstraint(pair, -1, 2, jac=mg.jacobian(pair), **more)
    found = optimize.minimize(rosenbrock, START, jac=mg.grad(rosenbrock), method=method, constraints=constraint,
                              **({"hess": mg.hessian(rosenbrock)} if more else {}))
    np.testing.assert_allclose(found.x, 1, atol=1e-2)


def equations(x):
    return np.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


def with_tensors(x):
    """The same, which returns a tensor for an array too."""
    return mg.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


ROOT = [0.8411639019140096, 0.15883609808599033]
FUNCTIONS = {
    "NumPy": lambda: (equations, mg.jacobian(equations)),
    "mg": lambda: (with_tensors, mg.jacobian(with_tensors)),
    "jit": lambda: (mg.jit(with_tensors), mg.jit(mg.jacobian(with_tensors, mode="forward"))),
}


@pytest.mark.parametrize("functions", FUNCTIONS)
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method, functions):
    fun, jac = FUNCTIONS[functions]()
    found = optimize.root(fun, np.zeros(2), jac=jac, method=method)
    assert found.success and isinstance(found.x, np.ndarray)
    np.testing.assert_allclose(found.x, ROOT, rtol=1e-8)


@pytest.mark.parametrize("functions", FUNCTIONS)
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method, functions):
    fun, jac = FUNCTIONS[functions]()
    found = optimize.least_squares(fun, np.zeros(2), jac=jac, method=method)
    assert found.success and found.x.dtype == np.float64 and isinstance(found.jac, np.ndarray)
    np.testing.assert_allclose(found.x, ROOT, rtol=1e-6)


def test_least_squares_with_a_robust_loss_and_data():
    t = np.linspace(0, 3, 20)
    y = 2.5 * np.exp(-1.3 * t)
    y[3] += 5

    def residual(x, t, y):
        return x[0] * np.exp(-x[1] * t) - y

    found = optimize.least_squares(residual, np.ones(2), jac=mg.jacobian(residual), loss="soft_l1", f_scale=0.01,
                                   args=(t, y))
    np.testing.assert_allclose(found.x, [2.5, 1.3], atol=2e-2)


def test_curve_fit_and_newton():
    t = np.linspace(0, 3, 20)

    def model(t, a, b):
        return a * np.exp(-b * t)

    def jac(t, a, b):
        return mg.jacobian(lambda p: p[0] * np.exp(-p[1] * t))(np.array([a, b]))

    found, _ = optimize.curve_fit(model, t, model(t, 2.5, 1.3), p0=[1.0, 1.0], jac=jac)
    np.testing.assert_allclose(found, [2.5, 1.3], rtol=1e-6)

    def line(x):
        return np.sin(x) - 0.5

    root = optimize.newton(line, np.float64(0.3), fprime=mg.grad(line), fprime2=mg.grad(mg.grad(line)), tol=1e-12)
    assert abs(root - np.arcsin(0.5)) < 1e-12


def oscillator(t, y):
    return np.stack([y[1], 10 * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method):
    found = integrate.solve_ivp(oscillator, (0, 5), np.array([2.0, 0.0]), method=method, rtol=1e-7, atol=1e-9,
                                jac=mg.jacobian(oscillator, argnums=1))
    theirs = integrate.solve_ivp(oscillator, (0, 5), np.array([2.0, 0.0]), method="DOP853", rtol=1e-10, atol=1e-12)
    assert found.success and found.y.dtype == np.float64
    np.testing.assert_allclose(found.y[:, -1], theirs.y[:, -1], atol=1e-4)


def test_a_jitted_equation_is_traced_once():
    """The time is a number that differs in each call: as an array it is an input of the program."""
    rhs = mg.jit(lambda t, y: mg.stack([y[1], -y[0] + mg.sin(t)]))
    found = integrate.solve_ivp(lambda t, y: rhs(np.asarray(t), y), (0, 3), np.array([1.0, 0.0]), method="RK45")
    assert found.success and len(rhs.traces) == 1


def test_inputs_of_a_trained_model():
    """The parameters require gradients, and scipy changes the input only."""
    model = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Tanh(), mg.nn.Linear(4, 1)).to(mg.float64)
    energy = mg.value_and_grad(lambda x: model(mg.reshape(x, (1, 3))).sum() ** 2 + 0.1 * (x * x).sum())
    with mg.no_grad():
        found = optimize.minimize(energy, START, jac=True, method="L-BFGS-B")
    assert found.success and all(p.grad is None for p in model.parameters())
