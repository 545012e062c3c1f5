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
    """The nodes of final graphs that launches compute, by the number of the launch; `parts` are their titles.

    A launch that computes something else, too, has none.
    """
    traced = dict[Key, list[tuple[Titles, Node]]]()
    for titles in parts:
        for node in titles.shown.program.graph.nodes:
            traced.setdefault(_key(node), []).append((titles, node))
    launched = dict[Key, list[list[int]]]()
    for key, numbers in _operations(sites):
        launched.setdefault(key, []).append(numbers)
    found, unknown = dict[int, list[tuple[Titles, Node]]](), set[int]()
    for key, launches in launched.items():
        nodes = traced.get(key, [])
        if len(nodes) != len(launches):
            unknown.update([number for numbers in launches for number in numbers if not is_view(key[-1])])
            continue
        for numbers, (titles, node) in zip(launches, nodes):
            now = titles.became.get(node, node)
            same = _key(titles.before.get(now, now)) == key  # else a pass has put another value in its place
            for number in numbers:
                found.setdefault(number, []).append((titles, now if same else node))
    return {number: (pairs[0][0], [*dict.fromkeys([node for _, node in pairs])]) for number, pairs in found.items()
            if number not in unknown and len({titles for titles, _ in pairs}) == 1}


def _key(node: Node) -> Key:
    made = node.origin or node
    return made.where, _alike(made.scope), node.origin is not None, node.name


def _alike(scope: tuple[str, ...]) -> tuple[str, ...]:
    """The modules without the numbers that a trace gives to several of one type, `Linear 2`."""
    return tuple([name.partition(" ")[0] for name in scope])


def _operations(sites: Sequence[Site]) -> Iterator[tuple[Key, list[int]]]:
    """The operations that are called, in order, each with the numbers of its launches.

    A step of a program is the operations that its function recorded.  Gradients compute some of a forward pass again.
    """
    known = dict[Any, Titles]()
    for _, run in groupby(enumerate(sites), lambda each: each[1].run if each[1].run >= 0 else -1 - each[0]):
        numbers, (site, *_) = zip(*run)
        rule = is_rule(site)
        place = site.where, _alike(site.scope), rule
        if any(code.co_filename.replace("\\", "/").endswith(FLOW) for code, _ in site.frames):
            continue
        if site.run < 0:
            if not is_view(site.name):
                yield (*place, site.name), [*numbers]
            continue
        titles = known.get(site.program) or known.setdefault(site.program, Titles(Shown("", site.program)))
        steps = dict[str, list[int]]()
        for number in numbers:
            for part in sites[number].name.split("/"):
                steps.setdefault(part, []).append(number)
        jitted = site.name.split("/")[0] in titles.computed  # its operations have places of their own
        for node in titles.shown.program.graph.nodes:
            if rule == (node.origin is not None):
                step = titles.home.get(titles.became.get(node, node), "")
                yield _key(node) if jitted else (*place, node.name), steps.get(step, [])


def is_rule(site: Site) -> bool:
    """Whether a launch is in a rule of a gradient, and does not compute values of a forward pass again."""
    return site.of >= 0 and "make_readable" not in {code.co_name for code, _ in site.frames}
