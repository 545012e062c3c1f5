"""The source of a kernel, line by line, with the nodes of each line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..compile.codegen.c import CPrinter
from ..compile.lowering.lower import Lowered
from ..core.node import Node
from ..support.table import counted

NAME = re.compile(r"\b[vbs]\d+")


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
