"""Flipbooks in a real browser: buttons, knobs, keys, clicks on parts of the picture."""

import math
import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import minigrad as mg
from minigrad.viz.drawing import Drawing
from minigrad.viz.exhibit import in_theme
from minigrad.viz.flipbook import Flipbook, Page
from minigrad_course.boards import act_out
from minigrad_course.views.readings import reading
from tests.viz.browser import needs_browser, opened, outputs, settled
from tests.viz.seen import page_of, seen
from tests.viz.ten_programs import TEN

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def ring():
    with opened(mg.viz.cluster(3).to_html()) as page:
        yield page


@pytest.fixture
def begin(ring):
    ring.focus(".mg-view")
    ring.locator("select").select_option("0")
    ring.focus(".mg-view")
    ring.keyboard.press("Home")
    return ring


def step(page):
    return int(page.get_attribute(".mg-view", "data-step"))


def said(page):
    return page.inner_text(".mg-say")


def test_a_newcomer_sees_two_buttons(begin):
    visible = [b.inner_text() for b in begin.locator(".mg-view button").all() if b.is_visible()]
    assert visible == ["‹ back", "next ›", "more ▾"]


def test_next_back_and_the_slider(begin):
    assert step(begin) == 0 and begin.is_disabled("text=‹ back")
    begin.click("text=next ›")
    assert step(begin) == 1 and said(begin).startswith("Round 1 of 4. Reduce-scatter")
    assert begin.inner_text(".mg-count") == "round 1 / 4"
    begin.locator("input[type=range]").first.fill("4")
    assert step(begin) == 4 and begin.is_disabled("text=next ›") and " Done: " in said(begin)
    begin.click("text=‹ back")
    assert step(begin) == 3


def test_keys_and_what_is_read_aloud(begin):
    begin.keyboard.press("ArrowRight")
    begin.keyboard.press("ArrowRight")
    assert step(begin) == 2 and begin.inner_text("[aria-live]") == said(begin)
    begin.keyboard.press("End")
    assert step(begin) == 4
    begin.keyboard.press("ArrowUp")
    assert begin.get_attribute(".mg-view", "data-settings") == "1"
    begin.keyboard.press("?")
    assert begin.is_visible("text=play, stop")
    begin.keyboard.press("?")


def test_changing_a_knob_keeps_the_page(begin):
    begin.keyboard.press("ArrowRight")
    begin.locator("select").select_option("1")
    assert "sends all of its array" in said(begin) and step(begin) == 1


def test_play_by_the_space_key(begin):
    begin.keyboard.press(" ")
    begin.wait_for_function("document.querySelector('.mg-view').dataset.step > 0")
    begin.keyboard.press(" ")
    now = step(begin)
    begin.wait_for_timeout(1100)
    assert step(begin) == now


@pytest.mark.parametrize("motion, pause", [("no-preference", 1000), ("reduce", 1600)])
def test_pages_follow_each_other_more_slowly_for_who_wants_less_motion(motion, pause):
    with opened(mg.viz.cluster(2).to_html()) as page:
        page.emulate_media(reduced_motion=motion)
        page.evaluate("window.setInterval = (does, pause) => { window.pause = pause; return 1; }")
        page.focus(".mg-view")
        page.keyboard.press(" ")
        assert page.evaluate("window.pause") == pause


def test_jupyter_does_not_receive_the_keys(begin):
    assert begin.get_attribute(".mg-view", "data-lm-suppress-shortcuts") == "true"


def test_calls_can_be_chosen_by_mouse_and_keyboard():
    x = mg.ones(2)
    with opened(mg.viz.bench(lambda: mg.tanh(x) + 1).to_html()) as page:
        assert said(page).startswith("1. tanh on cpu runs numpy.tanh: ")
        assert page.locator(".mg-code").count() == 3
        page.locator("select").select_option("1")
        assert said(page).startswith("2. add on cpu runs numpy.add: ")
        page.focus(".mg-view")
        page.keyboard.press("ArrowLeft")
        assert said(page).startswith("1. tanh on cpu") and "def tanh" in page.locator(".mg-side").inner_text()


@pytest.mark.parametrize("width", [1600, 390])
def test_the_keys_are_beside_a_long_list_of_calls(width):
    """A bar that had nothing but the keys was to be opened, and its button was in a second row."""
    x = mg.ones((12, 120, 120))
    with opened(mg.viz.bench(lambda: mg.where(x > 0.123456789, x * 1.23456789, x - 9.87654321)
                             + mg.where(x > 0.987654321, x * 9.87654321, x - 1.23456789)).to_html(),
                size=(width, 900)) as page:
        page.locator("select").select_option("6")
        calls, keys = page.locator("select").bounding_box(), page.locator("button", has_text="?").bounding_box()
        assert abs(calls["y"] + calls["height"] / 2 - keys["y"] - keys["height"] / 2) < 2
        assert calls["x"] + calls["width"] <= keys["x"] and keys["x"] + keys["width"] <= width
        page.click("button:has-text('?')")
        assert page.locator(".mg-help").is_visible() and page.get_by_text("more ▾").count() == 0


def test_a_formula_that_fits_has_no_shade_on_a_narrow_screen():
    """What hides the shade had the colour of the side, which has none of its own there."""
    for height in (900, 901, 950):
        with opened(mg.viz.bench(mg.matmul, mg.ones((2, 2)), mg.ones((2, 2))).to_html(), size=(390, height)) as page:
            for rule in page.locator(".mg-rule").all():
                box = rule.bounding_box()
                shot = page.screenshot(clip={**box, "x": box["x"] + box["width"] - 60, "width": 60}, full_page=True)
                darkest = np.asarray(Image.open(BytesIO(shot)).convert("RGB")).min()
                assert darkest > 250


def test_the_second_page_of_the_bench_shows_why_this_kernel():
    with opened(mg.viz.bench(mg.tanh).to_html()) as page:
        page.get_by_role("button", name="why this kernel").click()
        assert said(page) == "tanh on cpu runs numpy.tanh: () float32 → () float32. It ran at x = 1.05."
        assert page.locator(".mg-facts >> text=Python's part ends here").count() == 1
        x, _ = page.locator("input[type=range]").all()
        x.fill("0")
        assert said(page) == "tanh on cpu runs numpy.tanh: () float32 → () float32. It ran at x = 1.05."
        page.focus(".mg-view")
        page.keyboard.press("ArrowLeft")
        assert said(page).startswith("tanh at x = −3:")


def test_turning_the_knobs_of_the_bench():
    with opened(mg.viz.bench(mg.multiply).to_html()) as page:
        x, y, g = page.locator("input[type=range]").all()
        x.fill("12")
        y.fill("0")
        g.fill("2")
        assert said(page) == "multiply at x = 3, y = −3: −9. With the gradient 1, it passes back −3 to x, 3 to y."
        x.focus()
        page.keyboard.press("ArrowLeft")
        assert page.get_attribute(".mg-view", "data-settings") == "11,0,2"
        page.focus(".mg-view")
        page.keyboard.press("ArrowUp")
        assert page.get_attribute(".mg-view", "data-settings") == "12,0,2"


def test_the_slider_of_checkpoints():
    net = mg.nn.Sequential(*[mg.nn.Sequential(mg.nn.Linear(8, 8), mg.nn.Tanh()) for _ in range(6)])
    with opened(mg.viz.memory(lambda: net(mg.ones((4, 8))).sum()).to_html()) as page:
        slider = page.get_by_role("slider", name="runs")
        says = page.locator(".mg-says")
        assert says.inner_text().startswith("eager: ")
        slider.fill("2")
        assert says.inner_text().startswith("1 checkpoint: ") and "a model" in says.inner_text()
        page.locator(".mg-mark").first.focus()
        page.keyboard.press("Enter")
        assert "until backward: " in page.locator(".mg-side").inner_text()
        slider.focus()
        page.keyboard.press("End")
        assert says.inner_text().startswith("fused: ")
        page.locator('[data-mark$=".most"]').focus()
        page.keyboard.press("Enter")
        side = page.locator(".mg-side").inner_text()
        assert side.partition("at most ")[2] and "until " in side, "what is there at the peak"


def rest():
    net = mg.nn.Linear(2, 2)
    x, y = mg.ones((3, 2)), mg.zeros((3, 2))
    return [
        mg.viz.bench(mg.tanh, x),
        mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.MSELoss(), [(x, y)]),
    ]


def test_other_flipbooks_are_shown_in_light_and_dark():
    for book in rest():
        with opened(book.to_html(), dark=True) as page:
            colour = page.evaluate("getComputedStyle(document.querySelector('.mg-view')).backgroundColor")
            assert colour == "rgb(20, 24, 29)"
            page.focus(".mg-view")
            page.keyboard.press("End")
            page.keyboard.press("ArrowLeft")
            assert said(page) and page.locator(".mg-canvas svg rect").count() > 1
            filled = page.evaluate("getComputedStyle(document.querySelector('.mg-canvas svg rect')).fill")
            assert re.fullmatch(r"rgb\(.*\)", filled)


@pytest.fixture(scope="module")
def runs():
    slow, fast = ([1.0 / (1 + rate * i) + 0.1 * (i % 2) for i in range(40)] for rate in (0.1, 0.5))
    with opened(mg.viz.training({"slow": slow, "<b>fast": fast}).to_html()) as page:
        yield page


CURVES = "[...document.querySelectorAll('.mg-curve path')].map((path) => path.getAttribute('d'))"


def test_curves_can_be_smoothed(runs):
    plain = runs.evaluate(CURVES)
    assert len(plain) == 2 and step(runs) == 39 and runs.locator("b").count() == 0
    slider = runs.get_by_label("smoothing")
    slider.focus()
    for _ in range(4):
        runs.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "0.9" and step(runs) == 39
    curves = runs.evaluate(CURVES)
    assert len(curves) == 4 and [curves[0], curves[2]] == plain
    first, smooth = ([float(y) for y in re.findall(r"[ML]\S+ ([\d.]+)", path)] for path in curves[:2])
    weights = 0.9 ** np.arange(40)[::-1]
    assert smooth[-1] == pytest.approx((weights * first).sum() / weights.sum(), abs=0.1) and smooth[0] == first[0]
    runs.keyboard.press("Home")  # a slider's own key
    runs.evaluate("document.querySelector('.mg-view').focus()")
    slider.fill("0")
    assert runs.evaluate(CURVES) == plain


def test_the_mean_of_a_smoothed_curve_is_that_of_its_numbers_on_each_axis(runs):
    """On a logarithmic axis it was the mean of the places, which is that of the logarithms."""
    runs.get_by_label("axis").select_option("logarithmic")
    settled(runs)
    slider = runs.get_by_label("smoothing")
    slider.fill("7")
    settled(runs)
    places = [[float(y) for y in re.findall(r"[ML]\S+ ([\d.]+)", path)] for path in runs.evaluate(CURVES)[:2]]
    fold = float(runs.locator(".mg-curve").first.get_attribute("data-fold"))
    first, smooth = np.exp(-np.array(places) / fold)
    weights = 0.99 ** np.arange(40)[::-1]
    assert smooth[-1] == pytest.approx((weights * first).sum() / weights.sum(), rel=0.01)
    values = [1 / (1 + 0.1 * i) + 0.1 * (i % 2) for i in (0, 39)]
    assert places[0][-1] - places[0][0] == pytest.approx(fold * np.log(values[0] / values[1]), abs=0.2)
    slider.fill("0")
    runs.get_by_label("axis").select_option("linear")


def test_the_pointer_leads_to_a_moment_with_the_values_of_all_runs(runs):
    box = runs.locator("[data-stops]").first.bounding_box()
    runs.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    runs.wait_for_function("document.querySelector('.mg-view').dataset.step < 39")
    assert step(runs) in (19, 20) and runs.inner_text("[aria-live]") == said(runs)
    assert re.fullmatch(r"After step 2[01]: loss 0.\d+ in slow, 0.\d+ in <b>fast\.", said(runs))
    runs.mouse.move(5, 5)
    settled(runs)
    runs.focus(".mg-view")
    before = step(runs)
    runs.keyboard.press("ArrowLeft")
    assert step(runs) == before - 1
    runs.keyboard.press("End")
    assert step(runs) == 39


def test_the_axis_of_curves_can_be_chosen(runs):
    plain, here = runs.evaluate(CURVES), step(runs)
    runs.get_by_label("axis").select_option("logarithmic")
    assert runs.evaluate(CURVES) != plain and step(runs) == here
    runs.get_by_label("axis").select_option("linear")
    assert runs.evaluate(CURVES) == plain  # it fits


def test_moments_of_a_run_have_the_numbers_of_their_steps():
    with opened(mg.viz.training([1 / step for step in range(1, 61)]).to_html()) as page:
        page.click("text=‹ back")
        aloud = page.get_by_role("slider").first.get_attribute("aria-valuetext")
        assert page.inner_text(".mg-count") == aloud == "step 59 / 60"


@pytest.mark.parametrize("size", [(390, 844), (900, 700)])
def test_runs_are_readable_at_each_width(size):
    board = mg.viz.Dashboard(show="nothing")
    for number in range(1, 60):
        board.log(number, loss=1 / number, accuracy=number / 60)
    with opened(board.to_html(), size=size) as page:
        settled(page)
        assert page.evaluate("((c) => c.scrollWidth <= c.clientWidth + 2)(document.querySelector('.mg-canvas'))")
        assert min(page.evaluate(HEIGHTS)) > 9
        page.get_by_label("axis").select_option("logarithmic")
        assert page.locator(".mg-curve path").count() == 2 and said(page).startswith("After step 59")


def test_hostile_names_run_no_script():
    name = "<img src=x onerror='window.hit=1'></script><script>window.hit=1</script>"
    drawing = Drawing(100, 50)
    drawing.rect(0, 0, 50, 20, about=name, go="page:0")
    drawing.text(0, 40, name)
    with opened(Flipbook(name, [[Page(drawing, name, ((name, ("text", name)),))]]).to_html()) as page:
        page.click("[data-go]")
        settled(page)
        assert page.evaluate("window.hit") is None and said(page) == name


def test_a_name_that_is_read_from_right_to_left_leaves_each_number_at_its_name():
    view = mg.viz.training({"\u05d0\u05d1 \u05d2": [1.0, 0.5], "\u0645\u0631": [2.0, 0.7], "c": [3.0, 0.1]})
    with opened(view.to_html(), size=(1600, 900)) as page:
        lefts = page.evaluate("""() => {
          const [text] = document.querySelector(".mg-say").childNodes, range = document.createRange();
          return ["0.5", "\u05d0", "0.7", "\u0645", "0.1"].map((part) => {
            range.setStart(text, text.data.indexOf(part));
            range.setEnd(text, text.data.indexOf(part) + part.length);
            return range.getBoundingClientRect().left;
          });
        }""")
    assert lefts == sorted(lefts)


@pytest.mark.parametrize("letters", ["\ufb2a\ufb4b", "\ufe8d\ufefc", "\u05d0 \ufdf2"])
def test_marks_of_direction_are_written_out(letters):
    """Also in the line above charts, and around the forms of letters that are in Unicode for older fonts."""
    name = f"a\u202e {letters}"
    chart = Flipbook("a chart", [[Page(Drawing(60, 40), name)]], marks={"key": ("a mark", [])})
    for view, line in ((mg.viz.training({name: [1.0, 0.5], "c": [3.0, 0.1]}), ".mg-say"), (chart, ".mg-says")):
        with opened(view.to_html()) as page:
            assert f"a\\u202e {letters}\u200e" in page.locator(line).first.text_content()


HOSTILE = ("<script>window.hit = 1</script>", "a\u202eb\u2066c", "n" * 3000, "$x$ `y` \x1b[31m")


@pytest.mark.parametrize("size", [(1600, 900), (390, 844)])
def test_names_of_any_length_and_direction_leave_room_for_the_curves(size):
    """Each number stands behind the name that it belongs to."""
    board = mg.viz.Dashboard(show="nothing")
    for step in range(3):
        board.log(step, **{name: step + 0.25 * i for i, name in enumerate(HOSTILE)})
    runs = mg.viz.training({name: [1.0 + i, 0.5 * i] for i, name in enumerate(HOSTILE)})
    for view in (board, runs):
        assert seen(page_of(view), size, True) == {}
        with opened(page_of(view), size=size) as page:
            settled(page)
            assert page.evaluate("document.querySelector('.mg-picture rect').getBoundingClientRect().top") < size[1]
            words = "a\\u202eb\\u2066c"
            assert (f"{words} 2.25; " if view is board else f"0.5 in {words}, ") in said(page)


@pytest.mark.parametrize("size", [(1600, 900), (390, 844)])
def test_numbers_with_many_digits_are_cut_off_with_a_sign(size):
    """Those at an axis, and the classes below pictures."""
    near = mg.viz.training([0.0108410 + 1e-8 * k for k in range(9)])
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(16, 100_000))
    labels = mg.asarray(np.arange(10_000, 90_001, 10_000))
    x = mg.asarray(np.arange(144.0, dtype=np.float32).reshape(9, 4, 4))
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    classes = mg.viz.training(net, optimizer, mg.nn.CrossEntropyLoss(), [(x, labels)] * 2)
    for view in (near, classes):
        assert seen(page_of(view), size, False) == {}


def test_images_are_grey_smooth_and_unchanged():
    """The browser reads the PNG: the same levels, drawn larger than its 8 × 8 numbers."""
    digit = np.random.default_rng(0).integers(0, 17, (1, 8, 8))
    digit[0, 0, :2] = 0, 16
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 2))
    batch = mg.asarray(digit.astype(np.float32)), mg.asarray([0])
    book = mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.CrossEntropyLoss(), [batch])
    with opened(book.to_html()) as page:
        image = page.locator(".mg-view image")
        assert image.bounding_box()["width"] > 30
        assert image.evaluate("i => getComputedStyle(i).imageRendering") == "auto"  # smooth
        levels = image.evaluate("""async (image) => {
          const answer = await fetch(image.getAttribute("href"));
          const bitmap = await createImageBitmap(await answer.blob());
          const canvas = Object.assign(document.createElement("canvas"), { width: 8, height: 8 });
          const context = canvas.getContext("2d");
          context.drawImage(bitmap, 0, 0);
          return [...context.getImageData(0, 0, 8, 8).data].filter((_, i) => i % 4 === 1);
        }""")
        np.testing.assert_allclose(levels, digit.reshape(-1) * 255 / 16, atol=1)


def test_misread_digits_are_framed_and_large():
    """The page before, the page after, and the page with both."""
    images = np.tile(np.eye(8), (40, 1, 1))
    labels = np.arange(40) % 10
    after = np.where(np.arange(40) == 7, 1, labels)
    book = reading("a training", [(1, 2.3), (2, 0.1)], images, labels, np.zeros(40, int), after)
    with opened(book.to_html(), dark=True) as page:
        frames = "document.querySelector('.mg-canvas path[stroke*=now]').getAttribute('d').split('M').length - 1"
        for name, large, many in (("before", 16, 36), ("after", 1, 1)):
            page.get_by_role("button", name=name, exact=True).click()
            assert page.locator(".mg-canvas image").count() == 1 + large and page.evaluate(frames) == many
        assert page.locator(".mg-canvas text", has_text="7 as 1").is_visible()
        assert "39 of 40 pictures are read correctly" in said(page)
        page.get_by_role("button", name="before and after").click()
        assert page.locator(".mg-canvas image").count() == 2 + 16 + 1


def test_two_flipbooks_share_a_page():
    with opened(outputs(mg.viz.cluster(2), mg.viz.bench(mg.tanh))) as page:
        page.locator(".mg-view").nth(1).wait_for()  # each begins when its picture has loaded
        first, second = page.locator(".mg-view").all()
        first.locator("text=next ›").click()
        assert first.get_attribute("data-step") == "1" and second.get_attribute("data-step") == "0"
        second.locator("input[type=range]").first.fill("0")
        assert second.locator(".mg-say").inner_text().startswith("tanh at x = −3:")
        assert page.locator("img").count() == 0


LAB = """<style>
  .jp-RenderedHTMLCommon table { table-layout: fixed; margin-bottom: 1em; }
  .jp-RenderedHTMLCommon :is(td, th, tr) { padding: 0.5em; }
  :not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon :is(td, th, tr) { text-align: right; }
</style>"""


def test_tables_and_knobs_are_in_jupyterlab_as_in_a_page_of_their_own():
    """Heads of columns stood on each other, names on the right; and the style of a stepper was that of all knobs."""
    x = mg.asarray(2.0, requires_grad=True)
    step = mg.distributed.Step.even(4, forward=0.1, backward=0.2, gradients=1e8)
    model = mg.viz.cluster(step, mg.distributed.Machine(20e-6, 1e10), {"tree": {"algorithm": "tree"}})
    looks = """() => [...document.querySelectorAll(".mg-flip table")].map((each) => [
      getComputedStyle(each).tableLayout, getComputedStyle(each.querySelector("td")).textAlign,
      [each.closest(".mg-side"), ...each.querySelectorAll("th")].every((e) => e.scrollWidth <= e.clientWidth)])"""
    name = "getComputedStyle([...document.querySelectorAll('.mg-knob-name')].at(-1)).fontWeight"
    with opened(model._repr_mimebundle_()["text/html"], size=(900, 800)) as page:
        own, weight = page.evaluate(looks), page.evaluate(name)
    forms = "".join([view._repr_mimebundle_()["text/html"] for view in (model, mg.viz.step(x * x), model)])
    with opened(f"{LAB}<div class='jp-RenderedHTMLCommon'>{forms}</div>", size=(900, 800)) as page:
        assert page.evaluate(looks)[: len(own)] == own and {layout for layout, *_ in own} == {"auto"}
        assert all(whole for *_, whole in own) and page.evaluate(name) == weight


def test_picture_and_words_remain_without_scripts():
    for book in rest():
        html = book._repr_mimebundle_()["text/html"]
        bare = re.sub(r' onload="[^"]*"', "", html)  # as in an untrusted notebook
        with opened(bare) as page:
            assert page.evaluate("document.querySelector('img').naturalWidth") > 100
            assert len(page.locator("pre").text_content()) > 3


def test_widget_sends_its_page_to_python():
    pytest.importorskip("anywidget")
    widget = mg.viz.cluster(2).widget()
    widget.step = 1
    assert widget.data["unit"] == "round" and "const show" in widget._esm and widget.step == 1


HEIGHTS = "[...document.querySelectorAll('.mg-picture text')].map((text) => text.getBoundingClientRect().height)"
TOUCHING = """() => {
  const texts = [...document.querySelectorAll(".mg-picture text")];
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return texts.flatMap((text, i) => texts.slice(i + 1)
    .filter((other) => touch(text.getBoundingClientRect(), other.getBoundingClientRect()))
    .map((other) => [text.textContent, other.textContent]));
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_a_live_dashboard_has_the_colours_of_its_notebook(dark):
    board = mg.viz.Dashboard(show="nothing")
    board.log(1, loss=1.0)
    board.log(2, loss=0.5)
    theme = f'data-jp-theme-light="{str(not dark).lower()}"'
    with opened(f"<!doctype html><body {theme}>{in_theme(board._static())}</body>", dark=not dark) as page:
        page.wait_for_function("document.querySelector('img').complete")
        levels = np.array(Image.open(BytesIO(page.locator("img").screenshot())).convert("L"))
    paper, ink = levels[5, 5], levels[:40].min() if levels[5, 5] > 128 else levels[:40].max()
    assert (paper < 40) == dark and abs(int(paper) - int(ink)) > 150  # and its text is legible


def test_on_a_narrow_screen_pictures_beside_a_chart_move_below_it_as_they_are():
    board = mg.viz.Dashboard(show="nothing")
    model = mg.nn.Linear(3, 2)
    for step in range(1, 5):
        board.log(step, loss=1.0 / step, model=model)
    with opened(board.to_html(), size=(390, 844)) as page:
        settled(page)
        where = page.evaluate("""() => {
          const box = (name) => document.querySelector(name).getBoundingClientRect();
          const [name, chart] = [".mg-beside text", ".mg-picture > rect"].map(box);
          return [name.left, name.top, chart.left, chart.bottom];
        }""")
        assert where[0] < 100 and where[1] > where[3]


FRAMES = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [picture, frame] = [box(".mg-picture"), box(".mg-canvas")];
  return [picture.right <= frame.right, picture.bottom <= frame.bottom, document.querySelector(".mg-beyond").hidden];
}"""


@pytest.mark.parametrize("shape", [(4, 1), (4, 5), (4, 1, 8, 8)])
def test_all_of_a_training_is_in_a_window_of_900_pixels(shape):
    model = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(math.prod(shape[1:]), 1), mg.nn.Linear(1, 1))
    batch = mg.asarray(np.ones(shape, np.float32)), mg.ones((4, 1))
    book = mg.viz.training(model, mg.optim.SGD(model.parameters(), lr=0.01), mg.nn.MSELoss(), [batch] * 3)
    with opened(page_of(book), size=(900, 900)) as page:
        settled(page)
        assert page.evaluate(FRAMES) == [True, True, True]
        assert "all numbers, over all steps" in page.inner_text(".mg-side") and min(page.evaluate(HEIGHTS)) > 9
    with opened(page_of(book), size=(1030, 760)) as page:  # beside the panel the picture is narrower
        settled(page)
        wide, (left, below) = page.evaluate(FRAMES)[0], page.evaluate("""[".mg-beside", ".mg-picture"].map((name) =>
          document.querySelector(name).getBoundingClientRect().left)""")
        assert wide and abs(left - below) < 60  # the weights are below the curves


def test_what_is_beside_the_curves_of_a_training_cuts_no_curve():
    model = mg.nn.Sequential(mg.nn.Embedding(9, 40), *[mg.nn.Linear(40, 40) for _ in range(6)], mg.nn.Linear(40, 9))
    tokens = mg.asarray(np.arange(64).reshape(4, 16) % 9)
    loss = lambda scores, y: mg.cross_entropy(scores.reshape(-1, 9), y)  # noqa: E731
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    book = mg.viz.training(model, optimizer, loss, [(tokens, tokens.reshape(-1))] * 2)
    with opened(page_of(book), size=(900, 900)) as page:
        page.wait_for_timeout(100)
        ends = page.evaluate("""["[data-stops]", ".mg-canvas"].map((name) =>
          Math.max(...[...document.querySelectorAll(name)].map((each) => each.getBoundingClientRect().bottom)))""")
        assert ends[0] < ends[1] and not page.evaluate(FRAMES)[1], "the batch is below the weights"


@pytest.mark.parametrize("size", [(390, 844), (900, 900)])
def test_images_of_a_batch_keep_their_proportions(size):
    model = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 3))
    batch = mg.ones((10, 8, 8)), mg.asarray([0, 1] * 5)
    book = mg.viz.training(model, mg.optim.SGD(model.parameters(), lr=0.1), mg.nn.CrossEntropyLoss(), [batch])
    with opened(page_of(book), size=size) as page:
        settled(page)
        images = page.locator("image").evaluate_all("(all) => all.map((each) => each.getBoundingClientRect())")
        assert all(abs(each["width"] - each["height"]) < 1 and each["right"] < size[0] for each in images)
        assert page.evaluate(FRAMES)[0] and page.evaluate(TOUCHING) == []


def test_a_schedule_is_not_smoothed():
    noisy = [{"loss": 1 / step + 0.1 * (step % 2), "rate": 0.1 * 0.9**step} for step in range(1, 30)]
    with opened(mg.viz.training(noisy).to_html()) as page:
        plain = page.evaluate(CURVES)
        page.get_by_label("smoothing").fill("4")
        assert [*page.evaluate(CURVES)[2:]] == plain[1:] and len(page.evaluate(CURVES)) == 3
    with opened(mg.viz.training([row["rate"] for row in noisy]).to_html()) as page:
        assert page.get_by_label("smoothing").count() == 0


def test_a_chart_that_was_seen_as_a_whole_stays_so_under_a_longer_note(tmp_path):
    x = mg.ones(6, requires_grad=True)
    book = mg.viz.memory(lambda x: mg.tanh(x * x).sum(), x)
    short, long = book.pages[0][0], book.pages[1][0]
    assert short.drawing.frame() == long.drawing.frame() and len(short.say) < len(long.say)
    book.save(tmp_path / "page.html")
    with opened((tmp_path / "page.html").read_text(encoding="utf-8"), size=(1840, 700)) as page:
        settled(page)
        room = page.evaluate("document.querySelector('.mg-canvas').clientHeight")
        assert page.is_hidden(".mg-beyond")
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        settled(page)
        assert page.evaluate("document.querySelector('.mg-canvas').clientHeight") < room, "the note has two lines"
        assert page.is_hidden(".mg-beyond")


@pytest.mark.parametrize("view", ["memory", "tape", "nothing kept", "bench"])
def test_a_narrow_screen_shows_the_whole_width_of_a_chart_and_its_text_at_full_size(view):
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.GELU(), mg.nn.Linear(8, 8), mg.nn.Tanh())
    x = mg.ones((2, 4))
    book = {
        "memory": lambda: mg.viz.memory(model, x),
        "tape": lambda: mg.viz.memory(lambda x: model(x).sum(), x),
        "nothing kept": lambda: mg.viz.memory(lambda: mg.ones(3, requires_grad=True).sum()),
        "bench": lambda: mg.viz.bench(mg.tanh),
    }[view]()
    with opened(book.to_html(), size=(390, 844)) as page:
        settled(page)
        assert page.evaluate("((c) => c.scrollWidth <= c.clientWidth)(document.querySelector('.mg-canvas'))")
        assert page.locator(".mg-legends span").count() >= 1
        assert min(page.evaluate(HEIGHTS)) > 10
        assert page.evaluate(TOUCHING) == []
    with opened(book.to_html(), size=(1100, 700)) as page:
        assert page.locator(".mg-legends span").count() == 0 and page.locator(".mg-picture .mg-legend").count() >= 1


def test_on_a_narrow_screen_arrows_from_left_to_right_still_join_their_boxes():
    graph = {"a": ("multiply", "x", 2), "b": ("subtract", "a", "x"), "y": ("multiply", "b", "b")}
    gaps = """() => {
      const placed = (selector) => [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect());
      const boxes = placed(".mg-go > rect");
      return placed(".mg-picture g[transform] > path")
        .map(({ right }) => Math.min(...boxes.map((box) => Math.abs(box.left - right))));
    }"""
    for width in (390, 1100):
        with opened(act_out(graph, {"x": 3.0}, "y").to_html(), size=(width, 844)) as page:
            settled(page)
            found = page.evaluate(gaps)
            assert len(found) == 5 and max(found) < 4, found


def test_on_a_narrow_screen_shapes_stay_at_their_places():
    """A mark of a step is above it, and the tip of an arrow ends it, although neither has a stroke."""
    ends = """(selector) => [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect())
      .map(({ left, right, top, bottom }) => [left, right, (top + bottom) / 2])"""
    rows = [{"loss": loss, "accuracy": 1.0} for loss in (1.0, math.nan, 2.0, math.inf, 1.0)]
    with opened(mg.viz.training(rows).to_html(), size=(390, 844)) as page:
        settled(page)
        [[left, right, _]] = page.evaluate(ends, ".mg-picture path[fill*='bad'][stroke=none]")  # both marks
        levels = [(a + b) / 2 for a, b, _ in page.evaluate(ends, ".mg-picture text[text-anchor=middle]")]
        assert abs(left + 2 - levels[1]) < 4 and abs(right - 2 - levels[3]) < 4
    with opened(mg.viz.cluster(2).to_html(), size=(390, 844)) as page:
        page.click("text=next ›")
        settled(page)
        ways = page.evaluate(ends, ".mg-picture path[fill=none][stroke*='back']")
        tips = page.evaluate(ends, ".mg-picture path[fill*='back'][stroke=none]")
        assert len(ways) == len(tips) == 2 and all(way[0] <= tip[1] <= way[1] for way, tip in zip(ways, tips))


def test_on_a_narrow_screen_a_chart_takes_the_room_of_its_legend():
    name = "learning rate 0.1, with a warm-up and a cosine"
    with opened(mg.viz.training({name: [1.0, 0.5], "plain": [1.0, 0.7]}).to_html(), size=(390, 844)) as page:
        settled(page)
        assert page.locator(".mg-legends span").all_inner_texts() == [name, "plain"]
        chart = page.locator(".mg-picture rect").first.bounding_box()
        assert chart["x"] + chart["width"] > 355


def test_on_a_narrow_screen_numbers_at_an_axis_touch_no_other_chart():
    step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    view = mg.viz.cluster(step, mg.distributed.Machine(20e-6, 1e10), {"large buckets": {"bucket": 500e6}})
    with opened(view.to_html(), size=(390, 844)) as page:
        settled(page)
        charts, numbers = page.evaluate("""() => ["rect", "text[text-anchor=end]"].map((kind) =>
          [...document.querySelectorAll(`.mg-picture ${kind}`)].map((each) => each.getBoundingClientRect()))""")
        for chart in charts:
            beside = [n for n in numbers if n["bottom"] > chart["top"] and n["top"] < chart["bottom"]]
            assert not [n for n in beside if n["left"] < chart["right"] + 3 and n["right"] > chart["right"]]


def test_a_chart_is_as_wide_as_its_frame_and_arrows_turn_its_knob():
    x = mg.ones((4, 8), requires_grad=True)
    net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(8)])
    with opened(mg.viz.memory(lambda x: net(x).sum(), x).to_html(), size=(760, 700)) as page:
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.mg-canvas'))") <= 2
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        assert page.get_attribute(".mg-view", "data-settings") == "1"
        assert page.inner_text(".mg-says").startswith("0 checkpoints")
        page.keyboard.press("ArrowDown")
        assert page.locator(".mg-mark:focus").count() == 1
        page.keyboard.press("ArrowRight")
        assert page.get_attribute(".mg-view", "data-settings") == "2", "as the list of keys says"


@pytest.mark.parametrize("made", [
    lambda: mg.viz.memory(lambda x: mg.nn.LSTM(3, 4)(x)[0].sum(), mg.ones((5, 2, 3))),
    lambda: mg.viz.memory(x=mg.ones((3, 4)), y=mg.ones(2)),
])
def test_up_and_down_lead_to_every_mark_of_a_chart(made):
    with opened(made().to_html(), size=(1100, 800)) as page:
        settled(page)
        here = "document.activeElement.dataset.mark ?? ''"
        marks = page.evaluate("[...document.querySelectorAll('.mg-mark')].map((each) => each.dataset.mark)")
        found = []
        for key in ("ArrowDown", "ArrowUp"):
            page.focus(".mg-view")
            if key == "ArrowUp":
                page.locator(f"[data-mark='{found[-1]}']").last.focus()
            found = [page.evaluate(here)] * (key == "ArrowUp")
            for _ in marks:
                page.keyboard.press(key)
                found.append(page.evaluate(here))
            assert {*found} >= {*marks}, {*marks} - {*found}


@pytest.mark.parametrize("size", [(900, 700), (390, 844)])
def test_the_axis_of_memory_is_in_sight_in_a_small_window(size, tmp_path):
    """Of a recurrent layer, it names the phases, the layers and the rounds."""
    layer, x = mg.nn.LSTM(5, 8, batch_first=True), mg.ones((3, 7, 5), requires_grad=True)
    mg.viz.memory(lambda x: (layer(x)[0][:, -1] ** 2).mean(), x).save(tmp_path / "page.html")
    with opened((tmp_path / "page.html").read_text(encoding="utf-8"), size=size) as page:
        settled(page)
        phase = page.locator(".mg-picture text", has_text="backward").last.bounding_box()
        frame = page.locator(".mg-canvas").bounding_box()
        assert phase["y"] + phase["height"] < min(size[1], frame["y"] + frame["height"])


@pytest.mark.slow
def test_names_at_the_edge_of_a_squeezed_chart_stay_inside():
    function, *args = TEN["branches_and_loops"]()
    with opened(mg.viz.memory(function, *args).to_html(), size=(390, 844)) as page:
        settled(page)
        picture, *names = page.evaluate("""() => [...document.querySelectorAll(".mg-picture, .mg-picture text")]
          .map((each) => each.getBoundingClientRect())""")
        assert len(names) > 20 and all(name["right"] <= picture["right"] + 1 for name in names)


@pytest.mark.slow
def test_a_click_on_a_step_of_a_call_marks_its_code():
    book = mg.viz.bench(lambda x: mg.nn.Linear(4, 4)(x).sum(), mg.ones((2, 4)))
    with opened(book.to_html()) as page:
        page.locator(".mg-go").last.click()
        (marked,) = page.locator(".mg-lit").all()
        heading = marked.evaluate("code => code.previousElementSibling.textContent")
        assert heading.startswith("kernel, ") and marked.evaluate("code => code.getBoundingClientRect().bottom") <= 1000
        assert page.locator("optgroup").count() == 0
