# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your PyTorch program, seen
#
# The cells below hold a program for PyTorch, as you would write it. **No line of it is changed**: the first cell lets minigrad answer `import torch`.
# Then every view of the course shows *your* program. Replace the program with your own, and run the notebook again.

# %% name="setup"
# %load_ext minigrad.compat

# %% [markdown]
# ## 1 · The program
#
# A classifier of points on two half-circles, with `view`, `F.relu`, `nn.CrossEntropyLoss` and Adam.

# %% name="program"
import math

import torch
import torch.nn.functional as F
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


torch.manual_seed(0)
angle = torch.linspace(0, math.pi, 20)
outer = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
inner = torch.stack([1 - torch.cos(angle), 0.5 - torch.sin(angle)], dim=1)
points = torch.cat([outer, inner])
labels = torch.cat([torch.zeros(20, dtype=torch.long), torch.ones(20, dtype=torch.long)])

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=0.05)

for _ in range(100):
    optimizer.zero_grad()
    loss = criterion(net(points), labels)
    loss.backward()
    optimizer.step()

right = (net(points).argmax(dim=1) == labels).sum().item()
print(f"{right} of {len(labels)} points are on the right side")

# %% [markdown]
# ## 2 · Its backward pass, step by step
#
# Four points are enough to see it. Go on with the arrow keys, and click a value. The lines of code are yours.

# %% name="step"
import minigrad as mg

few = points[::10]
mg.viz.step(criterion(net(few), labels[::10]))

# %% [markdown]
# ## 3 · The whole step as one program
#
# `mg.jit` records the step once, with its optimizer, and compiles it. `torch.compile` would hide what it makes of your step; this shows it: at the left
# the operations that you wrote, at the right the kernels that compute them.

# %% name="fusion"
@mg.jit
def train(points, labels):
    optimizer.zero_grad()
    loss = criterion(net(points), labels)
    loss.backward()
    optimizer.step()
    return loss


mg.viz.fusion(train, points, labels)

# %% [markdown]
# ## 4 · Its memory
#
# What is kept between the forward and the backward pass, and what checkpoints would save.

# %% name="memory"
mg.viz.memory(lambda points: criterion(net(points), labels), points)

# %% [markdown]
# ## 5 · What has another meaning
#
# In this notebook, tensors have the methods of PyTorch, because it imports `torch`. A notebook that imports only minigrad keeps minigrad's meaning. The
# page *Your PyTorch program, seen* of the lectures lists all differences; `%unload_ext minigrad.compat` ends it.

# %% name="meanings"
print(points.size(), points.std().item() == points.std(unbiased=True).item())
values, places = points.max(dim=1)
print(values.shape, places.dtype)
