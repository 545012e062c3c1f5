"""The rooms of the library, read from its sources: their order, what each is for, how long it is, what imports what.

The layout test holds the library to the order that is written here, and the map of the course draws it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "minigrad"

# Each room may import from itself and from the rooms before it.
ROOMS = [
    "support", "core", "arguments", "devices", "ops", "autodiff", "control", "compile", "eager", "scripting", "nn",
    "distributions",
    "optim", "data", "io", "distributed", "train",
]
# These may import all rooms, and no room imports them.
ONLOOKERS = ["viz", "examples", "compat"]
# Modules above all rooms: they may import anything, and no room imports them.
ROOF = ["__init__", "random", "linalg"]

# The rooms of the compiler, by the same rule.  Modules directly in `compile` and user kernels are above all of them.
COMPILER = [
    "nodes", "loops", "tracing", "rewriting", "fusion", "lowering", "codegen", "running", "functions",
    "control", "look", "save",
]


class Arrow(NamedTuple):
    """An import from one module to another, both by dotted name."""

    source: str
    target: str
    for_types: bool  # under `if TYPE_CHECKING`


def modules_of(package: Path) -> dict[str, Path]:
    """The modules of a package by their dotted names, with their files."""
    paths = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def arrows_of(name: str, path: Path, modules: dict[str, Path]) -> Iterator[Arrow]:
    """All imports of a module, including those inside functions."""
    here = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]

    def visit(node: ast.AST, for_types: bool) -> Iterator[Arrow]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue  # it holds no import
            if isinstance(child, ast.Import):
                found = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                start = here[: len(here) - child.level + 1] if child.level else []
                base = ".".join([*start, *([child.module] if child.module else [])])
                found = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in child.names]
            else:
                found = []
            yield from [Arrow(name, target, for_types) for target in found if target.split(".")[0] == here[0]]
            types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from visit(child, for_types or types)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


@cache
def all_arrows(package: Path) -> list[Arrow]:
    """All imports between the modules of a package."""
    modules = modules_of(package)
    return [arrow for name, path in modules.items() for arrow in arrows_of(name, path, modules)]


def room_of(name: str) -> tuple[str, str]:
    """The room of a module, and its room inside the compiler ('' if it has none).

    >>> room_of("minigrad.compile.fusion.fuse"), room_of("minigrad.linalg")
    (('compile', 'fusion'), ('linalg', ''))
    """
    _, room, *rest = [*name.split("."), ""]
    inner = rest[0] if room == "compile" and rest and rest[0] in COMPILER else ""
    return room if room in ROOMS + ONLOOKERS + ROOF else "__init__", inner


def files_of(room: str) -> list[Path]:
    """The files of a room that are counted: Python, JavaScript and CSS."""
    return sorted(path for path in (PACKAGE / room).rglob("*") if path.suffix in (".py", ".js", ".css"))


@cache
def lines_of(path: Path) -> int:
    """How many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def size_of(room: str) -> int:
    """How many lines a room has; a room of the compiler is "compile/fusion"."""
    return sum(map(lines_of, files_of(room)))


DOCSTRING = re.compile(r'(?:#.*\n)*r?"""(.*?)"""', re.DOTALL)


@cache
def purpose_of(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    found = DOCSTRING.match(path.read_text(encoding="utf-8"))
    said = found[1] if found else ""
    return " ".join(said.split("\n\n")[0].split())


@cache
def imports_of() -> dict[str, list[str]]:
    """For each room the other rooms that it imports, in their order."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS + ONLOOKERS}
    for arrow in all_arrows(PACKAGE):
        room, other = room_of(arrow.source)[0], room_of(arrow.target)[0]
        if room in found and other in found and room != other:
            found[room].add(other)
    return {room: [each for each in ROOMS + ONLOOKERS if each in others] for room, others in found.items()}


QUOTE = re.compile(r"^`{3,}python minigrad/(\S+)(?: (\S+))?$", re.MULTILINE)


def taught(lecture: str) -> dict[str, list[str]]:
    """The rooms whose code a lecture quotes, with the functions, or the files; compiler rooms are "compile/fusion".

    >>> taught("```python minigrad/core/node.py topological_order\\n```")
    {'core': ['topological_order']}
    """
    found: dict[str, list[str]] = {}
    for path, name in QUOTE.findall(lecture):
        room, inner = room_of("minigrad." + path.removesuffix(".py").replace("/", "."))
        listed = found.setdefault(f"{room}/{inner}" if inner else room, [])
        quoted = name or path.rpartition("/")[2]
        listed += [] if quoted in listed else [quoted]
    return found
