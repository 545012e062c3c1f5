"""A frozen network with small trained matrices beside it, and a part that is thawed later."""
import math

import torch
import torch.nn as nn
from _common import fill, numbers


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, r=2, alpha=4.0, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        self.weight.requires_grad = False
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
        self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x):
        return super().forward(x) + (x @ self.lora_A.transpose(0, 1) @ self.lora_B.T) * self.scaling


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ELU())
        self.lora = LoRALinear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.relu(self.lora(self.body(x)))).squeeze(-1)


def losses():
    net = fill(Net(), scale=0.4)
    net.body.requires_grad_(False)
    before = {n: p.clone() for n, p in net.named_parameters()}
    optimizer, found = torch.optim.Adam(net.parameters(), lr=1e-2), []
    x, y = torch.from_numpy(numbers(8, 6)), torch.from_numpy(numbers(8, seed=3))
    for step in range(6):
        if step == 3:
            for p in net.body.parameters():
                p.requires_grad = True
        loss = nn.HuberLoss()(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    moved = [n for n, p in net.named_parameters() if not torch.equal(p, before[n])]
    return found + [float(len(moved)), float(sum(p.numel() for p in net.parameters() if p.requires_grad))]
