"""The small real data sets of minigrad; `sets/THIRD_PARTY.md` names their sources and licences.

Each has a fixed split into training and test data.  No setting of an example was chosen by its test score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..ops.creation import asarray
from ..support.source import PARSING
from .dataset import TensorDataset, order
from .files import Table

FOLDER = Path(__file__).parent / "sets"
SPLIT = 2026  # the seed of all splits


class Graph(NamedTuple):
    """A graph: its edges in both directions (2, edges), and the class of each node."""

    edges: Tensor
    labels: Tensor


def digits() -> tuple[TensorDataset, TensorDataset]:
    """Handwritten digits for training (1,437) and for testing (360): pictures of 1 × 8 × 8 from 0 to 1, and labels.

    The digits of all writers are in both parts.

    >>> train, test = mg.data.digits()
    >>> picture, label = train[0]
    >>> len(train), len(test), picture.shape
    (1437, 360, (1, 8, 8))
    """
    with PARSING, np.load(FOLDER / "digits.npz") as file:  # NumPy parses the header of an array as Python
        images, labels = file["images"][:, None].astype(np.float32) / 16, file["labels"].astype(np.int64)
    train, test = _split(360, len(labels))
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def names() -> tuple[list[str], list[str]]:
    """First names for training (4,647) and for testing (516).

    >>> train, test = mg.data.names()
    >>> len(train), len(test), "minnie" in train
    (4647, 516, True)
    """
    lines = (FOLDER / "names.txt").read_text(encoding="utf-8").split()
    train, test = _split(516, len(lines))
    return [lines[i] for i in train], [lines[i] for i in test]


def karate() -> Graph:
    """The karate club: which of its 34 members met, and which part each joined when it split, 0 or 1.

    The two parts formed around member 0, the teacher, and member 33, the president.

    >>> edges, labels = mg.data.karate()
    >>> edges.shape, labels[0].item(), labels[33].item()
    ((2, 156), 0, 1)
    """
    pairs = np.loadtxt(FOLDER / "karate.txt", dtype=np.int64).T
    labels = np.zeros(34, dtype=np.int64)
    labels[[9, 14, 15, 18, 20, *range(22, 34)]] = 1
    return Graph(asarray(np.concatenate([pairs, pairs[::-1]], axis=1)), asarray(labels))


def airfoil() -> tuple[Table, Table]:
    """The noise of wings in a wind tunnel, `pressure` in dB, and five causes, for training (1,203) and testing (300).

    >>> train, test = mg.data.airfoil()
    >>> train
    Table(1,203 rows: frequency, angle, chord, velocity, thickness, pressure)
    """
    path = FOLDER / "airfoil.csv"
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    train, test = _split(300, len(rows))
    return Table(dict(zip(names, rows[train].T))), Table(dict(zip(names, rows[test].T)))


def _split(held_out: int, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The numbers of the items for training, and of those for testing."""
    shuffled = order(count, SPLIT)
    return shuffled[held_out:], shuffled[:held_out]
