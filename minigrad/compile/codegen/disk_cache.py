"""Machine code on disk, for the next process: in the user's cache folder, never more than a limit.

`MINIGRAD_CACHE` is another folder for it, or `off`.  Nothing here can fail: what cannot be read is compiled again, and
what cannot be written is not kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 256 << 20  # bytes
KEPT = 0.75  # of the limit, when the oldest entries go
DIGEST = 32  # bytes of a checksum in front of each entry: a file that was cut short or renamed is no code
FRESH = 3600.0  # seconds in which an entry is not marked again as used


def folder() -> Path | None:
    """Where it is kept; None if it is switched off."""
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
    """What was saved under this name, if it is all there."""
    place = folder()
    if place is None:
        return None
    path = place / name
    try:
        found = path.read_bytes()
    except OSError:
        return None
    try:
        if time.time() - path.stat().st_mtime > FRESH:
            os.utime(path)  # used just now: the last to go
    except OSError:
        pass  # a folder that cannot be written to is one that can be read
    code = found[DIGEST:]
    return code if found[:DIGEST] == _checksum(name, code) else None


def save(name: str, code: bytes) -> None:
    """Keep code under a name.  Other processes see all of it or nothing."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix="new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_checksum(name, code) + code)
            os.replace(temporary, place / name)
        except OSError:
            os.unlink(temporary)
            raise
        _shrink(place)
    except OSError:
        return


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + code).digest()


def _shrink(place: Path) -> None:
    """Let the entries go that were not used for longest, if there are too many bytes."""
    entries = []
    for entry in os.scandir(place):
        try:
            stat = entry.stat()
        except OSError:  # another process has let it go
            continue
        entries.append((stat.st_mtime, stat.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= LIMIT:
        return
    for _, size, path in sorted(entries):
        if total <= KEPT * LIMIT:
            return
        Path(path).unlink(missing_ok=True)
        total -= size
