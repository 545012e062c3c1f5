"""Writes `minigrad/core/tensor.pyi`: the stub of `Tensor` for type checkers, with the methods that `ops` adds.

    python3 course python -m tests.typing_stub          writes the file
"""

from __future__ import annotations

import inspect
import pathlib
from types import FunctionType
from typing import Any

import minigrad  # noqa: F401 - declares the operations
from minigrad.core import tensor as module

STUB = pathlib.Path(module.__file__).with_suffix(".pyi")

HEADER = '''"""Made by `python -m tests.typing_stub`; a test compares it with the class."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .view import Alias

F = TypeVar("F", bound=Callable[..., Any])
Axis = int | tuple[int, ...] | None
Index = Any
NUMBERS: frozenset[Any]
NONZERO: str
new_tensor: Callable[[type[Tensor]], Tensor]

class DEFAULT:
    device: Any

class AbstractData:
    shape: Any
    dtype: Any
    size: int
    way_out: Any
    @property
    def no_value(self) -> str: ...
    @property
    def where(self) -> Any: ...
    def evaluated(self) -> Any: ...
    def detached(self) -> AbstractData: ...
    def missed(self, error: Exception) -> Exception: ...
'''
ATTRIBUTES = {
    "_data": "Any", "device": "Any", "node": "Any", "tracked": "int", "alias": "Alias | None", "_grad": "Tensor | None",
}


def stub() -> str:
    """The text of `tensor.pyi`, made from the class after all operations are declared."""
    lines = [HEADER, "class Tensor:"]
    lines += [f"    {name}: {kind}" for name, kind in ATTRIBUTES.items()]
    for name, member in sorted(vars(module.Tensor).items()):
        lines += [f"    {line}" for line in _member(name, member)]
    lines.append("")
    for name, member in sorted(vars(module).items()):
        if isinstance(member, FunctionType) and member.__module__ == module.__name__:
            lines.append(_function(name, member))
    return "\n".join(lines) + "\n"


def _member(name: str, member: Any) -> list[str]:
    if isinstance(member, property):
        assert member.fget is not None
        result = inspect.signature(member.fget).return_annotation
        lines = ["@property", f"def {name}(self) -> {_text(result)}: ..."]
        if member.fset is not None:
            lines += [f"@{name}.setter", f"def {name}(self, value: Any) -> None: ..."]
        return lines
    if isinstance(member, FunctionType) and name not in ("__init_subclass__", "__init__"):
        return [_function(name, member, owner="self") ]
    return []


def _function(name: str, function: Any, owner: str | None = None) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if owner is not None:
        parameters[0] = parameters[0].replace(name=owner, annotation=inspect.Parameter.empty)
    words, star = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.annotation is p.empty else f": {_text(p.annotation)}"
        words.append(f"{prefix}{p.name}{kind}" + ("" if p.default is p.empty else " = ..." if kind else "=..."))
    return f"def {name}({', '.join(words)}) -> {_text(signature.return_annotation)}: ..."


def _text(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return "Any"
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
