"""The nodes of a program's trace that launches of eager mode compute: so both have the same words.

A launch and a node belong together if one place in the code calls the same operation in the same modules.  Where a
place calls it several times, as in a loop, all are called in the same order in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..compile.look.held import Site
from ..core.node import Node
from ..support.source import Where
from .compiled import Shown
from .notation import expression_at
from .scene import inside
from .titles import Titles, is_view

FLOW = "control/flow.py"  # the code of loops and branches: eager mode runs each round, a trace has one node
Named = tuple[Titles, list[Node]]  # nodes, and the titles that name them
Key = tuple[Any, tuple[str, ...], bool, str]  # place, modules, whether it is a gradient, operation


def counterparts_of(sites: Sequence[Site], parts: Sequence[Titles]) -> dict[int, Named]:
    """The nodes that launches compute, with the titles that name them, by the number of the launch.

    `parts` are the titles of the program and its gradient.  A step of a composed function that computes something else,
    too, has the titles of the function's own program.
    """
    traced, launched = dict[Key, list[tuple[Titles, Node]]](), dict[Key, list[list[int]]]()
    for titles in parts:
        for node in titles.shown.program.graph.nodes:
            traced.setdefault(_key(node), []).append((titles, node))
    steps = _steps_of(sites)
    for key, numbers in _operations(sites, steps):
        launched.setdefault(key, []).append(numbers)
    found, others = dict[int, list[tuple[Titles, Node]]](), set[int]()
    for key, launches in launched.items():
        nodes = traced.get(key, [])
        if len(nodes) != len(launches):
            others.update([number for numbers in launches for number in numbers if not is_view(key[-1])])
            continue
        for numbers, (titles, node) in zip(launches, nodes):
            for number in numbers:
                found.setdefault(number, []).append((titles, titles.now(node)))
    own = {number: step for number, step in steps.items() if step[1]}
    return own | {number: (pairs[0][0], [*dict.fromkeys([node for _, node in pairs])])
                  for number, pairs in found.items() if number not in others and len(dict(pairs)) == 1}


def _key(node: Node) -> Key:
    made = node.origin or node
    return place_in_code(made.where), alike(made.scope), node.origin is not None, node.name


def place_in_code(where: Where | None) -> Any:
    """The expression at a place in the code, which may have several instructions."""
    return expression_at(where) or where


def alike(scope: tuple[str, ...]) -> tuple[str, ...]:
    """The modules without the numbers that a trace gives to several of one type, `Linear 2`."""
    return tuple([name.partition(" ")[0] for name in scope])


def _steps_of(sites: Sequence[Site]) -> dict[int, Named]:
    """The nodes of each launch that is a step of a program, with the titles of this program."""
    known, found = dict[Any, Titles](), dict[int, Named]()
    for number, site in enumerate(sites):
        if site.run >= 0:
            if site.program not in known:
                known[site.program] = Titles(Shown("", site.program, gradient=is_rule(site)))
            titles = known[site.program]
            step = next((part for part in site.name.split("/") if part in titles.computed), "")
            found[number] = titles, titles.first_in(step)
    return found


def _operations(sites: Sequence[Site], steps: Mapping[int, Named]) -> Iterator[tuple[Key, list[int]]]:
    """The operations that are called, in order, each with the numbers of its launches.

    The steps of a program are the operations that its function recorded.  A gradient computes some operations of the
    forward pass again: these are left out.
    """
    for _, run in groupby(enumerate(sites), lambda each: each[1].run if each[1].run >= 0 else -1 - each[0]):
        numbers, (site, *_) = zip(*run)
        rule, launched = is_rule(site), dict[Node, list[int]]()
        place = place_in_code(site.where), alike(site.scope), rule
        if any(inside(code.co_filename) == FLOW for code, _ in site.frames):
            continue
        if site.run < 0:
            yield (*place, site.name), [*numbers]
            continue
        titles, _ = steps[numbers[0]]
        for number in numbers:
            for node in steps[number][1]:
                launched.setdefault(titles.before.get(node, node), []).append(number)
        jitted = site.name.split("/")[0] in titles.computed  # its operations have places of their own
        for node in titles.shown.program.graph.nodes:
            if rule == (node.origin is not None):
                yield _key(node) if jitted else (*place, node.name), launched.get(node, [])


def is_rule(site: Site) -> bool:
    """Whether a launch is in a rule of a gradient, and does not compute values of a forward pass again."""
    return site.of >= 0 and "make_readable" not in {code.co_name for code, _ in site.frames}
