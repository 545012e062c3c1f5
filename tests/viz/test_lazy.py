"""`mg.viz` loads a view when it is first used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import viz

ROOM = Path(viz.__file__).parent


def modules_loaded_by(code):
    """The modules of the room that are loaded after some code in a new process."""
    code = f"import sys, minigrad as mg\n{code}\nprint(*[m for m in sys.modules if m.startswith('minigrad.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def defined_in(module):
    """The public functions and classes that a module of the room defines."""
    tree = ast.parse((ROOM / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.slow
def test_importing_minigrad_loads_no_view():
    assert not {m for m in modules_loaded_by("") if m.startswith("minigrad.viz")}


@pytest.mark.slow
@pytest.mark.parametrize("view", ["graph", "step"])
def test_a_view_loads_no_other_view(view):
    loaded = modules_loaded_by(f"mg.viz.{view}")
    other = {"fused", "memories", "profiles", "schedules", "dashboard", "lessons"}
    other |= {"graphs"} if view == "step" else {"stepper"}
    assert f"minigrad.viz.{viz._LATER[view]}" in loaded
    assert not loaded & {f"minigrad.viz.{name}" for name in other - {"graphs"}}
    assert not any(m.startswith("minigrad.compile") for m in loaded)


@pytest.mark.slow
def test_showing_a_view_of_eager_tensors_loads_neither_the_compiler_nor_other_views():
    """In a browser, each module costs ten milliseconds at the first view."""
    code = "x = mg.asarray([1.0, 2.0], requires_grad=True)\nmg.viz.step((x * x + 1).sum()).to_html()"
    loaded = modules_loaded_by(code)
    assert not {m for m in loaded if m.startswith(("minigrad.compile", "minigrad.viz.lessons", "minigrad_course"))}
    assert len({m for m in loaded if m.startswith("minigrad.viz.")}) <= 23


def test_the_table_of_names_is_what_the_modules_define():
    assert set(viz._LATER) == set(viz.__all__) == set(dir(viz))
    for name, module in viz._LATER.items():
        assert name in defined_in(module)
        assert getattr(viz, name).__module__ == f"minigrad.viz.{module}"


def test_a_view_can_be_imported_by_name():
    from minigrad.viz import graph

    assert graph is mg.viz.graph


def test_a_name_that_does_not_exist_raises_the_usual_error():
    with pytest.raises(AttributeError, match=r"minigrad\.viz has no 'grpah'"):
        mg.viz.grpah  # noqa: B018


@pytest.mark.slow
def test_methods_of_views_check_their_arguments():
    code = "view = mg.viz.graph(mg.ones(2, requires_grad=True) * 2)\ntry:\n    view.save(3)\n"
    code += "except mg.MinigradError as error:\n    assert 'path' in str(error), error\nelse:\n    raise SystemExit(1)"
    assert "minigrad.viz.graphs" in modules_loaded_by(code)
