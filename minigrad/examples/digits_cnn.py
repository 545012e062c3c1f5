"""Handwritten digits by a convolutional net, with a worker that prepares pictures during training."""

from __future__ import annotations

import minigrad as mg
from minigrad import nn


def main(jit: bool = False, quick: bool = False) -> float:
    """Train it, and return how many of the held-out digits it reads right, in percent."""
    epochs, channels = (3, 16) if quick else (15, 32)
    train, test = mg.data.digits()
    loader = mg.data.DataLoader(train, 64, shuffle=True, drop_last=True, augment=mg.data.Noise(0.1), workers=1)

    model = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.4),
        nn.Linear(2 * channels * 4 * 4, 128), nn.ReLU(), nn.Dropout(0.4),
        nn.Linear(128, 10),
    )
    optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * len(loader) + 1)
    losses, accuracy = mg.train.Mean(), mg.train.Accuracy()

    @mg.jit(disable=not jit)
    def step(pictures: mg.Tensor, labels: mg.Tensor) -> None:
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.add(loss)

    for epoch in range(epochs):
        losses.reset()
        for pictures, labels in (bar := mg.train.progress(loader, f"digits_cnn, epoch {epoch + 1} of {epochs}")):
            step(pictures, labels)
            bar.show(loss=losses)

    model.eval()
    for pictures, labels in mg.data.DataLoader(test, 120):
        accuracy.add(model(pictures), labels)
    return 100 * accuracy.value
