"""Builds the sdist and the wheel, installs the wheel into an empty environment, and uses minigrad there.

`.ci/run` starts this with the environment's Python.  The wheel is built from the sdist, so both are tested.  The new
environment has only minigrad and its dependencies, and the programs run in an empty folder outside the checkout.
If the dependencies cannot be downloaded, this part is not tested, and the last line says so.

`.ci/install.py v0.2.0` checks a release: the tag must name the version, the changelog must have a heading for it, and
what is not tested counts as failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from versions import ROOT, Skipped

from lectures.site.browser.archives import shipped

PROGRAM = Path(__file__).with_name("installed.py")
DIST = ROOT / "build" / "dist"


def main(tag: str = "") -> int:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    problem = unreleased(tag, ROOT) if tag else ""
    if problem:
        print(f"Not a release: {problem}")
        return 1
    try:
        failed = [name for name, ok in checks(uv).items() if not ok]
    except Skipped as why:
        print(f"\nInstalled from a wheel: NOT TESTED: {why}")
        return int(bool(tag))
    print(f"\nInstalled from a wheel: {'failed: ' + ', '.join(failed) if failed else 'ok'}")
    return int(bool(failed))


def unreleased(tag: str, root: Path) -> str:
    """Why the tag does not release this checkout; empty if it does."""
    number = version(root)
    if tag != f"v{number}":
        return f"the tag is {tag}, and pyproject.toml has version {number}"
    headings = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    dated = any(re.fullmatch(rf"## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)", line) for line in headings)
    return "" if dated else f"CHANGELOG.md has no heading '## {number} (YYYY-MM-DD)'"


def version(root: Path) -> str:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def checks(uv: str) -> dict[str, bool]:
    """Build, install and use minigrad: the name of each check, and whether it succeeded."""
    wheel = built(uv)
    missing = left_out(wheel)
    print(*[f"the wheel lacks {name}" for name in missing], sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        python, empty = environment(uv, wheel, Path(folder)), Path(folder) / "empty"
        empty.mkdir()
        example = ["-m", "minigrad.examples", "digits_mlp", "--quick"]
        return {
            "every file of the packages": not missing,
            "import, views, data, course": used(python, [str(PROGRAM)], empty),
            "an example": used(python, example, empty),
        }


def built(uv: str) -> Path:
    """The wheel, built from the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([uv, "build", "--quiet", "--out-dir", str(DIST), str(ROOT)], cwd=ROOT, check=True)
    name = f"minigrad-{version(ROOT)}"
    assert (DIST / f"{name}.tar.gz").is_file()
    return DIST / f"{name}-py3-none-any.whl"


def left_out(wheel: Path) -> list[str]:
    """The files of the packages that the wheel lacks."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted({*shipped()} - {*archive.namelist()})


def environment(uv: str, wheel: Path, folder: Path) -> Path:
    """The Python of a new environment with minigrad and its dependencies."""
    own = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    make = [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder / "env")]
    subprocess.run(make, cwd=ROOT, check=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(own), str(wheel)]
    done = subprocess.run(install, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        reason = next(iter(done.stderr.strip().splitlines()), "without a word")
        raise Skipped(f"its packages could not be installed: {reason}")
    return own


def used(python: Path, command: list[str], folder: Path) -> bool:
    """Run a program in a folder; `-I` keeps away the variables and folders that lead to other packages."""
    print("$ python -I", *command, flush=True)
    return subprocess.call([str(python), "-I", *command], cwd=folder) == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
