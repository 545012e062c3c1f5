"""Finds the names of attributes and globals that code can read, and whether it computes such names.

The names are in the instructions.  `getattr(x, "name")` reads the attribute like `x.name`.  With a name that is not a
constant, or with `vars`, `eval` and similar functions, the code may read any attribute.
"""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")  # their second argument is the name of an attribute
FACTORIES = ("attrgetter", "methodcaller")
ANY_ATTRIBUTE = ("vars", "dir", "eval", "exec", "compile")
ANY_GLOBAL = ("globals", "eval", "exec")
ATTRIBUTES = ("__dict__", "__getattribute__", "__match_args__")  # attributes that give access to all others
IMPORTERS = ("import_module", "__import__", "modules")  # the last is that of `sys`


class Reads(NamedTuple):
    """What a code object, and the functions in it, can read."""

    names: frozenset[str]  # of attributes
    globals: frozenset[str]
    imports: frozenset[tuple[str, int]]  # modules, with the level of a relative import; "" if a name may be computed
    computed: frozenset[str]  # builtin functions that are called with a name that is not a constant
    anything: bool  # whether it reads attributes without their names


@lru_cache(maxsize=4096)
def reads(code: types.CodeType) -> Reads:
    """What code can read."""
    steps = list(dis.get_instructions(code))
    found = {step.argval for step in steps if step.opname in GLOBAL}
    others = {step.argval for step in steps if step.opname not in GLOBAL and step.argval.__class__ is str}
    names = others.intersection(code.co_names) | {name for name in code.co_names if name not in found}
    strings = _strings(code.co_consts)
    imports = {(s.argval, _level(steps, i)) for i, s in enumerate(steps) if s.opname == "IMPORT_NAME"}
    computed = {name for name in (*ANY_ATTRIBUTE, *ANY_GLOBAL) if name in found}
    for i, step in enumerate(steps):
        if step.opname in GLOBAL and step.argval in BY_NAME:
            name = _second_argument(steps, i)
            if name is None:
                computed.add(step.argval)
            else:
                names.add(name)
    if not {*found, *names}.isdisjoint(FACTORIES):
        names.update(part for string in strings for part in string.split("."))
        computed.update(set() if strings else {"getattr"})
    if not names.isdisjoint(("format", "format_map")):
        names.update(re.findall(r"\.(\w+)", " ".join(strings)))  # of the fields in "{0.name}"
    if not {*found, *names}.isdisjoint(IMPORTERS):
        imports.update((string, 0) for string in strings or ("",))
    matches = [step for step in steps if step.opname == "MATCH_CLASS"]
    if matches:
        names.update(strings)
    anything = not names.isdisjoint(ATTRIBUTES) or any(step.arg for step in matches)
    inner = [reads(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return Reads(
        frozenset(names).union(*[each.names for each in inner]),
        frozenset(found).union(*[each.globals for each in inner]),
        frozenset(imports).union(*[each.imports for each in inner]),
        frozenset(computed).union(*[each.computed for each in inner]),
        anything or any(each.anything for each in inner),
    )


def all_codes(code: types.CodeType) -> list[types.CodeType]:
    """A code object, and those inside it."""
    return [code, *[c for part in code.co_consts if isinstance(part, types.CodeType) for c in all_codes(part)]]


def _strings(constants: Sequence[object]) -> set[str]:
    """The strings among constants, and in tuples of them."""
    found = {part for part in constants if isinstance(part, str)}
    return found.union(*[_strings(part) for part in constants if isinstance(part, tuple)])


def _level(steps: list[dis.Instruction], i: int) -> int:
    """The level of an import, which is pushed on the stack before the names."""
    level = next((s.argval for s in reversed(steps[:i]) if s.argval.__class__ is int), 0)
    return level if level.__class__ is int and level >= 0 else 0


def _second_argument(steps: list[dis.Instruction], at: int) -> str | None:
    """The second argument of the call of the function that is pushed at `at`, if it is a constant."""
    depths: list[int] = []  # of the stack above the function, before each instruction
    depth, first = 0, at + 1
    if steps[first].opname == "PUSH_NULL":
        first += 1
    for i in range(first, len(steps)):
        step = steps[i]
        effect = dis.stack_effect(step.opcode, step.arg, jump=False)
        if step.opname in ("PRECALL", "CALL") and depth + effect <= 0:
            return _constant(steps[first:i], depths, step.arg or 0)
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs or step.opname == "CALL_FUNCTION_EX":
            return None
        depths.append(depth)
        depth += effect
    return None


def _constant(steps: list[dis.Instruction], depths: list[int], arguments: int) -> str | None:
    """The second of the arguments that these instructions push, if it is a constant string."""
    place = len(steps) - 1  # of the instruction that ends the second argument
    if arguments == 3 and 2 in depths:
        place = len(depths) - 2 - depths[::-1].index(2)
    if arguments not in (2, 3) or place < 0 or depths[place] != 1 or steps[place].opname != "LOAD_CONST":
        return None
    name = steps[place].argval
    return name if isinstance(name, str) else None
