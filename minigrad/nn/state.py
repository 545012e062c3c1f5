"""Writes values into existing tensors: loads a state, and moves tensors between devices and dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.mode import no_grad
from ..core.node import Leaf
from ..core.tensor import Tensor, as_tensor
from ..support.errors import ConversionError, DtypeError


class StateError(ConversionError):
    """A saved state does not fit the module or optimizer that it is loaded into; nothing was loaded.

    The message lists all names that are missing, all that are unknown, and all tensors whose shapes differ.

    >>> import minigrad as mg
    >>> mg.nn.Linear(2, 3).load_state_dict({"weight": mg.ones((3, 3)), "scale": mg.ones(1)})
    Traceback (most recent call last):
    minigrad.nn.state.StateError: load_state_dict: the state does not fit Linear, and nothing was loaded
      missing:    bias
      unexpected: scale
      mismatched: weight is (3, 3) in the state and (3, 2) here
    ...

    Hint: load into a model that is built with the same sizes, or change the names and shapes in the dict first;
    `strict=False` loads what both have.
    """


class Loaded(NamedTuple):
    """The names that were missing in a loaded state, and those that the module does not have."""

    missing: list[str]
    unexpected: list[str]


def load_tensors(
    own: dict[str, Tensor], state: dict[str, Any], into: str, strict: bool = True, lacks: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Loaded:
    """Copy every value of a state into the tensor of the same name, or raise without having changed any.

    `lacks` and `extra` are further names that are missing in the state, or unknown here.
    """
    given = {name: v if isinstance(v, Tensor) else as_tensor(np.asarray(v)) for name, v in state.items()}
    missing = [*lacks, *[name for name in own if name not in given]]
    unexpected = [*extra, *[name for name in given if name not in own]]
    mismatched = [
        f"{name} is {given[name].shape} in the state and {tensor.shape} here"
        for name, tensor in own.items()
        if name in given and given[name].shape != tensor.shape
    ]
    if mismatched or (strict and (missing or unexpected)):
        head = f"load_state_dict: the state does not fit {into}, and nothing was loaded"
        raise StateError(misfits(head, missing=missing, unexpected=unexpected, mismatched=mismatched))
    found = [name for name in own if name in given]
    write([own[name] for name in found], [given[name].detach() for name in found])  # type: ignore[attr-defined]
    return Loaded(missing, unexpected)


def misfits(head: str, **entries: list[str]) -> str:
    """A message with a line for each kind of entries that do not fit.

    >>> print(misfits("nothing was loaded", missing=["weight", "bias"], unexpected=[]))
    nothing was loaded
      missing:    weight, bias
    """
    return "\n".join([head, *[f"  {what + ':':11} {', '.join(names)}" for what, names in entries.items() if names]])


def check_complete(state: dict[str, Any], names: Iterable[str], owner: str) -> None:
    """Raise an error if a state lacks some of these names.

    >>> check_complete({"scale": 1.0}, ["scale"], "a GradScaler")
    """
    lost = [name for name in names if name not in state]
    if lost:
        raise ConversionError(f"load_state_dict: the state lacks {', '.join(lost)}, of {owner}")


def write(tensors: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    """Write values into existing tensors, without gradients."""
    with no_grad():
        for tensor, value in zip(tensors, values):
            tensor[...] = like(value, tensor)  # type: ignore[index]


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor on the device of another; itself if it is there already."""
    return tensor if tensor.device is other.device else tensor.to(other.device)  # type: ignore[attr-defined, no-any-return]


def like(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor on the device and in the dtype of another; itself if it has both already."""
    moved = beside(tensor, other)
    return moved if moved.dtype is other.dtype else moved.astype(other.dtype)  # type: ignore[attr-defined, no-any-return]


def move_tensor(tensor: Tensor, target: Any) -> None:
    """Move a tensor object and its gradient to another device, or, if it holds floats, to another float dtype."""
    if not tensor.is_leaf:
        raise ConversionError(
            f"to: a tensor of shape {tensor.shape} that an operation made cannot be moved in place",
            hint="keep results of operations out of a module's attributes, or detach() them",
        )
    with no_grad():
        moved = tensor.detach().to(target)  # type: ignore[attr-defined]
        if moved._data is tensor._data:
            return
        if moved.dtype is not tensor.dtype and (tensor.dtype.kind != "f" or moved.dtype.kind != "f"):
            if tensor.dtype.kind != "f":
                return
            raise DtypeError(f"to: parameters stay floats, and {moved.dtype} is not a float dtype",
                             expect="a device, or a float dtype")
        gradient = None if tensor.grad is None else like(tensor.grad, moved)
    tensor._data, tensor.device, tensor.alias = moved._data, moved.device, None
    tensor.node = Leaf(tensor) if tensor.tracked else None
    tensor.grad = gradient
