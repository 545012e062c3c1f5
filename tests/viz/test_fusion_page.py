"""The views of the compiler in a real browser: the pages of fusion, moving operations, charts."""

import json
import re

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened, outputs, settled
from tests.viz.the_views import made

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]


def small_program():
    def f(x, w, b):
        return (mg.softmax(mg.tanh(x @ w + b * 1.0)) * 2).sum(0)

    return mg.viz.fusion(f, mg.ones((64, 32)), mg.ones((32, 32)), mg.ones(32))


@pytest.fixture(scope="module")
def page():
    with opened(small_program().to_html()) as page:
        yield page


@pytest.fixture(autouse=True)
def begin(page):
    page.focus(".mg-view")
    page.keyboard.press("Escape")
    page.click("[data-tab=written]")


def state(page, name):
    return page.get_attribute(".mg-view", f"data-{name}")


def said(page):
    return page.inner_text(".mg-say")


def board(page):
    """The board, with the compiler's own partition."""
    if state(page, "tab") != "move":
        page.focus(".mg-view")
        page.keyboard.press("m")
    page.click("text=as compiled")
    return page.locator(".mg-board")


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_all_rows_are_seen_above_the_code(name):
    """Of the nine rows of a CNN, which were open, four were above the code."""
    page_of = made(name, "fusion")
    with opened(page_of.to_html(), size=(1600, 900)) as page:
        settled(page)
        bottom = page.locator(".mgw-below").bounding_box()["y"]
        ends = [box["y"] + box["height"] for box in [each.bounding_box() for each in page.locator(".mgw-row").all()]]
        assert len(ends) == 1 + len(page_of.written.rows) and max(ends) <= bottom < 900 - 200


def test_below_the_picture_are_the_loops_of_a_kernel():
    def f(x):
        return x.sum(), mg.tanh(x @ x.T * 2).sum(0)

    shown = "document.querySelector('.mgw-below .mg-listing + .mg-listing').innerText"
    with opened(mg.viz.fusion(f, mg.ones((64, 64))).to_html()) as page:
        first = page.evaluate(shown)
        assert first.count("void kernel_") == 2 and "own_tanh" in first, "of all kernels, until one is chosen"
        page.focus(".mg-view")
        page.keyboard.press("ArrowDown")
        chosen = page.evaluate(shown)
        assert chosen.startswith(said(page)) and chosen != first
        page.keyboard.press("Escape")
        assert page.evaluate(shown) == first
        assert "mg.tanh(x @ x.T * 2)" in page.inner_text(".mgw-below .mg-listing >> nth=0"), "your code is beside it"
        assert page.inner_text(".mgw-below .mg-listing >> nth=0").startswith("your lines, and their operations")
    with opened(made("cnn", "fusion").to_html()) as page:
        page.click("text=open all rows")
        settled(page)
        for k, wide in enumerate((1600, 900)):  # also below a picture that is higher than the window
            page.set_viewport_size({"width": wide, "height": 900})
            page.locator(f'.mgw-band[data-k="{k}"]').click()
            assert page.evaluate(shown).startswith(said(page))
            settled(page)
            parts = ".mgw-below", ".mgw-below .mg-listing >> nth=1"
            below, lists = (page.locator(each).bounding_box() for each in parts)
            assert lists["height"] > 150 and lists["y"] + lists["height"] <= 900, "at once on the screen"
            assert below["y"] + below["height"] - lists["y"] - lists["height"] < 2, "no empty band below it"


def test_the_line_that_owns_a_kernel_is_at_the_top_of_the_list():
    def f(x):
        a = mg.softmax(mg.tanh(x) @ x)
        b = mg.softmax(mg.sin(a) @ x)
        return mg.softmax(mg.cos(b) @ x)

    with opened(mg.viz.fusion(f, mg.ones((8, 8))).to_html()) as page:
        page.locator(".mgw-band[data-k]", has_text="softmax").last.click()
        at_top = """() => { const list = document.querySelector(".mgw-below .mg-listing");
            const { left, top } = list.getBoundingClientRect();
            return list.getRootNode().elementFromPoint(left + 80, top + 8).closest(".mg-line").innerText; }"""
        assert "mg.cos(b)" in page.evaluate(at_top)


def test_the_board_names_the_copies_that_its_cards_do_not_have():
    view = made("hvp", "fusion")
    cards = sum(kernel.program.bytes for kernel in view.cost.kernels if kernel.kind != "copies")
    with opened(view.to_html()) as page:
        page.keyboard.press("m")
        copies = re.search(r"with (.+, kept for the gradient): (\d+) B", page.inner_text(".mg-score"))
        assert copies[1] == view.written.titles.copies and cards + int(copies[2]) == view.cost.program.bytes


def test_the_board_says_what_its_borders_are_and_of_parts_where_a_sum_has_some():
    for numbers, parts in ((mg.ones(4), False), (mg.ones(1 << 20), True)):
        with opened(mg.viz.fusion(lambda x: mg.tanh(x * mg.sin(x).sum()), numbers).to_html()) as page:
            page.keyboard.press("m")
            assert "Green: a reduction. Thick border: must be stored." in page.inner_text(".mg-board > .mg-bar")
            page.click("text=begin from nothing")
            assert ("a sum in several parts has two" in page.inner_text(".mg-note")) is parts


def test_a_sum_that_is_not_in_parts_is_read_as_it_is_and_no_level_is_empty():
    view = mg.viz.fusion(lambda x: mg.tanh(x * mg.sin(x).sum()), mg.ones(4))
    with opened(view.to_html()) as page:
        page.keyboard.press("m")
        page.click("text=begin from nothing")
        levels = [int(text) for text in re.findall(r"level (\d+)", page.inner_text(".mg-cards"))]
        assert sorted({*levels}) == [*range(max(levels) + 1)] and len(levels) == 4
        assert "reads x 16 B, sum_1 4 B" in page.inner_text(".mg-cards")
        assert "combined" not in page.inner_text(".mg-cards") and "in parts" not in page.inner_text(".mg-note")


def drag(page, chip, target, shift=False):
    a, b = page.locator(chip).first.bounding_box(), page.locator(target).first.bounding_box()
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(a["x"] + a["width"] / 2 + 8, a["y"] + a["height"] / 2 + 4)
    page.mouse.move(b["x"] + b["width"] - 6, b["y"] + b["height"] - 6, steps=4)
    settled(page)


def release(page):
    page.mouse.up()
    page.keyboard.up("Shift")


def taken(page):
    return [int(page.get_attribute(".mg-board", f"data-{what}")) for what in ("launches", "bytes")]


def chip(page, name):
    return f'.mg-chip[data-item="{page.locator(".mg-chip", has_text=name).first.get_attribute("data-item")}"]'


# the pages ------------------------------------------------------------------------------------------------------------


def test_the_kernels_come_first_and_a_newcomer_sees_a_button_for_each_page(page):
    visible = [b.inner_text() for b in page.locator(".mg-bar button").all() if b.is_visible()]
    assert visible == ["as written → fused", "stages", "move operations", "?"]
    assert page.locator(".mgw-band[data-k]").count() == 3


def test_every_page_has_its_own_tools_and_keys(page):
    page.keyboard.press("ArrowDown")
    assert page.locator(".mgw-lit").count() == 1
    page.click("[data-tab=stages]")
    assert page.locator("input[type=range]").is_visible()
    page.click("[data-tab=written]")
    assert page.locator(".mgw-lit").count() == 1 and page.locator("input[type=range]").count() == 0


def test_the_page_says_what_is_counted_and_where_times_are(page):
    assert page.inner_text(".mgw-head") == "145 kB → 28.9 kB, 12 → 2 launches"
    said = page.inner_text(".mg-side")
    assert "counts of operations whose results are read, each where its kernel is." in said
    assert "Eager mode runs the others, too: mg.viz.timeline counts all" in said


# the kernels ----------------------------------------------------------------------------------------------------------


def test_a_kernel_says_what_it_reads_and_why_it_is_not_larger(page):
    page.locator(".mgw-band[aria-label='x @ w']").click()
    side = page.inner_text(".mg-side")
    assert said(page) == "x @ w" and re.search(r"reads\s+12.3 kB\s+writes\s+8.19 kB", side)
    assert "matmul is a library call" in side and page.locator(".mgw-reads, .mgw-feeds").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".mgw-lit").count() == 0


def test_every_kernel_has_its_source(page):
    page.click("[data-tab=stages]")
    page.locator("input[type=range]").fill("4")
    assert "void kernel_1" in page.inner_text(".mg-loops >> nth=1") and "64 rows of 32" in page.inner_text(".mg-stage")
    page.locator(".mg-loops [data-names=tanh_1]", has_text="own_tanh").first.click()
    assert said(page).startswith("tanh_1")
    assert "tanh(x @ w + b * 1.0)" in page.locator(".mg-line mark").text_content()


def test_everything_can_be_reached_and_read_aloud(page):
    found = page.locator(".mgw-band[data-k]").all()
    assert found and all(e.get_attribute("role") == "button" and e.get_attribute("aria-label") for e in found)
    assert state(page, "lm-suppress-shortcuts") == "true"


# moving ---------------------------------------------------------------------------------------------------------------


def test_an_operation_is_dragged_into_a_kernel_of_its_own_and_back(page):
    board(page)
    before = taken(page)
    drag(page, chip(page, "tanh_1"), ".mg-own")
    assert "not possible" in page.inner_text(".mg-note")  # it would wait for its own reader
    assert page.locator(".mg-own.mg-cannot").count() == 1
    release(page)
    assert taken(page) == before
    assert page.inner_text(".mg-note").endswith(": kernels would wait for each other: kernel 1, a kernel of its own")
    assert page.locator(".mg-card.mg-circle").get_attribute("data-kernel") == "1"  # with the new one
    drag(page, chip(page, "add_1"), ".mg-own")
    assert "16.4 kB more, 1 launch more than before" in page.inner_text(".mg-note")
    release(page)
    assert taken(page) == [before[0] + 1, before[1] + 2 * 64 * 32 * 4]
    assert "16.4 kB more, 1 launch more than compiled" in page.inner_text(".mg-score")
    page.click("text=undo")
    assert taken(page) == before


def test_a_library_call_cannot_be_fused(page):
    board(page)
    drag(page, chip(page, "add_1"), ".mg-card-library")
    release(page)
    assert "matmul is a library call" in page.inner_text(".mg-note")


def test_a_branch_is_one_card_whose_numbers_add_up_to_its_total_and_a_product_by_loops_has_its_number():
    convolve = mg.nn.Conv2d(1, 4, 3)

    def f(x, s, images):
        chosen = mg.cond(s > 1, lambda x, s: s - 0.5, lambda x, s: 0.5 * (x * x).sum(), x, s)
        return chosen, convolve(images)

    with opened(mg.viz.fusion(f, mg.ones(100), mg.asarray(3.0), mg.ones((2, 1, 16, 16))).to_html()) as page:
        board(page)
        cards = [card.inner_text() for card in page.locator(".mg-card").all()]
        (branch,) = [card for card in cards if "cond_1" in card]
        assert 'a branch, where "then" ran' in branch and "8 B" in branch and "reads 4 B in all" in branch
        assert "writes cond_1 4 B" in branch and "x 400 B" not in branch
        (product,) = [card for card in cards if "writes matmul_1" in card]
        assert re.match(r"kernel \d+, a product", product)
        page.locator(".mg-cardhead").first.focus()
        page.keyboard.press("Enter")
        for _ in cards:
            page.keyboard.press("ArrowRight")
        assert page.locator(".mg-aim").count() == 1, "the keys go from card to card"


def test_an_operation_can_be_computed_in_both_kernels(page):
    board(page)
    page.click("text=begin from nothing")
    before = taken(page)
    subtract = page.locator(".mg-card", has=page.locator(chip(page, "subtract_1"))).get_attribute("data-kernel")
    drag(page, chip(page, "tanh_1"), f'.mg-card[data-kernel="{subtract}"]', shift=True)
    release(page)
    assert page.locator(".mg-chip sup").count() == 2  # it also stays where it was, for its other reader max_1
    assert taken(page) == before  # it reads as much as it saves
    assert "is computed in kernel" in page.inner_text(".mg-note")


def test_a_whole_kernel_is_dragged(page):
    board(page)
    page.click("text=begin from nothing")
    assert page.locator(".mg-card:not(.mg-own)").count() == len(page.locator(".mg-chip").all())
    before = taken(page)
    tanh = page.locator(".mg-card", has=page.locator(chip(page, "tanh_1"))).get_attribute("data-kernel")
    add = page.locator(".mg-card", has=page.locator(chip(page, "add_1"))).get_attribute("data-kernel")
    drag(page, f'.mg-cardhead[data-kernel="{tanh}"]', f'.mg-card[data-kernel="{add}"]')
    release(page)
    assert taken(page) == [before[0] - 1, before[1] - 2 * 64 * 32 * 4]


def test_operations_can_be_moved_by_keys(page):
    board(page)
    before = taken(page)
    page.locator(chip(page, "add_1")).focus()
    page.keyboard.press("Enter")
    assert "picked up" in page.inner_text(".mg-note")
    page.keyboard.press("ArrowRight")
    aloud = page.locator(".mg-note[aria-live]")
    assert "into a kernel of its own: 16.4 kB more, 1 launch more than before" in aloud.text_content()
    assert page.locator(".mg-card.mg-aim").get_attribute("data-kernel") == "2"
    page.keyboard.press("ArrowRight")
    assert "not possible: matmul_1 can't be in a kernel with others" in aloud.text_content()
    page.keyboard.press("Escape")
    assert taken(page) == before and page.locator(".mg-aim").count() == 0
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert taken(page)[0] == before[0] + 1
    assert page.evaluate("document.activeElement.textContent") == "add_1"  # the focus follows the operation


def test_board_starts_with_the_figures_of_the_compiler():
    def branches(x):
        return mg.cond(x.sum() > 0, lambda y: mg.tanh(y) * 2, lambda y: y - 1, x).T * 2, x.T

    view = mg.viz.fusion(branches, mg.ones((6, 4)))
    with opened(view.to_html()) as page:
        page.focus(".mg-view")
        page.keyboard.press("m")
        assert taken(page) == [view.cost.program.launches, view.cost.program.bytes]


def test_the_board_counts_the_blocks_of_attention_until_a_move_ends_them():
    def attention(q, k, v):
        return mg.softmax(q @ k.mT, -1) @ v

    query = mg.ones((1, 2, 1024, 64))
    view = mg.viz.fusion(attention, query, query, query)
    with opened(view.to_html()) as page:
        board(page)
        assert taken(page) == [view.cost.program.launches, view.cost.program.bytes]
        assert "the cards count whole products" in page.inner_text(".mg-score")
        page.locator(".mg-chip", has_text="max_1").focus()
        for key in ("Enter", "ArrowRight", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        page.wait_for_function("document.querySelector('.mg-note').textContent.includes('moved to')")
        moved = view.move("max_1").cost.program
        assert taken(page) == [moved.launches, moved.bytes]
        page.click("text=undo")
        page.wait_for_function("document.querySelector('.mg-note').textContent === 'undone'")
        assert taken(page) == [view.cost.program.launches, view.cost.program.bytes]


def test_escape_ends_a_move(page):
    board(page)
    page.focus(".mg-view")
    page.keyboard.press("Escape")
    assert state(page, "tab") == "written"


def test_a_large_program_is_compressed_and_shown():
    def long(x):
        for _ in range(90):
            x = mg.tanh(x @ x) * 2 + 1
        return x

    view = mg.viz.fusion(long, mg.ones((4, 4)))
    bare = len(json.dumps(view.data()))
    for html in (view.to_html(), outputs(view)):
        assert len(html) < bare
        with opened(html) as page:
            page.wait_for_selector(".mg-view .mgw-band")
            assert len(page.inner_text(".mg-side")) > 50


# charts ---------------------------------------------------------------------------------------------------------------


def test_views_of_a_function_and_of_its_gradient_both_work():
    f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    mg.grad(f)(mg.ones((4, 4)))
    view = mg.viz.fusion(f, mg.ones((4, 4)))
    for html in (view.to_html(), outputs(view)):
        with opened(html) as page:
            page.locator(".mg-view").nth(1).wait_for()
            titles = page.locator(".mg-title").all_inner_texts()
            assert titles == ["forward pass, keeps values for the gradient", "gradient"]
            views = page.locator(".mg-view")
            assert views.count() == 2
            views.nth(1).focus()
            page.keyboard.press("?")
            shown = [views.nth(i).locator(".mg-help").is_visible() for i in range(2)]
            assert shown == [False, True], "keys are for one of them"
