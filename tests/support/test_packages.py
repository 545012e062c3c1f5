"""Optional packages: one error for all of them, which says how to install the package."""

import sys
import tomllib
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.support.packages import EXTRAS, INSTALLED_AS, needed

ROOT = Path(mg.__file__).parents[1]


def test_a_package_is_imported():
    assert needed("json.decoder", "a test").JSONDecoder


def test_a_missing_package_is_named_with_the_commands_that_install_it(monkeypatch):
    for name in ("PIL", "PIL.Image"):  # another test may have imported both
        monkeypatch.setitem(sys.modules, name, None)
    message = r"^reading pictures needs the package pillow, which is not installed\n  Hint: "
    message += r"python -m pip install pillow, or: python3 course add data; or use arrays\n"
    with pytest.raises(mg.PackageError, match=message):
        needed("PIL.Image", "reading pictures", "; or use arrays")


def test_a_browser_has_no_command_line(monkeypatch):
    monkeypatch.setattr("minigrad.support.packages.IN_BROWSER", True)
    with pytest.raises(mg.PackageError, match="Hint: this browser cannot install it; on a computer, python -m"):
        needed("no_such_package", "a test")


def test_a_package_that_is_broken_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("from json import no_such_name")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(mg.PackageError, match="which cannot be imported: cannot import name 'no_such_name'"):
        needed("broken_package", "a test")


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_contains_the_package(package):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    name = INSTALLED_AS.get(package, package).strip('"')
    assert EXTRAS[package] in name or any(each.startswith(name) for each in extras[EXTRAS[package]])


def test_message_for_a_missing_package_is_written_in_one_place():
    modules = [path for path in (ROOT / "minigrad").rglob("*.py") if path.name not in ("packages.py", "errors.py")]
    own = [str(p.relative_to(ROOT)) for p in modules if "pip install" in p.read_text(encoding="utf-8")]
    # Libraries of the CUDA toolkit, which Python does not import.
    assert sorted(own) == ["minigrad/devices/cuda.py", "minigrad/distributed/nccl.py"]
