"""Which library a file speaks: 48 methods of tensors have the same name in PyTorch and here, and not the same meaning.

A file that imports `minigrad.compat` (or `torch`, which the finder answers) speaks PyTorch.  A file that imports only
minigrad speaks minigrad, and so does the library.  A file that imports neither speaks as the file that calls it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core import explain
from ..core.absent import Absent
from ..core.primitive import Casts, Primitive
from ..core.tensor import Tensor
from ..support.source import HOME, in_library
from ..support.synonyms import TORCH

# For the variables of each file: how many there were, and whether it speaks PyTorch (None: it imports neither).
_KNOWN: dict[int, tuple[dict[str, Any], int, bool | None]] = {}


def speaks(frame: FrameType) -> bool:
    """Whether PyTorch's names hold for the code of a frame."""
    room = frame.f_globals
    known = _KNOWN.get(id(room))
    answer = known[2] if known is not None and known[1] == len(room) else _imported(room)
    return answer if answer is not None else _as_called(frame)


def _as_called(frame: FrameType | None) -> bool:
    """The answer of the nearest file that imports one of both; files of the library do not count."""
    while frame is not None:
        if not _is_ours(frame.f_globals):
            answer = _imported(frame.f_globals)
            if answer is not None:
                return answer
        frame = frame.f_back
    return True


def _imported(room: dict[str, Any]) -> bool | None:
    """Whether the file with these variables imports PyTorch's names (True), minigrad alone (False), or neither."""
    known = _KNOWN.get(id(room))
    if known is not None and known[1] == len(room):
        return known[2]
    if len(_KNOWN) > 1000:
        _KNOWN.clear()  # a program that runs text makes new variables each time
    homes = set() if _is_ours(room) else {_home(each) for each in list(room.values())}
    answer = False if _is_ours(room) else True if any(each.startswith("minigrad.compat.torch") for each in homes) else (
        False if any(each.partition(".")[0] == "minigrad" for each in homes) else None)
    _KNOWN[id(room)] = room, len(room), answer
    return answer


def _is_ours(room: dict[str, Any]) -> bool:
    return str(room.get("__name__")).startswith("minigrad.")


def _home(value: Any) -> str:
    """The module of a module, class or function."""
    kind = "__name__" if isinstance(value, ModuleType) else "__module__"
    return str(getattr(value, kind, "")) if isinstance(value, (ModuleType, type, FunctionType)) else ""


class Method:
    """A name of tensors with two meanings: ours, and that of PyTorch in files that speak it."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.ours, self.theirs = ours, theirs

    def __get__(self, instance: Any, owner: type) -> Any:
        if not speaks(sys._getframe(1)):
            return self.ours.__get__(instance, owner)
        if isinstance(self.theirs, property):
            return self.theirs.__get__(instance, owner)
        return self.theirs if instance is None else MethodType(self.theirs, instance)


    def lacks(self, caller: FrameType) -> bool:
        """Whether `dir` leaves the name out for the code of a frame."""
        return isinstance(self.ours, Absent) and not speaks(caller)


class Attribute(Method):
    """The same for a name that is set, too."""

    def __set__(self, instance: Any, value: Any) -> None:
        (self.theirs if speaks(sys._getframe(1)) else self.ours).__set__(instance, value)


METHODS: dict[str, Method] = {}  # the names of tensors with two meanings


def ours(name: str) -> Any:
    """Our meaning of a name of tensors."""
    if name in METHODS:
        return METHODS[name].ours
    return next((vars(base)[name] for base in Tensor.__mro__ if name in vars(base)), None) or Absent("x", name)


def switch(name: str, theirs: Any) -> None:
    """Note PyTorch's meaning of a name of tensors, for files that speak PyTorch."""
    kind = Attribute if isinstance(theirs, property) and theirs.fset else Method
    METHODS[name] = kind(ours(name), theirs)


def activate() -> None:
    """Give tensors both meanings, which is done when PyTorch's names are imported."""
    for name, each in METHODS.items():
        setattr(Tensor, name, each)
    explain.PROMOTIONS[:] = [promote]


def deactivate() -> None:
    """Give tensors only our meanings again."""
    for name, each in METHODS.items():
        if not isinstance(each.ours, Absent):
            setattr(Tensor, name, each.ours)
        elif isinstance(vars(Tensor).get(name), Method):
            delattr(Tensor, name)
    explain.PROMOTIONS.clear()


# Promotion ------------------------------------------------------------------------------------------------------------

# An operator goes through these files from the user's line to the casts: operators, and interpreters.
_WAY = tuple(os.path.join(HOME, *path.split("/")) for path in (
    "core/", "arguments/", "ops/operators.py", "ops/elementwise.py", "ops/elementary.py", "ops/bits.py",
    "ops/declare.py", "ops/write.py", "ops/interop.py", "ops/transfer.py",
    "compile/tracing/", "compile/look/checking.py", "autodiff/checkpointing.py", "train/precision.py",
))
_ORDER = "biuf"


def _of_pytorch(frame: FrameType) -> bool:
    """Whether the file that called an operation speaks PyTorch; operations that call each other have our rules."""
    name = frame.f_code.co_filename
    while name.startswith(_WAY) and frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_code.co_filename
    return name.startswith((TORCH, os.path.dirname(__file__))) or (not in_library(name) and speaks(frame))


def promote(op: Primitive, given: Sequence[Any], lifted: Sequence[Any], casts: Casts) -> Casts:
    """PyTorch's promotion: numbers of NumPy, and tensors without dimensions, do not widen a tensor of their kind."""
    tensors = [x for x in lifted if x.__class__ is Tensor]
    widest = max([_ORDER.index(x.dtype.kind) for x in tensors if x.ndim], default=-1)
    weak = [i for i, x in enumerate(lifted) if x.__class__ is Tensor and not x.ndim and (
        isinstance(given[i], np.generic) or _ORDER.index(x.dtype.kind) <= widest)]
    if not weak or len(weak) == len(tensors) or not _of_pytorch(sys._getframe(1)):
        return casts
    stand_ins = [_NUMBER[x.dtype.kind] if i in weak else x for i, x in enumerate(lifted)]
    common = op.casts(stand_ins).dtype
    return Casts(common, tuple([i for i, x in enumerate(lifted) if x.__class__ is Tensor and x.dtype is not common and (
        op.promotes is None or op._stem(i) in op.promotes)]))


_NUMBER = {"b": True, "i": 1, "u": 1, "f": 1.0}
