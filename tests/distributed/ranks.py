"""A script for several ranks, which test_ranks.py starts: all collectives, then one fault by name."""

import gc
import os
import signal
import sys
import time

import numpy as np

import minigrad as mg

comm = mg.distributed.communicator()
rank, size = comm.rank, comm.size
fault = sys.argv[1] if len(sys.argv) > 1 else ""


def equal(found, expected):
    found = found.numpy() if isinstance(found, mg.Tensor) else found
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def all_collectives():
    parts = [np.arange(4 * size, dtype=np.float32) * (i + 1) for i in range(size)]
    x, total, own = mg.asarray(parts[rank]), sum(parts), slice(4 * rank, 4 * rank + 4)
    for given in (x, parts[rank], x.astype(mg.float16), x.astype(mg.int64), mg.asarray(parts[rank][::-1])[::-1]):
        equal(comm.allreduce(given), total)
        equal(comm.allreduce(given, algorithm="ring"), total)
        equal(comm.reduce_scatter(given), total[own])
        equal(comm.allgather(given), np.concatenate(parts))
        equal(comm.broadcast(given, root=size - 1), parts[-1])
    equal(comm.allreduce(x, "mean"), total / size)
    equal(comm.allreduce(x, "max"), parts[-1])
    equal(comm.allreduce(x, "min"), parts[0])
    equal(comm.allgather(rank), np.arange(size))
    comm.barrier()
    for buffer in (x.copy(), parts[rank].copy(), x.astype(mg.float16)):
        request = comm.start_allreduce(buffer, "mean")
        while not request.test():
            pass
        assert request.wait() is buffer
        equal(buffer, total / size)
    comm.start_allreduce(np.ones(100_000))  # dropped: MPI still writes to its memory
    gc.collect()
    comm.barrier()


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    out = np.zeros(3)
    receiving = comm.start_recv(out, left, tag=5)
    sending = comm.start_send(mg.full(3, float(rank), dtype=mg.float64), right, tag=5)
    assert receiving.wait() is out and sending.wait() is not None
    equal(out, [left] * 3)
    for count in (3, 100_000):  # few bytes travel with the call, many when it is answered
        x, whole = np.ones(count, np.float32), np.zeros((2, count))
        for like in (x.astype(np.int32), x.reshape(-1, 1), whole, whole[0, :1], mg.zeros(count - 1)):
            for receive in (comm.recv, start_and_wait, start_and_test):
                talk(x, like, receive)
        assert not whole.any()  # Open MPI alone writes behind an array that is too small


def talk(x, like, receive):
    """A message that does not fit is refused, and the next one arrives."""
    if rank == 0:
        comm.send(x, to=1)
        comm.send(x, to=1)
    if rank == 1:
        try:
            receive(0, like)
        except mg.DistributedError as error:
            assert f"Expected: {like.dtype} ({like.shape[0]}," in str(error)
            assert f"Got: float32 ({x.size},)" in str(error)
        else:
            raise AssertionError("a message of a different dtype or shape was received")
        equal(comm.recv(0, x), x)


def start_and_wait(source, out):
    return comm.start_recv(out, source).wait()


def start_and_test(source, out):
    request = comm.start_recv(out, source)
    while not request.test():
        pass


def jitted_step():
    """Gradients by two requests, which are on their way together, and a loss that is averaged."""
    w, b = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray(0.5, requires_grad=True)
    x = mg.asarray([1.0, 3.0]) * (rank + 1)

    def step(x):
        w.grad = b.grad = None
        loss = mg.exp(-(w * x).sum() / 10 + b)
        loss.backward()
        requests = [comm.start_allreduce(p.grad, "mean") for p in (b, w)]
        for request in requests:
            request.wait()
        with mg.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
        return comm.allreduce(loss, "mean")

    first = [step(x).item() for _ in range(3)], w.tolist(), b.item()
    w, b = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray(0.5, requires_grad=True)
    program = mg.jit(step)
    second = [program(x).item() for _ in range(3)], w.tolist(), b.item()
    for one, other in zip(first, second):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    weights = comm.allgather(w.detach())
    equal(weights, np.tile(w.numpy_copy(), size))


def fail():
    """The fault, in rank 1; the others wait for it."""
    comm.barrier()
    if rank == 1:
        if fault == "raise":
            raise ValueError("no such batch")
        elif fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "hang":
            time.sleep(600)
        elif fault == "shape":
            comm.allreduce(mg.ones(3))
        elif fault == "end":
            sys.exit()
        elif fault == "exit":
            sys.exit(3)
        elif fault == "_exit":
            os._exit(4)
        elif fault == "vanish":
            os._exit(0)
    comm.allreduce(mg.ones(4))


if __name__ == "__main__":
    if fault:
        fail()
    else:
        assert (comm.local_rank, comm.local_size) == (rank, size)  # on one host
        all_collectives()
        messages()
        jitted_step()
        sys.stdout.write(f"rank {rank} of {size} is done\n")
