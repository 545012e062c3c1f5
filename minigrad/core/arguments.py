"""Where public functions take their arguments in.

What a parameter takes is said by its annotation, and where that is `Any` by its name: `dtype`, `axis`, `stride` mean
the same in every function.  `public` gives the functions of a file this check.  For functions it costs nothing until
a call fails: then the arguments are looked at, and the first that does not fit is named.  Classes, and functions that
are named `eager`, look at them in every call, because they would keep a wrong argument and fail much later.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .dtypes import ALL, as_dtype
from .errors import ConversionError, MinigradError, ShapeError
from .source import in_library
from .tensor import Tensor

LEAST, MOST = -(2**63), 2**63 - 1  # what an integer of NumPy holds
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxtuple, _REPR.maxlist, _REPR.maxstring, _REPR.maxother = 3, 8, 8, 60, 80


def shown(value: Any) -> str:
    """A value for a message: short, also where it is long, deep or holds itself.

    >>> shown([1, [2, [3, [4]]]]), shown("abc")
    ('[1, [2, [...]]]', "'abc'")
    """
    try:
        return _REPR.repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def whole(value: Any) -> int | None:
    """The integer that a value is; None where it is not one, or one too large for any index.

    >>> whole(np.int8(3)), whole(3.0), whole(2**70)
    (3, None, None)
    """
    try:
        number = operator.index(value)
    except (TypeError, MinigradError):
        return None
    return number if LEAST <= number <= MOST else None


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


def _has_class(value: Any, name: str) -> bool:
    return any(cls.__name__ == name for cls in type(value).__mro__)


Check = Callable[[Any], bool]
# What an annotation means, and in words.
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
    "Sequence": (lambda value: _is_collection(value) and hasattr(value, "__len__"), "a list or a tuple"),
    "list": (lambda value: _is_collection(value) and hasattr(value, "__len__"), "a list"),
    "tuple": (lambda value: _is_collection(value) and hasattr(value, "__len__"), "a tuple"),
}
_SIZES = (_is_whole_or_several, "an integer or several")
# What a parameter means that is annotated as `Any`, by its name.
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
    """Whether a value fits a parameter, and what is expected in words; None where anything does."""
    kinds: list[Kind] = []
    for part in _alternatives(annotation):
        outer, _, inner = part.partition("[")
        stem = outer.rpartition(".")[2].strip("'\"")
        if stem == "Any":
            return NAMED.get(name)
        kind = NAMED["axis"] if stem == "Axis" else KINDS.get(stem) or _named_kind(stem, names)
        if kind is None:
            return None
        element = _kind(_element(inner), "", names) if inner and stem in ("Sequence", "list", "tuple", "Iterable") else None
        if element is not None:
            kind = functools.partial(_all_fit, kind[0], element[0]), f"{kind[1]}, each {element[1]}"
        kinds.append(kind)
    return functools.partial(_any_fits, tuple(kinds)), " or ".join(dict.fromkeys(words for _, words in kinds))


def _named_kind(stem: str, names: Mapping[str, Any]) -> Kind | None:
    """What a name means in a file: a class, or another annotation; a class that only type checkers see, by its name."""
    found = names.get(stem)
    if isinstance(found, type) and not getattr(found, "_is_protocol", False):
        return lambda value: isinstance(value, found), f"a {stem}"
    if isinstance(found, types.UnionType) or hasattr(found, "__origin__"):
        return _kind(str(found), "", names)
    if found is None and len(stem) > 1:
        return lambda value: _has_class(value, stem), f"a {stem}"
    return None


def _element(inner: str) -> str:
    """What the elements are, where all are of one kind; else anything."""
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
    return not isinstance(value, (list, tuple)) or all(element(v) for v in value)


def misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MinigradError | None:
    """The error that names the first argument that does not fit its parameter; None where all do."""
    signature, kinds = _parameters(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None  # Python says better what is wrong with the call
    for name, value in bound.arguments.items():
        parameter, kind = signature.parameters[name], kinds[name]
        if kind is None or value is parameter.default:
            continue
        for each in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if not kind[0](each):
                return _error(function, name, each, kind[1])
    return None


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Signature, dict[str, Kind | None]]:
    """The signature of a function, and what each of its parameters takes."""
    signature, kinds = inspect.signature(function), {}
    for name, parameter in signature.parameters.items():
        written = "Any" if parameter.annotation is parameter.empty else str(parameter.annotation)
        anything = name == "self" or parameter.kind is parameter.VAR_KEYWORD
        kinds[name] = None if anything else _kind(written, name, function.__globals__)
    return signature, kinds


def _error(function: Callable[..., Any], name: str, value: Any, expect: str) -> MinigradError:
    title = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
    kind = ShapeError if name == "shape" else ConversionError
    if isinstance(value, Tensor):
        got = f"a tensor of shape {value.shape} and dtype {value.dtype}"
    elif isinstance(value, np.ndarray):
        got = f"an array of shape {value.shape} and dtype {value.dtype}"
    else:
        got = f"{shown(value)}, of type {type(value).__name__}"
    hint = "mg.asarray(...) makes a tensor" if expect.startswith("a tensor") and isinstance(value, (list, tuple)) else None
    return kind(f"{title}: {name} is not {expect}", expect=expect, actual=got, hint=hint)


# Public functions ----------------------------------------------------------------------------------------------------


def refused(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """Raise the error that names the argument at fault; where there is none, the error itself.

    An error of code that is the user's, which a function calls, stays what it is.
    """
    if not isinstance(error, MinigradError) and not _is_of_users(error):
        found = misfit(function, args, kwargs)
        if found is not None:
            raise found from error
    raise error


def _is_of_users(error: Exception) -> bool:
    """Whether an error comes from code that is neither minigrad's nor what minigrad calls."""
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
    """Check the arguments of what a room shows: of functions when a call fails, of `eager` ones and classes always.

    `quick` are functions that see to their arguments themselves, because they are called a million times.
    """
    for name in names:
        found = room[name]
        if isinstance(found, types.FunctionType):
            if name in quick or hasattr(found, "__wrapped__"):
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
    """Check the arguments with which objects of a class are made, and those of its methods when a call fails."""
    for name, found in list(vars(cls).items()):
        if not isinstance(found, types.FunctionType) or hasattr(found, "__wrapped__") or name in quick:
            continue
        if name == "__init__":
            setattr(cls, name, checked(found))
        elif not name.startswith("_"):
            setattr(cls, name, explained(found))


def explained(function: Any) -> Any:
    """The function, whose failures are explained by its arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ours:
            raise
        except Exception as error:
            refuse(function, args, kwargs, error)

    ours, refuse = MinigradError, refused  # as variables of its own: its globals are those of the function's file
    return _named(call, function)


def checked(function: Any) -> Any:
    """The function, whose arguments are looked at in each call: after its own checks, whose words say more."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except ours:
            raise
        except Exception as error:
            refuse(function, args, kwargs, error)
        wrong = find(function, args, kwargs)
        if wrong is not None:
            raise wrong
        return result

    ours, refuse, find = MinigradError, refused, misfit
    return _named(call, function)


def _named(call: Any, function: Any) -> Any:
    """The call in place of the function: of its name, its file (where examples are looked for) and its signature."""
    made = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.update_wrapper(made, function)
