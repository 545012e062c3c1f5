"""Phases and layers of programs."""

from collections import Counter
from itertools import groupby

import pytest

import minigrad as mg
from minigrad.viz import memories
from minigrad.viz.compiled import FunctionCall, eagerly, programs_of
from minigrad.viz.naming import call_of
from minigrad.viz.phases import BACKWARD, FORWARD, PHASES, UPDATE, layers_of, paths_of
from minigrad.viz.scene import excerpt
from minigrad.viz.titles import Titles
from minigrad.viz.written import Written
from tests.training import training_step


class Net(mg.nn.Module):
    def __init__(self):
        self.up, self.down = mg.nn.Linear(3, 4), mg.nn.Linear(4, 2)

    def forward(self, x):
        return self.down(mg.relu(self.up(x)))


def graph_of_a_step():
    net = Net()
    step = training_step(lambda x: mg.sum(net(x) ** 2), mg.optim.Adam(net.parameters(), lr=0.1))
    return mg.jit(step).program(mg.ones((5, 3)))


def test_every_node_of_a_training_step_has_its_phase():
    program = graph_of_a_step()
    for graph in (program.graph, program.optimised):
        paths = paths_of(graph.nodes)
        assert set(paths) == set(graph.nodes)
        phases = Counter(phase for phase, _ in paths.values())
        assert set(phases) == {FORWARD, BACKWARD, UPDATE}
        assert all(paths[node][0] == BACKWARD for node in graph.nodes if node.origin is not None and node.scope == ())
        assert all(paths[node][0] == FORWARD for node in graph.nodes if node.scope and node.origin is None)
        modules = {(phase, path[:2]) for phase, path in paths.values()}
        assert {(phase, ("Net", name)) for phase in phases for name in ("up", "down")} <= modules


def test_a_model_that_is_called_after_an_update_has_another_forward_pass():
    """The two steps of a GAN: the second loss reads the new weights of the first update."""
    made, judge = mg.nn.Linear(2, 3), mg.nn.Sequential(mg.nn.Linear(3, 1), mg.nn.Tanh())
    first, second = (mg.optim.Adam(net.parameters(), lr=0.1) for net in (judge, made))

    def step(z):
        fake = made(z)
        loss = mg.softplus(judge(fake.detach())).mean()
        first.zero_grad()
        loss.backward()
        first.step()
        other = mg.softplus(-judge(fake)).mean()
        second.zero_grad()
        other.backward()
        second.step()
        return loss, other

    graph = mg.jit(step).program(mg.ones((4, 2))).graph
    paths = paths_of(graph.nodes)
    plain = [node for node in graph.nodes if node.origin is None]
    assert {paths[node][0] for node in plain if node.scope or node.composite} == {FORWARD}
    assert {paths[node][0] for node in plain if call_of(node) == "step"} == {UPDATE}


def test_a_single_phase_is_not_named():
    with mg.no_grad():
        paths = paths_of(mg.trace(Net(), mg.ones((5, 3))).nodes)
    assert {(phase, path[:1]) for phase, path in paths.values()} == {("", ("Net",))}


def test_a_gradient_of_several_contributions_is_in_the_backward_pass_and_no_update():
    def f(x, w):
        return mg.value_and_grad(lambda w: (mg.tanh(x * w) + x * w).sum())(w)

    graph = mg.trace(f, mg.ones((2, 3)), mg.ones(3))
    assert {phase for phase, _ in paths_of(graph.nodes).values()} == {FORWARD, BACKWARD}


def test_a_module_that_has_most_of_a_model_is_opened():
    paths = [("GPT", "blocks", str(i), part) for i in range(2) for part in "abc"] + [("GPT", "head"), ("GPT", "norm")]
    layers = set(layers_of(paths).values())
    assert layers == {("GPT", "blocks", "0"), ("GPT", "blocks", "1"), ("GPT", "head"), ("GPT", "norm")}


def test_what_has_most_of_a_model_is_opened_and_layers_are_not():
    paths = [("net", f"block {i}", part) for i in range(4) for part in ("a", "b")] + [("net", "head")]
    assert set(layers_of(paths).values()) == {("net", f"block {i}") for i in range(4)} | {("net", "head")}
    deeper = [("net", "all", *path[1:]) for path in paths]
    assert set(layers_of(deeper).values()) == {("net", "all", path[1]) for path in paths}


def test_the_gradient_of_a_loop_or_a_choice_is_in_the_backward_pass():
    weight = mg.ones(3, requires_grad=True)

    def loss(x):
        y = mg.cond(x.sum() > 0, lambda y: y * weight, lambda y: y - weight, x)
        return mg.fori_loop(0, 4, lambda i, c: mg.tanh(c * weight), y).sum()

    graph = mg.jit(training_step(loss, mg.optim.SGD([weight], lr=0.1))).graph(mg.ones(3))
    paths = paths_of(graph.nodes)
    for name in ("cond", "scan"):
        forward, backward = [node for node in graph.nodes if node.name == name]
        assert paths[forward] == (FORWARD, ()) and paths[backward] == (BACKWARD, ())
        assert backward.origin is forward


def test_what_is_computed_after_a_gradient_is_an_update_only_if_it_replaces_an_input():
    x, v = mg.asarray([0.5, -0.5, 1.0]), mg.ones(3)

    def curvature(x):
        return mg.sum(mg.grad(lambda x: mg.sum(mg.tanh(x) * v))(x) * v)

    def descended(x):
        return x - 0.1 * mg.grad(lambda x: mg.sum(mg.tanh(x) * v))(x)

    passes = {FORWARD, BACKWARD}
    for f, last, phases in ((curvature, FORWARD, passes), (descended, UPDATE, passes | {UPDATE})):
        graph = mg.trace(f, x)
        paths = paths_of(graph.nodes)
        assert {phase for phase, _ in paths.values()} == phases and paths[graph.nodes[-1]] == (last, ())


def test_what_a_model_keeps_lies_in_its_module():
    net = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.BatchNorm1d(3))
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)

    @mg.jit
    def step(x):
        optimizer.zero_grad()
        loss = mg.mean(net(x) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    boxes = mg.viz.graph(step, mg.ones((4, 3))).scene.boxes
    assert [box.title for box in boxes if box.kind == "input"] == ["x"]
    evaluated = mg.viz.graph(net.eval(), mg.ones((4, 3))).parts
    kept = [box for part in evaluated for box in part.scene.boxes if "running" in box.title]
    assert kept and all(box.scope for box in kept)


def test_a_gradient_inside_a_program_is_one_closed_box():
    x = mg.asarray([0.5, -0.5, 1.0], requires_grad=True)
    result = mg.sum(mg.grad(lambda x: mg.sum(x**2 * mg.tanh(x)))(x) * x)
    for first in (mg.viz.graph(result).scene, mg.viz.step(result).parts[0].scene):
        assert [box.title for box in first.boxes if box.kind == "group"] == ["grad(…)(x)"]


def test_a_layer_without_room_stays_closed_and_a_model_of_parts_opens():
    lstm, head = mg.nn.LSTM(3, 8, batch_first=True), mg.nn.Linear(8, 1)
    out, _ = lstm(mg.ones((4, 10, 3)))
    first = mg.viz.step(mg.mean((head(out[:, -1]) - 1.0) ** 2)).parts[0].scene
    assert "LSTM" in [box.title for box in first.boxes] and len(first.boxes) < 10
    net = mg.nn.Sequential(*[mg.nn.Linear(3, 3) if i % 2 else mg.nn.BatchNorm1d(3) for i in range(18)])
    assert "0 BatchNorm1d" in [box.title for box in mg.viz.graph(net(mg.ones((4, 3)))).scene.boxes]


def phases_of_lines(f, *args):
    """The phases of the nodes of each line of a function's code, without those of gradient rules."""
    found = {}
    for node, (phase, _) in paths_of(mg.jit(f).program(*args).graph.nodes).items():
        if node.origin is None and node.op is not None:
            found.setdefault(excerpt(node.where, around=0)["text"][0], set()).add(phase)
    return found


def test_each_step_of_several_in_one_program_has_its_forward_pass_and_its_update():
    """The loss of the second step and the update of the first one were backward passes, and the metric an update."""
    net = Net()
    optimizer = mg.optim.Adam(net.parameters(), lr=0.1)

    def epoch(xs):
        total, right = 0.0, 0
        for i in range(3):
            logits = net(xs[i])
            loss = mg.sum(logits**2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, right = total + loss, right + (mg.argmax(logits, axis=1) == 1).sum()
        scores = net(xs[0])
        return total, right, mg.max(scores)

    found = phases_of_lines(epoch, mg.ones((3, 5, 3)))
    assert found.pop("loss.backward()") == {BACKWARD} and found.pop("optimizer.step()") == {UPDATE}
    assert set().union(*found.values()) == {FORWARD} and len(found) > 4


def test_two_models_that_learn_in_turn_have_their_phases():
    ahead, judge = Net(), mg.nn.Sequential(mg.nn.Linear(2, 1))
    one, two = (mg.optim.SGD(model.parameters(), lr=0.1) for model in (ahead, judge))

    def step(x):
        made = ahead(x)
        fooled = mg.softplus(judge(made.detach())).mean()
        fooled.backward()
        two.step()
        two.zero_grad()
        good = mg.softplus(-judge(made)).mean()
        good.backward()
        one.step()
        return fooled, good

    found = phases_of_lines(step, mg.ones((5, 3)))
    assert found["good = mg.softplus(-judge(made)).mean()"] == {FORWARD}
    assert found["two.step()"] == found["one.step()"] == {UPDATE} and found["good.backward()"] == {BACKWARD}


def test_a_loss_with_a_gradient_in_it_is_no_update():
    """It has the shape of a counter, so it was taken for a new value of one."""
    judge = mg.nn.Sequential(mg.nn.Linear(3, 1))
    optimizer = mg.optim.Adam(judge.parameters(), lr=0.1)

    def step(x):
        slopes = mg.grad(lambda x: mg.tanh(judge(x)).sum())(x)
        steep = ((slopes * slopes).sum(axis=-1) - 1).mean()
        loss = judge(x).mean() + 10 * steep
        loss.backward()
        optimizer.step()
        return loss

    found = phases_of_lines(step, mg.ones((5, 3)))
    assert found["loss = judge(x).mean() + 10 * steep"] == {FORWARD} and found["optimizer.step()"] == {UPDATE}
    assert UPDATE not in found["steep = ((slopes * slopes).sum(axis=-1) - 1).mean()"]
    graph = mg.jit(step).program(mg.ones((5, 3))).graph
    second = [home for node, home in paths_of(graph.nodes).items()
              if node.name == "matmul" and node.origin is not None and node.origin.origin is not None]
    assert second and {path for _, path in second} == {("Sequential", "0")}, "it has a module, too"


def test_what_is_computed_outside_modules_has_its_gradient_there():
    up, w = mg.nn.Linear(3, 4), mg.ones((4, 2), requires_grad=True)

    def loss(x):
        return mg.sum((up(x) @ w) ** 2)

    program = mg.jit(training_step(loss, mg.optim.SGD([w, *up.parameters()], lr=0.1))).program(mg.ones((5, 3)))
    rules = [(node.origin.scope, path) for node, (_, path) in paths_of(program.graph.nodes).items() if node.origin]
    assert {*rules} == {((), ()), (("Linear",), ("Linear",))}


def test_what_is_counted_of_the_labels_alone_is_no_update():
    net = Net()
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)

    def step(x, y):
        positive = (y > 0).sum()
        mg.sum((net(x) - y) ** 2).backward()
        optimizer.step()
        return positive

    found = phases_of_lines(step, mg.ones((5, 3)), mg.ones((5, 2)))
    assert found["positive = (y > 0).sum()"] == {FORWARD} and found["optimizer.step()"] == {UPDATE}


def energy(x):
    return (mg.tanh(x) * x * x).sum()


def descended(w):
    for _ in range(3):
        w = w - 0.1 * mg.grad(energy)(w)
    return w, energy(w)


def penalised():
    """A training step whose loss has the gradient of the model in it."""
    net = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))

    def loss(x):
        return (net(x) ** 2).mean() + 0.1 * (mg.grad(lambda x: net(x).sum())(x) ** 2).sum()

    return training_step(loss, mg.optim.SGD(net.parameters(), lr=0.1)), mg.ones((5, 4))


def trained_and_tried():
    net = Net()
    weight = mg.ones(3, requires_grad=True)

    def step(x):
        loss = (net(x * weight) ** 2).sum()
        loss.backward()
        with mg.no_grad():
            weight[...] = weight - 0.1 * weight.grad
            for each in [weight, *net.parameters()]:
                each.grad = None
            return loss, net(x).max()

    return step, mg.ones((5, 3))


X = mg.asarray([0.5, -0.5, 1.0])
GRADIENTS = {
    "a jvp of a gradient": (lambda x: (mg.jvp(mg.grad(energy), (x,), (x,))[1] ** 2).sum(), X),
    "gradients of samples": (lambda x: mg.vmap(mg.grad(energy))(x).max(), mg.ones((4, 3))),
    "a gradient of a gradient": (lambda x: mg.grad(lambda x: (mg.grad(energy)(x) ** 2).sum())(x), X),
    "the norm of a gradient": (lambda x: (mg.grad(energy)(x) ** 2).sum(), X),
    "steps in a loop": (descended, X),
    "new weights": (lambda x: x - 0.1 * mg.grad(energy)(x), X),
    "a penalty": penalised(),
    "an update in the code": trained_and_tried(),
}
ALL = set(PHASES)
WANTED = {"a jvp of a gradient": {""}, "gradients of samples": {""}, "a gradient of a gradient": {FORWARD, BACKWARD},
          "the norm of a gradient": {FORWARD, BACKWARD}}


def alone(phases):
    """Phases; a single forward pass needs no name."""
    return [""] * len(phases) if {*phases} <= {"", FORWARD} else [*phases]


@pytest.mark.parametrize(("name", "tracked"), [
    *[(name, False) for name in GRADIENTS],
    *[(name, True) for name in [*GRADIENTS][:-2]],  # a step would add to the gradient of x in each call
])
def test_fusion_timeline_and_memory_have_the_same_phases(name, tracked):
    function, x = GRADIENTS[name]
    x = mg.asarray(x.numpy_copy(), requires_grad=tracked)
    with mg.eager_programs(False):
        eager, program, *_ = mg.viz.timeline(function, x, runs=1).bands
        titles = Titles(programs_of(FunctionCall(mg.jit(function), (x,)), "memory")[0])
        held = memories._eager(eagerly(FunctionCall(function, (x,)), False), False, [titles])
        fused = memories._fused([titles])
    ran = [(bar.work.name, bar.work.section.phase) for bar in eager.bars]
    assert {phase for _, phase in ran} == WANTED.get(name, ALL)
    runs = [[phase for phase, _ in groupby(phases)]
            for phases in ([phase for _, phase in ran], alone([phase for phase, *_ in held.paths]))]
    assert runs[0] == runs[1], "eager mode in timeline and memory"
    nodes = [node for node in titles.shown.program.graph.nodes if node.op is not None and not node.is_view]
    traced = zip([node.name for node in nodes], alone([titles.places[node][0] for node in nodes]))
    assert not Counter([each for each in traced if each[0] != "put"]) - Counter(ran), "as written, and eagerly"
    plan = titles.shown.program.plan
    order = [plan.steps[number].name for turn in plan.turns for number in turn] + titles.last
    inside = dict(zip(order, [phase for phase, *_ in fused.paths]))
    shown = {band.step: band.cell.phase for band in Written(titles.shown).bands if band.kind != "elsewhere"}
    measured = {bar.work.name: bar.work.section.phase for bar in program.bars}
    steps = [step for step in shown if step in measured]  # of alike steps, the first
    found = [alone([phases[step] for step in steps]) for phases in (shown, measured, inside)]
    assert steps and found[0] == found[1] == found[2]
