"""The pictures of the README are those that `python -m lectures.pictures.readme` draws."""

import re

import pytest

from lectures.pictures.readme import DARK, in_dark, playing, written
from minigrad.viz.drawing import Drawing


def test_the_pictures_are_up_to_date_and_small():
    pytest.importorskip("llvmlite")  # without it, the kernels are others
    for file, text in written():
        assert file.read_text(encoding="utf-8") == text, "python -m lectures.pictures.readme"
        assert len(text) < 150_000 and "http" not in text.replace("http://www.w3.org/", "")


def test_a_picture_plays_its_steps_in_turn():
    svg = playing([(Drawing(100, 20).to_svg(f"step {i}"), f"sentence {i}") for i in range(4)])
    delays = re.findall(r"animation-delay:(-?[\d.]+)s", svg)
    assert delays == ["0.0", "-7.0", "-5.6", "-4.2"]  # of six parts of 1.4 s, the last three of the last step
    assert "prefers-reduced-motion" in svg and svg.index("sentence 0") < svg.index("sentence 3")


def test_a_dark_picture_has_the_colours_of_the_theme():
    assert in_dark("".join(DARK)) == "".join(DARK.values())
