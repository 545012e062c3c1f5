"""A regression on a table: how loud a wing is, from frequency, angle, chord, velocity and thickness of the flow.

A straight line through all five columns explains about half of the variance (R² = 0.5).
"""

from __future__ import annotations

import minigrad as mg
from minigrad import nn

COLUMNS = ("frequency", "angle", "chord", "velocity", "thickness")


def main(jit: bool = False, quick: bool = False) -> float:
    """Train it, and return the share of the variance of the held-out rows that it explains, R²."""
    epochs = 25 if quick else 100
    train, test = mg.data.airfoil()
    x, y = train.matrix(COLUMNS), train.matrix(["pressure"])
    scale_x, scale_y = mg.data.Standardize(x), mg.data.Standardize(y)  # scaled by the training rows only
    rows = mg.data.TensorDataset(scale_x(x), scale_y(y))
    loader = mg.data.DataLoader(rows, 64, shuffle=True, drop_last=True)

    model = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * len(loader) + 1)
    losses = mg.train.Mean()

    @mg.jit(disable=not jit)
    def step(x: mg.Tensor, y: mg.Tensor) -> None:
        optimizer.zero_grad()
        loss = mg.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.add(loss)

    for _ in (bar := mg.train.progress(range(epochs), "regression")):
        losses.reset()
        for features, pressures in loader:
            step(features, pressures)
        bar.show(loss=losses)

    truth = mg.asarray(test.matrix(["pressure"]))
    with mg.no_grad():
        predicted = mg.asarray(scale_y.inverse(model(mg.asarray(scale_x(test.matrix(COLUMNS))))))
    unexplained = mg.mse_loss(predicted, truth) / truth.var()
    print(f"{mg.sqrt(mg.mse_loss(predicted, truth)).item():.2f} dB off, mostly")
    return 1 - unexplained.item()
