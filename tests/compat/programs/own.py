"""What programs write themselves: functions with a gradient, optimizers, weights that are computed, distributions."""
import torch
import torch.nn as nn
from _common import fill, numbers
from torch.autograd import Function, Variable
from torch.distributions import Bernoulli, Categorical, Normal, Uniform, kl_divergence
from torch.distributions.normal import Normal as AlsoNormal
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _pair
from torch.nn.utils import weight_norm
from torch.optim.optimizer import Optimizer


class Swish(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return x * torch.sigmoid(slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        s = torch.sigmoid(ctx.slope * x)
        return grad_output * (s + ctx.slope * x * s * (1 - s)), None


class Two(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, True)
        return g * b + h, g * a + h


class Yogi(Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), eps=1e-3, weight_decay=0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad.data, self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data, memory_format=torch.preserve_format)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                state["step"] += 1
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                squared = grad.mul(grad)
                exp_avg_sq.addcmul_(torch.sign(exp_avg_sq - squared), squared, value=-(1 - beta2))
                denom = exp_avg_sq.sqrt().add_(group["eps"])
                p.data.addcdiv_(exp_avg, denom, value=-group["lr"])
        return loss


class Halving(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        return [base * 0.5 ** self.last_epoch for base in self.base_lrs]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(2, 3, 3, padding=1))
        self.norm, self.fc = nn.BatchNorm1d(3), nn.Linear(3, 2, bias=None)

    def forward(self, x):
        h = Swish.apply(self.norm(self.conv(x)), 1.5)
        a, b = Two.apply(h[:, 0], h[:, 1])
        return self.fc(h.mean(2)).sum() + (a * b).mean()


def losses():
    net = fill(Net(), scale=0.5)
    optimizer = Yogi([{"params": net.conv.parameters(), "lr": 0.02}, {"params": list(net.fc.parameters())}])
    schedule, x, found = Halving(optimizer), torch.from_numpy(numbers(4, 2, 5)), []

    def closure():
        optimizer.zero_grad()
        loss = net(x)
        loss.backward()
        return loss

    for _ in range(4):
        found.append(optimizer.step(closure).item())
        schedule.step()
    found += [optimizer.param_groups[0]["lr"], sum(isinstance(m, _BatchNorm) for m in net.modules()), _pair(3)[1]]
    found.append(float(len(net._modules) + len(net.norm._parameters) + len(net.norm._buffers)))
    found += [net.conv.weight.sum().item(), float(len(list(net.conv.parameters())))]
    p = Variable(torch.ones(2), requires_grad=True)
    normal, logits = Normal(p, torch.tensor([1.0, 2.0])), torch.from_numpy(numbers(3, 4))
    choice, coin = Categorical(logits=logits), Bernoulli(torch.tensor([0.3, 0.6]))
    kl = kl_divergence(normal, AlsoNormal(torch.zeros(2), torch.ones(2)))
    (normal.log_prob(torch.zeros(2)).sum() + kl.sum()).backward()
    found += [normal.entropy().sum().item(), normal.mean.sum().item(), normal.variance.sum().item(), kl.sum().item()]
    found += [choice.log_prob(torch.tensor([0, 3, 1])).sum().item(), choice.entropy().sum().item(), *p.grad.tolist()]
    found += [coin.log_prob(torch.tensor([1.0, 0.0])).sum().item(), coin.entropy().sum().item(), coin.mean.sum().item()]
    found += [float(choice.sample().shape[0]), float(len(normal.rsample((3,)))), Uniform(0.0, 2.0).log_prob(torch.ones(1)).item()]
    table = torch.tensor([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]])
    found += torch.searchsorted(table, torch.tensor([[0.5, 0.0], [0.35, 1.0]]), right=True).flatten().tolist()
    net.conv = weight_norm(nn.Conv1d(2, 3, kernel_size=3, stride=[1]))
    net.conv.weight.data.normal_(0, 0.01)
    sam = torch.optim.SGD([{"params": net.fc.parameters(), "rho": 0.05}], lr=0.1)
    found += [sam.param_groups[0]["rho"], float(torch.LongTensor(range(5)).sum()), float(p.data.new().resize_(2, 3).numel())]
    out, grads = torch.autograd.functional.vjp(lambda t: (t ** 3).sum(), torch.tensor([1.0, 2.0]))
    found += [out.item(), *grads.tolist()]
    found += torch.autograd.functional.jvp(torch.sin, torch.tensor([1.0]), torch.tensor([2.0]))[1].tolist()
    p.require_grad = False
    p.grad = Variable(p.data.new().resize_as_(p.data).zero_())
    return found + [p.grad.sum().item(), float(normal.sample((2,)).requires_grad), normal.stddev[1].item()]
