"""The launcher, without network: a recorder replaces the function that runs pip and uv."""

import ast
import json
import os
import re
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

import conftest
from tests.project.launcher import COURSE, load_launcher


@pytest.fixture
def course(monkeypatch):
    """A new module of the launcher for each test."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return load_launcher()


class Installer:
    """Replaces `watch`: records each command, and makes the files that the real command would make."""

    def __init__(self, env, problem):
        self.env = env
        self.problem = problem
        self.commands = []
        self.failing = []  # the steps that fail

    def __call__(self, title, command, log, cwd):
        self.commands.append(command)
        step = self.kind(command)
        if step in self.failing:
            raise self.problem(f"{step} failed")
        if step.startswith("make"):
            self.env.python.parent.mkdir(parents=True)
            self.env.python.write_text("")
        elif step == "get uv":
            self.env.python.with_name("uv").write_text("")

    def kind(self, command):
        if "venv" in command:
            return "make" if "-m" in command else "make by uv"
        if command[-1] == "uv":
            return "get uv"
        return "fill by pip" if "-m" in command else "fill"

    def steps(self):
        """The steps that ran since the last call."""
        commands, self.commands = self.commands, []
        return list(map(self.kind, commands))


@pytest.fixture
def checkout(course, tmp_path, monkeypatch):
    """The environment of an empty checkout with a fake installer and without uv."""
    (tmp_path / "pyproject.toml").write_text("[project]")
    env = course.Environment(tmp_path)
    env.installer = Installer(env, course.Problem)
    monkeypatch.setattr(course, "watch", env.installer)
    monkeypatch.setattr(course.shutil, "which", lambda name: None)
    monkeypatch.setattr(env, "works", lambda stamp: env.python.exists())
    return env


# ---- starting -----------------------------------------------------------------------------------


def test_help_is_printed_by_a_real_start():
    for arguments in (["--help"], []):
        command = [sys.executable, str(COURSE), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "lab " in result.stdout and "test --quick" in result.stdout


def test_an_unknown_command_is_named(course, capsys):
    assert course.main(["tset"]) == course.FAILED
    assert "no command 'tset'" in capsys.readouterr().err


def test_the_launcher_is_executable_and_readable_by_python_3_6():
    assert os.name == "nt" or os.access(COURSE, os.X_OK)
    ast.parse(COURSE.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_launcher_imports_only_what_old_pythons_have():
    tree = ast.parse(COURSE.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    names = {alias.name for node in imports for alias in node.names}
    names |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert names == {
        "contextlib", "errno", "hashlib", "importlib.util", "json", "os", "pathlib", "re", "shutil",
        "signal", "subprocess", "sys", "sysconfig", "time",
    }


@pytest.mark.parametrize(
    ("found", "advice"),
    [("python3.12", "Run:\n    python3.12 course"), (None, "https://www.python.org/downloads/")],
)
def test_old_python_prints_what_to_do(course, capsys, monkeypatch, found, advice):
    monkeypatch.setattr(course.sys, "version_info", (3, 10, 4, "final", 0))
    monkeypatch.setattr(course.sys, "version", "3.10.4 (main)")
    monkeypatch.setattr(course.shutil, "which", lambda name: name if name == found else None)
    assert course.main(["test"]) == course.FAILED
    message = capsys.readouterr().err
    assert "minigrad needs Python 3.11 or newer, this is 3.10.4" in message
    assert advice in message


# ---- making the environment ---------------------------------------------------------------------


def test_environment_is_made_once(checkout):
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"]
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == []


def test_uv_comes_by_pip_and_installs_the_checkout_editable_with_its_extras(checkout):
    checkout.prepare(["lab", "dev"])
    make, get, fill = checkout.installer.commands
    assert make[1:] == ["-m", "venv", str(checkout.folder)]
    assert get[:4] == [str(checkout.python), "-m", "pip", "install"]
    own = str(checkout.python.with_name("uv"))
    assert fill == [own, "pip", "install", "--python", str(checkout.python), "--editable", ".[dev,lab]"]


@pytest.mark.parametrize("failing", ["get uv", "fill"])
def test_pip_replaces_a_uv_that_cannot_install(checkout, failing):
    checkout.installer.failing = [failing]
    checkout.prepare(["lab"])
    *_, tried, pip = checkout.installer.commands
    assert checkout.installer.kind(tried) == failing
    assert pip[:4] == [str(checkout.python), "-m", "pip", "install"]
    assert pip[-2:] == ["--editable", ".[lab]"]


def test_uv_is_taken_where_it_is_installed(checkout, course, monkeypatch):
    monkeypatch.setattr(course.shutil, "which", lambda name: "/there/" + name)
    checkout.prepare(["lab"])
    make, fill = checkout.installer.commands
    assert make[:2] == ["/there/uv", "venv"] and make[-1] == str(checkout.folder)
    assert fill[:5] == ["/there/uv", "pip", "install", "--python", str(checkout.python)]
    assert fill[-2:] == ["--editable", ".[lab]"]


def test_venv_replaces_a_uv_that_cannot_run(checkout, course, monkeypatch):
    monkeypatch.setattr(course.shutil, "which", lambda name: "/there/" + name)
    checkout.installer.failing = ["make by uv"]
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make by uv", "make", "get uv", "fill"]  # with another uv
    missing = course.importlib.util.find_spec
    monkeypatch.setattr(course.importlib.util, "find_spec", lambda name: name != "venv" and missing(name))
    checkout.stamp.unlink()
    with pytest.raises(course.Problem, match="make by uv failed"):
        checkout.prepare(["lab"])


def test_extra_is_added_to_the_installed_ones(checkout):
    checkout.prepare(["lab"])
    checkout.installer.steps()
    checkout.prepare(["dev"])
    assert checkout.installer.commands[-1][-1] == ".[dev,lab]"
    assert checkout.installer.steps() == ["fill"]
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == []


def test_a_changed_pyproject_is_installed_again(checkout):
    checkout.prepare(["lab"])
    checkout.installer.steps()
    (checkout.root / "pyproject.toml").write_text("[project] # changed")
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["fill"]
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == []


@pytest.mark.parametrize("key", ["python", "root"])
def test_environment_is_made_again_for_another_python_or_place(checkout, key):
    checkout.prepare(["lab"])
    checkout.installer.steps()
    stamp = json.loads(checkout.stamp.read_text())
    checkout.stamp.write_text(json.dumps({**stamp, key: "another"}))
    left_over = checkout.folder / "left over"
    left_over.touch()
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"]
    assert not left_over.exists()


@pytest.mark.parametrize("damage", ["no python", "no stamp", "torn stamp", "odd stamp"])
def test_broken_environment_is_made_again(checkout, damage):
    checkout.prepare(["lab"])
    checkout.installer.steps()
    if damage == "no python":
        checkout.python.unlink()
    elif damage == "no stamp":
        checkout.stamp.unlink()
    else:
        checkout.stamp.write_text({"torn stamp": '{"python": "3.', "odd stamp": "[1]"}[damage])
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"]


def test_an_installation_that_failed_leaves_no_stamp(checkout):
    checkout.prepare(["lab"])
    (checkout.root / "pyproject.toml").write_text("[project] # changed")
    checkout.installer.failing = ["fill", "fill by pip"]
    with pytest.raises(checkout.installer.problem, match="fill by pip failed"):
        checkout.prepare(["lab"])
    assert not checkout.stamp.exists()
    checkout.installer.failing = []
    checkout.installer.steps()
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[project\n<<<<<<< HEAD", r"Expected ']' .*line 1"),
        ("", r"there is no \[project\]"),
        ("project = 3", "'int' object"),
    ],
)
def test_a_broken_pyproject_is_named(checkout, course, monkeypatch, capsys, text, what):
    (checkout.root / "pyproject.toml").write_text(text)
    monkeypatch.setattr(course, "ROOT", checkout.root)
    for command in (["python"], ["add", "gpu"]):
        assert course.main(command) == course.FAILED
        said = capsys.readouterr().err
        assert re.search("pyproject.toml cannot be read: .*" + what, said) and "git checkout" in said
    assert checkout.installer.steps() == []


def test_health_is_asked_of_the_environment_itself(course, tmp_path, monkeypatch):
    env = course.Environment(tmp_path)
    assert not env.works({})  # it has no Python
    env.python = Path(sys.executable)
    monkeypatch.setattr(course, "WITNESSES", {"lab": "pytest", "dev": "no_such_module"})
    assert env.works({"extras": ["lab", "gpu"]})
    assert not env.works({"extras": ["lab", "dev"]})


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_missing_venv_is_an_error_that_says_what_to_install(checkout, course, monkeypatch, missing):
    found = course.importlib.util.find_spec
    monkeypatch.setattr(
        course.importlib.util, "find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(course.Problem, match="sudo apt install python3-venv"):
        checkout.prepare(["lab"])
    assert checkout.installer.steps() == []
    monkeypatch.setattr(course.shutil, "which", lambda name: "/there/" + name)
    checkout.prepare(["lab"])  # uv does not need it
    assert checkout.installer.steps() == ["make by uv", "fill"]


def test_a_second_launcher_waits_for_the_first(course, tmp_path, capsys, monkeypatch):
    order = []
    waiting = threading.Event()
    monkeypatch.setattr(course.time, "sleep", lambda seconds: waiting.set())

    def second():
        with course.locked(tmp_path / "lock"):
            order.append("second")

    with course.locked(tmp_path / "lock"):
        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        assert waiting.wait(60)  # it has found that the lock is taken
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert "waiting" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="Windows ties the lock to the process")
def test_an_installer_that_outlives_the_launcher_keeps_the_lock(course, tmp_path):
    lock, end = tmp_path / "lock", tmp_path / "end"
    installer = f"""
import os, time
while not os.path.exists({str(end)!r}):
    time.sleep(0.05)
"""
    launcher = f"""
import importlib.machinery, os, sys
course = importlib.machinery.SourceFileLoader("course", {str(COURSE)!r}).load_module()
with course.locked({str(lock)!r}):
    course.time.sleep = lambda seconds: os._exit(9)  # when the installer has started
    course.watch("", [sys.executable, "-c", {installer!r}], {str(tmp_path / "log")!r}, "/")
"""
    killed = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", launcher])
    assert killed.returncode == 9
    with open(lock, "w") as file:
        assert not course.take(file)
        end.touch()
        deadline = time.monotonic() + 60
        while not course.take(file):
            assert time.monotonic() < deadline
            time.sleep(0.05)


# ---- failing kindly -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "disk is full"),
        ("error: failed to copy: There is not enough space on the disk.", "disk is full"),
        ("[Errno 30] Read-only file system: '/x/.course'", "Copy the folder"),
        ("PermissionError: [WinError 5] Access is denied: 'python.exe'", "close JupyterLab"),
        ("NewConnectionError: [Errno -3] Temporary failure in name resolution", "pypi.org"),
        ("  Caused by: dns error", "pypi.org"),
        ("ERROR: Could not find a version that satisfies the requirement uv (from versions: none)", "pypi.org"),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", "pypi.org"),
        ("The virtual environment was not created: ensurepip is not available", "python3-venv"),
    ],
)
def test_the_cause_of_a_failure_is_recognised(course, text, advice):
    assert advice in course.cause(text)


def test_an_unknown_failure_has_no_cause(course):
    assert course.cause("ERROR: Failed building wheel for x") is None


def run_step(course, tmp_path, code):
    log = tmp_path / "install.log"
    course.watch("Trying", [sys.executable, "-c", code], log, tmp_path)
    return log


def test_a_step_that_fails_shows_its_end_and_names_the_log(course, tmp_path):
    code = "print('early'); print('\\n' * 20); print('the reason is bad luck'); raise SystemExit(7)"
    with pytest.raises(course.Problem) as problem:
        run_step(course, tmp_path, code)
    message = str(problem.value)
    assert "the reason is bad luck" in message and "early" not in message
    assert "course clean" in message  # an unknown cause
    assert str(tmp_path / "install.log") in message


def test_a_full_disk_is_recognised_although_the_log_could_not_be_written(course, tmp_path, monkeypatch):
    monkeypatch.setattr(course.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=4096))
    with pytest.raises(course.Problem, match="The disk is full"):
        run_step(course, tmp_path, "exit(1)")


def test_failed_step_shows_only_its_own_output(course, tmp_path):
    for code, advice in [("exit('disk is full: No space left')", "free some space"), ("exit(1)", "course clean")]:
        with pytest.raises(course.Problem) as problem:
            run_step(course, tmp_path, code)
        assert advice in str(problem.value)


def test_a_step_that_works_keeps_its_output_in_the_log(course, tmp_path, capsys):
    log = run_step(course, tmp_path, "print('one'); print('two'); print()")
    assert "one" in log.read_text()
    assert course.last_line(log) == "two"
    printed = capsys.readouterr().out
    assert "Trying: done in" in printed and "two" not in printed


def test_a_folder_that_cannot_be_written_is_explained(course, capsys, monkeypatch):
    def refuse(self, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(course.Path, "mkdir", refuse)
    assert course.main(["lab"]) == course.FAILED
    message = capsys.readouterr().err
    assert ".course" in message and "Copy the folder" in message


def test_ctrl_c_ends_without_a_traceback(course, capsys, monkeypatch):
    def interrupted(self, extras):
        raise KeyboardInterrupt

    monkeypatch.setattr(course.Environment, "prepare", interrupted)
    assert course.main(["lab"]) == 130
    assert "Stopped" in capsys.readouterr().err


# ---- the commands -------------------------------------------------------------------------------


@pytest.fixture
def commands(course, monkeypatch):
    """Run the launcher with fake commands, whose exit codes can be set by name."""

    class Commands:
        pass

    def pretend(command, cwd, **more):
        Commands.ran.append(command[2:] if command[1] == "-m" else command[1:])
        return next((code for name, code in Commands.codes.items() if name in command), 0)

    Commands.ran, Commands.codes = [], {}
    monkeypatch.setattr(course.Environment, "prepare", lambda self, extras: None)
    monkeypatch.setattr(course, "hand_over", pretend)
    monkeypatch.setattr(course.subprocess, "call", pretend)
    monkeypatch.setattr(course, "install_programs", lambda env: Commands.ran.append(["programs"]))
    monkeypatch.setattr(course.os, "geteuid", lambda: 1000, raising=False)
    return Commands


def test_test_runs_linters_and_pytest_on_all_cores(course, commands, monkeypatch):
    monkeypatch.setattr(course.os, "cpu_count", lambda: 8)
    assert course.main(["test"]) == 0
    in_parallel = ["pytest", "-n", "9", "--dist", "loadfile", "--no-loadscope-reorder", "--nbval"]
    assert commands.ran == [["programs"], ["ruff", "check", "."], ["mypy"], in_parallel]


def test_grade_hands_its_arguments_to_the_course(course, commands):
    assert course.main(["grade", "submitted", "grades.csv"]) == 0
    assert commands.ran == [["minigrad_course.grading", "submitted", "grades.csv"]]


@pytest.fixture
def apt(checkout, course, monkeypatch):
    """A Debian without the programs: the calls of apt, and whether the user is root."""

    class Debian:
        there, user, sudo = {"apt-get"}, 0, 0

    monkeypatch.setattr(course.shutil, "which", lambda name: name if name in Debian.there else None)
    monkeypatch.setattr(course.os, "geteuid", lambda: Debian.user, raising=False)
    monkeypatch.setattr(course.subprocess, "call", lambda command, **pipes: Debian.sudo)
    return Debian


def asked(checkout):
    """The packages in calls of apt, and the rights of the calls."""
    installs = [command for command in checkout.installer.commands if "install" in command]
    assert all("update" in checkout.installer.commands[0] for _ in installs)
    return [(command[0], command[-1]) for command in installs]


def test_programs_for_tests_are_installed_where_allowed(apt, course, checkout):
    course.install_programs(checkout)
    assert asked(checkout) == [("env", "chromium"), ("env", "graphviz"), ("env", "bubblewrap")]


def test_programs_for_tests_are_not_installed_twice(apt, course, checkout):
    apt.there = {"apt-get", "google-chrome"}
    course.install_programs(checkout)
    assert asked(checkout) == [("env", "graphviz"), ("env", "bubblewrap")]
    checkout.installer.commands.clear()
    apt.there = {"apt-get", "chromium", "dot", "bwrap"}
    course.install_programs(checkout)
    assert checkout.installer.commands == []


@pytest.mark.parametrize(
    ("there", "sudo", "expected"),
    [
        ({"apt-get", "sudo"}, 0, [("sudo", "chromium"), ("sudo", "graphviz"), ("sudo", "bubblewrap")]),
        ({"apt-get", "sudo"}, 1, []),  # sudo would ask for a password
        ({"apt-get"}, 0, []),
        (set(), 0, []),
    ],
)
def test_programs_for_tests_without_root(apt, course, checkout, there, sudo, expected):
    apt.there, apt.user, apt.sudo = there, 1000, sudo
    course.install_programs(checkout)
    assert asked(checkout) == expected


def test_failed_apt_does_not_stop_the_tests(apt, course, checkout, monkeypatch, capsys):
    def failing(title, command, log, cwd):
        raise course.Problem("no network")

    monkeypatch.setattr(course, "watch", failing)
    course.install_programs(checkout)
    assert "tests that need it are skipped" in capsys.readouterr().out


def test_quick_leaves_out_mypy_and_notebooks(course, commands):
    assert course.main(["test", "--quick", "tests/ops", "-k", "tanh"]) == 0
    assert commands.ran == [["ruff", "check", "."], ["pytest", "--quick", "tests/ops", "-k", "tanh"]]


def test_processes_of_tests_store_their_bytecode(course, commands, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    course.main(["test", "--quick"])
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_smoke_runs_one_file_and_says_why(course, commands, capsys):
    assert course.main(["test", "--smoke"]) == 0
    assert commands.ran == [["pytest", "-q", "tests/test_smoke.py"]]
    assert "One test of each room, to see that nothing is broken" in capsys.readouterr().out


class Case:
    """A collected test, with only the fields that the quick run reads."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.path, self.marks = nodeid, Path(nodeid.partition("::")[0]), marks

    def get_closest_marker(self, name):
        return name in self.marks


def test_a_quick_run_has_the_middle_case_of_each_test():
    cases = [Case(f"tests/test_a.py::test_x[{i}]") for i in range(5)]
    others = [Case("tests/test_a.py::test_y"), Case("tests/test_a.py::test_z", "slow"), Case("tests/a.ipynb::Cell 0"),
              Case("tests/test_a.py::test_page", "skipif")]
    assert conftest.quick([*cases, *others]) == {cases[2], others[0]}


def test_long_tests_run_only_if_they_are_asked_for():
    usual, long = Case("tests/test_a.py::test_x"), Case("tests/test_a.py::test_x_with_more_programs", "long")
    assert conftest.selected([usual, long], quick_run=False, long_run=False) == {usual}
    assert conftest.selected([usual, long], quick_run=False, long_run=True) == {usual, long}
    assert conftest.selected([usual, long], quick_run=True, long_run=False) == {usual}


def test_files_of_slow_tests_come_first_in_one_piece_and_in_their_own_order():
    many = [Case(f"tests/test_many.py::test_x[{i}]") for i in range(3)]
    one, slow = Case("tests/test_one.py::test_x"), Case("tests/test_slow.py::test_x", "slow")
    after = Case("tests/test_slow.py::test_y")
    assert conftest.longest_first([one, *many, slow, after]) == [slow, after, *many, one]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [({"pytest": 5}, 5), ({"ruff": 1}, 1), ({"mypy": 2}, 2), ({"mypy": 2, "pytest": 1}, 1)],
)
def test_the_exit_code_is_that_of_pytest_unless_only_a_linter_failed(
    course, commands, codes, expected
):
    commands.codes = codes
    assert course.main(["test"]) == expected
    assert commands.ran[-1][0] == "pytest"


def test_lab_opens_the_workspace_after_bringing_it_up_to_date(course, commands, monkeypatch, tmp_path):
    monkeypatch.setattr(course, "ROOT", tmp_path)
    mine = tmp_path / "my-course"
    workspace = ["minigrad_course.workspace", str(tmp_path / "notebooks"), str(mine)]
    jupyter = ["jupyterlab", f"--ServerApp.root_dir={mine}"]
    mine.mkdir()
    assert course.main(["lab"]) == 0
    assert commands.ran == [workspace, jupyter]  # another file has the name of the first notebook
    (mine / "00_start.ipynb").touch()
    commands.ran.clear()
    for _ in range(2):  # with the first notebook, until it has been opened once
        assert course.main(["lab", "--no-browser"]) == 0
        assert commands.ran == [workspace, [*jupyter, str(mine / "00_start.ipynb"), "--no-browser"]]
        commands.ran.clear()
    (mine / ".ipynb_checkpoints").mkdir()
    (mine / ".ipynb_checkpoints" / "00_start-checkpoint.ipynb").touch()
    assert course.main(["lab"]) == 0
    assert commands.ran == [workspace, jupyter]
    commands.codes = {"minigrad_course.workspace": 2}
    commands.ran.clear()
    assert course.main(["lab"]) == 2
    assert commands.ran == [workspace]


def test_root_is_refused_before_anything_is_made(course, commands, monkeypatch, capsys):
    monkeypatch.setattr(course.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(course, "CONTAINER_FILES", ())
    monkeypatch.setattr(course, "CONTAINER_VARIABLES", ("IN_A_CONTAINER",))
    assert course.main(["lab"]) == course.FAILED and commands.ran == []
    assert "without sudo" in capsys.readouterr().err
    for option in ("--allow-root", "--ServerApp.allow_root=True"):
        assert course.main(["lab", option]) == 0 and commands.ran[-1][-1] == option
    monkeypatch.setenv("IN_A_CONTAINER", "yes")
    assert course.main(["lab"]) == 0 and commands.ran[-1][-1] == "--allow-root"
    assert "This is a container" in capsys.readouterr().out


def test_site_builds_the_pages(course, commands):
    assert course.main(["site", "--open"]) == 0
    assert commands.ran == [["lectures.site.build_site", "--open"]]


def test_browser_makes_the_folder_for_browsers(course, commands):
    assert course.main(["browser", "--pyodide", "there"]) == 0
    assert commands.ran == [["lectures.site.browser.lite", "--pyodide", "there"]]


def test_python_gets_its_arguments_untouched(course, commands):
    assert course.main(["python", "-c", "1", "--help"]) == 0
    assert commands.ran == [["-c", "1", "--help"]]


def test_an_unknown_benchmark_or_extra_is_refused(course, commands, capsys):
    assert course.main(["bench", "nothing"]) == course.FAILED
    assert "Which benchmark?" in capsys.readouterr().err
    assert course.main(["add", "nothing"]) == course.FAILED
    assert re.search(r"There is: lab,.* dev,.* onnx", capsys.readouterr().err)
    assert commands.ran == []


def test_clean_removes_the_environment(checkout, course):
    course.clean(checkout, [])  # nothing exists yet
    checkout.prepare(["lab"])
    course.clean(checkout, [])
    assert not checkout.folder.exists()
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"] * 2


def test_clean_that_is_stopped_leaves_nothing_that_looks_whole(checkout, course, monkeypatch):
    checkout.prepare(["lab"])

    def stop(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(course.shutil, "rmtree", stop)
        course.clean(checkout, [])
    checkout.installer.steps()
    checkout.prepare(["lab"])
    assert checkout.installer.steps() == ["make", "get uv", "fill"]


def test_launcher_returns_the_exit_code_of_the_program(course, tmp_path):
    assert course.hand_over([sys.executable, "-c", "raise SystemExit(4)"], tmp_path) == 4
