"""Where the launches of eager mode belong: to a phase, to a layer, and to the round of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..compile.look.held import Site
from ..core.mode import Branch
from .naming import call_of, layer_name, loop_around, name_at
from .phases import BACKWARD, FORWARD, UPDATE, Path, is_tangent, phase_of
from .repeats import rounds_of

INNER = "inner gradients"


class Place(NamedTuple):
    """Where a launch belongs: its phase, its layer with the path of that; in a loop, the loop or layer and the round.

    `called` is what the code calls the value, outside modules.
    """

    phase: str
    layer: str
    row: Path
    turn: tuple[str, ...]
    called: str


def places_of(sites: Sequence[Site], rows: Mapping[Path, str], middle: int = 0) -> Iterator[Place]:
    """The place of each launch; `rows` are the names of modules.

    If the backward pass of the whole call begins at number `middle`, all before it is the forward pass, also gradients
    that the function itself computes.  A rule in the user's code belongs to the backward pass that calls it.
    """
    own = [BACKWARD if site.of >= 0 and not is_tangent(site.frames) else phase_of(site.frames) for site in sites]
    phases = [FORWARD] * middle + [BACKWARD] * (len(own) - middle) if middle else [*_phases(sites, own)]
    kinds = [(site.name, site.where, site.scope) if phases[n] == FORWARD else n for n, site in enumerate(sites)]
    rounds = rounds_of(kinds, [[at for _, at in site.frames] for site in sites])
    for n, site in enumerate(sites):
        scope = site.scope
        row = next((scope[:depth] for depth in range(len(scope), 0, -1) if scope[:depth] in rows), scope[:2])
        layer = rows.get(row) or layer_name(row)
        first, number = rounds.get(n, ((), ""))
        runs = [sites[i] for i in first]
        turn = (layer or loop_around(runs), number) if any(site.cost.flops for site in runs) else ()
        called = INNER * (phases[n] == FORWARD)
        if own[n] != BACKWARD:
            called = name_at(site.where, site.name) * all(isinstance(name, Branch) for name in scope)
        if is_tangent(site.frames):
            called = f"tangents of {called or call_of(site) or site.name}"
        yield Place(phases[n], layer, row, turn, called)


def _phases(sites: Sequence[Site], own: Sequence[str]) -> Iterator[str]:
    """The phases: after a backward pass, and before a module is called again, what runs in no_grad is an update.

    What is recorded there is in no phase, if no backward pass follows.
    """
    first, *_, last = [n for n, phase in enumerate(own) if phase == BACKWARD] * 2 or [len(own)] * 2
    called = False
    for n, (site, phase) in enumerate(zip(sites, own)):
        called = phase != BACKWARD and (called or bool(site.scope))
        after = phase == FORWARD and not called and n > (last if site.records else first)
        yield UPDATE * (not site.records) if after else phase
