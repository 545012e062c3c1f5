"""Live cells on the site: the archives that a page loads, and the script with their names and sizes.

A page fetches what is listed in `cells.js` when a reader first enters a cell.  Opened from the disk, it loads
`bundle.js` instead, which contains the same files.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zipfile
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

from . import pyodide
from .archives import archive, shipped
from .archives import files_of as files_of_package

HERE = Path(__file__).resolve().parent
STATIC = HERE.parent / "static"
PYTHON = "python"  # the folder of these files in the site
SCRIPTS = ("pyodide.js", "pyodide.asm.js")  # in the order in which they run
MACHINE, LIBRARY = "pyodide.asm.wasm", "python_stdlib.zip"
SIZES = {  # of files on another server, for the bar of progress
    "pyodide.js": 14_913, "pyodide.asm.js": 1_255_688, MACHINE: 10_105_545, LIBRARY: 2_360_737,
    "numpy.zip": 3_061_133,
}
# Parts of NumPy that nothing imports here.  NumPy itself imports `_multiarray_tests`, and `numpy.testing` may be used.
UNUSED = re.compile(
    r"/tests/|\.pyi$|\.h$|\.a$|\.pxd$|\.pyx|\.c$|numpy/(f2py|distutils|_pyinstaller|doc|typing)/|random/(_examples|lib)/"
    r"|_core/(lib|include)/|_umath_tests|lapack_lite\.|_operand_flag|_rational_tests|_struct_ufunc"
)


class File(NamedTuple):
    """A file that a page loads: one of the site, or one at an address, with its hash."""

    name: str
    size: int
    content: bytes = b""
    address: str = ""
    integrity: str = ""


def numpy(path: Path) -> bytes:
    """NumPy's wheel without the parts that a page never uses."""
    with zipfile.ZipFile(path) as files:
        kept = [name for name in files.namelist() if not (name.endswith("/") or UNUSED.search(name))]
        return archive((name, files.read(name)) for name in kept)


def minigrad() -> bytes:
    """The two packages without stubs, and the package that views write formulas with."""
    formulas = distribution("latex2mathml")
    about = f"latex2mathml-{formulas.version}.dist-info/METADATA"
    notices = {about: str(formulas.metadata).encode()}  # its licence; and its import reads its version there
    files = shipped() | notices | files_of_package(Path(str(formulas.locate_file("latex2mathml"))))
    return archive((name, content) for name, content in files.items() if not name.endswith(".pyi"))


def files_in(folder: Path) -> list[File]:
    """What a page loads, from a folder with Pyodide's files."""
    contents = {name: gzip.compress((folder / name).read_bytes(), 9, mtime=0) for name in (*SCRIPTS, MACHINE)}
    contents |= {LIBRARY: (folder / LIBRARY).read_bytes(), "numpy.zip": numpy(folder / wheel())}
    return [File(name, len(content), content) for name, content in contents.items()]


def files_at(address: str) -> list[File]:
    """What a page loads, from another server; the browser checks the hashes."""
    hashes = pyodide.hashes("numpy")
    names = {name: name for name in (*SCRIPTS, MACHINE, LIBRARY)} | {"numpy.zip": wheel()}
    return [
        File(name, SIZES[name], b"", f"{address.rstrip('/')}/{at}", f"sha256-{b64(bytes.fromhex(hashes[at]))}")
        for name, at in names.items()
    ]


def wheel() -> str:
    """The file name of NumPy's wheel."""
    return str(pyodide.lock()["packages"]["numpy"]["file_name"])


def b64(content: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(content).decode()


def files_of(source: str | None = None) -> list[File]:
    """Everything that a page loads.

    `source` is a folder with Pyodide's files, which become a part of the site, or the address of a server that has
    them; see `pyodide.folder` for what is used without it.
    """
    elsewhere = source is not None and source.startswith(("https://", "http://"))
    files = files_at(source or "") if elsewhere else files_in(pyodide.folder(source))
    package = minigrad()
    return [*files, File("minigrad.zip", len(package), package)]


def write(site: Path, files: list[File]) -> None:
    """Add what live cells need to a site."""
    folder = site / PYTHON
    folder.mkdir()
    bundle = ["window.minigradFiles = {};"]
    for file in files:
        if file.content:
            (folder / stored(file)).write_bytes(file.content)
            bundle.append(f'window.minigradFiles["{file.name}"] = "{b64(file.content)}";')
    _text(folder / "bundle.js", "\n".join(bundle))
    constants = {
        "FILES": [listed(file) for file in files],
        "BUNDLE": f"{PYTHON}/bundle.js",
        "LOAD": {"core": SCRIPTS, "archives": ["numpy.zip", "minigrad.zip"], "lock": pyodide.lock()["info"]},
        "WORKER": (STATIC / "worker.js").read_text(encoding="utf-8"),
    }
    lines = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in constants.items())
    _text(site / "cells.js", lines + (STATIC / "cells.js").read_text(encoding="utf-8"))
    _text(site / "cells.css", (STATIC / "cells.css").read_text(encoding="utf-8"))


def listed(file: File) -> dict[str, str | int]:
    """A file as the page's script has it."""
    if file.address:
        return {"name": file.name, "size": file.size, "url": file.address, "integrity": file.integrity}
    digest = sha256(file.content).hexdigest()[:8]  # so that a browser does not mix the files of two versions
    return {"name": file.name, "size": file.size, "url": f"{PYTHON}/{stored(file)}?{digest}"}


def stored(file: File) -> str:
    """The name of a file in the site."""
    return file.name if file.name.endswith(".zip") else f"{file.name}.gz"


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
