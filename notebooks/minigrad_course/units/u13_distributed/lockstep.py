"""Data-parallel training of several ranks in one thread: all compute their gradients, and then all exchange them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from minigrad.nn.module import Module
from minigrad.ops.creation import asarray
from minigrad.ops.losses import cross_entropy
from minigrad.optim.sgd import SGD

AllReduce = Callable[[list[Any]], Sequence[Any]]  # the gradients of each rank -> their sum, as each rank has it


@np.errstate(all="ignore")  # with a wrong all-reduce the numbers may overflow
def in_lockstep(
    models: Sequence[Module], rate: float, batches: Iterable[Any], all_reduce: AllReduce
) -> tuple[list[float], float]:
    """Train the models of the ranks, each on its part of every batch.

    Returns the mean loss of each batch, and the seconds that a batch took.
    """
    begin = perf_counter()
    optimizers = [SGD(model.parameters(), lr=rate) for model in models]
    losses = []
    for images, labels in batches:
        found, gradients = [], []
        for model, optimizer, *part in zip(models, optimizers, *(np.split(a, len(models)) for a in (images, labels))):
            optimizer.zero_grad()
            found.append(cross_entropy(model(asarray(part[0])), asarray(part[1])))
            found[-1].backward()
            own: list[Any] = [parameter.grad for parameter in model.parameters()]
            gradients.append(np.concatenate([gradient.numpy().reshape(-1) for gradient in own]))
        for model, optimizer, total in zip(models, optimizers, all_reduce(gradients)):
            for parameter in model.parameters():
                mine, total = np.split(total, [parameter.size])
                parameter.grad = asarray(mine.reshape(parameter.shape) / len(models))
            optimizer.step()
        losses.append(float(np.mean([loss.item() for loss in found])))
    return losses, (perf_counter() - begin) / len(losses)
