"""Interoperation with NumPy and other libraries: NumPy's functions on tensors, DLPack, pickle and copies.

`np.exp(t)` and `np.concatenate([t, a])` call our functions: they return tensors, and gradients flow through them.  A
function without a counterpart here raises an error, so no tensor loses its history silently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.clock import mark_shared
from ..core.tensor import Tensor, as_tensor, contiguous_base, host_value, method, wrap
from ..devices import as_device
from ..support.errors import ConversionError
from ..support.table import counted

__all__ = ["from_dlpack"]

# NumPy's functions ----------------------------------------------------------------------------------------------------

# Universal functions whose names differ from ours; the others are looked up by name.
UFUNCS = {
    "absolute": "abs", "fabs": "abs", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "power": "pow", "float_power": "pow", "rint": "round",
    "invert": "bitwise_invert", "conjugate": "conj",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}

# A row for each of NumPy's other functions: its name and, after a colon, ours if it differs; then the parameters passed
# by position; after the bar those passed by name (ours after a colon) and, with a minus, those without a counterpart.
FUNCTIONS = """
    sum                     x | axis dtype -out keepdims
    prod                    x | axis dtype -out keepdims
    cumsum:cumulative_sum   x | axis dtype -out
    cumprod:cumulative_prod x | axis dtype -out
    cumulative_sum          x | axis dtype -out include_initial
    cumulative_prod         x | axis dtype -out include_initial
    mean                    x | axis -dtype -out keepdims
    nansum                  x | axis -dtype -out keepdims
    nanmean                 x | axis -dtype -out keepdims
    var                     x | axis -dtype -out ddof:correction keepdims correction
    std                     x | axis -dtype -out ddof:correction keepdims correction
    max                     x | axis -out keepdims
    amax:max                x | axis -out keepdims
    min                     x | axis -out keepdims
    amin:min                x | axis -out keepdims
    argmax                  x | axis -out keepdims
    argmin                  x | axis -out keepdims
    all                     x | axis -out keepdims
    any                     x | axis -out keepdims
    count_nonzero           x | axis keepdims
    clip                    x | a_min:min a_max:max -out min max
    round                   x | decimals -out
    around:round            x | decimals -out
    reshape                 x shape | -order -copy
    ravel:flatten           x | -order
    transpose:permute_dims  x | axes
    permute_dims            x | axes
    matrix_transpose        x |
    swapaxes                x axis1 axis2 |
    moveaxis                x source destination |
    squeeze                 x | axis
    expand_dims             x axis |
    broadcast_to            x shape | -subok
    meshgrid                * | indexing -copy -sparse
    flip                    x | axis
    roll                    x shift | axis
    tile                    x repetitions |
    repeat                  x repeats | axis
    take                    x indices | axis -out -mode
    take_along_axis         x indices | axis
    sort                    x | axis -kind -order -stable
    argsort                 x | axis -kind -order -stable
    searchsorted            x values | side sorter
    nonzero                 x |
    diff                    x | n axis prepend append
    median                  x | axis -out -overwrite_input keepdims
    quantile                x q | axis -out -overwrite_input -method keepdims
    interp                  x xp fp | -left -right -period
    pad                     x pad_width | mode constant_values:value
    diag                    x | k
    tril                    x | k
    triu                    x | k
    split                   x sections | axis
    unstack                 x | axis
    concatenate:concat      tensors | axis -out
    concat                  tensors | axis -out
    stack                   tensors | axis -out
    where                   condition x y |
    copy                    x | -order -subok
    astype                  x dtype | copy
    zeros_like              x | dtype -order -subok
    ones_like               x | dtype -order -subok
    empty_like              x | dtype -order -subok
    full_like               x value | dtype -order -subok
    isfinite                x |
    dot:matmul              x y | -out
    outer                   x y | -out
    kron                    x y |
    tensordot               x y | axes
    einsum                  * | -out -optimize
    linalg.norm             x | ord axis keepdims
    linalg.inv              x |
    linalg.det              x |
    linalg.solve            x y |
    linalg.cholesky         x |
    linalg.eigh             x | -UPLO
    linalg.eigvalsh         x | -UPLO
    linalg.svd              x | full_matrices -compute_uv
    linalg.qr               x | mode
    linalg.pinv             x | rtol
    linalg.matrix_rank      x | rtol
    linalg.matrix_power     x n |
    linalg.cross            x y | axis
    linalg.lstsq            x y | rcond:rtol
"""

COMPOSED: dict[str, Callable[..., Any]] = {}  # NumPy's functions that `numpy_functions` composes, by name

# Functions of values, without gradients: NumPy computes them from a copy.
QUESTIONS = {
    "allclose", "isclose", "array_equal", "array_equiv", "array2string", "array_repr", "array_str",
    "shape", "ndim", "size",
}
REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}
SAYS_NOTHING = (False, True, 0, "C", "K", "A", "raise", "stable", "quicksort", "linear")


class Counterpart:
    """The name of our counterpart of a NumPy function, and its parameters."""

    def __init__(self, row: str) -> None:
        names, *parameters = row.split()
        self.theirs, _, ours = names.partition(":")
        self.ours = ours or self.theirs
        bar = parameters.index("|")
        self.leading, named = parameters[:bar], parameters[bar + 1 :]
        self.order = [*self.leading, *[p.lstrip("-").partition(":")[0] for p in named]]
        self.kept = {p.partition(":")[0]: p.partition(":")[2] or p for p in named if p[0] != "-"}
        self.ignored = {p[1:] for p in named if p[0] == "-"}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = find_ours(self.ours, f"np.{self.theirs}")
        if self.leading == ["*"]:
            leading, given = list(args), kwargs
        else:
            given = dict(zip(self.order, args)) | kwargs
            leading = [given.pop(name) for name in self.leading if name in given]
            if len(leading) < len(self.leading) or len(args) > len(self.order):
                raise no_counterpart(f"np.{self.theirs} with {counted(len(args), 'argument')}")
        passed_on = {}
        for name, value in given.items():
            if value is np._NoValue:
                continue
            if name in self.kept:
                passed_on[self.kept[name]] = value
            elif not (value is None or (name in self.ignored and _says_nothing(value))):
                raise no_counterpart(f"np.{self.theirs} with {name}=")
        return function(*leading, **passed_on)


def _says_nothing(value: Any) -> bool:
    """Whether an argument of a NumPy function is the behaviour here anyway."""
    return isinstance(value, (bool, int, str)) and value in SAYS_NOTHING


COUNTERPARTS = {c.theirs: c for c in map(Counterpart, FUNCTIONS.strip().splitlines())}


def find_ours(name: str, theirs: str) -> Callable[..., Any]:
    """The function of minigrad that is the counterpart of a NumPy function."""
    found: Any = sys.modules[__name__.partition(".")[0]]
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise no_counterpart(theirs)
    return found  # type: ignore[no-any-return]


def no_counterpart(what: str) -> ConversionError:
    """The error for a NumPy feature that minigrad lacks."""
    why = ", because there are no complex numbers yet" if what.startswith("np.fft") else ""
    return ConversionError(
        f"{what} has no counterpart for tensors{why}",
        hint="a function of mg, or NumPy on the values: x.detach().numpy() (through which no gradient flows)",
    )


def _as_tensors(items: Iterable[Any], device: Any) -> list[Any]:
    """The value with NumPy's arrays, also in lists, converted to tensors on a device."""
    converted: list[Any] = []
    for item in items:
        if isinstance(item, np.ndarray):
            converted.append(as_tensor(item, device))
        elif isinstance(item, (list, tuple)):
            converted.append(type(item)(_as_tensors(item, device)) if type(item) in (list, tuple) else item)
        else:
            converted.append(item)
    return converted


@method
def __array_ufunc__(x: Tensor, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    name = ufunc.__name__
    if how != "__call__":
        hint = f"mg.{REDUCTIONS[name]}" if how == "reduce" and name in REDUCTIONS else "a function of mg"
        raise ConversionError(f"np.{name}.{how} has no counterpart for tensors", hint=hint)
    if kwargs:
        given = ", ".join(f"{k}=" for k in kwargs)
        raise ConversionError(
            f"np.{name} with {given} has no counterpart for tensors",
            hint="a = a + t gives a tensor; a += t.detach().numpy() changes the array, without gradients; "
            "for p.data -= t: `with mg.no_grad(): p -= t`",
        )
    function = find_ours(UFUNCS.get(name, name), f"np.{name}")
    return function(*_as_tensors(inputs, x.device))


@method
def __array_function__(x: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    module = function.__module__.removeprefix("numpy").removeprefix(".")
    name = f"{module}.{function.__name__}" if module else function.__name__
    if name in QUESTIONS:
        return function(*[_for_numpy(a) for a in args], **{k: _for_numpy(v) for k, v in kwargs.items()})
    counterpart = COUNTERPARTS.get(name) or COMPOSED.get(name)
    if counterpart is None:
        raise no_counterpart(f"np.{name}")
    named = dict(zip(kwargs, _as_tensors(kwargs.values(), x.device)))
    return counterpart(*_as_tensors(args, x.device), **named)


def _for_numpy(value: Any) -> Any:
    return value.detach().numpy_copy() if value.__class__ is Tensor else value


@method
def __array__(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    if x.tracked:
        raise ConversionError(
            "NumPy makes an array of a tensor that requires a gradient, which would silently lose the history",
            hint="np.stack([x, y]) in place of np.array([x, y]); x.detach().numpy() if no gradient is wanted",
        )
    if copy is False:
        array = x.numpy()
        if dtype is not None and array.dtype != dtype:
            raise ConversionError(f"an array of {dtype} from a tensor of {x.dtype} takes a copy", hint="copy=None")
        return array
    array = x.numpy_copy()
    return array if dtype is None else array.astype(dtype, copy=False)


# DLPack ---------------------------------------------------------------------------------------------------------------

CPU_MEMORY, CUDA_MEMORY = 1, 2  # DLPack's numbers for kinds of devices
NUMPY_TAKES_WISHES = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # NumPy 2.0 exports as it is, and imports read-only


@method
def __dlpack__(
    x: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """The memory for another library: exported read-only, because its writes would not be noticed here.

    A library that cannot take read-only memory gets a copy; with `copy=False` it gets the memory, and can write to it.
    (PyTorch takes the memory and ignores the read-only flag.)  Such writes have no effect on gradients.
    """
    if x.tracked:
        raise ConversionError(
            "DLPack from a tensor that requires a gradient would silently lose the history", hint="x.detach()"
        )
    contiguous_base(x)
    data = host_value(x, "DLPack")
    wishes = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {k: v for k, v in wishes.items() if v is not None}
    readable = data
    if isinstance(data, np.ndarray) and not copy:
        readable = data.view()
        readable.flags.writeable = False
        if not _takes_read_only(readable, max_version):
            readable = data.copy() if copy is None else data
        if np.may_share_memory(readable, data):
            mark_shared(data)
    if isinstance(data, np.ndarray) and not NUMPY_TAKES_WISHES:
        if dl_device is not None and dl_device[0] != CPU_MEMORY:
            raise BufferError(f"DLPack: NumPy {np.__version__} exports to the CPU only, of a tensor on {x.device}")
        readable, given = data.copy() if copy else readable, {}
    try:
        try:
            return readable.__dlpack__(**given)
        except TypeError:  # an older CuPy lacks the parameter; ignoring the version is allowed
            given.pop("max_version", None)
            return readable.__dlpack__(**given)
    except (BufferError, ValueError, TypeError) as error:
        raise BufferError(f"DLPack: {error}, of a tensor on {x.device}") from error


def _takes_read_only(array: Any, max_version: Any) -> bool:
    """Whether the reader, and NumPy (from 2.1 on), support a version of DLPack with read-only memory."""
    if max_version is None or not NUMPY_TAKES_WISHES:
        return False
    try:
        array.__dlpack__(max_version=max_version)
    except BufferError:
        return False
    return True


@method
def __dlpack_device__(x: Tensor) -> tuple[int, int]:
    return host_value(x, "DLPack").__dlpack_device__()  # type: ignore[no-any-return]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor from another library's array: a copy, or with `copy=False` the same memory, where writes are shared.

    >>> import numpy as np
    >>> a = np.ones(2)
    >>> shared = mg.from_dlpack(a, copy=False)
    >>> a[0] = 5
    >>> shared.tolist(), mg.from_dlpack(a).dtype
    ([5.0, 1.0], dtype('float64'))
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ConversionError(f"from_dlpack: {type(x).__name__} does not support DLPack", hint="mg.asarray(...)")
    place, number = x.__dlpack_device__()
    if place == CUDA_MEMORY:
        import cupy as library

        source = as_device(f"cuda:{number}")
    else:
        library, source = np, as_device("cpu")  # NumPy raises an error for other devices
    target = as_device(device) if device is not None else x.device if x.__class__ is Tensor else source
    try:
        array = library.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ConversionError(f"from_dlpack: {error}") from error
    if array.dtype.name not in dtypes.ALL:
        raise dtypes.unknown_dtype(array.dtype, "from_dlpack: ")
    if copy is False:
        if target.ndarray is not source.ndarray:
            raise ConversionError(f"from_dlpack(copy=False): from {source} to {target} takes a copy")
        mark_shared(array)
        return wrap(array, target)
    return wrap(target.receive(array.copy(), source), target)


# Pickle and copies ----------------------------------------------------------------------------------------------------


def _restored(array: Any, device: str, requires_grad: bool) -> Tensor:
    where_to = as_device(device)
    ours = array.view(dtypes.ALL[array.dtype.name])  # an unpickled dtype is equal to ours but another object
    tensor = wrap(where_to.from_numpy(ours), where_to)
    tensor.requires_grad = requires_grad
    return tensor


def _check_leaf(x: Tensor, what: str) -> None:
    if not x.is_leaf:
        raise ConversionError(
            f"{what} of a tensor that an operation made would silently lose its history",
            hint="x.detach() for its values; x.copy() is an operation, through which gradients flow",
        )


@method
def __reduce__(x: Tensor) -> Any:
    _check_leaf(x, "pickle")
    return _restored, (x.numpy_copy(), x.device.name, x.requires_grad)


@method
def __copy__(x: Tensor) -> Tensor:
    _check_leaf(x, "copy.copy")
    host_value(x, "copy.copy")
    tensor = wrap(x._data.copy(), x.device)
    tensor.requires_grad = x.requires_grad
    return tensor


@method
def __deepcopy__(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """Like `copy.copy`, with the gradient; a tensor that occurs twice is one tensor in the copy."""
    tensor = memo[id(x)] = __copy__(x)
    if x.grad is not None:
        tensor.grad = __copy__(x.grad)
    return tensor
