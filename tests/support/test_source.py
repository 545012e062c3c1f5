"""Which lines are minigrad's, and which are a user's."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import minigrad as mg
from minigrad.support import source
from minigrad.support.source import HOME, in_library

PROGRAM = """
import sys
sys.path.insert(0, {path!r})
import minigrad as mg
step = mg.jit(mg.value_and_grad(lambda x: mg.softmax(x * 2).sum()))
print(".." in mg.__file__, step(mg.ones(3))[0].item())
try:
    mg.ones(3) + mg.ones(4)
except mg.MinigradError as error:
    print("Line: <stdin>:8" in str(error) or error)
"""


def test_a_file_is_minigrads_however_its_folder_was_written():
    assert in_library(f"{HOME}core/node.py") and in_library(f"{HOME}../minigrad/./core/node.py")
    assert not in_library(f"{HOME}../setup.py") and not in_library(f"{HOME}core/../examples/digits_mlp.py")


def test_the_text_of_a_cell_is_not_minigrads_in_its_own_folder(monkeypatch):
    monkeypatch.chdir(HOME)
    assert not in_library("<a cell>") and in_library("init.py")


def test_a_notebook_imports_minigrad_from_the_folder_above(tmp_path):
    root = Path(mg.__file__).parents[1]
    path = os.path.relpath(root, tmp_path)
    run = subprocess.run(
        [sys.executable, "-"], input=PROGRAM.format(path=path), cwd=tmp_path, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == ["True 1.0", "True"], run.stdout + run.stderr


def test_one_thread_at_a_time_parses(monkeypatch):
    """In Python 3.11, a finaliser that lets another thread in makes two trees at once, which is a SystemError."""
    busy, parse = [], ast.parse

    def watched(*args):
        busy.append(threading.Thread(target=lambda: free.append(source.PARSING.acquire(blocking=False))))
        busy[-1].start()
        busy[-1].join()
        return parse(*args)

    free = []
    monkeypatch.setattr(ast, "parse", watched)
    assert ast.unparse(source.parsed("x + 1", "eval")) == "x + 1"
    assert free == [False] and source.PARSING.acquire(blocking=False)
    source.PARSING.release()


def test_numpy_parses_the_headers_of_arrays_while_no_other_thread_parses(monkeypatch):
    held, read = [], ast.literal_eval
    monkeypatch.setattr(ast, "literal_eval", lambda text: held.append(source.PARSING._is_owned()) or read(text))
    mg.data.digits()
    assert held == [True, True]
