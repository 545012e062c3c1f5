"""The backprop debugger in a real browser: buttons, keys, clicks, what is seen when."""

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened

pytestmark = needs_browser


def page_of_steps():
    x = mg.asarray([[0.5, -1.0, 2.0]])
    w = mg.asarray([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]], requires_grad=True)
    h = mg.tanh(x @ w)
    y = h * h + h
    return mg.viz.step(y.sum(), names={"w": w}).to_html()


@pytest.fixture(scope="module")
def page():
    with opened(page_of_steps()) as page:
        yield page


@pytest.fixture(autouse=True)
def begin(page):
    page.focus(".mg-view")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    while step(page) < 5:
        page.keyboard.press("ArrowRight")


def step(page):
    return int(page.get_attribute(".mg-view", "data-step"))


def said(page):
    return page.inner_text(".mg-say")


def gradient(page, name):
    return page.locator(".mg-gradient", has_text=f"∂ {name}").first


def test_a_newcomer_sees_two_buttons(page):
    visible = [b.inner_text() for b in page.locator(".mg-view button").all() if b.is_visible()]
    assert visible == ["‹ back", "next ›", "more ▾"]


def test_next_and_back(page):
    page.click("text=next ›")
    assert step(page) == 6 and said(page).startswith("We start at")
    page.click("text=next ›")
    assert "passes back to y" in said(page)
    page.click("text=‹ back")
    assert step(page) == 6


def test_keys(page):
    page.keyboard.press("End")
    assert page.inner_text(".mg-count").startswith("10 / 10") and page.is_disabled("text=next ›")
    page.keyboard.press("Home")
    assert step(page) == 0 and said(page) == "Nothing has been computed yet."
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".mg-view", "data-kind") == "make"


def test_no_gradient_yet_does_not_look_like_zero(page):
    assert "mg-none" in gradient(page, "h").get_attribute("class")
    assert gradient(page, "h").locator("text").nth(2).text_content() == ""


def test_a_gradient_is_complete_when_all_of_it_has_come(page):
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert "mg-part" in gradient(page, "h").get_attribute("class")
    gradient(page, "h").click()  # until here
    classes = gradient(page, "h").get_attribute("class")
    assert "mg-part" not in classes and "mg-none" not in classes
    assert "used more than once" in said(page)


def test_rules_numbers_checks_and_code(page):
    gradient(page, "w").click()
    side = page.inner_text(".mg-side")
    assert "checked by finite differences" in side and "✓" in side and "h = mg.tanh(x @ w)" in side
    assert page.locator(".mg-rule math").count() == 1 or page.locator(".mg-rule code").count() == 1
    assert page.locator(".mg-edge.mg-lit").count() == 1


def test_play_by_the_space_key(page):
    page.focus(".mg-view")
    page.keyboard.press(" ")
    page.wait_for_function("document.querySelector('.mg-view').dataset.step > 5", timeout=5000)
    page.keyboard.press(" ")
    now = step(page)
    page.wait_for_timeout(1200)
    assert step(page) == now


def test_predicting(page):
    page.click("text=more ▾")
    page.click("text=predict")
    page.click("text=next ›")
    page.click("text=next ›")
    assert said(page) == "What comes to y?" and "[1, 1]" not in page.inner_text(".mg-side")
    page.fill("input[placeholder^=shape]", "1x2")
    page.click("text=check >> nth=0")
    assert "✓ right" in page.inner_text("[role=status]")
    page.fill("[aria-label='its numbers']", "1, 0.5")
    page.press("[aria-label='its numbers']", "Enter")
    assert "✗ it is [1, 1]" in page.inner_text("[role=status]")
    page.click("text=negative")
    assert "✗ it is positive" in page.inner_text("[role=status]")
    page.click("text=reveal")
    assert "passes back to y" in said(page)
    page.click("text=predict")
    page.click("text=more ▾")


def test_acting_it_out(page):
    page.click("text=more ▾")
    page.click("text=act it out")
    gradient(page, "sum").click()
    gradient(page, "y").click()
    gradient(page, "h").click()  # too early: the product has not sent its parts
    assert "before all of it had come" in said(page)
    assert "mg-wrong" in gradient(page, "matmul").get_attribute("class")
    line = gradient(page, "matmul").locator("text").nth(2).text_content()
    assert line == "✗ [0.28, 0.125]"  # what the derivative of tanh makes of the stale [1, 1]
    assert "[−0.195, 0.359]" in page.inner_text(".mg-compare")  # and what it should be
    assert gradient(page, "h").locator("text").nth(2).text_content() == "stale [1, 1]"
    assert page.is_disabled("text=next ›") and page.is_disabled("text=‹ back")
    gradient(page, "multiply").click()  # what comes now, comes too late: it is not what was sent
    assert gradient(page, "h").locator("text").nth(2).text_content() == "stale [1, 1]"
    page.click("text=rewind one")
    gradient(page, "w").click()
    assert "Nothing has come to w yet" in said(page) or "it stays there" in said(page)
    page.focus(".mg-view")
    page.keyboard.press("Backspace")
    gradient(page, "multiply").click()
    gradient(page, "h").click()
    gradient(page, "matmul").click()
    assert "in a right order" in said(page)
    page.click("text=act it out")
    page.click("text=more ▾")


def test_every_box_can_be_reached_and_read_aloud(page):
    labels = [box.get_attribute("aria-label") for box in page.locator(".mg-box").all()]
    assert all(labels) and all(box.get_attribute("tabindex") == "0" for box in page.locator(".mg-box").all())
    gradient(page, "y").focus()
    page.keyboard.press("Enter")
    assert page.inner_text("[aria-live]") == said(page)
    number = gradient(page, "y").locator("text").nth(2).text_content()
    assert number in gradient(page, "y").get_attribute("aria-label")
    page.focus(".mg-view")
    page.keyboard.press("Home")
    assert number not in gradient(page, "y").get_attribute("aria-label")  # which is not known yet


def test_jupyter_is_kept_from_acting_on_the_keys(page):
    assert page.get_attribute(".mg-view", "data-lm-suppress-shortcuts") == "true"


def test_the_slider(page):
    page.locator("input[type=range]").fill("7")
    assert step(page) == 7


def test_dark():
    with opened(page_of_steps(), dark=True) as page:
        colour = page.evaluate("getComputedStyle(document.querySelector('.mg-view')).backgroundColor")
        assert colour == "rgb(20, 24, 29)"


def test_a_step_is_quick():
    """Not how long it takes: how much is touched.  A step sets classes, and never draws the picture again."""
    with opened(page_of_steps()) as page:
        page.evaluate(
            "window.drawn = 0; new MutationObserver((list) => { window.drawn += list.filter("
            "(m) => [...m.addedNodes].some((n) => n.tagName === 'svg')).length; })"
            ".observe(document.querySelector('.mg-stage'), {childList: true, subtree: true})"
        )
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        assert page.evaluate("window.drawn") == 0


def test_what_the_rule_needs_of_the_way_there(page):
    gradient(page, "h").click()
    page.keyboard.press("ArrowLeft")  # before it is added: multiply passes it back
    assert "tanh → h" in page.locator(".mg-need").first.text_content() and page.locator(".mg-needs").count() == 1
    page.keyboard.press("End")  # matmul passes back to w: x is needed
    assert "x" in page.locator(".mg-need").first.text_content()


def test_a_sum_is_an_event_with_three_parts(page):
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.get_attribute(".mg-view", "data-kind") == "sum"
    side = page.inner_text(".mg-side")
    assert "was there" in side and "comes, and is added" in side and "together" in side
    assert page.locator(".mg-numbers").count() == 3


def test_larger_steps(page):
    page.click("text=more ▾")
    page.select_option("[aria-label='how far a step goes']", "operation")
    page.click("text=next ›")
    page.click("text=next ›")
    page.click("text=next ›")
    now = step(page)
    page.click("text=next ›")  # the product passes something back twice, and both is added
    assert step(page) == now + 4 and page.locator(".mg-list li").count() == 4
    page.click("text=‹ back")
    assert step(page) == now
    page.select_option("[aria-label='how far a step goes']", "step")
    page.click("text=more ▾")


class Wide(mg.nn.Module):
    def __init__(self):
        self.layers = [mg.nn.Linear(3, 3) for _ in range(25)]

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def test_scopes_open_while_stepping():
    model = Wide()
    with opened(mg.viz.step(model(mg.ones((2, 3))).sum(), names=model).to_html()) as page:
        page.keyboard.press("Tab")
        page.focus(".mg-view")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        now, boxes = step(page), page.locator(".mg-box").count()
        page.locator(".mg-box .mg-door").first.click()
        assert page.locator(".mg-box").count() > boxes and step(page) == now
        page.keyboard.press("c")
        assert page.locator(".mg-box").count() > 250
        page.keyboard.press("End")
        assert page.locator(".mg-gradient.mg-none").count() == 0
        page.keyboard.press("c")
        assert page.get_attribute(".mg-view", "data-view") == "0"


def test_nothing_overlaps_and_no_text_is_clipped(page):
    """The widths of letters are guessed in Python: here is a browser that knows them."""
    wide = page.evaluate("""() => [...document.querySelectorAll(".mg-box")].filter((box) => {
        const frame = box.querySelector("rect:last-of-type").getBoundingClientRect();
        return [...box.querySelectorAll("text")].some((text) => {
            const t = text.getBoundingClientRect();
            return t.width && (t.left < frame.left || t.right > frame.right);
        });
    }).map((box) => box.textContent)""")
    assert wide == []
