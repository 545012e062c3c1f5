"""The table of operators: how each is written from a node of ours, and which of our functions computes it.

A function that writes, `write(w, node, *names)`, returns the name of the result.  A function that computes takes the
inputs of an operator by position and its attributes by name.  An input or an attribute that the file leaves out has
ONNX's default, or is None; so only those that older opsets lack have a default here.  A parameter annotated `Numbers`
must be known before the model runs, because shapes depend on it: it is computed from constants and shapes.  A file that
sets an attribute that the function does not take is an error when the file is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ...core.node import Node
from ...core.tensor import Tensor
from ...ops import convolution
from ...ops.declare import normal_axis
from ...ops.windows import for_each
from ...support.errors import FileError
from ...support.table import counted
from .composites import as_node
from .writer import Writer, fixed

Numbers = Sequence[int]
Write = Callable[..., Any]

WITHOUT = {
    "random": "a model in a file is deterministic; model.eval() switches dropout off",
    "print": "it does more than compute a result",
    "breakpoint": "it does more than compute a result",
    "collective": "it needs other processes",
    "own": "it is a kernel of your own, which other programs do not have",
}

TABLE: dict[str, Write] = {}  # by the name of our primitive, or of our function


def writes(*names: str) -> Callable[[Write], Write]:
    """Put a function into the table that writes nodes of these names."""

    def put(write: Write) -> Write:
        TABLE.update(dict.fromkeys(names, write))
        return write

    return put


class Operator(NamedTuple):
    """The function that computes an operator, the attributes that it takes, and the inputs that are `Numbers`."""

    compute: Callable[..., Any]
    attributes: Collection[str]
    numbers: Collection[int] = ()


OPERATORS: dict[str, Operator] = {}  # by the name of ONNX's operator


def operator(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Put a function into the table that computes operators, by its name or by another one."""
    parameters = inspect.signature(function).parameters
    numbers = [i for i, p in enumerate(parameters.values()) if "Numbers" in str(p.annotation)]
    OPERATORS[name or function.__name__] = Operator(function, parameters, numbers)
    return function


# One function and one operator ---------------------------------------------------------------------------------------

DIMENSIONS = {"1d": 3, "2d": 4}  # of what a function takes, by the end of its name: conv2d takes examples of images


def both(
    op_type: str, *functions: Callable[..., Any], arguments: str = "", needed: str = "x", optional: str = "",
    covers: Callable[[Node], bool] = lambda call: True, compute: Callable[..., Any] | None = None, **constants: Any,
) -> None:
    """Declare an operator that is one function of ours, for both ways.

    `arguments` are those of our functions that are attributes of the operator, `needed` and `optional` those that are
    its inputs, in ONNX's order.  `constants` are attributes that are always written.  Load calls the function for the
    dimensions of x, or `compute(function, ...)`, which takes the same arguments and the constants.
    """
    ours = {ATTRIBUTES[argument][0]: argument for argument in arguments.split()}

    def is_covered(call: Node) -> bool:
        return call.inputs[0].ndim == _dimensions(call.name, call.inputs[0]) and covers(call)

    names = [function.__name__ for function in functions]
    as_node(*names, needed=needed, optional=optional, covers=is_covered)

    @writes(*names)
    def write(w: Writer, node: Node, *names: str) -> str:
        values = {theirs: ATTRIBUTES[argument][1](node, argument) for theirs, argument in ours.items()}
        return w.add(op_type, *names, **values, **constants)  # type: ignore[no-any-return]

    def computed(x: Tensor, *others: Any, **attributes: Any) -> Any:
        given = {ours.get(name, name): value for name, value in attributes.items() if value is not None}
        if "padding" in given:
            given["padding"] = pairs_of(given["padding"])
        given |= zip(f"{needed} {optional}".split(), (x, *others))
        function = next((f for f in functions if _dimensions(f.__name__, x) == x.ndim), None)
        if function is None:
            raise FileError(f"{op_type}: not supported for these dimensions", actual=counted(x.ndim, "dimension"))
        return function(**given) if compute is None else compute(function, **given)

    OPERATORS[op_type] = Operator(computed, {*ours, *constants})


def _dimensions(function: str, x: Node | Tensor) -> int:
    """The number of dimensions that a function takes; that of x if it takes any number."""
    return DIMENSIONS.get(function[-2:], x.ndim)


# Arguments as attributes ---------------------------------------------------------------------------------------------


def _same(node: Node, argument: str) -> Any:
    return node.attrs[argument]


def _number(node: Node, argument: str) -> float:
    return float(node.attrs[argument])


def _axis(node: Node, argument: str) -> int:
    return normal_axis(node.name, node.attrs[argument], node.inputs[0].ndim)


def _sizes(node: Node, what: str) -> tuple[int, ...]:
    """An argument that is a number for each dimension of an image, or one for all of them."""
    return for_each(node.name, what, node.attrs[what], node.inputs[0].ndim - 2, least=0)


def _steps(node: Node, argument: str) -> tuple[int, ...]:
    """Windows without a stride are side by side."""
    return _sizes(node, "size" if node.attrs[argument] is None else argument)


def _pads(node: Node, argument: str) -> list[int]:
    kernel = _sizes(node, "size") if "size" in node.attrs else fixed(node.inputs[1].shape[2:], "kernel's size", node)
    gaps = _sizes(node, "dilation") if "dilation" in node.attrs else (1,) * len(kernel)
    pairs = convolution.zeros_around(node.name, node.attrs[argument], kernel, _steps(node, "stride"), gaps)
    before, behind = zip(*pairs)
    return [*before, *behind]


def pairs_of(pads: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """ONNX's pads, all that are before the image and then all behind it, as a pair for each dimension."""
    return tuple(zip(pads[: len(pads) // 2], pads[len(pads) // 2 :]))


ATTRIBUTES: dict[str, tuple[str, Callable[..., Any]]] = {  # our argument: ONNX's attribute, and how it is written
    "alpha": ("alpha", _number), "axes": ("perm", _same), "axis": ("axis", _axis),
    "dilation": ("dilations", _sizes), "eps": ("epsilon", _number), "factor": ("blocksize", _same),
    "groups": ("group", _same), "output_padding": ("output_padding", _sizes), "padding": ("pads", _pads),
    "size": ("kernel_shape", _sizes), "slope": ("alpha", _number), "stride": ("strides", _steps),
}
