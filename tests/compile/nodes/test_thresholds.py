"""Thresholds: all of them are on one page, and each names a benchmark that exists, or a unit."""

import ast
import re
from pathlib import Path

import pytest

import minigrad
from minigrad.compile.nodes import thresholds

PAGE = Path(thresholds.__file__)
PACKAGE = Path(minigrad.__file__).parent
BENCHMARKS = PACKAGE.parent / "benchmarks"
ROOMS = ("fusion", "loops", "lowering", "rewriting")  # whose numbers of this kind are all on the page
MEANT = {"MANY", "ATOM", "SHOWN", "COMPARED", "IN_A_ROW", "ROUNDS", "MOST_FOLLOWED", "SCALE"}  # no choice of a way


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not in the wheel")
def test_each_benchmark_exists():
    named = re.findall(r"\[(\w+)", PAGE.read_text("utf-8"))
    assert len(named) > 40
    assert {name for name in named if not (BENCHMARKS / f"{name}.py").exists()} == set()


def test_every_name_is_used_in_one_place_or_more():
    names = [name for name in vars(thresholds) if name.isupper()]
    files = [path for room in ("compile", "eager") for path in (PACKAGE / room).rglob("*.py") if path != PAGE]
    words = set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in files)))
    assert set(names) - words == set()


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_keeps_whole_numbers_of_its_own(room):
    found = set()
    for path in (PACKAGE / "compile" / room).glob("*.py"):
        for each in ast.parse(path.read_text("utf-8")).body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                value = each.value
                if isinstance(value, ast.Constant) and type(value.value) is int:
                    found.add(each.targets[0].id)
    assert found - MEANT == set()
