"""NumPy's arrays in place of tensors: transformations take them, and return arrays for arrays.

`scipy.optimize.minimize(mg.value_and_grad(f), x0, jac=True)` calls a function with arrays and needs arrays.  So a
derivative by arrays, with no tensor beside them, is an array in the arrays' own dtype.  A result through which
gradients can still flow stays a tensor, because an array would silently lose its history.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..core.mode import current_mode
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..ops.creation import asarray
from ..support.words import too_deep

T = TypeVar("T")
ARRAYS = np.ndarray, np.generic


def with_tensors(argument: Any, kinds: tuple[type, ...] = (float, *ARRAYS)) -> Any:
    """An argument with a tensor for each array or Python float, or what `kinds` names; a module's numbers stay numbers.

    >>> with_tensors({"w": 2.0, "names": ("a", 3)})
    {'w': Tensor(2., shape=(), dtype=float32, device=cpu), 'names': ('a', 3)}
    """
    if isinstance(argument, kinds):
        return asarray(argument)
    try:
        if argument.__class__ is dict:
            return {key: with_tensors(value, kinds) for key, value in argument.items()}
        if argument.__class__ in (tuple, list):
            return argument.__class__([with_tensors(value, kinds) for value in argument])
        return argument
    except RecursionError as error:
        raise too_deep("an argument", argument, error) from None


def are_arrays(arguments: Any) -> bool:
    """Whether arguments hold arrays of NumPy and no tensors; in a trace, a tensor may stand for an array."""
    parts, stand_for_arrays = flatten(arguments, ARRAYS)[0], current_mode().state.arrays or ()
    return bool(parts) and all(part.__class__ is not Tensor or id(part) in stand_for_arrays for part in parts)


def handed_back(result: T, as_arrays: bool) -> T:
    """A result, with arrays in place of tensors if the arguments were arrays.

    >>> handed_back({"w": mg.ones(2)}, as_arrays=True)
    {'w': array([1., 1.], dtype=float32)}
    """
    if not as_arrays:
        return result
    parts, rebuild = flatten(result)
    found: T = rebuild([_array(part) for part in parts])
    return found


def _array(tensor: Tensor) -> Any:
    """The values as NumPy's functions return them; the tensor itself if it has a history, or no values yet."""
    if tensor.tracked:
        return tensor
    data = tensor._data
    if data.__class__ is not tensor.device.ndarray:
        data = data.evaluated()
    if data.__class__ is tensor.device.ndarray:
        return tensor.numpy_copy()[()]
    arrays = current_mode().state.arrays
    if arrays is not None:
        arrays[id(tensor)] = tensor
    return tensor
