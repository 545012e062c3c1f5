"""A value that the code reads in an unusual way is read again in the next call, or the function is refused."""

import array
import contextvars
import ctypes
import dataclasses
import functools
import importlib
import operator
import os
import random
import sys
import textwrap
import threading
import time
import types
import uuid
import weakref

import numpy as np
import pytest

import minigrad as mg
from tests.compile.tracing.alone import run_alone

pytestmark = pytest.mark.usefixtures("numpy_kernels")

NUMBER = 1


def change_global():
    global NUMBER
    NUMBER += 1


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A package of the user's, whose module holds a number."""
    package = tmp_path / "jit_settings"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "values.py").write_text("scale = 1\n")
    (package / "local.py").write_text(textwrap.dedent("""
        def relative():
            from .values import scale
            return scale
        def whole():
            from . import values
            return values.scale
    """))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: setattr(importlib.import_module("jit_settings.values"), "scale", 2)
    for name in [name for name in sys.modules if name.startswith("jit_settings")]:
        del sys.modules[name]


def imported_names():
    from jit_settings.values import scale
    return scale


def imported_module():
    import jit_settings.values
    return jit_settings.values.scale


def imported_as():
    import jit_settings.values as held
    return held.scale


def imported_relatively():
    from jit_settings.local import relative
    return relative()


def imported_with_its_package():
    from jit_settings.local import whole
    return whole()


def imported_by_function():
    return importlib.import_module("jit_settings.values").scale


def imported_by_builtin():
    return __import__("jit_settings.values").values.scale


def imported_before():
    import jit_settings.values  # noqa: F401
    return sys.modules["jit_settings.values"].scale


@pytest.mark.parametrize("first", [True, False], ids=["imported by the trace", "imported before"])
@pytest.mark.parametrize("read", [
    imported_names, imported_module, imported_as, imported_relatively, imported_with_its_package, imported_by_function,
    imported_by_builtin, imported_before,
], ids=lambda read: read.__name__)
def test_a_module_that_is_imported_inside(read, first, config):
    if not first:
        read()
    f = mg.jit(lambda: mg.ones(1) * read())
    assert [f().item(), f().item(), len(f.traces)] == [1, 1, 1]
    config()
    assert f().item() == 2 and "scale was 1 and is 2" in f.traces[1]


def test_module_replaced_by_another_of_the_same_name(config, monkeypatch):
    f = mg.jit(lambda: mg.ones(1) * imported_names())
    f()
    other = types.ModuleType("jit_settings.values")
    other.scale = 3
    with monkeypatch.context() as here:  # `config` removes its modules before `monkeypatch` restores anything
        here.setitem(sys.modules, "jit_settings.values", other)
        assert f().item() == 3


class Meta(type):
    hidden = 1

    @property
    def rate(cls):
        return Meta.hidden

    def computed(cls):
        return cls.n


class Held(metaclass=Meta):
    n = 1

    def __init__(self):
        self.own = 1

    def by_number(self, k):
        return getattr(self, f"step_{k}")()

    def step_1(self):
        return NUMBER

    def first(self, numbers):
        return numbers[0]

    def multiplied(self, by):
        return self.own * by


class Slotted:
    __slots__ = ("n", "unset")

    def __init__(self):
        self.n = 1


class Falling:
    def __getattr__(self, name):
        return vars(self)["table"][name]


@dataclasses.dataclass
class Point:
    n: int = 1
    __match_args__ = ("n",)


def matched(point):
    match point:
        case Point(n=n):
            return n


def matched_by_place(point):
    match point:
        case Point(n):
            return n


def missing(held):
    try:
        return held.late
    except AttributeError:
        return 1


def set_(held, name, value):
    return lambda: setattr(held, name, value)


def of_class(read):
    def make(restore):
        restore.setattr(Held, "n", 1)
        return lambda: read(Held), set_(Held, "n", 2)

    return make


def of_object(read, kind=Held, name="own"):
    def make(restore):
        held = kind()
        setattr(held, name, 1)
        return lambda: read(held), set_(held, name, 2)

    return make


def of_value(create, read, change):
    def make(restore):
        held = create()
        return lambda: read(held), lambda: change(held)

    return make


def of_global(read):
    def make(restore):
        restore.setattr(sys.modules[__name__], "NUMBER", 1)
        return read, change_global

    return make


def metaclass_property(restore):
    restore.setattr(Meta, "hidden", 1)
    return lambda: Held.rate, set_(Meta, "hidden", 2)


def thread_local(restore):
    held = threading.local()
    held.n = 1
    return lambda: held.n, set_(held, "n", 2)


def context_variable(restore):
    variable = contextvars.ContextVar("n", default=1)
    return lambda: variable.get(), lambda: variable.set(2)


def method_by_computed_name(restore):
    restore.setattr(sys.modules[__name__], "NUMBER", 1)
    held = Held()
    return lambda: held.by_number(1), change_global


def falls_back(restore):
    held = Falling()
    held.table = {"n": 1}
    return lambda: held.n, lambda: held.table.update(n=2)


def weak(restore):
    holder = [Held()]
    reference = weakref.ref(holder[0])
    return lambda: 1 if reference() else 2, holder.clear


def proxied(restore):
    held = Held()
    proxy = weakref.proxy(held)
    return lambda: proxy.own, set_(held, "own", 2)


def far_away(restore):
    last = first = Held()
    for _ in range(300):
        last.next = last = Held()

    def read(at=first):
        while hasattr(at, "next"):
            at = at.next
        return at.own

    return read, set_(last, "own", 2)


def module_by_computed_name(restore):
    module, name = types.ModuleType("jit_of_mine"), "n"
    module.n = 1
    return lambda: getattr(module, name), set_(module, "n", 2)


def alias_of_getattr(restore):
    held, read = Held(), getattr
    return lambda: read(held, "own"), set_(held, "own", 2)


def global_that_appears(restore):
    space = {"range": range}
    exec("def f():\n  try:\n    return LATE\n  except NameError:\n    return 1", space)
    return space["f"], lambda: space.update(LATE=2)


def attribute_of_a_class_that_appears(restore):
    class Base:
        n = 1

    class Derived(Base):
        pass

    held = Derived()
    return lambda: held.n, set_(Derived, "n", 2)


attribute, slot = "own", "n"
CASES = {
    "getattr of a class": of_class(lambda c: getattr(c, "n")),  # noqa: B009
    "getattr with a default": of_class(lambda c: getattr(c, "n", None)),
    "vars of a class": of_class(lambda c: vars(c)["n"]),
    "method of a metaclass": of_class(lambda c: c.computed()),
    "metaclass property": metaclass_property,
    "getattr, computed": of_object(lambda held: getattr(held, attribute)),
    "getattr, computed, with a default": of_object(lambda held: getattr(held, attribute, None)),
    "getattr, mapped": of_object(lambda held: next(map(getattr, [held], ["own"]))),
    "getattr under another name": alias_of_getattr,
    "getattr of a module, computed": module_by_computed_name,
    "method by a computed name": method_by_computed_name,
    "vars": of_object(lambda held: vars(held)["own"]),
    "__dict__": of_object(lambda held: held.__dict__["own"]),
    "__getattribute__": of_object(lambda held: held.__getattribute__("own")),
    "attrgetter": of_object(lambda held: operator.attrgetter("own")(held)),
    "slots by computed name": of_object(lambda held: getattr(held, slot), Slotted, "n"),
    "a slot that was not set": of_object(lambda held: held.n if not hasattr(held, "unset") else 0, Slotted, "n"),
    "__getattr__": falls_back,
    "eval": of_object(lambda held: eval("held.own")),
    "eval of a global": of_global(lambda: eval("NUM" + "BER")),
    "exec": of_global(lambda: (space := {}, exec("found = NUMBER", globals(), space))[0]["found"]),
    "globals": of_global(lambda: globals()["NUMBER"]),
    "globals, computed": of_global(lambda: globals()["NUM" + "BER"]),
    "global that appears": global_that_appears,
    "asdict": of_object(lambda held: dataclasses.asdict(held)["n"], Point, "n"),
    "match by name": of_object(matched, Point, "n"),
    "match by place": of_object(matched_by_place, Point, "n"),
    "missing attribute": of_value(Held, missing, lambda held: setattr(held, "late", 2)),
    "missing attribute of a class": attribute_of_a_class_that_appears,
    "object array": of_value(lambda: np.array([1, "a"], dtype=object), lambda a: a[0], lambda a: a.__setitem__(0, 2)),
    "object in an array": of_value(
        lambda: np.array([Held()], dtype=object), lambda a: a[0].own, lambda a: setattr(a[0], "own", 2)),
    "records with objects": of_value(
        lambda: np.array([(1, 5)], dtype=[("a", object), ("b", int)]), lambda a: a["a"][0],
        lambda a: a["a"].__setitem__(0, 2)),
    "array.array": of_value(lambda: array.array("i", [1]), lambda a: a[0], lambda a: a.__setitem__(0, 2)),
    "array.array that grows": of_value(lambda: array.array("i", [1]), len, lambda a: a.append(2)),
    "iterator over an array": of_value(lambda: np.array([1, 1]).flat, lambda it: it[1], lambda it: it.base.fill(2)),
    "memoryview": of_value(lambda: memoryview(bytearray(b"\x01")), lambda m: m[0], lambda m: m.__setitem__(0, 2)),
    "ctypes": of_value(lambda: ctypes.c_int(1), lambda c: c.value, lambda c: setattr(c, "value", 2)),
    "bytearray": of_value(lambda: bytearray(b"\x01"), lambda b: b[0], lambda b: b.__setitem__(0, 2)),
    "read-only view": of_value(
        lambda: [(base := np.ones(1)), np.broadcast_to(base, (2, 1))], lambda held: held[1][1, 0],
        lambda held: held[0].fill(2)),
    "ContextVar": context_variable,
    "threading.local": thread_local,
    "weak reference": weak,
    "weak proxy": proxied,
    "three hundred objects away": far_away,
    "partialmethod": of_value(
        lambda: type("C", (), {"f": functools.partialmethod(lambda self, n: n[0], [1])}), lambda c: c().f(),
        lambda c: vars(c)["f"].args[0].__setitem__(0, 2)),
    "key of a dict": of_value(
        lambda: {Held(): 0}, lambda d: next(iter(d)).own, lambda d: setattr(next(iter(d)), "own", 2)),
    "UserDict": of_value(
        lambda: __import__("collections").UserDict(a=1), lambda d: d["a"], lambda d: d.update(a=2)),
}


def shaped(make, read):
    """An array that gets a different shape, in place."""
    return of_value(make, read, lambda a: setattr(a, "shape", a.shape[::-1]))


def read_only():
    array = np.ones((1, 2))
    array.flags.writeable = False
    return array


def with_value(kind, value):
    """An object of a subclass of a type of Python's, with an attribute."""
    held = type("Own", (kind,), {})(value)
    held.own = 1
    return held


CASES |= {
    "attrgetter, made before": of_object(lambda held, get=operator.attrgetter("own"): get(held)),
    "attrgetter of parts": of_value(
        lambda: types.SimpleNamespace(part=Held()), lambda held, get=operator.attrgetter("part.own"): get(held),
        lambda held: setattr(held.part, "own", 2)),
    "attrgetter, mapped": of_object(lambda held, get=operator.attrgetter("own"): next(map(get, [held]))),
    "attrgetter in a partial": of_value(
        lambda: (held := Held(), functools.partial(operator.attrgetter("own"), held)), lambda both: both[1](),
        lambda both: setattr(both[0], "own", 2)),
    "methodcaller": of_object(lambda held, call=operator.methodcaller("multiplied", by=1): call(held)),
    "argument of a methodcaller": of_value(
        lambda: (numbers := [1], operator.methodcaller("first", numbers)), lambda both: both[1](Held()),
        lambda both: both[0].__setitem__(0, 2)),
    "shape of an array": shaped(lambda: np.ones((1, 2)), lambda a: a.shape[0]),
    "sum of an array": shaped(lambda: np.ones((1, 2)), lambda a: int(a.sum(axis=0)[0])),
    "shape of a read-only array": shaped(read_only, lambda a: a.shape[0]),
    "shape of an array of objects": shaped(lambda: np.array([[1, "a"]], dtype=object), lambda a: a.shape[0]),
    "dtype of an array": of_value(
        lambda: np.array([1], np.int32), lambda a: 1 if a.dtype == np.int32 else 2,
        lambda a: setattr(a, "dtype", np.uint32)),
    **{f"attribute of a subclass of {kind.__name__}": of_value(
        functools.partial(with_value, kind, value), lambda held: held.own, lambda held: setattr(held, "own", 2))
       for kind, value in ((int, 1), (float, 1.0), (complex, 1j), (str, "a"), (bytes, b"a"))},
}


ANYTHING = ("eval", "eval of a global", "exec", "globals", "globals, computed")  # they can import any module


def unusual(case, monkeypatch):
    read, change = CASES[case](monkeypatch)
    f = mg.jit(lambda: mg.ones(1) * read())
    assert [f().item(), f().item()] == [1, 1], f.traces
    assert len(f.traces) == 1
    change()
    assert f().item() == 2 and len(f.traces) == 2


@pytest.mark.parametrize("case", [case for case in CASES if case not in ANYTHING])
def test_an_unusual_read(case, monkeypatch):
    unusual(case, monkeypatch)


@pytest.mark.parametrize("case", ANYTHING)
def test_a_read_of_anything(case):
    run_alone(__name__, f"unusual({case!r}, pytest.MonkeyPatch())")


def test_thread_local_values_differ_between_threads():
    held = threading.local()
    held.n = 1
    f, seen = mg.jit(lambda: mg.ones(1) * held.n), []

    def run():
        held.n = 2
        seen.append(f().item())

    seen.append(f().item())
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [*seen, f().item()] == [1, 2, 1]


@pytest.mark.parametrize("write", ["own", "late"])
def test_an_attribute_that_is_only_written_is_a_side_effect(write):
    held = Held()
    with pytest.raises(mg.TraceError, match="changes something that is not a tensor"):
        mg.jit(lambda: (setattr(held, "own", 5) if write == "own" else setattr(held, "late", 5), mg.ones(1))[1])()


def test_a_global_that_is_only_written_is_a_side_effect(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "NUMBER", 1)

    def f():
        global NUMBER
        NUMBER = 7
        return mg.ones(1)

    with pytest.raises(mg.TraceError, match="NUMBER was 1 and is 7"):
        mg.jit(f)()


def test_a_hook_that_is_registered_on_a_module_later():
    model, x = mg.nn.Linear(2, 2), mg.ones((1, 2))
    f = mg.jit(lambda x: model(x))
    f(x)
    with model.register_forward_hook(lambda module, args, out: out * 0):
        assert f(x).tolist() == [[0, 0]] and "_hooks" in f.traces[1]
    assert f(x).tolist() == model(x).tolist()


# values that differ from call to call ---------------------------------------------------------------------------------


def one_of(numbers):
    return random.SystemRandom().choice(numbers)


DRAWS = {
    "default_rng": lambda: np.random.default_rng().normal(),
    "RandomState": lambda: np.random.RandomState().rand(),
    "a bit generator": lambda: np.random.Generator(np.random.PCG64()).random(),
    "Random": lambda: random.Random().random(),
    "SystemRandom": lambda: one_of([1, 2]),
    "urandom": lambda: os.urandom(1)[0],
    "uuid4": lambda: uuid.uuid4().int % 7,
    "time": lambda: time.time(),
    "perf_counter": lambda: time.perf_counter(),
    "shuffle": lambda: random.shuffle([1, 2]) or 1,
    "imported inside": lambda: __import__("random").random(),
    "caught": lambda: (lambda f: f())(lambda: np.random.default_rng().normal()),
}


@pytest.mark.parametrize("case", DRAWS)
def test_a_number_that_each_call_would_get_again(case):
    named = r"the function reads .* at .*test_stale\.py:\d+|state of .*random"
    with pytest.raises(mg.TraceError, match=named) as caught:
        mg.jit(lambda: mg.ones(1) * DRAWS[case]())()
    assert "mg.random" in str(caught.value)


def test_a_generator_with_a_seed_gives_the_same_numbers_in_each_call():
    for draw in (lambda: np.random.default_rng(3).normal(), lambda: random.Random(3).random(),
                 lambda: np.random.RandomState(3).rand()):
        f = mg.jit(lambda draw=draw: mg.ones(1, dtype=mg.float64) * draw())
        assert f().item() == f().item() == draw()


def test_a_clock_that_only_a_package_reads():
    def f(x):
        time.sleep(0)
        return x * int(time.strftime("%Y", (2000, 1, 1, 0, 0, 0, 0, 1, 0)))

    assert mg.jit(f)(mg.ones(1)).item() == 2000


def test_profiler_of_the_user_stays_active():
    def profiler(frame, event, what):
        pass

    sys.setprofile(profiler)
    try:
        mg.jit(lambda: mg.ones(1) * np.random.default_rng(1).normal())()
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    mg.jit(lambda: mg.ones(1) * np.random.default_rng(1).normal())()
    assert sys.getprofile() is None
