"""The steps of a backward pass: what happens in them, and that they are what `backward()` does."""

import json
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.rules import rule_of
from minigrad.viz.steps import record_steps


def branching():
    w = mg.asarray([[1.0, -2.0]], requires_grad=True)
    h = mg.tanh(w)
    y = h * h + h
    return w, y.sum()


def test_the_events_in_their_order():
    _, loss = branching()
    kinds = [(s.kind, None if s.node is None else s.node.name, s.target.name) for s in record_steps(loss).steps]
    assert kinds == [
        ("seed", None, "sum"), ("pass", "sum", "add"), ("pass", "add", "multiply"), ("pass", "add", "tanh"),
        ("pass", "multiply", "tanh"), ("sum", "multiply", "tanh"), ("pass", "multiply", "tanh"),
        ("sum", "multiply", "tanh"), ("pass", "tanh", "leaf"),
    ]  # fmt: skip


def test_the_last_total_of_a_leaf_is_its_gradient():
    w, loss = branching()
    steps = record_steps(loss).steps
    loss.backward()
    np.testing.assert_allclose(steps[-1].total.few, w.grad.numpy().reshape(-1))


def test_sums_say_what_was_there_what_came_and_what_it_makes():
    _, loss = branching()
    for step in record_steps(loss).steps:
        if step.kind == "sum":
            np.testing.assert_allclose(step.total.few, np.add(step.before.few, step.value.few), rtol=1e-6)


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


def test_what_has_no_history_or_is_no_number():
    with pytest.raises(mg.GradError, match="step: this tensor has no history"):
        mg.viz.step(mg.ones(1))
    x = mg.ones(3, requires_grad=True)
    with pytest.raises(mg.GradError, match="step: a gradient is of one number"):
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


def test_values_that_are_gone_are_said_to_be_gone():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = (x + 1).sum()
    with mg.no_grad():
        x += 1
    recording = record_steps(y)
    assert recording.values == {} and "was changed since" in recording.missing
    assert mg.viz.step(y).data()["nodes"][0]["value"] == ""


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
    assert rule_of((x * 3.0).node, 0, called) == r"\bar{\mathrm{speed}} \mathrel{+}= \bar{\mathrm{speed}} \cdot 3"
    assert rule_of((x + 1).node, 0, called) == r"\bar{\mathrm{speed}} \mathrel{+}= \bar{\mathrm{speed}}"
    latex = rule_of(mg.exp(x).node, 0, lambda node: node.name)
    assert latex == r"\bar{x} \mathrel{+}= \bar{\mathrm{out}} \cdot \left(e^x\right)"


class Deep(mg.nn.Module):
    def __init__(self, depth):
        self.layers = [mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.Tanh()) for _ in range(depth)]

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.mark.parametrize("depth", [1, 3, 20])
def test_every_step_has_its_place_in_every_view(depth):
    model = Deep(depth)
    stepper = mg.viz.step(model(mg.ones((2, 3))).sum(), names=model)
    data = json.loads(json.dumps(stepper.data()))
    whole = max(data["views"], key=lambda view: len(set(view["box"].values())))
    for view in data["views"]:
        for step in data["steps"]:
            places = view["box"] if step["kind"] == "make" else view["gradient"]
            assert str(step["target"]) in places
            if step["kind"] == "pass" and view is whole:
                assert f"back {step['node']}.{step['slot']}" in view["arrows"]
        assert all(f'data-edge="{edge}"' in view["svg"] for edge in view["arrows"].values())
    assert data["forward"] == sum(step["kind"] == "make" for step in data["steps"])


def test_steps_in_words():
    _, loss = branching()
    text = mg.viz.step(loss).text()
    assert text.splitlines()[0] == "1. We start at sum: its gradient with respect to itself is 1."
    assert "h is used more than once, so what comes back is added" in text


def test_the_line_of_code_and_those_around_it():
    _, loss = branching()
    lines = [node["line"] for node in mg.viz.step(loss).data()["nodes"]]
    line = next(each for each in lines if each and "tanh" in each["text"][2])
    assert line["file"] == "test_steps.py" and line["line"] == line["first"] + 2


def test_forms_for_every_reader(tmp_path):
    _, loss = branching()
    stepper = mg.viz.step(loss)
    forms = stepper._repr_mimebundle_()
    assert forms["text/plain"] == "<backprop of 5 nodes, 9 steps>"
    without_script = re.sub(r"<script>.*</script>", "", forms["text/html"], flags=re.DOTALL)
    assert "passes back to" in without_script and 'src="data:image/svg+xml;base64,' in without_script
    assert "export" not in forms["text/html"] and forms["text/html"] == stepper._repr_mimebundle_()["text/html"]
    stepper.save(tmp_path / "steps.html")
    page = (tmp_path / "steps.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    with pytest.raises(mg.MinigradError, match=r"can't be saved as 'steps\.gif'"):
        stepper.save("steps.gif")


def test_hostile_names_stay_inside_the_data():
    w = mg.ones(2, requires_grad=True)
    page = mg.viz.step((w * 2).sum(), names={"</script><img src=x onerror=alert(1)>": w}).to_html()
    assert "</script><img" not in page and "<img src=x" not in page


def test_what_is_too_large_says_so():
    x = mg.ones(2, requires_grad=True)
    for _ in range(600):
        x = x * 1.0
    with pytest.raises(mg.MinigradError, match=r"stepping through 602 operations[\s\S]*mg\.scope"):
        mg.viz.step(x.sum())
