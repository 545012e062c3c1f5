"""Composed functions mark the nodes that they record, and a mark ends where its nodes are replaced."""

import gc
import inspect
import weakref

import pytest

import minigrad as mg
from minigrad.autodiff.batching import Vectorised
from minigrad.compile.nodes.graph import Graph, in_place_of, node_like, remade
from minigrad.core.emit import Eager
from minigrad.core.mode import current_mode, switch
from minigrad.core.override import overriding
from minigrad.core.primitive import P
from minigrad.ops.composite import COMPOSED, Composite, composed
from tests.composed import COMPOSED as SAMPLES
from tests.composed_nn import plain  # noqa: F401 - adds its samples


def calls_in(graph):
    """The calls that recorded the nodes of a graph, outer calls first."""
    return list(dict.fromkeys(call for node in graph.nodes if node.composite for call in node.composite.path))


def call_of(name, graph):
    (call,) = [call for call in calls_in(graph) if call.name == name]
    return call


def test_a_call_has_its_name_arguments_inputs_and_outputs():
    weight, x = mg.ones((4, 3)), mg.ones((2, 3))
    graph = mg.trace(lambda x: mg.linear(mg.tanh(x), weight) * 2, x)
    call = call_of("linear", graph)
    assert repr(call) == "<a call of linear>" and call.attributes == {"bias": None} and call.outer is None
    assert call.inputs == {"x": graph.nodes[0], "weight": graph.inputs[1]}
    assert call.outputs == (graph.nodes[-2],) and call.members() == graph.nodes[1:-1]
    assert graph.nodes[0].composite is None and graph.nodes[-1].composite is None


def test_arguments_have_the_names_of_their_parameters_however_they_are_given():
    def attributes(function):
        return calls_in(mg.trace(function, mg.ones((2, 3))))[0].attributes

    assert attributes(lambda x: mg.softmax(x)) == {"axis": -1}
    assert attributes(lambda x: mg.softmax(axis=0, x=x)) == {"axis": 0}
    assert attributes(lambda x: x.mean(0, keepdims=True)) == {"axis": 0, "keepdims": True}
    assert attributes(lambda x: mg.topk(x, k=1)) == {"k": 1, "axis": -1, "largest": True}


def test_tensors_in_containers_and_among_many_arguments_are_inputs():
    def function(x, y):
        return mg.stack([x, y], axis=1), mg.einsum("i,i->", x, y)

    graph = mg.trace(function, mg.ones(3), mg.ones(3))
    stack, einsum = call_of("stack", graph), call_of("einsum", graph)
    assert list(stack.inputs.values()) == list(einsum.inputs.values()) == list(graph.inputs)
    assert stack.attributes == {"axis": 1} and "i,i->" in einsum.attributes.values()


def test_calls_inside_of_calls_have_a_path():
    x = mg.ones((2, 3))
    graph = mg.trace(lambda x: mg.scaled_dot_product_attention(x, x, x), x)
    inner = call_of("softmax", graph)
    assert inner.outer.name == "scaled_dot_product_attention" and inner.path == (inner.outer, inner)
    assert set(inner.members()) < set(inner.outer.members())


def test_outputs_of_a_call_with_several_results():
    graph = mg.trace(lambda x: [y + 1 for y in mg.topk(x, 2)], mg.ones(5))
    assert call_of("topk", graph).outputs == tuple([node.inputs[0] for node in graph.outputs])


def test_a_jitted_function_marks_its_nodes_and_graph_mode_does_not():
    @mg.jit
    def function(x):
        return mg.softmax(x)

    assert call_of("softmax", function.graph(mg.ones(3))).members()
    with mg.graph() as g:
        y = mg.softmax(mg.ones(3)) + 1
        assert calls_in(g.recorded(y)) == []


def test_calls_are_marked_only_while_something_records():
    x = mg.ones(3, requires_grad=True)
    assert mg.softmax(x).node.composite is None
    with mg.record():
        assert mg.softmax(mg.ones(3)).node.composite is None
    assert current_mode().composite is None


def test_an_interpreter_that_changes_the_values_leaves_no_marks():
    """Under vmap the nodes have one dimension more than the call, and under autocast they have other dtypes."""
    for function in (mg.vmap(lambda row: mg.softmax(row, axis=0)), lambda x: mg.jvp(mg.softmax, (x,), (x,))):
        assert calls_in(mg.trace(function, mg.ones((2, 3)))) == []
    assert not hasattr(Vectorised, "node_of") and not hasattr(Eager, "node_of")


def test_an_error_closes_the_call():
    def function(x):
        with pytest.raises(mg.AxisError):
            mg.softmax(x, axis=3)
        return mg.tanh(x)

    assert mg.trace(function, mg.ones(3)).nodes[-1].composite is None


# Calls whose nodes are gone or changed -----------------------------------------------------------------------------


def test_a_result_that_is_an_input_has_no_members():
    graph = mg.trace(lambda x: mg.dropout(x * 1.5, training=False), mg.ones(3))
    assert calls_in(graph) == []
    call = Composite("dropout", {}, None)
    call.connect({"x": graph.nodes[0]}, [graph.nodes[0]])
    assert call.members() == ()


def test_a_call_that_uses_a_tensor_from_elsewhere_has_no_members():
    """The result of such a call depends on more than its inputs."""
    other = mg.ones(3)

    @composed
    def shifted(x):
        return mg.tanh(x) + other

    @composed
    def pushed(x, bias):
        return mg.tanh(x) + bias

    try:
        assert call_of("shifted", mg.trace(lambda x: shifted(x), mg.ones(3))).members() == ()
        assert call_of("pushed", mg.trace(lambda x: pushed(x, other), mg.ones(3))).members()
    finally:
        del COMPOSED["shifted"], COMPOSED["pushed"]


def test_a_pass_that_replaces_a_node_ends_the_call_there():
    """New nodes carry the marks of the nodes that they replace, but the recorded call refers to the old nodes."""
    graph = mg.trace(lambda x: mg.softmax(x) * 2, mg.ones(3))
    call = call_of("softmax", graph)

    def doubled(node, inputs):
        if node.op is P.exp:
            return node_like(P.sigmoid, inputs, {}, like=node)
        return remade(node, inputs)

    changed = graph.rebuilt(doubled)
    assert call_of("softmax", changed) is call
    assert not set(call.outputs) & set(changed.nodes) and call.members() == graph.nodes[:-1]
    assert in_place_of(graph.nodes[0]).composite is call


@pytest.mark.slow
def test_a_call_whose_nodes_are_gone_has_no_members():
    graph = mg.trace(mg.softmax, mg.ones(3))
    call, node = call_of("softmax", graph), weakref.ref(graph.nodes[-1])
    rest = Graph(graph.inputs, [graph.nodes[2]])
    del graph
    gc.collect()
    assert node() is None and call.outputs == (None,) and call.members() == () and rest.nodes[0].composite is call


# Functions with marks ----------------------------------------------------------------------------------------------


class Counting(Eager):
    def __init__(self):
        self.count = 0

    def manifest(self, op, inputs, attrs):
        self.count += 1
        return super().manifest(op, inputs, attrs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - COMPOSED.keys() - {op.name for op in P}))
def test_a_function_without_marks_is_one_or_two_operations(name):
    for sample in SAMPLES[name]:
        counting = Counting()
        tensors = [mg.asarray(array) for array in sample.arrays]
        with switch(interpreter=counting):
            sample.call(mg, *tensors)
        assert counting.count <= 3, f"{name} is made of {counting.count} operations: declare it with @composed"


@pytest.mark.slow
def test_the_declared_functions_are_the_public_ones():
    for name, function in COMPOSED.items():
        drawing = getattr(getattr(mg.random, name, None), "__func__", None)
        homes = [getattr(home, name, None) for home in (mg, mg.linalg)]
        layer = getattr(mg.nn.recurrent, name, None)  # a part of a layer, which ONNX has as one operator
        assert function in (*homes, drawing, layer)
        assert inspect.unwrap(function).__name__ == name


def test_a_composed_function_can_be_overridden_under_an_interpreter():
    x = mg.ones(2)
    with overriding(mg.silu, lambda x: x * 7):
        assert mg.silu(x).tolist() == pytest.approx([0.731, 0.731], abs=1e-3)  # plain eager mode looks for nothing
        with switch(interpreter=Eager()):
            assert mg.silu(x).tolist() == [7.0, 7.0]
            assert mg.nn.SiLU()(x).tolist() == [7.0, 7.0]
        assert [node.name for node in mg.trace(mg.silu, x).nodes] == ["multiply"]
    with switch(interpreter=Eager()):
        assert mg.silu(x).tolist() == pytest.approx([0.731, 0.731], abs=1e-3)
