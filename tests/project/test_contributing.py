"""CONTRIBUTING and README name files, tests and commands that exist, and their table of tests covers every room."""

import re
import textwrap

import pytest

import minigrad as mg
from tests.course.running import ROOT

TEXTS = ("CONTRIBUTING.md", "README.md", "CHANGELOG.md", ".github/SECURITY.md")
FOLDERS = "minigrad|tests|lectures|notebooks|benchmarks|.ci|.github"
MADE = ("03_devices", "u03_devices", "NN", "ROOM")  # parts of names in examples, and of generated names


def named_paths(text):
    """The paths in a text that begin with a folder of the repository."""
    found = re.findall(rf"`((?:{FOLDERS})/[\w./\[\]*-]+)`", text)
    return [path for path in found if not any(part in path for part in MADE)]


@pytest.mark.parametrize("name", TEXTS)
def test_paths_in_the_text_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [path for path in named_paths(text) if not (ROOT / path).exists()] == []


def test_named_paths_finds_files_and_folders():
    text = "`minigrad/nn` and `tests/x.py`, `mg.nn`, `lectures/03_devices.md`"
    assert named_paths(text) == ["minigrad/nn", "tests/x.py"]


def test_the_table_of_tests_names_tests_for_modules():
    rows = re.findall(r"^\| (.*) \| (`tests/.*`) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    assert len(rows) > 10
    for module, tests in rows:
        assert all(path.startswith("tests/") for path in named_paths(tests)), module


@pytest.mark.parametrize("name", TEXTS)
def test_names_of_the_library_in_the_text_exist(name):
    found = re.findall(r"`mg((?:\.[a-zA-Z]\w*)+)", (ROOT / name).read_text(encoding="utf-8"))
    assert [path for path in found if not exists(path)] == []


def exists(path):
    """Whether `mg.a.b` exists.

    >>> exists(".viz.step"), exists(".viz.walk")
    (True, False)
    """
    found = mg
    for part in path.strip(".").split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_the_contents_list_has_every_section():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.M)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in sections]
    assert re.findall(r"^- \[(.*)\]\(#(.*)\)$", text, re.M) == [*zip(sections, anchors, strict=True)]


def examples(title):
    """The Python of a section of CONTRIBUTING."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [textwrap.dedent(code) for code in re.findall(r"^ *```python\n(.*?)^ *```", section, re.S | re.M)]


def test_the_layer_and_the_optimizer_of_the_text_work():
    names = {}
    exec(examples("Add a layer")[0], names)
    layer = names["Scale"](2)
    assert layer(mg.ones(2)).tolist() == [1.0, 1.0] and str(layer).startswith("Scale(2")
    exec(examples("Add an optimizer")[0], names)
    optimizer = names["Sign"](layer.parameters(), lr=0.25)
    (layer(mg.ones(2)) ** 2).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [0.75, 0.75]


def test_the_old_names_of_the_text_work():
    names = {"sum": mg.sum}
    exec(examples("Rename a public name")[0], names)
    with pytest.warns(DeprecationWarning, match="mg.total is now mg.sum"):
        assert names["total"](mg.ones(2)).item() == 2.0
    with pytest.warns(DeprecationWarning, match="scale is now factor"):
        assert names["scaled"](2, scale=3) == 6


def test_the_view_of_the_text_works():
    names = {}
    exec(examples("Add a view")[0], names)
    assert "The square of 3." in names["squares"](3).text()
