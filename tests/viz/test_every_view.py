"""Every view of ten programs: each shows its boxes and numbers, or refuses with a reason in words."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.drawing import BORDER
from tests.viz.browser import needs_browser, opened
from tests.viz.ten_programs import TEN
from tests.viz.the_views import ALONE, REFUSED, SLOW, VIEWS, made, programs

LABEL = re.compile(r"<text[^>]*>([^<]*)</text>")
CASES = [
    pytest.param(name, view, marks=[pytest.mark.slow] if (name, view) in SLOW else [])
    for name in TEN for view in VIEWS
]


@pytest.mark.parametrize("name, view", CASES)
def test_a_view_of_a_program(name, view):
    function, *args = programs(name)
    with np.errstate(all="ignore"):
        if (name, view) in REFUSED:
            with pytest.raises(mg.MinigradError, match=REFUSED[name, view]):
                VIEWS[view](function, *args)
            return
        made = VIEWS[view](function, *args)
    forms = made._repr_mimebundle_()  # with all data of the view
    words = made.text() + "\n".join(LABEL.findall(forms["image/svg+xml"]))
    assert forms["text/html"] and made.text().strip()
    assert not re.search(r"\bproject\b(?!`)|\bproject_\d|\bcall_\d|\b1 results\b", words)
    assert not re.search(r"(?<![\w'.])(nan|inf|NaN|Infinity)(?![\w'(-])", words)
    if view in ("graph", "backward", "step"):
        assert "" not in LABEL.findall(forms["image/svg+xml"])


BOXES = """() => {
  const problems = [], scale = 1;
  const canvas = [...document.querySelectorAll(".mg-canvas svg")].find(each => each.getBoundingClientRect().width);
  const boxes = [...canvas.querySelectorAll(".mg-box")].filter(each => each.getBoundingClientRect().width);
  const place = each => {
    const shape = each.querySelector("rect, path, ellipse").getBoundingClientRect();
    return [shape.left, shape.top, shape.right, shape.bottom];
  };
  const places = boxes.map(place);
  places.forEach(([l, t, r, b], i) => places.slice(i + 1).forEach(([m, u, s, c], j) => {
    const wide = Math.min(r, s) - Math.max(l, m), high = Math.min(b, c) - Math.max(t, u);
    if (wide > 3 && high > 3) {
      problems.push(`${boxes[i].textContent} lies on ${boxes[i + 1 + j].textContent}`);
    }
  }));
  for (const each of canvas.querySelectorAll("text")) {
    const size = parseFloat(getComputedStyle(each).fontSize);
    if (each.textContent.trim() && size < 9) problems.push(`${size} px: ${each.textContent}`);
  }
  return [boxes.length, problems];
}"""


@needs_browser
@pytest.mark.parametrize("name", TEN)
def test_a_graph_in_a_browser(name):
    """The page draws without an error of its script, which `opened` checks, and its boxes lie beside each other."""
    function, *args = programs(name)
    for view in ("graph", "step"):
        if (name, view) in REFUSED:
            continue
        with opened(VIEWS[view](function, *args).to_html()) as page:
            count, problems = page.evaluate(BOXES)
            assert count > 0
            assert problems == []


@pytest.mark.parametrize("name", ALONE)
def test_each_page_has_all_its_words_in_its_frame(name):
    """Of a flipbook: the height of a drawing once was that of the last point of a curve, from the second page on."""
    shown = made("", name)
    book = shown.book() if isinstance(shown, mg.viz.Dashboard) else shown
    for page in [page for pages in book.pages for page in pages]:
        lowest = max(float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]+)"', "".join(page.drawing.pieces)))
        assert lowest <= page.drawing.height + BORDER, page.say
