"""The quick tests of the core on other versions of Python, and on the oldest packages that pyproject.toml allows.

`.ci/run` starts this after the full tests, with the environment's Python.  Each version gets an environment in
`.course/versions`, which later runs use again.  A version whose interpreter is missing and cannot be downloaded
is skipped, and a line says so.  Without arguments all versions are tested; arguments select some: `3.12 3.13`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".course" / "versions"
PYTHONS = {"UV_PYTHON_INSTALL_DIR": str(HOME / "pythons")}  # downloads stay in the checkout

# Version of Python -> uv's strategy for the versions of minigrad's dependencies.  The first takes all the oldest ones.
VERSIONS = {"3.12": "lowest-direct", "3.13": "highest", "3.14": "highest"}
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy")  # the packages of the extra `dev` that the tests below need
ROOMS = ("support", "core", "ops", "autodiff", "control", "compile", "eager", "scripting")
TESTS = [f"tests/{room}" for room in ROOMS]
PYTEST = ["-q", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--quick", "-p", "no:cacheprovider"]
WITHOUT_NOTEBOOKS = ["-o", "addopts=--import-mode=importlib --strict-markers --strict-config"]


class Skipped(Exception):
    """The reason why a version cannot be tested here."""


def main(wanted: Sequence[str]) -> int:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    results = {version: outcome(uv, version) for version in wanted or VERSIONS}
    print("\nOther versions of Python:")
    for version, result in results.items():
        print(f"  {version}: {result}")
    return int("failed" in results.values())


def outcome(uv: str, version: str) -> str:
    """Test one version.  Returns "ok", "failed", or the reason why it was skipped."""
    try:
        python = environment(uv, version, interpreter(uv, version))
    except Skipped as why:
        return f"NOT TESTED: {why}"
    command = [str(python), "-m", "pytest", *PYTEST, *WITHOUT_NOTEBOOKS, *TESTS]
    print(f"\n$ Python {version}, {VERSIONS[version]} versions of packages: pytest {' '.join(TESTS)}", flush=True)
    code = subprocess.call(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return "failed" if code else "ok"


def interpreter(uv: str, version: str) -> str:
    """An interpreter of this version: one that uv finds, one of pyenv's, or one that uv downloads."""
    search = [uv, "python", "find", "--no-python-downloads", "--no-project", version]
    found = output(search) or output(search, PYTHONS) or first_of_pyenv(version)
    if not found and output([uv, "python", "install", version], PYTHONS) is not None:
        found = output(search, PYTHONS)
    if not found:
        raise Skipped("there is no interpreter here, and uv could not download one")
    return found


def first_of_pyenv(version: str) -> str | None:
    """An interpreter that pyenv installed; uv finds only those that are active in pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return next((str(path) for path in sorted(versions.glob(f"{version}.*/bin/python3"))), None)


def environment(uv: str, version: str, python: str) -> Path:
    """The Python of an environment with minigrad's dependencies and the tools of the tests."""
    folder = HOME / version
    stamp, own = folder / "stamp.json", folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    dependencies, tools = requirements(ROOT / "pyproject.toml")
    wanted = json.dumps([python, VERSIONS[version], dependencies, tools])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and own.exists():
        return own
    shutil.rmtree(folder, ignore_errors=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(own), "--only-binary", ":all:"]
    steps = [
        [uv, "venv", "--quiet", "--no-project", "--python", python, str(folder)],
        [*install, "--resolution", VERSIONS[version], *dependencies],
        [*install, *tools],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            reason = next(iter(done.stderr.strip().splitlines()), "without a word")
            raise Skipped(f"its packages could not be installed: {reason}")
    stamp.write_text(wanted, encoding="utf-8")
    return own


def requirements(path: Path) -> tuple[list[str], list[str]]:
    """The dependencies of minigrad and the tools of the tests, from pyproject.toml."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    tools = [line for line in project["optional-dependencies"]["dev"] if name_of(line) in TOOLS]
    return project["dependencies"], tools


def name_of(requirement: str) -> str:
    """
    >>> name_of("pytest-xdist>=3.5")
    'pytest-xdist'
    """
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def output(command: list[str], more: dict[str, str] | None = None) -> str | None:
    """The output of a command, or None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **(more or {})})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
