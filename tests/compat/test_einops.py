"""einops takes tensors of minigrad."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compat import torch
from minigrad.compat.torch import nn

einops = pytest.importorskip("einops")
x = torch.arange(24.0).reshape(2, 3, 4)


def test_functions_and_layers():
    from einops.layers.torch import Rearrange, Reduce

    a = np.arange(24.0).reshape(2, 3, 4)
    for text, sizes in (("b h (w p) -> b (h p) w", {"p": 2}), ("b h w -> (w b) h", {})):
        assert np.array_equal(einops.rearrange(x, text, **sizes).numpy(), einops.rearrange(a, text, **sizes))
    assert einops.repeat(x, "b h w -> b h w c", c=2).shape == (2, 3, 4, 2)
    assert einops.reduce(x, "b h w -> b", "mean").tolist() == [5.5, 17.5]
    assert einops.einsum(x, x, "b h w, b h w -> b").shape == (2,)
    model = nn.Sequential(Rearrange("b h w -> b (h w)"), nn.Linear(12, 3), Reduce("b c -> b", "max"))
    assert model(x).shape == (2,) and len(list(model.parameters())) == 2


def test_gradients_and_jit():
    w = torch.ones(2, 3, requires_grad=True)
    einops.rearrange(w, "a b -> b a")[0].sum().backward()
    assert w.grad.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    f = mg.jit(lambda x: einops.reduce(x, "a b c -> c", "sum"))
    assert f(x).tolist() == x.sum((0, 1)).tolist()
