"""Starts a script on several ranks: `python -m minigrad.distributed -n 4 train.py`.

It calls the mpirun (or mpiexec) of the MPI that is installed, with the options that this one needs, and names the rank
that has ended a run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..support.packages import how_to_install

# What mpirun says about a rank that a signal has ended: Open MPI, and MPICH.
KILLED = re.compile(
    rb"process\s+rank\s+(\d+)\s.{1,300}?\sexited\s+on\s+signal\s+(\d+)"
    rb"|RANK (\d+) PID.{1,300}?EXIT CODE: (\d+)", re.DOTALL,
)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options, which stand before or after the name of the script, and the script with its own arguments.

    >>> vars(parsed(["train.py", "-n", "4", "--epochs", "3"]))
    {'n': 4, 'timeout': None, 'module': False, 'script': ['train.py', '--epochs', '3']}
    """
    options = argparse.ArgumentParser("python -m minigrad.distributed", add_help=False)
    options.add_argument("-n", type=int, default=os.cpu_count() or 1, help="the number of ranks")
    options.add_argument("--timeout", type=float, help="seconds that a rank waits for others")
    parser = argparse.ArgumentParser(
        "python -m minigrad.distributed", description="Run a script on several ranks.", parents=[options]
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="a Python script, and its arguments")
    found = parser.parse_args(arguments)
    if not found.script:
        parser.error("which script?")
    begin = [*found.script[1:]]
    while begin[:1] in (["-n"], ["--timeout"]) and len(begin) > 1:
        options.parse_args(begin[:2], found)
        begin = begin[2:]
    found.script = [found.script[0], *begin]
    if found.n < 1 or (found.timeout is not None and not found.timeout > 0):
        parser.error("-n is a number of ranks, and --timeout a number of seconds above 0")
    return found


def mpirun() -> list[str] | None:
    """The command that starts ranks, with its options for any number of them; None if there is no MPI."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("mpirun", path=beside) or shutil.which("mpiexec", path=beside)
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version and "PRRTE" not in version:
        return [found]
    root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [found, *root, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]


def environment(ranks: int, timeout: float | None) -> dict[str, str]:
    """The environment of the ranks: together they use as many threads as there are processors."""
    threads = str(max((os.cpu_count() or 1) // ranks, 1))
    given = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads} | dict(os.environ)
    return given | ({} if timeout is None else {"MINIGRAD_TIMEOUT": str(timeout)})


def main(arguments: Sequence[str]) -> int:
    """Run a script on several ranks; the exit status of mpirun."""
    found = parsed(arguments)
    start = mpirun()
    if start is None:
        print(f"There is no mpirun.\n  Hint: {how_to_install('mpi4py')}", file=sys.stderr)
        return 1
    script = [sys.executable, "-m", "mpi4py", *(["-m"] if found.module else []), *found.script]
    command = [*start, "-n", str(found.n), *script]
    ranks = subprocess.Popen(command, env=environment(found.n, found.timeout), stderr=subprocess.PIPE)
    assert ranks.stderr is not None
    said = b""
    for line in ranks.stderr:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        said = said[-4000:] + line
    status, killed = ranks.wait(), KILLED.search(said)
    if status and killed:
        rank, signal = [part.decode() for part in killed.groups() if part is not None]
        print(f"minigrad: signal {signal} has ended rank {rank} of {found.n}, and so the run", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
