"""Tallies: how often the functions of loops and branches run.  The cost model counts rounds by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...support.table import counted
from .count import functions_of


class Tally:
    """How often a function ran: in all, and in the last run of the outermost loop or branch around it."""

    def __init__(self) -> None:
        self.runs = 0
        self.last: int | None = None


def listing_inside(attrs: Mapping[str, Any], stage: str) -> list[str]:
    """The lines of a stage ("plan", "partition") of the programs inside a loop or branch."""
    lines = []
    for name, function in attrs.items():
        found = getattr(function.program, stage, None) if hasattr(function, "tally") else None
        if found is not None:
            lines += [f"  {name}:", *[f"    {line}" for line in str(found).splitlines()]]
    return lines


def tallied(attrs: Mapping[str, Any], run: Callable[[Any], object]) -> Callable[[Any], object]:
    """The run of a loop or branch, after which all tallies inside it are right."""
    tallies = _inside(attrs)
    if not tallies:
        return run

    def step(starts: Any) -> None:
        before = [tally.runs for tally in tallies]
        run(starts)
        for tally, runs in zip(tallies, before):
            tally.last = tally.runs - runs

    return step


@contextmanager
def untallied(nodes: Iterable[Any]) -> Iterator[None]:
    """Runs of these loops and branches inside the block do not count: a look at values changes no cost."""
    tallies = [tally for node in nodes for tally in _inside(node.attrs)]
    before = [(tally.runs, tally.last) for tally in tallies]
    try:
        yield
    finally:
        for tally, known in zip(tallies, before):
            tally.runs, tally.last = known


def _inside(attrs: Mapping[str, Any]) -> list[Tally]:
    """The tallies of all functions of a loop or branch, also those of loops inside it."""
    found: list[Tally] = []
    for function in functions_of(attrs):
        found.append(function.tally)
        for node in function.graph.nodes:
            found += _inside(node.attrs)
    return list(dict.fromkeys(found))


def rounds_text(attrs: Mapping[str, Any]) -> str:
    """How often the functions of a loop or branch run, in words."""
    body = attrs.get("body")
    if body is None:
        ran = [f'"{key}"' for key in ("then", "otherwise") if attrs[key].tally.last]
        known = f"where {' and '.join(ran)} ran" if ran else "of which the larger function is counted"
        return f"a branch, {known}"
    rounds = body.tally.last if attrs.get("counted", True) else attrs["length"]
    return "a loop, of which 1 round is counted" if rounds is None else f"a loop of {counted(rounds, 'round')}"
