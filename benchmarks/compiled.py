"""Compiled work: `mg.jit` against PyTorch, torch.compile and jax.jit on the same functions.

    python3 course bench compiled
    python3 course bench compiled --compile     # with torch.compile, which takes minutes to compile
    python3 course bench compiled --device cuda # all contenders on the GPU

`eager` is minigrad without jit.  jax is measured if it is installed.  On a GPU all multiply matrices in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import training
from _harness import BEST, Case, Options, measure, optional, options, report, text_of

import minigrad as mg

Work = dict[str, Callable[[], Any]]
RATE = 1e-9  # in training steps that are repeated thousands of times, no number becomes denormal


def chain(m: Any, x: Any) -> Any:
    """GELU written by hand, and five more operations."""
    y = x * 0.5 * (m.tanh((x + x * x * x * 0.044715) * 0.7978846) + 1.0)
    return ((y * 1.1 + 0.3) * y - 0.2) * 0.9


def softmax(m: Any, x: Any) -> Any:
    """Softmax over the last dimension, written by hand, so that no library recognises it by its name."""
    e = m.exp(x - _last(m, "max", x))
    return e / _last(m, "sum", e)


def layer_norm(m: Any, x: Any) -> Any:
    """Layer norm over the last dimension, written by hand."""
    centred = x - _last(m, "mean", x)
    return centred / m.sqrt(_last(m, "mean", centred * centred) + 1e-5)


def _last(m: Any, name: str, x: Any) -> Any:
    if m.__name__ == "torch":  # its `max` also returns positions
        return getattr(m, {"max": "amax"}.get(name, name))(x, dim=-1, keepdim=True)
    return getattr(m, name)(x, axis=-1, keepdims=True)


def function_cases(opts: Options, jax: Any) -> list[Case]:
    """The three functions: forward, and forward with backward."""
    rng = np.random.default_rng(0)
    cases = []
    sizes = {"chain": (10_000_000,), "softmax": (4096, 1024), "layer norm": (4096, 1024)}
    goals = {"chain": (0.25, 0.15), "softmax": (1.0, 0.5), "layer norm": (1.0, 0.7)}
    for name, function in (("chain", chain), ("softmax", softmax), ("layer norm", layer_norm)):
        shape = (40,) if opts.smoke else sizes[name]
        shape = shape if name == "chain" or not opts.smoke else (4, 16)
        x, g = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
        label = f"{name}, {' × '.join(map(str, shape))}"
        cases.append(Case(label, _forward(function, x, opts, jax), goals[name][0], BEST, least=0.05))
        both = _forward_and_backward(function, x, g, opts, jax)
        cases.append(Case(f"{label}, forward + backward", both, goals[name][1], BEST, least=0.05))
    return cases


def _forward(function: Callable[..., Any], array: Any, opts: Options, jax: Any) -> Work:
    x = mg.asarray(array)
    jitted = mg.jit(lambda x: function(mg, x))
    work: Work = {"minigrad": lambda: jitted(x), "eager": lambda: function(mg, x)}
    if opts.torch is not None:
        torch = opts.torch
        t = torch.tensor(array)
        native = {"softmax": lambda: torch.softmax(t, -1)}
        native["layer_norm"] = lambda: torch.nn.functional.layer_norm(t, t.shape[-1:])
        work["torch"] = native.get(function.__name__, lambda: function(torch, t))
        if opts.compile:
            compiled = torch.compile(lambda t: function(torch, t))
            work["torch.compile"] = lambda: compiled(t)
    if jax is not None:
        j, theirs = jax.numpy.asarray(array), jax.jit(lambda x: function(jax.numpy, x))
        work["jax.jit"] = lambda: _done(theirs(j), opts)
    return work


def _forward_and_backward(function: Callable[..., Any], array: Any, weights: Any, opts: Options, jax: Any) -> Work:
    x, g = mg.asarray(array), mg.asarray(weights)

    def ours(x: Any) -> Any:
        return mg.vjp(lambda x: function(mg, x), x)[1](g)[0]

    jitted = mg.jit(ours)
    work: Work = {"minigrad": lambda: jitted(x), "eager": lambda: ours(x)}
    if opts.torch is not None:
        torch = opts.torch
        t, tg = torch.tensor(array, requires_grad=True), torch.tensor(weights)
        native = {"softmax": lambda t: torch.softmax(t, -1)}
        native["layer_norm"] = lambda t: torch.nn.functional.layer_norm(t, t.shape[-1:])
        forward = native.get(function.__name__, lambda t: function(torch, t))
        work["torch"] = lambda: torch.autograd.grad(forward(t), t, tg)
        if opts.compile:
            compiled = torch.compile(lambda t: function(torch, t))
            work["torch.compile"] = lambda: torch.autograd.grad(compiled(t), t, tg)
    if jax is not None:
        j, jg = jax.numpy.asarray(array), jax.numpy.asarray(weights)
        theirs = jax.jit(lambda x, g: jax.vjp(lambda x: function(jax.numpy, x), x)[1](g)[0])
        work["jax.jit"] = lambda: _done(theirs(j, jg), opts)
    return work


def _done(array: Any, opts: Options) -> Any:
    """A result of jax.  On a GPU, results are not awaited one by one."""
    return array.block_until_ready() if opts.device == "cpu" else array


def adam_case(opts: Options) -> Case:
    """One update of 10 million parameters, in place."""
    size = 100 if opts.smoke else 10_000_000
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    p = mg.asarray(values, requires_grad=True)
    p.grad = mg.asarray(values * 0.1)
    optimizer = mg.optim.Adam([p], lr=RATE)
    step = mg.jit(optimizer.step)
    work: Work = {"minigrad": lambda: step(), "eager": optimizer.step}
    if opts.torch is not None:
        t = opts.torch.tensor(values, requires_grad=True)
        t.grad = opts.torch.tensor(values * 0.1)
        theirs = opts.torch.optim.Adam([t], lr=RATE, fused=True)
        work["torch"] = theirs.step
    return Case(f"Adam, {size:,} parameters", work, 1.0, BEST, least=0.05)


def training_cases(opts: Options) -> list[Case]:
    """The models of the eager benchmark, with whole steps compiled."""
    sizes, batches = ((8, 6, 3), (4, 5)) if opts.smoke else ((784, 256, 128, 10), (64, 512))
    builds: dict[str, tuple[Callable[[Any], Callable[[], Any]], float]] = {}
    for batch, name in ((batches[0], "SGD"), (batches[0], "Adam"), (batches[1], "SGD"), (batches[1], "Adam")):
        label = f"MLP {'-'.join(map(str, sizes))}, batch {batch}, {name}"
        builds[label] = (lambda t, n=name, b=batch: training.mlp(t, n, b, sizes)), 0.8 if batch == batches[0] else 0.95
    batch, side, channels = (2, 8, (2, 3)) if opts.smoke else (64, 28, (16, 32))
    label = f"CNN, {channels[0]} and {channels[1]} channels, {side} × {side}, batch {batch}, SGD"
    builds[label] = (lambda t: training.cnn(t, "SGD", batch, side, channels)), 1.0
    size = {"layers": 1, "width": 8, "heads": 2, "batch": 2, "length": 4, "vocabulary": 5}
    if not opts.smoke:
        size = {"layers": 4, "width": 128, "heads": 4, "batch": 16, "length": 64, "vocabulary": 65}
    builds[f"GPT, {size['layers']} layers of {size['width']}, Adam"] = (lambda t: training.gpt(t, **size)), 0.9
    cases = []
    for label, (build, goal) in builds.items():
        work: Work = {"minigrad": mg.jit(build(None)), "eager": build(None)}
        if opts.torch is not None:
            work["torch"] = build(opts.torch)
            if opts.compile:
                work["torch.compile"] = opts.torch.compile(build(opts.torch))
        cases.append(Case(label, work, goal, BEST, least=0.1, pause=0.15))
    return cases


def first_calls(opts: Options) -> str:
    """The time of the first call: tracing, passes, fusion, and kernels with and without the cache."""
    rows = ["| first call | nothing cached | kernels in this process |", "|---|---|---|"]
    for case in training_cases(Options(opts.smoke, 1, "*", None)):
        if "512" in case.name:
            continue
        times = []
        for _ in range(2):
            step = mg.jit(case.work["eager"])
            case.work["eager"]()  # so that gradients exist
            opts.finish()
            start = time.perf_counter()
            step()
            opts.finish()
            times.append(time.perf_counter() - start)
        rows.append(f"| {case.name} | {text_of(times[0])} | {text_of(times[1])} |")
    return "\n".join(rows) + "\n"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    jax = None if opts.torch is None else optional("jax")
    if jax is not None:
        jax.config.update("jax_default_matmul_precision", "highest")
    with mg.device(opts.device):
        latency = first_calls(opts)  # before the first compilation
        mg.random.seed(0)
        cases = [*function_cases(opts, jax), adam_case(opts), *training_cases(opts)]
        text = report("Compiled work", measure(cases, opts), opts)
    print(latency)
    return f"{text}\n{latency}"


if __name__ == "__main__":
    main()
