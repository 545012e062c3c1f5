"""Makes functions and classes of the rows of `torch.txt`, with PyTorch's parameters."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..support.errors import ConversionError, MinigradError
from ..support.synonyms import TORCH, Row

ALSO = {"axis": "dim", "keepdims": "keepdim"}  # other spellings that PyTorch takes as well
PLAIN: dict[str, Any] = {"__name__": f"{__package__}.torch"}  # what the expressions of rows may name: `rooms` fills it


def refuse(what: str, instead: str) -> Any:
    """Raise the error for something that has no counterpart."""
    raise ConversionError(f"minigrad.compat: {what} is not supported", hint=instead)


@functools.cache
def function_of(row: Row, name: str, ours: Any = None) -> Any:
    """The function of a row, or of one of its names; `ours` is the class of minigrad for a method."""
    parameters = row.signature or ""
    refused = dict(re.findall(r"!(\w+)=((?:\([^)]*\)|[^,])+)", parameters))
    declared = re.sub("[!~]", "", parameters)
    expression = row.expression.replace("{}", name.rstrip("_"))
    star = re.search(r"(?<!\*)\*(\w+)", declared)  # `x.view(2, 3)` and `x.view((2, 3))`, and `x.view(size=(2, 3))` too
    if star is not None:
        declared = declared.replace(star[0], f"*_given, {star[1]}=None", 1)
    lines = [f"def row({_with_other_names(declared)}):"]
    if star is not None:
        lines.append(f"    {star[1]} = _given if {star[1]} is None else ({star[1]},)")
    lines += [f"    if {theirs} is not None: {dim} = {theirs}" for theirs, dim in ALSO.items() if _takes(declared, dim)]
    lines += [f"    if {each} != {default}: refuse(f'{name}({each}={{{each}!r}})', 'leave it out: only {each}="
              f"{default} is possible')" for each, default in refused.items()]
    lines += [f"    {each} = {each}_of({each})" for each in ("dtype", "device") if _takes(declared, each)]
    lines += ["    try:", f"        return ({expression})", "    except MinigradError as error:",
              f"        retitle(error, {name!r})", "        raise"]
    return _made(lines, name, ours=ours)


def forward_of(row: Row, name: str) -> Callable[..., Any]:
    """The `forward` of a layer's row: the constructor's arguments are attributes of the layer."""
    options = re.findall(r"[(, ~!](\w+)=|[(, ](\w+)(?=,|$)", f" {row.signature}")
    lines = [f"def row(self, {row.inputs}):"]
    lines += [f"    {each} = self.{each}" for pair in options for each in pair if each]
    lines += [f"    return ({row.expression.replace('{}', name.lower())})"]
    return _made(lines, "forward")  # type: ignore[no-any-return]


def _made(lines: list[str], name: str, ours: Any = None) -> Any:
    """Run the text of a function, in which `ours` is a class of minigrad."""
    text = "\n    ".join(["def made(ours):", *lines, "return row"])
    made: dict[str, Any] = {}
    exec(compile(text, f"{TORCH}:{name}", "exec"), PLAIN, made)
    function = made["made"](ours)
    function.__qualname__ = function.__name__ = name.rpartition(".")[2]
    return function


def _with_other_names(declared: str) -> str:
    more = [f"{theirs}=None" for theirs, ours in ALSO.items() if _takes(declared, ours)]
    star = [] if re.search(r"\*(,|\w)", declared) or not more else ["*"]
    return ", ".join(filter(None, [declared, *star, *more]))


def _takes(declared: str, name: str) -> bool:
    return re.search(rf"\b{name}\b(?==|,|$)", declared) is not None


def words_of(row: Row) -> list[str]:
    """For each argument of a constructor of ours, the name of PyTorch's."""
    parts = ast.parse(row.expression or "()", mode="eval").body.elts  # type: ignore[attr-defined]
    named = [[each.id for each in ast.walk(part) if isinstance(each, ast.Name)] for part in parts]
    return [next((name for name in names if name in str(row.signature)), "") for names in named]


def retitle(error: MinigradError, name: str, words: Mapping[str, str] = MappingProxyType({})) -> None:
    """Begin a message with the name that the program wrote, instead of the name of the operation; so for arguments."""
    text = str(error.args[0])
    named = re.match(r"\w+(?=: | is for | does not )", text)
    if named is not None:
        rest = re.sub(r"^(: )(\w+)(?= is )", lambda found: found[1] + words.get(found[2], found[2]), text[named.end():])
        error.args = (name + rest, *error.args[1:])
