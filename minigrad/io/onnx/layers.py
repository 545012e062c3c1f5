"""Layers that ONNX has as one operator with other conventions: recurrent layers, resizing, instance normalisation.

Each is here both ways: written from a call of our function, and computed by our function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.node import Node
from ...core.tensor import Tensor
from ...nn.recurrent import recurrent_layer
from ...ops.creation import zeros
from ...ops.joining import concat, split, stack
from ...ops.normalization import instance_norm
from ...ops.resampling import interpolate, pixel_shuffle
from ...support.errors import FileError
from .composites import Call, writes_call
from .operators import Numbers, operator
from .writer import Writer, fixed

# Recurrent layers ----------------------------------------------------------------------------------------------------

OPERATOR = {"lstm": "LSTM", "gru": "GRU", "tanh": "RNN", "relu": "RNN"}
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}  # ONNX's gates by our numbers: input, output, forget, new
OURS = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}  # our gates by ONNX's numbers


@writes_call("recurrent_layer", needed="x weight_ih weight_hh h", optional="bias_ih bias_hh c")
def _recurrent(w: Writer, node: Node, call: Call, x: str, weight: str, recurrent: str, h: str, *others: str) -> Any:
    """The results in the order of the scan's: the last states, then the outputs."""
    kind, lstm = call.attributes["kind"], call.attributes["kind"] == "lstm"
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
    more: dict[str, Any] = {"linear_before_reset": 1} if kind == "gru" else {}
    more |= {"activations": ["Relu"]} if kind == "relu" else {}
    found, *last = w.add(
        OPERATOR[kind], x, *weights, bias, "", *states, outputs=2 + lstm,
        direction="reverse" if call.attributes["reverse"] else "forward",
        hidden_size=fixed(call.inputs[2].shape[-1], "size of the state", node), **more,
    )
    return [*[w.add("Squeeze", end, first) for end in last], w.add("Squeeze", found, w.vector([1]))]


def _directions(name: str, kind: str, x: Tensor, weights: Any, bias: Any, lengths: Any, states: Any, direction: str,
                unknown: dict[str, Any]) -> tuple[Tensor, ...]:
    """An operator of ONNX with one or two directions, computed by our layers."""
    asked = {key: value for key, value in (unknown | {"sequence_lens": lengths}).items() if value not in (None, 0)}
    if asked:
        raise FileError(f"{name}: not supported with {', '.join(asked)}")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    size = weights[1].shape[-1]
    start = [zeros((len(ways), x.shape[1], size), x.dtype, x.device) if s is None else s for s in states]

    def in_order(rows: Any) -> Any:
        return concat([split(rows, len(OURS[kind]))[i] for i in OURS[kind]]) if kind in OURS else rows

    outputs, last = [], []
    for number, reverse in enumerate(ways):
        b, d = [None, None] if bias is None else map(in_order, split(bias[number], 2))
        h, c = [s[number] for s in start] if len(start) == 2 else (start[0][number], None)  # type: ignore[index]
        w, u = [in_order(each[number]) for each in weights]
        ends, out = recurrent_layer(x, w, u, b, d, h, c, kind, reverse)
        outputs.append(out)
        last.append(ends)
    return (stack(outputs, 1), *[stack(parts) for parts in zip(*last)])


@operator
def RNN(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Any = None, sequence_lens: Any = None,
        initial_h: Any = None, activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None,
        clip: Any = None, direction: str = "forward", hidden_size: Any = None, layout: int = 0) -> Any:
    kinds = {(): "tanh", ("Tanh",): "tanh", ("Relu",): "relu"}
    kind = kinds.get(tuple(sorted({*(activations or ())})))
    unknown = {"clip": clip, "layout=1": layout, "these activations": activations if kind is None else None}
    return _directions("RNN", kind or "", x, (weight, recurrent), bias, sequence_lens, [initial_h], direction, unknown)


@operator
def GRU(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Any = None, sequence_lens: Any = None,
        initial_h: Any = None, activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None,
        clip: Any = None, direction: str = "forward", hidden_size: Any = None, layout: int = 0,
        linear_before_reset: int = 0) -> Any:
    usual = activations is None or activations == ["Sigmoid", "Tanh"] * (len(activations) // 2)
    unknown = {"clip": clip, "layout=1": layout, "these activations": None if usual else activations,
               "linear_before_reset=0": None if linear_before_reset else 1}
    return _directions("GRU", "gru", x, (weight, recurrent), bias, sequence_lens, [initial_h], direction, unknown)


@operator
def LSTM(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Any = None, sequence_lens: Any = None,
         initial_h: Any = None, initial_c: Any = None, peepholes: Any = None, activation_alpha: Any = None,
         activation_beta: Any = None, activations: Any = None, clip: Any = None, direction: str = "forward",
         hidden_size: Any = None, input_forget: int = 0, layout: int = 0) -> Any:
    usual = activations is None or activations == ["Sigmoid", "Tanh", "Tanh"] * (len(activations) // 3)
    unknown = {"clip": clip, "layout=1": layout, "peepholes": None if peepholes is None else 1,
               "input_forget": input_forget, "these activations": None if usual else activations}
    states = [initial_h, initial_c]
    return _directions("LSTM", "lstm", x, (weight, recurrent), bias, sequence_lens, states, direction, unknown)


# Resizing ------------------------------------------------------------------------------------------------------------

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@writes_call("interpolate")
def _interpolate(w: Writer, node: Node, call: Call, x: str) -> str:
    factor, count = call.attributes["scale_factor"], node.ndim - 2
    if factor is None:
        size = ["", w.vector(fixed(node.shape[2:], "size", node))]
    else:
        factors = factor if isinstance(factor, (tuple, list)) else [factor] * count
        size = [w.constant(np.array(factors, np.float32), "scales")]
    if call.attributes["mode"] == "nearest":
        return w.add("Resize", x, "", *size, axes=range(2, count + 2), mode="nearest", nearest_mode="floor",
                     coordinate_transformation_mode="asymmetric")
    places = "align_corners" if call.attributes["align_corners"] else "half_pixel"
    return w.add("Resize", x, "", *size, axes=range(2, count + 2), mode="linear", coordinate_transformation_mode=places)


@operator
def Resize(x: Tensor, roi: Any = None, scales: Numbers | None = None, sizes: Numbers | None = None, antialias: int = 0,
           axes: Any = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor") -> Any:
    places = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    given = dict(zip(places, sizes or scales or ()))
    unchanged = all(given.get(a, x.shape[a] if sizes else 1) == (x.shape[a] if sizes else 1) for a in (0, 1))
    way = coordinate_transformation_mode
    linear = mode == "linear" and way in ("half_pixel", "pytorch_half_pixel", "align_corners")
    nearest = mode == "nearest" and way == "asymmetric" and nearest_mode == "floor"
    if not (linear or nearest) or not unchanged or antialias or keep_aspect_ratio_policy != "stretch" or x.ndim < 3:
        raise FileError("Resize: not supported for these attributes or dimensions",
                        actual=f"{x.ndim} dimensions, {mode=}, {nearest_mode=}, {way}",
                        expect="mode='linear', or mode='nearest' with 'floor' and 'asymmetric', of images or sequences")
    usual = x.shape if sizes else (1,) * x.ndim
    wanted = tuple([given.get(a, usual[a]) for a in range(2, x.ndim)])
    return interpolate(x, wanted if sizes else None, None if sizes else wanted, LINEAR[x.ndim - 2] if linear else mode,
                       way == "align_corners")


@writes_call("pixel_shuffle", covers=lambda call: call.inputs[0].ndim == 4)
def _pixel_shuffle(w: Writer, node: Node, call: Call, x: str) -> str:
    return w.add("DepthToSpace", x, blocksize=call.attributes["factor"], mode="CRD")  # type: ignore[no-any-return]


@operator
def DepthToSpace(x: Tensor, blocksize: int, mode: str = "DCR") -> Any:
    if mode != "CRD":
        raise FileError(f"DepthToSpace: mode {mode!r} is not supported", expect="CRD")
    return pixel_shuffle(x, blocksize)


# Instance normalisation ----------------------------------------------------------------------------------------------


@writes_call("instance_norm", optional="weight bias", covers=lambda call: len(call.inputs) != 2)
def _instance_norm(w: Writer, node: Node, call: Call, x: str, *parameters: str) -> str:
    channels = fixed(node.shape[1], "number of channels", node)
    given = parameters or [w.constant(np.full(channels, v, node.dtype)) for v in (1, 0)]
    return w.add("InstanceNormalization", x, *given, epsilon=float(call.attributes["eps"]))


@operator
def InstanceNormalization(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Any:
    return instance_norm(x, weight, bias, epsilon)
