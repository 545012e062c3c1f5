"""Collectives between threads: values, gradients, vmap, graphs, and the errors of ranks that do not fit together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.core.primitive import P
from minigrad.distributed import Communicator, ThreadCommunicators
from minigrad.distributed.engine import Engine
from minigrad.distributed.watch import Watch, memory_for
from minigrad.support.errors import DistributedError, DtypeError, ShapeError

N = 3


def on_ranks(function, size=N):
    return ThreadCommunicators(size, timeout=120).run(function)


def vector(rank, count=6):
    return np.arange(count, dtype=np.float32) * (rank + 1)


def total(count=6, size=N):
    return sum(vector(rank, count) for rank in range(size))


CASES = {
    "sum": (lambda comm, x: comm.allreduce(x), lambda r: total()),
    "ring": (lambda comm, x: comm.allreduce(x, algorithm="ring"), lambda r: total()),
    "mean": (lambda comm, x: comm.allreduce(x, "mean"), lambda r: total() / N),
    "max": (lambda comm, x: comm.allreduce(x, "max"), lambda r: vector(N - 1)),
    "min": (lambda comm, x: comm.allreduce(x, "min"), lambda r: vector(0)),
    "broadcast": (lambda comm, x: comm.broadcast(x, 1), lambda r: vector(1)),
    "allgather": (lambda comm, x: comm.allgather(x), lambda r: np.concatenate([vector(i) for i in range(N)])),
    "reduce_scatter": (lambda comm, x: comm.reduce_scatter(x), lambda r: total()[2 * r : 2 * r + 2]),
}
MODES = {
    "array": lambda f, x: f(x),
    "tensor": lambda f, x: f(mg.asarray(x)).numpy(),
    "jit": lambda f, x: mg.jit(f)(mg.asarray(x)).numpy(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_collectives_compute_the_same_on_arrays_tensors_and_in_programs(name, mode):
    call, expected = CASES[name]
    found = on_ranks(lambda comm: MODES[mode](lambda x: call(comm, x), vector(comm.rank)))
    for rank in range(N):
        np.testing.assert_allclose(found[rank], expected(rank), rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_one_rank_alone_needs_no_engine(name):
    call, _ = CASES[name]
    x = mg.asarray(vector(0))
    comm = Communicator(Engine())
    assert call(comm, x).tolist() == x.tolist() if name != "broadcast" else comm.broadcast(x).tolist() == x.tolist()


# The ring -------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 13), st.sampled_from(["int64", "float32", "float16"]), st.data())
def test_the_ring_sums_arrays_of_any_size_on_any_number_of_ranks(size, count, dtype, data):
    numbers = st.lists(st.integers(-9, 9), min_size=count, max_size=count)
    arrays = [np.array(data.draw(numbers), dtype) for _ in range(size)]
    found = ThreadCommunicators(size, 20).run(lambda comm: comm.allreduce(arrays[comm.rank], algorithm="ring"))
    for result in found:
        np.testing.assert_array_equal(result, np.sum(arrays, 0))
        assert result.dtype == dtype and result.shape == (count,)


# Gradients, batches, graphs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "broadcast", "allgather", "reduce_scatter"])
def test_gradients_are_those_of_the_sum_over_the_losses_of_all_ranks(name, jitted):
    """The numeric gradient of sum(loss of each rank) by the input of one rank."""
    call, _ = CASES[name]

    def losses(comm, x):
        out = call(comm, x)
        return (mg.sin(out) * (comm.rank + 1)).sum()

    def numeric(rank, i):
        def moved(by):
            def loss(comm):
                x = vector(comm.rank).astype(np.float64)
                x[i] += by * (comm.rank == rank)
                return losses(comm, mg.asarray(x)).item()

            return sum(on_ranks(loss))

        return (moved(1e-5) - moved(-1e-5)) / 2e-5

    def gradient(comm):
        f = mg.grad(lambda x: losses(comm, x))
        return (mg.jit(f) if jitted else f)(mg.asarray(vector(comm.rank).astype(np.float64))).tolist()

    found = on_ranks(gradient)
    for rank, i in [(0, 1), (1, 2), (2, 5)]:
        assert found[rank][i] == pytest.approx(numeric(rank, i), abs=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "broadcast", "allgather", "reduce_scatter"])
def test_forward_mode_and_reverse_mode_agree(name):
    call, _ = CASES[name]

    def products(comm):
        x, v = mg.asarray(vector(comm.rank)), mg.asarray(vector(comm.rank + 1))
        out, moved = mg.jvp(lambda x: call(comm, x), (x,), (v,))
        _, pull = mg.vjp(lambda x: call(comm, x), x)
        weights = mg.asarray(np.cos(np.arange(out.size, dtype=np.float32)) + comm.rank)
        back = pull(weights)
        back = back[0] if isinstance(back, (tuple, list)) else back
        return (moved * weights).sum().item(), (back * v).sum().item()

    found = on_ranks(products)
    assert sum(a for a, _ in found) == pytest.approx(sum(b for _, b in found), rel=1e-5)


def test_equal_maxima_share_the_gradient():
    def gradient(comm):
        return mg.grad(lambda x: comm.allreduce(x, "max").sum())(mg.asarray([1.0, float(comm.rank)])).tolist()

    assert on_ranks(gradient, 2) == [[1.0, 0.0], [1.0, 2.0]]


def test_the_minimum_of_integers_is_right_at_both_ends():
    def smallest(comm):
        return comm.allreduce(mg.asarray([0, 255 - comm.rank], dtype=mg.uint8), "min").tolist()

    assert on_ranks(smallest, 2) == [[0, 254]] * 2


@pytest.mark.parametrize("name", CASES)
def test_vmap_communicates_once_for_all_examples(name):
    call, expected = CASES[name]

    def mapped(comm):
        rows = mg.asarray(np.stack([vector(comm.rank), 10 * vector(comm.rank)]))
        return mg.vmap(lambda x: call(comm, x))(rows).numpy(), comm.watch.count

    for rank, (rows, count) in enumerate(on_ranks(mapped)):
        np.testing.assert_allclose(rows, [expected(rank), 10 * expected(rank)], rtol=1e-6)
        assert count == 1


def test_programs_keep_all_collectives_in_the_order_of_the_code():
    def ran(comm):
        @mg.jit
        def step(x):
            comm.allreduce(x * 3)  # unused, and not removed
            first = comm.allreduce(x)
            second = comm.allreduce(x)  # equal, and not merged
            third = comm.broadcast(mg.exp(x))
            return third, first + second

        for _ in range(2):
            third, twice = step(mg.ones(2) * comm.rank)
        return third.tolist(), twice.tolist(), comm.watch.count

    assert on_ranks(ran, 2) == [([1.0, 1.0], [2.0, 2.0], 8)] * 2


def test_graph_mode_communicates_when_a_value_is_read():
    def read(comm):
        with mg.graph():
            total = comm.allreduce(mg.ones(2) * comm.rank)
            before = comm.watch.count
            values = (total + 1).tolist()
        return before, values

    assert on_ranks(read) == [(0, [4.0, 4.0])] * N


def test_a_checkpoint_communicates_again_in_the_backward_pass():
    def gradient(comm):
        w = mg.asarray([1.0, 2.0], requires_grad=True)
        mg.checkpoint(lambda w: mg.exp(comm.allreduce(w * w)))(w).sum().backward()
        return w.grad.tolist(), comm.watch.count

    expected = (2 * 2 * np.array([1, 2]) * np.exp(2 * np.array([1.0, 4.0]))).tolist()
    for grad, count in on_ranks(gradient, 2):
        np.testing.assert_allclose(grad, expected, rtol=1e-5)
        assert count == 3


def test_collectives_are_nodes_like_others():
    comm = Communicator(Engine())
    w = mg.asarray([1.0], requires_grad=True)
    node = comm.allreduce(w).node
    assert node.op is P.allreduce and node.effect == "collective"
    f = mg.jit(lambda x: mg.exp(comm.allreduce(x)))
    assert "allreduce(tensor_1, comm=<Communicator: rank 0 of 1, alone>" in str(f.graph(mg.ones(1)))
    assert f.values(mg.ones(1))["allreduce_1"].tolist() == [1.0]
    assert "allreduce_1(tensor_1), by a library" in str(f.kernels(mg.ones(1)))
    assert mg.jit(lambda x: comm.allreduce(x), check=True)(mg.ones(1)).tolist() == [1.0]


def test_kernels_run_while_arrays_are_on_their_way():
    comm = Communicator(Engine())

    @mg.jit
    def step(x, y):
        request = comm.start_allreduce(x)
        z = mg.exp(y)
        request.wait()
        return z

    plan = step.program(mg.ones(2), mg.ones(3)).plan
    names = [plan.steps[number].name for turn in plan.turns for number in turn]
    assert names == ["start_allreduce_1", "kernel_1", "wait_1"]


def test_loops_communicate_in_each_round():
    def looped(comm):
        def half(carry, _):
            carry = comm.allreduce(carry) / 4
            return carry, carry

        found = mg.jit(lambda x: mg.scan(half, x, mg.arange(3))[0])(mg.ones(1)).tolist()
        return found, comm.watch.count

    assert on_ranks(looped, 2) == [([0.125], 3)] * 2


def test_a_program_with_a_collective_is_not_saved(tmp_path):
    comm = Communicator(Engine())
    f = mg.jit(lambda x: comm.allreduce(x) + 1)
    with pytest.raises(mg.ProgramError, match="does more than compute its result: allreduce, at "):
        f.save(tmp_path / "step.program", mg.ones(1))


# Transfers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sum", "mean", "max"])
@pytest.mark.parametrize("mode", ["array", "tensor", "jit", "graph"])
def test_start_allreduce_replaces_its_buffer(mode, op):
    expected = {"sum": total(), "mean": total() / N, "max": vector(N - 1)}[op]

    def reduced(comm):
        x = vector(comm.rank)

        def run(buffer, other):
            request = comm.start_allreduce(buffer, op)
            product = mg.exp(other)
            assert request.wait() is buffer and request.wait() is buffer
            return product

        if mode == "array":
            run(x, mg.ones(2))
            return x
        buffer = mg.asarray(x)
        if mode == "graph":
            with mg.graph():
                run(buffer, mg.ones(2))
        else:
            (mg.jit(run) if mode == "jit" else run)(buffer, mg.ones(2))
        return buffer.numpy()

    for found in on_ranks(reduced):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_several_transfers_of_a_program_are_on_their_way_at_once():
    def ran(comm):
        @mg.jit
        def step(a, b):
            one = comm.start_allreduce(a)
            two = comm.start_allreduce(b, "mean")
            c = mg.tanh(mg.ones(2))
            one.wait(), two.wait()
            return c

        a, b = mg.ones(4), mg.ones(2) * comm.rank
        step(a, b)
        assert not comm.begun
        names = [n.name for n in step.graph(a, b).nodes if n.effect]
        assert names == ["start_allreduce", "start_allreduce", "wait", "wait"]
        return a.tolist(), b.tolist()

    assert on_ranks(ran) == [([3.0] * 4, [1.0] * 2)] * N


def test_messages_arrive_in_order_and_by_tag():
    def talk(comm):
        if comm.rank == 0:
            comm.send(mg.asarray([1.0]), to=1, tag=7)
            comm.send(np.array([2.0]), to=1)
            request = comm.start_send(np.array([3.0]), to=1)
            request.wait()
            return request.test()
        out = np.zeros(1)
        request = comm.start_recv(out, 0)
        got = request.wait()[0], comm.recv(0, np.zeros(1))[0], comm.recv(0, mg.zeros(1), tag=7)
        return *got[:2], got[2].tolist(), request.test()

    assert on_ranks(talk, 2) == [True, (2.0, 3.0, [1.0], True)]


# Errors ---------------------------------------------------------------------------------------------------------------

MISMATCHES = {
    "shape": (lambda comm: comm.allreduce(mg.ones(3 + comm.rank)), r"allreduce sum of float32 \(4,\)"),
    "dtype": (lambda comm: comm.allreduce(np.ones(3, ["f4", "f8"][comm.rank])), r"float64 \(3,\)"),
    "op": (lambda comm: comm.allreduce(np.ones(3), ["sum", "max"][comm.rank]), "allreduce max"),
    "order": (lambda comm: comm.barrier() if comm.rank else comm.broadcast(mg.ones(1)), "barrier"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_ranks_that_differ_in_a_collective_are_named(name):
    call, part = MISMATCHES[name]
    with pytest.raises(DistributedError, match=r"ranks differ in their collective number 1[^$]*as in rank") as error:
        on_ranks(call, 2)
    error.match(part)
    error.match("in rank [01]\n")


def test_a_rank_that_fails_ends_the_others_and_is_named():
    def fail(comm):
        if comm.rank == 1:
            raise ValueError("no such batch")
        comm.allreduce(mg.ones(1))

    with pytest.raises(ValueError, match="no such batch") as error:
        on_ranks(fail)
    assert error.value.__notes__ == ["in rank 1"]


def test_a_rank_that_waits_for_too_long_says_for_whom():
    with pytest.raises(DistributedError, match=r"rank 1 has waited for 0.1 s for a message of rank 0"):
        ThreadCommunicators(2, timeout=0.1).run(lambda comm: comm.recv(0, mg.ones(1)) if comm.rank else None)


class Failing(Engine):
    """An engine whose calls fail, as those of mpi4py and NCCL do."""

    size = 2

    def start_send(self, *args, **how):
        raise RuntimeError("MPI_ERR_TRUNCATE: message truncated")

    allreduce = start_allreduce = start_send


FAILED = {
    "allreduce sum of float32": lambda comm, x: comm.allreduce(x),
    "allgather of float32": lambda comm, x: comm.allgather(x),
    "start_allreduce sum of float32": lambda comm, x: comm.start_allreduce(x).wait(),
    "send to rank 1": lambda comm, x: comm.send(x, to=1),
    "recv from rank 1": lambda comm, x: comm.recv(1, like=x),
    "barrier": lambda comm, x: comm.barrier(),
}


@pytest.mark.parametrize("make", [np.asarray, mg.asarray])
@pytest.mark.parametrize("name", FAILED)
def test_what_fails_in_mpi_is_an_error_of_ours(name, make):
    comm, x = Communicator(Failing()), make(np.ones(4, np.float32))
    with pytest.raises(DistributedError, match=rf"{name}.*MPI_ERR_TRUNCATE"):
        FAILED[name](comm, x)
    if name.startswith("all") and make is mg.asarray:
        with pytest.raises(DistributedError, match=rf"{name}.*MPI_ERR_TRUNCATE"):
            mg.jit(lambda x: FAILED[name](comm, x))(x)


def test_ranks_are_also_counted_on_their_host():
    """Eight ranks on two hosts: the watch has rows for those of one host."""
    engine = Engine()
    engine.rank, engine.size = 6, 8
    comm = Communicator(engine, Watch(memory_for(4), 2, [4, 5, 6, 7], 8))
    assert (comm.rank, comm.size, comm.local_rank, comm.local_size) == (6, 8, 2, 4)
    assert on_ranks(lambda comm: (comm.local_rank, comm.local_size)) == [(0, 3), (1, 3), (2, 3)]
    alone = mg.distributed.communicator()
    assert (alone.local_rank, alone.local_size) == (0, 1)


OTHER = {  # what is sent, what is expected
    "size": (np.zeros(4), np.zeros(3)),
    "dtype": (np.ones(3, np.int32), np.ones(3, np.float32)),
    "width": (np.ones(2, np.float32), np.ones(1)),
    "shape": (np.ones((2, 3)), np.ones((3, 2))),
    "order": (np.ones(3, ">f4"), np.ones(3, "<f4")),
}


@pytest.mark.parametrize("how", ["recv", "wait", "test"])
@pytest.mark.parametrize("name", OTHER)
def test_a_message_of_another_dtype_or_shape_is_refused(name, how):
    sent, like = OTHER[name]

    def talk(comm):
        if comm.rank == 0:
            comm.send(sent, to=1)
        elif how == "recv":
            comm.recv(0, like)
        elif how == "wait":
            comm.start_recv(like.copy(), 0).wait()
        else:
            request = comm.start_recv(like.copy(), 0)
            while not request.test():
                pass

    with pytest.raises(DistributedError, match="message of rank 0 has a different dtype or shape") as error:
        on_ranks(talk, 2)
    error.match(rf"(?s)Expected: {like.dtype} \({like.shape[0]},.*Got: {sent.dtype} \({sent.shape[0]},")


REFUSED = {
    "rank": (lambda c: c.recv(2, mg.ones(1)), DistributedError, "source=2 is not a rank of this run"),
    "root": (lambda c: c.broadcast(mg.ones(1), root=-1), DistributedError, "root=-1 is not a rank"),
    "itself": (lambda c: c.send(mg.ones(1), to=0), DistributedError, "rank 0 is this rank itself"),
    "op": (lambda c: c.allreduce(mg.ones(1), "middle"), DistributedError, "there is no op 'middle'"),
    "algorithm": (lambda c: c.allreduce(mg.ones(1), algorithm="star"), DistributedError, "no algorithm 'star'"),
    "bools": (lambda c: c.allreduce(mg.ones(1) > 0), DtypeError, "only numbers have a sum"),
    "mean": (lambda c: c.start_allreduce(mg.arange(3), "mean"), DtypeError, "mean of integers"),
    "piece": (lambda c: c.start_allreduce(np.ones((2, 2)).T[:1]), ShapeError, "not one piece of memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name):
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call(Communicator(Engine()))


def test_rows_that_cannot_be_shared_equally_are_refused():
    with pytest.raises(ShapeError, match=r"each of 2 ranks gets an equal part[^$]*a multiple of 2 rows"):
        on_ranks(lambda comm: comm.reduce_scatter(mg.ones(3)), 2)


def test_a_write_through_a_transfer_is_seen_by_gradients():
    comm = Communicator(Engine())
    x, w = mg.ones(2), mg.ones(2)
    w.requires_grad = True
    loss = (w * x).sum()
    comm.start_allreduce(x).wait()
    with pytest.raises(mg.MutationError):
        loss.backward()
    with pytest.raises(mg.MutationError, match="leaf that requires a gradient"):
        comm.start_allreduce(w)
