"""The feedback of a check as a box: its parts, its colours, and what a screen reader is given."""

import re

import pytest

from minigrad_course.boxes import KINDS, Box
from minigrad_course.feedback import NotWritten, Stopped, Wrong, stopped
from tests.viz.browser import needs_browser, opened

SWAPPED = Wrong(
    "mul_grad", "the gradient of a is wrong\n  Expected: -10.0, by finite differences\n  Got: 15.0\n"
    "  in mul_grad(g=5.0, out=-6.0, a=3.0, b=-2.0)", "swapped: `return` the gradient of a first",
)
BOXES = [
    Box("right", "rise", "right, 1 point\n  One step of a, two of y."), SWAPPED.box,
    NotWritten("rise", "not answered yet", "put it in the place of the dots").box,
    Stopped("rise", "stopped with NameError: name 'gb' is not defined\n  line 2 of the cell: return gb").box,
    Box("noted", "rise", "noted, 0.06. The answer turns out to be different."),
    Box("misused", "rise", "there is no task of that name", 'one of "rise"'),
]


def test_every_kind_has_another_first_word_and_the_signs_of_the_text():
    assert {box.kind for box in BOXES} == set(KINDS)
    assert len({word for _, word, _, _ in KINDS.values()}) == len(KINDS) and "Hint:" not in KINDS
    assert all(str(box)[0] == KINDS[box.kind][0] for box in BOXES)


def test_the_parts_of_a_box_are_marked_and_no_text_of_the_student_is_html():
    html = SWAPPED.box.html()
    assert "<dt>Expected:</dt><dd>-10.0, by finite differences</dd><dt>Got:</dt><dd>15.0</dd>" in html
    assert "in <code>mul_grad(g=5.0, " in html and "<code>return</code> the gradient" in html
    hostile = Box("wrong", "<b>", "<i>\n  line 1 of the cell: <u>\n  Got: <s>\n  <em>", "<img src=x>").html()
    assert not re.search("<(b|i|u|s|em|img)[ >]", hostile)


def test_the_caret_of_a_syntax_error_stays_below_its_place():
    try:
        compile("y = 1\nx = (2 * 3", "<cell>", "exec")
    except SyntaxError as error:
        feedback = stopped("x", error)
    line, caret = re.search("<pre>(.*)\n(.*)</pre>", feedback.box.html()).groups()
    text = str(feedback).splitlines()
    (at,) = [i for i, each in enumerate(text) if each.strip() == "^"]
    assert line[caret.index("^")] == text[at - 1][text[at].index("^")] == "("


def light(colour):
    """The relative luminance of `rgb(...)` or `color(srgb ...)`, as WCAG defines it."""
    numbers = [float(n) for n in re.findall(r"[\d.]+", colour.replace("srgb", ""))[:3]]
    scaled = [n if "srgb" in colour else n / 255 for n in numbers]
    linear = [n / 12.92 if n <= 0.04045 else ((n + 0.055) / 1.055) ** 2.4 for n in scaled]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@needs_browser
def test_a_word_of_a_box_stays_whole_under_the_styles_of_jupyterlab():
    theirs = ".host dl, .host dt, .host dd { display: block } .host dt { float: left; width: 20%; padding: 0 }"
    html = "".join([box.html() for box in BOXES])
    with opened(f'<style>{theirs}</style><div class="host">{html}</div>', size=(390, 844)) as page:
        heights = page.evaluate("[...document.querySelectorAll('dt')].map((word) => word.offsetHeight)")
    assert heights and all(height < 25 for height in heights)  # one line


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_box_can_be_read_and_is_read_aloud(dark):
    """Words have a contrast of at least 4.5, in both themes; the accessibility tree has the role and the words."""
    with opened("".join([box.html() for box in BOXES]), dark=dark) as page:
        seen = page.evaluate("""() => [...document.querySelectorAll(".mg-feedback")].map((box) => [
          getComputedStyle(box).backgroundColor, getComputedStyle(box).borderLeftColor,
          ...[...box.querySelectorAll("p, strong, dt, dd, code, pre")].map((part) => getComputedStyle(part).color)])""")
        for paper, _, *colours in seen:
            for colour in colours:
                low, high = sorted([light(paper), light(colour)])
                assert (high + 0.05) / (low + 0.05) >= 4.5, (paper, colour)
        assert len({edge for _, edge, *_ in seen}) == 4  # right, wrong or stopped, not yet, and noted
        tree = page.locator("body").aria_snapshot()
    assert len(re.findall("- 'alert ", tree)) == len(re.findall("- 'status ", tree)) == 3
    assert re.search('alert "Wrong: mul_grad"(.|\n)*Expected:(.|\n)*-10.0(.|\n)*Got:(.|\n)*15.0', tree)
    assert "✗" not in tree and "Hint:" in tree  # a reader says the word, not the sign
