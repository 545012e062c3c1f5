"""The commands of the workflows, of `.ci/run` and of the pre-commit hooks exist, and the workflows may do little."""

import re
import shlex

import pytest
import yaml  # a package of jupytext

from tests.course.running import ROOT
from tests.project.launcher import load_launcher

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LAUNCHER = load_launcher()
# Where the options of a command of the launcher are described, beside the launcher's own help.
OPTIONS = {"site": "lectures/site/build_site.py", "browser": "lectures/site/browser/lite.py"}
WRITE = {"pages": {"pages: write", "id-token: write"}, "release": {"id-token: write"}}  # of single jobs
VERSION = re.compile(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)")


def loaded(path):
    """A workflow as plain data.  YAML reads the key `on` as True."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands():
    """Each command that runs by itself, with the file that has it."""
    for path in WORKFLOWS:
        for step in steps(loaded(path)):
            for line in step.get("run", "").splitlines():
                yield path.name, line
    for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines():
        if line.startswith("python3 "):
            yield ".ci/run", line
    for repo in loaded(ROOT / ".pre-commit-config.yaml")["repos"]:
        for hook in repo["hooks"]:
            yield ".pre-commit-config.yaml", hook["entry"]


def fault(command):
    """What a command names that does not exist; empty if all of it exists."""
    first, *rest = shlex.split(command)
    if first.startswith(".ci/"):
        return "" if (ROOT / first).is_file() and not rest else f"there is no {command}"
    if first not in ("python", "python3") or rest[:1] != ["course"]:
        return f"{first} is neither the launcher nor a script of .ci"
    name, *arguments = rest[1:]
    if name not in LAUNCHER.COMMANDS:
        return f"the launcher has no command {name}"
    text = LAUNCHER.__doc__ + ((ROOT / OPTIONS[name]).read_text(encoding="utf-8") if name in OPTIONS else "")
    if name == "python":
        if arguments[0] == "-m":
            return "" if arguments[1] in ("ruff", "mypy") else f"no test knows the module {arguments[1]}"
        return "" if (ROOT / arguments[0]).is_file() else f"there is no {arguments[0]}"
    unknown = [each for each in arguments if each.startswith("-") and not re.search(rf"{each}\b", text)]
    return f"course {name} has no option {unknown[0]}" if unknown else ""


def test_every_command_exists():
    found = list(commands())
    assert {place for place, _ in found} == {*[path.name for path in WORKFLOWS], ".ci/run", ".pre-commit-config.yaml"}
    assert [(place, line, fault(line)) for place, line in found if fault(line)] == []


@pytest.mark.parametrize("line", [
    "pytest -q", "python setup.py", ".ci/walk", ".ci/run now", "python course sites", "python3 course test --smok",
    "python course site --live --browsers x", "python course python .ci/installed.sh", "python course python -m ruf",
])
def test_commands_that_do_not_exist_are_found(line):
    assert fault(line)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_the_least_rights(path):
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"} and workflow["concurrency"]["group"]
    assert "secrets." not in path.read_text(encoding="utf-8")
    jobs = workflow["jobs"].values()
    rights = {f"{name}: {right}" for job in jobs for name, right in job.get("permissions", {}).items()}
    assert rights == WRITE.get(path.stem, set())
    assert all(job["timeout-minutes"] <= 120 for job in jobs)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_have_a_major_version(path):
    used = [step["uses"] for step in steps(loaded(path)) if "uses" in step]
    assert used and [each for each in used if not VERSION.fullmatch(each)] == []


def test_pull_requests_are_tested_on_three_systems():
    workflow = loaded(ROOT / ".github" / "workflows" / "tests.yml")
    systems = {job["runs-on"] for job in workflow["jobs"].values()}
    systems |= {*workflow["jobs"]["other-systems"]["strategy"]["matrix"]["system"]}
    assert "pull_request" in workflow[True]
    assert {"ubuntu-latest", "windows-latest", "macos-latest"} <= systems


def test_pages_are_uploaded_from_the_folder_that_the_commands_write():
    pages = loaded(ROOT / ".github" / "workflows" / "pages.yml")
    (site, browser) = [step["run"].split()[-1] for step in steps(pages) if "run" in step]
    (uploaded,) = [step["with"]["path"] for step in steps(pages) if "upload" in step.get("uses", "")]
    assert (site, browser) == (uploaded, f"{uploaded}/browser")
