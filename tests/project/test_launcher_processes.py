"""The launcher as a process, with a fake installer: signals, closed streams and environment variables."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.project.launcher import COURSE, load_launcher

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

UV = """#!{python}
import fcntl, json, os, subprocess, sys, time
with open("environment.json", "w") as file:
    json.dump(dict(os.environ), file)
hold = "import fcntl, time; file = open('alive', 'w'); fcntl.flock(file, fcntl.LOCK_EX); open('ready', 'w'); "
subprocess.Popen([sys.executable, "-c", hold + "time.sleep(60)"])
time.sleep(60)
"""


@pytest.fixture
def course(monkeypatch):
    """The launcher as a module."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return load_launcher()


@pytest.fixture
def place(tmp_path):
    """A checkout in a folder with an odd name.  Its uv starts a child process and then takes a minute."""
    root = tmp_path / "my cöurse"
    (root / "bin").mkdir(parents=True)
    (root / "course").write_bytes(COURSE.read_bytes())
    (root / "pyproject.toml").write_text("[project]\n[project.optional-dependencies]\nlab = []")
    (root / "bin" / "uv").write_text(UV.format(python=sys.executable))
    (root / "bin" / "uv").chmod(0o755)
    return root


def begun(root, *command, **options):
    """The process of the launcher, once it has started to install."""
    environment = {"PATH": str(root / "bin"), **options.pop("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    if os.name != "nt":
        pipes["preexec_fn"] = heed_all
    launcher = subprocess.Popen([sys.executable, str(root / "course"), *command], env=environment, **pipes)
    until(lambda: (root / "ready").exists() or launcher.poll() is not None)
    return launcher


def heed_all():
    """Reset signals that the tests ignore (`nohup`, a background job): the launcher would inherit this."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_free(course, path):
    """Whether no process has this file locked."""
    with open(path, "a") as file:
        return course.take(file)


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_installer_and_all_that_it_started(course, place, name):
    launcher = begun(place, "python")
    assert not is_free(course, place / "alive") and not is_free(course, place / ".course" / "lock")
    number = getattr(signal, name)
    launcher.send_signal(number)
    _, said = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + number and b"Traceback" not in said
    until(lambda: is_free(course, place / "alive") and is_free(course, place / ".course" / "lock"))


@posix
@pytest.mark.parametrize("command", ["python", "--help", "test"])
def test_launcher_starts_nothing_when_the_pipe_is_closed(place, command):
    reader, writer = os.pipe()
    os.close(reader)
    launcher = begun(place, command, stdout=writer)
    assert launcher.communicate(timeout=60)[1] == b"" and launcher.returncode == 128 + 13
    assert not (place / "environment.json").exists()


@posix
def test_launcher_runs_with_closed_streams(place):
    command = ["sh", "-c", 'exec "$0" course unheard <&- >&- 2>&-', sys.executable]
    assert subprocess.run(command, cwd=place).returncode == 3


@posix
def test_variables_that_lead_elsewhere_are_not_passed_on(place, tmp_path):
    for name in ("json", "subprocess", "pathlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('foreign')")
        (place / f"{name}.py").write_text("raise SystemExit('foreign')")
    paths = {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1", "PIP_TARGET": "there", "PIP_INDEX_URL": "ours"}
    launcher = begun(place, "python", env=paths)
    launcher.terminate()
    launcher.communicate()
    reached = json.loads((place / "environment.json").read_text())
    assert {name: reached[name] for name in paths if name in reached} == {"PIP_INDEX_URL": "ours"}


@posix
def test_a_signal_is_passed_on_to_what_was_handed_over(course, tmp_path):
    code = "import os, signal, time; print(os.getppid(), flush=True); time.sleep(60)"
    command = f"course.hand_over([sys.executable, '-c', {code!r}], '/')"
    launcher = subprocess.Popen(started_by(f"course.heed_signals(); sys.exit({command})"), stdout=subprocess.PIPE)
    assert int(launcher.stdout.readline()) == launcher.pid
    launcher.terminate()
    assert launcher.wait(30) == 128 + 15


def started_by(code):
    """A command: Python that loads the launcher as `course` and runs this code."""
    load = f"course = importlib.machinery.SourceFileLoader('course', {str(COURSE)!r}).load_module()"
    return [sys.executable, "-B", "-W", "ignore", "-c", f"import importlib.machinery, sys\n{load}\n{code}"]
