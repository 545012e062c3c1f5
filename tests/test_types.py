"""Type checkers accept a user's script, and refuse its mistakes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tests" / "typed_script.py"
MARKED = {number for number, line in enumerate(SCRIPT.read_text("utf-8").splitlines(), 1) if line.endswith("# refused")}


def errors_of_mypy(folder):
    command = ["mypy", "--strict", "--follow-imports", "silent", "--no-error-summary", "--hide-error-context", "s.py"]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode in (0, 1), done.stderr
    return {int(line): message for line, message in re.findall(r"^s\.py:(\d+): error: (.*)", done.stdout, re.M)}


def errors_of_pyright(folder):
    pytest.importorskip("pyright", reason="pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "s.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if not done.stdout.startswith("{"):
        pytest.skip("pyright could not get its Node.js")
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in found if each["severity"] == "error"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", [errors_of_mypy, errors_of_pyright])
def test_type_checkers_refuse_exactly_the_marked_lines(checker, tmp_path):
    """The script is checked in a folder of its own, where minigrad is an installed package."""
    (tmp_path / "s.py").write_text(SCRIPT.read_text("utf-8"), "utf-8")
    errors = checker(tmp_path)
    assert {line: message for line, message in errors.items() if line not in MARKED} == {}
    assert MARKED - errors.keys() == set()
    assert len(MARKED) > 10
