"""CI on other versions of Python: the versions, their packages, and the report for a version that is missing."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def versions(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("versions", ROOT / ".ci" / "versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HOME", tmp_path / "versions")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return module


def made(path):
    path.parent.mkdir(parents=True)
    path.touch()
    return str(path)


def test_the_oldest_packages_are_those_of_pyproject(versions):
    dependencies, tools = versions.requirements(ROOT / "pyproject.toml")
    assert "numpy>=2" in dependencies
    assert {versions.name_of(tool) for tool in tools} == set(versions.TOOLS)
    assert list(versions.VERSIONS.values()).count("lowest-direct") == 1


def test_an_interpreter_of_pyenv_is_found_where_uv_finds_none(versions, tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "output", lambda command, more=None: None)
    with pytest.raises(versions.Skipped, match="no interpreter here, and uv could not download one"):
        versions.interpreter("uv", "3.13")
    made(tmp_path / "pyenv" / "versions" / "3.1.3" / "bin" / "python3")
    expected = made(tmp_path / "pyenv" / "versions" / "3.13.2" / "bin" / "python3")
    assert versions.interpreter("uv", "3.13") == expected
    monkeypatch.setattr(versions, "output", lambda command, more=None: "/found/by/uv")
    assert versions.interpreter("uv", "3.13") == "/found/by/uv"


def test_an_environment_is_made_once_for_what_it_was_asked_for(versions, monkeypatch):
    steps = []

    def run(step, **options):
        steps.append(step)
        if step[1] == "venv":
            made(Path(step[-1]) / ("Scripts/python.exe" if versions.os.name == "nt" else "bin/python"))
        return versions.subprocess.CompletedProcess(step, 0, "", "")

    monkeypatch.setattr(versions.subprocess, "run", run)
    python = versions.environment("uv", "3.12", "python3.12")
    assert len(steps) == 3 and "lowest-direct" in steps[1] and "numpy>=2" in steps[1]
    assert versions.environment("uv", "3.12", "python3.12") == python and len(steps) == 3
    versions.environment("uv", "3.12", "another")
    assert len(steps) == 6


def test_versions_reports_untested_ones_and_counts_failures(versions, monkeypatch, capsys):
    def environment(uv, version, python):
        if version == "3.14":
            raise versions.Skipped("its packages could not be installed: no wheels")
        return Path(version)

    monkeypatch.setattr(versions, "interpreter", lambda uv, version: version)
    monkeypatch.setattr(versions, "environment", environment)
    monkeypatch.setattr(versions.subprocess, "call", lambda command, **options: int(command[0] == "3.13"))
    assert versions.main(["3.12", "3.14"]) == 0
    assert "3.12: ok\n  3.14: NOT TESTED: its packages could not be installed: no wheels\n" in capsys.readouterr().out
    assert versions.main([]) == 1
    assert "3.13: failed\n" in capsys.readouterr().out
