"""Data-parallel training: N ranks compute what one rank computes on the same global batch."""

import ast
import gc
import inspect
from contextlib import nullcontext
from weakref import ref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.distributed import DataParallel, ThreadCommunicators
from minigrad.distributed.data_parallel import PartOfDraws
from minigrad.examples import digits_mlp
from minigrad.support.errors import ConversionError, DistributedError

from .digits import curve, restarted, two_lines_changed
from .test_ranks import HERE, needs_mpi, started

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
Y = np.arange(12) % 3
SMALL, TINY = 1e-4, 1e-9  # MB: a few parameters in a bucket, and one


def on_ranks(function, size=2):
    return ThreadCommunicators(size, timeout=120).run(function)


def net(seed=0):
    source = mg.random.Generator(seed)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3)
    )
    for p in model.parameters():
        nn.init.normal_(p, generator=source)
    return model


def part(comm, array):
    """This rank's part of a batch; all of it if there is only one."""
    if comm is None:
        return mg.asarray(array)
    count = len(array) // comm.size
    return mg.asarray(array[comm.rank * count : (comm.rank + 1) * count])


def trained(comm=None, jitted=False, bucket_mb=SMALL, steps=4, parts=1):
    """The losses of some steps and the final state; a rank begins with other parameters than the others."""
    model = net() if comm is None else DataParallel(net(comm.rank), comm, bucket_mb)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    x, y = part(comm, X), part(comm, Y)

    def step(x, y):
        optimizer.zero_grad()
        total = 0.0
        for i in range(parts):
            last = comm is None or i == parts - 1
            with nullcontext() if last else model.no_sync():
                loss = mg.cross_entropy(model(x[i::parts]), y[i::parts]) / parts
                loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total if comm is None else comm.allreduce(total, "mean")

    run = mg.jit(step) if jitted else step
    losses = [run(x, y).item() for _ in range(steps)]
    return losses, {name: t.numpy_copy() for name, t in model.state_dict().items()}


def same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    assert list(found[1]) == list(expected[1])
    for name, value in expected[1].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("size", "bucket_mb"), [(1, SMALL), (2, SMALL), (3, SMALL), (3, TINY), (2, 1)])
def test_ranks_train_as_one_rank_on_the_whole_batch(size, bucket_mb, jitted):
    expected = trained(jitted=jitted)
    for found in on_ranks(lambda comm: trained(comm, jitted, bucket_mb), size):
        same(found, expected)


@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_of_several_backward_passes_are_averaged_once(jitted):
    def accumulated(comm):
        model = DataParallel(mg.nn.Linear(4, 3), comm, SMALL)
        for p in model.parameters():
            nn.init.normal_(p, generator=1)
        x, y = part(comm, X), part(comm, Y)
        calls = []
        start = comm.start_allreduce
        comm.start_allreduce = lambda *args: (calls.append(1), start(*args))[1]

        def step(x, y):
            model.zero_grad()
            for i in range(3):
                with model.no_sync() if i < 2 else nullcontext():
                    (mg.cross_entropy(model(x[i::3]), y[i::3]) / 3).backward()
            return model.weight.grad.copy()

        return (mg.jit(step) if jitted else step)(x, y).numpy(), len(calls)

    plain = nn.Linear(4, 3)
    for p in plain.parameters():
        nn.init.normal_(p, generator=1)
    mg.cross_entropy(plain(mg.asarray(X)), mg.asarray(Y)).backward()
    for gradient, calls in on_ranks(accumulated):
        np.testing.assert_allclose(gradient, plain.weight.grad.numpy(), rtol=1e-4, atol=1e-6)
        assert calls == 1


def test_two_losses_with_a_backward_pass_each():
    def gradient(comm):
        model = DataParallel(nn.Linear(4, 1, bias=False), comm)
        with mg.no_grad():
            model.weight[...] = 1.0
        x = part(comm, X)
        model(x).mean().backward()
        (model(x) ** 2).mean().backward()
        return model.weight.grad.numpy()

    w, x = mg.ones((1, 4), requires_grad=True), mg.asarray(X)
    ((x @ w.T).mean() + ((x @ w.T) ** 2).mean()).backward()
    for found in on_ranks(gradient):
        np.testing.assert_allclose(found, w.grad.numpy(), rtol=1e-5)


def test_a_bucket_starts_while_backward_runs():
    def events(comm):
        model = DataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)), comm, TINY)
        found, start = [], comm.start_allreduce
        comm.start_allreduce = lambda flat, op: (found.append(flat.size), start(flat, op))[1]
        h = model.module[0](part(comm, X))
        h.register_hook(lambda g: found.append("first layer"))
        model.module[2](model.module[1](h)).sum().backward()
        return found

    assert on_ranks(events) == [[1, 4, 4, 16, "first layer", 4, 16]] * 2


def test_in_a_program_buckets_start_before_the_gradients_of_the_first_layer():
    def steps(comm):
        model = DataParallel(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8)), comm, TINY)

        def step(x):
            model.zero_grad()
            (model(x) ** 2).sum().backward()

        program = mg.jit(step)
        program(part(comm, X))
        return [each.name for each in program.program(part(comm, X)).plan.steps]

    for names in on_ranks(steps):
        assert names.index("start_allreduce_1") < names.index("matmul_5") < names.index("start_allreduce_4")
        assert [name for name in names if name.startswith("wait")] == [f"wait_{i}" for i in (1, 2, 3, 4)]
        assert names.index("start_allreduce_4") < names.index("wait_1")


@pytest.mark.slow
def test_graph_mode():
    def gradient(comm):
        model = DataParallel(net(), comm, SMALL)
        with mg.graph():
            mg.cross_entropy(model(part(comm, X)), part(comm, Y)).backward()
            return model.module[0].weight.grad.numpy()

    model = net()
    mg.cross_entropy(model(mg.asarray(X)), mg.asarray(Y)).backward()
    for found in on_ranks(gradient):
        np.testing.assert_allclose(found, model[0].weight.grad.numpy(), rtol=1e-4, atol=1e-6)


class Half(nn.Module):
    """Uses one of two layers, by an argument."""

    def __init__(self):
        self.one, self.other = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, which):
        return (self.one if which == 0 else self.other)(x)


def test_a_parameter_that_a_rank_does_not_use_counts_as_zeros():
    def gradients(comm):
        model = DataParallel(Half(), comm)
        model(mg.ones((3, 2)), comm.rank).sum().backward()
        return model.one.weight.grad.tolist(), model.other.weight.grad.tolist()

    assert on_ranks(gradients) == [([[1.5, 1.5]], [[1.5, 1.5]])] * 2


def test_functional_gradients_are_not_averaged():
    def gradient(comm):
        model = DataParallel(nn.Linear(2, 1), comm)
        return mg.gradients(model(mg.ones((1, 2)) * comm.rank).sum(), model.weight).tolist()

    assert on_ranks(gradient) == [[[0.0, 0.0]], [[1.0, 1.0]]]


def test_backward_after_one_that_failed():
    def gradient(comm):
        model = DataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), comm, 1)
        h = model.module[0](mg.ones((1, 2)))
        h.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.module[1](h).sum().backward()
        model(mg.ones((1, 2))).sum().backward()
        return model.module[1].bias.grad.tolist()

    assert on_ranks(gradient) == [[1.0]] * 2


def test_the_model_may_be_moved_and_frozen_later():
    def gradients(comm):
        model = DataParallel(nn.Linear(2, 1), comm)
        model.module.to(mg.float64)
        model.bias.requires_grad = False
        model(mg.ones((1, 2), dtype=mg.float64) * comm.rank).sum().backward()
        return model.weight.grad.tolist(), model.bias.grad

    assert on_ranks(gradients) == [([[0.5, 0.5]], None)] * 2


# The digits example ---------------------------------------------------------------------------------------------------


@needs_mpi
def test_two_changed_lines_make_the_digits_example_a_run_of_4_ranks(tmp_path):
    """The loss curves match, with dropout, noise, a schedule and AdamW; and so does a run from a checkpoint."""
    source = inspect.getsource(digits_mlp)
    lines, changed = source.splitlines(), two_lines_changed(source).splitlines()
    assert len(changed) == len(lines) + 1 and len(set(changed) - set(lines)) == 2
    done = started("-n", "4", str(tmp_path / "four"), script=HERE / "digits.py")
    assert done.returncode == 0, done.stderr
    own = str(tmp_path / "one")
    found = ast.literal_eval(done.stdout)
    expected = [curve(source, False), curve(source, True), restarted(own, False), restarted(own, True)]
    for losses, others in zip(found, expected):
        np.testing.assert_allclose(losses, others, rtol=1e-4)


@pytest.mark.parametrize("jitted", [False, True])
def test_a_model_that_is_moved_before_a_program(jitted):
    def gradient(comm):
        model = DataParallel(nn.Linear(2, 1), comm).to(mg.float64)

        def step(x):
            model.zero_grad()
            model(x).sum().backward()

        (mg.jit(step) if jitted else step)(mg.ones((1, 2), dtype=mg.float64) * comm.rank)
        return model.weight.grad.tolist()

    assert on_ranks(gradient) == [[[0.5, 0.5]]] * 2


# As the model itself --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_that_is_gone_does_not_keep_its_parameters():
    weights = ThreadCommunicators(2).run(lambda comm: ref(DataParallel(nn.Linear(3, 2), comm).weight))
    gc.collect()
    assert [weight() for weight in weights] == [None, None]


def test_it_has_the_names_of_the_model():
    model = net()
    parallel = DataParallel(model)
    assert list(parallel.state_dict()) == list(model.state_dict())
    assert [id(p) for p in parallel.parameters()] == [id(p) for p in model.parameters()]
    assert [id(b) for b in parallel.buffers()] == [id(b) for b in model.buffers()]
    assert [name for name, _ in parallel.named_modules()] == [name for name, _ in model.named_modules()]
    parallel.load_state_dict(net(1).state_dict())
    assert model[0].weight.tolist() == net(1)[0].weight.tolist()
    parallel.eval()
    assert not model.training and not model[1].training and not parallel.training
    parallel.train()
    assert model.training and parallel.training
    attention = DataParallel(Half())
    assert attention.one is attention.module.one
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = attention.nothing_like_this


def test_all_ranks_begin_as_rank_0():
    def state(comm):
        model = net(comm.rank)
        model[1].running_mean[...] = comm.rank + 1.0
        model = DataParallel(model, comm)
        return [t.tolist() for t in model.state_dict().values()]

    one, other = on_ranks(state)
    assert one == other and one[4] == [1.0] * 8
    assert one[0] == net(0)[0].weight.tolist()


def test_statistics_of_the_own_part_of_the_batch():
    def means(comm):
        model = DataParallel(nn.BatchNorm1d(4), comm, sync_batch_norm=False)
        model(part(comm, X))
        return model.running_mean.numpy()

    one, other = on_ranks(means)
    np.testing.assert_allclose(one, 0.1 * X[:6].mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other, 0.1 * X[6:].mean(0), rtol=1e-4, atol=1e-6)


def test_ranks_draw_their_parts_of_the_numbers_of_one():
    whole = mg.random.Generator(5)
    expected = whole.uniform((4, 16)).numpy()

    def drawn(comm):
        own = mg.random.Generator(5)
        with mg.core.mode.switch(state=PartOfDraws(mg.core.mode.current_mode().state, comm)):
            return own.uniform((2, 16)).numpy(), own.get_state()

    for rank, (numbers, state) in enumerate(on_ranks(drawn)):
        np.testing.assert_array_equal(numbers, expected[2 * rank : 2 * rank + 2])
        assert state == whole.get_state()


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 3)), "the model of this rank is another one"),
        (lambda: nn.Sequential(nn.Linear(4, 3).to(mg.float64), nn.Linear(3, 3)), "float32 .3, 4., as number 0"),
        (lambda: nn.Sequential(nn.Linear(4, 3)), "Got: nothing more, in rank 1"),
    ],
)
def test_ranks_with_other_parameters_are_named(other, message):
    models = [lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3)), other]
    with pytest.raises(DistributedError, match=message):
        on_ranks(lambda comm: DataParallel(models[comm.rank](), comm))


class Ordered(nn.Module):
    def __init__(self, names):
        for name in names:
            setattr(self, name, mg.zeros(3, requires_grad=True))


def test_another_order_of_parameters_is_named():
    with pytest.raises(DistributedError, match="the parameters have a different order in this rank") as caught:
        on_ranks(lambda comm: DataParallel(Ordered("ab" if comm.rank == 0 else "ba"), comm))
    assert "parameter a: float32 (3,), as number 0 in rank 0" in str(caught.value)
    assert "parameter b: float32 (3,), in rank 1" in str(caught.value)


def test_arguments():
    with pytest.raises(ConversionError, match="DataParallel: model is a module"):
        DataParallel(mg.ones(3))
    with pytest.raises(ConversionError, match="bucket_mb is a number above 0, not 0"):
        DataParallel(nn.Linear(2, 1), bucket_mb=0)
