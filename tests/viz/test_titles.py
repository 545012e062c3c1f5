"""What kernels compute, in words."""

from functools import cache

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.examples.names_gpt import GPT
from minigrad.viz.compiled import FunctionCall, programs_of
from minigrad.viz.models import BUFFER, COUNTER, DATA, PARAMETER, STATE
from minigrad.viz.titles import SEVERAL, Titles
from tests.training import training_step


def shown_of(f, *args):
    return programs_of(FunctionCall(f if hasattr(f, "ran") else mg.jit(f), args), "fusion")[0]


def names_of_steps(shown):
    titles = Titles(shown)
    return {step: titles.of(step) for step in titles.computed}


def names(f, *args):
    return [*names_of_steps(shown_of(f, *args)).values()]


@cache
def step_of_a_gpt():
    model = GPT(5, width=8, heads=2, layers=2, dropout=0.0)
    step = training_step(model.loss, mg.optim.AdamW(model.parameters()))
    return shown_of(step, mg.asarray([[1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3]]))


def test_kernels_have_the_names_of_composed_functions_and_modules():
    found = [*names_of_steps(step_of_a_gpt()).values()]
    for name in ("softmax", "linear1 product", "norm1", "∂linear1.weight", "∂linear1 input", "step of AdamW"):
        assert any(name in each for each in found), (name, found)
    assert not any("scaled_dot" in each or each.startswith("kernel_") for each in found)


@pytest.mark.parametrize("shape", [(4, 3, 3, 3), (8, 4, 3, 3)])  # the products of the second one are library calls
def test_the_gradient_of_a_padded_input_is_called_by_the_function_that_pads(shape):
    x, weight = mg.ones((2, shape[1], 8, 8), requires_grad=True), mg.ones(shape, requires_grad=True)

    @mg.jit
    def gradient(x, weight):
        return mg.gradients(mg.sum(mg.conv2d(mg.tanh(x), weight, padding=1) ** 2), x)

    assert "∂conv2d input" in names_of_steps(shown_of(gradient, x, weight)).values()


def test_a_product_in_attention_has_the_names_of_its_operands():
    found = [*names_of_steps(step_of_a_gpt()).values()]
    assert "q · k" in found and "softmax · v" in found
    assert {"∂self_attn q", "∂self_attn k", "∂self_attn v"} <= set(found)


def test_an_update_has_the_name_of_its_optimizer_and_parameters():
    net = nn.Sequential(nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3))
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    found = names_of_steps(shown := shown_of(step, mg.ones((4, 40))))
    sections = Titles(shown).sections
    updates = {sections[name].layer for name, title in found.items() if title.startswith("SGD of")}
    assert {"0 Linear", "2 Linear"} <= updates


def test_code_without_modules_has_the_names_that_it_gives():
    def f(x):
        a = 2 * x
        return a * a + a

    assert names(f, mg.ones(3)) == ["a · a + a"]
    assert names(lambda x: mg.tanh(mg.softmax(x)), mg.ones((3, 3))) == ["softmax, tanh(softmax(x))"]


def test_what_cond_computes_has_the_name_that_it_is_given():
    def f(x):
        y = mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: mg.exp(x).sum(), x)
        return y * 1.5

    assert "y" in names(f, mg.ones(4))
    assert "cond" in names(lambda x: mg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + x.sum(), x), mg.ones(4))


def test_a_kernel_of_many_values_names_the_first_ones_and_its_result():
    def f(x):
        return mg.sum(mg.tanh(x) * mg.exp(x) + mg.sin(x) * mg.cos(x) + mg.sqrt(x))

    (title,) = names(f, mg.ones(4))
    assert " … sum(…)" in title or title.endswith("sum(…)"), title


def test_a_gradient_is_named_after_the_function_that_it_goes_through():
    def f(x):
        return mg.grad(lambda x: mg.softmax(mg.tanh(x) * x).max().sum())(x)

    assert any(title.startswith("∂") and "softmax" in title for title in names(f, mg.ones((4, 4))))


def test_every_input_has_a_role():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    step = training_step(lambda x: net(x).sum(), mg.optim.Adam(net.parameters()))
    roles = shown_of(step, mg.ones((5, 3))).roles.values()
    kinds = {role.kind for role in roles}
    assert kinds == {DATA, PARAMETER, BUFFER, STATE, COUNTER}
    assert {role.name for role in roles if role.kind == BUFFER} >= {"1.running_mean", "1.running_var"}
    assert {role.owner for role in roles if role.kind in (PARAMETER, STATE, COUNTER)} == {"Adam"}
    assert "exp_avg of 0.weight" in {role.name for role in roles}


def test_a_parameter_is_not_recognised_by_its_name():
    net = nn.Linear(3, 4)
    weight = mg.ones((3, 4))
    roles = shown_of(lambda x: net(x) + x @ weight, mg.ones((2, 3))).roles.values()
    found = sorted([(role.name, role.kind) for role in roles])
    assert found == [("bias", PARAMETER), ("weight", DATA), ("weight", PARAMETER), ("x", DATA)]


def test_many_layers_of_one_sequential_are_many_layers():
    net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(18)])
    shown = shown_of(training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1)), mg.ones((2, 4)))
    assert {section.layer for section in Titles(shown).sections.values()} >= {f"{i} Linear" for i in range(18)}


def test_phases_do_not_depend_on_what_the_passes_merged():
    """The gradient of a gather and the loss compare the same indices: after the passes it is one node."""
    titles = Titles(step_of_a_gpt())
    loss = [step for step in titles.computed if "cross entropy" in titles.of(step) and "∂" not in titles.of(step)]
    assert loss and all(titles.section(step)[0] == "forward" for step in loss)


def test_a_kernel_of_the_update_that_stores_no_parameter_is_named_after_the_one_it_is_for():
    """The decay of a convolution's weight is a kernel of its own: its sum with the gradient has another layout."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8192, 2))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    step = training_step(lambda x, y: mg.cross_entropy(model(x), y), optimizer)
    view = mg.viz.fusion(step, mg.ones((4, 3, 32, 32)), mg.asarray([0, 1, 0, 1]))
    update = [(band.cell.layer, band.title) for band in view.written.bands if band.cell.phase == "update"]
    assert not [title for _, title in update if "step" in title]
    assert ("0 Conv2d", "SGD of weight: multiply") in update


a, b = mg.ones((3, 2)), mg.ones(3)  # variables that the caller of a view sees, and an inner function reads


def test_captured_arrays_of_inner_functions_and_the_state_of_optimizers_have_names():
    v = mg.ones(2)

    def loss(w):
        return (b * mg.sigmoid(a @ w)).mean()

    def product(w, v):
        return mg.jvp(mg.grad(loss), (w,), (v,))[1]

    shown = shown_of(product, mg.ones(2), v)
    assert {*shown.names.values()} == {"w", "v", "a", "b"}
    assert {"a @ w", "a @ v"} < {*names(product, mg.ones(2), v)}

    def closed():
        c = mg.ones((3, 2))

        def inner(w):
            return (c @ w).sum()

        return lambda w: mg.grad(inner)(w)

    assert {*shown_of(closed(), mg.ones(2)).names.values()} == {"w", "c"}

    model = nn.Sequential(nn.Linear(2, 2))
    step = training_step(lambda x: model(x).sum(), mg.optim.Adam(model.parameters()))
    known = {*shown_of(step, mg.ones((3, 2))).names.values()}
    assert {"step of Adam", "exp_avg of 0.weight", "exp_avg_sq of 0.bias"} <= known


def test_a_kernel_of_the_update_of_several_modules_is_in_none_of_them():
    shown = step_of_a_gpt()
    titles = Titles(shown)
    several = 0
    for step, nodes in titles.computed.items():
        blocks = {path for node in nodes if titles.home[node] == step and (path := titles.places[node][1])}
        phase, path = titles.section(step)
        if phase == "update":
            assert (path == SEVERAL) == (len(blocks) > 1), (titles.of(step), blocks)
            several += path == SEVERAL
    assert several


def test_a_kernel_of_as_many_forward_as_backward_operations_is_of_the_forward_pass():
    net = mg.nn.Sequential(mg.nn.Linear(4, 4), mg.nn.Tanh(), mg.nn.Linear(4, 2))
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    titles = Titles(*programs_of(FunctionCall(step, (mg.ones((3, 4)),)), "fusion"))
    (made,) = [step for step, nodes in titles.computed.items() if any(node.name == "tanh" for node in nodes)]
    assert (titles.of(made), titles.sections[made].phase) == ("linear bias, tanh + backward", "forward")


def test_a_kernel_of_an_optimizer_for_several_parameters_names_them():
    net = mg.nn.Sequential(mg.nn.Linear(4, 4), mg.nn.Tanh(), mg.nn.Linear(4, 4))
    step = training_step(lambda x: net(x).sum(), mg.optim.AdamW(net.parameters(), lr=0.1))
    titles = Titles(*programs_of(FunctionCall(step, (mg.ones((3, 4)),)), "fusion"))
    named = {titles.of(step) for step in titles.computed}
    assert "step" not in named and "AdamW of 0.weight, 2.weight: multiply, subtract" in named


def test_operations_have_the_names_that_the_code_gives_them():
    """A pass computes a sum with the negative as a difference, and a mean by a product: titles had these names."""
    net = nn.Linear(4, 4)

    def loss(x):
        h = net(x)
        return -h.mean() + 0.5 * (h * h).sum(axis=-1).mean()

    titles = Titles(shown_of(loss, mg.ones((3, 4))))
    assert any(node.name == "subtract" for nodes in titles.computed.values() for node in nodes)
    found = [titles.of(step) for step in titles.computed]
    assert not any("subtract" in title for title in found)
    assert "mean: divide, −h.mean(…) + 0.5 · mean(…)" in found, found


def test_a_kernel_says_all_that_it_computes_and_only_that():
    """The square before a mean was "multiply", and the sum of gradients had the name of the function."""
    def loss(nodes, start, end):
        return (mg.segment_sum(mg.tanh(nodes)[start], end, 3) ** 2).mean()

    found = names(loss, mg.ones((3, 2)), mg.asarray([0, 1]), mg.asarray([2, 2]))
    assert {"segment_sum(…)², mean: sum", "mean: divide"} <= {*found}
    f, x = mg.jit(lambda x: mg.tanh(x @ x).sum()), mg.ones((3, 3), requires_grad=True)
    f(x).backward()
    _, gradient = programs_of(FunctionCall(f, (x,)), "fusion")
    titles = Titles(gradient)
    assert {section.phase for section in titles.sections.values()} == {"backward"}
    assert not any("f(x)" in titles.of(step) for step in titles.computed)
