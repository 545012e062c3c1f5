"""Recording code whose branches a tensor cannot decide raises an error that names the line."""

import linecache
import types

import pytest

import minigrad as mg

from .refused import CASES


def line_of(error):
    return next(line for line in str(error).splitlines() if line.startswith("  Line: "))


@pytest.mark.parametrize("f, args, says, line", CASES, ids=[case[0].__name__ for case in CASES])
def test_unsupported_code_is_refused_with_its_line(f, args, says, line):
    scripted = mg.script(f)
    with pytest.raises(mg.MinigradError) as caught:
        mg.trace(scripted, *[mg.asarray(x) for x in args])
    assert says in str(caught.value)
    assert line_of(caught.value).endswith(line)


@pytest.mark.parametrize("f, args, says, line", CASES, ids=[case[0].__name__ for case in CASES])
def test_refused_functions_still_run_as_plain_python(f, args, says, line):
    def outcome(function):
        try:
            return function(*[mg.asarray(x) for x in args])
        except Exception as error:
            return str(error).splitlines()[0]

    plain, scripted = outcome(f), outcome(mg.script(f))
    assert type(plain) is type(scripted)
    if isinstance(plain, mg.Tensor):
        assert plain.tolist() == scripted.tolist()


def generator(x):
    while x < 3:
        yield x
        x = x + 1


async def coroutine(x):
    if x > 0:
        x = x * 2
    return x


def finished(coroutine):
    """The result of a coroutine that never waits, without an event loop: a browser may already run one."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def test_generators_and_coroutines_stay_plain():
    assert [x.item() for x in mg.script(generator)(mg.asarray(1.0))] == [1.0, 2.0]
    assert finished(mg.script(coroutine)(mg.asarray(2.0))).item() == 4.0
    with pytest.raises(mg.TraceError, match="it is in a generator"):
        mg.trace(lambda x: list(mg.script(generator)(x)), mg.asarray(1.0))
    with pytest.raises(mg.TraceError, match="it is in an `async` function"):
        mg.trace(lambda x: finished(mg.script(coroutine)(x)), mg.asarray(1.0))


# What cannot be scripted at all ---------------------------------------------------------------------------------------


def by_name(x):
    if x > 0:
        x = -x
    return locals()["x"]


def test_lambdas_are_refused():
    with pytest.raises(mg.ScriptError, match="the source of a lambda cannot be found"):
        mg.script(lambda x: x if x > 0 else -x)


def test_variable_lookup_by_name_is_refused_with_its_line():
    with pytest.raises(mg.ScriptError) as caught:
        mg.script(by_name)
    assert "locals() finds variables by name" in str(caught.value) and 'return locals()["x"]' in str(caught.value)


@pytest.mark.parametrize("what", [len, mg.nn.Linear, mg.nn.Linear(1, 1), 3])
def test_objects_that_are_not_functions_are_refused(what):
    with pytest.raises(mg.ScriptError, match="script needs a function with source"):
        mg.script(what)


def test_decorators_below_script_are_refused():
    with pytest.raises(mg.ScriptError, match="wraps another function"):
        mg.script(mg.jit(by_name))
    with pytest.raises(mg.ScriptError, match="this is a staticmethod"):
        mg.script(staticmethod(by_name))


def test_functions_without_source_are_refused():
    namespace = {}
    exec(compile("def typed(x):\n    return x if x > 0 else -x", "<typed>", "exec"), namespace)
    with pytest.raises(mg.ScriptError, match="there is no source, for example because"):
        mg.script(namespace["typed"])


def defined(text, filename):
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace = {}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"]


def test_changed_source_file_is_refused():
    f = defined("def f(x):\n    return x\n", "<changed>")
    text = "a = 1\n\n\ndef f(x):\n    return x\n"
    linecache.cache["<changed>"] = len(text), None, text.splitlines(keepends=True), "<changed>"
    with pytest.raises(mg.ScriptError, match="the definition has moved"):
        mg.script(f)
    linecache.cache["<changed>"] = 5, None, ["def f(x:\n"], "<changed>"
    with pytest.raises(mg.ScriptError, match="is no longer valid Python"):
        mg.script(f)


def test_error_without_script_suggests_it():
    with pytest.raises(mg.TraceError) as caught:
        mg.jit(lambda x: x if x > 0 else -x)(mg.asarray(1.0))
    for name in ("mg.script", "mg.where", "mg.cond"):
        assert name in str(caught.value)


def test_the_gradient_of_an_endless_loop_is_refused_at_its_line():
    def double(x):
        while x < 100:  # an endless loop
            x = x * 2
        return x

    x = mg.asarray(1.0, requires_grad=True)
    with pytest.raises(mg.GradError, match="# an endless loop"):
        mg.jit(mg.script(double))(x).backward()
    mg.script(double)(x).backward()
    assert x.grad.item() == 128.0
    assert isinstance(mg.script(double), types.FunctionType)
