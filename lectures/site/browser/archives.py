"""Archives of the files that a browser loads."""

from __future__ import annotations

import io
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from minigrad import __version__
from minigrad.core.guests import GROUP

ROOT = Path(__file__).resolve().parents[3]
INFO = f"minigrad-{__version__}.dist-info"
OLDEST = (1980, 1, 1, 0, 0, 0)  # the date of all files, so that equal files make equal bytes


def archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip of files; equal files make equal bytes.

    >>> archive([("a", b"1")]) == archive([("a", b"1")])
    True
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as target:
        for name, content in files:
            target.writestr(zipfile.ZipInfo(name, OLDEST), content, zipfile.ZIP_DEFLATED, 9)
    return made.getvalue()


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a package by their names in an archive, without what Python has compiled."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in paths}


def shipped() -> dict[str, bytes]:
    """The files of minigrad's wheel: both packages, their licence, and the names that the course has in minigrad.

    >>> names = shipped()
    >>> "minigrad/nn/module.py" in names, "minigrad_course/tasks.py" in names, "minigrad_course/conftest.py" in names
    (True, True, False)
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {}
    for folder in map(ROOT.joinpath, wheel["packages"]):
        without = {path for pattern in wheel["exclude"] for path in (*ROOT.glob(pattern), *folder.rglob(pattern))}
        for name, content in files_of(folder).items():
            path = folder.parent / name
            if without.isdisjoint([path, *path.parents]):
                files[name] = content
    lines = [f"{name} = {place}" for name, place in project["project"]["entry-points"][GROUP].items()]
    files[f"{INFO}/entry_points.txt"] = "\n".join([f"[{GROUP}]", *lines, ""]).encode()
    files[f"{INFO}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files
