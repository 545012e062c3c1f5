"""Masks in an index: which dimensions they stand for, and writes to their places before these are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.mode import current_mode
from ..core.tensor import ADVICE, NONZERO, AbstractData, Tensor
from ..support.errors import IndexingError, TraceError
from .creation import ones, zeros
from .elementwise import where
from .view import broadcast_to, reshape

BASIC = (int, slice, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """Whether an index has integers, slices, None and an Ellipsis only, so that it selects a view.

    >>> is_basic((0, slice(1, None))), is_basic([0, 1])
    (True, False)
    """
    if index.__class__ is tuple:
        return all(isinstance(i, BASIC) and i is not True and i is not False for i in index)
    return isinstance(index, BASIC) and index is not True and index is not False


def check_masks(x: Tensor, items: Sequence[Any]) -> None:
    """Check that a mask has the shape of the dimensions that it indexes, or sizes of 0: then it selects nothing."""
    widths = [item.ndim if is_mask(item) else 0 if item is None or item is Ellipsis else 1 for item in items]
    place = 0
    for item, width in zip(items, widths):
        part = x.shape[place : place + width]
        if is_mask(item) and [size for size, there in zip(item.shape, part) if size in (0, there)] != [*item.shape]:
            raise IndexingError(f"a mask of shape {item.shape} for dimensions of shape {part}", expect=f"shape {part}")
        place += x.ndim - sum(widths) if item is Ellipsis else width


def is_mask(item: Any) -> bool:
    """Whether a part of an index is a tensor of bools."""
    return isinstance(item, Tensor) and item.dtype.kind == "b"


class Selected(AbstractData):
    """The data of `x[mask]` while the mask is not computed: it has no shape, and only writes to such places can use it.

    `part` has the elements that are not selected too, `hit` says which are, and the last `free` dimensions are those
    that the mask does not index.
    """

    __slots__ = ("dtype", "free", "hit", "mask", "part")

    def __init__(self, mask: AbstractData, part: Tensor, hit: Tensor, free: int) -> None:
        self.mask, self.part, self.hit, self.free, self.dtype = mask, part, hit, free, part.dtype

    @property
    def shape(self) -> Any:
        why = f"{NONZERO} needs the value of a tensor {self.mask.no_value}"
        raise self.mask.missed(TraceError(why, hint=ADVICE[NONZERO]))

    def safe(self) -> Tensor:
        """The part with ones where nothing is selected: there no slope is infinite."""
        return where(self.hit, self.part, ones((), self.dtype, self.part.device))

    def beside(self, value: Any) -> Any:
        """The elements of `value` beside those of the part: one for all, or those of the same mask.  Else None."""
        data = getattr(value, "_data", None)
        if data.__class__ is Selected and data.mask is self.mask and data.part.shape == self.part.shape:
            return data.safe()
        return value if getattr(value, "ndim", 0) <= self.free else None


def selected(x: Tensor, index: Any, now: bool) -> Selected | None:
    """The elements of `x` at the places of a mask that is not computed yet; None for other indices.

    `now` computes the mask if that can be done, as in graph mode.
    """
    index = index if index.__class__ is tuple else (index,)
    places = [k for k, item in enumerate(index) if is_mask(item)]
    if len(places) != 1:
        return None
    mask, before, behind = index[places[0]], index[: places[0]], index[places[0] + 1 :]
    data = current_mode().state.stand_in(mask)._data
    if now and isinstance(data, AbstractData):
        data = data.evaluated()
    if data.__class__ is x.device.ndarray or not is_basic((*before, *behind)):
        return None
    counts = [sum(1 for i in part if i is not None and i is not Ellipsis) for part in (before, behind)]
    first = x.ndim - mask.ndim - counts[1] if Ellipsis in before else counts[0]
    rest = x.ndim - first - mask.ndim
    if x.shape[first : first + mask.ndim] != mask.shape:
        return None
    hit = broadcast_to(reshape(mask, (1,) * first + mask.shape + (1,) * rest), x.shape)
    part = (*before, *[slice(None)] * mask.ndim, *behind)
    return Selected(data, x[part], hit[part], 0 if before or behind else rest)


def write_where(x: Tensor, index: Any, value: Any) -> bool:
    """Write to the places of a mask that is not computed yet: each element stays or becomes the value.

    False for other indices, and for a value that has an element for each place: their number is not known.
    """
    place = selected(x, index, now=False)
    value = None if place is None else place.beside(value)
    if place is None or value is None:
        return False
    new = zeros(getattr(value, "shape", ()), x.dtype, x.device)
    new[...] = value
    place.part[...] = where(place.hit, new, place.part)
    return True
