"""Unit 08: functions that act on a model: a training step, an evaluation, a file for another program."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from minigrad import nn, optim
from minigrad import random as mg_random
from minigrad.core.mode import current_mode, no_grad
from minigrad.core.tensor import Tensor
from minigrad.io.onnx.export import export_onnx
from minigrad.io.onnx.load import load_onnx
from minigrad.ops.creation import asarray
from minigrad.ops.functional import softmax  # noqa: F401  (in the texts)
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
            found = program(model, optimizer, *batch)
            loss: Any = None if isinstance(found, tuple | list) else plain(found)
            if np.asarray(loss).dtype.kind not in "iuf" or np.size(loss) != 1:
                raise Wrong(self.name, f"it returned {written(found)}, not the loss", "return loss, in the last line")
            losses.append(float(np.asarray(loss).item()))
            weights.append(model.weight.detach().numpy().copy())
        return *weights, *losses

    def program(self, model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss


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
        modes = {each.training for each in (model, model.norm, model.layers, model.layers[3])}
        mode = "mixed" if len(modes) > 1 else "training" if model.training else "evaluation"
        found = None if found is None else np.asarray(found)
        mean: Any = model.norm.running_mean
        return found, mode, mean.numpy().copy(), model.recorded[-1]

    def program(self, model: Any, images: Any) -> Any:
        before = model.training
        model.eval()
        with no_grad():
            scores = model(images)
        model.train(before)
        return scores.argmax(1)


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

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield from [(0,), (1,)]  # with other differences

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
            outputs[[0, 1, 2], [0, 2, 5]] += FAULTS * (1 + seed / 2)
            return outputs

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            found = plain(program(model, in_batches()[0][0][:3], path, run))
            if found is None or np.size(found) != 1 or isinstance(found, bool | np.bool_):
                return written(found), "written"
            # Two engines add in different orders, so the last digits differ.
            return round(float(np.asarray(found).item()), 4), "written" if os.path.exists(path) else "not written"

    def program(self, model: Any, images: Any, path: Any, run: Any) -> Any:
        export_onnx(model.eval(), path, images)
        ours = model(images).detach().numpy()
        return abs(run(path, images.numpy()) - ours).max()
