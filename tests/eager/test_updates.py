"""Optimizers whose updates run as programs in eager mode, compared with their operations one by one."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.programs import PROGRAMS
from minigrad.eager import calls, updates

pytestmark = pytest.mark.skipif(not calls.is_available(), reason="llvmlite is not installed")

SHAPES = [(64, 80), (64,), (3, 5, 7)]
OPTIMIZERS = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "nesterov": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: mg.optim.Adam(p, lr=0.1, weight_decay=0.1),
    "AdamW": lambda p: mg.optim.AdamW(p, lr=0.1),
    "Lion": lambda p: mg.optim.Lion(p, lr=0.1),
    "RMSprop": lambda p: mg.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adagrad": lambda p: mg.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Muon": lambda p: mg.optim.Muon(p[:1], lr=0.1),
}


@pytest.fixture(autouse=True)
def programs_are_on():
    with mg.eager_programs(True):
        yield


@pytest.fixture
def ran(monkeypatch):
    """Whether each update ran as a program."""
    found = []

    def update(optimizer, group):
        found.append(updates.update(optimizer, group))
        return found[-1]

    monkeypatch.setattr(PROGRAMS, "update", update)
    return found


def parameters():
    rng = np.random.default_rng(0)
    return [mg.asarray(rng.normal(size=shape).astype(np.float32), requires_grad=True) for shape in SHAPES]


def give_gradients(held, number, without=()):
    rng = np.random.default_rng(number)
    for i, p in enumerate(held):
        g = rng.normal(size=p.shape).astype(np.float32)
        p.grad = None if i in without else mg.asarray(g)


def steps(optimizer, held, numbers):
    for number in numbers:
        give_gradients(held, number)
        optimizer.step()


def values(optimizer):
    return [t.detach().numpy_copy() for t in optimizer.tensors()]


def close(ours, theirs, tolerance=1e-5):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def both_ways(run):
    ours = run()
    with mg.eager_programs(False):
        return ours, run()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_programs_compute_what_the_operations_compute(name, ran):
    def run():
        held = parameters()
        optimizer = OPTIMIZERS[name](held)
        steps(optimizer, held, range(4))
        return values(optimizer)

    close(*both_ways(run), tolerance=1e-3 if name == "Muon" else 1e-5)
    assert ran == [True] * 4


def test_options_and_rates_may_change_and_gradients_may_be_missing(ran):
    def run():
        held = parameters()
        optimizer = mg.optim.Adam(held, lr=0.1)
        steps(optimizer, held, [0, 1])
        optimizer.lr = 0.01
        optimizer.param_groups[0]["weight_decay"] = 0.5
        steps(optimizer, held, [2])
        give_gradients(held, 3, without=[1])
        optimizer.step()
        optimizer.param_groups[0]["betas"] = (0.5, 0.5)
        steps(optimizer, held, [4])
        return values(optimizer)

    close(*both_ways(run))
    assert ran == [True] * 5


def test_each_group_has_its_program(ran):
    def run():
        held = parameters()
        held += parameters()
        groups = [{"params": held[:3]}, {"params": held[3:], "lr": 0.5}]
        optimizer = mg.optim.SGD(groups, lr=0.1)
        steps(optimizer, held, range(2))
        return values(optimizer)

    close(*both_ways(run))
    assert ran == [True] * 4


def test_a_resumed_run_equals_one_that_was_not_interrupted(ran):
    def started(state=None):
        held = parameters()
        optimizer = mg.optim.AdamW(held, lr=0.1)
        if state is not None:
            with mg.no_grad():
                for p, value in zip(held, state[0]):
                    p[...] = mg.asarray(value)
            optimizer.load_state_dict(state[1])
        return held, optimizer

    held, optimizer = started()
    steps(optimizer, held, range(3))
    saved = [p.detach().numpy_copy() for p in held], optimizer.state_dict()
    steps(optimizer, held, range(3, 6))
    again, other = started(saved)
    steps(other, again, range(3, 6))
    assert all(map(np.array_equal, values(optimizer), values(other))) and all(ran)


def test_small_groups_and_classes_of_users_run_their_operations(ran):
    class Counting(mg.optim.SGD):
        count = 0

        def update(self, group):
            self.count += 1
            super().update(group)

    held = parameters()
    optimizer = Counting(held, lr=0.1)
    steps(optimizer, held, range(3))
    small = [mg.ones(3, requires_grad=True)]
    steps(mg.optim.SGD(small, lr=0.1), small, range(2))
    assert optimizer.count == 3 and ran == []


@pytest.mark.parametrize("what", ["the same gradient", "a view", "another layout"])
def test_gradients_that_share_memory_are_right(what, ran):
    def run():
        p, q = [mg.asarray(np.ones((64, 64), np.float32), requires_grad=True) for _ in range(2)]
        optimizer = mg.optim.SGD([p, q], lr=0.1, momentum=0.9)
        whole = mg.asarray(np.arange(8192, dtype=np.float32).reshape(2, 64, 64))
        for _ in range(3):
            if what == "the same gradient":
                p.grad = q.grad = whole[0].copy()
            elif what == "a view":
                p.grad, q.grad = whole[0], p.detach()  # changes while it is read
            else:
                p.grad, q.grad = mg.asarray(whole[0].numpy().T, copy=False), whole[1].copy()
            optimizer.step()
        return values(optimizer)

    close(*both_ways(run))
    assert ran == [what == "another layout"] * 3


def test_a_step_writes_in_place_and_marks_it(ran):
    p = mg.asarray(np.ones((100, 100), np.float32), requires_grad=True)
    optimizer, array = mg.optim.SGD([p], lr=0.5), p.detach().numpy()
    y = (p * p).sum()
    p.grad = mg.ones((100, 100))
    optimizer.step()
    assert ran == [True] and array[0, 0] == 0.5
    with pytest.raises(mg.MutationError):
        y.backward()


def test_errors_are_those_of_the_operations(ran):
    def run():
        array = np.ones((100, 100), np.float32)
        array.flags.writeable = False
        held = [mg.asarray(np.ones((100, 100), np.float32), requires_grad=True), mg.asarray(array, copy=False)]
        held[1].requires_grad = True
        optimizer = mg.optim.SGD(held, lr=0.5)
        give_gradients(held, 0)
        with pytest.raises(mg.MinigradError) as caught:
            optimizer.step()
        return str(caught.value).splitlines()[0]

    ours, theirs = both_ways(run)
    assert ours == theirs


def test_a_program_does_not_keep_its_optimizer_alive(ran):
    held = parameters()
    optimizer = mg.optim.Adam(held, lr=0.1)
    steps(optimizer, held, range(2))
    dead = weakref.ref(optimizer), weakref.ref(held[0])
    del optimizer, held
    gc.collect()
    assert ran == [True, True] and [ref() for ref in dead] == [None, None]


def test_traced_steps_run_no_program_of_their_own(ran):
    held = parameters()
    optimizer = mg.optim.SGD(held, lr=0.1)
    give_gradients(held, 0)
    mg.jit(optimizer.step)()
    with mg.record():
        optimizer.step()
    assert ran == []


# Programs are kept by structure --------------------------------------------------------------------------------------


@pytest.fixture
def traced(monkeypatch):
    """A list that collects the updates that are traced and compiled, beginning with no programs."""
    found, recorded = [], updates._recorded

    def recording(optimizer, group, arguments):
        found.append(type(optimizer).__name__)
        return recorded(optimizer, group, arguments)

    monkeypatch.setattr(updates, "_recorded", recording)
    monkeypatch.setattr(updates, "KINDS", type(updates.KINDS)())
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_new_optimizer_of_the_same_kind_compiles_nothing(name, traced):
    def run(number):
        held = parameters()
        optimizer = OPTIMIZERS[name](held)
        steps(optimizer, held, range(number, number + 3))
        return values(optimizer)

    run(0)
    assert len(traced) == 1
    shared = [run(number) for number in (1, 0, 2)]
    assert len(traced) == 1
    with mg.eager_programs(False):
        expected = [run(number) for number in (1, 0, 2)]
    for ours, theirs in zip(shared, expected, strict=True):
        close(ours, theirs, tolerance=1e-3 if name == "Muon" else 1e-5)


def test_optimizers_of_other_kinds_have_programs_of_their_own(traced):
    def run(make, shapes=SHAPES, without=()):
        held = [mg.asarray(np.ones(shape, np.float32), requires_grad=True) for shape in shapes]
        optimizer = make(held)
        give_gradients(held, 0, without)
        optimizer.step()
        return values(optimizer)

    def changed(held):
        optimizer = mg.optim.Adam(held, lr=0.1, weight_decay=0.1)
        optimizer.decoupled = True
        return optimizer

    def adam(held, decay=0.1, kind=mg.optim.Adam):
        return kind(held, lr=0.1, weight_decay=decay)

    kinds = [
        (adam,), (partial(adam, kind=mg.optim.AdamW),), (partial(adam, decay=0.2),), (changed,),
        (adam, [(64, 81), (64,), (3, 5, 7)]), (adam, SHAPES, [1]),
    ]
    found = [run(*kind) for kind in kinds]
    assert len(traced) == len(kinds)
    with mg.eager_programs(False):
        expected = [run(*kind) for kind in kinds]
    for ours, theirs in zip(found, expected, strict=True):
        close(ours, theirs)


def test_rates_and_states_are_those_of_each_optimizer(traced):
    def run():
        held = [parameters(), parameters()]
        optimizers = [mg.optim.Adam(p, lr=lr) for p, lr in zip(held, (0.1, 0.01))]
        for number in range(3):
            for optimizer, each in zip(optimizers, held):
                steps(optimizer, each, [number])
        return [value for optimizer in optimizers for value in values(optimizer)]

    close(*both_ways(run))
    assert len(traced) == 1


def test_shared_programs_keep_no_tensor_alive(traced):
    def run():
        held = parameters()
        optimizer = mg.optim.Adam(held, lr=0.1)
        steps(optimizer, held, range(2))
        return [weakref.ref(t) for t in (*optimizer.tensors(), *[p.grad for p in held])]

    dead = [*run(), *run()]
    gc.collect()
    assert [ref() for ref in dead] == [None] * len(dead) and len(traced) == 1
