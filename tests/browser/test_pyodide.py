"""The files of Pyodide, and that Python runs from them."""

import pytest

from lectures.site.browser import pyodide


def test_the_hashes_belong_to_each_file():
    hashes = pyodide.hashes("ipython")
    assert len(hashes) > len(pyodide.CORE) and all(len(each) == 64 for each in hashes.values())
    assert any(name.startswith("wcwidth") for name in hashes)  # what it needs comes with it


def test_a_folder_without_the_files_is_refused(tmp_path):
    with pytest.raises(pyodide.PyodideError, match=r"pyodide\.js.* missing or different[\s\S]*Hint: unpack"):
        pyodide.folder(tmp_path)


def test_a_changed_file_is_refused(pyodide_folder, tmp_path):
    for name in pyodide.hashes("numpy"):
        (tmp_path / name).symlink_to(pyodide_folder / name)
    assert pyodide.folder(tmp_path) == tmp_path
    (tmp_path / "pyodide.js").unlink()
    (tmp_path / "pyodide.js").write_text("other")
    with pytest.raises(pyodide.PyodideError, match=r"not hold Pyodide .*: pyodide\.js is"):
        pyodide.folder(tmp_path)


def test_minigrad_runs_in_a_browser(in_node):
    code = """
import sys
import minigrad as mg
x = mg.asarray([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
print(sys.platform, x.grad.tolist())
"""
    assert in_node.run(code) == "emscripten [2.0, 4.0]\n"


def test_an_error_in_pyodide_fails_a_test(in_node):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        in_node.run("1 / 0")
    assert in_node.run("print(2)") == "2\n"
