"""Pictures of real computations: their content, hostile names, and the same bytes each time."""

import base64
import random
import re
import xml.dom.minidom

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.folding import Outline, _title
from minigrad.viz.numbers import Summary
from minigrad.viz.opening import Part
from minigrad.viz.scene import Box, Scene, scene_of
from minigrad.viz.svg import draw, laid_out, text_width
from tests.viz.ten_programs import TEN


class Block(mg.nn.Module):
    def __init__(self, size):
        self.norm = mg.nn.LayerNorm(size)
        self.up = mg.nn.Linear(size, 2 * size)
        self.down = mg.nn.Linear(2 * size, size)

    def forward(self, x):
        return x + self.down(mg.gelu(self.up(self.norm(x))))


class Net(mg.nn.Module):
    def __init__(self, depth):
        self.layers = [Block(4) for _ in range(depth)]
        self.head = mg.nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss_of_a_line():
    w = mg.asarray([[1.0, 2.0]], requires_grad=True)
    x = mg.asarray([[3.0], [4.0]])
    h = mg.tanh(w @ x)
    return (h * h).sum()


def titles(picture):
    return [box.title for box in picture.scene.boxes]


def test_the_history_of_a_tensor():
    picture = mg.viz.graph(loss_of_a_line())
    assert titles(picture) == ["w", "x", "w @ x", "h = tanh(w @ x)", "h · h", "(h · h).sum()"]
    assert [tuple(e) for e in picture.scene.edges] == [(0, 2, 0), (1, 2, 1), (2, 3, 0), (3, 4, 0), (3, 4, 1), (4, 5, 0)]
    assert repr(picture) == "<picture of a graph of 1 parameter, 1 constant, 4 operations>"


def test_edges_between_the_same_boxes_stay_separate():
    svg = mg.viz.graph(loss_of_a_line()).to_svg()
    assert svg.count('class="mg-edge"') == 6


def test_a_function_with_the_names_of_its_arguments():
    scale = mg.asarray(2.0)

    def f(x, *, shift):
        return mg.exp(x) * scale + shift

    picture = mg.viz.graph(f, mg.ones(3), shift=mg.zeros(3))
    assert {"scale", "shift", "x"} <= set(titles(picture))
    made = [title for title in titles(picture) if title not in ("scale", "shift", "x")]
    assert made == ["exp(x)", "exp(x) · scale", "exp(x) · scale + shift"]


def test_a_model_with_the_names_of_its_parameters():
    picture = mg.viz.graph(mg.nn.Linear(2, 3), mg.ones((1, 2)))
    assert set(titles(picture)) >= {"weight", "bias", "x"}


def test_names_from_a_dictionary_or_a_model():
    w = mg.nn.Linear(1, 2).weight
    assert titles(mg.viz.graph((w * 2).sum(), names={"weights": w}))[0] == "weights"


def test_values_that_share_a_name_are_numbered():
    x = mg.ones(2, requires_grad=True)
    for _ in range(3):
        x = x * 2
    assert titles(mg.viz.graph(x)) == ["x₁", "x₂ = x₁ · 2", "x₃ = x₂ · 2", "x₄ = x₃ · 2"]


def test_gradients_stand_beside_what_they_belong_to():
    picture = mg.viz.graph(loss_of_a_line(), backward=True)
    boxes = picture.scene.boxes
    mirrored = {boxes[b.mirrors].title for b in boxes if b.mirrors is not None}
    assert mirrored == {"w", "w @ x", "h = tanh(w @ x)", "h · h", "(h · h).sum()"}  # none for the constant
    back = [(boxes[e.source].title, boxes[e.target].title) for e in picture.scene.edges if e.source >= 6]
    assert ("∂((h · h).sum())", "∂(h · h)") in back and back.count(("∂(h · h)", "∂h")) == 2


def test_a_gradient_is_level_with_its_value():
    from minigrad.viz.svg import laid_out

    scene = mg.viz.graph(loss_of_a_line(), backward=True).scene
    layout = laid_out(scene)
    for i, box in enumerate(scene.boxes):
        if box.mirrors is not None:
            a, b = layout.boxes[box.mirrors], layout.boxes[i]
            assert a.y == b.y and a.x < b.x


@pytest.mark.slow
def test_equal_layers_are_one_pile():
    picture = mg.viz.graph(Net(12), mg.ones((3, 4)))
    pile = [box for box in picture.scene.boxes if box.kind == "group"]
    assert [(b.title, b.count) for b in pile] == [("layers[0…11]", 12), ("head", 1)]
    assert len(picture.scene.boxes) <= 16


def test_modules_of_small_models_are_open():
    model = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.Tanh())
    assert not any(box.kind == "group" for box in mg.viz.graph(model, mg.ones((3, 4))).scene.boxes)


@pytest.mark.slow
def test_the_budget_decides():
    whole = mg.viz.graph(Net(3), mg.ones((3, 4)), budget=500).scene
    closed = {box.title for box in whole.boxes if box.kind == "group"}
    assert closed == {"gelu(self.up(self.norm(x)))"}  # calls are closed at first
    shut = mg.viz.graph(Net(3), mg.ones((3, 4)), budget=1).scene
    assert all(box.kind == "group" for box in shut.boxes if "Net" in box.scope)


def test_opening_one_of_a_pile_leaves_the_others_in_it(monkeypatch):
    monkeypatch.setattr("minigrad.viz.folding.PILE", 2)
    graph = mg.trace(Net(4), mg.ones((3, 4)))
    scene = Outline(scene_of([*graph.inputs, *graph.nodes])).closed({("Net",), ("Net", "layers[1]")})
    piles = {box.title: box.count for box in scene.boxes if box.kind == "group"}
    assert piles["layers[0…3]"] == 3 and "norm" in piles


def test_a_scope_in_a_closed_one_is_closed():
    graph = mg.trace(Net(5), mg.ones((3, 4)))
    outline = Outline(scene_of([*graph.inputs, *graph.nodes]))
    draw_lots = random.Random(0)
    for _ in range(60):
        opened = set(draw_lots.sample(sorted(outline.members), draw_lots.randrange(len(outline.members) + 1)))
        reached = {path for path in opened if all(path[:depth] in opened for depth in range(1, len(path)))}
        assert len(outline.closed(reached).boxes) == len(outline.closed(opened).boxes), opened


def test_a_weight_belongs_to_the_layer_that_uses_it():
    scene = mg.viz.graph(Net(1), mg.ones((3, 4)), budget=500).scene
    scopes = {box.title: box.scope for box in scene.boxes}
    assert scopes["head.weight"] == ("Net", "head")


def test_a_graph_draws_itself_in_a_notebook():
    bundle = mg.trace(lambda x: x + 1, mg.ones(3))._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    encoded = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', bundle["text/html"])[1]
    assert base64.b64decode(encoded).decode() == bundle["image/svg+xml"]
    assert "<script" not in bundle["text/html"]


def without_pattern(x, count):
    """A computation without repeats."""
    chance = random.Random(0)
    for _ in range(count):
        x = x + mg.sin(x) if chance.random() < 0.5 else x * 2.0
    return x


@pytest.mark.slow
def test_graphs_that_are_too_large_are_refused():
    with pytest.raises(mg.MinigradError, match=r"\d+ boxes would be unreadable[\s\S]*mg.scope"):
        mg.viz.graph(without_pattern(mg.ones(2, requires_grad=True), 600))
    bundle = mg.trace(lambda x: without_pattern(x, 600), mg.ones(2))._repr_mimebundle_()
    assert "would be unreadable" in bundle["text/plain"]


def test_a_loop_is_shown_once():
    x = mg.ones(2, requires_grad=True)
    for _ in range(100):
        x = mg.tanh(x * 0.5)
    picture = mg.viz.graph(x.sum())
    boxes = [(box.title, box.count) for box in picture.scene.boxes if box.kind == "group"]
    assert boxes[0] == ("for _ in range(100)", 100)
    first = picture.parts[picture.parts[0].doors[1]].scene
    seen = ["x₁", "x₁ · 0.5", "x₂ = tanh(x₁ · 0.5)", "for _ in range(100) [1…99]"]
    assert [box.title for box in first.boxes] == seen and first.boxes[-1].kind == "outside"
    rounds = mg.viz.step(x.sum()).parts  # each of which has its own numbers
    assert [box.count for box in rounds[rounds[0].doors[1]].scene.boxes if box.path] == [1] * 100


def folded_into(loss):
    return [(box.title, box.count) for box in mg.viz.graph(loss).scene.boxes if box.kind == "group"]


def test_a_first_round_that_lacks_an_operation_is_the_first_round():
    place, speed = mg.ones(2, requires_grad=True), mg.zeros(2)
    for _ in range(12):
        force = -place * place - 0.1 * speed  # at first, nothing flows through the speed
        speed = speed + 0.05 * force
        place = place + 0.05 * speed
    assert folded_into(place.sum()) == [("for _ in range(12) [0]", 1), ("for _ in range(12) [1…11]", 11)]


def test_a_module_that_is_called_in_a_loop_lies_in_its_rounds():
    field, z = mg.nn.Sequential(mg.nn.Linear(2, 4), mg.nn.Tanh(), mg.nn.Linear(4, 2)), mg.ones((3, 2))
    for _ in range(9):
        z = z + 0.1 * field(z + 0.05 * field(z))
    assert folded_into(z.sum()) == [("parameters of Sequential", 1), ("for _ in range(9)", 9)]
    twice = mg.viz.graph(field(field(mg.ones((3, 2))) * 2).sum(), budget=500).parts[-1].scene
    assert {"Sequential", "parameters of Sequential"} <= {box.scope[0] for box in twice.boxes if box.scope}


@pytest.mark.slow
def test_rounds_have_their_own_weights_and_inner_loops():
    x, weights = mg.ones((2, 2), requires_grad=True), [mg.ones((2, 2), requires_grad=True) for _ in range(30)]
    for i in range(30):
        x = x @ weights[i]
        for _ in range(3):
            x = x * 0.5
    scene = mg.viz.graph(x).scene
    (pile,) = [box for box in scene.boxes if box.kind == "group"]
    assert pile.count == 30 and sum(node.op is None for node in pile.nodes) == 30


def test_rounds_of_few_operations_are_not_folded():
    x = mg.ones(2, requires_grad=True)
    for _ in range(5):
        x = x * 2.0
    assert not any(box.kind == "group" for box in mg.viz.graph(x).scene.boxes)


@pytest.mark.slow
def test_scopes_open_and_lead_up_again():
    parts = mg.viz.graph(Net(12), mg.ones((3, 4))).parts
    first = parts[0]
    inside = parts[next(iter(first.doors.values()))]
    assert parts[inside.parent] is first and inside.title == "layers[0…11]"
    assert [box.count for box in inside.scene.boxes if box.path and "layers" in box.title] == [1] * 12
    assert parts[-1].title != "everything"  # which is too much to see
    small = mg.viz.graph(Net(3), mg.ones((3, 4))).parts
    assert small[-1].title == "everything" and not any(box.path for box in small[-1].scene.boxes)


@pytest.mark.slow
def test_values_and_gradients_stand_in_the_boxes():
    w, x = mg.asarray([[1.0, 2.0]], requires_grad=True), mg.asarray([[3.0], [4.0]])
    boxes = mg.viz.graph(mg.tanh(w @ x).sum(), values=True, backward=True).scene.boxes
    lines = {box.title: box.lines for box in boxes}
    assert lines["w"] == ("[1, 2]",) and lines["tanh(w @ x).sum()"] == ("1",)
    assert lines["∂(tanh(w @ x).sum())"] == ("1",) and len(lines["∂w"]) == 1
    with pytest.raises(mg.MinigradError, match="only recorded has no values"):
        mg.viz.graph(lambda x: x + 1, mg.ones(2), values=True)


def test_pictures_do_not_depend_on_the_folder_of_the_code():
    svg = mg.viz.graph(loss_of_a_line()).to_svg()
    assert "test_pictures" not in svg and "ipykernel" not in svg


HOSTILE = ["</script><script>alert(1)</script>", 'a"b', "<b>&amp;", "javascript:alert(1)", "{x|y}"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name):
    box = Box(name, "operation", (name,), (name,), about=(name,))
    scene = Scene((box,), ())
    document = xml.dom.minidom.parseString(draw(scene))
    assert not document.getElementsByTagName("script") and not document.getElementsByTagName("b")
    shown = [node.firstChild.data for node in document.getElementsByTagName("text")]
    assert shown == [name, name, name]
    page = mg.viz.Picture([Part(scene, "", 0, {})]).to_html()
    assert "<script>alert" not in page and "<b>&" not in page and page.count("</script>") == 2


@pytest.mark.slow
def test_pictures_have_no_ids_so_that_they_can_share_a_page():
    assert not re.search(r"\bid=|url\(#", mg.viz.graph(Net(1), mg.ones((3, 4))).to_svg())


@pytest.mark.slow
def test_the_same_graph_gives_the_same_bytes():
    assert mg.viz.graph(Net(2), mg.ones((3, 4))).to_svg() == mg.viz.graph(Net(2), mg.ones((3, 4))).to_svg()


def test_the_same_code_gives_the_same_bytes_when_it_runs_again():
    """Data that an earlier pass read already have nodes, which are older than those of the operations."""
    w, late, base = mg.ones((3, 2), requires_grad=True), mg.ones(2), mg.ones((3, 2))

    def loss():
        return (mg.scatter_add(base, mg.asarray([0, 1]), (mg.tanh(w * 2) * late)[:2])).sum()

    first, *others = [mg.viz.graph(loss()).to_html() for _ in range(3)]
    assert {first} == {*others}


def test_numbers_and_signs_in_titles():
    x = mg.ones(2, requires_grad=True)
    assert titles(mg.viz.graph((2.5 - x) * -1.0))[1:] == ["2.5 − x", "(2.5 − x) · −1.0"]


@pytest.mark.slow
def test_dot_has_the_same_boxes_and_arrows():
    picture = mg.viz.graph(Net(1), mg.ones((3, 4)))
    text = picture.to_dot()
    assert text.startswith("digraph") and text.count(" -> ") == len(picture.scene.edges)
    scopes = {b.scope[:d] for b in picture.scene.boxes for d in range(1, len(b.scope) + 1)}
    assert len({*re.findall(r"subgraph (\w+)", text)}) == len(scopes)


@pytest.mark.parametrize("ending", ["svg", "html", "dot"])
def test_pictures_are_saved_to_files(tmp_path, ending):
    picture = mg.viz.graph(loss_of_a_line())
    picture.save(tmp_path / f"g.{ending}")
    assert "w @ x" in (tmp_path / f"g.{ending}").read_text(encoding="utf-8")


def test_objects_that_cannot_be_drawn_are_refused():
    with pytest.raises(mg.MinigradError, match=r"nothing was recorded for this tensor[\s\S]*mg.record"):
        mg.viz.graph(mg.ones(2))
    with pytest.raises(mg.MinigradError, match="no graph in a int"):
        mg.viz.graph(3)
    with pytest.raises(mg.MinigradError, match="no gradient flows"):
        mg.viz.graph(lambda x: x + 1, mg.ones(2), backward=True)
    with pytest.raises(mg.MinigradError, match=r"can't be saved as 'x.bmp'[\s\S]*\.html, \.svg"):
        mg.viz.graph(loss_of_a_line()).save("x.bmp")


def test_values_in_boxes():
    x = mg.asarray([1.0, float("nan")], requires_grad=True)
    node = (x * 2).node
    values = {x.node: Summary.of(x.detach().numpy()), node: Summary.of(np.zeros((3, 3)))}
    scene = scene_of([x.node, node], values=values)
    assert scene.boxes[0].lines == ("[1, nan]  1 nan",) and scene.boxes[1].lines == ("3 × 3",)


def boxes(picture, part=-1):
    return [(box.title, box.scope) for box in picture.parts[part].scene.boxes]


def test_a_call_of_a_composed_function_is_one_box_that_opens():
    picture = mg.viz.graph(mg.softmax, mg.ones((2, 3)), axis=-1)
    assert [title for title, _ in boxes(picture, 0)] == ["x", "softmax"]
    assert ("exp(x − max(x))", (boxes(picture, 0)[1][0],)) in boxes(picture)
    assert boxes(mg.viz.graph(mg.tanh, mg.ones(3))) == [("x", ()), ("tanh(x)", ())]


def test_calls_in_calls_and_repeated_calls_have_boxes_of_their_own():
    def loss(logits, targets):
        return mg.cross_entropy(logits, targets) + mg.mean(logits) + mg.mean(logits * 2)

    picture = mg.viz.graph(loss, mg.ones((2, 3)), mg.asarray([0, 1]))
    scopes = {scope for _, scope in boxes(picture)}
    assert {("cross_entropy(logits, targets)",), ("mean(logits)",), ("mean(logits · 2)",)} <= scopes
    assert ("cross_entropy(logits, targets)", "mean") in scopes
    assert {box.kind for box in picture.parts[-1].scene.boxes if box.title in ("logits", "targets")} == {"input"}


def test_a_call_in_the_history_of_a_tensor_is_a_box_too():
    x = mg.ones((2, 3), requires_grad=True)
    assert [title for title, _ in boxes(mg.viz.graph(mg.softmax(x * 2)), 0)] == ["x", "x · 2", "softmax(x · 2)"]


def test_the_tangents_of_a_jvp_lie_in_its_box():
    slope = mg.grad(lambda x: (mg.tanh(x) * x * x).sum())
    x, v = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray([3.0, 4.0])
    titles = [title for title, _ in boxes(mg.viz.graph((mg.jvp(slope, (x,), (v,))[1] ** 2).sum()), 0)]
    assert titles == ["x", "v", "jvp(slope, (x,), (v,))", "jvp(slope, (x,), (v,))[1]²", titles[-1]]


def test_a_value_that_was_computed_before_a_jvp_lies_outside_of_its_box():
    x, v = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray([3.0, 4.0])
    slope = mg.grad(lambda x: (mg.tanh(x) * x).sum())
    before = mg.tanh(x)
    titles = [title for title, _ in boxes(mg.viz.graph((before * mg.jvp(slope, (x,), (v,))[1]).sum()), 0)]
    assert titles[:4] == ["x", "before = tanh(x)", "v", "jvp(slope, (x,), (v,))"]


def test_what_a_function_captured_has_its_name():
    def program():
        direction, slope = mg.ones(2), mg.grad(lambda x: (mg.tanh(x) * x * x).sum())
        return lambda x: (mg.jvp(slope, (x,), (direction,))[1] ** 2).sum()

    run, numbers = program(), mg.asarray([1.0, 2.0], requires_grad=True)
    titles = {title for part in mg.viz.graph(run(numbers)).parts for title in [box.title for box in part.scene.boxes]}
    assert "direction" in titles and "#2 = direction · tanh(numbers)" in titles
    assert not any(word in title for title in titles for word in ("multiply", "add")), titles


def test_the_pass_that_is_looked_at_first_is_the_forward_pass():
    f, *args = TEN["mlp"]()
    f(*args)
    picture = mg.viz.graph(f, *args)
    titles = [title for title, _ in boxes(picture, 0)]
    assert {"1 Tanh", "cross_entropy(net(x), y)", "backward", "update"} <= set(titles) and len(titles) <= 16
    layers = [box.scope[-1] for box in picture.parts[0].scene.boxes if len(box.scope) > 1]
    assert {*layers} == {"0 Linear", "2 Linear", "Sequential"}  # as `graph(loss)` calls them
    assert "full" not in titles  # the gradient of the loss, 1, belongs to the backward pass


def test_what_comes_from_outside_is_seen_at_once():
    net = mg.nn.Sequential(mg.nn.Linear(4, 3))

    def step(x):
        loss = net(x).sum()
        loss.backward()
        return loss

    picture = mg.viz.graph(step, mg.ones((2, 4)))
    assert "x" in [title for title, _ in boxes(picture, 0)]


def test_the_data_in_a_picture_is_what_the_user_gave():
    """Eager mode records nothing of the patches, which have no gradient: opened for a picture, the call has them."""
    x, net = mg.ones((4, 1, 8, 8)), mg.nn.Conv2d(1, 2, 3, bias=False)
    loss = net(x).sum()
    for view in (mg.viz.graph(loss), mg.viz.step(loss)):
        (data,) = [box for box in view.parts[0].scene.boxes if box.kind == "constant"]
        assert data.title == "x" and data.nodes[0].shape == x.shape and not data.scope
    assert mg.viz.step(loss).recording.steps[-1].target is net.weight.node
    loss.backward()
    np.testing.assert_array_equal(net.weight.grad.numpy(), np.full((2, 1, 3, 3), 144.0))


def test_the_name_of_a_frame_lies_over_the_arrows_that_come_into_it():
    x = mg.asarray([1.0, -2.0, 3.0], requires_grad=True)
    y = mg.cond(x.sum() > 0, lambda x: mg.sqrt(mg.abs(x)), lambda x: x, x)
    svg = mg.viz.graph(mg.sum(y * 3), backward=True).to_svg()
    names = [at.start() for at in re.finditer(r'<g class="mg-frame"><rect [^>]*/><text', svg)]
    assert len(names) == 2 and names[0] > svg.rindex('class="mg-edge')
    assert svg.count("x.sum() &gt; 0 was true</text></g>") == 2


@pytest.mark.parametrize(("title", "wide"), [  # in DejaVu Sans Bold of 12 pixels
    ("loss = cross_entropy(logits, labels)", 237.5), ("∂where(layer 0 ≤ 0, 0, layer 0)", 204.4),
    ("logits = matmul + 2.bias", 167.1), ("16 × 32 × 14 × 14", 122.0),
])
def test_the_title_of_a_box_stays_in_its_middle_and_beside_its_heat_map(title, wide):
    for path, cells in ((None, ""), (("f",), ""), (("f",), "/".join(["ABCDabcd"] * 4))):
        node = mg.asarray([1.0], requires_grad=True).node
        box = Box(title, "group" if path else "operation", path=path, nodes=(node,), cells=cells, shown=node)
        scene = Scene((box,), ())
        place = laid_out(scene).boxes[0]
        middle = float(re.search(r'<text x="([\d.]+)"[^>]*font-weight="600"', draw(scene))[1])
        heat = 54.0 + 6.0 if cells else 0.0  # 8 columns of 27 / 4 pixels
        assert middle == pytest.approx(place.x + (place.width + heat) / 2, abs=0.1)
        assert place.width - heat >= wide + 12 and text_width(title, 12.0, bold=True) > wide


def test_a_result_that_is_a_view_is_drawn_and_only_results_have_thick_frames():
    state = mg.zeros(2)

    def f(x):
        state[:] = state + x
        return mg.tanh(x).reshape((2, 1))

    boxes = mg.viz.graph(f, mg.ones(2)).scene.boxes
    assert [(box.title, box.lines) for box in boxes if box.result] == [("reshape(tanh(x))", ("2 × 1",))]
    assert "state + x" in [box.title for box in boxes]


def test_in_a_training_step_the_update_is_by_parameter_and_backward_mirrors_forward():
    model = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.ReLU(), mg.nn.Linear(4, 2))
    optimizer = mg.optim.Adam(model.parameters(), lr=0.1)

    @mg.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    picture = mg.viz.graph(train, mg.ones((5, 3)), mg.zeros(5, dtype=mg.int64))
    assert [box.title for box in picture.scene.boxes if box.result] == ["loss = cross_entropy(model(x), y)"]
    lines = {box.title: (*box.lines, *box.about[:1]) for box in picture.scene.boxes}
    assert lines["0 Linear"] == ("5 × 4", "2 operations, 1 view")
    assert lines["1 ReLU"][0] == "5 × 4", "not what backward reads"
    assert lines["2 Linear"][0] == "5 × 2" and lines["loss = cross_entropy(model(x), y)"][0] == "scalar"
    assert "operations" in lines["update"][0], "it has several results"
    seen = {part.title: [box.title for box in part.scene.boxes] for part in picture.parts}
    made = [title for title in seen["backward"] if title.startswith("∂")]
    assert made[0] == "∂cross_entropy" and made[-3:] == ["∂2 Linear", "∂1 ReLU", "∂0 Linear"]
    assert {"0 Linear", "2 Linear", "step"} <= {*seen["update"]} and not any("data" in each for each in seen.values())
    assert "exp_avg of 2.bias" in seen["Adam of bias"] and "step of Adam" in seen["step"]


def test_what_a_loop_of_a_layer_reads_lies_in_the_layer():
    lstm = mg.nn.LSTM(2, 3)
    x = mg.ones((4, 1, 2))
    boxes = mg.viz.graph(lambda x: lstm(x)[0].sum(), x, budget=500).parts[-1].scene.boxes
    assert {box.scope for box in boxes if box.kind == "parameter"} == {("LSTM",)}
    cells = mg.viz.step(lstm(mg.ones((12, 1, 2)))[0].sum()).parts
    piles = [(box.title, box.count) for part in cells for box in part.scene.boxes if box.count > 1]
    assert {*piles} == {("round", 12)}, "only the rounds are a loop, and the first one is like the others"


def test_a_module_of_one_operation_is_that_operation_and_opens_nothing():
    model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), mg.nn.Linear(2, 2))
    picture = mg.viz.graph(model(mg.ones((1, 2))).sum(), budget=4)
    first = picture.parts[0]
    (box,) = [box for box in first.scene.boxes if box.title == "1 Tanh"]
    assert box.kind == "operation" and box.lines == ("1 × 2",) and "tanh(Linear)" in box.about
    assert first.scene.boxes.index(box) not in first.doors and box.scope == ("Sequential",)


def test_a_closed_model_says_which_parameters_it_has():
    class Shared(mg.nn.Module):
        def __init__(self):
            self.cell = mg.nn.Linear(2, 2)

        def forward(self, x):
            return mg.tanh(self.cell(mg.tanh(self.cell(x))))

    boxes_of = {box.title: box for box in mg.viz.graph(Shared()(mg.ones((1, 2))).sum(), budget=4).parts[0].scene.boxes}
    assert boxes_of["parameters of Shared"].lines == ("2 parameters",)
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Linear(3, 1))
    found = mg.viz.graph(model(mg.ones((1, 2))).sum(), budget=2).parts
    (closed,) = {box for part in found for box in part.scene.boxes if box.title == "0 Linear" and box.kind == "group"}
    assert closed.about[2:] == ("0.weight  3 × 2", "0.bias  (3,)")


def test_the_neighbours_of_an_open_box_are_those_that_were_seen_beside_it():
    first = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.LayerNorm(3), mg.nn.Tanh())
    model = mg.nn.Sequential(first, mg.nn.Linear(3, 2))
    view = mg.viz.step(model(mg.ones((4, 2))).sum(), budget=4)
    seen = {box.title for box in view.parts[0].scene.boxes}
    beside = {part.title: [box.title for box in part.scene.boxes if box.kind == "outside"] for part in view.parts}
    assert beside["1 Linear"] == ["2 Tanh", "model(ones((4, 2))).sum()"]
    assert seen.issuperset([title for titles in beside.values() for title in titles])


def test_several_results_are_in_the_title():
    assert mg.viz.graph(lambda x: (mg.exp(x), x.sum()), mg.ones(2)).named() == "Graph of exp(x), x.sum()"


def test_the_bar_says_how_a_reader_finds_things_and_how_many_numbers_are_closed():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    picture = mg.viz.graph(model(mg.ones((1, 2))).sum(), budget=2)
    assert picture.data()["about"].endswith("2 groups (⊞ opens them) with 4 parameters, 13 numbers in all")
    x = mg.asarray(2.0, requires_grad=True)
    assert mg.viz.graph(x * 2).data()["about"] == "a graph of 1 parameter (green), 1 operation (blue)"


def test_only_what_another_phase_reads_is_pale():
    f, *args = TEN["mlp"]()
    f(*args)
    assert 'opacity="0.4"' in mg.viz.graph(f, *args).to_svg()
    with mg.scope("model"):
        a = mg.tanh(mg.ones(2, requires_grad=True))
        b = mg.exp(mg.sin(a) + 1)
    assert 'opacity="0.4"' not in mg.viz.graph(a * b * b).to_svg()


@pytest.mark.parametrize("rows", [4, 200])  # of few rows, each operation is recorded alone
def test_a_call_has_as_many_operations_however_it_was_run(rows):
    logits, y = mg.ones((rows, 3), requires_grad=True), mg.arange(rows) % 2
    picture = mg.viz.graph(mg.cross_entropy(logits * 2, y))
    (call,) = [box for box in picture.scene.boxes if box.kind == "group"]
    assert call.about[0] == "9 operations" and "arange" not in call.about[1]
    titles = {box.title for part in picture.parts for box in part.scene.boxes}
    assert "data" not in titles and ("arange()" in titles) == (rows == 200) == ("0…3" not in titles)


def test_a_loop_names_its_results_and_counts_the_operations_of_its_first_round():
    place, speed = mg.asarray([1.0, 0.0], requires_grad=True), mg.zeros(2)
    for _ in range(12):
        speed = speed - 0.1 * place - 0.2 * speed
        place = place + 0.1 * speed
    boxes_of = {box.title: box for box in mg.viz.graph((place * speed).sum(), budget=8).scene.boxes}
    first, others = boxes_of["for _ in range(12) [0]"], boxes_of["for _ in range(12) [1…11]"]
    assert first.lines == ("speed₂, place₂", "(2,)", "5 operations")
    assert others.lines == ("speed₁₃, place₁₃", "(2,)", "6 operations each")


def test_no_arrow_crosses_the_name_of_a_narrow_frame():
    x = mg.ones(4, requires_grad=True)
    picture = mg.viz.graph(mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: mg.exp(x).sum(), x))
    layout = laid_out(picture.scene)
    (frame,) = layout.frames
    name = frame.place.x + 8 + 1.3 * text_width(frame.path[-1], 10)
    assert name < min(x for route in layout.routes for x, y in route if y > frame.place.y)


def test_zeros_that_a_call_adds_to_lie_beside_it():
    x, end = mg.ones((3, 2), requires_grad=True), mg.asarray([0, 1, 1])
    picture = mg.viz.graph(mg.segment_sum(mg.tanh(x), end, 2))
    titles = [box.title for box in picture.scene.boxes]
    assert titles == ["x", "tanh(x)", "0", "end", "segment_sum(tanh(x), end, 2)"]
    rules = [rule for info in picture.data()["info"] for rule in (info["formula"], *info["rules"])]
    assert not any("data" in rule for rule in rules) and any("tanh(x)" in rule for rule in rules)


@pytest.mark.parametrize("graph_of", [
    lambda f, x: mg.viz.graph(f(x)), mg.viz.graph, lambda f, x: mg.viz.graph(mg.jit(f)(x)),
    lambda f, x: mg.viz.graph(lambda x: mg.jit(f)(x), x),
])
def test_models_of_one_class_that_are_called_one_after_the_other_are_a_box_each(graph_of):
    """They were one box with the layers of both: `0 Linear` and `0 Linear 2`."""
    encoder, decoder = [mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.Tanh()) for _ in range(2)]
    picture = graph_of(lambda x: decoder(encoder(x)).sum(), mg.ones((2, 3)))
    frames = [name for _, scope in boxes(picture) for name in scope if name.startswith("Sequential")]
    assert [*dict.fromkeys(frames)] == ["Sequential", "Sequential 2"]


def test_layers_of_one_kind_that_belong_to_no_model_are_a_box_each():
    """They were one box, because each calls itself `Linear`; and their weights, which share a name, lay outside."""
    encoder, decoder, x = mg.nn.Linear(4, 3), mg.nn.Linear(3, 5), mg.ones((2, 4))
    scene = mg.viz.graph((decoder(mg.tanh(encoder(x))) ** 2).sum()).parts[0].scene
    homes = {box.title: box.scope for box in scene.boxes}
    assert homes["weight₁"] == homes["x @ weight₁ᵀ"] == ("Linear",) and homes["weight₂"] == ("Linear 2",)


def test_the_rounds_of_a_loop_are_found_when_python_has_moved_its_instructions():
    """After some rounds, the instruction of an index is a call of its own, with other offsets."""
    x, total = mg.ones((4, 6), requires_grad=True), mg.asarray(0.0)
    for i in range(4):
        row = x[i]
        for begin in range(0, 6, 3):
            total = total + (row[begin : begin + 3] ** 2).sum() * mg.sin(row[begin])
    titles = [title for title, _ in boxes(mg.viz.graph(total), 0)]
    assert [title for title in titles if "for " in title] == [f"for i in range(4) [{i}]" for i in range(4)], titles


def test_the_rounds_of_two_loops_are_two_piles():
    layer = mg.nn.GRU(2, 3, bidirectional=True)
    picture = mg.viz.graph((layer(mg.ones((10, 1, 2)))[0] ** 2).sum())
    counts = [box.count for part in picture.parts[:-1] for box in part.scene.boxes if box.count > 1]
    assert set(counts) == {10}, counts
    assert [_title(names) for names in (["net.0 A", "net.1 A"], ["a1 [0]", "a1 [1]"])] == ["net.0…1 A", "a1"]


def test_an_update_is_that_of_the_optimizer_that_runs():
    """One that was made for the same parameters in a cell before gave the update its name: "Adam" for SGD."""
    net = mg.nn.Linear(3, 3)
    older, optimizer = mg.optim.Adam(net.parameters(), lr=0.1), mg.optim.SGD(net.parameters(), lr=0.1)
    newer = mg.optim.AdamW(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    info = mg.viz.graph(step, mg.ones((2, 3))).data()["info"]
    owners = {box["scope"].split(" / ")[-1] for box in info if " of " in box["scope"]}
    assert owners == {"SGD of weight", "SGD of bias"} and older is not newer


def test_gradients_of_a_module_that_is_called_twice_are_in_two_boxes():
    """And so are the updates of equal parameters of two models."""
    class Block(mg.nn.Module):
        def __init__(self):
            self.l = mg.nn.Linear(3, 3)

        def forward(self, x):
            return mg.tanh(self.l(x)) * x

    def scopes(first, second):
        own = first.parameters() + second.parameters() * (second is not first)
        optimizer = mg.optim.SGD(own, lr=0.1)

        def step(x):
            optimizer.zero_grad()
            second(first(x) * 2).sum().backward()
            optimizer.step()

        info = mg.viz.graph(step, mg.ones((2, 3))).data()["info"]
        return {part for box in info for part in box["scope"].split(" / ")}

    block = Block()
    assert {"Block 2", "∂Block", "∂Block 2"} <= scopes(block, block)
    assert {"∂Block 2", "SGD of l.bias", "SGD of l.bias 2"} <= scopes(Block(), Block())
    assert {"SGD of weight", "SGD of weight 2"} <= scopes(*[mg.nn.Linear(3, 3, bias=False) for _ in range(2)])
