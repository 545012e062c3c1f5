"""The values of nodes, on demand, of jitted functions, traced graphs, and graph mode."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look import values as look_values
from minigrad.compile.running.program import Program

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def fixed(*values):
    return mg.asarray([float(v) for v in values])


def test_values_of_all_nodes_of_a_jitted_function(capsys):
    w = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    @mg.jit
    def f(x):
        h = x @ w
        mg.print("h", h)
        return mg.tanh(h).sum(), h

    x = mg.asarray([[0.5, 0.25]])
    values = f.values(x)
    assert capsys.readouterr().out == "", "nothing is done but looked at"
    h = x.numpy() @ w.detach().numpy()
    np.testing.assert_allclose(values["matmul_1"].numpy(), h)
    np.testing.assert_allclose(values["tanh_1"].numpy(), np.tanh(h), rtol=1e-6)
    assert [node.name for node in values] == ["tensor", "tensor", "matmul", "tanh", "sum"], "but for the effect"
    assert len(values) == 5 and values[f.graph(x).outputs[0]].item() == pytest.approx(np.tanh(h).sum())
    assert {n.name for n, v in values.items() if v.shape == (1, 2)} == {"tensor", "matmul", "tanh"}
    assert "tanh_1: Tensor([[" in str(values)
    with pytest.raises(KeyError, match="not a node of this graph, which has tensor_1, tensor_2"):
        values["exp_1"]
    assert "exp_1" not in values and "tanh_1" in values


def test_values_are_of_these_arguments_and_can_be_kept():
    f = mg.jit(lambda x: (x * 2).sum())
    first, second = f.values(fixed(1)), f.values(fixed(2))
    kept = second["multiply_1"]
    assert (first["multiply_1"].item(), kept.item()) == (2, 4)
    kept[...] = 7
    assert second["multiply_1"].item() == 4 and len(f.traces) == 1


def test_values_of_a_method():
    class Model:
        @mg.jit
        def __call__(self, x):
            return mg.exp(x)

    model = Model()
    assert type(model).__call__.__get__(model).values(mg.zeros(1))["exp_1"].tolist() == [1]


def test_random_numbers_are_those_of_the_next_run():
    f = mg.jit(lambda: mg.random.uniform((3,)) + 1)
    mg.random.seed(3)
    seen = f.values()["add_1"].tolist()
    assert seen == f().tolist() != f().tolist()
    assert mg.trace(lambda: mg.random.uniform((2,))).values()["random_1"].shape == (2,)


def test_a_traced_graph_takes_other_inputs():
    graph = mg.trace(lambda x, y: mg.exp(x - y), fixed(1), fixed(1))
    assert graph.values()["exp_1"].tolist() == [1]
    assert graph.values(fixed(3), np.float32([2]))["subtract_1"].tolist() == [1]
    with pytest.raises(mg.ConversionError, match="the graph has 2 inputs, and 1 are given"):
        graph.values(fixed(1))
    with pytest.raises(mg.ShapeError, match=r"an input of the graph is float32 \(1,\)"):
        graph.values(fixed(1, 2), fixed(1))


def test_values_of_the_optimised_graph():
    f = mg.jit(lambda x: x * 1 + mg.asarray([1.0]) * 2)
    optimised = f.program(fixed(1)).optimised
    assert optimised.values()[optimised.outputs[0]].tolist() == [3]


def test_intermediate_values_in_graph_mode():
    x = mg.ones(3, requires_grad=True)
    with mg.graph() as g:
        y = mg.exp(x * 2).sum()
        recorded = g.recorded(y)
        assert recorded.values()["multiply_1"].tolist() == [2, 2, 2]
        inner = (y * 2).item()
    values = recorded.values()
    assert values["exp_1"].tolist() == pytest.approx([np.exp(2)] * 3) and inner == pytest.approx(y.item() * 2)


def test_values_that_were_overwritten_are_errors():
    w = fixed(1, 2)
    graph = mg.trace(lambda: w * 2)
    values = graph.values()
    w += 1
    for ask in (lambda: values["multiply_1"], lambda: values["tensor_1"], lambda: graph.values()):
        with pytest.raises(mg.Gone, match=r"changed since.*w \+= 1"):
            ask()
    with mg.graph() as g:
        y = w * 2
        w += 1
        recorded = g.recorded(y)
    with pytest.raises(mg.Gone, match="changed since"):
        recorded.values()


def test_values_are_computed_again_when_memory_is_short(monkeypatch):
    monkeypatch.setattr(look_values, "KEPT", 100)
    values = mg.trace(lambda x: (mg.exp(x) + 1).sum(), mg.zeros(20)).values()
    for _ in range(2):
        assert values["sum_1"].item() == 40 and values["exp_1"].tolist() == [1] * 20
        assert values["add_1"].tolist() == [2] * 20


def test_an_error_names_the_line():
    graph = mg.trace(lambda x, i: x[i] * 2, mg.ones(3), mg.asarray([1]))
    with pytest.raises(mg.IndexingError) as error:
        graph.values(mg.ones(3), mg.asarray([5]))["gather_1"]
    assert any("made at" in note and "x[i] * 2" in note for note in error.value.__notes__)


def backward_outside(f):
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    f(x).backward()
    return x


def gradient_of_it(f):
    x = mg.asarray([1.0, 2.0])
    mg.grad(f)(x)
    return x


@pytest.mark.parametrize("run", [backward_outside, gradient_of_it])
def test_the_stages_show_what_ran_last_for_such_arguments(run, monkeypatch):
    ran, call = [], Program.__call__

    def noted(program, *args):
        ran.append(program)
        return call(program, *args)

    monkeypatch.setattr(Program, "__call__", noted)
    f = mg.jit(lambda x: mg.tanh(x * 2).sum())
    x = run(f)
    assert len(ran) == 2, "forwards, leaving what the gradient reads, and backwards"
    computed = {node.name for program in ran for node in program.graph.nodes if node.op is not None}
    assert "subtract" in computed, "the derivative of tanh is 1 - tanh²"
    assert computed <= {node.name for node in f.graph(x).nodes}
    steps = sum(str(program).count("kernel_") for program in ran)
    assert str(f.program(x)).count("kernel_") == steps
    assert len(f.traces) == 1, "looking at it traces nothing anew"
