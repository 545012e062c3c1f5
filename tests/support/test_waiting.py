"""A bar appears for work that takes long, where it can be drawn."""

import sys

import pytest

import minigrad as mg
from minigrad.compile.codegen import disk_cache
from minigrad.support import waiting


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("patience", [-1.0, 1000.0])
def test_a_bar_appears_where_work_takes_long(monkeypatch, capsys, drawn, patience):
    monkeypatch.setattr(waiting, "PATIENCE", patience)
    monkeypatch.setattr(waiting, "is_drawn", lambda: drawn)
    assert [*waiting.with_bar([1, 2, 3], "counting")] == [1, 2, 3]
    assert ("counting" in capsys.readouterr().err) == (drawn and patience < 0)


def test_a_bar_ends_with_the_work_that_fails(monkeypatch, capsys):
    monkeypatch.setattr(waiting, "PATIENCE", -1.0)
    monkeypatch.setattr(waiting, "is_drawn", lambda: True)
    work = waiting.with_bar([1, 2], "counting")
    next(work)
    work.close()
    assert capsys.readouterr().err.count("counting") >= 1


def test_compiling_kernels_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(waiting, "PATIENCE", -1.0)
    monkeypatch.setattr(waiting, "is_drawn", lambda: True)
    monkeypatch.setattr(disk_cache, "load", lambda name: None)  # from an earlier run
    mg.jit(lambda x: mg.tanh(x) * 3.140625)(mg.ones(4))
    assert "compiling kernels" in capsys.readouterr().err


def test_bars_are_drawn_in_terminals_only(monkeypatch):
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert waiting.is_drawn() == terminal
