"""Layers that ONNX has as one operator with other conventions: recurrent layers, resizing, instance normalisation.

Each is here both ways: written from a call of our function, and computed by our function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.node import Node
from ...core.tensor import Tensor
from ...nn.recurrent import recurrent_layer
from ...ops.creation import zeros
from ...ops.joining import concat, split, stack
from ...ops.normalization import instance_norm
from ...ops.resampling import interpolate
from ...ops.view import inverse
from ...support.errors import FileError
from ...support.table import counted
from .composites import as_node
from .operator_table import Numbers, operator, writes
from .writer import Writer, fixed

# Recurrent layers ----------------------------------------------------------------------------------------------------

OPERATOR = {"lstm": "LSTM", "gru": "GRU", "tanh": "RNN", "relu": "RNN"}
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}  # ONNX's gates by our numbers: input, output, forget, new
ACTIVATIONS = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "tanh": ["Tanh"], "relu": ["Relu"]}

as_node("recurrent_layer", needed="x weight_ih weight_hh h", optional="bias_ih bias_hh c")


@writes("recurrent_layer")
def _recurrent(w: Writer, node: Node, x: str, weight: str, recurrent: str, h: str, *others: str) -> Any:
    """The results in the order of the scan's: the last states, then the outputs."""
    kind, lstm = node.attrs["kind"], node.attrs["kind"] == "lstm"
    first = w.vector([0])

    def in_order(name: str) -> str:
        if kind not in GATES:
            return name
        parts = w.add("Split", name, outputs=len(GATES[kind]), axis=0, num_outputs=len(GATES[kind]))
        return w.add("Concat", *[parts[i] for i in GATES[kind]], axis=0)  # type: ignore[no-any-return]

    biases = others[: len(others) - lstm]
    bias = w.add("Unsqueeze", w.add("Concat", *map(in_order, biases), axis=0), first) if biases else ""
    weights = [w.add("Unsqueeze", in_order(name), first) for name in (weight, recurrent)]
    states = [w.add("Unsqueeze", state, first) for state in (h, *others[len(biases) :])]
    unusual = {"linear_before_reset": 1} if kind == "gru" else {}
    found, *last = w.add(
        OPERATOR[kind], x, *weights, bias, "", *states, outputs=2 + lstm,
        direction="reverse" if node.attrs["reverse"] else "forward",
        hidden_size=fixed(node.inputs[2].shape[-1], "size of the state", node), activations=ACTIVATIONS[kind],
        **unusual,
    )
    return [*[w.add("Squeeze", end, first) for end in last], w.add("Squeeze", found, w.vector([1]))]


def _computed(op_type: str) -> Callable[..., Any]:
    """The function for a recurrent operator with one or two directions; an operator gives those inputs that it has."""

    def compute(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Any, sequence_lens: Any, h: Any, c: Any = None,
                peepholes: Any = None, *, activations: Any, direction: str, clip: Any, input_forget: int = 0,
                linear_before_reset: int = 1) -> tuple[Tensor, ...]:
        kind = _kind(op_type, activations)
        refused = {"sequence_lens": sequence_lens is not None, "peepholes": peepholes is not None, "clip": clip,
                   "input_forget": input_forget, "linear_before_reset=0": not linear_before_reset,
                   "these activations": not kind}
        asked = [key for key, is_asked in refused.items() if is_asked]
        if asked:
            raise FileError(f"{op_type}: not supported with {', '.join(asked)}")
        ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        start = zeros((len(ways), x.shape[1], recurrent.shape[-1]), x.dtype, x.device)
        h, c = (start if state is None else state for state in (h, c))

        def in_order(rows: Any) -> Any:
            order = inverse(GATES.get(kind, ()))
            return concat([split(rows, len(order))[i] for i in order]) if order else rows

        outputs, last = [], []
        for number, reverse in enumerate(ways):
            b, d = [None, None] if bias is None else map(in_order, split(bias[number], 2))
            w, u = in_order(weight[number]), in_order(recurrent[number])  # type: ignore[index]
            memory = c[number] if kind == "lstm" else None
            ends, out = recurrent_layer(x, w, u, b, d, h[number], memory, kind, reverse)
            outputs.append(out)
            last.append(ends)
        return (stack(outputs, 1), *[stack(parts) for parts in zip(*last)])

    return compute


def _kind(op_type: str, activations: Any) -> str:
    """Our kind of an operator with these activations, which are repeated for a second direction; "" without one."""
    for kind, usual in ACTIVATIONS.items():
        if OPERATOR[kind] == op_type and activations in (None, usual, usual * 2):
            return kind
    return ""


for _op_type in ("RNN", "GRU", "LSTM"):
    operator(_computed(_op_type), _op_type)


# Resizing ------------------------------------------------------------------------------------------------------------

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


as_node("interpolate")


@writes("interpolate")
def _interpolate(w: Writer, node: Node, x: str) -> str:
    factor, count = node.attrs["scale_factor"], node.ndim - 2
    if factor is None:
        size = ["", w.vector(fixed(node.shape[2:], "size", node))]
    else:
        size = [w.constant(np.full(count, factor, np.float32), "scales")]
    nearest = node.attrs["mode"] == "nearest"
    places = "asymmetric" if nearest else "align_corners" if node.attrs["align_corners"] else "half_pixel"
    return w.add("Resize", x, "", *size, axes=range(2, count + 2), mode="nearest" if nearest else "linear",
                 nearest_mode="floor", coordinate_transformation_mode=places)


@operator
def Resize(x: Tensor, roi: Any, scales: Numbers | None, sizes: Numbers | None, coordinate_transformation_mode: str,
           mode: str, nearest_mode: str, axes: Any = None) -> Any:
    places = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    given = dict(zip(places, sizes or scales or ()))
    usual = x.shape if sizes else (1,) * x.ndim
    wanted = tuple([given.get(a, extent) for a, extent in enumerate(usual)])
    last = wanted[2:]
    way = coordinate_transformation_mode
    linear = mode == "linear" and way in ("half_pixel", "pytorch_half_pixel", "align_corners")
    nearest = mode == "nearest" and way == "asymmetric" and nearest_mode == "floor"
    if not (linear or nearest) or wanted[:2] != usual[:2] or x.ndim < 3:
        raise FileError("Resize: not supported for these attributes or dimensions",
                        actual=f"{counted(x.ndim, 'dimension')}, {mode=}, {nearest_mode=}, {way}",
                        expect="mode='linear', or mode='nearest' with 'floor' and 'asymmetric', of images or sequences")
    return interpolate(x, last if sizes else None, None if sizes else last, LINEAR[x.ndim - 2] if linear else mode,
                       way == "align_corners")


# Instance normalisation ----------------------------------------------------------------------------------------------


as_node("instance_norm", optional="weight bias", covers=lambda node: len(node.inputs) != 2)


@writes("instance_norm")
def _instance_norm(w: Writer, node: Node, x: str, *parameters: str) -> str:
    channels = fixed(node.shape[1], "number of channels", node)
    given = parameters or [w.constant(np.full(channels, v, node.dtype)) for v in (1, 0)]
    return w.add("InstanceNormalization", x, *given, epsilon=float(node.attrs["eps"]))


@operator
def InstanceNormalization(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Any:
    return instance_norm(x, weight, bias, epsilon)
