"""Groups of parameters with their own options, and saved and restored states."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.optim import EMA, SGD, Adagrad, Adam, RMSprop


def leaf(*values):
    return mg.asarray(list(values), requires_grad=True)


def pushed(*parameters):
    for i, p in enumerate(parameters):
        p.grad = mg.ones(p.shape) * (i + 1.0)


def test_groups_have_their_own_rates_and_options():
    a, b, c = leaf(1.0), leaf(1.0), leaf(1.0)
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5, "weight_decay": 1.0}], lr=0.25)
    optimizer.add_param_group({"params": [c], "lr": 0.0})
    pushed(a, b, c)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [0.75, 1.0 - 0.5 * 3.0, 1.0]
    assert [g["weight_decay"] for g in optimizer.param_groups] == [0.0, 1.0, 0.0]
    assert repr(optimizer) == "SGD(3 parameters of 3 numbers, lr=0.25, 0.5, 0)"
    assert repr(optimizer.param_groups[1]) == (
        "Group(1 parameter, lr=0.5, momentum=0.0, dampening=0.0, weight_decay=1.0, nesterov=False)")
    optimizer.lr = 0.125
    assert optimizer.lr == 0.125 and optimizer.param_groups[1]["params"] == [b]


def test_a_momentum_that_is_switched_on_later_begins_from_nothing():
    a, b = leaf(1.0), leaf(1.0)
    late, early = SGD([a], lr=0.25), SGD([b], lr=0.25, momentum=0.5)
    late.param_groups[0]["momentum"] = 0.5
    for _ in range(2):
        pushed(a), pushed(b)
        late.step(), early.step()
    assert a.item() == b.item() == 1 - 0.25 - 0.25 * 1.5


def test_rate_changes_under_jit_never_trace_again_and_option_changes_do():
    a, b = leaf(1.0), leaf(1.0)
    optimizer = SGD([{"params": [a]}, {"params": [b]}], lr=0.25, momentum=0.5)
    step = mg.jit(optimizer.step)
    for rate in (0.5, 0.25, 0.125):
        optimizer.param_groups[1]["lr"] = rate
        pushed(a, b)
        step()
    assert len(step.traces) == 1
    optimizer.param_groups[0]["momentum"] = 0.25
    pushed(a, b)
    step()
    assert len(step.traces) == 2 and "momentum" in step.traces[1] and "was 0.5 and is 0.25" in step.traces[1]
    optimizer.add_param_group({"params": [leaf(1.0)]})
    step()
    assert len(step.traces) == 3


def test_rates_read_as_they_were_written():
    optimizer = SGD([leaf(1.0)], lr=0.1)
    assert optimizer.lr == 0.1
    optimizer.param_groups[0]["lr"] = mg.asarray(0.3)
    assert optimizer.lr == 0.3
    optimizer.lr = np.float64(0.7)
    assert optimizer.lr == 0.7


@pytest.mark.parametrize(
    ("make", "options"),
    [(SGD, {}), (SGD, {"momentum": 0.5}), (SGD, {"momentum": 0.5, "dampening": 0.5}), (Adam, {}), (Adagrad, {}),
     (Adagrad, {"lr_decay": 0.5}), (RMSprop, {}), (RMSprop, {"momentum": 0.5, "centered": True})],
)
def test_a_restored_run_equals_the_uninterrupted_one(make, options):
    whole = [leaf(1.0, 2.0), leaf(3.0)]
    optimizer = make([{"params": whole[:1]}, {"params": whole[1:], "lr": 0.5}], lr=0.05, **options)

    def run(optimizer, parameters):
        for t in range(3):
            pushed(*parameters)
            if t == 1:
                parameters[1].grad = None
            optimizer.step()

    run(optimizer, whole)
    saved, values = optimizer.state_dict(), [p.detach().copy() for p in whole]
    run(optimizer, whole)
    for v in values:
        v.requires_grad = True
    restored = make([{"params": values[:1]}, {"params": values[1:]}], lr=1.0)
    restored.load_state_dict(saved)
    run(restored, values)
    assert [p.tolist() for p in values] == [p.tolist() for p in whole]
    assert [g["lr"] for g in restored.param_groups] == [0.05, 0.5]


def test_the_layout_is_that_of_pytorch():
    """The layout of `torch.optim.Adam(...).state_dict()`, including the options that only affect speed."""
    optimizer = Adam([leaf(1.0, 2.0), leaf(3.0)], lr=0.1)
    group = {"lr": 0.5, "betas": [0.5, 0.75], "eps": 1e-8, "weight_decay": 0, "amsgrad": False, "maximize": False,
             "foreach": None, "capturable": False, "differentiable": False, "fused": None,
             "decoupled_weight_decay": False, "initial_lr": 0.5, "params": [0, 1]}
    entry = {"step": np.float32(3.0), "exp_avg": np.ones(2), "exp_avg_sq": np.full(2, 4.0)}
    optimizer.load_state_dict({"state": {"0": entry}, "param_groups": [group]})  # JSON has no integer keys
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.75) and optimizer.lr == 0.5
    state = optimizer.state_dict()["state"]
    assert {k: v.tolist() for k, v in state[0].items()} == {
        "step": 3.0, "exp_avg": [1.0, 1.0], "exp_avg_sq": [4.0, 4.0]}
    assert {k: v.tolist() for k, v in state[1].items()} == {"step": 0.0, "exp_avg": [0.0], "exp_avg_sq": [0.0]}
    one = SGD([leaf(1.0)], momentum=0.5)
    saved = one.state_dict()
    one.load_state_dict(saved | {"state": {0: {"momentum_buffer": None}}})  # for a parameter without steps
    assert one.state_dict()["state"][0]["momentum_buffer"].tolist() == [0.0]


def test_options_that_depend_on_each_other_are_loaded_together():
    plain, nesterov = SGD([leaf(1.0)], lr=0.5), SGD([leaf(1.0)], lr=0.1, momentum=0.9, nesterov=True)
    states = plain.state_dict(), nesterov.state_dict()
    for optimizer, state in ((plain, states[1]), (nesterov, states[0])):
        optimizer.load_state_dict(state)
        assert optimizer.state_dict()["param_groups"] == state["param_groups"]


def test_a_state_is_a_copy():
    w = leaf(1.0)
    optimizer = SGD([w], lr=0.5, momentum=0.5)
    saved = optimizer.state_dict()
    pushed(w)
    optimizer.step()
    optimizer.lr = 0.25
    assert saved["state"][0]["momentum_buffer"].tolist() == [0.0] and saved["param_groups"][0]["lr"] == 0.5


def changed(saved, group=None, entry=None, **parts):
    groups = [saved["param_groups"][0] | (group or {})]
    entries = {0: saved["state"][0] | (entry or {}), 1: saved["state"][1]}
    return {"state": entries, "param_groups": groups} | parts


ADAM = Adam([leaf(1.0, 2.0), leaf(3.0)], lr=0.1)
SAVED = ADAM.state_dict()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"lr": 0.1}, 'the state of an optimizer.*\n  Expected: a dict with "state" and "param_groups"\n  Got: lr'),
        (changed(SAVED, param_groups=[{"lr": 1.0}]), "the state of an optimizer.*\n  Expected: .*dicts with lists"),
        (changed(SAVED, param_groups=7), "the state of an optimizer"),
        (changed(SAVED, state={0: 7}), 'the state of an optimizer.*\n  Expected: "state" holds a dict for each'),
        (changed(SAVED, param_groups=[{"lr": 1.0, "params": [0]}] * 2),
         "does not fit Adam.*\n  Expected: parameters in each group: 2\n  Got: 1, 1"),
        (changed(SAVED, {"maximize": True}, {"exp_avg": mg.ones(3), "max_exp_avg_sq": mg.ones(2)}),
         r"unexpected: param_groups.0.maximize, state.0.max_exp_avg_sq\n  mismatched: state.0.exp_avg is \(3,\)"),
        (changed(SAVED, state={0: {"step": 1.0}, 7: {"exp_avg": mg.ones(1)}},
                 param_groups=[{"lr": 0.1, "betas": (0.9, 0.9), "eps": 1.0, "params": [0, 1]}]),
         "nothing was loaded\n  missing:    param_groups.0.weight_decay, state.0.exp_avg, state.0.exp_avg_sq\n"
         "  unexpected: state.7.exp_avg"),
        (changed(SAVED, {"lr": -1.0}), "Adam: a learning rate is a number, 0 or more, not -1.0"),
        (changed(SAVED, {"betas": (0.9, 1.5)}), r"Adam: betas\[1\] is at least 0 and below 1, not 1.5"),
    ],
)
def test_load_state_dict_lists_every_misfit_and_loads_nothing(state, message):
    with pytest.raises(mg.MinigradError, match=message):
        ADAM.load_state_dict(state)
    assert ADAM.lr == 0.1 and ADAM.state_dict()["state"][0]["step"].item() == 0.0


W = leaf(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SGD([{"params": [W]}, [W]]), 'a group is a dict with "params" and perhaps options, not a list'),
        (lambda: SGD({"params": [W]}), "not a dict\n  Hint: .*: a list of groups"),
        (lambda: SGD([{"params": [W], "rate": 1}]), "no option named 'rate'\n  Expected: lr, momentum, dampening"),
        (lambda: SGD([{"params": [W]}, {"params": []}]), "no parameters to optimize in group 1"),
        (lambda: SGD([W]).add_param_group({"params": [leaf(2.0), W]}), "parameter 1 of group 1, of .* in the list twi"),
        (lambda: SGD([W]).param_groups[0].__setitem__("nesterov", True), "nesterov looks ahead along the momentum"),
        (lambda: SGD([W]).param_groups[0].__setitem__("params", []), "no option 'params' to set"),
        (lambda: SGD([W]).param_groups[0].__setitem__("rate", 1), "SGD: a group has no option 'rate' to set"),
        (lambda: SGD([W]).param_groups[0].__delitem__("momentum"), "can be set, not deleted"),
        (lambda: SGD([{"params": [W]}, {"params": [leaf(1.0)], "lr": 0.5}], lr=0.25).lr,
         "SGD: the groups have different rates, 0.25, 0.5"),
        (lambda: EMA([]), "EMA: there are no parameters to average"),
        (lambda: EMA([W], decay=1.0), "EMA: decay is at least 0 and below 1, not 1.0"),
    ],
)
def test_wrong_groups_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


@pytest.mark.parametrize(("target", "error"), [("cpu:1", mg.DeviceError), (mg.float64, mg.DtypeError)])
def test_a_model_that_was_moved_after_its_optimizer_was_made(target, error):
    model = mg.nn.Linear(1, 1)
    optimizer = Adam(model.parameters())
    model.to(target)
    model.weight.grad = mg.ones((1, 1), dtype=model.weight.dtype, device=model.weight.device)
    with pytest.raises(error, match=r"parameter 0, of shape \(1, 1\), was float32 on cpu when the optimizer was made"):
        optimizer.step()


def test_averages_of_parameters(numpy_kernels):
    model = mg.nn.Linear(2, 1)
    ema, optimizer = EMA(model, decay=0.75), SGD(model.parameters(), lr=0.5)
    expected = [p.numpy_copy().astype(np.float64) for p in model.parameters()]

    @mg.jit
    def step():
        optimizer.zero_grad()
        model(mg.asarray([[1.0, 2.0]])).sum().backward()
        optimizer.step()
        ema.update()

    for _ in range(3):
        step()
        expected = [e * 0.75 + p.numpy_copy() * 0.25 for e, p in zip(expected, model.parameters())]
    assert [t.tolist() for t in ema.tensors()] == [t.tolist() for t in ema.averages]
    own = [p.tolist() for p in model.parameters()]
    with pytest.raises(KeyError), ema.applied():
        for p, e in zip(model.parameters(), expected):
            np.testing.assert_allclose(p.numpy_copy(), e, rtol=1e-6)
        raise KeyError
    assert [p.tolist() for p in model.parameters()] == own and len(step.traces) == 1
    other = EMA(mg.nn.Linear(2, 1))
    other.load_state_dict(ema.state_dict())
    assert other.state_dict()["weight"].tolist() == ema.averages[0].tolist()
    mg.nn.Linear(2, 1).load_state_dict(ema.state_dict())
