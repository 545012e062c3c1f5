"""The models that tensors belong to, found among all live modules: names of parameters, and types of scopes."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ..core.node import Leaf, Node
from ..core.tensor import Tensor
from ..nn.module import Module
from .scene import Scene


def tensors_of(nodes: Iterable[Node]) -> dict[Node, Tensor]:
    """The tensors of the leaves among some nodes."""
    found = {node: node.tensor() for node in nodes if isinstance(node, Leaf)}
    return {node: tensor for node, tensor in found.items() if tensor is not None}


def models_of(tensors: Iterable[Tensor], nodes: Collection[Node] = ()) -> list[Module]:
    """The live modules that hold the tensors, in the fewest steps: the one that holds most of them first.

    Of modules that hold equally many, it is the one that the nodes say was called, or the smallest one.

    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3))
    >>> models_of(model.parameters(), [model(mg.ones(2)).node]) == [model]
    True
    """
    wanted = {id(tensor) for tensor in tensors}
    called = {node.scope[0] for node in nodes if node.scope}
    live = [each for each in gc.get_objects() if issubclass(type(each), Module)] if wanted else []
    held = [{id(tensor) for _, tensor in each.named_tensors()} for each in live]
    outermost = [(each._name or type(each).__name__) in called for each in live]
    found = []
    while wanted:
        count, _, _, best = max([(len(wanted & held[i]), outermost[i], -len(held[i]), -i) for i in range(len(live))],
                                default=(0, False, 0, 0))
        if not count:
            break
        found.append(live[-best])
        wanted -= held[-best]
    return found


def paths_in(models: Sequence[Module]) -> dict[int, str]:
    """The paths of the tensors in models, by the identity of the tensor; a tensor with two paths has the first."""
    named = [item for model in models for item in model.named_tensors()]
    return {id(tensor): path for path, tensor in reversed(named)}


def with_types(scene: Scene, models: Sequence[Module]) -> Scene:
    """The scene with types in the scopes of modules that have only a number: `1` becomes `1 Linear`."""
    types = {path: type(module).__name__ for model in models[:1] for path, module in model.named_modules()}

    def named(path: tuple[str, ...]) -> str:
        key = ".".join(path[1:]).replace("[", ".").replace("]", "")
        return f"{path[-1]} {types[key]}" if path[-1].isdigit() and key in types else path[-1]

    boxes = [
        replace(box, scope=tuple([named(box.scope[: depth + 1]) for depth in range(len(box.scope))]))
        for box in scene.boxes
    ]
    return Scene(tuple(boxes), scene.edges)
