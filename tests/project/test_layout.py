"""The shape of the repository: what lies at the top, which way imports point, what one costs."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    "minigrad", "notebooks", "lectures", "tests", "benchmarks", ".ci", ".binder",
    "course", "conftest.py", "pyproject.toml", "environment.yml",
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE",
    ".gitignore", ".pre-commit-config.yaml", "CITATION.cff",
}

# Each room may import from itself and from those before it.
ROOMS = [
    "core", "devices", "ops", "autodiff", "compile", "nn", "optim", "data", "io", "distributed", "train",
]
# These look at everything, and nothing imports them.
ONLOOKERS = ["viz", "course", "examples"]
# What lies above all rooms: it may import anything, and no room imports it.
ROOF = ["__init__", "random", "linalg"]

NEVER_AT_IMPORT = [
    "cupy", "ipywidgets", "anywidget", "IPython", "matplotlib", "llvmlite", "graphviz",
    "jupyterlab", "torch", "jax", "scipy", "safetensors", "onnx", "onnxruntime",
]


def imported_rooms(path, package):
    """The rooms (or parts of the roof) that a file of the package imports, inside functions too."""
    here = (package.name, *path.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            base = [*base, *(node.module.split(".") if node.module else [])]
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == package.name:
                room = name[1] if len(name) > 1 else "__init__"
                # `from minigrad import Tensor` names no room: it asks the top of the package.
                yield room if room in ROOMS + ONLOOKERS + ROOF else "__init__"


def wrong_arrows(package):
    """Each import that points the wrong way, as 'file imports room'."""
    wrong = []
    for position, room in enumerate(ROOMS):
        for path in sorted((package / room).rglob("*.py")):
            for imported in imported_rooms(path, package):
                if imported not in ROOMS[: position + 1]:
                    wrong.append(f"{path.relative_to(package).as_posix()} imports {imported}")
    return wrong


def test_imports_point_one_way():
    assert wrong_arrows(ROOT / "minigrad") == []


def test_every_part_of_the_package_has_its_place():
    names = {path.stem for path in (ROOT / "minigrad").iterdir() if path.suffix in ("", ".py")}
    assert names - {"__pycache__"} <= {*ROOMS, *ONLOOKERS, *ROOF}


@pytest.mark.parametrize(
    ("place", "line", "imported"),
    [
        ("core/node.py", "def f():\n    from ..ops.view import reshape", "ops"),
        ("core/node.py", "import minigrad.nn.linear as linear", "nn"),
        ("core/node.py", "from .. import ops", "ops"),
        ("compile/passes/fuse.py", "from ...viz import svg", "viz"),
        ("nn/linear.py", "from minigrad import course", "course"),
        ("nn/linear.py", "from .. import Tensor", "__init__"),
        ("nn/linear.py", "import minigrad as mg", "__init__"),
        ("nn/linear.py", "if x:\n    from minigrad.random import normal", "random"),
        ("ops/view.py", "from ..core import tensor", None),
        ("ops/view.py", "from . import elementwise", None),
        ("ops/nested/view.py", "from ..elementwise import tanh", None),
        ("optim/adam.py", "from minigrad.nn import Module", None),
        ("optim/adam.py", "import course, viz, numpy.random", None),
        ("viz/svg.py", "from .. import nn, course", None),
        ("random.py", "from . import nn", None),
    ],
)
def test_a_wrong_arrow_is_seen_and_a_right_one_is_not(tmp_path, place, line, imported):
    path = tmp_path / "minigrad" / place
    path.parent.mkdir(parents=True)
    path.write_text(line)
    expected = [f"{place} imports {imported}"] if imported else []
    assert wrong_arrows(tmp_path / "minigrad") == expected


@pytest.mark.skipif(
    not shutil.which("git") or not (ROOT / ".git").exists(), reason="not a git checkout"
)
def test_the_top_level_holds_only_what_is_expected():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split("/")[0] for line in files.splitlines()} <= TOP_LEVEL


def test_importing_minigrad_loads_no_heavy_package():
    code = "import sys, minigrad; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    modules = result.stdout.split()
    assert "minigrad" in modules
    assert not set(NEVER_AT_IMPORT) & {name.split(".")[0] for name in modules}
