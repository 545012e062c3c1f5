"""Starts a script on several ranks: `python -m minigrad.distributed -n 4 train.py`.

It calls the mpirun of the installed MPI, with the options that this one needs, and names a rank that has ended the
run.  When it ends itself, by Ctrl-C or in any other way, the ranks end with it: see `guard.py`.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..support.packages import how_to_install
from . import guard

# What mpirun says of the rank that has ended a run: four texts of Open MPI, two of MPICH, which does not name all.
SAID = [
    rb"process\s+rank\s+(?P<rank>\d+)\s.{1,300}?\sexited\s+on\s+signal\s+(?P<signal>\d+)",
    rb"process\s+rank\s+(?P<rank>\d+)\s.{1,300}?\sexiting\s+improperly",
    rb"MPI_ABORT was invoked on rank (?P<rank>\d+)\s.{1,300}?rrorcode:? (?P<status>\d+)",
    rb"Process name:\s+\[[^]]+,(?P<rank>\d+)\]\s+Exit code:\s+(?P<status>\d+)",
    rb"called MPI_Abort\(MPI_COMM_WORLD, (?P<status>\d+)\) - process (?P<rank>\d+)",
    rb"EXIT STRING: .{1,40}?signal (?P<signal>\d+)",
]


def cause(said: bytes, ranks: int) -> str:
    """What has ended the run, if no rank has said it: from the words of mpirun.

    >>> cause(b"MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 3", 4)
    'rank 1 of 4 has ended with status 3'
    """
    found = next(filter(None, [re.search(pattern, said, re.DOTALL) for pattern in SAID]), None)
    if found is None or b"minigrad: rank" in said:
        return ""
    words = {name: text.decode() for name, text in found.groupdict().items() if text}
    rank = f"rank {words['rank']} of {ranks}" if "rank" in words else f"a rank of {ranks}"
    if "signal" in words:
        return f"signal {words['signal']} has ended {rank}"
    return f"{rank} has ended " + (f"with status {words['status']}" if "status" in words else "without its last steps")


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options, which stand before or after the name of the script, and the script with its own arguments.

    >>> vars(parsed(["train.py", "-n", "4", "--epochs", "3"]))
    {'n': 4, 'timeout': None, 'module': False, 'script': ['train.py', '--epochs', '3']}
    """
    parser = argparse.ArgumentParser("python -m minigrad.distributed", description="Run a script on several ranks.")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, help="the number of ranks")
    parser.add_argument("--timeout", type=float, help="seconds that a rank waits for others")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="a Python script, and its arguments")
    found = parser.parse_args(arguments)
    script, *rest = found.script or [""]
    if rest[:1] in (["-n"], ["--timeout"]):
        return parsed([*arguments[: -len(rest) - 1], *rest[:2], script, *rest[2:]])
    if not script or found.n < 1 or (found.timeout is not None and not found.timeout > 0):
        parser.error("it takes a script, a number of ranks, and a number of seconds above 0")
    return found


def mpirun() -> list[str] | None:
    """The command that starts ranks, with its options for any number of them; None if there is no MPI."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("mpirun", path=path)
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version:
        return [found]
    root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [found, *root, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]


def environment(ranks: int, timeout: float | None) -> dict[str, str]:
    """The environment of the ranks: together they use as many threads as there are processors."""
    threads = str(max((os.cpu_count() or 1) // ranks, 1))
    given = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads} | dict(os.environ)
    return given | ({} if timeout is None else {"MINIGRAD_TIMEOUT": str(timeout)})


def guarded(command: Sequence[str], life: int, mark: str, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """The command, whose processes get a mark, and end when the other end of the pipe `life` is closed."""
    if not hasattr(os, "getpgrp"):
        return subprocess.Popen(command, env=variables, stderr=subprocess.PIPE)
    start = [sys.executable, "-I", "-S", guard.__file__, str(life), str(os.getpgrp()), mark, *command]
    return subprocess.Popen(start, env=variables, stderr=subprocess.PIPE, pass_fds=[life], process_group=0)


def main(arguments: Sequence[str]) -> int:
    """Run a script on several ranks; the exit status of mpirun, or 128 and the number of the signal that ended us."""
    found, ends = parsed(arguments), os.pipe()
    life, signals = os.fdopen(ends[1], "wb"), []

    def end(number: int, frame: Any) -> None:
        signals.append(number)
        life.close()

    before = guard.heed(end)
    try:
        status = run(found, ends[0])
    finally:
        life.close()
        os.close(ends[0])
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 + signals[0] if signals else status


def run(found: argparse.Namespace, life: int) -> int:
    """The exit status of the ranks, which write their own errors."""
    start = mpirun()
    if start is None:
        print(f"There is no mpirun.\n  Hint: {how_to_install('mpi4py')}", file=sys.stderr)
        return 1
    command = [*start, "-n", str(found.n), sys.executable, "-m", "mpi4py", *["-m"] * found.module, *found.script]
    mark, said = secrets.token_hex(16), b""
    # What a killed mpirun leaves in its folder would keep a later one with the same process number from starting.
    with TemporaryDirectory(prefix="minigrad-", ignore_cleanup_errors=True) as folder:
        variables = {"PRTE_MCA_prte_tmpdir_base": folder} | environment(found.n, found.timeout)
        ranks = guarded(command, life, mark, variables)
        for line in ranks.stderr or ():
            with suppress(OSError):  # the terminal is closed
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
            said = said[-4000:] + line
        status = ranks.wait()
        if status:
            guard.end_all(mark)  # what the guard has left, if it was killed itself
    if status:
        if why := cause(said, found.n):
            print(f"minigrad: {why}, and so the run", file=sys.stderr)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
