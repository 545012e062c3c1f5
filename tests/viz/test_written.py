"""As written → fused."""

import json
import re
from functools import cache

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.fusion.count import Count
from minigrad.compile.look.cost import NodeCost
from minigrad.compile.look.watching import watching
from minigrad.core.node import topological_order
from minigrad.support.table import bytes_text
from minigrad.viz.compiled import FunctionCall, programs_of
from minigrad.viz.scene import copies
from minigrad.viz.written import Band, Written
from tests.training import training_step
from tests.viz.browser import needs_browser, opened
from tests.viz.ten_programs import TEN
from tests.viz.the_views import made


@cache
def written(name):
    function, *args = TEN[name]()
    shown = programs_of(FunctionCall(function if hasattr(function, "ran") else mg.jit(function), args), "fusion")
    return [Written(each) for each in shown if each.program.plan.steps]


@pytest.mark.parametrize("name", TEN)
def test_every_operation_and_every_launch_is_in_the_picture_once(name):
    for found in written(name):
        sums = {"written": [0, 0], "fused": [0, 0]}
        for band in found.bands:
            for way, size in (("written", band.written), ("fused", band.size)):
                sums[way][0] += size.launches
                sums[way][1] += size.bytes
        before, after = found.cost.eager, found.cost.program
        assert sums == {"written": [before.launches, before.bytes], "fused": [after.launches, after.bytes]}
        assert all(band.title and band.cell.layer in found.rows for band in found.bands)


@pytest.mark.parametrize("name", TEN)
def test_pictures_are_the_same_each_time_and_without_times(name):
    for found in written(name):
        assert found.svg("") == found.svg("")
        assert "µs" not in found.svg("") + json.dumps(found.data(), ensure_ascii=False)


def test_rows_are_the_modules_in_the_order_of_the_forward_pass():
    (found,) = written("mlp")
    assert found.phases == ["forward", "backward", "update"]
    assert found.rows == ["0 Linear", "1 Tanh", "2 Linear", "outside modules"]


def test_a_function_has_one_column_and_a_title_if_a_backward_pass_may_follow():
    function, x = TEN["three_lines"]()
    assert Written(*programs_of(FunctionCall(mg.jit(function), (x.detach(),)), "fusion")).phases == [""]
    found = written("three_lines")[0]
    assert found.phases == ["forward"] and found.rows == [""]
    assert "⊞" not in found.svg("") and "a · a + a" in found.svg("")


def test_modules_of_the_same_name_in_two_models_are_two_rows():
    one, two = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    found = Written(programs_of(FunctionCall(mg.jit(lambda x: two(one(x))), (mg.ones((2, 2)),)), "fusion")[0])
    layers = [f"{model} · {layer}" for model in ("Sequential", "Sequential 2") for layer in ("0 Linear", "1 Tanh")]
    assert found.rows[:4] == [*layers[:3], "Sequential 2 · 1 ReLU"]


def test_what_the_passes_removed_is_said():
    (shown,) = programs_of(FunctionCall(mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)), (mg.ones(4),)), "fusion")
    found = Written(shown)
    removed = [band for band in found.data()["bands"] if band["kind"] == "removed"]
    said = {band["title"]: (band["operations"], dict(band["rows"])["why"]) for band in removed}
    assert said == {  # both products with 1, and the second tanh
        "removed by simplify: 2 operations": ("multiply ×2", "x * 1 -> x: For all dtypes."),
        "removed by common: 1 operation": ("tanh", "Merges nodes that compute the same from the same inputs."),
    }
    (kernel,) = [band for band in found.bands if band.kind == "kernel"]
    assert [each.name for each in kernel.operations] == ["tanh_1", "add_1"]


def test_a_division_that_is_a_product_then_is_computed_and_the_product_with_one_is_not():
    (shown,) = programs_of(FunctionCall(mg.jit(lambda x: x.sum(0) / 8 * 1.0 + 2), (mg.ones((8, 4)),)), "fusion")
    *_, gone = bands = Written(shown).bands
    assert [each.name for band in bands[:-1] for each in band.operations] == ["sum_1", "divide_1", "add_1"]
    assert [each.name for each in gone.operations] == ["multiply_1"] and gone.why == "x * 1 -> x: For all dtypes."


def test_a_write_that_ended_says_which_rule_fired():
    """Nothing overwrites the write to all of the statistics, of which one kernel stores the new value."""

    def update(x, mean):
        mean[...] = 0.9 * mean + 0.1 * x
        return mean * 2

    (shown,) = programs_of(FunctionCall(mg.jit(update), (mg.ones(4), mg.zeros(4))), "fusion")
    (why,) = [band.why for band in Written(shown).bands if band.title == "removed by dead: 1 operation"]
    assert why.startswith("overwritten whole: ") and "overwritten before" not in why


@pytest.mark.parametrize("name", TEN)
def test_every_removed_operation_has_a_pass_that_is_a_stage_or_is_read_in_place(name):
    for found in written(name):
        stages = {stage["name"].removesuffix(", again") for stage in found.listing.steps()}
        final = found.shown.program.final.became(found.shown.program.graph)
        for band in found.bands:
            for each in band.operations if band.kind == "removed" else ():
                by = found.listing.ended(each.node)[0]
                assert band.title.startswith(f"removed by {by}: ") and band.why
                assert by in stages if by != "fusion" else final[each.node].op is each.node.op


def test_only_library_calls_look_like_them_and_not_loops_with_some():
    """The bar of a scan was that of a generated kernel, also for its matrix products."""
    for name in ("lstm", "mlp", "gpt"):
        for found in written(name):
            for band in found.bands:
                if band.kind in ("library", "loop"):
                    assert (band.kind == "loop") == bool(found.kernels[band.step].rounds)
    kinds = {band.step: band.kind for band in written("lstm")[0].bands}
    assert kinds["matmul_1"] == "library" and "loop" in kinds.values()


def test_a_cell_says_which_kernels_of_other_cells_compute_its_operations():
    """The forward cell of an embedding was empty, though its gather ran: in a kernel of the first block."""
    (found,) = written("gpt")
    where = {band.cell: band for band in found.bands if band.into}
    gather = where["forward", "letters"]
    (kernel,) = [found.bands[k] for k in gather.into]
    assert gather.title == f"3 operations in forward · {kernel.cell.layer}" and gather.step == kernel.step
    assert {each.name for each in gather.operations} < {each.name for each in kernel.operations}
    assert gather.written == gather.size == Count() and gather.change == "", "they count where they are computed"
    for band in found.bands:
        if band.step and not band.into:
            cells = {found._cell_of(each) for each in band.operations} - {band.cell}
            assert all(cell in where for cell in cells), "no operation of a cell is silently elsewhere"


def test_a_row_whose_operations_are_all_in_other_kernels_is_there():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU())
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    found = mg.viz.fusion(step, mg.ones((2, 3, 6, 6))).written
    assert [row for row in found.rows if "outside" not in row][:3] == ["0 Conv2d", "1 GroupNorm", "2 ReLU"]
    assert all(found.cells[row][0] for row in ("1 GroupNorm", "2 ReLU")), "something is said of the forward pass"


@pytest.mark.parametrize("name", TEN)
def test_the_pictures_say_of_the_same_views_that_they_copy(name):
    for found in written(name):
        copied = [each.node for each in found.cost.nodes if each.node.is_view and each.eager.launches]
        assert copied == [node for node in found.shown.program.graph.nodes if copies(node)]


def test_eager_mode_copies_the_views_that_a_picture_fills():
    layer = nn.LSTM(5, 8, batch_first=True)
    with watching() as calls:
        result = layer(mg.ones((3, 7, 5), requires_grad=True))[0].reshape(21, 8)
    moved = [call.result.shape for call in calls if call.op.kind == "view" and call.moves]
    copied = [node for node in topological_order([result.node]) if copies(node)]
    assert [node.shape for node in copied] == moved and len(moved) > 1
    boxes = [box for part in mg.viz.graph(result).parts for box in part.scene.boxes if box.nodes[0] in copied]
    assert {box.kind for box in boxes if len(box.nodes) == 1} <= {"operation", "outside"}
    picture = mg.viz.graph(nn.LSTM(5, 8, batch_first=True), mg.ones((3, 7, 5)))
    assert "3 operations, 2 views" in json.dumps(picture.data())


def test_a_copy_counts_where_it_is_made():
    """A reshape after a permutation copies: the kernel that makes the copy had none, and the product before it two."""
    def heads(x, w):
        y = (x @ x).swapaxes(1, 2).reshape(3, 4, 8)
        return y.reshape(12, 8) @ w

    found = mg.viz.fusion(heads, mg.ones((3, 2, 4, 4)), mg.ones((8, 5)))
    names = [[each.name.rpartition("_")[0] for each in band.operations] for band in found.written.bands]
    assert names == [["matmul"], ["reshape"], ["matmul"]]


def test_what_reads_the_results_of_a_loop_or_a_branch_has_a_reason():
    def f(x):
        y, _ = mg.scan(lambda c, v: (mg.tanh(c * v) + 1, c), x[0], x)
        return mg.cond(y.sum() > 0, lambda y: mg.exp(y) * 2, lambda y: mg.sin(y) - 1, y) + 1

    bands = mg.viz.fusion(f, mg.ones((3, 2))).written.bands
    (loop,) = [i for i, band in enumerate(bands) if band.step == "scan_1"]
    (branch,) = [i for i, band in enumerate(bands) if band.step == "cond_1"]
    assert bands[-1].reads == {branch: "the functions of cond have kernels of their own"}
    assert bands[loop + 1].reads[loop] == "the functions of scan have kernels of their own"


def test_a_kernel_that_only_combines_parts_reads_these_and_not_what_they_are_of():
    bands = mg.viz.fusion(lambda x: (x @ x).sum(0), mg.ones((64, 64)).astype("float16")).written.bands
    assert [[*band.reads] for band in bands] == [[], [0], [1]]
    assert bands[2].reads[1].startswith("a reduction across rows is complete only when")


def test_an_input_that_is_ready_before_others_says_which_value_comes_later():
    (found,) = written("mlp")
    counter = [i for i, band in enumerate(found.bands) if band.title == "step of Adam"]
    reads = [band.reads for band in found.bands if band.title.startswith("Adam of")]
    assert reads and all(re.fullmatch(r"another input \(\w+\) is ready only later", each[k])
                         for each in reads for k in counter)


def test_kernels_apart_by_hand_say_so():
    moved = mg.viz.fusion(lambda x: mg.tanh(x) * 2, mg.ones(1000)).move("multiply_1")
    assert [band.reads for band in moved.written.bands] == [{}, {0: "they were moved apart by hand"}]


def test_a_convolution_in_another_layout_keeps_its_operations():
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    (shown,) = programs_of(FunctionCall(step, (mg.ones((2, 16, 8, 8)),)), "fusion")
    found = Written(shown)
    gone = sum(band.written.bytes for band in found.bands if band.kind == "removed")
    assert gone < 0.3 * found.cost.eager.bytes


def test_each_neighbour_has_a_reason_and_the_text_has_all():
    (found,) = written("cnn")
    home, reasons = found.titles.home, found.shown.program.partition.reasons
    computed = found.titles.computed  # what a step computes again, it does not read
    known = [(a, b, why) for (a, b), why in reasons.items() if a in home and b in home and a not in computed[home[b]]]
    assert {(each.source, each.reader, each.why) for each in found.boundaries} >= {*known}
    neighbours = {(found.bands[i].step, band.step): why for band in found.bands for i, why in band.reads.items()}
    assert neighbours.keys() >= {(home[a], home[b]) for a, b, _ in known}
    assert all(why in {each.why for each in found.boundaries if (each.maker, each.step) == pair}
               for pair, why in neighbours.items())


def test_reasons_have_no_numbers_that_later_decisions_change():
    """A reason named the level of a kernel, which may be moved to another level afterwards."""
    for name in TEN:
        for found in written(name):
            assert not [each.why for each in found.boundaries if "level" in each.why or "outputs" in each.why]


HOSTILE = "</script><img src=x onerror='window.hit=1'>"


def test_a_graph_or_a_saved_program_has_the_picture_too(tmp_path):
    f, x = mg.jit(lambda x: mg.softmax(mg.tanh(x @ x) * 1)), mg.ones((8, 8))
    f.save(tmp_path / "program", x)
    for what in (mg.trace(f.function, x), mg.load_program(tmp_path / "program")):
        found = Written(programs_of(FunctionCall(what, ()), "fusion")[0])
        assert [band.kind for band in found.bands] == ["library", "kernel", "removed"]
        assert repr(mg.viz.fusion(what)) == (
            "<fusion: 2 launches instead of 9 one by one, 1.02 kB read and written instead of 3.78 kB>")


def hostile_view():
    class Net(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            with mg.scope(HOSTILE):
                return mg.tanh(self.inner(x))

    net = Net()
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    return mg.viz.fusion(step, mg.ones((2, 3)))


# The page -------------------------------------------------------------------------------------------------------------


@cache
def page_of(name):
    return made(name, "fusion").to_html()


@needs_browser
def test_hostile_names_run_no_script_in_the_first_page():
    with opened(hostile_view().to_html()) as page:
        page.wait_for_selector(".mgw-band")
        for band in page.query_selector_all(".mgw-band"):
            band.dispatch_event("click")
        assert HOSTILE[:9] in page.inner_text(".mgw-holder") and not page.evaluate("window.hit")


@needs_browser
def test_rows_open_and_kernels_are_chosen_by_keyboard():
    with opened(page_of("gpt"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-band")
        name = page.locator(".mgw-rowname").first
        was = name.get_attribute("aria-expanded")
        name.focus()
        page.keyboard.press("Enter")
        assert name.get_attribute("aria-expanded") != was and name.evaluate("e => e === document.activeElement")
        page.locator(".mg-view").focus()
        page.keyboard.press("ArrowDown")
        assert page.locator(".mgw-lit").count() == 1
        first = page.inner_text(".mg-side .mg-say")
        page.keyboard.press("ArrowDown")
        assert page.inner_text(".mg-side .mg-say") != first
        assert page.text_content(".mg-sr").startswith(page.inner_text(".mg-side .mg-say"))
        page.keyboard.press("Escape")
        assert page.locator(".mgw-lit, .mgw-reads, .mgw-feeds").count() == 0
        page.keyboard.press("o")
        assert page.locator(".mgw-rowname[aria-expanded=false]").count() == 0
        page.keyboard.press("o")
        assert page.locator(".mgw-rowname[aria-expanded=true]").count() == 0


@pytest.mark.parametrize(("name", "opens"), [("mlp", True), ("gpt", False), ("resnet", False), ("physics", True)])
def test_rows_are_open_at_first_if_all_fit(name, opens):
    for found in written(name):
        assert found.opened == (found.rows if opens else [])


@pytest.mark.parametrize("name", ["gpt", "cnn"])
def test_sums_of_cells_and_of_columns_are_those_of_their_kernels(name):
    (found,) = written(name)
    data = found.data()
    for c, phase in enumerate(found.phases):
        whole = [0, 0, 0, 0]
        for row, cells in data["rows"]:
            all_lines = [band for band in found.bands if band.cell == (phase, row)]
            own = [band for band in all_lines if not band.into]
            takes = [sum(numbers) for numbers in zip(*[
                (band.written.bytes, band.size.bytes, band.written.launches, band.size.launches) for band in own])]
            assert len(cells[c]) == len(all_lines) + (len(own) > 1)
            if own:
                first = next(found.lines[k] for k in cells[c] if not found.lines[k].into)
                assert [first.written.bytes, first.size.bytes] == takes[:2]
                whole = [a + b for a, b in zip(whole, takes)]
        launches = f"{whole[2]:,} → {whole[3]:,} launches"
        assert data["totals"][c].endswith(launches) and data["totals"][c].startswith(bytes_text(whole[0]))
    assert [found.lines[cells[c][0]].kind for cells in found.cells.values() for c in range(3) if len(cells[c]) > 2]


def test_bytes_that_stay_the_same_are_said_once():
    takes = NodeCost(None, "a", Count(4, 4))
    assert Band("", "", ("", ""), "kernel", Count(2, 2), [takes]).change == "8 B → 4 B"
    assert Band("", "", ("", ""), "kernel", Count(4, 4), [takes]).change == "8 B"


@needs_browser
def test_operations_beside_a_title_that_is_too_long_are_cut_with_a_sign():
    view = mg.viz.fusion(lambda x: mg.softmax(mg.tanh(x * 2) + mg.cos(x)) * mg.sin(x * 3), mg.ones((64, 64)))
    with opened(view.to_html(), size=(390, 844)) as page:
        made = page.wait_for_selector(".mgw-made:not(:empty)")
        assert made.evaluate("each => each.clientWidth") >= 20  # room for a letter and three dots


@needs_browser
def test_a_closed_row_has_its_sums_and_opens_by_a_click_on_one():
    with opened(page_of("gpt"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-band")
        for button in ("open all rows", "close all rows"):
            page.click(f"text={button}")
        full = next(name for name, cells in written("gpt")[0].cells.items() if all(len(lines) > 1 for lines in cells))
        row = page.locator(f'.mgw-row[data-row="{full}"]')
        assert row.locator(".mgw-band").count() <= 3 and "→" in row.locator(".mgw-sum").first.inner_text()
        row.locator(".mgw-sum").first.click()
        assert row.locator(".mgw-band").count() > 3


@needs_browser
def test_what_a_kernel_reads_and_what_reads_it_is_marked_in_closed_rows_too():
    (found,) = written("mlp")
    k = next(i for i, band in enumerate(found.bands) if band.reads)
    fed = [i for i, band in enumerate(found.bands) if k in band.reads]
    with opened(page_of("mlp"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-band")
        assert page.locator(".mgw-reads, .mgw-feeds").count() == 0
        page.hover(f'[data-k="{k}"]')
        marked = {name: [int(each.get_attribute("data-k")) for each in page.locator(f".mgw-{name}").all()]
                  for name in ("reads", "feeds")}
        assert set(marked["reads"]) == set(found.bands[k].reads) and sorted(marked["feeds"]) == fed
        page.click(f'[data-k="{k}"]')
        row = found.rows.index(found.bands[min(found.bands[k].reads)].cell.layer)
        page.locator(".mgw-rowname").nth(row).click()
        assert page.locator(f'.mgw-reads[data-cell^="{row},"]').count() == 1
        assert page.locator(".mgw-lit").count() == 1


@needs_browser
@pytest.mark.parametrize("wide", [1600, 900, 390])
def test_everything_is_within_the_page_and_narrow_pages_have_phases_below_each_other(wide):
    with opened(page_of("gpt"), size=(wide, 900)) as page:
        page.wait_for_selector(".mgw-band")
        heads = [page.locator(".mgw-head .mgw-cell").nth(i).bounding_box() for i in range(3)]
        assert len({head["x"] for head in heads}) == (1 if wide == 390 else 3)
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        assert all(band.bounding_box()["x"] + 100 < wide for band in page.locator(".mgw-band").all()[:8])


def test_kernels_have_the_names_of_what_they_store():
    def f(x):
        doubled = 2 * x
        return doubled * doubled

    assert ">doubled · doubled\u200316 B → 8 B<" in mg.viz.fusion(f, mg.asarray(3.0)).to_svg()


def test_all_views_count_the_branches_and_the_rounds_of_this_call():
    function, *args = TEN["branches_and_loops"]()
    assert "fusion: 23 launches instead of 33 one by one" in repr(mg.viz.fusion(function, *args))
    assert ", 23 as a program" in repr(mg.viz.timeline(function, *args, runs=1))


@pytest.mark.parametrize(("start", "ran"), [(1.0, "then"), (-1.0, "otherwise")])
def test_a_branch_says_what_is_counted_and_where_its_kernels_are(start, ran):
    f = mg.jit(lambda x: mg.cond(x.sum() > 0, lambda x: x - 1, lambda x: (x * x).sum() + x, x))
    f(mg.ones(3))  # what an earlier call took is not counted
    view = mg.viz.fusion(f, start * mg.ones(3))
    assert view.cost.eager.launches == {"then": 3, "otherwise": 5}[ran]
    assert said_of(view, "loop") == f'a branch, where "{ran}" ran'
    (says,) = [kernel["says"] for kernel in view.data()["kernels"] if kernel["name"] == "cond_1"]
    assert says == f'by a branch, where "{ran}" ran', "the words of the list"
    assert [band.kind for band in view.written.bands if band.step == "cond_1"] == ["loop"], "no library call"


def test_copies_say_their_launches_and_names_that_differ_by_a_number_are_a_range():
    def swing(x, k):
        found = []
        for _ in range(40):
            x = mg.tanh(x * k)
            found.append(x)
        return (x * x).sum(), found[-3:]

    k = mg.asarray(2.0, requires_grad=True)
    bands = mg.viz.fusion(swing, mg.asarray(1.0, requires_grad=True), k).written.bands
    (copies,) = [band for band in bands if band.kind == "copies"]
    assert copies.size.launches > 1 and copies.title.startswith(f"{copies.size.launches} copies of ")
    assert any("x₁ … x" in band.title for band in bands), [band.title for band in bands]


def said_of(view, kind):
    """What is said of the only bar of a kind."""
    (band,) = [band for band in view.data()["written"]["bands"] if band["kind"] == kind]
    return dict(band["rows"])["why"]


def test_the_source_of_a_loop_names_all_launches_of_a_round():
    """A round makes 2 · c, and copies c, which it returns twice."""
    view = mg.viz.fusion(lambda x: mg.scan(lambda c, v: (c * v, c), x[0], x), mg.ones((5, 3)))
    (kernel,) = [kernel for kernel in view.data()["kernels"] if kernel["name"] == "scan_1"]
    heads = [text for text, _ in kernel["lines"] if text.startswith("// body: ")]
    assert view.cost.program.launches == 5 * len(heads)
    assert heads[1:] == ["// body: copies, 1 launch, 24 B"]


def test_copies_say_of_what_and_why():
    """No result is copied here: each round keeps −k for the gradient, which is computed once."""

    def swing(x, v, k):
        for _ in range(5):
            v = v + 0.1 * (-k * x)
            x = x + 0.1 * v
        return x

    view = mg.viz.fusion(swing, mg.ones(3), mg.zeros(3), mg.asarray(2.0, requires_grad=True))
    (copies,) = [band for band in view.data()["written"]["bands"] if band["kind"] == "copies"]
    times = len(view.program.plan.copied)
    assert times > 1 and copies["title"] == f"{times} copies of −k, kept for the gradient"
    assert said_of(view, "copies") == "Each result and each kept value has memory of its own."


def test_copies_of_gradients_are_at_the_end_of_the_backward_pass_and_belong_to_several_modules():
    """Both norms at the end of a block have one gradient of their biases: two results, of which one is a copy."""
    (found,) = written("resnet")
    (copies,) = [band for band in found.bands if band.kind == "copies"]
    assert copies.size.launches == 3 and copies.title.startswith("3 copies of ∂")
    assert copies.cell == ("backward", "several modules")


def test_a_row_has_the_numbers_of_its_launches_and_the_head_of_a_column_the_word():
    model = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Tanh(), mg.nn.Linear(4, 2))
    found = mg.viz.fusion(model, mg.ones((5, 3))).written
    sums = [line.title for line in found.lines if line.kind == "sum"]
    assert sums and all("→" in title and "launch" not in title for title in sums)
    assert all(title.endswith(" launches") for title in found.data()["totals"])


def test_a_branch_of_a_graph_without_arguments_says_that_the_larger_function_is_counted():
    graph = mg.trace(lambda x: mg.cond(x.sum() > 0, lambda x: x - 1, lambda x: x * x * x, x), mg.ones(3))
    assert said_of(mg.viz.fusion(graph), "loop") == "a branch, of which the larger function is counted"


def test_counting_a_loop_changes_no_tensor():
    total = mg.zeros(2)

    def f(x):
        nonlocal total
        total += mg.scan(lambda c, v: (c + v, c), x[0], x)[0]
        return total * 2

    mg.viz.fusion(f, mg.ones((3, 2)))
    assert total.tolist() == [0, 0]


def test_equal_rows_of_the_rounds_of_a_loop_are_one_row():
    def f(x, w):
        for _ in range(5):
            h = mg.tanh(x @ w)
            x = h / h.sum()
        return x

    found = mg.viz.fusion(f, mg.ones((2, 3)), mg.ones((3, 3))).written
    assert [band.title for band in found.bands] == ["x @ w (×5)", "h (×5)", "x (×5)"]
    described = found.data()["bands"][1]
    assert described["rows"][:2] == [["one by one", "10 launches, 380 B"], ["fused", "5 launches, 260 B"]]
    assert described["operations"] == "tanh ×5, sum ×5" and [*found.bands[1].reads] == [0]


def test_a_constant_of_which_views_are_taken_is_computed_where_they_are():
    bands = written("lstm")[0].bands
    assert [band.title for band in bands if any(each.name == "full_1" for each in band.operations)] == ["full"]
    assert not any(band.kind == "removed" for band in bands)


def test_bars_have_one_scale():
    found = written("cnn")[0]
    most = max(max(line.written.bytes, line.size.bytes) for line in found.lines)
    for line, described in zip(found.lines, found.data()["bands"]):
        assert described["sizes"] == [pytest.approx(1000 * size.bytes / most, abs=1)
                                      for size in (line.written, line.size)]
    assert max(size for each in found.data()["bands"] for size in each["sizes"]) == 1000
    lines = zip(found.data()["bands"], found.lines)
    small = [each["sizes"] for each, line in lines if 0 < line.written.bytes < most / 1000]
    assert small and all(size for size, *_ in small), "what takes little is not nothing"


def test_the_kernels_of_a_loop_and_of_the_branch_that_ran_are_listed():
    def f(x):
        y, _ = mg.scan(lambda c, v: (mg.tanh(c * v) + 1, c), x[0], x)
        return mg.cond(y.sum() > 0, lambda y: mg.exp(y) * 2, lambda y: mg.sin(y) - 1, y)

    kernels = {each["name"]: each for each in mg.viz.fusion(f, mg.ones((3, 2))).data()["kernels"]}
    text = {name: "\n".join(line for line, _ in kernels[name]["lines"]) for name in ("scan_1", "cond_1")}
    assert "// body: kernel_0, a generated kernel" in text["scan_1"] and "own_tanh" in text["scan_1"]
    assert "// then: kernel_0" in text["cond_1"] and "own_exp" in text["cond_1"] and "otherwise" not in text["cond_1"]


def test_a_gradient_that_eager_mode_does_not_copy_is_not_copied_as_written():
    for found in written("mlp"):
        names = [each.name for band in found.bands for each in band.operations]
        assert not [name for name in names if name.startswith("astype")]


@needs_browser
def test_the_first_page_says_what_keeps_kernels_apart_and_names_other_cells():
    (found,) = written("mlp")
    with opened(page_of("mlp"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-band")
        reasons = [re.sub(r" \(\w+\)", "", why) for band in found.data()["bands"] for _, why in band["reads"]]
        said = page.inner_text(".mg-side").partition("what keeps kernels apart")[2].strip().split("\n\n")
        assert said == [*dict.fromkeys(reasons)] and len(said) > 2
        assert "another input is ready only later" in said
        for kind, line in (("library", "repeating-linear-gradient"), ("kernel", "linear-gradient")):
            look = page.locator(f".mgw-row .mgw-{kind}").first.evaluate("bar => getComputedStyle(bar).backgroundImage")
            assert look.startswith(line), "a bar has its line"
        k = next(k for k, band in enumerate(found.bands) if band.into)
        page.hover(f'[data-k="{k}"]')
        assert "computed in" in page.inner_text(".mg-side")
        marked = [int(each.get_attribute("data-k")) for each in page.locator(".mgw-reads").all()]
        assert marked == [*found.bands[k].into]
        page.hover(f'[data-k="{marked[0]}"]')
        assert found.bands[k].title in page.inner_text(".mg-side"), "the kernel says whose operations it computes"
