"""The page of a timeline in a real browser: zoom, pan, sums of a selection, facts, search, tables, hostile names."""

import pytest

import minigrad as mg
from minigrad.compile.fusion.count import Count
from minigrad.compile.look import roofline
from minigrad.compile.look.record import Record
from minigrad.compile.running.profiler import Event
from minigrad.viz.notation import unnumbered
from minigrad.viz.timelines import timeline_of
from tests.viz.browser import needs_browser, opened, outputs, settled

pytestmark = needs_browser
US = 1e-6
LABELS = """() => [...document.querySelectorAll('.mg-lanes text')].map((text) => {
  const [box, frame] = [text, document.querySelector('.mg-lanes')].map((each) => each.getBoundingClientRect());
  const size = parseFloat(getComputedStyle(text).fontSize);
  return [text.textContent, size, box.left - frame.left, frame.right - box.right];
})"""


def known():
    """A call of 100 µs: matmul from 10 to 30, tanh from 60 to 70; and its program of 40 µs."""
    eager = [("matmul", 10, 30, 800), ("tanh", 60, 70, 80)]
    records = [Record(way, whole * US, [
        Event(name, "MainThread", begin * US, end * US, Count(size, size, 10 * size, 1))
        for name, begin, end, size in steps
    ]) for way, whole, steps in (("eagerly", 100, eager), ("as a program", 40, [("kernel_1", 20, 30, 500)]))]
    return timeline_of(records)


def event(name, begin, end):
    return Event(name, "MainThread", begin * US, end * US, Count(8, 8, 8, 1))


def state(page, name):
    return page.get_attribute(".mg-view", f"data-{name}")


def span(page):
    return float(state(page, "from")), float(state(page, "to"))


def press(page, *keys):
    page.focus(".mg-view")
    for key in keys:
        page.keyboard.press(key)


def twelve_threads():
    events = [Event("add", f"thread {n}", n * US, (n + 9) * US, Count(8, 4, 1, 1)) for n in range(12)]
    return timeline_of([Record("eagerly", 100 * US, events)])


def test_lanes_share_the_height_that_is_left():
    view, bars = twelve_threads(), "[...document.querySelectorAll('[data-bar]')]"
    tall = {}
    for high in (400, 760, 2900):
        with opened(view.to_html(), size=(1100, high)) as page:
            page.wait_for_selector("[data-bar]")
            (tall[high],) = {*page.evaluate(f"{bars}.map((bar) => bar.getBoundingClientRect().height)")}
            frame, end = page.evaluate("['.mg-lanes', 'svg'].map((each) => document.querySelector(each).clientHeight)")
            assert end <= frame or high == 400
    assert tall[400] == 20 < tall[760] < tall[2900] == 176


def test_in_a_low_window_the_view_scrolls_and_the_table_cuts_no_lane():
    with opened(twelve_threads().to_html(), size=(900, 480)) as page:
        page.wait_for_selector("[data-bar]")
        frame, end, view = page.evaluate(
            "['.mg-lanes', 'svg', '.mg-view'].map((each) => document.querySelector(each).clientHeight)")
        assert 300 < end <= frame and page.evaluate("document.querySelector('.mg-view').scrollHeight") > view


def test_the_table_states_what_the_sentence_states():
    x, w = mg.ones((20, 4)), mg.ones((4, 3), requires_grad=True)
    places = mg.asarray([0, 2, 1] * 7)[:20]

    def loss(x):
        return mg.cross_entropy(mg.scan(lambda c, row: (mg.tanh(c + row), c), x[0], x)[1] @ w, places)

    view = mg.viz.timeline(loss, x, runs=1)
    with opened(view.to_html()) as page:
        for band in view.bands[:2]:
            page.select_option("[aria-label='which table']", label=f"{band.title}, by step")
            rows = {row[0]: row for row in (line.inner_text().split("\t") for line in page.locator("table tr").all())}
            launches = sum(bar.work.cost.launches for bar in band.bars)
            assert int(rows["everything"][3]) == launches and f" in {launches} launches" in band.says
            share = rows["Python"][2] if "Python" in rows else "0%"  # where the clock sees nothing between launches
            assert f", {share.removesuffix('%')} % Python" in band.says


def test_what_a_loop_copies_between_its_steps_has_bytes_and_no_time_of_its_own():
    w = mg.asarray(0.5, requires_grad=True)
    view = mg.viz.timeline(lambda xs: mg.scan(lambda h, x: (mg.tanh(w * h + x), h), mg.asarray(0.0), xs)[1].sum(),
                           mg.linspace(0, 1, 12), runs=1)
    with opened(view.to_html()) as page:
        row = page.get_by_role("row").filter(has_text="rounds kept for the gradient").inner_text().split("\t")
        assert row[1:5] == ["–", "0%", "0", "96 B"]
        page.locator(".mg-bar input").last.fill("rounds kept")
        page.keyboard.press("Enter")
        settled(page)
        panel = page.locator(".mg-side").inner_text()
        assert "96 B" in panel and "between its steps" in panel and "0 µs" not in panel


def test_the_rounds_of_a_loop_are_one_row_without_their_numbers():
    """A row that is chosen keeps the focus, so the keys work, and Esc lets go of it."""
    def f(x):
        for _ in range(4):
            y = mg.tanh(x)
            x = y / y.sum()
        return x

    view = mg.viz.timeline(f, mg.ones(3), runs=1)
    first = next(bar.work.label for bar in view.bands[1].bars if bar.work.label[0] == "y")
    with opened(view.to_html()) as page:
        names = [line.inner_text().split("\t")[0] for line in page.locator("table tr").all()]
        name = unnumbered(first)
        assert name != first and names.count(name) == 1 and first not in names
        page.locator(f"tr[data-key='{name}']").press("Enter")
        lit = page.locator("[data-bar][stroke='var(--now)']")
        assert lit.count() >= 4 and page.evaluate("document.activeElement.cells[0].innerText") == name
        page.keyboard.press("Escape")
        settled(page)
        assert lit.count() == 0


def short():
    """A call of 1,000 µs, whose two launches are far from each other; and its program of 20 µs."""
    records = [Record(way, whole * US, [
        Event(name, "MainThread", begin * US, end * US, Count(8, 8, 10, 1)) for name, begin, end in steps
    ]) for way, whole, steps in (("eagerly", 1000, [("exp", 10, 30), ("tanh", 700, 800)]),
                                 ("as a program", 20, [("kernel_1", 5, 15)]))]
    return timeline_of(records)


def test_what_is_short_is_drawn_once_more_and_larger():
    with opened(short().to_html(), size=(1000, 700)) as page:
        both = page.locator("[data-bar='1:0']")
        small, large = (both.nth(i).bounding_box()["width"] for i in range(2))
        assert both.count() == 2 and small < 15 and large > 400
        assert page.get_by_text("as a program, larger").count() == 1
        both.nth(1).click()
        assert state(page, "chosen") == "kernel_1"
        press(page, "Escape", *"wwwwwwwwww")
        assert both.count() == 1, "it is large enough"
        press(page, "f", *"wwdddddd")
        assert span(page)[0] > 20 and page.get_by_text("as a program, larger").count() == 1
    with opened(known().to_html()) as page:
        assert page.locator("[data-bar='1:0']").count() == 1


def test_sums_are_those_of_the_lane_that_is_selected():
    with opened(short().to_html(), size=(1000, 700)) as page:
        chosen = "document.querySelector('.mg-below select').selectedOptions[0].textContent"
        for bar, table, begin, end in (("0:1", "eagerly, by step", 600, 900), ("1:0", "as a program, by step", 0, 20)):
            settled(page)  # the table may have changed the height of the lanes
            box = page.locator(f"[data-bar='{bar}']").last.bounding_box()
            page.mouse.move(box["x"] - 20, box["y"] + 10)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] + 20, box["y"] + 10, steps=4)
            page.mouse.up()
            assert page.evaluate(chosen) == table
            low, high = map(float, state(page, "stretch").split())
            assert begin < low < high < end
            assert page.locator("table tr").nth(1).inner_text().split("\t")[3] == "1"
        press(page, "Escape", "ArrowUp", "ArrowRight", "Shift+ArrowLeft")
        assert page.evaluate(chosen) == "eagerly, by step"


def test_keys_zoom_and_pan():
    with opened(known().to_html()) as page:
        assert span(page) == (0.0, 100.0)
        press(page, "w", "w")
        begin, end = span(page)
        assert begin == 0 and 45 < end < 55  # what is short is at the begin
        press(page, "d")
        assert span(page)[0] > begin
        press(page, "a", "a", "A")
        assert span(page)[0] == 0
        press(page, "S", "-", "s", "s")
        assert span(page) == (0.0, 100.0)
        press(page, "+", "f")
        assert span(page) == (0.0, 100.0)
        for _ in range(60):
            press(page, "w")
        begin, end = span(page)
        assert 0 < end - begin < 0.01


def test_the_wheel_zooms_a_view_that_is_used_and_scrolls_the_page_otherwise():
    with opened(known().to_html()) as page:
        page.evaluate("document.activeElement.blur()")  # a page that is one view gives it the keys at once
        box = page.locator(".mg-lanes").bounding_box()
        page.mouse.move(box["x"] + 500, box["y"] + 50)
        page.evaluate("addEventListener('wheel', () => { window.turned = true; })")
        page.mouse.wheel(0, -100)
        page.wait_for_function("window.turned")
        assert span(page) == (0.0, 100.0)
        page.focus(".mg-view")
        page.mouse.wheel(0, -100)
        page.wait_for_function("document.querySelector('.mg-view').dataset.to !== '100'")
        before = span(page)
        page.mouse.wheel(200, 0)
        page.wait_for_function(f"+document.querySelector('.mg-view').dataset.from > {before[0]}")


def test_a_drag_selects_and_a_drag_with_shift_pans():
    with opened(known().to_html()) as page:
        press(page, "w", "w")
        begin = span(page)[0]
        box = page.locator(".mg-lanes").bounding_box()
        x, y = box["x"] + 500, box["y"] + 60
        page.keyboard.down("Shift")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 100, y, steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        assert span(page)[0] > begin and state(page, "chosen") == state(page, "stretch") == ""
        press(page, "f")
        settled(page)
        page.mouse.move(box["x"] + 90, y)
        page.mouse.down()
        page.mouse.move(box["x"] + 90 + 500, y, steps=4)
        page.mouse.up()
        begin, end = map(float, state(page, "stretch").split())
        assert begin < 2 and 40 < end < 60
        assert page.locator(".mg-steps td").first.inner_text() == "selected"
        page.mouse.click(box["x"] + 40, y)
        assert state(page, "stretch") == "", "a click beside the bars"
        assert page.locator(".mg-steps td").first.inner_text() == "everything"


def many(layers):
    """A call of three steps in each layer."""
    names = [f"blocks[{i}]: {step}" for i in range(layers) for step in ("norm", "up₁", "down")]
    events = [Event(name, "MainThread", i * US, (i + 1) * US, Count(8, 8, 10, 1)) for i, name in enumerate(names)]
    return timeline_of([Record("as a program", len(names) * US, events)])


@pytest.mark.parametrize(("layers", "rows"), [(6, 18), (8, 3)])
def test_alike_modules_are_one_row_of_a_long_table(layers, rows):
    with opened(many(layers).to_html()) as page:
        lines = [line.inner_text().split("\t") for line in page.locator(".mg-steps tr").all()[2:]]
        assert len(lines) == rows
        if rows == 3:
            assert [line[0] for line in lines] == [f"blocks[…]: {step}" for step in ("norm", "up", "down")]
            assert {line[3] for line in lines} == {"8"}
            page.locator(".mg-steps tr").last.click()
            assert page.locator("[data-bar][stroke='var(--now)']").count() == 8


def test_what_is_drawn_twice_has_its_words_once():
    with opened(short().to_html(), size=(1000, 700)) as page:
        assert page.get_by_text("20 µs, of which 10 µs").count() == 1
        page.focus(".mg-view")
        assert page.locator(".mg-says strong").inner_text().startswith("The program is 50.0 times as fast as eager")


def test_sums_of_a_selection():
    with opened(known().to_html()) as page:
        page.select_option("select[aria-label='which table']", label="eagerly, by step")
        rows = page.evaluate("[...document.querySelectorAll('.mg-steps tr')].map((row) => row.innerText.split('\\t'))")
        assert rows[0] == ["", "time", "of all", "launches", "bytes", "operations"], "no limit is known"
        assert rows[1:] == [
            ["everything", "100 µs", "100%", "2", "1.76 kB", "8,800"], ["Python", "70 µs", "70%", "0", "0 B", "0"],
            ["matmul", "20 µs", "20%", "1", "1.6 kB", "8,000"], ["tanh", "10 µs", "10%", "1", "160 B", "800"],
        ]
        press(page, "ArrowRight", "Shift+ArrowRight")
        assert state(page, "stretch") == "10 70"
        assert "eagerly: selected 60 µs, Python 30 µs, matmul 20 µs" in page.inner_text("[aria-live]")
        press(page, "Escape")
        assert state(page, "stretch") == ""


def test_of_a_bar_at_the_end_of_a_selection_the_part_inside_counts():
    with opened(known().to_html()) as page:
        for begin, end, rows in ((0.25, 0.75, 1), (-0.25, 0.75, 2)):  # the second one begins before the bar
            settled(page)  # the table may have changed the height of the lanes
            box = page.locator("[data-bar='0:0']").bounding_box()
            page.mouse.move(box["x"] + begin * box["width"], box["y"] + 10)
            page.mouse.down()
            page.mouse.move(box["x"] + end * box["width"], box["y"] + 10, steps=4)
            page.mouse.up()
            whole, *parts = [line.inner_text().split("\t") for line in page.locator("table tr").all()[1:]]
            assert whole[0] == "selected" and len(parts) == rows
            assert parts[0][0] == "matmul" and parts[0][3] == "1" and 0 < float(parts[0][4].split()[0]) < 1300


def test_what_python_does_between_launches_has_facts():
    with opened(known().to_html(), size=(700, 700)) as page:
        assert page.locator(".mg-lanes").get_by_text("Python", exact=True).count() == 3, "two gaps are too short"
        page.locator("[data-python='0:1']").click()
        side = page.inner_text(".mg-side")
        assert "Python" in side and "30 µs" in side and "choices of kernels" in side
        press(page, "ArrowRight")
        assert state(page, "chosen") == "tanh"


def test_a_click_and_the_arrows_lead_to_facts():
    with opened(known().to_html()) as page:
        page.locator("[data-bar='0:1']").click()
        side = page.inner_text(".mg-side")
        for words in ("tanh", "10 µs", "60 µs", "160 B", "800"):
            assert words in side
        press(page, "ArrowLeft")
        assert state(page, "chosen") == "matmul" and "1.6 kB" in page.inner_text(".mg-side")
        press(page, "ArrowDown")
        assert state(page, "chosen") == "kernel_1"
        assert page.locator("rect.mg-lit").count() == 1
        page.locator(".mg-close").click()
        assert state(page, "chosen") == "" and page.locator(".mg-side").is_hidden()


def test_search_and_the_table_light_bars():
    with opened(known().to_html()) as page:
        press(page, "/")
        page.keyboard.type("TAN")
        assert page.locator("text=1 of 1").count() == 1 and page.locator("rect.mg-lit").count() == 1
        assert state(page, "chosen") == "tanh" and "tanh" in page.inner_text(".mg-side"), "with its facts"
        page.keyboard.type("zzz")
        assert page.locator("text=not found").count() == 1
        page.select_option("select[aria-label='which table']", label="eagerly, by step")
        page.locator(".mg-steps tr", has_text="matmul").click()
        lit = page.locator("[data-bar][stroke='var(--now)']")
        assert lit.count() == 1 and lit.get_attribute("data-bar") == "0:0"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1600, 900, 390])
def test_every_width_holds_its_words(width, dark):
    step = mg.jit(lambda x, y: (x @ x).sum() + mg.tanh(y @ y).sum())
    x = mg.ones((16, 16))
    with opened(mg.viz.timeline(step, x, x + 1, runs=1).to_html(), size=(width, 844), dark=dark) as page:
        labels = page.evaluate(LABELS)
        assert len(labels) > 6 and min(size for _, size, _, _ in labels) >= 9
        assert all(left > -1 and right > -1 for _, _, left, right in labels), labels
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_bars_have_one_fill_at_any_width_and_a_narrow_table_scrolls_to_all_columns():
    events = [event("add", begin, end) for begin, end in ((0, 1), (9, 900))]
    view = timeline_of([Record("eagerly", 1000 * US, events)])
    for width in (900, 390):
        with opened(view.to_html(), size=(width, 844)) as page:
            page.wait_for_selector("[data-bar]")
            fills = page.evaluate("[...document.querySelectorAll('[data-bar]')].map((bar) => bar.getAttribute('fill'))")
            assert len(fills) == 2 and len({*fills}) == 1
            assert page.locator(".mg-steps th:visible").count() == 6
            page.evaluate("document.querySelector('.mg-steps').scrollLeft = 1e4")
            last, frame = (page.locator(place).bounding_box() for place in (".mg-steps th >> nth=-1", ".mg-steps"))
            assert last["x"] + last["width"] <= frame["x"] + frame["width"] + 1
            assert page.locator(".mg-steps td").first.bounding_box()["width"] > 120


@pytest.mark.parametrize(("seconds", "cell"), [(1.0, "faster"), (1e-9, "0%"), (0.0, "")])
def test_a_step_that_is_faster_than_its_limit_says_so(monkeypatch, seconds, cell):
    bound = "flops" if seconds else "launch"
    monkeypatch.setattr(roofline, "compared", lambda kernel, took, _: roofline.Measured(kernel, took, bound, seconds))
    x = mg.ones((64, 64))
    with opened(mg.viz.timeline(lambda x: mg.tanh(x) + 1, x, runs=1).to_html()) as page:
        rows = [line.inner_text().split("\t") for line in page.locator("table.mg-compare tr").all()]
        (row,) = [row for row in rows if row[0].startswith("tanh(x)")]
        assert row[6:] == [cell] * bool(seconds), rows


def test_a_label_that_is_cut_keeps_its_end_which_tells_it_from_another():
    ends = ["h, a_name_of_many_letters … … x[start]", "h, a_name_of_many_letters … … x[end]"]
    events = [event(name, begin, begin + 3) for name, begin in zip(ends, (40, 43))]
    with opened(timeline_of([Record("eagerly", 100 * US, events)]).to_html(), size=(900, 500)) as page:
        page.wait_for_selector("[data-bar]")
        first, last = page.locator(".mg-lanes text[transform]").all_text_contents()
        assert first.startswith("h, a") and first.endswith("[start]") and last.endswith("[end]"), (first, last)
        assert first.count("…") == last.count("…") == 1


def test_workers_are_chosen_with_a_slider():
    x = mg.ones((8, 8))
    view = mg.viz.timeline(lambda x, y: (x @ x).sum() + (y @ y).sum(), x, x + 1, runs=0)
    with opened(outputs(view)) as page:
        page.wait_for_selector(".mg-lanes svg")
        assert state(page, "workers") == "2" and page.locator("text=worker 2").count() == 1
        assert page.locator("[data-bar][stroke-dasharray='5 3']").count() == 5
        page.locator("input[type=range]").fill("1")
        assert page.locator("text=worker 2").count() == 0 and "1 worker" in page.inner_text("[aria-live]")
        press(page, "ArrowRight", "Enter")
        side = page.inner_text(".mg-side")
        assert "waits for" in side and "critical" in side and "by the model" in side and "machine's limit" not in side


def test_hostile_names_run_no_script():
    name = "</script><img src=x onerror=\"window.hurt=1\">"
    record = Record("eagerly", 9 * US, [Event(name, name, US, 3 * US, Count(8, 8, 8, 1))])
    view = timeline_of([record], why=name)
    for html in (view.to_html(), outputs(view)):
        with opened(html) as page:
            page.wait_for_selector("[data-bar]")
            page.locator("[data-bar]").first.click()
            press(page, "ArrowRight")
            page.keyboard.press("Enter")
            assert all(name in page.inner_text(part) for part in (".mg-side", ".mg-says"))
            assert name.rpartition("/")[2] in page.inner_text(".mg-steps")
            assert page.evaluate("window.hurt") is None and page.locator("img[src=x]").count() == 0


def test_marks_of_direction_are_written_out_in_the_picture():
    name = "a\u202eb \u05d0\u05d1"
    record = Record(name, 9 * US, [Event(name, name, US, 8 * US, Count(8, 8, 8, 1))])
    with opened(timeline_of([record]).to_html()) as page:
        page.wait_for_selector("[data-bar]")
        words = "\n".join(page.locator(".mg-lanes svg text, .mg-lanes svg title").all_text_contents())
        assert "a\\u202eb \u05d0\u05d1\u200e" in words and "\u202e" not in words


def test_three_thousand_bars_are_drawn_once_a_pixel():
    events = [Event(f"kernel_{i}", "MainThread", i * US, (i + 0.5) * US, Count(8, 8, 8, 1)) for i in range(3000)]
    with opened(timeline_of([Record("as a program", 3000 * US, events)]).to_html()) as page:
        assert page.locator("[data-bar]").count() <= 1100
        press(page, *["w"] * 16)
        assert 5 < page.locator("[data-bar]").count() < 100


def test_in_a_low_window_the_facts_stand_above_the_table():
    with opened(known().to_html(), size=(900, 900)) as page:
        page.focus(".mg-view")
        for key in ("ArrowDown", "Enter"):
            page.keyboard.press(key)
        settled(page)
        side, table = (page.locator(each).bounding_box() for each in (".mg-side", ".mg-below"))
        assert side["y"] + side["height"] <= table["y"] + 1
        page.keyboard.press("w")
        assert page.inner_text("[aria-live]").startswith("from ")
