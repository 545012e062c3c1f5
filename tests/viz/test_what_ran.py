"""Views of jitted functions: they show the programs of the last call and of its gradient, with headings."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.record import in_turns
from minigrad.compile.running.program import Program
from minigrad.viz.compiled import FunctionCall, eager_record_of
from minigrad.viz.numbers import Summary

pytestmark = pytest.mark.usefixtures("numpy_kernels")

FORWARD = "forward pass, keeps values for the gradient"
X = mg.ones((8, 8))


@pytest.fixture
def f():
    """A jitted function; its last call computed a gradient."""
    f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    mg.grad(f)(X)
    return f


VIEWS = ["fusion", "memory"]


def test_forward_and_gradient_programs_are_shown_and_named(f):
    view = mg.viz.fusion(f, X)
    assert (view.heading, view.gradient.heading, view.gradient.gradient) == (FORWARD, "gradient", None)
    assert repr(view).startswith(f"<{FORWARD}: ") and "; gradient: " in repr(view)
    html = view._repr_mimebundle_()["text/html"]
    assert html.count("<img ") == 2 and f">{FORWARD}: " in html and ">gradient: " in html
    data = view._all_data()
    assert [title for title, _ in data["parts"]] == [FORWARD, "gradient"] and data["parts"][0][1] == view.data()
    assert FORWARD in view._words() and "\n\ngradient:\n" in view._words()
    assert len(f.traces) == 1


@pytest.mark.parametrize("name", VIEWS)
def test_program_without_a_gradient_is_shown_alone(name):
    f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    f(X)
    view = getattr(mg.viz, name)(f, X)
    assert (view.heading, view.gradient) == ("", None) and "parts" not in view._all_data()


@pytest.mark.slow
def test_views_show_the_programs_that_ran(monkeypatch):
    ran, call = [], Program.__call__

    def noted(program, *args):
        ran.append(program)
        return call(program, *args)

    f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    with monkeypatch.context() as patch:
        patch.setattr(Program, "__call__", noted)
        mg.grad(f)(X)
    view = mg.viz.fusion(f, X)
    assert [view.program, view.gradient.program] == ran
    given = mg.viz.fusion(f.program(X))
    assert (given.heading, given.gradient.heading) == (FORWARD, "gradient")
    assert mg.viz.fusion(f.program(X).gradient).heading == "gradient"
    moved = view.move("tanh_1")
    assert (moved.heading, moved.gradient) == (FORWARD, view.gradient), "where an operation was moved, too"


@pytest.mark.slow
def test_views_do_not_change_what_ran_last(f):
    for name in (*VIEWS, "timeline", "graph"):
        getattr(mg.viz, name)(f, X)
    assert [part.title for part in f.ran(X).parts] == [FORWARD, "gradient"]


@pytest.mark.slow
def test_gradient_program_runs_on_ones(f):
    gradient = mg.viz.fusion(f, X).gradient
    (result,) = [gradient.names[node] for node in gradient.program.final.outputs]
    (row,) = [row for row in gradient.data()["rows"] if row.get("name") == result]
    assert row["value"] == Summary.of(np.asarray(mg.grad(f)(X).numpy())).short()


@pytest.mark.slow
def test_a_timeline_has_the_gradient(f):
    steps = [len(program.partition.groups) for program in f.ran(X).programs]
    view = mg.viz.timeline(f, X, runs=1)
    ways = f"{steps[0]} as a program that keeps values, {steps[1]} in its gradient"
    (eager,) = [record.count.launches for record in in_turns([eager_record_of(FunctionCall(f, (X,)), True, 1)])]
    assert repr(view) == f"<timeline: {eager} launches eagerly, {ways}>" and eager > 3
    g = mg.jit(lambda x: mg.tanh(x @ x).sum())
    assert repr(mg.viz.timeline(g, X, runs=1)) == "<timeline: 3 launches eagerly, 2 as a program>"


@pytest.mark.slow
def test_a_picture_has_the_gradient(f):
    picture = mg.viz.graph(f, X)
    assert picture.heading == "forward pass, then gradient" and "\nbackward: 9 operations" in picture.text()
    assert mg.viz.graph(f.graph(X)).heading == picture.heading
    assert f.graph(X)._repr_mimebundle_()["text/html"].count("forward pass, then gradient") >= 1


@pytest.mark.slow
def test_arguments_are_named_after_a_call():
    def f(inputs, weight):
        return mg.tanh(inputs @ weight)

    f = mg.jit(f)
    f(X, X + 1)
    assert {"inputs", "weight"} <= set(mg.viz.fusion(f, X, X + 1).names.values())

    class Model:
        @mg.jit
        def __call__(self, inputs):
            return mg.tanh(inputs)

    method = Model.__call__.__get__(Model())
    method(X)
    assert "inputs" in mg.viz.fusion(method, X).names.values()


@pytest.mark.slow
def test_a_gradient_that_only_copies_has_no_kernels_to_show():
    f = mg.jit(lambda x: x.sum())
    mg.grad(f)(X)
    assert mg.viz.fusion(f, X).gradient is None and mg.viz.memory(f, X).gradient is None


def test_a_loaded_program_shows_its_steps(tmp_path):
    f = mg.jit(lambda x: mg.tanh(x @ x) * 2)
    f.save(tmp_path / "f.program", X)
    loaded = mg.load_program(tmp_path / "f.program")
    steps = [line.split()[1] for line in str(loaded).splitlines()[2:-1]]
    assert steps == ["matmul_1", "kernel_1"] == [step.name for step in loaded.cost().kernels]
    assert repr(mg.viz.timeline(loaded, X, runs=0)) == (
        "<timeline: 2 launches on 2 workers, by the model, 1.00 times as fast as one worker>")
    assert repr(mg.viz.memory(loaded, X)).startswith("<memory: fused at most ")
    assert repr(mg.viz.timeline(loaded, X, runs=1)) == "<timeline: 2 launches as a program>"
    assert repr(mg.viz.fusion(loaded, X)).startswith("<fusion")
