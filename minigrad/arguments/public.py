"""Checks the arguments of public functions, and names the first wrong one.

The annotation of a parameter says what it takes.  If the annotation is `Any`, the name does: `dtype`, `axis` and
`stride` mean the same in every function.  `public` adds the check to the functions of a file.  A call costs 0.04 µs
more, because the arguments are checked only after the call has failed.  The arguments of classes and of `eager`
functions are checked in each call, because these would store a wrong argument and fail much later.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.absent import missing
from ..core.mode import CURRENT
from ..core.primitive import P
from ..core.tensor import Tensor, as_floats, as_operand, as_tensor
from ..support.errors import ConversionError, DeviceError, MinigradError, MissingFileError, ShapeError, StorageError
from ..support.source import OURS, in_library, text_of
from ..support.synonyms import hint_for, nearest
from ..support.table import counted
from ..support.words import shown, too_deep
from .fits import LIMITS, Kind, kind_of, within


def misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MinigradError | None:
    """The error that names the first argument that does not fit its parameter; None if all fit."""
    signature, kinds = _parameters(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        found: MinigradError | None = unexpected(function, args[:1], kwargs)
        return found  # if it is something else, Python's own error is better
    for name, value in bound.arguments.items():
        parameter, kind = signature.parameters[name], kinds[name]
        if value is parameter.default:
            continue
        for each in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            deep = isinstance(each, (list, tuple, dict)) and too_deep(f"{_title(function, args)}: {name}", each)
            if deep:
                return deep  # type: ignore[no-any-return]
            if kind is not None and not kind[0](each):
                return _error(_title(function, args), name, each, kind[1])
            limit = LIMITS.get(name)
            if limit is not None and kind is not None and not within(limit, each):
                return _error(_title(function, args), name, each, limit[2])
    return None


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unexpected(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Iterable[str], more: tuple[Any, ...] = ()
) -> Any:
    """The error for the first argument that a function does not take, with a hint; None if it takes all.

    `more` are arguments behind the last that is taken by position.
    """
    parameters = _parameters(function)[0].parameters
    known = [name for name, each in parameters.items() if each.kind in _BY_NAME and name != "self"]
    if more:
        hint = "several sizes or axes are one argument: (0, 1)" if all(isinstance(each, int) for each in more) else None
        many = f"{counted(len(more), 'argument')} too many, from {shown(more[0])} on"
        return ConversionError(f"{_title(function, args)}() got {many}", expect=", ".join(known), hint=hint)
    unknown = [name for name in kwargs if name not in known]
    if not unknown or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    near = nearest(unknown[0], known)
    hint = hint_for("=", unknown[0] + "=", [*[f"{name}=" for name in known], "leave it out"])
    return ConversionError(
        f"{_title(function, args)}() got an unexpected keyword argument {unknown[0]!r}",
        expect=", ".join(known) or "no arguments",
        hint=hint or (f"did you mean {near}=?" if near else None),
    )


class MISSING:
    """In place of an argument of an operation that was not given: the operation then fails, and the error names it."""


def refuse_missing(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Raise an error if a required argument was not given."""
    parameters = list(_parameters(function)[0].parameters)
    for name, value in zip(parameters, args):
        if value is MISSING:
            known = ", ".join(parameters)
            raise ConversionError(f"{_title(function, args)}() is missing its argument {name!r}", expect=known)


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Signature, dict[str, Kind | None]]:
    """The signature of a function, and the check of each parameter."""
    signature, kinds = inspect.signature(function), {}
    for name, parameter in signature.parameters.items():
        written = "Any" if parameter.annotation is parameter.empty else str(parameter.annotation)
        anything = name == "self" or parameter.kind is parameter.VAR_KEYWORD
        kinds[name] = None if anything else kind_of(written, name, function.__globals__)
    return signature, kinds


def _title(function: Callable[..., Any], args: tuple[Any, ...] = ()) -> str:
    """The name of a function; of a method, with the class of minigrad that its object has."""
    owner, dot, name = function.__qualname__.rpartition("<locals>.")[2].rpartition(".")
    ours = [cls.__name__ for cls in type(args[0]).__mro__ if cls.__module__.startswith("minigrad.")] if args else []
    if owner in ours:
        owner = ours[0]  # for the caller, a base class is a detail
    return f"{owner}{dot}{name}".removesuffix(".__init__")


def _error(title: str, name: str, value: Any, expect: str) -> MinigradError:
    kind = ShapeError if name == "shape" else ConversionError
    if isinstance(value, Tensor):
        got = f"a tensor of shape {value.shape} and dtype {value.dtype}"
    elif isinstance(value, np.ndarray):
        got = f"an array of shape {value.shape} and dtype {value.dtype}"
    else:
        got = f"{shown(value)}, of type {type(value).__name__}"
    listed = expect.startswith("a tensor") and isinstance(value, (list, tuple))
    hint = "mg.asarray(...) makes a tensor; f(x, y), not f((x, y))" if listed else None
    return kind(f"{title}: {name} is not {expect}", expect=expect, actual=got, hint=hint)


# Public functions ----------------------------------------------------------------------------------------------------

OPERATIONS: set[str] = set()  # the names of the functions of `minigrad.ops`, which call each other


def refused(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """Raise the error that names the wrong argument; if no argument is wrong, raise the error itself.

    If a number or a NumPy array was given for a tensor, the call is repeated with a tensor.  An error from the user's
    own code, called by the function, is not changed.
    """
    if isinstance(function, types.MethodType):
        function, args = function.__func__, (function.__self__, *args)
    refuse_missing(function, args)
    if isinstance(function, types.FunctionType) and not _is_of_users(error):
        found = misfit(function, args, kwargs)
        if found is not None:
            raise found from error
        converted = _with_tensors(function, args, kwargs)
        if converted is not None:
            try:
                return function(*converted[0], **converted[1])
            except MinigradError as again:
                retitle(function, *converted, again)
                raise
        if isinstance(error, (ValueError, ArithmeticError)):  # right types, wrong values for Python or NumPy
            raise ConversionError(f"{_title(function, args)}: {error}") from error
        if isinstance(error, MemoryError):
            raise DeviceError(f"{_title(function, args)}: no memory is left: {error}", hint="smaller sizes") from error
        if isinstance(error, OSError):
            kind = MissingFileError if isinstance(error, FileNotFoundError) else StorageError
            raise kind(f"{_title(function, args)}: {_reason(error)}") from error
    called = str(error) == "'int' object is not callable" and not hasattr(error, "__notes__")
    if called and ".size(" in text_of(error):
        error.add_note("  Hint: x.shape, x.shape[i]; x.size is the number of elements, without parentheses")
    raise error


def retitle(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: MinigradError) -> None:
    """Name the operation that was called in an error that names an operation which this one calls.

    If an argument is wrong, that is the error.
    """
    refuse_missing(function, args)
    named = re.match(r"(\w+)(?=:| is for | does not support )", str(error))
    if named is None or function.__name__ not in OPERATIONS or named[1] == function.__name__ or _is_of_users(error):
        return
    if named[1] in OPERATIONS or hasattr(P, named[1]):
        found = misfit(function, args, kwargs)
        if found is not None:
            raise found from error
        error.args = (_title(function) + str(error)[named.end() :],)


def _reason(error: OSError) -> str:
    place = f": {error.filename}" if error.filename else ""
    return f"{error.strerror}{place}" if error.strerror else str(error)


def _with_tensors(function: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments, with tensors for numbers and NumPy arrays; None if there are none to convert."""
    signature, _ = _parameters(function)
    try:
        bound, any_converted = signature.bind(*args, **kwargs), False
    except TypeError:
        return None
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if "Tensor" not in map(str.strip, str(parameter.annotation).split("|")) or value is parameter.default:
            continue
        several = parameter.kind is parameter.VAR_POSITIONAL
        made = tuple([as_tensor(v) for v in value]) if several else as_tensor(value)
        any_converted |= any(v is not w for v, w in zip(value, made)) if several else made is not value
        bound.arguments[name] = made
    return (bound.args, bound.kwargs) if any_converted else None


def _is_of_users(error: Exception) -> bool:
    """Whether an error comes from code other than minigrad's and the packages that it calls."""
    trace = error.__traceback__
    trace = trace and trace.tb_next
    while trace is not None:
        frame = trace.tb_frame
        file, package = frame.f_code.co_filename, str(frame.f_globals.get("__name__")).partition(".")[0]
        generated = file == "<string>" and package in OURS  # the constructor of a dataclass
        if not (generated or in_library(file) or package == "numpy" or package in sys.stdlib_module_names):
            return True
        trace = trace.tb_next
    return False


def public(names: Iterable[str], room: dict[str, Any], quick: Iterable[str] = (), eager: Iterable[str] = ()) -> None:
    """Check the arguments of a room's functions, after a failed call, and of its classes, always.

    `eager` functions are checked in each call.  `quick` functions check their arguments themselves, for speed.
    A name that the room lacks gets a hint.
    """
    room.setdefault("__getattr__", functools.partial(missing, room["__name__"]))
    for name in names:
        found = room[name]
        if isinstance(found, types.FunctionType):
            if hasattr(found, "__wrapped__") or name in quick:
                continue
            made = checked(found) if name in eager else explained(found)
            room[name] = made
            home = vars(sys.modules[found.__module__])
            if home.get(name) is found:
                home[name] = made
            if vars(Tensor).get(name) is found:
                setattr(Tensor, name, made)
        elif isinstance(found, type) and not issubclass(found, BaseException):
            public_class(found)


def public_class(cls: type, quick: Iterable[str] = ("forward",)) -> None:
    """Check the arguments of a class's constructor, and those of its methods after a failed call.

    Those of its bases too, but not of the core's classes: the library itself calls them in many operations.
    """
    for base in cls.__mro__:
        room = base.__module__.split(".")
        if room[0] != __name__.partition(".")[0] or (base is not cls and room[1] == "core"):
            continue
        for name, found in list(vars(base).items()):
            if not isinstance(found, types.FunctionType) or hasattr(found, "__wrapped__") or name in quick:
                continue
            if name == "__init__":
                setattr(base, name, checked(found))
            elif not name.startswith("_"):
                setattr(base, name, explained(found))


_ABOVE = sys._getframe().f_lineno  # number of lines above the text, so that tracebacks show its lines
_CALL = """
def make(_function, _original, _ours, _retitle, _refused, _current, _marked, _unexpected, _tensor, _operand, _floats):
    def call({declared}):
        {strict}
        try:
            {taken}
            return {marked}_function({given}{named})
        except _ours as _error:
            _retitle(_original, ({given}), dict({named}), _error)
            raise
        except Exception as _error:
            return _refused(_original, ({given}), dict({named}), _error)
    return call
"""
_STRICT = "if _unknown{0}: raise _unexpected(_original, ({given}), _unknown{1})"
# How a parameter takes its argument, by its annotation.  `_0` is the first argument, whose device counts.
_IF, _TENSOR, _ELSE = "{0} = {0} if ", "{0}.__class__ is _tensor", " else _operand({0}, _0)"
_TAKEN = {
    "Tensor": _IF + _TENSOR + _ELSE,
    "Tensor | None": _IF + "{0} is None or " + _TENSOR + _ELSE,
    "FloatTensor": _IF + _TENSOR + " and {0}._data.dtype.kind == 'f'" + " else _floats(_original.__name__, {0}, _0)",
}
_MARKED = "_marked(_original, ({given}), dict({named})) if _current.get().interpreter is not None else "


@functools.cache
def _maker(
    before_slash: int, positional: int, named: tuple[str, ...], rest: bool, others: bool, marks: bool,
    taken: str, more: bool,
) -> Any:
    """A maker of wrappers for this parameter list; 55 makers serve 400 functions."""
    given = [*[f"_{i}" for i in range(positional)], *["*_rest"] * rest]
    after = ["**_others"] * others
    star = ["*_more"] if more else ["*"] * (bool(named) and not rest)
    declared = [*given, *star, *named, "**_others" if others else "**_unknown"]
    if before_slash:
        declared.insert(before_slash, "/")
    parts = {
        "declared": ", ".join(declared),
        "taken": taken or "pass",
        "given": "".join(f"{each}, " for each in given),
        "named": ", ".join([*[f"{name}={name}" for name in named], *after]),
    }
    strict = "pass" if others else _STRICT.format(*(" or _more", ", _more") if more else ("", ""), **parts)
    text = _CALL.format(marked=_MARKED.format(**parts) if marks else "", strict=strict, **parts)
    room: dict[str, Any] = {}
    exec(compile("\n" * _ABOVE + text, __file__, "exec"), room)
    return room["make"]


def explained(function: Any, marked: Any = None, run: Any = None) -> Any:
    """The function, with errors that name the wrong argument.

    The wrapper has the same parameters: a wrapper with `*args, **kwargs` would cost three times as much.  It takes any
    other keyword too, 0.01 µs, for an error with a hint.
    Where an interpreter is active, `marked(function, args, kwargs)` makes the call, if it is given; elsewhere
    `run(*args)` does, in place of the function.
    """
    code = function.__code__
    names, rest, others = inspect.getargs(code)
    taken, operation = list[str](), function.__module__.startswith("minigrad.ops.")
    if operation:
        OPERATIONS.add(function.__name__)
        for i, name in enumerate(names):
            form = _TAKEN.get(function.__annotations__.get(name), "")
            taken.append(form.format(f"_{i}" if i < code.co_argcount else name))
    named = tuple(names[code.co_argcount :])
    more = operation and not (rest or others or function.__name__ == "__init__")
    make = _maker(code.co_posonlyargcount, code.co_argcount, named, bool(rest), bool(others), marked is not None,
                  "; ".join(filter(None, taken)), more)
    call = make(run or function, function, MinigradError, retitle, refused, CURRENT, marked, unexpected, Tensor,
                as_operand, as_floats)
    count = len(names) + bool(rest) + bool(others)
    variables = (*code.co_varnames[:count], *call.__code__.co_varnames[count:])
    call.__code__ = call.__code__.replace(co_varnames=variables, co_name=code.co_name, co_qualname=code.co_qualname)
    made = _named(call, function)
    defaults = function.__defaults__ or ()
    made.__defaults__ = (MISSING,) * (code.co_argcount - len(defaults)) * more + defaults
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def checked(function: Any) -> Any:
    """The function with its arguments checked in each call, after its own checks, which say more."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = tried(*args, **kwargs)
        except TypeError as error:  # if an argument is missing too, Python names only that one
            stranger = None if isinstance(error, ours) else find(function, args, kwargs)
            if stranger is None:
                raise
            raise stranger from None
        wrong = find(function, args, kwargs)
        if wrong is not None:
            raise wrong
        return result

    # Local, because its globals are those of the function's file.
    tried, find, ours = explained(function), misfit, MinigradError
    return _named(call, function)


def _named(call: Any, function: Any) -> Any:
    """The wrapper with the function's name, signature and file (in which doctest looks for examples)."""
    made = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.update_wrapper(made, function)
