"""Tensors speak two languages only while these tests run."""

import sys
from pathlib import Path

import pytest

from minigrad.compat import finder, speaking, torch

assert torch.nn  # its import gives tensors both meanings, and other tests are collected after these
speaking.deactivate()
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(autouse=True)
def two_meanings():
    speaking.activate()
    yield
    speaking.deactivate()


@pytest.fixture
def import_torch(monkeypatch):
    """`import torch` is answered, and modules of the programs are imported anew."""
    monkeypatch.syspath_prepend(PROGRAMS)
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torch"}
    finder.install()
    yield
    finder.uninstall()
    sys.modules.update(real)
    for path in PROGRAMS.glob("*.py"):
        sys.modules.pop(path.stem, None)
