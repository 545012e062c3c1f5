"""The layout of the repository: top-level files, the direction of imports, the cost of an import."""

import ast
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from lectures.site.rooms import COMPILER, ONLOOKERS, ROOF, ROOMS, Arrow, all_arrows, room_of

ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    "minigrad", "notebooks", "lectures", "tests", "benchmarks", ".ci", ".binder", ".github",
    "course", "conftest.py", "pyproject.toml", "environment.yml",
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE",
    ".gitignore", ".gitattributes", ".pre-commit-config.yaml", "CITATION.cff",
}

NEVER_AT_IMPORT = [
    "cupy", "ipywidgets", "anywidget", "IPython", "matplotlib", "llvmlite", "graphviz",
    "jupyterlab", "torch", "jax", "scipy", "safetensors", "onnx", "onnxruntime", "mpi4py",
]


def wrong_arrows(package):
    """All imports in the wrong direction, as 'module imports room'."""
    wrong = []
    for arrow in all_arrows(package):
        (room, inner), (other, within) = room_of(arrow.source), room_of(arrow.target)
        if room not in ROOMS:
            continue
        if other not in ROOMS[: ROOMS.index(room) + 1]:
            wrong.append(f"{arrow.source} imports {other}")
        elif room == other == "compile" and inner and within not in COMPILER[: COMPILER.index(inner) + 1]:
            wrong.append(f"{arrow.source} imports {arrow.target}")
    return wrong


def cycles(arrows):
    """The groups of modules that import each other, in circles of any length."""
    targets = defaultdict(set)
    for arrow in arrows:
        targets[arrow.source].add(arrow.target)
    reached = {}
    for start in list(targets):
        reached[start] = found = set()
        stack = [start]
        while stack:
            for target in targets.get(stack.pop(), set()) - found:
                found.add(target)
                stack.append(target)
    circles = [{start} | {t for t in found if start in reached.get(t, ())} for start, found in reached.items()]
    return sorted({tuple(sorted(circle)) for circle in circles if len(circle) > 1})


def test_imports_point_one_way():
    assert wrong_arrows(ROOT / "minigrad") == []


def test_the_library_does_not_know_the_course():
    """Nothing in the library names the package of the course: entry points lead to it."""
    named = [path for path in (ROOT / "minigrad").rglob("*.py") if "minigrad_course" in path.read_text("utf-8")]
    assert [path.relative_to(ROOT).as_posix() for path in named] == ["minigrad/core/guests.py"]  # in its docstrings


def test_imports_form_no_circle():
    """Imports inside functions count, and in core and compile imports for types alone.

    Elsewhere these may form a circle inside one room; in the compiler, `lowering` still does.
    """
    arrows = [a for a in all_arrows(ROOT / "minigrad") if room_of(a.source)[0] not in ("__init__", "examples")]
    assert cycles([a for a in arrows if not (a.for_types and _may_form_circles(a))]) == []


def _may_form_circles(arrow):
    room = room_of(arrow.source)
    return room == room_of(arrow.target) and (room[0] not in ("core", "compile") or room[1] == "lowering")


def test_cycles_finds_a_circle():
    arrows = [Arrow("a", "b", False), Arrow("b", "c", False), Arrow("c", "a", False), Arrow("c", "d", False)]
    assert cycles(arrows) == [("a", "b", "c")] and cycles(arrows[1:]) == []


@pytest.mark.slow
def test_modules_are_not_hidden_by_functions_of_the_same_name():
    """`from minigrad.train import progress` gives the module, or there is no such module."""
    code = """
import importlib, pkgutil, sys, types, minigrad
for module in pkgutil.walk_packages(minigrad.__path__, "minigrad."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name, module in list(sys.modules.items()):
    parent, _, last = name.rpartition(".")
    if parent.startswith("minigrad") and getattr(sys.modules[parent], last) is not module:
        print(name)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_parts_of_the_package_have_their_place():
    names = {path.stem for path in (ROOT / "minigrad").iterdir() if path.suffix in ("", ".py")}
    assert names - {"__pycache__"} <= {*ROOMS, *ONLOOKERS, *ROOF}


@pytest.mark.parametrize(
    ("place", "line", "imported"),
    [
        ("core/node.py", "def f():\n    from ..ops.view import reshape", "ops"),
        ("core/node.py", "import minigrad.nn.linear as linear", "nn"),
        ("core/node.py", "from .. import ops", "ops"),
        ("compile/fusion/fuse.py", "from ...viz import svg", "viz"),
        ("compile/nodes/view.py", "def f():\n    from ..jitted import jit", "minigrad.compile.jitted"),
        ("compile/nodes/view.py", "from ..fusion.fuse import fuse", "minigrad.compile.fusion.fuse"),
        ("compile/fusion/fuse.py", "from ..nodes.graph import Graph", None),
        ("compile/fusion/fuse.py", "from .group import Group", None),
        ("compile/graph_mode.py", "from .fusion.fuse import fuse", None),
        ("nn/linear.py", "from minigrad import examples", "examples"),
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
def test_wrong_arrows_finds_only_wrong_imports(tmp_path, place, line, imported):
    path = tmp_path / "minigrad" / place
    path.parent.mkdir(parents=True)
    path.write_text(line)
    for name in ("compile/jitted.py", *[f"{room}/__init__.py" for room in ROOMS + ONLOOKERS]):
        other = tmp_path / "minigrad" / name
        other.parent.mkdir(parents=True, exist_ok=True)
        other.touch()
    module = "minigrad." + place.removesuffix(".py").replace("/", ".")
    expected = [f"{module} imports {imported}"] if imported else []
    assert wrong_arrows(tmp_path / "minigrad") == expected


@pytest.mark.skipif(
    not shutil.which("git") or not (ROOT / ".git").exists(), reason="not a git checkout"
)
def test_the_top_level_holds_only_what_is_expected():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split("/")[0] for line in files.splitlines()} <= TOP_LEVEL


@pytest.mark.slow
def test_importing_minigrad_loads_no_heavy_package():
    code = "import sys, minigrad; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    modules = result.stdout.split()
    assert "minigrad" in modules
    assert not set(NEVER_AT_IMPORT) & {name.split(".")[0] for name in modules}
    rooms = [f"minigrad.{room}" for room in ("nn", "optim", "train", "compile", "viz")]
    slow = {"numpy.random", "html", "importlib.metadata", *rooms}
    assert not slow & {*modules}, "they take long to import"


@pytest.mark.slow
def test_the_course_loads_views_and_the_compiler_when_they_are_first_used():
    code = """
import sys, minigrad_course as course
late = "minigrad.viz.lessons", "minigrad.compile", "minigrad_course.views", "minigrad_course.units.u"
early = [name for name in sys.modules if name.startswith(late)]
print(early, all(name in dir(course) and getattr(course, name) for name in course.__all__))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


BEHIND_DOORS = (
    "save", "user_kernels", "running.gpu", "running.cuda_graph", "codegen.cuda", "codegen.gpu_loops", "codegen.nvrtc",
    "codegen.wasm", "codegen.side_modules", "codegen.c", "look.placement", "look.roofline", "look.checking",
    "look.record", "look.cost", "look.values",
)


@pytest.mark.slow
def test_a_first_call_loads_only_what_it_needs():
    """Saved programs, users' kernels, GPUs, browsers, and looks at a program are loaded when they are used."""
    code = """
import sys, minigrad as mg
mg.jit(lambda x, w: mg.tanh(x @ w))(mg.ones((2, 2)), mg.ones((2, 2)))
print(*[name.removeprefix("minigrad.compile.") for name in sys.modules if name.startswith("minigrad.compile.")])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "running.frame" in loaded
    assert [name for name in loaded if name.startswith(BEHIND_DOORS)] == []


# Files that lectures show: the largest number of lines (None: no limit).  They have at most 88 columns.
PAGES = {"core/emit.py": 200, "core/quick.py": None, "core/state.py": None, "distributed/ring.py": 50}


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_lectures_fit_on_slides(page):
    lines = (ROOT / "minigrad" / page).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 88] == []
    assert PAGES[page] is None or len(lines) <= PAGES[page]


def test_quick_forms_are_used_only_by_declarations():
    users = {a.source for a in all_arrows(ROOT / "minigrad") if a.target == "minigrad.core.quick"}
    assert users == {"minigrad.ops.declare"}


def test_the_walk_is_one_loop_of_at_most_30_lines():
    tree = ast.parse((ROOT / "minigrad" / "autodiff" / "reverse.py").read_text(encoding="utf-8"))
    (steps,) = [node for node in tree.body if getattr(node, "name", "") == "steps"]
    body = steps.body[1:]  # after the docstring
    assert body[-1].end_lineno - body[0].lineno + 1 <= 30
