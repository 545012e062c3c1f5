"""Write the pages of `lectures/reference` from the library itself: primitives, errors, names of other libraries.

`python -m lectures.site.build_reference` writes them again; a test compares the stored pages with fresh ones.
"""

from __future__ import annotations

import doctest
import inspect
import linecache
from importlib import import_module
from pathlib import Path

import numpy as np

import minigrad.compile
import minigrad.data
import minigrad.distributed
import minigrad.io
import minigrad.nn
import minigrad.optim
import minigrad.train  # some errors are declared in these rooms
import minigrad_course  # noqa: F401 - and in the course
from minigrad.core.primitive import P, Primitive
from minigrad.support import errors

from . import coming_from, differences

ABSTRACT = ("LookupError", "ArithmeticError", "Exception", "BaseException", "object")  # behind every error
HERE = Path(__file__).resolve().parents[1] / "reference"

KINDS = {
    "elementwise": "Element by element",
    "reduce": "Many elements to one",
    "view": "The same memory, seen differently",
    "index": "Picking, placing and ordering",
    "contract": "Products of matrices and what belongs to them",
    "random": "Random numbers",
    "creation": "Tensors from nothing",
    "structural": "Structure",
}
ROOMS = {
    "ops.elementwise": "Elementwise",
    "ops.elementary": "More elementwise functions",
    "ops.reduce": "Reductions",
    "ops.view": "Views",
    "ops.index": "Picking and placing",
    "ops.joining": "Joining and cutting",
    "ops.ordering": "Order",
    "ops.creation": "Creation",
    "ops.contract": "Products",
    "ops.functional": "Neural networks",
    "ops.normalization": "Normalization",
    "ops.losses": "Losses",
    "ops.convolution": "Convolutions",
    "ops.pooling": "Pooling",
    "ops.resampling": "Resampling",
    "ops.positions": "Positions in sequences",
    "ops.segments": "Segments",
    "ops.transfer": "Devices",
    "linalg": "Linear algebra, `mg.linalg`",
    "random": "Random numbers, `mg.random`",
}


def math(latex: str) -> str:
    """A formula for a cell of a table, where a bar would end the cell."""
    return f"${latex.replace('|', chr(92) + 'vert ')}$" if latex else ""


def kept(op: Primitive) -> str:
    """What each gradient rule keeps from the forward pass: what its parameters name."""
    cells = []
    for name, rule in op.rules.items():
        values = [p for p in list(inspect.signature(rule).parameters)[1:] if p not in ("node", "index")]
        cells.append(f"{name}: {', '.join(f'`{v}`' for v in values) or 'nothing'}")
    return "; ".join(cells) or "no gradient"


def local(op: Primitive) -> str:
    """The derivative by each input."""
    return ", ".join(f"{name}: {math(latex)}" for name, latex in op.local.items())


def composed() -> dict[str, list[tuple[str, str]]]:
    """By room: the public functions that are not primitives themselves, and what each does in a line."""
    rooms = {}
    for room, title in ROOMS.items():
        module = import_module(f"minigrad.{room}")
        primitives = {op.name for op in P}
        functions = []
        for name in getattr(module, "__all__", vars(module)):
            function = getattr(module, name)
            ours = room == "linalg" and getattr(minigrad, name, None) is not function  # they are in several files
            ours = ours or getattr(function, "__module__", "") in (f"minigrad.{room}", f"minigrad.ops.{room}")
            plain = name[0] != "_" and name not in primitives and "state" not in name and name != "seed"
            if inspect.isroutine(function) and ours and plain:
                functions.append((name, (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")))
        rooms[title] = sorted(functions)
    return rooms


def primitives_page() -> str:
    """The page of primitives and of what is composed from them."""
    rooms = composed()
    total = sum(map(len, rooms.values()))
    lines = [
        "# Primitives, and what is composed from them",
        "",
        f"minigrad has **{len(P)} primitives**. Each is one declaration: a name, the shape and dtype of its result, a",
        f"gradient rule for each input, a formula. The **{total} functions** below are composed from these.",
        "",
        "*Keeps* is what the gradient rule of each input needs from the forward pass: exactly this stays in memory",
        "until the gradient has been computed, and only if that input's gradient is wanted. `out` is the result.",
    ]
    for kind, title in KINDS.items():
        members = sorted((op for op in P if op.kind == kind), key=lambda op: op.name)
        lines += ["", f"## {title} ({len(members)})", ""]
        lines += ["| primitive | result | derivative | keeps |", "|---|---|---|---|"]
        for op in members:
            signature = f"`{op.name}({', '.join(op.inputs)})`"
            lines.append(f"| {signature} | {math(op.formula)} | {local(op)} | {kept(op)} |")
    lines += ["", f"## Composed functions ({total})"]
    for title, functions in rooms.items():
        lines += ["", f"### {title} ({len(functions)})", ""]
        lines += [f"- `{name}`: {text}" for name, text in functions]
    return "\n".join(lines) + "\n"


def provoked(cls: type[errors.MinigradError], name: str) -> tuple[str, str]:
    """The example in the docstring of an error, and the message that it gives, as if it stood in a file."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(cls) or "")
    source = "".join(example.source for example in examples)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        with np.errstate(all="ignore"):
            exec(compile(source, name, "exec"), {})
    except cls as error:
        return source.strip(), str(error)
    raise AssertionError(f"the example of {cls.__name__} provokes nothing")


def catalogue(cls: type[errors.MinigradError] = errors.MinigradError) -> list[type[errors.MinigradError]]:
    """Every class of errors in minigrad that has an example, the general ones before the special ones."""
    found = []
    for special in sorted(cls.__subclasses__(), key=lambda one: one.__name__):  # not in the order of imports
        if special.__module__.startswith(("minigrad.", "minigrad_course.")) and ">>> " in (special.__doc__ or ""):
            found += [special, *catalogue(special)]
    return found


def errors_page() -> str:
    """The catalogue of errors."""
    lines = [
        "# Errors",
        "",
        "minigrad raises these errors. Most are also one of Python's own kinds, so that `except ValueError` works as",
        "expected. Catch `mg.MinigradError` to catch any of them. The first line of a message says what happened and",
        "names the operation, shapes, dtypes and devices. The lines after it say what was expected (`Expected:`), what",
        "was given (`Got:`), what to do (`Hint:`), and which line of your program it was (`Line:`). The examples on",
        "this page were run to write it.",
    ]
    for cls in catalogue():
        name = cls.__name__
        text = inspect.getdoc(cls) or ""
        before, _, after = text.partition(">>> ")
        advice = after[after.index("\n\n") :].strip() if "\n\n" in after else ""
        kinds = [b.__name__ for b in cls.__mro__ if b.__module__ == "builtins" and b.__name__ not in ABSTRACT]
        source, message = provoked(cls, "example.py")
        lines += ["", f"## {name}"]
        lines += ["", f"*One of Python's own: {', '.join(kinds)}.*"] if kinds else []
        lines += [
            "", before.strip(), "", "```python", source, "```", "", "```text", f"{name}: {message}", "```",
        ]
        lines += ["", advice] if advice else []
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "primitives.md": primitives_page(), "errors.md": errors_page(), "coming_from.md": coming_from.page(),
        "differences.md": differences.page(),
    }


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for file, content in pages().items():
        (HERE / file).write_text(content, encoding="utf-8")
        print(f"wrote {HERE / file}")
