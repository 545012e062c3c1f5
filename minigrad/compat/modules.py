"""PyTorch's `nn.Module` over ours: tensors belong to a module if they are registered, and lists of modules do not."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from inspect import signature
from typing import Any
from weakref import WeakValueDictionary

import minigrad as mg

from ..nn.module import BUFFER, PARAMETER, UNSAVED
from ..support.source import warn_caller
from .torch_rows import retitle

NAME = "minigrad.compat.torch.nn"
_PARAMETERS: WeakValueDictionary[int, Any] = WeakValueDictionary()  # what `nn.Parameter` made, by id


class Kind(type):
    """A class that counts objects of other classes, in `counted`, as its instances."""

    counted: tuple[type, ...] = ()

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or (isinstance(x, cls.counted) and cls.has(x))

    def has(cls, x: Any) -> bool:
        """Whether an object of these classes counts."""
        return True


class Parameter(metaclass=Kind):
    """A leaf that a module registers."""

    counted = (mg.Tensor,)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        with mg.no_grad():
            made = mg.asarray(mg.zeros(0) if data is None else data.detach(), copy=True)
        made.requires_grad = requires_grad
        return declared(made)

    @staticmethod
    def has(x: Any) -> bool:
        return id(x) in _PARAMETERS or (x.requires_grad and x.is_leaf)


def declared(x: Any) -> Any:
    """The tensor, which modules register as a parameter from now on."""
    _PARAMETERS[id(x)] = x
    return x


class Listed(list):  # type: ignore[type-arg]
    """A list that `next` takes too, as it takes the generators of PyTorch."""

    def __next__(self) -> Any:
        if "_rest" not in vars(self):
            self._rest = iter(self)
        return next(self._rest)


class Module(mg.nn.Module):
    """PyTorch's module.  A frozen parameter stays one; the state does not hold other tensors."""

    caches = (*mg.nn.Module.caches, "_given", "_kinds")
    _nested = False
    _kinds: dict[str, str] = {}  # what each registered attribute is

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, mg.Tensor):
            ours = sys._getframe(1).f_globals.get("__name__", "").startswith("minigrad.")
            self._register(name, value, ours)
        elif isinstance(value, (list, tuple, dict)) and not self._nested:
            _warn_of_hidden(self, name, value.values() if isinstance(value, dict) else value)
        super().__setattr__(name, value)

    def _register(self, name: str, value: Any, ours: bool) -> None:
        known = self._kinds.get(name)
        if id(value) in _PARAMETERS or (ours and value.requires_grad and value.is_leaf):
            kind = PARAMETER
            declared(value)
        elif known == PARAMETER and not ours and not mg.nn.Module._kind(self, name, value) == "":
            raise TypeError(f"cannot assign a tensor as the parameter {name!r}: nn.Parameter(...) or None is expected")
        else:
            kind = known or (BUFFER if ours else "")
            if not kind and value.requires_grad and value.is_leaf:
                warn_caller(f"{type(self).__name__}.{name} is a tensor with requires_grad=True, and no parameter: "
                            "optimizers do not get it.  nn.Parameter(...) makes one")
        if kind != known and (kind or self._nested):
            vars(self)["_kinds"] = {**self._kinds, name: kind}

    def __delattr__(self, name: str) -> None:
        vars(self)["_kinds"] = {each: kind for each, kind in self._kinds.items() if each != name}
        super().__delattr__(name)

    def _kind(self, name: str, tensor: Any) -> str:
        if name in self._kinds:
            return self._kinds[name]
        return super()._kind(name, tensor) if self._nested else ""

    def __getstate__(self) -> dict[str, Any]:
        copied = {name: vars(self).get(name) for name in ("_hooks", "_given", "_kinds")}
        return super().__getstate__() | {name: value for name, value in copied.items() if value}

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        vars(self)["_kinds"] = {**self._kinds, name: BUFFER if persistent else UNSAVED}
        setattr(self, name, tensor)


Module.__module__ = Parameter.__module__ = NAME


def within(module: Module, named: Iterable[tuple[str, Any]], prefix: str, recurse: bool) -> Listed:
    """The named tensors of a module, or only those of its own attributes."""
    return Listed([(".".join(filter(None, (prefix, name))), t) for name, t in named
                   if recurse or name.partition(".")[0] not in dict(mg.nn.Module.named_children(module))])


def _warn_of_hidden(module: Module, name: str, values: Iterable[Any]) -> None:
    """Warn of modules and parameters in a plain list, which no optimizer gets."""
    hidden = next((each for each in values if isinstance(each, mg.nn.Module) or id(each) in _PARAMETERS), None)
    if hidden is not None:
        container = "ModuleList" if isinstance(hidden, mg.nn.Module) else "ParameterList"
        warn_caller(f"{type(module).__name__}.{name} is a plain list or dict: its modules and parameters are not "
                    f"registered, and optimizers do not get them.  nn.{container}(...) registers them")


# Containers -----------------------------------------------------------------------------------------------------------


class Sequential(Module, mg.nn.Sequential):
    def __init__(self, *layers: Any) -> None:
        named = layers[0].items() if len(layers) == 1 and isinstance(layers[0], dict) else enumerate(layers)
        for name, layer in named:
            setattr(self, str(name), layer)

    def __iter__(self) -> Any:
        return iter([each for each in vars(self).values() if isinstance(each, mg.nn.Module)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, index: Any) -> Any:
        return type(self)(*list(self)[index]) if isinstance(index, slice) else list(self)[index]


class ModuleList(Module, mg.nn.ModuleList):
    def __init__(self, modules: Any = None) -> None:
        self.extend(modules or ())

    def __iadd__(self, modules: Any) -> Any:
        return self.extend(modules)


class ModuleDict(Module, mg.nn.ModuleDict):
    def __init__(self, modules: Any = None) -> None:
        self.update(dict(modules or {}))


class ParameterList(ModuleList):
    def _checked(self, item: Any, place: int) -> Any:
        return item if isinstance(item, Parameter) else Parameter(item)


class ParameterDict(ModuleDict):
    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value if isinstance(value, Parameter) else Parameter(value))

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def items(self) -> list[tuple[str, Any]]:
        return [(name, vars(self)[name]) for name in self._kinds]


CONTAINERS = (Module, Parameter, Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict)


# Classes of the table -------------------------------------------------------------------------------------------------

ADOPTED: dict[type, type] = {}  # the class of PyTorch's name for parts that our layers make


class Default:
    """An attribute of a class that is computed, where the object has none of this name."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self.function(instance)


def _adopt(layer: Module) -> None:
    """Make PyTorch's modules of a layer's parts: `isinstance(m, nn.Linear)` and frozen parameters hold there too."""
    for part in mg.nn.Module.modules(layer):
        if not isinstance(part, Module):
            ours = type(part)
            if ours not in ADOPTED:
                ADOPTED[ours] = type(ours.__name__, (Module, ours), {"_nested": True, "__module__": NAME})
            part.__class__ = ADOPTED[ours]
            tensors = {name: t for name, t in vars(part).items() if isinstance(t, mg.Tensor)}
            vars(part)["_kinds"] = {name: PARAMETER if t.requires_grad else BUFFER for name, t in tensors.items()}


def layer_class(arguments: Any, base: type, home: str) -> type:
    """A class of ours with PyTorch's constructor, whose arguments are attributes too."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        vars(self)["_given"] = given = arguments(*args, **kwargs)
        _keep(self, arguments, args, kwargs)
        begin(self, base, arguments, given)
        _adopt(self)
        if getattr(type(self), "reset_parameters", None) is not getattr(made, "reset_parameters", None):
            self.reset_parameters()  # that of a program's own class

    names = {"__init__": __init__, "__module__": home, "_nested": True, "ours": base}
    made: Any = type(base)(base.__name__, (Module, base), names)
    return made  # type: ignore[no-any-return]


def made_again(layer: Any) -> None:
    """Give a layer the numbers of a new one with the same arguments."""
    new = layer.ours.__new__(layer.ours)
    begin(new, layer.ours, made_again, layer._given)
    with mg.no_grad():
        for name, tensor in new.named_tensors():
            getattr(layer, name)[...] = tensor


made_again.words = ()  # type: ignore[attr-defined]


def begin(self: Any, base: type, arguments: Any, given: Any) -> None:
    """Call a constructor of ours; its errors name the arguments of PyTorch."""
    options = given[-1] if given and isinstance(given[-1], dict) else {}
    try:
        base.__init__(self, *(given[:-1] if options else given), **options)  # type: ignore[misc]
    except mg.MinigradError as error:
        retitle(error, base.__name__, dict(zip([*signature(base.__init__).parameters][1:], arguments.words)))  # type: ignore[misc]
        raise


def called_class(name: str, arguments: Any, forward: Any, home: str) -> type:
    """A layer that only calls a function."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        arguments(*args, **kwargs)
        _keep(self, arguments, args, kwargs)

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": home})


def _keep(self: Any, arguments: Any, args: Any, kwargs: Any) -> None:
    """Set the arguments of a constructor as attributes, before ours sets its own."""
    bound = signature(arguments).bind(*args, **kwargs)
    bound.apply_defaults()
    dimensions = {"Conv1d": 1, "Conv2d": 2, "ConvTranspose1d": 1, "ConvTranspose2d": 2}
    count = next((dimensions[each.__name__] for each in type(self).__mro__ if each.__name__ in dimensions), 0)
    for name, value in bound.arguments.items():
        if isinstance(value, _KEPT) and name not in _NOT_KEPT:
            vars(self)[name] = (value,) * count if count and name in _SIZES and isinstance(value, int) else value


_KEPT = (int, float, str, tuple, list, type(None))
_NOT_KEPT = ("bias", "args", "_given", "dtype", "device", "weight")  # ours sets these
_SIZES = ("kernel_size", "stride", "padding", "dilation", "output_padding")  # of convolutions: one for each dimension


def shaped_norm(self: Any, shape: Any) -> None:
    """Give a norm over several dimensions weights of their shape."""
    shape = vars(self)["normalized_shape"] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for name in ("weight", "bias"):
        if getattr(self, name) is not None and len(shape) > 1:
            setattr(self, name, Parameter(mg.reshape(getattr(self, name).detach(), shape)))
    assert self.weight is None or math.prod(shape) == self.weight.size
