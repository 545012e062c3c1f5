"""The views of the compiler: their plain data, texts, pictures and errors."""

import gc
import json
import re
import tracemalloc
import warnings
import xml.dom.minidom
from collections import Counter
from functools import partial
from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.cost import Cost
from minigrad.compile.look.held import Held, Life, lives_of
from minigrad.compile.running import frame, steps
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.steps import RUNNING
from minigrad.core import emit
from minigrad.devices import registry
from minigrad.eager.calls import is_available
from minigrad.support.table import bytes_text
from minigrad.viz import compiled, memories
from minigrad.viz.compiled import FunctionCall, programs_of
from minigrad.viz.drawing import Chart, levels_of
from minigrad.viz.kept import tape_of
from minigrad.viz.listings import source_of
from minigrad.viz.titles import Titles
from tests.viz.ten_programs import TEN

TANH = "tanh(x @ w + b · 1.0), softmax, softmax(…) · 2"
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
    assert data["rows"][old]["texts"] == [[0, "(32,)", "multiply", "b", "1"], [1]] and data["rows"][new]["name"] == "b"


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
        "is a library call|complete only when|at other positions|at positions that an index array holds|"
        "ready only later|loop of|have kernels of their own|"
        "rows of different length|computed again by each|placed elsewhere|nodes already|results of the program|of yours"
    )
    for name in TEN:
        function, *args = TEN[name]()
        for view in mg.viz.fusion(function, *args)._parts():
            for each in view.written.boundaries:
                assert known.search(each.why) and each.maker != each.step, each


def test_parameters_of_two_models_that_share_a_name_are_told_apart():
    """Both were `weight`: a line of a kernel led to the parameter of the other model."""
    first, second = mg.nn.Linear(3, 4), mg.nn.Linear(4, 3)
    view = mg.viz.fusion(lambda x: second(mg.tanh(first(x))), mg.ones((2, 3)))
    names = [row["name"] for row in view.data()["rows"] if "name" in row]
    assert len({*names}) == len(names) and {"weight₁", "weight₂", "bias₁", "bias₂"} <= {*names}


def test_what_a_call_makes_is_no_reader_of_the_call():
    view = mg.viz.fusion(lambda x: mg.cond(x.sum() > 0, mg.tanh, mg.exp, x), mg.ones(3))
    assert view.written.boundaries and "→ cond_1[0]" not in view.text()


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


def test_what_a_check_reads_stays_in_memory_when_other_operations_move():
    """The indices of an embedding are checked in another shape than they are computed in; a move raised KeyError."""
    def picked(table, i):
        return mg.tanh(table[(i * 2).reshape(2, 3)]) + 1, (i * 2).sum()

    view = mg.viz.fusion(picked, mg.ones((9, 4)), mg.asarray([0, 1, 2, 3, 4, 0]))
    (check,) = view.partition.checks
    assert view.partition.views[check.node].base is not check.node
    moved = view.move("add_1")
    results = moved.program([array.copy() for array in view.shown.arrays()])
    assert [result.shape for result in results] == [(2, 3, 4), ()]


@pytest.mark.slow
def test_illegal_moves_are_refused():
    view = mg.viz.fusion(f, X, W, B)
    with pytest.raises(mg.CompileError, match="would wait for each other"):
        view.move("tanh_1")
    with pytest.raises(mg.CompileError, match=r"can't be in a kernel with others: matmul is a library call"):
        view.move("add_1", "kernel_0")
    with pytest.raises(mg.MinigradError, match=r"anything named 'kernel_9'[\s\S]*kernel_0, kernel_1"):
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
    assert view.to_svg() == view.written.svg(view.said())


@pytest.mark.slow
def test_output_has_html_svg_and_text():
    view = mg.viz.fusion(f, X, W, B)
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"].startswith(repr(view)) and "why not in one kernel?" in bundle["text/plain"]
    assert "<img alt=" in bundle["text/html"] and "https://" not in bundle["text/html"]
    xml.dom.minidom.parseString(bundle["image/svg+xml"])


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


def test_the_bytes_in_use_of_the_same_values_are_summed_once(monkeypatch):
    """The step with the most bytes was found again for each value: 300 rounds of a loop took half a minute."""
    summed, sizes = [], memories._sizes

    def rounds(x, count):
        for _ in range(count):
            x = x + 0.5 * mg.tanh(x)
        return (x * x).sum()

    def noted(lives, count):
        summed.append(lives)  # kept, so that identities stay valid
        return sizes(lives, count)

    monkeypatch.setattr(memories, "_sizes", noted)
    mg.viz.memory(rounds, mg.ones(3), 12)
    assert len(summed) == len({id(lives) for lives in summed}) > 12


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
    words = re.search("eager at most (.*) in use, fused at most (.* in use, .* allocated)", repr(view)).groups()
    eagerly, fused = [page.drawing.to_svg("") for [page] in view.pages]
    assert view.opening == 0, "the title begins with what is shown"
    assert f">at most {words[0]} in use<" in eagerly and f">at most {words[1]}<" in fused
    assert f">fused: {words[1]}<" in eagerly and f">eager: {words[0]}" in fused
    allocated = bytes_text(mg.jit(step).cost(x).memory.total)
    assert words[1].endswith(f", {allocated} allocated")


def eager_way(function, *args, backward=False):
    call = FunctionCall(function, args)
    titles = [Titles(each) for each in programs_of(call._replace(what=mg.jit(function)), "memory")]
    return memories._eager(call, backward, titles)


@pytest.mark.parametrize("programs", [True, False])
@pytest.mark.parametrize("form", ["step", "loss"])
def test_eager_mode_in_the_memory_view_has_the_bytes_that_a_call_really_holds(form, programs, monkeypatch):
    """The most bytes that NumPy holds in such a call, without the pool of arrays, and a layer for each module."""
    for module, name in (registry, "WORTH_KEEPING"), (frame, "POOLED_BYTES"), (emit, "LARGE"), (steps, "POOLED_BYTES"):
        monkeypatch.setattr(module, name, 1 << 60)
    net = mg.nn.Sequential(mg.nn.Linear(64, 64), mg.nn.Tanh(), mg.nn.Linear(64, 64), mg.nn.GELU())
    optimizer = mg.optim.Adam(net.parameters(), lr=0.1)

    def loss(x):
        return (net(x) ** 2).sum()

    def step(x):
        optimizer.zero_grad()
        loss(x).backward()
        optimizer.step()

    x = mg.ones((2048, 64))
    with mg.eager_programs(programs):
        way = eager_way(step if form == "step" else loss, x, backward=form == "loss")
        gc.collect()
        tracemalloc.start()
        result = compiled.back_from(loss(x)) if form == "loss" else step(x)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert way.most == pytest.approx(most, rel=0.06) and bool(result) == (form == "loss")
    assert {"0 Linear", "1 Tanh", "3 GELU"} <= {part for _, part in way.paths}


def outer(c, v):
    t = mg.expand_dims(c, 0) * mg.expand_dims(v, 1)
    return (t @ t).max(axis=0), None


@pytest.mark.parametrize("function", [
    lambda x: mg.scan(outer, x[0], x)[0],
    lambda x: mg.cond(x.sum() > 0, lambda x: outer(x[0], x[1])[0], lambda x: x[0], x),
    lambda x: mg.while_loop(lambda c: c.sum() < 1e9, lambda c: outer(c, c)[0], x[0]),
    lambda x: mg.scan(lambda c, v: (mg.cond(v.sum() > 0, lambda c: outer(c, c)[0], lambda c: c, c), None), x[0], x)[0],
])
def test_what_a_loop_or_a_branch_needs_inside_is_in_use(function):
    """Two matrices, which are much larger than all that comes in and goes out."""
    x = mg.ones((3, 200))
    eager, fused = eager_way(function, x), memories._fused(memories._titles(FunctionCall(mg.jit(function), (x,))))
    cost, matrices = mg.jit(function).cost(x), 2 * 200 * 200 * 4
    for most in (eager.most, fused.most, cost.memory.total, cost.eager_peak):
        assert matrices <= most < 1.2 * matrices
    kept = max(fused.lives, key=lambda life: life.bytes)
    assert kept.name.startswith("work memory of ") and kept.begin == kept.end


def test_of_a_branch_only_the_one_that_runs_needs_memory():
    def f(x):
        return mg.cond(x.sum() > 0, lambda x: (x @ x).sum(), lambda x: x.sum(), x)

    most = [memories._fused(memories._titles(FunctionCall(mg.jit(f), (sign * mg.ones((50, 50)),)))).most
            for sign in (1, -1)]
    assert most[0] > 50 * 50 * 4 > most[1]


def test_masks_and_values_of_one_name_are_rows_of_their_own():
    """Of a relu, eager mode keeps its result and a mask; a sum in two precisions is two rows."""
    x = mg.ones((8, 16), requires_grad=True)

    def f(x):
        for _ in range(3):
            x = mg.relu(x * 2)
        return x.astype("float64").sum() + x.sum()

    with mg.eager_programs(True):
        way = eager_way(f, x, backward=True)
    rows = dict(way.facts(way.lives))
    assert len(rows) == len(way.facts(way.lives)), "no two rows have one name"
    assert rows["3 arrays of relu (8, 16): mask"].startswith("384 B, ")
    assert rows["3 arrays of relu (8, 16)"].startswith("1.54 kB, ")
    assert "x.astype('float64').sum(): float64" in rows and "x.sum()" in rows
    assert re.search(r"line \d+ of test_compiler_views.py, until ", rows["x.sum()"])
    sizes = [sum(life.bytes for life in group) for _, group in memories.alike(way.lives)]
    assert sum(sizes) == sum(life.bytes for life in way.lives) and sizes == sorted(sizes, reverse=True)


def test_of_the_most_bytes_a_page_says_how_many_the_forward_pass_made():
    """What the forward pass makes is held until the program of the gradient ends; eager mode frees it on the way."""
    net, x = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)]), mg.ones((4, 8))
    ways = [eager_way(lambda x: net(x).sum(), x, backward=True),
            memories._fused(memories._titles(FunctionCall(mg.jit(lambda x: net(x).sum()), (x,))))]
    firsts = [sum(life.bytes for life in way.lives if life.home[0] == "forward" and
                  life.begin <= way.held.index(way.most) <= life.end) for way in ways]
    assert firsts[0] < firsts[1] and ways[0].most < ways[1].most, "why the fused program needs more"
    text = mg.viz.memory(lambda x: net(x).sum(), x).text().splitlines()
    for line, first in zip((text[0], text[-1]), firsts):
        assert f", {bytes_text(first)} of it made in the forward pass; " in line
    assert "of it made" not in mg.viz.memory(lambda x: mg.exp(x * 2) + mg.tanh(x), mg.ones(9)).text(), "all of it is"


def test_a_value_of_a_fused_program_is_what_it_is_and_not_what_its_kernel_is_called():
    """The kernel of an update also ends the sum of the gradient, which is a result: both lie beside each other."""
    nn = mg.nn
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = mg.optim.Adam(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (net(x) ** 2).sum().backward()
        optimizer.step()

    [titles] = memories._titles(FunctionCall(mg.jit(step), (mg.ones((32, 64)),)))
    way = memories._fused([titles])
    final = titles.shown.program.final
    gradients = {f"{phase}: {part}": [life for life in lives if life.name == "∂bias"]
                 for (phase, part), lives in way.layers.items()}
    assert {part: sum(life.bytes for life in lives) for part, lives in gradients.items() if lives} == {
        "backward: 0 Linear": 4 * 32, "backward: 2 Linear": 4 * 10}
    written = {life.name for life in way.lives if way.paths[life.begin][0] == "update"}
    assert {"∂bias"} <= written, "the update writes them"
    assert not [life for life in way.lives if " + " in life.name or life.name.startswith("Adam of")]
    nodes = {node.name for node in final.nodes}
    rows = [life for life in way.lives if life.home[0] == "update"]
    assert "divide" in nodes and sum(life.bytes for life in rows) == 32, "of all values, two belong to the update"
    there = [life for life in way.made if life.home[0] == "update"]
    assert sum(life.bytes for life in there) == 32 and "step: " in there[0].name


def test_each_part_of_the_axis_has_a_box_with_its_bytes_of_one_phase():
    names = ["first", *[f"length{i}, speed{i}, place{i}" for i in range(20)], "", "a"]
    paths = [("forward", name) for name in names] + [(phase, "z") for phase in ("backward", "update") * 3]
    paths = [path for path in paths for _ in range(3 if path[1] == "first" else 1)]
    lives, marks = [Life("v", n + 1, n, n, None) for n in range(len(paths))], {}
    lives = [life._replace(home=paths[life.begin]) for life in lives]
    way = memories.Way("eager", paths, lives, memories.MADE)
    words = words_of(memories._Stack(way, "", marks, way))
    assert "first" in words and not [word for word in words if word.endswith("…")], "what has no room is not drawn"
    axis = [mark for key, mark in marks.items() if key.startswith("axis")]
    assert ("first", [("at most", "3 B")]) in axis and (names[1], [("at most", "4 B")]) in axis
    count = Counter(title for title, _ in axis)
    assert count["forward"] == 1 and "" not in count, "a part without a name has no box"
    assert count["z"] == 6 and count["backward"] == count["update"] == 3, "two phases are never one box"


def test_a_box_of_the_axis_has_only_steps_of_its_own_phase_and_part():
    """The mask of a maximum is a part of its gradient, and the fused program computes it between forward kernels."""
    nn = mg.nn
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)], [nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten()]
    call = FunctionCall(mg.jit(step_of_adam(*layers[0], *layers[1])), (mg.ones((2, 1, 8, 8)),))
    way = memories._fused(memories._titles(call))
    phases = [phase for phase, _ in groupby([phase for phase, _ in way.paths])]
    assert phases.count("forward") > 1, "they are not in one run"
    levels = levels_of([(n, n + 1, path) for n, path in enumerate(way.paths)])
    for number, level in enumerate(levels):
        for begin, end, name in level:
            assert {path[number] for path in way.paths[begin:end]} == {name}
            assert len({path[:number] for path in way.paths[begin:end]}) == 1, "the layer of one phase"
    assert [name for *_, name in levels[0]] == [phase for phase in phases if phase]


def test_memory_says_what_takes_the_most_of_all_that_is_in_use():
    """The gradients of a weight in all rounds, which are added at the end."""
    x, w = mg.ones((2, 8)), mg.ones((8, 8), requires_grad=True)

    def f(x):
        for _ in range(6):
            x = mg.tanh(x @ w)
        return x.sum()

    way = memories._fused(memories._titles(FunctionCall(mg.jit(f), (x,))))
    at = way.held.index(max(way.held))
    sizes = Counter()
    for life in way.lives:
        sizes[life.name] += life.bytes * (life.begin <= at <= life.end)
    name, size = sizes.most_common(1)[0]
    assert name == "∂w" and f"{way.part(at)}, {bytes_text(size)} of it from 6 arrays of {name}, " in way.say
    assert "of it" not in memories._fused(memories._titles(FunctionCall(mg.jit(mg.exp), (x,)))).say


def test_rounds_of_a_loop_of_the_library_are_rounds():
    x = mg.asarray([1.0, 2.0, 3.0])
    eager = mg.viz.memory(lambda x: mg.while_loop(lambda x: x.sum() < 100, lambda x: x * 1.5, x), x).pages[0][0]
    assert "round 3" in {*words_of(eager.drawing)} and "; most in round 1, " in eager.say


def test_what_is_computed_again_for_many_parts_has_the_names_of_its_values():
    net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    marks = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True)).marks
    again = {title.partition(",")[0]: rows for title, rows in marks.values() if ", computed again" in title}
    assert [*again] == ["0 Tanh", "2 Tanh"], "they are computed again at once, when the gradient of 2 Tanh needs them"
    assert all([name for name, _ in rows] == ["tanh (4, 8)"] for rows in again.values()), again


def test_memory_prints_no_warnings_of_numbers(recwarn):
    warnings.simplefilter("always")
    mg.viz.memory(lambda x: mg.log(x).sum() / x.sum(), mg.asarray([-1.0, 0.0, 1.0], requires_grad=True))
    assert not recwarn.list, [str(each.message) for each in recwarn.list]


@pytest.mark.parametrize("form", [mg.jit, lambda f: f])
def test_a_loop_without_a_bound_has_the_memory_of_its_forward_pass(form):
    """Eager mode has a gradient, too."""
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    f = form(lambda x: mg.while_loop(lambda x: (x * x).sum() < 100, lambda x: x * 1.5, x).sum())
    eager, fused = mg.viz.memory(f, x).text().splitlines()
    assert "between forward and backward pass" in eager
    assert fused.endswith("; its gradient has no program: its loops need max_steps") and "backward" not in fused


def test_what_is_called_in_no_grad_after_the_update_is_a_forward_pass():
    """The accuracy after a step; and a second step in one call, with an update in the code."""
    net = Net()

    def step(x):
        for _ in range(2):
            (net(x) ** 2).sum().backward()
            with mg.no_grad():
                for parameter in net.parameters():
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None
        with mg.no_grad():
            return net(x).max()

    x = mg.ones((4, 8))
    wanted = [*["forward", "backward", "update"] * 2, "forward"]
    assert [phase for phase, _ in groupby([phase for phase, _ in eager_way(step, x).paths])] == wanted
    eager = mg.viz.timeline(step, x, runs=1).bands[0]
    assert [phase for phase, _ in groupby([bar.work.section.phase for bar in eager.bars])] == wanted


def test_a_rule_in_the_code_belongs_to_the_backward_pass():
    @mg.custom_vjp
    def cube(x):
        return x * x * x

    @cube.gradient
    def _(kept, g):
        return (g * (3 * kept[0] * kept[0]),)

    w = mg.asarray([1.0, 2.0], requires_grad=True)

    def step(x):
        w.grad = None
        cube(w * x).sum().backward()

    for phases in ([bar.work.section.phase for bar in mg.viz.timeline(step, mg.ones(2), runs=1).bands[0].bars],
                   [phase for phase, _ in eager_way(step, mg.ones(2)).paths]):
        assert [phase for phase, _ in groupby(phases)] == ["forward", "backward"]


def test_checkpoints_are_not_shown_where_a_function_keeps_values_of_its_own():
    inner = mg.jit(lambda x: mg.tanh(x) * x)
    x = mg.ones((4, 4), requires_grad=True)
    book = mg.viz.memory(lambda x: (inner(inner(x)) ** 2).sum(), x)
    assert book.knobs[0].settings == ("eager", "fused")
    assert "no checkpoints: jitted or custom functions keep values" in book.pages[0][0].say
    assert "; compiled functions are drawn at their last launch" in book.pages[0][0].say


def test_an_array_is_held_until_nothing_refers_to_it():
    held = Held()
    with held.watch():
        x = mg.ones(100)
        y = mg.tanh(x[::2])  # a view makes no array, and keeps its base
        z = x
        del x
        y += 1
        del z
        mg.exp(y)
        y.sum()
    spans = {life.name: (life.begin, life.end) for life in held.lives}
    names = [site.name for site in held.sites]
    assert spans["full (100,)"] == (0, names.index("add")) and spans["tanh (50,)"] == (2, len(names) - 1)
    at = names.index("exp")
    assert spans["exp (50,)"] == (at, at) and sum(name.startswith("tanh") for name in spans) == 1


def test_programs_in_eager_mode_hold_their_results_and_their_work_memory():
    held, x = Held(), mg.asarray(np.linspace(-1, 1, 2000, dtype=np.float32).reshape(40, 50))
    mg.softmax(x)
    with held.watch():
        y = mg.softmax(x)
    (life,) = [life for life in held.lives if not life.name.startswith("work memory")]
    assert (life.name, life.bytes) == ("softmax (40, 50)", y.numpy().nbytes)


def test_a_program_without_steps_holds_nothing():
    turned, x, held = mg.jit(lambda x: x.T), mg.ones((4, 3)), Held()
    turned(x)
    with held.watch():
        RUNNING.get().ended(SimpleNamespace(slots=[64]), [np.ones(3)])
        turned(x)
    assert not held.made
    assert "eager at most 48 B in use" in repr(mg.viz.memory(lambda x: turned(x) * 2, x))


@pytest.mark.parametrize("view", [mg.viz.memory, partial(mg.viz.timeline, runs=1), mg.viz.bench])
@pytest.mark.parametrize("compiles", [True, False])
def test_what_a_function_changes_is_put_back(view, compiles):
    """Parameters, what the optimizer keeps, gradients that are added up, lists, attributes, and random numbers."""
    net = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.BatchNorm1d(3), mg.nn.Dropout(0.5))
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses, net.mask = [], None

    def step(x):
        loss = (net(x) ** 2).sum()
        if not compiles and net.mask is None:
            net.mask = mg.ones(3)
        loss.backward()
        optimizer.step()
        if not compiles:
            losses.append(loss.item())
        return loss

    step(mg.ones((5, 4)))
    gradients = [p.grad for p in net.parameters()]
    tensors = [*net.state_dict().values(), *gradients, *mg.core.tree.leaves(optimizer.state_dict())]
    before, seen, net.mask = [tensor.detach().numpy().copy() for tensor in tensors], [*losses], None
    drawn = mg.random.get_state()
    view(step, mg.ones((5, 4)))
    assert len(before) > 9 and losses == seen and net.mask is None and mg.random.get_state() == drawn
    assert all(p.grad is g for p, g in zip(net.parameters(), gradients))
    for old, tensor in zip(before, tensors):
        np.testing.assert_array_equal(tensor.detach().numpy(), old)


def test_a_view_of_time_leaves_a_tensor_that_it_does_not_write_as_old_as_it_was():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    loss = (w * w).sum()
    mg.viz.timeline(lambda x: float((w * x).sum()), mg.ones(2), runs=1)
    loss.backward()  # needs w, and would find that it was written
    assert w.grad.tolist() == [2, 4]


def test_memory_of_a_step_that_does_not_compile_and_returns_its_loss():
    layer, x = mg.nn.Linear(3, 2), mg.ones((4, 3))

    def step(x):
        loss = (layer(x) ** 2).mean()
        loss.backward()
        return loss if float(loss) else None

    assert "there is no fused program: float() needs the value" in repr(mg.viz.memory(step, x))


def test_a_gradient_that_never_ran_is_the_program_that_would_run():
    def f(x, w):
        return (mg.tanh(x @ w) ** 2).sum()

    x, w = mg.ones((8, 4)), mg.asarray(np.ones((4, 4), np.float32), requires_grad=True)
    before, jitted = repr(mg.viz.memory(f, x, w)), mg.jit(f)
    assert repr(mg.viz.memory(jitted, x, w)) == before
    assert len(jitted.ran(x, w).parts) == 1, "the view ran nothing"
    jitted(x, w).backward()
    assert repr(mg.viz.memory(jitted, x, w)) == before and len(jitted.ran(x, w).parts) == 2


def test_values_of_the_fused_forward_pass_are_in_use_until_the_gradient_is_computed():
    x = mg.ones((8, 4), requires_grad=True)
    call = FunctionCall(mg.jit(lambda x: (mg.tanh(x) * x).sum()), (x,))
    titles = memories._titles(call)
    way = memories._fused(titles)
    assert 0 < way.middle < len(way.paths)
    made = [life for life in way.lives if life.begin < way.middle]
    assert {life.end for life in made if life.output >= 0} == {len(way.paths) - 1}
    assert all(life.end < way.middle for life in made if life.output < 0)
    between = sum(life.bytes for life in made if life.output >= 0)
    assert f"{bytes_text(between)} between forward and backward pass" in way.say and between > 4


@pytest.mark.slow
def test_the_memory_view_says_how_its_sizes_differ_and_where_checkpoints_are():
    step, x = training_step()
    [first], [used] = mg.viz.memory(step, x).pages
    allocated = bytes_text(mg.jit(step).cost(x).memory.total)
    assert f"{allocated} allocated" in used.say and "scratch memory and gaps are allocated, too" in used.say
    assert "mg.viz.memory of the loss alone shows checkpoints" in first.say
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

    way = eager_way(step, mg.ones((16, 8)))
    assert {f"{n} Sequential" for n in range(9)} <= {part for _, part in way.layers}


def words_of(drawing):
    return re.findall(">([^<>]+)</text>", drawing.to_svg(""))


def test_what_memory_keeps_has_the_names_of_the_code():
    def f(x):
        a = 2 * x
        b = a * a
        return b + a

    eagerly = mg.viz.memory(f, mg.asarray(3.0, requires_grad=True)).pages[1][0]
    steps = [word for word in words_of(eagerly.drawing) if word in ("a", "b", "b + a")]
    assert sorted(steps) == ["a", "a", "a", "b", "b", "b + a", "b + a"], "each twice at the axis, and b keeps a"


def test_pages_of_checkpoints_say_that_no_compiled_function_runs_there():
    """Their steps are operations, and differ from those of the page of eager mode."""
    with mg.eager_programs():
        book = mg.viz.memory(lambda x: mg.softmax(x).sum(), mg.ones((20, 20), requires_grad=True))
    kept = ["checkpoint" in name for name in book.knobs[0].settings]
    assert "; compiled functions are drawn at their last launch" in book.pages[0][0].say
    assert any(kept) and ["no compiled function runs" in page.say for page, in book.pages] == kept


def test_what_a_view_copies_is_not_kept_by_the_name_of_what_it_views():
    """The columns of a convolution, which has 9 weights for each number, were kept as its padded input."""
    conv = mg.nn.Conv2d(8, 8, 3, groups=4, padding=1)
    marks = mg.viz.memory(lambda x: (conv(x) ** 2).mean(), mg.ones((2, 8, 6, 6))).marks
    kept = {name: fact for key, (_, rows) in marks.items() if key == "s1.most" for name, fact in rows}
    [fact] = [fact for name, fact in kept.items() if "reshape" in name]
    assert fact.startswith("20.7 kB, "), f"{9 * 2 * 8 * 6 * 6 * 4} bytes"
    assert not [name for name in kept if "place" in name]


def test_an_inner_value_of_a_call_has_its_operation_and_a_copy_says_that_it_is_one():
    """The positions of `segment_sum` were called as its result, and the copy of an input as the input."""
    at = mg.asarray([0, 1, 2, 1])
    marks = mg.viz.memory(lambda x: (mg.segment_sum(mg.tanh(x), at, 3) ** 2).mean(), mg.ones((4, 2))).marks
    rows = {title.partition(",")[0]: [name for name, _ in rows] for title, rows in marks.values()}
    assert rows["segment sum"] == ["segment sum: where: int64", "segment sum, in parts"], "only the result has its name"
    assert rows["mean"] == ["mean: sum, in parts", "mean"]
    weights = mg.ones(4)
    for f, name in ((lambda x: mg.exp(x * weights), "exp(x · weights)"), (lambda x: x.reshape(2, 2) + 1, "cotangent")):
        marks = mg.viz.memory(f, mg.ones(4, requires_grad=True)).marks
        assert f"copy of {name}" in {name for title, rows in marks.values() for name, _ in rows}


def test_what_is_kept_has_its_own_name_and_not_that_of_its_reader():
    """`a @ x` for the gradient of w, and both factors of c."""

    def f(a, x, w):
        b = a @ x @ w
        c = b * mg.exp(b)
        return c.sum()

    a, x, w = mg.ones((3, 3)), mg.ones((3, 2)), mg.ones((2, 2), requires_grad=True)
    marks = mg.viz.memory(f, a, x, w).marks
    titles = {key: title.partition(", kept")[0] for key, (title, _) in marks.items() if "axis" not in key}
    kept = {titles[key] for key in titles if key.startswith("s1.")}
    assert titles["s1.0"] == "a @ x" and {"b", "exp(b)"} <= kept and not {"c", "a @ x @ w"} & kept


def test_what_a_layer_keeps_of_another_is_named_after_that():
    class Net(mg.nn.Module):
        def __init__(self):
            self.first, self.head = mg.nn.Tanh(), mg.nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.first(x))

    net = Net()
    marks = mg.viz.memory(lambda x: net(x).sum(), mg.ones((3, 4), requires_grad=True)).marks
    title, [(name, _)] = marks["s1.0"]
    assert title.startswith("first, kept") and name == "tanh (3, 4)"
    assert not [title for title, _ in marks.values() if title.startswith("head, kept")]


@pytest.mark.skipif(not is_available(), reason="llvmlite is not installed")
def test_where_programs_of_eager_mode_need_less_than_fusing_the_page_says_so():
    """A function that runs as a program keeps no value between its operations."""
    x = mg.ones((100, 100), requires_grad=True)

    def f(x):
        for _ in range(3):
            x = mg.gelu(x)
        return x.sum()

    with mg.eager_programs(True):
        eager, *_ = mg.viz.memory(f, x).text().splitlines()
    with mg.eager_programs(False):
        plain = mg.viz.memory(f, x).text().splitlines()[0]
    assert "; compiled functions are drawn" in eager and "compiled" not in plain


def test_gradients_inside_a_function_belong_to_its_forward_pass():
    """The border of the phases is where the backward pass of the call begins."""
    x, v = mg.ones(6, requires_grad=True), mg.ones(6)

    def f(x):
        return (mg.jvp(mg.grad(lambda x: (mg.tanh(x) * x).sum()), (x,), (v,))[1] ** 2).sum()

    way = eager_way(f, x, backward=True)
    phases = [phase for phase, _ in way.paths]
    assert phases == ["forward"] * way.middle + ["backward"] * (len(phases) - way.middle)
    assert ("forward", "inner gradients") in way.paths and ("forward", "tanh(x) · x") in way.paths
    assert {"tangents: multiply", "tangents of tanh(x) · x"} <= {life.name for life in way.lives}
    assert {part for _, part in way.paths[way.middle :]} == {"gradients"}
    between = sum(life.bytes for life in way.lives if life.begin < way.middle <= life.end)
    assert f"{between} B between" in way.say and between <= way.held[way.middle]


def test_a_value_has_one_name_and_one_line_in_eager_mode_and_with_checkpoints():
    x, v, w = mg.ones((4, 4), requires_grad=True), mg.ones((4, 4)), mg.ones((4, 4), requires_grad=True)

    def product(x):
        slope = mg.grad(lambda x: (mg.tanh(x) * x).sum())
        return (mg.jvp(slope, (x,), (v,))[1] ** 2).sum()

    def attention(x):
        scores = x @ w
        weights = mg.softmax(scores)
        for _ in range(2):
            weights = mg.tanh(weights)
        return (weights @ x).mean()

    def penalty(x):
        return (mg.grad(lambda x: mg.exp(x).sum())(x) * x).sum()

    for f in (product, attention, penalty):
        with mg.eager_programs(False):
            eager, (kept, *_) = eager_way(f, x, backward=True), memories._taped(tape_of(partial(f, x)), None)
        known = {(life.name, life.where) for life in eager.lives}
        assert not {life.name for life in kept.lives if (life.name, life.where) not in known}
        parts = {path[-1] for path in eager.paths}
        assert not {path[-1] for path in kept.paths if path[-1] not in parts}


@pytest.mark.parametrize("programs", [False, True])
def test_only_values_of_a_name_have_it(programs):
    """What `batch_norm` computes last is a running variance, and not the value of the call."""
    x, mean, variance = mg.ones((4, 3), requires_grad=True), mg.zeros(3), mg.ones(3)

    def f(x):
        y = mg.batch_norm(x, mean, variance, training=True)
        z = y * 2
        return z.sum()

    with mg.eager_programs(programs):
        sizes = {life.name: life.bytes for life in eager_way(f, x, backward=True).lives}
    assert sizes["z"] == x.nbytes and sizes.get("y", x.nbytes) == x.nbytes


def test_what_leads_to_one_value_is_one_part():
    """The operations of a call, and in forward mode a value and its tangents: their boxes have room for a name."""
    x, v = mg.ones(6, requires_grad=True), mg.ones(6)
    book = mg.viz.memory(lambda x: (mg.jvp(lambda x: mg.tanh(x) * x, (x,), (v,))[1]).mean(), x)
    parts = [title for key, (title, _) in book.marks.items() if key.startswith("s0.axis0.")]
    assert parts == ["tanh(x)", "tanh(x) · x", "mean", "gradients"]
    rows = dict(next(rows for title, rows in book.marks.values() if title.startswith("tanh(x), made")))
    assert {*rows} == {"tanh(x)", "3 arrays of tangents of tanh(x)"}


def test_rows_of_a_fused_program_are_named_by_what_they_hold():
    """Neither by the number of a result nor by an operation without its phase."""
    x, lstm = mg.ones((3, 4), requires_grad=True), mg.nn.LSTM(4, 4)

    def choice(x):
        y = mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: mg.exp(x).sum(), x)
        return y * 1.0

    for f in (choice, lambda x: mg.cond(x.sum() > 0, mg.sum, mg.mean, x), lambda x: (lstm(x)[0] ** 2).sum()):
        way = memories._fused(memories._titles(FunctionCall(mg.jit(f), (x,))))
        words = {path[-1] for path in way.paths} | {life.name for life in way.lives}
        assert not [word for word in words if re.search(r"\[\d\]$", word)]
        backward = {life.name for life in way.lives if way.paths[life.begin][0] == "backward"}
        known = "∂|gradients: |sum of gradients|x.sum|work memory of ∂"
        assert all(re.match(known, name) for name in backward), backward
        assert "y" in words or f is not choice
        assert "LSTM" not in {life.name for life in way.lives}, "all are of that layer"


def test_a_wide_layer_has_its_name_where_there_is_room():
    """A layer that is as thick in a short part as in a long one, at another height."""
    lives = [Life("a", 100, 0, 10, None), Life("b", 200, 2, 2, None)]
    first = Life("first", 100, 0, 0, None)
    paths = [("", "first"), *[("", "tanh(nodes @ weight)")] * 10]
    moved = [first, *[life._replace(begin=1 + i) for i, life in enumerate(lives)]]
    moved = [life._replace(home=paths[life.begin]) for life in moved]
    way = memories.Way("eager", paths, moved, memories.MADE)
    chart = memories._Stack(way, "s", {}, way)
    assert "tanh(nodes @ weight)" in words_of(chart)


def test_the_axis_of_memory_names_parts_and_not_their_operations():
    """Steps of one part that follow each other share a name; what belongs to no module has that of its call."""
    step, x = training_step()
    way = eager_way(step, x)
    steps = [part for _, part in way.paths]
    assert {"up", "down", "gradients"} <= {*steps} and not {"matmul", "permute_dims"} & {*steps}
    runs = [name for name, _ in groupby(steps)]
    assert len(runs) < len(steps)
    words = words_of(mg.viz.memory(step, x).pages[0][0].drawing)
    assert words.count("up") <= runs.count("up") + 4, "once for each run, and once in the chart for each phase"


def test_a_number_of_arrays_is_no_factor_of_a_formula():
    """`2 × a` is what the code computes, and not two values."""
    def f(x):
        for _ in range(2):
            x = x * x
        return x.sum()

    lives = eager_way(f, mg.ones(4, requires_grad=True), backward=True).lives
    names = [name for name, _ in memories.alike([life._replace(name="a · a") for life in lives[:2]])]
    assert names == ["2 arrays of a · a"]


def test_several_results_are_counted():
    x, layer, head = mg.ones((3, 7, 5), requires_grad=True), mg.nn.LSTM(5, 8, batch_first=True), mg.nn.Linear(8, 1)
    book = mg.viz.memory(lambda x: (head(layer(x)[0])[:, -1] ** 2).mean(), x)
    names = {name for key, (_, rows) in book.marks.items() if "axis" not in key for name, _ in rows}
    assert [name for name in names if name.endswith(" 7 results")]
    assert not [name for name in names if "(3, 32), (3, 32)" in name]
    taped = [page.say for [page] in book.pages if " checkpoint" in page.say.partition(":")[0]]
    left_out = ["numbers that keep no less than fewer are left out" in say for say in taped]
    assert left_out == [False, *[True] * (len(taped) - 1)] and len(taped) > 2


def test_what_begins_a_gradient_is_added_to_nothing_and_is_no_sum():
    def f(x):
        return mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: mg.exp(x).sum(), x)

    fused = memories._fused(memories._titles(FunctionCall(mg.jit(f), (mg.ones(4, requires_grad=True),))))
    assert "sum of gradients" not in {life.name for life in fused.lives} | {part for _, part in fused.paths}


def test_what_eager_mode_holds_and_no_rule_needs_is_not_kept():
    """The result, and a sum of rows that begins with zeros."""
    edges, x = mg.asarray([0, 1, 1, 2]), mg.ones((3, 2), requires_grad=True)
    with mg.eager_programs(False):
        pages = mg.viz.memory(lambda x: (mg.segment_sum(mg.tanh(x)[edges], edges, 3) ** 2).mean(), x).pages
    says = [page.say for [page] in pages]
    sizes = [int(re.search(r"(\d+) B between", say)[1]) for say in says[:2]]
    assert sizes[0] - sizes[1] == 4 * 3 * 2 + 4
    assert ["unlike in eager mode" in say for say in says] == [False, *[True] * (len(says) - 2), False]


def test_names_of_layers_lie_above_all_layers():
    """In a narrow chart, they are wider than their layers."""
    net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    way = eager_way(lambda x: net(x).sum(), mg.ones((4, 8)), backward=True)
    svg = memories._Stack(way, "s", {}, way).to_svg("")
    first = min(svg.index(f">{name}<") for name in ("0 Tanh", "1 Linear", "2 Tanh") if f">{name}<" in svg)
    assert svg.rindex('stroke-width="0.7"') < first


def test_what_keeps_nothing_has_no_chart_of_that():
    book = mg.viz.memory(lambda a, b: a * a + b, mg.asarray(2.0, requires_grad=True), mg.asarray(1.0))
    assert book.knobs[0].settings == ("eager", "fused")


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
    eagerly, fused = eager_way(step, mg.ones((4, 8))), memories._fused([titles])
    assert [phase for phase, _ in groupby([phase for phase, _ in eagerly.paths])] == ["forward", "backward", "update"]
    for way in (eagerly, fused):
        assert {phase for phase, _ in way.paths} >= {"forward", "backward", "update"}
        assert {"0 Linear", "2 Linear"} <= {part for kind, part in way.layers if kind == "backward"}
    assert {"0 Linear", "2 Linear"} <= {part for phase, part in fused.paths if phase == "update"}
    words = words_of(mg.viz.memory(step, mg.ones((4, 8))).pages[0][0].drawing)
    assert ", forward, backward, update, " in ", ".join(words)
    assert "forward" not in words_of(mg.viz.memory(mg.exp, mg.ones(8)).pages[0][0].drawing)


def test_an_update_in_the_code_is_an_update():
    """Without an optimizer: what runs without gradients after the backward pass."""
    step, x = training_step()
    phases = [phase for phase, _ in groupby([phase for phase, _ in eager_way(step, x).paths])]
    assert phases == ["forward", "backward", "update"]


def test_new_weights_that_are_returned_are_an_update():

    def step(w, x):
        return w - 0.1 * mg.grad(lambda w: ((x @ w) ** 2).sum())(w)

    w, x = mg.ones((8, 8)), mg.ones((16, 8))
    phases = [phase for phase, _ in groupby([phase for phase, _ in eager_way(step, w, x).paths])]
    assert phases == ["forward", "backward", "update"]
    words = words_of(mg.viz.memory(step, w, x).pages[0][0].drawing)
    assert {"made in the forward pass", "made in the update"} <= {*words}


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


def peaks_of(view):
    """The most bytes of each way, as its chart says."""
    said = [view.marks[f"s{number}.most"][0].removeprefix("at most ") for number in range(len(view.pages))]
    return dict(zip(view.knobs[0].settings, said))


def test_the_ways_of_memory_are_compared_with_those_of_their_measure():
    """What is in use with what is in use, and what is kept with what is kept."""
    layer = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    view = mg.viz.memory(lambda x: (layer(x) ** 2).sum(), mg.ones((4, 8)))
    names = [*view.knobs[0].settings]
    assert names[:2] == ["eager", "0 checkpoints"] and names[-1] == "fused" and len(names) > 3
    peaks = peaks_of(view)
    assert [peaks[name].split()[2] for name in names] == ["in", *["kept"] * (len(names) - 2), "in"]
    for (page,), name in zip(view.pages, names):
        lines = [word for word in words_of(page.drawing) if word.partition(":")[0] in names]
        assert lines and all(("kept" in line) == ("kept" in peaks[name]) for line in lines), name
    assert {words.split()[2] for words in peaks_of(mg.viz.memory(mg.exp, mg.ones(8))).values()} == {"in"}


def three_lines(x):
    a = 2 * x
    return a * a + a


def test_a_kept_value_is_drawn_under_the_part_that_reads_it():
    """`a` is read by the rule of `a * a`: it lasts until the backward pass has left that part."""
    x = mg.asarray(3.0, requires_grad=True)
    way, *_ = memories._taped(tape_of(lambda: three_lines(x)), None)
    [life] = way.lives
    assert [part for _, part in way.paths[life.begin : life.end + 1]] == ["a · a", "a · a + a", "a · a + a", "a · a"]
    assert "until backward: a · a" in way.facts([life])[0][1]


def test_what_is_kept_is_counted_without_the_results():
    """`a` alone is kept, and between the two passes the result is in use, too."""
    view = mg.viz.memory(lambda x: three_lines(x).sum(), mg.ones(1000, requires_grad=True))
    assert peaks_of(view)["0 checkpoints"] == "4 kB kept"
    assert all("4 kB between forward and backward pass" in view.pages[at][0].say for at in (0, -1))


def test_copies_of_what_is_kept_are_counted():
    """Each round keeps -k, which the program computes once, and copies for each of its rules."""

    def swing(x, v, k):
        for _ in range(5):
            v = v + 0.1 * (-k * x)
            x = x + 0.1 * v
        return (x * x).sum()

    given = mg.ones(3, requires_grad=True), mg.zeros(3), mg.asarray(2.0, requires_grad=True)
    shown = programs_of(FunctionCall(mg.jit(swing), given), "memory")[0]
    plan = shown.program.plan
    ends = [life.bytes for life in lives_of(plan) if life.output >= 1]  # the first output is the result
    kept = plan.outputs[1:]
    assert any(plan.copied.keys() - {0})
    assert sum(ends) == sum([read.size * plan.buffers[read.buffer].dtype.itemsize for read in kept])


def test_a_name_that_does_not_fit_into_a_bar_is_left_out():
    chart = Chart(100.0, 50.0)
    for begin, wide, name in ((0.0, 2.0, "blocks[3]"), (10.0, 80.0, "blocks[4]"), (90.0, 40.0, "backward")):
        chart.bar(begin, 0.0, wide, 13.0, "quiet", "", name)
    assert words_of(chart) == ["blocks[4]"], "no text is cut"


def test_heights_in_the_memory_view_are_bytes():
    """The peak of eager mode, and the line of the fused program in the same chart."""
    step, x = training_step()
    view, way = mg.viz.memory(step, x), eager_way(step, x)
    svg = view.to_svg()
    top, height = map(float, re.search(r'<rect x="40" y="(\d+)" width="960" height="(\d+)"', svg).groups())
    peak = float(re.search('<circle cx="[^"]+" cy="([^"]+)"', svg)[1])
    line = float(re.search('<path d="M40 ([^L]+)L1000 [^"]+" fill="none" stroke="#[^"]+" stroke-width="1.6"', svg)[1])
    fused = peaks_of(view)["fused"]
    most = float(fused.partition(" kB in use")[0]) * 1000
    assert (top + height - line) / (top + height - peak) == pytest.approx(most / way.most, rel=0.01)


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
    assert views[0].text().splitlines()[-1].split(";")[0] == views[1].text().split(";")[0]
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


def test_tensors_share_memory_only_if_an_element_lies_in_both():
    """Two rows of a matrix, its even and its odd columns, and an empty view lie in one buffer, and share nothing."""
    x = mg.zeros((4, 6))
    view = mg.viz.memory(x=x, top=x[0], low=x[1], even=x[:, ::2], odd=x[:, 1::2], back=x[::-1], none=x[:0])
    shares = {title: rows[-1][1] for title, rows in view.marks.values()}
    assert shares["x"] == "top, low, even, odd, back" and shares["none"] == "nothing"
    assert shares["top"] == "x, even, odd, back" and shares["even"] == "x, top, low, back"
    assert "even[0,0] is 0.0, in cell 0" in view.to_svg()
    assert {">()<", ">4×<"} <= {*re.findall(">[^<>]+<", mg.viz.memory(
        a=mg.asarray(7.0), b=mg.broadcast_to(mg.ones(1), (4,))).to_svg())}, "an index, not the value"


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
        assert "fused at most" in repr(mg.viz.memory(Net(), mg.ones((32, 8))))
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


@pytest.mark.parametrize("shape", [(5, 4), (2, 5, 4)])
def test_the_result_of_a_linear_layer_is_not_called_as_its_bias(shape):
    """Of more than two dimensions, the call ends with a view."""
    layer = mg.nn.Linear(4, 3)
    f = mg.jit(lambda x: mg.tanh(layer(x) @ mg.ones((3, 2))))
    way = memories._fused(memories._titles(FunctionCall(f, (mg.ones(shape),))))
    assert not [life.name for life in way.lives if "bias" in life.name.replace("∂bias", "")]
