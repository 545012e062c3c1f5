"""Pyodide, which is Python for browsers: its version, its files with their hashes, and the folder that holds them.

`pyodide-lock.json` beside this file is Pyodide's own list of packages, cut down to those that are used here, and it
has their hashes.  The files are not part of the repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.request
from pathlib import Path

from minigrad.support.files import locked, write_whole

VERSION = "0.27.7"
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
HERE = Path(__file__).resolve().parent
STORED = HERE.parents[2] / ".course" / f"pyodide-{VERSION}"
VARIABLE = "MINIGRAD_PYODIDE"

# The SHA-256 of what runs Python; these are also the files of the npm package pyodide@0.27.7.
CORE = {
    "pyodide.js": "b4cb23a53aba19c221659b9fb40a2f18281d685691dc06647fb0afd0681baf98",
    "pyodide.mjs": "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
}


class PyodideError(Exception):
    """Pyodide's files are missing, or are not those of this version."""


def lock() -> dict:
    """Pyodide's list of packages: their files, hashes and dependencies."""
    return json.loads((HERE / "pyodide-lock.json").read_text(encoding="utf-8"))


def hashes(*packages: str) -> dict[str, str]:
    """The SHA-256 of each file: of Python, and of these packages with all that they need.

    >>> list(hashes("numpy"))[-2:]
    ['python_stdlib.zip', 'numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl']
    """
    known, wanted = lock()["packages"], [*packages]
    for name in wanted:  # which grows
        wanted += [each for each in known[name]["depends"] if each not in wanted]
    return CORE | {known[name]["file_name"]: known[name]["sha256"] for name in wanted}


def folder(given: str | Path | None = None, packages: tuple[str, ...] = ("numpy",)) -> Path:
    """A folder with Pyodide's files, each checked by its hash.

    It is the given folder, or the one that `$MINIGRAD_PYODIDE` names, or `.course/pyodide-VERSION`, which is filled
    from Pyodide's own server.
    """
    named = given or os.environ.get(VARIABLE)
    place = Path(named) if named else STORED
    if not named:
        place.mkdir(parents=True, exist_ok=True)
        with locked(place.with_name("pyodide"), seconds=600):
            download(place, packages)
    wrong = [name for name, hashed in hashes(*packages).items() if hash_of(place / name) != hashed]
    if wrong:
        raise PyodideError(
            f"{place} does not hold Pyodide {VERSION}: {', '.join(wrong[:3])} is missing or different.\n"
            f"Hint: unpack the full release {VERSION} of Pyodide there, or leave out the folder to get its files from\n"
            f"      {ADDRESS}"
        )
    return place


def download(place: Path, packages: tuple[str, ...]) -> None:
    """Get the files that are not in a folder yet."""
    for name, hashed in hashes(*packages).items():
        if hash_of(place / name) == hashed:
            continue
        try:
            with urllib.request.urlopen(ADDRESS + name, timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise PyodideError(
                f"{ADDRESS}{name} could not be loaded: {error}\n"
                f"Hint: get Pyodide {VERSION} in a different way, and name its folder: --pyodide FOLDER"
            ) from None
        write_whole(place / name, content)


def hash_of(path: Path) -> str | None:
    """The SHA-256 of a file, or None if there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
