"""What `seen.py` checks, on some of the pages; `--long` has all of them.  The check itself is checked on a bad page."""

import pytest

import minigrad as mg
from minigrad.viz.exhibit import introduction
from minigrad.viz.quoting import quoted
from tests.viz.browser import needs_browser, opened
from tests.viz.seen import SIZES, page_of, problems_of, problems_of_keys, problems_of_motion, seen
from tests.viz.ten_programs import TEN
from tests.viz.the_views import ALONE, VIEWS, every_case, made

pytestmark = needs_browser

ORDER = [*VIEWS, *ALONE]
SHOWN = every_case()


def first_of(view):
    """For each view a different program, in turn, that it does not refuse."""
    names = [name for name, other in SHOWN if other == view]
    return names[ORDER.index(view) % len(names)]


def check(name, view, size, dark):
    found = seen(page_of(made(name, view)), size, dark)
    assert not found, found


@pytest.mark.parametrize("view", ORDER)
def test_a_view_is_readable_and_moves_by_keys(view):
    turn = ORDER.index(view)
    check(first_of(view), view, SIZES[turn % 3], bool(turn % 2))


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name, view", [(name, view) for name, view in SHOWN if name in ("", *TEN)])
def test_every_view_in_every_window(name, view, size, dark):
    check(name, view, size, dark)


HOSTILE = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>",
    "\"><img src=x onerror='window.hurt = 1'>",
    "<svg onload='window.hurt = 1'>&lt;img src=x onerror=window.hurt=1&gt;{`${window.hurt=1}`}",
)


class Net(mg.nn.Module):
    """A layer whose parameter, scope and line of code are hostile."""

    def __init__(self, name):
        self.name = name
        self.layers = {name: mg.nn.Linear(3, 2)}

    def forward(self, x):
        with mg.scope(self.name):
            h = mg.tanh(self.layers[self.name](x))  # "</script><img src=x onerror='window.hurt = 1'>"
        return (h * h).sum()


@pytest.mark.parametrize("name", [HOSTILE[0], *[pytest.param(each, marks=pytest.mark.long) for each in HOSTILE[1:]]])
@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_run_no_script(view, name):
    made = VIEWS[view](Net(name), mg.ones((4, 3), requires_grad=True))
    above = introduction(name, name, quoted(made.nodes) or name)
    with opened(made.to_html(name, above)) as page:
        page.locator(".mg-view").first.wait_for()
        for key in ("ArrowRight", "ArrowRight", "Enter", "End", "Tab", "Enter"):
            page.keyboard.press(key)
        assert page.locator(".mg-intro h1").inner_text() == name and page.title() == name
        assert page.evaluate("window.hurt === undefined") and page.locator("[src=x]").count() == 0


BAD = """<!doctype html><style>body { margin: 0 } .mg-view { width: 300px }</style>
<div class="mg-view" role="application" tabindex="0">
<p style="font-size: 8px">tiny</p><p style="color: #999">pale</p><p style="color: #999; opacity: 0">not there</p>
<p style="width: 60px; overflow: hidden; white-space: nowrap">this sentence is cut off at its end</p>
<button></button><span style="cursor: pointer" onclick="0">only for the mouse</span>
<svg viewBox="0 0 100 50" width="300" height="150"><rect width="100" height="50" fill="#222"/>
<text x="5" y="10" font-size="4" fill="#fff">one</text><text x="6" y="11" font-size="4" fill="#fff">two</text>
<text x="5" y="30" font-size="4" fill="#444">dark on dark</text>
<text x="92" y="30" font-size="4" fill="#fff">outside</text>
<text x="5" y="40" font-size="2" fill="#fff">small</text></svg></div>"""


def test_the_check_finds_what_is_wrong():
    with opened(BAD, size=(390, 600)) as page:
        found = problems_of(page)
    assert [each.partition(": ")[2] for each in found["small"]] == ["tiny", "small"]
    assert [each.split(": ")[1].split(" (")[0] for each in found["contrast"]] == ["pale", "dark on dark"]
    assert found["overlap"] == ["one / two"]
    assert "px of P are cut off" in found["cut"][0] and found["cut"][1].endswith("outside its picture: outside")
    assert len(found["unnamed"]) == 1 and found["unreachable"] == ["SPAN : only for the mouse"]
    assert found["silent"] == ["a view without a sentence that is read aloud"]


def test_the_check_finds_what_does_not_speak_or_does_not_stop():
    moving = """<!doctype html><style>@keyframes turn { to { rotate: 1turn } } p { animation: turn 1s infinite }</style>
    <div class="mg-view" role="application" tabindex="0"><p>around</p><div aria-live="polite">a sentence</div></div>"""
    with opened(moving) as page:
        assert problems_of_keys(page) == {"silent": ["no key changes the view"]}
        assert problems_of_motion(page) == {"motion": ["the picture still moves after a step"]}
