"""Stacks of small matrices by machine code, against NumPy."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import rows, stacks
from minigrad.devices.stacks import FEWEST, LARGEST, MANY, QUICK
from minigrad.eager.stack_loops import MATRICES
from tests.compile.interpreter import run_kernel

rng = np.random.default_rng(0)
DTYPES = ["float32", "float64"]


def matrices(*shape, dtype="float64"):
    return rng.standard_normal(shape).astype(dtype)


def regular(*shape, dtype="float64"):
    """Square matrices that are far from singular, with the large elements anywhere: a solver must swap rows."""
    n = shape[-1]
    return (matrices(*shape, dtype=dtype) + 3 * n * np.eye(n, dtype=dtype))[..., rng.permutation(n), :]


def close(found, wanted, dtype):
    assert found.dtype == dtype and found.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=scale * (2e-6 if dtype == "float32" else 1e-13))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("x, y", [
    ((FEWEST, 2, 2), (FEWEST, 2, 2)),
    ((FEWEST, 1, 3), (FEWEST, 3, 2)),
    ((16, 20, 8, 8), (20, 8, 16)),
    ((1, 5, 7), (FEWEST, 7, 3)),
    ((FEWEST, 16, 16), (FEWEST, 16, 1)),
    ((FEWEST, 3, 2), (FEWEST, 2, 1)),
    ((5000, 1, 1), (5000, 1, 1)),
], ids=str)
def test_products_equal_those_of_numpy(x, y, dtype):
    x, y = matrices(*x, dtype=dtype), matrices(*y, dtype=dtype)
    assert stacks.multiplies(x.shape, y.shape, x.dtype)
    wanted = x.astype("f8") @ y.astype("f8")
    close((mg.asarray(x) @ mg.asarray(y)).numpy(), wanted, dtype)
    turned = np.ascontiguousarray(np.swapaxes(x, -1, -2))
    close(mg.jit(lambda x, y: mg.matrix_transpose(x) @ y)(mg.asarray(turned), mg.asarray(y)).numpy(), wanted, dtype)


@pytest.mark.parametrize("x, y", [
    ((FEWEST - 1, 2, 2), (FEWEST - 1, 2, 2)),
    ((FEWEST, 2, 2), (2, 2)),
    ((FEWEST, 2, 17), (FEWEST, 17, 2)),
    ((FEWEST, 2, 0), (FEWEST, 0, 2)),
], ids=str)
def test_other_products_are_left_to_numpy(x, y):
    assert not stacks.multiplies(x, y, np.dtype("f4"))
    x, y = matrices(*x), matrices(*y)
    close((mg.asarray(x) @ mg.asarray(y)).numpy(), x @ y, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(1, LARGEST + 1))
def test_equations_determinants_and_factors_equal_those_of_numpy(n, dtype):
    a, b = regular(2, FEWEST, n, n, dtype=dtype), matrices(FEWEST, n, 2, dtype=dtype)
    a[0, 0] = np.eye(n)[::-1]  # without swaps, it divides by zero
    assert (stacks.slogdet(a) is None) == (n > QUICK) == (stacks.solve(a[0], b) is None)
    close(mg.linalg.solve(mg.asarray(a), mg.asarray(b)).numpy(), np.linalg.solve(a, b), dtype)
    sign, size = mg.linalg.slogdet(mg.asarray(a))
    close(sign.numpy(), np.linalg.slogdet(a)[0], dtype)
    close(size.numpy(), np.linalg.slogdet(a)[1], dtype)
    square = (a @ np.swapaxes(a, -1, -2) + np.eye(n)).astype(dtype)
    assert stacks.cholesky(square) is not None
    close(mg.linalg.cholesky(mg.asarray(square)).numpy(), np.linalg.cholesky(square), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("n, dtype", [(QUICK + 1, "float64"), (LARGEST, "float32")])
def test_larger_matrices_are_worth_it_if_there_are_many(n, dtype):
    a, b = regular(MANY, n, n, dtype=dtype), matrices(MANY, n, 1, dtype=dtype)
    assert stacks.slogdet(a) is not None is not stacks.solve(a, b)
    close(mg.linalg.solve(mg.asarray(a), mg.asarray(b)).numpy(), np.linalg.solve(a, b), dtype)
    close(mg.linalg.slogdet(mg.asarray(a))[1].numpy(), np.linalg.slogdet(a)[1], dtype)


def test_a_stack_with_a_bad_matrix_raises_the_error_of_any_stack():
    a = matrices(FEWEST, 3, 3)
    a[7, 2] = a[7, 1] = 0
    with pytest.raises(mg.MatrixError, match=r"solve: matrix \[7\] of the stack is singular"):
        mg.linalg.solve(mg.asarray(a), mg.ones((FEWEST, 3, 1)))
    both = mg.linalg.slogdet(mg.asarray(a))
    assert both[0].numpy()[7] == 0 and both[1].numpy()[7] == -np.inf and np.isfinite(both[1].numpy()[:7]).all()
    square = a @ np.swapaxes(a, -1, -2) + np.eye(3)
    square[5] = -np.eye(3)
    with pytest.raises(mg.MatrixError, match=r"cholesky: matrix \[5\] of the stack is not positive"):
        mg.linalg.cholesky(mg.asarray(square))


def test_nan_stays_in_its_matrix():
    a = regular(FEWEST, 3, 3)
    wanted = np.linalg.inv(a)
    a[9, 0, 0] = np.nan
    found = mg.linalg.inv(mg.asarray(a)).numpy()
    assert np.isnan(found[9]).any()
    close(np.delete(found, 9, 0), np.delete(wanted, 9, 0), "float64")


def test_gradients_through_stacks():
    a, b = regular(FEWEST, 3, 3), matrices(FEWEST, 3, 1)
    function = mg.grad(lambda a, b: (mg.linalg.solve(a, b) * (a @ b)).sum() + mg.linalg.det(a).sum(), (0, 1))
    given = mg.asarray(a), mg.asarray(b)
    one = [mg.asarray(x[:1]) for x in (a, b)]  # by NumPy
    for many, single in zip(function(*given), function(*one)):
        close(many.numpy()[:1], single.numpy(), "float64")


def test_everything_is_left_to_numpy_without_machine_code(monkeypatch):
    monkeypatch.setattr(stacks, "native", lambda: None)
    a, b = matrices(FEWEST, 2, 2), matrices(FEWEST, 2, 2)
    assert not stacks.multiplies(a.shape, b.shape, a.dtype)
    assert stacks.solve(a, b) is stacks.slogdet(a) is stacks.cholesky(a) is None


@pytest.mark.parametrize("name, sizes", [("product", (2, 3, 4)), ("product", (3, 4, 1)), ("solution", (3, 2)),
                                         ("sign_and_log", (3,)), ("root", (3,))])
def test_kernels_are_of_the_loop_language(name, sizes):
    kernel = MATRICES[name](np.dtype("f4"), *sizes)
    count = 5
    arrays = [np.abs(matrices(count * 16)).astype(p.dtype) for p in kernel.parameters]
    arrays[0].reshape(count, -1)[:, :9] += 5 * np.eye(3, dtype="f4").ravel()
    again = [array.copy() for array in arrays]
    run_kernel(kernel, arrays, 0, count)
    rows.native().on_stacks(name, sizes, *[array.reshape(count, -1) for array in again])
    for ours, theirs in zip(again, arrays):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)
