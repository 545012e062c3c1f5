"""The nodes of a program's trace that launches of eager mode compute: so both have the same words.

A launch and a node belong together if one place in the code calls the same operation in the same modules.  Where a
place calls it several times, as in a loop, all are called in the same order in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ..compile.look.held import Site
from ..core.node import Node
from .compiled import Shown
from .titles import Titles, is_view

FLOW = "/minigrad/control/flow.py"  # the code of loops and branches: eager mode runs each round, a trace has one node
Key = tuple[Any, tuple[str, ...], bool, str]  # place, modules, whether it is a gradient, operation


def counterparts_of(sites: Sequence[Site], parts: Sequence[Titles]) -> dict[int, tuple[Titles, list[Node]]]:
    """The nodes that launches compute, with the titles that name them, by the number of the launch.

    `parts` are the titles of the program and its gradient.  A step of a composed function that computes something else,
    too, has the titles of the function's own program.
    """
    traced = dict[Key, list[tuple[Titles, Node]]]()
    for titles in parts:
        for node in titles.shown.program.graph.nodes:
            traced.setdefault(_key(node), []).append((titles, node))
    launched, found, alone = dict[Key, list[list[int]]](), dict[int, list[tuple[Titles, Node]]](), set[int]()
    own = dict[int, tuple[Titles, list[Node]]]()
    for key, numbers in _operations(sites, own):
        launched.setdefault(key, []).append(numbers)
    for key, launches in launched.items():
        nodes = traced.get(key, [])
        if len(nodes) != len(launches):
            alone.update([number for numbers in launches for number in numbers if not is_view(key[-1])])
            continue
        for numbers, (titles, node) in zip(launches, nodes):
            for number in numbers:
                found.setdefault(number, []).append((titles, titles.now(node)))
    return own | {number: (pairs[0][0], [*dict.fromkeys([node for _, node in pairs])])
                  for number, pairs in found.items() if number not in alone and len(dict(pairs)) == 1}


def _key(node: Node) -> Key:
    made = node.origin or node
    return made.where, _alike(made.scope), node.origin is not None, node.name


def _alike(scope: tuple[str, ...]) -> tuple[str, ...]:
    """The modules without the numbers that a trace gives to several of one type, `Linear 2`."""
    return tuple([name.partition(" ")[0] for name in scope])


def _operations(
    sites: Sequence[Site], own: dict[int, tuple[Titles, list[Node]]]
) -> Iterator[tuple[Key, list[int]]]:
    """The operations that are called, in order, each with the numbers of its launches.

    A step of a program is the operations that its function recorded; `own` gets them.  In a gradient, only those of the
    gradient are yielded: it computes some of the forward pass again.
    """
    known = dict[Any, Titles]()
    for _, run in groupby(enumerate(sites), lambda each: each[1].run if each[1].run >= 0 else -1 - each[0]):
        numbers, (site, *_) = zip(*run)
        rule = is_rule(site)
        place = site.where, _alike(site.scope), rule
        in_flow = any(code.co_filename.replace("\\", "/").endswith(FLOW) for code, _ in site.frames)
        if site.run < 0:
            if not is_view(site.name) and not in_flow:
                yield (*place, site.name), [*numbers]
            continue
        if site.program not in known:
            known[site.program] = Titles(Shown("", site.program, gradient=rule))
        titles = known[site.program]
        jitted = site.name.split("/")[0] in titles.computed  # its operations have places of their own
        launched = dict[Node, list[int]]()
        for number in numbers:
            step = next((part for part in sites[number].name.split("/") if part in titles.computed), "")
            if nodes := titles.first_in(step):
                own[number] = titles, nodes
            for node in nodes:
                launched.setdefault(titles.before.get(node, node), []).append(number)
        for node in titles.shown.program.graph.nodes:
            if rule == (node.origin is not None) and not in_flow:
                yield _key(node) if jitted else (*place, node.name), launched.get(node, [])


def is_rule(site: Site) -> bool:
    """Whether a launch is in a rule of a gradient, and does not compute values of a forward pass again."""
    return site.of >= 0 and "make_readable" not in {code.co_name for code, _ in site.frames}
