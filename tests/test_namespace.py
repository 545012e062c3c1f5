"""The names of `mg`: what `dir` lists, what a star import brings, and what is loaded later."""

import subprocess
import sys
from types import ModuleType

import pytest

import minigrad as mg

MODULES = {
    "autodiff", "compat", "data", "devices", "distributed", "distributions", "examples", "fft", "io", "linalg", "nn",
    "optim", "random", "train", "viz",
}
OTHERS = {  # public names of modules without `__all__`
    "Tensor", "debug_nans", "eager_programs", "enable_grad", "is_grad_enabled", "live_graphs", "no_grad", "offload",
    "record", "replay", "scope", "to_device", "tree_map",
}


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_dir_lists_all_names_also_those_that_are_loaded_later():
    listed = dir(mg)
    some = {"Tensor", "grad", "jit", "graph", "trace", "script", "viz", "io", "data", "float32", "ShapeError"}
    assert some <= {*listed}
    assert len(listed) == len({*listed}) == len([name for name in listed if hasattr(mg, name)])
    assert [name for name in listed if name[0] == "_"] == ["__version__"]


def test_dir_lists_only_public_names():
    values = {name: getattr(mg, name) for name in dir(mg)}
    assert {name for name, value in values.items() if isinstance(value, ModuleType)} == MODULES
    rooms = [module for name, module in sys.modules.items() if name.startswith("minigrad.")]
    exported = {name for module in rooms for name in getattr(module, "__all__", ())}
    assert values.keys() - exported - MODULES - {"__version__"} == OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "import minigrad.viz, minigrad.compile, minigrad_course; "])
def test_dir_does_not_depend_on_what_is_loaded(first):
    assert printed(f"{first}import minigrad as mg; print(*dir(mg))").split() == dir(mg)


@pytest.mark.slow
def test_dir_loads_nothing():
    code = 'import minigrad, sys; dir(minigrad); print({"minigrad.viz", "minigrad.compile"} - {*sys.modules})'
    assert printed(code) in ("{'minigrad.viz', 'minigrad.compile'}", "{'minigrad.compile', 'minigrad.viz'}")


@pytest.mark.slow
def test_a_star_import_brings_all_names():
    code = "from minigrad import *; __builtins__.print(jit.__name__, viz.__name__, sum(asarray([1])).dtype)"
    assert printed(code) == "jit minigrad.viz int64"


def test_a_misspelt_name_is_an_error():
    with pytest.raises(AttributeError, match="minigrad has no 'tanhh'"):
        mg.tanhh  # noqa: B018
