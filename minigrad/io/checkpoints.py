"""Checkpoints: everything that a training run needs to continue as if it had never been interrupted.

A checkpoint is one safetensors file: the tensors under their names (`model.0.weight`), and in the metadata, as JSON,
everything else.  Any program that reads safetensors can read the weights, and the file contains no code.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..compile.save.codec import Slot, decoded, encoded, filled, slots
from ..core.tensor import Tensor, from_host
from ..devices import as_device
from ..nn.state import misfits
from ..ops.random import DEFAULT_GENERATOR
from ..optim.optimizer import Optimizer
from ..support.errors import FileError, MinigradError
from ..support.words import a_type
from .tensors import SafetensorsFile, save_file

FORMAT = 1
KEY = "minigrad.checkpoint"  # in the metadata
NAME = re.compile(r"step-(\d+)\.safetensors")
DAMAGED = ".damaged"  # appended to the name of a file that is damaged
FAULTS = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, MinigradError)

Load = Callable[[Any], Any]


def save_checkpoint(path: str | os.PathLike[str], step: int = 0, **parts: Any) -> None:
    """Write the state of a training run to a file: all of it, or nothing.

    A part is an object with `state_dict()` (a model, an optimizer, a schedule, a loader ...), a random generator of
    minigrad or NumPy, or a dict of numbers, strings and tensors.  minigrad's default generator is always included.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/last.safetensors"
    >>> model = mg.nn.Linear(2, 3)
    >>> optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
    >>> mg.io.save_checkpoint(path, step=7, model=model, optimizer=optimizer, place={"epoch": 2})
    >>> place = {"epoch": 0}
    >>> mg.io.load_checkpoint(path, model=model, optimizer=optimizer, place=place), place
    (7, {'epoch': 2})
    """
    arrays: dict[str, Any] = {}
    kinds: list[str] = []
    numbered = {name: _numbered(_access(name, part)[0](), name, arrays, kinds) for name, part in _all(parts).items()}
    data = {
        "format": FORMAT,
        "minigrad": sys.modules["minigrad"].__version__,
        "step": _whole(step),
        "parts": encoded(numbered, "the checkpoint"),
        "arrays": [[name, kind, zlib.crc32(_bytes(a))] for (name, a), kind in zip(arrays.items(), kinds)],
    }
    save_file(arrays, path, {KEY: json.dumps(data, allow_nan=False)})


def load_checkpoint(path: str | os.PathLike[str], **parts: Any) -> int:
    """Restore all parts from a checkpoint and return its step; all of them are restored, or none.

    The parts must be the ones that were saved.  A dict receives the saved items.
    """
    step, states = read_checkpoint(path)
    return _taken_over(Path(path), step, states, parts)


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[int, dict[str, Any]]:
    """The step of a checkpoint and the state of each part; an error if the file is damaged or not a checkpoint."""
    with SafetensorsFile(path) as file:
        if KEY not in file.metadata:
            raise FileError(f"{path} is not a checkpoint", hint="mg.io.load_file(path) reads a file of weights")
        try:
            data = json.loads(file.metadata[KEY])
            if data["format"] != FORMAT:
                raise FileError(f"{path} is a checkpoint of another format", expect=FORMAT, actual=data["format"])
            tree = decoded(data["parts"])
            values = [_checked(file, name, kind, crc) for name, kind, crc in data["arrays"]]
            if tree.__class__ is not dict or sorted(slots(tree)) != list(range(len(values))):
                raise ValueError("its tensors are not those that its list names")
            return _whole(data["step"]), filled(tree, values)
        except FileError:
            raise
        except FAULTS as error:
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise FileError(f"the checkpoint {path} is damaged: {why}") from error


def _checked(file: SafetensorsFile, name: str, kind: str, crc: int) -> Any:
    array = file.array(name)
    if zlib.crc32(_bytes(array)) != crc:
        raise FileError(f"the checkpoint {file.path} is damaged: the bytes of {name!r} are not those that were saved")
    return from_host(array, as_device("cpu")) if kind == "tensor" else array


def _taken_over(path: Path, step: int, states: dict[str, Any], parts: dict[str, Any]) -> int:
    """Load the state of every part; if one does not fit, the parts before it get their old state back."""
    everything = _all(parts)
    missing, unexpected = [n for n in everything if n not in states], [n for n in states if n not in everything]
    if missing or unexpected:
        head = f"the checkpoint {path} has other parts, and nothing was loaded"
        raise FileError(misfits(head, missing=missing, unexpected=unexpected))
    # A schedule computes the rate from its count, and a jitted step rounds differently.  So the optimizer, with the
    # rate that it had, is loaded after the schedule.
    order = sorted(everything, key=lambda name: isinstance(everything[name], Optimizer))
    access = {name: _access(name, everything[name]) for name in order}
    before = {name: state_of() for name, (state_of, _) in access.items()}  # now: a part may change another one
    try:
        for name, (_, load) in access.items():
            load(states[name])
    except FAULTS:
        for name, (_, load) in access.items():
            load(before[name])
        raise
    return step


class Checkpoints:
    """The newest `keep` checkpoints of one training run, in a folder.  The parts are those of `save_checkpoint`.

    `resume()` restores the newest undamaged checkpoint and returns its step; `save(step)` writes a new one.  As a
    callback of `mg.train.fit`, the object saves after every `every` steps.

    >>> import tempfile
    >>> folder, w = tempfile.mkdtemp(), mg.asarray([1.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.5)
    >>> checkpoints = mg.io.Checkpoints(folder, keep=2, optimizer=optimizer, weights={"w": w})
    >>> checkpoints.resume()
    0
    >>> for step in (1, 2, 3):
    ...     checkpoints.save(step)
    >>> checkpoints
    <checkpoints of steps 2, 3>
    >>> mg.io.Checkpoints(folder, optimizer=optimizer, weights={}).resume()
    3
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3, every: int = 0, **parts: Any) -> None:
        if keep.__class__ is not int or keep < 1:
            raise FileError(f"Checkpoints: keep is a whole number, 1 or more, not {keep!r}")
        for name, part in _all(parts).items():
            _access(name, part)
        self.folder, self.keep, self.every, self.parts = Path(folder), keep, every, parts
        self.folder.mkdir(parents=True, exist_ok=True)
        self.continued = False  # whether this run has written or read here; if not, the checkpoints are another run's

    def steps(self) -> list[int]:
        """The steps that have a checkpoint."""
        found = [NAME.fullmatch(path.name) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """The path of a step's checkpoint."""
        return self.folder / f"step-{step:08d}.safetensors"

    def save(self, step: int) -> None:
        """Write a checkpoint, and delete the oldest if there are too many."""
        later = [s for s in self.steps() if s > step]
        if later and not self.continued:
            raise FileError(
                f"{self.folder} has a checkpoint of step {later[-1]} already, of a run that this one does not continue",
                hint="checkpoints.resume() before the first step, or another folder",
            )
        self.continued = True
        save_checkpoint(self.path(step), step, **self.parts)
        others = [s for s in self.steps() if s != step]
        for old in others[: max(0, len(others) + 1 - self.keep)]:
            self.path(old).unlink(missing_ok=True)

    def resume(self) -> int:
        """Restore all parts from the newest undamaged checkpoint and return its step; 0 if there is no checkpoint.

        A damaged checkpoint is renamed, with a warning.
        """
        self.continued = True
        steps = self.steps()
        for step in reversed(steps):
            try:
                found, states = read_checkpoint(self.path(step))
            except FileError as error:
                warnings.warn(f"{str(error).partition(chr(10))[0]}; it was renamed", stacklevel=2)
                self.path(step).rename(f"{self.path(step)}{DAMAGED}")
                continue
            return _taken_over(self.path(step), found, states, self.parts)
        if steps:
            raise FileError(f"all checkpoints in {self.folder} are damaged")
        return 0

    def log(self, step: int, **numbers: Any) -> None:
        """Called by `mg.train.fit` after each step: save if the step is a multiple of `every`."""
        if self.every and step % self.every == 0 and step not in self.steps():
            self.save(step)

    def __repr__(self) -> str:
        return f"<checkpoints of steps {', '.join(map(str, self.steps())) or 'none'}>"


# Parts ---------------------------------------------------------------------------------------------------------------


def _all(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts, and the default generator of random numbers."""
    if "random" in parts:
        raise FileError('the name "random" is taken by minigrad\'s default generator, which is always saved',
                        hint="another name")
    return {**parts, "random": DEFAULT_GENERATOR}


def _access(name: str, part: Any) -> tuple[Callable[[], Any], Load]:
    """The functions that read and restore the state of a part."""
    if hasattr(part, "state_dict") and hasattr(part, "load_state_dict"):
        return part.state_dict, part.load_state_dict
    if hasattr(part, "get_state") and hasattr(part, "set_state"):
        return part.get_state, part.set_state
    if isinstance(part, np.random.Generator):
        bits = part.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state)
    if isinstance(part, dict):

        def fill(state: dict[str, Any]) -> None:
            part.clear()
            part.update(state)

        return lambda: dict(part), fill
    raise FileError(
        f"a checkpoint cannot hold {name!r}, {a_type(part)}",
        expect="an object with state_dict() and load_state_dict(), a random generator, or a dict",
    )


def _numbered(value: Any, path: str, arrays: dict[str, Any], kinds: list[str]) -> Any:
    """The same containers with slots in place of tensors, which go to `arrays` under names that say where they were."""
    if isinstance(value, (Tensor, np.ndarray)):
        kinds.append("tensor" if isinstance(value, Tensor) else "array")
        while path in arrays:
            path += "'"
        arrays[path] = value.detach().numpy_copy() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]
        return Slot(len(arrays) - 1)
    if isinstance(value, Mapping):
        return {key: _numbered(v, f"{path}.{key}", arrays, kinds) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_numbered(v, f"{path}.{i}", arrays, kinds) for i, v in enumerate(value)]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).view(np.uint8).data if array.size else b""


def _whole(step: Any) -> int:
    if not hasattr(step, "__index__") or step.__index__() < 0:
        raise FileError(f"a step is a whole number, 0 or more, not {step!r}")
    return int(step.__index__())
