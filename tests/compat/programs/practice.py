"""What training scripts do around the model: samplers, own batches, scaled losses, shadow weights, fresh layers."""
import copy
import os
import tempfile

import numpy as np
import torch
from _common import fill, integers, numbers
from torch import nn
from torch.autograd.function import InplaceFunction
from torch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler
from torch.utils.data.dataloader import default_collate
from torch.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler


class Balanced(Sampler):
    def __init__(self, labels):
        self.by_class = [[i for i, each in enumerate(labels) if each == c] for c in sorted(set(labels))]

    def __iter__(self):
        return iter([group[k % len(group)] for k in range(len(self)) for group in self.by_class][:len(self)])

    def __len__(self):
        return 12


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Rounded(InplaceFunction):
    @staticmethod
    @custom_fwd
    def forward(ctx, x, steps=4):
        return (x * steps).round().div(steps)

    @staticmethod
    @custom_bwd
    def backward(ctx, grad_output):
        return grad_output, None


class Shadow:
    """Averaged weights that stand in for the model's own, until these come back."""

    def __init__(self, model):
        self.model = model
        self.shadow = {name: p.data.clone() for name, p in model.named_parameters()}

    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name] = 0.1 * p.data + 0.9 * self.shadow[name]

    def apply(self):
        self.backup = {}
        for name, p in self.model.named_parameters():
            self.backup[name] = p.data
            p.data = self.shadow[name]

    def restore(self):
        for name, p in self.model.named_parameters():
            p.data = self.backup[name]


class Fresh(nn.Linear):
    def reset_parameters(self):
        nn.init.constant_(self.weight, 0.5)
        nn.init.xavier_uniform(self.bias.view(1, -1)) if self.bias is None else nn.init.zeros_(self.bias)


def collate(items):
    x, y = zip(*items)
    return {"x": torch.stack(x), "y": torch.tensor([int(each) for each in y])}


def losses():
    array = numbers(12, 4)
    x, y = torch.from_numpy(array), torch.from_numpy(integers(3, 12))
    array[0, 0] = 2.0  # the memory is shared
    data = TensorDataset(x, y)
    model = fill(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, amsgrad=True)
    scaler, shadow, found = GradScaler(enabled=False), Shadow(model), [x[0, 0].item()]
    loader = DataLoader(data, batch_size=4, sampler=Balanced(y.tolist()), collate_fn=collate, drop_last=True)
    for batch in loader:
        with autocast(enabled=False):
            loss = F.cross_entropy(model(Rounded.apply(batch["x"], 8)), batch["y"])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        shadow.update()
        found.append(loss.item())
    shadow.apply()
    averaged = model(x).sum().item()
    shadow.restore()
    found += [averaged, model(x).sum().item(), scaler.get_scale()]

    fresh = Fresh(2, 2)
    twin = copy.deepcopy(model)
    for layer in twin:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    found += [fresh.weight.sum().item(), float(twin[0].weight.equal(model[0].weight)), float(twin[0].weight.abs().max() <= 0.5)]
    step = optimizer.step(lambda: F.cross_entropy(model(x), y))
    found.append(step.item())

    bases = (nn.modules.batchnorm._BatchNorm, nn.modules.conv._ConvNd, nn.RNNBase, nn.modules.loss._Loss)
    layers = (nn.BatchNorm2d(1), nn.Conv1d(1, 1, 1), nn.GRU(1, 1), nn.BCELoss(), nn.Linear(1, 1))
    found += [isinstance(layer, base) for layer in layers for base in bases]
    batches = [len(each) for each in BatchSampler(SequentialSampler(data), 5, False)]
    found += batches + [len(BatchSampler(range(12), 5, True)), len(loader), loader.batch_size]
    found += [each.tolist()[-1] for each in DataLoader(Stream(), batch_size=2)]
    found += sorted(SubsetRandomSampler([3, 5, 8])) + [len(list(RandomSampler(data, replacement=True, num_samples=40)))]
    found += [len(set(RandomSampler(data))), len(list(WeightedRandomSampler([0.0, 1.0], 3)))]
    found += [default_collate([{"a": np.float32(1)}, {"a": np.float32(2)}])["a"].sum().item()]
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"epoch": 3, "state": optimizer.state_dict()}, os.path.join(folder, "state.pt"))
        found.append(float(os.path.getsize(os.path.join(folder, "state.pt")) > 100))
    attention = nn.MultiheadAttention(4, 2)
    fill(attention)
    out, weights = F.multi_head_attention_forward(
        x[:, None], x[:, None], x[:, None], 4, 2, attention.in_proj_weight, attention.in_proj_bias, None, None, False, 0.0,
        attention.out_proj.weight, attention.out_proj.bias, training=False)
    return found + [out.sum().item(), weights[0, 0, 1].item(), torch.allclose(out, attention(x[:, None], x[:, None], x[:, None])[0])]
