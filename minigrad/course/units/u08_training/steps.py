"""Unit 08: functions that act on a model: a training step, an evaluation, a file for another program."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from .... import nn, optim
from .... import random as mg_random
from ....core.mode import current_mode, no_grad
from ....core.tensor import Tensor
from ....data import digits
from ....io.onnx.export import export_onnx
from ....io.onnx.load import load_onnx
from ....ops.creation import asarray
from ....ops.losses import cross_entropy
from ....support.packages import how_to_install
from ...compare import Difference, difference, plain, same
from ...feedback import Misused, Wrong, written
from ...tasks import FunctionTask, Mistake, mistake
from .about import UNIT
from .training import train_step


class ActingTask(FunctionTask):
    """A function that changes what it is given.  `effects` runs it in a small world, and the effects are compared.

    The cases are the same for all students, so the effects of known programs are computed once.
    """

    parts: ClassVar[list[str]]  # the names of the effects

    def effects(self, program: Callable[..., Any], *args: Any) -> Any:
        """Run an answer, and return everything that is compared."""
        raise NotImplementedError

    def correct(self, *args: Any) -> Any:
        """A right answer."""
        raise NotImplementedError

    def solution(self) -> Any:
        return self.correct

    def right(self, *args: Any) -> Any:
        return effects_of(type(self), None, args)

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        return super().check(partial(self.effects, answer), 1)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(yours, self.right(*args), self.parts)

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        try:
            return same(yours, effects_of(type(self), known, args))
        except Exception:  # a known mistake may fail on some cases
            return False


@cache
def effects_of(task: type[ActingTask], known: Mistake | None, args: tuple[Any, ...]) -> Any:
    """The effects of the right answer, or of a known mistake."""
    made = task()
    return made.effects(made.correct if known is None else made.wrong(known), *args)


def pictures(count: int, start: int = 0) -> tuple[Tensor, Tensor]:
    """Some digits of the training set as rows of 64 numbers, and their labels."""
    images, labels = [each[start : start + count] for each in digits()[0].arrays]
    return asarray(images.reshape(count, 64)), asarray(labels)


def number_of(name: str, value: Any) -> float:
    """The loss that a step returned."""
    value = plain(value)
    if value is None or np.size(value) != 1:
        raise Wrong(name, f"it returned {written(value)}, not the loss", "return loss, in the last line")
    return float(value.item() if hasattr(value, "item") else value)


# ---- a step ----------------------------------------------------------------------------------------------------------


@UNIT.task
class TrainingStep(ActingTask):
    """`training_step(model, optimizer, images, labels)` makes one step of a training and returns the loss."""

    name = "training_step"
    points = 0
    minutes = 8
    outcome = "step"
    parts: ClassVar[list[str]] = [
        "the weight after step 1", "the weight after step 2", "the loss of step 1", "the loss of step 2", "the "
                                                                                    "gradient"]
    otherwise = "in this order: optimizer.zero_grad(), the loss of model(images), loss.backward(), optimizer.step()"
    advice: ClassVar[dict[str, str]] = {
        "'cross_entropy'": "the loss is mg.cross_entropy(model(images), labels)",
        "'Tensor' object has no attribute 'step'": "the optimizer makes the step: optimizer.step()",
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (0,)

    def _call(self, args: tuple[Any, ...]) -> str:
        return "two steps of one layer, with 32 digits each"

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        mg_random.seed(seed)
        model = nn.Linear(64, 10)
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        losses, weights = [], []
        for number in range(2):
            losses.append(number_of(self.name, program(model, optimizer, *pictures(32, 32 * number))))
            weights.append(model.weight.detach().numpy().copy())
        return *weights, *losses, "there" if model.weight.grad is not None else "cleared"

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(yours[:4], self.right(*args)[:4], self.parts[:4])  # gradients may be cleared at the end too

    def correct(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        return train_step(model, optimizer, images, labels)

    @mistake("zero_grad is missing: backward() adds to the gradients that are there already. So step 2 uses the sum of "
             "both gradients")
    def gradients_kept(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    @mistake("nothing moves, because the optimizer finds no gradient: either loss.backward() is missing, or zero_grad "
             "stands between backward() and step(). zero_grad comes first")
    def cleared_too_late(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        return loss

    @mistake("optimizer.step() is missing: the gradients are computed, and no weight moves")
    def without_step(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        return loss

    @mistake("optimizer.step() comes before backward(): it uses the gradient of the step before, and in step 1 there "
             "is none")
    def step_first(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        loss = cross_entropy(model(images), labels)
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        return loss

    @mistake("the weights are right. But the loss is computed again after the step: return the loss of the forward "
             "pass, which is known already")
    def loss_afterwards(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        train_step(model, optimizer, images, labels)
        return cross_entropy(model(images), labels)

    @mistake("the step is made twice: each batch moves the weights once")
    def twice(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        loss = train_step(model, optimizer, images, labels)
        optimizer.step()
        return loss


# ---- an evaluation ---------------------------------------------------------------------------------------------------


class Watched(nn.Module):
    """A network with batch norm and dropout; it notes whether its forward pass was recorded."""

    def __init__(self) -> None:
        middle = nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.5)
        self.layers = nn.Sequential(nn.Linear(64, 32), *middle, nn.Linear(32, 10))
        self.recorded: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        self.recorded.append("recorded" if current_mode().grad else "not recorded")
        return self.layers(x)  # type: ignore[no-any-return]


@UNIT.task
class ReadDigits(ActingTask):
    """`read_digits(model, images)` returns the digit that a model reads in each image, and leaves no trace in it."""

    name = "read_digits"
    points = 0
    minutes = 10
    outcome = "modes"
    parts: ClassVar[list[str]] = [
        "the digits", "the digits of the first five pictures alone", "the mode of the model afterwards",
        "the running mean of the batch norm afterwards", "the forward pass"]
    otherwise = (
        "note model.training, then model.eval(), then scores = model(images) in `with mg.no_grad():`, then "
        "model.train(before); return scores.argmax(1)"
    )
    advice: ClassVar[dict[str, str]] = {
        "'training'": "model.training says whether the model is in training mode",
        "argument 'dim'": "minigrad has NumPy's names: argmax(1) or argmax(axis=1)",
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield True, 0
        yield False, 0

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"a model in {'training' if args[0] else 'evaluation'} mode, with 40 pictures"

    def effects(self, program: Callable[..., Any], training: bool, seed: int) -> Any:  # type: ignore[override]
        mg_random.seed(seed)
        model = Watched()
        for start in range(0, 256, 64):  # so that the batch norm has seen some pictures
            model(pictures(64, start)[0] * 3.0)
        model.train(training)
        model.recorded.clear()
        images = pictures(40, 300)[0]
        found, alone = (self._read(program(model, part)) for part in (images, images[:5]))
        mode = "training" if model.training else "evaluation"
        norm: Any = model.layers[1]
        return found, alone, mode, norm.running_mean.numpy().copy(), model.recorded[-1] if model.recorded else "none"

    def _read(self, found: Any) -> Any:
        found = plain(found)
        return np.asarray(found) if found is not None else None

    def correct(self, model: Any, images: Any) -> Any:
        before = model.training
        model.eval()
        with no_grad():
            scores = model(images)
        model.train(before)
        return scores.argmax(1)

    @mistake("the model is in training mode when it reads: dropout drops half of the numbers, and batch norm uses the "
             "mean of this batch and changes its running mean. model.eval() comes first")
    def in_training_mode(self, model: Any, images: Any) -> Any:
        with no_grad():
            return model(images).argmax(1)

    @mistake("the model is in training mode when it reads. `mg.no_grad()` only stops the recording: dropout and batch "
             "norm obey model.eval(). You need both")
    def plainly(self, model: Any, images: Any) -> Any:
        return model(images).argmax(1)

    @mistake("the model stays in evaluation mode: the next training step would train without dropout. Note "
             "model.training first, and go back at the end: model.train(before)")
    def stays(self, model: Any, images: Any) -> Any:
        with no_grad():
            return model.eval()(images).argmax(1)

    @mistake("model.train() at the end switches to training mode always, also where the model was in evaluation mode "
             "before. Note model.training first: model.train(before)")
    def always_back(self, model: Any, images: Any) -> Any:
        with no_grad():
            found = model.eval()(images).argmax(1)
        model.train()
        return found

    @mistake("right, but the forward pass is recorded for a backward pass that never comes, which costs time and "
             "memory. Put it into `with mg.no_grad():`")
    def recorded(self, model: Any, images: Any) -> Any:
        before = model.training
        found = model.eval()(images).argmax(1)
        model.train(before)
        return found

    @mistake("the forward pass is recorded: put it into `with mg.no_grad():`. And the mode stays changed: note "
             "model.training first, and go back at the end: model.train(before)")
    def recorded_and_stays(self, model: Any, images: Any) -> Any:
        return model.eval()(images).argmax(1)

    @mistake("the forward pass is recorded: put it into `with mg.no_grad():`. And model.train() switches to training "
             "mode always: note model.training first, and go back with model.train(before)")
    def recorded_and_always_back(self, model: Any, images: Any) -> Any:
        found = model.eval()(images).argmax(1)
        model.train()
        return found

    @mistake("these are the ten scores of each picture. The digit is the place of the largest: scores.argmax(1)")
    def scores(self, model: Any, images: Any) -> Any:
        return self._with(model, images, lambda scores: scores)

    @mistake("that is the largest score. The digit is its place: scores.argmax(1)")
    def largest(self, model: Any, images: Any) -> Any:
        return self._with(model, images, lambda scores: scores.max(1))

    @mistake("axis 0 goes over the pictures. The ten scores of a picture lie along axis 1: scores.argmax(1)")
    def other_axis(self, model: Any, images: Any) -> Any:
        return self._with(model, images, lambda scores: scores.argmax(0))

    @mistake("without an axis, argmax looks for the largest of all numbers: scores.argmax(1)")
    def one_for_all(self, model: Any, images: Any) -> Any:
        return self._with(model, images, lambda scores: scores.argmax())

    def _with(self, model: Any, images: Any, read: Callable[[Any], Any]) -> Any:
        before = model.training
        with no_grad():
            found = read(model.eval()(images))
        model.train(before)
        return found


# ---- a file ----------------------------------------------------------------------------------------------------------


def run_file(path: str, images: Any) -> Any:
    """The outputs of a model in an ONNX file, computed by onnxruntime; where it is not installed, by minigrad."""
    if find_spec("onnxruntime") is None:
        return load_onnx(path)(asarray(images)).detach().numpy()
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: plain(images)})[0]


def engine() -> str:
    """The program that runs files here."""
    return "minigrad's own reader" if find_spec("onnxruntime") is None else "onnxruntime"


FAULTS = np.array([0.125, -0.5, 0.25], "f")  # of the engine of the check, so that it can be seen what is compared


@UNIT.task
class Compared(ActingTask):
    """`compared(model, images, path, run)` writes a model to an ONNX file and returns how far its outputs are off."""

    name = "compared"
    points = 0
    minutes = 10
    outcome = "export"
    parts: ClassVar[list[str]] = ["the largest difference", "the file", "the size of a batch that the file takes"]
    otherwise = "export_onnx(model, path, images), then abs(run(path, images.numpy()) - model(images).numpy()).max()"
    advice: ClassVar[dict[str, str]] = {
        "numpy": "onnxruntime takes and returns NumPy arrays: images.numpy(), and model(images).numpy()",
        "requires_grad": "the outputs of a model: model(images).detach().numpy()",
        "requires a gradient": "the outputs of a model: model(images).detach().numpy()",
        "training mode": "a file cannot train: model.eval() comes first",
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (0,)

    def _call(self, args: tuple[Any, ...]) -> str:
        return "an engine that returns three numbers that are a little off"

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        if find_spec("onnx") is None:
            problem = "the package onnx is not installed here, so no file can be written"
            raise Misused(self.name, problem, f"{how_to_install('onnx')}. The rest of the unit does not need it")
        super().check(answer, rounds)
        return f"the file was run by {engine()}."

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        mg_random.seed(seed)
        model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 10))
        images = pictures(3)[0]

        def run(path: str, given: Any) -> Any:
            outputs = np.array(run_file(path, given))
            outputs[[0, 1, 2], [0, 2, 5]] += FAULTS[: len(outputs)]
            return outputs

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            found = program(model, images, path, run)
            if not os.path.exists(path):
                return found, "not written", 0
            return self._rounded(found), "written", "any" if "(batch" in repr(load_onnx(path)) else "one"

    def _rounded(self, found: Any) -> Any:
        found = plain(found)
        if found is None or np.size(found) != 1 or isinstance(found, bool | np.bool_):
            return written(found)
        return round(float(np.asarray(found).item()), 4)  # two engines add in different orders

    def correct(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: np.abs(far).max())

    def _far(self, model: Any, images: Any, path: Any, run: Any, of: Callable[[Any], Any], examples: Any = None) -> Any:
        model.eval()
        export_onnx(model, path, images if examples is None else examples)
        return of(run(path, images.numpy()) - model(images).detach().numpy())

    @mistake("a negative difference counts too: take abs of each difference, and then the largest, "
             "abs(theirs - ours).max()")
    def with_signs(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: far.max())

    @mistake("that is the mean of the differences. One wrong number of many is still wrong: return the largest")
    def mean(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: np.abs(far).mean())

    @mistake("that is the sum of the differences: return the largest")
    def added(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: np.abs(far).sum())

    @mistake("these are all the differences. One number is asked for, the largest: .max()")
    def all_of_them(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, np.abs)

    @mistake("that says whether they agree. Return the largest difference itself, a number")
    def verdict(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: np.allclose(far, 0, atol=1e-5))

    @mistake("you compare the first picture only: give run all images, and compare all rows")
    def first_only(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: np.abs(far[0]).max())

    @mistake("the model runs on both sides, so the file is never used: run(path, images.numpy()) runs the file")
    def itself(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        return self._far(model, images, path, run, lambda far: 0.0)

    @mistake("the model is in training mode when it is compared: dropout drops half of its numbers. model.eval() comes "
             "first")
    def in_training_mode(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        export_onnx(model.eval(), path, images)
        model.train()
        mg_random.seed(0)
        return np.abs(run(path, images.numpy()) - model(images).detach().numpy()).max()
