"""Files that are there whole or not at all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError

_number = itertools.count().__next__
UNFINISHED = ".part"  # how the name of a file ends that is being written


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to in the block.  At its end the file there takes the place of `path`, in one step.

    It has reached the disk by then: who is interrupted, whenever that is, leaves the file that was there before.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
    >>> with whole_file(path) as temporary:
    ...     _ = temporary.write_text("1 2 3")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('1 2 3', 1)
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}", hint="make the folder first")
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{_number()}{UNFINISHED}")  # beside it: on the same disk
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """See to it that the new name has reached the disk too, where a folder can be opened for that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
