"""Prints the loss curves of the digits example on the ranks that start it: eagerly, jitted, and with a restart."""

import inspect
import sys
import types

import numpy as np

import minigrad as mg
from minigrad.examples import digits_mlp

LOADER = "augment=noise"
OPTIMIZER = "    optimizer = mg.optim.AdamW"


def two_lines_changed(source):
    """The example for any number of ranks."""
    changed = source.replace(LOADER, LOADER + ", shard=mg.distributed.communicator()")
    return changed.replace(OPTIMIZER, "    model = mg.distributed.DataParallel(model)\n" + OPTIMIZER)


class Bar:
    """In place of a progress bar: it keeps the losses, and `parts` are saved and restored between two epochs."""

    def __init__(self, epochs, curve):
        self.epochs, self.curve = epochs, curve

    def __iter__(self):
        return iter(list(self.epochs)[:2])

    def show(self, loss):
        self.curve.append(loss.value)


def curve(source, jitted):
    """The mean loss of each epoch over all ranks."""
    found = []
    own = types.ModuleType("digits")
    exec(compile(source, "digits.py", "exec"), vars(own))
    before, mg.train.progress = mg.train.progress, lambda epochs, name: Bar(epochs, found)
    mg.random.seed(1)
    accuracy = own.main(jitted, quick=True)
    mg.train.progress = before
    return mg.distributed.communicator().allreduce(np.asarray([*found, accuracy]), "mean").tolist()


def restarted(path, jitted):
    """The losses of six steps with a sharded optimizer, and of the last three again, from a checkpoint."""
    comm = mg.distributed.communicator()

    def losses(resume):
        mg.random.seed(2)
        train, _ = mg.data.digits()
        loader = mg.data.DataLoader(train, 64, shuffle=True, shard=comm)
        model = mg.nn.Sequential(
            mg.nn.Flatten(), mg.nn.Linear(64, 32), mg.nn.BatchNorm1d(32), mg.nn.Dropout(0.5), mg.nn.Linear(32, 10)
        )
        model = mg.distributed.DataParallel(model, bucket_mb=0.004)
        optimizer = mg.distributed.ShardedOptimizer(mg.optim.AdamW, model.parameters(), lr=0.01)

        @mg.jit(disable=not jitted)
        def step(x, y):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return comm.allreduce(loss, "mean")

        parts = {"model": model, "optimizer": optimizer, "loader": loader}
        if resume:
            mg.io.load_checkpoint(path, **parts)
        found = []
        for i, (x, y) in enumerate(loader, 3 if resume else 0):
            found.append(step(x, y).item())
            if i == 2:
                mg.io.save_checkpoint(path, **parts)
                comm.barrier()
            if i == 5:
                return found

    whole = losses(resume=False)
    again = losses(resume=True)
    assert again == whole[3:], (whole, again)
    return whole


if __name__ == "__main__":
    text = two_lines_changed(inspect.getsource(digits_mlp))
    results = [curve(text, False), curve(text, True), restarted(sys.argv[1], False), restarted(sys.argv[1], True)]
    if mg.distributed.communicator().rank == 0:
        print(results)
