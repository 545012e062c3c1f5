"""The stages of a kernel on its way to a processor: the transforms of loops, in this order for every machine."""

from __future__ import annotations

from collections.abc import Iterator

from .hoist import hoist
from .ir import Kernel
from .lanes import Machine
from .legalise import legalise
from .plain import plain
from .rows import with_rows_at_once
from .sums import with_long_sums_in_blocks, with_terms
from .tiles import tiled
from .widen import widen


def stages(kernel: Kernel, machine: Machine) -> Iterator[tuple[str, Kernel]]:
    """The kernel after each group of transforms, by their names; the last one is printed."""
    yield "loops", kernel
    kernel = with_terms(with_long_sums_in_blocks(with_rows_at_once(tiled(kernel)), machine.rounds))
    yield "banded", kernel
    kernel = widen(kernel, machine)
    yield "widened", kernel
    yield "hoisted", hoisted(kernel, machine)


def hoisted(kernel: Kernel, machine: Machine) -> Kernel:
    """The kernel in the statements that printers write."""
    place = machine.position
    return hoist(plain(legalise(kernel, fused=machine.fused), place), place, machine.in_bytes)
