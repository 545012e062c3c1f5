"""As written → fused."""

import json
import re
from functools import cache

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.look.record import record_node_by_node
from minigrad.support.table import bytes_text
from minigrad.viz.colours import themes
from minigrad.viz.compiled import FunctionCall, programs_of, records_of
from minigrad.viz.page import safe, static
from minigrad.viz.written import Picture, Written
from tests.training import training_step
from tests.viz.browser import needs_browser, opened
from tests.viz.ten_programs import TEN


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
                sums[way][0] += size["launches"]
                sums[way][1] += size["bytes"]
        before, after = found.cost.eager, found.cost.program
        assert sums == {"written": [before.launches, before.bytes], "fused": [after.launches, after.bytes]}
        assert all(band.title and band.row in found.rows for band in found.bands)


@pytest.mark.parametrize("name", TEN)
def test_pictures_are_the_same_each_time_and_without_times(name):
    for found in written(name):
        assert found.svg() == found.svg()
        assert "µs" not in found.svg() + json.dumps(found.data(), ensure_ascii=False)
        assert found.units == ["bytes", "launches"]


def test_rows_are_the_modules_in_the_order_of_the_forward_pass():
    (found,) = written("mlp")
    assert found.phases == ["forward", "backward", "update"]
    assert found.rows == ["0 Linear", "1 Tanh", "2 Linear", "outside modules"]


def test_a_function_has_one_column_without_a_title():
    found = written("three_lines")[0]
    assert found.phases == [""] and found.rows == [""]
    assert "⊞" not in found.svg() and "a · a + a" in found.svg()


def test_modules_of_the_same_name_in_two_models_are_two_rows():
    one, two = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    one._name, two._name = "up", "down"
    found = Written(programs_of(FunctionCall(mg.jit(lambda x: two(one(x))), (mg.ones((2, 2)),)), "fusion")[0])
    assert len(set(found.rows)) == len(found.rows) >= 2


def test_what_the_passes_removed_is_said():
    (shown,) = programs_of(FunctionCall(mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)), (mg.ones(4),)), "fusion")
    found = Written(shown)
    (removed,) = [band for band in found.bands if band.kind == "removed"]
    assert removed.title == "removed: 3 operations"  # both products with 1, and the second tanh
    (kernel,) = [band for band in found.bands if band.kind == "kernel"]
    assert [each.name for each in kernel.operations] == ["tanh_1", "add_1"]


def test_a_convolution_in_another_layout_keeps_its_operations():
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    (shown,) = programs_of(FunctionCall(step, (mg.ones((2, 16, 8, 8)),)), "fusion")
    found = Written(shown)
    gone = sum(band.written["bytes"] for band in found.bands if band.kind == "removed")
    assert gone < 0.3 * found.cost.eager.bytes


def test_reasons_are_all_there():
    (found,) = written("gpt")
    home, reasons = found.titles.home, found.shown.program.partition.reasons
    computed = found.titles.computed  # what a step computes again, it does not read
    known = [(a, b, why) for (a, b), why in reasons.items() if a in home and b in home and a not in computed[home[b]]]
    pairs = {(home[a], home[b], why) for a, b, why in known}
    reads = [(i, band.step, why) for band in found.bands for i, whys in band.reads.items() for why in whys]
    found_there = {(found.bands[i].step, step, why) for i, step, why in reads}
    assert pairs <= found_there, pairs - found_there


def summed(xs):
    return mg.scan(lambda c, x: (mg.tanh(c + x), None), xs[0], xs)[0]


@pytest.mark.parametrize("f, between", [
    (lambda x: mg.softmax(mg.tanh(x @ x)), "outside kernels"), (summed, "outside kernels and loops"),
], ids=["kernels", "loop"])
def test_times_are_those_of_records(f, between):
    f, x = mg.jit(f), mg.ones((32, 32))
    records = records_of(FunctionCall(f, (x,)), runs=1)
    (shown, *_) = programs_of(FunctionCall(f, (x,)), "fusion")
    found = Written(shown, records[0], record_node_by_node(shown.program.graph, shown.given()))
    assert found.units == ["bytes", "launches", "time"]
    assert all(band.size["time"] > 0 for band in found.bands if band.kind in ("kernel", "library"))
    assert sum(band.size["time"] for band in found.bands) == pytest.approx(records[0].seconds)
    assert found.alone.count == found.cost.eager or "loops" in between, "a loop copies its carry in each round"
    assert re.match(rf"Measured: one by one .*; as a program .*, with .* {between}\.", found.measured())


HOSTILE = "</script><img src=x onerror='window.hit=1'>"


def test_a_graph_or_a_saved_program_has_the_picture_too(tmp_path):
    f, x = mg.jit(lambda x: mg.softmax(mg.tanh(x @ x) * 1)), mg.ones((8, 8))
    f.save(tmp_path / "program", x)
    for what in (mg.trace(f.function, x), mg.load_program(tmp_path / "program")):
        found = Written(programs_of(FunctionCall(what, ()), "fusion")[0])
        assert [band.kind for band in found.bands] == ["library", "kernel", "removed"]
        assert found.said() == "fusion: 2 launches instead of 9 one by one, 1.02 kB read and written instead of 3.78 kB"


def hostile_view():
    class Net(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            with mg.scope(HOSTILE):
                return mg.tanh(self.inner(x))

    net = Net()
    step = training_step(lambda x: net(x).sum(), mg.optim.SGD(net.parameters(), lr=0.1))
    return Written(*programs_of(FunctionCall(step, (mg.ones((2, 3)),)), "fusion"))


# The page -------------------------------------------------------------------------------------------------------------


MOUNT = """
const { root, stage, side, aloud } = shellOf(document.getElementById("view"), "", []);
stage.classList.add("mgw-stage");
const say = (text, ...more) => { side.replaceChildren(make("p", { class: "mg-say" }, text), ...more); };
const page = writtenOf(data, "", say, (text) => { aloud.textContent = text; }, () => []);
stage.append(page.element, side);
root.append(make("div", { class: "mg-bar" }, ...page.tools), stage, aloud);
const keys = { ...page.keys, Escape: page.leave };
onKeys(root, (event) => (event.target.matches("button") && event.key === " " ? null : keys));
"""


def page_with(found):
    """A page with the picture alone."""
    styles = themes() + "".join(map(static, ("common.css", "written.css")))
    scripts = "".join(map(static, ("common.js", "shell.js", "written.js")))
    data = f"const data = {safe(found.data())};"
    return (
        f"<!doctype html><style>body {{ margin: 0 }} {styles}</style><body><div id=view></div>"
        f"<script type=module>{scripts}{data}{MOUNT}</script></body>"
    )


@cache
def page_of(name):
    return page_with(written(name)[0])


@needs_browser
def test_hostile_names_run_no_script_in_the_first_page():
    with opened(page_with(hostile_view())) as page:
        page.wait_for_selector(".mgw-holder svg")
        for band in page.query_selector_all(".mgw-band"):
            band.dispatch_event("click")
        assert HOSTILE[:9] in page.inner_text(".mgw-holder") and not page.evaluate("window.hit")


@needs_browser
def test_rows_open_and_kernels_are_chosen_by_keyboard():
    with opened(page_of("gpt"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-holder svg")
        name = page.locator(".mgw-rowname").first
        was = name.get_attribute("aria-expanded")
        name.focus()
        page.keyboard.press("Enter")
        assert name.get_attribute("aria-expanded") != was
        page.locator(".mg-view").focus()
        page.keyboard.press("ArrowDown")
        assert page.locator(".mgw-lit").count() == 1
        first = page.inner_text(".mg-side .mg-say")
        page.keyboard.press("ArrowDown")
        assert page.inner_text(".mg-side .mg-say") != first
        assert page.text_content(".mg-sr").startswith(page.inner_text(".mg-side .mg-say"))
        page.keyboard.press("Escape")
        assert page.locator(".mgw-lit, .mgw-cable").count() == 0
        page.keyboard.press("o")
        assert page.locator(".mgw-shut").count() == 0


def test_it_opens_on_the_module_with_most_traffic_and_closed_cells_have_their_sums():
    (found,) = written("gpt")
    picture = Picture(found, "bytes")
    traffic = {row: sum(band.size["bytes"] for band in found.bands if band.row == row) for row in found.rows}
    assert max(traffic, key=traffic.get) in picture.opened and not picture.opened.issuperset(found.rows)
    for row, sums in picture.sums.items():
        for phase, band in zip(found.phases, sums):
            own = [each for each in found.bands if (each.row, each.phase) == (row, phase)]
            was, now = sum(each.written["bytes"] for each in own), sum(each.size["bytes"] for each in own)
            assert (band.written["bytes"], band.size["bytes"]) == (was, now)
            assert band.title == (f"{bytes_text(was)} → {bytes_text(now)}" if own else "")
            assert picture.small * max(was, now) <= picture.column


@needs_browser
def test_a_closed_row_opens_by_a_click_and_its_kernels_are_reached_through_their_sum():
    (found,) = written("gpt")
    picture = Picture(found, "bytes")
    k, reader = next((source, i) for i, band in enumerate(found.bands) for source in band.reads
                     if band.row in picture.opened and found.bands[source].row not in picture.opened | {band.row})
    with opened(page_of("gpt"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-holder svg")
        row = page.locator(f'.mgw-row[data-row="{found.bands[k].row}"]')
        page.locator(f'.mgw-band[data-k="{reader}"] .mgw-name').hover()
        assert row.locator(".mgw-sum .mgw-near").count() == 1 and page.locator(".mgw-reads").count() >= 1
        row.locator(".mgw-sum:visible").first.click()
        assert "mgw-shut" not in row.get_attribute("class")


@needs_browser
def test_cables_are_those_of_the_kernel_under_the_pointer():
    (found,) = written("mlp")
    k = next(i for i, band in enumerate(found.bands) if band.reads and not band.others)
    fed = sum(k in band.reads for band in found.bands)
    with opened(page_of("mlp"), size=(1600, 900)) as page:
        page.wait_for_selector(".mgw-holder svg")
        assert page.locator(".mgw-cable").count() == 0
        page.hover(f'.mgw-band[data-k="{k}"] .mgw-name')
        assert page.locator(".mgw-reads").count() == len(found.bands[k].reads)
        assert page.locator(".mgw-feeds").count() == fed


@needs_browser
@pytest.mark.parametrize("less", [True, False])
def test_operations_move_into_kernels_at_once_where_motion_is_reduced(less):
    with opened(page_of("mlp"), size=(1600, 900)) as page:
        page.emulate_media(reduced_motion="reduce" if less else "no-preference")
        page.wait_for_selector(".mgw-holder svg")
        places = "[...document.querySelectorAll('.mgw-band')].map(each => each.getBoundingClientRect().y)"
        before = page.evaluate(places)
        page.locator(".mg-view").focus()
        page.keyboard.press(" ")
        assert page.locator(".mgw-holder.mgw-unfused").count() == 1
        assert page.locator(".mgw-flight").count() == (0 if less else 1)
        assert page.inner_text("button.mg-main") == "fuse ▸"
        assert before == page.evaluate(places)  # what stays does not move


TEXTS = """() => {
  const scale = document.querySelector(".mgw-holder svg").getScreenCTM().a;
  const seen = [...document.querySelectorAll(".mgw-holder text")].filter(each => each.getBoundingClientRect().width);
  return seen.map(each => [each.textContent, scale * parseFloat(each.getAttribute("font-size"))]);
}"""


@needs_browser
@pytest.mark.parametrize("wide", [1600, 900, 390])
def test_text_is_never_too_small_and_narrow_pages_show_one_phase(wide):
    with opened(page_of("gpt"), size=(wide, 900)) as page:
        page.wait_for_selector(".mgw-holder svg")
        page.wait_for_function("document.querySelector('.mgw-holder svg').getAttribute('width')")
        texts = page.evaluate(TEXTS)
        assert min([size for _, size in texts]) >= 8.99
        columns = {text for text, _ in texts} & {"forward", "backward", "update"}
        assert columns == ({"forward"} if wide < 720 else {"forward", "backward", "update"})
        if wide < 720:
            page.click(".mgw-phases button:nth-child(2)")
            assert {text for text, _ in page.evaluate(TEXTS)} & {"forward", "backward", "update"} == {"backward"}
        assert page.evaluate("document.documentElement.scrollWidth") <= wide


def test_operations_with_room_have_their_names():
    def f(x):
        doubled = 2 * x
        return doubled * doubled

    svg = mg.viz.fusion(f, mg.asarray(3.0)).to_svg()
    assert ">doubled<" in svg and svg.count(">doubled · doubled<") == 2  # as written, and of the kernel
