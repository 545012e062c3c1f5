"""The timeline: what is measured of calls, what models predict of programs, and its forms."""

import json
import re
from functools import cache
from itertools import accumulate, pairwise

import pytest

import minigrad as mg
from minigrad.compile.fusion.count import Count
from minigrad.compile.look import roofline
from minigrad.compile.look.record import Record
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.profiler import Event
from minigrad.compile.running.steps import COPIES
from minigrad.support.source import line_of
from minigrad.viz import timelines
from minigrad.viz.compiled import Shown
from minigrad.viz.drawing import KINDS
from minigrad.viz.lanes import CLOCK, Bar, Work, merged
from minigrad.viz.phases import PHASES
from minigrad.viz.predictions import on_workers
from minigrad.viz.repeats import Loop
from minigrad.viz.timelines import timeline_of
from tests.viz.ten_programs import TEN
from tests.viz.test_compiler_views import Net, f, training_step

X, W, B = mg.ones((64, 32)), mg.ones((32, 32)), mg.ones(32)
US = 1e-6


def event(name, begin, end, launches=1, thread="MainThread"):
    return Event(name, thread, begin * US, end * US, Count(8, 4, 2, launches))


def two(x, y):
    return (x @ x).sum() + (y @ y).sum()


def curvature(x):
    """A Hessian-vector product of Rosenbrock's function."""
    g = mg.grad(lambda x: mg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))
    return mg.sum(mg.grad(lambda x: mg.sum(g(x) * mg.asarray([1.0, 0.0, 0.0])))(x))


# what is measured -----------------------------------------------------------------------------------------------------


def test_bands_of_known_times():
    eager = Record("eagerly", 100 * US, [event("matmul", 10, 30), event("tanh", 60, 70)])
    program = Record("as a program", 40 * US, [event("kernel_1", 20, 30)])
    view = timeline_of([eager, program])
    assert repr(view) == "<timeline: 2 launches eagerly, 1 as a program>"
    assert [band.says for band in view.bands] == [
        "100 µs, of which 30 µs in 2 launches, 70 % Python and its checks",
        "40 µs, of which 10 µs in 1 launch, 75 % Python"]
    assert view.data()["unit"] == "s" and view.data()["bands"][0]["lanes"] == [
        ["", [[10.0, 30.0, 0], [60.0, 70.0, 1]], [[0.0, 10.0, 2], [30.0, 60.0, 2], [70.0, 100.0, 2]]]]
    assert view.data()["works"][0]["rows"] == [("step", "matmul"), ("bytes", "12 B"), ("operations", "2")]
    assert view.says == (
        "The program is 2.5 times as fast as eager mode: 40 µs less in Python, 20 µs less in launches.")
    slow = timeline_of([eager, Record("as a program", 400 * US, [])])
    assert slow.says == (
        "The program takes 4.0 times as long as eager mode: 330 µs more in Python, 30 µs less in launches.")
    same = timeline_of([eager, eager])
    assert same.says.startswith("The program is 1.0 times as fast as eager mode: 0 ")


@pytest.mark.parametrize("gradient", [True, False])
def test_all_bytes_of_a_loop_are_counted_with_those_of_the_rounds_that_it_keeps(gradient):
    w, xs = mg.asarray(0.5, requires_grad=gradient), mg.linspace(0, 1, 12)
    f = mg.jit(lambda w, xs: mg.scan(lambda h, x: (mg.tanh(w * h + x), h), mg.asarray(0.0), xs)[1].sum())
    view = mg.viz.timeline(f, w, xs, runs=1)
    bars = view.bands[1].bars
    assert sum(bar.work.cost.bytes for bar in bars) == f.cost(w, xs).program.bytes
    kept = [bar for bar in bars if bar.work.label.endswith("rounds kept for the gradient")]
    panels = [dict(work["rows"]) for work in view.data()["works"] if work["label"].endswith("kept for the gradient")]
    copied = {"bytes": "96 B", "copied": "in each round of the loop, between its steps"}
    assert [{key: panel.get(key) for key in copied} for panel in panels] == [copied] * gradient
    assert [(bar.end - bar.begin, bar.work.cost.launches) for bar in kept] == [(0.0, 0)] * gradient


def test_threads_have_lanes_and_python_is_what_no_thread_runs():
    events = [event("kernel_0", 0, 5), event("kernel_1", 1, 4, thread="pool_0")]
    events.append(event("kernel_2", 6, 8, thread="pool_1"))
    (band,) = timeline_of([Record("as a program", 9 * US, events)]).bands
    assert [lane.name for lane in band.lanes] == ["", "thread 2", "thread 3"]
    python = [[(round(bar.begin / US), round(bar.end / US)) for bar in lane.python] for lane in band.lanes]
    assert python == [[(5, 6), (8, 9)], [], []]


def test_checks_are_compared_together_with_python_which_makes_them_in_eager_mode():
    program = Record("as a program", 40 * US, [event("kernel_1", 20, 30), Event("check_1", "Main", 0, 5 * US, Count())])
    view = timeline_of([Record("eagerly", 100 * US, [event("gather", 10, 30)]), program])
    assert view.says == ("The program is 2.5 times as fast as eager mode: 50 µs less in Python and checks of indices, "
                         "10 µs less in launches.")


def test_a_check_of_indices_is_a_step_and_not_python():
    check = Event("check_1", "MainThread", 30 * US, 50 * US, Count())
    view = timeline_of([Record("as a program", 100 * US, [event("kernel_1", 20, 30), check])])
    (band,) = view.bands
    assert band.says == "100 µs, of which 10 µs in 1 launch, 20 µs in checks of indices, 70 % Python"
    assert sum(bar.end - bar.begin for bar in band.lanes[0].python) == pytest.approx(70 * US)
    assert band.bars[1].work.label == "a check of indices"
    colours = {text: fill for _, fill, text in view.data()["legend"]}
    assert len({*colours.values()}) == len(colours) and {"Python", "a check of indices"} < {*colours}


def test_the_sentence_about_workers_names_checks_which_take_their_time():
    table, places = mg.ones((8, 4)), mg.asarray([0, 2])
    view = mg.viz.timeline(lambda x, i: mg.tanh(x[i]).sum(), table, places, runs=1, workers=2)
    model = view.bands[-1]
    check = next(bar for bar in model.bars if bar.work.kind == "check")
    assert check.end > check.begin and "steps and checks, in measured times" in view.says
    assert ("checks", "that indices for gather are below 8") in check.work.rows and check.work.made


LABELS = mg.arange(64) % 3


def test_checks_are_named_by_what_the_code_calls_in_all_bands():
    table, w = mg.ones((8, 4), requires_grad=True), mg.ones((4, 3))

    def step(table, rows, labels):
        found = mg.segment_sum(mg.tanh(table)[rows], rows + 1, 64) @ w
        return mg.gradients(mg.cross_entropy(found, labels), table)

    with mg.eager_programs():
        view = mg.viz.timeline(step, table, mg.asarray([0, 2, 5]), LABELS, runs=1)
    eager, program = [[dict(bar.work.rows)["checks"] for bar in band.bars if bar.work.kind == "check"]
                      for band in view.bands]
    assert {*eager} == {"that indices for cross_entropy are below 3"} and len(eager) == 2, "and its gradient"
    assert {*eager, "that indices for segment_sum are below 64"} <= {*program}


def test_a_check_is_one_row_of_both_tables_of_all_bands():
    w = mg.ones((32, 5), requires_grad=True)

    def step(x, labels):
        loss = mg.cross_entropy(x @ w, labels)
        return loss, mg.gradients(loss, w)

    with mg.eager_programs():
        data = mg.viz.timeline(step, X, LABELS, runs=1).data()
    for band in data["bands"][:2]:
        works = [data["works"][bar[2]] for lane in band["lanes"] for bar in [*lane[1], *lane[2]]]
        checks = [(work["label"], work["row"], work["section"]) for work in works if work["kind"] == "check"]
        assert {*checks} == {("a check of indices",) * 3}, checks
        assert {work["section"] for work in works if not work["name"]} <= {"Python"}


def test_what_is_outside_all_layers_needs_no_modules_to_have_a_name():
    works = mg.viz.timeline(lambda x: mg.cond(x.sum() > 0, lambda: x * 2, lambda: x), X, runs=1).data()["works"]
    assert {work["section"] for work in works} - {"Python"} == {"x.sum() > 0 was true", "all else"}


def test_checks_at_a_place_that_has_several_sizes_say_each():
    def f(x, y):
        return sum([mg.cross_entropy(x[:, :size], y) for size in (3, 4)])

    with mg.eager_programs():
        view = mg.viz.timeline(f, mg.ones((64, 4)), LABELS, runs=1)
    for band in view.bands:
        said = [dict(bar.work.rows)["checks"] for bar in band.bars if bar.work.kind == "check"]
        assert sorted(said) == [f"that indices for cross_entropy are below {size}" for size in (3, 4)]


def test_eager_mode_and_the_program_have_one_name_for_what_a_function_of_the_library_computes():
    def f(x, rows):
        return (mg.segment_sum(mg.tanh(x), rows, 3) * 2).mean()

    eager, program = mg.viz.timeline(f, mg.ones((4, 2)), mg.asarray([0, 1, 1, 2]), runs=1).bands
    found = [bar.work.label for bar in eager.bars]
    assert found == ["tanh(x)", "segment sum", "segment sum", "segment_sum(…) · 2", "mean: sum", "mean: divide"]
    titles = [part for bar in program.bars for part in bar.work.label.split(", ")]
    assert {*found} <= {*titles}, titles


@pytest.mark.parametrize("rows", [4, 64])  # few rows are computed operation by operation
def test_launches_of_eager_mode_have_the_words_of_the_program(rows):
    net, x = mg.nn.Sequential(mg.nn.Linear(3, 40), mg.nn.BatchNorm1d(40), mg.nn.ReLU()), mg.ones((rows, 3))

    def step(x, labels):
        return mg.gradients(mg.cross_entropy(net(x), labels), [*net.parameters()])

    eager, program = mg.viz.timeline(step, x, mg.arange(rows) % 3, runs=1).bands
    found = {bar.work.label for bar in eager.bars}
    assert {"linear product", "∂weight"} <= found & {bar.work.label for bar in program.bars}
    assert {"batch norm", "∂batch norm", "linear bias"} <= {label.partition(":")[0] for label in found}
    back = {bar.work.label for bar in eager.bars if bar.work.colours == "backward"}
    again = {"mean: sum", "mean: divide", "batch norm: subtract"}  # of a forward pass
    assert all(label[0] == "∂" or label in ("gradients: full", "sum of gradients") for label in back - again), back


def test_what_is_computed_again_for_a_gradient_is_no_part_of_the_gradient():
    x = mg.ones((4, 5), requires_grad=True)
    kept = mg.checkpoint(lambda x: mg.softmax(mg.tanh(x) * x))
    eager, _ = mg.viz.timeline(lambda x: mg.gradients((kept(x) * x).sum(), x), x, runs=1).bands
    found = [bar.work.label for bar in eager.bars]
    assert "∂softmax" in found and not {"∂softmax: tanh", "∂softmax: exp"}.intersection(found), found


def test_no_function_of_the_user_is_taken_for_one_of_the_library_that_has_its_name():
    def softmax(x):
        return mg.exp(x) / mg.sum(mg.exp(x))

    eager, _ = mg.viz.timeline(lambda x: softmax(x) * 2, X, runs=1).bands
    assert [bar.work.label for bar in eager.bars if "softmax" in bar.work.label] == ["softmax(x) · 2"]


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])  # values that lie turned in memory are added elsewhere
def test_sums_of_gradients_say_so_in_all_bands(axes):
    w = mg.ones((64, 64), requires_grad=True)

    def shortcut(x):
        h = mg.permute_dims(mg.tanh(x @ w), axes)
        return mg.gradients((mg.relu(h @ w) @ w + h).sum(), w)

    for band in mg.viz.timeline(shortcut, mg.ones((64, 64)), runs=1).bands:
        adds = [bar.work.label for bar in band.bars if dict(bar.work.rows).get("computes", bar.work.name) == "add"]
        assert "sum of gradients" in adds and "add" not in adds, adds


def test_a_sum_in_a_rule_of_the_user_is_no_sum_of_gradients():
    twice = mg.custom_vjp(lambda x: x * 2)
    twice.gradient(lambda kept, g: g + g)
    x = mg.ones(3, requires_grad=True)
    eager = mg.viz.timeline(lambda x: mg.gradients(twice(x).sum(), x), x, runs=1).bands[0]
    assert "sum of gradients" not in {bar.work.label for bar in eager.bars}


@pytest.mark.parametrize(("machine", "bound"), [
    (roofline.Machine(1e15, 1e15, 1e-9), "launch"), (roofline.Machine(1e15, 1e13, 1e-15), "flops")])
def test_a_share_is_stated_where_more_than_a_launch_limits(monkeypatch, machine, bound):
    """The time of a launch differs from call to call: beside it, a kernel may seem faster than its limit."""
    monkeypatch.setattr(roofline, "machine", cache(lambda: machine))
    data = mg.viz.timeline(f, X, W, B, runs=1).data()
    (product,) = [work for work in data["works"] if work["name"] == "matmul_1"]
    assert dict(product["rows"]).get("limit of this machine", "by launch").endswith(f"by {bound}")
    assert bool(product["best"]) == (bound == "flops") and all(work["best"] >= 0 for work in data["works"])
    taken = [bar[1] - bar[0] for bar in data["bands"][1]["lanes"][0][1] if data["works"][bar[2]] is product]
    assert all(product["best"] <= time + 1e-3 for time in taken), "nothing is cut off"


def test_copies_are_no_kernels():
    works = {bar.work.name: bar.work for bar in mg.viz.timeline(f, X, W, B, runs=1).bands[1].bars}
    assert all(work.kind == "other" for name, work in works.items() if name == COPIES)


def test_a_loop_is_its_steps():
    events = [event("scan_1/kernel_0", 1, 2), event("scan_1/kernel_0", 3, 4), event("scan_1", 0, 5, launches=0)]
    view = timeline_of([Record("as a program", 9 * US, events)])
    assert [(bar.work.name, bar.work.label) for bar in view.bands[0].bars] == [
        *[("scan_1/kernel_0", "scan_1")] * 2, ("scan_1: kept", "scan_1: rounds kept for the gradient")]


def test_steps_inside_of_a_loop_are_named_by_what_they_compute():
    class Named(mg.nn.Module):
        def __init__(self):
            self.lstm = mg.nn.LSTM(4, 4, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0].sum()

    view = mg.viz.timeline(Named(), mg.ones((2, 5, 4)), runs=1)
    labels = {bar.work.label for bar in view.bands[1].bars}
    assert not [label for label in labels if re.search(r"(kernel|matmul|scan)_\d", label)]
    assert {"lstm: sigmoid, multiply … add", "lstm: linear: add, add"} < labels, "a module is named once"
    assert not [label for label in labels if "recurrent" in label], "a function that the code does not call"
    book = mg.viz.memory(Named(), mg.ones((2, 5, 4), requires_grad=True))
    found = str(book.data())
    assert "work memory of ∂lstm" in found and "library -1" not in found, "it is not the gradient of one weight"


def products_of(f, x):
    bars = mg.viz.timeline(f, x, runs=1).bands[1].bars
    return [bar.work.label.rpartition(": ")[2] for bar in bars if "/matmul" in bar.work.name]


def test_products_of_a_function_are_named_after_their_operands_if_there_are_several():
    def attending(h, x):
        return mg.scaled_dot_product_attention(h, x, 2 * x), None

    found = products_of(lambda x: mg.scan(attending, x[0], x)[0], mg.ones((5, 2, 3)))
    assert found == ["state · k", "softmax · v"] * 5
    for directions in (False, True):
        layer = mg.nn.LSTM(3, 4, bidirectional=directions)
        found = products_of(lambda x, layer=layer: layer(x)[0], mg.ones((5, 2, 3)))
        assert found == ["linear product"] * 5 * (1 + directions)


@pytest.mark.parametrize(("start", "label"), [
    (1, "x.sum() > 0 was true: exp(x)"), (-1, "x.sum() > 0 was false: x · 2")])
def test_steps_of_a_branch_say_which_one_ran_as_in_eager_mode(start, label):
    """The kernels of both branches have one name."""
    def f(x):
        return mg.cond(x.sum() > 0, lambda x: mg.exp(x), lambda x: x * 2, x)

    view = mg.viz.timeline(f, start * mg.ones(3), runs=1)
    assert [bar.work.label for bar in view.bands[1].bars if "/" in bar.work.name] == [label]
    for band in view.bands:
        assert [name for level in band.brackets for _, _, name in level] == [label.rpartition(": ")[0]]
    rows = {work["row"]: work["label"] for work in view.data()["works"]}
    assert rows[label] == label.rpartition(": ")[2], "eager mode and the program have one row"


def test_steps_of_two_branches_that_both_ran_have_the_words_of_their_cond():
    def step(c, x):
        return mg.cond(x > 0, lambda: mg.exp(c), lambda: c * 2), None

    view = mg.viz.timeline(lambda x: mg.scan(step, mg.ones(3), x)[0], mg.asarray([1.0, -1.0]), runs=1)
    works = {bar.work for bar in view.bands[1].bars if bar.work.name.count("/") == 2}
    labels = {work.label for work in works}
    assert len(labels) == 1 and not re.search("exp|multiply|kernel|true|false", *labels)
    assert {work.rows for work in works} == {()} and {work.section.layer for work in works} == {""}


def test_a_colour_means_one_thing():
    """Eager mode has two phases, and the program only one of them."""
    view = mg.viz.timeline(curvature, mg.ones(3), runs=1)
    colours = [entry[:2] for entry in view.data()["legend"]]
    assert len(colours) == len({*colours})
    program = [bar.work.section.phase for bar in view.bands[1].bars if bar.work.cost.flops]
    assert program and {*program} == {"backward"}


def test_what_jvp_computes_is_in_one_phase_in_eager_mode_as_in_the_program():
    energy = mg.grad(lambda x: (mg.tanh(x) ** 3).sum())
    view = mg.viz.timeline(lambda x, v: mg.jvp(energy, (x,), (v,))[1], W, W, runs=1)
    works = [bar.work for band in view.bands[:2] for bar in band.bars if bar.work.cost.launches]
    assert {work.section.phase for work in works} == {""}
    inner = [bar.work.label for bar in view.bands[0].bars if bar.work.section.layer == "inner gradients"]
    assert {"multiply", "tangents: multiply"} < {*inner}
    assert [name for level in view.bands[0].brackets for _, _, name in level] == ["inner gradients"]
    labels = [bar.work.label for bar in view.bands[0].bars]
    begin = labels.index(inner[0])
    assert labels[begin : begin + len(inner)] == inner, "tangents are computed beside them"


def test_tangents_in_eager_mode_have_the_phase_of_their_values_and_names_of_their_own():
    """A rule of forward mode may use a backward pass, as that of a product does."""
    eager = mg.viz.timeline(lambda x: mg.jvp(lambda x: mg.tanh(x @ x) * x, (x,), (x,))[1] ** 2, W, runs=1).bands[0]
    works = [bar.work for bar in eager.bars if bar.work.cost.launches]
    assert {work.section.phase for work in works} == {""}, "one phase"
    tangents = [work for work in works if work.label.startswith("tangents of ")]
    assert {work.label for work in tangents} == {
        "tangents of x @ x", "tangents of tanh(x @ x)", "tangents of tanh(x @ x) · x"}, "as in the view of memory"
    assert [work.label for work in works if work not in tangents] == [
        "x @ x", "tanh(x @ x)", "tanh(x @ x) · x", "jvp(…)[1]²"]


def test_launches_in_a_branch_have_the_names_of_the_code():
    eager = mg.viz.timeline(lambda x: mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: x.sum(), x), W, runs=1)
    assert [bar.work.label for bar in eager.bands[0].bars] == ["x.sum()", "x.sum() > 0", "x · x", "(x · x).sum()"]


@pytest.mark.parametrize("times", [(2.0, 1.0), (3.0, 3.0), (-5.0, -4.0)])
def test_strange_times_make_a_valid_page(times):
    view = timeline_of([Record("eagerly", 5 * US, [event("a", *times), event("b", 0, 1)])])
    data = json.dumps(view.data(), allow_nan=False)
    assert "b" in data and view.to_svg() and view.text() and all(bar.end >= bar.begin for bar in view.bands[0].bars)


def test_an_empty_record_has_a_page():
    view = timeline_of([Record("recorded", 0.0, [])])
    assert repr(view) == "<timeline: 0 launches recorded>" and view.text() == "recorded: no kernel" and view.to_html()


@pytest.mark.parametrize("options", [{}, {"runs": 0}])
@pytest.mark.parametrize(("function", "given"), [(lambda x: x[0], X), (lambda x: x * 2, 3.0)])
def test_a_call_that_computes_nothing_has_no_timeline(function, given, options):
    with pytest.raises(mg.MinigradError, match=r"nothing is computed here: .* or computed by Python"):
        mg.viz.timeline(function, given, **options)


def test_a_page_has_all_of_many_events_and_a_picture_those_that_it_can_show():
    events = [event(f"kernel_{i % 7}", i, i + 0.5) for i in range(30_000)]
    view = timeline_of([Record("as a program", 0.03, events)])
    data = view.data()
    bars = data["bands"][0]["lanes"][0][1]
    assert len(bars) == 30_000 and sum(data["works"][bar[2]]["cost"][0] for bar in bars) == 30_000
    assert view.to_svg().count("<rect") < 600 and len(view.to_html()) < 1_000_000


def test_merged_bars_have_all_their_time_and_the_colours_of_the_longest():
    works = Work("a", kind="library"), Work("b")
    bars = [Bar(0, 1, works[0]), Bar(1, 3, works[1])]
    (bar,) = merged(bars, 9.0)
    assert bar == Bar(0, 3, works[1])
    assert merged([], 1.0) == [] and len(merged(bars, 3.0)) == 2


def test_text_has_no_times(numpy_kernels):
    x = mg.ones((4, 4))
    view = mg.viz.timeline(lambda x: mg.tanh(x @ x).sum(), x, runs=2)
    assert view.text().splitlines()[0] == "eagerly: matmul, tanh, sum"
    assert "µs" not in view._repr_mimebundle_()["text/plain"]
    steps = view.text().splitlines()[1].removeprefix("as a program: ").split(", ")
    assert steps == [bar.work.name for bar in view.bands[1].bars]


def test_what_cannot_be_traced_is_timed_eagerly():
    view = mg.viz.timeline(lambda x: x.sum().item(), mg.ones(3), runs=1)
    assert repr(view) == "<timeline: 1 launch eagerly>" and "does not run as a program: item()" in view.says
    with pytest.raises(mg.ShapeError):
        mg.viz.timeline(f, X, mg.ones((3, 3)), B)  # the error of the function itself


def test_what_only_runs_as_a_program_has_no_eager_band(monkeypatch):
    def refused(*args):
        raise mg.MinigradError("a collective needs a program\nExpected: mg.jit")

    monkeypatch.setattr(timelines, "eager_record_of", refused)
    view = mg.viz.timeline(mg.tanh, X, runs=1)
    assert repr(view) == "<timeline: 1 launch as a program>"
    assert view.says.endswith("It does not run eagerly: a collective needs a program.")


def test_a_busy_machine_has_no_roof(monkeypatch):
    def busy(record):
        raise mg.MinigradError("the machine is busy: kernel_1 attained 9 GFLOP/s\nExpected: less")

    monkeypatch.setattr(Record, "roofline", busy)
    view = mg.viz.timeline(f, X, W, B, runs=1)
    why = "the machine is busy: kernel_1 attained 9 GFLOP/s"
    assert view.says.endswith(f"No share of the machine's limits is shown: {why}.")
    assert not any(work["best"] for work in view.data()["works"])


def test_each_launch_is_compared_with_the_roof(monkeypatch):
    monkeypatch.setattr(roofline, "machine", cache(lambda: roofline.Machine(1e15, 1e13, 1e-9)))
    view = mg.viz.timeline(f, X, W, B, runs=1)
    works = {work["name"]: work for work in view.data()["works"]}
    rows = dict(works["matmul_1"]["rows"])
    assert rows["operations"] == "131,072" and rows["limit of this machine"] == "0.0131 µs, by flops"
    limits = [value for bar in view.bands[1].bars for key, value in bar.work.rows if key == "limit of this machine"]
    assert "0.0131 µs, by flops" in limits and not any("launch" in limit for limit in limits), "it differs by program"


@pytest.mark.slow
def test_a_bar_has_its_line_its_layer_and_its_phase():
    step, x = training_step()
    view = mg.viz.timeline(step, x, runs=1)
    eager, program = [{bar.work for bar in band.bars} for band in view.bands[:2]]
    assert {work.section.phase for work in program} == {*PHASES} == {work.section.phase for work in eager}
    data = view.data()
    assert all(work.made for work in program | eager)
    codes = [work["code"] for work in data["works"]]
    lines = {excerpt["text"][excerpt["line"] - excerpt["first"]].strip() for excerpt in codes if excerpt}
    assert {"parameter -= rate * parameter.grad", "return self.down(mg.relu(self.up(x)))"} <= lines
    layers = {work["section"] for work in data["works"]}
    assert {"forward · up", "backward · up", "update · up", "forward · down"} <= layers
    drawn = view.to_svg()
    assert all(f">{phase}</text>" in drawn for phase in PHASES), "phases have names, and not a colour alone"
    assert {*PHASES} < {*KINDS}


def test_steps_of_several_modules_have_several_names():
    """The table sums the steps of one name."""
    step, x = training_step()
    works = mg.viz.timeline(step, x, runs=0).data()["works"]
    layers = {work["row"]: {each["section"].rpartition(" · ")[2] for each in works if each["row"] == work["row"]}
              for work in works}
    assert not {row: found for row, found in layers.items() if len(found) > 1}
    assert {"up: linear product", "down: update of weight"} <= layers.keys()


def test_a_layer_whose_name_begins_an_operation_is_named():
    class One(mg.nn.Module):
        def __init__(self):
            self.l = mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.l(x)

    net = One()
    rows = [work["row"] for work in mg.viz.timeline(lambda x: net(x).sum(), mg.ones((2, 2)), runs=0).data()["works"]]
    assert "l: linear product" in rows, rows


def test_brackets_name_the_phases_and_the_layers():
    step, *args = TEN["gpt"]()
    eager, program, *_ = mg.viz.timeline(step, *args, runs=1).bands
    for band, layers in ((eager, ["blocks[0]", "blocks[1]"]), (program, ["blocks[0]", "blocks[1]", "norm", "head"])):
        phases, rows = [[name for _, _, name in level] for level in band.brackets]
        assert {*phases} == {*PHASES} and phases[0] == PHASES[0]  # a part of the update may run early
        assert [*dict.fromkeys(name for name in rows if name in layers)] == layers
        assert all(a <= b <= c for level in band.brackets
                   for (_, a, _), (b, c, _) in pairwise(level))


def spring(x, rounds=6):
    y = mg.zeros(3)
    for i in range(rounds):
        if i:
            y = y + x
        y = mg.tanh(y * x)
    return y.sum()


def test_brackets_name_the_rounds_of_a_loop_in_eager_mode():
    """The first round has no sum."""
    eager = mg.viz.timeline(spring, mg.ones(3), runs=1).bands[0]
    parts = [(bar.work.name, bar.work.turn) for bar in eager.bars]
    rounds = [(name, f"round {i}") for i in range(6) for name in ("add", "multiply", "tanh")]
    assert parts == [("full", ""), *rounds[1:], ("sum", "")]
    assert [name for _, _, name in eager.brackets[-1]] == [f"round {i}" for i in range(6)]
    assert not any(bar.work.turn for bar in mg.viz.timeline(chain, mg.ones((3, 3)), runs=1).bands[0].bars)


def test_a_round_begins_where_the_condition_of_its_loop_is_computed():
    """Python computes the condition of later rounds elsewhere: at the end of the loop."""

    def grown(x):
        while (x * x).sum() < 4000.0:
            x = x * 2 + 1
        return x.sum()

    bars = mg.viz.timeline(grown, mg.asarray([1.0, 2.0]), runs=1).bands[0].bars
    rounds = [(name, f"round {i}") for i in range(5) for name in ("multiply", "sum", "less", "multiply", "add")]
    assert [(bar.work.name, bar.work.turn) for bar in bars] == [
        *rounds, ("multiply", ""), ("sum", ""), ("less", ""), ("sum", "")]


def test_a_first_round_with_an_operation_more_is_a_round():
    """The vector gets the dtype of the matrix in the first round."""

    def power(a):
        v = mg.ones(3)
        for _ in range(5):
            w = a @ v
            v = w / mg.sqrt((w * w).sum())
        return v @ (a @ v)

    bars = mg.viz.timeline(power, mg.ones((3, 3), dtype="float64"), runs=1).bands[0].bars
    names = "matmul", "multiply", "sum", "sqrt", "divide"
    rounds = [(name, f"round {i}") for i in range(5) for name in names]
    assert [(bar.work.name, bar.work.turn) for bar in bars] == [
        ("full", ""), ("astype", "round 0"), *rounds, ("matmul", ""), ("matmul", "")]
    assert {number for _, number, _ in Loop(8, 3, 4, before=7).turns()} == {*range(5)}, "also if it has many more"


def chain(x):
    return mg.tanh(x @ x @ x).sum()


@pytest.mark.parametrize("rows", [5, 8])
def test_rounds_compute_something(rows):
    """A scan copies all rows before its loop."""
    lstm = mg.nn.LSTM(3, 2)
    bars = mg.viz.timeline(lambda x: lstm(x)[0].sum(), mg.ones((rows, 1, 3)), runs=1).bands[0].bars
    rounds = {part: [bar.work.name for bar in bars if bar.work.turn == part] for part in {b.work.turn for b in bars}}
    assert rounds.keys() == {"", *[f"round {i}" for i in range(rows)]}
    assert all(rounds[f"round {i}"] == rounds["round 0"] for i in range(rows)) and rounds["round 0"][0] == "matmul"


def test_a_conversion_of_an_operand_has_not_the_name_of_the_value():
    def f(a, v):
        w = a @ v
        return w.sum()

    bars = mg.viz.timeline(f, mg.ones((3, 3), dtype="float64"), mg.ones(3), runs=1).bands[0].bars
    assert [(bar.work.name, bar.work.label) for bar in bars] == [
        ("astype", "astype"), ("matmul", "w"), ("sum", "w.sum()")]


def labels_of(f, *args):
    return [[bar.work.label for bar in band.bars] for band in mg.viz.timeline(f, *args, runs=1).bands]


def test_gradients_of_products_are_named_after_what_they_are_for():
    wq, wk = [mg.asarray(mg.random.normal((8, 8)).numpy_copy(), requires_grad=True) for _ in range(2)]

    def attention(x):
        q, k = x @ wq, x @ wk
        return mg.gradients(mg.softmax(q @ mg.swapaxes(k, -1, -2)).max(), [wq, wk])

    for labels in labels_of(attention, mg.random.normal((2, 10, 8))):
        assert {"∂wq", "∂wk", "∂q", "∂k"} <= {*labels}, labels


def test_equal_gradients_of_two_parameters_have_their_own_names():
    """The program computes them once."""
    cell = mg.nn.RNNCell(8, 16)

    def loss(x):
        h = mg.zeros((16, 16))
        for i in range(3):
            h = cell(x[i], h)
        return mg.gradients((h * h).sum(), [*cell.parameters()])

    eager, _ = labels_of(loss, mg.random.normal((3, 16, 8)))
    assert eager.count("∂bias_ih") == eager.count("∂bias_hh") == 3, eager


def test_what_a_backward_pass_computes_again_is_no_gradient():
    net = mg.nn.Sequential(mg.nn.Conv2d(3, 8, 3, padding=1), mg.nn.ReLU(), mg.nn.Conv2d(8, 8, 3, padding=1))
    x = mg.random.normal((4, 3, 8, 8))
    eager, program = mg.viz.timeline(lambda x: mg.gradients(net(x).sum(), [*net.parameters()]), x, runs=1).bands
    back = [bar.work.label for bar in eager.bars if bar.work.section.phase == "backward"]
    assert back.count("pad") == 2 and back.count("∂bias") >= 2
    found = {*back} - {"pad", "∂bias", "gradients: full", "∂relu"}
    assert found == {"∂weight", "∂conv2d: place", "∂conv2d input"}
    assert found <= {bar.work.label for bar in program.bars}


def test_a_step_of_two_phases_has_the_line_of_its_own():
    layer, x = mg.nn.Linear(8, 8), mg.ones((8, 8))

    def step(x):
        loss = (layer(x) ** 2).mean()
        loss.backward()
        return loss

    first = step.__code__.co_firstlineno
    program = mg.viz.timeline(step, x, runs=1).bands[1]
    both = [bar.work for bar in program.bars if bar.work.label.endswith(" + backward")]
    assert both and {line_of(work.made)[1] for work in both} == {first + 1}


def test_rounds_of_a_loop_have_brackets_in_the_program_too():
    lstm = mg.nn.LSTM(3, 4)
    bands = mg.viz.timeline(lambda x: lstm(x)[0].sum(), mg.ones((5, 2, 3)), runs=1).bands
    for band in bands:
        assert [name for _, _, name in band.brackets[-1]] == [f"round {i}" for i in range(5)]
    branch = mg.viz.timeline(lambda x: mg.cond(x.sum() > 0, mg.tanh, mg.exp, x), mg.ones(3), runs=1).bands[1]
    assert not any(bar.work.turn for bar in branch.bars)


def test_steps_of_a_jitted_function_in_eager_mode_have_the_words_of_its_code():
    """Also where it is called twice, and inside its loop."""
    inner = mg.jit(lambda a, b: mg.tanh(a @ b))
    loop = mg.jit(lambda x: mg.exp(mg.scan(lambda h, v: (mg.tanh(h @ v), None), x[0], x)[0]))
    x = mg.ones((8, 8))
    eager, program = mg.viz.timeline(lambda x: inner(x, x) + inner(x, 2 * x), x, runs=1).bands
    found = [bar.work.label for bar in eager.bars]
    assert found == ["x @ x", "tanh(x @ x)", "2 · x", "x @ b", "tanh(x @ b)", "inner(…) + inner(…)"]
    assert {"x @ x", "2 · x", "x @ b"} <= {bar.work.label for bar in program.bars}
    eager, _ = mg.viz.timeline(lambda x: loop(x) + loop(2 * x), mg.ones((3, 4, 4)), runs=1).bands
    found = [bar.work.label for bar in eager.bars]
    assert found.count("scan") == 12 and not any("loop" in label for label in found[:7]), found


def test_layers_have_one_name_in_all_bands():
    step, *args = TEN["cnn"]()
    eager, program, *_ = mg.viz.timeline(step, *args, runs=1).bands
    layers = [{bar.work.section.layer for bar in band.bars} for band in (eager, program)]
    assert layers[0] - {""} == layers[1] - {""}, "what runs as a program in eager mode has the module of its call, too"


def test_a_view_is_no_bar_and_a_copy_is_one():
    view = mg.viz.timeline(lambda x: (x.T[1:] * 2).sum() + x.T.reshape(-1)[0], mg.ones((4, 4)), runs=1)
    names = [bar.work.name for bar in view.bands[0].bars]
    assert "permute_dims" not in names and "reshape" in names
    assert sum(bar.work.cost.launches for bar in view.bands[0].bars) == len(names)


def test_a_row_of_one_step_has_the_name_of_its_bar():
    def swing(x):
        for _ in range(3):
            x = mg.tanh(x) + 1
        return x

    works = mg.viz.timeline(swing, mg.ones(3, requires_grad=True), runs=1).data()["works"]
    kernels = [work for work in works if work["name"].startswith("kernel_")]
    assert kernels and all(work["row"].endswith(work["label"]) for work in kernels)


def test_copies_of_what_is_kept_for_the_gradient_say_so():
    def swing(x, k):
        for _ in range(2):
            x = mg.tanh(x * k)
        return (x * x).sum(), x

    copies = [{work["label"] for work in mg.viz.timeline(swing, x, mg.asarray(2.0), runs=1).data()["works"]
               if work["name"] == COPIES}
              for x in (mg.ones(3), mg.ones(3, requires_grad=True))]
    assert not copies[0] and copies[1] == {"a copy of x₂, kept for the gradient"}


def test_a_finished_profile_is_shown():
    with mg.profile() as run:
        mg.jit(f)(X, W, B)
    view = mg.viz.timeline(run)
    assert repr(view) == "<timeline: 2 launches recorded>" and "matmul_1" in view.text()


# models ---------------------------------------------------------------------------------------------------------------


def test_workers_run_each_step_once_after_its_inputs():
    step, x = training_step()
    plan = mg.jit(step).program(x).schedule
    works = {each.name: Work(each.name) for each in plan.steps}
    for workers in (1, 2, 5):
        band = on_workers("", plan, works, workers)
        done = {bar.work.name: bar for bar in band.bars}
        assert {*done} == {*works} and len(band.bars) == len(done) and len(band.lanes) == workers
        names = [each.name for each in plan.steps]
        assert all(done[each.name].begin >= done[names[n]].end for each in plan.steps for n in each.after)
        assert all(a.end <= b.begin for lane in band.lanes for a, b in pairwise(lane.bars))
    assert on_workers("", plan, works, 1).end == pytest.approx(plan.work)
    assert on_workers("", plan, works, 99).end == pytest.approx(plan.span)


def test_a_chain_stays_with_one_worker():
    view = mg.viz.timeline(chain, mg.ones((64, 64)), runs=0)
    assert [len(lane.bars) for lane in view.bands[1].lanes] == [len(view.bands[0].bars), 0]


def test_models_alone_are_the_same_each_time():
    views = [mg.viz.timeline(two, mg.ones((8, 8)), mg.ones((8, 8)), runs=0) for _ in range(2)]
    assert views[0].to_svg() == views[1].to_svg() and views[0].to_html() == views[1].to_html()
    first, second, *more = views[0].bands
    assert (views[0].unit, views[0].workers) == ("B", 2) and "Bytes are memory traffic" in views[0].says
    assert [(band.title, band.workers) for band in (first, second)] == [("on 1 worker", 1), ("on 2 workers", 2)]
    assert [band.says for band in views[0].bands[:2]] == [
        f"by the model, {gain} times as fast as one worker; any number of workers is at most 1.99 times"
        for gain in ("1.00", "1.99")]
    assert views[0].text().splitlines()[1] == f"on 2 workers: {second.says}"
    assert [band.workers for band in more] == [*range(3, timelines.WORKERS + 1)]
    assert round(first.end) == 1825 and [bar.work.name for bar in second.bars if bar.critical] == [
        "matmul_1", "kernel_2", "kernel_4"]
    assert "worker 2" in views[0].to_svg()
    assert "worker 2" not in mg.viz.timeline(two, W, W, runs=0, workers=1).to_svg()


def test_a_step_says_what_it_waits_for():
    view = mg.viz.timeline(two, mg.ones((8, 8)), mg.ones((8, 8)), runs=0)
    works = {work["name"]: work for work in view.data()["works"]}
    rows = dict(works["kernel_2"]["rows"])
    assert rows["waits for"] == "x @ x"


def measured_two(*seconds):
    """A record of a program in which some steps took so long."""
    program = mg.jit(two).program(W, W + 1)
    steps = [step.name for step in program.plan.steps]
    times = [0.0, *accumulate(seconds)]
    events = [event(name, *ends) for name, ends in zip(steps, pairwise(times), strict=True)]
    return Record("as a program", 2 * times[-1] * US, events, program)


def timed(record, **options):
    return timeline_of([record], programs=[Shown("", record.program)], **options)


def test_beside_a_measured_call_each_step_of_the_model_takes_as_long_as_in_the_call():
    view = timed(measured_two(30, 1, 20, 2, 3), workers=1)
    taken = {bar.work.name: bar.end - bar.begin for bar in view.bands[0].bars}
    models = [band for band in view.bands if band.model]
    assert models and all(
        bar.end - bar.begin == pytest.approx(taken[bar.work.name]) for band in models for bar in band.bars)
    assert models[0].end == pytest.approx(56 * US) and "in measured times" in view.says


def test_a_model_of_a_loop_has_its_launches_and_no_python():
    """The loop takes 90 µs, of which its launches take 8, and a view takes 5 µs of Python."""
    program = mg.jit(lambda x: mg.scan(lambda c, v: (mg.tanh(c @ v), c), x[0], x)[1][0]).program(mg.ones((4, 3, 3)))
    first, *others = [step.name for step in program.plan.steps if step.name.startswith("scan_1")]
    launches = [event(f"{first}/matmul_1", 10 * n, 10 * n + 2) for n in range(4)]
    views = [event(name, 90, 95, launches=0) for name in others]
    events = [event(first, 0, 90, launches=0), *launches, *views]
    _, *models = timed(Record("as a program", 100 * US, events, program), workers=2).bands
    assert views and len(models) == timelines.WORKERS
    for band in models:
        assert [(bar.work.name, bar.end - bar.begin) for bar in band.bars] == [(first, pytest.approx(8 * US))]


def test_only_steps_that_can_begin_at_once_wait_for_nothing():
    """Copies of results are made after all steps; a step of a branch runs after what decides on it."""
    def f(x):
        y = mg.cond(x.sum() > 0, lambda x: (x @ x).sum(), lambda x: x.max(), x)
        return x.T, y

    works = mg.viz.timeline(mg.jit(f), mg.ones((3, 3)), runs=0).data()["works"]
    at_once = [work["name"] for work in works if ["waits for", "nothing"] in map(list, work["rows"])]
    assert len(works) > 2 and at_once == ["kernel_0"], works


def test_a_check_says_why_it_waits():
    def f(x, start, end):
        return mg.segment_sum(mg.tanh(x)[start], end, 4)

    data = mg.viz.timeline(f, mg.ones((4, 2)), mg.asarray([0, 3]), mg.asarray([1, 2]), runs=0).data()
    waits = [dict(work["rows"])["waits for"] for work in data["works"] if work["kind"] == "check"]
    assert sorted(waits) == ["nothing", "tanh(x)[start], segment sum"]


def test_beside_a_measured_call_workers_have_lanes_only_if_they_are_asked_for():
    record = measured_two(30, 1, 20, 2, 3)
    assert [band.model for band in timed(record).bands] == [False]
    view = timed(record, workers=3)
    assert view.workers == 3 and "worker 3" in view.to_svg() and "worker 4" not in view.to_svg()
    assert "by the model" not in view.text() and view.unit == "s"


def test_the_gradient_follows_its_program():
    g = mg.jit(lambda x: (mg.tanh(x @ x) ** 2).sum())
    mg.grad(g)(W)
    view = mg.viz.timeline(g, W, runs=1)
    _, forward, backward = view.bands[:3]
    assert (forward.title, backward.title) == ("as a program that keeps values", "in its gradient")
    begins = [bar.begin for bar in [*backward.bars, *backward.lanes[0].python]]
    assert 0 < forward.end <= min(begins) + CLOCK, "but for what the clock does not see"
    phases = [{bar.work.section.phase for bar in band.bars} for band in (forward, backward)]
    assert phases == [{"forward"}, {"backward"}], "each of them is one pass"
    assert re.match("Launches take [0-9.,]+ times as long in eager mode. The gradient runs alone", view.says)
    titles = [band.title for band in mg.viz.timeline(g, W, runs=0).bands]
    assert len(titles) >= 2 and any("gradient" in title for title in titles)


@pytest.mark.slow
def test_a_program_without_kernels_is_timed_and_has_no_models():
    jitted = mg.jit(f)
    traced = jitted.traced(X, W, B)
    traced.__dict__["program"] = PlainProgram(traced.graph)  # as for tensors on several devices
    view = mg.viz.timeline(jitted, X, W, B, runs=1)
    assert [band.title for band in view.bands] == ["eagerly", "as a program"]
    with pytest.raises(mg.MinigradError, match=r"mg.viz.timeline: there are no kernels for these devices"):
        mg.viz.timeline(jitted, X, W, B, runs=0)


def test_models_need_no_arguments_where_there_is_a_program():
    program = mg.jit(f).program(X, W, B)
    for what in (program, program.graph):
        assert mg.viz.timeline(what).text() == mg.viz.timeline(f, X, W, B, runs=0).text()
    assert mg.viz.timeline(Net(), mg.ones((32, 8)), runs=0).bands


# refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what, says", [
    (mg.ones(2), "no program in a Tensor: a tensor is a result"), (3, "no program in a int"),
])
def test_values_without_a_program_are_refused(what, says):
    with pytest.raises(mg.MinigradError, match=rf"{says}[\s\S]*mg.viz.timeline\(f, \*arguments\)"):
        mg.viz.timeline(what)


@pytest.mark.parametrize("wrong, says", [
    ({"runs": -1}, "timeline: runs=-1, workers=None"), ({"workers": 0}, "timeline: runs=7, workers=0"),
])
def test_wrong_numbers_are_refused(wrong, says):
    with pytest.raises(mg.MinigradError, match=rf"{says}[\s\S]*runs=0 or more, workers=1 or more"):
        mg.viz.timeline(f, X, W, B, **wrong)


@pytest.mark.parametrize("old", ["profile", "roofline", "schedule", "placement"])
def test_old_names_lead_here(old):
    with pytest.raises(mg.MinigradError, match=rf"no view mg.viz.{old} any more[\s\S]*mg.viz.timeline\(f, x") as error:
        getattr(mg.viz, old)
    assert (": the model, in dashed lanes" in str(error.value)) == (old in ("schedule", "placement"))
