"""Cells of a page: names, outputs, errors at their lines, checks, and stopping; here without a browser."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest

import minigrad as mg
from minigrad.support.source import notebook_shell
from minigrad_course import page as module
from minigrad_course.page import Page
from minigrad_course.session import SESSION


class Shown:
    """A page, and what its cells have sent."""

    def __init__(self):
        self.sent = []
        self.page = Page(lambda kind, text, line: self.sent.append((kind, text, line)))

    def run(self, code, number=1):
        """What a cell sends."""
        self.sent.clear()
        self.ok = self.page.run(code, number)
        return list(self.sent)

    def printed(self, code):
        return "".join(text for kind, text, _ in self.run(code) if kind == "out")

    def error(self, code, number=1):
        """The error of a cell, and the line that is marked."""
        (kind, text, line) = self.run(code, number)[-1]
        assert kind == "error" and not self.ok
        return text, line


@pytest.fixture
def shown():
    made = Shown()
    yield made
    made.page.close()


def test_cells_share_names_and_show_their_last_value(shown):
    assert shown.run("a = 2\nprint('two')") == [("out", "two", 0), ("out", "\n", 0)] and shown.ok
    assert shown.run("a * a", 2) == [("text", "4", 0)]
    assert shown.run("None") == [] and shown.run("_") == [("text", "4", 0)]
    assert shown.run("mg.ones(2).tolist()") == [("text", "[1.0, 1.0]", 0)]
    assert shown.page.user_ns["In"][1:3] == ["a = 2\nprint('two')", "a * a"]


def test_a_cell_has_no_part_in_the_settings_of_this_module(shown):
    """`from __future__ import annotations`, for example."""
    assert shown.run("def f(x: 1 + 1): pass\nf.__annotations__") == [("text", "{'x': 2}", 0)]


def test_each_value_has_its_best_form(shown):
    x = mg.asarray(1.0, requires_grad=True)
    shown.page.user_ns |= {"y": x * x, "named": SimpleNamespace}
    ((kind, text, _),) = shown.run("mg.viz.step(y)")
    assert kind == "view" and text.startswith("<!doctype html>")
    for form, kind in (("html", "html"), ("markdown", "markdown"), ("svg", "svg")):
        code = f"class Form:\n    def _repr_{form}_(self): return 'as {form}'\nForm()"
        assert shown.run(code) == [(kind, f"as {form}", 0)]
    assert shown.run("Form")[0][0] == "text"
    assert shown.run("display(3)\n4") == [("text", "3", 0), ("text", "4", 0)]


def test_warnings_are_printed_apart(shown):
    assert shown.run("import sys\nprint('careful', file=sys.stderr)")[0] == ("err", "careful", 0)


def test_endless_printing_has_a_limit(shown):
    printed = shown.printed("for i in range(100_000): print('again')")
    assert len(printed) < module.MOST + 100 and printed.endswith("(a page shows no more of what a cell prints)\n")


def test_an_error_shows_the_lines_of_cells_only(shown):
    shown.run("def inverse(x):\n    return 1 / x", 1)
    text, line = shown.error("values = [2, 0]\n\nlist(map(inverse, values))", 2)
    assert text.splitlines() == [
        "ZeroDivisionError: division by zero",
        "  Line: cell 2:3  list(map(inverse, values))",
        "        cell 1:2  return 1 / x",
    ]
    assert line == 3


def test_an_error_of_minigrad_has_its_hint_and_its_line_once(shown):
    text, line = shown.error("a = mg.ones((2, 3))\na @ a")
    assert text.startswith("ShapeError: ") and "  Expected: " in text
    assert text.count("Line:") == 1 and text.endswith("  Line: cell 1:2  a @ a") and line == 2


def test_a_syntax_error_is_marked(shown):
    text, line = shown.error("x = 1\ny = (2")
    assert text.splitlines()[:2] == ["SyntaxError: '(' was never closed", "  line 2 of the cell: y = (2"] and line == 2
    assert "  Hint: Python cannot read this line" in text
    assert "Hint: run the cell that defines this name" in shown.error("missing")[0]


def test_what_a_page_does_not_have_is_named(shown):
    text, line = shown.error("x = 1\nimport no_such_package")
    assert "  Hint: a page has minigrad, NumPy and" in text and line == 2
    text, line = shown.error("name = input('name? ')")
    assert text.startswith("EOFError: input() cannot read on a page: write the value in the code") and line == 1


def test_the_hint_to_an_indentation_fits_cells_without_a_function(shown):
    assert "  Hint: this line begins further to the right" in shown.error("x = 1\n  y = 2")[0]
    for text in ("for i in range(2):\nx = i", "for i in range(2):\n    x = i\n  y = 1"):
        assert "  Hint: lines after a colon begin four spaces further" in shown.error(text)[0]


def test_a_long_traceback_is_short(shown):
    text, _ = shown.error("def f(): return f()\nf()")
    assert text.startswith("RecursionError") and "more lines" in text and len(text.splitlines()) < 9


def test_a_check_finds_the_answer_and_its_source(shown, monkeypatch):
    monkeypatch.setattr(SESSION, "progress", SESSION.progress)
    assert notebook_shell() is shown.page
    shown.run("import minigrad_course as course\ncourse.begin('00_start', 'Ada')")
    assert shown.run("course.task('mul_grad')")[0][0] == "markdown"
    (kind, text, _) = shown.run("def mul_grad(g, out, a, b):\n    return g * b, g * a\n\ncourse.check('mul_grad')")[-1]
    assert kind == "html" and 'data-kind="right"' in text
    wrong = shown.run("def mul_grad(g, out, a, b):\n    return wrong * b, g * a\n\ncourse.check('mul_grad')")
    text = " ".join(text for _, text, _ in wrong)
    assert "line 2 of the cell" in text and "return wrong * b, g * a" in text
    assert SESSION.progress.tasks["mul_grad"]["answer"].startswith("def mul_grad(g, out, a, b):\n    return g * b")


def test_an_answer_that_stopped_is_not_the_older_one(shown):
    shown.run("import minigrad_course as course\nrise = 0.1")
    shown.run("rise = 1 / 0")
    said = " ".join(text for _, text, _ in shown.run("course.check('rise')"))
    assert "ZeroDivisionError" in said


def test_a_setting_ends_with_the_cell_that_failed(shown):
    """`__exit__` does not run when a reader stops a cell at the wrong moment."""
    shown.run("block = mg.no_grad()\nblock.__enter__()\n1 / 0")
    assert shown.run("(2 * mg.asarray(1.0, requires_grad=True)).requires_grad") == [("text", "True", 0)]


def test_a_cell_that_is_not_written_yet_is_explained(shown, monkeypatch):
    monkeypatch.setattr(SESSION, "progress", SESSION.progress)
    shown.run("import minigrad_course as course\ncourse.begin('00_start')")
    (kind, text, _) = shown.run("def f():\n    raise NotImplementedError()\n\nf()")[-1]
    assert kind == "html" and "not written yet" in text and not shown.ok


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signals")
def test_a_cell_is_stopped_by_what_the_page_hears(shown, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before, waits = signal.getsignal(signal.SIGUSR1), []
    try:
        shown.page.listen(signal.SIGUSR1, lambda: len(waits) > 2, lambda: waits.append(1))
        shown.page.user_ns["ring"] = lambda: os.kill(os.getpid(), signal.SIGUSR1)
        text, line = shown.error("kept = 5\nwhile True:\n    ring()")
        assert text == "Stopped." and line == 3 and shown.run("kept") == [("text", "5", 0)]
        lost = "class Lost:\n    def __del__(self): raise {}\n\nLost(); None"  # which has no caller
        assert shown.run(lost.format("KeyboardInterrupt")) == []
        assert "KeyError" in "".join(text for kind, text, _ in shown.run(lost.format("KeyError")) if kind == "err")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_page_that_is_closed_leaves_no_trace():
    before = notebook_shell()
    Shown().page.close()
    assert notebook_shell() is before
