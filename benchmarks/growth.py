"""The growth of cost with the elements of an array, the nodes of a graph, and the kernels and tensors of a call.

    python3 course bench growth
    python3 course bench growth --only 'nodes*'     # or 'elements*', 'memory*', 'calls*', 'bandwidth'

Nodes are counted as recorded.  Each stage is timed separately in processor seconds, which depend less on other work
on the machine.  The whole first call, which waits for LLVM, is timed in seconds of the clock.
"""

from __future__ import annotations

import fnmatch
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import training
from _harness import BEST, ROOT, Case, Options, Work, facts, measure, options, table, text_of
from compiled import FUNCTIONS, Three, chain, run

import minigrad as mg

Made = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]
GOAL_NODES, GOAL_SECONDS = 10_000, 2.0
GOAL_CALL, GOAL_KERNEL, GOAL_TENSOR = 10e-6, 1e-6, 0.5e-6  # seconds


# Elements -----------------------------------------------------------------------------------------------------------


def total(m: Any, x: Any) -> Any:
    """The sum of all elements."""
    return m.sum(x)


GROWING: dict[str, Three] = {"chain": FUNCTIONS["chain"], "softmax": FUNCTIONS["softmax"], "sum": (total,) * 3}


def element_cases(opts: Options) -> list[Case]:
    """A chain, a softmax over rows and a sum, of a thousand to a hundred million elements."""
    found = []
    for name in GROWING:
        for power in (2, 3) if opts.smoke else range(3, 9):
            label, work = f"elements: {name} of 1e{power}", partial(element_work, name=name, power=power, opts=opts)
            found.append(Case(label, ("minigrad", "eager", "torch", "jax.jit", "numpy"), work, peer=BEST, pause=0.05))
    return found


def element_work(contender: str, name: str, power: int, opts: Options) -> Work:
    """One of the functions on 10 ** power random numbers."""
    shape = (10**power // (10 if opts.smoke else 1000), -1) if name == "softmax" else (-1,)
    array = np.random.default_rng(0).standard_normal(10**power, dtype=np.float32).reshape(shape)
    if contender == "numpy":
        return lambda: GROWING[name][0](np, array)
    return run(contender, GROWING[name], array, opts)


def elements(opts: Options) -> str:
    """The table of elements, with the memory bandwidth of minigrad's program."""
    rows = measure(element_cases, opts)
    lines = table(rows).splitlines()
    for i, row in enumerate(rows):
        power = int(row.case.name.rpartition("1e")[2])
        moved = 4 * 10**power * (1 if "sum" in row.case.name else 2)
        lines[i + 2] += f" {moved / row.median('minigrad') / 1e9:.2f} GB/s |"
    lines[:2] = [lines[0] + " bandwidth |", lines[1] + "---|"] if rows else lines[:2]
    return "\n".join(lines) + "\n"


def bandwidth() -> str:
    """The bandwidth of a copy of a large array in this run, for comparison."""
    from minigrad.compile.look.roofline import machine

    m = machine()
    return f"- this machine, in this run: {m.bandwidth / 1e9:.1f} GB/s for a copy, {m.flops / 1e9:.0f} GFLOP/s\n"


# Nodes --------------------------------------------------------------------------------------------------------------


def elementwise_chain(nodes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def f(x: Any) -> Any:
        for _ in range(nodes // 4):
            x = mg.tanh(x * 0.5 + 0.25) - 0.125
        return x

    return f, (mg.ones(64),)


def with_reductions(nodes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def f(x: Any) -> Any:
        for _ in range(nodes // 5):
            x = mg.exp(x * 0.5 - x.max(-1, keepdims=True)) + 0.1
        return x

    return f, (mg.ones((16, 32)),)


def adam_update(nodes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    parameters = [mg.ones(8, requires_grad=True) for _ in range(max(1, nodes // 10))]  # 12 nodes for each parameter
    for p in parameters:
        p.grad = mg.full(8, 0.1)
    return mg.optim.Adam(parameters).step, ()


def deep_mlp(nodes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    layers = [layer for _ in range(max(1, nodes // 14)) for layer in (mg.nn.Linear(8, 8), mg.nn.ReLU())]
    model, x = mg.nn.Sequential(*layers), mg.ones((4, 8))
    parameters = list(model.parameters())

    def step() -> Any:
        for p in parameters:
            p.grad = None
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    step()
    return step, ()


def wide_diamond(nodes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def f(x: Any) -> Any:
        parts = [mg.tanh(x * (1.0 + i)) for i in range(nodes // 3)]
        while len(parts) > 1:
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [a + b for a, b in zip(parts[::2], parts[1::2])] + odd
        return parts[0]

    return f, (mg.ones(64),)


GRAPHS: dict[str, Made] = {
    "chain": elementwise_chain, "chain with reductions": with_reductions, "Adam, many parameters": adam_update,
    "deep MLP, forward + backward": deep_mlp, "wide diamond": wide_diamond,
}
STAGES = ("trace", "passes", "fusion", "lowering", "plan")


def stages(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[int, int, list[float]]:
    """The number of nodes and steps of a function, and the processor time of each stage of compilation."""
    from minigrad.compile.fusion.fuse import fuse
    from minigrad.compile.lowering.lower import lower
    from minigrad.compile.rewriting.passes import optimise
    from minigrad.compile.running.planning import planned
    from minigrad.support.collector import no_collection

    with no_collection():  # as in a jitted function
        times = [time.process_time()]
        graph = mg.trace(function, *args)
        times.append(time.process_time())
        optimised, _ = optimise(graph)
        times.append(time.process_time())
        partition = fuse(optimised)
        times.append(time.process_time())
        lowered = {group: lower(partition, group) for group in partition.kernels}
        times.append(time.process_time())
        planned(partition, lowered)
        times.append(time.process_time())
    return len(graph), len(partition.groups), [b - a for a, b in pairwise(times)]


def nodes(opts: Options) -> str:
    """The table of nodes: the fastest of several runs, and one whole first call with an empty cache."""
    sizes = (10, 30) if opts.smoke else (10, 100, 1000, GOAL_NODES)
    lines = [f"| graph | nodes | steps | {' | '.join(STAGES)} | all of it | goal | | first call |",
             "|---" * (len(STAGES) + 7) + "|"]
    for name, made in GRAPHS.items():
        if not fnmatch.fnmatch(f"nodes: {name}", opts.only):
            continue
        for size in sizes:
            best: list[float] = []
            for _ in range(1 if opts.smoke else 3):
                count, steps, times = stages(*made(size))
                best = times if not best or sum(times) < sum(best) else best
            goal = f"≤ {GOAL_SECONDS:g} s" if size == GOAL_NODES else ""
            verdict = ("ok" if sum(best) <= GOAL_SECONDS else "**over**") if goal else ""
            cells = [text_of(t) for t in (*best, sum(best))]
            first = text_of(_first_call(*made(size))) if size < GOAL_NODES else "–"
            lines.append(f"| {name} | {count:,} | {steps} | {' | '.join(cells)} | {goal} | {verdict} | {first} |")
    return "\n".join(lines) + "\n"


def _first_call(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    jitted = mg.jit(function)
    start = time.perf_counter()
    jitted(*args)
    return time.perf_counter() - start


# Calls --------------------------------------------------------------------------------------------------------------


def calls(opts: Options) -> str:
    """The time of a call on small inputs: a fit with a constant, a term per kernel and a term per captured tensor."""
    x = mg.ones((4, 4))
    counts = (1, 2) if opts.smoke else (1, 2, 5, 10, 20, 50)
    rows, points = [], []
    for kernels in counts:
        rows.append((kernels, 0, _seconds_of(_kernels(kernels), x, opts)))
    for tensors in counts:
        rows.append((1, tensors, _seconds_of(_captures(tensors), x, opts)))
    for kernels, tensors, seconds in rows:
        goal = GOAL_CALL + GOAL_KERNEL * kernels + GOAL_TENSOR * tensors
        verdict = "ok" if seconds <= goal else "**over**"
        points.append(f"| {kernels} | {tensors} | {text_of(seconds)} | ≤ {text_of(goal)} | {verdict} |")
    known = np.array([[1.0, k, t] for k, t, _ in rows])
    base, kernel, tensor = np.linalg.lstsq(known, np.array([s for *_, s in rows]), rcond=None)[0]
    fit = f"\nFitted: {text_of(base)} a call, {text_of(kernel)} a kernel, {text_of(tensor)} a captured tensor.\n"
    head = ["| kernels | captured tensors | a call | goal | |", "|---|---|---|---|---|"]
    return "\n".join([*head, *points]) + "\n" + fit


def _kernels(count: int) -> Any:
    """A function with `count` kernels: a value and its transposed read cannot be in the same kernel."""

    def f(x: Any) -> Any:
        for _ in range(count):
            x = mg.tanh(x.T) * 0.5
        return x

    return mg.jit(f)


def _captures(count: int) -> Any:
    held = [mg.ones((4, 4)) for _ in range(count)]

    def f(x: Any) -> Any:
        for tensor in held:
            x = x + tensor
        return x

    return mg.jit(f)


def _seconds_of(function: Callable[..., Any], x: Any, opts: Options) -> float:
    count, repeats = (1, 1) if opts.smoke else (50, 300)  # such a short time is rarely interrupted
    function(x)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            function(x)
        times.append((time.perf_counter() - start) / count)
    return min(times)


# Memory -------------------------------------------------------------------------------------------------------------

CHAIN_SIZE, BATCH = 10_000_000, 32_768


def peak(contender: str, work: str, size: int) -> None:
    """Print the peak growth of the process, in bytes, during the first step after the inputs are made."""
    step = _memory_work(contender, work, size)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # reset the peak
    before = _of_status("VmRSS")
    step()
    print(max(0, _of_status("VmHWM") - before))


def _of_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _memory_work(contender: str, work: str, size: int) -> Callable[[], Any]:
    """Forward and backward of the chain on `size` floats, or a first step of the MLP on a batch of `size` examples."""
    opts = Options()
    if work == "mlp":
        task = training.Task("", "mlp", (784, 256, 128, 10) if size > 8 else (8, 6, 3), "Adam", size)
        return training.step(contender, task, opts)
    values = np.ones(size, np.float32)
    if contender == "torch":
        torch = opts.library("torch")
        t = torch.tensor(values, requires_grad=True)
        return lambda: chain(torch, t).sum().backward()
    x = mg.asarray(values)

    def both(x: Any) -> Any:
        return mg.grad(lambda x: chain(mg, x).sum())(x)

    function = mg.jit(both) if contender == "minigrad" else both
    function(mg.ones(8))  # load modules that are loaded on first use
    return lambda: function(x)


def memory(opts: Options) -> str:
    """The table of peaks, each from a new process."""
    if not Path("/proc/self/clear_refs").exists():
        return "- peak memory is measured where there is a /proc\n"
    contenders = opts.present(("minigrad", "eager", "torch"))
    sizes = {"chain": 1000 if opts.smoke else CHAIN_SIZE, "mlp": 4 if opts.smoke else BATCH}
    lines = [f"| peak memory, forward + backward | {' | '.join(contenders)} |", "|---" * (len(contenders) + 1) + "|"]
    for work, size in sizes.items():
        cells = []
        for contender in contenders:
            code = f"import growth; growth.peak({contender!r}, {work!r}, {size})"
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True)
            cells.append(f"{int(done.stdout) / 1e6:.0f} MB")
        label = f"chain, {size:,} floats" if work == "chain" else f"MLP with Adam, batch {size}"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=7)
    parts = {
        "bandwidth": bandwidth, "elements": lambda: elements(opts), "nodes": lambda: nodes(opts),
        "calls": lambda: calls(opts), "memory": lambda: memory(opts),
    }
    text = f"## Growth\n\n{facts(opts)}\n"
    for name, part in parts.items():
        if opts.only == "*" or opts.only.startswith(name):
            text += part() + "\n"
    print(text)
    return text


if __name__ == "__main__":
    main()
