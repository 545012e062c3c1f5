"""Updates of optimizers in eager mode: one program changes all parameters of a group.

The program is traced from the optimizer's own `update`, in the first step of its kind: with these options, and with
gradients for these parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from ..compile.functions.recording import Recording
from ..compile.running.executors import is_profiled
from ..compile.running.profiler import inside
from ..compile.running.program import Program
from ..compile.running.targets import HOST
from ..core.programs import PROGRAMS
from ..core.tensor import Tensor
from ..devices.registry import REGISTRATIONS
from ..support.errors import MinigradError
from .calls import new_kind


class Updates:
    """The programs of a group, by kind of step, and the tensors that they use; None where a step has no program."""

    def __init__(self, held: list[Tensor]) -> None:
        self.held = held
        self.kinds: dict[Any, Recording | None] = {}


def update(optimizer: Any, group: Any) -> bool:
    """Run `optimizer.update(group)` as a program; False if that is not possible, and nothing was changed."""
    moves = _moves(group)
    if moves is None or REGISTRATIONS:
        return False
    held = [*group.parameters, group.rate]
    for state in group.state.values():
        held += [state] if isinstance(state, Tensor) else state
    updates = group.updates
    if updates is None or len(updates.held) != len(held) or not all(map(is_, updates.held, held)):
        updates = group.updates = Updates(held)
    if not _are_plain(held):
        return False
    try:
        key = moves, tuple(group.options.items())
        recording = updates.kinds[key]
    except KeyError:
        recording = new_kind(updates.kinds, key, partial(_recorded, optimizer, group))
    except TypeError:  # an option that is not hashable
        return False
    if recording is None:
        return False
    if is_profiled():
        with inside(f"update of {type(optimizer).__name__}"):
            recording.run([])
    else:
        recording.run([])
    return True


def _moves(group: Any) -> tuple[bool, ...] | None:
    """Which parameters have gradients; None if a gradient is not an array of its own like that of its parameter."""
    gradients = [p._grad for p in group.parameters]
    for p, g, kind in zip(group.parameters, gradients, group.kinds):
        if g is not None:
            data, like = g._data, p._data
            if data.__class__ is not np.ndarray or g.tracked or g.device is not p.device or p.device is not kind[0]:
                return None
            if data.shape != like.shape or data.dtype is not like.dtype or like.dtype is not kind[1]:
                return None
    there = [g for g in gradients if g is not None]
    if len({id(g) for g in there}) < len(there) or not _are_plain(there):
        return None
    return tuple([g is not None for g in gradients])


def _are_plain(tensors: Iterable[Tensor]) -> bool:
    """Whether each tensor has an array, and no tensor is a view of another one."""
    for t in tensors:
        alias = t.alias
        if t._data.__class__ is not np.ndarray or (alias is not None and alias.base is not None):
            return False
    return True


def _recorded(optimizer: Any, group: Any) -> Recording | None:
    """A step, traced and compiled; if that fails, the step itself runs, and raises the error."""
    try:
        recording = Recording(optimizer.update, (group,), {}, [])
        program = recording.traced.program
    except MinigradError:
        return None
    if not isinstance(program, Program) or program.target is not HOST:
        return None
    del recording.guards, recording.objects  # they keep the optimizer alive
    return recording


PROGRAMS.update = update
