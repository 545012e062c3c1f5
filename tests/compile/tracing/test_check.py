"""The quick check of a recording says yes exactly when the guards and the key of the call would."""

import enum
from collections import namedtuple
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.autodiff.reverse import HOOKS
from minigrad.core.mode import current_mode


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


Pair = namedtuple("Pair", "a b")


def passes(jitted, *args, **kwargs):
    """Whether the quick check of the newest recording accepts a call."""
    (recording, *_) = jitted._checks
    return recording.check(args, kwargs, current_mode()) is not None


@pytest.fixture(autouse=True)
def no_hooks(monkeypatch):
    """Hooks on any tensor make checks say no, also those that an earlier test has left."""
    for node in list(HOOKS):
        monkeypatch.delitem(HOOKS, node)


def vector(size=3, **options):
    return mg.ones(size, **options)


T, U = vector(), vector()
TWICE = mg.ones((2, 3))

ARGUMENTS = [  # a call, calls like it, and calls of a different kind
    ([T], [[T], [U]], [[vector(4)], [vector(dtype=mg.float64)], [np.ones(3, np.float32)], [3], [], [T, U], [None]]),
    ([T, U], [[U, T]], [[T, T]]),
    ([T, T], [[U, U]], [[T, U]]),
    ([T, U, vector()], [[U, T, vector()]], [[T, U, T], [T, T, U], [T, U, U]]),
    ([TWICE], [], [[TWICE[0]], [TWICE[:]]]),
    ([TWICE[0]], [[TWICE[1]], [mg.ones((4, 3))[2]], [mg.ones(9)[3:6]]],
     [[T], [TWICE.T[0]], [mg.ones(6)[::2]], [TWICE[0] * 1], [mg.ones(3, requires_grad=True)[:]]]),
    ([TWICE[0], T], [[TWICE[1], U]], [[TWICE[0], TWICE[1]], [T, T], [T[:], T]]),
    ([TWICE[0], U[:]], [[vector()[:], TWICE[1]]], [[U[:], U[:]], [TWICE[0], U]]),
    ([np.ones(3)], [[np.zeros(3)]], [[np.ones(2)], [mg.ones(3)], [[1.0, 1.0, 1.0]]]),
    ([T, 1], [[T, 1]], [[T, 2], [T, 1.0], [T, True], [T, "1"], [T, np.int64(1)]]),
    ([T, 0.0], [[T, 0.0]], [[T, -0.0], [T, 0]]),
    ([T, float("nan")], [[T, float("nan")]], [[T, 1.0]]),
    ([T, None], [[T, None]], [[T, 0], [T, False]]),
    ([T, "a"], [[T, "a"]], [[T, "b"], [T, b"a"]]),
    ([T, Colour.RED], [[T, Colour.RED]], [[T, Colour.BLUE], [T, 1]]),
    ([T, mg.tanh], [[T, mg.tanh]], [[T, mg.exp]]),
    ([[T, U]], [[[U, T]]], [[[T]], [[T, U, T]], [(T, U)], [[T, T]]]),
    ([(T, (U, 1))], [[(U, (T, 1))]], [[(T, (U, 2))], [(T, [U, 1])]]),
    ([Pair(T, 2)], [[Pair(U, 2)]], [[(T, 2)], [Pair(T, 3)]]),
    ([{"a": T}], [[{"a": U}]], [[{"a": T, "b": U}], [{}]]),
    ([{"a": T, "b": U}], [[{"a": U, "b": T}]], [[{"a": T}], [{"b": T, "a": U}], [{"a": T, "c": U}]]),
]


@pytest.mark.parametrize(("first", "alike", "others"), ARGUMENTS)
def test_arguments_of_another_kind_are_refused(first, alike, others):
    jitted = mg.jit(lambda *args: T * 2)
    jitted(*first)
    for args in [first, *alike]:
        assert passes(jitted, *args)
        assert jitted._key(tuple(args), {}, []) == jitted._key(tuple(first), {}, [])
    for args in others:
        assert not passes(jitted, *args)
        assert jitted._key(tuple(args), {}, []) != jitted._key(tuple(first), {}, [])


def test_names_of_arguments_and_their_order_count():
    jitted = mg.jit(lambda x, **more: x * 2)
    jitted(T)
    assert passes(jitted, T) and not passes(jitted, T, a=1)
    jitted(T, a=1, b=U)
    assert passes(jitted, T, a=1, b=U)
    assert not passes(jitted, T, b=U, a=1) and not passes(jitted, T, a=1) and not passes(jitted, T, a=2, b=U)


def test_gradients_and_histories_of_arguments_count():
    jitted = mg.jit(lambda x: x * 2)
    leaf = vector(requires_grad=True)
    jitted(leaf)
    assert passes(jitted, vector(requires_grad=True)) and not passes(jitted, T) and not passes(jitted, leaf * 1)
    jitted(leaf * 1)
    assert passes(jitted, leaf * 2) and not passes(jitted, leaf)


def test_the_mode_counts():
    jitted = mg.jit(lambda x: x * 2)
    jitted(T)
    with mg.device("cpu:1"):
        assert not passes(jitted, T) and not passes(jitted, T.to("cpu:1"))
    assert passes(jitted, T) and not passes(jitted, T.to("cpu:1"))
    with mg.no_grad():
        assert not passes(jitted, T)
        jitted(T)
        assert passes(jitted, T)


def test_objects_count_by_identity():
    jitted = mg.jit(lambda model, x: model(x))
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    jitted(first, T)
    assert passes(jitted, first, T) and not passes(jitted, second, T) and not passes(jitted, id(first), T)


# What a function reads by name ---------------------------------------------------------------------------------------

LIST = [1.0, 2.0]


class Settings:
    factor = 2.0


def _reads_all(x, settings, net, table, scales, scale=3.0):
    return net(x) * settings.factor * len(LIST) * scales[0] * scale * table["a"] * SETTING


SETTING = 5.0


def _case():
    """A new function with its objects."""
    function = FunctionType(_reads_all.__code__, globals(), "reads", _reads_all.__defaults__)
    parts = SimpleNamespace(
        function=function, settings=Settings(), net=nn.Sequential(nn.Linear(3, 2), nn.ReLU()),
        table={"a": 1.0, "b": 2.0}, scales=[1.0, 2.0],
    )
    return mg.jit(lambda x: function(x, parts.settings, parts.net, parts.table, parts.scales)), parts


def _set(path, value):
    def change(parts, monkeypatch):
        *owners, name = path.split(".")
        owner = parts
        for part in owners:
            owner = getattr(owner, part)
        monkeypatch.setattr(owner, name, value() if callable(value) else value, raising=False)

    return change


def _same(parts, monkeypatch):
    pass


CHANGES = {
    "nothing": (_same, True),
    "an attribute": (_set("settings.factor", 4.0), False),
    "an attribute that nothing reads": (_set("settings.colour", "red"), True),
    "a global": (lambda parts, patch: patch.setitem(globals(), "SETTING", 6.0), False),
    "a global list": (lambda parts, patch: patch.setitem(globals(), "LIST", [1.0, 2.0, 3.0]), False),
    "a builtin becomes a global": (lambda parts, patch: patch.setitem(globals(), "len", lambda x: 7), False),
    "an entry of a list": (lambda parts, patch: parts.scales.reverse(), False),
    "the length of a list": (lambda parts, patch: parts.scales.append(3.0), False),
    "the length of a dict": (lambda parts, patch: parts.table.pop("b"), False),
    "an entry of a dict": (lambda parts, patch: patch.setitem(parts.table, "a", 9.0), False),
    "the order of a dict": (lambda parts, patch: parts.table.update(a=parts.table.pop("a")), False),
    "a default": (_set("function.__defaults__", (4.0,)), False),
    "the code": (lambda parts, patch: patch.setattr(parts.function, "__code__", (lambda x, *_: x).__code__), False),
    "a layer": (lambda parts, patch: setattr(parts.net, "1", nn.Tanh()), False),
    "one more layer": (lambda parts, patch: setattr(parts.net, "2", nn.Tanh()), False),
    "a parameter": (lambda parts, patch: setattr(getattr(parts.net, "0"), "bias", None), False),
    "values of a parameter": (lambda parts, patch: parts.net.load_state_dict(parts.net.state_dict()), True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_is_read_by_name_is_noticed(name, monkeypatch):
    change, holds = CHANGES[name]
    jitted, parts = _case()
    jitted(T)
    assert passes(jitted, T)
    change(parts, monkeypatch)
    assert passes(jitted, T) is holds


def test_an_attribute_that_becomes_a_tensor_is_noticed():
    class Net(nn.Module):
        def __init__(self):
            self.layer, self.note = nn.Linear(3, 2), None

        def forward(self, x):
            return self.layer(x)

    net = Net()
    jitted = mg.jit(lambda x: net(x))
    jitted(T)
    assert passes(jitted, T)
    net.note = mg.ones(1)
    assert not passes(jitted, T)


def test_tensors_used_by_name_count_with_their_kind():
    weight = mg.ones(3)
    jitted = mg.jit(lambda x: x * weight)
    jitted(T)
    assert passes(jitted, T) and not passes(jitted, weight)
    weight.requires_grad = True
    assert not passes(jitted, T)
    weight.requires_grad = False
    assert passes(jitted, T)
    weight._data = np.ones(4, np.float32)
    assert not passes(jitted, T)


def test_gradients_that_are_there_count():
    weight = mg.ones(3, requires_grad=True)

    jitted = mg.jit(lambda x: x * 2 if weight.grad is None else x * 3)
    jitted(T)
    assert passes(jitted, T)
    weight.grad = mg.ones(3)
    assert not passes(jitted, T)
    weight.grad = None
    assert passes(jitted, T)


def test_gradients_that_are_read_are_apart():
    one, two, third = mg.ones(3, requires_grad=True), mg.ones(3, requires_grad=True), mg.zeros(3)
    one.grad, two.grad = mg.ones(3), mg.zeros(3)
    jitted = mg.jit(lambda x: x * one.grad + two.grad + third)
    jitted(T)
    one.grad = mg.zeros(3)
    assert passes(jitted, T) and passes(jitted, U) and not passes(jitted, one.grad) and not passes(jitted, two.grad)
    for other in (one.grad, mg.ones((2, 3))[0], third, None):
        two.grad = other
        assert not passes(jitted, T)
    two.grad = mg.zeros(3)
    assert passes(jitted, T)
    one.requires_grad = False
    assert not passes(jitted, T)


def test_a_function_of_shared_gradients_has_no_quick_check():
    one, two = mg.ones(3, requires_grad=True), mg.ones(3, requires_grad=True)
    one.grad = two.grad = mg.ones(3)
    jitted = mg.jit(lambda x: x * one.grad + two.grad)
    assert jitted(T).tolist() == jitted(T).tolist() == [2.0] * 3 and jitted._checks == ()
    two.grad = mg.zeros(3)
    assert jitted(T).tolist() == [1.0] * 3 and passes(jitted, T)


def test_a_tensor_counts_with_its_kind_if_its_gradient_is_read_too():
    weight = mg.ones(3, requires_grad=True)
    weight.grad = mg.ones(3)
    jitted = mg.jit(lambda: weight * weight.grad)
    assert jitted().requires_grad
    weight.requires_grad = False
    assert not jitted().requires_grad and len(jitted.traces) == 2


def test_hooks_count():
    weight = mg.ones(3, requires_grad=True)
    jitted = mg.jit(lambda x: (x * weight).sum())
    jitted(T)
    assert passes(jitted, T)
    weight.register_hook(lambda g: g)
    assert not passes(jitted, T)


def test_many_layers_and_arguments_are_compared_one_by_one():
    net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(12)])
    jitted = mg.jit(lambda xs: net(sum(xs)))
    xs = [mg.ones(3) for _ in range(12)]
    jitted(xs)
    assert passes(jitted, xs)
    assert not passes(jitted, [*xs[:11], xs[0]])
    setattr(net, "11", nn.Tanh())
    assert not passes(jitted, xs)


def test_several_kinds_of_calls_have_their_checks():
    jitted = mg.jit(lambda x: x * 2)
    sizes = [1, 2, 3, 4, 5, 6]
    for _ in range(3):
        for size in sizes:
            assert jitted(mg.ones(size)).tolist() == [2.0] * size
    assert len(jitted.traces) == len(sizes)


def test_the_check_accepts_a_model_that_ran_eagerly_in_between():
    """The caches of a module, which eager calls make, are among its attributes from its first call on."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.LSTM(4, 3))
    optimizer = mg.optim.Adam([*model.parameters()])

    def step(x):
        optimizer.zero_grad()
        model(x)[0].sum().backward()
        optimizer.step()

    jitted, x = mg.jit(step), vector(20).reshape(5, 4)
    jitted(x)
    assert passes(jitted, x)
    step(x)
    assert passes(jitted, x)
