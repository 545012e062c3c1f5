"""Errors name the word that the program wrote, its line, and a way out; PyTorch's kinds of errors match."""

import pytest
from minigrad.compat.torch.nn import functional as F

import minigrad as mg
from minigrad.compat import torch
from minigrad.compat.torch import nn, optim

x = torch.ones(2, 3)
linear = nn.Linear(3, 2)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: x.view(4, -1), RuntimeError, "view: 6 elements of shape (2, 3) do not fit into shape (4, -1)"),
        (lambda: x.unsqueeze(5), IndexError, "unsqueeze: axis 5 does not exist"),
        (lambda: torch.transpose(x, 0, 4), IndexError, "transpose: axis 4 does not exist"),
        (lambda: x.permute(0, 0), ValueError, "permute: "),
        (lambda: torch.cat([x, x[0]]), RuntimeError, "cat: shapes (2, 3) and (3,)"),
        (lambda: x + torch.ones(4), RuntimeError, "add: shapes (2, 3) and (4,) do not broadcast"),
        (lambda: torch.mm(x, x), RuntimeError, "mm: shapes (2, 3) and (2, 3) do not go together"),
        (lambda: x.masked_fill(x > 0, 1).view(5), RuntimeError, "view: "),
        (lambda: F.cross_entropy(x, torch.tensor([0, 7])), IndexError, "cross_entropy: target 7 is out of range"),
        (lambda: linear(torch.ones(2, 4)), RuntimeError, "in Linear: an input of shape (2, 4) does not fit"),
        (lambda: torch.linalg.inv(torch.zeros(2, 2)), RuntimeError, "inv: the matrix is singular"),
        (lambda: x.split([1, 4], dim=1), RuntimeError, "split: the sizes [1, 4] do not add up to 3"),
        (lambda: x.sum().backward(), RuntimeError, "backward: this tensor has no history"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), ValueError, "Hint: x.detach().numpy()"),
        (lambda: torch.sum(x, dimm=1), TypeError, "sum() got an unexpected keyword argument 'dimm'"),
        (lambda: nn.Conv2d(3, 4), TypeError, "missing 1 required positional argument: 'kernel_size'"),
        (lambda: optim.SGD([], lr=0.1), ValueError, "SGD: there are no parameters to optimize"),
    ],
)
def test_errors_of_operations(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert message in str(error.value)
    if isinstance(error.value, mg.MinigradError):
        assert f"Line: {__file__}" in str(error.value)


@pytest.mark.parametrize(
    ("name", "place", "message"),
    [
        ("unsqeeze", torch, "torch has no 'unsqeeze' in minigrad.compat\n  Hint: did you mean torch.unsqueeze?"),
        ("cross_entroppy", F, "did you mean torch.nn.functional.cross_entropy?"),
        ("Linaer", nn, "did you mean torch.nn.Linear?"), ("Adamw", optim, "did you mean torch.optim.AdamW?"),
        ("fft", torch, "Hint: mg.cos(x), mg.sin(x): complex numbers and the FFT are not part of minigrad"),
        ("qqqq", torch, "torch has no 'qqqq' in minigrad.compat\n  Line"),
    ],
)
def test_a_missing_name_says_what_is_near(name, place, message):
    with pytest.raises(AttributeError) as error:
        getattr(place, name)
    assert message in str(error.value) and not hasattr(place, name)


def test_python_suggests_the_names_of_methods():
    assert {"view", "unsqueeze", "masked_fill"} <= set(dir(x)) and not hasattr(x, "unsqueze")
    assert not hasattr(torch, "__qqq__")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Linear(2.5, 3), "Linear: in_features is an integer"),
        (lambda: nn.Conv2d(3, 8, 0), "Conv2d: kernel_size is 0"),
        (lambda: nn.Embedding(num_embeddings=-1, embedding_dim=2), "Embedding: num_embeddings is"),
        (lambda: nn.LSTM(2, hidden_size=0), "LSTM: hidden_size is"),
        (lambda: nn.LeakyReLU("a")(x), "LeakyReLU: negative_slope is not a number"),
        (lambda: optim.lr_scheduler.StepLR(optim.SGD(linear.parameters(), lr=0.1), 0), "StepLR: step_size is"),
    ],
)
def test_a_constructor_names_its_argument_as_pytorch_does(call, message):
    with pytest.raises(mg.ConversionError, match=message):
        call()


@pytest.mark.parametrize("name", ["to_sparse", "unsqueeze_", "storage"])
def test_a_method_that_is_not_supported_has_its_hint(name):
    with pytest.raises(mg.MissingNameError, match="Hint: x"):
        getattr(x, name)


def test_values_of_a_refused_argument_are_shown():
    with pytest.raises(mg.ConversionError, match=r"MaxPool2d\(ceil_mode=True\).*\n  Hint: leave it out: only"):
        nn.MaxPool2d(2, ceil_mode=True)
    assert nn.MaxPool2d(2, ceil_mode=False, return_indices=False)(torch.ones(1, 1, 2, 2)).item() == 1.0
