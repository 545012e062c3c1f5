"""Real ranks: processes that mpirun starts on this machine."""

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.distributed import guard, mpi
from minigrad.distributed.__main__ import environment, main, mpirun, parsed
from minigrad.distributed.watch import timeout_set

HERE = Path(__file__).parent
MISSING = "mpi4py" if importlib.util.find_spec("mpi4py") is None else "mpirun" if mpirun() is None else ""
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed: python3 course add distributed")


def started(*arguments, script=HERE / "ranks.py"):
    """Run a script on several ranks: the finished process."""
    command = [sys.executable, "-m", "minigrad.distributed", *arguments[:-1], str(script), *arguments[-1:]]
    variables = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_collectives_messages_and_jitted_steps_on_real_ranks(size):
    done = started("-n", str(size), "")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of {size} is done" for i in range(size)]


@pytest.mark.slow
def test_the_same_script_runs_on_one_rank_without_mpi():
    code = "import sys; sys.modules['mpi4py'] = None; import runpy; runpy.run_path(sys.argv[1])['all_collectives']()"
    command = [sys.executable, "-c", code, str(HERE / "ranks.py")]
    variables = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FAULTS = {
    "raise": "minigrad: rank 1 of 3 raised ValueError: no such batch at ",
    "kill": "minigrad: signal 9 has ended rank 1 of 3",
    "hang": "rank 1, after 1 collective, is at ",
    "shape": "Expected: allreduce sum of float32 (",
    "end": "rank 1, after 1 collective, has ended its script",
    "exit": "minigrad: rank 1 of 3 has ended with status 3, and so the run",
    "_exit": "minigrad: rank 1 of 3 has ended with status 4, and so the run",
    "vanish": "minigrad: rank 1 of 3 has ended without its last steps, and so the run",
}


@needs_mpi
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_rank_ends_the_run_and_is_named(fault):
    done = started("-n", "3", "--timeout", "3" if fault == "hang" else "60", fault)
    assert done.returncode != 0
    assert FAULTS[fault] in done.stderr, done.stderr
    if fault == "hang":
        assert "ranks.py:" in done.stderr and "time.sleep(600)" in done.stderr
        assert "rank 0 of 3 has waited for" in done.stderr or "rank 2 of 3 has waited for" in done.stderr
    if fault == "raise":
        assert 'raise ValueError("no such batch")' in done.stderr


# The end of a run -----------------------------------------------------------------------------------------------------

SLEEPER = """
import os, signal, subprocess, sys, time
if "early" in sys.argv:
    print("ready", flush=True)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "parent" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
import minigrad as mg
mg.distributed.communicator().barrier()
if "early" not in sys.argv:
    print("ready", flush=True)
time.sleep(300)
"""
DEATHS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}


def left(mark):
    """What is left of a run: the processes with a mark in their environment, with their command lines."""
    found = {}
    for number in guard.marked(mark):
        with contextlib.suppress(OSError):
            found[number] = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


@contextlib.contextmanager
def sleeping(tmp_path, *how, **options):
    """A run whose ranks sleep, and the mark of its processes, which are killed at the end."""
    script, mark = tmp_path / "sleeper.py", secrets.token_hex(16)
    script.write_text(SLEEPER)
    command = [sys.executable, "-m", "minigrad.distributed", "-n", "2", str(script), *how]
    variables = os.environ | {"PYTHONPATH": str(HERE.parents[1]), "MINIGRAD_TEST": mark}
    if hasattr(signal, "SIGHUP"):  # a run ignores these if `nohup`, or a shell in the background, started the tests
        options["preexec_fn"] = lambda: [signal.signal(n, signal.SIG_DFL) for n in (signal.SIGHUP, signal.SIGINT)]
    run = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    try:
        assert b"ready" in run.stdout.readline()
        yield run, mark
    finally:
        guard.end_all(mark)
        run.communicate()


def ended(mark, seconds=60.0):
    """Whether all processes of a run end, on a machine however busy."""
    end = time.monotonic() + seconds
    while left(mark) and time.monotonic() < end:
        time.sleep(0.1)
    return not left(mark)


needs_proc = pytest.mark.skipif(not guard.PROCESSES.exists(), reason="the system lists no environments in files")


@needs_mpi
def test_each_run_has_a_folder_of_its_own_for_the_files_of_mpirun(tmp_path, monkeypatch):
    """A killed mpirun leaves files, which would keep a later one with the same process number from starting."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = tmp_path / "where.py"
    script.write_text("import os; print(*[f for f in os.listdir(os.environ['TMPDIR']) if f.startswith('minigrad-')])")
    folders = [started("-n", "1", "", script=script).stdout.split() for _ in range(2)]
    assert [len(each) for each in folders] == [1, 1] and folders[0] != folders[1]
    assert not [path for path in tmp_path.iterdir() if path != script]


def ends_by(death, run, mark):
    """The launcher ends with the code of this signal, says so in words, and nothing is left."""
    said = run.communicate(timeout=60)[1].decode()
    assert run.returncode == DEATHS[death]
    assert ended(mark), left(mark)
    assert "Traceback" not in said


@needs_mpi
@needs_proc
@pytest.mark.parametrize("how", [[], ["early"], ["stubborn", "parent"]], ids=" ".join)
@pytest.mark.parametrize("death", DEATHS)
def test_nothing_is_left_when_the_launcher_ends(death, how, tmp_path):
    """The signal is for the launcher alone, as with `kill` and with managers of services."""
    with sleeping(tmp_path, *how) as (run, mark):
        run.send_signal(getattr(signal, death))
        ends_by(death, run, mark)


@needs_mpi
@needs_proc
@pytest.mark.parametrize("death", DEATHS)
def test_nothing_is_left_when_a_signal_is_for_all(death, tmp_path):
    """As a terminal sends it: twice, because users do."""
    with sleeping(tmp_path, "parent", start_new_session=True) as (run, mark):
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, getattr(signal, death))
        ends_by(death, run, mark)


@needs_mpi
@needs_proc
@pytest.mark.parametrize(
    "victims", ["guard.py", r"^\S+(mpirun|prterun) ", "mpirun", "minigrad.distributed", "mpirun|minigrad.distributed"]
)
def test_nothing_is_left_when_the_programs_between_are_killed(victims, tmp_path):
    """Also by a name that two of them have in their command lines, as by `pkill -f`."""
    with sleeping(tmp_path) as (run, mark):
        found = [number for number, command in left(mark).items() if re.search(victims, command)]
        assert found
        for number in found:
            os.kill(number, signal.SIGKILL)
        run.communicate(timeout=60)
        assert run.returncode != 0
        assert ended(mark), left(mark)


@needs_proc
def test_processes_with_a_mark_are_listed_without_files_too(monkeypatch):
    """As on a Mac, by `ps`."""
    mark = secrets.token_hex(16)
    process = subprocess.Popen(["sleep", "300"], env=os.environ | {guard.MARK: mark})
    try:
        end = time.monotonic() + 60
        while not guard.marked(mark):  # when a program starts, its environment is empty for a moment
            assert time.monotonic() < end
        assert guard.marked(mark) == [process.pid]
        if shutil.which("ps"):
            monkeypatch.setattr(guard, "PROCESSES", Path("/nowhere"))
            assert guard.marked(mark) == [process.pid]
    finally:
        guard.end_all(mark)
    assert process.wait() == -signal.SIGKILL


# The launcher ---------------------------------------------------------------------------------------------------------


def test_options_stand_before_or_after_the_script():
    one = parsed(["-n", "3", "--timeout", "2.5", "train.py", "-n", "7"])
    other = parsed(["train.py", "--timeout", "2.5", "-n", "3", "--epochs", "7", "-n", "9"])
    assert (one.n, one.timeout, one.script) == (7, 2.5, ["train.py"])
    assert (other.n, other.timeout, other.script) == (3, 2.5, ["train.py", "--epochs", "7", "-n", "9"])
    assert parsed(["-m", "minigrad.examples", "names_gpt"]).module


@pytest.mark.parametrize("arguments", [[], ["-n", "0", "train.py"], ["--timeout", "-1", "train.py"]])
def test_wrong_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        parsed(arguments)
    assert "usage: python -m minigrad.distributed" in capsys.readouterr().err


def test_ranks_share_the_processors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    found = environment(4, 30.0)
    assert (found["OMP_NUM_THREADS"], found["OPENBLAS_NUM_THREADS"], found["MINIGRAD_TIMEOUT"]) == ("2", "5", "30.0")


@pytest.mark.parametrize("unguarded", [False, True])
@pytest.mark.parametrize(("version", "option"), [("Open MPI 5", "--map-by"), ("HYDRA build", None)])
@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for mpirun")
def test_the_launcher_calls_the_mpirun_that_it_finds(version, option, unguarded, tmp_path, monkeypatch, capfd):
    program = tmp_path / "mpirun"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || printf "%s " "$@"\n')
    program.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    if unguarded:
        monkeypatch.delattr(os, "getpgrp")  # as on Windows
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert main(["-n", "2", "train.py", "--epochs", "3"]) == 0
    said = capfd.readouterr().out
    assert said.endswith(f"-n 2 {tmp_path}/python -m mpi4py train.py --epochs 3 ")
    assert ("--map-by :OVERSUBSCRIBE" in said) == (option is not None)


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False), (None, False)])
@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for mpirun")
def test_open_mpi_runs_as_root_only_with_an_option(user, allowed, tmp_path, monkeypatch):
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\necho Open MPI\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    if user is None:
        monkeypatch.delattr(os, "geteuid")  # as on Windows
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--allow-run-as-root" in mpirun()) == allowed


def test_without_mpirun_the_launcher_says_what_installs_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["train.py"]) == 1
    assert "There is no mpirun" in capsys.readouterr().err


# Which communicator ---------------------------------------------------------------------------------------------------


def test_without_mpirun_there_is_one_rank(monkeypatch):
    monkeypatch.setattr(mpi, "_OF_PROCESS", [])
    for name in mpi.SIZES:
        monkeypatch.delenv(name, raising=False)
    assert repr(mg.distributed.communicator()) == "<Communicator: rank 0 of 1, alone>"
    assert mg.distributed.communicator() is mg.distributed.communicator()


def test_ranks_of_mpirun_need_mpi4py(monkeypatch):
    monkeypatch.setattr(mpi, "_OF_PROCESS", [])
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    with pytest.raises(mg.PackageError, match="a run of 4 ranks needs the package mpi4py"):
        mg.distributed.communicator()


def test_an_mpirun_of_another_mpi_is_named(monkeypatch):
    """Each rank would find itself alone, and train on its own."""
    world = types.SimpleNamespace(Get_size=lambda: 1, size=1)
    fake = types.SimpleNamespace(COMM_WORLD=world, Get_library_version=lambda: "MPICH Version: 4.3\nmore")
    monkeypatch.setattr(mpi, "_OF_PROCESS", [])
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", types.SimpleNamespace(MPI=fake))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", fake)
    with pytest.raises(mg.DistributedError, match=r"mpirun has started 2 ranks, and mpi4py finds 1[^$]*MPICH Version"):
        mg.distributed.communicator()


def test_the_timeout_is_a_number_of_seconds(monkeypatch):
    monkeypatch.setenv("MINIGRAD_TIMEOUT", "2.5")
    assert timeout_set() == 2.5
    monkeypatch.setenv("MINIGRAD_TIMEOUT", "long")
    with pytest.raises(mg.ConversionError, match="MINIGRAD_TIMEOUT is a number of seconds above 0, not 'long'"):
        timeout_set()
