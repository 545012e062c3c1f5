"""The nodes of a trace that launches of eager mode compute."""

import pytest

import minigrad as mg
from minigrad.compile.fusion.count import eager_count
from minigrad.compile.look.record import in_turns
from minigrad.compile.nodes.view import views_of
from minigrad.viz.compiled import FunctionCall, eager_record_of, programs_of
from minigrad.viz.counterparts import FLOW, counterparts_of
from minigrad.viz.titles import Titles
from tests.viz.ten_programs import TEN


def pairs_of(function, *args):
    """The launches of a call in eager mode, and the final nodes that they are."""
    call = FunctionCall(mg.jit(function), args)
    parts = [Titles(each) for each in programs_of(call, "timeline")]
    with mg.eager_programs():
        (record,) = in_turns([eager_record_of(call, len(parts) > 1, 1)])
    return record.sites, parts, counterparts_of(record.sites, parts)


def titled(pairs):
    sites, _, found = pairs
    return {sites[n].name: titles.titled(nodes)[1] for n, (titles, nodes) in found.items()}


@pytest.mark.parametrize("name", TEN)
def test_a_launch_has_as_many_operations_as_its_nodes(name):
    """By operation, so that a launch with the node of another one is noticed."""
    function, *args = TEN[name]()
    sites, parts, found = pairs_of(function, *args)
    views = {titles: views_of(titles.shown.program.final) for titles in parts}
    alone = 0
    for n, (titles, nodes) in found.items():
        if sites[n].run < 0 and all(node in views[titles] for node in nodes):
            (node,) = nodes
            assert sites[n].name == titles.before.get(node, node).name
            if node.name == sites[n].name:  # no pass has written it in another way
                assert sites[n].cost.flops == eager_count(node, views[titles]).flops, (name, sites[n].name)
                alone += 1
    bare = [site for site in sites if site.run < 0 and site.cost.launches and site.of < 0
            and not any(code.co_filename.endswith(FLOW) for code, _ in site.frames)]
    assert alone >= len(bare) / 3 or name == "branches_and_loops", (alone, len(bare))  # it is almost all in loops


def test_steps_of_composed_functions_are_the_nodes_that_these_recorded():
    model = mg.nn.Sequential(mg.nn.Linear(20, 30), mg.nn.Tanh(), mg.nn.Linear(30, 20))

    def step(x):
        return mg.gradients(mg.softmax(model(x)).max(), [*model.parameters()])

    found = titled(pairs_of(step, mg.random.normal((40, 20))))
    assert found["linear/matmul_1"] == "linear product" and found["linear/kernel_1"] == "linear bias"
    assert {"∂weight", "∂bias", "∂linear input"} <= {*found.values()}, found


def test_equal_layers_of_a_model_are_told_apart():
    """All are called from one line of a loop: the order is that of the trace, and back to front in the gradient."""
    layers = [mg.nn.Linear(16, 16) for _ in range(3)]

    def loss(x):
        for layer in layers:
            x = mg.tanh(layer(x))
        return mg.gradients(x.sum(), [layer.weight for layer in layers])

    sites, (titles,), found = pairs_of(loss, mg.ones((16, 16)))
    products = [node for node in titles.shown.program.graph.nodes if node.name == "matmul" and not node.origin]
    forward = [titles.before[node] for n, (_, nodes) in found.items() for node in nodes
               if sites[n].name == "linear/matmul_1" and node.name == "matmul"]
    assert forward == products and len(products) == 3
    back = [node.origin for n, (_, nodes) in found.items() for node in nodes
            if sites[n].name == "gradient of linear/matmul_1" and node.name == "matmul"]
    assert back == products[::-1]


def test_rounds_of_a_loop_of_the_library_have_no_counterpart():
    """Its body is one round in the program."""
    def run(x):
        return mg.scan(lambda h, x: (mg.tanh(h + x), None), x[0], x)[0].sum()

    sites, _, found = pairs_of(run, mg.ones((5, 3)))
    assert {sites[n].name for n in found} - {"slice"} == {"sum"}
    assert [site.name for site in sites].count("tanh") == 5


def test_a_value_that_a_pass_replaces_has_its_own_operation():
    """The product by one becomes what it multiplies: it has not the name of that."""
    def run(x):
        y = mg.tanh(x) * 1.0
        return y.sum()

    sites, _, found = pairs_of(run, mg.ones(3))
    words = {sites[n].name: titles.titled(nodes)[1] for n, (titles, nodes) in found.items()}
    assert words["tanh"] == "tanh(x)" and words["multiply"] != "tanh(x)"
