"""Notebooks that students saved when the course was a part of minigrad: each line of theirs still works."""

import subprocess
import sys

import pytest

import minigrad as mg
import minigrad_course
from minigrad_course.units.u09_eager_costs import registers

LINES = [  # that import something, in any notebook of the course before 2026-12
    "from minigrad import course",
    "from minigrad import course, nn",
    "import minigrad.course as course",
    "from minigrad.course import by_example",
    "from minigrad.course import costs, erf, exp, languages, operator, sqrt, tanh",
    "from minigrad.course import costs, languages, sizes, tanh",
    "from minigrad.course import inputs_of",
    "from minigrad.course import made_from",
    "from minigrad.course.units.u08_training.resuming import resuming",
    "from minigrad.course.units.u09_eager_costs import registers",
    "from minigrad.course.units.u09_eager_costs import train_gpt",
    "from minigrad.course.units.u09_eager_costs.demo import PYTORCH, VERSION",
    "from minigrad.course.units.u14_applications.programs import Application",
    "from minigrad.viz.lessons import crossings, strides",
    "from minigrad.viz.lessons.memory_maps import memory_map",
    "from minigrad.viz.lessons.savings import stages_of, table_of",
    "from minigrad.viz.lessons.spreads import spreads",
]


@pytest.fixture(autouse=True)
def forgotten():
    """The old names are gone again after each test."""
    yield
    for name in [name for name in sys.modules if f"{name}.".startswith("minigrad.course.")]:
        del sys.modules[name]
    vars(mg).pop("course", None)


@pytest.mark.parametrize("line", LINES)
def test_an_import_of_a_saved_notebook_works(line):
    exec(line, {})


def test_old_and_new_names_are_the_same():
    namespace = {}
    exec(f"{LINES[0]}\n{LINES[9]}\n{LINES[3]}", namespace)
    assert namespace["course"] is minigrad_course is mg.course
    assert namespace["registers"] is registers and namespace["by_example"] is minigrad_course.by_example


@pytest.mark.slow
@pytest.mark.parametrize("line", ["import minigrad_course", "from minigrad import course"])
def test_the_import_of_the_course_changes_nothing_in_the_process(line):
    code = f"""
import os, signal, sys, warnings
import numpy as np
import minigrad as mg
from minigrad.core.mode import current_mode
from minigrad.core.programs import PROGRAMS

def settings():
    mode = current_mode()
    return (PROGRAMS.on, mode, np.geterr(), np.get_printoptions(), warnings.filters[:], sys.getrecursionlimit(),
            sys.excepthook, sys.displayhook, signal.getsignal(signal.SIGINT),
            dict(os.environ), sys.path[:])

before = settings()
{line}
assert settings() == before
print("the same")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr


def test_a_unit_that_begins_runs_each_operation_on_its_own(capsys, monkeypatch):
    from minigrad.core.programs import PROGRAMS

    monkeypatch.setattr(PROGRAMS, "on", True)
    minigrad_course.begin("00_start")
    assert not PROGRAMS.on and "name" not in capsys.readouterr().out
