"""minigrad's own kernels: `erf` to the last bits, and the stable order of small dtypes."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.special import BLOCK, erf

rng = np.random.default_rng(0)
exact = np.vectorize(math.erf, otypes=[np.float64])

# erf ------------------------------------------------------------------------------------------------------------------


def places(dtype):
    """Numbers of every size, the boundaries of the polynomials, and the limits of the format."""
    info = np.finfo(dtype)
    sizes = [rng.uniform(0, 1, 4000), rng.uniform(0, 7, 8000), 10.0 ** rng.uniform(-12, 1, 2000)]
    ends = [0.0, info.tiny, float(info.smallest_subnormal), info.max, 4.05, 6.0, np.nextafter(4.05, 5), np.inf]
    x = np.concatenate([*sizes, np.arange(0, 7, 1 / 64), ends]).astype(dtype)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("dtype, units", [(np.float32, 2.3), (np.float64, 2.5)])
def test_erf_error_in_units_of_the_last_place(dtype, units):
    x = places(dtype)
    ours, theirs = erf(x), exact(x.astype(np.float64))
    assert ours.dtype == dtype
    off = np.abs(ours.astype(np.float64) - theirs) / np.spacing(np.abs(theirs).astype(dtype)).astype(np.float64)
    assert off.max() <= units, (off.max(), x[off.argmax()])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_erf_of_nan_infinities_and_signed_zeros(dtype):
    out = erf(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 30.0, -30.0], dtype))
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, np.array([0.0, -0.0, 1.0, -1.0, np.nan, 1.0, -1.0], dtype))
    assert np.signbit(out).tolist()[:4] == [False, True, False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_is_odd_and_between_its_limits(dtype):
    x = np.linspace(0, 7, 20_001, dtype=dtype)
    out = erf(x)
    np.testing.assert_array_equal(erf(-x), -out)
    assert out.max() == 1.0 and (np.diff(out) > -2 * np.finfo(dtype).eps).all()


def test_erf_of_half_precision_is_rounded_once():
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    ours, theirs = erf(x), exact(x.astype(np.float64)).astype(np.float16)
    assert (ours != theirs).mean() < 1e-3
    np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-3, atol=6e-8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_erf_of_any_shape_and_memory(dtype):
    for shape in [(), (0,), (3, 0), (1,), (2, 3), (BLOCK - 1,), (BLOCK + 1,), (3, BLOCK)]:
        x = rng.standard_normal(shape).astype(dtype)
        out = np.full(shape, 7, dtype)
        plain = erf(x)
        assert plain.shape == shape and plain.dtype == dtype and type(plain) is np.ndarray
        assert erf(x, out=out) is out
        np.testing.assert_array_equal(out, plain)
        np.testing.assert_array_equal(erf(x.T), plain.T)
    x = rng.standard_normal((40, 60)).astype(dtype)
    wide = np.zeros((40, 120), dtype)
    erf(x[::2, ::-3], out=wide[::2, :40:2])
    np.testing.assert_array_equal(wide[::2, :40:2], erf(np.ascontiguousarray(x[::2, ::-3])))
    assert not wide[1::2].any() and not wide[:, 1::2].any()


def test_erf_in_place_leaves_its_input_alone_otherwise():
    x = rng.standard_normal(BLOCK + 5).astype(np.float32)
    before = x.copy()
    expected = erf(x)
    np.testing.assert_array_equal(x, before)
    erf(x, out=x)
    np.testing.assert_array_equal(x, expected)


def test_erf_as_an_operation():
    x = mg.asarray(rng.standard_normal(100_000).astype(np.float32))
    np.testing.assert_allclose(mg.erf(x).numpy(), exact(x.numpy().astype(np.float64)), rtol=3e-7)
    assert mg.erf(mg.asarray([1, 0])).dtype == mg.float32
