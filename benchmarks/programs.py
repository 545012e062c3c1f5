"""PyTorch programs from public repositories, as they are, in PyTorch and under `python -m minigrad.compat`.

    python3 course bench programs --clones FOLDER --torch PYTHON

Nothing is fetched: FOLDER has a clone of each repository of `programs/repositories.txt`, named `owner+name`, at the
commit that is listed there; PYTHON is an interpreter with PyTorch.  The drivers in `programs/` fix data, sizes and
first weights in both runs alike.  Each program makes ten steps, and the losses are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tokenize
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from _harness import facts, options

HERE = Path(__file__).parent / "programs"
NEAR = 1e-5
HEAD = ("| program | repository: files | lines | lines that import torch | other lines changed | largest relative "
        "difference of a loss | `mg.jit` of the step | `viz.step`, `viz.fusion` |")


def repositories() -> dict[str, tuple[str, str]]:
    """The commit and the licence of each repository."""
    lines = (HERE / "repositories.txt").read_text("utf-8").splitlines()[1:]
    return {name: (commit, licence) for name, commit, licence in map(str.split, lines)}


def code_lines(path: Path) -> tuple[int, int]:
    """Lines of code without imports, blanks, comments and texts that stand alone; and lines that import torch."""
    found, line, imports = set[int](), list[tokenize.TokenInfo](), 0
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NEWLINE:
                if line and line[0].string in ("import", "from"):
                    imports += any(each.string == "torch" for each in line[:2])
                elif line and not all(each.type == tokenize.STRING for each in line):
                    found.update(range(line[0].start[0], line[-1].end[0] + 1))
                line = []
            elif token.type not in silent:
                line.append(token)
    return len(found), imports


def run(given: argparse.Namespace, library: str, mode: str, names: list[str], wide: bool = False) -> Path:
    """Run programs with a library, and give the folder with a file for each."""
    folder = Path(given.results) / f"{library}-{mode}{'-wide' * wide}"
    python = [given.torch] if library == "torch" else [sys.executable, "-m", "minigrad.compat"]
    root = str(HERE.parents[1])
    clones = str(Path(given.clones).resolve())
    environment = {**os.environ, "PROGRAMS": clones, "OMP_NUM_THREADS": "1", "WIDE": "1" * wide}
    if library == "minigrad":
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    if names:
        subprocess.run([*python, HERE / "run.py", folder, "10", mode, *names], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
    return folder


def read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {"error": "stopped"}


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """The largest relative difference of two lists of losses."""
    a, b = ours.get("losses") or [], theirs.get("losses") or []
    if not a or len(a) != len(b):
        return float("nan")
    return max([abs(x - y) / max(abs(y), 1e-12) for x, y in zip(a, b)])


def why(found: dict[str, Any]) -> str:
    """The first words of an error."""
    text = re.split(r"\n|: made at|, made at", found.get("error", ""))[0]
    return re.sub(r"[/\\]\S*[/\\]", "", text)[:110].replace("|", "/")


def table(given: argparse.Namespace) -> list[str]:
    """One line for each program."""
    about = json.loads((run(given, "torch", "about", ["-"]) / "about.json").read_text("utf-8"))
    names = [name for name in about if fnmatch(name, given.only)]
    steps = [name for name in names if not about[name]["script"]]
    real, ours = run(given, "torch", "eager", names), run(given, "minigrad", "eager", names)
    compiled, seen = run(given, "minigrad", "jit", steps), run(given, "minigrad", "views", steps)
    far = [name for name in steps if not apart(read(ours, name), read(real, name)) <= NEAR]
    wide, wide_ours = run(given, "torch", "eager", far, True), run(given, "minigrad", "eager", far, True)
    lines = [HEAD, "|---" * 8 + "|"]
    for name in names:
        here = about[name]
        clone = Path(given.clones) / here["repository"].replace("/", "+")
        counts = [code_lines(clone / each) for each in here["files"]]
        mine = read(ours, name)
        note = f"{apart(mine, read(real, name)):.0e}"
        if name in far and "error" not in mine:
            note += f" (float64: {apart(read(wide_ours, name), read(wide, name)):.0e})"
        if "error" in mine:
            note = f"**does not run**: {why(mine)}"
        fast, picture = read(compiled, name), read(seen, name)
        jit = "a script" if here["script"] else why(fast) if "error" in fast else \
            f"{len(fast['traces'])} trace{'s' * (len(fast['traces']) > 1)}, {apart(fast, read(real, name)):.0e}"
        views = "a script" if here["script"] else \
            f"{picture.get('step', '–')}, {picture.get('launches') or 'no fusion: ' + why(picture)}"
        where = f"{here['repository']}: {', '.join(here['files'])}"
        cells = [name, where, sum(n for n, _ in counts), sum(n for _, n in counts), here["changed"], note, jit, views]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--clones", help="the folder with the clones")
    parser.add_argument("--torch", help="a Python interpreter with PyTorch")
    parser.add_argument("--results", default="program-results", help="the folder for the losses")
    given, rest = parser.parse_known_args(arguments)
    given.opts = options(f"{__doc__}\n{parser.format_help()}", rest)
    given.only = given.opts.only
    return given


def main(arguments: list[str] | None = None) -> str:
    given = arguments_of(arguments)
    known = repositories()
    lines = [f"{len(known)} repositories are expected: `benchmarks/programs/repositories.txt` has their commits."]
    if not given.opts.smoke:
        found = table(given) if given.clones and given.torch else []
        listed = [f"- {name} {commit} ({licence})" for name, (commit, licence) in known.items()]
        lines = [*found, "", *lines, "", *listed]
    text = f"## PyTorch programs\n\n{facts(given.opts)}\n" + "\n".join(lines) + "\n"
    print(text)
    return text


if __name__ == "__main__":
    main()
