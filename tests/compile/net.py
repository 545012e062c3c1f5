"""Dumps every result of the compiler for some functions as text, to show the effect of a change of the compiler.

    python3 course python -m tests.compile.net DIRECTORY            a folder for each function, a file for each stage
    python3 course python -m tests.compile.net --compare OLD NEW    which files differ, and in how many lines

The same functions on the same commit give the same bytes in every process.  The exit status of a comparison is 1 if a
C listing or a count differs, or if a function is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import io
import os
import re
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import minigrad as mg
import tests.compile.net_models  # noqa: F401 - puts its functions into the net
from tests.compile.net_functions import FUNCTIONS, Differentiated

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(mg.__file__).resolve().parent
STAGES = ("graph", "passes", "partition", "c", "llvm", "cuda", "program", "cost", "counts")
STRICT = ("c", "counts")  # where a difference is a failure
LINE = re.compile(rf"{re.escape(str(ROOT))}\S+?:\d+  ")  # the line that a text comes from
PLACE = re.compile(r"(\w[\w ]*) \[([^\]]*?)( \d+)?\]")  # of a value, in the listing of a program


# The compiler's internal objects: all uses of names that are not public are here --------------------------------------


def compiled(made: Any) -> list[SimpleNamespace]:
    """The parts to print of a jitted function with arguments, or of a program that ran, and of inner programs."""
    if isinstance(made, tuple):
        f, arguments = made
        views = {"graph": f.graph, "log": f.passes, "partition": f.kernels, "program": f.program, "cost": f.cost}
        parts = SimpleNamespace(**{name: view(*arguments) for name, view in views.items()})
    else:
        parts = SimpleNamespace(graph=made.graph, log=made.log, partition=made.partition, program=made)
        parts.cost = made.graph.cost()
    parts.kernels = kernels_of(parts.program)
    gpu = replace(parts.program.target, chunking=internal("CHUNKING"))
    parts.gpu_kernels = kernels_of(type(parts.program)(parts.program.graph, target=gpu, backend="numpy"))
    held = [value for node in parts.log.last.nodes for value in node.attrs.values()]  # branches and bodies among them
    return [parts, *[each for value in held if hasattr(value, "program") for each in compiled(value.program)]]


def gradient_programs(f: Any, *arguments: Any) -> list[Any]:
    """The programs of a call that is differentiated from outside: the first stores values that the second reads."""
    traced = f.traced(*arguments)
    return [traced.keeping.program, traced.gradient.program]


def kernels_of(program: Any) -> list[Any]:
    """The kernels of a program, in the loop language."""
    return [step.kernel for step in program.plan.steps if hasattr(step, "kernel")]


def internal(name: str) -> Any:
    """A function or constant of the compiler, found by its name in whichever file defines it."""
    definition = re.compile(rf"^(def {name}\(|{name} = )", re.MULTILINE)
    paths = [path for path in (PACKAGE / "compile").rglob("*.py") if definition.search(path.read_text("utf-8"))]
    if len(paths) != 1:
        raise LookupError(f"{name} is defined in {len(paths)} files of the compiler: adapt {Path(__file__).name}")
    module = ".".join(["minigrad", *paths[0].relative_to(PACKAGE).with_suffix("").parts])
    return getattr(importlib.import_module(module), name)


# Text -----------------------------------------------------------------------------------------------------------------


def stages_of(made: Any) -> dict[str, str]:
    """The text of each stage, of one program or of several."""
    found = gradient_programs(*made.call) if isinstance(made, Differentiated) else made
    programs = [each for one in (found if isinstance(found, list) else [found]) for each in map(texts, compiled(one))]
    return {stage: "\n\n".join(program[stage] for program in programs) for stage in STAGES}


def texts(parts: SimpleNamespace) -> dict[str, str]:
    """The text of each stage of one program."""
    found = {
        "graph": str(parts.graph),
        "passes": log_text(parts.log),
        "partition": str(parts.partition),
        "c": listings(parts.kernels, internal("c_source")),
        "llvm": listings(parts.kernels, internal("llvm_source")),
        "cuda": listings(parts.gpu_kernels, lambda kernel: internal("cuda_source")(kernel).text),
        "program": str(parts.program),
        "cost": str(parts.cost),
        "counts": counts(parts),
    }
    return {stage: LINE.sub("", text) for stage, text in found.items()}


def log_text(log: Any) -> str:
    """The table of a log and all rules that fired (printing a log shows only the first)."""
    table = str(log).partition("\n\n")[0]
    return "\n\n".join(text for text in (table, log.details(), log.near_misses()) if text)


def listings(kernels: list[Any], source: Any) -> str:
    """All kernels by one of the printers."""
    found = []
    for number, kernel in enumerate(kernels):
        try:
            text = source(kernel)
        except mg.CompileError as error:
            text = f"not printed: {error}"
        found.append(f"== kernel {number}: {kernel.units} {kernel.parallel}\n\n{text.rstrip()}")
    return "\n\n".join(found)


def counts(parts: SimpleNamespace) -> str:
    """How many kernels, buffers, bytes and operations there are."""
    roles = Counter(parameter.role for kernel in parts.kernels for parameter in kernel.parameters)
    values = {match.groups() for match in PLACE.finditer(str(parts.program))}
    places = Counter("in place" if place.startswith("where ") else place for _, place, _ in values)
    rows: dict[str, Any] = {
        "steps": dict(sorted(Counter(step.kind for step in parts.cost.kernels).items())),
        "different kernels": len({str((k.parameters, k.body)) for k in parts.kernels}),
        "kernels for a GPU": len(parts.gpu_kernels),
        "parameters of kernels": dict(sorted(roles.items())),
        "buffers": dict(sorted(places.items())),
        "slots": len({number for _, place, number in values if place == "slot"}),
        "node by node": asdict(parts.cost.eager),
        "program": asdict(parts.cost.program),
        "memory": asdict(parts.cost.memory),
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items())


# Files ----------------------------------------------------------------------------------------------------------------


def dump(directory: Path, only: list[str]) -> None:
    """Write the files of all functions, or of the given ones."""
    for name in only or FUNCTIONS:
        folder = directory / name
        folder.mkdir(parents=True, exist_ok=True)
        for stage, text in stages_of(run(FUNCTIONS[name])).items():
            (folder / f"{stage}.txt").write_text(f"{text}\n", encoding="utf-8")


def run(make: Any) -> Any:
    """Make a function and call it twice, from a fresh seed: optimizers make their state in the first call."""
    mg.random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        made = make()
        for _ in range(2 if isinstance(made, tuple) else 0):
            made[0](*made[1])
    return made


def compare(old: Path, new: Path) -> int:
    """Print the differences of each function.  Returns 1 if a C listing or a count differs or a function is missing."""
    names = sorted({folder.name for root in (old, new) for folder in root.iterdir() if folder.is_dir()})
    failed = differing = 0
    for name in names:
        if not (old / name).exists():
            print(f"{name}: new")
            continue
        lines = {stage: lines_that_differ(old / name / f"{stage}.txt", new / name / f"{stage}.txt") for stage in STAGES}
        found = [f"{stage} {n} lines differ" for stage, n in lines.items() if n]
        print(f"{name}: {', '.join(found) or 'same'}")
        failed |= any(lines[stage] for stage in STRICT)
        differing += bool(found)
    verdict = "differ" if failed else "are equal"
    print(f"{len(names)} functions, {differing} of them differ; listings in C and counts {verdict}")
    return int(failed)


def lines_that_differ(old: Path, new: Path) -> int:
    """The number of lines that were removed or added."""
    before, after = ([*path.read_text("utf-8").splitlines()] if path.exists() else [] for path in (old, new))
    if before == after:
        return 0
    return sum(line[:1] in "+-" for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:])


def main(arguments: list[str] | None = None) -> int:
    """Dump or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, help="where the files are written")
    parser.add_argument("--only", nargs="+", default=[], metavar="FUNCTION", help="these functions instead of all")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two such directories")
    given = parser.parse_args(arguments)
    if given.compare:
        return compare(*given.compare)
    if given.directory is None:
        parser.error("give a directory, or --compare with two")
    for name in [name for name in os.environ if name.startswith("MINIGRAD_")]:
        del os.environ[name]
    os.environ["MINIGRAD_BACKEND"] = "numpy"  # the kernels are the same, and no machine code is needed
    dump(given.directory, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
