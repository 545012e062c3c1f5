"""PyTorch's `utils.data`: datasets of tensors, and a loader that keeps them tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import minigrad as mg

from .table import refuse


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


class DataLoader:
    """Batches; the order of `shuffle` follows from minigrad's generator.  Workers change nothing but the speed."""

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = False, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Any = None, **options: Any,
    ) -> None:
        unknown = {*options} - {"prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"}
        if unknown:
            raise TypeError(f"DataLoader() got an unexpected keyword argument {unknown.pop()!r}")
        if batch_size is None:
            refuse("DataLoader(batch_size=None)", "for item in dataset")
        self.dataset, self.batch_size, self.drop_last, self.shuffle = dataset, batch_size, drop_last, shuffle
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator or mg.random
        self.collate_fn, self.num_workers = collate_fn or collate, num_workers

    def _order(self) -> Any:
        if self.sampler is not None:
            return self.sampler
        count = len(self.dataset)
        return self.generator.permutation(count).tolist() if self.shuffle else range(count)

    def _batches(self) -> Iterator[list[Any]]:
        if isinstance(self.dataset, IterableDataset):
            yield from self._grouped(self.dataset)
        elif self.batch_sampler is not None:
            for each in self.batch_sampler:
                yield [self.dataset[i] for i in each]
        else:
            for each in self._grouped(self._order()):
                yield [self.dataset[int(i)] for i in each]

    def _grouped(self, items: Any) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for each in items:
            batch.append(each)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self._batches())

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        count, size = len(self.sampler if self.sampler is not None else self.dataset), self.batch_size or 1
        return count // size if self.drop_last else -(-count // size)


class Sampler:
    """Numbers of items, drawn anew for each epoch."""

    def __init__(self, count: int, draw: Callable[[], Any]) -> None:
        self.count, self.draw = count, draw

    def __iter__(self) -> Iterator[int]:
        return iter(self.draw().tolist())

    def __len__(self) -> int:
        return self.count


PUBLIC = (Dataset, IterableDataset, TensorDataset, Subset, ConcatDataset, DataLoader)
