"""Updates of optimizers in eager mode: one program changes all parameters of a group.

The program is traced from the optimizer's own `update`, in the first step of its kind: with these options, with
gradients for these parameters, and with tensors of these shapes and dtypes.  Its arguments are the tensors of the
group, so that a new optimizer of the same kind traces and compiles nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from ..compile.functions.latest import Latest
from ..compile.functions.recording import Recording
from ..compile.running.profiler import inside
from ..compile.running.steps import is_profiled
from ..compile.tracing.tracer import Pending
from ..core.mode import current_mode
from ..core.programs import PROGRAMS
from ..core.tensor import Tensor, wrap
from ..devices.registry import REGISTRATIONS
from ..support.errors import MinigradError
from .calls import STATIC, new_kind

Kinds = dict[Any, Recording | None]  # programs by kind of step; None where a step has no program
KINDS: Latest[Kinds] = Latest()


class Updates:
    """The tensors of a group, and the programs that change such tensors: those of all optimizers of this kind."""

    def __init__(self, optimizer: Any, group: Any, held: list[Tensor]) -> None:
        self.held = held
        tensors = [(t.shape, t.dtype, t.device, t.tracked) for t in held]
        self.kinds = KINDS.shared((_settings(optimizer), len(group.parameters), *group.state, *tensors), dict)


def _settings(optimizer: Any) -> Hashable:
    """What its updates may read beside their group: its class, and the plain values of both."""
    entries = [entry for place in (*type(optimizer).__mro__, optimizer) for entry in vars(place).items()]
    return type(optimizer), repr([entry for entry in entries if type(entry[1]) in STATIC])


def update(optimizer: Any, group: Any) -> bool:
    """Run `optimizer.update(group)` as a program; False if that is not possible, and nothing was changed.

    In graph mode, it is recorded as one operation.
    """
    held = group.tensors()
    updates = group.updates
    if updates is None or len(updates.held) != len(held) or not all(map(is_, updates.held, held)):
        updates = group.updates = Updates(optimizer, group, held)
    mode = current_mode()
    gradients = [mode.state.gradient_of(p) for p in group.parameters]
    arguments = [*map(mode.state.stand_in, held), *[g for g in gradients if g is not None]]
    data = np.ndarray if mode.interpreter is None else Pending
    if REGISTRATIONS or len(set(map(id, arguments))) < len(arguments) or not _are_plain(arguments, data):
        return False
    if not _are_alike(group, gradients):
        return False
    key = tuple([g is None for g in gradients]), tuple(group.options.items())
    try:
        recording = updates.kinds[key]
    except KeyError:
        recording = new_kind(updates.kinds, key, partial(_recorded, optimizer, group, arguments))
    except TypeError:  # an option that is not hashable
        return False
    if recording is None:
        return False
    if mode.interpreter is not None:
        mode.interpreter.run_closed(recording, arguments)
        return True
    with inside(f"update of {type(optimizer).__name__}") if is_profiled() else nullcontext():
        recording.run(arguments)
    return True


def _are_alike(group: Any, gradients: Sequence[Tensor | None]) -> bool:
    """Whether each gradient is like its parameter, and all are where the group was made."""
    for p, g, kind in zip(group.parameters, gradients, group.kinds):
        if g is not None:
            data, like = g._data, p._data
            if g.tracked or g.device is not p.device or p.device is not kind[0]:
                return False
            if data.shape != like.shape or data.dtype is not like.dtype or like.dtype is not kind[1]:
                return False
    return True


def _are_plain(tensors: Iterable[Tensor], data: type) -> bool:
    """Whether each tensor has `data` of this class, and no tensor is a view of another one."""
    for t in tensors:
        alias = t.alias
        if t._data.__class__ is not data or (alias is not None and alias.base is not None):
            return False
    return True


def _recorded(optimizer: Any, group: Any, likes: Sequence[Tensor]) -> Recording | None:
    """A step, traced on tensors like these; None if that fails: then the step itself runs, and raises the error."""
    arguments = [wrap(np.zeros(t.shape, t.dtype), t.device) for t in likes]
    try:
        recording = Recording(optimizer.update, (group.on(iter(arguments)),), {}, arguments)
    except MinigradError:
        return None
    if not recording.traced.is_hosted:
        return None
    recording.release_arguments()
    del recording.guards, recording.objects  # they keep the optimizer alive
    return recording


PROGRAMS.update = update
