"""Be the tracer: what each line puts into the graph, in Python and in a real browser."""

import re
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad_course.units.u10_graph_mode.be_the_tracer import be_the_tracer
from minigrad_course.units.u10_graph_mode.line_by_line import Recording
from tests.viz.browser import needs_browser, opened
from tests.viz.seen import page_of, problems_of, problems_of_motion

limit = 1.0
scale = 2.0


def clip(g):
    length = (g * g).sum().sqrt()
    if length > limit:
        g = g * (limit / length)
    return g


def either(x):
    """A function with two branches."""
    # a comment is not a line to click
    if x.sum() > 0:
        y = x * 2
    else:
        y = (
            x
            + 3
        )
        y = y * y
    return y


def halve(x):
    while x > 1.0:
        x = x / 2
    return x


def unchanged(x):
    return x


def in_place(x, y):
    x += y
    x *= 2
    return x


def frozen(x):
    size = x.sum().item()
    return x * size


def again(x):
    if x < 10:
        return again(x * 2)
    return x


def caught(x):
    try:
        y = x.reshape((7,))
    except mg.MinigradError:
        y = x * scale
    return y


def flat(x):
    unused = x * 3
    return x.reshape((unused.size,)) + 1


LONG, SHORT = [3.0, 4.0], [0.4, 0.3]


def tensors(*values, dtype=np.float32):
    return [mg.asarray(np.asarray(value, dtype)) for value in values]


def put(recording):
    return [(step.line, *[node.name for node in step.nodes]) for step in recording.steps]


@pytest.mark.parametrize(("function", "example", "steps"), [
    (clip, [LONG], [(2, "multiply", "sum", "sqrt"), (3,), (4, "divide", "multiply"), (5,)]),
    (clip, [SHORT], [(2,), (3,), (5,)]),  # the result is the example itself
    (either, [[1.0]], [(4,), (5, "multiply"), (12,)]),
    (either, [[-1.0]], [(4,), (7, "add"), (11, "multiply"), (12,)]),
    (halve, [3.0], [(2,), (3, "divide"), (2,), (3, "divide"), (2,), (4,)]),
    (unchanged, [1.0], [(2,)]),
    (in_place, [1.0, 2.0], [(2, "add"), (3, "multiply"), (4,)]),
    (frozen, [[1.0, 2.0]], [(2,), (3, "multiply")]),
    (again, [3.0], [(2,), (3, "multiply", "multiply")]),  # what a call computes belongs to the line of the call
    (caught, [1.0], [(2,), (3,), (4,), (5, "multiply"), (6,)]),
    (flat, [[[1.0, 2.0]]], [(2,), (3, "reshape", "add")]),
    (lambda x: x * 2 + 1, [1.0], [(1, "multiply", "add")]),
    (mg.jit(halve), [2.0], [(2,), (3, "divide"), (2,), (4,)]),
])
def test_each_line_puts_in_the_operations_of_the_result(function, example, steps):
    assert put(Recording(function, tensors(*example), [])) == steps


VERDICTS = [
    (clip, [LONG], [SHORT], "the graph returns [0.8, 0.6], and clip returns [0.4, 0.3]. At line 3, these"),
    (clip, [LONG], [[30.0, 40.0]], "the graph returns [0.6, 0.8], which is right"),
    (either, [[1.0]], [[-1.0]], "the graph returns [−2], and either returns [4]. At line 4, these numbers"),
    (halve, [12.0], [100.0], "the graph returns 6.25, and halve returns 0.781. At line 2,"),
    (halve, [12.0], [0.5], "the graph returns 0.0312, and halve returns 0.5. At line 2,"),
    (in_place, [1.0, 2.0], [5.0, 1.0], "the graph returns 12, which is right"),
    (frozen, [[1.0, 2.0]], [[3.0, 3.0]], "the graph returns [9, 9], and frozen returns [18, 18]. The same lines ran"),
    (flat, [[1.0, 2.0]], [[1.0, 2.0, 3.0]], "the graph stops: reshape: 3 elements of shape (3,) do not fit"),
    (clip, [[np.nan, 1.0]], [[np.nan, 2.0]], "the graph returns [nan, 2]  1 nan, which is right"),
    (clip, [np.ones(0)], [np.ones(0)], "the graph returns no numbers, which is right"),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("function", "example", "other", "says"), VERDICTS)
def test_the_graph_runs_with_other_numbers(function, example, other, says, dtype):
    given = tensors(*other, dtype=dtype)
    before = [each.tolist() for each in given]
    recording = Recording(function, tensors(*example, dtype=dtype), [given])
    assert recording.verdict(recording.others[0]).startswith(says)
    assert str([each.tolist() for each in given]) == str(before)


def test_a_debugger_that_was_there_before_is_there_afterwards():
    def debugger(*_):
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        Recording(clip, tensors(LONG), [tensors(SHORT)])
        with pytest.raises(mg.MinigradError):
            Recording(lambda x: mg.reshape(x, (7,)), tensors(LONG), [])
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)


def endless(x):
    for _ in range(50):
        x = x * 2
    return x


@pytest.mark.parametrize(("function", "says"), [
    (endless, "endless runs 102 lines in this call"), (max, "the lines of this function are not known"),
    (mg.nn.Linear(2, 2), "the lines of this function are not known"),
    (eval("lambda x: x * 2"), "the lines of this function are not known"),
    (lambda x: None, "returns None"), (lambda x: sum([x * i for i in range(100)]), "operations are too many"),
])
def test_what_cannot_be_clicked_is_refused(function, says):
    with pytest.raises(mg.MinigradError, match=says):
        be_the_tracer(function, 1.0)


def test_the_text_and_the_film_tell_the_whole_story():
    book = be_the_tracer(clip, LONG, SHORT)
    assert repr(book) == "<be the tracer of clip: 4 lines to click>"
    assert book.text().splitlines()[0] == "line 2, length = (g * g).sum().sqrt(): 3 nodes, multiply, sum, sqrt"
    said = [says for _, says in book.frames()]
    assert len(said) == 6 and said[0].startswith("The graph is empty") and "the trace has one path" in said[-1]
    assert "✗ the graph: [0.8, 0.6]" in book.to_svg() and "✓ clip: [0.4, 0.3]" in book.to_svg()


# ---- in a browser ----------------------------------------------------------------------------------------------------

browser = [needs_browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def html():
    return page_of(be_the_tracer(either, [1.0, 2.0], [-1.0, -9.0], [3.0, 4.0]))


def said(page):
    return page.inner_text("[aria-live]")


def line(page, number):
    return page.locator(f'[aria-label^="line {number}:"]')


def boxes(page):
    return page.locator(".mg-picture .mg-box").count()


class TestInABrowser:
    pytestmark = browser

    def test_clicks_put_nodes_into_an_empty_graph(self, html):
        with opened(html) as page:
            assert boxes(page) == 0 and said(page).startswith("The graph is empty")
            line(page, 5).click()
            assert said(page).startswith("Line 5 is not next. Python comes to it later.") and boxes(page) == 0
            line(page, 4).click()
            assert said(page).startswith("Line 4 puts in no nodes. `if` is not an operation") and boxes(page) == 0
            line(page, 4).click()
            assert said(page).startswith("Line 4 is not next. It has run already.")
            assert [line(page, number).count() for number in (5, 7, 11, 12)] == [1, 0, 0, 1]  # the branch that runs
            line(page, 5).click()
            assert said(page).startswith("Line 5 puts in 1 node, multiply.") and boxes(page) == 2
            line(page, 12).click()
            assert "the graph is complete" in said(page) and line(page, 5).count() == 0
            page.get_by_label("run the graph with [−1, −9]").click()
            assert said(page).startswith("With [−1, −9], the graph returns [−2, −18], and either returns [4, 36].")
            assert "At line 4, these numbers go another way: the trace has one path" in said(page)
            wrong = page.locator(".mg-picture text", has_text="✗ the graph")
            assert wrong.text_content() == "✗ the graph: [−2, −18]"
            red = "e => getComputedStyle(e).fill"
            assert wrong.evaluate(red) != page.locator(".mg-picture text", has_text="✓ either").evaluate(red)
            page.get_by_label("run the graph with [3, 4]").click()
            assert "which is right" in said(page) and page.locator(".mg-picture text", has_text="✗").count() == 0
            page.get_by_label("begin again").click()
            assert boxes(page) == 0

    def test_before_the_if_both_branches_can_be_tried(self, html):
        with opened(html) as page:
            line(page, 7).click()
            assert said(page).startswith("Line 7 is not next. The example does not lead there.")
            assert page.get_by_label("one line back").count() == 0

    def test_the_keyboard_is_enough_and_keeps_its_place(self, html):
        with opened(html) as page:
            page.locator(".mg-view").focus()
            focused = "document.activeElement.ariaLabel"

            def to(name):
                for _ in range(20):
                    page.keyboard.press("Tab")
                    if page.evaluate(focused) and page.evaluate(focused).startswith(name):
                        return page.keyboard.press("Enter")
                raise AssertionError(f"Tab does not lead to {name}")

            for name in ("line 4", "line 5", "line 12", "run the graph with [−1"):
                to(name)
            assert "the trace has one path" in said(page) and page.evaluate(focused).startswith("run the graph")
            page.keyboard.press("Shift+Tab")
            page.keyboard.press("Shift+Tab")
            assert page.evaluate(focused) == "one line back"
            page.keyboard.press("Enter")
            assert page.evaluate(focused) == "one line back" and "complete" in said(page)

    @pytest.mark.parametrize("dark", [False, True])
    @pytest.mark.parametrize("width", [1280, 390])
    def test_every_moment_is_legible(self, html, width, dark):
        with opened(html, size=(width, 844), dark=dark) as page:
            assert problems_of(page) == {}
            for number in (4, 5, 12):
                line(page, number).click()
                assert problems_of(page) == {}
            page.get_by_label("run the graph with [−1, −9]").click()
            assert problems_of(page) == {} and problems_of_motion(page) == {}

    def test_an_untrusted_notebook_shows_the_whole_graph(self):
        form = be_the_tracer(clip, LONG, SHORT)._repr_mimebundle_()["text/html"]
        with opened(re.sub(r' onload="[^"]*"', "", form)) as page:
            assert page.evaluate("document.querySelector('img').naturalWidth") > 300
            assert "the trace has one path" in page.locator("pre").text_content()

    def test_hostile_code_runs_no_script(self):
        def hostile(x):
            y = x * len("</script><img src=x onerror='window.hit=1'>")
            return y

        with opened(page_of(be_the_tracer(hostile, 1.0, 2.0))) as page:
            assert "onerror" in line(page, 2).get_attribute("aria-label")
            line(page, 2).click()
            line(page, 3).click()
            assert page.evaluate("window.hit") is None and "complete" in said(page)
