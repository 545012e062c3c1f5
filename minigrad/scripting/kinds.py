"""Kinds of values: where a tensor decides which value a variable has, all its values must be of one kind.

A Python number that is equal in all cases stays a number.  Otherwise it becomes a tensor that is as weak as numbers
are everywhere: it takes the dtype of the tensor that it meets, so `total = 0` takes the dtype of the terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core.dtypes import promote_types, scalar_type
from ..core.tensor import Tensor, as_tensor, default_device
from ..core.tree import flatten, structure
from ..ops.creation import zeros
from ..ops.write import Links
from ..support.errors import ConversionError, DtypeError, MinigradError, ShapeError, TraceError
from ..support.words import a_type, with_article
from .blocks import Block

WEAK = (bool, int, float)  # numbers, which become tensors where a tensor decides between them


class Undefined:
    """The value of a variable without a value; `why` is the reason."""

    def __init__(self, name: str, why: str | None = None) -> None:
        self.name, self.why = name, why

    def error(self) -> Exception:
        """The error for reading it."""
        if self.why is None:
            return UnboundLocalError(f"local variable {self.name!r} has no value here")
        return TraceError(
            f"`{self.name}` may have no value here: {self.why}",
            hint=f"give `{self.name}` a value of the same shape and dtype before that",
        )


_NUMBERS = Links()


def as_number(value: Any) -> Any:
    """Note that a tensor represents a Python number, so that `x += 1` makes a new one."""
    if value.__class__ is Tensor:
        _NUMBERS.add(value, value)
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, or a tensor that represents one."""
    return isinstance(value, WEAK) or bool(_NUMBERS.of(value))


class Like(NamedTuple):
    """The shape, dtype and device of a tensor."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


class Kind(NamedTuple):
    """The structure of a value, and for each tensor or number in it, a `Like` or the number."""

    structure: Any
    parts: tuple[Any, ...]

    def __str__(self) -> str:
        words = [str(part) if isinstance(part, Like) else f"{part!r}, {a_type(part)}" for part in self.parts]
        if self.structure is Tensor:
            return words[0]
        if self.structure[0] == "as it is":
            value = self.structure[1]
            return "None" if value is None else f"{value!r}, {a_type(value)}"
        return f"{with_article(self.structure[0].__name__)} of " + ("nothing" if not words else "; ".join(words))

    @property
    def tensors(self) -> list[Like]:
        """The tensors in a value of this kind."""
        return [part for part in self.parts if isinstance(part, Like)]


def kind_of(value: Any) -> Any:
    """The kind of a value; the kind of `Undefined` is that object."""
    if isinstance(value, Undefined):
        return value
    return Kind(structure(value, WEAK), tuple([_part(leaf) for leaf in flatten(value, WEAK)[0]]))


def _part(leaf: Any) -> Any:
    return Like(leaf.shape, leaf.dtype, leaf.device) if leaf.__class__ is Tensor else leaf


def of_tensors(kind: Any) -> Any:
    """The same kind with tensors instead of numbers."""
    if isinstance(kind, Undefined):
        return kind
    parts = [p if isinstance(p, Like) else Like((), scalar_type(p), default_device()) for p in kind.parts]
    return Kind(kind.structure, tuple(parts))


def fits(part: Any, like: Any) -> bool:
    """Whether a number can become a tensor of this kind: numbers are weak, but 2.5 is not an integer."""
    order = "biuf"
    if isinstance(part, Like) or not isinstance(like, Like) or like.shape:
        return False
    return order.index(scalar_type(part).kind) <= order.index(like.dtype.kind)


def united(name: str, block: Block, one: Any, other: Any) -> Any:
    """The common kind of a variable that has one kind after each of two branches."""
    if isinstance(one, Undefined) or isinstance(other, Undefined):
        known = other if isinstance(one, Undefined) else one
        if name in block.later or isinstance(known, Undefined):
            return known
        return Undefined(name, f"a tensor decides whether the `{block.word}` at line {block.line} gives it one")
    parts = [_united_part(a, b) for a, b in zip(one.parts, other.parts)]
    if one.structure != other.structure or None in parts:
        raise _differ(name, block, one, other)
    return Kind(one.structure, tuple(parts))


def _united_part(one: Any, other: Any) -> Any:
    """The common kind of two parts; None if there is none."""
    if isinstance(one, Like) and isinstance(other, Like):
        return one if one == other else None
    if isinstance(one, Like) or isinstance(other, Like):
        return other if fits(one, other) else one if fits(other, one) else None
    if one.__class__ is other.__class__ and (one == other or (one != one and other != other)):
        return one
    return Like((), promote_types(scalar_type(one), scalar_type(other)), default_device())


def _differ(name: str, block: Block, one: Kind, other: Kind) -> MinigradError:
    """The error for a variable with different kinds after two branches."""
    hint = "only tensors and numbers can depend on a tensor"
    if other.structure == one.structure and one.tensors:
        hint = "x.astype(...), mg.broadcast_to(x, shape), or mg.zeros_like(x) for a missing value"
    elif name == block.result:
        hint = "return the same kind of value on every path; a function without `return` at its end returns None"
    return error_class(one, other)(
        f"{block.called(name)} has two kinds after {block}",
        expect=f"the kind where the condition holds: {one}", actual=f"where it does not: {other}", hint=hint,
    )


def error_class(one: Kind, other: Kind) -> type[MinigradError]:
    """The class of error for two kinds that differ in structure, in shapes or in dtypes."""
    if one.structure != other.structure:
        return ConversionError
    shapes = [[part.shape if isinstance(part, Like) else () for part in kind.parts] for kind in (one, other)]
    return DtypeError if shapes[0] == shapes[1] else ShapeError


def tensors_of(value: Any, kind: Any) -> list[Tensor]:
    """The tensors of a value, converted to a kind."""
    if isinstance(kind, Undefined):
        return []
    if isinstance(value, Undefined):  # a flag keeps the code from reading it
        return [zeros(*like) for like in kind.tensors]
    leaves = flatten(value, WEAK)[0]
    return [
        as_tensor(leaf, part.device).astype(part.dtype, copy=False)
        for leaf, part in zip(leaves, kind.parts) if isinstance(part, Like)
    ]


def rebuilt(samples: Iterable[Any], kind: Any, left: Iterator[Tensor]) -> Any:
    """A value of a kind with the structure of a sample, made from the next tensors."""
    if isinstance(kind, Undefined):
        return kind
    sample = next(s for s in samples if not isinstance(s, Undefined))
    return flatten(sample, WEAK)[1]([next(left) if isinstance(part, Like) else part for part in kind.parts])
