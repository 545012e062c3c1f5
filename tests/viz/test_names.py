"""Names with any characters: pictures stay valid, and terminals get only printable text."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn
from minigrad_course.feedback import Wrong, stopped

pytestmark = pytest.mark.usefixtures("numpy_kernels")

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8)
nasty = example("a\x1b[2J\x00\x07<&\"\ud800\uffff\x9b\r\ue000ink\ue001")


class Named(nn.Module):
    def __init__(self, name):
        self.held = {name: mg.ones(2, requires_grad=True)}
        self.scope = name

    def forward(self, x):
        with mg.scope(self.scope):
            return (x * self.held[self.scope]).sum()


def is_text(text):
    text.encode()
    return CONTROL.search(text) is None


@pytest.mark.parametrize("name", ["{", "}", "\\", "%", "_"])
def test_a_name_of_one_sign_is_text_in_a_formula(name):
    model, x = Named("w"), mg.ones(2)
    assert mg.viz.graph(model(x), names={name: x}).to_html()


@pytest.mark.slow
@nasty
@given(NAMES)
@settings(max_examples=10)
def test_pictures_are_valid_and_words_are_text(name):
    model, x = Named(name), mg.ones(2)
    step = mg.jit(lambda x: model(x))
    views = [
        mg.viz.graph(model(x), names={name: x}), mg.viz.graph(model, x), mg.viz.step(model(x)),
        mg.viz.fusion(step, x), mg.viz.memory(step, x), mg.viz.timeline(step, x, runs=0),
    ]
    for view in views:
        ElementTree.fromstring(view.to_svg())
        assert is_text(view.to_svg()) and is_text(repr(view)) and is_text(view._words())
        assert is_text(view.text())
        assert is_text("".join(view._repr_mimebundle_()["text/plain"])) and view.to_html().encode()
    assert is_text(views[0].to_dot().replace("\t", " "))
    assert is_text(repr(model)) and is_text(str(model.summary(x)))
    step.function.__qualname__ = name
    assert is_text(repr(step)) and is_text(str(step.kernels(x))) and is_text(str(step.program(x)))


def test_the_feedback_of_a_check_is_text():
    name = "a\x1b[2Jb"
    for feedback in (Wrong(name, name, name), stopped(name, ValueError(name), call=name)):
        assert is_text(str(feedback)) and "a\\x1b[2Jb" in str(feedback)


@pytest.mark.slow
@nasty
@given(NAMES)
@settings(max_examples=10)
def test_errors_are_text(name):
    with pytest.raises(mg.MinigradError) as error:
        Named(name).load_state_dict({"other" + name: mg.ones(2)})
    assert is_text(str(error.value))


def test_control_characters_are_written_out():
    with mg.scope("a\x1b[2Jb"):
        x = mg.ones(2, requires_grad=True) * 2
    assert x.node.scope == ("a\\x1b[2Jb",)
    assert ">a\\x1b[2Jb</text>" in mg.viz.graph(x).to_svg()
