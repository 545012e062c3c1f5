"""Runs mpirun for the launcher.  If the launcher ends first, however it ends, mpirun and its processes end too.

The launcher starts this file as a program, with one end of a pipe, and the system closes the other end when the
launcher is gone.  What mpirun has started is known by a mark in its environment, which its children inherit.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
PATIENCE = 2.0  # seconds in which mpirun can end its ranks
POLL = 0.1
MARK = "MINIGRAD_RUN"
PROCESSES = Path("/proc")


def heed(act: Any) -> dict[int, Any]:
    """Handle the signals that end a program, but those that `nohup` or a shell ignores; the handlers before that."""
    return {number: signal.signal(number, act) for number in ENDING if signal.getsignal(number) != signal.SIG_IGN}


def run(life: int, group: int, mark: str, command: list[str]) -> int:
    """The exit status of a command in a group of processes; the pipe `life` closes when the launcher ends."""
    heed(lambda *_: None)  # signals for all are for the launcher; the command does not inherit handlers
    variables = os.environ | {MARK: os.environ.get(MARK, "") + mark}  # after the mark of a run around this one
    process = subprocess.Popen(
        command, env=variables, process_group=group, preexec_fn=ends_with_parent(),
        restore_signals=False,  # SIGPIPE stays ignored: mpirun ends its ranks although nothing reads its words
    )
    gone = False
    while process.poll() is None and not gone:  # in one thread: Linux ends mpirun once for each thread that is killed
        gone = bool(select.select([life], [], [], POLL)[0])
    if gone:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    if gone or process.returncode:
        end_all(mark)
    status = process.wait()
    return status if status >= 0 else 128 - status


def ends_with_parent(how: int = signal.SIGTERM) -> Callable[[], None]:
    """What a new process does first, so that it ends when this one is killed, even if that happens right now."""
    parent = os.getpid()

    def begin() -> None:
        with suppress(OSError, AttributeError):  # only Linux can
            ctypes.CDLL(None).prctl(1, how)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return begin


def end_all(mark: str) -> None:
    """Kill the processes with the mark, and those that they start meanwhile."""
    empty = 0  # looks in a row: while a program starts, its environment is empty for a moment
    for _ in range(100):
        found = marked(mark)
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        empty = 0 if found else empty + 1
        if empty == 2:
            return
        time.sleep(0.01)


def marked(mark: str) -> list[int]:
    """The processes whose environment has the mark."""
    if not PROCESSES.exists():  # as on a Mac
        said = subprocess.run(["ps", "axeww", "-o", "pid=,command="], capture_output=True, text=True, errors="replace")
        numbers = [int(line.split()[0]) for line in said.stdout.splitlines() if mark in line]
        return [number for number in numbers if number != os.getpid()]  # in whose command line it is
    found = []
    for each in PROCESSES.glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended; it is another user's
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
