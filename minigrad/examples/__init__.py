"""Seven applications of one abstraction, each a short script on real data that reaches its stated score.

`python -m minigrad.examples` lists them, `python -m minigrad.examples digits_mlp --jit` runs one.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Example:
    """The topic of an example, and its score; the quick version, for tests, has its own."""

    about: str
    unit: str
    goal: float
    quick_goal: float
    less_is_better: bool = False

    def reached(self, score: float, quick: bool = False) -> bool:
        """Whether a score is as good as stated."""
        goal = self.quick_goal if quick else self.goal
        return score <= goal if self.less_is_better else score >= goal


EXAMPLES = {
    "digits_mlp": Example("handwritten digits, by a multilayer perceptron", "% right", 98.0, 95.5),
    "digits_cnn": Example("handwritten digits, by a convolutional net", "% right", 98.5, 93.0),
    "names_gpt": Example("first names, letter by letter, by a small GPT", "nats a letter", 2.08, 2.34, True),
    "karate_gcn": Example("who goes with whom, by a graph convolution, from two labels", "% right", 94.0, 94.0),
    "cartpole": Example("a pole kept upright, by policy gradients", "steps", 195.0, 60.0),
    "vae": Example("digits from eight numbers and back, by a variational autoencoder", "nats", 24.3, 26.1, True),
    "regression": Example("the noise of wings from a table, by a multilayer perceptron", "R²", 0.9, 0.81),
}


def run(name: str, jit: bool = False, device: Any = None, quick: bool = False, seed: int = 0) -> float:
    """Run an example, and return its score.

    >>> mg.examples.EXAMPLES["regression"].goal
    0.9
    """
    import minigrad as mg

    if not isinstance(name, str) or name not in EXAMPLES:
        raise mg.ConversionError(f"there is no example {name!r}", expect=", ".join(EXAMPLES))
    mg.random.seed(seed)
    with mg.device(device or "cpu"):
        score: float = import_module(f"minigrad.examples.{name}").main(jit, quick)
    return score
