"""Arguments that are not tensors: which are the same for a trace, and what a trace reads of them."""

import datetime
import decimal
import enum
import fractions
import pathlib
import types
from dataclasses import dataclass, field

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("numpy_kernels")


@dataclass(frozen=True, slots=True)
class Config:
    rate: object = 1
    note: object = field(default=1, compare=False)


@dataclass(slots=True)
class Open:
    rate: object = 1


class Always:
    """Equal to everything."""

    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Own(float):
    __slots__ = ()


AT_NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
# two values that are equal, and a part of the reason for the second trace
EQUAL = {
    "a field that is not compared": (Config(1, 1), Config(1, 2), "Config(note=2, rate=1)"),
    "1 and True in a slot": (Config(1), Config(True), "Config(note=1, rate=True)"),
    "1 and 1.0 in a slot": (Config(1), Config(1.0), "rate=1.0"),
    "0.0 and -0.0 in a slot": (Config(0.0), Config(-0.0), "rate=-0.0"),
    "an object in a slot": (Config(Config(1, 1)), Config(Config(1, 2)), "rate=Config(note=2, rate=1)"),
    "a tuple in a slot": (Config((Config(1, 1),)), Config((Config(1, 2),)), "rate=(Config(note=2, rate=1))"),
    "an object that is not frozen": (Open(1), Open(True), "Open(rate=True)"),
    "an object that equals all others": (Always(1), Always(2), "Always(n=2)"),
    "frozensets": (frozenset({1}), frozenset({True}), "frozenset({True})"),
    "frozensets of objects": (frozenset({Config(1, 1)}), frozenset({Config(1, 2)}), "note=2"),
    "frozensets of frozensets": (frozenset({frozenset({1})}), frozenset({frozenset({True})}), "True"),
    "ranges": (range(0, 1, 1), range(0, 1, 2), "range(0, 1, 2)"),
    "empty ranges": (range(1, 1), range(2, 2), "range(2, 2)"),
    "decimals": (decimal.Decimal("1.0"), decimal.Decimal("1.00"), "Decimal('1.00')"),
    "slices": (slice(1, 2), slice(True, 2), "slice(True, 2, None)"),
    "times": (AT_NOON, AT_NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1))), "tzinfo"),
    "the first and the second time": (datetime.time(2), datetime.time(2, fold=1), "fold=1"),
    "paths": (pathlib.PureWindowsPath("a"), pathlib.PureWindowsPath("A"), "PureWindowsPath('A')"),
    "subclass of float": (Own(0.0), Own(-0.0), "-0.0"),
    "an enum and its number": (1, enum.IntEnum("Kind", "A").A, "<Kind.A: 1>"),
}


def texts(value):
    """What a function may read of a value."""
    if isinstance(value, (frozenset, tuple)):
        return [texts(part) for part in value]
    slots = [name for name in ("rate", "note", "n") if hasattr(value, name)]
    return [texts(getattr(value, name)) for name in slots] or repr(value)


@pytest.mark.parametrize("place", [lambda v: v, lambda v: [v], lambda v: (v, 1), lambda v: {"a": v}])
@pytest.mark.parametrize("case", EQUAL)
def test_equal_arguments_that_differ(case, place):
    first, second, reason = EQUAL[case]
    assert first == second and texts(first) != texts(second)
    f = mg.jit(lambda x, value: x * 1)
    for value, count in ((first, 1), (first, 1), (second, 2), (second, 2), (first, 2)):
        f(mg.ones(1), place(value))
        assert len(f.traces) == count
    assert reason in f.traces[1]


@pytest.mark.parametrize("case", [case for case in EQUAL if case not in ("slices", "an object that is not frozen")])
def test_equal_keys_and_static_arguments_that_differ(case):
    first, second, _ = EQUAL[case]
    f, g = mg.jit(lambda x, table: x * len(table)), mg.jit(lambda x, value: x * 1, static=1)
    for value, count in ((first, 1), (second, 2), (first, 2)):
        f(mg.ones(1), {value: 0}), g(mg.ones(1), value)
        assert (len(f.traces), len(g.traces)) == (count, count)


@pytest.mark.parametrize("make", [
    lambda: Config(2, "note"), lambda: Config((1, 2.0), None), lambda: Config(Config(1)), lambda: Open([1][0]),
    lambda: range(1, 4), lambda: frozenset({1, 2}), lambda: decimal.Decimal("1.50"), lambda: fractions.Fraction(1, 3),
    lambda: slice(0, 2), lambda: pathlib.PurePosixPath("a/b"), lambda: datetime.date(2020, 1, 1),
    lambda: np.dtype("f4"), lambda: (range(3), [Config()]), lambda: {"a": Config()}, lambda: Own(1.5),
])
def test_the_same_value_made_again_is_the_same_argument(make):
    f = mg.jit(lambda x, value: x * 1)
    for _ in range(3):
        f(mg.ones(1), make())
    assert len(f.traces) == 1, f.traces


def class_with(**attributes):
    return type("Settings", (), attributes)


CLASSES = {
    "alone": lambda cls: cls,
    "in a list": lambda cls: [cls],
    "in a dict": lambda cls: {"a": cls},
    "as a key": lambda cls: {cls: 1},
    "in a slot": Config,
    "in a frozenset": lambda cls: frozenset({cls}),
}


def class_in(value):
    if isinstance(value, type):
        return value
    return class_in(value.rate if isinstance(value, Config) else value["a"] if "a" in value else next(iter(value)))


@pytest.mark.parametrize("place", CLASSES)
def test_an_attribute_of_a_class_that_is_an_argument(place):
    settings = class_with(rate=1)
    f = mg.jit(lambda x, value: x * class_in(value).rate)
    given = CLASSES[place](settings)
    assert [f(mg.ones(1), given).item() for _ in range(2)] == [1, 1]
    settings.rate = 3
    assert f(mg.ones(1), given).item() == 3
    assert f.traces[1:] == ["Settings.rate was 1 and is 3"]


def test_other_attributes_of_classes_that_are_arguments():
    base = class_with(rate=1)
    derived, meta = type("Derived", (base,), {}), type("Meta", (type,), {"rate": 1})
    member = enum.Enum("Colour", "RED").RED
    member.rate = 1
    for cls, owner in ((derived, base), (meta("Plain", (), {}), meta), (type(member), type(member)), (member, member)):
        owner.rate = 1
        f = mg.jit(lambda x, c: x * c.rate)
        g = mg.jit(lambda x, c: x * c.rate, static="c")
        assert f(mg.ones(1), cls).item() == g(mg.ones(1), c=cls).item() == 1
        owner.rate = 3
        assert f(mg.ones(1), cls).item() == g(mg.ones(1), c=cls).item() == 3
        assert len(f.traces) == len(g.traces) == 2


def test_what_an_argument_with_slots_holds():
    for held, change in (
        ([1], lambda held: held.__setitem__(0, 3)), ({"n": 1}, lambda held: held.update(n=3)),
        (types.SimpleNamespace(n=1), lambda held: setattr(held, "n", 3)),
    ):
        def read(held):
            return held[0] if isinstance(held, list) else held["n"] if isinstance(held, dict) else held.n

        config = Config(1, held)
        f = mg.jit(lambda x, c, read=read: x * read(c.note))
        assert f(mg.ones(1), config).item() == 1
        change(held)
        assert f(mg.ones(1), config).item() == 3 and len(f.traces) == 2
    closed, opened = Config(1, mg.ones(1)), Open(1)
    f = mg.jit(lambda x, c: x * c.note)
    assert f(mg.ones(1), closed).item() == 1 and f(mg.ones(1), Config(1, mg.ones(1) * 3)).item() == 3
    g = mg.jit(lambda x, c: x * c.rate)
    assert g(mg.ones(1), opened).item() == 1
    opened.rate = 3
    assert g(mg.ones(1), opened).item() == 3
    assert g.traces[1] == "argument 1 was Open(rate=1) and is Open(rate=3)"


@pytest.mark.parametrize("kind", [int, float, str, bytes])
def test_an_attribute_of_an_argument_that_is_a_number_or_a_text(kind):
    value = type("Own", (kind,), {})()
    value.rate = 1
    f = mg.jit(lambda x, v: x * v.rate)
    assert [f(mg.ones(1), value).item() for _ in range(2)] == [1, 1]
    value.rate = 3
    assert f(mg.ones(1), value).item() == 3 and f.traces[1] == "Own.rate was 1 and is 3"


def test_arguments_that_cannot_be_compared():
    f = mg.jit(lambda x, value: x * 1)
    for value in ({1}, bytearray(1), frozenset({(k for k in range(3))})):
        with pytest.raises(mg.ConversionError, match=f"a {type(value).__name__} cannot be an argument|a generator"):
            f(mg.ones(1), value)


def test_an_object_that_gets_the_class_of_another_with_slots():
    one, other = [type(name, (), {"__slots__": ("n",)}) for name in ("One", "Other")]
    held = one()
    held.n = 1
    f = mg.jit(lambda x: x * held.n)
    assert f(mg.ones(1)).item() == 1
    held.__class__ = other
    held.n = 3
    assert f(mg.ones(1)).item() == 3
