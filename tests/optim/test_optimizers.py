"""The optimizers: each update against the formula in NumPy, in every mode, and errors."""

import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.optim import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, Muon, Optimizer, RMSprop

rng = np.random.default_rng(0)
START = [rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(2, 5))]
TARGET = [rng.normal(size=w.shape) for w in START]
MATRICES = [0, 2]


def gradient(w, i):
    """The gradient of sum((w - target)^4) / 4, which is not linear, so every step differs."""
    return (w - TARGET[i]) ** 3


# Each formula takes options and returns a function of a parameter, its gradient, the rate and the number of the step.


def np_sgd(momentum=0.0, nesterov=False, weight_decay=0.0, dampening=0.0):
    velocity = 0.0

    def step(w, g, lr, t):
        nonlocal velocity
        g = g + weight_decay * w
        velocity = momentum * velocity + (g if t == 1 else (1 - dampening) * g)
        return w - lr * (g + momentum * velocity if nesterov else velocity)

    return step


def np_adam(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False, amsgrad=False):
    mean, square, largest = 0.0, 0.0, 0.0

    def step(w, g, lr, t):
        nonlocal mean, square, largest
        if decoupled:
            w = w - lr * weight_decay * w
        else:
            g = g + weight_decay * w
        mean = betas[0] * mean + (1 - betas[0]) * g
        square = betas[1] * square + (1 - betas[1]) * g * g
        largest = np.maximum(largest, square) if amsgrad else square
        return w - lr * (mean / (1 - betas[0] ** t)) / (np.sqrt(largest / (1 - betas[1] ** t)) + eps)

    return step


def np_rmsprop(alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    mean, square, buffer = 0.0, 0.0, 0.0

    def step(w, g, lr, t):
        nonlocal mean, square, buffer
        g = g + weight_decay * w
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        buffer = momentum * buffer + g / (np.sqrt(square - mean * mean * centered) + eps)
        return w - lr * buffer

    return step


def np_adagrad(lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    total = initial_accumulator_value

    def step(w, g, lr, t):
        nonlocal total
        g = g + weight_decay * w
        total = total + g * g
        return w - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(total) + eps)

    return step


def np_adadelta(rho=0.9, eps=1e-6, weight_decay=0.0):
    square, moved = 0.0, 0.0

    def step(w, g, lr, t):
        nonlocal square, moved
        g = g + weight_decay * w
        square = rho * square + (1 - rho) * g * g
        change = np.sqrt(moved + eps) / np.sqrt(square + eps) * g
        moved = rho * moved + (1 - rho) * change * change
        return w - lr * change

    return step


def np_lion(betas=(0.9, 0.99), weight_decay=0.0):
    mean = 0.0

    def step(w, g, lr, t):
        nonlocal mean
        w = w * (1 - lr * weight_decay) - lr * np.sign(betas[0] * mean + (1 - betas[0]) * g)
        mean = betas[1] * mean + (1 - betas[1]) * g
        return w

    return step


def np_muon(momentum=0.95, nesterov=True, weight_decay=0.1, adjust_lr_fn=None):
    mean = 0.0

    def step(w, g, lr, t):
        nonlocal mean
        mean = momentum * mean + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * mean if nesterov else mean
        u, s, v = np.linalg.svd(x, full_matrices=False)  # the polynomial works on singular values
        s = s / np.linalg.norm(s)
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        rows, columns = w.shape
        size = 0.2 * np.sqrt(max(rows, columns)) if adjust_lr_fn else np.sqrt(max(1, rows / columns))
        return w * (1 - lr * weight_decay) - lr * size * (u * s) @ v

    return step


OPTIMIZERS = {
    "SGD": (SGD, np_sgd, {}),
    "momentum": (SGD, np_sgd, {"momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": (SGD, np_sgd, {"momentum": 0.9, "nesterov": True}),
    "dampening": (SGD, np_sgd, {"momentum": 0.9, "dampening": 0.3}),
    "Adam": (Adam, np_adam, {}),
    "Adam with its options": (Adam, np_adam, {"betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.1}),
    "Adam without running means": (Adam, np_adam, {"betas": (0.0, 0.0)}),
    "AdamW": (AdamW, lambda **o: np_adam(**o, decoupled=True), {"weight_decay": 0.1}),
    "AMSGrad": (Adam, np_adam, {"amsgrad": True, "betas": (0.5, 0.5)}),
    "RMSprop": (RMSprop, np_rmsprop, {}),
    "RMSprop with its options": (RMSprop, np_rmsprop, {"alpha": 0.5, "weight_decay": 0.1, "momentum": 0.9,
                                                       "centered": True, "eps": 0.1}),
    "Adagrad": (Adagrad, np_adagrad, {}),
    "Adagrad with its options": (Adagrad, np_adagrad, {"lr_decay": 0.1, "weight_decay": 0.1,
                                                       "initial_accumulator_value": 0.2}),
    "Adadelta": (Adadelta, np_adadelta, {}),
    "Adadelta with its options": (Adadelta, np_adadelta, {"rho": 0.5, "weight_decay": 0.1, "eps": 0.1}),
    "Lion": (Lion, np_lion, {"weight_decay": 0.1}),
    "Muon": (Muon, np_muon, {}),
    "Muon with steps as AdamW's": (Muon, np_muon, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
}


def leaves(dtype="float64", which=(0, 1, 2)):
    return [mg.asarray(START[i].astype(dtype), requires_grad=True) for i in which]


def descend(optimizer, parameters, steps, which=(0, 1, 2)):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = sum(((p - mg.asarray(TARGET[i].astype(p.dtype))) ** 4).sum() for p, i in zip(parameters, which)) / 4
        loss.backward()
        optimizer.step()


def in_mode(mode, function):
    """The function in a mode, and a function that returns how many times it was traced."""
    if mode == "jit":
        jitted = mg.jit(function)
        return jitted, lambda: len(jitted.traces)
    if mode == "eager":
        return function, lambda: 1

    def in_graph_mode():
        with mg.graph():
            function()

    return in_graph_mode, lambda: 1


@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_formula_while_the_rate_changes(name, mode, numpy_kernels):
    make, reference, options = OPTIMIZERS[name]
    which = MATRICES if make is Muon else [0, 1, 2]
    for dtype, tolerance in (("float64", 1e-11), ("float32", 5e-5)):
        parameters, expected = leaves(dtype, which), [START[i] for i in which]
        optimizer = make(parameters, lr=0.05, **options)
        step, traces = in_mode(mode, lambda o=optimizer, p=parameters: descend(o, p, 1, which))
        formulas = [reference(**options) for _ in which]
        for t in range(1, 6):
            if t == 4:
                optimizer.lr = 0.02
            step()
            expected = [f(w, gradient(w, i), optimizer.lr, t) for i, f, w in zip(which, formulas, expected)]
        for p, w in zip(parameters, expected):
            np.testing.assert_allclose(p.numpy_copy(), w, rtol=tolerance, atol=tolerance)
            assert p.dtype == dtype and p.is_leaf and p.requires_grad
        assert traces() == 1


@pytest.mark.parametrize("name", ["dampening", "Adam", "Adagrad with its options", "RMSprop"])
def test_a_parameter_counts_its_own_steps(name, numpy_kernels):
    make, reference, options = OPTIMIZERS[name]
    parameters, expected = leaves(), list(START)
    optimizer = make(parameters, lr=0.05, **options)
    step = mg.jit(optimizer.step)
    formulas, counts = [reference(**options) for _ in START], [0, 0, 0]
    for t in range(5):
        for i, p in enumerate(parameters):
            stands = i == 1 and t < 2  # its first gradient comes late
            p.grad = None if stands else mg.asarray(gradient(p.numpy_copy(), i))
            if not stands:
                counts[i] += 1
                expected[i] = formulas[i](expected[i], gradient(expected[i], i), 0.05, counts[i])
        (step if t % 2 else optimizer.step)()
    for p, w in zip(parameters, expected):
        np.testing.assert_allclose(p.numpy_copy(), w, rtol=1e-11)


def test_parameter_that_has_not_moved_causes_no_division_by_zero():
    moved, still = leaves()[:2]
    for make in (Adam, Adagrad):
        optimizer = make([moved, still], lr=0.1)
        (moved * moved).sum().backward()
        before = still.tolist()
        with mg.debug_nans(infinities=True):
            optimizer.step()
        assert still.tolist() == before
        assert not optimizer.param_groups[0].state["exp_avg_sq" if make is Adam else "sum"][1].numpy_copy().any()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_pickled_optimizer_continues_with_the_parameters_pickled_beside_it(name):
    make, _, options = OPTIMIZERS[name]
    parameters = leaves(which=(0,))
    optimizer = make(parameters, lr=0.1, **options)
    descend(optimizer, parameters, 2)
    copies, other = pickle.loads(pickle.dumps((parameters, optimizer)))
    descend(optimizer, parameters, 2)
    descend(other, copies, 2)
    assert copies[0].tolist() == parameters[0].tolist()


def test_states_stay_the_same_tensors_from_step_to_step():
    parameters = leaves("float32")
    optimizer = Adam(parameters, lr=0.1)
    held = optimizer.tensors()
    assert len(held) == 3 * 3 + 1 + 1
    descend(optimizer, parameters, 1)
    optimizer.lr = 0.5
    descend(optimizer, parameters, 1)
    assert all(a is b for a, b in zip(held, optimizer.tensors()))
    assert optimizer.param_groups[0].state["step"].tolist() == [2.0, 2.0, 2.0] and optimizer.lr == 0.5


def test_parameters_of_different_dtypes_and_groups_on_different_devices():
    parameters = [
        mg.ones(2, requires_grad=True), mg.ones(2, dtype=mg.float64, requires_grad=True),
        mg.ones(2, dtype=mg.float16, requires_grad=True), mg.ones(2, device="cpu:1", requires_grad=True),
    ]
    for make in (SGD, Adam, RMSprop, Adagrad, Lion):
        optimizer = make([{"params": parameters[:3]}, {"params": parameters[3]}], lr=0.125)
        before = [p.numpy_copy() for p in parameters]
        for p in parameters:
            p.grad = None
            (p * 2.0).sum().backward()
        optimizer.step()
        sizes = [(b - p.numpy_copy()) for p, b in zip(parameters, before)]
        np.testing.assert_allclose(sizes, np.full((4, 2), sizes[1][0]), rtol=3e-2)
    assert [(p.dtype, str(p.device)) for p in parameters] == [
        (mg.float32, "cpu"), (mg.float64, "cpu"), (mg.float16, "cpu"), (mg.float32, "cpu:1")]


def test_views_of_a_parameter_see_its_steps():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    view = w.detach()[1:]
    (w * w).sum().backward()
    SGD([w], lr=0.25).step()
    assert view.tolist() == [1.0]


@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion"])
def test_a_small_network_learns_exclusive_or(name):
    make, _, options = OPTIMIZERS[name]
    mg.random.seed(3)
    x, y = mg.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), mg.asarray([0, 1, 1, 0])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    rate = 0.5 if make in (SGD, Adagrad) else 0.02
    optimizer = make(model.parameters(), lr=rate, **(options | {"weight_decay": 0.0}))
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


@pytest.mark.parametrize("programs", [False, True])
def test_a_frozen_parameter_stays_and_moves_once_it_is_thawed(programs):
    body, head = (mg.ones(600, requires_grad=True) for _ in range(2))
    body.requires_grad = False
    optimizer = SGD([body, head], lr=0.5, weight_decay=0.1)
    with mg.eager_programs(programs):
        (body * head).sum().backward()
        optimizer.step()
        assert (body == 1).all() and (head != 1).all()
        optimizer.zero_grad()
        body.requires_grad = True
        (body * head).sum().backward()
        optimizer.step()
    assert (body != 1).all()


def test_repr_of_optimizers():
    assert repr(Adam(leaves(), lr=0.1)) == "Adam(3 parameters of 18 numbers, lr=0.1)"


# Errors -------------------------------------------------------------------------------------------------------------

W = mg.asarray([1.0], requires_grad=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SGD([], lr=0.1), r"SGD: there are no parameters to optimize\n  Hint: a model's tensors need req"),
        (lambda: Adam(W), r"Adam: parameters are a list of tensors, not a Tensor\n  Hint: \[w\] for a single"),
        (lambda: Adam(nn.Linear(1, 1)), r"not a Linear\n  Hint: model.parameters\(\)"),
        (lambda: SGD(nn.Linear(1, 1).named_parameters(), lr=0.1), "parameter 0 is a tuple, not a tensor"),
        (lambda: SGD([mg.ones(3)], lr=0.1), "SGD: no parameter requires a gradient\n  Hint: p.requires_grad = True"),
        (lambda: SGD([W * 2], lr=0.1), r"parameter 0, of shape \(1,\), is a result of multiply, not a leaf"),
        (lambda: SGD([W, W], lr=0.1), r"parameter 1, of shape \(1,\), is in the list twice"),
        (lambda: SGD([W], lr=-1.0), "a learning rate is a number, 0 or more, not -1.0"),
        (lambda: setattr(SGD([W], lr=1.0), "lr", float("nan")), "a learning rate is a number, 0 or more, not nan"),
        (lambda: SGD([W], lr=0.1, momentum=1.0), "SGD: momentum is at least 0 and below 1, not 1.0"),
        (lambda: SGD([W], lr=0.1, nesterov=True), "nesterov looks ahead along the momentum, which is 0"),
        (lambda: SGD([W], lr=0.1, weight_decay=-1.0), "SGD: weight_decay is 0 or more, not -1.0"),
        (lambda: AdamW([W], betas=(0.9, 1.5)), r"AdamW: betas\[1\] is at least 0 and below 1, not 1.5"),
        (lambda: SGD([W], lr="fast"), "SGD: a learning rate is a number, 0 or more, not 'fast'"),
        (lambda: SGD([W], lr=mg.ones(2)), r"a learning rate is one number, not a tensor of shape \(2,\)"),
        (lambda: SGD([W], lr=np.float32(-1)), "a learning rate is a number, 0 or more, not"),
        (lambda: SGD([W], momentum=0.9, nesterov=True, dampening=0.1), "nesterov and dampening do not go together"),
        (lambda: Adam([W], betas=0.9), r"Adam: betas are two numbers, not 0.9\n  Expected: \(0.9, 0.999\)"),
        (lambda: Adam([W], eps=-1), "Adam: eps is 0 or more, not -1"),
        (lambda: RMSprop([W], alpha=1.0), "RMSprop: alpha is at least 0 and below 1, not 1.0"),
        (lambda: Adadelta([W], rho=1.0), "Adadelta: rho is at least 0 and below 1, not 1.0"),
        (lambda: Adagrad([W], lr_decay=-0.1), "Adagrad: lr_decay is 0 or more"),
        (lambda: Muon([W]), r"Muon: parameter 0, of shape \(1,\), is not a matrix\n  Hint: give it to AdamW"),
        (lambda: Muon([mg.ones((1, 1), requires_grad=True)], adjust_lr_fn="x"), "Muon: there is no adjust_lr_fn 'x'"),
        (lambda: SGD({W}), "not a set\n  Hint: a list: the order of a set differs"),
        (lambda: SGD([W, mg.ones((2, 1), device="cpu:1", requires_grad=True)]),
         r"on one device; parameter 0 is on cpu, and parameter 1, of shape \(2, 1\), on cpu:1\n  Hint: model.to\("),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


def test_an_optimizer_without_update_says_so():
    with pytest.raises(NotImplementedError, match="Optimizer has no update method"):
        Optimizer([W], lr=0.1).step()
