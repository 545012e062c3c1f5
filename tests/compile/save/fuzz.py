"""Loads and runs hostile files in other processes, with limits on memory and time, and counts what happened.

    python -m tests.compile.save.fuzz 20000         # an hour or so on one core
    python -m tests.compile.save.fuzz 20000 --seed 7
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[3]
MOST_SECONDS = 10.0  # of a file: to load it, and to run it
MOST_TIMES = 4  # the bytes that a file may take, as a multiple of the sizes that it states
SPARE = 300 << 20  # bytes: the compiler, and the memory that earlier files left
ADDRESSES = 12 << 30  # bytes of addresses for a process
MOST_GIVEN = 1 << 26  # bytes of an argument
FINE = ("refused", "error", "ran")
SECRET = b"\xa5\xe7\xc2\x5e" * 1000


def run(count, seed=0):
    """The outcomes of the files of `count` seeds: a list of dicts with seed, outcome, change and text."""
    found, at, end = [], seed, seed + count
    with TemporaryDirectory() as folder:
        while at < end:
            found += _worker(at, end, folder)
            at = found[-1]["seed"] + 1
    return found


def _worker(first, end, folder):
    """The outcomes of a process, up to the file that ended it."""
    command = [sys.executable, "-m", "tests.compile.save.fuzz", "--worker", str(first), str(end), folder]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIGRAD_CACHE": folder, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        found = [json.loads(line) for line in process.stdout]
        code = process.wait()
    if code == 1:
        raise RuntimeError("the worker itself failed")
    if not found or found[-1]["seed"] < end - 1:
        last = found[-1]["seed"] if found else first - 1
        found.append({"seed": last + 1, "outcome": "ended the process", "change": "", "text": f"exit status {code}"})
    return found


def work(first, end, folder):
    """Print the outcome of each file, one a line; SIGALRM ends the process if a file takes too long."""
    import resource
    import signal

    from tests.compile.save import hostile

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("ignore")
    hostile.saved()
    for seed in range(first, end):
        random = Random(seed)
        name, change, raw = hostile.files(seed, random)
        path = Path(folder) / "file"
        path.write_bytes(raw)
        signal.alarm(60)
        outcome, text = attempt(path, random)
        signal.alarm(0)
        print(json.dumps({"seed": seed, "outcome": outcome, "change": f"{name}: {change}", "text": text}), flush=True)
        if outcome not in FINE:
            gc.collect()


def attempt(path, random):
    """What happens when a file is loaded, and run twice after other arrays left their values in memory."""
    import minigrad as mg
    from minigrad.compile.save.codec import filled

    before, begun = _peak(reset=True), time.perf_counter()
    stated = path.stat().st_size
    outcome, text = "ran", ""
    try:
        program = mg.load_program(path)
        stated += _stated(program)
        if any(node.nbytes > MOST_GIVEN for node in program.given.values()):
            return "ran", "its arguments are too large to make"
        args, kwargs = filled((program.args, program.kwargs), _arguments(program, random))
        results = [_bytes(program(*args, **kwargs)) for _ in range(2) if _leave_values(_)]
        if results[0] != results[1]:
            outcome, text = "not the same twice", repr(program)[:200]
        if any(SECRET[:4] in part for result in results for part in result):
            outcome, text = "another array's values", repr(program)[:200]
    except mg.ProgramError as error:
        outcome, text = "refused", str(error)
    except mg.MinigradError as error:
        outcome, text = "error", str(error)
    except BaseException as error:
        outcome, text = "raw error", f"{type(error).__name__}: {error}"
    taken, used = time.perf_counter() - begun, _peak() - before
    if taken > MOST_SECONDS:
        outcome, text = "too slow", f"{taken:.1f} s, {outcome}: {text}"
    elif used > MOST_TIMES * stated + SPARE:
        outcome, text = "too much memory", f"{used >> 20} MiB, stated {stated >> 20} MiB, {outcome}: {text}"
    return outcome, text


def _stated(program):
    """The bytes of all values that the graphs of a program state."""
    graphs = [program.program.graph]
    for graph in graphs:
        graphs += [v.graph for node in graph.nodes for v in node.attrs.values() if hasattr(v, "graph")]
    return sum(node.nbytes for graph in graphs for node in (*graph.inputs, *graph.nodes))


def _arguments(program, random):
    """Tensors for all slots of the arguments."""
    import numpy as np

    import minigrad as mg
    from minigrad.compile.save.codec import slots

    generator = np.random.default_rng(random.getrandbits(32))
    tensors = [mg.zeros(1)] * len(slots((program.args, program.kwargs)))
    for number, node in program.given.items():
        few = generator.integers(0, 3, node.shape) if node.size < 10**6 else np.zeros(node.shape)
        tensors[number] = mg.asarray((few * (0.5 if node.dtype.kind == "f" else 1)).astype(node.dtype))
    return tensors


def _leave_values(turn):
    """Fill memory of many sizes, and free it: with a secret first, then with other bytes."""
    import numpy as np

    kept = [np.frombuffer((SECRET * (size // len(SECRET) + 1))[:size], np.uint8) ^ (turn * 37)
            for size in (16, 48, 64, 100, 256, 1000, 4096, 20_000, 1 << 17, 1 << 20) for _ in range(4)]
    return len(kept)


def _bytes(tree):
    import minigrad as mg
    from minigrad.core.tree import flatten

    return [t.numpy_copy().tobytes() if isinstance(t, mg.Tensor) else b"" for t in flatten(tree)[0]]


def _peak(reset=False):
    """The most bytes of memory that this process had since the last reset."""
    if reset:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return 0
    for line in Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else ():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return 0


def table(found):
    """The number of files with each outcome, and those that must not be."""
    lines = [f"{count:7,}  {outcome}" for outcome, count in Counter(each["outcome"] for each in found).most_common()]
    wrong = [each for each in found if each["outcome"] not in FINE]
    return "\n".join([*lines, *[json.dumps(each) for each in wrong]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=3)
    given = parser.parse_args()
    if given.worker:
        work(int(given.worker[0]), int(given.worker[1]), given.worker[2])
    else:
        print(table(run(given.count, given.seed)))


if __name__ == "__main__":
    main()
