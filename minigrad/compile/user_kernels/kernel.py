"""Kernels of users' own: a function that runs in place of what a pattern computes.

Only values are replaced: gradients remain those of the pattern, because the match is made in the graph of what is
computed, which the walk back has been recorded into already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.primitive import P, Primitive
from ...core.tensor import Tensor
from ...support.errors import ConversionError, DtypeError, MinigradError, ShapeError
from ...support.source import show
from ..nodes.graph import Graph, node_like, remade
from ..rewriting.log import PassRun
from ..rewriting.passes import forget_pass, register_pass
from ..rewriting.rules import Note, rewritten
from .pattern import Pattern

OWN: dict[str, OwnKernel] = {}  # all that are registered, by name


class OwnKernel:
    """A kernel of a user's own, in use until `forget()`, or to the end of a `with` block."""

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
        """Use it in all programs that are made from now on."""
        known = OWN.get(self.name)
        if known is not None:  # a cell of a notebook that is run again
            known.forget()
        if hasattr(P, self.name):
            raise ConversionError(f"a kernel cannot be named {self.name!r}: there is a primitive of that name")

        def put_in(graph: Graph, note: Note) -> Graph:
            assert isinstance(note, PassRun)
            return self.put_in(graph, note)

        put_in.__doc__ = f"A kernel of a user's own: {self.name}."
        register_pass(self.name, put_in, before="simplify")
        OWN[self.name] = self

    def forget(self) -> None:
        """Do not use it in programs any more; those that were made with it keep it."""
        if OWN.get(self.name) is self:
            forget_pass(self.name)
            del OWN[self.name]

    # where it fits --------------------------------------------------------------------------------------------------

    def put_in(self, graph: Graph, log: PassRun) -> Graph:
        """The graph with this kernel wherever its pattern is."""

        def replace(node: Node, inputs: tuple[Any, ...]) -> Node:
            now = remade(node, inputs)
            if not self.pattern.begins(now):
                return now
            found, why = self.pattern.at(now)
            if found and not now.device.hosted:
                why = f"it runs on {now.device}, and kernels of yours on CPUs only"
            elif found and self.when is not None and not self.when(*found):
                why = "`when` said no"
            if why:
                log.miss(self.name, node, why)
                return now
            own = node_like(self.primitive, found, {"kernel": self, "shape": now.shape, "dtype": now.dtype}, like=now)
            log(self.name, node, own)
            return own

        return rewritten(graph, replace)

    # running it -----------------------------------------------------------------------------------------------------

    def run(self, node: Node, arrays: list[Any]) -> Any:
        """What the function makes of these arrays, if it is an array of the shape and dtype that the pattern has."""
        try:
            result = self.function(*[_read_only(array) for array in arrays])
        except MinigradError:
            raise
        except Exception as error:
            error.add_note(f"in the kernel {self.name}, which runs in place of what was made at {show(node.where)}")
            raise
        if not isinstance(result, (np.ndarray, np.generic)):
            raise ConversionError(f"the kernel {self.name} returned a {type(result).__name__}", expect="a NumPy array")
        if result.shape != node.shape:
            raise ShapeError(
                f"the kernel {self.name} returned another shape than its pattern has",
                expect=node.shape, actual=result.shape,
            )
        if result.dtype != node.dtype:
            raise DtypeError(
                f"the kernel {self.name} returned another dtype than its pattern has",
                expect=node.dtype, actual=result.dtype, hint=f"result.astype({str(node.dtype)!r})",
            )
        result = np.asarray(result)
        shared = not result.flags.writeable or any(np.may_share_memory(result, array) for array in arrays)
        return result.copy() if shared else result


def kernel(
    pattern: Callable[..., Any], *examples: Tensor, when: Callable[..., bool] | None = None
) -> Callable[[Callable[..., Any]], OwnKernel]:
    """Run a function of yours, in compiled programs on CPUs, wherever they compute what `pattern` computes.

    The function is given NumPy arrays, which it may only read, and returns a new one.  It can be called from several
    threads at once.  `when` is asked with the inputs found (their `shape` and `dtype`).  The pattern is any function of
    tensors with one result, traced with `examples` (by default float32, two dimensions): the same operations in the
    same order are found in any shape.  Gradients remain those of the pattern.  `f.passes(...)` says where the kernel
    was put in and where not, and `forget()`, or the end of a `with` block, takes it out of later programs.

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


def _read_only(array: Any) -> Any:
    if array.__class__ is not np.ndarray:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
