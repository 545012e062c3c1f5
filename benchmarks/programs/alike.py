"""What makes two runs of one program alike: same draws, same first weights, same data, no windows, no network.

The text is PyTorch's: it is run with PyTorch and, through `python -m minigrad.compat`, with minigrad.
Every draw of torch is made by torch and then overwritten with numbers of NumPy, so that its arguments are checked.
"""
import contextlib
import io
import os
import random

import numpy as np
import torch
from stubs import stubs

numbers = np.random.default_rng(0)
LAYERS = """Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d Embedding EmbeddingBag LSTM GRU RNN LSTMCell
GRUCell RNNCell MultiheadAttention Bilinear""".split()
NORMS = "BatchNorm1d BatchNorm2d LayerNorm GroupNorm InstanceNorm2d PReLU".split()
WIDE = bool(os.environ.get("WIDE"))  # float64 in both runs, where float32 drifts
_depth = [0]
KIND = type(torch.zeros(1))  # the class of tensors


def real(*shape, scale=1.0):
    """A tensor of normal numbers."""
    return torch.tensor((numbers.standard_normal(shape) * scale).astype(np.float64 if WIDE else np.float32))


def uniform(*shape):
    """A tensor of numbers from 0 to 1."""
    return torch.tensor(numbers.random(shape).astype(np.float64 if WIDE else np.float32))


def classes(count, *shape):
    """A tensor of integers below `count`."""
    return torch.tensor(numbers.integers(0, count, shape))


def replace_method(name, make):
    """Replace a method of tensors by `make(original)`; in minigrad, replace its meaning in PyTorch."""
    found = vars(KIND).get(name)
    if hasattr(found, "theirs"):
        found.theirs = make(found.theirs)
    else:
        setattr(KIND, name, make(getattr(KIND, name)))


def _write(tensor, values):
    with torch.no_grad():
        tensor.copy_(torch.tensor(np.asarray(values)).to(tensor.dtype).reshape(tuple(tensor.shape)))
    return tensor


def _shape(tensor):
    return tuple(int(n) for n in tensor.shape)


def _normal(tensor, mean=0.0, std=1.0, **_):
    return _write(tensor, numbers.standard_normal(_shape(tensor)) * float(std) + float(mean))


def _uniform(tensor, a=0.0, b=1.0, **_):
    return _write(tensor, numbers.random(_shape(tensor)) * (float(b) - float(a)) + float(a))


def _fan(tensor, *_, **__):
    shape = _shape(tensor)
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
    return _write(tensor, numbers.standard_normal(shape) / np.sqrt(max(fan, 1)))


def _drawn(original, values):
    def made(*args, **kwargs):
        result = original(*args, **kwargs)
        wanted = result.requires_grad
        result = result.detach().clone()
        if WIDE and result.dtype == torch.float32:
            result = result.double()
        result = _write(result, values(_shape(result), *args, **kwargs))
        return result.requires_grad_() if wanted else result

    return made


def _integers(shape, *args, low=None, high=None, **_):
    bounds = [a for a in args if isinstance(a, int)]
    bounds = ([low] if low is not None else []) + bounds + ([high] if high is not None else [])
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    return numbers.integers(low, high, shape)


def _between(shape, mean, std, *_, **__):
    return numbers.standard_normal(shape) * np.asarray(torch.as_tensor(std)) + np.asarray(torch.as_tensor(mean))


def _chance(tensor, p=0.5, **_):
    return _write(tensor, numbers.random(_shape(tensor)) < float(p))


def _standard(shape, *_, **__):
    return numbers.standard_normal(shape)


def _unit(shape, *_, **__):
    return numbers.random(shape)


def _order(shape, *_, **__):
    return numbers.permutation(shape[0])


_DRAWS = {"randn": _standard, "randn_like": _standard, "rand": _unit, "rand_like": _unit, "randperm": _order,
          "randint": _integers, "normal": _between}
_FILLS = {"normal_": _normal, "uniform_": _uniform, "trunc_normal_": _normal, "xavier_uniform_": _fan,
          "xavier_normal_": _fan, "kaiming_uniform_": _fan, "kaiming_normal_": _fan, "orthogonal_": _fan}


def same_draws():
    """Draws of `torch`, of `nn.init`, of methods and of distributions come from NumPy."""
    for name, values in _DRAWS.items():
        setattr(torch, name, _drawn(getattr(torch, name), values))
    torch.bernoulli = lambda p, **_: (uniform_like(p) < p).to(p.dtype)
    for name, fill in _FILLS.items():
        setattr(torch.nn.init, name, _checked(getattr(torch.nn.init, name), fill))
        setattr(torch.nn.init, name[:-1], getattr(torch.nn.init, name))  # as old programs call it
    for name, fill in list(_FILLS.items())[:2]:
        replace_method(name, lambda original, fill=fill: _checked(original, fill))
    replace_method("bernoulli_", lambda original: _chance)
    _same_distributions()


def uniform_like(tensor):
    return torch.tensor(numbers.random(_shape(tensor))).to(tensor.dtype)


def _checked(original, fill):
    def filled(tensor, *args, **kwargs):
        state = numbers.bit_generator.state
        with torch.no_grad():
            original(tensor, *args, **kwargs)
        numbers.bit_generator.state = state
        return fill(tensor, *args, **kwargs)

    return filled


def _same_distributions():
    try:
        from torch.distributions import Categorical, Normal
    except ImportError:
        return

    def rsample(self, sample_shape=()):
        shape = tuple(sample_shape) + tuple((self.loc + self.scale).shape)
        return self.loc + self.scale * torch.tensor(numbers.standard_normal(shape).astype(np.float32))

    def sample(self, sample_shape=()):
        p = np.asarray(self.probs.detach().numpy(), np.float64)
        which = (numbers.random(p.shape[:-1] + (1,)) > np.cumsum(p, -1)).sum(-1)
        return torch.tensor(np.minimum(which, p.shape[-1] - 1))

    Normal.rsample = rsample
    Normal.sample = lambda self, sample_shape=(): rsample(self, sample_shape).detach()
    Categorical.sample = sample


def same_layers():
    """The parameters of a layer are drawn after it is made; dropout leaves its input as it is; loaders go in order."""
    for name in LAYERS + (NORMS if WIDE else []):
        layer = getattr(torch.nn, name, None)
        if layer is not None:
            layer.__init__ = _filled(layer.__init__, name in LAYERS)
            if name in LAYERS and hasattr(layer, "reset_parameters"):
                layer.reset_parameters = _fill
    torch.nn.Embedding.from_pretrained = classmethod(_undrawn(torch.nn.Embedding.from_pretrained.__func__))
    for name in ("Dropout", "Dropout1d", "Dropout2d", "AlphaDropout"):
        if hasattr(torch.nn, name):
            getattr(torch.nn, name).forward = lambda self, x: x
    for name in ("dropout", "dropout2d", "alpha_dropout"):
        setattr(torch.nn.functional, name, lambda input, *args, **kwargs: input)
    loader = torch.utils.data.DataLoader
    made = loader.__init__

    def in_order(self, dataset, *args, shuffle=False, num_workers=0, pin_memory=False, **kwargs):
        made(self, dataset, *args, **kwargs)

    loader.__init__ = in_order


def _filled(make, drawn):
    def make_and_fill(self, *args, **kwargs):
        _depth[0] += 1
        state = numbers.bit_generator.state
        try:
            make(self, *args, **kwargs)
        finally:
            _depth[0] -= 1
        if not _depth[0]:
            numbers.bit_generator.state = state  # what the layer itself drew does not count
            if WIDE:
                self.double()
            if drawn:
                _fill(self)

    return make_and_fill


def _fill(layer):
    for _, parameter in sorted(layer.named_parameters()):
        _fan(parameter)


def _undrawn(make):
    def made(*args, **kwargs):
        _depth[0] += 1
        state = numbers.bit_generator.state
        try:
            return make(*args, **kwargs)
        finally:
            _depth[0] -= 1
            numbers.bit_generator.state = state

    return made


def training(optimizer, loss_of):
    """A step of training: zero the gradients, loss, backward, update."""

    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


class Enough(Exception):
    """A script has made its steps."""


def recorded_losses(wanted):
    """Append each loss at its `backward`, and stop a script after `wanted` of them."""
    losses = []

    def noting(backward):
        def noted(self, *args, **kwargs):
            result = backward(self, *args, **kwargs)
            losses.append(float(self.detach().sum()))
            if len(losses) >= wanted:
                raise Enough
            return result

        return noted

    replace_method("backward", noting)
    return losses


def prepare():
    """Make this process ready for one program."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (programs draw from it)
    torch.manual_seed(0)
    stubs()
    same_draws()
    same_layers()
    replace_method("cuda", lambda original: lambda self, *args, **kwargs: self)
    torch.nn.Module.cuda = lambda self, *args, **kwargs: self
    return contextlib.redirect_stdout(io.StringIO())
