"""What minigrad and the launcher do on systems other than this one, with stand-ins for the systems' modules."""

import contextlib
import ctypes
import ctypes.util
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.compile.codegen import native
from minigrad.devices import threads
from minigrad.support import files
from minigrad_course import limits
from tests.project.launcher import load_launcher

ROOT = Path(__file__).resolve().parents[2]


class Elsewhere:
    """A module as another system has it: some names are missing, others have other values."""

    def __init__(self, module, missing=(), **others):
        self._module, self._missing = module, missing
        vars(self).update(others)

    def __getattr__(self, name):
        if name in self._missing:
            raise AttributeError(name)
        return getattr(self._module, name)


# Files and locks ------------------------------------------------------------------------------------------------------


class Msvcrt(types.ModuleType):
    """Locks of Windows: one descriptor at a time holds the lock of a file."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        super().__init__("msvcrt")
        self.holders = {}

    def locking(self, descriptor, mode, count):
        file = os.fstat(descriptor).st_ino
        if mode == self.LK_NBLCK and file in self.holders:
            raise PermissionError(13, "Permission denied")
        if mode == self.LK_NBLCK:
            self.holders[file] = descriptor
        elif self.holders.pop(file, None) != descriptor:
            raise PermissionError(13, "Permission denied")


@pytest.fixture
def windows(monkeypatch):
    """`files` sees Windows; returns its locks."""
    monkeypatch.setattr(files, "os", Elsewhere(os, missing={"fork"}, name="nt"))
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt())
    monkeypatch.setitem(sys.modules, "fcntl", None)
    return sys.modules["msvcrt"]


def test_a_lock_on_windows_excludes_others(windows, tmp_path):
    path = tmp_path / "count"
    with files.locked(path):
        assert len(windows.holders) == 1
        with pytest.raises(mg.FileError, match="another process has kept it locked"), files.locked(path, seconds=0.02):
            pass
        files.write_whole(path, "1")
    assert not windows.holders and path.read_text() == "1"
    with files.locked(path, seconds=0.02):
        pass


@pytest.mark.parametrize("fcntl", [None, types.ModuleType("fcntl")], ids=["Pyodide", "JupyterLite"])  # without flock
def test_there_are_no_locks_in_a_browser(monkeypatch, tmp_path, fcntl):
    monkeypatch.setitem(sys.modules, "fcntl", fcntl)
    with files.locked(tmp_path / "count"):
        files.write_whole(tmp_path / "count", "1")
    assert (tmp_path / "count").read_text() == "1"


class Kernel32:
    """Processes of Windows: 1 runs, 2 has ended but has a handle, 3 is another user's, others do not exist."""

    closed = 0

    def OpenProcess(self, rights, inherit, process):
        return process * 10 if process in (1, 2) else 0

    def GetLastError(self):
        return 5 if self.asked == 3 else 87

    def WaitForSingleObject(self, handle, wait):
        return 258 if handle == 10 else 0

    def CloseHandle(self, handle):
        self.closed += 1


@pytest.mark.parametrize(("process", "running"), [(1, True), (2, False), (3, True), (4, False)])
def test_a_process_on_windows_is_found_by_its_handle(windows, monkeypatch, process, running):
    kernel = Kernel32()
    kernel.asked = process
    monkeypatch.setattr(ctypes, "windll", types.SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(files.os, "kill", None)  # it would end the process
    assert files._is_running(process) is running
    assert kernel.closed == (process in (1, 2))


@pytest.mark.parametrize(("system", "opened"), [("nt", 0), ("posix", 1)])
def test_a_folder_is_opened_only_where_that_is_possible(monkeypatch, tmp_path, system, opened):
    folders = []

    def open_(path, flags):
        folders.append(path)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "os", Elsewhere(os, name=system, open=open_))
    files.write_whole(tmp_path / "a.txt", "1")
    assert folders == [tmp_path] * opened and (tmp_path / "a.txt").read_text() == "1"


# Threads, timers, libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cores", "count"), [(3, 3), (None, 1), (100, threads.MOST)])
def test_threads_are_counted_by_cores_without_affinity(monkeypatch, cores, count):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    without = Elsewhere(os, missing={"sched_getaffinity"}, cpu_count=lambda: cores)
    monkeypatch.setattr(threads, "os", without)
    assert threads.Threads().count == count


def test_a_time_limit_works_without_timers(monkeypatch):
    monkeypatch.setattr(limits, "signal", Elsewhere(signal, missing={"setitimer", "SIGALRM", "ITIMER_REAL"}))
    with pytest.raises(limits.TimeIsUp), limits.at_most(0.05):
        while True:
            pass
    with limits.at_most(60):
        assert threading.active_count() > 1


@pytest.mark.parametrize(("system", "library"), [("win32", "ucrtbase"), ("darwin", "m"), ("linux", "m")])
def test_the_mathematical_library_is_that_of_the_system(monkeypatch, system, library):
    found, symbols = [], []
    binding = types.SimpleNamespace(
        address_of_symbol=lambda name: None, add_symbol=lambda name, address: symbols.append((name, bool(address)))
    )
    real = ctypes.util.find_library("m")
    monkeypatch.setattr(native, "sys", Elsewhere(sys, platform=system))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: found.append(name) or real)
    compiler = types.SimpleNamespace(binding=binding)
    find = next(vars(cls)["_find"] for cls in vars(native).values() if isinstance(cls, type) and "_find" in vars(cls))
    find(compiler, "tgamma")
    assert found == [library] and symbols == [("tgamma", True)]


# Removed before minigrad is imported, and after the modules of Python that need them.
PROGRAM = """
import concurrent.futures, ctypes.util, multiprocessing.connection, os, random, signal, subprocess, sys, tempfile
import threading, numpy
for name in ("fork", "register_at_fork", "sched_getaffinity", "getuid", "geteuid", "killpg", "getloadavg"):
    delattr(os, name)
for name in ("setitimer", "getitimer", "SIGALRM", "ITIMER_REAL", "SIGHUP"):
    delattr(signal, name)
import minigrad as mg
import minigrad_course as course
from minigrad_course.limits import at_most

x = mg.asarray(numpy.linspace(0, 1, 200_000), requires_grad=True)
f = mg.jit(lambda x: (mg.tanh(x) * x).sum())
f(x).backward()
assert abs(f(x).item() - f.function(x).item()) < 1e-3 * abs(f(x).item())
loader = mg.data.DataLoader(mg.data.digits()[0], batch_size=64, workers=2)
assert sum(1 for _ in loader) == len(loader)
course.begin("00_start", student="Ada")
with at_most(60):
    mg.viz.graph(f, x).to_html()
print("all works")
"""


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system lacks them anyway")
def test_minigrad_works_where_functions_of_posix_are_missing(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.stdout.endswith("all works\n"), done.stderr


# The launcher ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def launcher(monkeypatch):
    """The launcher on Windows."""
    module = load_launcher()
    windows = Elsewhere(os, missing={"geteuid", "killpg", "fork"}, name="nt")
    monkeypatch.setattr(module, "os", windows)
    return module


def test_the_launcher_names_the_programs_of_windows(launcher, tmp_path, monkeypatch):
    environment = launcher.Environment(tmp_path)
    assert environment.python == tmp_path / ".course/env/Scripts/python.exe"
    steps = []
    monkeypatch.setattr(launcher, "watch", lambda title, command, log, cwd: steps.append(command))
    environment.fill(None, ["numpy"], "Installing")
    assert steps[-1][0] == str(environment.python.with_name("uv.exe"))
    assert launcher.rights_of_root([]) == []


def test_the_launcher_locks_with_windows_own_locks(launcher, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt())
    with open(tmp_path / "lock", "w") as first, open(tmp_path / "lock", "w") as second:
        assert launcher.take(first) and not launcher.take(second)


def test_the_launcher_ends_a_program_and_its_children_by_taskkill(launcher, monkeypatch):
    calls = []
    monkeypatch.setattr(launcher.subprocess, "call", lambda command, **options: calls.append(command))
    options = {}

    class Process:
        pid, poll, wait = 12, lambda self: None, lambda self: calls.append("wait")

        def __init__(self, command, **given):
            options.update(given)

    monkeypatch.setattr(launcher.subprocess, "Popen", Process)
    with contextlib.suppress(KeyboardInterrupt), launcher.running(["pip"]):
        raise KeyboardInterrupt
    assert calls == [["taskkill", "/F", "/T", "/PID", "12"], "wait"]
    assert options["start_new_session"] is False


def test_the_launcher_heeds_the_signals_that_the_system_has(launcher, monkeypatch):
    heeded = []
    here = Elsewhere(
        signal, missing={"SIGHUP"}, getsignal=lambda number: signal.SIG_DFL,
        signal=lambda number, handler: heeded.append(number),
    )
    monkeypatch.setattr(launcher, "signal", here)
    launcher.heed_signals()
    assert heeded == launcher.HEEDED == [signal.SIGTERM]


def test_the_launcher_is_called_py_on_windows(monkeypatch):
    source = (ROOT / "course").read_text("utf-8")
    (line,) = [line for line in source.splitlines() if line.startswith("PYTHON = ")]
    names = {"os": Elsewhere(os, name="nt")}
    exec(line, names)
    assert names["PYTHON"] == "py"
