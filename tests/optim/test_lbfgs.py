"""LBFGS against PyTorch's: values of torch 2.13 in float64, stored here, and errors."""

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad.optim import LBFGS

rng = np.random.default_rng(0)
A, B = rng.normal(size=(6, 4)), rng.normal(size=6)
START = np.array([-1.2, 1.0, 0.7])


def rosenbrock(w):
    return (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()


def leaf(array):
    return mg.asarray(np.array(array), requires_grad=True)


def made(parameters, loss, **options):
    """An optimizer, its closure, and a list that grows with each call of the closure."""
    optimizer, calls = LBFGS(parameters, **options), []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        value = loss(*parameters)
        value.backward()
        return value

    return optimizer, closure, calls


# Options, and after some steps of PyTorch: their number, the loss that the last step returned, the calls of the closure
# so far, and the parameters.
STORED = {
    "no search": ({"lr": 0.01, "max_iter": 4}, [
        (1, 33.199999999999996, 4, [-1.1873873874599867, 0.9965772569895418, 0.7047810284078074]),
        (3, 28.41726991052854, 12, [-1.1733665972565626, 0.9919140031591062, 0.7153801551106548]),
        (6, 23.692811480996802, 24, [-1.1547179534591667, 0.9884276782218823, 0.7368904844751089]),
    ]),
    "search": ({"line_search_fn": "strong_wolfe", "max_iter": 5}, [
        (1, 33.199999999999996, 6, [-0.940036801697566, 0.8938267547291966, 0.8026836362515016]),
        (3, 3.6855087905679222, 18, [-0.6957158595510394, 0.4823395193487479, 0.2094381574459193]),
        (6, 2.4530011111999936, 37, [0.17502212598022968, -0.00309934986438287, 0.0057919291314961]),
    ]),
    "short history": ({"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2, "lr": 0.5}, [
        (1, 33.199999999999996, 5, [-0.9232592644712476, 0.8931880032426539, 0.8028339091421265]),
        (3, 3.7801255568140903, 15, [-0.9332306870359106, 0.8724065059648788, 0.7596536862724675]),
        (6, 3.0093954285895403, 30, [-0.4104227162639295, 0.1643313911065782, 0.00827885749406504]),
    ]),
    "few evaluations": ({"line_search_fn": "strong_wolfe", "max_iter": 20, "max_eval": 7}, [
        (1, 33.199999999999996, 7, [-0.9400913815225792, 0.8934143271449018, 0.800416591855009]),
        (3, 3.4331996297964746, 22, [-0.5210149598930865, 0.2648682730882616, 0.04929154828850354]),
        (6, 1.8039257440136913, 43, [0.5828435617643366, 0.33882830176074796, 0.1197134136679163]),
    ]),
}


def follows(stored, optimizer, closure, calls, parameters, since=0):
    steps = since
    for number, loss, called, values in stored:
        while steps < number:
            before, steps = optimizer.step(closure), steps + 1
        np.testing.assert_allclose(float(before), loss, rtol=1e-8)
        assert len(calls) == called
        found = np.concatenate([p.numpy_copy().reshape(-1) for p in parameters])
        np.testing.assert_allclose(found, values, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mode", ["eager", "graph", "jitted loss"])
@pytest.mark.parametrize("name", STORED)
def test_steps_are_those_of_pytorch(name, mode):
    options, stored = STORED[name]
    w = leaf(START)
    optimizer, closure, calls = made([w], mg.jit(rosenbrock) if mode == "jitted loss" else rosenbrock, **options)
    if mode == "graph":
        with mg.graph():
            follows(stored, optimizer, closure, calls, [w])
    else:
        follows(stored, optimizer, closure, calls, [w])


def test_several_parameters_move_together():
    w, v = leaf([0.5, -0.3, 0.2, 0.1]), leaf(0.5)
    data, target = mg.asarray(A), mg.asarray(B)
    optimizer, closure, calls = made([w, v], lambda w, v: ((mg.tanh(data @ w) * v - target) ** 2).sum(),
                                     line_search_fn="strong_wolfe", max_iter=3)
    follows([
        (1, 1.7840621934125402, 4,
         [0.8702181464841418, 0.30967826629422895, 0.4341205120363665, 0.01617228973258807, 0.9670043654523464]),
        (3, 0.3604111583666234, 10,
         [1.294494746278432, 0.5460281751044759, 0.7057775479713537, -0.08313095376720918, 0.8920088119503748]),
        (8, 0.14551581410963604, 25,
         [8.892590279028527, 2.392664079154068, 2.8954076659146435, 0.2646464801754506, 0.7563429153238335]),
    ], optimizer, closure, calls, [w, v])


def test_a_jitted_closure():
    w = leaf(START)
    optimizer = LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")

    @mg.jit
    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(w)
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(w.numpy_copy(), 1, atol=1e-5)
    assert len(closure.traces) <= 2


def test_saved_states_continue_bit_by_bit(tmp_path):
    w = leaf(START)
    optimizer, closure, _ = made([w], rosenbrock, line_search_fn="strong_wolfe", max_iter=4, history_size=3)
    optimizer.step(closure)
    mg.io.save_checkpoint(tmp_path / "c", optimizer=optimizer)
    again = leaf(w.numpy_copy())
    states = [copy.deepcopy(optimizer.state_dict())]
    optimizer.step(closure)
    other, closure, _ = made([again], rosenbrock)
    mg.io.load_checkpoint(tmp_path / "c", optimizer=other)
    states.append(other.state_dict())
    assert str(states[0]) == str(states[1])
    other.step(closure)
    assert again.tolist() == w.tolist()
    assert other.param_groups[0]["history_size"] == 3


def test_states_of_pytorch_fit():
    """The state of the row "short history" after three steps, as torch.save has it."""
    rows = {
        "d": [0.008739402897320697, -0.023503523982232745, -0.047025390456544684],
        "prev_flat_grad": [-1.9760801378189763, 0.2751433800836174, 0.28610774115891413],
    }
    lists = {
        "old_dirs": [[-0.6684315537843144, -0.14125667192763025, -0.12163116966250609],
                     [-0.9045695710047337, -0.019247519141636804, -0.2636479960534288]],
        "old_stps": [[-0.00016134095928019957, -0.0014787729244750373, -0.0032367316105658744],
                     [0.0007791710177942083, -0.003871580786180466, -0.008179409442373105]],
    }
    entry = {
        "func_evals": 15, "n_iter": 12, "t": 0.5, "prev_loss": 3.7704834026890435, "al": [None, None],
        "H_diag": np.array(0.0017184356658009972), "ro": [np.array(1407.6192540129452), np.array(655.2269113430567)],
        **{name: np.array(row) for name, row in rows.items()},
        **{name: [np.array(row) for row in each] for name, each in lists.items()},
    }
    options, stored = STORED["short history"]
    w = leaf([-0.9332306870359106, 0.8724065059648788, 0.7596536862724675])
    optimizer, closure, calls = made([w], rosenbrock)
    optimizer.load_state_dict({"state": {0: entry}, "param_groups": [
        {"lr": 0.5, "max_iter": 4, "max_eval": 5, "tolerance_grad": 1e-7, "tolerance_change": 1e-9, "history_size": 2,
         "line_search_fn": "strong_wolfe", "params": [0]}]})
    calls += [1] * 15
    follows(stored[2:], optimizer, closure, calls, [w], since=3)
    assert optimizer.param_groups[0]["lr"] == options["lr"]


def test_a_state_that_does_not_fit_changes_nothing():
    optimizer, closure, _ = made([leaf(START)], rosenbrock)
    optimizer.step(closure)
    other = LBFGS([leaf([1.0, 2.0])], lr=0.25)
    with pytest.raises(mg.MinigradError, match=r"nothing was loaded: a row of it has shape \(3,\)\n.*\(2,\)"):
        other.load_state_dict(optimizer.state_dict())
    assert other.lr == 0.25 and other.state_dict()["state"] == {}


def test_float32_and_parameters_without_gradients():
    w, unused = mg.asarray([3.0, -2.0], requires_grad=True), mg.asarray([1.0], requires_grad=True)
    optimizer, closure, _ = made([w, unused], lambda w, _: ((w - 1) ** 2).sum(), line_search_fn="strong_wolfe")
    optimizer.step(closure)
    assert w.dtype == mg.float32 and unused.tolist() == [1.0]
    np.testing.assert_allclose(w.numpy_copy(), 1, atol=1e-5)


def test_dtypes_side_by_side_stay():
    w, v = mg.asarray([3.0], requires_grad=True), leaf([2.0])
    optimizer, closure, _ = made([w, v], lambda w, v: ((w - 1) ** 2).sum() + ((v + 1) ** 2).sum(),
                                 line_search_fn="strong_wolfe")
    optimizer.step(closure)
    assert w.dtype == mg.float32 and v.dtype == mg.float64
    np.testing.assert_allclose([w.item(), v.item()], [1, -1], atol=1e-5)


def test_a_flat_start_and_a_straight_line_end():
    w = leaf([0.0, 0.0])
    optimizer, closure, calls = made([w], lambda w: (w * w).sum(), line_search_fn="strong_wolfe")
    assert optimizer.step(closure).item() == 0 and len(calls) == 1
    optimizer, closure, calls = made([w], lambda w: w.sum(), line_search_fn="strong_wolfe", max_iter=2)
    optimizer.step(closure)
    assert w[0].item() < -1 and len(calls) < 60  # the loss has no minimum


def test_nan_ends():
    w = leaf([2.0])
    optimizer, closure, calls = made([w], lambda w: mg.sqrt(w - 3).sum(), line_search_fn="strong_wolfe", max_iter=3)
    optimizer.step(closure)
    assert len(calls) < 100


def test_errors():
    w = leaf(START)
    optimizer, closure, _ = made([w], rosenbrock)
    with pytest.raises(mg.ConversionError, match=r"step needs a closure.*\n  Hint: optimizer.step\(closure\)"):
        optimizer.step()
    with pytest.raises(mg.ConversionError, match="the closure returns the loss, not None\n  Hint: return loss"):
        optimizer.step(lambda: None)
    with pytest.raises(mg.ConversionError, match="all parameters are in one group"):
        optimizer.add_param_group({"params": [leaf([1.0])]})
    with pytest.raises(mg.ConversionError, match="all parameters are in one group"):
        LBFGS([{"params": [w]}, {"params": [leaf([1.0])]}])
    with pytest.raises(mg.ConversionError, match="max_iter is an integer, 1 or more, not 0"):
        LBFGS([w], max_iter=0)
    with pytest.raises(mg.ConversionError, match=r"no line_search_fn 'wolfe'\n  Expected: \"strong_wolfe\" or None"):
        LBFGS([w], line_search_fn="wolfe")
    with pytest.raises(mg.ConversionError, match="tolerance_grad is 0 or more"):
        LBFGS([w], tolerance_grad=-1.0)
    with pytest.raises(mg.TraceError, match="needs the value"):
        mg.jit(lambda: optimizer.step(closure))()
