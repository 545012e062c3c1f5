"""`vmap`: an interpreter that adds a batch dimension, so that a function of one example works on many at once.

A tensor inside `vmap` has the shape of one example.  Its data is a tensor from outside, with the batch dimension in
front.  Each kind of primitive has a rule for that dimension, so a batch of 1,000 takes as many operations as one
example.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.clock import tick
from ..core.delegating import Nested
from ..core.dtypes import int8
from ..core.emit import emit
from ..core.mode import current_mode, switch
from ..core.primitive import P, Primitive
from ..core.state import Control, behind
from ..core.tensor import NUMBERS, AbstractData, Tensor, wrap
from ..core.tree import flatten
from ..ops.creation import arange
from ..ops.declare import normal_axis
from ..ops.elementwise import where
from ..ops.reduce import all, any, argmax
from ..ops.view import broadcast_to, moveaxis, reshape
from ..support.errors import AxisError, ConversionError, MutationError, ShapeError, TraceError
from ..support.table import counted
from ..support.words import shown, whole
from .arrays import are_arrays, handed_back, with_tensors


class Batched(AbstractData):
    """The data of a tensor inside `vmap`: `value`, a tensor from outside.

    The first dimension of the value is the batch dimension, unless `many` is False: then all examples share the value.
    """

    __slots__ = ("born", "dtype", "many", "owner", "shape", "value")

    def __init__(self, owner: Vectorised, value: Tensor, many: bool) -> None:
        self.owner, self.value, self.many = owner, value, many
        self.born = tick()  # a branch compares it with the time when the branch began
        self.shape = value.shape[1:] if many else value.shape
        self.dtype = value.dtype

    @property
    def no_value(self) -> str:
        return f"inside vmap, which has {counted(self.owner.size, 'value')}, one for each example"

    def detached(self) -> Batched:
        return Batched(self.owner, self.value.detach(), self.many)


class Vectorised(Nested):
    """Applies each operation to all examples at once, in the mode outside."""

    def __init__(self, size: int) -> None:
        self.size, self.outer = size, current_mode()
        self.branches: list[Branch] = []  # the branches that are running, the outermost first

    def lift(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor._data, Batched) and tensor._data.owner is self:
            return self._lent(tensor) if self.branches and tensor._data.many else tensor
        if isinstance(tensor._data, Batched) and not self._surrounds(tensor._data.owner):
            raise TraceError(
                "a tensor from inside a vmap is used after it has ended", hint="return it from the function instead"
            )
        return wrap(Batched(self, tensor, False), tensor.device)

    def _surrounds(self, other: Vectorised) -> bool:
        interpreter: Any = self.outer.interpreter
        while interpreter not in (None, other):
            interpreter = interpreter.outer.interpreter if hasattr(interpreter, "outer") else None
        return interpreter is other

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        inputs = [v.value if isinstance(v, Batched) else v for v in values]
        many = [isinstance(v, Batched) and v.many for v in values]
        with switch(self.outer):
            if not builtins.any(many):
                out, batched = op.apply(*inputs, **attrs), False
            else:
                rule = op.batch or RULES.get(op.name) or BY_KIND[op.kind]
                out, batched = rule(op, inputs, many, self.size, attrs), True
        if isinstance(out, tuple):
            return tuple(Batched(self, o, batched) for o in out)
        return Batched(self, out, batched)

    def _lent(self, tensor: Tensor) -> Tensor:
        """The tensor, for the code of a branch.  Examples that take another branch get other values (see `Branch`)."""
        born, branches = tensor._data.born, self.branches
        self.branches = []
        try:
            for branch in branches:
                if born < branch.since:
                    tensor = branch.lent(tensor)
        finally:
            self.branches = branches
        return tensor


class Examples(Control):
    """Branches and loops inside `vmap`, where a test may be true for some of the examples."""

    def __init__(self, batch: Vectorised) -> None:
        self.batch, self.below = batch, batch.outer.control
        self.seals: list[tuple[int, str]] = []  # (time, code): writes by the code to older tensors are errors

    @property
    def flow(self) -> Any:
        return self.below.flow

    def _data(self, tensor: Tensor) -> Batched:
        found: Batched = self.batch.lift(behind(tensor))._data
        return found

    @contextmanager
    def taken_by(self, test: Tensor) -> Iterator[None]:
        batch, data = self.batch, self._data(test)
        if not data.many:
            with self.below.taken_by(data.value):
                yield
        elif not batch.size:
            yield
        else:
            with switch(batch.outer):
                some = any(data.value)
            with self.below.taken_by(some):
                batch.branches.append(Branch(batch, batch.lift(behind(test))))
                try:
                    yield
                finally:
                    batch.branches.pop()

    def outcomes(self, test: Tensor) -> tuple[bool, bool]:
        data = self._data(test)
        with switch(self.batch.outer):
            if not data.many:
                return self.below.outcomes(data.value)
            return self.below.outcomes(any(data.value))[0], self.below.outcomes(all(data.value))[1]

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        with switch(self.batch.outer):
            self.below.expect(self._data(indices).value, check)

    @contextmanager
    def sealed(self, what: str) -> Iterator[None]:
        self.seals.append((tick(), what))
        try:
            yield
        finally:
            self.seals.pop()

    def before_change(self, tensor: Tensor) -> None:
        base = behind(tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base)
        for since, what in self.seals:
            if getattr(base._data, "born", 0) < since:
                raise MutationError(
                    f"{what} changes a tensor of shape {base.shape} in place that was made outside it",
                    hint="return the new value and assign it outside, or change x.copy()",
                )
        self.below.before_change(tensor)


class Branch:
    """A branch: it runs for all examples, but only the results for those where `test` is true are used.

    The gradient of an unused result is 0 times a derivative, which is nan if the derivative is infinite.  So the
    branch computes the unused results from the values of an example that takes the branch, without a gradient.
    """

    def __init__(self, owner: Vectorised, test: Tensor) -> None:
        self.owner, self.test, self.since = owner, test, tick()
        self.known: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}  # a tensor, which must live, and its substitute
        with switch(owner.outer):
            self.first = _first(test._data.value)

    def lent(self, tensor: Tensor) -> Tensor:
        """The substitute for a tensor from before the branch."""
        key = id(tensor), current_mode().grad
        if key not in self.known:
            with switch(self.owner.outer):
                row = emit(P.gather, tensor._data.value, self.first).detach()
            self.known[key] = tensor, where(self.test, tensor, wrap(Batched(self.owner, row, False), tensor.device))
        return self.known[key][1]


def _first(taken: Tensor) -> Tensor:
    """The number of the first example that takes the branch."""
    return argmax(taken.astype(int8))


def lent_rows(x: Tensor, taken: Tensor) -> Tensor:
    """The rows of `x`.  Examples that do not take a branch get the row of the first that does (see `Branch`).

    >>> lent_rows(mg.asarray([-1.0, 4.0, 9.0]), mg.asarray([False, True, True])).tolist()
    [4.0, 4.0, 9.0]
    """
    row = emit(P.gather, x, _first(taken)).detach()
    return where(reshape(taken, (taken.shape[0], *[1] * (x.ndim - 1))), x, row)


# How each kind of primitive works with a batch dimension in front ----------------------------------------------------


def aligned(inputs: Sequence[Any], many: Sequence[bool], least: int = 0) -> list[Any]:
    """The inputs with ones after the batch dimension, so that they broadcast like single examples."""
    ndims = [x.ndim - m if isinstance(x, Tensor) else 0 for x, m in zip(inputs, many)]
    widest = max([*ndims, least])
    return [
        reshape(x, (x.shape[0], *[1] * (widest - n), *x.shape[1:])) if m and n < widest else x
        for x, m, n in zip(inputs, many, ndims)
    ]


def _broadcasting(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    return op.apply(*aligned(inputs, many, least=2 if op.kind == "contract" else 0), **attrs)


def _one_input(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    return op.apply(aligned_view(op, inputs[0], attrs), **shifted(op, size, attrs))


def aligned_view(op: Primitive, x: Tensor, attrs: dict[str, Any]) -> Tensor:
    """The input of a view.  `broadcast_to` needs its new dimensions after the batch dimension."""
    if op is P.broadcast_to:
        extra = len(attrs["shape"]) - (x.ndim - 1)
        return reshape(x, (x.shape[0], *[1] * extra, *x.shape[1:])) if extra else x
    return x


def shifted(op: Primitive, size: int, attrs: dict[str, Any]) -> dict[str, Any]:
    """The attributes for all examples, from those for one example."""
    new = dict(attrs)
    axis = attrs.get("axis")
    if axis is not None:
        new["axis"] = axis + 1 if axis.__class__ is int else tuple([a + 1 for a in axis])
    if "shape" in attrs:
        new["shape"] = (size, *attrs["shape"])
    if "axes" in attrs:
        new["axes"] = (0, *[a + 1 for a in attrs["axes"]])
    if "index" in attrs and op is not P.project:
        new["index"] = (slice(None), *attrs["index"])
    if "chain" in attrs:
        new["chain"] = tuple([(step, shifted(step, size, theirs)) for step, theirs in attrs["chain"]])
    return new


def repeated(x: Any, many: bool, size: int) -> Any:
    """The value with a batch dimension: a value that all examples share is repeated."""
    return x if many or x.__class__ in NUMBERS else broadcast_to(x, (size, *x.shape))


def _concat(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    return op.apply(*[repeated(x, m, size) for x, m in zip(inputs, many)], **shifted(op, size, attrs))


def example_numbers(indices: Sequence[Tensor], many: Sequence[bool], size: int) -> list[Tensor]:
    """Indices into a batch: the number of the example, then the given indices."""
    listed = aligned(indices, many)
    width = max([i.ndim - m for i, m in zip(indices, many)], default=0)
    device = indices[0].device if indices else None
    return [reshape(arange(size, device=device), (size, *[1] * width)), *listed]


def _gather(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    x, *indices = inputs
    return op.apply(x, *(example_numbers(indices, many[1:], size) if many[0] else aligned(indices, many[1:])))


def _assign(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Any:
    """`put`, `scatter_add` and `scatter_max`: the base is repeated, because each example changes its own copy."""
    base, value, *indices = inputs
    base = repeated(base, many[0], size)
    if isinstance(value, Tensor) and many[1]:
        width = _place_ndim(op, base, indices, many[2:], attrs)
        value = reshape(value, (size, *[1] * (width - (value.ndim - 1)), *value.shape[1:]))
    numbered = example_numbers(indices, many[2:], size) if indices else []
    return op.apply(base, value, *numbered, **shifted(op, size, attrs))


def _place_ndim(op: Primitive, base: Tensor, indices: Any, many: Any, attrs: dict[str, Any]) -> int:
    """The number of dimensions of the part of one example that is assigned to."""
    target: Any = base
    for step, theirs in shifted(op, base.shape[0], attrs).get("chain", ()):
        target = type("Shaped", (), {"shape": step.infer(target, **theirs)[0], "dtype": base.dtype})
    width = max([i.ndim - m for i, m in zip(indices, many)], default=0)
    return len(target.shape) - 1 - len(indices) + width


Rule = Callable[[Primitive, Any, Any, int, dict[str, Any]], Any]
BY_KIND: dict[str, Rule] = {
    "elementwise": _broadcasting, "contract": _broadcasting,
    "reduce": _one_input, "view": _one_input, "index": _one_input, "structural": _one_input,
}
ASSIGNING = dict.fromkeys(("put", "scatter_add", "scatter_max"), _assign)
RULES: dict[str, Rule] = {"concat": _concat, "gather": _gather, **ASSIGNING}


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """A function of one example, applied to a batch of examples at once, without a loop.

    `in_axes` is the batch axis of the arguments: one number for all of them, or one for each, with None for an
    argument that all examples share.  Random numbers drawn inside are the same for all examples.

    >>> dot = lambda x, y: (x * y).sum()
    >>> mg.vmap(dot, in_axes=(0, None))(mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.asarray([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    for axis in in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,):
        if axis is not None and whole(axis) is None:
            raise AxisError(f"vmap: in_axes is an integer or None, or one for each argument, not {shown(in_axes)}")
    of_tensors = vectorised(function, in_axes, out_axes)
    return lambda *args: handed_back(of_tensors(*with_tensors(args, (np.ndarray,))), are_arrays(args))


def vectorised(function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """`vmap` for arguments in which arrays of NumPy are constants."""

    def of_batches(*args: Any) -> Any:
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            given = counted(len(args), "argument")
            raise ConversionError(f"vmap: {given} and {len(axes)} in_axes", expect="one for each")
        tensors, rebuild = flatten(args)
        places = [axis for arg, axis in zip(args, axes) for _ in flatten(arg)[0]]
        size = _batch_size(tensors, places)
        vectorise = Vectorised(size)
        moved = [
            t if axis is None else moveaxis(t, normal_axis("vmap", axis, t.ndim), 0) for t, axis in zip(tensors, places)
        ]
        with switch(interpreter=vectorise, control=Examples(vectorise)):
            inside = [wrap(Batched(vectorise, t, axis is not None), t.device) for t, axis in zip(moved, places)]
            outputs, rebuild_output = flatten(function(*rebuild(inside)))
            results = [vectorise.lift(o)._data for o in outputs]
        return rebuild_output([_out(r, size, out_axes) for r in results])

    return of_batches


def _batch_size(tensors: list[Tensor], places: list[Any]) -> int:
    sizes = {t.shape[normal_axis("vmap", a, t.ndim)] for t, a in zip(tensors, places) if a is not None}
    if len(sizes) != 1:
        raise ShapeError(
            f"vmap: {'the arguments have different batch sizes' if sizes else 'no argument has a batch axis'}",
            expect="one size along in_axes",
            actual=", ".join(f"{t.shape} along {a}" for t, a in zip(tensors, places)),
        )
    return sizes.pop()


def _out(result: Batched, size: int, axis: int) -> Tensor:
    value = repeated(result.value, result.many, size)
    return value if axis == 0 else moveaxis(value, 0, normal_axis("vmap", axis, value.ndim))
