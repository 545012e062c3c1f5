"""Whatever a function reads may change between calls: a jitted function is traced again, or was refused."""

import abc
import array
import collections
import contextvars
import functools
import inspect
import io
import operator
import sys
import types
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.core.mode import current_mode
from minigrad.support.errors import TraceError
from tests.compile.tracing.alone import run_alone

pytestmark = pytest.mark.usefixtures("numpy_kernels")


class Holder:
    def __init__(self, value=None):
        self.n = value

    def read(self):
        return self.n


class Other(Holder):
    def read(self):
        return self.n + 100


def called(value):
    """A new function that returns a value, without a name outside it."""
    return lambda: value


# Each function takes a value, and returns what reads it and what changes it -----------------------------------------


def of_a_global(value):
    space = {"n": value}
    exec("def read():\n    return n", space)
    return space["read"], lambda new: space.update(n=new)


def of_a_closure(value):
    def change(new):
        nonlocal value
        value = new

    return lambda: value, change


def of_a_default(value):
    def read(n=value):
        return n

    return read, lambda new: setattr(read, "__defaults__", (new,))


def of_a_named_default(value):
    def read(*, n=value):
        return n

    return read, lambda new: setattr(read, "__kwdefaults__", {"n": new})


def of_code(value):
    def made(number):
        space = {}
        exec(f"def read():\n    return {number}", space)
        return space["read"]

    read = made(value)
    return read, lambda new: setattr(read, "__code__", made(new).__code__)


def of_a_wrapped_function(value):
    inner = Holder(called(value))

    def wrapper():
        return wrapper.__wrapped__()

    functools.update_wrapper(wrapper, inner.n)
    return wrapper, lambda new: setattr(wrapper, "__wrapped__", called(new))


def of_a_decorated_function(value):
    held = Holder(value)

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    return decorator(lambda: held.n), lambda new: setattr(held, "n", new)


def of_an_attribute(value):
    held = Holder(value)
    return held.read, lambda new: setattr(held, "n", new)


def of_an_attribute_by_a_computed_name(value):
    held, name = Holder(value), "n"
    return lambda: getattr(held, name), lambda new: setattr(held, "n", new)


def of_an_attribute_by_attrgetter(value):
    held = types.SimpleNamespace(n=value)
    return lambda get=operator.attrgetter("n"): get(held), lambda new: setattr(held, "n", new)


def of_a_class(value):
    cls = type("Class", (), {"n": value})
    held = cls()
    return lambda: held.n, lambda new: setattr(cls, "n", new)


def of_a_base_class(value):
    base = type("Base", (), {"n": value})
    held = type("Derived", (base,), {})()
    return lambda: held.n, lambda new: setattr(base, "n", new)


def of_a_method(value):
    cls = type("Class", (), {"read": lambda self: value})
    held = cls()
    return lambda: held.read(), lambda new: setattr(cls, "read", lambda self: new)


def of_a_call(value):
    cls = type("Class", (), {"__call__": lambda self: value})
    held = cls()
    return lambda: held(), lambda new: setattr(cls, "__call__", lambda self: new)


def of_a_property(value):
    held = Holder(value)
    computed = type("Computed", (), {"n": property(lambda self: held.n)})()
    return lambda: computed.n, lambda new: setattr(held, "n", new)


def of_a_slot(value):
    held = type("Slotted", (), {"__slots__": ("n",)})()
    held.n = value
    return lambda: held.n, lambda new: setattr(held, "n", new)


def of_a_list(value):
    held = [0, value]
    return lambda: held[1], lambda new: held.__setitem__(1, new)


def of_a_nested_item(value):
    held = {"a": [(1, {"n": value})]}
    return lambda: held["a"][0][1]["n"], lambda new: held["a"].__setitem__(0, (1, {"n": new}))


def of_a_view_of_a_dict(value):
    held = {"n": value}
    items = held.items()
    return lambda: next(v for _, v in items), lambda new: held.update(n=new)


def of_the_values_of_a_dict(value):
    held = {"n": value}
    values = held.values()
    return lambda: sum(values), lambda new: held.update(n=new)


def of_a_set(value):
    held = {value}
    return lambda: sum(held), lambda new: (held.clear(), held.add(new))


def of_a_deque(value):
    held = collections.deque([1, value], maxlen=2)
    return lambda: held[-1], held.append


def of_an_array(value):
    held = np.array([value], np.float64)
    return lambda: float(held[0]), lambda new: held.__setitem__(0, new)


def of_memory(value):
    held = array.array("d", [value])
    return lambda: held[0], lambda new: held.__setitem__(0, new)


def of_a_module(value):
    module = types.ModuleType("a_module_of_mine")
    module.n = value
    return lambda: module.n, lambda new: setattr(module, "n", new)


def of_an_imported_module(value):
    sys.modules["a_module_of_mine"] = types.ModuleType("a_module_of_mine")
    sys.modules["a_module_of_mine"].n = value

    def read():
        import a_module_of_mine
        return a_module_of_mine.n

    def change(new):
        sys.modules["a_module_of_mine"] = types.ModuleType("a_module_of_mine")
        sys.modules["a_module_of_mine"].n = new

    return read, change


def of_a_context(value):
    held = [value]
    variable = contextvars.ContextVar("n", default=held)
    return lambda: variable.get()[0], lambda new: held.__setitem__(0, new)


def of_a_partial(value):
    held = functools.partial(lambda n: n, value)
    return lambda: held(), lambda new: held.__setstate__((lambda n: n, (new,), {}, {}))


def of_weak_keys(value):
    key, held = Holder(), weakref.WeakKeyDictionary()
    held[key] = value
    return lambda: held[key], lambda new: held.update({key: new})


def of_weak_values(value):
    kept, held = [Holder(value)], weakref.WeakValueDictionary()
    held["n"] = kept[0]

    def change(new):
        kept.append(Holder(new))
        held["n"] = kept[-1]

    return lambda: held["n"].n, change


def of_a_single_dispatch(value):
    @functools.singledispatch
    def read(number):
        return value

    return lambda: read(1), lambda new: read.register(int, lambda number: new)


def of_the_class_of_an_object(value):
    held = type("First", (), {"read": lambda self: value})()
    return lambda: held.read(), lambda new: setattr(held, "__class__", type("Second", (), {"read": lambda self: new}))


def of_the_bases_of_a_class(value):
    def base(n):
        return type("Base", (), {"read": lambda self: n})

    cls = type("Derived", (base(value),), {})
    held = cls()
    return lambda: held.read(), lambda new: setattr(cls, "__bases__", (base(new),))


def of_a_class_item(value):
    cls = type("Class", (), {"__class_getitem__": classmethod(lambda cls, i: value)})
    return lambda: cls[0], lambda new: setattr(cls, "__class_getitem__", classmethod(lambda cls, i: new))


def of_a_missing_attribute(value):
    cls = type("Class", (), {"__getattr__": lambda self, name: value})
    held = cls()
    return lambda: held.missing, lambda new: setattr(cls, "__getattr__", lambda self, name: new)


def of_a_default_factory(value):
    held = collections.defaultdict(lambda: value)
    return lambda: held.get("n") or held.default_factory(), lambda new: setattr(held, "default_factory", lambda: new)


def of_an_exception(value):
    held = ValueError(value)
    return lambda: held.args[0], lambda new: setattr(held, "args", (new,))


def of_the_name_of_a_function(value):
    def held():
        """Nothing."""

    held.__name__ = "x" * value
    return lambda: len(held.__name__), lambda new: setattr(held, "__name__", "x" * new)


def of_an_annotation(value):
    def held(n: value):
        """Nothing."""

    return lambda: held.__annotations__["n"], lambda new: held.__annotations__.update(n=new)


def of_the_name_of_a_class(value):
    held = type("x" * value, (), {})
    return lambda: len(held.__name__), lambda new: setattr(held, "__name__", "x" * new)


def of_the_classes_derived_from_one(value):
    base = type("Base", (), {})
    kept = [type("Derived", (base,), {"n": value})]
    return lambda: base.__subclasses__()[-1].n, lambda new: kept.append(type("Derived", (base,), {"n": new}))


def of_an_attribute_of_an_array(value):
    held = np.zeros(2).view(type("Array", (np.ndarray,), {}))
    held.n = value
    return lambda: held.n, lambda new: setattr(held, "n", new)


def of_a_dict_that_is_replaced(value):
    held = Holder(value)
    return held.read, lambda new: setattr(held, "__dict__", {"n": new})


def of_a_file_in_memory(value):
    held = io.StringIO(str(value))
    return lambda: int(held.getvalue()), lambda new: (held.seek(0), held.write(str(new)))


def of_a_field_of_a_text(value):
    held = Holder(value)
    return lambda: int("{it.n}".format_map({"it": held})), lambda new: setattr(held, "n", new)


def of_an_unwrapped_function(value):
    def held():
        """Nothing."""

    held.__wrapped__ = called(value)
    return lambda: inspect.unwrap(held)(), lambda new: setattr(held, "__wrapped__", called(new))


def by_the_computed_name_of_a_module(value):
    module = sys.modules["a_module_of_mine"] = types.ModuleType("a_module_of_mine")
    module.n, name = value, module.__name__
    return lambda: sys.modules[name].n, lambda new: setattr(module, "n", new)


SITES = {name: each for name, each in list(globals().items()) if name.startswith("of_")}


# How the value gets from there to the function ------------------------------------------------------------------------


def through_a_list(read):
    return lambda: sum([each() for each in [read]])


def through_a_table(read):
    table = {"read": read}
    return lambda: table["read"]()


def through_an_object(read):
    held = Holder(read)
    return lambda: held.n()


def through_a_map(read):
    return lambda: next(map(operator.call, [read]))


def through_a_partial(read):
    return functools.partial(lambda function: function(), read)


def through_a_generator(read):
    return lambda: sum(each() for each in (read,))


WAYS = {name: each for name, each in list(globals().items()) if name.startswith("through_")}
NUMBERS = st.integers(1, 9)


@pytest.fixture(autouse=True)
def module_of_mine():
    yield
    sys.modules.pop("a_module_of_mine", None)


@given(
    st.lists(st.tuples(st.sampled_from(list(SITES)), st.lists(st.sampled_from(list(WAYS)), max_size=2)), min_size=1,
             max_size=3),
    st.lists(st.tuples(st.integers(0, 2), NUMBERS), min_size=1, max_size=4), NUMBERS,
)
def test_what_a_function_reads_may_change(sites, changes, first):
    reads, setters = [], []
    for site, ways in sites:
        read, change = SITES[site](first)
        for way in ways:
            read = WAYS[way](read)
        reads.append(read)
        setters.append(change)

    def computed():
        return sum(10**i * read() for i, read in enumerate(reads))

    jitted = mg.jit(lambda x: x * computed())
    x = mg.ones((), dtype=mg.float64)
    for number, new in [(0, first), *changes]:
        setters[number % len(setters)](new)
        try:
            found = jitted(x).item()
        except TraceError:
            return
        assert found == computed(), jitted.traces
        count = len(jitted.traces)
        assert jitted(x).item() == found and len(jitted.traces) == count


@pytest.mark.parametrize("site", SITES)
def test_a_change_has_a_reason_in_words(site):
    a_change_has_a_reason(SITES[site])


def test_a_change_in_a_module_by_a_computed_name():
    run_alone(__name__, "a_change_has_a_reason(by_the_computed_name_of_a_module)")


def a_change_has_a_reason(site):
    read, change = site(1)
    jitted = mg.jit(lambda x: x * read())
    assert jitted(mg.ones(())).item() == 1
    change(2)
    assert jitted(mg.ones(())).item() == 2
    assert len(jitted.traces) == 2 and len(jitted.traces[1]) > 10


def test_a_check_is_written_again_once_a_module_has_more_attributes():
    model, x = mg.nn.Sequential(mg.nn.Linear(3, 2), mg.nn.ReLU()), mg.ones(3)
    jitted = mg.jit(lambda x: model(x))
    jitted(x)
    model.note = "nothing reads this"
    (recording,) = jitted._checks
    assert recording.check((x,), {}, current_mode()) is None
    jitted(x)
    assert recording.check((x,), {}, current_mode()) is not None and len(jitted.traces) == 1
    model.note = mg.ones(1)
    jitted(x)
    assert len(jitted.traces) == 2


# What appears later ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "method", "read"), [
    ("__bool__", lambda self: False, lambda held: 1 if held else 2),
    ("__len__", lambda self: 0, lambda held: 1 if held else 2),
    ("__eq__", lambda self, other: True, lambda held: 2 if held == 3 else 1),
    ("__contains__", lambda self, item: False, lambda held: 1 if 1 in held else 2),
    ("__getattr__", lambda self, name: 2, lambda held: getattr(held, "late", 1)),
    ("__call__", lambda self: 2, lambda held: held() if callable(held) else 1),
])
def test_a_special_method_that_a_class_gets_later(name, method, read):
    cls = type("Class", (), {"__iter__": lambda self: iter([1])})
    held = cls()
    jitted = mg.jit(lambda x: x * read(held))
    assert jitted(mg.ones(())).item() == 1
    setattr(cls, name, method)
    assert jitted(mg.ones(())).item() == 2


def test_a_class_that_is_registered_later():
    class Base(abc.ABC):  # noqa: B024
        pass

    held = Holder()
    jitted = mg.jit(lambda x: x * (2 if isinstance(held, Base) else 1))
    assert jitted(mg.ones(())).item() == 1
    Base.register(Holder)
    assert jitted(mg.ones(())).item() == 2 and "a class was registered" in jitted.traces[1]


def test_a_module_that_gets_a_getattr_later():
    module = types.ModuleType("a_module_of_mine")
    jitted = mg.jit(lambda x: x * (module.late if hasattr(module, "late") else 1))
    assert jitted(mg.ones(())).item() == 1
    module.__getattr__ = lambda name: 2
    assert jitted(mg.ones(())).item() == 2


def test_the_order_of_a_set():
    held = {8, 0}
    jitted = mg.jit(lambda x: x + next(iter(held)))
    assert jitted(mg.zeros(())).item() == next(iter(held))
    held.clear()
    held.update([0, 8])
    assert jitted(mg.zeros(())).item() == next(iter(held))


def test_weak_dictionaries_keep_nothing_alive():
    key, held = Holder(), weakref.WeakKeyDictionary()
    held[key] = 1
    jitted = mg.jit(lambda x: x * len(held))
    assert jitted(mg.ones(())).item() == 1
    del key
    assert jitted(mg.ones(())).item() == 0


def test_the_class_of_a_module_may_change():
    class Doubled(mg.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    class Tripled(mg.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 3

    model, x = Doubled(3, 2), mg.ones(3)
    jitted = mg.jit(lambda x: model(x))
    assert jitted(x).tolist() == model(x).tolist()
    model.__class__ = Tripled
    np.testing.assert_allclose(jitted(x).tolist(), model(x).tolist(), rtol=1e-6)


def test_the_class_of_an_object_may_change_to_and_fro():
    held = Holder(1)
    jitted = mg.jit(lambda x: x * held.read())
    for cls, value in [(Holder, 1), (Other, 101), (Holder, 1), (Other, 101)]:
        held.__class__ = cls
        assert jitted(mg.ones(())).item() == value
    assert len(jitted.traces) == 2
