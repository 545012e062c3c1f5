"""A pole on a cart, kept upright by pushing the cart left or right: policy gradients (REINFORCE).

Many carts run at once.  An episode ends when the pole falls, or after 500 steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import minigrad as mg
from minigrad import nn

MOST = 500
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class CartPole:
    """Carts with poles, each with its position, its speed, the angle of its pole, and how fast that changes."""

    def __init__(self, carts: int, rng: np.random.Generator) -> None:
        self.states = rng.uniform(-0.05, 0.05, (carts, 4))

    def step(self, right: np.ndarray) -> np.ndarray:
        """Push each cart, to the right or the left, for a fiftieth of a second.  Returns which poles stand."""
        _, speed, angle, turning = self.states.T
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (np.where(right, FORCE, -FORCE) + POLE * HALF_LENGTH * turning**2 * sine) / (CART + POLE)
        falling = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
        moving = push - POLE * HALF_LENGTH * falling * cosine / (CART + POLE)
        self.states = self.states + TICK * np.stack([speed, moving, turning, falling], axis=1)
        return (np.abs(self.states[:, 0]) <= 2.4) & (np.abs(self.states[:, 2]) <= np.radians(12))


def play(
    chances: Callable[[mg.Tensor], mg.Tensor], carts: int, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An episode of each cart: its states, its actions, and whether the pole stood, step by step.

    `chances` returns the probability of a push to the right, for the state of each cart.
    """
    world, up = CartPole(carts, rng), np.ones(carts, bool)
    states, actions, stood = np.zeros((most, carts, 4)), np.zeros((most, carts), int), np.zeros((most, carts), bool)
    for t in range(most):
        if not up.any():
            break
        states[t], stood[t] = world.states, up
        with mg.no_grad():
            p = chances(mg.asarray(world.states, dtype=mg.float32)).to("cpu").numpy()
        actions[t] = rng.random(carts) < p
        up &= world.step(actions[t])
    return states, actions, stood


def main(jit: bool = False, quick: bool = False) -> float:
    """Train a policy, and return for how many steps it keeps the pole up, on average over 100 new episodes."""
    rounds, carts, most = (25, 16, 200) if quick else (50, 32, MOST)
    rng = np.random.default_rng(mg.random.integers(0, 1 << 31).item())
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)

    @mg.jit(disable=not jit)
    def chances(states: mg.Tensor) -> mg.Tensor:
        """The probability of a push to the right, for each cart."""
        return mg.softmax(model(states))[:, 1]

    @mg.jit(disable=not jit)
    def learn(states: mg.Tensor, right: mg.Tensor, advantages: mg.Tensor) -> mg.Tensor:
        """Make actions with a good outcome more likely.  Actions that were not taken have an advantage of 0."""
        optimizer.zero_grad()
        loss = (mg.cross_entropy(model(states), right, reduction="none") * advantages).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in (bar := mg.train.progress(range(rounds), "cartpole")):
        states, actions, stood = play(chances, carts, most, rng)
        ahead = np.zeros(carts)
        returns = np.zeros(stood.shape)
        for t in reversed(range(most)):  # how long the pole will stand; later steps count less
            returns[t] = ahead = stood[t] + 0.99 * ahead
        usual = returns[stood]
        advantages = np.where(stood, (returns - usual.mean()) / (usual.std() + 1e-8), 0) / stood.sum()
        learn(mg.asarray(states.reshape(-1, 4), dtype=mg.float32), mg.asarray(actions.reshape(-1)),
              mg.asarray(advantages.reshape(-1), dtype=mg.float32))
        bar.show(steps=stood.sum() / carts)

    return float(play(chances, 100, MOST, rng)[2].sum() / 100)
