"""The models and optimizers that tensors belong to: names of tensors, and their roles."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any, NamedTuple

from ..core.node import Constant, Leaf, Node
from ..core.tensor import Tensor
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from ..support.source import variables

DATA, PARAMETER, BUFFER, STATE, COUNTER = "data", "parameter", "buffer", "optimizer's state", "optimizer's counter"


MOST = 100  # things in a list or a dict in which tensors are looked for


class Role(NamedTuple):
    """What an input of a program is: `name` is the parameter that it is, or belongs to, or what its owner calls it.

    `owner` is the type of the optimizer that changes it, if there is one.
    """

    kind: str
    name: str
    owner: str = ""


def tensors_of(nodes: Iterable[Node]) -> dict[Node, Tensor]:
    """The tensors of the leaves and the constants among some nodes, as far as they still exist."""
    return {node: tensor for node in nodes
            if isinstance(node, Leaf | Constant) and (tensor := node.tensor()) is not None}


def models_of(tensors: Iterable[Tensor], nodes: Collection[Node]) -> list[Module]:
    """The live modules that hold the tensors, in the fewest steps: the one that holds most of them first.

    Of modules that hold equally many, it is the one that the nodes say was called, or the smallest one.

    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3))
    >>> models_of(model.parameters(), [model(mg.ones(2)).node]) == [model]
    True
    """
    wanted = {id(tensor) for tensor in tensors}
    called = {node.scope[0] for node in nodes if node.scope}
    live = [(each, {id(tensor) for _, tensor in each.named_tensors()}) for each in _live(Module) * bool(wanted)]
    live.sort(key=lambda each: (
        -len(wanted & each[1]), (each[0]._name or type(each[0]).__name__) not in called, len(each[1])))
    found = []
    for module, own in live:
        if wanted & own:
            found.append(module)
            wanted -= own
    return found


def _live(kind: type) -> list[Any]:
    return [each for each in gc.get_objects() if issubclass(type(each), kind)]


def roles_of(tensors: Mapping[Node, Tensor], names: Mapping[Node, str], models: Sequence[Module]) -> dict[Node, Role]:
    """The role of each tensor, by where it was found: in a model, in an optimizer, or elsewhere, which is data.

    >>> w = mg.ones(2, requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> x, (state,) = mg.ones(2), optimizer.param_groups[0].state["momentum_buffer"]
    >>> roles_of({1: w, 2: state, 3: x}, {1: "w", 3: "x"}, [])[2]
    Role(kind="optimizer's state", name='momentum_buffer of w', owner='SGD')
    """
    known: dict[int, Role] = {}
    called = {id(tensor): names[node] for node, tensor in tensors.items() if node in names}
    for model in reversed(models):
        known |= {id(tensor): Role(BUFFER, path) for path, tensor in model.named_buffers()}
        known |= {id(tensor): Role(PARAMETER, path) for path, tensor in model.named_parameters()}
    used = {*map(id, tensors.values())}
    groups = [(type(each).__name__, group) for each in _live(Optimizer) for group in vars(each).get("param_groups", ())]
    for owner, group in sorted(groups, key=lambda each: id(each[1].rate) in used):  # last those that run here
        own = [called.get(id(p), f"parameter {i}") for i, p in enumerate(group.parameters)]
        known |= {id(p): Role(PARAMETER, name, owner) for p, name in zip(group.parameters, own)}
        for what, held in {"rate": group.rate, **group.state}.items():
            if isinstance(held, Tensor):
                known[id(held)] = Role(COUNTER, f"{what} of {owner}", owner)
            else:
                known |= {id(p): Role(STATE, f"{what} of {name}", owner) for p, name in zip(held, own)}
    return {node: known.get(id(tensor), Role(DATA, names.get(node, ""))) for node, tensor in tensors.items()}


def names_of_tensors(
    tensors: Mapping[Node, Tensor], nodes: Sequence[Node], *places: Mapping[str, Any],
    models: Sequence[Module] | None = None,
) -> tuple[dict[Node, str], Sequence[Module]]:
    """The names of the tensors behind nodes, and the models: a path in a model, or else the name in the last place.

    The first places are those that the functions of the nodes captured.

    >>> w = mg.ones(2, requires_grad=True)
    >>> names_of_tensors({(w * w).node.inputs[0]: w}, [], {"v": w}, {"w": w})[0].values()
    dict_values(['w'])
    """
    models = models_of(tensors.values(), nodes) if models is None else models
    named, codes = dict[int, str](), {(node.origin or node).code for node in nodes}
    for function in _live(FunctionType):
        if function.__code__ in codes:
            with suppress(ValueError):  # it reads a variable that has no value yet
                closed = inspect.getclosurevars(function)
                named |= named_in({**closed.globals, **closed.nonlocals})
    for each in places:
        named |= named_in(each)
    named |= paths_in(models)
    return {node: named[id(tensor)] for node, tensor in tensors.items() if id(tensor) in named}, models


def paths_in(models: Sequence[Module]) -> dict[int, str]:
    """The paths of the tensors in models, by the identity of the tensor; a tensor with two paths has the first."""
    named = [item for model in models for item in model.named_tensors()]
    return {id(tensor): path for path, tensor in reversed(named)}


def around() -> dict[str, Any]:
    """The tensors of the nearest caller outside minigrad, by their variables; without those of tools, such as `_`."""
    return {name: value for name, value in variables().items() if isinstance(value, Tensor) and name[0] not in "_@"}


def named_in(places: Mapping[str, Any], deep: int = 2) -> dict[int, str]:
    """The names of tensors among variables, or else in their lists and dicts, by the identity of the tensor.

    >>> w = mg.ones(2)
    >>> named_in({"params": {"w": w}})[id(w)]
    "params['w']"
    """
    found: dict[int, str] = {}
    inside: dict[str, Any] = {}
    for name, value in places.items():
        if isinstance(value, Tensor):
            found.setdefault(id(value), name)
        elif deep and isinstance(value, dict | list | tuple) and len(value) <= MOST:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            inside |= {f"{name}[{key!r}]": each for key, each in items}
    return (named_in(inside, deep - 1) if inside else {}) | found
