"""Loading saved programs: the time until the first result, with empty caches and with filled ones.

Each figure comes from a new process, which loads a file and calls the program once; imports are not counted.  The
program of the table's last column is jitted in that process instead, from a model that is there already.  With
MINIGRAD_BESIDE=FOLDER another checkout of minigrad saves and loads the same models, in turns with this one.

    python3 course bench loading
    MINIGRAD_BESIDE=../before python3 course bench loading --rounds 9
"""

from __future__ import annotations

import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from _harness import ROOT, Options, facts, options, text_of

BATCH = 8
HOW = ("nothing cached", "cached on disk")
WORK = """
import json, sys
sys.path.append(sys.argv[1])
import loading
print(json.dumps(loading.work(*sys.argv[2:])))
"""


def models(smoke: bool) -> dict[str, Any]:
    """Functions that make a model and a batch, by name."""
    import inference
    import training

    import minigrad as mg

    def resnet() -> Any:
        side, width = (8, 2) if smoke else (32, 16)
        return training.resnet(None, side, width), inference.normal(BATCH, 3, side, side)

    def of(build: Any) -> Any:
        _, model, batch = build(smoke)
        return model, batch(BATCH)

    mg.random.seed(0)
    found = {build.__name__: partial(of, build) for build in (inference.mlp, inference.cnn, inference.gpt)}
    return found | {"resnet": resnet}


def work(what: str, name: str, path: str, smoke: str) -> float:
    """Save a model and its batch, or load the program, or jit the model; the processor seconds to the first result."""
    import numpy as np

    import minigrad.compile  # imports are not counted

    mg = minigrad
    if what == "load":
        x = mg.asarray(np.load(f"{path}.npy"))
    else:
        model, batch = models(smoke == "smoke")[name]()
        model.eval()
        for parameter in model.parameters():
            parameter.requires_grad = False
        x = mg.asarray(batch)
    if what == "save":
        np.save(f"{path}.npy", batch)
        mg.jit(model).save(path, x)
        return 0.0
    begun = process_time()
    function = mg.load_program(path) if what == "load" else mg.jit(model)
    function(x).numpy()
    return process_time() - begun


def process(checkout: Path, cache: Path, threads: int, *args: str) -> float:
    """The seconds that `work` measures in a new process with a checkout of minigrad."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout), "MINIGRAD_CACHE": str(cache), "OMP_NUM_THREADS": str(threads),
    }
    command = [sys.executable, "-c", WORK, str(Path(__file__).parent), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=checkout, env=environment)
    return float(json.loads(done.stdout.splitlines()[-1]))


def row(model: str, checkouts: dict[str, Path], opts: Options) -> str:
    """A line of the table: medians, with minima in parentheses."""
    size = "smoke" if opts.smoke else "whole"
    found: dict[str, list[float]] = {title: [] for title in titles(checkouts)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number in range(opts.rounds):
            for name, checkout in checkouts.items():
                path, cache = Path(folder) / f"{name}.program", Path(folder) / f"{name}{number}"
                if not path.exists():
                    process(checkout, Path(folder) / "saving", opts.threads, "save", model, str(path), size)
                for how in HOW:
                    taken = process(checkout, cache, opts.threads, "load", model, str(path), size)
                    found[f"{name}, {how}"].append(taken)
            taken = process(ROOT, Path(folder) / f"this checkout{number}", opts.threads, "jit", model, "", size)
            found["jit, cached on disk"].append(taken)
    cells = [f"{text_of(statistics.median(each))} ({text_of(min(each))})" for each in found.values()]
    return f"| {model}, batch {BATCH} | {' | '.join(cells)} |"


def titles(checkouts: dict[str, Path]) -> list[str]:
    """The titles of the columns."""
    return [*[f"{name}, {how}" for name in checkouts for how in HOW], "jit, cached on disk"]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=5)
    beside = os.environ.get("MINIGRAD_BESIDE")
    checkouts = {"this checkout": ROOT} | ({"beside": Path(beside).resolve()} if beside else {})
    names = titles(checkouts)
    lines = [f"| load and call, processor seconds | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [row(model, checkouts, opts) for model in models(opts.smoke) if fnmatch.fnmatch(model, opts.only)]
    text = "\n".join(["## Loading saved programs", "", facts(opts, names), *lines, ""])
    print(text)
    return text


if __name__ == "__main__":
    main()
