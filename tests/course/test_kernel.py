"""In a real kernel: a student sees a message and the own line, without a traceback of minigrad."""

import os
import re

import nbformat
import pytest
from nbclient import NotebookClient

from minigrad_course.apart import search_path

CELLS = {
    "begin": "import minigrad_course as course\ncourse.begin('00_start', 'Ada')",
    "stub of a value": "too_early = ...\n# YOUR CODE HERE\nraise NotImplementedError()",
    "unreadable": "def mul_grad(g, out, a, b)\n    return g * b, g * a",
    "check unreadable": "course.check('mul_grad')",
    "raises": "def mul_grad(g, out, a, b):\n    return g / (a - a), 0",
    "check raises": "course.check('mul_grad')",
    "endless": "def mul_grad(g, out, a, b):\n    while True:\n        pass",
    "check endless": "course.session._task('mul_grad').__class__.seconds = 0.3\ncourse.check('mul_grad')",
    "right": "def mul_grad(g, out, a, b):\n    return g * b, g * a",
    "check right": "course.check('mul_grad')",
    "stops": "gradient_of_a = g * b",
    "check of what stopped": "course.check('gradient_of_a')",
    "a word": "empty = no\ncourse.check('empty')",
    "another name": "print(no)",
    "puts right": "gradient_of_a = 1",
    "check of what did not": "course.check('gradient_of_a')",
    "engine": "with course.rule('multiply', mul_grad) as it:\n    trained = course.train_digits(it, 1)\ntrained",
}


@pytest.mark.slow
def test_cells_in_a_kernel_show_words_without_tracebacks(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    client = NotebookClient(notebook, allow_errors=True, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, "PYTHONPATH": search_path()})
    seen = {}
    for name, cell in zip(CELLS, notebook.cells):
        pieces = []
        for output in cell.outputs:
            if output.output_type == "error":
                pieces += output.traceback
            else:
                pieces.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
        seen[name] = "\n".join(pieces)
    for name, text in seen.items():
        assert "notebooks/minigrad_course" not in text and ("Traceback" not in text or name == "another name"), name
    assert "the cell of your answer stopped with NameError" in seen["check of what stopped"]
    assert "words need quotation marks" in seen["a word"] and "line 1 of the cell: empty = no" in seen["a word"]
    assert "NameError" in seen["another name"] and "quotation" not in seen["another name"]
    assert seen["check of what did not"].startswith("✗ gradient_of_a: your answer 1 is not right")
    assert "40 minutes" in seen["begin"] and "for Ada" in seen["begin"]
    assert "○ this cell: not written yet" in seen["stub of a value"] and "line 3 of the cell" in seen["stub of a value"]
    assert "✗ mul_grad: stopped with SyntaxError" in seen["check unreadable"]
    assert "line 1 of the cell: def mul_grad(g, out, a, b)" in seen["check unreadable"]
    assert "stopped with ZeroDivisionError" in seen["check raises"]
    assert "line 2 of the cell: return g / (a - a), 0" in seen["check raises"]
    assert "not done after 0.3 seconds" in seen["check endless"] and "of the cell: " in seen["check endless"]
    assert seen["check right"].startswith("✓ mul_grad: right")
    assert seen["engine"].startswith("Ada: with mul_grad, called ")
    found = [(name, output.data["text/html"]) for name, cell in zip(CELLS, notebook.cells) for output in cell.outputs
             if "mg-feedback" in output.get("data", {}).get("text/html", "")]
    boxes = dict(found)
    assert len(boxes) == len(found), "IPython asks for a traceback twice, and each box is shown once"
    kinds = {name: re.search('data-kind="([a-z]+)"', html)[1] for name, html in boxes.items()}
    assert kinds == {
        "stub of a value": "open", "stops": "stopped", "a word": "stopped",
        "check unreadable": "stopped", "check raises": "stopped", "check right": "right",
        "check endless": "stopped", "check of what stopped": "misused", "check of what did not": "wrong",
    }
