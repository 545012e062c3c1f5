"""PyTorch's `utils.data`: datasets of tensors, and a loader that keeps them tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

import minigrad as mg

from .torch_rows import refuse


class Dataset:
    """Items by number; a program's own class has `__len__` and `__getitem__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Items one after the other."""


class TensorDataset(Dataset):
    """Row i of each tensor."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple([each[index] for each in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(mg.data.Subset):
    """Some items of a dataset."""


class ConcatDataset(Dataset):
    """Datasets one behind the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)

    def __getitem__(self, index: int) -> Any:
        index = range(len(self))[index]
        for each in self.datasets:
            if index < len(each):
                return each[index]
            index -= len(each)
        raise IndexError(index)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


def split_at_random(dataset: Any, lengths: Any, generator: Any) -> list[Subset]:
    """Parts of a dataset, of these lengths or shares."""
    count = len(dataset)
    if sum(lengths) <= 1:
        whole = [int(count * each) for each in lengths]
        lengths = [n + (i < count - sum(whole)) for i, n in enumerate(whole)]
    order, ends = generator.permutation(count).tolist(), np.cumsum(lengths)
    return [Subset(dataset, order[end - n:end]) for n, end in zip(lengths, ends)]


def collate(items: Any) -> Any:
    """A batch: tensors, arrays and numbers are stacked, tuples and dicts are batches of their parts."""
    first = items[0]
    if isinstance(first, mg.Tensor):
        return mg.stack(list(items))
    if isinstance(first, (np.ndarray, np.generic, int, float)):
        return mg.asarray(np.stack([np.asarray(each) for each in items]))
    if isinstance(first, Mapping):
        return {key: collate([each[key] for each in items]) for key in first}
    return [collate(list(each)) for each in zip(*items)] if isinstance(first, (tuple, list)) else items


class Sampler:
    """Numbers of items; a program's own class has `__iter__`."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source


class SequentialSampler(Sampler):
    """`count` numbers, which `draw` gives; it is called again if they are not enough."""

    def __init__(self, count: int, draw: Callable[[], Any]) -> None:
        self.count, self.draw = count, draw

    def __iter__(self) -> Iterator[int]:
        left = self.count
        while left > 0:
            drawn = self.draw()[:left]
            left -= len(drawn)
            yield from drawn

    def __len__(self) -> int:
        return self.count


class RandomSampler(SequentialSampler):
    """All numbers in a random order, or numbers that may come twice."""


class SubsetRandomSampler(SequentialSampler):
    """Some numbers in a random order."""


class WeightedRandomSampler(SequentialSampler):
    """Numbers by chance, each with its own."""


class BatchSampler(Sampler):
    """Lists of the numbers of another sampler, all of one length but for the last."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        items = iter(self.sampler)
        while batch := list(islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return (len(self.sampler) + (not self.drop_last) * (self.batch_size - 1)) // self.batch_size


class DataLoader:
    """Batches; the order of `shuffle` follows from minigrad's generator.  Workers change nothing but the speed."""

    def __init__(self, dataset: Any, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
                 drop_last: bool, collate_fn: Callable[[Any], Any], generator: Any, num_workers: int) -> None:
        if batch_size is None and batch_sampler is None:
            refuse("DataLoader(batch_size=None)", "for item in dataset")
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.collate_fn, self.generator, self.shuffle = collate_fn, generator, shuffle
        if isinstance(dataset, IterableDataset):
            sampler = dataset  # the batches are lists of its items
        elif sampler is None:
            n = len(dataset)
            sampler = SequentialSampler(n, lambda: generator.permutation(n).tolist() if shuffle else range(n))
        self.sampler = sampler
        self.batch_sampler = batch_sampler or BatchSampler(sampler, batch_size or 1, drop_last)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batch_sampler:
            items = batch if self.sampler is self.dataset else [self.dataset[i] for i in batch]
            yield self.collate_fn(items)

    def __len__(self) -> int:
        return len(self.batch_sampler)


PUBLIC = (Dataset, IterableDataset, TensorDataset, Subset, ConcatDataset)
