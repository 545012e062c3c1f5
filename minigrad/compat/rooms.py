"""PyTorch's rooms over minigrad, made of the rows of `torch.txt`."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import types
from typing import Any

import numpy as np

import minigrad as mg

from ..core.absent import _missing
from ..devices.registry import Device
from ..nn import init
from ..nn.state import load_tensors, move_tensor
from ..support.source import warn_caller
from ..support.synonyms import Row, hint_for, nearest, rows
from . import data, einops, meanings
from .modules import (
    ADOPTED,
    CONTAINERS,
    Default,
    Kind,
    Listed,
    Module,
    Parameter,
    called_class,
    layer_class,
    made_again,
    shaped_norm,
    within,
)
from .speaking import switch
from .torch_rows import PLAIN, forward_of, function_of, refuse, retitle, words_of
from .training import Function, LRScheduler, Optimizer, Parts, computed, computed_once, plain_class

HOME = f"{__package__}.torch"
_PATHS = {  # the rooms of the table that are not named by their path
    "torch": "", "F": "nn.functional", "init": "nn.init", "rnn": "nn.utils.rnn", "lr_scheduler": "optim.lr_scheduler",
    "mps": "backends.mps",
}
_OURS = {
    "nn": mg.nn, "utils.data": data, "distributions": mg.distributions, "optim": mg.optim,
    "lr_scheduler": mg.optim.lr_scheduler,
}
_REFUSED: dict[tuple[str, str], str] = {}  # by room and name: what to write instead


def _room(path: str) -> Any:
    """The module of a path such as `nn.utils`, with those above it."""
    name = f"{HOME}.{path}".rstrip(".")
    if name not in sys.modules or not (path or hasattr(sys.modules[name], "__path__")):
        module = sys.modules[name] = sys.modules.get(name) or types.ModuleType(name)
        module.__path__ = []
        module.__getattr__ = functools.partial(_lacks, path)  # type: ignore[method-assign]
        parent, _, last = path.rpartition(".")
        setattr(_room(parent) if path else sys.modules[__package__], last or "torch", module)
    return sys.modules[name]


def _lacks(path: str, name: str) -> Any:
    """Raise the error for a name that a room lacks, with what is near it."""
    if name[:2] == "__":
        raise AttributeError(name)
    room = f"torch.{path}".rstrip(".")
    place = "minigrad.nn" if path.startswith("nn") else "minigrad"
    hint = _REFUSED.get((path, name)) or hint_for(place, name)
    near = nearest(name, [each for each in vars(sys.modules[f"{HOME}.{path}".rstrip(".")]) if each[0] != "_"])
    hint = hint or (near and f"did you mean {room}.{near}?")
    raise _missing(f"{room} has no {name!r} in minigrad.compat", name, hint)


def _put(row: Row, room: str, name: str) -> None:
    """Put one name of a row into one room."""
    path = _PATHS.get(room, room)
    places: dict[str, dict[str, Any]] = {"with": PLAIN, "einops": einops.OPERATIONS, "x": {}, "model": {}}
    into = places[room] if room in places else vars(_room(path))
    if room == "aliases":
        _room(name).__getattr__ = functools.partial(getattr, _room(row.expression))
    elif not row.expression and row.kind != "class":
        _REFUSED[path, name] = row.advice(name).replace("  # ", ": ")
        if (name[0].isupper() and room != "x") or room not in ("x", "torch", "model", "F"):
            into.setdefault(name, _refused_class(f"{path}.{name}".lstrip("."), _REFUSED[path, name], f"{HOME}.{path}"))
    elif "." in name:
        cls, method = name.split(".")
        function = function_of(row, name, ours=into[cls].ours)
        _override(into[cls], method, Default(function) if row.kind == "@" else function)
    elif row.kind == "class":
        maker = layer_class if room == "nn" else plain_class
        arguments = function_of(row._replace(expression=row.expression or "()"), name)
        arguments.words = words_of(row)
        into[name] = maker(arguments, getattr(_OURS[room], name), f"{HOME}.{path}")
    elif row.kind == "layer":
        into[name] = called_class(name, function_of(row._replace(expression="()"), name), forward_of(row, name),
                                  f"{HOME}.{path}")
    elif row.signature is None:
        into[name] = eval(row.expression, dict(PLAIN))
    elif room == "x":
        function = function_of(row, name)
        switch(name, property(function) if row.kind == "@" else function)
    else:
        into[name] = function_of(row, name)
        if room == "model":
            setattr(Module, name, into[name])


def _refused_class(name: str, hint: str, home: str) -> type:
    """A class for imports, as a base, and for `isinstance`; it cannot be called."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        return refuse(f"torch.{name}", hint)

    return type(name.rpartition(".")[2], (), {"__new__": __new__, "__module__": home})


def _override(cls: type, name: str, function: Any) -> None:
    """Give a class a method; a constructor runs behind the one that is there."""
    if name != "__init__":
        takes_self = isinstance(function, Default) or function.__code__.co_varnames[:1] == ("self",)
        setattr(cls, name, function if takes_self else staticmethod(function))
        return
    before = cls.__init__  # type: ignore[misc]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        before(self, *args, **kwargs)
        function(self, *args, **kwargs)

    setattr(cls, name, __init__)


torch, F = _room(""), _room("nn.functional")
PLAIN.update({name: each for name, each in vars(meanings).items() if name[0] != "_"})
PLAIN.update(
    mg=mg, math=math, np=np, init=init, torch=torch, F=F, lr_scheduler=_room("optim.lr_scheduler"), types=types,
    contextlib=contextlib, functools=functools, Parameter=Parameter, shaped_norm=shaped_norm, collate=data.collate,
    Listed=Listed, within=within, load_tensors=load_tensors, retitle=retitle, MinigradError=mg.MinigradError,
    computed=computed, computed_once=computed_once, split_at_random=data.split_at_random, refuse=refuse,
    made_again=made_again, Function=Function, Kind=Kind, Device=Device,
)
for _row in rows():
    for _name in _row.names:
        for _each in _row.rooms:
            _put(_row, _each, _name)


# What the table cannot say --------------------------------------------------------------------------------------------


class Generator(mg.random.Generator):
    """Random numbers with a state of their own."""

    def __init__(self, device: Any = None) -> None:
        super().__init__(0)

    def manual_seed(self, seed: int) -> Any:
        self.seed(seed)
        return self


def _data(x: Any) -> Any:
    """The values in the same memory; as in PyTorch, a gradient that needs the old ones raises no error."""
    data = x.detach()
    data.alias.linked = None
    return data


def _set_data(x: Any, value: Any) -> None:
    if value.shape != x.shape:
        refuse(f"x.data = a tensor of shape {value.shape}, not {x.shape}", "a new parameter")
    if value.dtype is not x.dtype:
        move_tensor(x, value.dtype)
    with mg.no_grad():
        _leave_views(x)
        _data(x)[...] = value


def _leave_views(x: Any) -> None:
    """Let the tensors that share the memory of a tensor share a copy instead: `x.data = value` does not change them."""
    views = [view for each in (x.alias.views if x.alias else ()) if (view := each()) is not None]
    if views and x.alias.base is None and x._data.__class__ is x.device.ndarray:
        old = mg.copy(x.detach())
        for view in views:
            now = old
            for op, attrs in view.alias.chain:
                now = op.apply(now, **attrs)
            view._data, view.alias = now._data, now.alias
        x.alias = None


def _pretrained(cls: Any, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
    made = cls(*embeddings.shape, **options)
    made.weight = Parameter(embeddings, requires_grad=not freeze)
    return made


def _set_require_grad(x: Any, value: Any) -> None:
    warn_caller("x.require_grad changes nothing, in PyTorch too: the attribute is requires_grad")


def _offer(path: str, *classes: type) -> None:
    """Put classes into a room."""
    for each in classes:
        each.__module__ = f"{HOME}.{path}".rstrip(".")
        setattr(_room(path), each.__name__, each)


switch("require_grad", property(lambda x: False, _set_require_grad))
switch("data", property(_data, _set_data))
Device.type = property(lambda self: self.kind)  # type: ignore[attr-defined]
_offer("", Generator)
_offer("nn", *CONTAINERS)
_offer("utils.data", *data.PUBLIC)
_offer("optim", Optimizer)
_offer("optim.lr_scheduler", LRScheduler)
_offer("autograd", Function)
torch.optim.lr_scheduler._LRScheduler = LRScheduler
ADOPTED.update({getattr(mg.nn, name): getattr(torch.nn, name) for name in ("Linear", "LayerNorm", "Dropout")})
torch.nn.Embedding.from_pretrained = classmethod(_pretrained)
Module._parameters = property(lambda self: Parts(self, self.named_parameters(recurse=False)))  # type: ignore[attr-defined]
Module._buffers = property(lambda self: Parts(self, self.named_buffers(recurse=False)))  # type: ignore[attr-defined]
Module._modules = property(lambda self: Parts(self, self.named_children()))  # type: ignore[attr-defined]
with contextlib.suppress(ImportError):  # einops is not installed
    einops.register()
