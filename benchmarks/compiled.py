"""Compiled work: `mg.jit` against PyTorch, torch.compile and jax.jit on the same functions and training steps.

`eager` is minigrad without jit.  On a GPU all multiply matrices in float32.

    python3 course bench compiled
    python3 course bench compiled --compile     # with torch.compile, which takes minutes to compile
    python3 course bench compiled --device cuda # all contenders on the GPU
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import _recurrent
import numpy as np
import training
from _harness import BEST, Case, Options, Work, measure, options, report

import minigrad as mg

CONTENDERS = ("minigrad", "eager", "torch", "torch.compile", "jax.jit")
RATE = 1e-5  # in an update that is repeated thousands of times, the numbers stay near 1


def chain(m: Any, x: Any) -> Any:
    """GELU written by hand, and five more operations."""
    y = x * 0.5 * (m.tanh((x + x * x * x * 0.044715) * 0.7978846) + 1.0)
    return ((y * 1.1 + 0.3) * y - 0.2) * 0.9


def softmax(m: Any, x: Any) -> Any:
    """Softmax over the last dimension, written by hand, so that no library recognises it by its name."""
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def layer_norm(m: Any, x: Any) -> Any:
    """Layer norm over the last dimension, written by hand."""
    centred = x - m.mean(x, axis=-1, keepdims=True)
    return centred / m.sqrt(m.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def torch_softmax(torch: Any, x: Any) -> Any:
    """PyTorch's own kernel."""
    return torch.softmax(x, -1)


def torch_layer_norm(torch: Any, x: Any) -> Any:
    """PyTorch's own kernel."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def jax_softmax(numpy: Any, x: Any) -> Any:
    """jax's own function, whose gradient takes less time than that of the one above."""
    import jax

    return jax.nn.softmax(x)


def attention(m: Any, x: Any) -> Any:
    """Causal attention: queries, keys and values are in one array."""
    return m.scaled_dot_product_attention(x[0], x[1], x[2], causal=True)


def torch_attention(torch: Any, x: Any) -> Any:
    """PyTorch's fused kernel."""
    return torch.nn.functional.scaled_dot_product_attention(x[0], x[1], x[2], is_causal=True)


def jax_attention(numpy: Any, x: Any) -> Any:
    """jax's own function, which has the heads after the positions."""
    import jax

    q, k, v = (numpy.swapaxes(x[i], 1, 2) for i in range(3))
    return numpy.swapaxes(jax.nn.dot_product_attention(q, k, v, is_causal=True), 1, 2)


TAPS = np.random.default_rng(2).standard_normal(65, dtype=np.float32) / 8


def fir(m: Any, x: Any) -> Any:
    """A filter of 65 taps over a signal."""
    return m.conv1d(x[None, None], m.asarray(TAPS[None, None]), padding="same")[0, 0]


def torch_fir(torch: Any, x: Any) -> Any:
    """PyTorch's own convolution."""
    return torch.nn.functional.conv1d(x[None, None], torch.tensor(TAPS[None, None]), padding="same")[0, 0]


def jax_fir(numpy: Any, x: Any) -> Any:
    """The same filter: jax turns the taps."""
    return numpy.convolve(x, TAPS[::-1], "same", precision="highest")


Three = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]  # for minigrad, torch and jax
FUNCTIONS: dict[str, Three] = {
    "chain": (chain, chain, chain), "softmax": (softmax, torch_softmax, jax_softmax),
    "layer norm": (layer_norm, torch_layer_norm, layer_norm), "attention": (attention, torch_attention, jax_attention),
    "FIR": (fir, torch_fir, jax_fir),
}


def forward(contender: str, name: str, shape: tuple[int, ...], opts: Options) -> Work:
    """One of the functions on random numbers."""
    return run(contender, FUNCTIONS[name], normal(shape), opts)


def run(contender: str, functions: Three, array: Any, opts: Options) -> Work:
    """A function on an array."""
    ours, of_torch, of_jax = functions
    if contender.startswith("torch"):
        torch = opts.library("torch")
        t = torch.tensor(array)
        compiled = _compiled(contender, lambda t: of_torch(torch, t), opts)
        return lambda: compiled(t)
    if contender == "jax.jit":
        jax = opts.library("jax")
        j, jitted = jax.numpy.asarray(array), jax.jit(lambda x: of_jax(jax.numpy, x))
        return _awaited(lambda: jitted(j), opts)
    x = mg.asarray(array)
    if contender == "eager":
        return lambda: ours(mg, x)
    program = mg.jit(lambda x: ours(mg, x))
    return lambda: program(x)


def forward_and_backward(contender: str, name: str, shape: tuple[int, ...], opts: Options) -> Work:
    """One of the functions, weighted and summed, and its gradient: both are returned."""
    array, weights = normal(shape), normal(shape, seed=1)
    ours, of_torch, of_jax = FUNCTIONS[name]
    if contender.startswith("torch"):
        torch = opts.library("torch")
        t, tw = torch.tensor(array, requires_grad=True), torch.tensor(weights)
        loss_of = _compiled(contender, lambda t, w: (of_torch(torch, t) * w).sum(), opts)

        def work() -> Any:
            loss = loss_of(t, tw)
            return loss, *torch.autograd.grad(loss, t)

        return work
    if contender == "jax.jit":
        jax = opts.library("jax")
        j, jw = jax.numpy.asarray(array), jax.numpy.asarray(weights)
        jitted = jax.jit(jax.value_and_grad(lambda x, w: (of_jax(jax.numpy, x) * w).sum()))
        return _awaited(lambda: jitted(j, jw), opts)
    x, w = mg.asarray(array), mg.asarray(weights)
    both = mg.value_and_grad(lambda x, w: (ours(mg, x) * w).sum())
    program = mg.jit(both) if contender == "minigrad" else both
    return lambda: program(x, w)


def adam(contender: str, size: int, opts: Options) -> Work:
    """One update of many parameters, in place."""
    values = normal((size,))
    if contender.startswith("torch"):
        torch = opts.library("torch")
        t = torch.tensor(values, requires_grad=True)
        t.grad = torch.tensor(values * 0.1)
        return _then(torch.optim.Adam([t], lr=RATE, fused=True).step, t)
    if contender == "jax.jit":
        import _jax_models

        given = {"p": values}, {"p": values * np.float32(0.1)}
        return _jax_models.update_only(opts.library("jax"), "Adam", *given, RATE)
    p = mg.asarray(values, requires_grad=True)
    p.grad = mg.asarray(values * 0.1)
    update = mg.optim.Adam([p], lr=RATE).step
    return _then(update if contender == "eager" else mg.jit(update), p)


def _then(update: Callable[[], Any], parameter: Any) -> Work:
    def work() -> Any:
        update()
        return parameter

    return work


def _compiled(contender: str, function: Callable[..., Any], opts: Options) -> Callable[..., Any]:
    if contender != "torch.compile":
        return function
    return opts.library("torch").compile(function, mode=opts.compile)  # type: ignore[no-any-return]


def _awaited(call: Callable[[], Any], opts: Options) -> Work:
    """Calls of jax.  On a CPU each result is awaited, as in the other libraries; on a GPU only the last one is."""
    if opts.device != "cpu":
        return call
    jax = opts.library("jax")
    return lambda: jax.block_until_ready(call())


def normal(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def function_cases(opts: Options) -> list[Case]:
    """The functions: forward, and forward with backward."""
    goals = {
        "chain": (0.25, 0.15), "softmax": (1.0, 0.5), "layer norm": (1.0, 0.7), "attention": (1.0, 1.0),
        "FIR": (1.0, 1.0),
    }
    tiny: dict[str, tuple[int, ...]] = {"chain": (100,), "FIR": (100,), "attention": (3, 1, 2, 16, 4)}
    large = {"chain": (10_000_000,), "FIR": (1_000_000,), "attention": (3, 2, 8, 1024, 64)}
    found = []
    for name, (goal, goal_of_both) in goals.items():
        shape = tiny.get(name, (4, 16)) if opts.smoke else large.get(name, (4096, 1024))
        label = f"{name}, {' × '.join(f'{size:,}' if len(shape) == 1 else str(size) for size in shape)}"
        given = {"name": name, "shape": shape, "opts": opts}
        found.append(Case(label, CONTENDERS, partial(forward, **given), goal, BEST, least=0.05, pause=0.05))
        label = f"{label}, forward + backward"
        work = partial(forward_and_backward, **given)
        found.append(Case(label, CONTENDERS, work, goal_of_both, BEST, least=0.05, pause=0.05))
    return found


def cases(opts: Options) -> list[Case]:
    size = 100 if opts.smoke else 10_000_000
    one = ("minigrad", "eager", "torch", "jax.jit")
    update = Case(f"Adam, {size:,} parameters", one, partial(adam, size=size, opts=opts), 1.0, BEST, least=0.05,
                  pause=0.05, calls=3)
    steps = [
        Case(task.name, CONTENDERS, partial(training.step, task=task, opts=opts), task.goal, BEST, least=0.1,
             pause=0.15, calls=3)
        for task in training.tasks(opts.smoke)
    ]
    return [*function_cases(opts), update, *steps, *_recurrent.cases(opts)]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    return report("Compiled work", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
