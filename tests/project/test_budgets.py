"""Budgets are a ratchet: rooms may grow only by what others lose, or by what an issue allows.

`budgets.toml` has the numbers.  What they count is in `tokens.py`.
"""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.project.tokens import median_length, share_of_explanations, size_of_files

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "minigrad"
FILE = Path("tests/project/budgets.toml")
REPAIRS = 1.01  # a room may stand so much above its number until the next commit that lowers another one
COURSE = ROOT / "notebooks" / "minigrad_course"
# Of the course, the platform, the units and the museum are counted, and not what makes and tests them.
NOT_COUNTED = ("*_notebook.py", "test_*.py", "conftest.py", "authoring/*")


def budgets(text=None):
    return tomllib.loads((ROOT / FILE).read_text(encoding="utf-8") if text is None else text)


def files():
    """The files of both houses, with the names of their rooms, as the budgets name them."""
    for path in sorted(PACKAGE.rglob("*")):
        first, *rest = path.relative_to(PACKAGE).parts
        yield path, first if rest else "roof"
    for path in sorted(COURSE.rglob("*")):
        if not any(map(path.relative_to(COURSE).match, NOT_COUNTED)):
            yield path, "course"


def rooms(*endings):
    found = {}
    for path, room in files():
        if path.suffix in endings:
            found.setdefault(room, []).append(path)
    return found


PYTHON, SCRIPTS = rooms(".py"), rooms(".js", ".css")


def first_version():
    """The budgets of the last tag, or of the commit that introduced them; None without the history."""
    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    began = git("log", "--diff-filter=A", "--format=%H", "--", str(FILE)).splitlines()
    for commit in (git("describe", "--tags", "--abbrev=0"), began[-1] if began else ""):
        text = commit and git("show", f"{commit}:{FILE.as_posix()}")
        if text:
            return budgets(text)
    return None


def total(numbers):
    return sum(numbers["python"].values()) + sum(numbers["scripts"].values())


def too_large(numbers, allowed):
    """By how much the sum of some budgets exceeds what is allowed."""
    return max(0, total(numbers) - total(allowed) - sum(numbers.get("allowances", {}).values()))


def test_all_rooms_have_a_budget():
    assert PYTHON.keys() == budgets()["python"].keys() and SCRIPTS.keys() == budgets()["scripts"].keys()


@pytest.mark.parametrize("room", PYTHON)
def test_rooms_are_within_their_budgets(room):
    size, budget = size_of_files(PYTHON[room]), budgets()["python"][room]
    assert size <= REPAIRS * budget, f"{room} has {size:,} tokens, and its budget is {budget:,}"


@pytest.mark.parametrize("room", SCRIPTS)
def test_scripts_are_within_their_budgets(room):
    size, budget = size_of_files(SCRIPTS[room]), budgets()["scripts"][room]
    assert size <= REPAIRS * budget, f"the scripts of {room} have {size:,} words, and their budget is {budget:,}"


def test_the_sum_never_grows():
    first = first_version()
    if first is None:
        pytest.skip("there is no history of the budgets here")
    over = too_large(budgets(), first)
    assert not over, f"the sum of the budgets grew by {over:,}: lower another room, or name the issue that allows it"


def test_the_ratchet_finds_growth():
    now = {"python": {"a": 60, "b": 30}, "scripts": {"c": 5}}
    assert not too_large(now, {"python": {"a": 30, "b": 60}, "scripts": {"c": 5}})
    assert too_large(now, {"python": {"a": 50, "b": 30}, "scripts": {"c": 5}}) == 10
    allowed = now | {"allowances": {"an issue": 10}}
    assert not too_large(allowed, {"python": {"a": 80}, "scripts": {"c": 5}})


@pytest.mark.slow
def test_code_does_not_become_denser():
    """Size follows from removed mechanisms, not from longer functions or fewer explanations."""
    library = [path for room, paths in PYTHON.items() if room != "course" for path in paths]
    style = budgets()["style"]
    assert median_length(library) <= style["median_length"]
    assert share_of_explanations(library) >= style["explanations"]
