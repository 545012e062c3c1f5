"""`my_framework.py`: the functions of a student that passed their checks, in one file that can be read and imported."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from minigrad.support.table import counted

from ..results import Progress
from ..source_code import run_code
from ..unit import parts

FILE = "my_framework.py"
WIDE = 100  # characters of the line above each unit


class Collected(NamedTuple):
    """The file, the names of its functions and values, and the passed functions whose source is not known."""

    text: str
    names: list[str]
    missing: list[str]

    def loaded(self) -> dict[str, Any]:
        """What the file defines, by name."""
        names: dict[str, Any] = {"__name__": "my_framework"}
        run_code(self.text, names)
        return {name: names[name] for name in self.names}


def collected(progress: Progress, values: Collection[str] = ()) -> Collected:
    """Collect the right answers that are functions, and of the other right answers those that `values` names."""
    wanted = {name: unit for unit in parts().values() for name, task in unit.tasks.items()
              if progress.passed(name) and (task.kind == "function" or name in values)}
    uses = {name: progress.tasks[name].get("uses") or {} for name in wanted}
    found = {name: _definitions(each) for name, each in uses.items() if each}
    imports = {line for name in found for line in uses[name]["head"] if _is_import(line)}
    code = {name: each[name] for name, each in found.items()}  # by its name in the file
    written, sections = set[str](), list[str]()
    for name, own in found.items():
        unit = wanted[name]
        title = f"# ---- {unit.heading} ".ljust(WIDE, "-")
        sections += [title] * (title not in sections)
        new = {each: _free(each, source, unit.key[:2], code) for each, source in own.items()}
        code |= {new[each]: source for each, source in own.items()}
        sections += [_renamed(source, new) for each, source in own.items() if new[each] not in written]
        written |= set(new.values())
    whose = f"{progress.student}'s framework" if progress.student else "My framework"
    head = (f'"""{whose}: {counted(len(found), "piece")} from the minigrad course, each of which passed its check.\n\n'
            "`course.my_framework()` makes this file from the latest right answers: copy it before you change it.\n"
            '"""')
    text = "\n\n\n".join(["\n\n".join([head, "\n".join(sorted(imports))]), *[each.rstrip() for each in sections]])
    return Collected(text + "\n", list(found), [name for name in wanted if name not in found])


def _is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def _definitions(uses: Mapping[str, Any]) -> dict[str, str]:
    """What an answer defines: plain values and functions, by name."""
    values = {line.partition(" = ")[0]: line for line in uses["head"] if not _is_import(line)}
    return values | uses["code"]


def _free(name: str, source: str, unit: str, code: Mapping[str, str]) -> str:
    """The name of a definition in the file.  A second helper of the same name gets the number of its unit.

    >>> _free("f", "def f(): ...", "07", {"f": "def f(): ..."}), _free("f", "f = 1", "07", {"f": "def f(): ..."})
    ('f', 'f_07')
    """
    free = name
    while code.get(free, source) != source:
        free = f"{name}_{unit}" if free == name else f"{free}_"
    return free


def _renamed(source: str, new: Mapping[str, str]) -> str:
    """The source with other names; attributes and the names of arguments stay.

    >>> _renamed("f = f(x.f, f=f)", {"f": "g"})
    'g = g(x.f, f=g)'
    """
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    depth, places = 0, []
    for before, token, after in zip([None, *tokens], tokens, tokens[1:]):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        is_free = (before is None or before.string != ".") and not (depth and after.string == "=")
        if token.type == tokenize.NAME and is_free and new.get(token.string, token.string) != token.string:
            places.append((token.start, token.string))
    for (row, column), name in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new[name] + line[column + len(name) :]
    return "".join(lines)
