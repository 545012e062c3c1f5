"""Machine code on disk, for the next process: in the user's cache folder, never more than a limit.

`MINIGRAD_CACHE` is another folder for it, or `off`.  Nothing here can fail: what cannot be read is compiled again, and
what cannot be written is not kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

LIMIT = 256 << 20  # bytes
KEPT = 0.75  # of the limit, when the oldest entries go
DIGEST = 32  # bytes of a checksum in front of each entry: a file that was cut short is no code


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
    try:
        found = (place / name).read_bytes()
        os.utime(place / name)  # used just now: the last to go
    except OSError:
        return None
    digest, code = found[:DIGEST], found[DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


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
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, place / name)
        except OSError:
            os.unlink(temporary)
            raise
        _shrink(place)
    except OSError:
        return


def _shrink(place: Path) -> None:
    """Let the entries go that were not used for longest, if there are too many bytes."""
    entries = [(entry.stat(), entry.path) for entry in os.scandir(place)]
    total = sum(stat.st_size for stat, _ in entries)
    if total <= LIMIT:
        return
    for stat, path in sorted(entries, key=lambda e: e[0].st_mtime):
        if total <= KEPT * LIMIT:
            return
        Path(path).unlink(missing_ok=True)
        total -= stat.st_size
