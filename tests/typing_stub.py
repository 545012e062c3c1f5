"""Writes the stubs for type checkers, the `.pyi` files in `minigrad`.

    python3 course python -m tests.typing_stub          writes the files

`core/tensor.pyi` lists the methods that `ops` adds to `Tensor`.  The `__init__.pyi` of a package lists the names that
it exports, also those that are loaded when they are first used.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
from types import FunctionType
from typing import Any

import minigrad
import minigrad_course as course
from minigrad import viz
from minigrad.core import tensor as module

PACKAGES = minigrad, viz, course  # those that load names when they are first used

HEADER = '''"""Made by `python -m tests.typing_stub`; a test compares it with the class."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from .alias import Alias

F = TypeVar("F", bound=Callable[..., Any])
Axis = int | tuple[int, ...] | None
Index = Any
NUMBERS: frozenset[Any]
NONZERO: str
ADVICE: dict[str, str]
FloatTensor: TypeAlias = "Tensor"
new_tensor: Callable[[type[Tensor]], Tensor]

class DEFAULT:
    device: Any

class AbstractData:
    shape: Any
    dtype: Any
    size: int
    way_out: Any
    trace: Any
    @property
    def no_value(self) -> str: ...
    @property
    def where(self) -> Any: ...
    def evaluated(self) -> Any: ...
    def detached(self) -> AbstractData: ...
    def held_by(self, tensor: Tensor) -> None: ...
    def missed(self, error: Exception) -> Exception: ...
'''
ATTRIBUTES = {
    "_data": "Any", "device": "Any", "node": "Any", "tracked": "bool", "alias": "Alias | None",
    "_grad": "Tensor | None",
}

# A jitted function keeps its types.  A method loses its first parameter when it is read from an object.
JIT = '''
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Self = TypeVar("_Self")
_Rest = ParamSpec("_Rest")

class _Jitted(Jitted, Generic[_P, _R]):
    @overload
    def __get__(self, instance: None, owner: type | None = ...) -> _Jitted[_P, _R]: ...
    @overload
    def __get__(
        self: _Jitted[Concatenate[_Self, _Rest], _R], instance: _Self, owner: type | None = ...
    ) -> _Jitted[_Rest, _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

@overload
def jit(function: Callable[_P, _R], {settings}) -> _Jitted[_P, _R]: ...
@overload
def jit(function: None = ..., {settings}) -> Callable[[Callable[_P, _R]], _Jitted[_P, _R]]: ...
'''
# A transformed function takes what the function takes.
TRANSFORMS = '''
_Carry = TypeVar("_Carry")
_Row = TypeVar("_Row")

def grad(function: Callable[_P, Any], {grad}) -> Callable[_P, Any]: ...
def value_and_grad(function: Callable[_P, _R], {value_and_grad}) -> Callable[_P, tuple[_R, Any]]: ...
def jacobian(function: Callable[_P, _R], {jacobian}) -> Callable[_P, _R]: ...
def hessian(function: Callable[_P, Any], {hessian}) -> Callable[_P, Any]: ...
def vmap(function: Callable[_P, _R], {vmap}) -> Callable[_P, _R]: ...
def scan(f: Callable[[Any, Any], tuple[_Carry, _Row]], init: Any, {scan}) -> tuple[_Carry, _Row]: ...
'''
TYPED = "jit", "grad", "value_and_grad", "jacobian", "hessian", "vmap", "scan"
JIT_IMPORTS = """import builtins
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .compile import Jitted
"""


def stubs() -> dict[pathlib.Path, str]:
    """The text of each stub, by the path of its file."""
    texts = {module: stub(), **{package: package_stub(package) for package in PACKAGES}}
    return {pathlib.Path(each.__file__).with_suffix(".pyi"): text for each, text in texts.items()}


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


def package_stub(package: Any) -> str:
    """The text of a package's `__init__.pyi`: its imports, and those of the names that it loads later."""
    head = '"""Made by `python -m tests.typing_stub`; a test compares it with the package."""\n\n'
    tree = ast.parse(pathlib.Path(package.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    lines = [
        _exported(package, "." * node.level + (node.module or ""), [alias.name for alias in node.names])
        for node in imports
    ]
    lines += [_exported(package, "." + room.removeprefix("."), [name]) for name, room in package._LATER.items()]
    if package is not minigrad:
        return head + "".join(lines)
    typed = JIT.format(settings=_settings(minigrad.jit))
    typed += TRANSFORMS.format(**{name: _settings(getattr(minigrad, name)) for name in TYPED[1:]})
    return head + JIT_IMPORTS + "".join(lines) + "\n__version__: str\n" + typed


def _exported(package: Any, room: str, names: list[str]) -> str:
    """An import as stubs export names: `from .room import name as name`."""
    public = [name for name in names if name == "*" or (name in package.__all__ and name not in TYPED)]
    if [room] == [f".{name}" for name in public]:
        room = "."  # the name is that of a module
    listed = ", ".join([name if name == "*" else f"{name} as {name}" for name in public])
    return f"from {room} import {listed}\n" if public else ""


def _settings(function: Any) -> str:
    """The parameters of a function that have defaults, in a package where `bool` is a dtype."""
    _, *every = inspect.signature(function).parameters.values()
    parameters = [p for p in every if p.default is not p.empty]
    words = [f"{p.name}: {p.annotation.replace('bool', 'builtins.bool')} = ..." for p in parameters]
    return ", ".join(["*"] * (parameters[0].kind is inspect.Parameter.KEYWORD_ONLY) + words)


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
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
