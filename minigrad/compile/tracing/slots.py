"""Attributes that are in `__slots__`, and not in the dict of an object."""

from __future__ import annotations

import types
from typing import Any


def slots_of(kind: type) -> dict[str, Any]:
    """The descriptors of attributes that are not in a dict."""
    found = {n: d for cls in kind.__mro__[::-1] for n, d in vars(cls).items() if type(d) is types.MemberDescriptorType}
    return {name: descriptor for name, descriptor in found.items() if not name.endswith("__")}


def held_in_slots(slots: dict[str, Any], value: Any) -> dict[str, Any]:
    """The values of these attributes that are set."""
    held = {}
    for name, descriptor in slots.items():
        try:
            held[name] = descriptor.__get__(value)
        except (AttributeError, TypeError):  # not set, or the object's class is another one now
            pass
    return held
