"""Ranks that take turns in one thread, as in a browser, do what ranks in threads do."""


import numpy as np
import pytest

import minigrad as mg
from minigrad.distributed import Communicator, ThreadCommunicators
from minigrad.distributed.engine import Engine
from minigrad.distributed.turns import Turns
from minigrad_course.feedback import Wrong
from minigrad_course.units.u13_distributed import cables, on_ranks, training
from minigrad_course.units.u13_distributed.exercise import AllGather, ReduceScatter


def in_turns(size, function):
    return ThreadCommunicators(size, post=Turns(size)).run(function)


def collectives(comm):
    x = mg.arange(6.0) * (comm.rank + 1)
    begun = comm.start_allreduce(x * 1)
    while not begun.test():
        pass
    found = [begun.wait(), comm.allreduce(x, "max"), comm.allgather(x[:2]), comm.reduce_scatter(x)]
    found.append(comm.broadcast(x, 2))
    comm.barrier()
    comm.send(x, (comm.rank + 1) % comm.size, tag=3)
    found.append(comm.recv((comm.rank - 1) % comm.size, x, tag=3))
    return [each.tolist() for each in found]


def test_turns_give_what_threads_give():
    assert in_turns(3, collectives) == ThreadCommunicators(3).run(collectives)


@pytest.mark.slow
def test_a_training_of_all_ranks_is_the_same():
    ranks = in_turns(4, lambda comm: training.by_hand(comm, steps=2))
    assert ranks == ThreadCommunicators(4).run(lambda comm: training.by_hand(comm, steps=2))


def test_a_rank_that_begins_again_draws_the_same_numbers():
    mg.random.seed(0)
    drawn = in_turns(2, lambda comm: [comm.allreduce(mg.random.uniform(2)).tolist() for _ in range(3)])
    assert drawn[0] == drawn[1] and drawn[0][0] != drawn[0][1]


def test_each_line_is_printed_once(capsys):
    def speak(comm):
        for step in range(3):
            print(f"rank {comm.rank} in step {step}")
            comm.allreduce(mg.ones(1))

    in_turns(2, speak)
    assert sorted(capsys.readouterr().out.splitlines()) == [f"rank {r} in step {s}" for r in range(2) for s in range(3)]


def test_ranks_that_wait_for_each_other_are_named():
    with pytest.raises(mg.DistributedError, match="wait for each other: rank 0 for a message of rank 1, rank 1 for"):
        in_turns(2, lambda comm: comm.recv(1 - comm.rank, np.zeros(1)))


def test_the_error_of_a_rank_names_it():
    def fail(comm):
        comm.barrier()
        return 1 // (1 - comm.rank)

    with pytest.raises(ZeroDivisionError) as raised:
        in_turns(2, fail)
    assert raised.value.__notes__ == ["in rank 1"]


def test_a_rank_that_does_something_else_the_second_time_is_an_error():
    tags = iter([1, 1, 1, 1, 2])

    def differ(comm):
        other, x = 1 - comm.rank, np.zeros(1)
        for _ in range(3):
            comm.send(x, other, tag=1)
            comm.recv(other, x, tag=1 if comm.rank else next(tags))

    with pytest.raises(mg.DistributedError, match="rank 0 has done something else than before\n  Hint: in a browser"):
        in_turns(2, differ)


# ---- the exercise of unit 13 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [ReduceScatter(), AllGather()])
def test_the_rings_of_the_course_are_checked_in_turns(monkeypatch, task):
    monkeypatch.setattr(cables, "IN_BROWSER", True)
    assert "no rank waits for ever" in task.check(task.right)
    with pytest.raises(Wrong):
        task.check(task.wrong(task.mistakes[0]))
    with pytest.raises(Wrong, match="it never ends: rank 0 waits until rank 1 receives"):
        task.check(lambda comm, chunks: comm.send(chunks[0], (comm.rank + 1) % comm.size))


@pytest.mark.slow
def test_a_training_with_a_ring_in_turns_is_that_of_one_process(monkeypatch):
    monkeypatch.setattr(training, "batches", lambda: list(on_ranks.batches())[:5])
    ring = ReduceScatter().right, AllGather().right
    run = training.in_turns(ring)
    assert (run.ranks, run.calls) == (4, 5)
    np.testing.assert_allclose(run.losses, on_ranks.run(Communicator(Engine())).losses[:5], rtol=1e-4)
    parameters = sum(p.size for p in on_ranks.network().parameters())
    assert abs(run.sent / (5 * 4 * parameters * 6 / 4) - 1) < 0.01
