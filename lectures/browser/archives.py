"""Archives of the files that a browser loads."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

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
