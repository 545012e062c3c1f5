"""Unit 08: a training that is stopped and continued: what a checkpoint must hold, and what is missing in three."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any

from minigrad import nn, optim
from minigrad import random as mg_random
from minigrad.data import DataLoader, TensorDataset, digits
from minigrad.io.checkpoints import load_checkpoint, save_checkpoint
from minigrad.support.errors import FileError
from minigrad.viz.flipbook import Flipbook, Knob

from ...compare import Difference
from ...digits import training_step
from ...feedback import Wrong
from ...predicting import Matches
from .about import UNIT
from .acting import ActingTask
from .continuations import Steps, continuation, first_steps

STOP, MORE = 20, 20  # steps before the checkpoint, and after it
PARTS = {  # what a checkpoint may lack -> what is then lost
    "optimizer": "the running means of Adam begin at 0 again",
    "random": "dropout draws other masks",
    "loader": "the epoch begins again, so some pictures come twice",
    "schedule": "the learning rate begins at its first value again",
}


class Training:
    """A training of the digits with dropout, Adam, a falling rate, and a loader that shuffles."""

    def __init__(self, seed: int = 0) -> None:
        mg_random.seed(seed)
        images, labels = digits()[0].arrays
        self.model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 10))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = optim.lr_scheduler.StepLR(self.optimizer, step_size=8, gamma=0.6)
        self.loader = DataLoader(TensorDataset(images.reshape(-1, 64), labels), 48, shuffle=True)
        self.done = Steps([], [])

    def go_on(self, steps: int) -> Training:
        """Make some steps."""
        while steps > 0:
            for images, labels in islice(self.loader, steps):
                self.done.losses.append(float(training_step(self.model, self.optimizer, images, labels).item()))
                self.done.labels.append(labels[:5].tolist())
                self.schedule.step()
                steps -= 1
        self.random = mg_random.get_state()
        return self

    def parts(self, *left_out: str) -> dict[str, Any]:
        """What a checkpoint must hold, without some of it; random numbers are saved always."""
        return {name: getattr(self, name) for name in ("model", *PARTS) if name not in ("random", *left_out)}


@cache
def stopped(seed: int) -> Training:
    """A training after its first steps.  A checkpoint of it does not change it."""
    return Training(seed).go_on(STOP)


@cache
def uninterrupted(seed: int = 0) -> Steps:
    """The steps of a training without a stop."""
    return Training(seed).go_on(STOP + MORE).done


def resumed(parts_of: Callable[[Any], dict[str, Any]], seed: int = 0, forget_random: bool = False) -> Steps:
    """Stop a training, save the parts of it, and continue with another training into which they are loaded."""
    second, first = Training(99), stopped(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.safetensors")
        mg_random.set_state(first.random)
        save_checkpoint(path, step=STOP, **parts_of(first))
        load_checkpoint(path, **parts_of(second))
    if forget_random:
        mg_random.seed(99)
    return second.go_on(MORE).done


@cache
def without(part: str, seed: int = 0) -> Steps:
    """A training that continues without one of its parts."""
    return resumed(lambda training: training.parts(part), seed, part == "random")


def resuming() -> Flipbook:
    """The curve of a training that goes on from a checkpoint, beside the one that was never stopped."""
    pages = []
    for part in ("nothing", *PARTS):
        found = without(part)
        first = parted(found.losses)
        said = f"{part} is left out: {PARTS.get(part, 'the curves are equal to the last bit')}."
        said += f" Step {first} is the first with another loss." if first else ""
        pages.append([continuation(uninterrupted(), {"continued": found}, STOP, said)])
    knob = Knob("left out", ("nothing", *PARTS), choice=True)
    words = "\n".join(page.say for (page,) in pages)
    return Flipbook(f"a training that was stopped after {STOP} steps, and continued", pages, (knob,), words=words)


def parted(losses: Sequence[float]) -> int | None:
    """The first step whose loss differs from that of the training that was never stopped."""
    whole = uninterrupted().losses[STOP:]
    return next((i for i, (one, two) in enumerate(zip(losses, whole), STOP + 1) if one != two), None)


@UNIT.task
class CheckpointParts(ActingTask):
    name, world = "checkpoint_parts", f"a training that was stopped after {STOP} steps"

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        try:
            return resumed(program).losses
        except FileError as error:
            hint = 'the parts are the objects themselves, such as training.model, and none is called "random"'
            raise Wrong(self.name, str(error).partition("\n")[0], hint) from None

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        step, whole = parted(yours), uninterrupted().losses
        return None if step is None else Difference(
            f"from step {step} on the losses are others", f"{whole[step - 1]:.6f}, without a stop",
            f"{yours[step - STOP - 1]:.6f}, continued")

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        super().check(answer, rounds)
        return "all losses after the stop are equal to the last bit."

    def program(self, training: Training) -> Any:
        return training.parts()


@UNIT.task
class Lost(Matches):
    """Three trainings were continued, and each lacks one part: which?"""

    name = "lost"
    def vary(self, draw: random.Random) -> None:
        self.names, self.seed = draw.sample(["optimizer", "random", "loader"], 3), draw.randrange(1, 9)

    def given(self) -> dict[str, Any]:
        return {"table": self.picture()}

    def picture(self) -> Flipbook:
        """The three curves beside the one that was never stopped, and the first steps as a table."""
        found = {letter: without(name, self.seed) for letter, name in zip("ABC", self.names)}
        page = continuation(uninterrupted(self.seed), found, STOP, "Compare the losses and the labels.")
        words = "\n".join(map("  ".join, first_steps(uninterrupted(self.seed), found, STOP)))
        return Flipbook("three trainings that were continued", [[page]], words=words)

    def right(self) -> dict[str, str]:
        return dict(zip("ABC", self.names))
