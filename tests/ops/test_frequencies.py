"""The functions of `fft` without complex numbers, against NumPy."""

import numpy as np
import pytest

import minigrad as mg
from tests.numerical import check_gradients


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, n):
    ours = getattr(mg.fft, name)(n, 0.3, dtype=mg.float64, device="cpu:1")
    np.testing.assert_allclose(ours.numpy_copy(), getattr(np.fft, name)(n, 0.3), rtol=1e-15)
    assert str(ours.device) == "cpu:1" and getattr(mg.fft, name)(n).dtype == mg.float32


@pytest.mark.parametrize("axes", [None, 0, (1,), (0, -1)])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name, axes):
    x = np.arange(30.0).reshape(2, 3, 5)
    shift = getattr(mg.fft, name)
    for mode in (shift, mg.jit(shift, static="axes")):
        np.testing.assert_array_equal(mode(mg.asarray(x), axes=axes).numpy(), getattr(np.fft, name)(x, axes))
    each = mg.vmap(shift)(mg.asarray(x)).numpy()
    np.testing.assert_array_equal(each, getattr(np.fft, name)(x, (1, 2)))
    check_gradients(lambda t: shift(t, axes), x)


def test_the_number_of_samples_is_an_integer():
    for wrong in (0, 2.5):
        with pytest.raises(mg.ConversionError, match=f"rfftfreq: n is an integer, 1 or more, not {wrong}"):
            mg.fft.rfftfreq(wrong)
