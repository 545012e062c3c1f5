"""First names, letter by letter: a small GPT learns which letter comes next, and then makes up names.

The score is the mean negative log-likelihood of a letter (or the end) of names that were held out, in nats; guessing
takes ln 27 = 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import minigrad as mg
from minigrad import nn

LENGTH = 12  # the longest name has 11 letters, and then comes its end


class GPT(nn.Module):
    """Embeddings of letters and positions, and blocks of causal attention."""

    def __init__(self, letters: int, width: int, heads: int, layers: int, dropout: float) -> None:
        self.letters, self.places = nn.Embedding(letters, width), nn.LearnedPositions(LENGTH, width)
        self.blocks = nn.ModuleList([
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        ])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, letters: mg.Tensor) -> mg.Tensor:
        x = self.places(self.letters(letters))
        for block in self.blocks:
            x = block(x, causal=True)
        return self.head(self.norm(x))

    def loss(self, rows: mg.Tensor) -> mg.Tensor:
        """The mean loss of the letters and of the end; padding does not count."""
        before, after = rows[:, :-1], rows[:, 1:]
        started = mg.arange(LENGTH, device=rows.device) == 0
        return mg.cross_entropy(self(before), mg.where((before > 0) | started, after, -1), ignore_index=-1)


def rows_of(names: Sequence[str], alphabet: mg.data.Alphabet) -> np.ndarray:
    """Names as rows of numbers: 0, the letters, and 0 until the end."""
    rows = np.zeros((len(names), LENGTH + 1), dtype=np.int64)
    for row, name in zip(rows, names):
        row[1 : len(name) + 1] = alphabet.encode(name)
    return rows


def batches(names: Sequence[str], alphabet: mg.data.Alphabet) -> mg.data.DataLoader:
    """The names in batches of 64, in a different order in each epoch."""
    return mg.data.DataLoader(mg.data.TensorDataset(rows_of(names, alphabet)), 64, shuffle=True, drop_last=True)


def train(model: GPT, loader: mg.data.DataLoader, epochs: int, jit: bool) -> None:
    """Train the model on the names, batch by batch."""
    optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * len(loader) + 1)
    losses = mg.train.Mean()

    @mg.jit(disable=not jit)
    def step(rows: mg.Tensor) -> None:
        optimizer.zero_grad()
        loss = model.loss(rows)
        loss.backward()
        mg.optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.add(loss)

    for epoch in range(epochs):
        losses.reset()
        for (rows,) in (bar := mg.train.progress(loader, f"names_gpt, epoch {epoch + 1} of {epochs}")):
            step(rows)
            bar.show(nats=losses)


def made_up(model: GPT, alphabet: mg.data.Alphabet, count: int, jit: bool) -> list[str]:
    """New names, all at once, each letter drawn with the probability that the model gives it."""

    @mg.jit(disable=not jit)
    def write(rows: mg.Tensor, place: mg.Tensor) -> None:
        """Draw the letters after `place`, which is a tensor, so that one program draws all letters."""
        rows[:, place + 1] = mg.random.categorical(model(rows[:, :-1])[:, place])

    rows = mg.zeros((count, LENGTH + 1), dtype=mg.int64)
    for place in range(LENGTH):
        write(rows, mg.asarray(place))
    return [alphabet.decode(row[1:]) for row in rows.tolist()]


def main(jit: bool = False, quick: bool = False) -> float:
    """Train it, let it make up some names, and return the score."""
    epochs, width = (1, 32) if quick else (8, 64)
    known, held_out = mg.data.names()
    alphabet = mg.data.Alphabet(known)
    model = GPT(len(alphabet), width, heads=4, layers=2, dropout=0.1)
    train(model, batches(known, alphabet), epochs, jit)
    model.eval()
    with mg.no_grad():
        print("made up:", ", ".join(made_up(model, alphabet, 12, jit)))
        return model.loss(mg.asarray(rows_of(held_out, alphabet))).item()
