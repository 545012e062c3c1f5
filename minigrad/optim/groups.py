"""Parameter groups: parameters that share a rate and options, with the optimizer's state for each parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from copy import copy
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.mode import no_grad
from ..core.tensor import NUMBERS, Tensor
from ..nn.state import like
from ..ops.creation import asarray, full, full_like
from ..ops.elementwise import maximum
from ..support.errors import ConversionError, DeviceError, DtypeError, GradError
from ..support.table import counted
from ..support.words import a_type

Check = Callable[[dict[str, Any], list[Tensor]], None]
States = Callable[[dict[str, Any]], dict[str, float]]


class Group(MutableMapping[str, Any]):
    """Parameters with the same options: `group["params"]`, and each option by name.

    The rate is a tensor that is written in place, so it can change from step to step in a compiled step too.  After a
    change of another option, `mg.jit` traces again.

    >>> w, b = (mg.asarray([1.0], requires_grad=True) for _ in range(2))
    >>> optimizer = mg.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.01}], lr=0.1)
    >>> optimizer.param_groups[1]["lr"] *= 0.5
    >>> [group["lr"] for group in optimizer.param_groups]
    [0.1, 0.005]
    """

    # A trace does not read these: they are set when the group is made, or by a step.
    caches = ("owner", "kinds", "size", "updates", "_check", "_states")

    def __init__(
        self, owner: str, parameters: list[Tensor], options: dict[str, Any], check: Check, states: States
    ) -> None:
        check(options, parameters)
        self.owner, self.parameters = owner, parameters
        self.options = {name: value for name, value in options.items() if name != "lr"}
        self.kinds = [(p.device, p.dtype) for p in parameters]
        # 0-d, and as wide as the widest parameter: a 0-d float64 beside float32 would make the result float64
        self.dtype = dtypes.result_type(dtypes.float32, *[p.dtype for p in parameters])
        self.rate = full((), 0.0, self.dtype, parameters[0].device)
        self.initial_rate: float | None = None  # the rate before the first schedule
        self._check, self._states = check, states
        self.size = sum(p.size for p in parameters)
        self.updates: Any = None  # the programs of its steps in eager mode: `eager.updates` makes them
        self.state: dict[str, Any] = {}  # by name: the state of each parameter, in their order
        self["lr"] = options["lr"]
        self.grow(self.options)

    # as a mapping ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return self.parameters
        if name == "lr":
            return float(str(self.rate.numpy_copy()))  # the Python number: float32 cannot represent 0.1
        return self.options[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "lr":
            with no_grad():
                value = checked_rate(self.owner, value)
                self.rate[...] = like(value, self.rate) if isinstance(value, Tensor) else value  # type: ignore[index]
            return
        if name == "params" or name not in self.options:
            raise ConversionError(
                f"{self.owner}: a group has no option {name!r} to set", expect=", ".join(["lr", *self.options]),
                hint="optimizer.add_param_group({\"params\": [...]}) adds parameters",
            )
        self._check(self.options | {name: value, "lr": 0.0}, self.parameters)
        self.grow(self.options | {name: value})
        self.options[name] = value

    def __delitem__(self, name: str) -> None:
        raise ConversionError(f"{self.owner}: the options of a group can be set, not deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(("params", "lr", *self.options))

    def __len__(self) -> int:
        return 2 + len(self.options)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={self[name]!r}" for name in self if name != "params")
        return f"Group({counted(len(self.parameters), 'parameter')}, {options})"

    # what is kept ---------------------------------------------------------------------------------------------------

    def grow(self, options: dict[str, Any]) -> None:
        """Make the states that these options need, where they are missing."""
        for name, start in self._states(options).items():
            if name not in self.state and name == "step":
                self.state[name] = full(len(self.parameters), start, self.dtype, self.rate.device)
            elif name not in self.state:
                self.state[name] = [full_like(p, start) for p in self.parameters]

    def kept(self, i: int, options: dict[str, Any]) -> dict[str, Tensor]:
        """The states of one parameter with these options."""
        return {name: self.state[name][i] for name in self._states(options)}

    # for updates ----------------------------------------------------------------------------------------------------

    def tensors(self) -> list[Tensor]:
        """The parameters, the rate and the states."""
        held = [*self.parameters, self.rate]
        for state in self.state.values():
            held += state if isinstance(state, list) else [state]
        return held

    def on(self, given: Iterator[Tensor]) -> Group:
        """The group with other tensors in place of `tensors()`, followed by the gradients of parameters that move."""
        other = copy(self)
        other.parameters, other.rate = [next(given) for _ in self.parameters], next(given)
        other.state = {
            name: [next(given) for _ in state] if isinstance(state, list) else next(given)
            for name, state in self.state.items()
        }
        for parameter, own in zip(other.parameters, self.parameters):
            parameter._grad = None if own.grad is None else next(given)
        return other

    def moving(self, *names: str) -> list[tuple[Any, ...]]:
        """For each parameter with a gradient: its number, the parameter, the gradient, and the named states."""
        for i, (p, (device, dtype)) in enumerate(zip(self.parameters, self.kinds)):
            if p.device is not device or p.dtype != dtype:  # a copy by pickle has another object for the dtype
                _refuse_moved(self.owner, i, p, device, dtype)
        columns = [self.state[name] for name in names]
        rows = zip(range(len(self.parameters)), self.parameters, [p.grad for p in self.parameters], *columns)
        return [row for row in rows if row[2] is not None]

    def counted(self) -> Tensor:
        """The number of steps of each parameter, this one included; a parameter without a gradient makes none."""
        steps: Tensor = self.state["step"]
        moves = [p.grad is not None for p in self.parameters]
        if all(moves):
            steps += 1.0
            return steps
        steps += asarray(moves, dtype=self.dtype, device=steps.device)
        return maximum(steps, 1.0)  # parameters that have not moved must not lead to a division by 0


def beside(parameter: Tensor, *scalars: Tensor) -> list[Tensor]:
    """Numbers in the dtype of a parameter, usually the dtype of the whole group."""
    return [like(s, parameter) for s in scalars]


# What is given ------------------------------------------------------------------------------------------------------


def parameter_groups(name: str, given: Any, defaults: dict[str, Any]) -> list[tuple[list[Tensor], dict[str, Any]]]:
    """The parameters and options of each group, from a list of tensors or of dicts with options."""
    if isinstance(given, (Tensor, dict, set, frozenset)) or not isinstance(given, Iterable):
        hint = "model.parameters()" if hasattr(given, "parameters") else "[w] for a single tensor"
        hint = "[{\"params\": [...]}]: a list of groups" if isinstance(given, dict) else hint
        hint = "a list: the order of a set differs from run to run" if isinstance(given, (set, frozenset)) else hint
        raise ConversionError(f"{name}: parameters are a list of tensors, not {a_type(given)}", hint=hint)
    listed = list(given)
    if not any(isinstance(g, dict) for g in listed):
        listed = [{"params": listed}]
    groups = []
    for g in listed:
        if not isinstance(g, dict) or "params" not in g:
            raise ConversionError(f"{name}: a group is a dict with \"params\" and perhaps options, not {_short(g)}",
                                  hint="[{\"params\": body}, {\"params\": head, \"lr\": 0.01}]")
        unknown = [key for key in g if key not in ("params", *defaults)]
        if unknown:
            raise ConversionError(f"{name}: a group has no option named {', '.join(map(repr, unknown))}",
                                  expect=", ".join(defaults))
        parameters = [g["params"]] if isinstance(g["params"], Tensor) else list(g["params"])
        groups.append((parameters, defaults | {k: v for k, v in g.items() if k != "params"}))
    return groups


def check_parameters(name: str, groups: list[list[Tensor]]) -> None:
    """Refuse tensors that are not leaves, tensors that are there twice, and groups on several devices.

    A frozen parameter stays where it is, and moves once it has a gradient; but not all may be frozen.
    """
    if not all(groups):
        which = f" in group {groups.index([])}" if len(groups) > 1 else ""
        raise ConversionError(
            f"{name}: there are no parameters to optimize{which}",
            hint="a model's tensors need requires_grad=True; an iterator is empty after its first use",
        )
    seen: set[int] = set()
    for number, group in enumerate(groups):
        for i, p in enumerate(group):
            which = f"parameter {i}" + (f" of group {number}" if len(groups) > 1 else "")
            _check_parameter(name, which, p)
            if id(p) in seen:
                raise ConversionError(f"{name}: {which}, of shape {p.shape}, is in the list twice")
            seen.add(id(p))
            if p.device is not group[0].device:
                raise DeviceError(
                    f"{name}: the parameters of a group are on one device; parameter 0 is on {group[0].device}, "
                    f"and {which}, of shape {p.shape}, on {p.device}",
                    hint="model.to(device) moves all parameters; or make a group for each device",
                )
    if not any(p.requires_grad for group in groups for p in group):
        raise GradError(f"{name}: no parameter requires a gradient", hint="p.requires_grad = True, for some of them")


def _check_parameter(name: str, which: str, p: Any) -> None:
    if not isinstance(p, Tensor):
        raise ConversionError(f"{name}: {which} is {a_type(p)}, not a tensor",
                              hint="model.parameters() returns them without names")
    if not p.is_leaf:
        raise GradError(f"{name}: {which}, of shape {p.shape}, is a result of {p.node.name}, not a leaf",
                        hint="optimize the tensors that it is computed from, or p.detach() with requires_grad = True")


def _refuse_moved(name: str, i: int, p: Tensor, device: Any, dtype: Any) -> None:
    error = DeviceError if p.device is not device else DtypeError
    raise error(
        f"{name}: parameter {i}, of shape {p.shape}, was {dtype} on {device} when the optimizer was made, and is now "
        f"{p.dtype} on {p.device}", hint="make the optimizer after model.to(...)",
    )


# Options ------------------------------------------------------------------------------------------------------------


def checked_rate(name: str, value: Any) -> Any:
    """A learning rate: a number, or a tensor of one element, which is not read."""
    if isinstance(value, Tensor):
        if value.size != 1:
            raise ConversionError(f"{name}: a learning rate is one number, not a tensor of shape {value.shape}")
        return value.detach().reshape(())  # type: ignore[attr-defined]
    if not _is_number(value) or not (value >= 0 and math.isfinite(value)):
        raise ConversionError(f"{name}: a learning rate is a number, 0 or more, not {_short(value)}")
    return float(value)


def check_options(name: str, options: dict[str, Any]) -> None:
    """Refuse options that are out of range; the names decide the ranges."""
    if "lr" in options:
        checked_rate(name, options["lr"])
    for what, value in options.items():
        pairs = [(f"{what}[{i}]", v) for i, v in enumerate(value)] if what == "betas" and _is_pair(value) else []
        if what == "betas" and not pairs:
            raise ConversionError(f"{name}: betas are two numbers, not {_short(value)}", expect="(0.9, 0.999)")
        for label, v in pairs or [(what, value)]:
            if what in SHARES and not (_is_number(v) and 0 <= v < 1):
                raise ConversionError(f"{name}: {label} is at least 0 and below 1, not {_short(v)}")
            if what in POSITIVE and not (_is_number(v) and 0 <= v < math.inf):
                raise ConversionError(f"{name}: {label} is 0 or more, not {_short(v)}")


SHARES = ("betas", "momentum", "alpha", "rho")  # below 1: how much a running mean keeps
POSITIVE = ("weight_decay", "eps", "lr_decay", "initial_accumulator_value", "tolerance_grad", "tolerance_change")


def _is_number(value: Any) -> bool:
    return value.__class__ in NUMBERS or isinstance(value, (np.floating, np.integer))


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2


def _short(value: Any) -> str:
    return repr(value) if _is_number(value) or isinstance(value, (str, tuple)) else a_type(value)
