"""The mechanisms of the compiler: their tokens, and what each buys: how many times as long a line takes without it.

A mechanism with a switch is switched off while one of two equal programs is compiled.  Both run in turns, in this
process, and the ratio is that of the least times.  What has no switch is named with the page that needs it.

    OMP_NUM_THREADS=1 python3 course bench mechanisms --threads 1 --processor
    OMP_NUM_THREADS=2 python3 course bench mechanisms --only '*threads*'
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import _recurrent
import compiled
import training
from _harness import ROOT, Options, Work, options, processor

import minigrad as mg
from minigrad.compile.codegen import native
from minigrad.compile.loops.legalise import written
from minigrad.compile.loops.operations import OPERATIONS
from minigrad.compile.rewriting.passes import rule_names
from minigrad.compile.running.targets import Settings
from minigrad.devices.compiled import native as found
from tests.project.tokens import size_of_files

CALLS, SECONDS = 20, 1.0  # the fewest of both programs
Switch = Callable[[], AbstractContextManager[Any]]
Line = Callable[[Options], Work]


def left_out(*names: str) -> Switch:
    """Passes and rules that are left out."""
    usual = Settings.left_out.fget  # type: ignore[attr-defined]
    return lambda: patch.object(Settings, "left_out", property(lambda settings: [*usual(settings), *names]))


def by(name: str, other: Any) -> Switch:
    """A function or a number of minigrad that is replaced."""
    return lambda: patch(f"minigrad.{name}", other)


def calling(*names: str) -> Switch:
    """Functions of C's library in place of arithmetic."""
    return lambda: patch.dict(OPERATIONS, {name: replace(OPERATIONS[name], written_out=None) for name in names})


def work(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32", jit: Any = mg.jit) -> Line:
    """A function of random numbers; with `jit=same`, in eager mode."""

    def line(opts: Options) -> Work:
        sizes = [tuple(min(size, 16) for size in shape) if opts.smoke else shape for shape in shapes]
        program, given = jit(function), [mg.asarray(compiled.normal(size).astype(dtype)) for size in sizes]
        return lambda: program(*given)

    return line


def same(function: Any) -> Any:
    """The function."""
    return function


def step(model: str, number: int = 0, contender: str = "minigrad") -> Line:
    """A training step of the benchmark `training`."""

    def line(opts: Options) -> Work:
        task = [task for task in training.tasks(opts.smoke) if task.model == model][number]
        return training.step(contender, task, opts)

    return line


def attention(x: Any) -> Any:
    """The sum of causal attention."""
    return (compiled.attention(mg, x) * 1.01).sum()


LINES: dict[str, Line] = {
    "chain": work(partial(compiled.chain, mg), (1_000_000,)),
    "softmax": work(partial(compiled.softmax, mg), (4096, 1024)),
    "attention": work(attention, (3, 2, 8, 1024, 64)),
    "attention, forward + backward": work(mg.value_and_grad(attention), (3, 2, 8, 1024, 64)),
    "MLP, batch 64, SGD": step("mlp", 2), "CNN, SGD": step("cnn"),
    "MLP, batch 64, Adam, eager": step("mlp", 3, "eager"),
    "RNN": lambda opts: _recurrent.cases(opts)[0].build("minigrad"),
    "tanh(x.T).sum(0)": work(lambda x: mg.tanh(x.T).sum(0), (2048, 2048)),
    "concat of two": work(lambda x, y: mg.concat([x, y], 1) * 2, (1000, 512), (1000, 512)),
    "sum over 0 of 100,000 × 16": work(lambda x: x.sum(0), (100_000, 16)),
    "sin(x) * cos(x)": work(lambda x: mg.sin(x) * mg.cos(x), (1_000_000,)),
    "int32, x // 8 + x % 8": work(lambda x: x // 8 + x % 8, (1_000_000,), dtype="int32"),
    "float64, (x * x) ** 0.3": work(lambda x: (x * x) ** 0.3, (1_000_000,), dtype="float64"),
    "eager 10,000 × solve 3 × 3": work(mg.linalg.solve, (10_000, 3, 3), (10_000, 3, 1), jit=same),
    "eager sums of rows": work(lambda x: x.sum(1), (1000, 1000), jit=same),
    "eager parts of images": work(lambda x: x[:, 1:-1, 1:-1] * x[:, :-2, :-2], (100, 32, 32), jit=same),
}
# name: files below `minigrad`: what they buy, a line that is slower when they are off, or in words
TABLE = """
rules and equations: rewriting/{rules,equation,algebra}: int32, x // 8 + x % 8
views folded, equal nodes merged, dead values: rewriting/{fold_views,common,dead}: CNN, SGD
layouts, packed weights: rewriting/layouts: tanh(x.T).sum(0)
channels last: rewriting/channels_last: CNN, SGD
windows and joins as loops: rewriting/reductions: concat of two
passes and their log: rewriting/{passes,__init__}: `f.passes`; unit 11
fusion: fusion/{fuse,group,compute,kinds,spans,tally}: chain
attention in blocks, up to a causal mask: fusion/blocks running/blocked: attention, forward + backward
masks of positions, picked rows: rewriting/positions: attention
fusion by hand: fusion/by_hand: operations moved in `mg.viz.fused`; unit 11
bytes and operations: fusion/count look/{cost,roofline}: `f.cost`, `f.record`; unit 09
lowering: lowering/{lower,elements,by_nodes}: all kernels; further_fusion
products by loops: lowering/product: CNN, SGD
the loop language: loops/{ir,index,operations,arithmetic,legalise}: all kernels
exp, log, tanh, erf as arithmetic: loops/maths: chain
angles as arithmetic: loops/angles: sin(x) * cos(x)
powers as arithmetic: loops/powers: float64, (x * x) ** 0.3
vectors: loops/widen: softmax
rows at once, tiles, sums in blocks: loops/bands: sum over 0 of 100,000 × 16
machine code by LLVM: codegen/{llvm,printing,native,disk_cache}: chain
threads in machine code: codegen/workers: chain
BLAS and loops in machine code: codegen/step_code running/{steps,rounds}: RNN
C to read: codegen/{c,c_words}: listings; unit 11
GPUs: codegen/{cuda,gpu_loops,nvrtc} running/{gpu,cuda_graph}: kernels on GPUs; units 03 and 12
browsers: codegen/{wasm,wasm_format,wasm_words,side_modules}: 7 to 45 × in a browser; README.md
plans and runs: running/{program,plain,plan,planning,frame,targets}: all programs; unit 12
parallel steps: running/{schedule,profiler}: `mg.profile`; unit 12
records and stages: look/{record,held,ran,watching,values,stages,stage,code,texts}: all views; units 09 to 12
checks beside eager mode: look/checking: `mg.jit(check=True)`; unit 10
placement: look/placement: `graph.offloading`; unit 12
saved programs: save/*: `f.save`, `mg.load_program`
kernels of users: user_kernels/* nodes/registered: `mg.kernel`; unit 11
loops and branches: control/*: `mg.scan`, `mg.cond`; unit 10
graphs: nodes/{graph,interpret,view,thresholds}: all stages; unit 04
tracing: tracing/{tracer,signature}: `mg.jit`, `mg.trace`; unit 10
nothing stale: tracing/{guards,contents,reachable,unseen}: right results; unit 10
functions and gradients: functions/* jitted __init__: `mg.jit`, inside gradients too; unit 10
graph mode: graph_mode: `mg.graph()`; unit 10
programs in eager mode: eager/{calls,updates,__init__}: MLP, batch 64, Adam, eager
reductions in eager mode: eager/reduction_loops: eager sums of rows
rows in eager mode: eager/{row_loops,kernels}: eager parts of images
stacks in eager mode: eager/stack_loops: eager 10,000 × solve 3 × 3
"""
SWITCHES: dict[str, Switch] = {
    "rules and equations": left_out(*rule_names()), "layouts, packed weights": left_out("layouts", "packed"),
    "views folded, equal nodes merged, dead values": left_out("fold_views", "common", "dead"),
    "channels last": left_out("channels_last"),
    "windows and joins as loops": left_out("windows as product", "windows as parts", "join by position"),
    "fusion": by("compile.fusion.fuse.MOST_NODES", 1),
    "masks of positions, picked rows": left_out("positions", "pick_rows"),
    "attention in blocks, up to a causal mask": lambda: patch.object(Settings, "in_blocks", False),
    "products by loops": by("compile.fusion.kinds.LoopProduct.takes", lambda node, views: False),
    "exp, log, tanh, erf as arithmetic": calling("tanh"), "angles as arithmetic": calling("sin", "cos"),
    "powers as arithmetic": calling("pow"),
    "vectors": by("compile.codegen.printing.widen", lambda kernel, machine: kernel),
    "rows at once, tiles, sums in blocks": by("compile.codegen.printing.with_rows_at_once", same),
    "machine code by LLVM": lambda: patch.dict(os.environ, MINIGRAD_BACKEND="numpy"),
    "threads in machine code": by("compile.running.frame.is_shared", lambda step: False),
    "BLAS and loops in machine code": by("compile.running.rounds.runs_in_rounds", lambda program: False),
    "programs in eager mode": partial(mg.eager_programs, False),
    "reductions in eager mode": by("devices.reductions.native", lambda: None),
    "rows in eager mode": by("devices.compiled._function_of_rows", lambda *layouts: None),
    "stacks in eager mode": by("devices.stacks.native", lambda: None),
}


def files_of(listed: str) -> Iterator[Any]:
    """The files that a row of the table lists."""
    for part in listed.split():
        folder, _, names = part.rpartition("/")
        inside = ROOT / "minigrad" / ("" if folder == "eager" else "compile") / folder
        for name in names.strip("{}").split(","):
            yield from inside.glob(f"{name}.py")


def forget() -> None:
    """Compile equal kernels again, and look again for what compiles."""
    native._compiler.cache_clear()
    found.cache_clear()
    written.cache_clear()


def ratio(line: Line, off: Switch, opts: Options) -> float:
    """How many times as long a line takes without a mechanism."""
    clock = time.process_time if opts.processor else time.perf_counter
    works, switches, least = list[Work](), (nullcontext, off), [float("inf")] * 2
    for switch in switches:
        with switch(), patch.dict(os.environ, MINIGRAD_CACHE="off"):
            forget()
            works.append(line(opts))
            works[-1]()
    begun, calls = time.perf_counter(), 0
    while not calls or (not opts.smoke and (time.perf_counter() - begun < SECONDS or calls < CALLS)):
        for number, (work, switch) in enumerate(zip(works, switches)):
            with switch():
                start = clock()
                work()
                least[number] = min(least[number], clock() - start)
        calls += 1
    forget()
    return least[1] / max(least[0], 1e-9)


def main(arguments: list[str] | None = None) -> str:
    """Print and return the table."""
    opts = options(__doc__ or "", arguments)
    mg.devices.set_num_threads(opts.threads)
    every = [path for room in ("compile", "eager") for path in (ROOT / "minigrad" / room).rglob("*.py")]
    lines, known = ["| mechanism | tokens | what it buys | without it |", "|---|---|---|---|"], set[Any]()
    for row in TABLE.strip().splitlines():
        name, listed, buys = row.split(": ", 2)
        known.update(files := [*files_of(listed)])
        if fnmatch.fnmatch(name, opts.only):
            took = f"{ratio(LINES[buys], SWITCHES[name], opts):.2f} ×" if name in SWITCHES else ""
            lines.append(f"| {name} | {size_of_files(files):,} | {buys} | {took} |")
    lines.append(f"| together | {size_of_files(every):,} | of which {size_of_files({*every} - known)} in no row | |")
    what = "processor seconds" if opts.processor else "seconds"
    note = "smoke run: the figures mean nothing" if opts.smoke else f"{what}, the least of runs in turns"
    where = f"{processor()}, threads: {opts.threads}; {note}."
    text = "\n".join(["## Mechanisms of the compiler", "", where, "", *lines, ""])
    print(text)
    return text


if __name__ == "__main__":
    main()
