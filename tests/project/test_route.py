"""The route of an hour in the README: its functions exist, and it is short.  Marks for first readers lead somewhere."""

import ast
import re

import pytest

from tests.course.running import ROOT

MOST = 800  # lines, in about an hour
MARK = re.compile(r"First reader: skip to (.*)")
ENTRY = re.compile(r"^\d+\. (.*?) in \[`(\S+)`\]\((\S+)\): +\S", re.M)


def section():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition("\n### An hour: these functions, in this order\n")[2].partition("\n#")[0]


def route(text):
    """The stations of the route: (path, names)."""
    entries = re.sub(r"\n +", " ", text)
    return [(path, re.findall(r"`([^`]+)`", names)) for names, path, link in ENTRY.findall(entries) if path == link]


def definitions(tree, inside=""):
    """Every function and class of a module by its name, methods as `Class.method`.  Of two, the last is the one."""
    found = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[inside + node.name] = node
        if isinstance(node, ast.ClassDef):
            found |= definitions(node, f"{inside}{node.name}.")
        elif isinstance(node, ast.If):
            found |= definitions(node, inside)
    return found


def first_line(node):
    return min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])


def size(node):
    """The lines of a function with its decorators; of a class, those before its first method."""
    methods = [first_line(each) for each in node.body if isinstance(node, ast.ClassDef) and hasattr(each, "args")]
    return min([*methods, node.end_lineno + 1]) - first_line(node)


def module(path):
    return definitions(ast.parse((ROOT / path).read_text(encoding="utf-8")))


STATIONS = route(section())


def test_every_entry_of_the_route_is_read():
    assert len(STATIONS) == len(re.findall(r"^\d+\. ", section(), re.M)) > 10


@pytest.mark.parametrize(("path", "names"), STATIONS, ids=[path for path, _ in STATIONS])
def test_functions_of_the_route_exist(path, names):
    assert names
    assert [name for name in names if name not in module(path)] == []


def test_the_route_is_as_long_as_it_says():
    lines = sum(size(module(path)[name]) for path, names in STATIONS for name in names)
    stated = int(re.search(r"These (\d+) lines", section())[1])
    assert lines <= MOST and abs(lines - stated) <= 20, lines


def test_marks_for_first_readers_lead_to_functions_below_them():
    marks = 0
    for path in sorted((ROOT / "minigrad").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        starts = [(name.rpartition(".")[2], first_line(node)) for name, node in definitions(ast.parse(text)).items()]
        for number, line in enumerate(text.splitlines(), 1):
            for named in re.findall(r"`(\w+)`", " ".join(MARK.findall(line))):
                marks += 1
                assert any(name == named and start > number for name, start in starts), f"{path}:{number}: {named}"
    assert marks >= 4


def test_the_size_of_a_class_is_that_of_its_docstring_and_fields():
    tree = ast.parse('@mark\nclass A:\n    """A."""\n    x = 1\n    def f(self):\n        pass\ndef g():\n    pass\n')
    found = definitions(tree)
    assert [size(found[name]) for name in ("A", "A.f", "g")] == [4, 2, 2]
    assert route("1. `A`,\n   `A.f` in [`a.py`](a.py):\n   both.\n2. `g`: no file.") == [("a.py", ["A", "A.f"])]
