"""Unit 08: functions that act on a model: a training step, an evaluation, a file for another program."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from minigrad import nn, optim
from minigrad import random as mg_random
from minigrad.core.mode import current_mode, switch
from minigrad.core.tensor import Tensor
from minigrad.io.onnx.export import export_onnx
from minigrad.io.onnx.load import load_onnx
from minigrad.ops.creation import asarray
from minigrad.ops.losses import cross_entropy
from minigrad.support.packages import how_to_install

from ...compare import plain
from ...digits import in_batches
from ...feedback import Misused, Wrong, written
from .about import UNIT
from .acting import ActingTask

FAULTS = np.array([0.125, -0.5, 0.25], "f")  # of the engine in a check, so that it can be seen what is compared


@UNIT.task
class TrainingStep(ActingTask):
    name = "training_step"

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        mg_random.seed(seed)
        model = nn.Linear(64, 10)
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        losses, weights = [], []
        for batch in in_batches()[:2]:
            loss = plain(program(model, optimizer, *batch))
            if loss is None or np.size(loss) != 1:
                raise Wrong(self.name, f"it returned {written(loss)}, not the loss", "return loss, in the last line")
            losses.append(float(np.asarray(loss).item()))
            weights.append(model.weight.detach().numpy().copy())
        return *weights, *losses

    def faulty(self, words: Sequence[str], model: Any, optimizer: Any, images: Any, labels: Any) -> Any:  # type: ignore[override]
        loss: Any = None
        for phase in words or ("zero_grad", "loss", "backward", "step"):
            if phase == "loss":
                loss = cross_entropy(model(images), labels)
            else:
                getattr(loss if phase == "backward" else optimizer, phase)()
        return loss

    faults = (
        ("loss", "backward", "step",
         "zero_grad is missing: backward() adds to the gradients that are there already. So step 2 uses the sum of "
         "both gradients"),
        ("loss", "backward", "zero_grad", "step",
         "nothing moves. Is backward() there, and then step()? Or does zero_grad() stand between them, so that the "
         "optimizer finds no gradient? zero_grad comes first"),
        ("loss", "step", "zero_grad", "backward",
         "optimizer.step() comes before backward(): it uses the gradient of the step before, and in step 1 there is "
         "none"),
        ("zero_grad", "loss", "backward", "step", "loss",
         "the weights are right. But the loss is computed again after the step: return the loss of the forward pass, "
         "which is known already"),
        ("zero_grad", "loss", "backward", "step", "step", "the step is made twice: each batch moves the weights once"),
        ("zero_grad", "loss", "backward", "step", "zero_grad", "loss", "backward", "step",
         "all four phases are run twice for one batch: each batch makes one step"),
    )


class Watched(nn.Module):
    """A network with batch norm and dropout; it notes whether its forward pass was recorded."""

    recorded: ClassVar[list[str]] = []  # of the class, because a student may evaluate a copy of the model

    def __init__(self) -> None:
        self.norm = nn.BatchNorm1d(32)
        self.layers = nn.Sequential(nn.Linear(64, 32), self.norm, nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))
        self.recorded[:] = ["none"]

    def forward(self, x: Tensor) -> Tensor:
        self.recorded.append("recorded" if current_mode().grad else "not recorded")
        return self.layers(x)  # type: ignore[no-any-return]


@UNIT.task
class ReadDigits(ActingTask):
    name = "read_digits"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (True,)
        yield (False,)

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"a model in {'training' if args[0] else 'evaluation'} mode, with 64 pictures"

    def effects(self, program: Callable[..., Any], training: bool) -> Any:  # type: ignore[override]
        mg_random.seed(0)
        model, batches = Watched(), in_batches()
        for images, _ in batches[:4]:  # so that the batch norm has seen some pictures
            model(images * 3.0)
        found = plain(program(model.train(training), batches[4][0]))
        mode = "training" if model.training else "evaluation"
        found = None if found is None else np.asarray(found)
        mean: Any = model.norm.running_mean
        return found, mode, mean.numpy().copy(), model.recorded[-1]

    def faulty(self, words: Sequence[str], model: Any, images: Any) -> Any:  # type: ignore[override]
        before = model.training
        with switch(grad="recorded" in words):
            scores = (model if "trains" in words else model.eval())(images)
        model.train("always back" in words or (before and "stays" not in words))
        read = {"scores": scores, "largest": scores.max(1), "axis 0": scores.argmax(0), "one": scores.argmax()}
        return next((each for word, each in read.items() if word in words), scores.argmax(1))

    faults = (
        ("trains",
         "the model is in training mode when it reads: dropout drops half of the numbers, and batch norm uses the mean "
         "of this batch and changes its running mean. model.eval() comes first"),
        ("trains", "recorded",
         "the model is in training mode when it reads: dropout and batch norm obey model.eval(). And the forward pass "
         "is recorded: `with mg.no_grad():` stops that. You need both"),
        ("stays",
         "the model stays in evaluation mode: the next training step would train without dropout. Note model.training "
         "first, and go back at the end: model.train(before)"),
        ("always back",
         "model.train() at the end switches to training mode always, also where the model was in evaluation mode "
         "before. Note model.training first: model.train(before)"),
        ("recorded",
         "right, but the forward pass is recorded for a backward pass that never comes, which costs time and memory. "
         "Put it into `with mg.no_grad():`"),
        ("stays", "recorded",
         "the forward pass is recorded: put it into `with mg.no_grad():`. And the mode stays changed: note "
         "model.training first, and go back at the end: model.train(before)"),
        ("always back", "recorded",
         "the forward pass is recorded: put it into `with mg.no_grad():`. And model.train() switches to training mode "
         "always: note model.training first, and go back with model.train(before)"),
        ("scores",
         "these are the ten scores of each picture. The digit is the place of the largest: scores.argmax(1)"),
        ("largest",
         "that is the largest score. The digit is its place: scores.argmax(1)"),
        ("axis 0",
         "axis 0 goes over the pictures. The ten scores of a picture lie along axis 1: scores.argmax(1)"),
        ("one",
         "without an axis, argmax looks for the largest of all numbers: scores.argmax(1)"),
    )


def run_file(path: str, images: Any) -> Any:
    """The outputs of a model in an ONNX file, computed by onnxruntime; where it is not installed, by minigrad."""
    if find_spec("onnxruntime") is None:
        return load_onnx(path)(asarray(images)).detach().numpy()
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: plain(images)})[0]


@UNIT.task
class Compared(ActingTask):
    name = "compared"

    def given(self) -> dict[str, Any]:
        return {"run": run_file}

    def check(self, answer: Callable[..., Any], rounds: int = 1) -> str | None:
        if find_spec("onnx") is None:
            problem = "the package onnx is not installed here, so no file can be written"
            raise Misused(self.name, problem, f"{how_to_install('onnx')}. The rest of the unit does not need it")
        super().check(answer, rounds)
        return "the file was run by " + ("onnxruntime." if find_spec("onnxruntime") else "minigrad's own reader.")

    def effects(self, program: Callable[..., Any], seed: int) -> Any:  # type: ignore[override]
        mg_random.seed(seed)
        model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 10))

        def run(path: str, given: Any) -> Any:
            outputs = np.array(run_file(path, given))
            outputs[[0, 1, 2], [0, 2, 5]] += FAULTS
            return outputs

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            found = plain(program(model, in_batches()[0][0][:3], path, run))
            if found is None or np.size(found) != 1 or isinstance(found, bool | np.bool_):
                return written(found), "written"
            # Two engines add in different orders, so the last digits differ.
            return round(float(np.asarray(found).item()), 4), "written" if os.path.exists(path) else "not written"

    def faulty(self, words: Sequence[str], model: Any, images: Any, path: Any, run: Any) -> Any:  # type: ignore[override]
        export_onnx(model.eval(), path, images)
        ours = model.train("training" in words)(images).detach().numpy()
        return eval(words[0] if words else "abs(off).max()", {"off": run(path, images.numpy()) - ours, "np": np})

    faults = (
        ("off.max()",
         "subtract all outputs first. Then take abs of each, because a negative difference counts too, and then the "
         "largest: abs(theirs - ours).max()"),
        ("abs(off).mean()",
         "that is the mean of the differences. One wrong number of many is still wrong: return the largest"),
        ("abs(off).sum()", "that is the sum of the differences: return the largest"),
        ("abs(off)", "these are all the differences. One number is asked for, the largest: .max()"),
        ("np.allclose(off, 0)", "that says whether they agree. Return the largest difference itself, a number"),
        ("abs(off[0]).max()", "you compare the first picture only: give run all images, and compare all rows"),
        ("0.0",
         "the model runs on both sides, so the file is never used: run(path, images.numpy()) runs the file"),
        ("abs(off).max()", "training",
         "the model is in training mode when it is compared: dropout drops half of its numbers. model.eval() comes "
         "first"),
    )
