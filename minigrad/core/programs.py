"""Programs in eager mode: calls of composed functions, and updates of optimizers, run as compiled programs.

Such a call records one *closed* node in place of a node for each operation.  The closed node opens into these nodes
where they are needed: for pictures, replays, the steps of a backward pass, and gradients of gradients.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from ..support.errors import ConversionError
from ..support.words import shown
from .clock import LastWrite, tick, written_since
from .mode import Mode, current_mode, switch
from .node import FREED, Node, topological_order
from .primitive import Primitive
from .tensor import AbstractData, Tensor, wrap

# Elements of an argument, and numbers in a group of parameters, from which a program is compiled.  That takes 10 to 30
# ms, and saves 5 to 60 µs in each later call: it is not for the few numbers of an example.
SMALL = 128


class PROGRAMS:
    """Whether eager mode uses programs by default, and the functions that make them.

    The compiler is loaded when it is first needed: `minigrad/__init__.py` sets `load`, which sets the other two.
    """

    on = os.environ.get("MINIGRAD_EAGER_PROGRAMS", "").lower() not in ("0", "off", "no", "false")
    load: Callable[[], Any] | None = None
    compiled: Callable[..., Callable[..., Any]] | None = None  # a composed function as programs
    update: Callable[..., bool] | None = None  # run `optimizer.update(group)` as a program, if that is possible


def eager_programs(on: bool = True) -> switch:
    """Whether calls of composed functions run as compiled programs in this block, in eager mode.

    They do by default, except after `course.begin`; with `MINIGRAD_EAGER_PROGRAMS=0` in the environment they
    do not.  A program may round differently from the operations that it replaces.  These run for fewer than 128
    elements, and in a function that has programs for 16 other kinds of arguments (64 for a convolution).

    >>> with mg.eager_programs(False):
    ...     y = mg.softmax(mg.ones((100, 100)))
    """
    if on.__class__ is not bool:
        raise ConversionError(f"eager_programs: on is True or False, not {shown(on)}")
    return switch(programs=on)


def programs_run() -> bool:
    """Whether calls may be closed now: in eager and graph mode, where no views of the operations are wanted."""
    mode = current_mode()
    if mode.record_all or not closes(mode):
        return False
    return PROGRAMS.on if mode.programs is None else bool(mode.programs)


def closes(mode: Mode) -> bool:
    """Whether there are closed nodes in a mode: in eager mode and in graph mode."""
    return mode.interpreter is None or getattr(mode.interpreter, "closes_calls", False)


def in_programs(function: Callable[..., Any], least: int = SMALL, most: int | None = None) -> Callable[..., Any]:
    """A composed function that runs as a program if its first argument has at least `least` elements.

    If it returns several tensors, only the first one may have a history.  `most` is the number of kinds of arguments
    with a program, if that is not the usual one.
    """
    compiled: Callable[..., Any] | None = None

    def call(*args: Any) -> Any:
        nonlocal compiled
        x = args[0]
        if x.__class__ is not Tensor or x._data.size < least or not programs_run():
            return function(*args)
        if compiled is None:
            compiled = maker("compiled")(function, most)
        return compiled(*args)

    return call


def maker(name: str) -> Any:
    """A function of `PROGRAMS`, once the compiler is loaded."""
    if getattr(PROGRAMS, name) is None and PROGRAMS.load is not None:
        PROGRAMS.load()
    return getattr(PROGRAMS, name)


@dataclass(frozen=True, eq=False)
class Closed(Primitive):
    """The operation of a closed node: `function`, called with these arguments and the inputs at `places`.

    A closed node saves the inputs that its gradient needs; or, if `saves` is given, the values that its operations
    save: `saves` has the number of each in the order of the operations.  Where graph mode records a closed node, the
    function is a traced one.
    """

    function: Any = None
    arguments: tuple[Any, ...] = ()
    places: tuple[int, ...] = ()
    saves: tuple[int, ...] | None = None

    def call(self, tensors: Iterable[Any]) -> tuple[Any, ...]:
        """The results of the function, operation by operation."""
        args = list(self.arguments)
        for place, tensor in zip(self.places, tensors):
            args[place] = tensor
        found = self.function(*args)
        return found if found.__class__ is tuple else (found,)


def opened_order(roots: Any) -> list[Node]:
    """The topological order of the roots, after all closed nodes in it were opened.

    In a `record()` block, they open into the nodes of untracked results too.
    """
    roots = list(roots)
    order = topological_order(roots)
    closed = [node for node in order if node.op.__class__ is Closed]
    for node in closed:
        open_node(node)
    return topological_order(roots) if closed else order


def open_node(node: Node) -> None:
    """Make a closed node the last of the nodes of its operations, which are recorded now.

    A node stays closed if an input was overwritten since: then its gradient is an error, and so is its value.
    """
    saved: Any = node.saved
    op: Any = node.op
    known = saved.__class__ is tuple
    if known and LastWrite.time > node.serial and any(written_since(v, node.serial) is not None for v in saved):
        return
    # Without the value of an input, the nodes are recorded with zeros.
    given = saved if known and op.saves is None else [None] * len(node.inputs)
    values = [np.zeros(i.shape, i.dtype) if v is None else v for i, v in zip(node.inputs, given)]
    moving, began = {rule.index for rule in node.plan.rules}, tick()
    recorder = values[0].trace if isinstance(values[0], AbstractData) else None  # graph mode
    mode = Mode(scope=node.scope, origin=node.origin, toward=node.toward, programs=False)
    with switch(mode, interpreter=recorder, record_all=current_mode().record_all):
        inputs = enumerate(zip(node.inputs, values))
        tensors = [_input(source, value, i in moving, node.device) for i, (source, value) in inputs]
        last: Node = op.call(tensors)[0].node
    made = sorted(made_since([last], began), key=attrgetter("serial"))
    if known and op.saves is not None:
        numbers = iter(op.saves)
        for each in made:
            slots = zip((*each.inputs, each), each.saved or ())
            values = [v if v is None or not isinstance(i, Node) else saved[next(numbers)] for i, v in slots]
            each.saved = tuple(values) or None
    place_before(node, made)
    for each in made:
        each.code, each.offset = node.code, node.offset
        if not known and each.saved is not None:
            each.saved = FREED
    node.inputs, node.attrs, node.plan, node.saved, node.op = last.inputs, last.attrs, last.plan, last.saved, last.op


def _input(source: Node, value: Any, tracked: bool, device: Any) -> Tensor:
    tensor = wrap(value, device)
    tensor.node, tensor.tracked = source, tracked
    return tensor


def place_before(node: Node, made: Sequence[Node]) -> None:
    """Date nodes, in this order, between `node` and the node that was recorded before it."""
    for i, each in enumerate(made):
        each.serial = node.serial - 1 + (i + 1) / (len(made) + 1)  # type: ignore[assignment]


def made_since(last: Iterable[Node | None], began: int) -> set[Node]:
    """The nodes up to and including the `last` ones that were recorded after `began`."""
    stack = [node for node in last if node is not None and node.serial > began]
    found = set(stack)
    while stack:
        for node in stack.pop().inputs:
            if isinstance(node, Node) and node.serial > began and node not in found:
                found.add(node)
                stack.append(node)
    return found
