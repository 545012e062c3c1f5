"""Rules that compute constants beforehand: Python numbers, and tensors filled with one number.

The kernels of eager mode compute them, so the results are those of eager mode to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...core.node import Node
from ...core.primitive import P
from ...core.tensor import NUMBERS
from ..nodes.graph import reapplied
from .numbers import filled, shaped, value_of
from .rules import Rules

rule = Rules()


@rule(kind="elementwise", reads="full")
def fold_constants(node: Node) -> Node | None:
    """A node whose inputs are all constant is a constant."""
    if not all(x.__class__ in NUMBERS or x.op is P.full for x in node.inputs):
        return None
    value = _computed(node, [x if x.__class__ in NUMBERS else _array_of(x) for x in node.inputs])
    return None if value is None else filled(value, node)


@rule(kind="elementwise", reads="full")
def number_operand(node: Node) -> Node | None:
    """An operand that is filled with one number becomes that number, which takes the dtype of the other operands."""
    assert node.op is not None
    named = node.op.promotes
    weak = [i for i in range(len(node.inputs)) if named is None or node.op.inputs[i] in named]
    tensors = [i for i in weak if node.inputs[i].__class__ not in NUMBERS]
    filled_ones = [i for i in tensors if node.inputs[i].op is P.full]
    if filled_ones == tensors:
        filled_ones = filled_ones[1:]  # numbers alone would have no dtype
    values = {i: value_of(node.inputs[i]) for i in filled_ones}
    if not values or None in values.values():
        return None
    inputs = tuple([values.get(i, x) for i, x in enumerate(node.inputs)])
    return shaped(reapplied(node, inputs), node)


@rule(kind="view", reads="full")
def view_of_a_constant(node: Node) -> Node | None:
    """A view of a tensor that is filled with one number is filled with the same number."""
    return filled(node.inputs[0].attrs["value"], node)


def _array_of(x: Node) -> Any:
    """The number of a filled tensor as an array."""
    return x.device.kernels["full"]((), x.attrs["value"], x.dtype, x.device)


def _computed(node: Node, values: list[Any]) -> Any:
    """The number that fills the result of eager mode; None where eager mode raises an error."""
    assert node.op is not None
    if node.name in ("floor_divide", "remainder") and node.dtype.kind in "iu" and not np.all(values[1]):
        return None  # a division by zero is an error of the run, not of the compilation
    try:
        with np.errstate(all="ignore"):
            result = EAGER.compute(node.op, values, node.attrs, node.device)
            return result.ravel()[0].item() if result.size else 0
    except Exception:  # the same error appears when the program runs, with the line of the caller
        return None
