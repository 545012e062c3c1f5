"""A student's guard in the engine: it alone decides whether a trace may be used, for the traces of its block."""

import copy

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad_course.feedback import Misused

scale = 1.0
scales = [1.0, 2.0]


class settings:
    scale = 1.0


def scaled(x):
    return x * scale * scales[1] * settings.scale


def careful(values):
    noted = repr(values)
    return lambda: repr(values) == noted


def aliased(values):
    noted = values
    return lambda: noted == values


@pytest.fixture(autouse=True)
def first_values(monkeypatch):
    monkeypatch.setitem(globals(), "scale", 1.0)
    monkeypatch.setitem(globals(), "scales", [1.0, 2.0])
    monkeypatch.setattr(settings, "scale", 1.0)


def change_all(monkeypatch):
    """Change a global, an entry of a list and an attribute, one after the other."""
    yield monkeypatch.setitem(globals(), "scale", 3.0)
    scales[1] = 5.0
    yield
    yield monkeypatch.setattr(settings, "scale", 7.0)


def test_a_guard_sees_the_plain_values_that_a_function_reads():
    seen = []

    def guard(values):
        seen.append(copy.deepcopy(values))
        return lambda: True

    with course.guard(guard):
        mg.jit(scaled)(mg.ones(()))
    assert seen == [{"scale": 1.0, "scales": [1.0, 2.0], "settings.scale": 1.0}]


def test_a_careful_guard_makes_a_new_trace_for_each_change(monkeypatch):
    f = mg.jit(scaled)
    with course.guard(careful) as mine:
        assert f(mg.ones(())).item() == f(mg.ones(())).item() == 2
        assert [f(mg.ones(())).item() for _ in change_all(monkeypatch)] == [6, 15, 105]
    assert list(f.traces) == [
        "the first call", "scale was 1.0 and is 3.0", "scales was [1.0, 2.0] and is [1.0, 5.0]",
        "settings.scale was 1.0 and is 7.0",
    ]
    assert mine.calls > 4


def test_a_guard_that_compares_a_dictionary_with_itself_keeps_the_first_trace(monkeypatch):
    f = mg.jit(scaled)
    with course.guard(aliased):
        f(mg.ones(()))
        assert [f(mg.ones(())).item() for _ in change_all(monkeypatch)] == [2, 2, 2]


def test_a_guard_that_never_holds_traces_each_call():
    f = mg.jit(scaled)
    with course.guard(lambda values: lambda: False):
        for _ in range(3):
            f(mg.ones(()))
    assert f.traces[1:] == ["<lambda> returned False, though nothing has changed"] * 2


def test_a_variable_of_an_outer_function_is_among_the_values(monkeypatch):
    factor = 2.0

    def inner(x):
        return x * factor

    f = mg.jit(inner)
    with course.guard(careful):
        f(mg.ones(()))
        factor = 4.0
        assert f(mg.ones(())).item() == 4


def test_outside_of_the_block_the_guards_are_those_of_the_engine(monkeypatch):
    with course.guard(aliased):
        pass
    f = mg.jit(scaled)
    f(mg.ones(()))
    assert [f(mg.ones(())).item() for _ in change_all(monkeypatch)] == [6, 15, 105]


def test_a_guard_that_is_not_a_function_is_refused():
    with course.guard(lambda values: values), pytest.raises(Misused, match="not a function"):
        mg.jit(scaled)(mg.ones(()))


def test_a_function_that_changes_a_name_is_refused_as_without_a_students_guard():
    def counting(x):
        global scale
        scale += 1
        return x * scale

    with course.guard(aliased), pytest.raises(mg.TraceError, match=r"scale was 1\.0 and is 2\.0"):
        mg.jit(counting)(mg.ones(()))
