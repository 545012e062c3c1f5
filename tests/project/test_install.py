"""The wheel that CI builds, the report of its installation, and the version of the package."""

import importlib.util
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def install(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "versions", raising=False)
    spec = importlib.util.spec_from_file_location("install", ROOT / ".ci" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)[1]
    assert mg.__version__ == project["version"] == cited


def test_a_file_that_the_wheel_lacks_is_found(install, tmp_path, monkeypatch):
    monkeypatch.setattr(install, "shipped", lambda: {"minigrad/a.py": b"", "minigrad/b.js": b""})
    with zipfile.ZipFile(tmp_path / "one.whl", "w") as wheel:
        wheel.writestr("minigrad/a.py", "")
    assert install.left_out(tmp_path / "one.whl") == ["minigrad/b.js"]


def test_install_reports_checks_that_fail(install, monkeypatch, capsys):
    monkeypatch.setattr(install, "checks", lambda uv: {"an example": False, "import": True})
    assert install.main() == 1
    assert capsys.readouterr().out == "\nInstalled from a wheel: failed: an example\n"
    monkeypatch.setattr(install, "checks", lambda uv: {"an example": True})
    assert install.main() == 0


def test_install_without_packages_is_reported_as_not_tested(install, tmp_path, monkeypatch, capsys):
    def run(command, **options):
        return install.subprocess.CompletedProcess(command, int(command[1] == "pip"), "", "error: no network\nmore")

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install, "left_out", lambda wheel: [])
    monkeypatch.setattr(install, "DIST", tmp_path)
    (tmp_path / f"minigrad-{mg.__version__}.tar.gz").touch()
    monkeypatch.setattr(install.shutil, "rmtree", lambda *args, **options: None)
    assert install.main() == 0
    said = capsys.readouterr().out
    assert "Installed from a wheel: NOT TESTED: its packages could not be installed: error: no network\n" in said


@pytest.mark.parametrize(
    ("tag", "heading", "problem"),
    [
        ("v1.2.0", "## 1.2.0 (2026-12-01)", ""),
        ("v1.3.0", "## 1.2.0 (2026-12-01)", "the tag is v1.3.0, and pyproject.toml has version 1.2.0"),
        ("v1.2.0", "## 1.2.0 (not released yet)", "CHANGELOG.md has no heading '## 1.2.0 (YYYY-MM-DD)'"),
        ("v1.2.0", "## 1x2.0 (2026-12-01)", "CHANGELOG.md has no heading '## 1.2.0 (YYYY-MM-DD)'"),
    ],
)
def test_a_release_needs_its_tag_and_its_heading(install, tmp_path, tag, heading, problem):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    assert install.unreleased(tag, tmp_path) == problem


def test_the_release_workflow_uploads_the_files_that_install_builds(install):
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert f"path: {install.DIST.relative_to(ROOT).as_posix()}/minigrad-*" in workflow


def test_a_release_that_is_not_tested_fails(install, monkeypatch, capsys):
    def checks(uv):
        raise install.Skipped("no network")

    monkeypatch.setattr(install, "checks", checks)
    monkeypatch.setattr(install, "unreleased", lambda tag, root: "")
    assert install.main("v1.2.0") == 1 and install.main() == 0
    monkeypatch.setattr(install, "unreleased", lambda tag, root: "another version")
    capsys.readouterr()
    assert install.main("v1.2.0") == 1
    assert capsys.readouterr().out == "Not a release: another version\n"


def test_installed_programs_run_outside_of_the_checkout(install, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(install.subprocess, "call", lambda command, cwd: calls.append((command, cwd)) or 0)
    assert install.used(Path("python"), ["-m", "minigrad.examples"], tmp_path)
    assert calls == [(["python", "-I", "-m", "minigrad.examples"], tmp_path)]
