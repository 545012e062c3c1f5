"""The views in Firefox: as a page and as an output, moved by keys alone."""

import numpy as np
import pytest

import minigrad as mg
from tests.course.test_boxes import BOXES
from tests.viz.firefox import END, RIGHT, Firefox, needs_firefox
from tests.viz.test_hosts import outputs, small

pytestmark = [needs_firefox, pytest.mark.slow]


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    browser = Firefox(tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()


def board():
    found = mg.viz.Dashboard(show="nothing")
    for step in range(1, 2001):
        found.log(step, loss=1 / step)
    return found


def reader():
    """A training with one picture in its batch."""
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 2))
    batch = mg.asarray(np.eye(8, dtype=np.float32)[None]), mg.asarray([0])
    return mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.CrossEntropyLoss(), [batch])


def chain(x):
    return mg.tanh(x * 2 + 1).sum()


VIEWS = {
    "step": lambda: mg.viz.step(small()), "ring": lambda: mg.viz.cluster(3), "bench": lambda: mg.viz.bench(mg.tanh),
    "fusion": lambda: mg.viz.fusion(chain, mg.ones((4, 4))), "dashboard": board,
    "timeline": lambda: mg.viz.timeline(chain, mg.ones((4, 4)), runs=1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_keys_move_a_view_in_a_page_and_in_an_output(firefox, name):
    view = VIEWS[name]()
    for html in (view.to_html(), outputs(view)):
        firefox.open(html)
        assert firefox.run("document.querySelectorAll('.mg-view svg, .mg-columns').length")
        seen = "[document.querySelector('.mg-view').innerHTML, document.activeElement.outerHTML]"
        before = firefox.run(seen)
        firefox.press(*(["\ue011"] if name == "dashboard" else [RIGHT, RIGHT, END]))  # Home: it begins at the end
        assert firefox.run(seen) != before


def test_boxes_and_images_have_their_colours(firefox):
    firefox.open("<!doctype html>" + "".join([box.html() for box in BOXES]))
    edges = "[...document.querySelectorAll('.mg-feedback')].map((box) => getComputedStyle(box).borderLeftColor)"
    assert len(set(firefox.run(edges))) == 4
    firefox.open(reader().to_html())
    assert firefox.run("document.querySelector('.mg-canvas image').getBoundingClientRect().width") > 30
