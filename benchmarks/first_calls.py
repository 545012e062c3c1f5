"""The first call of a compiled training step: how long a user waits until it is traced and compiled.

Each figure comes from a new process.  "Nothing cached" has empty cache folders; "cached on disk" starts again with the
folder that the first process has filled.  Imports, the model and its arrays are not counted; the step itself is.

    python3 course bench first_calls
    python3 course bench first_calls --compile --only 'GPT*'
"""

from __future__ import annotations

import fnmatch
import statistics
import tempfile
from functools import partial
from pathlib import Path

import training
from _contender import Contender, Failed
from _harness import Case, Options, facts, options, text_of

CACHES = ("MINIGRAD_CACHE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
CONTENDERS = ("minigrad", "jax.jit", "torch.compile")
CALLS = 3  # a function may be compiled again when its second call finds gradients


def cases(opts: Options) -> list[Case]:
    tasks = training.tasks(True)[:1] if opts.smoke else [*training.tasks(False), *training.larger()]
    return [
        Case(task.name, [name for name in CONTENDERS if task.model != "resnet" or name != "jax.jit"],
             partial(training.step, task=task, opts=opts))
        for task in tasks
    ]


def seconds(contender: str, case: str, folder: str, opts: Options) -> tuple[float, float]:
    """The seconds that the first calls take longer than the last of them, by the clock and of the processors."""
    settings = {name: str(Path(folder) / name.lower()) for name in CACHES}
    with Contender(contender, cases, opts, **settings) as process:
        process("build", case)
        calls = [process("call") for _ in range(CALLS)]
    return tuple(sum(times) - (CALLS - 1) * times[-1] for times in zip(*calls))


def columns(opts: Options) -> dict[str, str]:
    """The title of each column, and its contender; the second column uses the cache that the first one fills."""
    named = {"minigrad, nothing cached": "minigrad", "minigrad, cached on disk": "minigrad"}
    return named | {f"{name}, nothing cached": name for name in opts.present(CONTENDERS[1:])}


def row(case: Case, opts: Options) -> str:
    """A line of the table: medians, with processor seconds in parentheses."""
    found: dict[str, list[tuple[float, float]]] = {title: [] for title in columns(opts)}
    for _ in range(opts.rounds):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for title, contender in columns(opts).items():
                if contender not in case.contenders:
                    continue
                try:
                    found[title].append(seconds(contender, case.name, folder, opts))
                except Failed:
                    if contender == "minigrad":
                        raise
    cells = []
    for title, times in found.items():
        medians = [text_of(statistics.median(each)) for each in zip(*times)]
        missing = "failed" if columns(opts)[title] in case.contenders else "–"
        cells.append(f"{medians[0]} ({medians[1]})" if medians else missing)
    return f"| {case.name} | {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=3)
    titles = columns(opts)
    lines = [f"| first call, clock (processors) | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for case in cases(opts):
        if fnmatch.fnmatch(case.name, opts.only):
            lines.append(row(case, opts))
    text = "\n".join(["## First calls", "", facts(opts, titles.values()), *lines, ""])
    print(text)
    return text


if __name__ == "__main__":
    main()
