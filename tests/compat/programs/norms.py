"""Weights that are computed before each call: spectral norm, by the library and by hand, and weight norm."""
import copy

import torch
from _common import fill, numbers
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import remove_weight_norm, spectral_norm, weight_norm
from torch.nn.utils.parametrizations import weight_norm as parametrized
from torch.optim.optimizer import required


class ByHand(nn.Module):
    """As old programs write it: `u.data = ...` between two calls of which the gradient is computed together."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        weight = module.weight
        self.u = nn.Parameter(weight.data.new(weight.size(0)).fill_(0.5), requires_grad=False)
        bar = nn.Parameter(weight.data)
        del module._parameters["weight"]
        module.register_parameter("weight_bar", bar)

    def forward(self, x):
        bar = self.module.weight_bar
        v = F.normalize(torch.mv(bar.data.t(), self.u.data), dim=0)
        self.u.data = F.normalize(torch.mv(bar.data, v), dim=0)
        self.module.weight = bar / self.u.dot(bar.mv(v)).expand_as(bar)
        return self.module(x)


def critic():
    return nn.Sequential(spectral_norm(nn.Conv2d(2, 3, 3)), nn.LeakyReLU(0.1), nn.Flatten(),
                         weight_norm(nn.Linear(27, 4)), nn.Tanh(), ByHand(nn.Linear(4, 2)))


def losses():
    model = fill(critic())
    with torch.no_grad():
        model[0].weight_u.copy_(torch.tensor([0.6, 0.0, 0.8]))
    optimizer = torch.optim.RMSprop(filter(lambda p: p.requires_grad, model.parameters()), lr=0.01)
    x, y = torch.from_numpy(numbers(2, 2, 5, 5)), torch.from_numpy(numbers(2, 2, 5, 5, seed=3))
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.relu(1 - model(x)).mean() + F.relu(1 + model(y)).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    model.eval()
    found += [len(model.state_dict()), sum(p.numel() for p in model.parameters())]
    with torch.no_grad():
        before = model(x).sum().item()
        twin = copy.deepcopy(model)
        twin[3].weight_g.mul_(2.0)
        found += [before, twin(x).sum().item(), model(x).sum().item()]
        remove_weight_norm(model[3])
        nn.utils.remove_spectral_norm(model[0])
        found += [model(x).sum().item(), len(model.state_dict()), float(model[3].weight.requires_grad)]
    layer = parametrized(nn.Linear(2, 2))
    return [*found, float(torch.norm(layer.weight, dim=1)[0] > 0), float(isinstance(required, object))]
