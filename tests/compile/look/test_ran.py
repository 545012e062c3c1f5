"""The stages of a jitted function show the programs of the last call, with titles."""

from collections import defaultdict

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.codegen import side_modules
from minigrad.compile.running import targets
from minigrad.compile.running.program import Program
from minigrad.examples.names_gpt import GPT

pytestmark = pytest.mark.usefixtures("numpy_kernels")

FORWARD = "forward pass, keeps values for the gradient"


def titles(f, *arguments):
    return [part.title for part in f.ran(*arguments).parts]


@pytest.fixture
def programs(monkeypatch):
    """The programs that run, in order."""
    ran, call = [], Program.__call__

    def noted(program, *args):
        ran.append(program)
        return call(program, *args)

    monkeypatch.setattr(Program, "__call__", noted)
    return ran


def test_stages_show_what_a_call_would_run_before_the_first_call(programs):
    f = mg.jit(lambda x: mg.tanh(x).sum())
    x, w = mg.ones(3), mg.ones(3, requires_grad=True)
    assert titles(f, x) == [""] and "keeps" not in str(f.program(x))
    assert f(x).item() and titles(f, x) == [""]
    g = mg.jit(lambda x: mg.tanh(x).sum())
    assert titles(g, w) == [FORWARD] and g.program(w).gradient is None
    assert str(g.program(w)).startswith(f"{FORWARD}:\n")
    shown = g.ran(w).programs
    g(w)
    assert programs[1:] == shown and len(g.traces) == 1
    with mg.no_grad():
        h = mg.jit(lambda x: mg.tanh(x).sum())
        assert titles(h, w) == [""]


def test_stages_show_the_last_call():
    f = mg.jit(lambda x: mg.tanh(x).sum())
    x = mg.ones(3, requires_grad=True)
    f(x).backward()
    assert titles(f, x) == titles(f, mg.ones(3)) == [FORWARD, "gradient"]
    with mg.no_grad():
        f(x)
        assert titles(f, x) == [""]
    assert titles(f, x) == [""] and len(f.graph(x)) == 2
    f(x)
    assert titles(f, x) == [FORWARD, "gradient"]
    f.graph(mg.ones(4))
    assert titles(f, mg.ones(4)) == [""], "of other arguments nothing has run"


def test_hooks_of_other_tensors_change_nothing():
    f, w = mg.jit(lambda x: mg.tanh(x).sum()), mg.ones(2, requires_grad=True)
    f(mg.ones(3, requires_grad=True)).backward()
    remove = w.register_hook(lambda g: g)
    assert titles(f, mg.ones(3)) == [FORWARD, "gradient"]
    remove()


def test_stages_contain_and_print_the_stage_of_the_gradient():
    f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    x = mg.ones((4, 4))
    mg.grad(f)(x)
    for stage in (f.program, f.passes, f.kernels, f.code, f.cost):
        shown = stage(x)
        assert (shown.title, shown.gradient.title, shown.gradient.gradient) == (FORWARD, "gradient", None)
        assert str(shown) == f"{FORWARD}:\n{shown.listing()}\n\ngradient:\n{shown.gradient.listing()}"
    program = f.program(x)
    assert isinstance(program, Program) and isinstance(program.gradient, Program)
    assert program.gradient.partition.graph is f.kernels(x).gradient.graph
    assert f.passes(x).gradient.first.inputs[:2] == program.gradient.graph.inputs[:2]
    html = f.cost(x)._repr_html_()
    assert html.count("<table") == 4 and f"<p>{FORWARD}</p>" in html and "<p>gradient</p>" in html


@pytest.mark.parametrize("backend", ["llvm", "wasm", "numpy"])
def test_the_text_of_kernels_is_in_the_language_of_their_backend(backend, monkeypatch):
    first = {"llvm": "define void @kernel(ptr %.table)", "wasm": "(module\n", "numpy": "void kernel(const float *"}
    f, x = mg.jit(lambda x, y: (mg.tanh(x), mg.exp(y), mg.tanh(x + y[0]))), mg.ones(4)
    f.program(x, mg.ones(3))
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    monkeypatch.setattr(side_modules, "_load", lambda functions: None)
    monkeypatch.setattr(side_modules, "_loaded", defaultdict(lambda: None))
    monkeypatch.setattr(targets, "IN_BROWSER", backend == "wasm")
    code = f.code(x, mg.ones(3))
    assert len(code.kernels) == len({*code.kernels.values()}) and next(iter(code.kernels)) == "kernel_0"
    assert all(first[backend] in text for text in code.kernels.values())
    assert code.listing().startswith("kernel_0:\n") and str(code) == code.listing()


def test_the_graph_and_its_values_are_of_all_that_ran():
    f = mg.jit(lambda x: (x * x * x).sum())
    x = mg.asarray([1.0, 2.0])
    forward = list(f.values(x).named())
    mg.grad(f)(x)
    graph, values = f.graph(x), f.values(x)
    assert str(graph).startswith("forward pass, then gradient:\n") and len(graph.outputs) == 2
    assert forward == [name for name in values.named() if name in forward], "the names stay"
    assert values[graph.outputs[1]].tolist() == [3, 12] and values["cotangent_1"].item() == 1
    assert f.ran(x).arrays(f.ran(x).parts[1])[0].tolist() == [1, 2]
    for part in f.ran(x).parts:
        results = part.program(f.ran(x).arrays(part))
        np.testing.assert_allclose(results[0], values[part.function.outputs[0]._data.node].numpy())


def test_a_gradient_of_a_gradient_is_shown_too():
    f = mg.jit(lambda x: (x * x * x).sum())
    second = mg.grad(lambda x: mg.grad(f)(x).sum())(mg.asarray([1.0, 2.0]))
    x = mg.asarray([1.0, 2.0])
    assert titles(f, x) == [FORWARD, "gradient", "gradient of the gradient"]
    assert f.program(x).gradient.gradient.title == "gradient of the gradient"
    assert second.tolist() == [6, 12] and len(f.traces) == 1
    assert str(f.graph(x)).startswith("forward pass, then gradient, then gradient of the gradient:")
    values = f.values(x)
    assert [values[output].tolist() for output in f.graph(x).outputs[2:]] == [[6, 12], 15]


def test_a_stage_says_when_the_next_call_is_traced_again():
    scale = mg.ones(2, requires_grad=True)

    class State:
        training = True

    state = State()
    f = mg.jit(lambda x: (x * scale).sum() if state.training else x.sum())
    x = mg.ones(2)
    f(x)
    state.training = False
    assert "next one is traced again: " in f.graph(x).title and "multiply" in str(f.graph(x))
    assert f.program(x).title.startswith(f"{FORWARD}, as of the last call; the next one is traced again: ")
    f(x)
    assert f.graph(x).title == "" and "multiply" not in str(f.graph(x))


def test_values_that_are_gone_are_not_made_up():
    w = mg.ones(2, requires_grad=True)
    f = mg.jit(lambda x: (x * w.grad).sum())
    w.grad = mg.ones(2)
    assert f(mg.ones(2)).item() == 2 and f.values(mg.ones(2))["sum_1"].item() == 2
    w.grad = None
    with pytest.raises(mg.Gone, match=r"reads a \.grad that is None now"):
        f.values(mg.ones(2))


def test_stages_of_methods():
    class Model:
        def __init__(self):
            self.w = mg.ones(2, requires_grad=True)

        @mg.jit
        def loss(self, x):
            return (x * self.w).sum()

    model = Model()
    model.loss(mg.ones(2)).backward()
    assert model.loss.program(mg.ones(2)).gradient.title == "gradient"
    assert titles(model.loss, mg.ones(2)) == [FORWARD, "gradient"]


def mlp():
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.GELU(), nn.Dropout(0.2), nn.Linear(4, 3))
    return model, lambda x: mg.cross_entropy(model(x), mg.asarray([0, 1])), mg.ones((2, 3, 3))


def cnn():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3))
    return model, lambda x: mg.cross_entropy(model(x), mg.asarray([0, 1])), mg.ones((2, 1, 6, 6))


def gpt():
    model = GPT(5, 8, heads=2, layers=1, dropout=0.1)
    return model, model.loss, mg.asarray([[*range(5), *range(5), 0, 1, 2]] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("made", [mlp, cnn, gpt])
def test_a_training_step_is_shown_as_one_program_or_as_two(made, programs):
    model, loss_of, x = made()
    optimizer = mg.optim.Adam(model.parameters(), lr=0.1)

    @mg.jit
    def inside(x):
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        optimizer.step()
        return loss

    inside(x)
    assert programs == inside.ran(x).programs and len(inside.traces) == 1, "also where it will be traced again"
    inside(x)
    assert programs[1:] == inside.ran(x).programs and titles(inside, x) == [""]
    programs.clear()
    forward = mg.jit(loss_of)
    for _ in range(2):
        programs.clear()
        optimizer.zero_grad()
        forward(x).backward()
        optimizer.step()
    assert programs == forward.ran(x).programs and titles(forward, x) == [FORWARD, "gradient"]
    listed = {name for each in programs for name in str(each).split()}
    assert listed <= {*str(forward.program(x)).split()} and len(forward.traces) == 1
    outputs = len(forward.ran(x).parts[1].function.outputs)
    assert outputs == len(list(model.parameters())), "a gradient for each parameter"
    values = forward.values(x)
    for part in forward.ran(x).parts:
        assert all(values[output._data.node].shape == output.shape for output in part.function.outputs)
