"""Loaders: batches, order, random numbers from a seed, positions, and workers that fail or die."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad.data import DataLoader, TensorDataset
from minigrad.data.dataset import key_of
from minigrad.data.loader import own_numbers


class Squares(mg.data.Dataset):
    """A dataset in which some indices cause errors.  It is at the top of the module so that processes can load it."""

    def __init__(self, trouble=None, at=()):
        self.trouble, self.at = trouble, at

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index in self.at:
            if self.trouble == "raise":
                return self.deeper(index)
            if self.trouble == "exit":
                os._exit(3)
            if self.trouble == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.trouble == "shape":
                return np.zeros(index)
        return np.full(2, index * index)

    def deeper(self, index):
        raise ValueError(f"a bad item: {index}")


def jitter(item, rng):
    return item + rng.uniform()


def slowest_first(item, rng):
    time.sleep(0.002 * (10 - item[0] ** 0.5))
    return item + rng.uniform()


def many_numbers(item, rng):
    return rng.bit_generator.random_raw(40).view(np.int64)


def values(loader):
    return [batch.tolist() for batch in loader]


WORKERS = [
    pytest.param({}, id="none"),
    pytest.param({"workers": 3}, id="threads"),
    pytest.param({"workers": 2, "processes": True}, id="processes"),
]


# batches ------------------------------------------------------------------------------------------------------------


def test_epochs_contain_each_item_once_in_another_order():
    loader = DataLoader(range(103), 10, shuffle=True, seed=4)
    first, second = ([i for batch in loader for i in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(103))
    assert first != second and first != sorted(first)
    assert len(loader) == 11 and len(DataLoader(range(103), 10, drop_last=True)) == 10
    assert [len(b) for b in DataLoader(range(103), 10, drop_last=True)] == [10] * 10


def test_batches_are_tensors_of_the_items_types():
    items = [{"x": np.float32([i, 2]), "n": i, "f": i / 2, "ok": i > 1, "name": f"item {i}", "pair": (i, [i])}
             for i in range(3)]
    (batch,) = DataLoader(items, 3)
    assert batch["x"].dtype == mg.float32 and batch["x"].tolist() == [[0, 2], [1, 2], [2, 2]]
    assert batch["n"].dtype == mg.int64 and batch["f"].dtype == mg.float32
    assert batch["ok"].tolist() == [False, False, True]
    assert batch["name"] == ["item 0", "item 1", "item 2"]
    assert batch["pair"][1][0].tolist() == [0, 1, 2]


def test_batches_go_to_the_device():
    data = TensorDataset(np.ones((4, 2), np.float32), mg.asarray([1, 2, 3, 4]))
    assert all(part.device is mg.as_device("cpu:1") for part in next(iter(DataLoader(data, 2, device="cpu:1"))))
    with mg.device("cpu:1"):
        assert next(iter(DataLoader(data, 2)))[1].device is mg.as_device("cpu:1")


def test_gathering_at_once_is_the_same_as_item_by_item():
    rng = np.random.default_rng(0)
    data = TensorDataset(rng.normal(size=(20, 3)), rng.integers(0, 5, 20))
    part = mg.data.Subset(data, [3, 1, 4, 15, 9, 2, 6])
    at_once = [[p.tolist() for p in batch] for batch in DataLoader(part, 3, shuffle=True, seed=1)]
    listed = [part[i] for i in range(len(part))]
    assert [[p.tolist() for p in batch] for batch in DataLoader(listed, 3, shuffle=True, seed=1)] == at_once


# randomness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", WORKERS)
def test_the_seed_alone_decides(options):
    loader = DataLoader(Squares(), 3, shuffle=True, augment=slowest_first, seed=7, **options)
    two_epochs = values(loader) + values(loader)
    alone = DataLoader(Squares(), 3, shuffle=True, augment=jitter, seed=7)
    assert two_epochs == values(alone) + values(alone)
    assert values(DataLoader(Squares(), 3, shuffle=True, augment=jitter, seed=8)) != two_epochs[:4]
    flat = [x % 1 for batch in two_epochs for item in batch for x in item[:1]]
    assert len(set(flat)) == 20, "each item has numbers of its own, in each epoch"


@pytest.mark.parametrize("options", WORKERS)
def test_items_order_and_epochs_have_random_numbers_of_their_own(options):
    loader = DataLoader(range(6), 3, augment=many_numbers, seed=7, **options)
    drawn = [int(x) for _ in range(2) for batch in loader for item in batch.numpy() for x in item]
    drawn += [int(x) for epoch in range(2) for x in np.random.Philox(key=key_of(7, epoch)).random_raw(40).view("i8")]
    assert len(drawn) == len({*drawn}) == 2 * 6 * 40 + 2 * 40


def test_an_item_may_draw_any_number_of_random_numbers():
    """A generator counts up: the next item begins after 2¹²⁸ blocks, in the upper half of the counter."""
    counters = [own_numbers(7, index).bit_generator.state["state"]["counter"].tolist() for index in (0, 1, 2**40)]
    assert counters == [[0, 0, 1, 0], [0, 0, 2, 0], [0, 0, 2**40 + 1, 0]]


def test_order_without_a_seed_follows_the_default_generator():
    mg.random.seed(3)
    first = values(DataLoader(range(20), 4, shuffle=True))
    other = values(DataLoader(range(20), 4, shuffle=True))
    mg.random.seed(3)
    assert values(DataLoader(range(20), 4, shuffle=True)) == first != other


def test_the_order_stays_as_it_was_when_it_was_stored():
    """A position in a checkpoint means the same in the next version."""
    assert values(DataLoader(range(8), 8, shuffle=True, seed=0)) == [[0, 2, 1, 5, 4, 3, 6, 7]]


# positions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "stop"),
    [({}, 0), ({}, 1), ({}, 4), ({}, 6), ({"workers": 3}, 1), ({"workers": 3}, 6),
     ({"workers": 1, "processes": True}, 6)],
)
def test_interrupted_loop_continues_at_its_position(options, stop):
    make = lambda: DataLoader(Squares(), 3, shuffle=True, augment=jitter, seed=5, **options)  # noqa: E731
    whole = make()
    expected = values(whole) + values(whole) + values(whole)
    loader, seen = make(), []
    for _ in range(3):
        for batch in loader if len(seen) < stop else ():
            seen.append(batch.tolist())
            if len(seen) == stop:
                break
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    while len(seen) < len(expected):
        seen += values(resumed)
    assert seen == expected


def test_the_state_at_the_end_of_an_epoch_is_the_next_ones_beginning():
    loader = DataLoader(range(4), 2, seed=1)
    sizes = {"batch_size": 2, "items": 4}
    assert loader.state_dict() == {"seed": 1, "epoch": 0, "batch": 0, **sizes}
    next(iter(loader))
    assert loader.state_dict() == {"seed": 1, "epoch": 0, "batch": 1, **sizes}
    values(loader)
    assert loader.state_dict() == {"seed": 1, "epoch": 2, "batch": 0, **sizes}
    with pytest.raises(mg.ConversionError, match="a state is what state_dict"):
        loader.load_state_dict({"seed": 1})


def test_the_state_of_another_loader_fits_between_epochs_only():
    loader, larger = DataLoader(range(6), 2, seed=1), DataLoader(range(6), 3, seed=2)
    larger.load_state_dict(loader.state_dict())
    assert larger.seed == 1
    next(iter(loader))
    with pytest.raises(mg.ConversionError, match=r"batches of 3 out of 6 items\n  Got: batches of 2 out of 6"):
        larger.load_state_dict(loader.state_dict())


# errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", WORKERS)
def test_an_item_that_fails_is_named_with_its_traceback_and_the_loop_can_continue(options):
    import traceback

    loader = DataLoader(Squares("raise", at=[4]), 2, **options)
    batches = iter(loader)
    assert [next(batches).tolist()[0][0] for _ in range(2)] == [0, 4]
    message = "item 4 of Squares could not be loaded: ValueError: a bad item: 4"
    with pytest.raises(mg.data.DataError, match=message) as e:
        next(batches)
    text = "".join(traceback.format_exception(e.value))
    assert "in deeper" in text and "dataset[4] shows the error alone" in text and __file__ in str(e.value)
    assert [batch.tolist()[0][0] for batch in batches] == [36, 64]
    with pytest.raises(mg.data.DataError):
        values(loader)
    loader.close()


@pytest.mark.parametrize("options", WORKERS)
def test_batch_of_items_that_do_not_fit_together_names_them(options):
    loader = DataLoader(Squares("shape", at=[5]), 4, **options)
    with pytest.raises(mg.data.DataError, match=r"a batch of items 4, 5, 6, 7 of Squares .*: item 1 of a batch has"):
        values(loader)
    loader.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("trouble", "words"), [("exit", "with exit code 3"), ("kill", "of SIGKILL")])
def test_a_worker_that_dies_is_named_and_replaced(trouble, words):
    loader = DataLoader(Squares(trouble, at=[6]), 2, workers=1, processes=True)
    batches = iter(loader)
    assert len([next(batches) for _ in range(3)]) == 3
    with pytest.raises(mg.data.DataError, match=rf"worker 0 \(process \d+\) died {words} over a batch of items 6, 7"):
        next(batches)
    assert next(batches).tolist() == [[64, 64], [81, 81]]
    loader.close()


def test_workers_explain_what_cannot_be_sent_to_a_process():
    loader = DataLoader(range(4), 2, augment=lambda x, rng: x, workers=1, processes=True)
    with pytest.raises(mg.data.DataError, match="the dataset can't be sent to another process") as error:
        values(loader)
    assert "processes=False" in str(error.value)


@pytest.mark.slow
def test_a_browser_has_no_workers(monkeypatch):
    monkeypatch.setattr("minigrad.data.loader.IN_BROWSER", True)
    with pytest.warns(UserWarning, match="neither threads nor processes, so the loop itself loads") as caught:
        loader = DataLoader(Squares(), batch_size=4, workers=2, processes=True)
    assert caught[0].filename == __file__ and "processes" not in repr(loader)
    assert [batch.shape for batch in loader] == [(4, 2), (4, 2), (2, 2)]


@pytest.mark.slow
def test_workers_end_with_the_loader():
    import multiprocessing

    before = set(threading.enumerate())
    loader = DataLoader(Squares(), 2, workers=2, processes=True)
    for _ in loader:
        break
    mine = [p for p in multiprocessing.active_children() if p.name.startswith("minigrad-data")]
    assert 1 <= len(mine) <= 2
    del loader
    gc.collect()
    assert not any(p.is_alive() for p in mine)
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("minigrad-data")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DataLoader(iter([1])), "a list_iterator is not a dataset"),
        (lambda: DataLoader([1], 0), "batch_size is an integer, 1 or more, not 0"),
        (lambda: DataLoader([1], workers=-1), "workers is an integer, 0 or more"),
        (lambda: TensorDataset([1, 2], [1]), "arrays of different lengths"),
        (lambda: TensorDataset(3), "arrays with a first dimension"),
        (lambda: mg.data.Subset([1, 2], [2]), "there is no item 2, only 2 items"),
        (lambda: mg.data.random_split([1, 2], [1, 2]), r"2 items can't be divided into 1 \+ 2"),
        (lambda: mg.data.random_split([1, 2], [0.5, 0.6]), "shares add up to 1, but these add up to 1.1"),
        (lambda: mg.data.Flip(2), "a probability is between 0 and 1"),
        (lambda: values(DataLoader([{"a": 1}, {"b": 1}], 2)), "dicts with different keys"),
        (lambda: values(DataLoader([(1,), (1, 2)], 2)), "tuples of different lengths"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


# parts of ranks -------------------------------------------------------------------------------------------------------


def batches_of_ranks(size, count=22, **options):
    """For each rank, the batches of two epochs."""
    def loaded(comm):
        loader = DataLoader(range(count), 6, shuffle=True, seed=3, shard=comm, **options)
        return len(loader), [[batch.tolist() for batch in loader] for _ in range(2)]

    return mg.distributed.ThreadCommunicators(size).run(loaded)


def test_the_parts_of_ranks_are_the_batches_of_one():
    whole = DataLoader(range(22), 6, shuffle=True, seed=3)
    expected = [[batch.tolist() for batch in whole] for _ in range(2)]
    for size in (1, 2):
        parts = batches_of_ranks(size)
        for epoch, batches in enumerate(expected):
            together = [[i for one in some for i in one] for some in zip(*[found[epoch] for _, found in parts])]
            assert together == batches


def test_a_last_batch_that_cannot_be_divided_is_cut():
    """22 items: three batches of 6, and one of 4, of which three ranks get one item each; six ranks leave it out."""
    whole = [batch.tolist() for batch in DataLoader(range(22), 6, shuffle=True, seed=3)]
    parts = batches_of_ranks(3)
    assert [count for count, _ in parts] == [4] * 3
    assert [found[0][-1] for _, found in parts] == [[item] for item in whole[-1][:3]]
    assert [count for count, _ in batches_of_ranks(6)] == [3] * 6
    assert [count for count, _ in batches_of_ranks(2, drop_last=True)] == [3] * 2


def test_the_position_of_a_loader_fits_any_number_of_ranks():
    def rest(comm, state):
        loader = DataLoader(range(22), 6, shuffle=True, shard=comm)
        loader.load_state_dict(state)
        return [batch.tolist() for batch in loader]

    whole = DataLoader(range(22), 6, shuffle=True, seed=5)
    expected = [batch.tolist() for batch in whole]
    first = iter(whole := DataLoader(range(22), 6, shuffle=True, seed=5))
    next(first)
    one, other = mg.distributed.ThreadCommunicators(2).run(lambda comm: rest(comm, whole.state_dict()))
    assert [a + b for a, b in zip(one, other)] == expected[1:]


def test_a_drawn_seed_is_that_of_rank_0():
    seeds = mg.distributed.ThreadCommunicators(3).run(lambda comm: DataLoader(range(6), 3, shard=comm).seed)
    assert len(set(seeds)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda rank: {"seed": rank // 2}, "different seeds[^$]*0 in rank 0, 0 in rank 1, 1 in rank 2"),
        (lambda rank: {"dataset": range(6 + rank)}, "different numbers of items[^$]*7 in rank 1"),
        (lambda rank: {"batch_size": 3 * (rank + 1)}, "different batch sizes[^$]*6 in rank 1"),
        (lambda rank: {"batch_size": 4}, "a batch of 4 cannot be divided among 3 ranks"),
    ],
)
def test_loaders_that_differ_between_ranks(options, message):
    with pytest.raises(mg.MinigradError, match=message):
        mg.distributed.ThreadCommunicators(3).run(
            lambda comm: DataLoader(**({"dataset": range(6), "batch_size": 3} | options(comm.rank)), shard=comm)
        )


# augmentation and splits --------------------------------------------------------------------------------------------


def test_augmentations_shift_flip_and_add_noise():
    rng = np.random.default_rng(0)
    picture = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4)
    moved = [mg.data.Shift(1)((picture, 7), rng) for _ in range(50)]
    assert {label for _, label in moved} == {7} and len({m.tobytes() for m, _ in moved}) == 9
    for shifted, _ in moved:
        inside = shifted[0, 1:3, 1:3]
        assert (np.diff(inside, axis=1) == 1).all() and (np.diff(inside, axis=0) == 4).all()
    assert {mg.data.Flip()(picture, rng)[0, 0, 0] for _ in range(50)} == {1, 4}
    noisy = mg.data.Noise(0.5)(np.zeros(10_000, np.float32), rng)
    assert noisy.dtype == np.float32 and 0.49 < noisy.std() < 0.51
    both = mg.data.Compose(mg.data.Flip(1.0), mg.data.Flip(1.0))
    assert (both((picture, 1), rng)[0] == picture).all()


def test_random_split_contains_each_item_once():
    parts = mg.data.random_split(range(100), [0.7, 0.2, 0.1], seed=3)
    assert [len(p) for p in parts] == [70, 20, 10]
    assert sorted(i for part in parts for i in part) == list(range(100))
    assert [len(part) for part in mg.data.random_split(range(5), [5, 0])] == [5, 0]
    again = mg.data.random_split(range(100), [70, 20, 10], seed=3)
    assert [list(p) for p in again] == [list(p) for p in parts]
    assert list(mg.data.random_split(range(100), [70, 30], seed=4)[0]) != list(parts[0])
