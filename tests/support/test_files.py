"""Files are written completely or not at all, and only one process at a time changes a file."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.support import files
from minigrad.support.files import ABANDONED, HOST, locked, whole_file, write_whole

ROOT = Path(mg.__file__).parents[1]
posix = pytest.mark.skipif(os.name == "nt", reason="signals and modes of POSIX")


def start(code, *arguments):
    """Start a Python process."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def names(folder):
    return sorted(each.name for each in folder.iterdir())


# ---- whole files -----------------------------------------------------------------------------------------------------


def test_error_in_the_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "before")
    with pytest.raises(ZeroDivisionError), whole_file(path) as temporary:
        temporary.write_text("half of")
        raise ZeroDivisionError
    assert path.read_text() == "before" and names(tmp_path) == ["a.txt"]


KILLED = """
    import os, sys
    from minigrad.support import files
    files.os.replace = lambda *_: os.kill(os.getpid(), 9)
    files.write_whole(sys.argv[1], "after")
"""


@posix
def test_files_of_a_killed_process_are_removed_by_the_next_save(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "before")
    assert start(KILLED, path).wait() == -signal.SIGKILL
    assert path.read_text() == "before" and len(names(tmp_path)) == 2
    write_whole(tmp_path / "b.txt", "another")
    assert names(tmp_path) == ["a.txt", "b.txt"]


def left(folder, host, process):
    path = folder / f".minigrad-{host:08x}-{process}-0.part"
    path.touch()
    return path


@posix
def test_files_of_a_running_process_are_left_alone(tmp_path):
    write_whole(tmp_path / "a.txt", "whole")
    running, elsewhere, mine = left(tmp_path, HOST, os.getppid()), left(tmp_path, HOST ^ 1, 1), tmp_path / ".mine.part"
    mine.touch()
    old = left(tmp_path, HOST ^ 1, 2)
    os.utime(old, (0, time.time() - ABANDONED - 1))
    earlier = left(tmp_path, HOST, os.getpid())  # of an earlier process with the same id
    with whole_file(tmp_path / "b.txt") as first:
        first.write_text("b")
        write_whole(tmp_path / "c.txt", "c")
    assert running.exists() and elsewhere.exists() and mine.exists()
    assert not old.exists() and not earlier.exists()
    assert (tmp_path / "b.txt").read_text() == "b"


@posix
def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.txt", tmp_path / "link.txt"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    write_whole(link, "after")
    assert link.is_symlink() and real.read_text() == "after" and stat.S_IMODE(real.stat().st_mode) == 0o640


@posix
def test_a_device_is_written_to_and_not_replaced():
    write_whole(os.devnull, "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_path_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(mg.FileError, match=r"there is no folder .*nowhere\n  .*: make the folder first"):
        write_whole(tmp_path / "nowhere" / "a.txt", "")
    with pytest.raises(mg.FileError, match="cannot be written: it is a folder"):
        write_whole(tmp_path, "")


def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("mine")
    path.chmod(0o444)
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)  # root may write any file
    with pytest.raises(mg.FileError, match="cannot be written: it is write-protected"):
        write_whole(path, "other")
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_synchronised_does_not_matter(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", fsync)
    write_whole(tmp_path / "a.txt", "whole")
    assert (tmp_path / "a.txt").read_text() == "whole"


@pytest.mark.parametrize("before", [None, "before"])
def test_error_while_writing_is_raised_and_leaves_the_old_file(tmp_path, before):
    path = tmp_path / "numbers"
    if before:
        path.write_text(before)
    with pytest.raises(ZeroDivisionError), whole_file(path) as temporary:
        temporary.write_text("half of")
        1 / 0  # noqa: B018
    assert [p.read_text() for p in tmp_path.iterdir()] == ([before] if before else [])


def test_a_full_device_and_a_lock_that_cannot_be_made_are_errors_in_words(tmp_path, monkeypatch):
    if Path("/dev/full").exists():
        with pytest.raises(mg.StorageError, match="/dev/full cannot be written: No space left on device"):
            write_whole("/dev/full", "words")

    def refused(*given):
        raise OSError(30, "Read-only file system", str(given[0]))

    monkeypatch.setattr(files.os, "open", refused)
    with pytest.raises(mg.StorageError, match=r"a\.txt cannot be written: Read-only file system"):
        locked(tmp_path / "a.txt").__enter__()


def test_block_that_writes_no_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "numbers"):
        pass
    assert not [*tmp_path.iterdir()]


# ---- locks -----------------------------------------------------------------------------------------------------------


HOLDING = """
    import sys
    from minigrad.support.files import locked
    with locked(sys.argv[1]):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.mark.slow
def test_a_lock_ends_with_its_process_however_it_ends(tmp_path):
    path = tmp_path / "count"
    holder = start(HOLDING, path)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(mg.FileError, match="count cannot be changed: another process"), locked(path, seconds=0.05):
        pass
    holder.kill()
    holder.wait()
    with locked(path, seconds=5.0):
        pass


def test_threads_exclude_each_other(tmp_path):
    path, count = tmp_path / "count", []

    def add():
        for _ in range(20):
            with locked(path):
                count.append(len(count))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == list(range(80))


@posix
def test_a_file_system_without_locks_is_used_without(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path / "count"):
        write_whole(tmp_path / "count", "1")
    assert (tmp_path / "count").read_text() == "1"
