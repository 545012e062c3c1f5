"""Where a node comes from: what became of each traced node, and the input that a gradient is for."""

import minigrad as mg


def became(f, *args):
    program = mg.jit(f).program(*args)
    return program, program.final.became(program.graph)


def test_merged_nodes_became_one_and_removed_ones_what_replaced_them():
    _, found = became(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1), mg.ones(4))
    names = [(old.name, new.name) for old, new in found.items() if old.op is not None]
    assert names == [
        ("multiply", "tensor"), ("tanh", "tanh"), ("multiply", "tensor"), ("tanh", "tanh"), ("add", "add"),
    ]
    assert len(set(found.values())) == 3


def test_a_graph_without_changes_became_itself():
    program, found = became(lambda x: mg.tanh(x), mg.ones(4))
    assert program.final.became(program.final) == {node: node for node in (*program.final.inputs, *program.final.nodes)}
    assert [*found.values()] == [*program.final.inputs, *program.final.nodes]


def test_a_node_in_another_layout_is_the_node_below_the_view_of_it():
    conv = mg.nn.Conv2d(16, 16, 3, padding=1)
    program, found = became(lambda x: mg.relu(mg.relu(conv(x)) * x), mg.ones((2, 16, 8, 8)))
    computed = {node for group in program.partition.groups for node in group.levels}
    made = [found[node] for node in program.graph.nodes if node.name in ("multiply", "where")]
    assert len(made) == 3 and all(node in computed or node.inputs[0] in computed for node in made)


def test_checks_of_indices_do_not_cut_the_way_back():
    program, found = became(lambda x, i: mg.tanh(x[i] * 1), mg.ones((5, 3)), mg.asarray([1, 2]))
    assert program.final.checks
    assert [old.name for old, new in found.items() if new.name == "tanh"] == ["tanh"]


def test_a_gradient_has_the_number_of_the_input_that_it_is_for():
    def f(x, w, b):
        return mg.grad(lambda x, w, b: (x @ w + b).sum(), argnums=(0, 1, 2))(x, w, b)

    graph = mg.trace(f, mg.ones((2, 3)), mg.ones((3, 4)), mg.ones(4))
    found = {(node.origin.name, node.toward) for node in graph.nodes if node.origin is not None}
    assert {("matmul", 0), ("matmul", 1), ("add", 1)} <= found
    (bias,) = [node for node in graph.nodes if node.origin is not None and node.shape == (4,) and node.name == "sum"]
    assert (bias.origin.name, bias.toward) == ("add", 1)  # the sum over the broadcast dimension too

