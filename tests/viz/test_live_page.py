"""Dragging the numbers of leaves in the stepper's page, in a real browser: everything follows, nothing is stale."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.viz.exhibit import static
from minigrad.viz.numbers import cells_of
from tests.viz.browser import needs_browser, opened, outputs, settled

pytestmark = needs_browser


def scalar(value):
    return mg.asarray(value, requires_grad=True)


def three_lines(value=3.0):
    x = scalar(value)
    a = 2 * x
    return mg.viz.step(a * a + a)


def weights(value=None):
    w = mg.asarray([[0.1, 0.2, 0.3], [0.3, -0.4, 0.5]], requires_grad=True)
    if value is not None:
        with mg.no_grad():
            w[0, 2] = value
    x, gain = mg.asarray([0.5, -1.0, 2.0]), scalar(2.0)
    y = gain * (w @ x)
    loss = (y * y).sum()
    return mg.viz.step(loss)


def slide(page, name, value):
    page.locator(f".mg-live input[aria-label='{name}']").fill(str(value))


def shown(page):
    """Everything that boxes, arrows, heat maps and their names for screen readers say at the end of the pass."""
    return page.evaluate("""() => [...document.querySelectorAll(".mg-box, .mg-note")].map((e) => [
      [...e.querySelectorAll("text")].map((t) => t.textContent).join("|"), e.getAttribute("aria-label") ?? "",
      [...e.querySelectorAll(".mg-heat path")].map((p) => p.outerHTML).join("")])""")


def at_the_end(page):
    page.focus(".mg-view")
    page.keyboard.press("End")
    settled(page)
    return shown(page)


def said(page):
    return page.inner_text(".mg-say")


def test_every_number_follows_as_if_the_program_had_run_again():
    with opened(three_lines(1.2).to_html()) as page:
        wanted = at_the_end(page)
        rules = page.locator(".mg-rule").all_inner_texts()
    with opened(three_lines().to_html()) as page:
        slide(page, "x", 1.2)
        assert shown(page) == wanted
        page.focus(".mg-view")
        page.keyboard.press("End")  # the last step, with the dragged number
        assert page.locator(".mg-rule").all_inner_texts() == rules and "checked" not in page.inner_text(".mg-side")
        page.click("text=reset")
        assert page.is_hidden("text=reset")
        page.keyboard.press("End")
        page.focus(".mg-view")
        page.keyboard.press("End")
        assert "checked" in page.inner_text(".mg-side")


@pytest.mark.parametrize("shape", [(7,), (9, 12), (3, 7, 5), (4, 1, 5), (8, 1, 3, 3), (2, 3, 9, 9), (6, 4, 1, 1)])
def test_a_page_makes_the_heat_maps_that_python_makes(shape):
    """Of a stack the first three matrices whole, such as kernels; of others, means of blocks."""
    values = np.random.default_rng(0).standard_normal(shape)
    with opened("<p></p>") as page:
        code = f"([values, shape]) => {{ {static('numbers.js')}; return cellsOf(values, shape); }}"
        made = page.evaluate(code, [values.reshape(-1).tolist(), [*shape]])
    assert made == cells_of(values) and len(made) > 1


def test_heat_maps_of_larger_tensors_follow_too():
    with opened(weights(-0.9).to_html()) as page:
        wanted = at_the_end(page)
    with opened(weights().to_html()) as page:
        page.locator(".mg-grab", has_text="w").first.click()
        page.locator("[data-pick=value]").click(position={"x": 55, "y": 5})  # its right upper square
        assert page.locator(".mg-live .mg-here .mg-knob-name").inner_text() == "w[0, 2]"
        slide(page, "w[0, 2]", -0.9)
        assert shown(page) == wanted
        assert page.locator(".mg-pick").count() == 2  # the numbers, and their gradients


def test_the_side_says_what_a_little_more_makes():
    with opened(three_lines(1.0).to_html()) as page:
        slide(page, "x", 1.5)
        assert said(page) == "x = 1.5, a · a + a = 12. ∂x = 14: 0.1 more in x makes about 1.4 more in a · a + a."
        assert page.inner_text("[aria-live]") == said(page)
        assert re.sub(r"\s", "", page.locator(".mg-rule").last.text_content()) == "=7·2=14"
        assert page.locator(".mg-curve .mg-tangent").count() == 1
        slide(page, "x", -0.25)
        assert "∂x = 0: to first order, x makes no difference" in said(page)


def test_a_slope_that_is_not_a_number_is_said_to_be_one():
    x = mg.asarray([1.0, 4.0], requires_grad=True)
    with opened(mg.viz.step(mg.where(x > 0, mg.sqrt(x), 0.0).sum(), names={"x": x}).to_html()) as page:
        slide(page, "x[0]", -1.5)
        settled(page)
        assert said(page).endswith(" = 2. ∂x[0] = nan.")


def test_a_leaf_is_dragged_in_the_picture_and_by_keys():
    with opened(three_lines(1.0).to_html()) as page:
        box = page.locator(".mg-grab")
        box.hover()
        page.mouse.down()
        settled(page)
        place = box.bounding_box()
        page.mouse.move(place["x"] + place["width"] / 2 + 75, place["y"], steps=3)
        page.mouse.up()
        assert box.locator(".mg-number").text_content() == "2" and box.get_attribute("aria-label") == "x, 2"
        slider = page.locator(".mg-live input")
        slider.first.focus()
        page.keyboard.press("Home")  # which leads to the first step elsewhere
        assert slider.first.get_attribute("aria-valuetext") == "−2" and "x = −2" in said(page)
        page.focus(".mg-view")
        page.keyboard.press("ArrowLeft")  # back to stepping, with the dragged number
        assert "passes back to" in said(page) or "used more than once" in said(page)
        assert page.get_attribute(".mg-view", "data-kind") != "drag"


def test_another_number_is_chosen_by_keys_in_the_picture_of_the_leaf():
    with opened(weights().to_html()) as page:
        page.get_by_label("w[0, 0]", exact=True).press("ArrowRight")
        page.focus("[data-pick=value]")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")  # there is no third row
        assert "w[1, 1]" in said(page) and page.evaluate("document.activeElement.dataset.pick") == "value"
        page.locator("[data-pick=gradient]").click(position={"x": 55, "y": 5})
        assert "w[0, 2]" in said(page)


def test_one_pixel_of_a_picture():
    mg.random.seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3))
    picture = np.random.default_rng(0).random((1, 1, 8, 8)).astype(np.float32)

    def loss(changed=None):
        x = mg.asarray(picture, requires_grad=True)
        if changed is not None:
            with mg.no_grad():
                x[0, 0, 4, 5] = changed
        return mg.viz.step(mg.cross_entropy(net(x), mg.asarray([1])))

    with opened(loss(1.75).to_html()) as page:
        wanted = at_the_end(page)
    with opened(loss().to_html()) as page:
        slide(page, "x[0, 0, 0, 0]", picture[0, 0, 0, 0])  # its box is folded into that of the first layer
        box = page.locator("[data-pick=value]").bounding_box()
        page.mouse.click(box["x"] + 5.5 / 8 * box["width"], box["y"] + 4.5 / 8 * box["height"])
        slide(page, "x[0, 0, 4, 5]", 1.75)
        assert shown(page) == wanted


def test_acting_it_out_begins_with_the_numbers_of_the_program():
    with opened(three_lines().to_html()) as page:
        slide(page, "x", 1.0)
        page.focus(".mg-view")
        page.keyboard.press("a")
        assert page.locator(".mg-box", has_text="a = 2 · x").first.locator(".mg-number").text_content() == "6"
        assert page.is_hidden(".mg-live") and page.locator(".mg-curve").count() == 0
        page.keyboard.press("a")
        assert page.is_visible(".mg-live") and page.is_hidden("text=reset")


def test_where_no_number_can_be_dragged_the_page_says_why():
    x = mg.asarray([3.0, 1.0, 2.0], requires_grad=True)
    with opened(mg.viz.step(mg.sort(x).sum()).to_html()) as page:
        assert page.is_hidden(".mg-live")  # the picture has all of the room
        assert "No number can be dragged: a page can't compute sort again." in page.inner_text(".mg-side")
        page.focus(".mg-view")
        page.keyboard.press("End")
        assert page.locator(".mg-live input, .mg-grab").count() == 0 and "passes back to x" in said(page)


STRANGE = {
    "nan": lambda x: mg.log(x - 5.0), "infinite": lambda x: 1.0 / (x - x), "huge": lambda x: mg.exp(x * 100.0) * 0.0,
    "float64": lambda x: mg.sin(x.astype(mg.float64)), "integers": lambda x: x * x.astype(mg.int64) + 1.0,
    "kink": lambda x: mg.abs(x - 1.0) + mg.relu(x), "mask": lambda x: mg.where(x > 1.0, x * x, -x),
    "empty": lambda x: (x * mg.ones((0, 3))).sum() + x, "written": lambda x: written(x * mg.ones(3)),
    "one number": lambda x: (x * mg.ones((1, 1))).sum(), "jitted": lambda x: mg.jit(lambda x: mg.tanh(x) * x)(x),
    "used in no way": lambda x: x * 0.0,
}


def written(y):
    y[1] = y[0] * 2
    return y.sum()


def stepped(make):
    x = scalar(1.0)
    return opened(mg.viz.step(make(x), names={"x": x}).to_html())


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_strange_programs_can_be_dragged(make):
    with np.errstate(all="ignore"), stepped(make) as page:
        slider = page.locator(".mg-live input").first
        for value in ("2", "-2", "0", "1"):
            slider.fill(value)
            assert said(page).startswith(f"x = {value.replace('-', '−')}")
        page.focus(".mg-view")
        for key in ("ArrowLeft", "ArrowLeft", "Home", "ArrowRight", "End"):
            page.keyboard.press(key)
        assert "NaN" not in page.inner_text(".mg-view") and "undefined" not in page.inner_text(".mg-view")


def test_each_leaf_has_a_slider_and_many_of_them_leave_room_for_the_picture():
    leaves = [scalar(float(i)) for i in range(12)]
    total = leaves[0] * 1.0
    for leaf in leaves[1:]:
        total = total + leaf * leaf
    with opened(mg.viz.step(total, names={f"x{i}": x for i, x in enumerate(leaves)}).to_html()) as page:
        assert page.locator(".mg-live input").count() == 12 and page.locator(".mg-live").bounding_box()["height"] < 120
        page.locator("[aria-label^='for leaf']").first.press("o")  # the rounds
        page.locator("[aria-label^='for leaf in leaves[1:] [10]']").first.press("o")
        page.locator(".mg-grab[aria-label^='x11,']").click()
        assert page.locator(".mg-live .mg-here .mg-knob-name").inner_text() == "x11"


def test_dragging_works_in_the_output_of_a_notebook_and_a_hostile_name_is_text():
    x = scalar(2.0)
    name = "</script><img src=x onerror=alert(1)>"
    with opened(outputs(mg.viz.step(x * x, names={name: x}))) as page:
        page.locator(".mg-live input").first.fill("1.5")
        assert said(page).startswith(f"{name} = 1.5") and page.locator(".mg-view img").count() == 0


def test_no_frame_of_a_drag_draws_the_picture_again():
    with opened(three_lines().to_html()) as page:
        page.evaluate(
            "window.drawn = 0; new MutationObserver((list) => { window.drawn += list.filter("
            "(m) => [...m.addedNodes].some((n) => n.tagName === 'svg' && !n.closest('.mg-side'))).length; })"
            ".observe(document.querySelector('.mg-stage'), {childList: true, subtree: true})"
        )
        slide(page, "x", 1.2)
        slide(page, "x", 1.3)
        assert page.evaluate("window.drawn") == 0


@pytest.mark.parametrize("size", [(1600, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_what_is_dragged_fits_and_is_large_enough(size, dark):
    with opened(weights().to_html(), size=size, dark=dark) as page:
        page.locator(".mg-grab", has_text="w").first.click()
        settled(page)
        small = page.evaluate("""() => [...document.querySelectorAll(".mg-live *, .mg-side text, .mg-side *")]
            .filter((e) => e.getClientRects().length && e.childElementCount === 0 && e.textContent.trim())
            .filter((e) => !e.closest("math") && e.getBoundingClientRect().height < 9).map((e) => e.textContent)""")
        assert small == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_beside_the_slider_stands_that_no_branch_is_decided_again():
    x = mg.asarray([1.0, -2.0, 3.0], requires_grad=True)
    y = mg.cond(x.sum() > 0, lambda x: mg.sqrt(mg.abs(x)), lambda x: x * x, x)
    with opened(mg.viz.step(mg.sum(y * 3)).to_html()) as page:
        assert "no branch" not in page.inner_text(".mg-live")
        page.locator(".mg-live input").first.fill("-1.5")
        assert "no branch is chosen again (x.sum() > 0 was true), what was" in page.inner_text(".mg-live")


def test_sums_on_arrows_follow_also_where_one_steps_on():
    def swinging(start):
        angle, length = scalar(1.0), scalar(start)
        swing = angle
        for _ in range(20):
            swing = swing - 0.1 / length * mg.sin(swing)
        return mg.viz.step(swing * length)

    with opened(swinging(1.5).to_html()) as page:
        wanted = at_the_end(page)
        assert any("together" in texts for texts, *_ in wanted)
    with opened(swinging(2.0).to_html()) as page:
        slide(page, "length", 1.5)
        assert at_the_end(page) == wanted


def test_a_spike_elsewhere_does_not_flatten_the_curve_and_its_numbers_are_not_cut():
    x = scalar(1.0)
    with opened(mg.viz.step(mg.exp(-8.0 * x), names={"x": x}).to_html()) as page:
        slide(page, "x", 1.1)
        assert page.evaluate("""() => {
          const frame = document.querySelector(".mg-curve").getBoundingClientRect();
          const texts = [...document.querySelectorAll(".mg-curve text")];
          return texts.every((text) => text.getBoundingClientRect().left >= frame.left);
        }""")
        high = [float(text.replace("−", "-")) for text in page.locator(".mg-curve text").all_text_contents()[3:]]
        assert max(high) < 1.0


def test_a_loop_of_physics_has_its_sliders():
    angle, length = scalar(1.0), scalar(2.0)
    swing, speed = angle, 0.0
    for _ in range(50):
        speed = speed - 0.5 / length * mg.sin(swing)
        swing = swing + 0.05 * speed
    with opened(mg.viz.step((swing - 0.5) ** 2).to_html()) as page:
        assert page.locator(".mg-live input").count() == 2
        before = shown(page)
        slide(page, "length", 1.5)
        assert shown(page) != before


def test_gradients_of_an_operation_with_several_results_follow():
    mg.random.seed(0)
    layer, x = nn.GRU(2, 3), mg.asarray(np.random.default_rng(0).random((3, 1, 2)), requires_grad=True)
    weight = layer.weight_hh_l0

    def stepped(changed=None):
        before = weight[0, 0].item()
        with mg.no_grad():
            weight[0, 0] = before if changed is None else changed
        made = mg.viz.step((layer(x)[0] ** 2).sum()).to_html()
        with mg.no_grad():
            weight[0, 0] = before
        return made

    with opened(stepped(-0.5)) as page:
        page.get_by_text("open all").evaluate("(button) => button.click()")
        wanted = at_the_end(page)
        assert any("split" in texts for texts, *_ in wanted)
    with opened(stepped()) as page:
        page.get_by_text("open all").evaluate("(button) => button.click()")
        slide(page, "weight_hh_l0[0, 0]", -0.5)
        assert sorted(shown(page)) == sorted(wanted)
