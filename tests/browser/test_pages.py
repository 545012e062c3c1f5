"""The cells of all pages that readers can run also run in the Python of their browsers."""

import re

import pytest

from lectures.site.frames import LECTURES

PAGES = sorted([*LECTURES.glob("[0-9]*.md"), LECTURES / "index.md", *(LECTURES / "howto").glob("*.md")])
CELLS = {path.stem: re.findall(r"^```try\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S) for path in PAGES}
RUN = """
import ast, linecache
from minigrad.viz.exhibit import Exhibit
names = {"mg": __import__("minigrad"), "__name__": "__main__"}
def run(number, code):
    linecache.cache[f"cell {number}"] = len(code), None, code.splitlines(keepends=True), f"cell {number}"
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if last else None
    if isinstance(shown, Exhibit):
        assert "<script" in shown.to_html()
"""


def test_every_lecture_has_a_cell():
    assert [path.stem for path in LECTURES.glob("[0-9]*.md") if not CELLS[path.stem]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, cells in CELLS.items() if cells])
def test_cells_run_in_a_browser(in_node, name):
    in_node.run(RUN + "".join(f"run({number}, {code!r})\n" for number, code in enumerate(CELLS[name], 1)))
