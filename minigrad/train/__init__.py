"""Parts of a training loop: a progress bar, metrics, early stopping, a search for nans, mixed precision; and `fit`.

They are made for a loop that you write yourself:

    accuracy, losses = mg.train.Accuracy(), mg.train.Mean()

    @mg.jit
    def step(x, y):
        optimizer.zero_grad()
        logits = model(x)
        loss = mg.cross_entropy(logits, y)
        loss.backward()
        mg.optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.add(loss)
        accuracy.add(logits, y)

    for epoch in range(10):
        losses.reset(), accuracy.reset()
        for x, y in (bar := mg.train.progress(loader, f"epoch {epoch}")):
            step(x, y)
            bar.show(loss=losses, accuracy=accuracy)

`fit` is this loop as a function: `mg.train.fit(step, loader, epochs=10)`.
"""

from ..arguments.public import public
from .loop import EarlyStopping, History, evaluate, fit
from .metrics import Accuracy, Mean, Metric, Perplexity
from .nans import NanGuard
from .precision import GradScaler, autocast
from .progress_bar import Progress, progress

__all__ = [
    "fit", "evaluate", "History", "EarlyStopping", "Metric", "Mean", "Accuracy", "Perplexity",
    "progress", "Progress", "NanGuard", "autocast", "GradScaler",
]

public(__all__, globals())
