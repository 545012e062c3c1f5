"""ShardedOptimizer: n ranks update as the plain optimizer does, and its state fits any number of ranks."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.distributed import DataParallel, ShardedOptimizer, ThreadCommunicators
from minigrad.nn.state import StateError
from minigrad.support.errors import ConversionError, DtypeError, GradError

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
Y = np.arange(12) % 3
KINDS = {
    "sgd": (mg.optim.SGD, {"lr": 0.5}),
    "momentum": (mg.optim.SGD, {"lr": 0.5, "momentum": 0.5, "dampening": 0.1}),
    "adamw": (mg.optim.AdamW, {"lr": 0.01, "eps": 1e-3}),
}


def on_ranks(function, size):
    return ThreadCommunicators(size, timeout=120).run(function)


def trained(comm, kind, jitted=False, averaged=False, sync=True, saved=None, steps=3):
    """The losses of some steps, and the states of model and optimizer: plain, or on several ranks."""
    source = mg.random.Generator(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    for p in model.parameters():
        nn.init.normal_(p, generator=source)
    cls, options = KINDS[kind]
    x, y = mg.asarray(X), mg.asarray(Y)
    if comm is not None:
        model, count = DataParallel(model, comm), 12 // comm.size
        x, y = x[comm.rank * count :][:count], y[comm.rank * count :][:count]
    first, *rest = model.parameters()
    groups = [{"params": [first]}, {"params": rest, "lr": 0.02}]
    made = cls(groups, **options) if comm is None else ShardedOptimizer(cls, groups, comm, averaged, **options)
    if saved:
        model.load_state_dict(saved[0])
        made.load_state_dict(saved[1])

    def step(x, y):
        made.zero_grad()
        with nullcontext() if sync else model.no_sync():
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
        made.step()
        return loss if comm is None else comm.allreduce(loss, "mean")

    run = mg.jit(step) if jitted else step
    return [run(x, y).item() for _ in range(steps)], (model.state_dict(), made.state_dict())


def equal_states(found, expected):
    assert found["param_groups"] == expected["param_groups"]
    assert list(found["state"]) == list(expected["state"])
    for number, entry in expected["state"].items():
        assert list(found["state"][number]) == list(entry)
        for name, value in entry.items():
            np.testing.assert_allclose(found["state"][number][name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "averaged", "sync"), [(1, False, True), (2, False, False), (3, True, True), (3, False, True)]
)
def test_ranks_update_as_the_plain_optimizer_does(size, averaged, sync, kind, jitted):
    losses, state = trained(None, kind, jitted)
    for found, (weights, own) in on_ranks(lambda comm: trained(comm, kind, jitted, averaged, sync), size):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        equal_states(own, state[1])
        for name, value in state[0].items():
            np.testing.assert_allclose(weights[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_a_state_is_read_with_another_number_of_ranks(kind):
    whole, _ = trained(None, kind, steps=5)
    first = on_ranks(lambda comm: trained(comm, kind, steps=2), 3)
    saved = first[2][1]
    continued, _ = trained(None, kind, saved=saved)
    np.testing.assert_allclose(continued, whole[2:], rtol=1e-5)
    for losses, _ in on_ranks(lambda comm: trained(comm, kind, saved=saved), 2):
        np.testing.assert_allclose(losses, whole[2:], rtol=1e-5)


def test_each_rank_keeps_the_state_of_its_part():
    def sizes(comm):
        parameters = nn.Linear(8, 8).parameters()
        made = ShardedOptimizer(mg.optim.Adam, parameters, comm, lr=0.1)
        return sum(t.size for t in made.inner.param_groups[0].state["exp_avg"]), repr(made)

    assert on_ranks(sizes, 4) == [(18, "ShardedOptimizer(2 parameters of 72 numbers, lr=0.1)")] * 4


def test_more_ranks_than_numbers():
    def updated(comm):
        w = mg.asarray([1.0, 2.0], requires_grad=True)
        made = ShardedOptimizer(mg.optim.AdamW, [w], comm, lr=0.5)
        (w * w).sum().backward()
        made.step()
        return w.tolist()

    w = mg.asarray([1.0, 2.0], requires_grad=True)
    plain = mg.optim.AdamW([w], lr=0.5)
    (w * w).sum().backward()
    plain.step()
    assert on_ranks(updated, 3) == [w.tolist()] * 3


def test_new_groups_schedules_and_values_set_from_outside():
    def values(comm):
        w, b = (mg.asarray([float(i), 2.0], requires_grad=True) for i in range(2))
        made = ShardedOptimizer(mg.optim.SGD, [w], comm, lr=1.0)
        made.add_param_group({"params": [b], "lr": 0.25})
        schedule = mg.optim.lr_scheduler.ExponentialLR(made, 0.5)
        for _ in range(2):
            made.zero_grad()
            (w.sum() + b.sum()).backward()
            made.step()
            schedule.step()
            with mg.no_grad():
                w += 10.0
        return w.tolist(), b.tolist(), [group["lr"] for group in made.param_groups]

    assert on_ranks(values, 2) == [([18.5, 20.5], [0.625, 1.625], [0.25, 0.0625])] * 2


def test_a_parameter_without_a_gradient_stays():
    def values(comm):
        w, b = (mg.asarray([1.0, 2.0], requires_grad=True) for _ in range(2))
        made = ShardedOptimizer(mg.optim.AdamW, [w, b], comm, averaged=True, lr=0.5)
        w.sum().backward()
        made.step()
        return b.tolist()

    assert on_ranks(values, 2) == [[1.0, 2.0]] * 2


def test_errors():
    w = mg.zeros((2, 2), requires_grad=True)
    with pytest.raises(ConversionError, match="optimizer_class is a class, not"):
        ShardedOptimizer([w], lr=0.1, parameters=[w])
    with pytest.raises(DtypeError, match=r"one dtype[^$]*float32, float64"):
        ShardedOptimizer(mg.optim.SGD, [w, mg.zeros(2, mg.float64, requires_grad=True)], lr=0.1)
    with pytest.raises(ConversionError, match="is in the list twice"):
        ShardedOptimizer(mg.optim.SGD, [w, w], lr=0.1)
    with pytest.raises(GradError, match="a parameter does not require a gradient"):
        ShardedOptimizer(mg.optim.SGD, [w, mg.ones(2)], lr=0.1)
    with pytest.raises(ConversionError, match="there are no parameters"):
        ShardedOptimizer(mg.optim.SGD, [], lr=0.1)
    made = ShardedOptimizer(mg.optim.Adam, [w], lr=0.1)
    other = mg.optim.Adam([mg.zeros(3, requires_grad=True)], lr=0.1).state_dict()
    with pytest.raises(StateError, match=r"exp_avg of a parameter of shape \(2, 2\) has shape \(3,\)"):
        made.load_state_dict(other)
    with pytest.raises(StateError, match="parameters in each group: 1"):
        made.load_state_dict(mg.optim.Adam([w, mg.zeros(3, requires_grad=True)], lr=0.1).state_dict())
