"""The dump of the compiler's results is complete and the same in every process, and comparisons find changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compile.net import STAGES, main
from tests.compile.net_functions import FUNCTIONS

ROOT = Path(__file__).parents[2]
CHOSEN = ("constants", "graph_mode", "scan")


def dumped(folder, seed):
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.compile.net", str(folder), "--only", *CHOSEN]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*.txt"))}


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    return folder, dumped(folder, 0)


@pytest.mark.slow
def test_net_contains_all_stages_of_all_functions(dump):
    _, files = dump
    assert sorted(files) == sorted(f"{name}/{stage}.txt" for name in CHOSEN for stage in STAGES)
    assert len(FUNCTIONS) >= 20 and set(CHOSEN) <= set(FUNCTIONS)
    for name in CHOSEN:
        texts = {stage: files[f"{name}/{stage}.txt"] for stage in STAGES}
        assert "return " in texts["graph"] and texts["passes"].startswith("pass ") and "arena of" in texts["program"]
        assert "kernel_0 (level 0)" in texts["partition"] and "node by node" in texts["cost"]
        assert "void kernel(" in texts["c"] and "define void @kernel(" in texts["llvm"]
        assert "__global__" in texts["cuda"] and "\nprogram: {'bytes_read': " in texts["counts"]
    assert "x * 1 -> x: multiply_3 -> tensor_1   return x * 1 + 0" in files["constants/passes.txt"]
    assert not [name for name, text in files.items() if str(ROOT) in text]


@pytest.mark.slow
def test_net_is_the_same_in_another_process(dump, tmp_path):
    assert dumped(tmp_path, 1) == dump[1]


def changed(folder, path, old, new):
    text = (folder / path).read_text("utf-8")
    assert old in text
    (folder / path).write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.slow
def test_net_reports_a_changed_listing(dump, tmp_path, capsys):
    old, new = dump[0], tmp_path / "new"
    shutil.copytree(old, new)
    assert main(["--compare", str(old), str(new)]) == 0
    same = "constants: same\ngraph_mode: same\nscan: same\n3 functions, 0 of them differ"
    assert capsys.readouterr().out.startswith(same)

    changed(new, "scan/passes.txt", "simplify", "algebra")
    assert main(["--compare", str(old), str(new)]) == 0, "the log may change"
    assert "scan: passes 2 lines differ\n" in capsys.readouterr().out

    changed(new, "graph_mode/c.txt", "* 2.0f", "* 3.0f")
    assert main(["--compare", str(old), str(new)]) == 1
    assert "graph_mode: c 2 lines differ\n" in capsys.readouterr().out


@pytest.mark.parametrize("lost", ["scan", "scan/counts.txt"])
def test_net_reports_missing_files(lost, dump, tmp_path, capsys):
    old, new = dump[0], tmp_path / "new"
    shutil.copytree(old, new)
    (shutil.rmtree if (new / lost).is_dir() else os.remove)(new / lost)
    assert main(["--compare", str(old), str(new)]) == 1
    assert "scan: " in capsys.readouterr().out
    assert main(["--compare", str(new), str(old)]) == (lost != "scan"), "a new function is not a change"
