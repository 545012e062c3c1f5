"""Code that differs between Linux, macOS, Windows and a browser: each such place has a test with a stand-in."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The functions (or "" for the module) that ask which system runs, with the tests of what they do on others.
SYSTEMS = "tests/project/test_other_systems.py"
TESTED = {
    "minigrad/support/files.py:_is_running": f"{SYSTEMS}::test_a_process_on_windows_is_found_by_its_handle",
    "minigrad/support/files.py:_is_running_on_windows": f"{SYSTEMS}::test_a_process_on_windows_is_found_by_its_handle",
    "minigrad/support/files.py:_sync_folder": f"{SYSTEMS}::test_a_folder_is_opened_only_where_that_is_possible",
    "minigrad/support/files.py:_take": f"{SYSTEMS}::test_a_lock_on_windows_excludes_others",
    "minigrad/support/files.py:_release": f"{SYSTEMS}::test_a_lock_on_windows_excludes_others",
    "minigrad/support/forking.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/data/workers.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/devices/threads.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/support/collector.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/compile/codegen/workers.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/compile/codegen/workers.py:this_system":
        "tests/compile/codegen/test_workers.py::test_functions_are_chosen_by_the_system",
    "minigrad/support/host.py:": "tests/support/test_host.py::test_hints_name_the_way_to_stop_of_each_host",
    "minigrad/devices/blas.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/compile/codegen/native.py:": f"{SYSTEMS}::test_minigrad_works_where_functions_of_posix_are_missing",
    "minigrad/devices/threads.py:_default_count": f"{SYSTEMS}::test_threads_are_counted_by_cores_without_affinity",
    "notebooks/minigrad_course/apart.py:_end":
        "tests/course/test_apart.py::test_a_process_is_ended_where_the_system_has_no_groups",
    "notebooks/minigrad_course/apart.py:run_apart":
        "tests/course/test_apart.py::test_a_process_is_run_where_the_system_cannot_fork",
    "notebooks/minigrad_course/apart.py:_limit":
        "tests/course/test_apart.py::test_nothing_is_limited_where_the_system_has_no_limits",
    "notebooks/minigrad_course/limits.py:at_most": f"{SYSTEMS}::test_a_time_limit_works_without_timers",
    "minigrad/compile/codegen/native.py:_find": f"{SYSTEMS}::test_the_mathematical_library_is_that_of_the_system",
    "minigrad/compile/codegen/disk_cache.py:folder":
        "tests/compile/codegen/test_native.py::test_cache_folder_follows_the_conventions_of_the_system",
    "minigrad/devices/cuda.py:_imported_cupy":
        "tests/devices/test_cuda.py::test_error_on_a_mac_says_that_there_is_no_cuda",
    "minigrad/distributed/__main__.py:guarded":
        "tests/distributed/test_ranks.py::test_the_launcher_calls_the_mpirun_that_it_finds",
    "minigrad/distributed/guard.py:":
        "tests/distributed/test_ranks.py::test_the_launcher_calls_the_mpirun_that_it_finds",
    "minigrad/distributed/__main__.py:mpirun":
        "tests/distributed/test_ranks.py::test_open_mpi_runs_as_root_only_with_an_option",
    "course:": f"{SYSTEMS}::test_the_launcher_is_called_py_on_windows",
    "course:__init__": f"{SYSTEMS}::test_the_launcher_names_the_programs_of_windows",
    "course:fill": f"{SYSTEMS}::test_the_launcher_names_the_programs_of_windows",
    "course:rights_of_root": f"{SYSTEMS}::test_the_launcher_names_the_programs_of_windows",
    "course:take": f"{SYSTEMS}::test_the_launcher_locks_with_windows_own_locks",
    "course:running": f"{SYSTEMS}::test_the_launcher_ends_a_program_and_its_children_by_taskkill",
    "course:end": f"{SYSTEMS}::test_the_launcher_ends_a_program_and_its_children_by_taskkill",
    "course:heed_signals": f"{SYSTEMS}::test_the_launcher_heeds_the_signals_that_the_system_has",
}

ATTRIBUTES = {
    ("sys", "platform"), ("os", "name"), ("platform", "system"), ("platform", "machine"), ("ctypes", "windll"),
}
SYSTEM_MODULES = {"fcntl", "msvcrt", "pwd", "resource", "termios", "winreg"}
OPTIONAL = {"os", "signal", "time", "threading"}  # modules that have fewer names on some systems


def asks_for_the_system(node):
    """Whether a node of a syntax tree depends on the system: `os.name`, `hasattr(os, "fork")`, `import fcntl`."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and (node.value.id, node.attr) in ATTRIBUTES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr"):
        certain = node.func.id == "getattr" and len(node.args) == 2
        return isinstance(node.args[0], ast.Name) and node.args[0].id in OPTIONAL and not certain
    return isinstance(node, ast.Import) and any(alias.name in SYSTEM_MODULES for alias in node.names)


def switches(path):
    """The functions of a file, "" for the module itself, that depend on the system."""
    found = set()

    def visit(node, function):
        if asks_for_the_system(node):
            found.add(function)
        inside = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text("utf-8")), "")
    return found


@pytest.mark.slow
def test_every_switch_has_a_test_with_a_stand_in():
    packages = ROOT / "minigrad", ROOT / "notebooks" / "minigrad_course"
    paths = [path for package in packages for path in sorted(package.rglob("*.py")) if "test_" not in path.name]
    paths.append(ROOT / "course")
    found = {f"{path.relative_to(ROOT).as_posix()}:{name}" for path in paths for name in switches(path)}
    assert found == TESTED.keys()


@pytest.mark.parametrize("test", sorted(set(TESTED.values())))
def test_the_named_tests_exist(test):
    path, name = test.split("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.M)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("def f():\n    return sys.platform == 'win32'", {"f"}),
        ("if hasattr(os, 'fork'):\n    pass", {""}),
        ("def f():\n    import fcntl", {"f"}),
        ("def f():\n    def g():\n        return getattr(signal, 'SIGHUP', None)", {"g"}),
        ("def f():\n    return os.path, name, hasattr(x, 'fork'), getattr(time, 'time')", set()),
    ],
)
def test_switches_finds_what_depends_on_the_system(tmp_path, line, found):
    (tmp_path / "a.py").write_text(line)
    assert switches(tmp_path / "a.py") == found
