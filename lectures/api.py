"""The reference of what can be called, from signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import minigrad as mg
import minigrad.compile
import minigrad.course
import minigrad.viz

# Title, how it is written, where it is looked for.
ROOMS: tuple[tuple[str, str, Any], ...] = (
    ("Functions", "mg.", mg),
    ("Methods of tensors", "Tensor.", mg.Tensor),
    ("Linear algebra", "mg.linalg.", mg.linalg),
    ("Random numbers", "mg.random.", mg.random),
    ("Layers", "mg.nn.", mg.nn),
    ("Optimizers", "mg.optim.", mg.optim),
    ("Data", "mg.data.", mg.data),
    ("Seeing", "mg.viz.", minigrad.viz),
    ("The course", "course.", minigrad.course),
)
LAZY = ("graph", "jit", "kernel", "load_program", "profile", "script", "trace")


def members(place: Any) -> Iterable[tuple[str, Any]]:
    """What is public in a module or class and has something to say of itself."""
    names = set(vars(place)) | (set(LAZY) if place is mg else set())
    for name in sorted(getattr(place, "__all__", names), key=str.lower):
        if name.startswith("_"):
            continue
        found = getattr(place, name)
        ours = (getattr(found, "__module__", "") or "").startswith("minigrad")
        error = inspect.isclass(found) and issubclass(found, BaseException)
        if ours and callable(found) and not error and inspect.getdoc(found):
            yield name, found


def signature(found: Any) -> str:
    """The parameters, without types: the names are what one writes."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    bare = [each.replace(annotation=each.empty) for each in parameters if each.name != "self"]
    try:
        return str(inspect.Signature(bare))
    except ValueError:
        return "(...)"


def api_page() -> str:
    """All rooms as one page of Markdown."""
    lines = ["# What can be called", "", "Each entry is the docstring; its example is run as a test."]
    for title, prefix, place in ROOMS:
        lines += ["", f"## {title}", ""]
        for name, found in members(place):
            text = inspect.getdoc(found) or ""
            said, _, example = text.partition(">>> ")
            lines += [f"### `{prefix}{name}`", "", "```python", f"{prefix}{name}{signature(found)}", "```", ""]
            lines += said.strip().splitlines()
            lines += ["", "```python", f">>> {example.rstrip()}", "```", ""] if example else [""]
    return "\n".join(lines) + "\n"
