"""Handwritten digits by a multilayer perceptron: data, model, training, score."""

from __future__ import annotations

import minigrad as mg
from minigrad import nn


def main(jit: bool = False, quick: bool = False) -> float:
    """Train it, and return how many of the held-out digits it reads right, in percent."""
    epochs, width = (6, 256) if quick else (40, 512)
    train, test = mg.data.digits()
    noise = mg.data.Noise(0.15)
    loader = mg.data.DataLoader(train, 64, shuffle=True, drop_last=True, augment=noise)

    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, width), nn.GELU(), nn.Dropout(0.3),
        nn.Linear(width, width), nn.GELU(), nn.Dropout(0.3),
        nn.Linear(width, 10),
    )
    optimizer = mg.optim.AdamW(model.parameters(), lr=3e-3)
    steps = epochs * len(loader) + 1
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    losses, accuracy = mg.train.Mean(), mg.train.Accuracy()

    @mg.jit(disable=not jit)
    def step(pictures: mg.Tensor, labels: mg.Tensor) -> None:
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.add(loss)

    for _ in (bar := mg.train.progress(range(epochs), "digits_mlp")):
        losses.reset()
        for pictures, labels in loader:
            step(pictures, labels)
        bar.show(loss=losses)

    model.eval()
    for pictures, labels in mg.data.DataLoader(test, len(test)):
        accuracy.add(model(pictures), labels)
    return 100 * accuracy.value
