"""Pictures of functions with control flow: both branches of a cond, and the body of a loop, behind one box each."""

import re

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.nodes.graph import Graph
from tests.training import training_step
from tests.viz.browser import needs_browser, opened
from tests.viz.ten_programs import TEN, numbers


@pytest.fixture(autouse=True)
def whole_pictures(monkeypatch):
    """Larger pictures with everything open than a page has."""
    monkeypatch.setattr("minigrad.viz.opening.WHOLE", 1_000)


def everything(picture):
    """The scene with all scopes open."""
    return picture.parts[-1].scene


def titles(picture, *scope):
    """The boxes directly in a scope."""
    return [box.title for box in everything(picture).boxes if box.scope == scope]


def arrows(picture):
    scene = everything(picture)
    return {(scene.boxes[a].title, scene.boxes[b].title) for a, b, _ in scene.edges}


def choice(x):
    y = mg.cond(x.sum() > 0, lambda x: x * x, lambda x: -mg.exp(x), x)
    return y + 1


def test_a_cond_shows_both_branches_and_what_decides():
    picture = mg.viz.graph(choice, numbers(3))
    assert titles(picture, "cond", "if true") == ["x · x"]
    assert titles(picture, "cond", "if false") == ["exp(x)", "−exp(x)"]
    (chosen,) = titles(picture, "cond")
    assert chosen.startswith("y = cond(x.sum() > 0")
    assert {a for a, b in arrows(picture) if b == chosen} == {"x.sum() > 0", "x · x", "−exp(x)"}


def test_a_scan_shows_its_body_once_and_an_arrow_back_to_the_carry():
    def f(x):
        last, each = mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), mg.zeros(2), x)
        return last.sum() + each.sum()

    picture = mg.viz.graph(f, mg.ones((5, 2)))
    carry, each, last = "c = carry(zeros(2))", "v = each(x)", "last = last(tanh(c + v))"
    rest = ["c + v", "tanh(c + v)", "c · 2", last, "each = stack(c · 2)"]
    assert titles(picture, "scan, 5 rounds") == [carry, each, *rest]
    made = {("zeros(2)", carry), ("x", each), ("tanh(c + v)", carry), ("tanh(c + v)", last)}
    assert made <= arrows(picture)


def test_a_while_loop_shows_its_condition_beside_its_body():
    picture = mg.viz.graph(lambda x: mg.while_loop(lambda c: c.sum() < 50, lambda c: c * c, x, max_steps=9), numbers(3))
    assert titles(picture, "while_loop, at most 9 rounds", "condition") == ["c.sum()", "c.sum() < 50"]
    assert titles(picture, "while_loop, at most 9 rounds", "body") == ["c · c"]
    assert ("c.sum() < 50", "while_loop(…, x)") in arrows(picture)


def test_a_fori_loop_has_its_own_name_and_swapped_carries_arrows_to_each_other():
    picture = mg.viz.graph(lambda x: mg.fori_loop(0, 4, lambda i, ab: (ab[1], ab[0] * 2), (x, x * 3)), numbers(3))
    inside = titles(picture, "fori_loop, 4 rounds")
    assert sum("carry(" in title and title[-1] == ")" and "last(" not in title for title in inside) == 3
    scene = everything(picture)
    pairs = [(scene.boxes[a], scene.boxes[b]) for a, b, _ in scene.edges if "carry(" in scene.boxes[b].title]
    assert any("carry(" in a.title for a, _ in pairs)


def test_control_flow_within_control_flow_nests_its_boxes():
    @mg.jit
    def layer(v):
        return mg.tanh(v) * 2

    def f(x):
        def body(c, v):
            return mg.cond(v > 0, lambda: (layer(c), c), lambda: (c + v, mg.fori_loop(0, 3, lambda i, t: t * 0.5, c)))

        return mg.scan(body, x.sum(), x)

    picture = mg.viz.graph(f, numbers(3))
    assert titles(picture, "scan, 3 rounds", "cond", "if true") == ["tanh(v)", "tanh(v) · 2"]
    assert "t · 0.5" in titles(picture, "scan, 3 rounds", "cond", "if false", "fori_loop, 3 rounds")
    assert len(titles(picture, "scan, 3 rounds", "cond")) == 2  # one for each result


def test_two_loops_are_two_boxes_and_a_loop_of_a_layer_lies_in_the_layer():
    picture = mg.viz.graph(lambda x: mg.fori_loop(0, 2, lambda i, c: mg.sin(c), choice(choice(x))), numbers(3))
    assert titles(picture, "cond 2", "if true") == ["… · …"], "x is the name of another value"
    lstm = nn.LSTM(5, 8)
    picture = mg.viz.graph(lambda x: lstm(x)[0], mg.ones((7, 3, 5)))
    inside = titles(picture, "LSTM", "recurrent_layer", "scan, 7 rounds")
    assert sum(title.startswith("tanh(") for title in inside) == 2


def test_in_a_training_step_loops_lie_in_their_phase():
    layer, head = nn.LSTM(5, 4), nn.Linear(4, 2)
    optimizer = mg.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    step = training_step(lambda x: (choice(head(layer(x)[0])) ** 2).sum(), optimizer)
    scene = everything(mg.viz.graph(step, mg.ones((6, 3, 5))))
    scopes = {box.scope for box in scene.boxes}
    assert ("forward", "LSTM", "recurrent_layer", "scan, 6 rounds") in scopes
    assert {box.scope for box in scene.boxes if box.name.endswith("h_l0")} == {("forward", "LSTM")}
    assert ("backward", "∂LSTM", "the gradient of scan, 6 rounds") in scopes
    for phase in ("forward", "backward"):
        assert {scope for scope in scopes if scope[:2] == (phase, "cond")} >= {
            (phase, "cond", "if true"), (phase, "cond", "if false"),
        }
    assert not any(scope[0] == "forward" and "the gradient of scan, 6 rounds" in scope for scope in scopes)


def test_a_loop_that_is_closed_and_opened_is_the_box_of_a_module():
    picture = mg.viz.graph(choice, numbers(3), budget=3)
    (number,) = [i for i, box in enumerate(picture.scene.boxes) if box.title == "cond"]
    door = picture.parts[picture.parts[0].doors[number]]
    titles = {box.title for box in door.scene.boxes}
    assert titles >= {"if true", "if false", "y = cond(x.sum() > 0, if true, if false)"}


def test_graphs_and_recorded_results_open_too_and_graphs_without_control_flow_stay_the_same():
    graph = mg.trace(choice, numbers(3))
    assert ("cond", "if false") in {box.scope for box in everything(mg.viz.graph(graph)).boxes}
    passed = mg.jit(choice).program(numbers(3)).optimised
    assert ("cond", "if false") in {box.scope for box in everything(mg.viz.graph(passed)).boxes}
    plain = mg.trace(lambda x: mg.tanh(x) * 2, numbers(3))
    assert [box.nodes[0] for box in mg.viz.graph(plain).scene.boxes] == [*plain.inputs, *plain.nodes]
    result = mg.jit(choice)(numbers(3))
    for options in ({}, {"values": True}, {"backward": True}, {"backward": True, "values": True}):
        scene = everything(mg.viz.graph(result.sum(), **options))
        assert {box.scope[:2] for box in scene.boxes if box.scope} == {
            ("choice", "x.sum() > 0 was true"), ("choice",)}


def test_arrows_back_to_a_carry_do_not_change_the_order_of_boxes():
    picture = mg.viz.graph(lambda x: mg.fori_loop(0, 4, lambda i, ab: (ab[1], ab[0] + i), (x, x * 2)), numbers(3))
    scene = everything(picture)
    order = [box.title for box in scene.boxes if box.scope]
    last = order.index(next(title for title in order if title.startswith("last(")))
    carries = [i for i, title in enumerate(order[:last]) if re.fullmatch(r"(.* = )?carry\([^()]*\)", title)]
    assert len(carries) == 3 and max(carries) < order.index("ab[0] + i") < last
    back = [(a, b) for a, b, slot in scene.edges if a > b]
    assert all("carry(" in scene.boxes[b].title for _, b in back) and back


def test_names_of_results_are_those_of_their_operation():
    graph = mg.trace(choice, numbers(3))
    assert isinstance(graph, Graph) and "cond_1[0]" in graph.names().values()
    f, *args = TEN["branches_and_loops"]()
    for view in (mg.viz.fusion, mg.viz.memory, mg.viz.timeline):
        made = view(f, *args)
        assert "project" not in str(made.data()) + made.text()


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_cond_opens_in_the_browser(dark):
    picture = mg.viz.graph(choice, numbers(3), budget=3)
    with opened(picture.to_html(), dark=dark) as page:
        page.locator('.mg-box:has(> text:text-is("cond"))').locator(".mg-door").click()
        for branch, inside in (("if true", "x · x"), ("if false", "exp(x)")):
            page.locator(f'.mg-box:has(> text:text-is("{branch}"))').locator(".mg-door").click()
            assert page.locator(f'.mg-box:has(> text:text-is("{inside}"))').count() == 1
            assert page.locator(".mg-path button").all_inner_texts() == ["all", "cond", branch]
            page.keyboard.press("u")


def test_gradients_beside_a_loop_are_named_after_the_values_that_they_are_of():
    """A graph with a loop is written out as new nodes, whose origins are new too."""

    def f(x, w):
        def loss(w):
            h = mg.tanh(x @ w)
            h = mg.fori_loop(0, 3, lambda i, h: h * 0.5, h)
            return (h * mg.exp(h)).sum()

        return w - 0.1 * mg.grad(loss)(w)

    words = str(mg.viz.graph(f, mg.ones((2, 4)), mg.ones((4, 4))).data())
    assert "∂(x" in words and not re.findall("∂(?:matmul|exp|scan|multiply)", words)


def test_the_gradients_of_a_function_go_through_jitted_functions_in_it():
    """Two results share the operations of one call."""
    inner = mg.jit(lambda x: mg.tanh(x) * 2)

    def f(x):
        a = inner(x)
        return a.sum(), (a * a).sum()

    picture = mg.viz.graph(f, mg.ones(3, requires_grad=True), backward=True)
    names = [line.partition(":")[0] for line in picture.text().splitlines()]
    assert names[:6] == ["x", "tanh(x)", "a = tanh(x) · 2", "a.sum()", "a · a", "(a · a).sum()"]
    assert "call" not in picture.text()
