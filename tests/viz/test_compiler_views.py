"""The views of the compiler: their plain data, texts, pictures and errors."""

import json
import re
import xml.dom.minidom
from itertools import groupby

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.cost import Cost, eager_memory
from minigrad.compile.running.plain import PlainProgram
from minigrad.support.table import bytes_text
from minigrad.viz import compiled, memories
from minigrad.viz.charts import Chart
from minigrad.viz.compiled import FunctionCall, programs_of
from minigrad.viz.kept import tape_of
from minigrad.viz.listings import source_of
from minigrad.viz.memories import lives_of
from minigrad.viz.titles import Titles
from tests.viz.ten_programs import TEN

TANH = "tanh, softmax, multiply"
FORWARD = "forward pass, keeps values for the gradient"
X, W, B = mg.ones((64, 32)), mg.ones((32, 32)), mg.ones(32)


def f(x, w, b):
    return mg.softmax(mg.tanh(x @ w + b * 1.0)) * 2


class Net(mg.nn.Module):
    def __init__(self):
        self.up, self.down = mg.nn.Linear(8, 16), mg.nn.Linear(16, 4)

    def forward(self, x):
        return self.down(mg.relu(self.up(x)))


def training_step():
    net = Net()
    rate = mg.asarray(0.1)

    def step(x):
        for parameter in net.parameters():
            parameter.grad = None
        loss = mg.sum(net(x) ** 2)
        loss.backward()
        with mg.no_grad():
            for parameter in net.parameters():
                parameter -= rate * parameter.grad
        return loss

    return step, mg.ones((32, 8))


# fusion ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_stages_match_the_log_of_the_passes():
    data = mg.viz.fusion(f, X, W, B).data()
    assert [step["name"] for step in data["steps"]] == ["as traced", "simplify"]
    traced, simplified = data["steps"]
    ((rule, old, new),) = simplified["fired"]
    assert rule == "x * 1 -> x" and traced["operations"] == simplified["operations"] + 1
    assert data["rows"][old]["texts"] == [[0, "32", "multiply", "b", "1"], [1]] and data["rows"][new]["name"] == "b"


@pytest.mark.slow
def test_figures_match_the_cost_model():
    data, cost = mg.viz.fusion(f, X, W, B).data(), mg.jit(f).cost(X, W, B)
    assert [text.split()[0] for text in data["taken"]] == [str(c.launches) for c in (cost.eager, cost.program)]
    assert [kernel["name"] for kernel in data["kernels"]] == [kernel.name for kernel in cost.kernels]


@pytest.mark.slow
def test_data_is_plain_and_deterministic():
    first, second = [mg.viz.fusion(f, X, W, B) for _ in range(2)]
    assert json.dumps(first.data()) == json.dumps(second.data())
    assert first.to_svg() == second.to_svg() and first.text() == second.text()
    assert not re.search(r"0x[0-9a-f]{6}", json.dumps(first.data()))


def test_source_lines_are_linked_to_nodes():
    program = mg.jit(f).program(X, W, B)
    names = program.partition.graph.names()
    for lowered in program.lowered.values():
        lines = source_of(lowered, names)
        computed = {*lowered.group.levels, *lowered.group.partials}
        for text, nodes in lines:
            if re.search(r"\bv\d+ = ", text):
                assert nodes and nodes[0] in computed, text
        assert computed == {node for _, nodes in lines for node in nodes} & computed


@pytest.mark.slow
def test_boundaries_have_reasons():
    known = re.compile(
        "is a library call|complete only when|at other positions|at positions from memory|"
        "ready only later|loop of|have kernels of their own|"
        "rows of different length|computed again by each|placed elsewhere|nodes already|results of the program|of yours"
    )
    for name in TEN:
        function, *args = TEN[name]()
        for view in mg.viz.fusion(function, *args)._parts():
            for each in view.written.boundaries:
                assert known.search(each.why) and each.maker != each.step, each


@pytest.mark.slow
def test_operations_can_be_moved_from_python():
    view = mg.viz.fusion(f, X, W, B)
    apart = view.move("add_1")
    assert apart.cost.program.launches == 3
    assert apart.cost.program.bytes - view.cost.program.bytes == 2 * 64 * 32 * 4
    inside = next(name for name in ("kernel_1", "kernel_2") if "tanh_1" in _computes(apart, name))
    assert apart.move("add_1", inside).cost.program == view.cost.program
    assert "add_1 → tanh_1" in apart.text()


def _computes(view, name):
    return [node.name for kernel in view.cost.kernels if kernel.name == name for node in kernel.nodes]


@pytest.mark.slow
def test_moved_programs_compute_the_same():
    view = mg.viz.fusion(lambda x: mg.softmax(mg.tanh(x) * 2), mg.ones((8, 4))).move("tanh_1")
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (found,) = view.program([x])
    e = np.exp(np.tanh(x.astype(np.float64)) * 2)
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.slow
def test_partial_sums_can_be_moved():
    view = mg.viz.fusion(lambda x, w: mg.tanh((mg.tanh(x) * w).sum(0)), mg.ones((2048, 64)), mg.ones(64))
    assert view.cost.program.launches == 2
    apart = view.move("tanh_2")
    assert apart.cost.program.launches == 3 and apart.cost.program.bytes == view.cost.program.bytes + 2 * 64 * 4
    x = np.random.default_rng(0).standard_normal((2048, 64)).astype(np.float32)
    (found,) = apart.program([x, np.ones(64, np.float32)])
    np.testing.assert_allclose(found, np.tanh(np.tanh(x.astype(np.float64)).sum(0)), rtol=1e-4, atol=1e-4)
    with pytest.raises(mg.CompileError, match="complete only when the kernel has gone through all"):
        view.move("sum_1, combined", "kernel_0")


@pytest.mark.slow
def test_illegal_moves_are_refused():
    view = mg.viz.fusion(f, X, W, B)
    with pytest.raises(mg.CompileError, match="would wait for each other"):
        view.move("tanh_1")
    with pytest.raises(mg.CompileError, match=r"can't be in a kernel with others: matmul is a library call"):
        view.move("add_1", "kernel_0")
    with pytest.raises(mg.MinigradError, match=r"no kernel named 'kernel_9'[\s\S]*kernel_0, kernel_1"):
        view.move("add_1", "kernel_9")
    with pytest.raises(mg.MinigradError, match=r"anything named 'addd'[\s\S]*add_1"):
        view.move("addd")


@pytest.mark.slow
def test_training_steps_and_models_are_shown():
    step, x = training_step()
    view = mg.viz.fusion(mg.jit(step), x)
    assert ">up<" in view.to_svg() and "∂weight" in view.to_svg()
    view = mg.viz.fusion(Net(), x)
    assert repr(view).startswith(f"<{FORWARD}: fusion: 4 launches"), "its parameters require gradients"


@pytest.mark.slow
def test_a_training_step_is_folded_by_phase_and_module():
    model = mg.nn.Sequential(*[layer for _ in range(3) for layer in (mg.nn.Linear(8, 8), mg.nn.GELU())])
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = mg.sum(model(x) ** 2)
        loss.backward()
        optimizer.step()

    data = mg.viz.fusion(mg.jit(step), mg.ones((2, 8))).data()["written"]
    assert data["phases"] == ["forward", "backward", "update"] and "4 Linear" in dict(data["rows"])


@pytest.mark.slow
def test_a_moved_program_has_all_pages():
    view = mg.viz.fusion(f, X, W, B).move("add_1")
    data = view.data()
    assert [band["title"] for band in data["written"]["bands"]][:3] == ["x @ w", "x @ w + b · 1.0", TANH]
    assert len(data["kernels"]) == 3 and len(data["board"]["kernels"]) == 3
    assert view.to_svg() == view.written.svg()


@pytest.mark.slow
def test_output_has_html_svg_and_text():
    view = mg.viz.fusion(f, X, W, B)
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"].startswith(repr(view)) and "why not in one kernel?" in bundle["text/plain"]
    assert "<img alt=" in bundle["text/html"] and "https://" not in bundle["text/html"]
    xml.dom.minidom.parseString(bundle["image/svg+xml"])


@pytest.mark.slow
def test_a_program_of_too_many_kernels_is_not_drawn(monkeypatch):
    monkeypatch.setattr("minigrad.viz.fused.MOST", 2)
    step, x = training_step()
    with pytest.raises(mg.MinigradError, match=r"kernels and library calls would be unreadable\n  Expected: at most 2"):
        mg.viz.fusion(step, x)


@pytest.mark.slow
def test_hostile_names_are_text():
    def g(**kwargs):
        return sum(kwargs.values(), start=mg.zeros(2))

    name = "</script><img src=x onerror=alert(1)>"
    view = mg.viz.fusion(g, **{name: mg.ones(2)})
    for text in (view.to_html(), view.to_svg()):
        assert "<img src=x" not in text
    chart = Chart(100, 40)
    chart.bar(0, 0, 40, 10, "kernel", name, name, name)
    chart.text(0, 10, name)
    assert not xml.dom.minidom.parseString(chart.to_svg(name)).getElementsByTagName("img")


# memory, schedule, profile, roofline ----------------------------------------------------------------------------------


def test_memory_over_time_matches_the_program():
    step, x = training_step()
    program = mg.jit(step).program(x)
    lives = lives_of(program.plan)
    places = {life.name: life.place for life in lives}
    assert {b.name: f"slot {b.number}" for b in program.plan.buffers if b.kind == "slot"}.items() <= places.items()
    for a in lives:
        for b in lives:
            if a is not b and a.place == b.place and a.place.startswith("slot"):
                assert a.end < b.begin or b.end < a.begin, (a, b)


@pytest.mark.slow
def test_heading_of_the_memory_view_agrees_with_its_chart():
    step, x = training_step()
    view = mg.viz.memory(step, x)
    words = re.search("node by node at most (.*) in use, fused at most (.* in use, .* allocated)", repr(view)).groups()
    eagerly, fused = [page.drawing.to_svg("") for [page] in view.pages]
    assert view.opening == 0, "the title begins with what is shown"
    assert f">at most {words[0]} in use<" in eagerly and f">at most {words[1]}<" in fused
    assert f">fused: {words[1]}<" in eagerly and f">node by node: {words[0]}" in fused
    cost = mg.jit(step).cost(x)
    assert words[0] == bytes_text(cost.eager_peak)
    allocated = bytes_text(cost.memory.total)
    assert words[1].endswith(f", {allocated} allocated")


def test_eager_mode_in_the_memory_view_has_the_bytes_of_the_cost_model():
    """A layer for each module."""
    shown = programs_of(FunctionCall(mg.jit(training_step()[0]), training_step()[1:]), "memory")[0]
    way = memories._node_by_node(shown.program.graph, Titles(shown))
    assert way.held == eager_memory(shown.program.graph)
    assert {"up", "down"} <= {part for _, part in way.layers}


@pytest.mark.slow
def test_the_memory_view_says_how_its_sizes_differ_and_where_checkpoints_are():
    step, x = training_step()
    [first], [used] = mg.viz.memory(step, x).pages
    allocated = bytes_text(mg.jit(step).cost(x).memory.total)
    assert f"{allocated} allocated, with scratch memory and gaps between buffers" in used.say
    assert "mg.viz.memory(loss, x, y), for the function of the loss alone, shows" in first.say
    assert "checkpoints" not in mg.viz.memory(mg.exp, x).pages[0][0].say, "no gradient, nothing to keep"


def test_parts_have_one_name_in_memory_and_fusion():
    step, x = training_step()
    call = FunctionCall(mg.jit(step), (x,))
    titles = Titles(*programs_of(call, "memory"))
    [page] = mg.viz.memory(step, x).pages[-1]
    words = set(re.findall(">([^<>]+)</text>", page.drawing.to_svg("")))
    assert {"up", "down"} <= words & {section.layer for section in titles.sections.values()}
    assert not [word for word in words if re.match(r"(kernel|matmul|check)_\d", word)]


def test_a_large_model_has_its_modules_in_the_memory_of_eager_mode():
    nn = mg.nn
    blocks = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.LayerNorm(8)) for _ in range(9)])
    opt = mg.optim.SGD(blocks.parameters(), lr=0.1)

    def step(x):
        opt.zero_grad()
        loss = (blocks(x) ** 2).sum()
        loss.backward()
        opt.step()
        return loss

    shown = programs_of(FunctionCall(mg.jit(step), (mg.ones((16, 8)),)), "memory")[0]
    way = memories._node_by_node(shown.program.graph, Titles(shown))
    assert {f"{n} Sequential" for n in range(9)} <= {part for _, part in way.layers}


def words_of(drawing):
    return re.findall(">([^<>]+)</text>", drawing.to_svg(""))


def test_what_memory_keeps_has_the_names_of_the_code():
    def f(x):
        a = 2 * x
        b = a * a
        return b + a

    eagerly = mg.viz.memory(f, mg.asarray(3.0, requires_grad=True)).pages[0][0]
    steps = [word for word in words_of(eagerly.drawing) if word in ("a", "b", "b + a")]
    assert sorted(steps) == ["a", "a", "a", "b", "b", "b + a", "b + a"], "each twice at the axis, and b keeps a"


def test_what_is_kept_has_its_own_name_and_not_that_of_its_reader():
    """Eagerly, with a checkpoint and fused: `a @ x` for the gradient of w, and both factors of c."""

    def f(a, x, w):
        b = a @ x @ w
        c = b * mg.exp(b)
        return c.sum()

    a, x, w = mg.ones((3, 3)), mg.ones((3, 2)), mg.ones((2, 2), requires_grad=True)
    marks = mg.viz.memory(f, a, x, w).marks
    titles = {key: marks[key]["title"].partition(", kept")[0] for key in marks if "title" in marks[key]}
    assert titles["s0.0"] == "a @ x" and {"b, exp(b)"} <= {*titles.values()}
    assert not {"c", "a @ x @ w"} & {*titles.values()}
    assert "a @ x" in [titles[key] for key in titles if key.startswith("s2.")], "fused"


def test_what_a_layer_keeps_of_another_is_named_after_that():
    class Net(mg.nn.Module):
        def __init__(self):
            self.first, self.head = mg.nn.Tanh(), mg.nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.first(x))

    net = Net()
    marks = mg.viz.memory(lambda x: net(x).sum(), mg.ones((3, 4), requires_grad=True)).marks
    assert marks["s0.0"]["title"].startswith("self.first(x), kept")
    assert not [each for each in marks.values() if each["title"].startswith("head")]


def test_a_sentence_says_why_fusing_does_not_lower_the_most():
    x = mg.ones(1000, requires_grad=True)
    same, less = [mg.viz.memory(f, x.detach()).pages[-1][0].say for f in (mg.exp, lambda x: mg.exp(x * 2) + mg.tanh(x))]
    assert memories.NO_LESS in same and memories.NO_LESS not in less
    assert memories.NO_LESS in mg.viz.memory(three_lines, x).pages[-1][0].say


def test_the_axis_of_memory_names_parts_and_not_their_operations():
    """Steps of one part that follow each other share a name; what belongs to no module has that of its call."""
    step, x = training_step()
    shown = programs_of(FunctionCall(mg.jit(step), (x,)), "memory")[0]
    way = memories._node_by_node(shown.program.graph, Titles(shown))
    steps = [part for _, part in way.paths]
    assert {"up", "down", "backward"} <= {*steps} and not {"matmul", "permute_dims"} & {*steps}
    runs = [name for name, _ in groupby(steps)]
    assert len(runs) < len(steps) / 2
    words = words_of(mg.viz.memory(step, x).pages[0][0].drawing)
    assert words.count("up") <= runs.count("up") + 4, "once for each run, and once in the chart for each phase"


def test_what_keeps_nothing_has_the_axis_of_the_others():
    a, b = mg.asarray(2.0, requires_grad=True), mg.asarray(1.0)
    eagerly, fused = [page.drawing.to_svg("") for [page] in mg.viz.memory(lambda a, b: a * a + b, a, b).pages]
    assert "at most 0 B kept" in eagerly and "fused: 0 B" in eagerly and "at most 0 B kept" in fused


def step_of_adam(*layers):
    """A training step of a network of these layers."""
    net = mg.nn.Sequential(*layers)
    optimizer = mg.optim.Adam(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (net(x) ** 2).sum().backward()
        optimizer.step()

    return step


def test_memory_of_a_training_step_marks_its_phases_and_the_modules_in_them():
    """The update too: an optimizer stores a new weight in the module of the old one."""
    step = step_of_adam(mg.nn.Linear(8, 8), mg.nn.Tanh(), mg.nn.Linear(8, 8))
    shown = programs_of(FunctionCall(mg.jit(step), (mg.ones((4, 8)),)), "memory")[0]
    titles = Titles(shown)
    eagerly = memories._node_by_node(shown.program.graph, titles)
    fused = memories._fused(titles, lives_of(shown.program.plan))
    assert [phase for phase, _ in groupby([phase for phase, _ in eagerly.paths])] == ["forward", "backward", "update"]
    for way in (eagerly, fused):
        assert {phase for phase, _ in way.paths} >= {"forward", "backward", "update"}
        assert {"0 Linear", "2 Linear"} <= {part for kind, part in way.layers if kind == "update"}
        assert {"0 Linear", "2 Linear"} <= {part for phase, part in way.paths if phase == "update"}
    words = words_of(mg.viz.memory(step, mg.ones((4, 8))).pages[0][0].drawing)
    assert ", forward, backward, update, " in ", ".join(words)
    assert "forward" not in words_of(mg.viz.memory(mg.exp, mg.ones(8)).pages[0][0].drawing)


def test_new_values_of_an_update_are_named_by_what_they_replace():
    """The weight, and what Adam keeps for it."""
    step = step_of_adam(mg.nn.Linear(16, 16))
    shown = programs_of(FunctionCall(mg.jit(step), (mg.ones((4, 16)),)), "memory")[0]
    way = memories._node_by_node(shown.program.graph, Titles(shown))
    names = {life.name for (phase, _), lives in way.layers.items() for life in lives if phase == "update"}
    assert {"0.weight", "exp_avg of 0.weight", "exp_avg_sq of 0.weight", "0.bias"} <= names


def test_modules_in_lists_have_one_spelling():
    class Net(mg.nn.Module):
        def __init__(self, kind):
            self.blocks = kind([mg.nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x):
            if isinstance(self.blocks, mg.nn.Module):
                return self.blocks(x)
            for block in self.blocks:
                x = block(x)
            return x

    for kind in (list, lambda blocks: mg.nn.Sequential(*blocks)):
        titles = Titles(*programs_of(FunctionCall(mg.jit(Net(kind)), (mg.ones((2, 4)),)), "memory")[:1])
        assert {name.split()[0] for name in titles.rows.values()} >= {"blocks[0]", "blocks[1]", "blocks[2]"}


def test_all_ways_of_memory_have_one_measure():
    """What the fused program keeps for its gradient is compared with what the tape keeps: without its results."""
    layer = mg.nn.Sequential(mg.nn.Linear(8, 8), mg.nn.Tanh(), mg.nn.Linear(8, 8))
    view = mg.viz.memory(lambda x: (layer(x) ** 2).sum(), mg.ones((4, 8)))
    rows = view.marks["most"]["rows"]
    assert {words.rpartition(" ")[2] for _, words in rows} == {"kept"}
    eagerly, fused = [words.removesuffix(" kept") for _, words in (rows[0], rows[-1])]
    most = f"node by node at most {eagerly} kept, fused at most {fused} kept"
    assert repr(view).endswith(f"{most} for the backward pass>")
    *_, [page] = view.pages
    assert page.say.startswith(f"fused: {fused} are kept for the backward pass")
    assert {f"node by node: {eagerly} kept", f"at most {fused} kept"} <= {*words_of(page.drawing)}
    assert {words.split()[2] for _, words in mg.viz.memory(mg.exp, mg.ones(8)).marks["most"]["rows"]} == {"in"}


def three_lines(x):
    a = 2 * x
    return a * a + a


def test_a_kept_value_is_drawn_under_the_part_that_reads_it():
    """`a` is read by the rule of `a * a`: it lasts until the backward pass has left that part."""
    x = mg.asarray(3.0, requires_grad=True)
    way, *_ = memories._taped(tape_of(lambda: three_lines(x)))
    [life] = way.lives
    assert [part for _, part in way.paths[life.begin : life.end + 1]] == ["a · a", "a · a + a", "a · a + a", "a · a"]
    assert "until back through a · a" in way.about(life)


def test_what_is_kept_is_counted_without_the_results():
    """Fusing three operations costs no memory: the program keeps `a`, as the tape does, and nothing else is counted."""
    view = mg.viz.memory(three_lines, mg.ones(1000, requires_grad=True))
    assert {words for _, words in view.marks["most"]["rows"]} == {"4 kB kept"}
    words = [word for [page] in view.pages for word in words_of(page.drawing) if ":" in word]
    assert words == ["fused: 4 kB kept", "node by node: 4 kB kept"]


def test_copies_of_what_is_kept_are_counted():
    """Each round keeps -k, which the program computes once, and copies for each of its rules."""

    def swing(x, v, k):
        for _ in range(5):
            v = v + 0.1 * (-k * x)
            x = x + 0.1 * v
        return (x * x).sum()

    given = mg.ones(3, requires_grad=True), mg.zeros(3), mg.asarray(2.0, requires_grad=True)
    shown = programs_of(FunctionCall(mg.jit(swing), given), "memory")[0]
    plan, ends = shown.program.plan, [life.bytes for life in lives_of(shown.program.plan, shown.results)]
    kept = plan.outputs[shown.results :]
    assert any(plan.is_copied(number) for number in range(shown.results, len(plan.outputs)))
    assert sum(ends) == sum([read.size * plan.buffers[read.buffer].dtype.itemsize for read in kept])


def test_a_name_below_the_axis_that_does_not_fit_is_left_out():
    chart = Chart(100.0, 50.0)
    chart.brackets(0.0, [(0.0, 2.0, "blocks[3]"), (10.0, 90.0, "blocks[4]")])
    assert re.findall(">([^<>]+)</text>", chart.to_svg("")) == ["blocks[4]"]


def test_heights_in_the_memory_view_are_bytes():
    """The peak of eager mode, and the line of the fused program in the same chart."""
    step, x = training_step()
    svg = mg.viz.memory(step, x).to_svg()
    cost = mg.jit(step).cost(x)
    top, height = map(float, re.search(r'<rect x="40" y="(\d+)" width="960" height="(\d+)"', svg).groups())
    peak = float(re.search('<circle cx="[^"]+" cy="([^"]+)"', svg)[1])
    line = float(re.search('<path d="M40 ([^L]+)L1000 [^"]+" fill="none" stroke="#[^"]+" stroke-width="1.6"', svg)[1])
    fused = mg.viz.memory(step, x).marks["most"]["rows"][-1][1]
    most = float(fused.partition(" kB in use")[0]) * 1000
    assert (top + height - line) / (top + height - peak) == pytest.approx(most / cost.eager_peak, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "html", "txt"])
def test_views_are_saved_to_files(tmp_path, ending):
    for view in (mg.viz.fusion(f, X, W, B), mg.viz.timeline(f, X, W, B, runs=0), mg.viz.memory(f, X, W, B)):
        view.save(tmp_path / f"v.{ending}")
        assert (tmp_path / f"v.{ending}").stat().st_size > 100


@pytest.mark.slow
def test_a_program_from_a_file_shows_its_plan(tmp_path, numpy_kernels):
    mg.jit(f).save(tmp_path / "f.program", X, W, B)
    program = mg.load_program(tmp_path / "f.program").program
    assert mg.viz.timeline(program).text() == mg.viz.timeline(f, X, W, B, runs=0).text()
    views = mg.viz.memory(f, X, W, B), mg.viz.memory(program)
    assert views[0].text() == views[1].text()
    places = [re.findall(r"(?:slot|result) \d+", str(view.marks)) for view in views]
    assert places[0] == places[1] and "slot 0" in places[0]  # a file has neither the lines nor the names of code
    assert "tanh_1" in repr(Cost(program))
    assert mg.viz.fusion(program).text().splitlines()[1:] == mg.viz.fusion(f, X, W, B).text().splitlines()[1:]


# errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["fusion"])
def test_values_without_a_program_are_refused(view, monkeypatch):
    show = getattr(mg.viz, view)
    with pytest.raises(mg.MinigradError, match=rf"no program in a Tensor: [\s\S]*mg.viz.{view}\(f, \*arguments\)"):
        show(mg.ones(2))
    with pytest.raises(mg.MinigradError, match="no program in a int"):
        show(3)
    with pytest.raises(mg.MinigradError, match=r"there are no kernels for these devices[\s\S]*node by node"):
        jitted = mg.jit(f)
        traced = jitted.traced(X, W, B)
        traced.__dict__["program"] = PlainProgram(traced.graph)  # as for tensors on several devices
        monkeypatch.setattr(compiled, "target_of", lambda nodes: None)
        show(jitted, X, W, B)


def test_programs_without_steps_are_refused():
    with pytest.raises(mg.MinigradError, match="nothing is computed here"):
        mg.viz.fusion(lambda x: x, mg.ones(3))


@pytest.mark.slow
def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(mg.MinigradError, match=r"needs something to show[\s\S]*mg.viz.memory\(f, x\)"):
        mg.viz.memory()
    with pytest.raises(mg.MinigradError, match=r"can't be saved as 'v.bmp'[\s\S]*\.svg"):
        mg.viz.fusion(f, X, W, B).save(tmp_path / "v.bmp")
    with pytest.raises(mg.ShapeError):
        mg.viz.fusion(f, X, mg.ones((3, 3)), B)  # the error of the function itself


def test_which_tensors_share_memory():
    x = mg.zeros((4, 4), requires_grad=True)
    with mg.no_grad():
        named = {"x": x, "row": x[1], "column": x[:, 1], "flipped": x[::-1], "other": mg.ones(3), "number": 3}
        view = mg.viz.memory(named)
    assert repr(view) == "<memory of 5 tensors in 2 buffers>"
    lines = {line.split()[0]: line for line in view.text().splitlines()}
    assert lines["row"].endswith("16–32") and lines["column"].endswith("4–56") and lines["flipped"].endswith("0–64")
    assert "buffer 1" in lines["other"] and "steps of -4, 1" in lines["flipped"]
    with mg.no_grad():
        assert repr(mg.viz.memory(Net(), mg.ones((32, 8)))).startswith("<memory of 4 launches: ")
    assert repr(mg.viz.memory(Net())) == "<memory of 4 tensors in 4 buffers>"


def test_small_tensors_are_drawn_cell_by_cell():
    x = mg.arange(6.0).reshape((2, 3))
    named = {"x": x, "y": x.T, "column": x[:, 1], "flipped": x[::-1], "wide": mg.broadcast_to(x[0], (4, 3))}
    svg = mg.viz.memory(named).to_svg()
    for about in ("x[0,1] is 1.0, in cell 1", "y[0,1] is 3.0, in cell 3", "column[1] is 4.0, in cell 4",
                  "flipped[0,0] is 3.0, in cell 3", "wide[0,2] and [1,2] and [2,2] and [3,2] is 2.0, in cell 2"):
        assert f"<title>{about}</title>" in svg, about
    assert "in cell" not in mg.viz.memory(x=mg.zeros((10, 10))).to_svg()


def test_empty_and_scalar_tensors_have_a_place():
    assert repr(mg.viz.memory(a=mg.zeros((0, 3)), b=mg.asarray(1.0))) == "<memory of 2 tensors in 2 buffers>"
