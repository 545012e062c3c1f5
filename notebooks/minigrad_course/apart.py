"""Runs code that may be hostile: in a process of its own, with limits, in a sandbox where the system has one.

The process gets an order, and hands over lines.  They are read when it and every process that it started have ended,
from a file without a name.  So the code can neither stop the reader nor put another file in the way.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

from minigrad.distributed.guard import ends_with_parent
from minigrad.support.source import OURS

MEMORY, DISK, PROCESSES = 8 << 30, 1 << 30, 64  # of all processes of a notebook together, looked up in each TURN
FILE, FILES, THREADS = 100 << 20, 256, 256  # bytes of a file, open files, threads of the user more than now
ENTRY = 64 << 10  # bytes that a file counts at least
RESULTS = 1 << 20  # bytes that are read of what a process hands over
TURN = 0.5  # seconds
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of Linux
PACKAGES = [Path(folder).resolve() for folder in OURS.values()]  # minigrad, the course
PARENTS = list(dict.fromkeys(each.parent for each in PACKAGES))
# What a sandbox shows of the system.  The rest of the disk is not there: other submissions, homes, secrets.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache",
          "/etc/localtime", "/nix/store", "/sys/devices/system/cpu")

WITHOUT = "With bubblewrap (bwrap), on Linux, it cannot."
SANDBOXES = {  # the best first -> what a submission can still do
    "bwrap": "A sandbox (bwrap) keeps submissions from other files and processes.",
    "unshare": f"The sandbox here is weak: a submission can read and change your files. {WITHOUT}",
    "": f"There is no sandbox here: a submission can read and change your files and end your processes. {WITHOUT}",
}


def sandbox_for(hidden: Path) -> str:
    """The name of the best sandbox that works here, with a folder hidden; empty where none works."""
    return next(name for name in SANDBOXES if not name or _works(name, hidden.resolve()))


def _works(name: str, hidden: Path) -> bool:
    with _folder() as place, contextlib.suppress(OSError, subprocess.TimeoutExpired):
        command = [*_within(name, place, hidden), sys.executable, "-c", "import IPython, minigrad"]
        tried = subprocess.run(command, cwd=place, env=_environment(place), capture_output=True, timeout=60)
        return tried.returncode == 0
    return False


def _within(name: str, place: Path, hidden: Path) -> list[str]:
    """The beginning of a command, which lets the rest of it run in a sandbox: it can write in its `place` only."""
    if name == "unshare":
        return "unshare --user --map-root-user --pid --fork --kill-child --mount-proc".split()
    if name != "bwrap":
        return []
    shown = [path for path in (*SYSTEM, *os.environ.get("PYTHONPATH", "").split(os.pathsep)) if path]
    own = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1]), *map(str, PACKAGES)]
    shared = str(place / "shared")  # what lies there counts as the disk, not as memory that no limit counts
    return [
        *"bwrap --die-with-parent --unshare-all --proc /proc --dev /dev".split(),
        *[word for path in shown if Path(path) not in PARENTS for word in ("--ro-bind-try", path, path)],
        "--tmpfs", str(hidden), *[word for path in own for word in ("--ro-bind", path, path)],
        "--bind", str(place), str(place), "--bind", shared, "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/",
    ]


def run_apart(
    module: str, order: dict[str, Any], seconds: float, sandbox: str, hidden: Path
) -> tuple[list[dict[str, Any]], str]:
    """Let a module carry out an order in a process of its own: the lines that it hands over, and how it ended.

    Only lines with the key of this run count.  The process gets the key with the order.
    """
    key, before = secrets.token_hex(), set(_processes())
    with _folder() as place, tempfile.TemporaryFile() as out:
        _control(ADOPT, 1)  # processes that lose their parent become children of this one, so that it sees them
        process = subprocess.Popen(
            [*_within(sandbox, place, hidden), sys.executable, "-m", module, "--apart"], start_new_session=True,
            cwd=place, env=_environment(place), stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL,
            preexec_fn=ends_with_parent(signal.SIGKILL) if hasattr(os, "fork") else None,
        )
        assert process.stdin is not None  # open until the end: see `_ends_with`
        try:
            with contextlib.suppress(OSError):
                process.stdin.write(json.dumps({**order, "key": key, "seconds": seconds}).encode() + b"\n")
                process.stdin.flush()
            ended = _watch(process, place, before, seconds)
        finally:
            _end(process, before)
            with contextlib.suppress(OSError):
                process.stdin.close()
            _control(ADOPT, 0)
        out.seek(0)
        return list(_lines(out.read(RESULTS), key)), ended


def _environment(place: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    places = dict.fromkeys(("HOME", "IPYTHONDIR", "TMPDIR", "TEMP", "TMP"), str(place))
    return kept | places | {"MPLBACKEND": "agg", "PYTHONPATH": search_path()}


def search_path() -> str:
    """Where another Python finds minigrad, the course, and the packages that this one finds by PYTHONPATH."""
    return os.pathsep.join([*map(str, PARENTS), *filter(None, [os.environ.get("PYTHONPATH")])])


def _lines(data: bytes, key: str) -> Iterator[dict[str, Any]]:
    """The lines with the key, of bytes that anyone may have written."""
    for text in data.decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            line = json.loads(text) if key in text else None
            if isinstance(line, dict) and line.get("key") == key:
                yield line


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A new folder, removed at the end of the block, however deep, write-protected or full of links it is then."""
    place = Path(tempfile.mkdtemp()).resolve()
    (place / "shared").mkdir()
    try:
        yield place
    finally:
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            with contextlib.suppress(OSError):
                subprocess.run([*command, str(place)], capture_output=True)
        shutil.rmtree(place, ignore_errors=True)  # where the system has no such commands


# ---- while it runs ---------------------------------------------------------------------------------------------------


def _watch(process: subprocess.Popen[bytes], place: Path, before: set[int], seconds: float) -> str:
    """Wait for the end of a process, or until it has used too much of something; how it ended."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(TURN, left))
            return "its process ended early"
        own = {number: size for number, size in _processes().items() if number not in before}
        if len(own) > PROCESSES:
            return f"it started more than {PROCESSES} processes"
        if sum(own.values()) > MEMORY:
            return f"it used more than {MEMORY / 2**30:g} GB of memory"
        if _size(place) > DISK:
            return f"it wrote more than {DISK / 2**30:g} GB or {DISK // ENTRY:,} files"
    return f"not done after {seconds:g} seconds"


def _processes() -> dict[int, int]:
    """The processes below this one, with the bytes of memory that each uses; none where the system has no `/proc`."""
    memory, children = {}, defaultdict(list)
    for name in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with contextlib.suppress(OSError):
            _, parent, *rest = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
            memory[int(name)] = int(rest[19]) * PAGESIZE
            children[int(parent)].append(int(name))
    found = children[os.getpid()]
    for number in found:  # which grows
        found += children.pop(number, ())
    return {number: memory[number] for number in found}


def _size(place: Path) -> int:
    """The bytes of the files in a folder; one that cannot be read counts as too much."""
    size, folders = 0, [str(place)]
    while folders and size <= DISK:
        try:
            for entry in os.scandir(folders.pop()):
                size += max(entry.stat(follow_symlinks=False).st_size, ENTRY)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        except FileNotFoundError:  # removed in this moment
            continue
        except OSError:
            return DISK + 1
    return size


def _control(option: int, value: int) -> None:
    """Set an option of this process, on Linux."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems have no `prctl`
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end(process: subprocess.Popen[bytes], before: set[int]) -> None:
    """End a process and all that it has started, also those that have left its group."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    end = time.monotonic() + 10
    while (left := _processes().keys() - before) and time.monotonic() < end:
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
                os.waitpid(number, os.WNOHANG)  # an error where another process is its parent
        time.sleep(0.01)


# ---- in the process --------------------------------------------------------------------------------------------------


def taken_order() -> tuple[dict[str, Any], Callable[..., None]]:
    """The order of this process, and a function that hands over a line; limits hold, and `print` prints nothing now."""
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_ends_with, args=(os.dup(0),), daemon=True).start()
    key, out, null = order.pop("key"), os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    _limit(order["seconds"])
    return order, lambda **line: print(json.dumps({"key": key, **line}), file=out, flush=True)


def _ends_with(order: int) -> None:
    """End this process when the one that gave the order is gone, and with it the other end of the pipe.

    The system's own signal can be missed: a process of bubblewrap may lose its parent before it asks for the signal.
    """
    os.read(order, 1)
    os._exit(1)


def _limit(seconds: float) -> None:
    """Set the limits that the system has for a process; nothing can raise them afterwards."""
    with contextlib.suppress(ImportError):
        import resource

        threads = THREADS  # more than there are now; those of root are not limited
        with contextlib.suppress(OSError):
            threads += int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
        limits = {"AS": MEMORY, "FSIZE": FILE, "NOFILE": FILES, "CORE": 0, "NPROC": threads,
                  "CPU": int(seconds + 1) * (os.cpu_count() or 1)}
        for name, most in limits.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
