"""environment.yml (conda) and pyproject.toml (pip) list the same packages with the same bounds."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ["lab", "dev", "gpu"]

# Packages whose names on conda and PyPI differ. conda's `graphviz` is the program, not the Python package.
CONDA_NAMES = {"python-graphviz": "graphviz"}
CONDA_ONLY = {"python", "pip", "graphviz"}
NOT_IN_A_BROWSER = ";sys_platform!='emscripten'"  # conda has no environment there, so its list has no marker


def package(requirement):
    """Split 'name >=1; marker' into the name and the rest, without spaces and with one kind of quotes."""
    name, rest = re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", requirement.strip()).groups()
    return name, rest.replace(" ", "").replace('"', "'")


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def environment():
    """The two lists in environment.yml, conda's and pip's, distinguished by their indentation."""
    text = (ROOT / "environment.yml").read_text(encoding="utf-8").split("dependencies:\n")[1]
    lines = [re.sub(r"(^|\s)#.*", "", line).rstrip() for line in text.splitlines()]
    conda = [line[4:] for line in lines if line.startswith("  - ") and line != "  - pip:"]
    pip = [line[8:] for line in lines if line.startswith("      - ")]
    assert len(conda) + len(pip) + 1 == sum(map(bool, lines)), "a line of a different kind"
    return conda, pip


def test_packages_are_in_both_files_with_the_same_bound():
    project = pyproject()
    listed = project["dependencies"] + [
        requirement for extra in EXTRAS for requirement in project["optional-dependencies"][extra]
    ]
    conda, pip = environment()
    packages = [package(line) for line in conda if package(line)[0] not in CONDA_ONLY]
    packages = [(CONDA_NAMES.get(name, name), rest) for name, rest in packages]
    packages += [package(line) for line in pip if line != "-e ."]
    wanted = [(name, rest.removesuffix(NOT_IN_A_BROWSER)) for name, rest in map(package, listed)]
    assert sorted(packages) == sorted(wanted)


def test_a_browser_gets_what_has_a_build_for_it():
    """LLVM is machine code.  NumPy is compiled for browsers, and the other packages are Python alone."""
    wanted = dict(map(package, pyproject()["dependencies"]))
    assert wanted.pop("llvmlite").endswith(NOT_IN_A_BROWSER)
    assert set(wanted) == {"numpy", "graphviz", "tqdm"}


def test_python_is_the_same_and_minigrad_itself_is_installed():
    conda, pip = environment()
    assert ("python", pyproject()["requires-python"]) in map(package, conda)
    assert "graphviz" in conda, "the program dot"
    assert pip[-1] == "-e ."


def test_cupy_is_left_out_on_macos():
    (cupy,) = pyproject()["optional-dependencies"]["gpu"]
    assert package(cupy)[1].endswith(";sys_platform!='darwin'")


def test_binder_installs_the_checkout_by_pip_alone():
    wanted = (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").split()
    assert wanted == [".[lab]"] and "lab" in pyproject()["optional-dependencies"]


def test_installs_for_notebook_hosts_are_those_that_the_course_uses():
    text = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    named = re.findall(r"pip install (?:-q )?\S+ (anywidget \w+)", text)
    lab = [package(requirement)[0] for requirement in pyproject()["optional-dependencies"]["lab"]]
    assert len(named) == 2 and {name for names in named for name in names.split()} <= set(lab)
