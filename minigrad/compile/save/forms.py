"""The forms that the inputs and attributes of a node in a file may have.

`infer` finds the shape and dtype of a result.  It relies on attributes that public functions made: numbers of the right
type, axes that exist, no dimension twice.  A file may hold anything.  So this table has a check for each attribute of
each primitive, and a primitive that is not in the table cannot be in a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.node import Node
from ...core.primitive import P, Primitive
from ...devices import Device
from ...ops.view import dummy
from ...support.words import shown
from ..functions.function import Function
from .codec import ProgramError

Attrs = dict[str, Any]
Form = Callable[[Any, Any, Attrs], bool]  # of the attribute's value, the first input and all attributes
LARGEST = 1 << 48  # elements: indices in machine code have 64 bits
DEEPEST = 64  # dimensions that a NumPy array can have
TAKE_NUMBERS = ("put", "scatter_add", "scatter_max")  # in place of their second tensor


def is_integer(value: Any, low: int = 0, high: int = LARGEST) -> bool:
    """Whether a value is an int, and no bool, from `low` to `high` - 1.

    >>> is_integer(3), is_integer(True), is_integer(-1), is_integer(3.0)
    (True, False, False, False)
    """
    return value.__class__ is int and low <= value < high


def is_shape(value: Any) -> bool:
    """Whether a value is a shape that an array can have, with 0 counted as 1 in its number of elements."""
    sized = value.__class__ is tuple and len(value) <= DEEPEST and all(map(is_integer, value))
    return sized and math.prod([max(1, size) for size in value]) < LARGEST


def is_dtype(value: Any) -> bool:
    """Whether a value is one of the dtypes."""
    return isinstance(value, np.dtype) and value.name in dtypes.ALL


def is_number(value: Any) -> bool:
    """Whether a value is a bool, a float, or an int of 64 bits."""
    return value.__class__ in (bool, float) or is_integer(value, -(1 << 63), 1 << 63)


def _of(test: Callable[[Any], bool]) -> Form:
    """A form that depends on nothing but the value."""
    return lambda value, x, attrs: test(value)


SHAPE, SIZE, DTYPE, NUMBER = _of(is_shape), _of(is_integer), _of(is_dtype), _of(is_number)
FINITE = _of(lambda value: is_number(value) and math.isfinite(value))
FLAG = _of(lambda value: value.__class__ is bool)
ROUNDS = _of(lambda value: is_integer(value, 0, 1 << 62))
DEVICE = _of(lambda value: isinstance(value, Device) and value.hosted)
FUNCTION = _of(lambda value: isinstance(value, Function))
NO_DRAWS = _of(lambda value: value == ())


def _axis(value: Any, x: Any, attrs: Attrs) -> bool:
    return is_integer(value, 0, len(x.shape))


def _axes(value: Any, x: Any, attrs: Attrs) -> bool:
    each = value.__class__ is tuple and all(_axis(axis, x, attrs) for axis in value)
    return each and len(set(value)) == len(value)


def _order(value: Any, x: Any, attrs: Attrs) -> bool:
    return _axes(value, x, attrs) and len(value) == len(x.shape)


def _wider(value: Any, x: Any, attrs: Attrs) -> bool:
    """A shape that the input's broadcasts to."""
    fits = is_shape(value) and len(value) >= len(x.shape)
    return fits and all(a in (1, b) for a, b in zip(x.shape[::-1], value[::-1]))


def _index(value: Any, x: Any, attrs: Attrs) -> bool:
    each = value.__class__ is tuple and len(value) <= 2 * DEEPEST and all(map(_is_basic, value))
    return each and len([part for part in value if part is Ellipsis]) == 1


def _is_basic(part: Any) -> bool:
    """Whether a part of an index is an integer, a slice of integers, `...` or None."""
    if part.__class__ is slice:
        return all(n is None or is_integer(n, -LARGEST) for n in (part.start, part.stop, part.step)) and part.step != 0
    return part is None or part is Ellipsis or is_integer(part, -LARGEST)


def _placed(value: Any, x: Any, attrs: Attrs) -> bool:
    """A place, in zeros of the attribute `shape`, with the input's shape."""
    shape = attrs.get("shape")
    return _index(value, x, attrs) and is_shape(shape) and dummy(shape, x.dtype)[value].shape == x.shape  # type: ignore[arg-type]


def _total(value: Any, x: Any, attrs: Attrs) -> bool:
    """The dtype of a sum: that of the input, or one that holds it."""
    if value is None:
        return x.dtype.kind != "b"  # type: ignore[no-any-return]
    return is_dtype(value) and (value.kind == "f" or (value.kind != "b" and x.dtype.kind != "f"))


def _count(value: Any, x: Any, attrs: Attrs) -> bool:
    """How many positions of the dimension `axis`."""
    axis = attrs.get("axis")
    return value is None or (_axis(axis, x, attrs) and is_integer(value, 0, x.shape[axis] + 1))


def _part(value: Any, x: Any, attrs: Attrs) -> bool:
    return isinstance(x.dtype, tuple) and is_integer(value, 0, len(x.dtype))


def _steps(value: Any, x: Any, attrs: Attrs) -> bool:
    """A size, a stride or a dilation for each axis of windows."""
    axes = attrs.get("axis")
    each = value.__class__ is tuple and axes.__class__ is tuple and len(value) == len(axes)  # type: ignore[arg-type]
    return each and all(is_integer(step, 1) for step in value)


def _axes_of_sum(value: Any, x: Any, attrs: Attrs) -> bool:
    """The axes of windows in the attribute `shape`."""
    shape = attrs.get("shape")
    return is_shape(shape) and _axes(value, dummy(shape, x.dtype), attrs)  # type: ignore[arg-type]


def _chain(value: Any, x: Any, attrs: Attrs) -> bool:
    """View operations one after the other, each of which is checked like a node."""
    if value.__class__ is not tuple:
        return False
    for step in value:
        if step.__class__ is not tuple or len(step) != 2 or step[0] not in (P.slice, P.permute_dims, P.reshape):
            return False
        check_attributes(step[0], (x,), step[1])
        x = dummy(step[0].infer(x, **step[1])[0], x.dtype)
    return True


def _limit(value: Any, x: Any, attrs: Attrs) -> bool:
    """The most rounds of a loop, which must be known if it keeps the values of each."""
    return ROUNDS(value, x, attrs) or (value is None and attrs.get("keep") is False)


TOTAL: dict[str, Form] = {"axis": _axes, "keepdims": FLAG, "dtype": _total}
RUNNING: dict[str, Form] = {"axis": _axis, "dtype": _total}
SORTED: dict[str, Form] = {"axis": _axis, "descending": FLAG}
FORMS: dict[str, dict[str, Form]] = {
    **{name: {} for name in ("gather", "scatter_add", "scatter_max", "matmul", "solve", "cholesky", "slogdet", "eigh")},
    "svd": {}, "pinv": {}, "qr": {"complete": FLAG},
    "astype": {"dtype": DTYPE}, "bitcast": {"dtype": DTYPE},
    "reshape": {"shape": SHAPE}, "permute_dims": {"axes": _order}, "broadcast_to": {"shape": _wider},
    "slice": {"index": _index}, "windows": {"axis": _axes, "size": _steps, "stride": _steps, "dilation": _steps},
    "concat": {"axis": _axis}, "put": {"chain": _chain}, "place": {"shape": SHAPE, "index": _placed},
    "overlap_add": {"axis": _axes_of_sum, "stride": _steps, "dilation": _steps, "shape": SHAPE},
    "sum": TOTAL, "prod": TOTAL, "max": {"axis": _axes, "keepdims": FLAG}, "min": {"axis": _axes, "keepdims": FLAG},
    "argmax": {"axis": _axis}, "argmin": {"axis": _axis}, "cumulative_sum": RUNNING, "cumulative_prod": RUNNING,
    "sort": SORTED, "argsort": {**SORTED, "count": _count},
    "full": {"shape": SHAPE, "value": NUMBER, "dtype": DTYPE, "device": DEVICE},
    "arange": {"start": FINITE, "step": FINITE, "count": SIZE, "dtype": DTYPE, "device": DEVICE},
    "project": {"index": _part}, "to_device": {"source": lambda value, x, attrs: value is x.device, "device": DEVICE},
    "cond": {"then": FUNCTION, "otherwise": FUNCTION, "draws": NO_DRAWS},
    "while_loop": {"condition": FUNCTION, "body": FUNCTION, "consts": SIZE, "limit": _limit, "keep": FLAG},
    "scan": {
        "body": FUNCTION, "consts": SIZE, "carries": SIZE, "length": ROUNDS, "reverse": FLAG, "counted": FLAG,
        "keep": FLAG, "draws": NO_DRAWS,
    },
}


def check_node(op: Primitive, inputs: tuple[Any, ...], attrs: Attrs) -> None:
    """Refuse inputs and attributes that no operation of a trace has."""
    several = op.inputs[-1:] != () and op.inputs[-1].startswith("*")
    if len(inputs) < len(op.inputs) - several or (len(inputs) > len(op.inputs) and not several):
        raise ProgramError(f"load: {op.name} of {len(inputs)} inputs")
    for number, value in enumerate(inputs):
        _check_input(op, number, value)
    if len({i.device for i in inputs if isinstance(i, Node)}) > 1:
        raise ProgramError(f"load: {op.name} of tensors on several devices")
    check_attributes(op, inputs, attrs)
    if op.promotes != ():
        _check_operands(op, inputs)
    if op.kind == "structural" and op.name in CONTROL:
        CONTROL[op.name](op.name, inputs, **attrs)


def _check_input(op: Primitive, number: int, value: Any) -> None:
    """Refuse a number where a tensor must be, and several results as a tensor."""
    if isinstance(value, Node):
        fits = not isinstance(value.dtype, tuple) or op is P.project
    else:
        fits = (op.kind == "elementwise" or (op.name in TAKE_NUMBERS and number == 1)) and is_number(value)
    if not fits:
        raise ProgramError(f"load: input {number} of {op.name} is not a tensor: {shown(value)}")


def check_attributes(op: Primitive, inputs: tuple[Any, ...], attrs: Attrs) -> None:
    """Refuse attributes that no public function makes."""
    forms = FORMS.get(op.name, {})
    if attrs.__class__ is not dict or not attrs.keys() <= forms.keys():
        raise ProgramError(f"load: {op.name} has other attributes: {shown(attrs)}")
    x = inputs[0] if inputs else None
    for name, value in attrs.items():
        if not forms[name](value, x, attrs):
            raise ProgramError(f"load: {op.name} cannot have {name}={shown(value)}")


def _check_operands(op: Primitive, inputs: tuple[Any, ...]) -> None:
    """Refuse operands that a trace would have converted first."""
    dtype, wrong = op.casts(inputs)
    if wrong:
        raise ProgramError(f"load: {op.name} of operands that were not converted to one dtype")
    for value in inputs:
        if not isinstance(value, Node) and not _holds(dtype, value):
            raise ProgramError(f"load: {op.name}: {value} is not a {dtype}")


def _holds(dtype: Any, number: Any) -> bool:
    """Whether a dtype has a number of this kind and size."""
    if dtype.kind == "f":
        return True
    if dtype.kind == "b":
        return number.__class__ is bool
    limits = dtypes.iinfo(dtype)
    return number.__class__ is not float and limits.min <= number <= limits.max


# Branches and loops -------------------------------------------------------------------------------------------------


def _kinds(nodes: Any) -> list[Any]:
    return [(node.shape, node.dtype, node.device) for node in nodes]


def _check_cond(name: str, inputs: Any, then: Function, otherwise: Function, draws: Any) -> None:
    given = _kinds(inputs[1:])
    fits = (inputs[0].shape, inputs[0].dtype) == ((), dtypes.bool)
    _refuse_unless(name, fits and all(_kinds(f.graph.inputs) == given for f in (then, otherwise)))
    _refuse_unless(name, _kinds(then.graph.outputs) == _kinds(otherwise.graph.outputs))


def _check_while_loop(name: str, inputs: Any, condition: Function, body: Function, consts: int, **rest: Any) -> None:
    given = _kinds(inputs)
    _refuse_unless(name, consts < len(given) and all(_kinds(f.graph.inputs) == given for f in (condition, body)))
    _refuse_unless(name, condition.results == [((), dtypes.bool)] and _kinds(body.graph.outputs) == given[consts:])


def _check_scan(
    name: str, inputs: Any, body: Function, consts: int, carries: int, length: int, counted: bool, **rest: Any
) -> None:
    if counted:
        count, *inputs = inputs
        _refuse_unless(name, (count.shape, count.dtype) == ((), dtypes.int64))
    same, stacks = inputs[: consts + carries], inputs[consts + carries :]
    _refuse_unless(name, len(same) == consts + carries and all(x.shape[:1] == (length,) for x in stacks))
    rows = [(x.shape[1:], x.dtype, x.device) for x in stacks]
    _refuse_unless(name, _kinds(body.graph.inputs) == [*_kinds(same), *rows])
    _refuse_unless(name, _kinds(body.graph.outputs)[:carries] == _kinds(same)[consts:])


CONTROL: dict[str, Callable[..., None]] = {
    "cond": _check_cond, "while_loop": _check_while_loop, "scan": _check_scan,
}


def _refuse_unless(name: str, fits: bool) -> None:
    if not fits:
        raise ProgramError(f"load: {name} and its functions have other inputs or results")
