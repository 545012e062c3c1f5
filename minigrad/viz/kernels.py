"""A partition as a scene: a frame around the nodes of each kernel, and the reason for each arrow between frames.

A node that several kernels compute has a box in each of these kernels, and an input has a box in each kernel that reads
it.  Views have no boxes: a view is only strides for reading, so its arrows start at the value in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..compile.codegen.c import CPrinter
from ..compile.fusion.group import Group, Partition
from ..compile.lowering.lower import Lowered
from ..compile.nodes.view import View
from ..core.node import Node
from ..support.table import counted
from .naming import names_in_code
from .phases import paths_of, settled
from .scene import Box, Edge, Scene, scene_of

UNFINISHED = "a reduction across rows is complete only when the kernel has gone through all of them"
FEW = 12  # kernels of a program that is drawn without phases and modules
OUTSIDE = "it is an input, so it is in memory"
NAME = re.compile(r"\b[vbs]\d+")


class Place(NamedTuple):
    """A node in a kernel that computes it, or an input (`group` is None) in a kernel that reads it.

    `part` is "partial" where a kernel computes parts of a reduction and another kernel combines them.  For an input,
    `part` is the name of the kernel that reads it.
    """

    group: Group | None
    node: Node
    part: str = ""


class Crossing(NamedTuple):
    """An arrow between kernels: the bytes that go through memory, and the reason."""

    edge: int
    bytes: int
    why: str


class Picked(NamedTuple):
    """The scene of a partition, with a place for each box."""

    scene: Scene
    places: list[Place]
    crossings: list[Crossing]


def scene_of_kernels(partition: Partition, names: Mapping[Node, str]) -> Picked:
    """The boxes, frames and arrows of a partition.  Of many kernels, those of a phase and of a module have a frame.

    >>> from minigrad.compile.fusion.fuse import fuse
    >>> graph = mg.trace(lambda x: mg.tanh(x @ x) * 2, mg.ones((2, 2)))
    >>> picked = scene_of_kernels(fuse(graph), {})
    >>> [(place.node.name, box.kind, box.scope) for place, box in zip(picked.places, picked.scene.boxes)][1:]
    [('matmul', 'library', ()), ('tanh', 'operation', ('kernel_1',)), ('multiply', 'operation', ('kernel_1',))]
    >>> [crossing.why for crossing in picked.crossings][2]
    'matmul is a library call'
    """
    inputs = set(partition.graph.inputs)
    places: list[Place] = []
    for group in partition.groups:
        order = sorted(_computed(group), key=lambda node: partition.computes[node].position)
        read = dict.fromkeys(base for node in order for base in partition.computes[node].bases if base in inputs)
        places += [Place(None, node, group.name) for node in read]
        for node in order:
            places += [Place(group, node, part) for part in _parts(partition, group, node)]
    nodes = list(dict.fromkeys(place.node for place in places))
    known = {**names_in_code(partition.graph.nodes), **names}
    results = {view.base for view in partition.outputs}
    drawn = dict(zip(nodes, scene_of(nodes, results, known).boxes))
    numbered = partition.graph.names()
    homes = _homes(partition)
    frames = {group.name: (*homes[group], group.name) for group in partition.kernels}
    outer = {group.name: homes[group] for group in partition.groups} | frames
    boxes = [_boxed(each, drawn[each.node], each.node in results, numbered[each.node], outer) for each in places]
    number = {place: i for i, place in enumerate(places)}
    home = partition.home
    edges: list[Edge] = []
    crossings: list[Crossing] = []
    for i, place in enumerate(places):
        for slot, source, size in _sources(partition, place, home):
            if place.group is None or source.group is not place.group:
                crossings.append(Crossing(len(edges), size, _why(partition, source, place)))
            edges.append(Edge(number[source], i, slot))
    return Picked(Scene(tuple(boxes), tuple(edges)), places, crossings)


def _homes(partition: Partition) -> dict[Group, tuple[str, ...]]:
    """The phase and the modules that a kernel belongs to: those of most of its nodes.  A small program has none."""
    paths = paths_of(partition.graph.nodes)
    if len(partition.groups) <= FEW:
        return dict.fromkeys(partition.groups, ())
    counts = [Counter(paths[node] for node in _computed(group)) for group in partition.groups]
    return dict(zip(partition.groups, settled([count.most_common(1)[0][0] for count in counts])))


def _computed(group: Group) -> dict[Node, None]:
    if group.library is not None:
        return {group.library.node: None}
    return dict.fromkeys([*group.levels, *group.partials])


def _parts(partition: Partition, group: Group, node: Node) -> list[str]:
    """The parts of a node that a group computes: "partial" for parts of a reduction, "" for the whole value."""
    if group.library is not None or node not in group.partials:
        return [""]
    if node in group.stores and not any(node in g.finishes for g in partition.groups):
        return [""]
    return ["partial"] + [""] * (node in group.finishes)


def _boxed(place: Place, box: Box, result: bool, name: str, frames: Mapping[str, tuple[str, ...]]) -> Box:
    """A box in the frame of its kernel.  An input is in the frame of its reader, so that arrows are short."""
    if place.group is None:
        return replace(box, scope=frames[place.part], result=False)
    box = replace(box, title=box.title.replace(place.node.name, name, 1))  # the name in the source and in the tables
    if place.group.library is not None:
        return replace(box, scope=frames[place.group.name], kind="library")
    if place.part:
        box = replace(box, title=f"{name}: parts", result=False)
    elif place.node in place.group.finishes:
        box = replace(box, title=f"{name}: combined")
    stored = place.node in place.group.stores or place.part
    return replace(box, scope=frames[place.group.name], result=result and bool(stored))


def _sources(partition: Partition, place: Place, home: Mapping[Node, Group]) -> list[tuple[int, Place, int]]:
    """The operands of a place: the number of each, its place, and its bytes if it goes through memory."""
    group, node = place.group, place.node
    if group is None:
        return []
    if node in group.finishes and not place.part:
        maker = next(g for g in partition.groups if node in g.partials)
        return [(0, Place(maker, node, "partial"), node.nbytes * partition.chunks_of[node])]
    inputs = set(partition.graph.inputs)
    found = []
    compute = partition.computes[node]
    for slot, view in enumerate(compute.reads):
        if not isinstance(view, View) or view.base not in compute.bases:
            continue
        base = view.base
        inside = base in group.levels
        size = 0 if inside else nbytes_read(view)
        if base in inputs:
            found.append((slot, Place(None, base, group.name), size))
        elif inside or base in home:
            found.append((slot, Place(group if inside else home[base], base), size))
    return found


def nbytes_read(view: View) -> int:
    """The bytes of the elements that a view reads, each counted once."""
    if isinstance(view.base.dtype, tuple):
        return 0
    return int(min(view.footprint, view.base.size) * view.base.dtype.itemsize)


def _why(partition: Partition, source: Place, reader: Place) -> str:
    """Why a value goes through memory on its way from one place to another."""
    if source.group is None:
        return OUTSIDE
    if source.part:
        return UNFINISHED
    recorded = partition.reasons.get((source.node, reader.node))
    if recorded:
        return recorded
    if source.node in source.group.partials:
        return UNFINISHED
    return f"{reader.node.name} is computed again by each reader, which takes less time than storing it"


# The source -----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a kernel's source, and its nodes: computed, loaded or stored there."""

    text: str
    nodes: tuple[Node, ...]


def source_of(lowered: Lowered, names: Mapping[Node, str]) -> list[Line]:
    """The listing of a kernel in C: a comment for each parameter, then the function.

    >>> program = mg.jit(lambda x: mg.tanh(x) * 2).program(mg.ones(8))
    >>> (lowered,) = program.lowered.values()
    >>> for line in source_of(lowered, program.optimised.names())[3:]:
    ...     print(line.text, [node.name for node in line.nodes])
    void kernel_0(const float *restrict b0, float *restrict b1, int64_t lo, int64_t hi) { []
        for (int64_t i = lo; i < hi; i++) { []
            const float v1 = b0[i]; ['tanh', 'tensor']
            const float v2 = own_tanh(v1); ['tanh']
            const float v3 = v2 * 2.0f; ['multiply']
            b1[i] = v3; ['multiply']
        } []
    } []
    """
    about: dict[str, Node] = dict(lowered.origins)
    head = []
    for parameter, argument in zip(lowered.kernel.parameters, lowered.arguments):
        node = argument.node
        what = "a temporary row"
        if node is not None:
            about[parameter.name] = node
            part = {"partial": "parts of ", "number": f"element {argument.offset} of "}.get(argument.kind, "")
            what = part + names[node]
        text = f"// {parameter.name}: {what}, {counted(parameter.size, 'element')}"
        head.append(Line(text, () if node is None else (node,)))
    listing = CPrinter(lowered.kernel, lowered.group.name).function().splitlines()
    lines = [Line(text, _meant(text, about) if number else ()) for number, text in enumerate(listing)]
    return [*head, Line("", ()), *lines]


def _meant(text: str, about: Mapping[str, Node]) -> tuple[Node, ...]:
    """The nodes of a line: the value that is defined or stored, then the memory that is read."""
    found = NAME.findall(text)
    if found and found[0][0] == "s":  # a temporary row: the stored value comes first
        found = found[::-1]
    names = [*found[:1], *[name for name in found[1:] if name[0] == "b"]]
    return tuple(dict.fromkeys(about[name] for name in names if name in about))


def plain_lines(lines: list[Line], number: Mapping[Node, Any]) -> list[Any]:
    """Lines as plain data: the text, and the numbers of the nodes."""
    return [[line.text, [number[node] for node in line.nodes if node in number]] for line in lines]
