"""What the other programs do not use: schedules, cells, a decoder, hooks, gradients and modules by name."""
import contextlib

import torch
from _common import fill, numbers
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.checkpoint import checkpoint


def schedules():
    found = []
    makers = [
        lambda o: lr_scheduler.LambdaLR(o, lr_lambda=lambda epoch: 0.95 ** epoch),
        lambda o: lr_scheduler.LinearLR(o, start_factor=0.5, total_iters=4),
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=8),
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, epochs=2, steps_per_epoch=4),
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, total_iters=2),
                                                lr_scheduler.ExponentialLR(o, 0.5)], milestones=[2]),
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 2), lr_scheduler.ExponentialLR(o, 0.9)]),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3),
        lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=2),
        lambda o: lr_scheduler.PolynomialLR(o, total_iters=4, power=2.0),
        lambda o: Warmup(o, 3),
    ]
    for make in makers:
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.05)
        scheduler = make(optimizer)
        for _ in range(5):
            optimizer.step()
            scheduler.step()
            found.append(optimizer.param_groups[0]["lr"])
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.05)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9):
        plateau.step(loss)
    return found + [optimizer.param_groups[0]["lr"]]


class Warmup(lr_scheduler._LRScheduler):
    def __init__(self, optimizer, steps, last_epoch=-1):
        self.steps = steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.gru = nn.RNNCell(4, 5), nn.GRUCell(5, 5)
        self.rnn = nn.RNN(5, 4, nonlinearity="relu")
        layer = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)
        self.decoder = nn.TransformerDecoder(layer, num_layers=2)
        self.add_module("head", nn.Linear(4, 1))
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
        self.named = nn.ParameterDict({"shift": nn.Parameter(torch.zeros(4))})

    def forward(self, x):
        h, outputs = torch.zeros(x.size(1), 5), []
        for step in x:
            h = self.gru(self.cell(step, h), h)
            outputs.append(h)
        out, _ = self.rnn(torch.stack(outputs))
        out = checkpoint(self.decoder, out, out, use_reentrant=False)
        for scale in self.scales:
            out = out * scale
        return self.head(out + self.named["shift"]).mean()


def losses():
    torch.set_grad_enabled(True)
    net = fill(Net(), scale=0.4)
    seen = []
    net.head.register_forward_hook(lambda module, args, output: seen.append(output.mean().item()))
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    x, found = torch.from_numpy(numbers(3, 2, 4)), []
    for _ in range(3):
        optimizer.zero_grad()
        with contextlib.nullcontext():
            loss = net(x)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        optimizer.step()
        found.append(loss.item())
    vector = nn.utils.parameters_to_vector(net.head.parameters())
    nn.utils.vector_to_parameters(vector * 2, net.head.parameters())
    y = torch.ones(2, requires_grad=True)
    y.register_hook(lambda g: 3 * g)
    z = y * 2
    z.retain_grad()
    with torch.autograd.set_detect_anomaly(False), torch.enable_grad():
        (z * z).sum().backward()
    names = [net.get_submodule("decoder.layers.0").linear1.in_features, net.get_parameter("head.bias").numel(), len(list(net.buffers()))]
    names.append(sum(isinstance(m, nn.Linear) for m in net.modules()))
    net.decoder.requires_grad_(False)
    names.append(sum(p.numel() for p in net.parameters()))
    with torch.set_grad_enabled(False):
        names.append(float(net(x).requires_grad))
    return found + seen[:2] + [net.head.weight.sum().item(), *y.grad.tolist(), *z.grad.tolist()] + names + schedules()
