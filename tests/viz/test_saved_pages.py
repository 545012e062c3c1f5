"""A view saved as one HTML file: it steps from the disk, asks for nothing, and fits itself into a page around it."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.exhibit import Exhibit
from minigrad_course.letters import GPT
from tests.course.running import ROOT
from tests.viz.browser import needs_browser, opened, settled


def _loss():
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    return a * a + a


def _f(x):
    return mg.tanh(x) * 2 + 1


# For each script that shows views: a view, and a key that changes it.
PICTURE = ".mg-canvas, .mgw-holder"
VIEWS = {
    "step": (lambda: mg.viz.step(_loss()), "ArrowRight"),
    "graph": (lambda: mg.viz.graph(_loss()), "?"),
    "fusion": (lambda: mg.viz.fusion(_f, mg.ones(3)), "m"),
    "timeline": (lambda: mg.viz.timeline(_f, mg.ones(3), runs=1), "w"),
    "flipbook": (lambda: mg.viz.cluster(3), "ArrowRight"),
}
PICTURE = ".mg-canvas, .mgw-holder, .mg-lanes"  # of a view


def kinds_of_views(cls=Exhibit):
    for kind in cls.__subclasses__():
        yield kind
        yield from kinds_of_views(kind)


def snippet():
    """The lines that `lectures/share.md` gives to authors of pages."""
    text = (ROOT / "lectures" / "share.md").read_text(encoding="utf-8")
    return re.search(r"```html\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with every view as a file, and pages around them."""
    folder = tmp_path_factory.mktemp("saved")
    for name, (view, _) in VIEWS.items():
        view().save(folder / f"{name}.html")
        page = f"<!doctype html><p>A page.</p>{snippet().replace('steps.html', f'{name}.html')}"
        (folder / f"around-{name}.html").write_text(page, encoding="utf-8")
    return folder


def test_every_kind_of_view_is_saved_here():
    for name in mg.viz.__all__:
        getattr(mg.viz, name)
    assert {kind.script for kind in kinds_of_views()} == set(VIEWS)


def test_the_page_about_saving_lists_every_view():
    table = (ROOT / "lectures" / "share.md").read_text(encoding="utf-8").partition("|---|---|")[2].partition("\n\n")[0]
    classes = {"Picture", "Stepper", "Fusion", "Timeline", "Flipbook"}  # what the functions return
    assert set(re.findall(r"`(\w+)`", table)) == set(mg.viz.__all__) - classes - {"shown"}


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_a_saved_view_refers_to_nothing_else(folder, name):
    text = (folder / f"{name}.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)|@import|url\((?!['"]?data:)|fetch\(""", text)
    assert "http" not in text.replace("http://www.w3.org/", "")


@needs_browser
@pytest.mark.parametrize("name", VIEWS)
def test_a_saved_view_opens_from_the_disk_and_answers_keys(folder, name):
    with opened(url=(folder / f"{name}.html").as_uri()) as page:
        page.locator(".mg-view button:visible").first.wait_for()
        for _ in range(1 + page.locator(".mg-intro summary").count()):  # over the code, into the view
            page.keyboard.press("Tab")
        before = page.locator(".mg-view").evaluate("view => view.outerHTML")
        page.keyboard.press(VIEWS[name][1])
        page.wait_for_function("before => document.querySelector('.mg-view').outerHTML !== before", arg=before)


@needs_browser
@pytest.mark.parametrize("name", VIEWS)
def test_a_frame_is_as_high_as_the_view_and_follows_the_width(folder, name):
    with opened(url=(folder / f"around-{name}.html").as_uri(), size=(1000, 900)) as page:
        page.frame_locator("iframe").locator(".mg-view").wait_for()
        (frame,) = page.main_frame.child_frames
        for width in (1000, 400):
            page.set_viewport_size({"width": width, "height": 900})
            frame.wait_for_function("""width => {
              const { offsetHeight } = document.querySelector(".mg-view");
              return innerWidth <= width && innerWidth > width / 2 && Math.abs(innerHeight - offsetHeight) < 4;
            }""", arg=width)
            assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")


@needs_browser
def test_a_saved_stepper_steps_in_a_frame(folder):
    with opened(url=(folder / "around-step.html").as_uri()) as page:
        view = page.frame_locator("iframe").locator(".mg-view")
        view.focus()
        before = view.get_attribute("data-step")
        page.keyboard.press("ArrowRight")
        page.frame_locator("iframe").locator(f".mg-view:not([data-step='{before}'])").wait_for()
        page.frame_locator("iframe").get_by_role("button", name="next ›").click()


PLACES = """() => {
  const [view, canvas, svg, side] = [".mg-view", ".mg-canvas", ".mg-canvas svg", ".mg-side"].map((name) => {
    const { left, right, top, bottom, width, height } = document.querySelector(name).getBoundingClientRect();
    return { left, right, top, bottom, width, height };
  });
  return { view, canvas, svg, side };
}"""


def places(page):
    """Where the parts of a view are when it has been drawn."""
    page.locator(".mg-canvas svg").wait_for()
    settled(page)
    return page.evaluate(PLACES)


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    """Pages whose pictures are larger than a notebook's frame: a stepper, and a chart with facts."""
    model = mg.nn.Sequential(*[layer for _ in range(5) for layer in (mg.nn.Linear(32, 32), mg.nn.ReLU())])
    x = mg.ones((32, 32))
    folder = tmp_path_factory.mktemp("larger")
    mg.viz.step(mg.cross_entropy(model(x), mg.zeros(32, dtype=mg.int64))).save(folder / "step.html")
    mg.viz.memory(lambda x: mg.tanh(model(x)), x).save(folder / "chart.html")
    mg.viz.timeline(model, x, runs=1).save(folder / "timeline.html")
    page = '<!doctype html><iframe src="step.html" style="width: 900px; height: 800px"></iframe>'
    (folder / "framed.html").write_text(page)
    return folder


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(900, 900), (1600, 1000)])
def test_a_picture_that_is_larger_than_a_frame_fills_the_window(larger, size, dark):
    with opened(url=(larger / "step.html").as_uri(), size=size, dark=dark) as page:
        found = places(page)
        above = page.locator(".mg-intro").bounding_box()["height"]
        assert found["view"]["height"] == pytest.approx(size[1] - above, abs=1) and above < 100
        assert found["svg"]["width"] <= found["canvas"]["width"], "the backward half is in sight"
        beside = 0 if size[0] <= 1000 else found["side"]["width"]
        assert found["canvas"]["width"] == pytest.approx(size[0] - beside, abs=4)
        for _ in range(6):  # while steps are made, the picture keeps its place
            page.keyboard.press("ArrowRight")
            now = places(page)
            assert now["canvas"] == found["canvas"] and now["view"] == found["view"]


@needs_browser
def test_a_chart_that_is_cut_at_900_pixels_says_so(larger):
    with opened(url=(larger / "chart.html").as_uri(), size=(900, 900)) as page:
        page.locator(".mg-mark").first.press("Enter")
        found = places(page)
        assert found["canvas"]["left"] <= found["svg"]["left"]
        assert found["svg"]["right"] <= found["canvas"]["right"] or page.is_visible(".mg-beyond")
        assert found["side"]["top"] >= found["canvas"]["bottom"] - 1 and found["view"]["bottom"] <= 900


PRINTED = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [view, svg] = [box(".mg-view"), box(".mg-canvas svg, .mg-lanes svg")];
  const cut = [...document.querySelectorAll(".mg-view :is(.mg-canvas, .mg-lanes, .mg-side, .mg-steps)")]
    .filter((each) => each.scrollHeight > each.clientHeight + 2 || each.scrollWidth > each.clientWidth + 2);
  return [cut.map((each) => each.className), svg.left >= view.left && svg.right <= view.right];
}"""


@needs_browser
@pytest.mark.parametrize("name", ["step", "chart", "timeline"])
def test_on_paper_nothing_is_cut(larger, name):
    """A picture on paper can't be dragged."""
    with opened(url=(larger / f"{name}.html").as_uri(), size=(794, 1123)) as page:
        page.emulate_media(media="print")
        settled(page)
        assert page.evaluate(PRINTED) == [[], True]


@needs_browser
def test_in_a_low_window_everything_can_be_reached(larger):
    with opened(url=(larger / "step.html").as_uri(), size=(900, 300)) as page:
        page.get_by_role("button", name="next ›").click()
        page.locator(".mg-side .mg-code").scroll_into_view_if_needed()
        assert places(page)["view"]["height"] <= 300


@needs_browser
def test_in_a_frame_a_page_is_as_in_a_notebook(larger):
    with opened(url=(larger / "framed.html").as_uri(), size=(1000, 900)) as page:
        frame = page.frame_locator("iframe")
        assert frame.locator(".mg-stage").evaluate("stage => stage.offsetHeight") == 640
        side, canvas = (frame.locator(name).bounding_box() for name in (".mg-side", ".mg-canvas"))
        assert side["y"] < canvas["y"] + 2


@needs_browser
def test_a_saved_view_is_light_or_dark(folder):
    colour = "getComputedStyle(document.querySelector('.mg-view')).backgroundColor"
    dark, light = "rgb(20, 24, 29)", "rgb(255, 255, 255)"
    for system, address, wanted in (
        (True, "", dark), (False, "", light), (True, "#light", light), (False, "#dark", dark),
    ):
        with opened(url=(folder / "step.html").as_uri() + address, dark=system) as page:
            page.locator(".mg-view").wait_for()
            assert page.evaluate(colour) == wanted, (system, address)


@needs_browser
def test_without_scripts_a_picture_and_words_remain(folder):
    with opened(url=(folder / "step.html").as_uri(), scripts=False) as page:
        assert page.locator("img[alt]").count() == 1
        assert page.get_by_text("in words").bounding_box()["x"] > 10, "not at the edge of the window"
        page.get_by_text("in words").click()
        assert "We start at" in page.locator("#view pre").inner_text()


@pytest.mark.slow
def test_a_file_is_small_enough_to_mail():
    text = mg.asarray(np.arange(320).reshape(32, 10) % 27)
    model = GPT()
    loss = mg.cross_entropy(model(text).reshape(320, 27), text.reshape(320))
    assert len(mg.viz.step(_loss()).to_html()) < 110_000
    assert len(mg.viz.step(loss).to_html()) < 300_000


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 900, 1600])
@pytest.mark.parametrize("name", ["step", "fusion", "flipbook", "timeline"])
def test_no_picture_covers_the_facts_beside_it(name, width, tmp_path):
    VIEWS[name][0]().save(str(tmp_path / "view.html"))
    with opened(url=(tmp_path / "view.html").as_uri(), size=(width, 900)) as page:
        if name == "timeline":  # the facts of a bar
            page.locator("[data-bar]").first.click()
        page.locator(".mg-side").first.wait_for()
        settled(page)
        picture, facts = page.locator(PICTURE).first.bounding_box(), facts_of(page)
    for each in facts:
        assert apart(picture, each) or picture["x"] + picture["width"] <= each["x"] + 1, (picture, each)


def facts_of(page):
    """The place of the facts; on a narrow screen, a flipbook's sentence and tables have places of their own."""
    side = page.locator(".mg-side").first
    parts = [side] if side.bounding_box() else side.locator("> *").all()
    places = [part.bounding_box() for part in parts]
    return [place for place in places if place and place["height"]]


def apart(picture, facts):
    """Whether the facts are below the picture, or above it, as in a flipbook."""
    first, second = sorted((picture, facts), key=lambda box: box["y"])
    return first["y"] + first["height"] <= second["y"] + 1


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("name", ["step", "fusion", "flipbook", "timeline"])
def test_in_a_narrow_cell_of_a_wide_window_the_facts_are_below_the_picture_or_above(name):
    view = VIEWS[name][0]()
    with opened(f"<div style='width: 440px'>{view._repr_mimebundle_()['text/html']}</div>", size=(900, 900)) as page:
        page.locator(".mg-narrow").wait_for()
        if name == "timeline":
            page.locator("[data-bar]").first.click()
        page.locator(".mg-side").first.wait_for()
        settled(page)
        picture, facts = page.locator(PICTURE).first.bounding_box(), facts_of(page)
    assert picture["width"] > 400 and all(apart(picture, each) and each["width"] > 400 for each in facts)
