"""Caches machine code on disk for later processes, in the user's cache folder and up to a limit.

The environment variable `MINIGRAD_CACHE` names another folder, or is `off`.  No function here raises an error: a code
that cannot be read is compiled again, and a code that cannot be written is not kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LIMIT = 256 << 20  # bytes
KEPT = 0.75  # the part of the limit that is left when the oldest entries have been removed
UNSEEN = 1 / 64  # the part of the limit that is written between two checks of the size of the cache
DIGEST = 32  # bytes of the checksum at the start of each file, which detects cut files
FRESH = 3600.0  # seconds between two marks that an entry has been used


_unseen: dict[Path, int] = {}  # folder -> the bytes that this process has written since its last check


def folder() -> Path | None:
    """The folder of the cache; None if the cache is off."""
    said = os.environ.get("MINIGRAD_CACHE", "")
    if said.lower() in ("off", "0", "no", "false"):
        return None
    if said:
        return Path(said)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "minigrad" / "kernels"


def load(name: str) -> bytes | None:
    """The code that was saved under this name, perhaps with other code; None if it is missing or damaged."""
    place = folder()
    if place is None:
        return None
    path = place / name
    try:
        found = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a read-only folder can still be read
        if time.time() - path.stat().st_mtime > FRESH:
            os.utime(path)  # used now, so it is removed last
    code = found[DIGEST:]
    return code if found[:DIGEST] == _checksum(code) else None


def save(names: Sequence[str], code: bytes) -> None:
    """Save code under names that share the file where links are possible.  Others see the whole file or none."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix="new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_checksum(code) + code)
            os.replace(temporary, place / names[0])
        except OSError:
            os.unlink(temporary)
            raise
        with suppress(OSError):  # the file system has no links
            for name in names[1:]:
                (place / name).unlink(missing_ok=True)
                os.link(place / names[0], place / name)
        _count(place, len(code))
    except OSError:
        return


def _checksum(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()


def _count(place: Path, size: int) -> None:
    """Check all entries only from time to time: there may be tens of thousands."""
    _unseen[place] = _unseen.get(place, LIMIT) + size
    if _unseen[place] > UNSEEN * LIMIT:
        _unseen[place] = 0
        _shrink(place)


def _shrink(place: Path) -> None:
    """Remove the least recently used entries if there are too many bytes."""
    entries = []
    for entry in os.scandir(place):
        try:
            stat = entry.stat()
        except OSError:  # another process has removed it
            continue
        entries.append((stat.st_mtime, stat.st_size / stat.st_nlink, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= LIMIT:
        return
    for _, size, path in sorted(entries):
        if total <= KEPT * LIMIT:
            return
        Path(path).unlink(missing_ok=True)
        total -= size
