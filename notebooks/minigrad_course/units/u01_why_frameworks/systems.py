"""Unit 01: six small programs that try what a system can do, and three systems: two from the notebook, and minigrad."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.autodiff.transforms import grad
from minigrad.data import TensorDataset
from minigrad.distributed import ThreadCommunicators
from minigrad.io.tensors import load_file, save_file
from minigrad.ops.creation import asarray, ones
from minigrad.ops.elementwise import exp
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

WIDE, HIGH, LEFT = 92.0, 66.0, 150.0  # of the places of the table
Offers = Mapping[str, Callable[..., Any]]  # what a system offers, by name


def parsed(line: str) -> Any:
    """A record of a line of JSON; None where the line is damaged."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def two_layers(wide: int = 64) -> nn.Module:
    """A small network of the framework."""
    return nn.Sequential(nn.Linear(wide, 32), nn.Tanh(), nn.Linear(32, 10))


def loaded(path: Path) -> nn.Module:
    """The network with the weights of a file."""
    network = two_layers()
    network.load_state_dict(load_file(path))
    return network


def on_threads(f: Callable[[Any], Any], parts: Sequence[Any]) -> Any:
    """The sum of `f(part)` over ranks, each with a part."""
    return ThreadCommunicators(len(parts)).run(lambda comm: comm.allreduce(asarray(f(parts[comm.rank]))))[0]


def systems(Chain: Any, Dense: Any, Tanh: Any, Parts: Any) -> dict[str, Offers]:
    """What each of the three systems offers."""
    return {
        "a library of layers": {
            "network": lambda: Chain(Dense(64, 32), Tanh(), Dense(32, 10)).forward,
            "gradient": lambda f: Chain(f).backward,
        },
        "a data-parallel system": {
            "read": lambda lines: [each for each in Parts(lines).map(parsed).parts if each],
            "total": lambda f, parts: Parts(parts).map(f).reduce(lambda one, other: one + other),
        },
        "a framework": {
            "network": two_layers,
            "gradient": grad,
            "read": lambda lines: TensorDataset([each["pixels"] for each in map(parsed, lines) if each]),
            "save": lambda network, path: save_file(network.state_dict(), path),
            "load": loaded,
            "to": lambda x, device: asarray(x).to(device),
            "total": on_threads,
        },
    }


def _saved(offers: Offers) -> bool:
    """Whether a network that was saved and loaded computes the same."""
    network, x = offers["network"](), ones((1, 64))
    with tempfile.TemporaryDirectory() as folder:
        offers["save"](network, Path(folder) / "model.npz")
        return bool(offers["load"](Path(folder) / "model.npz")(x).tolist() == network(x).tolist())


PROGRAMS: dict[str, Callable[[Offers], bool]] = {
    "neural networks": lambda offers: offers["network"]()(ones((5, 64)).numpy()).shape == (5, 10),
    "automatic differentiation": lambda offers: float(offers["gradient"](lambda x: x / (1 + exp(-x)))(0.0)) == 0.5,
    "damaged data": lambda offers: len(offers["read"](['{"pixels": [1]}', '{"pixels": [2', '{"pixels": [3]}'])) == 2,
    "training, then inference": _saved,
    "another processor": lambda offers: str(offers["to"]([1.0, 2.0], "cpu:1").exp().device) == "cpu:1",
    "several machines": lambda offers: offers["total"](np.sum, [np.ones(2), np.ones(3), np.ones(4)]) == 9,
}
# The table of the lecture "Machine Learning Frameworks": yes, partly, no.
PUBLISHED = {"a library of layers": "~~××~×", "a data-parallel system": "×××××✓", "a framework": "✓✓✓✓✓~"}


def runs(program: Callable[[Offers], bool], offers: Offers) -> bool:
    """Whether a program runs on a system and has the right result."""
    try:
        return bool(program(offers))
    except Exception:  # the system lacks it
        return False


def board(offered: Mapping[str, Offers], predicted: Mapping[str, Any]) -> Flipbook:
    """The table, from runs of the programs: rows are systems, columns are programs.

    `predicted` has rows of "yes" and "no"; a right one lights its place.
    """
    drawing = Drawing(LEFT + WIDE * len(PROGRAMS), 44 + HIGH * len(offered))
    for j, column in enumerate(PROGRAMS):
        for k, part in enumerate(column.split(" ", 1)):
            drawing.text(LEFT + (j + 0.5) * WIDE - 4, 14 + 17 * k, part, anchor="middle", bold=True, room=WIDE)
    words = []
    for i, (name, offers) in enumerate(offered.items()):
        y, row = 44 + i * HIGH, ["yes" if runs(program, offers) else "no" for program in PROGRAMS.values()]
        drawing.text(0, y + 34, name, bold=True, room=LEFT)
        guesses = predicted.get(name, ...)
        guesses = guesses if isinstance(guesses, list | tuple) and len(guesses) == len(row) else [...] * len(row)
        for j, (said, guess, claim) in enumerate(zip(row, guesses, PUBLISHED[name])):
            x, known, good = LEFT + j * WIDE, guess is not ..., str(guess).strip().lower() == said
            stroke = "line" if not known else "good" if good else "bad"
            drawing.rect(x, y, WIDE - 8, HIGH - 8, "leaf-fill" if good else "paper", stroke,
                         thick=3.0 if known else 1.0, round=4, dashes="5 4" if stroke == "bad" else "")
            drawing.text(x + WIDE / 2 - 4, y + 27, "✓" if said == "yes" else "×", size=20.0, bold=True,
                         anchor="middle", fill="good" if said == "yes" else "bad")
            drawing.text(x + WIDE / 2 - 4, y + 47, f"lecture: {claim}", anchor="middle", fill="quiet")
        words.append(f"{name}: " + " ".join("✓" if each == "yes" else "×" for each in row))
    return Flipbook("three systems, six programs", [[Page(drawing, "✓: the small program runs. ×: it stops.")]],
                    words="\n".join(words))
