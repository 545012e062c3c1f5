"""What fits a parameter: a check for each annotation and for each name, with the expectation in words."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import ALL, as_dtype
from ..core.tensor import Tensor
from ..support.words import LEAST, MOST, whole, with_article


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


Check = Callable[[Any], bool]
_PATH = (_is_path, "a path")
_DICTIONARY = (lambda value: isinstance(value, Mapping), "a dictionary")
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
    "Path": _PATH,
    "PathLike": _PATH,
    "Mapping": _DICTIONARY,
    "dict": _DICTIONARY,
    "Iterable": (_is_collection, "a list or anything else to iterate over"),
    "Sequence": (_is_sequence, "a list or a tuple"),
    "list": (_is_sequence, "a list"),
    "tuple": (_is_sequence, "a tuple"),
}
KINDS["FloatTensor"] = KINDS["Tensor"]


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


TENSORS = (lambda value: isinstance(value, Tensor), "a tensor")
_AXES = (_or_none(_is_whole_or_several), "an integer, several, or None")
_WEIGHT = (_or_none(_is_array), "a tensor or None")
_NUMBER = KINDS["float"]
_VALUES = (_is_array, "a number or a tensor")
_SIZES = (_is_whole_or_several, "an integer or several")
# The same for parameters that are annotated as `Any`, by their names.
NAMED: dict[str, tuple[Check, str]] = {
    "dtype": (_is_dtype, "a dtype: " + ", ".join(ALL)),
    "device": (_is_device, "a device or its name, such as 'cpu'"),
    "axis": _AXES,
    "axes": _AXES,
    "shape": _SIZES,
    "path": _PATH,
    "folder": _PATH,
    "fill_value": _NUMBER,
    "start": _NUMBER,
    "stop": (_or_none(_is_number), "a number"),
    "step": _NUMBER,
    "repeats": (_is_list_of_integers, "an integer, or one for each element"),
    "repetitions": _SIZES,
    "shift": (lambda value: isinstance(value, tuple) or whole(value) is not None, "an integer or a tuple of them"),
    "q": (_is_list_of_numbers, "numbers from 0 to 1"),
    "widths": (_is_list_of_integers, "an integer, a pair, or a pair for each dimension"),
    "size": _SIZES,
    "stride": (_or_none(_is_whole_or_several), "an integer or several"),
    "dilation": _SIZES,
    "output_padding": _SIZES,
    "padding": (lambda value: isinstance(value, str) or _is_whole_or_several(value), "integers, 'same' or 'valid'"),
    "indices": (_is_list_of_integers, "integers"),
    "rows": (_is_list_of_numbers, "rows of numbers"),
    "weight": _WEIGHT,
    "pos_weight": _WEIGHT,
    "mean": _VALUES,
    "std": _VALUES,
    "ord": (lambda value: value is None or isinstance(value, (int, float, str)), "a number, 'fro' or None"),
    "activation": (lambda value: isinstance(value, str) or callable(value), "a function or its name"),
    "static": (lambda value: isinstance(value, (int, str)) or _is_collection(value), "numbers or names of arguments"),
    "dataset": (_is_dataset, "a dataset: something with a length, and items by number"),
    "devices": (_is_collection, "names of devices"),
    "when": (_or_none(_is_flag), "True, False or None"),
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
    "tolerance": _NOT_NEGATIVE, "size": _COUNT, "most": _COUNT, "std": _NOT_NEGATIVE,
}


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators outside brackets: a and b[c | d], for `a | b[c | d]` and `|`."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == separator and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


Kind = tuple[Check, str]


def kind_of(annotation: str, name: str, names: Mapping[str, Any]) -> Kind | None:
    """The check of a parameter, and the expectation in words; None if it takes anything."""
    kinds: list[Kind] = []
    for part in _split(annotation, "|"):
        outer, _, inner = part.partition("[")
        stem = outer.rpartition(".")[2].strip("'\"")
        if stem == "Any":
            return NAMED.get(name)
        kind = NAMED["axis"] if stem == "Axis" else KINDS.get(stem) or _named_kind(stem, names)
        if kind is None:
            return None
        listed = inner and stem in ("Sequence", "list", "tuple", "Iterable")
        of_what = _element(inner) if listed else "Any"
        element = TENSORS if of_what == "Tensor" else kind_of(of_what, "", names)
        if element is not None:
            kind = functools.partial(_all_fit, kind[0], element[0]), f"{kind[1]}, each {element[1]}"
        kinds.append(kind)
    return functools.partial(_any_fits, tuple(kinds)), " or ".join(dict.fromkeys(words for _, words in kinds))


def _named_kind(stem: str, names: Mapping[str, Any]) -> Kind | None:
    """The check for a name in an annotation: a class, an alias, or a class imported for types only."""
    found = names.get(stem)
    if isinstance(found, type) and not getattr(found, "_is_protocol", False):
        return lambda value: isinstance(value, found), with_article(stem)
    if isinstance(found, types.UnionType) or hasattr(found, "__origin__"):
        return kind_of(str(found), "", names)
    if found is None and len(stem) > 1:
        return lambda value: _has_class(value, stem), with_article(stem)
    return None


def _element(inner: str) -> str:
    """The annotation of the elements, if it is the same for all; else "Any"."""
    kinds = {*_split(inner.removesuffix("]"), ",")} - {"..."}
    return kinds.pop() if len(kinds) == 1 else "Any"


def _any_fits(kinds: tuple[Kind, ...], value: Any) -> bool:
    return any(check(value) for check, _ in kinds)


def _all_fit(outer: Check, element: Check, value: Any) -> bool:
    if not outer(value):
        return False
    return not hasattr(value, "__len__") or all(element(v) for v in value)


def within(limit: Limit, value: Any) -> bool:
    """Whether a number, or each of several, is within limits; True for other values."""
    if isinstance(value, (tuple, list)):
        return all(within(limit, each) for each in value)
    return not isinstance(value, (int, float)) or limit[0] <= value <= limit[1]
