"""Writes files as a whole or not at all, and locks a file while one process changes it."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import platform
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import FileError, StorageError

_number = itertools.count().__next__
_writing: set[str] = set()  # names of the files that this process is writing now
HOST = zlib.crc32(platform.node().encode())  # a process number is unique on one machine only
UNFINISHED = ".part"  # the suffix of an unfinished file
TEMPORARY = re.compile(rf"\.minigrad-([0-9a-f]{{8}})-(\d+)-\d+{re.escape(UNFINISHED)}")
ABANDONED = 24 * 3600  # seconds after which another machine's unfinished file is deleted
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # from file systems without locks


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path to write to in the block.  At the end of the block this file replaces `path`, in one step.

    The new file is on the disk by then.  An interrupt at any time leaves the old file.  If `path` is a link, the link
    stays and its target is replaced.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
    >>> with whole_file(path) as temporary:
    ...     _ = temporary.write_text("1 2 3")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('1 2 3', 1)
    """
    path = _place(path)
    if path.exists() and not path.is_file():  # a pipe or a device, such as /dev/stdout, cannot be replaced
        with _in_words(path):
            yield path
        return
    _remove_left_over(path.parent)
    name = f".minigrad-{HOST:08x}-{os.getpid()}-{_number()}{UNFINISHED}"
    temporary = path.with_name(name)  # in the same folder: on the same disk
    _writing.add(name)
    try:
        with _in_words(path):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            if path.exists():
                with contextlib.suppress(OSError):
                    shutil.copymode(path, temporary)
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # on a read-only disk, even where there is no such file
            temporary.unlink()
        raise
    finally:
        _writing.discard(name)
    _sync_folder(path.parent)


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Name the file in errors of the system, which name the temporary file or none."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (FileError, FileNotFoundError)) or not error.strerror:
            raise
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes, all or nothing.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
    >>> write_whole(path, "1 2 3")
    >>> path.read_text()
    '1 2 3'
    """
    with whole_file(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def _place(given: str | os.PathLike[str]) -> Path:
    """The path to write, with links followed; an error if no file can be written there."""
    path = Path(given)
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}", hint="make the folder first")
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder", hint="give the name of a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise FileError(f"{path} cannot be written: it is write-protected", hint="another name, or allow writing")
    return path


def _remove_left_over(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while writing."""
    with contextlib.suppress(OSError):  # a fault of another file must not make this one fail
        for entry in os.scandir(folder):
            match = TEMPORARY.fullmatch(entry.name)
            if match and not _is_being_written(entry, int(match[1], 16), int(match[2])):
                with contextlib.suppress(OSError):
                    os.unlink(entry)


def _is_being_written(entry: os.DirEntry[str], host: int, process: int) -> bool:
    if host != HOST:
        return time.time() - entry.stat().st_mtime < ABANDONED
    if process == os.getpid():  # an earlier process may have had the same number
        return entry.name in _writing
    return _is_running(process)


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True


def _is_running_on_windows(process: int) -> bool:
    import ctypes

    system: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = system.OpenProcess(0x00100000, False, process)  # SYNCHRONIZE; os.kill(process, 0) would end the process
    if not handle:
        return bool(system.GetLastError() == 5)  # access denied: another user's
    ended = system.WaitForSingleObject(handle, 0) == 0
    system.CloseHandle(handle)
    return not ended


def _sync_folder(folder: Path) -> None:
    """Write the folder with the new name to the disk too, if the system can do that."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


# Locks ---------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], seconds: float = 30.0) -> Iterator[None]:
    """Let one process and one thread at a time read, change and write a file.

    The lock is on `.NAME.lock` in the same folder, because the file itself is replaced.  The lock file stays.  The
    system releases the lock when the process ends for any reason.  On file systems without locks, there is no lock.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "count"
    >>> with locked(path):
    ...     write_whole(path, "1")
    >>> sorted(each.name for each in path.parent.iterdir())
    ['.count.lock', 'count']
    """
    path = _place(path)
    with _in_words(path):
        descriptor = os.open(path.with_name(f".{path.name.lstrip('.')}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        end = time.monotonic() + seconds
        while not _take(descriptor):
            if time.monotonic() > end:
                raise FileError(
                    f"{path} cannot be changed: another process has kept it locked for {seconds:g} seconds",
                    hint="end the other process, or try again",
                )
            time.sleep(0.01)
        try:
            yield
        finally:
            _release(descriptor)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    """Take the lock if it is free; return whether it was."""
    try:
        if os.name == "nt":
            import msvcrt

            windows: Any = msvcrt
            windows.locking(descriptor, windows.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, AttributeError):  # Python in a browser has no locks, and no second process
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return True


def _release(descriptor: int) -> None:
    """Release the lock, also in processes that were forked in the meantime."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        if os.name == "nt":
            import msvcrt

            windows: Any = msvcrt
            windows.locking(descriptor, windows.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_UN)
