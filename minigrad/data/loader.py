"""`DataLoader`: the items of a dataset in batches, shuffled, augmented, and loaded ahead by workers."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from ..core.tensor import Tensor
from ..devices import as_device
from ..ops.creation import asarray
from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import ConversionError, DistributedError
from ..support.host import IN_BROWSER
from ..support.interrupts import all_or_none
from ..support.source import warn_caller
from ..support.table import counted
from ..support.words import a_type, shown
from .collate import collate as usual_collate
from .dataset import TensorDataset, key_of, order
from .errors import DataError
from .workers import ItemFault, Workers, brief

B = TypeVar("B", covariant=True)

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """What the type of a batch does not depend on."""

        drop_last: bool
        workers: int
        processes: bool
        prefetch: int
        seed: int | None
        device: Any
        shard: Any

    class Other(Options, total=False):
        augment: Callable[[Any, np.random.Generator], Any] | None
        collate: Callable[[list[Any]], Any] | None


@dataclass(frozen=True)
class Source:
    """How to load a batch.  It can be sent to another process."""

    dataset: Any
    augment: Callable[[Any, np.random.Generator], Any] | None
    collate: Callable[[list[Any]], Any]

    def load(self, key: int, indices: np.ndarray[Any, Any]) -> Any:
        """The batch of some items, in arrays."""
        try:
            if self.augment is None and self.collate is usual_collate and hasattr(self.dataset, "batch"):
                return self.dataset.batch(indices)
            return self.collate([self._item(key, int(index)) for index in indices])
        except ItemFault:
            raise
        except Exception as error:
            raise ItemFault(indices.tolist(), brief(error)) from error

    def _item(self, key: int, index: int) -> Any:
        try:
            item = self.dataset[index]
            return item if self.augment is None else self.augment(item, own_numbers(key, index))
        except Exception as error:
            raise ItemFault([index], brief(error)) from error


class DataLoader(Generic[B]):
    """Batches of a dataset, as tensors: `for x, y in loader` goes through all of them once, which is an epoch.

    With `shuffle` each epoch has a different order.  `augment(item, rng)` changes an item at random, by a NumPy
    generator that belongs to that item in that epoch.  `collate(items)` turns a list of items into a batch of arrays.
    `workers` threads load `prefetch` batches each ahead of the loop; with `processes`, each of them uses its
    own process.  All random numbers follow from `seed` (by default drawn from `mg.random`), for any number of
    workers.  In a browser, which has neither threads nor processes, the loop itself loads each batch.

    With `shard`, a communicator of n ranks, each rank gets its part of every batch: `batch_size` is that of all ranks
    together, a multiple of n.  The parts are equal, so the mean of the losses of the ranks is the loss of the batch.
    The order of the items and the position in `state_dict` do not depend on n.  If the number of items in the last
    batch is not a multiple of n, up to n - 1 items are left out.

    Threads are the better choice where NumPy, Pillow or reading files take the time: they run without Python's lock,
    and nothing is copied from one process to another.  Processes are for items that Python itself computes.

    >>> loader = mg.data.DataLoader(mg.data.TensorDataset([1, 2, 3, 4, 5]), batch_size=2, shuffle=True, seed=0)
    >>> len(loader), [x.tolist() for (x,) in loader], [x.tolist() for (x,) in loader]
    (3, [[1, 3], [2, 5], [4]], [[4, 3], [5, 2], [1]])
    """

    @overload
    def __init__(self: DataLoader[tuple[Tensor, ...]], dataset: TensorDataset, batch_size: int = 1,
                 shuffle: bool = False, **options: Unpack[Options]) -> None: ...
    @overload
    def __init__(self: DataLoader[Any], dataset: Any, batch_size: int = 1, shuffle: bool = False,
                 **options: Unpack[Other]) -> None: ...

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, *, drop_last: bool = False,
                 augment: Callable[[Any, np.random.Generator], Any] | None = None,
                 collate: Callable[[list[Any]], Any] | None = None, workers: int = 0, processes: bool = False,
                 prefetch: int = 2, seed: int | None = None, device: Any = None, shard: Any = None) -> None:
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ConversionError(f"DataLoader: {a_type(dataset)} is not a dataset",
                                  expect="an object with a length and items by number", hint="list(it)")
        for name, number, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if not isinstance(number, int) or number < least:
                raise ConversionError(f"DataLoader: {name} is an integer, {least} or more, not {number!r}")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.device = None if device is None else as_device(device)
        self.seed = drawn_seed() if seed is None else seed
        if not (shard is None or hasattr(shard, "allgather")):
            raise ConversionError(f"DataLoader: shard is a communicator, not {shown(shard)}",
                                  hint="mg.distributed.communicator()")
        self.rank, self.ranks = getattr(shard, "rank", 0), getattr(shard, "size", 1)
        if self.ranks > 1:
            self.seed = _agreed(self, shard, seed)
        self.source = Source(dataset, augment, collate or usual_collate)
        if workers and IN_BROWSER:
            warn_caller("DataLoader: a browser has neither threads nor processes, so the loop itself loads each batch, "
                        f"as with workers=0, not {workers}")
            workers = 0
        self.workers, self.prefetch = workers, prefetch
        self._pool = Workers(self.source, workers, processes) if workers else None
        self._epoch, self._batch, self._resumed = -1, 0, False
        if self._pool is not None:
            weakref.finalize(self, self._pool.close)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest >= self.ranks and not self.drop_last)

    def __iter__(self) -> Iterator[B]:
        """The next epoch, or after `load_state_dict` the rest of the interrupted one."""
        if not self._resumed:
            self._epoch, self._batch = self._epoch + 1, 0
        self._resumed = False
        return Epoch(self, self._epoch, self._batch)

    def state_dict(self) -> dict[str, int]:
        """The position of the loop, for a loader with the same settings: seed, epoch, number of batches so far.

        >>> loader = mg.data.DataLoader(range(6), batch_size=2, shuffle=True, seed=0)
        >>> first = next(iter(loader))
        >>> state = loader.state_dict()
        >>> other = mg.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> other.load_state_dict(state)
        >>> state, sorted(first.tolist() + [i for batch in other for i in batch.tolist()])
        ({'seed': 0, 'epoch': 0, 'batch': 1, 'batch_size': 2, 'items': 6}, [0, 1, 2, 3, 4, 5])
        """
        done = self._epoch < 0 or self._batch >= len(self)
        sizes = {"batch_size": self.batch_size, "items": len(self.dataset)}  # what the number of a batch counts
        return {"seed": self.seed, "epoch": self._epoch + done, "batch": 0 if done else self._batch, **sizes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from a `state_dict`: the next loop is the rest of that epoch."""
        own = self.state_dict()
        if set(state) != set(own):
            raise ConversionError(f"a state is what state_dict() returns, {', '.join(own)}, not {state!r}")
        if state["batch"] and any(state[name] != own[name] for name in ("batch_size", "items")):
            raise ConversionError(
                "load_state_dict: the state belongs to another loader, and to the middle of an epoch",
                expect=f"batches of {self.batch_size} out of {counted(len(self.dataset), 'item')}",
                actual=f"batches of {state['batch_size']} out of {state['items']:,}",
            )
        self.seed, self._epoch, self._batch = (int(state[name]) for name in ("seed", "epoch", "batch"))
        self._resumed = True

    def close(self) -> None:
        """End the workers.  This also happens when the loader is garbage-collected."""
        if self._pool is not None:
            self._pool.close()

    def __repr__(self) -> str:
        words = [f"{counted(len(self), 'batch', 'batches')} of {self.batch_size}"] + ["shuffled"] * self.shuffle
        words += [f"{self.workers} {self._pool.kind}"] if self._pool else []
        words += [f"part {self.rank} of {self.ranks}"] * (self.ranks > 1)
        return f"DataLoader({self.dataset!r:.60}: {', '.join(words)})"


class Epoch:
    """One pass over a loader's batches.  After an error it goes on with the next batch."""

    def __init__(self, loader: DataLoader, epoch: int, start: int) -> None:
        self.loader, self.epoch = loader, epoch
        count = len(loader.dataset)
        indices = order(count, loader.seed, epoch) if loader.shuffle else np.arange(count)
        size = loader.batch_size
        batches = [(i, indices[i * size : (i + 1) * size]) for i in range(start, len(loader))]
        self.tasks = deque([(i, _part(batch, loader.rank, loader.ranks)) for i, batch in batches])
        self.waiting: deque[tuple[int, Any, Callable[[], Any]]] = deque()

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        loader = self.loader
        ahead = max(1, loader.workers * loader.prefetch)
        while self.tasks and len(self.waiting) < ahead:
            number, indices = self.tasks[0]
            waiting = number, indices, self._begin(indices)
            all_or_none(partial(self._wait_for, waiting))
        if not self.waiting:
            raise StopIteration
        number, _, result = self.waiting[0]
        try:
            batch = _as_tensors(result(), loader.device)
        except Exception as fault:
            all_or_none(partial(self._is_out, number))
            if not isinstance(fault, ItemFault):
                raise
            what = f"{fault} of {type(loader.dataset).__name__} could not be loaded: {fault.reason}"
            raise DataError(what, hint=f"dataset[{fault.indices[0]}] shows the error alone") from fault.__cause__
        all_or_none(partial(self._is_out, number))  # now: an interrupt while it was loaded leaves it the next one
        return batch

    def _wait_for(self, waiting: tuple[int, Any, Callable[[], Any]]) -> None:
        """Record that the first task has begun."""
        if not self.waiting or self.waiting[-1][0] != waiting[0]:
            self.waiting.append(waiting)
        if self.tasks and self.tasks[0][0] == waiting[0]:
            self.tasks.popleft()

    def _is_out(self, number: int) -> None:
        """Record that the first waiting task was returned or has failed."""
        self.loader._epoch, self.loader._batch = self.epoch, number + 1
        if self.waiting and self.waiting[0][0] == number:
            self.waiting.popleft()

    def _begin(self, indices: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """A function that returns the batch; if there are workers, one of them has begun to load it."""
        key = key_of(self.loader.seed, self.epoch)
        if self.loader._pool is None:
            return partial(self.loader.source.load, key, indices)
        return self.loader._pool.begin(key, indices)


def own_numbers(key: int, index: int) -> np.random.Generator:
    """The random numbers of one item in one epoch, the same in every worker."""
    return np.random.Generator(np.random.Philox(key=key, counter=(index + 1) << 128))


def drawn_seed() -> int:
    """A seed from the default generator, so `mg.random.seed` determines this one too."""
    key, block = DEFAULT_GENERATOR.take_blocks(1)
    return int(np.random.Philox(key=key, counter=block + 1).random_raw()) >> 1


def _part(batch: np.ndarray[Any, Any], rank: int, ranks: int) -> np.ndarray[Any, Any]:
    """The part of a rank; the parts of all ranks are equal."""
    count = len(batch) // ranks
    return batch[rank * count : (rank + 1) * count]


def _agreed(loader: DataLoader, comm: Any, given: int | None) -> int:
    """The seed of all ranks: the one that is given, which must be the same, or that of rank 0."""
    if loader.batch_size % comm.size:
        raise ConversionError(f"DataLoader: a batch of {loader.batch_size} cannot be divided among {comm.size} ranks",
                              expect="batch_size, the size for all ranks together, is a multiple of their number")
    numbers = np.asarray([loader.seed if given is None else given, len(loader.dataset), loader.batch_size])
    for what, *found in zip(("seeds", "numbers of items", "batch sizes"), *comm.allgather(numbers).reshape(-1, 3)):
        if len(set(found)) > 1 and (what != "seeds" or given is not None):
            listed = ", ".join(f"{number} in rank {rank}" for rank, number in enumerate(found))
            raise DistributedError(f"DataLoader: the ranks have different {what}", actual=listed)
    return int(comm.broadcast(numbers)[0])


def _as_tensors(batch: Any, device: Any) -> Any:
    if isinstance(batch, (np.ndarray, np.generic)) and batch.dtype.kind in "fiub":
        return asarray(batch, device=device)
    if isinstance(batch, Tensor):
        return batch if device is None else batch.to(device)  # type: ignore[attr-defined]
    if isinstance(batch, tuple):
        return tuple([_as_tensors(part, device) for part in batch])
    if isinstance(batch, dict):
        return {name: _as_tensors(part, device) for name, part in batch.items()}
    return batch
