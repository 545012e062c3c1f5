"""Where the launches of eager mode belong: to a phase, to a layer, and to the round of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import unwrap
from typing import NamedTuple

from ..compile.look.held import Site
from ..ops.composite import COMPOSED
from .naming import call_of, layer_name, loop_around, name_at
from .notation import expression_at
from .phases import BACKWARD, FORWARD, WALK, is_gradient, is_tangent, phase_of
from .repeats import rounds_of
from .titles import LAYERS, SUM, Titles


class Place(NamedTuple):
    """Where a launch belongs: its phase, its layer; in a loop, the loop or layer and the round.

    `called` is what the code calls the value.  The `part` is the layer; outside modules, a call with all that it
    computes, or a value with its tangents.  The `whole` is the outermost composed function that computes it.
    """

    phase: str
    layer: str
    turn: tuple[str, ...]
    called: str
    part: str
    whole: str

    @property
    def path(self) -> tuple[str, ...]:
        """The round, in its loop or layer; outside loops, the part."""
        return self.turn or (self.part,)


def places_of(sites: Sequence[Site], titles: Titles | None = None) -> Iterator[Place]:
    """The place of each launch; `titles` are those of the program, if there is one, which names modules and phases.

    What it does not compute has the phase of the functions that led there.  After a gradient, what no program and no
    module computes is in no phase: it may be an update, or not.
    """
    rows, known = (titles.rows, titles.phase_at) if titles else ({}, {})
    phases, after = list[str](), False
    codes = {unwrap(made).__code__: name for name, made in COMPOSED.items() if not made.__module__.startswith(LAYERS)}
    for site in sites:
        phase = phase_of(site.frames, site.of >= 0)
        after = after or phase == BACKWARD
        unknown = phase == FORWARD and after and site.cost.launches and not site.scope
        phases.append(phase if phase == BACKWARD else known.get(site.where) or phase * (not unknown))
    kinds = [(site.name, expression_at(site.where) or site.where, site.scope) if phases[n] == FORWARD else n
             for n, site in enumerate(sites)]  # Python may move an instruction in a loop
    rounds = rounds_of(kinds, [[at for _, at in site.frames] for site in sites])
    for n, site in enumerate(sites):
        scope = site.scope
        gradient = is_gradient(site.frames, site.of >= 0)
        names = {code.co_name for code, _ in site.frames}
        layer = next((rows[scope[:depth]] for depth in range(len(scope), 0, -1) if scope[:depth] in rows),
                     layer_name(scope[:2]))
        layer = ": ".join(filter(None, ["inner gradients" * (gradient and phases[n] == FORWARD), layer]))
        first, number = rounds.get(n, ((), ""))
        runs = [sites[i] for i in first]
        turn = (layer or loop_around(runs), number) if any(site.cost.flops for site in runs) else ()
        tangent, call = is_tangent(site.frames), call_of(site)
        called = name_at(site.where, call if tangent and call not in COMPOSED else site.name)
        if gradient:
            # No rule of an operation called it.
            called = SUM * (site.name == "add" and WALK.intersection(names) == {"walk"})
        part = layer or "gradients" * (phases[n] == BACKWARD) or called or call or site.name
        if tangent:
            called = f"tangents: {site.name}" if gradient else f"tangents of {called or call or site.name}"
        rule = site.of >= 0 and "make_readable" not in names  # which computes values again
        frames = (sites[site.of] if rule else site).frames
        whole = next(("∂" * rule + codes[code] for code, _ in frames if code in codes), "")
        yield Place(phases[n], layer, turn, called, part, whole)
