"""Machine code in eager mode, for operations that NumPy computes number by number."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.eager_kernels import machine_code
from minigrad.core.emit import LARGE
from minigrad.core.primitive import P
from minigrad.devices import CPU
from minigrad.devices.compiled import SLOW, Provider, as_single

HALF, SINGLE, DOUBLE, BOOL = (np.dtype(kind) for kind in ("float16", "float32", "float64", "bool"))
CONDITIONED = {"where": (BOOL, HALF, HALF)}
TESTS = [
    op.name for op in P if op.kind == "elementwise" and op.expr and "bitwise" not in op.name
    and op.name not in ("bitcast", "astype")
]


def halves(size, seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=size) * 10.0 ** rng.integers(-6, 4, size)).astype(HALF)
    x[:16] = np.resize([np.nan, np.inf, -np.inf, 0, -0.0, 6e-8, -6e-8, 65504], 16)
    return np.random.default_rng(seed + 9).permutation(x)


@pytest.mark.parametrize("name", TESTS)
def test_machine_code_computes_halves_like_numpy(name):
    op = P[name]
    kinds = CONDITIONED.get(name, (HALF,) * len(op.inputs))
    given = [halves(3000, i) if kind == HALF else halves(3000, i) > 0 for i, kind in enumerate(kinds)]
    with np.errstate(all="ignore"):
        expected = np.asarray(CPU.own_kernels[name](*given))
    function = machine_code(op, kinds, expected.dtype)
    assert function is not None
    out = np.empty(expected.shape, expected.dtype)
    function(given, out)
    if expected.dtype == BOOL or name in ("add", "subtract", "multiply", "divide", "sqrt", "maximum", "minimum", "abs"):
        np.testing.assert_array_equal(out, expected)
    else:
        np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-7)


@pytest.mark.parametrize("source", [HALF, SINGLE, DOUBLE])
def test_casts_of_halves_are_rounded_like_those_of_numpy(source):
    x = np.concatenate([halves(2000, 0).astype(SINGLE), np.float32([2049, 2051, 65519.99, 65520, 1e-8, 3e-8])])
    with np.errstate(over="ignore"):
        x = x.astype(source) if source != DOUBLE else np.nextafter(x.astype(DOUBLE), np.inf)
    for target in (HALF, SINGLE, DOUBLE):
        if HALF in (source, target):
            out = np.empty(x.shape, target)
            machine_code(P.astype, (source,), target)((x,), out)
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(out, x.astype(target))


def test_every_half_is_exact_in_float32():
    x = np.arange(1 << 16, dtype=np.uint16).view(HALF)
    np.testing.assert_array_equal(as_single(x), x.astype(SINGLE))


@pytest.mark.parametrize("compiled", [False, True])
def test_large_tensors_of_any_layout_have_the_results_of_numpy(monkeypatch, compiled):
    if not compiled:
        monkeypatch.setattr(Provider, "load", None)
    rows = LARGE // 200
    a, b = halves(rows * 200, 0).reshape(rows, 200), halves(200, 1)
    x, y = mg.asarray(a), mg.asarray(b)
    with np.errstate(all="ignore"):
        for ours, expected in (
            (x + y, a + b), (x * 1.5, a * np.float16(1.5)), (0.5 - x, np.float16(0.5) - a),
            (x.T + y[:1], a.T + b[:1]), (x[::2] * 2, a[::2] * np.float16(2)), (x < y, a < b),
            (mg.where(x < 0, x, 0.0), np.where(a < 0, a, np.float16(0))),
        ):
            np.testing.assert_array_equal(ours.numpy(), expected)
            assert ours.numpy().dtype == expected.dtype


@pytest.mark.parametrize("name", sorted(SLOW))
def test_large_functions_of_float64_are_accurate(name):
    x = np.random.default_rng(0).normal(size=LARGE) * 30
    expected = CPU.own_kernels[name](x)
    np.testing.assert_allclose(getattr(mg, name)(mg.asarray(x)).numpy(), expected, rtol=1e-14, atol=1e-16)


def test_a_kernel_of_the_user_is_not_replaced():
    x = mg.zeros(LARGE, dtype="float16")
    before = CPU.kernels["tanh"]
    CPU.kernels["tanh"] = lambda x, out=None: np.full(x.shape, 7, x.dtype)
    try:
        result = P.tanh.apply(x)
    finally:
        CPU.kernels["tanh"] = before
    assert (result.numpy() == 7).all() and (mg.tanh(x).numpy() == 0).all()


@pytest.mark.parametrize("shape", [(5,), (0, 3), (70, 90), (3, 4, 5000)])
def test_reductions_of_halves_add_up_in_float32(shape):
    a = np.random.default_rng(0).normal(size=shape).astype(HALF)
    x = mg.asarray(a)
    for axis in (0, tuple(range(len(shape)))):
        exact = a.astype(DOUBLE).sum(axis)
        ours = mg.sum(x, axis=axis)
        assert ours.dtype == mg.float16
        np.testing.assert_allclose(ours.numpy(), exact, rtol=1e-3, atol=2e-2)
        if a.size:
            np.testing.assert_array_equal(mg.max(x, axis=axis).numpy(), a.max(axis))
            np.testing.assert_array_equal(mg.min(x, axis=axis).numpy(), a.min(axis))
