"""Values that a trace reads by name: a change is noticed everywhere, and so is a side effect."""

import collections
import functools
import itertools
import random
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.tracing.reachable import guards_of

pytestmark = pytest.mark.usefixtures("numpy_kernels")


class Slots:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n


class Counter:
    total = 0

    def __init__(self, n=0):
        self.n = n

    @classmethod
    def bump(cls):
        cls.total += 1

    @property
    def doubled(self):
        return 2 * self.n

    def read(self):
        return GLOBAL["n"]


class Table(dict):
    pass


GLOBAL = {"n": 0}


def changing_class():
    Counter.total = 0
    counter = Counter()
    return lambda: counter.total + Counter.total, Counter.bump


def changing_property():
    counter = Counter()
    return lambda: counter.doubled, lambda: setattr(counter, "n", counter.n + 1)


def changing_global_of_a_method():
    counter = Counter()
    return lambda: counter.read(), lambda: GLOBAL.update(n=GLOBAL["n"] + 1)


def changing_slots():
    held = Slots(1)
    return lambda: held.n, lambda: setattr(held, "n", held.n + 1)


def changing_module():
    module = types.ModuleType("settings")
    module.rate = 1
    return lambda: module.rate, lambda: setattr(module, "rate", module.rate + 1)


def changing_function_of_a_module():
    module = types.ModuleType("helpers")
    module.f = lambda: 1
    return lambda: module.f(), lambda: setattr(module, "f", lambda: 2)


def changing_method():
    class Model:
        def f(self):
            return 1

    model = Model()
    return lambda: model.f(), lambda: setattr(Model, "f", lambda self: 2)


def changing_defaults():
    def f(n=[1], *, m=1):  # noqa: B006 - that it changes is the point
        return n[0] + m

    def change():
        f.__defaults__[0][0] += 1
        f.__kwdefaults__ = {"m": f.__kwdefaults__["m"] * 2}

    return f, change


def changing_function():
    def f():
        return f.n + f.__code__.co_firstlineno * 0

    f.n = 1
    return f, lambda: setattr(f, "n", f.n + 1)


def changing_partial():
    numbers = [1]
    f = functools.partial(lambda numbers: numbers[0], numbers)
    return lambda: f(), lambda: numbers.append(numbers.pop() + 1)


def changing_array():
    array = np.array([1.0, np.nan])
    return lambda: float(array[0]), lambda: array.__iadd__(1)


def changing_array_in_an_attribute():
    held = types.SimpleNamespace(parts=[np.array(1.0)])
    return lambda: held.parts[0].item() * 2, lambda: held.parts[0].__iadd__(1)


def changing_through_a_method_of_pythons():
    table = {"n": 1}
    get = table.get
    return lambda: get("n"), lambda: table.update(n=table["n"] + 1)


def changing_order():
    table = {"a": 1, "b": 2}
    return lambda: next(iter(table.values())), lambda: table.update(a=table.pop("a"))


def changing_depth():
    inner = held = [1]
    for _ in range(30):
        held = [held]

    def read(held=held):
        while isinstance(held, list):
            held = held[0]
        return held

    return lambda: read(), lambda: inner.append(inner.pop() + 1)


def changing_members(make, add, read=len):
    def changing():
        held = make()
        return lambda: read(held), lambda: add(held)

    return changing


CHANGES = [
    changing_class, changing_property, changing_global_of_a_method, changing_slots, changing_module, changing_method,
    changing_function_of_a_module, changing_defaults, changing_function, changing_partial, changing_array,
    changing_array_in_an_attribute, changing_order, changing_depth,
    changing_members(set, lambda s: s.add(len(s))), changing_members(collections.deque, lambda s: s.append(1)),
    changing_members(lambda: bytearray(1), lambda s: s.append(1)),
    changing_members(Table, lambda s: s.update({len(s): 1})),
    changing_members(Table, lambda s: vars(s).update({str(len(vars(s))): 1}), lambda s: len(vars(s))),
    changing_through_a_method_of_pythons,
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_changes_outside_cause_a_new_trace(number):
    seen = []
    for wrap in (lambda f: f, mg.jit):
        read, change = CHANGES[number]()
        f = wrap(lambda read=read: mg.ones(1) * read())
        before = GLOBAL["n"]
        values = [f().item()]
        for _ in range(2):
            change()
            values.append(f().item())
        seen.append([v - before for v in values] if number == 2 else values)
    assert seen[0] == seen[1] and seen[0][0] != seen[0][1]
    assert len(f.traces) > 1


def in_a_closure_cell(value):
    def put(new):
        nonlocal value
        value = new

    return lambda: value, put


def in_a_global(value):
    GLOBAL["value"] = value
    return lambda: GLOBAL["value"], lambda new: GLOBAL.update(value=new)


def in_an_attribute(value):
    held = types.SimpleNamespace(value=value)
    return lambda: held.value, lambda new: setattr(held, "value", new)


def in_a_list(value):
    held = [value]
    return lambda: held[0], lambda new: held.__setitem__(0, new)


def in_an_array(value):
    held = np.array([value])
    return lambda: held[0], lambda new: held.__setitem__(0, new)


@pytest.mark.parametrize("kind", [float, complex, np.float32, np.float64])
@pytest.mark.parametrize("place", [in_a_closure_cell, in_a_global, in_an_attribute, in_a_list, in_an_array])
def test_zero_with_another_sign_is_another_value(place, kind):
    read, put = place(kind(0.0))
    f = mg.jit(lambda x: mg.copysign(x, float(read().real)))
    signs = [f(mg.ones(1)).item()]
    for value in (-0.0, 0.0):
        put(kind(value))
        signs.append(f(mg.ones(1)).item())
    assert signs == [1, -1, 1]


@pytest.mark.parametrize("number", [0, 3, 4, 14, 15, 16])
def test_changes_inside_are_refused(number):
    read, change = CHANGES[number]()
    with pytest.raises(mg.TraceError, match="changes something that is not a tensor"):
        mg.jit(lambda: (change(), mg.ones(1) * read())[1])()


@pytest.mark.parametrize("make", [lambda: iter([1, 2, 3]), itertools.count, lambda: reversed((3, 2, 1))])
def test_an_iterator_that_the_function_advances(make):
    steps = make()
    next(steps)
    with pytest.raises(mg.TraceError, match=r"the state of steps, a [\w.]+: its values differ"):
        mg.jit(lambda: mg.ones(1) * next(steps))()


@pytest.mark.parametrize("make", [lambda: (k for k in range(3)), lambda: map(abs, [1]), lambda: itertools.repeat(1)])
def test_an_iterator_whose_position_cannot_be_read_is_refused_before_it_is_advanced(make):
    steps = make()
    with pytest.raises(mg.TraceError, match=r"the function reads steps, a .*: its values differ"):
        mg.jit(lambda: mg.ones(1) * next(steps))()
    assert next(steps) in (0, 1)


@pytest.mark.parametrize("make", [itertools.count, lambda: iter([1, 2, 3])])
def test_an_iterator_in_a_branch_that_does_not_run(make):
    steps = make()

    def log(x):
        print(next(steps), x)

    def f(x, debug=False):
        if debug:
            log(x)
        return x * 2

    compiled = mg.jit(f)
    for _ in range(2):
        assert compiled(mg.ones(1)).item() == 2
        next(steps)
    assert len(compiled.traces) == 1
    with pytest.raises(mg.TraceError, match="the state of steps"):
        compiled(mg.ones(1), True)


def test_random_numbers_of_other_packages():
    generator = np.random.default_rng(0)
    drawing = random.random, np.random.rand, generator.random, lambda: random.random() + 1
    by_name = lambda: np.random.rand(), lambda: np.random.normal(size=3)  # noqa: NPY002
    for draw in (*drawing, *by_name):
        with pytest.raises(mg.TraceError, match=r"mg\.random draws new numbers"):
            mg.jit(lambda draw=draw: mg.ones(1) * draw())()


def test_values_that_are_not_read_do_not_count():
    held = types.SimpleNamespace(scale=2.0, generator=np.random.default_rng(0), rows=iter([1]), table=np.zeros(3))
    f = mg.jit(lambda: mg.ones(1) * held.scale)
    f()
    held.generator.random(), next(held.rows), held.table.fill(1)
    f()
    assert len(f.traces) == 1


def test_libraries_are_not_searched():
    def f(x):
        return np.sqrt(2.0) * mg.softmax(x) * functools.reduce(max, [1, 2])

    assert len(guards_of(f)) == 2  # the function itself, and its globals


class Lazy:
    def __getattr__(self, name):
        raise ImportError(f"{name} is not installed")


def test_unreadable_objects_are_skipped():
    lazy = Lazy()
    f = mg.jit(lambda x: x * 2 if lazy is not None else x)
    assert f(mg.ones(2)).tolist() == [2, 2]


def test_a_change_to_an_equal_looking_value_says_that_it_is_another():
    net = mg.nn.Linear(1, 1)
    net.last = {}

    def f(x):
        net.last = {}
        return x + len(net.last)

    with pytest.raises(mg.TraceError, match=r"\.last was a dict and is another dict"):
        mg.jit(f)(mg.ones(1))
