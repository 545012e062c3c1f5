"""The names that a piece of code can read, found from its instructions."""

import operator

import pytest

from minigrad.compile.tracing.contents import all_codes, reads


def constant(x):
    return getattr(x, "n")  # noqa: B009


def with_default(x):
    return getattr(x.y[3], "n", x.z[1])


def on_a_call(x):
    return getattr(constant(x.y), "n") + hasattr(x, "m")  # noqa: B009


def nested(x, name):
    return getattr(getattr(x, "n"), name, None)  # noqa: B009


def computed(x, name):
    return getattr(x, name)


def chosen(x, flag):
    return getattr(x, "n" if flag else "m")


def spread(arguments):
    return getattr(*arguments)


def mapped(xs):
    return map(getattr, xs)


def written(x):
    setattr(x, "n", 1)  # noqa: B010
    x.m = 2
    del x.k


def getter(x):
    return operator.attrgetter("n.m")(x)


def inner(x):
    return [lambda: x.n, {x.m for _ in range(2)}]


def imported():
    import a.b

    from ..c import d

    return a.b.n + d


def matched(x):
    match x:
        case Point(n=1):
            return 2


class Point:
    pass


def everything(x):
    return vars(x), eval("n"), x.__dict__


@pytest.mark.parametrize("code, names, is_computed", [
    (constant, {"n"}, False), (with_default, {"n", "y", "z"}, False), (on_a_call, {"n", "m", "y"}, False),
    (nested, {"n"}, True), (computed, set(), True), (chosen, set(), True), (spread, set(), True), (mapped, set(), True),
    (written, {"n", "m", "k"}, False), (getter, {"attrgetter", "n", "m", "n.m"}, False), (inner, {"n", "m"}, False),
    (matched, {"n"}, False), (everything, {"__dict__"}, True),
], ids=lambda part: getattr(part, "__name__", ""))
def test_names_that_a_function_reads(code, names, is_computed):
    found = reads(code.__code__)
    assert names - {"n.m"} <= found.names and not (found.names - names)
    assert bool(found.computed) == is_computed and found.anything == (code is everything)


def test_globals_and_imports_that_a_function_reads():
    assert reads(on_a_call.__code__).globals == {"getattr", "hasattr", "constant"}
    assert reads(imported.__code__).imports == {("a.b", 0), ("c", 2)}
    assert {code.co_name for code in all_codes(inner.__code__)} >= {"inner", "<lambda>"}
