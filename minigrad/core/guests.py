"""Modules of other packages under names in minigrad: `minigrad.course` is the package `minigrad_course`.

A package lists such names as entry points of the group `minigrad.modules`.  So minigrad names no package that depends
on it, and a notebook with an older name of a module finds the module at its new place.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

GROUP = "minigrad.modules"


@cache
def guests() -> dict[str, str]:
    """The names in minigrad that other packages have registered, with the names of the modules."""
    from importlib.metadata import entry_points  # takes a tenth of `import minigrad`, and is for old names only

    return {f"minigrad.{each.name}": each.value for each in entry_points(group=GROUP)}


def place_of(name: str) -> str | None:
    """The module that is meant by a name in minigrad, if it is another package's.

    >>> place_of("minigrad.course.tasks"), place_of("minigrad.nn")
    ('minigrad_course.tasks', None)
    """
    if name.startswith("minigrad."):
        for known, module in guests().items():
            if f"{name}.".startswith(f"{known}."):
                return module + name.removeprefix(known)
    return None


class GuestFinder:
    """Finds the modules of guests, and loads each as the one module that it is, under both of its names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if place_of(name) is None:
            return None
        if FINDER not in sys.meta_path:  # before other finders, which would load the modules of a guest a second time
            sys.meta_path.insert(0, FINDER)
        return ModuleSpec(name, FINDER)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        module = import_module(place_of(spec.name) or spec.name)
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """The module has run.  It keeps its own spec, in whose place Python has put that of the other name."""
        module.__spec__ = module.__spec__.loader_state if module.__spec__ else None


FINDER = GuestFinder()
