"""Recurrent layers: RNN, GRU and LSTM, with PyTorch's names of weights and order of gates.

A layer is one matrix product for all steps of a sequence, and a `scan` for the part that goes step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.flow import scan
from ..core.tensor import Tensor
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


class _Recurrent(Module):
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
                rows = self.gates * size
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, wide), "weight_hh": (rows, size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for kind, shape in shapes.items():
                    setattr(self, f"{kind}_{suffix}", uniform_parameter(shape, size, dtype, device))

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
        given = self._start(x, state, single)
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

    def _start(self, x: Tensor, state: Any, single: bool) -> State:
        """The initial states (layers · directions, examples, size): the given ones, or zeros."""
        shape = (self.num_layers * self.directions, x.shape[1], self.size)
        if state is None:
            return (zeros(shape, x.dtype, x.device),) * self.states
        given = tuple(state) if self.states > 1 and isinstance(state, (tuple, list)) else (state,)
        wanted = (shape[0], shape[2]) if single else shape
        if len(given) != self.states or any(s.shape != wanted for s in given):
            raise ShapeError(
                f"a state of shape {', '.join(str(getattr(s, 'shape', s)) for s in given)} does not fit {self!r}",
                expect=", ".join([str(wanted)] * self.states),
            )
        return tuple([expand_dims(s, 1) for s in given]) if single else given

    def _run(self, x: Tensor, start: State, suffix: str, reverse: bool) -> tuple[State, Tensor]:
        """One layer in one direction."""
        weight, bias = getattr(self, f"weight_hh_{suffix}"), getattr(self, f"bias_hh_{suffix}", None)
        rows = linear(x, getattr(self, f"weight_ih_{suffix}"), getattr(self, f"bias_ih_{suffix}", None))

        def step(state: State, row: Tensor) -> tuple[State, Tensor]:
            new = self.step(row, linear(state[0], weight, bias), state)
            return new, new[0]

        return scan(step, start, rows, reverse=reverse)

    def step(self, row: Tensor, recurrent: Tensor, state: State) -> State:
        """The next state, from the input and the state, each already multiplied by its weights."""
        raise NotImplementedError

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
        functions: dict[str, Callable[[Any], Tensor]] = {"tanh": tanh, "relu": relu}
        if nonlinearity not in functions:
            raise ConversionError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = functions[nonlinearity]
        super().__init__(inputs, size, num_layers, **options)

    def step(self, row: Tensor, recurrent: Tensor, state: State) -> State:
        return (self.nonlinearity(row + recurrent),)


class GRU(_Recurrent):
    """A gated recurrent unit: one gate decides what to forget, the other how much of the state is new.

    >>> layer = mg.nn.GRU(3, 4, num_layers=2, batch_first=True)
    >>> outputs, last = layer(mg.ones((5, 7, 3)))
    >>> layer, outputs.shape, last.shape
    (GRU(3 → 4, 2 layers, batch_first), (5, 7, 4), (2, 5, 4))
    """

    gates = 3

    def step(self, row: Tensor, recurrent: Tensor, state: State) -> State:
        size = self.size
        opened = sigmoid(row[..., : 2 * size] + recurrent[..., : 2 * size])
        reset, keep = opened[..., :size], opened[..., size:]
        new = tanh(row[..., 2 * size :] + reset * recurrent[..., 2 * size :])
        return (new + keep * (state[0] - new),)


class LSTM(_Recurrent):
    """Long short-term memory: a cell next to the state, with gates for its input, its old content and its output.

    >>> layer = mg.nn.LSTM(3, 4, bidirectional=True)
    >>> outputs, (last, cell) = layer(mg.ones((7, 5, 3)))
    >>> layer, outputs.shape, cell.shape
    (LSTM(3 → 4, bidirectional), (7, 5, 8), (2, 5, 4))
    """

    gates, states = 4, 2

    def step(self, row: Tensor, recurrent: Tensor, state: State) -> State:
        into, stay, new, out = split(row + recurrent, 4, axis=-1)
        cell = sigmoid(stay) * state[1] + sigmoid(into) * tanh(new)
        return sigmoid(out) * tanh(cell), cell
