"""What the browser folder passes on: each part with its licence, read from the part's own files."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

from . import pyodide

FILE = "licences.txt"
THIRD_PARTIES = "third-party-licenses.json"  # where JupyterLab's builder lists the JavaScript packages of a bundle
APPROVED = "License :: OSI Approved :: "
# The texts are in the files of Pyodide itself: micropip has Mozilla's licence, typing_extensions that of Python.
CORE = (
    ("Pyodide", pyodide.VERSION, "MPL-2.0", "https://github.com/pyodide/pyodide", "micropip"),
    ("Python", pyodide.lock()["info"]["python"], "PSF-2.0", "https://github.com/python/cpython", "typing_extensions"),
)
NOTE = (
    "`pyodide.asm.wasm` also contains parts of Emscripten and musl, zlib, bzip2, liblzma and libffi, and sqlite3 "
    "contains SQLite. Pyodide's files have no texts of their licences: {source} names the sources."
)


@dataclass(frozen=True)
class Part:
    """Something that the folder contains, and the text of its licence."""

    name: str
    version: str
    licence: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"| {self.name} {self.version} | `{self.where}` | {self.licence} |"


def part(wheel: Path, where: str) -> Part:
    """A package of Python, with what its wheel says."""
    with zipfile.ZipFile(wheel) as files:
        (info,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        about = Parser().parsestr(files.read(info).decode())
        texts = [
            files.read(name).decode()
            for name in files.namelist()
            if any(word in Path(name).name.upper() for word in ("LICENSE", "LICENCE", "COPYING", "AUTHORS"))
            and not name.endswith(".py")
        ]
    approved = [each.removeprefix(APPROVED) for each in about.get_all("Classifier", ()) if each.startswith(APPROVED)]
    licence = about["License-Expression"] or " or ".join(approved) or about["License"] or "as Python, a part of it"
    by = f"{about['License'] or ''}, by {about['Author'] or about['Author-email'] or 'its authors'}\n"
    return Part(about["Name"], about["Version"], licence, where, "\n\n".join(texts) or by)


def parts(made: Path, tools: list[Path]) -> list[Part]:
    """All parts of the folder: the programs that its pages are made of, Python, and the packages of Python."""
    python = made / "static" / "pyodide"
    wheels = [path for path in sorted(python.glob("*.whl")) if not path.name.startswith(("minigrad-", "ssl-"))]
    packages = [part(path, "static/pyodide/") for path in wheels]
    texts = {each.name: each.text for each in packages}
    core = [
        Part(name, version, f"{licence}; [source]({source})", "static/pyodide/", texts[like])
        for name, version, licence, source, like in CORE
    ]
    places = ("build/", "extensions/", "extensions/")
    programs = [part(wheel, where) for wheel, where in zip(tools, places, strict=True)]
    return [*programs, *bundled(made), *core, *packages]


def bundled(made: Path) -> list[Part]:
    """The JavaScript packages in the bundles, a line for each bundle: the texts are in its own list."""
    found = []
    for path in sorted(made.rglob(THIRD_PARTIES)):
        packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
        counts = Counter(each["licenseId"] or "licence not named" for each in packages)
        licence = ", ".join(f"{licence} ({count})" for licence, count in counts.most_common())
        names = "\n".join(f"{each['name']} {each['versionInfo']}: {each['licenseId']}" for each in packages)
        where = path.relative_to(made).as_posix()
        found.append(Part(f"{len(packages)} packages", "of JavaScript", licence, where, names))
    return found


def table(found: list[Part]) -> str:
    """The parts as a table in Markdown, as it stands in lectures/licences.md."""
    return "\n".join(["| what | where in the folder | licence |", "|---|---|---|", *map(str, found)])


def write(made: Path, tools: list[Path]) -> None:
    """Write the licences of all parts into one file."""
    rule = "\n\n" + "=" * 100 + "\n"
    found = parts(made, tools)
    texts = [f"{each.name} {each.version}\n{each.where}\n{each.licence}\n\n{each.text.strip()}" for each in found]
    head = "What this folder contains, and the licences.\n" + NOTE.format(source=CORE[0][3])
    (made / FILE).write_text(rule.join([head, *texts]) + "\n", encoding="utf-8")
