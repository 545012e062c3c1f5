"""What the expressions of `torch.txt` call: PyTorch's meanings where minigrad has no function of the same."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

import minigrad as mg

from ..core import dtypes
from ..core.tensor import contiguous_base, host_array
from .speaking import ours
from .torch_rows import PLAIN, refuse

Keys = namedtuple("Keys", "missing_keys unexpected_keys")
Sorted = namedtuple("Sorted", "values indices")
Extremes = namedtuple("Extremes", "min max")
Decomposed = namedtuple("Decomposed", "U S V")


class Size(tuple):  # type: ignore[type-arg]
    """The result of `x.size()`."""

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


# Arguments ------------------------------------------------------------------------------------------------------------


def sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes as one argument: `(2, 3)` of `f(2, 3)` and of `f((2, 3))`."""
    whole = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    if any(isinstance(each, np.dtype) for each in whole):
        refuse("x.view(dtype)", "mg.bitcast(x, dtype)")
    return tuple([int(each) for each in whole])


def nested(data: Any) -> Any:
    """Lists of numbers in which there may be tensors of one element."""
    if isinstance(data, (list, tuple)):
        return [nested(each) for each in data]
    return data.detach() if isinstance(data, mg.Tensor) and data.tracked else data


def pair(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def pairs(padding: Any) -> Any:
    """Widths of the last dimension first, as pairs of the first dimension first."""
    return tuple(zip(padding[::2], padding[1::2]))[::-1] if isinstance(padding, (tuple, list)) else padding


_TYPES = {float: dtypes.float32, int: dtypes.int64, bool: dtypes.bool}


def dtype_of(dtype: Any) -> Any:
    """A dtype of minigrad: Python's `float` is float32."""
    return _TYPES.get(dtype, dtype) if isinstance(dtype, type) else dtype


def device_of(device: Any) -> Any:
    """A device of minigrad: an integer is the number of a GPU."""
    return f"cuda:{device}" if isinstance(device, int) else device


NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int",
          "int16": "Short", "uint8": "Byte", "int8": "Char", "bool": "Bool"}


def typed_as(kind: Any) -> Any:
    """The dtype of `x.type(torch.FloatTensor)` and `x.type("torch.FloatTensor")`."""
    name = str(getattr(kind, "__name__", kind)).rpartition(".")[2].removesuffix("Tensor")
    return next((getattr(mg, ours) for ours, theirs in NAMES.items() if theirs == name), dtype_of(kind))


def typed(data: tuple[Any, ...], dtype: Any) -> Any:
    """`FloatTensor([1, 2])` has these values, and `FloatTensor(2, 3)` is of this shape."""
    one = list(data[0]) if len(data) == 1 and isinstance(data[0], range) else data[0] if len(data) == 1 else None
    return mg.asarray(nested(one), dtype, copy=True) if isinstance(one, (list, tuple, np.ndarray, mg.Tensor)) else (
        mg.zeros(sizes(data) if data else 0, dtype))


# Values ---------------------------------------------------------------------------------------------------------------


def extreme(reduce: Any, place: Any, pairwise: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    """`max` and `min`: of all, of two tensors, or along an axis with the indices."""
    if dim is None:
        return reduce(x)
    if isinstance(dim, mg.Tensor):
        return pairwise(x, dim)
    indices = place(x, dim, keepdims=True)
    values = mg.take_along_axis(x, indices, dim) if x.ndim else x  # the gradient goes to one element
    return Sorted(values, indices) if keepdim else Sorted(mg.squeeze(values, dim), mg.squeeze(indices, dim))


# Shapes and places ----------------------------------------------------------------------------------------------------


def parts(x: Any, size: Any, dim: int) -> tuple[Any, ...]:
    """Parts of a size, or of several sizes: minigrad counts the parts."""
    length = x.shape[dim]
    each = [min(size, length - start) for start in range(0, length, size)] if isinstance(size, int) else list(size)
    if sum(each) != length:
        raise mg.ShapeError(f"split: the sizes {each} do not add up to {length}, the length of dimension {dim}")
    ends = np.cumsum(each).tolist()
    before = [slice(None)] * (dim % x.ndim)
    return tuple([x[(*before, slice(end - n, end))] for n, end in zip(each, ends)])


def moved(x: Any, *targets: Any) -> Any:
    """`x.to(...)` with devices, dtypes or a tensor that has both."""
    for each in targets:
        each = device_of(dtype_of(each)) if each.__class__ is not bool else None
        if isinstance(each, mg.Tensor):
            x = x.astype(each.dtype).to(each.device)
        elif each is not None:
            x = x.to(each)
    return x


# Writes ---------------------------------------------------------------------------------------------------------------


def array_of(x: Any, force: bool) -> Any:
    """A NumPy array over the same memory, which can be written to."""
    if x.tracked and not force:
        return ours("numpy")(x)  # its error
    x = x.detach()
    contiguous_base(x)
    return host_array(x, "numpy()")


def backward(x: Any, gradient: Any, retain_graph: Any, create_graph: bool) -> None:
    if create_graph:
        refuse("backward(create_graph=True)", "torch.autograd.grad(loss, list, create_graph=True)")
    ours("backward")(x, gradient, bool(retain_graph))


def gradients(outputs: Any, inputs: Any, given: Any, retain: Any, create_graph: bool, unused: Any) -> tuple[Any, ...]:
    inputs = [inputs] if isinstance(inputs, mg.Tensor) else list(inputs)
    if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
        (outputs,) = outputs
    if isinstance(outputs, mg.Tensor) and isinstance(given, (list, tuple)):
        (given,) = given
    return tuple(mg.gradients(outputs, inputs, given, create_graph, retain, bool(unused)))


def pulled_back(function: Any, inputs: Any, v: Any) -> tuple[Any, Any]:
    """The result, and the gradient of each input for the gradient `v` of the result."""
    out, back = mg.vjp(function, *([inputs] if isinstance(inputs, mg.Tensor) else inputs))
    found = back(mg.ones_like(out) if v is None else v)
    return out, found[0] if isinstance(inputs, mg.Tensor) and isinstance(found, tuple) else found


# Networks -------------------------------------------------------------------------------------------------------------


def alike(x: Any, y: Any, name: str) -> tuple[Any, Any]:
    """The two inputs of a loss; PyTorch warns where shapes differ, and goes on with a sum that is rarely meant."""
    if isinstance(y, mg.Tensor) and x.shape != y.shape:
        raise mg.ShapeError(f"{name}: the shapes {x.shape} and {y.shape} differ: PyTorch warns here, and broadcasts",
                            hint="target.view_as(input)")
    return x, y


def layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The norm over the last dimensions."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(shape) == 1:
        return mg.layer_norm(x, weight, bias, -1, eps)
    weight, bias = [each if each is None else mg.flatten(each) for each in (weight, bias)]
    return mg.reshape(mg.layer_norm(mg.reshape(x, (*x.shape[:-len(shape)], -1)), weight, bias, -1, eps), x.shape)


def adaptive_max(x: Any, size: Any) -> Any:
    """The largest elements of parts of equal size, of which `size` cover the image."""
    extents = x.shape[2:]
    wanted = [e if s is None else s for e, s in zip(extents, pair(size))]
    if any(e % s for e, s in zip(extents, wanted)):
        refuse(f"adaptive max pooling of {extents} to {tuple(wanted)}", "sizes that divide those of the image")
    windows = [n for e, s in zip(extents, wanted) for n in (s, e // s)]
    axes = tuple(range(3, 3 + 2 * len(extents), 2))
    return mg.max(mg.reshape(x, (*x.shape[:2], *windows)), axes)


def padded(x: Any, pad: Any, mode: str, value: Any) -> Any:
    """The last dimension first; negative widths cut."""
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + list(pairs(list(pad)))
    cut = tuple([slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths)])
    x, widths = x[cut], [(max(0, a), max(0, b)) for a, b in widths]
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return mg.pad(x, widths, **({"value": value or 0.0} if mode == "constant" else {"mode": mode}))


def attended(
    self: Any, base: Any, inputs: Any, padding: Any, weights: bool, mask: Any, average: bool, causal: bool,
) -> Any:
    """`nn.MultiheadAttention`: the result and the weights, averaged over the heads."""
    if inputs[0].ndim == 2:
        refuse("nn.MultiheadAttention without a dimension for the examples", "x.unsqueeze(0) with batch_first=True")
    out, seen = base.forward(self, *inputs, PLAIN["kept"](mask, self.heads), causal and mask is None,
                             need_weights=True, key_padding_mask=padding)
    return out, None if not weights else mg.mean(seen, 1) if average else seen


# Training -------------------------------------------------------------------------------------------------------------


def given(params: Any) -> Any:
    """The parameters of an optimizer: `named_parameters()` are taken too."""
    whole = [params] if isinstance(params, mg.Tensor) else list(params)
    return [each[1] if isinstance(each, tuple) else given_group(each) if isinstance(each, dict) else each
            for each in whole]


def given_group(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "params": given(group["params"])}


def module_moved(module: Any, targets: tuple[Any, ...]) -> Any:
    for each in targets:
        if each is not None and each.__class__ is not bool:
            mg.nn.Module.to(module, each)
    return module


def unpacked(vector: Any, parameters: Any) -> None:
    at = 0
    with mg.no_grad():
        for each in parameters:
            each[...] = mg.reshape(vector[at:at + each.size], each.shape)
            at += each.size


def save(obj: Any, f: Any) -> None:
    import pickle

    with (open(f, "wb") if isinstance(f, (str, bytes)) or hasattr(f, "__fspath__") else f) as file:
        pickle.dump(obj, file)
