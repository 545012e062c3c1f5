"""The network of unit 03, which needs seven kernels; each copy between two devices stands in a line of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import nn, optim
from minigrad.core.mode import no_grad, switch
from minigrad.core.tensor import Tensor
from minigrad.data import TensorDataset, digits
from minigrad.devices.registry import CPU
from minigrad.ops.creation import asarray
from minigrad.viz.flipbook import Flipbook

from ...digits import Trained, tanh_network
from ...session import SESSION
from ...views import queues
from ...views.readings import side_by_side

NEEDED = ("matmul", "add", "tanh", "subtract", "multiply", "sum", "divide")
EPOCHS, BATCH, RATE = 10, 64, 0.1
SIZES = (16, 64, 256, 1437)  # of batches, in the picture of one step


def network() -> nn.Module:
    """The network, on the CPU."""
    with switch(device=CPU):
        return tanh_network()


def images_and_targets(part: TensorDataset) -> tuple[Tensor, Tensor]:
    """Pictures, and for each the ten numbers that the network should return."""
    images, labels = part.arrays
    return asarray(images.reshape(-1, 64), device=CPU), asarray(np.eye(10, dtype="f")[labels], device=CPU)


def step(model: nn.Module, optimizer: optim.SGD, images: Tensor, targets: Tensor, device: Any) -> float:
    """One step of the training: a batch is copied to the device, and its loss is copied back."""
    images, targets = images.to(device), targets.to(device)
    optimizer.zero_grad()
    loss = ((model(images) - targets) ** 2).sum() / len(images)
    loss.backward()
    optimizer.step()
    return float(loss.to(CPU).item())


def train(device: Any = "cpu", model: nn.Module | None = None) -> Trained:
    """Train the network on a device: the loss of each batch, and the digits that it reads before and after."""
    model = network() if model is None else model
    before = read(model, "cpu")
    optimizer = optim.SGD(model.to(device).parameters(), lr=RATE)
    images, targets = images_and_targets(digits()[0])
    parts = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)] * EPOCHS
    with np.errstate(all="ignore"):  # with a coarse kernel the numbers may overflow
        losses = [step(model, optimizer, images[part], targets[part], device) for part in parts]
    return Trained(SESSION.author, None, losses, before, read(model, device))


def read(model: nn.Module, device: Any) -> Any:
    """The digit that a model reads in each picture of the test set, on a device."""
    images, _ = images_and_targets(digits()[1])
    with no_grad(), np.errstate(all="ignore"):
        return model.to(device)(images.to(device)).to(CPU).argmax(1).numpy()


def at_work(device: str = "chip") -> Flipbook:
    """One step of the training on a device, for batches of several sizes."""

    def program(size: int) -> Callable[[], float]:
        model = network().to(device)
        optimizer = optim.SGD(model.parameters(), lr=RATE)
        images, targets = (each[:size] for each in images_and_targets(digits()[0]))
        return lambda: step(model, optimizer, images, targets, device)

    return queues.at_work({f"{size} pictures": program(size) for size in SIZES}, device, "batch", 1)


def readings(device: str) -> Flipbook:
    """What three networks read: trained and run on the CPU, then run on the device, and trained on the device."""
    images, labels = digits()[1].arrays
    exact = network()
    seen = {"trained on cpu, reads on cpu": train("cpu", exact).after,
            f"trained on cpu, reads on {device}": read(exact, device),
            f"trained on {device}, reads on {device}": train(device).after}
    return side_by_side("what three networks read", images.reshape(-1, 8, 8), labels, seen)
