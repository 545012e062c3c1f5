"""Puts a student's two kernels into the engine: two primitives more, each with a kernel for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from typing import Any

from minigrad.core.emit import Eager, emit
from minigrad.core.mode import current_mode, switch
from minigrad.core.override import overriding
from minigrad.core.primitive import P, Primitive
from minigrad.devices.registry import register_kernel
from minigrad.ops.composite import COMPOSED
from minigrad.ops.declare import declare

from ...feedback import Misused
from ...swapping import Swapped, whose
from .kernels import Program

COST = 12  # of an element, as that of erf: threads share large arrays


@contextmanager
def operator(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Iterator[Swapped]:
    """Let a composed function be a primitive with two kernels: `forward(i, x, out)`, `backward(i, g, x, dx)`.

    >>> from minigrad_course import exp
    >>> def silu(i, x, out):
    ...     out[i] = x[i] / (1 + exp(-x[i]))
    >>> def silu_backward(i, g, x, dx):
    ...     s = 1 / (1 + exp(-x[i]))
    ...     dx[i] = g[i] * (s + x[i] * s * (1 - s))
    >>> x = mg.asarray([0.0, 2.0], requires_grad=True)
    >>> with operator("silu", silu, silu_backward) as mine:
    ...     mg.silu(x).sum().backward()
    >>> x.grad.tolist(), mine
    ([0.5, 1.09...], <silu in the engine, called 2 times>)
    """
    if name not in COMPOSED:
        raise Misused(name, f"there is no composed function called {name}", "gelu, silu and softplus are some")
    programs = {name: Program(forward), f"{name}_backward": Program(backward)}
    for program, arrays in zip(programs.values(), (2, 3)):
        if len(program.parameters) != arrays:
            given = ", ".join(["i", *program.parameters])
            raise Misused(program.name, f"its arguments are ({given})",
                          f"({name}: the place, x, out. {name}_backward: the place, g, x, dx)")
        program.recorded()  # whose mistakes are reported here, and not inside the engine
    swapped = Swapped(forward.__name__)
    made = [_declared(each, program, swapped) for each, program in programs.items()]
    registered = [register_kernel(op.name, "cpu:*", kernel) for op, kernel in made]
    try:
        function = unwrap(COMPOSED[name])
        replaced = overriding(function, lambda x, *rest, **options: emit(P[name], x))
        with replaced, switch(interpreter=current_mode().interpreter or Eager()):
            yield swapped
    finally:
        for registration in registered:
            registration.undo()
        for op, _ in made:
            P.forget(op)


def composed_again(name: str) -> overriding:
    """A block inside `operator`, in which the function is composed of its operations, as before."""
    return overriding(unwrap(COMPOSED[name]), None)


def _declared(name: str, program: Program, swapped: Swapped) -> tuple[Primitive, Callable[..., Any]]:
    """A primitive for a program, and its kernel."""
    is_backward = name.endswith("_backward")
    inputs = ("g", "x") if is_backward else ("x",)

    def rule(g: Any, x: Any) -> Any:
        return emit(P[f"{name}_backward"], g, x)

    rule.by = whose(f"{program.name}_backward")  # type: ignore[attr-defined]  # for the stepper
    rules = {} if is_backward else {"x": rule}
    op = declare(Primitive(name, "elementwise", inputs, _like_the_last, rules, domain="float", cost=COST))

    def kernel(*arrays: Any, out: Any = None) -> Any:
        swapped.calls += 1
        return program(*arrays, out=out)

    kernel.__name__ = program.name
    return op, kernel


def _like_the_last(*inputs: Any) -> Any:
    return inputs[-1].shape, inputs[-1].dtype
