"""Checks the arguments of public functions, and names the first wrong one.

The annotation of a parameter says what it takes.  If the annotation is `Any`, the name does: `dtype`, `axis` and
`stride` mean the same in every function.  `public` adds the check to the functions of a file.  A call costs 0.04 µs
more, because the arguments are checked only after the call has failed.  The arguments of classes and of `eager`
functions are checked in each call, because these would store a wrong argument and fail much later.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..core.absent import missing
from ..core.dtypes import ALL, as_dtype
from ..core.mode import CURRENT
from ..core.tensor import Tensor, as_tensor
from ..support.errors import ConversionError, DeviceError, MinigradError, MissingFileError, ShapeError, StorageError
from ..support.source import in_library, show
from ..support.synonyms import hint_for, nearest
from ..support.words import LEAST, MOST, shown, whole

# What fits -----------------------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    if isinstance(value, (float, np.bool_, np.integer, np.floating)):
        return True
    if isinstance(value, int):
        return LEAST <= value <= MOST
    return isinstance(value, Tensor) and value.size == 1


def _is_array(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.name in ALL
    return isinstance(value, Tensor) or _is_number(value)


def _is_flag(value: Any) -> bool:
    if isinstance(value, (np.ndarray, Tensor)):
        return value.size == 1
    return isinstance(value, (int, np.bool_))


def _is_dtype(value: Any) -> bool:
    try:
        return value is None or as_dtype(value) is not None
    except Exception:
        return False


def _is_device(value: Any) -> bool:
    return value is None or isinstance(value, str) or _has_class(value, "Device")


def _is_whole_or_several(value: Any) -> bool:
    return whole(value) is not None or (isinstance(value, (tuple, list)) and all(whole(v) is not None for v in value))


def _is_path(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    return isinstance(value, os.PathLike)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _is_sequence(value: Any) -> bool:
    return _is_collection(value) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _is_list_of_numbers(value: Any) -> bool:
    return _is_array(value) or (_is_sequence(value) and all(_is_list_of_numbers(v) for v in value))


def _is_list_of_integers(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic, Tensor)):
        return value.dtype.kind in "biu"
    return whole(value) is not None or (_is_sequence(value) and all(_is_list_of_integers(v) for v in value))


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (type, Mapping))


def _has_class(value: Any, name: str) -> bool:
    return any(cls.__name__ == name for cls in type(value).__mro__)


DEEPEST = 64  # levels of nested lists: the most dimensions of a NumPy array
Check = Callable[[Any], bool]
# For each annotation: a check, and the expectation in words.
KINDS: dict[str, tuple[Check, str]] = {
    "None": (lambda value: value is None, "None"),
    "bool": (_is_flag, "True or False"),
    "int": (lambda value: whole(value) is not None, "an integer"),
    "float": (_is_number, "a number"),
    "str": (lambda value: isinstance(value, str), "text"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes"),
    "Tensor": (_is_array, "a tensor, a number or a NumPy array"),
    "Callable": (callable, "a function"),
    "Path": (_is_path, "a path"),
    "PathLike": (_is_path, "a path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "a dictionary"),
    "dict": (lambda value: isinstance(value, Mapping), "a dictionary"),
    "Iterable": (_is_collection, "a list or anything else to iterate over"),
    "Sequence": (_is_sequence, "a list or a tuple"),
    "list": (_is_sequence, "a list"),
    "tuple": (_is_sequence, "a tuple"),
}
TENSORS = (lambda value: isinstance(value, Tensor), "a tensor")
_SIZES = (_is_whole_or_several, "an integer or several")
# The same for parameters that are annotated as `Any`, by their names.
NAMED: dict[str, tuple[Check, str]] = {
    "dtype": (_is_dtype, "a dtype: " + ", ".join(ALL)),
    "device": (_is_device, "a device or its name, such as 'cpu'"),
    "axis": (lambda value: value is None or _is_whole_or_several(value), "an integer, several, or None"),
    "axes": (lambda value: value is None or _is_whole_or_several(value), "an integer, several, or None"),
    "shape": _SIZES,
    "path": (_is_path, "a path"),
    "folder": (_is_path, "a path"),
    "fill_value": (_is_number, "a number"),
    "start": (_is_number, "a number"),
    "stop": (lambda value: value is None or _is_number(value), "a number"),
    "step": (_is_number, "a number"),
    "repeats": (_is_list_of_integers, "an integer, or one for each element"),
    "repetitions": _SIZES,
    "shift": (lambda value: isinstance(value, tuple) or whole(value) is not None, "an integer or a tuple of them"),
    "q": (_is_list_of_numbers, "numbers from 0 to 1"),
    "widths": (_is_list_of_integers, "an integer, a pair, or a pair for each dimension"),
    "size": _SIZES,
    "stride": (lambda value: value is None or _is_whole_or_several(value), "an integer or several"),
    "dilation": _SIZES,
    "output_padding": _SIZES,
    "padding": (lambda value: isinstance(value, str) or _is_whole_or_several(value), "integers, 'same' or 'valid'"),
    "indices": (_is_list_of_integers, "integers"),
    "rows": (_is_list_of_numbers, "rows of numbers"),
    "weight": (lambda value: value is None or _is_array(value), "a tensor or None"),
    "pos_weight": (lambda value: value is None or _is_array(value), "a tensor or None"),
    "mean": (_is_array, "a number or a tensor"),
    "std": (_is_array, "a number or a tensor"),
    "ord": (lambda value: value is None or isinstance(value, (int, float, str)), "a number, 'fro' or None"),
    "activation": (lambda value: isinstance(value, str) or callable(value), "a function or its name"),
    "static": (lambda value: isinstance(value, (int, str)) or _is_collection(value), "numbers or names of arguments"),
    "dataset": (_is_dataset, "a dataset: something with a length, and items by number"),
    "devices": (_is_collection, "names of devices"),
    "when": (lambda value: value is None or _is_flag(value), "True, False or None"),
}


Limit = tuple[float, float, str]
_PROBABILITY: Limit = (0, 1, "a number from 0 to 1")
_COUNT: Limit = (0, MOST, "an integer, 0 or more")
_FROM_ONE: Limit = (1, MOST, "an integer, 1 or more")
_FINITE: Limit = (-sys.float_info.max, sys.float_info.max, "a finite number")
_NOT_NEGATIVE: Limit = (0, sys.float_info.max, "a finite number, 0 or more")
# The range of numbers, by the name of the parameter.
LIMITS: dict[str, Limit] = {
    "eps": _NOT_NEGATIVE, "dropout": _PROBABILITY, "label_smoothing": _PROBABILITY, "p": _PROBABILITY,
    "momentum": _PROBABILITY, "patience": _COUNT, "cooldown": _COUNT, "min_delta": _NOT_NEGATIVE, "every": _COUNT,
    "stride": _FROM_ONE, "dilation": _FROM_ONE, "padding": _COUNT, "output_padding": _COUNT, "top": _FROM_ONE,
    "growth_interval": _FROM_ONE, "ns_steps": _COUNT, "order": _FROM_ONE, "budget": _COUNT, "total": _COUNT,
    "gamma": _FINITE, "slope": _FINITE, "alpha": _FINITE, "beta": _NOT_NEGATIVE, "delta": _NOT_NEGATIVE,
    "dampening": _FINITE, "eta_min": _FINITE, "start_factor": _FINITE, "end_factor": _FINITE, "max_lr": _NOT_NEGATIVE,
    "min_lr": _NOT_NEGATIVE, "threshold": _FINITE, "div_factor": _NOT_NEGATIVE, "final_div_factor": _NOT_NEGATIVE,
    "tolerance": _NOT_NEGATIVE, "size": _COUNT, "most": _COUNT,
}


def _alternatives(annotation: str) -> list[str]:
    """The parts of `a | b[c | d]`: a and b[c | d]."""
    parts, depth, part = [], 0, ""
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()]


Kind = tuple[Check, str]


def _kind(annotation: str, name: str, names: Mapping[str, Any]) -> Kind | None:
    """The check of a parameter, and the expectation in words; None if it takes anything."""
    kinds: list[Kind] = []
    for part in _alternatives(annotation):
        outer, _, inner = part.partition("[")
        stem = outer.rpartition(".")[2].strip("'\"")
        if stem == "Any":
            return NAMED.get(name)
        kind = NAMED["axis"] if stem == "Axis" else KINDS.get(stem) or _named_kind(stem, names)
        if kind is None:
            return None
        listed = inner and stem in ("Sequence", "list", "tuple", "Iterable")
        of_what = _element(inner) if listed else "Any"
        element = TENSORS if of_what == "Tensor" else _kind(of_what, "", names)
        if element is not None:
            kind = functools.partial(_all_fit, kind[0], element[0]), f"{kind[1]}, each {element[1]}"
        kinds.append(kind)
    return functools.partial(_any_fits, tuple(kinds)), " or ".join(dict.fromkeys(words for _, words in kinds))


def _named_kind(stem: str, names: Mapping[str, Any]) -> Kind | None:
    """The check for a name in an annotation: a class, an alias, or a class imported for types only."""
    found = names.get(stem)
    if isinstance(found, type) and not getattr(found, "_is_protocol", False):
        return lambda value: isinstance(value, found), f"a {stem}"
    if isinstance(found, types.UnionType) or hasattr(found, "__origin__"):
        return _kind(str(found), "", names)
    if found is None and len(stem) > 1:
        return lambda value: _has_class(value, stem), f"a {stem}"
    return None


def _element(inner: str) -> str:
    """The annotation of the elements, if it is the same for all; else "Any"."""
    depth, parts, part = 0, [], ""
    for letter in inner.removesuffix("]"):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    kinds = {p for p in (*parts, part.strip()) if p != "..."}
    return kinds.pop() if len(kinds) == 1 else "Any"


def _any_fits(kinds: tuple[Kind, ...], value: Any) -> bool:
    return any(check(value) for check, _ in kinds)


def _all_fit(outer: Check, element: Check, value: Any) -> bool:
    if not outer(value):
        return False
    return not hasattr(value, "__len__") or all(element(v) for v in value)


def misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MinigradError | None:
    """The error that names the first argument that does not fit its parameter; None if all fit."""
    signature, kinds = _parameters(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        found: MinigradError | None = unexpected(function, kwargs)
        return found  # if it is something else, Python's own error is better
    for name, value in bound.arguments.items():
        parameter, kind = signature.parameters[name], kinds[name]
        if value is parameter.default:
            continue
        for each in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if isinstance(each, (list, tuple, dict)) and _is_deep(each):
                return ConversionError(f"{_title(function)}: {name} is nested too deeply, or contains itself",
                                       expect=f"at most {DEEPEST} levels")
            if kind is not None and not kind[0](each):
                return _error(function, name, each, kind[1])
            limit = LIMITS.get(name)
            if limit is not None and kind is not None and not _within(limit, each):
                return _error(function, name, each, limit[2])
    return None


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unexpected(function: Callable[..., Any], kwargs: Iterable[str]) -> Any:
    """The error for the first keyword argument that a function does not take, with a hint; None if it takes all."""
    parameters = _parameters(function)[0].parameters
    known = [name for name, each in parameters.items() if each.kind in _BY_NAME and name != "self"]
    unknown = [name for name in kwargs if name not in known]
    if not unknown or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    near = nearest(unknown[0], known)
    hint = hint_for("=", unknown[0] + "=", [*[f"{name}=" for name in known], "leave it out"])
    return ConversionError(
        f"{_title(function)}() got an unexpected keyword argument {unknown[0]!r}",
        expect=", ".join(known) or "no arguments",
        hint=hint or (f"did you mean {near}=?" if near else None),
    )


def _within(limit: Limit, value: Any) -> bool:
    """Whether a number, or each of several, is within limits; True for other values."""
    if isinstance(value, (tuple, list)):
        return all(_within(limit, each) for each in value)
    return not isinstance(value, (int, float)) or limit[0] <= value <= limit[1]


def _is_deep(value: Any) -> bool:
    """Whether lists are nested more deeply than `DEEPEST`."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = {id(v): v for each in level for v in (each.values() if isinstance(each, dict) else each)
                 if isinstance(v, (list, tuple, dict))}
        level = list(inner.values())
        if not level:
            return False
    return True


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Signature, dict[str, Kind | None]]:
    """The signature of a function, and the check of each parameter."""
    signature, kinds = inspect.signature(function), {}
    for name, parameter in signature.parameters.items():
        written = "Any" if parameter.annotation is parameter.empty else str(parameter.annotation)
        anything = name == "self" or parameter.kind is parameter.VAR_KEYWORD
        kinds[name] = None if anything else _kind(written, name, function.__globals__)
    return signature, kinds


def _title(function: Callable[..., Any]) -> str:
    return str(function.__qualname__).removesuffix(".__init__").rpartition("<locals>.")[2]


def _error(function: Callable[..., Any], name: str, value: Any, expect: str) -> MinigradError:
    kind = ShapeError if name == "shape" else ConversionError
    if isinstance(value, Tensor):
        got = f"a tensor of shape {value.shape} and dtype {value.dtype}"
    elif isinstance(value, np.ndarray):
        got = f"an array of shape {value.shape} and dtype {value.dtype}"
    else:
        got = f"{shown(value)}, of type {type(value).__name__}"
    listed = expect.startswith("a tensor") and isinstance(value, (list, tuple))
    hint = "mg.asarray(...) makes a tensor" if listed else None
    return kind(f"{_title(function)}: {name} is not {expect}", expect=expect, actual=got, hint=hint)


# Public functions ----------------------------------------------------------------------------------------------------


def refused(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """Raise the error that names the wrong argument; if no argument is wrong, raise the error itself.

    If a number or a NumPy array was given for a tensor, the call is repeated with a tensor.  An error from the user's
    own code, called by the function, is not changed.
    """
    if isinstance(function, types.MethodType):
        function, args = function.__func__, (function.__self__, *args)
    if isinstance(function, types.FunctionType) and not _is_of_users(error):
        found = misfit(function, args, kwargs)
        if found is not None:
            raise found from error
        converted = _with_tensors(function, args, kwargs)
        if converted is not None:
            return function(*converted[0], **converted[1])
        if isinstance(error, (ValueError, ArithmeticError)):  # right types, wrong values for Python or NumPy
            raise ConversionError(f"{_title(function)}: {error}") from error
        if isinstance(error, MemoryError):
            raise DeviceError(f"{_title(function)}: no memory is left: {error}", hint="smaller sizes") from error
        if isinstance(error, OSError):
            kind = MissingFileError if isinstance(error, FileNotFoundError) else StorageError
            raise kind(f"{_title(function)}: {_reason(error)}") from error
    called = str(error) == "'int' object is not callable" and not hasattr(error, "__notes__")
    if called and ".size(" in _text_of(error):
        error.add_note("  Hint: x.shape, x.shape[i]; x.size is the number of elements, without parentheses")
    raise error


def _text_of(error: Exception) -> str:
    """The line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return show((trace.tb_frame.f_code, trace.tb_lasti)) if trace is not None else ""


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
        if not in_library(frame.f_code.co_filename):
            package = str(frame.f_globals.get("__name__")).partition(".")[0]
            if package != "numpy" and package not in sys.stdlib_module_names:
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
            if hasattr(found, "__wrapped__"):
                continue
            if name in quick:
                found.__signature__ = _strict(found)  # type: ignore[attr-defined]
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


def _strict(function: Any) -> inspect.Signature:
    """The signature without `**unknown: Never`, with which a quick function takes keywords that it refuses."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[each for each in signature.parameters.values() if each.annotation != "Never"])


def public_class(cls: type, quick: Iterable[str] = ("forward",)) -> None:
    """Check the arguments of a class's constructor, and those of its methods after a failed call."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != __name__.partition(".")[0]:
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
def make(_function, _original, _ours, _refused, _current, _marked, _unexpected):
    def call({declared}):
        {strict}
        try:
            return {marked}_function({given}{named})
        except _ours:
            raise
        except Exception as _error:
            return _refused(_original, ({given}), dict({named}), _error)
    return call
"""
_STRICT = "if _unknown: raise _unexpected(_original, _unknown)"
_MARKED = "_marked(_original, ({given}), dict({named})) if _current.get().interpreter is not None else "


@functools.cache
def _maker(
    before_slash: int, positional: int, named: tuple[str, ...], rest: bool, others: bool, marks: bool
) -> Any:
    """A maker of wrappers for this parameter list; 26 makers serve 400 functions."""
    given = [*[f"_{i}" for i in range(positional)], *["*_rest"] * rest]
    after = ["**_others"] * others
    declared = [*given, *["*"] * (bool(named) and not rest), *named, "**_others" if others else "**_unknown"]
    if before_slash:
        declared.insert(before_slash, "/")
    parts = {
        "declared": ", ".join(declared),
        "given": "".join(f"{each}, " for each in given),
        "named": ", ".join([*[f"{name}={name}" for name in named], *after]),
    }
    text = _CALL.format(marked=_MARKED.format(**parts) if marks else "", strict="pass" if others else _STRICT, **parts)
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
    named = tuple(names[code.co_argcount :])
    make = _maker(code.co_posonlyargcount, code.co_argcount, named, bool(rest), bool(others), marked is not None)
    call = make(run or function, function, MinigradError, refused, CURRENT, marked, unexpected)
    count = len(names) + bool(rest) + bool(others)
    variables = (*code.co_varnames[:count], *call.__code__.co_varnames[count:])
    call.__code__ = call.__code__.replace(co_varnames=variables, co_name=code.co_name, co_qualname=code.co_qualname)
    made = _named(call, function)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def checked(function: Any) -> Any:
    """The function with its arguments checked in each call, after its own checks, which say more."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = tried(*args, **kwargs)
        except TypeError as error:  # if an argument is missing too, Python names only that one
            stranger = None if isinstance(error, ours) else unknown(function, kwargs)
            if stranger is None:
                raise
            raise stranger from None
        wrong = find(function, args, kwargs)
        if wrong is not None:
            raise wrong
        return result

    # Local, because its globals are those of the function's file.
    tried, find, unknown, ours = explained(function), misfit, unexpected, MinigradError
    return _named(call, function)


def _named(call: Any, function: Any) -> Any:
    """The wrapper with the function's name, signature and file (in which doctest looks for examples)."""
    made = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.update_wrapper(made, function)
