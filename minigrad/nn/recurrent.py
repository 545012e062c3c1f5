"""Recurrent layers and cells: RNN, GRU and LSTM, with PyTorch's names of weights and order of gates.

A layer is one matrix product for all steps of a sequence, and a `scan` for the part that goes step by step.  A cell is
one such step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.flow import scan
from ..core.tensor import Tensor
from ..ops.composite import composed
from ..ops.creation import zeros
from ..ops.elementwise import sigmoid, tanh
from ..ops.functional import dropout, linear, relu
from ..ops.joining import concat, split, stack
from ..ops.view import expand_dims, squeeze, swapaxes
from ..support.errors import ConversionError, ShapeError
from ..support.words import check_memory
from .init import uniform_parameter
from .layers import check_sizes
from .module import Module

State = tuple[Tensor, ...]


# One step: the next state, from the input and the state, each already multiplied by its weights.


def _plain(function: Callable[[Any], Tensor]) -> Callable[..., State]:
    return lambda row, recurrent, state: (function(row + recurrent),)


def _gru(row: Tensor, recurrent: Tensor, state: State) -> State:
    size = state[0].shape[-1]
    opened = sigmoid(row[..., : 2 * size] + recurrent[..., : 2 * size])
    reset, keep = opened[..., :size], opened[..., size:]
    new = tanh(row[..., 2 * size :] + reset * recurrent[..., 2 * size :])
    return (new + keep * (state[0] - new),)


def _lstm(row: Tensor, recurrent: Tensor, state: State) -> State:
    into, stay, new, out = split(row + recurrent, 4, axis=-1)
    cell = sigmoid(stay) * state[1] + sigmoid(into) * tanh(new)
    return sigmoid(out) * tanh(cell), cell


STEPS: dict[str, Callable[..., State]] = {"tanh": _plain(tanh), "relu": _plain(relu), "gru": _gru, "lstm": _lstm}


@composed
def recurrent_layer(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None,
                    h: Tensor, c: Tensor | None, kind: str, reverse: bool) -> tuple[State, Tensor]:
    """One recurrent layer in one direction over (length, examples, inputs): the last state, and the outputs."""
    rows = linear(x, weight_ih, bias_ih)

    def step(state: State, row: Tensor) -> tuple[State, Tensor]:
        new = STEPS[kind](row, linear(state[0], weight_hh, bias_hh), state)
        return new, new[0]

    return scan(step, (h,) if c is None else (h, c), rows, reverse=reverse)


def _parameters(gates: int, inputs: int, size: int, bias: bool, dtype: Any, device: Any) -> dict[str, Tensor]:
    rows = gates * size
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, size)}
    if bias:
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    return {name: uniform_parameter(shape, size, dtype, device) for name, shape in shapes.items()}


def _initial(layer: Any, x: Tensor, state: Any, wanted: tuple[int, ...]) -> State:
    """The initial states of a layer or cell, of the shape `wanted`: the given ones, or zeros."""
    if state is None:
        return (zeros(wanted, x.dtype, x.device),) * layer.states
    given = tuple(state) if layer.states > 1 and isinstance(state, (tuple, list)) else (state,)
    if len(given) != layer.states or any(getattr(s, "shape", None) != wanted for s in given):
        raise ShapeError(
            f"a state of shape {', '.join(str(getattr(s, 'shape', s)) for s in given)} does not fit {layer!r}",
            expect=", ".join([str(wanted)] * layer.states),
        )
    return given


# Layers -------------------------------------------------------------------------------------------------------------


class _Recurrent(Module):
    kind = "tanh"
    gates = 1
    states = 1  # tensors carried from step to step

    def __init__(
        self, inputs: int, size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = None, device: Any = None,
    ) -> None:
        name = type(self).__name__
        check_sizes(name, inputs=inputs)
        check_sizes(name, 1, size=size, num_layers=num_layers)
        check_memory(f"{name}: {num_layers} layers", (num_layers, size))
        if not 0 <= dropout <= 1:
            raise ConversionError(f"{name}: dropout is a probability, between 0 and 1, not {dropout}")
        self.inputs, self.size, self.num_layers, self.dropout = inputs, size, num_layers, dropout
        self.batch_first, self.directions = batch_first, 2 if bidirectional else 1
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                wide = inputs if layer == 0 else size * self.directions
                for kind, parameter in _parameters(self.gates, wide, size, bias, dtype, device).items():
                    setattr(self, f"{kind}_{suffix}", parameter)

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"][: self.directions]

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The outputs of the last layer at all steps, and the state of all layers after the last step."""
        if x.ndim not in (2, 3) or x.shape[-1] != self.inputs:
            order = "examples, length" if self.batch_first else "length, examples"
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=f"({order}, {self.inputs})")
        single = x.ndim == 2
        if single:
            x = expand_dims(x, 1)
        elif self.batch_first:
            x = swapaxes(x, 0, 1)
        count = self.num_layers * self.directions
        given = _initial(self, x, state, (count, self.size) if single else (count, x.shape[1], self.size))
        if single:
            given = tuple([expand_dims(s, 1) for s in given])
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropout(x, self.dropout, self.training)
            outputs = []
            for reverse, suffix in enumerate(self._suffixes(layer)):
                final, output = self._run(x, tuple([s[len(last)] for s in given]), suffix, bool(reverse))
                last.append(final)
                outputs.append(output)
            x = concat(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
        ends = tuple([stack(parts) for parts in zip(*last)])
        if single:
            x, ends = squeeze(x, 1), tuple([squeeze(end, 1) for end in ends])
        elif self.batch_first:
            x = swapaxes(x, 0, 1)
        return x, ends if self.states > 1 else ends[0]

    def _run(self, x: Tensor, start: State, suffix: str, reverse: bool) -> tuple[State, Tensor]:
        """One layer in one direction."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w, u, b, d = [getattr(self, f"{name}_{suffix}", None) for name in names]
        cell = start[1] if self.states > 1 else None
        return recurrent_layer(x, w, u, b, d, start[0], cell, self.kind, reverse)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        words = [f"{self.inputs} → {self.size}"] + [f"{self.num_layers} layers"] * (self.num_layers > 1)
        words += ["batch_first"] * self.batch_first + ["bidirectional"] * (self.directions > 1)
        return ", ".join(words)


class RNN(_Recurrent):
    """h = tanh(W x + b + U h + c), step by step; `nonlinearity` may be "relu".

    The input is (length, examples, inputs), or with `batch_first` (examples, length, inputs).

    >>> layer = mg.nn.RNN(3, 4)
    >>> outputs, last = layer(mg.ones((7, 5, 3)))
    >>> layer, outputs.shape, last.shape
    (RNN(3 → 4), (7, 5, 4), (1, 5, 4))
    """

    def __init__(self, inputs: int, size: int, num_layers: int = 1, nonlinearity: str = "tanh", **options: Any) -> None:
        self.kind = _checked_nonlinearity("RNN", nonlinearity)
        super().__init__(inputs, size, num_layers, **options)


class GRU(_Recurrent):
    """A gated recurrent unit: one gate decides what to forget, the other how much of the state is new.

    >>> layer = mg.nn.GRU(3, 4, num_layers=2, batch_first=True)
    >>> outputs, last = layer(mg.ones((5, 7, 3)))
    >>> layer, outputs.shape, last.shape
    (GRU(3 → 4, 2 layers, batch_first), (5, 7, 4), (2, 5, 4))
    """

    kind, gates = "gru", 3


class LSTM(_Recurrent):
    """Long short-term memory: a cell next to the state, with gates for its input, its old content and its output.

    >>> layer = mg.nn.LSTM(3, 4, bidirectional=True)
    >>> outputs, (last, cell) = layer(mg.ones((7, 5, 3)))
    >>> layer, outputs.shape, cell.shape
    (LSTM(3 → 4, bidirectional), (7, 5, 8), (2, 5, 4))
    """

    kind, gates, states = "lstm", 4, 2


def _checked_nonlinearity(name: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ConversionError(f"{name}: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
    return nonlinearity


# Cells --------------------------------------------------------------------------------------------------------------


class _Cell(Module):
    kind = "tanh"
    gates = 1
    states = 1

    def __init__(self, inputs: int, size: int, bias: bool = True, dtype: Any = None, device: Any = None) -> None:
        check_sizes(type(self).__name__, inputs=inputs)
        check_sizes(type(self).__name__, 1, size=size)
        self.inputs, self.size = inputs, size
        found = _parameters(self.gates, inputs, size, bias, dtype, device)
        self.weight_ih, self.weight_hh = found["weight_ih"], found["weight_hh"]
        self.bias_ih, self.bias_hh = found.get("bias_ih"), found.get("bias_hh")

    def forward(self, x: Tensor, state: Any = None) -> Any:
        """The next state, from an input (examples, inputs) and a state; without a state, it begins with zeros."""
        if x.ndim not in (1, 2) or x.shape[-1] != self.inputs:
            raise ShapeError(f"an input of shape {x.shape} does not fit {self!r}", expect=f"(examples, {self.inputs})")
        given = _initial(self, x, state, (*x.shape[:-1], self.size))
        row, recurrent = linear(x, self.weight_ih, self.bias_ih), linear(given[0], self.weight_hh, self.bias_hh)
        new = STEPS[self.kind](row, recurrent, given)
        return new if self.states > 1 else new[0]

    def extra_repr(self) -> str:
        return f"{self.inputs} → {self.size}" + ("" if self.bias_ih is not None else ", bias=False")


class RNNCell(_Cell):
    """One step of an `RNN`.

    >>> cell = mg.nn.RNNCell(3, 4)
    >>> cell, cell(mg.ones((5, 3))).shape
    (RNNCell(3 → 4), (5, 4))
    """

    def __init__(self, inputs: int, size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = None,
                 device: Any = None) -> None:
        self.kind = _checked_nonlinearity("RNNCell", nonlinearity)
        super().__init__(inputs, size, bias, dtype, device)


class GRUCell(_Cell):
    """One step of a `GRU`.

    >>> cell = mg.nn.GRUCell(3, 4)
    >>> h = cell(mg.ones((5, 3)))
    >>> cell(mg.ones((5, 3)), h).shape
    (5, 4)
    """

    kind, gates = "gru", 3


class LSTMCell(_Cell):
    """One step of an `LSTM`: the next state and the next cell.

    >>> cell = mg.nn.LSTMCell(3, 4)
    >>> h, c = cell(mg.ones((5, 3)))
    >>> h, c = cell(mg.ones((5, 3)), (h, c))
    >>> cell, h.shape, c.shape
    (LSTMCell(3 → 4), (5, 4), (5, 4))
    """

    kind, gates, states = "lstm", 4, 2
