"""Users' kernels: functions that replace the operations of a pattern.

Gradients remain those of the pattern: kernels are matched in the value graph, after the backward pass was recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P, Primitive
from ...core.tensor import Tensor
from ...support.errors import ConversionError, MinigradError
from ...support.source import show
from ..nodes.graph import Graph, node_like, remade
from ..nodes.registered import checked, read_only
from ..rewriting.passes import PassRun, forget_pass, register_pass
from ..rewriting.rules import Note, rewritten
from .pattern import Pattern

OWN: dict[str, OwnKernel] = {}  # the registered kernels, by name


class OwnKernel:
    """A user's kernel, in use until `forget()`, or to the end of a `with` block."""

    caches = ("pattern", "primitive")  # a trace that calls the kernel reads the rest

    def __init__(self, function: Callable[..., Any], pattern: Pattern, when: Callable[..., bool] | None) -> None:
        self.function, self.pattern, self.when = function, pattern, when
        self.name: str = function.__name__
        self.__doc__ = function.__doc__
        self.primitive = Primitive(self.name, "own", ("*inputs",), _infer, promotes=())

    def __call__(self, *arrays: Any) -> Any:
        return self.function(*arrays)

    def __enter__(self) -> OwnKernel:
        return self

    def __exit__(self, *error: object) -> None:
        self.forget()

    def __repr__(self) -> str:
        return f"<kernel {self.name}{'' if OWN.get(self.name) is self else ', forgotten'}>"

    def register(self) -> None:
        """Use the kernel in all programs compiled from now on."""
        known = OWN.get(self.name)
        if known is not None:  # for example, a cell of a notebook runs again
            known.forget()
        if hasattr(P, self.name):
            raise ConversionError(f"a kernel cannot be named {self.name!r}: a primitive has this name")

        def put_in(graph: Graph, note: Note) -> Graph:
            assert isinstance(note, PassRun)
            return self.put_in(graph, note)

        put_in.__doc__ = f"A user's kernel: {self.name}."
        register_pass(self.name, put_in, before="simplify")
        OWN[self.name] = self

    def forget(self) -> None:
        """Do not use the kernel in new programs; programs that use it keep it."""
        if OWN.get(self.name) is self:
            forget_pass(self.name)
            del OWN[self.name]

    # matching -------------------------------------------------------------------------------------------------------

    def put_in(self, graph: Graph, log: PassRun) -> Graph:
        """The graph with this kernel in place of each match of its pattern."""

        def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
            now = remade(node, inputs)
            if not self.pattern.begins(now):
                return now
            found, why = self.pattern.at(now)
            if found and not now.device.hosted:
                why = f"it runs on {now.device}, and your kernels run only on CPUs"
            elif found and self.when is not None and not self.when(*found):
                why = "`when` returned False"
            if why:
                log.miss(self.name, node, why)
                return now
            own = node_like(self.primitive, found, {"kernel": self, "shape": now.shape, "dtype": now.dtype}, like=now)
            log(self.name, node, own)
            return own

        return rewritten(graph, replace)

    # running --------------------------------------------------------------------------------------------------------

    def run(self, node: Node, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        """The result of the function, which must have the shape and dtype of the pattern."""
        try:
            result = self.function(*[read_only(array) for array in arrays])
        except MinigradError:
            raise
        except Exception as error:
            error.add_note(f"in the kernel {self.name}, which replaces the operation made at {show(node.where)}")
            raise
        if not isinstance(result, (np.ndarray, np.generic)):
            raise ConversionError(f"the kernel {self.name} returned a {type(result).__name__}", expect="a NumPy array")
        return checked(f"the kernel {self.name}", result, node.shape, node.dtype, arrays)


def kernel(
    pattern: Callable[..., Any], *examples: Tensor, when: Callable[..., bool] | None = None
) -> Callable[[Callable[..., Any]], OwnKernel]:
    """Replace the operations of `pattern` by your function, in compiled programs on CPUs.

    The function takes NumPy arrays, which it may only read, and returns a new one.  Several threads may call it at the
    same time.  The pattern is any function of tensors with one result, traced with `examples` (by default float32, two
    dimensions): it matches the same operations in the same order, in any shape.  `when`, called with the inputs of a
    match (their `shape` and `dtype`), decides whether to replace it.  Gradients remain those of the pattern.
    `f.passes(...)` says where the kernel was used and where not.  `forget()`, or the end of a `with` block, removes it
    from later programs.

    >>> import numpy as np
    >>> @mg.kernel(lambda x: mg.tanh(x) * x)
    ... def gated(x):
    ...     return np.tanh(x) * x
    >>> f = mg.jit(lambda x: (mg.tanh(x) * x).sum())
    >>> print(f.program(mg.ones(3)).optimised)
    tensor_1: float32 (3,)
    gated_1: float32 (3,) = gated(tensor_1, kernel=<kernel gated>, shape=(3,), dtype=dtype('float32'))
    sum_1: float32 () = sum(gated_1, axis=(0,), keepdims=False, dtype=None)
    return sum_1
    >>> gated.forget()
    """
    found = Pattern(pattern, examples)

    def register(function: Callable[..., Any]) -> OwnKernel:
        own = OwnKernel(function, found, when)
        own.register()
        return own

    return register


def _infer(*inputs: Any, kernel: OwnKernel, shape: tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], Any]:
    return shape, dtype
