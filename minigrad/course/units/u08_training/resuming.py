"""Unit 08: a training that is stopped and continued: what a checkpoint has to hold, and what is missing in three."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from .... import nn, optim
from .... import random as mg_random
from ....core.tensor import Tensor
from ....data import DataLoader, TensorDataset, digits
from ....io.checkpoints import load_checkpoint, save_checkpoint
from ....ops.losses import cross_entropy
from ....support.errors import FileError
from ....viz.curves import curves
from ....viz.drawing import Drawing
from ....viz.flipbook import Flipbook, Knob, Page
from ...compare import Difference
from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask, mistake
from .about import UNIT
from .steps import ActingTask

STOP, MORE = 20, 20  # steps before the checkpoint, and after it
PARTS = {  # what a checkpoint may lack -> what is then lost
    "optimizer": "the running means of Adam begin at 0 again",
    "random": "dropout draws other masks",
    "loader": "the epoch begins again, so some pictures come twice",
    "schedule": "the learning rate begins at its first value again",
}


class Training:
    """A training of the digits with dropout, Adam, a falling rate, and a loader that shuffles.

    It begins with the weights and random numbers of a seed.
    """

    def __init__(self, seed: int = 0) -> None:
        mg_random.seed(seed)
        images, labels = digits()[0].arrays
        self.model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 10))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = optim.lr_scheduler.StepLR(self.optimizer, step_size=8, gamma=0.6)
        self.loader = DataLoader(TensorDataset(images.reshape(-1, 64), labels), 48, shuffle=True)
        self.losses: list[float] = []
        self.labels: list[list[int]] = []  # the first labels of each batch

    def go_on(self, steps: int) -> None:
        """Make some steps."""
        while steps > 0:
            for images, labels in islice(self.loader, steps):
                self._step(images, labels)
                steps -= 1
        self.random = mg_random.get_state()

    def _step(self, images: Tensor, labels: Tensor) -> None:
        self.optimizer.zero_grad()
        loss = cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(float(loss.item()))
        self.labels.append(labels[:5].tolist())

    def parts(self) -> dict[str, Any]:
        """Everything that a checkpoint has to hold; the random numbers of minigrad are saved always."""
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule, "loader": self.loader}


class Resumed(NamedTuple):
    """The steps after a checkpoint: the losses, and the first labels of each batch."""

    losses: list[float]
    labels: list[list[int]]


def resumed(
    parts_of: Callable[[Any], dict[str, Any]], seed: int = 0, other: int = 99, forget_random: bool = False
) -> Resumed:
    """Stop a training, save the parts of it, and continue with another training into which they are loaded."""
    second, first = Training(other), stopped(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.safetensors")
        mg_random.set_state(first.random)
        save_checkpoint(path, step=STOP, **parts_of(first))
        load_checkpoint(path, **parts_of(second))
    if forget_random:
        mg_random.seed(other)
    second.go_on(MORE)
    return Resumed(second.losses, second.labels)


@cache
def stopped(seed: int) -> Training:
    """A training after its first steps.  A checkpoint of it does not change it."""
    training = Training(seed)
    training.go_on(STOP)
    return training


@cache
def uninterrupted(seed: int = 0) -> Training:
    """The same training without a stop."""
    whole = Training(seed)
    whole.go_on(STOP + MORE)
    return whole


@cache
def without(part: str, seed: int = 0) -> Resumed:
    """A training that continues without one of its parts."""
    if part == "random":
        return resumed(Training.parts, seed, forget_random=True)
    return resumed(lambda training: {name: each for name, each in training.parts().items() if name != part}, seed)


def resuming() -> Flipbook:
    """The curve of a training that goes on from a checkpoint, beside the one that was never stopped."""
    pages = [[_page(name, "everything" if not name else f"{name} left out", resumed(Training.parts) if not name
                    else without(name))] for name in ("", *PARTS)]
    settings = ("nothing", *PARTS)
    words = "\n".join(page.say for (page,) in pages)
    return Flipbook(f"a training that was stopped after {STOP} steps, and continued", pages,
                    (Knob("left out", settings, choice=True),), words=words)


def _page(left_out: str, name: str, found: Resumed) -> Page:
    whole = uninterrupted().losses
    drawing = Drawing(700, 260)
    before = [(float(i), loss) for i, loss in enumerate(whole, 1)]
    after = [(float(i), loss) for i, loss in enumerate(found.losses, STOP + 1)]
    chart = curves(drawing, (0, 0, 540, 260), {"never stopped": before, "continued": after}, "loss of each batch")
    drawing.path([(chart.at(STOP + 0.5, 0)[0], 24), (chart.at(STOP + 0.5, 0)[0], 246)], "quiet", dashes="3 3")
    first = parted(found.losses)
    said = "nothing is left out: the curves are equal to the last bit." if first is None else (
        f"{left_out} is left out: {PARTS[left_out]}. Step {first} is the first with another loss.")
    return Page(drawing, said, (("the first steps after the stop", ("table", table([found], ["continued"]))),))


def parted(losses: Sequence[float]) -> int | None:
    """The first step whose loss differs from that of the training that was never stopped."""
    differ = [i for i, (one, two) in enumerate(zip(losses, uninterrupted().losses[STOP:]), STOP + 1) if one != two]
    return differ[0] if differ else None


def table(found: Sequence[Resumed], names: Sequence[str], seed: int = 0) -> dict[str, Any]:
    """The losses and the first labels of the first three steps after the stop."""
    whole = uninterrupted(seed)
    known = [Resumed(whole.losses[STOP:], whole.labels[STOP:]), *found]
    rows = []
    for i in range(3):
        for name, each in zip(("never stopped", *names), known):
            rows.append([str(STOP + 1 + i), name, f"{each.losses[i]:.6f}", " ".join(map(str, each.labels[i]))])
    return {"head": ["step", "", "loss", "first labels"], "rows": rows}


# ---- the tasks -------------------------------------------------------------------------------------------------------


@UNIT.task
class CheckpointParts(ActingTask):
    """`checkpoint_parts(training)` returns a dictionary of everything that a checkpoint has to hold."""

    name = "checkpoint_parts"
    points = 0
    minutes = 10
    outcome = "resume"
    otherwise = 'a dictionary of the objects: {"model": training.model, ...}. Which of them change in a step?'
    advice: ClassVar[dict[str, str]] = {
        "has no attribute": "training has model, optimizer, schedule and loader",
        "cannot hold": "the parts are the objects themselves, such as training.model",
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (99,)

    def parameters(self) -> list[str]:
        return ["training"]

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"a training that was stopped after {STOP} steps"

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        def parts_of(training: Training) -> dict[str, Any]:
            parts = program(training)
            if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts):
                hint = 'a dictionary, from names to objects: {"model": training.model, ...}'
                raise Wrong(self.name, f"it returned {written(parts)}", hint)
            if "random" in parts:
                hint = "the random numbers are saved always. Leave this entry out"
                raise Wrong(self.name, 'a part is called "random"', hint)
            return parts

        try:
            return resumed(parts_of, other=seed).losses
        except FileError as error:
            hint = "the parts are the objects themselves, such as training.model"
            raise Wrong(self.name, str(error).partition("\n")[0], hint) from None

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        step = parted(yours)
        if step is None:
            return None
        whole = uninterrupted().losses
        return Difference(f"from step {step} on the losses are others", f"{whole[step - 1]:.6f}, without a stop",
                          f"{yours[step - STOP - 1]:.6f}, continued")

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        return "all losses after the stop are equal to the last bit."

    def correct(self, training: Any) -> Any:
        return Training.parts(training)

    def left_out(self, training: Any, *names: str) -> Any:
        return {name: part for name, part in Training.parts(training).items() if name not in names}

    @mistake("the first loss is right, and then the curves part: the weights are there, but Adam's running means begin "
             "at 0 again. The optimizer is missing")
    def without_optimizer(self, training: Any) -> Any:
        return self.left_out(training, "optimizer")

    @mistake("the weights are right, but other pictures come: the loader is missing. It begins its epoch again")
    def without_loader(self, training: Any) -> Any:
        return self.left_out(training, "loader")

    @mistake("the first losses are right. Then the rate is too large: it fell before the stop, and begins at its first "
             "value again. The schedule is missing")
    def without_schedule(self, training: Any) -> Any:
        return self.left_out(training, "schedule")

    @mistake("the model is missing: the continued training begins with weights of its own")
    def without_model(self, training: Any) -> Any:
        return self.left_out(training, "model")

    @mistake("with the weights alone, three things begin again: Adam's running means, the learning rate, and the epoch "
             "of the loader. What in `training` holds them?")
    def model_alone(self, training: Any) -> Any:
        return {"model": training.model}

    @mistake("two things are missing: where in the epoch the loader is, and how often the rate has fallen")
    def model_and_optimizer(self, training: Any) -> Any:
        return self.left_out(training, "loader", "schedule")

    @mistake("two things are missing: Adam's running means, and how often the rate has fallen")
    def model_and_loader(self, training: Any) -> Any:
        return self.left_out(training, "optimizer", "schedule")

    @mistake("two things are missing: Adam's running means, and where in the epoch the loader is")
    def model_and_schedule(self, training: Any) -> Any:
        return self.left_out(training, "optimizer", "loader")

    @mistake("nothing is continued. Is the dictionary empty, or does it hold copies? What is read from the file goes "
             "into "
             "the copies and is lost. Give the objects themselves: training.model, without state_dict()")
    def copies(self, training: Any) -> Any:
        return {name: part.state_dict() for name, part in Training.parts(training).items()}


@UNIT.task
class Lost(ValueTask):
    """Three trainings were continued, and each lacks one part: which?"""

    name = "lost"
    points = 3
    mistakes = ()
    minutes = 8
    outcome = "resume"
    example = '{"A": "loader", "B": "optimizer", "C": "random"}'
    otherwise = "a dictionary with A, B and C, and for each one of: optimizer, random, loader"

    def vary(self, draw: random.Random) -> None:
        self.names = ["optimizer", "random", "loader"]
        draw.shuffle(self.names)
        self.seed = draw.randrange(1, 9)

    def text(self) -> str:
        return (
            f"Training number {self.seed} was stopped after {STOP} steps and continued three times. Each time **one "
            "part was not restored**: `optimizer` (Adam's running means), `random` (the state of the random numbers, "
            "which dropout draws its masks from) or `loader` (the place in the epoch). "
            "**Which part does each of A, B and C lack?**"
        )

    def given(self) -> dict[str, Any]:
        return {"table": self.picture()}

    def picture(self) -> Flipbook:
        """The three curves beside the one that was never stopped, and the first steps as a table."""
        found = [without(name, self.seed) for name in self.names]
        series = {"never stopped": list(enumerate(uninterrupted(self.seed).losses, 1))} | {
            letter: list(enumerate(each.losses, STOP + 1)) for letter, each in zip("ABC", found)}
        drawing = Drawing(640, 260)
        curves(drawing, (0, 0, 520, 260), {name: [(float(i), y) for i, y in points] for name, points in series.items()},
               "loss of each batch")
        rows = table(found, list("ABC"), self.seed)
        words = "\n".join("  ".join(row) for row in rows["rows"])
        blocks = (("the first steps after the stop", ("table", rows)),)
        return Flipbook("three trainings that were continued", [[Page(drawing, "Compare the losses and the labels.",
                                                                      blocks)]], words=words, wide=True)

    def right(self) -> dict[str, str]:
        return dict(zip("ABC", self.names))

    def explained(self) -> str:
        return ("other labels: the loader. The same labels and another loss at once: the masks of dropout. The first "
                "loss "
                "equal, the second not: the optimizer.")

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given = {str(key).strip().upper(): str(each).strip().lower() for key, each in answer.items()} \
            if isinstance(answer, dict) else {}
        if set(given) != set("ABC") or not set(given.values()) <= set(self.names):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        right = self.right()
        if given == right:
            return self.explained()
        letter = next(each for each in "ABC" if given[each] != right[each])
        said = {
            "optimizer": "without the optimizer the first loss would be right: the same weights, pictures and masks. "
            "Only the step after it would be another",
            "loader": "without the loader the first labels would be others. Compare them",
            "random": "without the random state the labels would be the same, and the loss another at once",
        }
        raise Wrong(self.name, f"{letter} does not lack its {given[letter]}", said[given[letter]])
