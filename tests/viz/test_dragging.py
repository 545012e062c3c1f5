"""Dragging operations in the picture of the kernels, in a real browser."""

from contextlib import contextmanager

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]


def three_lines():
    def program(a):
        b = a * a
        c = b + a
        return c

    return mg.viz.fusion(program, mg.ones(1000))


@contextmanager
def fused(view):
    with opened(view.to_html(), size=(1200, 900)) as page:
        page.focus(".mg-view")
        page.wait_for_selector(".mg-picture.mg-fused .mg-operation")
        page.wait_for_timeout(100)  # the picture is fitted in the next frame
        errors = []
        page.on("pageerror", lambda error: errors.append(error))
        yield page
        assert not errors


def middle(page, name):
    box = page.locator(f'.mg-box[aria-label^="{name}"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, name, to):
    x, y = middle(page, name)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 6, y + 6)
    page.mouse.move(*to)


def note(page):
    return page.inner_text(".mg-dragsay")


def test_a_program_of_three_lines_has_a_legal_move():
    with fused(three_lines()) as page:
        assert note(page).startswith("Drag an operation")
        drag(page, "multiply_1", (850, 300))
        assert note(page) == "into a kernel of its own: 2 launches, 12 kB more memory traffic"
        page.mouse.up()
        assert note(page) == "multiply_1 moved to a kernel of its own: 2 launches, 12 kB more memory traffic"
        assert page.locator(".mg-edge.mg-memory").count() == 4 and page.locator(".mg-box.mg-away").count() == 1
        x, y = middle(page, "multiply_1")
        assert abs(x - 850) < 40 and abs(y - 300) < 40, "the box stays where it was dropped"
        assert page.get_attribute(".mg-view", "data-kernel") == "", "a drag is not a click"
        page.click(".mg-dragnote >> text=take back")
        assert page.locator(".mg-edge.mg-memory").count() == 3 and page.locator(".mg-away").count() == 0


def test_the_board_shows_what_was_moved_in_the_picture():
    with fused(three_lines()) as page:
        drag(page, "multiply_1", (850, 300))
        page.mouse.up()
        page.focus(".mg-view")
        page.keyboard.press("m")
        assert page.get_attribute(".mg-board", "data-launches") == "2"
        page.focus(".mg-view")
        page.keyboard.press("m")
        assert page.locator(".mg-edge.mg-memory").count() == 4


def test_a_refused_move_is_drawn_and_explained():
    view = mg.viz.fusion(lambda x: mg.softmax(mg.tanh(x)), mg.ones((64, 32)))
    with fused(view) as page:
        drag(page, "subtract_1", (800, 200))
        assert note(page).startswith("not possible: kernels would wait for each other: ")
        assert page.locator(".mg-frame.mg-circle").count() == 1 and page.locator(".mg-edge.mg-circle").count() >= 2
        assert page.locator('.mg-box.mg-circle[aria-label^="subtract_1"]').count() == 1
        before = middle(page, "max_1")
        page.mouse.up()
        assert note(page).startswith("not possible") and page.locator(".mg-edge.mg-circle").count() >= 2
        assert page.locator(".mg-away").count() == 0 and middle(page, "max_1") == before
        page.keyboard.press("Escape")


def test_an_operation_is_moved_to_another_kernel_and_back():
    view = mg.viz.fusion(lambda x, w: mg.tanh(x @ w) * 2 + 1, mg.ones((64, 32)), mg.ones((32, 32)))
    with fused(view) as page:
        drag(page, "tanh_1", middle(page, "matmul_1"))
        assert note(page).startswith("not possible: ") and "matmul is a library call" in note(page)
        page.mouse.up()
        drag(page, "tanh_1", (820, 200))
        page.mouse.up()
        assert "moved to a kernel of its own" in note(page)
        drag(page, "tanh_1", middle(page, "multiply_1"))
        assert note(page).startswith("into this kernel: 2 launches")
        page.mouse.up()
        assert page.locator(".mg-away").count() == 0
