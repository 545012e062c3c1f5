"""Where the launches of eager mode belong: to a phase, to a layer, and to the round of a loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import unwrap
from typing import NamedTuple

from ..compile.look.held import Site
from ..ops.composite import COMPOSED
from .counterparts import alike, counterparts_of, is_rule, place_in_code
from .naming import call_of, layer_name, loop_around, name_at
from .phases import BACKWARD, FORWARD, WALK, Section, is_gradient, is_tangent, phase_of
from .repeats import rounds_of
from .titles import LAYERS, SUM, Titles


class Place(NamedTuple):
    """Where a launch belongs: its phase, its layer; in a loop, the loop or layer and the round.

    `called` is what the code calls the value.  The `part` is the layer; outside modules, a call with all that it
    computes, or a value with its tangents.  The `whole` is the outermost composed function that computes it, and the
    `title` that of the same computation in the program, or what the code calls it.
    """

    phase: str
    layer: str
    turn: tuple[str, ...]
    called: str
    part: str
    whole: str
    title: str

    @property
    def path(self) -> tuple[str, ...]:
        """The round, in its loop or layer; outside loops, the part."""
        return self.turn or (self.part,)


def places_of(sites: Sequence[Site], parts: Sequence[Titles] = ()) -> Iterator[Place]:
    """The place of each launch; `parts` are the titles of the program and its gradient, if there are any.

    What the program computes too has the phase, the module and the title that it has there; other launches have the
    phase of the functions that led there.  After a gradient, what no program and no module computes is in no phase: it
    may be an update, or not.
    """
    nowhere = Section("", "")
    nothing = nowhere, ""
    known = {n: titles.titled(nodes) if titles in parts else (nowhere, titles.titled(nodes)[1])
             for n, (titles, nodes) in counterparts_of(sites, parts).items()}
    phase_at = parts[0].phase_at if parts else {}
    rows = {path: row for titles in parts for path, row in titles.rows.items()}
    several = Counter(map(alike, rows))  # eager mode does not number models of one type
    rows = {path: row for path, row in rows.items() if several[alike(path)] == 1}
    phases, after = list[str](), False
    codes = {unwrap(made).__code__: name for name, made in COMPOSED.items() if not made.__module__.startswith(LAYERS)}
    for n, site in enumerate(sites):
        phase = phase_of(site.frames, site.of >= 0)
        after = after or phase == BACKWARD
        unknown = phase == FORWARD and after and site.cost.launches and not site.scope
        own = known.get(n, nothing)[0].phase or phase_at.get(site.where)
        phases.append(phase if phase == BACKWARD else own or phase * (not unknown))
    kinds = [(site.name, place_in_code(site.where), site.scope) if phases[n] == FORWARD else n
             for n, site in enumerate(sites)]  # Python may move an instruction in a loop
    rounds = rounds_of(kinds, [[at for _, at in site.frames] for site in sites])
    for n, site in enumerate(sites):
        scope, (section, title) = site.scope, known.get(n, nothing)
        gradient = is_gradient(site.frames, site.of >= 0)
        names = {code.co_name for code, _ in site.frames}
        layer = section.layer or next(
            (rows[scope[:depth]] for depth in range(len(scope), 0, -1) if scope[:depth] in rows), layer_name(scope[:2]))
        layer = ": ".join(filter(None, ["inner gradients" * (gradient and phases[n] == FORWARD), layer]))
        first, number = rounds.get(n, ((), ""))
        runs = [sites[i] for i in first]
        turn = (layer or loop_around(runs), number) if any(site.cost.flops for site in runs) else ()
        tangent, call = is_tangent(site.frames), call_of(site)
        called = name_at(site.where, call if tangent and call not in COMPOSED else site.name)
        rule = is_rule(site)
        frames = (sites[site.of] if rule else site).frames
        whole = next(("∂" * rule + codes[code] for code, _ in frames if code in codes), "")
        if gradient:  # no rule of an operation called a sum
            called = SUM * (site.name == "add" and (call == "backward" or WALK.intersection(names) == {"walk"}))
        part = layer or "gradients" * (phases[n] == BACKWARD) or called or call or site.name
        if tangent:
            called = f"tangents: {site.name}" if gradient else f"tangents of {called or call or site.name}"
        yield Place(phases[n], layer, turn, called, part, whole, called if tangent else title or called)
