"""`Tensor`: a thin, mutable handle on data and the node that made it.

The methods that compute (`x.sum()`, `x + y`, `x[1:]`) are functions of `ops`: the decorator `@method` adds them to the
class.  `tensor.pyi` lists them all for readers and type checkers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from ..support.errors import (
    ConversionError,
    DeviceError,
    DtypeError,
    GradError,
    GradientWarning,
    MutationError,
    TraceError,
    warn_once,
)
from ..support.interrupts import all_or_none
from ..support.source import show
from ..support.words import a_type
from . import dtypes
from .absent import TensorNames
from .mode import current_mode
from .node import Leaf
from .state import PYTHON_STATE

F = TypeVar("F", bound=Callable[..., Any])
NUMBERS = frozenset((int, float, bool))

# Hints for code that needs a value that is not computed yet: in `if` and `while`, as a number, an array or an index.
BRANCHES = "mg.where, mg.cond, or @mg.script, which lets `if` and loops depend on tensors; or do this outside"
AS_NUMBER = "compute with the tensor itself; mg.print(x) shows the number once it is computed; or do this outside"
AS_ARRAY = (
    "the function of mg in place of NumPy's, and mg.asarray(array)[x] in place of array[x]; or return the tensor and "
    "convert it outside"
)
AS_INDEX = "x[i] and mg.take(x, i) take a tensor; a shape or a number of rounds is a Python number"
NONZERO = "nonzero (or a boolean mask), whose result's shape depends on values,"
ADVICE = {
    "float()": AS_NUMBER, "int()": AS_NUMBER, "complex()": AS_NUMBER, "item()": AS_NUMBER, "tolist()": AS_NUMBER,
    "format()": AS_NUMBER, "numpy()": AS_ARRAY, "numpy_copy()": AS_ARRAY, "data": AS_ARRAY, "DLPack": AS_ARRAY,
    "an index": AS_INDEX, "copy.copy": "x.copy(), which is an operation like others",
    NONZERO: "mg.where(mask, x, 0) keeps the shape; or do this outside",
}


class Tensor(TensorNames):
    """An array on a device, and the node that made it.  Make one with `mg.asarray`.

    `_data`    the raw array of NumPy or CuPy, or `AbstractData` while a computation is recorded or batched
    `device`   the device of the array
    `node`     the node that made it; None until an operation records the tensor, if only as a constant input
    `tracked`  whether gradients flow through it
    `alias`    the memory that it shares, once it was viewed or written; else None
    """

    __slots__ = ("__weakref__", "_data", "_grad", "alias", "device", "node", "tracked")
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ConversionError("Tensor is not called to make a tensor", hint="mg.asarray(data, dtype=mg.float32)")

    def __init_subclass__(cls) -> None:
        raise TypeError("Tensor has no subclasses: store tensors in an object of your own, or in an nn.Module")

    # what it is.  First reader: skip to `requires_grad`, then to `wrap` ---------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> Any:
        return self._data.dtype

    @property
    def ndim(self) -> int:
        return len(self._data.shape)

    @property
    def size(self) -> int:
        return prod(self._data.shape)

    @property
    def nbytes(self) -> int:
        """The size of its elements in bytes."""
        return self.size * self._data.dtype.itemsize

    def __len__(self) -> int:
        if not self._data.shape:
            raise ConversionError("len() of a tensor without dimensions", hint="x.ndim is 0; x.size is 1")
        return self._data.shape[0]

    def __iter__(self) -> Any:
        if not self._data.shape:
            raise ConversionError("iteration over a tensor without dimensions", hint="x.item() gives its number")
        return (self[i] for i in range(self._data.shape[0]))

    # gradients ------------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it.  True makes the tensor a leaf, whose `.grad` backward fills."""
        return self.tracked

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == self.tracked:
            return
        if self.tracked and not self.is_leaf:
            raise GradError(
                "requires_grad can be switched off for leaves only, and an operation made this tensor",
                hint="y = x.detach() has the same values without the history",
            )
        if value and self._data.dtype.kind != "f":
            raise DtypeError(
                f"only floats can require a gradient, and this tensor is {self._data.dtype}",
                hint="x.astype(mg.float32)",
            )
        node = Leaf(self) if value else None

        def writes() -> None:
            self.node, self.tracked = node, bool(value)
            if value and self.alias is not None and self.alias.base is not None:
                self.alias.linked = False  # the memory stays, but a new history begins

        all_or_none(writes)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        return not self.tracked or self.node.op is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` computed; None before that."""
        state = current_mode().state
        return self._grad if state is PYTHON_STATE else state.gradient_of(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and checked_gradient("a gradient", value, self) is not value:
            raise DtypeError(
                f"a gradient has the dtype of its tensor, {self.dtype}",
                actual=f"{value.dtype}", hint=f"g.astype(mg.{self.dtype})",
            )
        current_mode().state.set_gradient(self, value)

    # its values -----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> Any:
        """The raw array on its device, without the history.  It cannot be replaced; writes to it are not recorded.

        >>> import minigrad as mg
        >>> mg.asarray([1.0, 2.0]).data
        array([1., 2.], dtype=float32)
        """
        return host_value(self, "data")

    @data.setter
    def data(self, value: Any) -> None:
        raise MutationError(
            "the data of a tensor cannot be replaced: its views, its history and compiled programs refer to it",
            actual="a change of .data in place, which is done, but is not recorded" if value is self._data
            else f"an assignment of {type(value).__name__} to .data",
            hint="`with mg.no_grad(): x[...] = value` changes the values, and x -= rate * x.grad there is an update",
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """A read-only NumPy array over the same memory: it sees later writes.

        >>> import minigrad as mg
        >>> mg.asarray([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        if self.tracked:
            raise ConversionError(
                "numpy() on a tensor that requires a gradient would silently lose the history",
                hint="x.detach().numpy()",
            )
        contiguous_base(self)
        array = host_array(self, "numpy()").view()
        array.flags.writeable = False
        return array

    def numpy_copy(self) -> np.ndarray[Any, Any]:
        """The values as a new NumPy array, from any device, tracked or not."""
        return np.array(self.device.to_numpy(_taken_out(self, "numpy_copy()")))

    def item(self) -> Any:
        """The one element, as a Python number."""
        if self.size != 1:
            raise ConversionError(
                f"item() needs a tensor of one element, and this one has {self.size}, shape {self.shape}",
                hint="x.tolist(), or x[i].item()",
            )
        return _taken_out(self, "item()").item()

    def tolist(self) -> Any:
        """The values as nested Python lists; `json.dumps(values, default=mg.Tensor.tolist)` writes tensors as lists."""
        return _taken_out(self, "tolist()").tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ConversionError(
                f"the truth of a tensor of {self.size} elements is ambiguous", hint="x.any() or x.all()"
            )
        return bool(host_value(self, "bool()"))

    def __int__(self) -> int:
        return int(_one(self, "int()"))

    def __float__(self) -> float:
        return float(_one(self, "float()"))

    def __complex__(self) -> complex:
        return complex(_one(self, "complex()"))

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iu" or self._data.shape:
            raise ConversionError(
                f"only an integer tensor without dimensions can be an index, not {self.dtype} {self.shape}"
            )
        return int(host_value(self, "an index"))

    def __format__(self, spec: str) -> str:
        if not spec or self.size == 1:
            return format(host_value(self, "format()").item(), spec) if spec else str(self)
        return text_of_values(self, lambda element: format(element, spec))

    def __str__(self) -> str:
        return text_of_values(self)

    def __repr__(self) -> str:
        return describe(self)


def method(function: F) -> F:
    """Add a public operation to `Tensor` as a method of the same name."""
    setattr(Tensor, function.__name__, function)
    return function


new_tensor = Tensor.__new__


def wrap(data: Any, device: Any) -> Tensor:
    """A new tensor with this raw data, without a history."""
    tensor = new_tensor(Tensor)
    tensor._data, tensor.device = data, device
    tensor.node = tensor.alias = tensor._grad = None
    tensor.tracked = False
    return tensor


def checked_gradient(what: str, gradient: Any, like: Any) -> Tensor:
    """The gradient of `like`, a tensor or a node, in its dtype.  Another type, shape or device is an error."""
    if gradient.__class__ is not Tensor:
        raise ConversionError(
            f"{what} is a tensor, not {a_type(gradient)}", hint="mg.asarray(...) makes a tensor"
        )
    if gradient._data.shape != like.shape or gradient.device is not like.device:
        error, same = (GradError, "shape") if gradient.shape != like.shape else (DeviceError, "device")
        node = like.node if isinstance(like, Tensor) else like
        made = f", made at {show(node.where)}," if node is not None and node.where else ""
        raise error(
            f"{what} and its tensor{made} have different {same}s",
            expect=str(getattr(like, same)), actual=str(getattr(gradient, same)),
            hint=f'g.to("{like.device}")' if same == "device" else None,
        )
    return gradient if gradient._data.dtype is like.dtype else gradient.astype(like.dtype)  # type: ignore[attr-defined]


FloatTensor = Tensor  # a parameter that takes bools too, as 0.0 and 1.0: see `arguments.public`


class AbstractData:
    """The data of a tensor that is not an array: it is only recorded, or batched, or has a tangent."""

    __slots__ = ("__weakref__",)
    __array_ufunc__ = None
    size = 1 << 62  # so large that no quick path uses it as an array
    no_value = "not computed yet"
    way_out: str | None = None  # if it differs from the usual hint
    where: Any = None  # the line that made it, if known
    trace: Any = None  # the interpreter that records what is computed from it, if any

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missed(
            TraceError(f"a NumPy function was called on a tensor {self.no_value}", hint="mg's function of that name")
        )

    def detached(self) -> AbstractData:
        """The same data without its histories and tangents."""
        raise NotImplementedError

    def held_by(self, tensor: Tensor) -> None:
        """Called for a new tensor with this data that no operation has made."""

    def evaluated(self) -> Any:
        """The array, if it can be computed now; else this data itself."""
        return self

    def missed(self, error: Exception) -> Exception:
        """Record the error for a missing value, because code that catches it continues with a guess; return it."""
        return error


def contiguous_base(tensor: Tensor) -> None:
    """Make the data C-contiguous, so that aliasing does not depend on the layout that NumPy chose."""
    data = tensor._data
    if tensor.alias is None and data.__class__ is tensor.device.ndarray and not data.flags.c_contiguous:
        tensor._data = tensor.device.contiguous(data)


def host_value(tensor: Tensor, what: str) -> Any:
    """The raw array; an error that says why, if there is none."""
    tensor = current_mode().state.stand_in(tensor)
    data = tensor._data
    if data.__class__ is not tensor.device.ndarray:
        data = data.evaluated()
    if data.__class__ is tensor.device.ndarray:
        tensor.device.settle()
        return data
    made = f", made at {show(tensor.node.where)}" if tensor.node is not None and tensor.node.where else ""
    hint = data.way_out or ADVICE.get(what, BRANCHES)
    raise data.missed(TraceError(f"{what} needs the value of a tensor {data.no_value}{made}", hint=hint))


def host_array(tensor: Tensor, what: str) -> np.ndarray[Any, Any]:
    """The raw array of a tensor on a CPU device, for NumPy."""
    value = host_value(tensor, what)
    if not isinstance(value, np.ndarray):
        raise ConversionError(f"{what} needs memory that the CPU can read, and this tensor is on {tensor.device}",
                              hint='x.to("cpu").numpy()')
    return value


def _one(tensor: Tensor, what: str) -> Any:
    if tensor.size != 1:
        raise ConversionError(
            f"{what} needs a tensor of one element, and this one has {tensor.size}, shape {tensor.shape}"
        )
    return _taken_out(tensor, what).reshape(())


def _taken_out(tensor: Tensor, what: str) -> Any:
    """The raw array, for a result without a history; warns if a gradient is lost."""
    value = host_value(tensor, what)
    if tensor.tracked:
        _warn_of_lost_gradient(tensor, what)
    return value


def _warn_of_lost_gradient(tensor: Tensor, what: str) -> None:
    """Warn, once for each line, if a differentiated function turns a tensor into Python numbers."""
    mode = current_mode()
    if not (mode.grad_inputs and mode.grad) or (tensor.is_leaf and tensor.node not in mode.grad_inputs):
        return
    warn_once(
        f"{what} in a function that is being differentiated: no gradient flows through its result\n"
        "  Hint: a function of mg in place of one of math or NumPy; x.detach() if no gradient is wanted",
        GradientWarning,
    )


def text_of_values(tensor: Tensor, each: Callable[[Any], str] | None = None) -> str:
    """The values as NumPy prints them, or each by the function `each`; or the reason that there are none."""
    data = tensor._data
    if data.__class__ is not tensor.device.ndarray:
        data = getattr(data, "value", None)
        if data is None:
            return f"<{tensor._data.no_value}>"
    tensor.device.settle()
    array, formatter = tensor.device.to_numpy(data), None if each is None else {"all": each}
    return np.array2string(array, separator=", ", threshold=200, edgeitems=3, formatter=formatter)


def describe(tensor: Tensor) -> str:
    """The repr: values, shape, dtype, device, and facts about gradients.

    >>> import minigrad as mg
    >>> mg.asarray([1.0, 2.0])
    Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)
    """
    text = text_of_values(tensor).replace("\n", "\n       ")
    facts = [text, f"shape={tensor.shape}", f"dtype={tensor.dtype}", f"device={tensor.device}"]
    if tensor.tracked:
        facts.append("requires_grad=True" if tensor.node.op is None else f"made_by={tensor.node.op.name}")
    if tensor._grad is not None:
        facts.append("grad=" + text_of_values(tensor._grad).replace("\n", "\n       "))
    return f"Tensor({', '.join(facts)})"


def from_host(array: Any, device: Any, source: Any = None) -> Tensor:
    """A tensor of a NumPy array that no other code changes; `source` is the array that was copied, if any."""
    tensor = wrap(device.from_numpy(array), device)
    return current_mode().state.admitted(tensor, source)


def as_tensor(value: Any, device: Any = None) -> Tensor:
    """The value, if it is a tensor; else a tensor with a copy of it on `device` (the current device if None)."""
    if value.__class__ is Tensor:
        return value
    device = device or default_device()
    if isinstance(value, (np.ndarray, np.generic)):
        return from_host(np.array(value, dtype=dtypes.as_dtype(value.dtype)), device, value)
    if isinstance(value, (int, float)):
        try:
            return from_host(np.array(value, dtype=dtypes.scalar_type(value)), device)
        except OverflowError:
            raise DtypeError(f"the integer {value:.3e} does not fit into {dtypes.default_int}",
                             expect="-2**63 to 2**63 - 1", hint="a float") from None
    raise _foreign(value)


def as_operand(value: Any, first: Any = None) -> Any:
    """An array or a number as a tensor on the device of the first argument; anything else is an error later."""
    known = value.dtype.name in dtypes.ALL if isinstance(value, (np.ndarray, np.generic)) else (
        isinstance(value, (int, float)))
    return as_tensor(value, first.device if first.__class__ is Tensor else None) if known else value


def as_floats(name: str, value: Any, first: Any = None) -> Tensor:
    """A tensor of floats.  Bools become floats, of which the mean is the share of True; integers are an error."""
    x = as_tensor(value, first.device if first.__class__ is Tensor else None)
    kind = x._data.dtype.kind
    if kind in "iu":
        raise DtypeError(f"{name} is for floats, and this tensor is {x.dtype}", hint="x.astype(mg.float32)")
    return x if kind == "f" else x.astype(dtypes.default_float)  # type: ignore[attr-defined, no-any-return]


def _foreign(value: Any) -> Exception:
    """The error for a value that is not a tensor: a tensor of another library would lose its history."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package in ("builtins", "__main__") else f"{package}.{kind.__name__}"
    converts = hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    return ConversionError(
        f"{name} is not a tensor{' of minigrad' * converts}, a number or a NumPy array",
        hint=dtypes.NO_COMPLEX if kind is complex
        else "mg.asarray(x) copies its values into a tensor" if converts else "mg.asarray(...) makes a tensor",
    )


class DEFAULT:
    """The device for new tensors if no other is set: the first CPU device, set by `devices`."""

    device: Any = None


def default_device() -> Any:
    """The device for a new tensor, if the call does not name one."""
    return current_mode().device or DEFAULT.device
