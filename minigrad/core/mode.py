"""The current mode: it decides what an operation does when it is called.

It is one immutable `Mode` in one `ContextVar`.  Reading it takes 17 ns.  Each thread and each asyncio task has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Never, TypeVar

from ..support.context import Block, switched_variable
from ..support.errors import ConversionError
from ..support.source import caller
from ..support.table import printable
from ..support.words import shown
from .state import PYTHON_CONTROL, PYTHON_STATE, Control, State

Interpreter = Any  # `emit` imports this module,
Node = Any  # and `node` does
F = TypeVar("F", bound=Callable[..., Any])

TANGENT = -1  # where the tangents of forward mode are computed


class Mode:
    """The settings with which operations run.

    `interpreter`  decides what applying a primitive does; None is eager mode, which computes at once
    `state`        reads and writes what outlives an operation: tensors, gradients, generators
    `control`      runs branches and loops
    `grad`         whether the results of operations on tracked tensors have nodes, and are tracked
    `record_all`   whether untracked results have nodes too: so in `mg.record()`, but not in a trace, which writes a
                   graph of values of its own, next to the nodes of tracked tensors
    `device`       the device of new tensors; None is the default device
    `scope`        the modules and functions that are running, outermost first: `("encoder", "layers[0]")`
    `origin`       the forward node whose gradient is being computed, or None
    `toward`       the number of the input of `origin` that this gradient goes to, or None; `TANGENT` in forward mode
    `grad_inputs`  in a function that `mg.grad` or `mg.vjp` differentiates: the nodes of its inputs; else ()
    `composite`    the call of a composed function, such as `softmax`, that is being recorded; None outside one
    `programs`     whether large calls of composed functions run as programs in eager mode; None: as `PROGRAMS.on` says
    """

    __slots__ = (
        "__weakref__", "_like", "composite", "control", "device", "grad", "grad_inputs", "interpreter", "origin",
        "programs", "record_all", "scope", "state", "toward",
    )

    def __init__(
        self,
        interpreter: Interpreter | None = None,
        grad: bool = True,
        record_all: bool = False,
        device: Any = None,
        scope: tuple[str, ...] = (),
        origin: Node | None = None,
        grad_inputs: tuple[Node, ...] = (),
        state: State = PYTHON_STATE,
        control: Control = PYTHON_CONTROL,
        composite: Any = None,
        programs: bool | None = None,
        toward: int | None = None,
    ) -> None:
        self.interpreter, self.grad, self.record_all = interpreter, grad, record_all
        self.device, self.scope, self.origin, self.grad_inputs = device, scope, origin, grad_inputs
        self.state, self.control, self.composite, self.programs = state, control, composite, programs
        self.toward = toward
        self._like: dict[Any, Mode] = {}  # modes that differ from this one, by what `once` was given

    def but(self, **changes: Any) -> Mode:  # First reader: skip to `switch`
        """A copy of this mode with changes.

        An interpreter that is also a `State` or a `Control` is used as `state` or `control` too; the interpreter None
        restores Python's own of both.
        """
        mode = object.__new__(Mode)
        mode.interpreter, mode.grad, mode.record_all = self.interpreter, self.grad, self.record_all
        mode.device, mode.scope, mode.origin, mode.grad_inputs = self.device, self.scope, self.origin, self.grad_inputs
        mode.state, mode.control, mode.composite = self.state, self.control, self.composite
        mode.programs, mode.toward, mode._like = self.programs, self.toward, {}
        if "interpreter" in changes:
            interpreter = changes["interpreter"]
            if interpreter is None or isinstance(interpreter, State):
                mode.state = interpreter or PYTHON_STATE
            if interpreter is None or isinstance(interpreter, Control):
                mode.control = interpreter or PYTHON_CONTROL
        for name, value in changes.items():
            setattr(mode, name, value)
        return mode

    @property
    def untracked(self) -> Mode:
        """This mode without gradients: every backward pass and every update needs it."""
        return self.once("grad", False) if self.grad else self

    def once(self, name: str, value: Any, owner: str = "") -> Mode:
        """A copy of this mode with one change, which is made once for each value and owner."""
        key = name, value, owner
        return self._like.get(key) or self._like.setdefault(key, self.but(**{name: value}))


CURRENT: ContextVar[Mode] = switched_variable("minigrad mode", Mode())
current_mode = CURRENT.get


class switch(Block):
    """A context manager and decorator that changes the current mode: `with switch(grad=False): ...`."""

    variable = CURRENT

    def __init__(self, mode: Mode | None = None, **changes: Any) -> None:
        self.mode, self.changes = mode, changes

    def value(self) -> Mode:
        mode = self.mode or current_mode()
        if self.changes == {"grad": False}:
            return mode.untracked
        return mode.but(**self.changes) if self.changes else mode

    def __call__(self, function: F) -> F:
        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            block = object.__new__(type(self))  # one for each call: threads may call the function at the same time
            vars(block).update(vars(self), entered=None)
            with block:
                return function(*args, **kwargs)

        return switched  # type: ignore[return-value]


def no_grad(*given: Never) -> switch:
    """Record no operations in this block: for updates of parameters, and for inference.

    >>> import minigrad as mg
    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> with mg.no_grad():
    ...     w *= 2
    >>> w.requires_grad, w.numpy_copy().tolist()
    (True, [2.0, 4.0])
    """
    return _block("no_grad", given, grad=False)


def enable_grad(*given: Never) -> switch:
    """Record operations again, inside a `no_grad` block.

    >>> import minigrad as mg
    >>> w = mg.asarray(1.0, requires_grad=True)
    >>> with mg.no_grad(), mg.enable_grad():
    ...     (w * 2).requires_grad
    True
    """
    return _block("enable_grad", given, grad=True)


def record(*given: Never) -> switch:
    """Keep the nodes of untracked results too, so that they can be drawn and replayed.

    >>> import minigrad as mg
    >>> with mg.record():
    ...     y = mg.asarray([1.0]) + 1
    >>> y.node.op.name
    'add'
    """
    return _block("record", given, record_all=True)


def _block(name: str, given: tuple[Any, ...], **changes: Any) -> switch:
    if given:
        raise ConversionError(f"{name} takes no argument: it makes a block, which is a decorator too",
                              hint=f"with mg.{name}(): ..., or mg.{name}()(f)")
    return switch(**changes)


def is_grad_enabled() -> bool:
    """Whether operations on tracked tensors are recorded now.

    >>> import minigrad as mg
    >>> with mg.no_grad():
    ...     mg.is_grad_enabled()
    False
    """
    return current_mode().grad


def scope(name: str) -> switch:
    """Name a part of the computation: nodes made inside have the name, and pictures draw a box around them.

    >>> import minigrad as mg
    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> with mg.scope("head"):
    ...     y = w * 2
    >>> y.node.scope
    ('head',)
    """
    if not isinstance(name, str):
        raise ConversionError(f"scope: a name is text, not {shown(name)}")
    return switch(scope=(*current_mode().scope, printable(name)))


class ModuleName(str):
    """The name of the scope of a module, with the type of the module."""

    kind: str


class Branch(str):
    """The name of the scope of a branch, with the place of the call that chose it."""

    where: Any


def branch(taken: bool) -> switch:
    """Name the operations of a branch that runs in eager mode: nothing else is recorded of a choice.

    >>> import minigrad as mg
    >>> w = mg.asarray(1.0, requires_grad=True)
    >>> mg.cond(w > 0, lambda w: w * 2, lambda w: w, w).node.scope
    ('cond: if true',)
    """
    name = Branch(f"cond: if {taken}".lower())
    name.where = caller(2)
    return switch(scope=(*current_mode().scope, name))
