"""Loads the launcher, a program without a file extension, as a module."""

import importlib.machinery
import importlib.util
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2] / "course"


def load_launcher():
    """A new module of the launcher."""
    loader = importlib.machinery.SourceFileLoader("course_launcher", str(COURSE))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
