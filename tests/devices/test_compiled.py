"""Machine code in eager mode, for operations that NumPy computes number by number."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import LARGE
from minigrad.core.primitive import P
from minigrad.devices import CPU
from minigrad.devices import compiled as devices_compiled
from minigrad.devices.compiled import SLOW, Provider, as_single
from minigrad.eager.kernels import machine_code

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


PARTS = {
    "rows apart": lambda a: (a[:, 1:], a[:, :-1]),
    "images apart": lambda a: (a.reshape((20, 50, 200))[:, 1:, 1:], a.reshape((20, 50, 200))[:, :-1, :-1]),
    "one row": lambda a: (a, a[0]),
    "one element in each row": lambda a: (a, a[:, :1]),
    "one number": lambda a: (a[:, 1:], 2.0),
    "short rows": lambda a: (a.reshape((-1, 10))[:, 3:], a.reshape((-1, 10))[:, 3:4]),
}
LEFT = {
    "images of channels apart": lambda a: (a.reshape((4, 5, 50, 200))[:, :4, 1:, 1:], 1.0),
    "rows backward": lambda a: (a[::-1, 1:], a[:, 1:]), "columns backward": lambda a: (a[:, ::-1], a),
    "every second column": lambda a: (a[:, ::2], a[:, ::2]), "long rows": lambda a: (a.reshape((2, -1))[:, 1:], 1.0),
}
PLAIN_CASES = {
    "add": (mg.add, np.add), "subtract": (mg.subtract, np.subtract), "maximum": (mg.maximum, np.maximum),
    "less": (mg.less, np.less), "where": (lambda x, y: mg.where(x < 0, x, y), lambda x, y: np.where(x < 0, x, y)),
}


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("parts", [*PARTS, *LEFT])
@pytest.mark.parametrize("name", PLAIN_CASES)
def test_arithmetic_on_rows_that_are_apart_is_exact(monkeypatch, dtype, parts, name):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1000, 200)).astype(dtype)
    a[rng.integers(0, 2, a.shape) > 0] = np.nan
    parted = (PARTS | LEFT)[parts]
    ours, numpys = PLAIN_CASES[name]
    ran, function = [], devices_compiled._function_of_rows
    monkeypatch.setattr(devices_compiled, "_function_of_rows", lambda *given: ran.append(function(*given)) or ran[-1])
    result, expected = ours(*parted(mg.asarray(a))).numpy(), numpys(*parted(a))
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype and result.flags.c_contiguous
    assert (ran and all(ran)) if parts in PARTS else ran[-1:] in ([], [None])


def test_integers_in_rows_are_left_to_numpy():
    a = np.arange(100_000).reshape(-1, 100)
    np.testing.assert_array_equal((mg.asarray(a)[:, 1:] + mg.asarray(a[0, 1:])).numpy(), a[:, 1:] + a[0, 1:])


def test_numbers_of_any_kind_join_rows():
    a = np.random.default_rng(0).normal(size=(1000, 200))
    rows = mg.asarray(a)[:, 1:]
    for number in (mg.asarray(0.5, dtype="float32"), mg.asarray(2), 3, True):
        np.testing.assert_array_equal((rows * number).numpy(), a[:, 1:] * float(number))
    for condition in (True, False):
        chosen = mg.where(mg.asarray(condition), rows, 0.0)
        np.testing.assert_array_equal(chosen.numpy(), np.where(condition, a[:, 1:], 0.0))
