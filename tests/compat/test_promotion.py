"""Dtypes in files that speak PyTorch: numbers of NumPy and tensors without dimensions do not widen a tensor."""

import json

import numpy as np

import minigrad as mg
from minigrad.compat import torch
from tests.compat import oracle

x = torch.ones(2)


def test_a_number_of_numpy_is_a_number():
    assert (x / np.sqrt(2.0)).dtype == torch.float32 and (np.sqrt(2.0) * x).dtype == torch.float32
    assert (torch.arange(2) * np.float64(0.5)).dtype == torch.float32
    assert (torch.ones(2, dtype=torch.float16) + np.float64(1)).dtype == torch.float16
    assert (torch.arange(2) + np.int32(1)).dtype == torch.int64 and (x > np.float64(0)).dtype == torch.bool
    assert torch.pow(x, np.float64(2)).dtype == torch.where(x > 0, x, np.float64(0)).dtype == torch.float32


def test_a_tensor_without_dimensions_has_the_weaker_type_of_its_kind():
    zero = torch.tensor(2.0, dtype=torch.float64)
    assert (x * zero).dtype == (zero - x).dtype == torch.float32
    assert (torch.arange(2) * zero).dtype == torch.float64  # of a higher kind
    assert (torch.tensor(1.0) + zero).dtype == torch.float64  # no tensor with dimensions
    assert (x.double() * torch.tensor(1.0)).dtype == torch.float64
    assert torch.cat([x, x.double()]).dtype == torch.float64


def test_gradients_have_the_type_of_their_tensors():
    w = torch.ones(2, requires_grad=True)
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    (w * scale * np.float64(2)).sum().backward()
    assert w.grad.dtype == torch.float32 and scale.grad.dtype == torch.float64 and scale.grad.item() == 4.0


def test_a_compiled_function_promotes_alike():
    f = mg.jit(lambda x: x / np.sqrt(2.0) + torch.tensor(1.0, dtype=torch.float64))
    assert f(x).dtype == torch.float32


def test_files_of_minigrad_and_the_library_keep_their_rule(recwarn):
    names = {}
    exec("import minigrad as mg, numpy as np\ndef f(x): return x / np.float64(2)\n", names)
    assert names["f"](x).dtype == mg.float64


PAIRS = json.loads((oracle.HERE / "promotion.json").read_text("utf-8"))


def test_each_pair_of_types_has_the_type_of_pytorch():
    assert list(PAIRS) == oracle.pairs()
    found = {text: str(eval(text, {"torch": torch, "np": np}).dtype) for text in PAIRS}
    assert {text: each for text, each in found.items() if each != PAIRS[text]} == {}
