"""Functions of parameters: ensembles by vmap, a step inside a step, derivatives, and folded patches."""
import torch
from _common import fill, numbers
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


def losses():
    models = [fill(Net(), seed) for seed in range(3)]
    base, (weights, buffers) = models[0], stack_module_state(models)
    x, y = torch.from_numpy(numbers(5, 3)), torch.from_numpy(numbers(5, 2, seed=4))

    def loss_of(weights, x, y):
        return F.mse_loss(functional_call(base, weights, (x,)), y)

    def step(weights, x, y):
        slopes, loss = grad_and_value(loss_of)(weights, x, y)
        return loss, {name: weights[name] - 0.1 * slopes[name] for name in weights}

    found, together = [], vmap(step, in_dims=(0, None, None))
    for _ in range(3):
        loss, weights = together(weights, x, y)
        found += loss.tolist()
    each = vmap(grad(loss_of), in_dims=(None, 0, 0))(dict(base.named_parameters()), x, y)
    found += [each["fc1.weight"].shape[0], each["fc1.weight"].sum().item(), len(buffers)]
    found += functional_call(base, ({"fc2.bias": torch.ones(2)}, buffers), x).sum(0).tolist()

    def cubes(x):
        return (x ** 3).sum()

    row = torch.tensor([1.0, 2.0])
    value, back = vjp(cubes, row)
    (slope,) = back(torch.tensor(2.0))
    found += [value.item(), *slope.tolist(), jvp(cubes, (row,), (torch.ones(2),))[1].item()]
    found += jacrev(torch.sin)(row).diagonal().tolist() + hessian(cubes)(row).diagonal().tolist()
    patches = torch.from_numpy(numbers(2, 12, 12)).requires_grad_()
    image = F.fold(patches, (5, 6), (2, 3), stride=(2, 1), padding=(1, 0))
    (image ** 2).sum().backward()
    found += [image[1, 1].sum().item(), patches.grad[1, 3].sum().item()]
    ones = nn.Fold(output_size=4, kernel_size=2)(torch.ones(1, 4, 9))
    return found + ones[0, 0, 1].tolist()
