"""The steps of a backward pass: what happens in them, and that they are what `backward()` does."""

import base64
import json
import random
import re
import tracemalloc
import zlib

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.node import topological_order
from minigrad.viz.folding import Outline
from minigrad.viz.numbers import Summary
from minigrad.viz.rules import formula_of, mathml, plain, rule_of
from minigrad.viz.scene import Scene, scene_of
from minigrad.viz.steps import record_steps
from minigrad.viz.svg import described


def branching():
    w = mg.asarray([[1.0, -2.0]], requires_grad=True)
    h = mg.tanh(w)
    y = h * h + h
    return w, y.sum()


def test_a_shape_is_not_taken_for_a_number():
    w = mg.ones(20, requires_grad=True)
    assert mg.viz.step((w * w).sum()).text().count("passes back to w: an array of shape (20,)") == 2


def test_events_are_in_order():
    _, loss = branching()
    kinds = [(s.kind, None if s.node is None else s.node.name, s.target.name) for s in record_steps(loss).steps]
    assert kinds == [
        ("seed", None, "sum"), ("pass", "sum", "add"), ("pass", "add", "multiply"), ("pass", "add", "tanh"),
        ("pass", "multiply", "tanh"), ("sum", "multiply", "tanh"), ("pass", "multiply", "tanh"),
        ("sum", "multiply", "tanh"), ("pass", "tanh", "leaf"),
    ]


def test_the_last_total_of_a_leaf_is_its_gradient():
    w, loss = branching()
    steps = record_steps(loss).steps
    loss.backward()
    np.testing.assert_allclose(steps[-1].total.few, w.grad.numpy().reshape(-1))


def test_sums_have_three_parts():
    _, loss = branching()
    for step in record_steps(loss).steps:
        if step.kind == "sum":
            np.testing.assert_allclose(step.total.few, np.add(step.before.few, step.value.few), rtol=1e-6)


@pytest.mark.slow
def test_stepping_changes_nothing():
    w, loss = branching()
    mg.viz.step(loss)
    mg.viz.step(loss)
    assert w.grad is None
    loss.backward()
    assert w.grad is not None


def test_after_backward_there_is_nothing_to_step_through():
    _, loss = branching()
    loss.backward()
    with pytest.raises(mg.GradError, match="a second time"):
        mg.viz.step(loss)


@pytest.mark.slow
def test_tensors_without_history_are_refused():
    with pytest.raises(mg.GradError, match="step: this tensor has no history"):
        mg.viz.step(mg.ones(1))
    x = mg.ones(3, requires_grad=True)
    with pytest.raises(mg.GradError, match="step: only a single number has a gradient"):
        mg.viz.step(x * 2)
    assert mg.viz.step(x * 2, mg.asarray([1.0, 0.0, 2.0])).steps[-1].total.few == (2.0, 0.0, 4.0)


def test_finite_differences_agree_with_the_rules():
    _, loss = branching()
    checks = [s.check for s in record_steps(loss).steps if s.kind == "pass"]
    assert all(check is not None and check.agrees for check in checks)


def test_finite_differences_see_a_wrong_rule(monkeypatch):
    w = mg.asarray([0.5, 1.5], requires_grad=True)
    y = mg.sin(w)
    (rule,) = y.node.plan.rules
    wrong = rule._replace(function=lambda g, x: g * 2.0)
    monkeypatch.setattr(y.node, "plan", y.node.plan._replace(rules=(wrong,)))
    (step,) = [s for s in record_steps(y.sum()).steps if s.node is y.node]
    assert not step.check.agrees


def test_deleted_values_are_reported():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = (x + 1).sum()
    with mg.no_grad():
        x += 1
    recording = record_steps(y)
    assert recording.values == {} and "was changed since" in recording.missing
    data = mg.viz.step(y).data()
    assert "value" not in data["nodes"][0] and "was changed since" in data["missing"][0]


def test_every_rule_can_be_written_down():
    x = mg.asarray([[0.3, 0.7], [0.2, 0.9]], requires_grad=True)
    made = [x @ x, mg.exp(x), x / x, x**2.0, mg.tanh(x), x.sum(), x.T, mg.where(x > 0.5, x, x), mg.concat([x, x])]
    for y in made:
        for rule in y.node.plan.rules:
            latex = rule_of(y.node, rule.index, lambda node: node.name)
            assert latex.count("{") == latex.count("}") and r"\mathrel{+}=" in latex


def test_rules_have_names_and_numbers_put_in():
    x = mg.asarray(2.0, requires_grad=True)
    called = lambda node: "speed"  # noqa: E731
    speed = r"\partial \text{speed}"
    assert rule_of((x * 3.0).node, 0, called) == rf"{speed} \mathrel{{+}}= {speed} \cdot 3"
    assert rule_of((x + 1).node, 0, called) == rf"{speed} \mathrel{{+}}= {speed}"
    latex = rule_of(mg.exp(x).node, 0, called)
    assert latex == rf"{speed} \mathrel{{+}}= {speed} \cdot e^\text{{speed}}"


@pytest.mark.slow
def test_a_formula_with_an_expression_keeps_its_parentheses():
    x = mg.ones(2, requires_grad=True)
    text = mg.viz.step(mg.sigmoid(mg.tanh(x)).sum()).text()
    assert "sigma(tanh(x)) · (1 - sigma(tanh(x)))" in text
    assert "sigma(x · 2) · (1 - sigma(x · 2))" in mg.viz.step(mg.sigmoid(x * 2).sum()).text(), "one pair of parentheses"


def test_a_value_of_another_layer_that_has_only_a_number_is_called_by_the_layer():
    net = mg.nn.Sequential(mg.nn.AvgPool2d(2), mg.nn.Flatten(), mg.nn.Linear(4, 2))
    text = mg.viz.step((net(mg.ones((1, 1, 4, 4), requires_grad=True)) ** 2).sum()).text()
    assert "passes back to 2 Linear" in text and "#2 passes back to 1 Flatten" in text and "∂(0 AvgPool2d) +=" in text


def test_a_formula_calls_a_value_of_another_layer_by_its_box():
    class Block(mg.nn.Module):
        def __init__(self):
            self.out = mg.nn.Linear(2, 2)

        def forward(self, x):
            return x + self.out(mg.tanh(x) * 2)

    class Net(mg.nn.Module):
        def __init__(self):
            self.blocks, self.head = mg.nn.Sequential(Block(), Block()), mg.nn.Linear(2, 1)

        def forward(self, x):
            h = self.blocks(x)
            return self.head(mg.tanh(self.blocks[0](x) + self.blocks[1](h))) + 1

    first, second = Net(), Net()
    x = mg.ones((3, 2), requires_grad=True)
    text = mg.viz.step(first(x).sum()).text()
    assert "+ 1 passes back to head: " in text and "passes back to 1 Block: " in text and "passes back to out: " in text
    assert "passes back to Net" not in text, "the frame of a whole model does not count"
    both = mg.viz.step((mg.nn.Linear(1, 1)(mg.tanh(first(x))) * second(x)).sum()).text()
    assert "passes back to Linear: " in both, "of several models, each is a layer"


def test_a_formula_has_no_letters_that_stand_for_nothing():
    x = mg.ones((2, 3, 4), requires_grad=True)
    made = mg.permute_dims(x, (0, 2, 1)), mg.concat([x, x]), x[0]
    formulas = [plain(formula_of(y.node, lambda node: "h")) for y in made]
    assert formulas == ["permute_dims(h)", "concat(h, h)", "h[0]"]
    assert plain(formula_of(x[0].T.node, lambda node: "h")) == "hᵀ"
    parts = x[1:, ::2], x[..., None, -1], x.sum(axis=1), mg.max(x, axis=(0, 2)), mg.min(x), mg.argmax(x, axis=1)
    formulas = [plain(formula_of(y.node, lambda node: "h")).replace("  ", " ") for y in parts]
    assert formulas == ["h[1:, ::2]", "h[…, None, −1]", "∑_axis 1 h", "max_axis 0, 2 h", "min h", "argmax_axis 1 h"]
    nodes = mg.viz.step(mg.nn.LSTM(2, 3)(mg.ones((4, 1, 2)))[0].sum()).nodes
    for formula in [plain(formula_of(node, lambda node: "h")) for node in nodes if node.op is not None]:
        assert not re.search(r"\b[a-df-z]_|f\(x\)|start|0\[i", formula), formula


def test_every_step_between_two_boxes_of_an_opened_picture_has_its_arrow():
    layers = mg.nn.Conv2d(1, 2, 3), mg.nn.ReLU(), mg.nn.MaxPool2d(2), mg.nn.Flatten(), mg.nn.Linear(8, 3)
    logits = mg.nn.Sequential(*layers)(mg.ones((2, 1, 6, 6)))
    stepper = mg.viz.step(mg.cross_entropy(logits, mg.asarray([0, 2])))
    assert len(stepper.parts) > 4
    for part, scene in zip(stepper.parts, stepper.scenes):
        inside = {node: i for i, box in enumerate(part.scene.boxes) for node in box.nodes if box.kind != "outside"}
        every = {node: i for i, box in enumerate(part.scene.boxes) for node in box.nodes}
        arrows = stepper._arrows(scene)
        for each in stepper.steps:
            ends = {each.node, each.target}
            if each.kind == "pass" and ends & inside.keys() and ends <= every.keys():
                same = every[each.node] == every[each.target]
                assert same or arrows[each.node, each.index][1] >= 0, (part.title, each)


def test_rules_of_single_numbers_show_the_calculation():
    a = mg.asarray(3.0, requires_grad=True)
    b = a * a * -2.0
    text = mg.viz.step(b).text()
    assert "by ∂(a · a) += ∂b · (-2) = 1 · (-2) = -2" in text
    assert "by ∂a += ∂(a · a) · a = (-2) · 3 = -6" in text
    larger = mg.max(mg.stack([a, a + 1]))
    json.dumps(mg.viz.step(larger).data())  # whose rule has an equals sign in it
    vector = mg.ones(2, requires_grad=True)
    assert " = " not in mg.viz.step((vector * vector).sum()).text().replace("+=", "")


def test_what_an_operation_computes_is_a_formula_with_numbers():
    a = mg.asarray(3.0, requires_grad=True)
    h = mg.asarray([1.0, 2.0], requires_grad=True)
    b = a * a + a
    numbers = {a.node: 3.0, b.node.inputs[0]: 9.0, b.node: 12.0}
    called = {a.node: "a", b.node: "b", b.node.inputs[0]: "(a · a)", h.node: "h"}.get
    assert plain(formula_of(b.node, called, numbers=numbers)) == "(a · a) + a = 9 + 3 = 12"
    assert plain(formula_of(h.reshape(1, 2).node, lambda node: called(node, "y"))) == "reshape(h)"
    assert plain(formula_of(h.reshape(1, 2).node, lambda node: "2 Linear")) == "reshape(2 Linear)"
    twice = h.reshape(1, 2).reshape(2)
    assert plain(formula_of(twice.node, lambda node: "reshape(…, 2)")) == "reshape(reshape(…, 2))"


def test_an_operator_has_room_beside_text():
    """MathML counts `mtext` as space: an operator with nothing else beside it would have no room."""
    assert "mtext" not in mathml(r"h = 36 + 6 = \text{42}")

class Deep(mg.nn.Module):
    def __init__(self, depth):
        self.layers = [mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.Tanh()) for _ in range(depth)]

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def places_of(runs):
    """Integers from runs: the first one, the step, and how many."""
    return [first + i * by for first, by, count in zip(*[iter(runs)] * 3) for i in range(count)]


@pytest.mark.parametrize("depth", [1, 3, 20])
def test_every_step_has_its_place_in_every_view(depth):
    model = Deep(depth)
    stepper = mg.viz.step(model(mg.ones((2, 3))).sum())
    data = json.loads(json.dumps(stepper.data()))
    seen = set()
    for scope in data["scopes"]:
        inside = [n for runs in scope["boxes"] for n in places_of(runs)]
        assert len(inside) == len(set(inside)) and len(scope["shown"]) == len(scope["boxes"])
        for node, slot, forward, backward in zip(*[iter(scope["arrows"])] * 4):
            picture = scope["svg"]
            assert forward < 0 or f'data-edge="{forward}"' in picture
            assert backward < 0 or f'data-note="{backward}"' in picture
            if backward >= 0:
                seen.add((node, slot))
    assert seen >= {(step["node"], step["slot"]) for step in data["steps"] if step["kind"] == "pass"}
    inside = [n for runs in data["scopes"][0]["boxes"] for n in places_of(runs)]
    assert sorted(inside) == list(range(len(data["nodes"])))


def test_a_model_opens_folded_by_module():
    model = Deep(4)
    stepper = mg.viz.step(model(mg.ones((2, 3))).sum())
    first = stepper.parts[0]
    assert [box.title for box in first.scene.boxes if box.kind == "group"] == [f"layers[{i}]" for i in range(4)]
    inside = stepper.parts[first.doors[[box.title for box in first.scene.boxes].index("layers[2]")]]
    assert "layers.2.0.weight" in [box.title for box in inside.scene.boxes]
    assert inside.parent == 0 and len(inside.scene.boxes) < 16


def test_a_call_of_the_library_is_one_box_that_opens():
    x = mg.asarray([[1.0, 2.0]], requires_grad=True)
    loss = mg.cross_entropy(x * 2, mg.asarray([1]))
    first = mg.viz.step(loss).parts[0]
    assert [box.title for box in first.scene.boxes][-2:] == ["x · 2", "loss = cross_entropy(x · 2, …)"]
    assert list(first.doors) == [len(first.scene.boxes) - 1]


@pytest.mark.slow
def test_a_view_of_a_gpt_stays_small():
    """The numbers are bounds with some room; what a notebook stores is in the note of the commit."""
    from minigrad.examples.names_gpt import GPT

    mg.random.seed(0)
    model = GPT(27, 32, heads=4, layers=4, dropout=0.1)
    stepper = mg.viz.step(model.loss(mg.zeros((8, 13), dtype=mg.int64)))
    titles = [box.title for box in stepper.parts[0].scene.boxes if box.kind == "group"]
    assert [title for title in titles if "blocks" in title] == [f"blocks[{i}]" for i in range(4)]
    assert {"letters", "places", "norm", "head"} <= set(titles) and len(stepper.parts[0].scene.boxes) <= 16
    assert len(json.dumps(stepper._repr_mimebundle_())) < 700_000


@pytest.mark.slow
def test_steps_in_words():
    _, loss = branching()
    text = mg.viz.step(loss).text()
    assert text.splitlines()[0] == "1. We start at y.sum(): its gradient with respect to itself is 1."
    assert "h is used more than once, so its contributions are added" in text


def test_the_line_of_code_and_those_around_it():
    _, loss = branching()
    data = mg.viz.step(loss).data()
    line = next(node["line"] for node in data["nodes"] if node["name"] == "h")
    assert line["file"] == "test_steps.py" and line["line"] == line["first"] + 2
    assert line["text"][2][slice(*line["span"])] == "mg.tanh(w)"


@pytest.mark.slow
def test_output_has_html_svg_and_text(tmp_path):
    _, loss = branching()
    stepper = mg.viz.step(loss)
    forms = stepper._repr_mimebundle_()
    assert forms["text/plain"] == "<backprop of 5 nodes, 9 steps>"
    assert "passes back to" in forms["text/html"] and 'src="data:image/svg+xml;base64,' in forms["text/html"]
    code = zlib.decompress(base64.b64decode(re.search(r"atob\('([^']+)'\)", forms["text/html"])[1])).decode()
    assert "<script" not in forms["text/html"] and "export" not in code and "const show = " in code
    assert forms == stepper._repr_mimebundle_()
    stepper.save(tmp_path / "steps.html")
    page = (tmp_path / "steps.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    with pytest.raises(mg.MinigradError, match=r"can't be saved as 'steps\.bmp'"):
        stepper.save("steps.bmp")


def test_hostile_names_stay_inside_the_data():
    w = mg.ones(2, requires_grad=True)
    page = mg.viz.step((w * 2).sum(), names={"</script><img src=x onerror=alert(1)>": w}).to_html()
    assert "</script><img" not in page and "<img src=x" not in page


HOSTILE = ["<img/src=x/onerror=alert(1)> a", "a}<svg/onload=alert(1)>{", "{", "\\frac", "_", "a&b", "<", "$%#"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_in_formulas_too(name):
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    data = mg.viz.step(mg.tanh(x * x).sum(), names={name: x}).data()
    formulas = [each.get("rule", "") for each in (*data["nodes"], *data["steps"])]
    assert any(formulas)
    assert not any(re.search(r"<(?!/?m)(?!/?code)|&(?!amp;|lt;|gt;|quot;|#)", formula) for formula in formulas)


@pytest.mark.slow
def test_large_backward_passes_are_refused():
    x = mg.ones(2, requires_grad=True)
    y = x
    chance = random.Random(0)
    for _ in range(600):
        y = y * 1.0 if chance.random() < 0.5 else mg.sin(y)
    with pytest.raises(mg.MinigradError, match=r"\d+ boxes would be unreadable[\s\S]*mg\.scope"):
        mg.viz.step(y.sum())


@pytest.mark.slow
def test_far_too_many_operations_are_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr("minigrad.viz.stepper.record_steps", None)
    y = mg.ones(1, requires_grad=True)
    for _ in range(25_000):
        y = y * 1.0
    with pytest.raises(mg.MinigradError, match=r"25,002 operations are too many for a picture[\s\S]*at most 20,000"):
        mg.viz.step(y.sum())
    assert [box.count for box in mg.viz.graph(y).scene.boxes] == [1, 25_000]


def test_shapes_are_put_in_where_there_are_any():
    x, y = mg.ones((2, 3), requires_grad=True), mg.ones((3, 4))
    product = (x @ y).node
    named = {x.node: "x", y.node: "y"}
    latex = rule_of(product, 0, lambda node: named.get(node, "out"))
    assert latex.startswith(r"\underset{2 \times 3}{\partial \text{x}}")
    assert r"\underset{3 \times 4}{\text{y}}^{\mathsf T}" in latex and plain(latex) == "∂x += ∂out yᵀ"


def test_a_rule_says_along_which_axes_it_sums_or_repeats():
    x, w, b = mg.ones((2, 64, 3)), mg.ones((3, 5), requires_grad=True), mg.ones((1, 5), requires_grad=True)
    product = x @ w
    y = product + b
    passed = [(product, 1), (y, 0), (y, 1), (y.sum(), 0)]
    called = {x.node: "x", w.node: "w", b.node: "b", product.node: "product", y.node: "y"}
    rules = [plain(rule_of(made.node, i, lambda node: called.get(node, "sum"))) for made, i in passed]
    sums = ["∂w += ∑_axis 0 xᵀ∂product", "∂product += ∂y", "∂b += ∑_axis 0, 1 ∂y", "∂y += broadcast(∂sum)"]
    assert rules == sums


def test_an_expression_in_a_function_has_one_pair_of_parentheses():
    x = mg.ones(2, requires_grad=True) * 2
    latex = rule_of(mg.sigmoid(x).node, 0, lambda node: "(w · 2)" if node is x.node else "p")
    assert plain(latex) == "∂(w · 2) += ∂p · (sigma(w · 2) · (1 - sigma(w · 2)))"


def test_a_long_rule_can_be_broken_at_its_products_but_not_inside_of_parentheses():
    assert mathml(r"\partial a \mathrel{+}= b\,c \cdot \left(d \cdot e\right)").count("<math") in (4, 0)
    assert mathml(r"[x_i = \max x]").count("<math") in (1, 0)


def test_every_value_of_a_rule_is_called_as_its_box_also_where_its_name_has_dots():
    w = mg.asarray([0.5, 2.0], requires_grad=True)
    chosen, mask = mg.asarray([0, 0, 1]), mg.asarray([True, False, True])
    long = mg.where(mask, mg.exp(w * 2 + 1 - w / 3 + 0.25 * w)[chosen], 0.5)
    stepper = mg.viz.step((long**2).sum())
    rules = [line.partition(" by ")[2] for line in stepper.text().splitlines()]
    rules += [plain(formula_of(node, stepper._called.of)) for node in stepper.nodes if node.op is not None]
    assert not [rule for rule in rules if re.search(r"\b(out|x|y|c|i|b|v)\b", rule)]
    assert [rule for rule in rules if rule.endswith(")[chosen]")]
    assert [rule for rule in rules if " if  mask  else " in rule]
    assert "∂(long²) += broadcast(∂((long²).sum()))" in rules
    assert [rule for rule in rules if "∂(exp(…)[chosen])" in rule]


def test_a_negative_power_is_one_exponent_in_a_line_of_text():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    assert plain(rule_of((x**-0.5).node, 0, lambda node: "x")).endswith("· ((-0.5) x^((-0.5)-1))")


def test_what_a_rule_needs():
    _, loss = branching()
    needs = {(s.node.name, s.index): [n.name for n in s.needs] for s in record_steps(loss).steps if s.kind == "pass"}
    assert needs["multiply", 0] == ["tanh"] and needs["tanh", 0] == ["tanh"] and needs["add", 0] == []


def test_matrices_give_what_any_gradient_passes_back():
    _, loss = branching()
    for step in [s for s in record_steps(loss).steps if s.kind == "pass"]:
        total = next(s for s in record_steps(loss).steps[::-1] if s.target is step.node).total
        np.testing.assert_allclose(np.array(total.few) @ step.matrix, step.value.few, rtol=1e-5)


def test_a_kink_is_not_an_error():
    x = mg.asarray([0.0, 1.0], requires_grad=True)
    (step,) = [s for s in record_steps(mg.abs(x).sum()).steps if s.kind == "pass" and s.node.name == "abs"]
    assert len(step.check.by_differences) == 2 and step.check.agrees and step.value.few == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_maxima_that_are_equal_are_a_kink_also_where_gradients_of_both_signs_come(seed):
    """The sums over all results have two sides, too; the shared gradient need not lie between these."""
    chance = np.random.default_rng(seed)
    x, g = mg.zeros((9, 4), requires_grad=True), mg.asarray(chance.standard_normal(9).astype(np.float32))
    steps = [s for s in record_steps((x.max(axis=1) * g).sum()).steps if s.kind == "pass" and s.node.name == "max"]
    assert [(len(step.check.by_differences), step.check.agrees) for step in steps] == [(2, True)]


@pytest.mark.parametrize("larger", [mg.maximum, mg.minimum])
def test_the_rule_of_a_maximum_says_what_comes_to_each_of_two_equal_numbers(larger):
    x, w = mg.asarray(2.0, requires_grad=True), mg.asarray(2.0, requires_grad=True)
    lines = [line for line in mg.viz.step(larger(x, w)).text().splitlines() if "passes back" in line]
    assert len(lines) == 2 and all(line.endswith("+ (1) / (2) [2 = 2]) = 0.5") for line in lines)


def test_a_closed_box_with_a_name_has_the_name_alone_in_sentences_and_rules():
    w = mg.asarray([[0.5, 2.0], [1.0, -1.0]], requires_grad=True)
    p = mg.softmax(w, axis=-1)
    text = mg.viz.step((mg.log(p) * p).sum()).text()
    assert "passes back to p: " in text and "+= ∂log(p) · (1) / (p)" in text and "p = softmax" not in text


def test_small_gradients_are_checked_as_strictly(monkeypatch):
    w = mg.asarray([0.5, 1.5], requires_grad=True)
    y = mg.sin(w)
    (rule,) = y.node.plan.rules
    wrong = rule._replace(function=lambda g, x: g * 2.0)
    monkeypatch.setattr(y.node, "plan", y.node.plan._replace(rules=(wrong,)))
    steps = record_steps((y * 1e-7).sum()).steps
    assert not next(s for s in steps if s.node is y.node).check.agrees


def test_several_results_pass_their_gradients_on():
    x = mg.asarray([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
    sign, size = mg.linalg.slogdet(x)
    steps = record_steps(size + sign * 0.0).steps
    reached = {step.target for step in steps}
    assert all(step.total.cells == "" for step in steps if isinstance(step.target.dtype, tuple)), "not that of one part"
    assert all(step.node in reached for step in steps if step.node is not None)


def test_values_that_were_kept_are_known_although_their_tensors_are_gone():
    weight = mg.ones((3, 2), requires_grad=True)
    loss = ((mg.ones((2, 3)) * 2.0) @ weight).sum()  # nothing holds the first input any more
    recording = record_steps(loss)
    assert not recording.missing and len(recording.values) == len(recording.nodes)


@pytest.mark.slow
def test_inputs_are_called_as_in_the_code():
    speed, wind = mg.ones(3), mg.ones(3, requires_grad=True)
    loss = mg.tanh(speed * wind).sum()
    assert [node["name"] for node in mg.viz.step(loss).data()["nodes"]][:2] == ["wind", "speed"]


def test_the_corner_of_a_large_tensor():
    assert Summary.of(np.arange(6.0).reshape(2, 3)).corner == "0 1 2\n3 4 5"
    corner = Summary.of(np.arange(700.0).reshape(10, 7, 10)).corner.splitlines()
    assert len(corner) == 5 and corner[0] == "0 1 2 …" and corner[-1] == "… … … …"
    assert Summary.of(np.float32(3.0)).corner == ""
    assert Summary.of(np.arange(4.0)).corner == "0 1 2 3" and Summary.of(np.arange(5.0)).corner == "0 1 2 …"


STRANGE = {
    "nan": ([np.nan, 1.0, 2.0, 3.0, 4.0], "1 … 4  1 nan"),
    "inf": ([np.inf, 1.0, 2.0, 3.0, -4.0], "−4 … 3  1 inf"),
    "nothing finite": ([np.nan] * 5, "nothing finite  5 nan"),
    "empty": (np.zeros((0, 3)), "no numbers"),
    "0-d": (2.5, "2.5"),
    "bool": ([True] * 6, "1 … 1"),
    "huge": ([1e300] * 5, "1e+300 … 1e+300"),
    "minus zero": ([-0.0], "[0]"),
}


@pytest.mark.parametrize("value, short", STRANGE.values(), ids=STRANGE)
def test_strange_numbers_are_shown(value, short):
    assert Summary.of(np.asarray(value)).short() == short


@pytest.mark.parametrize("value", [[np.nan, 1.0], [np.inf, 0.0], np.zeros((0, 3)), 2.5])
def test_strange_tensors_can_be_stepped_through(value):
    x = mg.asarray(value, requires_grad=True)
    stepper = mg.viz.step((x * x).sum())
    data = stepper.data()
    json.dumps(data, allow_nan=False)
    assert all(step["check"] is None or step["check"][-1] for step in data["steps"] if step["kind"] == "pass")
    assert stepper.to_svg().startswith("<svg")


@pytest.mark.slow
def test_a_large_tensor_is_neither_copied_nor_listed():
    whole = np.broadcast_to(np.float32(2.0), (2**14, 2**14))  # a gigabyte, of which four bytes are there
    assert Summary.of(whole[:2048]).short() == "2 … 2"
    x = mg.ones((1024, 1024), requires_grad=True)
    tracemalloc.start()
    recording = record_steps(mg.tanh(x).sum())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48e6 and recording.steps[-1].check is None and recording.steps[-1].matrix is None


def test_freed_graphs_are_reported():
    _, loss = branching()
    loss.backward()
    with pytest.raises(mg.GradError, match="a second time"):
        mg.viz.step(loss)
    assert "tanh" in mg.viz.graph(loss).to_svg()  # the recipes are still there


def test_a_numbered_name_with_an_index_is_one_symbol():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    formula = formula_of(mg.cumulative_sum(x).node, lambda node: "x₃")
    assert formula == r"\sum_{k \le i} \text{x₃}_k"
    rows = mg.max(mg.ones((2, 3), requires_grad=True), axis=1).node
    assert plain(rule_of(rows, 0, lambda node: "xy"[node is rows])) == (
        "∂x += ∂y · ([x_i = max_axis 1 x]) / (number of maxima)"
    )
    assert "math" in mathml(formula) or "<code>" in mathml(formula)


def test_rules_of_parts_and_of_sums_at_places_name_the_places():
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    part = x[mg.asarray([2, 0])]
    total = mg.scatter_add(x, mg.asarray([0, 1]), part)
    names = {x.node: "x", part.node: "part", total.node: "total"}
    asked = [(part.node, 0), (total.node, 0), (total.node, 1)]
    rules = [plain(rule_of(node, i, lambda node: names.get(node, "places"))) for node, i in asked]
    assert rules == ["∂x[places] += ∂part", "∂x += ∂total", "∂part += ∂total[places]"]


def test_one_of_several_results_is_a_view_and_a_closed_box_counts_what_it_shows_when_it_is_opened():
    layer, x = mg.nn.LSTM(2, 3, batch_first=True), mg.ones((2, 7, 2), requires_grad=True)
    scene = scene_of(topological_order([layer(x)[0].node]))
    count, listed = Outline(scene).pile_of((("LSTM",),)).about[:2]
    counts = [int(each.partition(" × ")[2] or 1) for each in listed.split(", ")]
    assert "split[…] × 7" in listed and sum(counts) == sum(map(int, re.findall(r"\d+", count)))
    inside = Scene(tuple([box for box in scene.boxes if box.scope]), ())
    assert count.split(", ") == described(inside).removeprefix("a graph of ").split(", ")[-2:]
    assert [box.kind for box in scene.boxes if box.nodes[0].name == "project"] == ["view"] * 7


def test_a_formula_calls_what_has_no_name_as_its_expression_does_and_else_by_its_box():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    layer = mg.jit(lambda x: mg.tanh(x * w) + x)
    a = layer(mg.ones(2))
    b = layer(a)
    text = mg.viz.step((a**2 * b).sum()).text()
    assert "a² · b passes back to b: " in text and "a² passes back to a: " in text and "∂a += ∂(a²) · a" in text
    other = mg.asarray([1.0, 2.0], requires_grad=True)
    h = mg.tanh(other)
    text = mg.viz.step((h * (lambda h: h + 1)(mg.nn.Linear(2, 2)(other))).sum()).text()
    assert "… + 1 passes back to (other @ " in text, "another value has that name"


def test_a_layer_whose_weights_the_update_reads_has_one_value():
    model, x = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), mg.nn.Linear(2, 1)), mg.ones((3, 2))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    picture = mg.viz.graph(step, x)
    formulas = [info["formula"] for info in picture.data()["info"]]
    assert not any("of 0 Linear" in formula or "of 2 Linear" in formula for formula in formulas)


def test_what_a_hook_changes_is_said_and_not_counted():
    w = mg.asarray(2.0, requires_grad=True)
    h = w * 3
    h.register_hook(lambda g: g * 10)
    text = mg.viz.step(h * h).text()
    assert "After the hooks of h, it passes back to w: 360 " in text and "by ∂w += ∂h · 3\n" in text + "\n"


def test_what_float32_rounds_is_no_wrong_rule():
    """A saturated tanh, gradients that cancel, and a copy that is a cast: no differences prove anything there."""
    a, b = mg.asarray([3.0, 8.0], requires_grad=True), mg.asarray([0.1, 7.0], requires_grad=True)
    x = mg.asarray(np.linspace(-1, 1, 24).reshape(4, 6), requires_grad=True) + a.sum()
    for result in (mg.tanh(a).sum(), ((x - x.mean(axis=0)) ** 3).mean(), mg.repeat(b, 2).sum()):
        checks = [step.check for step in record_steps(result).steps if step.check]
        assert checks and all(check.agrees for check in checks), checks
