"""Loaders keep tensors tensors, and follow PyTorch's order without shuffling."""

import numpy as np
import pytest
from minigrad.compat.torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from minigrad.compat import torch


class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return {"x": torch.tensor(float(i)), "y": (i, i * 0.5), "name": str(i), "a": np.ones(2, np.float32)}


def test_a_batch_of_dicts_tuples_numbers_and_arrays():
    batches = list(DataLoader(Squares(), batch_size=2))
    assert len(batches) == 3 == len(DataLoader(Squares(), batch_size=2)) and batches[0]["x"].tolist() == [0.0, 1.0]
    assert batches[0]["name"] == ["0", "1"] and batches[0]["y"][1].dtype == torch.float64
    assert batches[0]["a"].dtype == torch.float32 and batches[2]["y"][0].tolist() == [4]
    assert len(list(DataLoader(Squares(), 2, drop_last=True))) == 2


def test_orders_and_samplers():
    data = TensorDataset(torch.arange(6), torch.arange(6) * 2)
    torch.manual_seed(0)
    loader = DataLoader(data, batch_size=6, shuffle=True, num_workers=2, pin_memory=True)
    first, second = next(iter(loader))[0].tolist(), next(iter(loader))[0].tolist()
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4, 5] and first != second
    generator = torch.Generator().manual_seed(3)
    again = torch.Generator().manual_seed(3)
    a, b = (next(iter(DataLoader(data, 6, shuffle=True, generator=g)))[0].tolist() for g in (generator, again))
    assert a == b
    assert next(iter(DataLoader(data, 2, sampler=[4, 5, 0])))[1].tolist() == [8, 10]
    assert [x.tolist() for x, _ in DataLoader(data, batch_sampler=[[0, 1], [2]])] == [[0, 1], [2]]
    assert len(DataLoader(data, batch_sampler=[[0, 1], [2]])) == 2 and len(RandomSampler(data)) == 6
    assert sorted(SubsetRandomSampler([7, 8])) == [7, 8]
    weighted = list(WeightedRandomSampler([0.0, 1.0], 4))
    assert weighted == [1, 1, 1, 1] and len(WeightedRandomSampler([1.0], 4)) == 4


def test_parts_and_streams():
    data = Squares()
    both = data + Subset(data, [1])
    assert len(both) == 6 and isinstance(both, ConcatDataset)
    assert both[5]["x"].item() == 1.0 and both[-6]["x"].item() == 0.0
    parts = random_split(range(10), [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [8, 2] and sorted([*parts[0], *parts[1]]) == list(range(10))

    class Stream(IterableDataset):
        def __iter__(self):
            return iter([1.0, 2.0, 3.0])

    assert [batch.tolist() for batch in DataLoader(Stream(), batch_size=2)] == [[1.0, 2.0], [3.0]]
    loader = DataLoader(data, batch_size=5, collate_fn=lambda items: torch.stack([each["x"] for each in items]))
    assert next(iter(loader)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_wrong_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'batchsize'"):
        DataLoader(Squares(), batchsize=2)
    with pytest.raises(ValueError, match=r"DataLoader\(batch_size=None\) is not supported"):
        DataLoader(Squares(), batch_size=None)
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        Dataset()[0]
    with pytest.raises(IndexError):
        ConcatDataset([range(2)])[2]
