"""Offloading to `cuda`, on a stand-in for CuPy: the arrays of the two devices cannot be mixed by mistake."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.support.errors import DeviceError
from tests.devices import standin

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 6


def loss(x, w):
    with mg.offload("cuda"):
        h = mg.tanh(x @ w.mT)
        h = h * h + h[:, ::-1]
    return (h * 2).sum()


def here(x, w):
    with mg.offload("cpu"):
        h = mg.tanh(x @ w.mT)
        h = h * h + h[:, ::-1]
    return (h * 2).sum()


def test_offloading_to_cuda_in_eager_mode_and_in_a_program(cuda):
    x, w = mg.asarray(X), mg.asarray(X[:, ::-1].copy())
    standin.CALLS.clear()
    assert loss(x, w).device == "cpu"
    assert "cupy_tanh" in standin.CALLS
    gradient, expected = mg.value_and_grad(loss, argnums=(0, 1)), mg.value_and_grad(here, argnums=(0, 1))(x, w)
    for found in (gradient(x, w), mg.jit(gradient)(x, w)):
        np.testing.assert_allclose(found[0].numpy(), expected[0].numpy(), rtol=1e-5)
        for g, e in zip(found[1], expected[1]):
            assert g.device == "cpu"
            np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=1e-5, atol=1e-6)


def test_offloading_without_cupy_says_what_to_install(no_cupy):
    with pytest.raises(DeviceError, match=r"the device 'cuda' can't be used here: .*\n  Hint: "):
        mg.offload("cuda")
