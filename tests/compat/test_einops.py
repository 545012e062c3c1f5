"""einops takes tensors of minigrad."""

import pytest

pytest.importorskip("einops")

import numpy as np
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce

import minigrad as mg
from minigrad.compat import torch
from minigrad.compat.torch import nn

x = torch.arange(24.0).reshape(2, 3, 4)


def test_functions_and_layers():
    a = np.arange(24.0).reshape(2, 3, 4)
    for text, sizes in (("b h (w p) -> b (h p) w", {"p": 2}), ("b h w -> (w b) h", {})):
        assert np.array_equal(rearrange(x, text, **sizes).numpy(), rearrange(a, text, **sizes))
    assert repeat(x, "b h w -> b h w c", c=2).shape == (2, 3, 4, 2)
    assert reduce(x, "b h w -> b", "mean").tolist() == [5.5, 17.5] and einsum(x, x, "b h w, b h w -> b").shape == (2,)
    model = nn.Sequential(Rearrange("b h w -> b (h w)"), nn.Linear(12, 3), Reduce("b c -> b", "max"))
    assert model(x).shape == (2,) and len(list(model.parameters())) == 2


def test_gradients_and_jit():
    w = torch.ones(2, 3, requires_grad=True)
    rearrange(w, "a b -> b a")[0].sum().backward()
    assert w.grad.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    f = mg.jit(lambda x: reduce(x, "a b c -> c", "sum"))
    assert f(x).tolist() == x.sum((0, 1)).tolist()
