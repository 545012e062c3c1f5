"""Datasets: anything with a length and items by number.

A list is a dataset.  A dataset that can load several items faster than one by one has a method `batch(indices)`, which
returns them as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..support.errors import ConversionError, IndexingError, ShapeError
from ..support.table import counted
from ..support.words import shown, whole


class Dataset:
    """Items by number: subclasses define their number (`__len__`) and each item (`__getitem__`).

    >>> class Squares(mg.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> [batch.tolist() for batch in mg.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4]]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__ method")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__ method")

    def map(self, function: Callable[[Any], Any]) -> Mapped:
        """The same items, each changed by `function` when it is read.

        >>> mg.data.TensorDataset([1, 2, 3]).map(lambda item: item[0] * 10)[2].item()
        30
        """
        return Mapped(self, function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), 'item')})"


class TensorDataset(Dataset):
    """Arrays of the same length: item i is the tuple of their i-th elements.  They stay in the memory of the CPU.

    >>> points = mg.data.TensorDataset([[0.0, 1.0], [2.0, 3.0]], [7, 8])
    >>> x, y = points[1]
    >>> x.tolist(), y.item(), len(points)
    ([2.0, 3.0], 8, 2)
    """

    def __init__(self, *arrays: Any) -> None:
        self.arrays = tuple([host(array) for array in arrays])
        if not self.arrays or any(not array.ndim for array in self.arrays):
            raise ConversionError("TensorDataset: arrays need a first dimension, along which the items lie")
        if len({len(array) for array in self.arrays}) > 1:
            raise ShapeError("TensorDataset: arrays of different lengths", expect="the same number of elements in each",
                             actual=", ".join(str(array.shape) for array in self.arrays))

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple([array[index] for array in self.arrays])

    def batch(self, indices: Any) -> tuple[Any, ...]:
        """Several items at once: an array of each.

        >>> mg.data.TensorDataset([1, 2, 3], [4, 5, 6]).batch([2, 0])
        (array([3, 1]), array([6, 4]))
        """
        return tuple([array[indices] for array in self.arrays])


class Mapped(Dataset):
    """The items of another dataset, each changed by a function: the result of `dataset.map(function)`."""

    def __init__(self, dataset: Any, function: Callable[[Any], Any]) -> None:
        self.dataset, self.function = dataset, function

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.function(self.dataset[index])


class Subset(Dataset):
    """Some items of another dataset, in the order of `indices`.

    >>> list(mg.data.Subset("minigrad", [4, 5, 6, 7]))
    ['g', 'r', 'a', 'd']
    """

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset, self.indices = dataset, np.asarray(indices, dtype=np.int64)
        if self.indices.ndim != 1:
            raise ConversionError(f"Subset: indices are a list of integers, not {shown(indices)}")
        for place in np.flatnonzero((self.indices < 0) | (self.indices >= len(dataset)))[:1]:
            raise IndexingError(f"Subset: there is no item {self.indices[place]}, only {counted(len(dataset), 'item')}")
        gather = getattr(dataset, "batch", None)
        if gather is not None:
            self.batch = lambda indices: gather(self.indices[indices])

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[int(self.indices[index])]


def random_split(dataset: Any, lengths: Sequence[float], seed: int = 0) -> list[Subset]:
    """Parts of a dataset, with the items in random order: by their sizes, or by shares that add up to 1.

    The same seed always gives the same parts.

    >>> train, test = mg.data.random_split(list("abcdefghij"), [0.8, 0.2])
    >>> len(train), len(test), sorted([*train, *test]) == list("abcdefghij")
    (8, 2, True)
    """
    if whole(seed) is None:
        raise ConversionError(f"random_split: seed is an integer, not {shown(seed)}")
    total = len(dataset)
    counts = list(lengths)
    if not all(isinstance(count, int) for count in counts):
        if not math.isclose(sum(counts), 1.0):
            raise ConversionError(f"random_split: shares add up to 1, but these add up to {sum(counts):g}")
        ends = [round(sum(counts[: i + 1]) * total) for i in range(len(counts))]
        counts = [end - start for start, end in zip([0, *ends], ends)]
    if sum(counts) != total or min(counts, default=-1) < 0:
        raise ConversionError(f"random_split: {total} items can't be divided into {' + '.join(map(str, counts))}")
    starts = np.cumsum([0, *counts])
    shuffled = order(total, seed)
    return [Subset(dataset, shuffled[start : start + count]) for start, count in zip(starts, counts)]


def order(count: int, seed: int, epoch: int = 0) -> np.ndarray[Any, Any]:
    """The numbers below `count` in a random order, which depends on a seed and an epoch."""
    return np.argsort(np.random.Philox(key=key_of(seed, epoch)).random_raw(count), kind="stable")


def key_of(seed: int, epoch: int) -> int:
    """The key of the random numbers of one epoch."""
    return seed % (1 << 64) + (epoch << 64)


def host(array: Any) -> np.ndarray[Any, Any]:
    """Numbers in any form as a NumPy array, with Python's floats as float32, and its integers as int64."""
    if isinstance(array, Tensor):
        return array.numpy_copy()
    try:
        made = np.asarray(array)
    except ValueError:
        raise ConversionError(
            f"{shown(array)} is not an array of numbers", expect="nested lists of one shape"
        ) from None
    if isinstance(array, np.ndarray):
        return made
    # NumPy's own integers have 32 bits in a browser.
    usual: dict[Any, Any] = {np.dtype(np.float64): np.float32, np.dtype(np.int_): np.int64}
    return made.astype(usual.get(made.dtype, made.dtype), copy=False)
