"""Training steps of small models, on any device, for tests of programs."""

import math

import numpy as np

import minigrad as mg


def stepping(model, optimizer, loss_of):
    """A training step with its parameters."""

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    step.parameters = list(model.parameters())
    return step


def mlp(device):
    """Two layers, a hundred wide."""
    rng = np.random.default_rng(0)
    with mg.device(device):
        model = mg.nn.Sequential(mg.nn.Linear(20, 132), mg.nn.ReLU(), mg.nn.Linear(132, 5))
        x = mg.asarray(rng.normal(size=(24, 20)).astype(np.float32))
        y = mg.asarray(rng.integers(0, 5, 24))
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)
    return stepping(model, optimizer, lambda: mg.cross_entropy(model(x), y))


def gpt(device, layers=1, width=16, heads=2, batch=2, length=6, vocabulary=11):
    """A transformer with dropout that predicts the next character."""
    rng = np.random.default_rng(1)
    parts = {}
    with mg.device(device):
        parts["tokens"], parts["places"] = mg.nn.Embedding(vocabulary, width), mg.nn.Embedding(length, width)
        for n in range(layers):
            parts[f"norm_{n}"], parts[f"into_{n}"] = mg.nn.LayerNorm(width), mg.nn.Linear(width, 3 * width)
            parts[f"out_{n}"], parts[f"drop_{n}"] = mg.nn.Linear(width, width), mg.nn.Dropout(0.1)
            parts[f"feed_{n}"] = mg.nn.Sequential(
                mg.nn.LayerNorm(width), mg.nn.Linear(width, 4 * width), mg.nn.GELU(), mg.nn.Linear(4 * width, width)
            )
        parts["head"] = mg.nn.Linear(width, vocabulary)
        positions = mg.asarray(np.arange(length))
        text = rng.integers(0, vocabulary, (batch, length + 1))
        x, y = mg.asarray(text[:, :-1].copy()), mg.asarray(text[:, 1:].reshape(-1).copy())

    class Model(mg.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, tokens):
            h = self.tokens(tokens) + self.places(positions)
            for n in range(layers):
                three = getattr(self, f"into_{n}")(getattr(self, f"norm_{n}")(h))
                three = three.reshape(batch, length, 3, heads, width // heads)
                q, k, v = (mg.permute_dims(three[:, :, i], (0, 2, 1, 3)) for i in range(3))
                scores = (q @ k.mT) * (1 / math.sqrt(width // heads))
                allowed = mg.tril(mg.ones((length, length), dtype="bool", device=device))
                seen = mg.softmax(mg.where(allowed, scores, -1e9)) @ v
                seen = mg.permute_dims(seen, (0, 2, 1, 3)).reshape(batch, length, width)
                h = h + getattr(self, f"drop_{n}")(getattr(self, f"out_{n}")(seen))
                h = h + getattr(self, f"feed_{n}")(h)
            return self.head(h)

    model = Model()
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)
    return stepping(model, optimizer, lambda: mg.cross_entropy(model(x).reshape(batch * length, vocabulary), y))


MODELS = {"mlp": mlp, "gpt": gpt}
