"""The backprop debugger in a real browser: buttons, keys, clicks, and the visible parts at each step."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests.viz.browser import needs_browser, opened, settled

pytestmark = needs_browser


def page_of_steps():
    x = mg.asarray([[0.5, -1.0, 2.0]])
    w = mg.asarray([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]], requires_grad=True)
    h = mg.tanh(x @ w)
    y = h * h + h
    return mg.viz.step(y.sum(), names={"w": w}).to_html()


def loss_of_a_spring():
    place, speed = mg.asarray([1.0, 2.0], requires_grad=True), mg.zeros(2)
    for _ in range(4):
        speed = speed - 0.5 * place - 0.25 * speed
        place = place + 0.5 * speed
    return (place * place).sum() + (speed * speed).sum()


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
    return page.locator(".mg-gradient", has_text=f"∂{name}").first


def number(page, name):
    return gradient(page, name).locator(".mg-number").text_content()


def notes(page):
    """What stands on the arrows, in words; a heat map is "▦"."""
    found = [note.text_content() or "▦" for note in page.locator(".mg-note").all() if note.locator("*").count()]
    return sorted(found)


def test_a_newcomer_sees_two_buttons(page):
    visible = [b.inner_text() for b in page.locator(".mg-view button").all() if b.is_visible()]
    assert visible == ["‹ back", "next ›", "more ▾"]


def test_buttons_next_and_back(page):
    page.click("text=next ›")
    assert step(page) == 6 and said(page).startswith("We start at")
    page.click("text=next ›")
    assert "passes back to y" in said(page)
    page.click("text=‹ back")
    assert step(page) == 6


def test_arrow_keys(page):
    page.keyboard.press("End")
    assert page.inner_text(".mg-count") == "backward 10 of 10" and page.is_disabled("text=next ›")
    page.keyboard.press("Home")
    assert step(page) == 0 and said(page) == "Nothing has been computed yet."
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".mg-view", "data-kind") == "make"


def test_missing_gradient_does_not_look_like_zero(page):
    assert "mg-none" in gradient(page, "h").get_attribute("class")
    assert number(page, "h") == "" and gradient(page, "h").locator(".mg-heat").count() == 0


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
    rule = page.locator(".mg-rule")
    assert rule.locator("math").count() == 2 or rule.locator("code").count() == 1, "broken before +="
    assert rule.evaluate("(rule) => rule.scrollWidth <= rule.clientWidth")
    assert page.locator(".mg-edge.mg-lit").count() == 1


def test_space_key_plays(page):
    page.focus(".mg-view")
    page.keyboard.press(" ")
    page.wait_for_function("document.querySelector('.mg-view').dataset.step > 5")
    page.keyboard.press(" ")
    now = step(page)
    page.wait_for_timeout(1200)
    assert step(page) == now


def test_mode_for_predicting(page):
    page.click("text=more ▾")
    page.click("text=predict")
    assert "Before a gradient is passed back, you predict it." in page.inner_text(".mg-side")
    page.click("text=next ›")  # where the pass starts: nothing is asked
    assert said(page).startswith("We start at")
    page.click("text=predict ›")
    assert said(page) == "What comes to y?" and "[1, 1]" not in page.inner_text(".mg-side")
    assert page.locator(".mg-side h3").all_inner_texts()[:1] == ["its shape"] and page.locator(".mg-rule").count() == 0
    page.fill("input[placeholder^=shape]", "1x2")
    page.click("text=check >> nth=0")
    assert "✓ right: 1 × 2" in page.inner_text("[role=status] >> nth=0")
    page.click("text=negative")
    assert "✗ it is positive" in page.inner_text("[role=status] >> nth=1")
    page.fill("[aria-label='its numbers']", "1, 0.5")
    page.press("[aria-label='its numbers']", "Enter")
    assert "✗ it is [1, 1]" in page.inner_text("[role=status] >> nth=2")
    page.click("text=reveal")
    assert "passes back to y" in said(page)
    page.click("text=predict")
    page.click("text=more ▾")


def everything(page):
    """All that a page says of the step that is asked for: texts, names for screen readers, tooltips, heat maps."""
    return page.evaluate("""() => {
      const view = document.querySelector(".mg-view"), found = [view.innerText];
      for (const e of view.querySelectorAll("*"))
        for (const name of ["aria-label", "title", "aria-valuetext", "placeholder", "value"])
          found.push(e.getAttribute(name) ?? "");
      for (const e of view.querySelectorAll("title, desc, [aria-live], text")) found.push(e.textContent);
      return found.join("\\n");
    }""")


def test_predicting_gives_no_answer_away():
    x = mg.asarray(1.0, requires_grad=True)
    stepper = mg.viz.step(mg.sin(mg.exp(x * 0.25)))
    answers = [each.value.short() for each in stepper.steps if each.kind == "pass"]
    with opened(stepper.to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("End")  # all of it has been seen, and a number dragged
        page.locator(".mg-live input").first.fill("1.5")
        page.focus(".mg-view")
        page.keyboard.press("p")
        assert page.is_hidden(".mg-live") and page.is_disabled("[aria-label=play]")
        page.keyboard.press("Home")
        asked = []
        for _ in range(20):
            page.focus(".mg-view")
            page.keyboard.press("ArrowRight")
            if page.locator(".mg-say").inner_text().startswith("What comes"):
                answer = answers[len(asked)]
                asked.append(said(page))
                assert answer not in everything(page)
                headings = page.locator(".mg-side h3").all_inner_texts()
                assert headings[:2] == ["by the rule", "its sign"]  # of a scalar, only the numbers are asked
                assert page.locator(".mg-rule").count() == 1 and page.locator(".mg-numbers").count() == 0
                assert page.get_by_text("zero").count() == 1 and page.get_by_text("mixed").count() == 0
                assert page.evaluate("[...document.querySelectorAll('.mg-edge')].every((e) => !e.style.strokeWidth)")
                page.click("text=positive")
                assert answer not in everything(page)
                page.fill("[aria-label='its numbers']", answer)
                page.press("[aria-label='its numbers']", "Enter")
                assert page.locator("[role=status]").last.inner_text().startswith("✓ right")
        assert len(asked) == len(answers) == 3


def test_predicting_asks_for_the_shape_before_the_rule_shows_it():
    w, x = mg.ones((3, 2), requires_grad=True), mg.asarray([[0.5, -1.0, 2.0]])
    with opened(mg.viz.step(mg.tanh(x @ w).sum()).to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("p")
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowRight")
        assert said(page) == "What comes to w?" and page.locator(".mg-rule").count() == 0
        assert page.locator(".mg-side button").all_inner_texts() == ["check"]
        page.fill("[aria-label='its shape']", "2 × 3")
        page.press("[aria-label='its shape']", "Enter")
        assert page.inner_text("[role=status]") == "✗ it is 3 × 2" and page.locator(".mg-rule").count() == 1
        assert page.evaluate("document.activeElement.textContent") == "positive"  # the next question has the focus


@pytest.mark.parametrize("came, sign", [
    ([1e-9, 2.0], "positive"), ([-3.0, 0.0], "negative"), ([0.0] * 6, "zero"), ([*range(-2, 7)], "mixed"),
    ([-1.0] * 9, "negative"), ([np.nan, 1.0], "none of these"), ([*range(8), np.inf], "none of these"),
])
def test_predicting_reads_the_sign_of_what_comes(came, sign):
    w = mg.ones(len(came), requires_grad=True)
    with opened(mg.viz.step((w * mg.asarray([*map(float, came)])).sum()).to_html()) as page:
        page.focus(".mg-view")
        for key in ("p", "End", "ArrowLeft", "ArrowRight"):
            page.keyboard.press(key)
        page.press("[aria-label='its shape']", "Enter")
        page.click(f"text={'zero' if sign == 'mixed' else 'mixed'}")
        assert page.inner_text("[role=status] >> nth=1") == f"✗ it is {sign}"


def test_mode_for_acting_it_out(page):
    page.click("text=more ▾")
    page.click("text=act it out")
    gradient(page, "(y.sum())").click()
    gradient(page, "y").click()
    gradient(page, "h").click()  # too early: the product has not sent its parts
    assert "before all of it had come" in said(page)
    assert "mg-wrong" in gradient(page, "(x @ w)").get_attribute("class")
    line = number(page, "(x @ w)")
    assert line == "✗ [0.28, 0.125]"  # what the derivative of tanh makes of the stale [1, 1]
    assert "[−0.195, 0.359]" in page.inner_text(".mg-compare")  # and what it should be
    assert number(page, "h") == "stale [1, 1]"
    assert page.is_disabled("text=next ›") and page.is_disabled("text=‹ back")
    gradient(page, "(h · h)").click()  # what comes now, comes too late: it is not what was sent
    assert number(page, "h") == "stale [1, 1]"
    page.click("text=rewind one")
    gradient(page, "w").click()
    assert "Nothing has come to w yet" in said(page) or "it stays there" in said(page)
    page.focus(".mg-view")
    page.keyboard.press("Backspace")
    gradient(page, "(h · h)").click()
    gradient(page, "h").click()
    gradient(page, "(x @ w)").click()
    assert "in a right order" in said(page)
    page.click("text=act it out")
    page.click("text=more ▾")


def test_boxes_can_all_be_reached_and_read_aloud(page):
    labels = [box.get_attribute("aria-label") for box in page.locator(".mg-box").all()]
    assert all(labels) and all(box.get_attribute("tabindex") == "0" for box in page.locator(".mg-box").all())
    gradient(page, "y").focus()
    page.keyboard.press("Enter")
    assert page.inner_text("[aria-live]") == said(page)
    shown = number(page, "y")
    assert shown and shown in gradient(page, "y").get_attribute("aria-label")
    page.focus(".mg-view")
    page.keyboard.press("Home")
    assert shown not in gradient(page, "y").get_attribute("aria-label")  # which is not known yet


def test_jupyter_does_not_receive_the_keys(page):
    assert page.get_attribute(".mg-view", "data-lm-suppress-shortcuts") == "true"


def test_the_slider(page):
    page.locator(".mg-track input").fill("7")
    assert step(page) == 7


def test_a_page_of_its_own_has_the_keys_without_a_click():
    with opened(page_of_steps()) as page:
        page.keyboard.press("End")
        assert page.inner_text(".mg-count") == "backward 10 of 10"


def test_dark_theme():
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
        settled(page)
        assert page.evaluate("window.drawn") == 0


def test_values_that_a_rule_needs_are_marked(page):
    gradient(page, "h").click()
    page.keyboard.press("ArrowLeft")  # before it is added: multiply passes it back
    assert "h = tanh(x @ w)" in page.locator(".mg-need").first.text_content() and page.locator(".mg-needs").count() == 1
    page.keyboard.press("End")  # matmul passes back to w: x is needed
    assert "x" in page.locator(".mg-need").first.text_content()


def test_a_sum_is_an_event_with_three_parts(page):
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        settled(page)
    assert page.get_attribute(".mg-view", "data-kind") == "sum"
    side = page.inner_text(".mg-side")
    assert "was there" in side and "comes" in side and "together" in side
    assert page.locator(".mg-numbers").count() == 3


class Wide(mg.nn.Module):
    def __init__(self, depth):
        self.layers = [mg.nn.Linear(3, 3) for _ in range(depth)]

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def page_of_layers(depth):
    model = Wide(depth)
    return mg.viz.step(model(mg.ones((2, 3))).sum()).to_html()


def test_button_next_goes_module_by_module_and_then_inside_the_open_one():
    with opened(page_of_layers(4)) as page:
        page.focus(".mg-view")
        begin = step(page)
        presses = 0
        while not said(page).startswith("layers[3] passes back") and presses < 8:
            page.keyboard.press("ArrowRight")
            presses += 1
        far = step(page) - begin
        assert page.inner_text(".mg-count") == f"backward {presses} of 16", "what this picture shows is counted"
        assert presses < far  # what happens inside a closed box takes no click
        page.locator(".mg-box", has_text="layers[2]").first.focus()
        page.keyboard.press("o")
        assert page.inner_text(".mg-path") == "all\n›\nlayers[2]" and step(page) == begin + far
        inside = 0
        while page.get_attribute(".mg-view", "data-view") != "0" and inside < 20:
            page.keyboard.press("ArrowRight")
            inside += 1
        assert 3 < inside < 20 and not page.is_visible(".mg-path")  # done: the picture of all is back
        page.keyboard.press("End")
        assert page.locator(".mg-gradient.mg-none").count() == 0


def test_button_back_leads_out_of_an_open_box_to_what_was_before_it():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh())
    with opened(mg.viz.step(model(mg.ones((4, 2))).sum()).to_html()) as page:
        page.focus(".mg-view")
        while not said(page).startswith("The forward pass computes 1 Tanh"):
            page.keyboard.press("ArrowLeft")
            settled(page)
        page.locator(".mg-box", has_text="2 Linear").first.focus()
        page.keyboard.press("o")
        settled(page)
        page.keyboard.press("ArrowRight")
        settled(page)
        assert said(page) == "The forward pass computes 2.weightᵀ."
        for expected in ("1 Tanh", "0 Linear"):
            page.keyboard.press("ArrowLeft")
            settled(page)
            assert said(page) == f"The forward pass computes {expected}."
        assert page.get_attribute(".mg-view", "data-view") == "0"


def test_layers_are_a_pile_and_each_can_be_opened():
    with opened(page_of_layers(25)) as page:
        assert "layers[0…24]  ×25" in page.locator(".mg-box text").all_text_contents()
        page.locator(".mg-box .mg-door").first.click()
        page.locator(".mg-box", has_text="layers[17]").first.dblclick()
        assert page.locator(".mg-path button").all_inner_texts() == ["all", "layers[0…24]", "layers[17]"]
        assert "layers.17.weight" in page.locator(".mg-box text").all_text_contents()
        page.keyboard.press("u")
        page.keyboard.press("u")
        assert page.get_attribute(".mg-view", "data-view") == "0"


def test_boxes_can_all_be_opened_in_a_small_picture():
    with opened(page_of_layers(4)) as page:
        page.focus(".mg-view")
        boxes = page.locator(".mg-box").count()
        page.keyboard.press("c")
        assert page.locator(".mg-box").count() > 2 * boxes
        page.keyboard.press("c")
        assert page.locator(".mg-box").count() == boxes


def five_contributions():
    a = mg.asarray(1.0, requires_grad=True)
    b = a + a * 2.0
    y = b + a * 2.0
    return mg.viz.step(y)


def test_contributions_stand_on_their_arrows_and_stay_there():
    with opened(five_contributions().to_html()) as page:
        page.focus(".mg-view")
        assert notes(page) == []
        page.keyboard.press("End")
        assert number(page, "a") == "5" and notes(page) == ["1"] * 5 + ["2", "2"]
        page.keyboard.press("Home")
        assert notes(page) == []


def test_an_arrow_that_carries_several_contributions_does_not_show_one_of_them():
    angle, length = mg.asarray(1.0, requires_grad=True), mg.asarray(2.0, requires_grad=True)
    swing = angle
    for _ in range(60):
        swing = swing - 0.1 / length * mg.sin(swing)
    with opened(mg.viz.step(swing * length).to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("End")
        together = float(next(note for note in notes(page) if note.startswith("60 together")).split()[-1])
        final = float(page.locator('.mg-box[aria-label^="∂length"]').get_attribute("aria-label").split(", ")[1])
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowRight")
        closed = [said(page)]
        while "passes back to length" not in closed[-1]:
            page.keyboard.press("ArrowLeft")
            closed.append(said(page))
        assert closed[-1].endswith(f"60 together {together:g}"), "not the last contribution alone"
        page.keyboard.press("End")
        others = [float(note) for note in notes(page) if "together" not in note and "contributions" not in note]
        assert any(abs(together + other - final) < 0.02 * abs(final) for other in others), "the numbers can be added"


def test_notes_stand_on_their_arrows_and_cover_nothing():
    angle, length = mg.asarray(1.0, requires_grad=True), mg.asarray(2.0, requires_grad=True)
    swing, speed = angle, mg.asarray(0.0)
    for _ in range(20):
        speed = speed - 0.5 / length * mg.sin(swing)
        swing = swing + 0.05 * speed
    pendulum = mg.viz.step((swing - 0.5) ** 2).to_html()
    for html in (five_contributions().to_html(), page_of_steps(), page_of_layers(4), pendulum, page_of_a_spring()):
        with opened(html) as page:
            page.focus(".mg-view")
            page.keyboard.press("End")
            settled(page)
            assert page.evaluate("""() => {
              const places = [...document.querySelectorAll(".mg-note, .mg-box > rect:last-of-type")]
                .map((e) => e.getBoundingClientRect()).filter((r) => r.width);
              const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
              return places.some((a, i) => places.slice(i + 1).some(
                (b) => shared(a, b, "left", "right") > 2 && shared(a, b, "top", "bottom") > 2));
            }""") is False
            assert page.evaluate("""() => {
              const frame = document.querySelector(".mg-canvas svg").getBoundingClientRect();
              return [...document.querySelectorAll(".mg-note")].every((note) => {
                const { left, right, top, bottom } = note.getBoundingClientRect();
                const path = document.querySelector(`[data-edge="${note.dataset.note}"] path`);
                const screen = path.getScreenCTM(), step = path.getTotalLength() / 100, shares = [...Array(100).keys()];
                const points = shares.map((i) => path.getPointAtLength(step * i).matrixTransform(screen));
                const touched = points.some(({ x, y }) => left < x && x < right && top < y && y < bottom);
                return left === right || (touched && left > frame.left && right < frame.right);
              });
            }""") is True


def page_of_a_spring():
    k, start = mg.asarray(2.0, requires_grad=True), mg.asarray([1.0, 0.5], requires_grad=True)
    place, speed = start, mg.zeros(2)
    for _ in range(50):
        force = -k * place - 0.1 * speed
        speed = speed + 0.05 * force
        place = place + 0.05 * speed
    return mg.viz.step(((place - 0.3) ** 2).sum()).to_html()


def test_a_button_beside_the_hint_shows_all_of_a_picture_and_it_stays_seen():
    larger = """() => {
      const canvas = document.querySelector(".mg-canvas");
      return ["Width", "Height"].some((side) => canvas[`scroll${side}`] > canvas[`client${side}`] + 2);
    }"""
    with opened(page_of_layers(4), size=(390, 800)) as page:
        assert page.evaluate(larger) and page.is_visible(".mg-beyond button")
        page.click("text=fit")
        assert not page.evaluate(larger) and not page.is_visible(".mg-beyond")
        page.click("text=more ▾")
        settled(page)
        assert not page.evaluate(larger)


def test_an_operation_beside_a_closed_box_shows_its_rule():
    lstm, head = mg.nn.LSTM(3, 4, batch_first=True), mg.asarray(np.ones((4, 1)), requires_grad=True)
    states, _ = lstm(mg.ones((2, 6, 3)))
    with opened(mg.viz.step((states[:, -1] @ head).sum()).to_html()) as page:
        page.focus(".mg-view")
        for _ in range(12):
            page.keyboard.press("ArrowRight")
            if "states[:, −1] passes back" in said(page):
                break
        assert "states[:, −1] passes back to" in said(page)
        assert "by the rule" in page.inner_text(".mg-side") and "inside the box" not in page.inner_text(".mg-side")


def test_boxes_have_heat_maps_of_values_and_complete_gradients():
    model = mg.nn.Linear(6, 4)
    with opened(mg.viz.step(model(mg.ones((5, 6))).sum()).to_html()) as page:
        page.focus(".mg-view")
        assert page.locator(".mg-box:not(.mg-gradient) .mg-heat").count() > 2
        assert page.locator(".mg-gradient .mg-heat").count() == 0
        page.keyboard.press("End")
        assert page.locator(".mg-gradient .mg-heat").count() > 2


def test_predicting_hides_the_numbers_of_the_rule():
    x = mg.asarray(3.0, requires_grad=True)
    with opened(mg.viz.step(x * 7.0).to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("p")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert said(page) == "What comes to x?" and page.locator(".mg-rule").count() == 1
        page.keyboard.press("ArrowRight")
        assert page.locator(".mg-rule").count() == 2 and "7" in page.locator(".mg-rule").last.inner_text()


def test_the_expression_is_marked_in_the_code(page):
    gradient(page, "h").click()
    assert page.inner_text(".mg-code mark") == "h * h"


@pytest.mark.parametrize("size", [(1600, 900), (390, 844)])
def test_texts_are_large_enough_and_fit_into_the_window(size):
    with opened(page_of_layers(4), size=size) as page:
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        settled(page)
        small = page.evaluate("""() => [...document.querySelectorAll("text, button, p, td")]
            .filter((e) => e.getClientRects().length && e.textContent.trim() && e.closest(".mg-canvas")
              ? e.getBoundingClientRect().height < 10 : parseFloat(getComputedStyle(e).fontSize) < 10)
            .map((e) => e.textContent)""")
        assert small == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_texts_and_boxes_do_not_overlap_and_are_not_clipped(page):
    """Python estimates the widths of letters; a browser has the true widths."""
    wide = page.evaluate("""() => [...document.querySelectorAll(".mg-box")].filter((box) => {
        const frame = box.querySelector("rect:last-of-type").getBoundingClientRect();
        return [...box.querySelectorAll("text")].some((text) => {
            const t = text.getBoundingClientRect();
            return t.width && (t.left < frame.left || t.right > frame.right);
        });
    }).map((box) => box.textContent)""")
    assert wide == []


def test_the_text_of_a_closed_box_stays_inside_its_border_where_the_picture_is_small():
    model = nn.Sequential(*[nn.Conv2d(2, 2, 2 * (i % 2) + 1, padding=i % 2) for i in range(14)])
    with opened(mg.viz.step(model(mg.ones((12, 2, 11, 11))).sum()).to_html(), size=(1600, 900)) as page:
        settled(page)
        room = page.evaluate("""() => [...document.querySelectorAll(".mg-small .mg-group")].flatMap((box) => {
            const frame = box.querySelector("rect:last-of-type").getBoundingClientRect();
            return [...box.querySelectorAll(".mg-number")].map((t) => frame.right - t.getBoundingClientRect().right);
        })""")
        assert room and min(room) > 2


def test_a_large_picture_opens_with_the_result_in_the_middle_of_its_width(monkeypatch):
    """What leads to the result is then in sight, on both of its sides."""
    monkeypatch.setattr("minigrad.viz.opening.with_rounds", lambda scene: scene)  # its rounds stay open
    leaves = [mg.ones((3, 3), requires_grad=True) for _ in range(12)]
    x = leaves[0]
    for w in leaves:
        x = x @ w
    for w in leaves:
        x = x @ mg.tanh(w * leaves[0])
    with opened(mg.viz.step(x.sum()).to_html()) as page:
        settled(page)
        assert page.evaluate("document.querySelector('.mg-canvas').scrollLeft") > 0
        frame = page.locator(".mg-canvas").bounding_box()
        box = page.locator(".mg-box.mg-now, .mg-hit").last.bounding_box()
        assert abs((box["x"] + box["width"] / 2) - (frame["x"] + frame["width"] / 2)) < frame["width"] / 4


def test_a_closed_box_says_what_it_holds_where_it_computes_and_where_it_passes_back():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    x = mg.ones((4, 3))
    with opened(mg.viz.step((model(x) ** 2).sum()).to_html()) as page:
        page.locator("[aria-label^='0 Linear']").first.press("Enter")
        side = page.inner_text(".mg-side")
        assert "what it computes" in side and "2 operations, 1 view: permute_dims, matmul, add. ⊞, or the key o" in side
        while "4 Linear passes back" not in page.inner_text(".mg-say"):
            page.get_by_text("next ›").click()
        side = page.inner_text(".mg-side")
        assert "by the rules of what it holds" in side and "2 operations, 1 view: permute_dims, matmul, add." in side


def test_a_picture_that_is_too_tall_begins_with_closed_layers():
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    x, y = mg.ones((4, 6)), mg.asarray([0, 1, 2, 0])
    titles = [box.title for box in mg.viz.step(mg.cross_entropy(model(x), y)).parts[0].scene.boxes]
    assert titles[:4] == ["x", "0 Linear", "1 ReLU", "2 Linear"]
    small = [box.title for box in mg.viz.step((nn.Linear(6, 5)(x) ** 2).sum()).parts[0].scene.boxes]
    assert any("matmul" in title or "@" in title for title in small)


def test_the_first_step_is_no_contribution_inside_of_a_box_that_has_no_result():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    with opened(mg.viz.step((model(mg.ones((4, 3))) ** 2).sum()).to_html()) as page:
        page.locator("[aria-label^='2 Linear']").first.press("o")
        page.wait_for_selector("text=2.weight")
        page.focus(".mg-view")
        page.keyboard.press("End")
        settled(page)
        assert "contributions" not in " ".join(page.locator(".mg-note").all_text_contents())


def test_a_sum_in_a_closed_box_keeps_the_rule_of_its_last_contribution():
    x = mg.asarray([0.5, 2.0, 1.0], requires_grad=True)
    with opened(mg.viz.step((mg.softmax(x) ** 2).sum()).to_html()) as page:
        page.focus(".mg-view")
        said = []
        for _ in range(10):
            page.keyboard.press("ArrowRight")
            said.append(page.inner_text(".mg-say"))
            if "passes back to softmax(x)" in said[-1]:
                assert page.locator(".mg-rule").count() == 1
        assert [each for each in said if "passes back to softmax(x)" in each]


def test_each_count_is_one_stop_and_the_parameters_inside_a_closed_box_have_theirs():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    with opened(mg.viz.step((model(mg.ones((4, 3))) ** 2).sum()).to_html()) as page:
        page.focus(".mg-view")
        counts, listed = [], []
        while page.locator("button:enabled", has_text="next ›").count():
            page.keyboard.press("ArrowRight")
            counts.append(page.inner_text(".mg-count"))
            if "its 2 parameters" in said(page):
                listed.append([name for name in model.state_dict() if f"∂{name}" in page.inner_text(".mg-side")])
        assert counts == [f"backward {i} of {len(counts)}" for i in range(1, len(counts) + 1)]
        assert listed == [["4.weight", "4.bias"], ["2.weight", "2.bias"], ["0.weight", "0.bias"]]
        page.keyboard.press("End")
        assert page.inner_text(".mg-count") == counts[-1]


def test_a_box_with_several_results_names_each_and_agrees_with_its_arrows():
    with opened(mg.viz.step(loss_of_a_spring()).to_html()) as page:
        page.focus(".mg-view")
        loop = page.locator(".mg-box", has_text="for _").nth(-1)
        lines = [line.split(" ", 1) for line in loop.locator(".mg-number").all_text_contents()]
        assert [name.strip("₀₁₂₃₄₅₆₇₈₉") for name, *_ in lines] == ["∂speed", "∂place"] and len(lines[0]) == 1
        while not said(page).startswith(f"{lines[0][0][1:]} · "):
            page.keyboard.press("ArrowRight")
        assert f" passes back to {lines[0][0][1:]} in for _" in said(page)
        came = np.array(eval(said(page).rpartition(": ")[2].replace("−", "-")))
        page.keyboard.press("ArrowRight")  # the other factor
        page.keyboard.press("ArrowRight")
        settled(page)
        assert f"{lines[0][0][1:]} is used more than once, so its contributions are added: " in said(page)
        found = loop.locator(".mg-number").first.text_content().removeprefix(lines[0][0])
        assert np.allclose(np.array(eval(found.replace("−", "-"))), 2 * came, rtol=1e-2)


def test_predicting_asks_of_one_of_several_results_by_its_name():
    with opened(mg.viz.step(loss_of_a_spring()).to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("p")
        asked = ""
        while " in for _" not in asked:
            page.keyboard.press("ArrowRight")
            asked = said(page)
        page.keyboard.press("ArrowRight")
        assert asked.startswith("What comes to ")
        assert f" passes back to {asked.removeprefix('What comes to ').removesuffix('?')}: " in said(page)


def test_the_map_of_one_result_does_not_stand_for_all():
    view = mg.viz.step(loss_of_a_spring())
    several = [box for scene in view.scenes for box in scene.boxes if len(box.lines) > 1]
    assert several and not [box.title for box in several if box.cells]
    with opened(view.to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("End")
        settled(page)
        assert page.locator(".mg-box", has_text="∂speed").locator(".mg-heat").count() == 0
        assert page.locator(".mg-gradient .mg-heat").count() > 2


def test_a_rule_a_little_wider_than_the_side_is_not_cut():
    nodes = mg.asarray(np.ones((5, 3)), requires_grad=True)
    start, end = mg.asarray([0, 1, 2, 3]), mg.asarray([1, 2, 3, 4])
    with opened(mg.viz.step((mg.segment_sum(mg.tanh(nodes * 0.5)[start], end, 5) ** 2).sum()).to_html()) as page:
        page.focus(".mg-view")
        page.locator(".mg-side").evaluate("side => Object.assign(side.style, {boxSizing:'border-box', width: '270px'})")
        for _ in range(8):
            page.keyboard.press("ArrowRight")
            for rule in page.locator(".mg-rule").all():
                assert rule.evaluate("rule => rule.scrollWidth <= rule.clientWidth"), rule.inner_text()


def page_of_a_second_derivative():
    x = mg.asarray(np.linspace(-1, 2, 6), requires_grad=True)
    slope = mg.grad(lambda x: (mg.tanh(x) * x * x).sum())
    return mg.viz.step((mg.jvp(slope, (x,), (mg.ones(6, dtype=mg.float64),))[1] ** 2).sum(), names={"x": x}).to_html()


def test_what_comes_to_a_closed_box_is_added():
    with opened(page_of_a_second_derivative()) as page:
        page.focus(".mg-view")
        added = 0
        while page.locator("button:enabled", has_text="next ›").count():
            page.keyboard.press("ArrowRight")
            side = page.inner_text(".mg-side")
            parts = "is used more than once", "was there", "comes", "together"
            added += "jvp" in said(page) and all(each in side for each in parts)
        assert added == 1


class Waves(nn.Module):
    def forward(self, h):
        return mg.tanh(h) * h + mg.sin(h) * h


def test_several_contributions_of_a_closed_box_have_their_sum():
    x = mg.asarray([0.5, 1.0], requires_grad=True)
    h = x * 2
    y = nn.Sequential(Waves(), nn.Tanh(), Waves())(h)
    with opened(mg.viz.step(((y + h) ** 2).sum()).to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        loss = ((y + h.detach()) ** 2).sum()
        own = ", ".join(f"{each:.3g}" for each in (mg.gradients(loss, [h])[0]).tolist())
        assert f"0 Waves passes back to h: 4 together [{own}]" in said(page)


def test_what_changes_in_a_closed_loop_is_the_target_of_a_stop():
    """The gradient of `speed` was completed inside of the closed box, and no stop was about it."""
    with opened(mg.viz.step(loss_of_a_spring()).to_html()) as page:
        page.focus(".mg-view")
        groups, own = page.locator(".mg-gradient:has(.mg-door)"), []
        assert groups.count()
        before = groups.all_text_contents()
        while page.locator("button:enabled", has_text="next ›").count():
            page.keyboard.press("ArrowRight")
            looks = [box.get_attribute("class").split() for box in groups.all()]
            changed = [look for look, old, new in zip(looks, before, groups.all_text_contents()) if old != new]
            assert all("mg-now" in look for look in changed), said(page)
            before = groups.all_text_contents()
            own += [said(page)] * ("own result speed" in said(page))
        assert own and all("passes back to its own result speed" in each for each in own)


def test_a_button_that_can_not_be_pressed_any_more_gives_its_focus_to_the_view(page):
    for name, key in (("next ›", "ArrowLeft"), ("‹ back", "ArrowRight")):
        button = page.get_by_text(name)
        button.focus()
        for _ in range(30):
            if button.is_enabled():
                page.keyboard.press("Enter")
        assert button.is_disabled()
        end = step(page)
        page.keyboard.press(key)
        assert step(page) != end, "keys still work"


def test_a_deep_model_is_seen_as_a_whole_at_first():
    layers = [layer for _ in range(7) for layer in (nn.Linear(64, 64), nn.ReLU())]
    loss = mg.cross_entropy(nn.Sequential(*layers)(mg.ones((8, 64))).reshape(-1, 64), mg.zeros(8, dtype=mg.int64))
    with opened(mg.viz.step(loss).to_html(), size=(1600, 900)) as page:
        page.wait_for_function("document.querySelector('.mg-canvas svg').hasAttribute('width')")
        assert page.locator(".mg-box", has_text="Linear").count() == 14 and page.is_hidden(".mg-beyond")


class Residual(nn.Module):
    def __init__(self, size):
        self.norm, self.out = nn.LayerNorm(size), nn.Linear(size, size)

    def forward(self, x):
        return x + self.out(mg.tanh(self.norm(x)))


def test_each_stop_of_each_open_box_of_a_pass_that_is_too_large_to_drag():
    model, x = nn.Sequential(Residual(96), Residual(96), nn.Linear(96, 4)), mg.ones((8, 96))
    view = mg.viz.step(model(x).sum())
    assert "a page computes at most" in view.live.why
    with opened(view.to_html()) as page:  # an error of the page fails
        for door in range(page.locator(".mg-door").count()):
            page.locator(".mg-door").nth(door).click()
            page.keyboard.press("End")
            last = step(page)
            page.keyboard.press("Home")
            stops = [step(page)]
            while stops[-1] < last:
                page.keyboard.press("ArrowRight")
                stops.append(step(page))
                assert stops[-1] > stops[-2]
            page.keyboard.press("u")


def test_a_rule_names_the_layers_of_values_that_are_written_alike():
    model = nn.Sequential(Residual(4), Residual(4), Residual(4))
    said = mg.viz.step(model(mg.ones((2, 4))).sum()).text()
    assert not re.search(r"by ∂(\S.*) \+= ∂\1$", said, re.MULTILINE)
    assert " passes back to 1 Residual: " in said and "by ∂(1 Residual) += ∂(… + " in said


def test_the_panel_of_a_box_that_was_opened_is_about_what_is_in_it():
    model = nn.Sequential(Residual(4), Residual(4), Residual(4))
    with opened(mg.viz.step(mg.cross_entropy(model(mg.ones((2, 4))), mg.asarray([0, 1]))).to_html()) as page:
        for door in range(page.locator(".mg-door").count()):
            page.locator(".mg-door").nth(door).click()
            settled(page)
            assert page.locator(".mg-now").count() > 0 and "of 0" not in page.locator(".mg-count").inner_text()
            before = page.locator(".mg-count").inner_text()
            page.keyboard.press("ArrowLeft")
            assert page.locator(".mg-count").inner_text() != before
            page.keyboard.press("End")
            page.keyboard.press("u")
            settled(page)


def test_the_key_o_opens_the_box_that_the_panel_is_about():
    loss = mg.cross_entropy(mg.ones((2, 4), requires_grad=True), mg.asarray([0, 1]))
    with opened(mg.viz.step(loss).to_html()) as page:
        assert "key o, opens the box" in page.inner_text(".mg-side")
        page.keyboard.press("o")
        settled(page)
        assert page.locator(".mg-box", has_text="exp(").count() > 0
        page.keyboard.press("o")  # what the panel is about now is open: nothing happens
        assert page.locator(".mg-box", has_text="exp(").count() > 0


def test_the_key_o_opens_in_the_backward_pass_what_passes_back_and_not_what_it_comes_to():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2), nn.Tanh())
    view = mg.viz.step((nn.Sequential(model, nn.Linear(2, 1))(mg.ones((4, 2))) ** 2).mean())
    tried = set()
    with opened(view.to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        while (count := page.locator(".mg-count").inner_text()) not in tried:
            tried.add(count)
            text = page.inner_text(".mg-side")
            if "backward" in count and "key o, opens the box" in text:
                name = text.partition(" passes back to ")[0]
                page.keyboard.press("o")
                settled(page)
                assert name in page.inner_text(".mg-path"), (count, name)
                page.keyboard.press("u")
                settled(page)
            page.keyboard.press("ArrowRight")
            settled(page)
        assert len(tried) > 6


def test_a_long_name_in_a_formula_is_not_cut():
    numbers_with_a_name_that_is_much_wider_than_the_side_of_a_page = mg.ones(2, requires_grad=True)
    view = mg.viz.step(mg.tanh(numbers_with_a_name_that_is_much_wider_than_the_side_of_a_page).sum())
    with opened(view.to_html()) as page:
        page.keyboard.press("ArrowLeft")
        wide, room, name = page.locator(".mg-rule").first.evaluate(
            "(rule) => [rule.scrollWidth, rule.clientWidth, rule.firstChild.getBoundingClientRect().width]"
        )
        assert wide > room and wide + 1 >= name > 1.2 * room, "it is longer than the side, and can be scrolled"


def test_an_open_box_is_told_of_and_not_its_neighbour():
    layer, head = nn.LSTM(2, 3), nn.Linear(3, 1)
    with opened(mg.viz.step((head(layer(mg.ones((4, 1, 2)))[0]) ** 2).sum()).to_html()) as page:
        page.focus(".mg-view")
        page.locator(".mg-box", has_text="Linear").first.locator(".mg-door").dispatch_event("click")
        settled(page)
        last = said(page)
        assert re.fullmatch(r"The forward pass computes reshape\(#\d+ \+ bias\)\.", last)
        neighbour = page.locator(".mg-box", has_text="head(…)²").first
        assert "mg-none" not in neighbour.get_attribute("class")
        page.keyboard.press("ArrowRight")
        settled(page)
        assert said(page).startswith("head(…)² passes back to ")
        page.keyboard.press("ArrowLeft")
        settled(page)
        assert said(page) == last
        neighbour.dispatch_event("click")
        settled(page)
        assert said(page) == "The forward pass computes head(…)²."


def test_the_gradient_of_several_results_is_not_that_of_one():
    w, rows = mg.asarray([0.5, 2.0], requires_grad=True), mg.asarray([[1.0, 2.0]] * 6, requires_grad=True)
    stepper = mg.viz.step(mg.scan(lambda c, row: (c * w + row, None), mg.zeros(2), rows)[0].sum())
    assert [box.lines for box in stepper.scenes[-1].boxes if box.title == "∂split(rows)"] == [("6 results",)]
    with opened(stepper.to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("c")
        page.keyboard.press("End")
        settled(page)
        texts = [box.text_content() for box in page.locator(".mg-gradient", has_text="∂split(rows)").all()]
        assert texts == ["∂split(rows)"]
