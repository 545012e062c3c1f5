"""The pages that lectures show whole: each is a function or a class that fits on one page."""

import inspect
from textwrap import dedent

import pytest

from minigrad.autodiff import reverse
from minigrad.compile.codegen.c import CPrinter
from minigrad.compile.functions.recording import Recording
from minigrad.compile.fusion.fuse import Fusing
from minigrad.compile.graph_mode import GraphMode
from minigrad.compile.jitted import Jitted
from minigrad.compile.rewriting import algebra
from minigrad.compile.running import program
from minigrad.core import emit

LINES, COLUMNS = 60, 88


def table_of_equations():
    text = inspect.getsource(algebra)
    return text[text.index("# Zero and one") :]


PAGES = {
    "every operation: compute, wrap, record": [emit.Interpreter.manifest, emit.Interpreter.manifest_values],
    "the backward pass": [reverse.steps],
    "a jitted call": [Jitted.__call__, Recording.run],
    "graph mode": [GraphMode.evaluate, GraphMode._run],
    "the whole compiler": [program.compile],
    "fusion": [Fusing.place],
    "what fits into a kernel": [Fusing.fit],
    "a printer": [CPrinter],
}


def check(text):
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("name", PAGES)
def test_pages_shown_whole_fit(name):
    check("\n".join([dedent(inspect.getsource(part)) for part in PAGES[name]]))


def test_the_algebra_fits_on_a_page():
    text = table_of_equations()
    assert text.count("->") > 15
    check(text)
