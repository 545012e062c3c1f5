"""`custom_vjp`: functions with a gradient that the user writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from ..core.emit import emit
from ..core.explain import common_device
from ..core.mode import CURRENT, current_mode, switch
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor, wrap
from ..ops.declare import declare
from ..support.context import setting
from ..support.errors import GradError
from ..support.table import counted
from .batching import vectorised


class custom_vjp:
    """A function whose gradient you write yourself.

    `forward(*args)` returns the result, and the values that `backward` needs.  `backward(kept, g)` gets these values
    and the gradient of the result; it returns a gradient or None for each argument.

    >>> @mg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> @clipped.defines
    ... def _(x):
    ...     return x * 1.0, None
    >>> @clipped.gradient
    ... def _(kept, g):
    ...     return (mg.clip(g, -1.0, 1.0),)
    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> (clipped(w) * mg.asarray([0.5, 50.0])).sum().backward()
    >>> w.grad.tolist()
    [0.5, 1.0]
    """

    caches = ()  # a trace looks at all of its functions

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.forward: Callable[..., Any] = lambda *args: (function(*args), args)
        self.backward: Callable[..., Any] | None = None

    def defines(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """Set `forward(*args) -> (result, kept)`.  The default keeps the arguments."""
        self.forward = forward
        return forward

    def gradient(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """Set `backward(kept, g) -> a gradient for each argument`."""
        self.backward = backward
        return backward

    def __call__(self, *args: Any) -> Any:
        if self.backward is None:
            name = self.function.__name__
            raise GradError(f"{name} has no gradient yet", hint=f"@{name}.gradient def backward(kept, g): ...")
        forward = _SameDraws(self.forward, self.function.__name__)
        return call_with_gradient([as_tensor(a) for a in args], forward, self.backward)


class _SameDraws:
    """A function that may be called again, for values with a history or tangents: each call draws the same numbers."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.__name__ = name
        self.function, self.state, self.drawn = function, current_mode().state, list[tuple[Any, int]]()

    def __call__(self, *args: Any) -> Any:
        self.state, self.left = current_mode().state, iter(self.drawn)
        with setting(CURRENT, current_mode().but(state=self)):
            return self.function(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int]:
        """The blocks of the same draw in the first call."""
        taken = next(self.left, None)
        if taken is None:
            with switch(state=self.state):
                taken = generator.take_blocks(count)
            self.drawn.append(taken)
        return taken


class _Application:
    """The values that one call keeps for its gradient, and the gradients of its inputs once they are computed.

    `ran_in` is the interpreter that computed the kept values.  In another one, such as jvp's, they would be constants.
    """

    __slots__ = ("backward", "device", "forward", "found", "keeps", "kept", "ran_in")

    def __init__(self, forward: Any, backward: Any, device: Any, keeps: bool) -> None:
        self.forward, self.backward, self.device, self.keeps = forward, backward, device, keeps
        self.kept: Any = None
        self.ran_in: Any = None
        self.found: Any = None, False, ()

    def compute(self, *values: Any) -> Any:
        """The kernel of `call`: the raw result of raw arguments."""
        self.ran_in = current_mode().interpreter
        with setting(CURRENT, current_mode().untracked):
            result, self.kept = self.forward(*[wrap(v, self.device) for v in values])
        return tuple([r._data for r in result]) if isinstance(result, tuple) else result._data

    def gradients(self, g: Any, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """Run the backward function once for all inputs; what it reads is computed again for histories and tangents."""
        again = current_mode().grad or current_mode().interpreter not in (None, self.ran_in)
        if self.found[0] is not g or self.found[1] is not again:
            kept = inputs if not self.keeps else self.forward(*inputs)[1] if again else self.kept
            found = self.backward(kept, tuple(g) if isinstance(g, list) else g)
            self.found = g, again, found if isinstance(found, tuple) else (found,)
        return self.found[2]  # type: ignore[no-any-return]


def call_with_gradient(inputs: Sequence[Tensor], forward: Any, backward: Any, keeps: bool = True) -> Any:
    """The result of `forward(*inputs) -> (result, kept)`, whose gradient is `backward(kept, g)`.

    With `keeps=False`, `backward` gets the inputs in place of `kept`.
    """
    application = _Application(forward, backward, common_device(P.call, inputs, {}), keeps)
    return emit(P.call, *inputs, application=application)


def _gradient_of_call(g: Any, inputs: tuple[Tensor, ...], node: Any, index: int) -> Tensor | None:
    found = node.attrs["application"].gradients(g, inputs)
    if len(found) != len(inputs):
        words = f"{counted(len(found), 'gradient')} for {counted(len(inputs), 'argument')}"
        raise GradError(f"a custom gradient returned {words}")
    return None if found[index] is None else found[index].copy()  # the user may hold this tensor


def _infer_call(*inputs: Any, application: Any) -> Any:
    raise GradError("the shape of a custom function's result is known only after it has run")


def _batch_call(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    application = attrs["application"]
    axes = tuple([0 if m else None for m in many])
    forward = vectorised(application.forward, in_axes=axes)
    if application.keeps:
        return call_with_gradient(inputs, forward, vectorised(application.backward))

    def backward(given: Any, g: Any) -> Any:
        results = g if isinstance(g, tuple) else (g,)
        one = vectorised(
            lambda *xs: application.backward(xs[: len(axes)], xs[len(axes) :] if g is results else xs[-1]),
            in_axes=(*axes, *[0] * len(results)),
        )
        return one(*given, *results)

    return call_with_gradient(inputs, forward, backward, keeps=False)


declare(
    Primitive(
        "call", "structural", ("*inputs",), _infer_call, {"inputs": _gradient_of_call}, promotes=(), batch=_batch_call,
        formula="f(x)",
    )
)
