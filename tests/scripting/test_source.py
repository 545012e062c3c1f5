"""The rewritten function keeps its lines, names, closure and defaults, and has readable source."""

import inspect
import textwrap
import traceback

import pytest

import minigrad as mg
from minigrad.support.source import show

from .test_refused import defined

pytestmark = pytest.mark.usefixtures("numpy_kernels")
SCALE = 3


def branch(x):
    """What it does."""
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


def early(x):
    if x > 0:
        return x * 2
    for row in x:
        x = x + row
        if x > 5:
            break
    return -x


def test_the_source_of_a_branch():
    expected = '''
        def branch(x):
            """What it does."""

            def if_true():
                y = x * 2
                return y

            def if_false():
                y = -x
                return y

            y = script.cond(x.sum() > 0, if_true, if_false)
            return y
        '''
    assert mg.script(branch).source == textwrap.dedent(expected).strip()


def test_the_source_of_early_exits():
    expected = """
        def early(x):
            def if_true(x):
                return x * 2

            def if_false(x):
                looping = True

                def loop_body(row, x, looping):
                    x = x + row

                    def if_true_2():
                        looping = False
                        return looping

                    def if_false_2():
                        return looping

                    looping = script.cond(x > 5, if_true_2, if_false_2)
                    return x, looping

                x, looping = script.for_loop(x, loop_body, x, looping, as_long_as='looping')
                return -x

            return script.cond(x > 0, if_true, if_false, x)
        """
    assert mg.script(early).source == textwrap.dedent(expected).strip()


def test_generated_names_differ_from_the_users_names():
    def f(script, if_true):
        if if_true > 0:
            script = -script
        return script

    source = mg.script(f).source
    assert "script_2.cond(if_true > 0, if_true_2, if_false, script)" in source


def test_scripted_function_keeps_its_name_and_signature():
    scripted = mg.script(branch)
    assert scripted.__name__ == "branch" and scripted.__doc__ == "What it does." and scripted.__wrapped__ is branch
    assert scripted.__module__ == branch.__module__ and scripted.__qualname__ == "branch"
    assert inspect.signature(scripted) == inspect.signature(branch)


def fails(x):
    if x > 0:
        y = x.reshape((7,))  # the line
    else:
        y = x
    return y


def test_tracebacks_show_the_lines_of_the_file():
    with pytest.raises(mg.ShapeError) as caught:
        mg.script(fails)(mg.asarray(1.0))
    assert "# the line" in str(caught.value)
    frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert [frame.line for frame in frames[-2:]] == ["if x > 0:", "y = x.reshape((7,))  # the line"]


def test_nodes_know_their_lines():
    graph = mg.trace(mg.script(branch), mg.ones(3))
    lines = [show(node.where) for node in graph.nodes]
    assert any("if x.sum() > 0:" in line for line in lines) and not any("dispatch.py" in line for line in lines)


def make(step):
    count = 0

    def advance(x):
        nonlocal count
        count += 1
        if x > 0:
            return x + step + count
        return x * SCALE

    def change(value):
        nonlocal step
        step = value

    return mg.script(advance), change


def test_closures_and_globals_stay_live(monkeypatch):
    advance, change = make(10)
    assert advance(mg.asarray(1.0)).item() == 12
    change(20)
    assert advance(mg.asarray(1.0)).item() == 23
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert advance(mg.asarray(-1.0)).item() == -5


def test_a_changed_global_is_a_reason_to_trace_again(monkeypatch):
    def f(x):
        if x > 0:
            x = x * SCALE
        return x

    jitted = mg.jit(mg.script(f))
    assert jitted(mg.asarray(2.0)).item() == 6
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert jitted(mg.asarray(2.0)).item() == 10
    assert "SCALE was 3 and is 5" in jitted.traces[1]


class Base:
    def shift(self, x):
        return x + 1


class Model(Base):
    def __init__(self):
        self.__limit = mg.asarray(2.0)

    @mg.jit
    @mg.script
    def shift(self, x, *, scale=2):
        if x > self.__limit:
            return super().shift(x) * scale
        return x

    @staticmethod
    @mg.script
    def half(x):
        return x / 2 if x > 0 else x

    @classmethod
    @mg.script
    def named(cls, x):
        if x > 0:
            x = cls().shift(x)
        return x

    def plain(self, x):
        return x if x > self.__limit else -x


def test_methods():
    model = Model()
    assert model.shift(mg.asarray(4.0)).item() == 10 and model.shift(mg.asarray(1.0), scale=5).item() == 1
    assert Model.half(mg.asarray(4.0)).item() == 2 and Model.named(mg.asarray(4.0)).item() == 10
    bound = mg.script(model.plain)
    assert bound(mg.asarray(1.0)).item() == -1 and bound.__self__ is model


class Gate(mg.nn.Module):
    def __init__(self):
        self.layer = mg.nn.Linear(2, 2)

    @mg.script
    def forward(self, x):
        y = self.layer(x)
        for _ in range(3):
            if y.sum() > 1:
                return y
            y = y + 1
        return y * 2


def test_a_module_with_a_gate_trains_under_jit_as_without():
    model, x = Gate(), mg.ones((1, 2))

    def loss(x):
        return (model.forward(x) ** 2).sum()

    gradients = []
    for function in (loss, mg.jit(loss)):
        for parameter in model.parameters():
            parameter.grad = None
        function(x).backward()
        gradients.append([p.grad.tolist() for p in model.parameters()])
    assert gradients[0] == gradients[1]


@mg.script
def factorial(n):
    if isinstance(n, int):
        return 1 if n < 2 else n * factorial(n - 1)
    return n * factorial(3)


def test_recursion():
    assert factorial(5) == 120 and mg.jit(factorial)(mg.asarray(2.0)).item() == 12


def test_notebook_cells():
    f = defined("def f(x):\n    if x > 0:\n        return x\n    return -x\n", "<ipython-input-1-abc>")
    assert mg.jit(mg.script(f))(mg.asarray(-2.0)).item() == 2


def test_defaults_are_those_of_the_definition():
    def f(x, rate=SCALE, *, more=(1, 2)):
        return x * rate + more[1] if x > 0 else x

    scripted = mg.script(f)
    f.__defaults__ = (100,)
    assert scripted(mg.asarray(1.0)).item() == 5 and scripted(mg.asarray(1.0), 1, more=[0, 0]).item() == 1


def test_functions_without_branches_are_not_rewritten():
    def f(x, mode=None, names=("a",)):
        if mode is None and len(names) > 0:
            for name in ("a", "b"):
                if name in names:
                    continue
                x = x + 1
            return x
        while True:
            x = x + 1
            if x.ndim == 0:
                break
        return x

    assert mg.script(f).source.count("script") == 0
