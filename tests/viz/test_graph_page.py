"""The page of a picture in a real browser: opening and closing scopes, following arrows, finding boxes."""

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened

pytestmark = needs_browser


class Block(mg.nn.Module):
    def __init__(self):
        self.linear = mg.nn.Linear(3, 3)

    def forward(self, x):
        return x + mg.tanh(self.linear(x))


class Net(mg.nn.Module):
    def __init__(self):
        self.blocks = [Block() for _ in range(20)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def fresh_page():
    return opened(mg.viz.graph(Net(), mg.ones((2, 3))).to_html())


@pytest.fixture(scope="module")
def page():
    with fresh_page() as page:
        yield page


@pytest.fixture(autouse=True)
def begin(page):
    page.focus(".mg-view")
    page.keyboard.press("Escape")
    while page.get_attribute(".mg-view", "data-view") != "0":
        page.keyboard.press("c")


def box(page, text):
    return page.locator(f'.mg-box:has(> text:text("{text}"))').first


def test_buttons_exist_only_where_something_opens():
    with opened(mg.viz.graph(lambda x: x + 1, mg.ones(2)).to_html()) as page:
        buttons = page.locator(".mg-view button").all()
        assert [b.inner_text() for b in buttons if b.is_visible()] == ["more ▾"]
    with fresh_page() as page:
        buttons = page.locator(".mg-view button").all()
        assert [b.inner_text() for b in buttons if b.is_visible()] == ["open all", "more ▾"]


def test_a_pile_opens_and_the_path_leads_back(page):
    boxes = page.locator(".mg-box").count()
    box(page, "blocks[").locator(".mg-door").click()
    assert page.locator(".mg-box").count() > boxes
    assert page.locator(".mg-path button").all_inner_texts() == ["all", "blocks[0…19]"]
    box(page, "blocks[3]").locator(".mg-door").click()
    assert page.locator(".mg-path button").all_inner_texts() == ["all", "blocks[0…19]", "blocks[3]"]
    assert page.locator('.mg-box:has(> text:text-is("tanh(self.linear(x))"))').count() == 1
    page.locator(".mg-path button").first.click()
    assert page.locator(".mg-box").count() == boxes and not page.is_visible(".mg-path")


def test_keys_open_and_lead_up(page):
    boxes = page.locator(".mg-box").count()
    box(page, "blocks[").focus()
    page.keyboard.press("o")
    assert page.locator(".mg-box").count() > boxes
    page.keyboard.press("u")
    assert page.locator(".mg-box").count() == boxes


def test_everything_can_be_opened(page):
    closed = page.inner_text(".mg-count")
    page.click("text=open all")
    assert page.locator('.mg-box:has(> text:text-is("tanh(self.linear(x))"))').count() == 20
    assert "group" in closed and "group" not in page.inner_text(".mg-count"), "the sentence is about what is seen"
    page.get_by_text("close", exact=True).click()
    assert page.get_attribute(".mg-view", "data-view") == "0" and page.inner_text(".mg-count") == closed


def test_search_opens_a_box_that_is_closed(page):
    page.keyboard.press("/")
    page.keyboard.type("x + tanh(")
    assert page.locator(".mg-hit").count() == 1 and page.get_attribute(".mg-view", "data-view") != "0"
    page.fill("[aria-label='find a box by its name']", "")
    page.focus(".mg-view")


def test_a_box_says_what_it_is(page):
    page.keyboard.press("c")
    box(page, "tanh").click()
    side = page.inner_text(".mg-side")
    assert "what it computes" in side and "return x + mg.tanh(self.linear(x))" in side and "Net / blocks[0]" in side
    assert page.locator(".mg-edge.mg-lit").count() == 2 and page.locator(".mg-near").count() == 2
    assert "tanh" in page.inner_text("[aria-live]")
    page.locator(".mg-link", has_text="x + tanh(").first.click()
    assert page.inner_text(".mg-side strong").startswith("x + tanh(")
    page.keyboard.press("Escape")
    assert not page.is_visible(".mg-side")


def test_arrow_keys_go_from_box_to_box(page):
    box(page, "x").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.box") not in (None, "0")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.is_visible(".mg-side")


def test_search_finds_boxes(page):
    page.keyboard.press("/")
    page.keyboard.type("blocks")
    assert page.locator(".mg-hit").count() >= 1
    page.fill("[aria-label='find a box by its name']", "nothing of that name")
    assert page.locator(".mg-hit").count() == 0
    page.fill("[aria-label='find a box by its name']", "")


def test_search_counts_a_box_once_in_however_many_pictures_it_is():
    x, direction = mg.ones(6, requires_grad=True), mg.ones(6)
    slope = mg.grad(lambda x: (mg.tanh(x) * x * x).sum())
    for backward in (False, True):
        picture = mg.viz.graph(mg.jvp(slope, (x,), (direction,))[1].sum(), backward=backward)
        with opened(picture.to_html()) as other:
            other.keyboard.press("/")
            other.keyboard.type("#")
            titles = [box.title for box in picture.parts[-1].scene.boxes if "#" in box.title]
            assert len(picture.parts) == 3 and len(titles) > 9, "closed, open, and everything open"
            assert other.inner_text(".mg-more .mg-about") == f"1 of {len(titles)}"


def test_a_graph_that_is_too_large_has_no_button_that_opens_all():
    model = mg.nn.Sequential(*[mg.nn.Linear(2, 2) for _ in range(60)])
    with opened(mg.viz.graph(model, mg.ones((3, 2))).to_html()) as page:
        assert not page.is_visible("button:text('open all')")
        page.keyboard.press("c")
        assert page.get_attribute(".mg-view", "data-view") == "0"


def helped(page):
    """The keys in the list of keys."""
    page.focus(".mg-view")
    page.keyboard.press("?")
    return page.inner_text(".mg-help")


def test_only_keys_that_work_are_listed(page):
    assert "open everything, or close it" in helped(page)
    page.keyboard.press("?")
    model = mg.nn.Sequential(*[mg.nn.Linear(2, 2) for _ in range(60)])
    with opened(mg.viz.graph(model, mg.ones((3, 2))).to_html()) as large:
        listed = helped(large)
        assert "the first picture" in listed and "everything" not in listed
    with opened(mg.viz.graph(lambda x: mg.tanh(x) + 1, mg.ones(3)).to_html()) as small:
        assert "open" not in helped(small)


def test_text_stays_legible_in_a_picture_that_became_smaller():
    x = mg.asarray(1.0, requires_grad=True)
    with opened(mg.viz.graph(x * x + x).to_html(), size=(1200, 900)) as page:
        page.locator(".mg-box").first.wait_for()
        assert not page.locator(".mg-canvas.mg-small").count()
        for _ in range(9):
            turn = "new WheelEvent('wheel', {ctrlKey: true, deltaY: 9})"
            page.locator(".mg-canvas").evaluate(f"canvas => canvas.dispatchEvent({turn})")
        assert page.locator(".mg-canvas.mg-small").count() == 1
