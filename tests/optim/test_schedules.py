"""Schedules against their formulas in Python, eagerly and in a jitted step, and gradient clipping."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.optim import SGD, clip_grad_norm, clip_grad_value, lr_scheduler
from minigrad.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from minigrad.train import GradScaler


def made(lr=0.1):
    w, b = (mg.asarray([0.0], requires_grad=True) for _ in range(2))
    return SGD([{"params": [w]}, {"params": [b], "lr": 3 * lr}], lr=lr)


def cosine(start, end, share):
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def one_cycle(t, top=1.0, steps=10, up=4, between=cosine):
    return between(top / 25, top, t / up) if t <= up else between(top, top / 25e4, (t - up) / (steps - 1 - up))


def straight(start, end, share):
    return start + (end - start) * share


def warm(t):
    return 0.1 + 0.9 * min(t, 4) / 4


SCHEDULES = {
    "step": (lambda o: StepLR(o, 3, gamma=0.5), lambda base, t: base * 0.5 ** (t // 3)),
    "steps": (lambda o: MultiStepLR(o, [2, 5], gamma=0.5), lambda base, t: base * 0.5 ** ((t >= 2) + (t >= 5))),
    "exponential": (lambda o: ExponentialLR(o, 0.9), lambda base, t: base * 0.9**t),
    "warm-up": (lambda o: LinearLR(o, 0.1, 1.0, 4), lambda base, t: base * warm(t)),
    "cosine": (lambda o: CosineAnnealingLR(o, 8, 0.01), lambda base, t: cosine(base, 0.01, t / 8)),
    "a function": (lambda o: LambdaLR(o, lambda t: 1 / (1 + t)), lambda base, t: base / (1 + t)),
    "a function that gives numbers": (lambda o: LambdaLR(o, lambda t: 0.5), lambda base, t: base / 2),
    "one cycle": (lambda o: OneCycleLR(o, 1.0, 10, pct_start=0.5), lambda base, t: one_cycle(t)),
    "one cycle in straight lines": (
        lambda o: OneCycleLR(o, 1.0, 10, pct_start=0.5, anneal_strategy="linear"),
        lambda base, t: one_cycle(t, between=straight)),
    "one cycle that only falls": (
        lambda o: OneCycleLR(o, 1.0, 10, pct_start=0.1), lambda base, t: cosine(1.0, 1 / 25e4, t / 9)),
    "one after the other": (
        lambda o: SequentialLR(o, [LinearLR(o, 0.1, 1.0, 4), CosineAnnealingLR(o, 4), ExponentialLR(o, 0.5)], [4, 7]),
        lambda base, t: base * warm(t) if t < 4 else cosine(base, 0, (t - 4) / 4) if t < 7 else base * 0.5 ** (t - 7)),
    "all at once": (
        lambda o: ChainedScheduler([LinearLR(o, 0.1, 1.0, 4), ExponentialLR(o, 0.8)]),
        lambda base, t: base * warm(t) * 0.8**t),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_follow_the_formula(name, jitted, numpy_kernels):
    make, formula = SCHEDULES[name]
    optimizer = made()
    with mg.debug_nans(infinities=True):
        schedule = make(optimizer)
    step = mg.jit(schedule.step) if jitted else schedule.step
    for t in range(10):
        expected = [formula(0.1, t), formula(0.3, t)]
        np.testing.assert_allclose(schedule.get_last_lr(), expected, rtol=1e-6, atol=1e-12)
        step()
    assert not jitted or len(step.traces) == 1


@pytest.mark.parametrize("inside", [True, False])
def test_a_training_step_with_a_schedule_is_traced_once(inside, numpy_kernels):
    w = mg.asarray([1.0], requires_grad=True)
    optimizer = SGD([w], lr=0.5)
    schedule = CosineAnnealingLR(optimizer, T_max=6)

    @mg.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        if inside:
            schedule.step()

    expected = 1.0
    for t in range(6):
        expected *= 1 - 2 * cosine(0.5, 0, t / 6)
        step()
        if not inside:
            schedule.step()
    np.testing.assert_allclose(w.item(), expected, rtol=1e-5)
    assert len(step.traces) == 1


LOSSES = [5.0, 4.0, 4.5, 4.5, 4.5, 4.5, 3.0, float("nan"), 3.0, 2.9999, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]


def np_plateau(losses, mode="min", factor=0.1, patience=10, threshold=1e-4, relative=True, cooldown=0, least=0.0):
    rate, best, bad, wait = 0.1, math.inf if mode == "min" else -math.inf, 0, 0
    for loss in losses:
        margin = 0.0 if math.isinf(best) else abs(best) * threshold if relative else threshold
        better = loss < best - margin if mode == "min" else loss > best + margin
        best, bad = (loss, 0) if better else (best, bad + 1)
        if wait:
            wait, bad = wait - 1, 0
        if bad > patience:
            rate, wait, bad = max(rate * factor, least), cooldown, 0
        yield rate


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"patience": 1}, {"patience": 1}),
        ({"patience": 0, "factor": 0.5, "cooldown": 2}, {"patience": 0, "factor": 0.5, "cooldown": 2}),
        ({"mode": "max", "patience": 2, "min_lr": 0.05}, {"mode": "max", "patience": 2, "least": 0.05}),
        ({"patience": 0, "threshold": 1.5, "threshold_mode": "abs"},
         {"patience": 0, "threshold": 1.5, "relative": False}),
    ],
)
def test_plateau_reduces_the_rate(theirs, ours, jitted, numpy_kernels):
    optimizer = made()
    schedule = ReduceLROnPlateau(optimizer, eps=0.0, **theirs)
    step = mg.jit(schedule.step) if jitted else schedule.step
    for loss, expected in zip(LOSSES, np_plateau(LOSSES, **ours)):
        step(mg.asarray(loss))
        np.testing.assert_allclose(optimizer.param_groups[0]["lr"], expected, rtol=1e-6)
        np.testing.assert_allclose(optimizer.param_groups[1]["lr"], max(expected * 3, theirs.get("min_lr", 0)), rtol=1)
    assert not jitted or len(step.traces) == 1


def test_schedule_continues_from_its_state():
    for make, _ in SCHEDULES.values():
        optimizer = made()
        whole = make(optimizer)
        for _ in range(3):
            whole.step()
        other = made(lr=0.7)
        restored = make(other)
        restored.load_state_dict(whole.state_dict())
        for _ in range(3):
            assert restored.get_last_lr() == whole.get_last_lr()
            whole.step(), restored.step()
    plateau, other = (ReduceLROnPlateau(made(), patience=2) for _ in range(2))
    for loss in (1.0, 2.0, 2.0):
        plateau.step(loss)
    other.load_state_dict(plateau.state_dict())
    plateau.step(2.0), other.step(2.0)
    assert other.optimizer.param_groups[0]["lr"] == plateau.optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


@pytest.mark.parametrize("make", [lambda: StepLR(made(), 1), lambda: ReduceLROnPlateau(made()), GradScaler])
def test_a_state_with_a_value_that_is_no_number_changes_nothing(make):
    holder = make()
    before = holder.state_dict()
    for name in before:
        others = {"base_lrs": [0.5, 0.5], "last_epoch": 3}
        wrong = {key: others.get(key, 7.0) for key in before} | {name: ["many"] if name == "base_lrs" else "many"}
        with pytest.raises(mg.MinigradError):
            holder.load_state_dict(wrong)
        assert holder.state_dict() == before


def test_schedules_count_from_the_rate_of_the_first_one():
    optimizer = made()
    LinearLR(optimizer, 0.1)
    assert CosineAnnealingLR(optimizer, 4).get_last_lr() == [0.1, 0.3]
    assert repr(StepLR(made(), 2)) == "StepLR(after 0 steps, lr=0.1, 0.3)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StepLR(made(), 0), "StepLR: step_size is a whole number, 1 or more, not 0"),
        (lambda: CosineAnnealingLR(made(), 2.5), "T_max is a whole number, 1 or more, not 2.5"),
        (lambda: LambdaLR(made(), [1]), "lr_lambda is a function of the number of steps, not a list"),
        (lambda: LinearLR([1], 0.1), "LinearLR: the first argument is an optimizer, not a list"),
        (lambda: OneCycleLR(made(), 1.0, 10, anneal_strategy="x"), "no anneal_strategy 'x'\n  Expected: cos or linear"),
        (lambda: OneCycleLR(made(), 1.0, 10, pct_start=2), "pct_start is a share, from 0 to 1, not 2"),
        (lambda: SequentialLR(o := made(), [StepLR(o, 1)] * 2, [1, 2]), "Expected: 1 milestone\n  Got: 2"),
        (lambda: SequentialLR(o := made(), [StepLR(o, 1)] * 3, [2, 1]), r"milestones increase, but \[2, 1\] do not"),
        (lambda: SequentialLR(o := made(), [StepLR(o, 1), ReduceLROnPlateau(o)], [1]), "a ReduceLROnPlateau is no"),
        (lambda: ChainedScheduler([]), "no schedules to chain"),
        (lambda: ChainedScheduler([StepLR(made(), 1), StepLR(made(), 1)]), "all of the same optimizer"),
        (lambda: ReduceLROnPlateau(made(), mode="less"), "mode is min or max.*\n  Got: 'less', 'rel'"),
        (lambda: ReduceLROnPlateau(made(), factor=1.0), "factor is between 0 and 1, not 1.0"),
        (lambda: StepLR(made(), 1).load_state_dict({"last_epoch": 1}),
         "does not fit StepLR.*\n  Expected: last_epoch, base_lrs, and 2 base_lrs\n  Got: last_epoch"),
        (lambda: ReduceLROnPlateau(made()).load_state_dict({"best": 1}), "missing:    num_bad_epochs, cooldown"),
        (lambda: lr_scheduler.Schedule(made()), "Schedule has no rate method"),
        (lambda: clip_grad_norm(mg.ones(1), 1.0), r"clip_grad_norm: parameters are a list.*\n  Hint: \[w\] for a"),
        (lambda: clip_grad_norm(mg.nn.Linear(1, 1), 1.0), r"not a Linear\n  Hint: model.parameters\(\)"),
        (lambda: clip_grad_norm([], -1.0), "max_norm is 0 or more, not -1.0"),
        (lambda: clip_grad_norm([], 1.0, norm_type=0), "norm_type is above 0, not 0"),
        (lambda: clip_grad_value([], -1.0), "clip_value is 0 or more, not -1.0"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises((mg.MinigradError, NotImplementedError), match=message):
        call()


# Clipping -----------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
GRADIENTS = [rng.normal(size=(3, 2)), rng.normal(size=4)]


def with_gradients(dtype="float64"):
    parameters = [mg.asarray(np.zeros(g.shape, dtype), requires_grad=True) for g in GRADIENTS]
    for p, g in zip(parameters, GRADIENTS):
        p.grad = mg.asarray(g.astype(dtype))
    empty = mg.zeros(0, dtype=dtype, requires_grad=True)
    empty.grad = mg.zeros(0, dtype=dtype)
    return [*parameters, empty, mg.asarray([1.0], requires_grad=True)]  # the last one has no gradient


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("order", "limit"), [(2.0, 1.0), (2.0, 100.0), (1.0, 0.5), (3.0, 1.0), (math.inf, 0.25)])
def test_clipping_by_norm(order, limit, jitted, numpy_kernels):
    parameters = with_gradients()
    clip = mg.jit(lambda: clip_grad_norm(parameters, limit, order)) if jitted else None
    total = clip() if jitted else clip_grad_norm(parameters, limit, order)
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in GRADIENTS]), order)
    np.testing.assert_allclose(total.item(), norm, rtol=1e-12)
    for p, g in zip(parameters, GRADIENTS):
        np.testing.assert_allclose(p.grad.numpy_copy(), g * min(1.0, limit / (norm + 1e-6)), rtol=1e-12)
    assert parameters[-1].grad is None


def test_clipping_by_value_and_of_other_dtypes_and_devices():
    parameters = with_gradients()
    clip_grad_value(parameters, 0.5)
    for p, g in zip(parameters, GRADIENTS):
        np.testing.assert_array_equal(p.grad.numpy_copy(), np.clip(g, -0.5, 0.5))
    half = [mg.asarray(np.zeros(300, np.float16), requires_grad=True), mg.zeros(2, device="cpu:1", requires_grad=True)]
    half[0].grad = mg.asarray(np.full(300, 30.0, np.float16))  # the sum of the squares overflows in half precision
    half[1].grad = mg.ones(2, device="cpu:1")
    total = clip_grad_norm(half, 1.0)
    np.testing.assert_allclose(total.item(), np.sqrt(300 * 900 + 2), rtol=1e-4)
    np.testing.assert_allclose(half[0].grad.numpy_copy(), 30 / total.item(), rtol=2e-3)
    assert str(half[1].grad.device) == "cpu:1" and half[0].grad.dtype == mg.float16
    assert clip_grad_norm([mg.ones(1, requires_grad=True)], 1.0).item() == 0.0
