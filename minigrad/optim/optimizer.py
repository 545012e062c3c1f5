"""`Optimizer`, the base class: groups of parameters, rates that can change, and a state that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.clock import tick, written_since
from ..core.emit import EAGER, Eager
from ..core.mode import current_mode, enable_grad, no_grad
from ..core.programs import SMALL, maker, programs_run
from ..core.tensor import Tensor
from ..nn.state import StateError, load_tensors
from ..ops.creation import full_like
from ..support.errors import ConversionError
from ..support.table import counted
from .groups import Group, check_options, check_parameters, parameter_groups

# Options in files of PyTorch that change its speed, not its results.
SPEED_ONLY = ("foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay", "initial_lr", "params")


class Optimizer:
    """Changes parameters by their gradients.  A subclass defines in `update` one step of one group.

    Everything that changes from step to step, the rate included, is a tensor that is written in place, so a step does
    not depend on Python numbers that change.  `mg.jit` compiles it as part of a training step, or alone:
    `update = mg.jit(optimizer.step)`.

    >>> class Descent(mg.optim.Optimizer):
    ...     def __init__(self, parameters, lr):
    ...         super().__init__(parameters, lr=lr)
    ...     def update(self, group):
    ...         for _, parameter, gradient in group.moving():
    ...             parameter -= group.rate * gradient
    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer = Descent([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5]

    As in `mg.nn.Module`, `caches` names the attributes that a step does not read.
    """

    caches: tuple[str, ...] = ("defaults",)  # for groups that are added later: a step does not read them

    def __init__(self, parameters: Any, **defaults: Any) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self._add(parameter_groups(type(self).__name__, parameters, defaults))

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters with their own options; options that are not named have the values of the other groups.

        >>> model, head = mg.nn.Linear(2, 3), mg.nn.Linear(3, 1)
        >>> optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
        >>> optimizer.add_param_group({"params": head.parameters(), "lr": 0.5})
        >>> optimizer
        SGD(4 parameters of 13 numbers, lr=0.1, 0.5)
        """
        self._add(parameter_groups(type(self).__name__, [group], self.defaults))

    def _add(self, groups: list[tuple[list[Tensor], dict[str, Any]]]) -> None:
        name = type(self).__name__
        known = [group.parameters for group in self.param_groups]
        check_parameters(name, known + [parameters for parameters, _ in groups])
        made = [Group(name, parameters, options, self.check, self.states) for parameters, options in groups]
        self.param_groups += made

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters of all groups."""
        return [p for group in self.param_groups for p in group.parameters]

    @property
    def lr(self) -> float:
        """The learning rate.  It can be set at any time: `optimizer.lr *= 0.5`."""
        rates = [group["lr"] for group in self.param_groups]
        if len(set(rates)) > 1:
            raise ConversionError(f"{type(self).__name__}: the groups have different rates, {_listed(rates)}",
                                  hint='optimizer.param_groups[0]["lr"]')
        return rates[0]  # type: ignore[no-any-return]

    @lr.setter
    def lr(self, value: Any) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; a closure computes them first, and returns the loss.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> mg.optim.SGD([w], lr=0.25).step(), w.tolist()
        (None, [0.5])
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._change()
        return loss

    def _change(self) -> None:
        began = tick()
        try:
            with no_grad():
                for group in self.param_groups:
                    if not (self._uses_program(group) and maker("update")(self, group)):  # else a program did it
                        self.update(group)
        except BaseException as error:
            self._note_half_done(error, began)
            raise

    def _uses_program(self, group: Group) -> bool:
        """Whether one program may change all parameters of a group: if they are not few, and the rule is one of ours.

        The update of a user's class may depend on more than its group.
        """
        ours = group.size >= SMALL and type(self).update.__module__.startswith(f"{__package__}.")
        return ours and programs_run()

    def _note_half_done(self, error: BaseException, began: int) -> None:
        """Add a note on how many parameters were updated before an error or an interrupt stopped a step."""
        if not isinstance(current_mode().interpreter or EAGER, Eager):
            return  # where operations are only recorded nothing has been written
        moving = [p for p in self.parameters if p.grad is not None]
        done = sum(written_since(p._data, began) is not None for p in moving)
        updated = f"{done} of {counted(len(moving), 'parameter')} updated"
        error.add_note(f"{type(self).__name__}.step() was stopped: {updated}")

    def zero_grad(self) -> None:
        """Set all gradients to None before the next backward pass.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> mg.optim.SGD([w], lr=0.1).zero_grad()
        >>> w.grad is None
        True
        """
        for parameter in self.parameters:
            parameter.grad = None

    # for subclasses -------------------------------------------------------------------------------------------------

    def update(self, group: Group) -> None:
        """One step of a group, with gradients off."""
        raise NotImplementedError(f"{type(self).__name__} has no update method")

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        """The names and first values of the states of each parameter, in its shape; "step" is a single number."""
        return {}

    def check(self, options: dict[str, Any], parameters: list[Tensor]) -> None:
        """Refuse wrong options (`lr` is one of them) for these parameters."""
        check_options(type(self).__name__, options)

    # saving ---------------------------------------------------------------------------------------------------------

    def tensors(self) -> list[Tensor]:
        """All tensors that a step may write: parameters, states and rates."""
        return [tensor for group in self.param_groups for tensor in group.tensors()]

    def state_dict(self) -> dict[str, Any]:
        """A copy of the state, to continue training later, in the format of PyTorch.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> mg.optim.SGD([w], lr=0.5, momentum=0.75).state_dict()
        {'state': {0: {'momentum_buffer': Tensor([0.], shape=(1,), dtype=float32, device=cpu)}},
         'param_groups': [{'lr': 0.5, 'momentum': 0.75, 'dampening': 0.0, 'weight_decay': 0.0, 'nesterov': False,
                           'params': [0]}]}
        """
        state: dict[int, dict[str, Tensor]] = {}
        groups: list[dict[str, Any]] = []
        total = 0
        for group, kept in zip(self.param_groups, self._copies()):
            numbers = list(range(total, total := total + len(kept)))
            state |= {number: entry for number, entry in zip(numbers, kept) if entry}
            groups.append({name: group[name] for name in group if name != "params"} | {"params": numbers})
        return {"state": state, "param_groups": groups}

    def _copies(self) -> list[list[dict[str, Tensor]]]:
        """Copies of the states of each parameter, by group."""
        return [[{name: t.copy() for name, t in group.kept(i, group.options).items()}  # type: ignore[attr-defined]
                 for i in range(len(group.parameters))] for group in self.param_groups]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load saved states and options.  If something does not fit, nothing is changed.

        A parameter without a saved state starts anew.  States saved by PyTorch fit, if their options exist here.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> saved = mg.optim.SGD([w], lr=0.5).state_dict()
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> optimizer.load_state_dict(saved)
        >>> optimizer.lr
        0.5
        """
        name, groups = type(self).__name__, self.param_groups
        saved = saved_groups(name, state, groups)
        lacks = [f"param_groups.{n}.{what}" for n, own in enumerate(groups) for what in own
                 if what not in saved[n] and own[what] is not False]  # a file without an option has it off
        unknown = [f"param_groups.{n}.{what}" for n, own in enumerate(groups) for what in _unknown(own, saved[n])]
        options = [
            own.options | {what: _as(own[what], given[what]) for what in own if what in given and what != "params"}
            for own, given in zip(groups, saved)
        ]
        for own, new in zip(groups, options):
            self.check(new, own.parameters)
            own.grow(new)
        entries = {str(number): entry for number, entry in state["state"].items()}
        mine: dict[str, Tensor] = {}
        theirs: dict[str, Any] = {}
        for own, given, new in zip(groups, saved, options):
            for i, number in enumerate(given["params"]):
                kept = own.kept(i, new)
                entry = self.adapted(entries.pop(str(number), {}), kept)
                anew = {what: full_like(kept[what], start) for what, start in self.states(new).items()}
                mine |= {f"state.{number}.{what}": t for what, t in kept.items()}
                theirs |= {f"state.{number}.{what}": v for what, v in (entry or anew).items()}
        theirs |= {f"state.{number}.{what}": v for number, entry in entries.items() for what, v in entry.items()}
        load_tensors(mine, theirs, name, lacks=lacks, extra=unknown)
        for own, new in zip(groups, options):
            own["lr"] = new.pop("lr")
            own.options |= new  # together, as they were checked

    def adapted(self, entry: dict[str, Any], kept: dict[str, Tensor]) -> dict[str, Any]:
        """The saved state of a parameter in our form.  PyTorch also counts steps where they are not needed."""
        return {what: v for what, v in entry.items() if v is not None and (what in kept or what != "step")}

    def __repr__(self) -> str:
        size = counted(sum(p.size for p in self.parameters), "number")
        rates = _listed(dict.fromkeys(group["lr"] for group in self.param_groups))
        return f"{type(self).__name__}({counted(len(self.parameters), 'parameter')} of {size}, lr={rates})"


def saved_groups(name: str, state: Any, groups: Sequence[Any]) -> list[dict[str, Any]]:
    """The groups in a state, if their number and sizes are the same as here."""
    if not isinstance(state, dict) or not {"state", "param_groups"} <= set(state):
        has = ", ".join(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise StateError(f"load_state_dict: this is not the state of an optimizer, and nothing was loaded into {name}",
                         expect='a dict with "state" and "param_groups"', actual=has)
    saved, entries = state["param_groups"], state["state"]
    whole = isinstance(saved, list) and all(isinstance(g, dict) and isinstance(g.get("params"), list) for g in saved)
    if not whole or not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        raise StateError(f"load_state_dict: this is not the state of an optimizer, and nothing was loaded into {name}",
                         expect='"state" holds a dict for each parameter, and "param_groups" dicts with lists "params"'
                         )
    sizes, own = [len(g["params"]) for g in saved], [len(g.parameters) for g in groups]
    if sizes != own:
        raise StateError(f"load_state_dict: the state does not fit {name}, and nothing was loaded",
                         expect=f"parameters in each group: {_listed(own)}", actual=_listed(sizes))
    return saved


def _unknown(own: Group, given: dict[str, Any]) -> list[str]:
    """The options of a saved group that change results and do not exist here."""
    return [what for what, value in given.items() if value and what not in own and what not in SPEED_ONLY]


def _as(own: Any, given: Any) -> Any:
    """A saved option in its type here: files have lists for tuples, and 0-d tensors for numbers."""
    if isinstance(own, tuple) and isinstance(given, list):
        return tuple(given)
    return given.item() if hasattr(given, "item") else given


def _listed(values: Any) -> str:
    return ", ".join(f"{v:g}" for v in values)
