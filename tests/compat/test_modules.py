"""Modules as in PyTorch: what is registered, what is frozen, what a list hides."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.compat import torch
from minigrad.compat.torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("mask", torch.ones(3), persistent=False)
        self.table = torch.ones(3)
        self.nothing = None

    def forward(self, x):
        self.last = self.fc(x)
        return self.last * self.scale + self.mean + self.mask + self.table


def test_parameters_buffers_unsaved_and_plain_tensors():
    net = Net()
    net(torch.ones(1, 2))
    assert [name for name, _ in net.named_parameters()] == ["scale", "fc.weight", "fc.bias"]
    assert [name for name, _ in net.named_buffers()] == ["mean", "mask"]
    assert list(net.state_dict()) == ["scale", "mean", "fc.weight", "fc.bias"]
    assert isinstance(net.scale, nn.Parameter) and not isinstance(net.table, nn.Parameter)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_has_the_same_registered_names(copied):
    net = copied(Net().requires_grad_(False))
    assert len(list(net.parameters())) == 3 and len(list(net.buffers())) == 2 and len(net.state_dict()) == 4
    assert not any(p.requires_grad for p in net.parameters())


def test_a_frozen_parameter_stays_a_parameter_and_moves_once_it_is_thawed():
    net = Net()
    net.fc.requires_grad_(False)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    before = net.fc.weight.clone()

    def step():
        optimizer.zero_grad()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    step()
    assert torch.equal(net.fc.weight, before) and net.scale[0].item() != 1.0
    for p in net.parameters():
        p.requires_grad = True
    step()
    assert not torch.equal(net.fc.weight, before)


def test_a_plain_tensor_that_requires_a_gradient_is_no_parameter_and_warns():
    with pytest.warns(UserWarning, match=r"Bad.w is a tensor with requires_grad=True, and no parameter") as record:
        class Bad(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.randn(3, requires_grad=True)

        net = Bad()
    assert list(net.parameters()) == [] and record[0].filename == __file__


@pytest.mark.parametrize("hide", [lambda part: [part], lambda part: (part,), lambda part: {"a": part}])
def test_a_list_of_layers_is_not_found_and_warns(hide):
    class Bad(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = hide(nn.Linear(2, 2))

    with pytest.warns(UserWarning, match=r"Bad.layers is a plain list or dict.*nn.ModuleList"):
        net = Bad()
    assert list(net.parameters()) == [] == list(net.state_dict()) and len(list(net.modules())) == 1


def test_layers_of_the_library_and_lists_of_other_things_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Fine(nn.Module):
            def __init__(self):
                super().__init__()
                self.sizes, self.saved = [1, 2], []
                self.rnn = nn.LSTM(2, 3, 2)
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
                self.layers = nn.ModuleList([nn.Linear(2, 2)])
                self.layers += [nn.ReLU()]

        net = Fine()
    assert len(list(net.layers)) == 2 and len(list(net.encoder.parameters())) == 24


def test_a_tensor_cannot_replace_a_parameter():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign a tensor as the parameter 'scale'"):
        net.scale = torch.zeros(3)
    net.scale = nn.Parameter(torch.zeros(3))
    net.mean = torch.ones(3)  # a buffer can be replaced
    del net.fc
    assert len(list(net.parameters())) == 1 and len(net.state_dict()) == 2
    del net.scale
    net.scale = torch.zeros(3)
    assert list(net.parameters()) == []


def test_generators_of_pytorch_are_lists_that_next_takes():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    parameters = net.parameters()
    assert next(parameters) is net[0].weight and next(parameters) is net[0].bias
    assert next(net.children()) is net[0] and len(list(net.modules())) == 3 and next(net.named_modules())[0] == ""
    assert [name for name, _ in net.named_children()] == ["0", "1"]
    assert [name for name, _ in net.named_parameters(prefix="net")] == ["net.0.weight", "net.0.bias"]
    assert list(net.parameters(recurse=False)) == [] and len(list(Net().parameters(recurse=False))) == 1


def test_a_state_is_live_as_in_pytorch_and_loads():
    net = Net()
    state = net.state_dict()
    with torch.no_grad():
        net.scale.mul_(2)
    assert state["scale"].tolist() == [2.0, 2.0, 2.0] and not state["scale"].requires_grad
    other = Net()
    missing = other.load_state_dict(state)
    assert missing.missing_keys == [] and torch.equal(other.fc.weight, net.fc.weight)
    found = other.load_state_dict({"scale": torch.zeros(3), "more": torch.zeros(1)}, strict=False)
    assert found.unexpected_keys == ["more"] and found.missing_keys == ["mean", "fc.weight", "fc.bias"]
    with pytest.raises(mg.MinigradError, match="mask"):
        other.load_state_dict({**state, "mask": torch.ones(3)})


def test_layers_have_the_arguments_of_pytorch_as_attributes():
    conv = nn.Conv2d(3, 4, 5, padding=(1, 2))
    assert (conv.kernel_size, conv.stride, conv.padding, conv.in_channels) == ((5, 5), (1, 1), (1, 2), 3)
    assert nn.Conv1d(1, 2, 3).kernel_size == (3,) and nn.MaxPool2d(2).kernel_size == 2
    assert nn.Linear(2, 3).in_features == 2 and nn.LSTM(4, 5).hidden_size == 5 and nn.Embedding(6, 7).embedding_dim == 7
    assert nn.BatchNorm2d(8).num_features == 8 and nn.LayerNorm(3).normalized_shape == (3,) and nn.Dropout(0.3).p == 0.3
    assert nn.Linear(2, 3, bias=False).bias is None and nn.MultiheadAttention(4, 2).num_heads == 2


def test_parts_of_layers_are_modules_of_pytorch_too():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    kinds = [type(m) for m in layer.modules()]
    assert kinds.count(nn.LayerNorm) == 2 and sum(isinstance(m, nn.Linear) for m in layer.modules()) == 3
    assert layer.linear1.in_features == 4 and layer.norm1.normalized_shape == (4,)
    count = len(list(layer.parameters()))
    assert len(list(layer.requires_grad_(False).parameters())) == count == 12


def test_containers():
    from collections import OrderedDict

    model = nn.Sequential(OrderedDict([("first", nn.Linear(2, 3)), ("act", nn.ReLU())]))
    model.add_module("last", nn.Linear(3, 1))
    assert list(model.state_dict())[::2] == ["first.weight", "last.weight"] and len(model) == 3 and len(model[:2]) == 2
    assert model(torch.ones(4, 2)).shape == (4, 1) and model[-1].out_features == 1
    heads = nn.ModuleDict([["a", nn.Linear(1, 1)]])
    assert list(heads.keys()) == ["a"] and "a" in heads
    values = nn.ParameterList([torch.ones(2)])
    values.append(nn.Parameter(torch.zeros(1)))
    assert len(values) == 2 == len(list(values.parameters())) and values[1].shape == (1,)
    named = nn.ParameterDict({"w": torch.ones(2)})
    named["v"] = nn.Parameter(torch.ones(1))
    assert list(named) == ["w", "v"] and len(named) == 2 and "w" in named and dict(named.items())["v"].shape == (1,)
    assert len(list(named.parameters())) == 2 == len(named.keys()) == len(named.values())


def test_movements_and_modes():
    net = Net()
    assert net.to(torch.float64, non_blocking=True).fc.weight.dtype == torch.float64 == net.double().mean.dtype
    assert net.to(device="cpu", dtype=torch.float32).cpu().float() is net and net.half().scale.dtype == torch.float16
    assert not net.eval().training and net.train().training and net.fc.training
    assert net.get_buffer("mean") is net.mean and net.get_submodule("fc") is net.fc
    frozen = nn.Embedding.from_pretrained(torch.eye(3))
    assert not frozen.weight.requires_grad and frozen(torch.tensor([1])).tolist() == [[0.0, 1.0, 0.0]]


def test_modules_of_pytorch_are_modules_of_minigrad():
    """So that transformations, views and checkpoints take them."""
    net = Net()
    assert isinstance(net, mg.nn.Module) and len(mg.nn.Module.named_tensors(net)) == 5
    out = mg.nn.functional_call(net, {"scale": torch.zeros(3)}, torch.ones(1, 2))
    assert out.tolist() == [[2.0, 2.0, 2.0]]
    grads = mg.grad(lambda net: net(torch.ones(1, 2)).sum())(net)
    assert grads.scale.shape == (3,)
    layers = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    assert torch.allclose(mg.jit(layers)(torch.ones(1, 2)), layers(torch.ones(1, 2)))
    assert "Linear" in str(layers.summary(torch.ones(1, 2)))


def test_modules_of_minigrad_have_children_too():
    model = mg.nn.Sequential(mg.nn.ReLU(), mg.nn.Sequential(mg.nn.Tanh()))
    assert [name for name, _ in model.named_children()] == ["0", "1"] and model.children() == list(model)
    assert [type(m).__name__ for m in model.modules()] == ["Sequential", "ReLU", "Sequential", "Tanh"]


def test_an_optimizer_takes_groups_names_and_a_closure():
    net = Net()
    optimizer = optim.SGD([{"params": net.fc.parameters(), "lr": 0.5}, {"params": [net.scale]}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]

    def closure():
        optimizer.zero_grad(set_to_none=True)
        loss = net(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        first = optimizer.step(closure)
    assert closure().item() < first.item()
    assert len(optim.Adam(net.named_parameters()).parameters) == 3 and isinstance(optimizer, mg.optim.Optimizer)
    optimizer.param_groups[0]["lr"] = 0.2
    other = optim.SGD([{"params": net.fc.parameters()}, {"params": [net.scale]}], lr=0.3)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.2


def test_lbfgs_calls_its_closure_as_pytorch_does():
    x = torch.nn.Parameter(torch.tensor([-1.5, 2.0], dtype=torch.float64))
    optimizer, calls = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=4), []

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        calls.append(loss)
        return loss

    losses = [optimizer.step(closure).item() for _ in range(4)]
    assert losses == pytest.approx([12.5, 5.861853124644989, 5.660712537635339, 3.8669078852383354], rel=1e-9)
    assert len(calls) == 20  # losses and calls of PyTorch 2.13


def test_attention_gives_weights_and_takes_masks():
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(3, 5, 4)
    _, weights = attention(x, x, x, average_attn_weights=False)
    assert weights.shape == (3, 2, 5, 5) and attention(x, x, x, need_weights=False)[1] is None
    padding = torch.tensor([[False] * 4 + [True]] * 3)
    assert attention(x, x, x, key_padding_mask=padding)[1][:, :, -1].abs().max().item() == 0.0
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    both = attention(x, x, x, key_padding_mask=padding, attn_mask=causal)[1]
    assert torch.allclose(both, attention(x, x, x, key_padding_mask=padding, attn_mask=causal < 0)[1])
    per_head = causal.expand(6, 5, 5)
    assert torch.allclose(both, attention(x, x, x, key_padding_mask=padding, attn_mask=per_head)[1])


def test_a_step_with_computed_weights_compiles_and_leaves_the_module_as_it_was():
    def trained(compiled):
        torch.manual_seed(0)
        layer = nn.utils.weight_norm(nn.Linear(3, 2))
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)

        def step(x):
            optimizer.zero_grad()
            loss = layer(x).pow(2).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = mg.jit(step) if compiled else step
        losses = [step(torch.ones(1, 3)).item() for _ in range(3)]
        return losses, layer(torch.ones(1, 3)).tolist(), list(layer.state_dict())

    fast, slow = trained(True), trained(False)
    assert fast[0] == pytest.approx(slow[0]) and fast[2] == slow[2] == ["bias", "weight_g", "weight_v"]
    np.testing.assert_allclose(fast[1], slow[1], atol=1e-6)


def test_a_weight_that_is_not_computed_cannot_be_made_a_parameter_again():
    with pytest.raises(ValueError, match=r"the weight of Linear.* is not computed"):
        nn.utils.remove_weight_norm(nn.Linear(3, 2))


def test_jit_names_the_tensor_that_a_module_stores_and_no_attribute_of_minigrad():
    class Masked(nn.Transformer):
        mask = None

        def forward(self, x):
            self.mask = torch.ones(2, 2)
            return x

    model = Masked(4, 2, 1, 1, 4)
    with pytest.raises(mg.TraceError, match=r"model.*mask"):
        mg.jit(lambda x: model(x))(torch.ones(2))
