"""`jit`: trace a function once for each kind of arguments, and run its program in later calls."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from types import MethodType
from typing import TYPE_CHECKING, Any

from ..core.clock import tick
from ..core.mode import current_mode
from ..core.tensor import Tensor
from ..support.collector import no_collection
from ..support.errors import ConversionError
from ..support.forking import new_lock
from ..support.source import Where, caller, line_of, show
from ..support.table import printable
from ..support.words import shown, too_deep
from .functions.recording import Recording
from .nodes.graph import Graph, later
from .tracing.signature import hashable, in_words, kind_of, kinds_of_tensors

if TYPE_CHECKING:
    from .look.ran import Ran
    from .look.stages import Stages
else:

    class Stages:
        """The stages of the compiler for a function: its methods are loaded when a stage is first looked at."""

        traced, graph, program, values, passes, kernels, code, stages, cost, record = [
            later("minigrad.compile.look.stages", f"Stages.{name}")
            for name in "traced graph program values passes kernels code stages cost record".split()
        ]


STORM = 8  # traces of one function that cause a warning
CHECKS = 4  # recordings whose quick check comes first
KEPT = 256  # recordings of one function; beyond that, the oldest is dropped


class RetraceWarning(UserWarning):
    """A jitted function is traced again and again, which is slower than eager mode."""


class GuardWarning(UserWarning):
    """A jitted function reads large data by name, which are compared before each run."""


class Traces(list[str]):
    """Why a function was traced, each time."""

    def __str__(self) -> str:
        return "\n".join(f"trace {i + 1}: {reason}" for i, reason in enumerate(self)) or "not traced yet"


class Jitted(Stages):
    """A function that is traced when it is called with a new kind of arguments, and otherwise runs as a program."""

    def __init__(
        self, function: Callable[..., Any], static: tuple[Any, ...] = (), disable: bool = False,
        executor: str | None = None, check: bool = False,
    ) -> None:
        update_wrapper(self, function)
        self.function, self.static, self.executor = function, _both_spellings(function, static), executor
        self.check = check
        self.disabled = disable or os.environ.get("MINIGRAD_JIT", "").lower() in ("0", "off", "no", "false")
        self.traces = Traces()
        self.recordings: dict[Any, list[Recording]] = {}
        self._order: list[tuple[Any, Recording]] = []  # all of them, the oldest first
        self._checks: tuple[Recording, ...] = ()  # those whose quick check comes first
        self._lock = new_lock()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else JittedMethod(self, instance)

    def __reduce__(self) -> Any:
        module = sys.modules.get(getattr(self, "__module__", None) or "")
        name = getattr(self, "__qualname__", "")
        if getattr(module, name, None) is self:
            return name  # it is found by name; programs are compiled again where it is loaded
        return Jitted, (self.function, tuple(self.static), self.disabled, self.executor, self.check)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = current_mode()
        interpreter = mode.interpreter
        in_eager_mode = interpreter is None or interpreter.runs_programs
        if self.disabled or not in_eager_mode:
            return self.function(*args, **kwargs)
        for recording in self._checks:
            tensors = recording.check(args, kwargs, mode)  # type: ignore[misc]
            if tensors is not None:
                break
        else:
            recording, tensors = self._recording(args, kwargs, keep=False)
        recording.called = tick()
        if self.check:
            from .look.checking import checked

            return checked(self.function, recording, tensors, args, kwargs)
        return recording.run(tensors)

    def __repr__(self) -> str:
        name = printable(str(getattr(self.function, "__qualname__", self.function)))
        return f"<jit of {name}, traced {len(self.traces)} times>"

    def ran(self, *args: Any, **kwargs: Any) -> Ran:
        """The programs of the last call with such arguments; without such a call, those that a call would run.

        Such arguments have the same shapes, dtypes and devices, and the same values where they are not tensors.
        Whether they require gradients does not matter.  All stages show these programs.  A program that kept values
        for its gradient says so, and has a `.gradient` if the gradient was computed.

        >>> f = mg.jit(lambda x: mg.tanh(x).sum())
        >>> gradient = mg.grad(f)(mg.ones(3))
        >>> [part.title for part in f.ran(mg.ones(3)).parts]
        ['forward pass, keeps values for the gradient', 'gradient']
        """
        from .look.ran import Ran

        tensors: list[Tensor] = []
        key = self._key(args, kwargs, tensors)
        kind = _without_gradients(key)
        called = [each for each in list(self._order) if each[1].called and _without_gradients(each[0]) == kind]
        if called:
            known, recording = max(called, key=lambda each: each[1].called)
            return Ran(recording, tensors, known == key)
        return Ran(*self._recording(args, kwargs))

    def save(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write the program for arguments like these to a file.  `mg.load_program` runs it without this function.

        The file holds the values of tensors that the function uses by name.  A saved program is for inference: a
        function that changes tensors, draws random numbers or has other effects is refused.
        """
        from .save.write import save_program

        save_program(self.function, path, args, kwargs)

    # finding the recording -------------------------------------------------------------------------------------------

    def _recording(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool = True
    ) -> tuple[Recording, list[Tensor]]:
        """The recording for these arguments, and the tensors among them; a new recording may `keep` them."""
        tensors: list[Tensor] = []
        key = self._key(args, kwargs, tensors)
        reason = None
        for recording in self.recordings.get(key, ()):
            mismatch = recording.mismatch(tensors)
            if mismatch is None:
                if any(guard.outdated for guard in recording.guards):
                    recording.make_check(key)
                self._check_first(recording)
                return recording, tensors
            reason = reason or mismatch  # of the newest recording
        with self._lock:
            for recording in self.recordings.get(key, ()):
                if recording.mismatch(tensors) is None:
                    return recording, tensors
            reason = reason or self._news(key)
            self._check_bound(args, kwargs)
            with no_collection():
                recording = Recording(self.function, args, kwargs, tensors, self.executor)
            if not keep:
                recording.release_arguments()
            self._keep(key, recording)
            self._note(reason, recording, caller())
        return recording, tensors

    def _check_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise an error for arguments that the function does not take; a stage needs those of a call."""
        try:
            signature(self.function).bind(*args, **kwargs)
        except ValueError:  # a function of C may have no signature
            return
        except TypeError as error:
            name = getattr(self.function, "__name__", "f")
            raise ConversionError(
                f"jit: {name} cannot be called like this: {error}",
                hint="f(x), and f.kernels(x) for a stage: it needs arguments like those of a call",
            ) from None

    def _check_first(self, recording: Recording) -> None:
        """Let the next calls begin with the quick check of this recording."""
        if recording.check is not None:
            with self._lock:
                others = [known for known in self._checks if known is not recording]
                self._checks = (recording, *others[: CHECKS - 1])

    def _keep(self, key: Any, recording: Recording) -> None:
        recording.make_check(key)
        recording.watch(partial(self._forget, weakref.ref(recording)))
        self._order.append((key, recording))  # first: only recordings in this list are ever dropped
        self.recordings.setdefault(key, []).insert(0, recording)
        self._check_first(recording)
        if len(self._order) > KEPT:
            self._forget(weakref.ref(self._order[0][1]))

    def _forget(self, reference: weakref.ref[Recording], gone: Any = None) -> None:
        """Drop a recording, because there are too many or an object among its arguments was deleted."""
        with self._lock:
            recording = reference()
            for key in [key for key, known in self._order if known is recording]:
                left = self.recordings[key] = [r for r in self.recordings.get(key, ()) if r is not recording]
                if not left:
                    del self.recordings[key]
            self._order = [entry for entry in self._order if entry[1] is not recording]
            self._checks = tuple([known for known in self._checks if known is not recording])

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
        mode = current_mode()
        names = list(kwargs)  # in the order in which the function is given them
        parts = [*args, *[kwargs[name] for name in names]]
        labels = [*range(len(args)), *names]
        static = self.static
        try:
            if static:
                kinds = [hashable(x, "static") if i in static else kind_of(x, tensors) for i, x in zip(labels, parts)]
            else:
                kinds = [kind_of(x, tensors) for x in parts]
        except RecursionError as error:
            raise too_deep("jit: an argument", parts, error) from None
        return tuple(kinds), tuple(labels), tuple(kinds_of_tensors(tensors)), mode.grad, mode.device

    def _news(self, key: Any) -> str:
        """How this kind of arguments differs from the most similar one before."""
        if not self.recordings:
            return "the first call"
        kinds, labels, tensors, grad, device = key
        closest = max(self.recordings, key=lambda known: _likeness(known, key))
        old_kinds, old_labels, old_tensors, old_grad, old_device = closest
        if labels != old_labels or len(tensors) != len(old_tensors):
            return "the call has other arguments"
        for label, new, old in zip(labels, kinds, old_kinds):
            if new != old:
                was, now = in_words(old), in_words(new)
                same = was == now
                return f"argument {label} is another object" if same else f"argument {label} was {was} and is {now}"
        for new, old in zip(tensors, old_tensors):
            for what, before, now in zip(("shape", "dtype", "device", "gradient", "memory"), old, new):
                if before != now:
                    return f"the {what} of an argument was {before} and is {now}"
        return "gradients were switched on or off" if grad != old_grad else f"the device was {old_device}, is {device}"

    def _note(self, reason: str, recording: Recording, where: Where) -> None:
        self.traces.append(reason)
        much = list(filter(None, [guard.burden() for guard in recording.guards])) if len(self.traces) == 1 else []
        if much:
            warnings.warn_explicit(
                f"{self!r}, called at {show(where)}: each call first compares {'; '.join(much)} with the trace. "
                "Hint: pass an array as an argument, make it a tensor outside, mg.asarray(array), or set "
                "array.flags.writeable = False",
                GuardWarning, *line_of(where),
            )
        if len(self.traces) == STORM:
            listed = "\n".join(f"  {i + 1}. {r}" for i, r in enumerate(self.traces))
            warnings.warn_explicit(
                f"{self!r}, called at {show(where)}: tracing takes longer than running. Why each time:\n{listed}\n"
                "  Hint: pass values that change as tensors, pad to a few shapes, or do not jit this function",
                RetraceWarning, *line_of(where),
            )


class JittedMethod(Stages):
    """A jitted method of an object, which is the first argument of every call."""

    def __init__(self, jitted: Jitted, instance: Any) -> None:
        self.jitted, self.__self__ = jitted, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__doc__", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self.jitted, name)

    def ran(self, *args: Any, **kwargs: Any) -> Ran:
        """Like `Jitted.ran`."""
        return self.jitted.ran(self.__self__, *args, **kwargs)

    def save(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Like `Jitted.save`; the tensors that the object holds go into the file."""
        Jitted(MethodType(self.jitted.function, self.__self__)).save(path, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.jitted!r} as a method of a {type(self.__self__).__name__}>"


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """The graph of what a function computes for these arguments; nothing is computed.

    >>> graph = mg.trace(lambda x, y: mg.tanh(x @ y).sum(), mg.ones((2, 3)), mg.ones((3, 4)))
    >>> graph
    <Graph of 3 nodes, 2 inputs, 1 outputs>
    >>> [node.name for node in graph.nodes]
    ['matmul', 'tanh', 'sum']
    """
    return jit(function).graph(*args, **kwargs)


def _without_gradients(key: Any) -> Any:
    """A kind of arguments without gradients and views."""
    kinds, labels, tensors, _, device = key
    return kinds, labels, [tensor[:3] for tensor in tensors], device


def _likeness(known: Any, key: Any) -> tuple[int, ...]:
    """How much two kinds of arguments have in common, the most important part first."""
    return known[1] == key[1], *[sum(a == b for a, b in zip(known[i], key[i])) for i in (0, 2)]


def jit(
    function: Callable[..., Any] | None = None, *, static: Any = (), disable: bool = False, executor: str | None = None,
    check: bool = False,
) -> Any:
    """Compile a function: it is traced once for each kind of arguments, and runs as a program after that.

    Tensors that the function uses by name are inputs too, and writes to tensors happen in each call.  Arguments that
    are not tensors, and those named or numbered in `static`, are part of the kind.  `f.traces` lists why it was traced.
    What depends on tensors used by name alone is computed once, until one of them changes, if there is no gradient.
    With `executor="parallel"` independent kernels run at the same time, with "auto" only where that may be faster, and
    by default ("serial") never; `MINIGRAD_EXECUTOR` sets it for all programs.

    A trace also depends on what the function reads by name: globals, closure cells, and those attributes whose names
    occur in its code or in code that it calls, with the entries of lists, dicts and arrays found there.  Gradient rules
    and hooks are such code, and the objects and classes among the arguments have such attributes.  All this is compared
    before each run, and a change causes a new trace.  Where code computes a name (`getattr(x, name)`, `vars`, `eval`),
    all attributes of your objects count.  A NumPy array is compared value by value unless it is read-only; a
    `GuardWarning` appears where that is slow.

    These raise a `TraceError` with the line: changing something that is not a tensor, reading an iterator or a clock,
    and drawing random numbers from the system, Python, NumPy or torch instead of `mg.random`.

    These are not noticed: changes inside other packages and their objects (installed in `site-packages`, or Python's
    own), such as a value assigned in a DataFrame; files, environment variables, and memory shared by `copy=False`;
    random numbers that any other package draws; a clock that Python's own code calls, as in `map(time.time_ns, ...)`; a
    writable view of a read-only array; a new class for an object of one of minigrad's; settings of minigrad, as
    `mg.devices.num_threads()`; attributes of a list, tuple or dict of your own class that is an argument; and, while a
    profiler set by `sys.setprofile` is active, clocks and new generators.  Pass such values as arguments.

    Each stage of the compiler is an object that prints: `f.graph(...)`, `.passes`, `.kernels`, `.program`, `.cost` and
    `.values` take the arguments of a call, and show what ran in the last call with such arguments; before any call,
    what a call would run.  If the call kept values for its gradient, they say so, and `f.program(...).gradient` is the
    program of the gradient, once it ran; `.passes`, `.kernels` and `.cost` have a `.gradient` too.

    With `check` each call also runs the function itself, on copies of everything that it uses.  Where results, writes
    or gradients differ, a `CheckError` names the first node that differs, and the pass that causes it.

    >>> @mg.jit
    ... def step(x):
    ...     return (x * 2 + 1).sum()
    >>> step(mg.ones(3)).item(), step(mg.zeros(3)).item(), len(step.traces)
    (9.0, 3.0, 1)
    """
    if function is None:
        return partial(jit, static=static, disable=disable, executor=executor, check=check)
    if not disable:
        _check_function(function)
    listed = static if isinstance(static, (tuple, list)) else (static,)
    if executor is not None:
        from .running.schedule import check_executor

        check_executor(executor)
    return Jitted(function, tuple(listed), disable, executor, check)


def _check_function(function: Any) -> None:
    if isinstance(function, (classmethod, staticmethod)):
        kind = type(function).__name__
        raise ConversionError(f"jit: a {kind} is not a function", hint=f"put @{kind} above @mg.jit")
    if not callable(function):
        raise ConversionError(
            f"jit takes a function, not {shown(function)}",
            hint="@mg.jit above a def, or mg.jit(f, static=..., disable=...)",
        )
    piecewise = isgeneratorfunction(function) or isasyncgenfunction(function) or iscoroutinefunction(function)
    if piecewise:
        name = getattr(function, "__name__", function)
        raise ConversionError(
            f"jit: {name} is a generator or async: it runs in pieces, and a program runs as a whole",
            hint="jit the computation inside it, or return a list",
        )


def _both_spellings(function: Callable[..., Any], static: tuple[Any, ...]) -> frozenset[Any]:
    """Static arguments by number and by name, because a call may pass them either way."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset(static)  # a function without a signature
    places = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    more = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    others = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    both: set[Any] = set()
    for label in static:
        number = label + len(places) if label.__class__ is int and label < 0 else label
        if number.__class__ is int and 0 <= number < len(places):
            both |= {number, places[number]}
        elif number.__class__ is int and number >= 0 and more:
            both.add(number)
        elif isinstance(label, str) and (label in names or others):
            both |= {label, places.index(label)} if label in places else {label}
        else:
            raise ConversionError(
                f"jit: there is no argument {shown(label)} to be static",
                expect=f"numbers from 0 to {len(places) - 1}, or names: {', '.join(names)}" if names else "none",
            )
    return frozenset(both)
