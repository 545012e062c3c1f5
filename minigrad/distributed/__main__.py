"""Starts a script on several ranks: `python -m minigrad.distributed -n 4 train.py`.

It calls the mpirun of the installed MPI, with the options that this one needs, and names a rank that was killed.
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

# What mpirun says about a rank that a signal has ended: Open MPI names the rank, MPICH does not.
KILLED = re.compile(
    rb"process\s+(rank\s+\d+)\s.{1,300}?\sexited\s+on\s+signal\s+(\d+)|EXIT STRING: .{1,40}?signal (\d+)", re.DOTALL
)


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


def main(arguments: Sequence[str]) -> int:
    """Run a script on several ranks; the exit status of mpirun."""
    found, start = parsed(arguments), mpirun()
    if start is None:
        print(f"There is no mpirun.\n  Hint: {how_to_install('mpi4py')}", file=sys.stderr)
        return 1
    command = [*start, "-n", str(found.n), sys.executable, "-m", "mpi4py", *["-m"] * found.module, *found.script]
    ranks = subprocess.Popen(command, env=environment(found.n, found.timeout), stderr=subprocess.PIPE)
    said = b""
    for line in ranks.stderr or ():
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        said = said[-4000:] + line
    status, killed = ranks.wait(), KILLED.search(said)
    if status and killed:
        rank, signal = (killed[1] or b"a rank").decode(), (killed[2] or killed[3]).decode()
        print(f"minigrad: signal {signal} has ended {rank} of {found.n}, and so the run", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
