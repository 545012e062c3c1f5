"""Diffusion: a schedule of noise, gather by step, sinusoidal embedding, a loss per sample, an average of weights."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from _common import fill, integers, numbers


class TimeEmbedding(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.lin = nn.Linear(n, n)

    def forward(self, t):
        half = self.n // 2
        emb = math.log(10_000) / (half - 1)
        emb = torch.exp(torch.arange(half, device=t.device) * -emb)
        emb = t[:, None] * emb[None, :]
        return F.silu(self.lin(torch.cat((emb.sin(), emb.cos()), dim=1)))


class Denoise(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.time = TimeEmbedding(8)
        self.inp = nn.Conv2d(1, channels, 3, padding=1)
        self.norm = nn.GroupNorm(2, channels)
        self.temb = nn.Linear(8, channels)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.out = nn.Conv2d(2 * channels, 1, 1)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(self.time(t))[:, :, None, None]
        h = F.silu(self.norm(h))
        up = F.interpolate(self.down(h), scale_factor=2, mode="nearest")
        return self.out(torch.cat([h, up], 1))


def gather(consts, t):
    return consts.gather(-1, t).reshape(-1, 1, 1, 1)


def losses():
    beta = torch.linspace(0.0001, 0.02, 20)
    alpha_bar = torch.cumprod(1.0 - beta, dim=0)
    model = fill(Denoise())
    ema = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x0, found = torch.from_numpy(numbers(4, 1, 4, 4)), []
    for i in range(5):
        t = torch.from_numpy(integers(20, 4, seed=i)).long()
        noise = torch.from_numpy(numbers(4, 1, 4, 4, seed=50 + i))
        mean = gather(alpha_bar, t) ** 0.5 * x0
        x = mean + (1 - gather(alpha_bar, t)).sqrt() * noise
        loss = F.mse_loss(noise, model(x, t), reduction="none").mean(dim=list(range(1, 4))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(model.parameters(), ema.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
        found.append(loss.item())
    return found + [next(ema.parameters()).norm().item(), ema.out.weight.std().item()]
