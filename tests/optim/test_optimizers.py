"""The optimizers: each update against the formula in NumPy, what is saved and restored, and what they refuse."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.optim import SGD, Adam, AdamW, Optimizer

rng = np.random.default_rng(0)
START = [rng.normal(size=(3, 2)), rng.normal(size=2)]
TARGET = [rng.normal(size=(3, 2)), rng.normal(size=2)]


def gradient(ws):
    """Of sum((w - target)^4) / 4: not linear, so that every step differs."""
    return [(w - t) ** 3 for w, t in zip(ws, TARGET)]


def np_sgd(lr=0.1, momentum=0.0, nesterov=False, weight_decay=0.0):
    velocity = [0.0, 0.0]

    def step(i, w, g, t):
        g = g + weight_decay * w
        velocity[i] = momentum * velocity[i] + g
        return w - lr(t) * (g + momentum * velocity[i] if nesterov else velocity[i])

    return step


def np_adam(lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
    mean, square = [0.0, 0.0], [0.0, 0.0]

    def step(i, w, g, t):
        if decoupled:
            w = w - lr(t) * weight_decay * w
        else:
            g = g + weight_decay * w
        mean[i] = betas[0] * mean[i] + (1 - betas[0]) * g
        square[i] = betas[1] * square[i] + (1 - betas[1]) * g * g
        return w - lr(t) * (mean[i] / (1 - betas[0] ** t)) / (np.sqrt(square[i] / (1 - betas[1] ** t)) + eps)

    return step


OPTIMIZERS = {
    "SGD": (SGD, np_sgd, {}),
    "momentum": (SGD, np_sgd, {"momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": (SGD, np_sgd, {"momentum": 0.9, "nesterov": True}),
    "Adam": (Adam, np_adam, {}),
    "Adam with its options": (Adam, np_adam, {"betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.1}),
    "Adam without running means": (Adam, np_adam, {"betas": (0.0, 0.0)}),
    "AdamW": (AdamW, lambda **o: np_adam(**o, decoupled=True), {"weight_decay": 0.1}),
}


def leaves(dtype="float64"):
    return [mg.asarray(w.astype(dtype), requires_grad=True) for w in START]


def descend(optimizer, parameters, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = sum(((p - mg.asarray(t.astype(p.dtype))) ** 4).sum() for p, t in zip(parameters, TARGET)) / 4
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_steps_are_those_of_the_formula_while_the_rate_changes(name, dtype, tolerance):
    make, reference, options = OPTIMIZERS[name]
    parameters, expected = leaves(dtype), list(START)
    optimizer = make(parameters, lr=0.05, **options)
    step = reference(lr=lambda t: 0.05 if t <= 3 else 0.02, **options)
    for t in range(1, 7):
        if t == 4:
            optimizer.lr = 0.02
        descend(optimizer, parameters, 1)
        expected = [step(i, w, g, t) for i, (w, g) in enumerate(zip(expected, gradient(expected)))]
    for p, w in zip(parameters, expected):
        np.testing.assert_allclose(p.numpy_copy(), w, rtol=tolerance, atol=tolerance)
        assert p.dtype == dtype and p.is_leaf and p.requires_grad


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restored_run_equals_the_uninterrupted_one(name):
    make, _, options = OPTIMIZERS[name]
    whole = leaves()
    optimizer = make(whole, lr=0.05, **options)
    descend(optimizer, whole, 3)
    saved, values = optimizer.state_dict(), [p.detach().copy() for p in whole]
    descend(optimizer, whole, 3)
    for v in values:
        v.requires_grad = True
    restored = make(values, lr=1.0, **options)
    restored.load_state_dict(saved)
    descend(restored, values, 3)
    assert [p.tolist() for p in values] == [p.tolist() for p in whole]


def test_what_changes_from_step_to_step_stays_the_same_tensors():
    parameters = leaves("float32")
    optimizer = Adam(parameters, lr=0.1)
    held = [optimizer.rate, optimizer.steps, *optimizer.state["mean"], *parameters]
    descend(optimizer, parameters, 1)
    optimizer.lr = 0.5
    descend(optimizer, parameters, 1)
    now = [optimizer.rate, optimizer.steps, *optimizer.state["mean"], *optimizer.parameters]
    assert all(a is b for a, b in zip(held, now))
    assert optimizer.steps.item() == 2 and optimizer.lr == 0.5


def test_parameters_without_a_gradient_are_left_alone():
    moved, still = leaves()
    for make in (SGD, Adam, AdamW):
        optimizer = make([moved, still], lr=0.1)
        (moved * moved).sum().backward()
        before = still.tolist()
        optimizer.step()
        assert still.tolist() == before
        assert not optimizer.state.get("mean", [0, mg.zeros(1)])[1].numpy_copy().any()


def test_parameters_of_different_dtypes_and_devices():
    parameters = [
        mg.ones(2, requires_grad=True), mg.ones(2, dtype=mg.float64, requires_grad=True),
        mg.ones(2, dtype=mg.float16, requires_grad=True), mg.ones(2, device="cpu:1", requires_grad=True),
    ]  # fmt: skip
    for make in (SGD, Adam):
        optimizer = make(parameters, lr=0.125)
        for p in parameters:
            (p * 2.0).sum().backward()
        optimizer.step()
    assert [(p.dtype, str(p.device)) for p in parameters] == [
        (mg.float32, "cpu"), (mg.float64, "cpu"), (mg.float16, "cpu"), (mg.float32, "cpu:1")]  # fmt: skip
    for p in parameters:
        np.testing.assert_allclose(p.numpy_copy(), [0.625, 0.625], rtol=1e-3)


def test_views_of_a_parameter_see_its_steps():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    view = w.detach()[1:]
    (w * w).sum().backward()
    SGD([w], lr=0.25).step()
    assert view.tolist() == [1.0]


@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam", "AdamW"])
def test_a_small_network_learns_exclusive_or(name):
    make, _, options = OPTIMIZERS[name]
    mg.random.seed(3)
    x, y = mg.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), mg.asarray([0, 1, 1, 0])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = make(model.parameters(), lr=0.5 if make is SGD else 0.05, **(options | {"weight_decay": 0.0}))
    for _ in range(200):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert mg.argmax(model(x), axis=-1).tolist() == y.tolist()
    assert loss.item() < 0.1


def test_a_step_over_a_graph_that_is_still_needed_is_noticed():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    SGD([w], lr=0.1).step()
    with pytest.raises(mg.MutationError):
        loss.backward()


def test_repr():
    assert repr(Adam(leaves(), lr=0.1)) == "Adam(2 parameters of 8 numbers, lr=0.1)"


# What they refuse ---------------------------------------------------------------------------------------------------

W = mg.asarray([1.0], requires_grad=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SGD([], lr=0.1), r"SGD: there are no parameters to optimize\n  Way out: a model's tensors need req"),
        (lambda: Adam(W), r"Adam: parameters are a list of tensors, not a Tensor\n  Way out: \[w\] for a single"),
        (lambda: Adam(nn.Linear(1, 1)), r"not a Linear\n  Way out: model.parameters\(\)"),
        (lambda: SGD(nn.Linear(1, 1).named_parameters(), lr=0.1), "parameter 0 is a tuple, not a tensor"),
        (lambda: SGD([W, mg.ones(3)], lr=0.1), r"parameter 1, of shape \(3,\), does not require a gradient"),
        (lambda: SGD([W * 2], lr=0.1), r"parameter 0, of shape \(1,\), is a result of multiply, not a leaf"),
        (lambda: SGD([W, W], lr=0.1), r"parameter 1, of shape \(1,\), is in the list twice"),
        (lambda: SGD([W], lr=-1.0), "a learning rate is a number, 0 or more, not -1.0"),
        (lambda: setattr(SGD([W], lr=1.0), "lr", float("nan")), "a learning rate is a number, 0 or more, not nan"),
        (lambda: SGD([W], lr=0.1, momentum=1.0), "SGD: momentum is at least 0 and below 1, not 1.0"),
        (lambda: SGD([W], lr=0.1, nesterov=True), "nesterov looks ahead along the momentum, which is 0"),
        (lambda: SGD([W], lr=0.1, weight_decay=-1.0), "SGD: weight_decay is 0 or more, not -1.0"),
        (lambda: AdamW([W], betas=(0.9, 1.5)), r"AdamW: betas\[1\] is at least 0 and below 1, not 1.5"),
        (lambda: Adam([W]).load_state_dict(SGD([W], lr=0.1).state_dict()),
         "does not fit Adam, and nothing was loaded\n  missing:    steps, mean.0, square.0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


def test_an_optimizer_without_update_says_so():
    with pytest.raises(NotImplementedError, match="Optimizer has no update method"):
        Optimizer([W], lr=0.1).step()
