"""A karate club splits in two.  Who goes with whom?  A graph convolution predicts it from the choice of two members.

It uses the ties between the 34 members, and the choices of the teacher and the president.  The score counts
the other 32.  The settings are those of the first graph convolutions (T. Kipf, M. Welling, 2017): two labels are
too few to choose others.
"""

from __future__ import annotations

import minigrad as mg
from minigrad import nn


class GCN(nn.Module):
    """Two graph convolutions: each member gets messages from friends, and from friends of friends."""

    def __init__(self, members: int, width: int, parties: int) -> None:
        self.first, self.second = nn.GraphConv(members, width), nn.GraphConv(width, parties)

    def forward(self, members: mg.Tensor, ties: mg.Tensor) -> mg.Tensor:
        return self.second(mg.tanh(self.first(members, ties)), ties)


def main(jit: bool = False, quick: bool = False) -> float:
    """Train it, and return for how many of the others the prediction is right, in percent."""
    ties, labels = mg.data.karate()
    members = mg.eye(34)  # the only feature of a member is its number
    known, others = mg.asarray([0, 33]), mg.arange(1, 33)

    model = GCN(34, 16, 2)
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    @mg.jit(disable=not jit)
    def step() -> mg.Tensor:
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(members, ties)[known], labels[known])
        loss.backward()
        optimizer.step()
        return loss

    for _ in (bar := mg.train.progress(range(100 if quick else 200), "karate_gcn")):
        bar.show(loss=step())

    accuracy = mg.train.Accuracy()
    accuracy.add(model(members, ties)[others], labels[others])
    return 100 * accuracy.value
