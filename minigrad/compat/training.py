"""PyTorch's optimizers, schedules and functions with a gradient of their own, for classes that programs write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from inspect import signature
from types import SimpleNamespace
from typing import Any

import minigrad as mg

from ..nn.hooks import Hooks
from .meanings import given_group
from .modules import Kind, Parameter, begin

# Functions with their own gradient ------------------------------------------------------------------------------------


class Context(SimpleNamespace):
    """The `ctx` of one call."""

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Integers have no gradient anyway."""

    mark_dirty = set_materialize_grads = mark_non_differentiable


class Function:
    """`forward(ctx, *args)` and `backward(ctx, *gradients)`, called by `apply(*args)`."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The result of `forward`, whose gradient is what `backward` returns."""
        places = [i for i, each in enumerate(args) if isinstance(each, mg.Tensor)]
        needs = tuple([isinstance(each, mg.Tensor) and each.requires_grad for each in args])

        def forward(*tensors: Any) -> Any:
            whole, context = list(args), Context(needs_input_grad=needs)
            for i, tensor in zip(places, tensors):
                whole[i] = tensor
            return cls.forward(context, *whole), context  # type: ignore[attr-defined]

        def backward(context: Context, g: Any) -> tuple[Any, ...]:
            found = cls.backward(context, *(g if isinstance(g, tuple) else (g,)))  # type: ignore[attr-defined]
            found = found if isinstance(found, tuple) else (found,)
            return tuple([found[i] for i in places])

        function = mg.custom_vjp(forward)
        function.defines(forward)
        function.gradient(backward)
        return function(*[args[i] for i in places])


# Optimizers -----------------------------------------------------------------------------------------------------------


class Optimizer(metaclass=Kind):
    """The base of optimizers that programs write: groups are dicts, and `state` has a dict for each parameter."""

    counted = (mg.optim.Optimizer,)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults, self.state, self.param_groups = defaults, defaultdict(dict), []  # type: ignore[var-annotated]
        listed = list(params)
        for group in listed if listed and isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.param_groups.append({**self.defaults, **given_group(param_group)})

    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no step")


# Schedules ------------------------------------------------------------------------------------------------------------


class LRScheduler(metaclass=Kind):
    """A schedule of a program's own: `get_lr` returns the rate of each group after `last_epoch` steps."""

    counted = (mg.optim.lr_scheduler.Schedule,)

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} has no get_lr")

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


def _own_options(groups: Any, known: Any) -> list[dict[str, Any]]:
    """Take the options of a program's own out of groups of parameters; PyTorch keeps them there."""
    found = []
    for group in groups:
        names = [name for name in group if name not in known and name != "params"] if isinstance(group, dict) else []
        found.append({name: group.pop(name) for name in names})
    return found


def plain_class(arguments: Any, base: type, home: str) -> type:
    """A class of ours with PyTorch's constructor."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        first, *rest = arguments(*args, **kwargs)
        own = _own_options(first, signature(arguments).parameters) if issubclass(base, mg.optim.Optimizer) else []
        begin(self, base, arguments, (first, *rest))
        for group, options in zip(self.param_groups if own else (), own):
            group.options.update(options)

    return type(base)(base.__name__, (base,), {"__init__": __init__, "__module__": home, "ours": base})


# Weights that are computed --------------------------------------------------------------------------------------------


def computed(module: Any, name: str, parts: dict[str, Any], function: Callable[..., Any]) -> Any:
    """Compute a weight of a module before each call, from parts: parameters and buffers with these endings."""
    delattr(module, name)
    for ending, part in parts.items():
        register = module.register_parameter if isinstance(part, Parameter) else module.register_buffer
        register(name + ending, part)

    before: list[Any] = []

    def compute(module: Any, args: Any) -> None:
        before.append(vars(module).get(name))
        vars(module)[name] = function(module, *[getattr(module, name + ending) for ending in parts])

    def restore(module: Any, args: Any, output: Any) -> None:
        was = before.pop()
        if vars(module)[name]._data.__class__ is not was._data.__class__:  # a trace leaves modules as they were
            vars(module)[name] = was

    with mg.no_grad():
        compute(module, ())
    before.clear()
    vars(module)["_activations"] = frozenset([*(module._activations or ()), name])  # no part of the state
    module.register_forward_pre_hook(compute)
    module.register_forward_hook(restore)
    compute.parts = restore.parts = name, parts  # type: ignore[attr-defined]
    return module


def computed_once(module: Any, name: str) -> Any:
    """Make a weight that is computed before each call a parameter again."""
    hooks = [each for each in (module._hooks or Hooks()).added if getattr(each.hook, "parts", ("",))[0] == name]
    if not hooks:
        raise ValueError(f"the {name} of {module} is not computed before each call")
    hooks[0].hook(module, ())
    for handle in hooks:
        handle.remove()
    for ending in hooks[0].hook.parts[1]:  # type: ignore[union-attr]
        delattr(module, name + ending)
    vars(module)["_activations"] = module._activations - {name}
    setattr(module, name, Parameter(vars(module).pop(name)))
    return module


# Parts ----------------------------------------------------------------------------------------------------------------


class Parts(dict):  # type: ignore[type-arg]
    """`module._parameters`, `_buffers` or `_modules`: a change of it is one of the module."""

    def __init__(self, module: Any, named: Iterator[tuple[str, Any]]) -> None:
        super().__init__(named)
        self.module = module

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self.module, name)
        super().__delitem__(name)
