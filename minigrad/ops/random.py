"""Random numbers: the primitive `random`, and the distributions that are composed from it.

The state of a generator is a key and the number of the next block.  A draw takes as many blocks as it needs.  Its node
stores the key and the number, so a replay of the node gives the same numbers, on every device and in every mode.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.emit import emit
from ..core.mode import current_mode
from ..core.primitive import P, Primitive
from ..core.tensor import NUMBERS, Tensor, as_tensor
from ..devices import as_device
from ..devices.philox import blocks_for
from ..support.errors import ConversionError, DtypeError, TraceError
from ..support.forking import new_lock
from ..support.words import shown, whole
from .composite import composed
from .creation import _made, _shape
from .declare import declare, normal_axis
from .elementwise import astype, cos, floor, less, log, maximum, minimum, remainder, sin, sqrt
from .index import take
from .joining import concat
from .ordering import argsort, topk
from .reduce import argmax
from .view import moveaxis, reshape

declare(
    Primitive(
        "random", "random", (), lambda shape, dtype, key, block, device: (shape, dtype),
        formula=r"\operatorname{Philox}(\mathrm{key}, \mathrm{block})",
    )
)

Shape = int | Sequence[int]
KEYS = 1 << 128
BLOCKS = 1 << 63


def _refuse_while_tracing(what: str, hint: str) -> None:
    """Raise an error in a trace, for actions that would happen only once and not in each run."""
    if current_mode().state.seals_generators:
        raise TraceError(f"{what} inside a traced function: every run would draw the same numbers", hint=hint)


class Generator:
    """A source of random numbers: the same seed gives the same numbers on every device.

    >>> one, other = mg.random.Generator(7), mg.random.Generator(7)
    >>> one.uniform(3).tolist() == other.uniform(3).tolist()
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = new_lock()
        self.seed(seed)

    # its state ------------------------------------------------------------------------------------------------------

    def seed(self, seed: int | None = None) -> None:
        """Start again from a seed; without one, from the system's randomness.

        >>> mg.random.seed(0)
        >>> first = mg.random.uniform(2).tolist()
        >>> mg.random.seed(0)
        >>> mg.random.uniform(2).tolist() == first
        True
        """
        if seed is None:
            _refuse_while_tracing("a generator is started from the system's own randomness", "a seed of your choice")
        key = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self.set_state({"key": key, "block": 0})

    def get_state(self) -> dict[str, int]:
        """The key and the next block: two numbers, for a checkpoint.

        >>> generator = mg.random.Generator(7)
        >>> _ = generator.uniform(100)
        >>> generator.get_state()
        {'key': 7, 'block': 13}
        """
        _refuse_while_tracing("the state of a generator is read", "seed it inside, or read its state outside")
        with self._lock:
            key, block = self._state
            return {"key": key, "block": block}

    def set_state(self, state: dict[str, int]) -> None:
        """Continue from a state that `get_state` returned.

        >>> generator = mg.random.Generator(7)
        >>> state = generator.get_state()
        >>> first = generator.uniform(2).tolist()
        >>> generator.set_state(state)
        >>> generator.uniform(2).tolist() == first
        True
        """
        if not isinstance(state, dict) or set(state) != {"key", "block"}:
            raise ConversionError(f"a state is what get_state() gives, {{'key': ..., 'block': ...}}, not {state!r}")
        key, block = _whole("the seed", state["key"], 0, KEYS - 1), _whole("the block", state["block"], 0, BLOCKS)
        if current_mode().state.seeded(self, key, block):
            return
        with self._lock:
            self._state = key, block  # in one write: an interrupt may come at any time

    def take_blocks(self, count: int) -> tuple[int, int]:
        """The key and the first of `count` blocks, which are reserved for this call.

        >>> generator = mg.random.Generator(7)
        >>> generator.take_blocks(3), generator.take_blocks(1)
        ((7, 0), (7, 3))
        """
        taken = current_mode().state.take_blocks(self, count)
        if taken is not None:
            return taken
        with self._lock:
            key, block = self._state
            self._state = key, block + count
            return key, block

    def __getstate__(self) -> dict[str, int]:
        return self.get_state()

    def __setstate__(self, state: dict[str, int]) -> None:
        self._lock = new_lock()
        self.set_state(state)

    def __repr__(self) -> str:
        key, block = self._state
        return f"Generator(key={key}, block={block})"

    def bits(self, shape: Shape = (), dtype: Any = dtypes.int64, device: Any = None) -> Tensor:
        """Random bits as int32 or int64; as float32 or float64, uniform numbers from 0 up to 1 of 24 or 53 bits.

        >>> import numpy as np
        >>> mg.random.Generator(7).bits(2).tolist() == np.random.Philox(key=7).random_raw(2).view(np.int64).tolist()
        True
        """
        made = dtypes.as_dtype(dtype)
        if made not in SOURCES:
            raise DtypeError(f"bits are int32, int64, float32 or float64, not {made}", hint="bits(...).astype(dtype)")
        return self._draw(shape, made, device)

    def _draw(self, shape: Shape, dtype: Any, device: Any) -> Tensor:
        sizes = _shape(shape)
        key, block = self.take_blocks(blocks_for(sizes, dtype))
        return emit(P.random, shape=sizes, dtype=dtype, key=key, block=block, device=as_device(device))

    # distributions --------------------------------------------------------------------------------------------------

    @composed
    def uniform(
        self, shape: Shape = (), *, low: float = 0.0, high: float = 1.0, dtype: Any = None, device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Numbers from `low` up to, not including, `high`, all equally likely.

        >>> mg.random.seed(0)
        >>> x = mg.random.uniform((2, 3), low=-1, high=1)
        >>> x.shape, bool((x >= -1).all()), bool((x < 1).all())
        ((2, 3), True, True)
        """
        made = _float_dtype("uniform", dtype)
        out = self._draw(shape, _source(made), device)
        if made is dtypes.float16:
            out = astype(floor(out * 2048.0) * (1 / 2048), made)  # its 11 bits, so that it is not rounded up to 1
        if low != 0 or high != 1:
            out = _stretched(out, _finite("uniform: low", low), _finite("uniform: high", high))
        return _made(out, requires_grad)

    @composed
    def normal(
        self, shape: Shape = (), *, mean: Any = 0.0, std: Any = 1.0, dtype: Any = None, device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Normal random numbers with this `mean` and standard deviation `std`, which may be tensors.

        Two uniform numbers are the angle and the radius of a point whose two coordinates are normal (Box and Muller).
        All elements take the same operations, so devices agree to the last digits.  The numbers reach 5.7 standard
        deviations in float32, 8.5 in float64.

        >>> mg.random.seed(0)
        >>> x = mg.random.normal(10_000, mean=3.0)
        >>> 2.9 < x.mean().item() < 3.1, 0.9 < x.std().item() < 1.1
        (True, True)
        """
        made = _float_dtype("normal", dtype)
        if std.__class__ in NUMBERS and not std >= 0:
            raise ConversionError(f"normal: a standard deviation is not negative: {std}")
        sizes = _shape(shape)
        count = math.prod(sizes)
        half = (count + 1) // 2
        pairs = self._draw((2, half), _source(made), device)
        radius, angle = sqrt(log(1.0 - pairs[0]) * -2.0), pairs[1] * (2 * math.pi)
        points = concat([radius * cos(angle), radius * sin(angle)])
        out = reshape(points[:count], sizes) * std
        if mean.__class__ is Tensor or mean != 0:
            out = out + mean
        return _made(astype(out, made, copy=False), requires_grad)

    @composed
    def integers(
        self, low: int, high: int, shape: Shape = (), dtype: Any = dtypes.default_int, device: Any = None
    ) -> Tensor:
        """Integers from `low` up to, not including, `high`, all equally likely.

        They are 64 random bits modulo the width w: probabilities differ relatively by at most w / 2**64.

        >>> mg.random.seed(0)
        >>> x = mg.random.integers(1, 7, shape=1000)
        >>> x.min().item(), x.max().item(), x.dtype
        (1, 6, dtype('int64'))
        """
        made = dtypes.as_dtype(dtype)
        limits = dtypes.iinfo(made)
        first = _whole("integers: low", low, limits.min, limits.max)
        last = _whole("integers: high", high, limits.min, limits.max + 1) - 1
        if not 0 <= last - first < 1 << 62:
            raise ConversionError(
                f"integers: low is {first}, and high is {last + 1}", expect="low < high, by less than 2**62"
            )
        out = remainder(self._draw(shape, dtypes.int64, device), last - first + 1) + first
        return astype(out, made, copy=False)

    @composed
    def bernoulli(self, p: Any = 0.5, shape: Shape | None = None, device: Any = None) -> Tensor:
        """True with probability `p`, which may be a tensor of probabilities; a bool tensor.

        In eager mode on the CPU, a probability that is not between 0 and 1 is an error.  Elsewhere values are not
        checked: nan and numbers below 0 count as 0, numbers above 1 as 1.

        >>> mg.random.seed(0)
        >>> mg.random.bernoulli(0.5, shape=4).dtype, mg.random.bernoulli(mg.asarray([0.0, 1.0])).tolist()
        (dtype('bool'), [False, True])
        """
        if p.__class__ in NUMBERS:
            if not 0 <= p <= 1:
                raise ConversionError(f"bernoulli: a probability is between 0 and 1: {p}")
            return less(self._draw(() if shape is None else shape, dtypes.float32, device), float(p))
        chances = as_tensor(p, None if device is None else as_device(device))
        values = _values_at_hand(chances)
        if values is not None and not ((values >= 0) & (values <= 1)).all():
            wrong = values[~((values >= 0) & (values <= 1))]
            raise ConversionError(f"bernoulli: a probability is between 0 and 1: {wrong.flat[0].item()}")
        source = dtypes.float64 if chances.dtype is dtypes.float64 else dtypes.float32
        return less(self._draw(chances.shape if shape is None else shape, source, chances.device), chances)

    @composed
    def permutation(self, x: Any, axis: int = 0, device: Any = None) -> Tensor:
        """The numbers below `x` in random order; for a tensor, its slices along `axis` in random order.

        >>> mg.random.seed(0)
        >>> sorted(mg.random.permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        if x.__class__ is Tensor:
            place = normal_axis("permutation", axis, x.ndim)
            return take(x, self.permutation(x.shape[place], device=x.device), axis=place)
        count = _whole("permutation: the count", x, 0, BLOCKS)
        return argsort(self._draw(count, dtypes.int64, device))

    @composed
    def categorical(self, logits: Tensor, shape: Shape = (), axis: int = -1) -> Tensor:
        """Positions along `axis`, each with a probability proportional to the exponential of its logit.

        `shape` adds leading dimensions with that many samples each.  The position of the largest sum of a logit and a
        Gumbel number has this distribution, and a logit of -inf is never chosen.  In eager mode on the CPU, logits
        that are nan or all -inf are an error; elsewhere the position for them is arbitrary.

        >>> mg.random.seed(0)
        >>> mg.random.categorical(mg.log(mg.asarray([0.0, 1.0, 0.0])), shape=4).tolist()
        [1, 1, 1, 1]
        """
        place = normal_axis("categorical", axis, logits.ndim)
        if logits.shape[place] == 0:
            raise ConversionError(f"categorical: there is nothing to choose from, shape {logits.shape}, axis {axis}")
        if logits.dtype.kind != "f":
            raise DtypeError(f"categorical: logits are floats, not {logits.dtype}", hint="x.astype(mg.float32)")
        values = _values_at_hand(logits)
        if values is not None and not (values.max(place) > -math.inf).all():
            fault = "a logit is nan" if np.isnan(values).any() else "all logits are -inf"
            raise ConversionError(
                f"categorical: {fault}, in a tensor of shape {logits.shape}",
                expect="along the axis no nan, and at least one logit above -inf",
            )
        samples = _shape(shape)
        return argmax(self._perturbed(logits, samples), axis=place + len(samples))

    def _perturbed(self, logits: Tensor, samples: tuple[int, ...] = ()) -> Tensor:
        """The logits plus Gumbel numbers: the order of these sums is that of drawing without replacement."""
        uniform = self._draw((*samples, *logits.shape), _source(logits.dtype), logits.device)
        return logits.detach() - log(-log(maximum(uniform, 2.0**-25)))

    @composed
    def multinomial(self, p: Tensor, count: int, replacement: bool = False) -> Tensor:
        """`count` positions along the last axis, drawn with probabilities proportional to `p`.

        As in PyTorch, no position is drawn twice unless `replacement` is True.  (NumPy's and JAX's function of this
        name counts how often each position was drawn.)  In eager mode on the CPU, wrong probabilities are an error.

        >>> mg.random.seed(0)
        >>> sorted(mg.random.multinomial(mg.asarray([0.5, 0.0, 0.2, 0.3]), 3).tolist())
        [0, 2, 3]
        """
        if p.dtype.kind != "f" or not p.ndim:
            raise DtypeError(f"multinomial: p is a tensor of floats, not {p.dtype} of shape {p.shape}")
        count = _whole("multinomial: count", count, 0, BLOCKS if replacement else p.shape[-1])
        values = _values_at_hand(p)
        if values is not None:
            enough = (values > 0).sum(-1) >= (1 if replacement else count)
            if not ((values >= 0) & (values < math.inf)).all() or not enough.all():
                raise ConversionError(
                    f"multinomial: {count} positions cannot be drawn with these probabilities",
                    expect="finite numbers, 0 or more; as many above 0 as positions, or with replacement one",
                )
        if replacement:
            return moveaxis(self.categorical(log(p), (count,)), 0, -1)
        return topk(self._perturbed(log(p)), count)[1]


SOURCES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _values_at_hand(x: Tensor) -> Any:
    """The values as a NumPy array if they can be read without waiting; otherwise None."""
    return x._data if x._data.__class__ is np.ndarray and current_mode().interpreter is None else None


def _source(dtype: Any) -> Any:
    """The dtype in which random numbers are made: float16 is made from float32."""
    return dtypes.float64 if dtype is dtypes.float64 else dtypes.float32


def _float_dtype(name: str, dtype: Any) -> Any:
    made = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    if made.kind != "f":
        raise DtypeError(f"{name} makes floats, not {made}", hint="mg.random.integers(low, high, shape, dtype)")
    return made


def _finite(what: str, number: Any) -> float:
    if number.__class__ not in NUMBERS or not math.isfinite(number):
        raise ConversionError(f"{what} is a finite number, not {shown(number)}")
    return float(number)


def _whole(what: str, number: Any, least: int, most: int) -> int:
    found = whole(number, least, most)
    if found is None:
        raise ConversionError(f"{what} is an integer from {least} to {most}, not {shown(number)}")
    return found


def _stretched(unit: Tensor, low: float, high: float) -> Tensor:
    """Numbers between 0 and 1 scaled to `low` and `high`, where rounding must not reach `high`."""
    if low > high:
        raise ConversionError(f"uniform: low is {low}, and high is {high}", expect="low <= high")
    number = unit.dtype.type
    last = number(high) if low == high else np.nextafter(number(high), number(low))
    return minimum(unit * (high - low) + low, float(last))


DEFAULT_GENERATOR = Generator()
