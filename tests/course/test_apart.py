"""Hostile submissions between honest ones: the honest points, an end, no process and no file left, nothing changed."""

import contextlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from minigrad_course import apart, grading
from tests.course import hostile

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandboxes are those of Linux")
slow = pytest.mark.slow


def sandboxes(*names):
    return [pytest.param(name, id=name or "none") for name in names]


@pytest.fixture(scope="module")
def needs(tmp_path_factory):
    """Skip where a sandbox does not work."""
    works = {name: not name or apart._works(name, tmp_path_factory.mktemp("any")) for name in apart.SANDBOXES}
    return lambda name: works[name] or pytest.skip(f"{name} does not work here")


def contents(folder):
    """Everything that can be seen of each file in a folder, without following links."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in [place, *[os.path.join(place, name) for name in names]]:
            about = os.lstat(path)
            text = Path(path).read_bytes() if stat.S_ISREG(about.st_mode) else b""
            found[path] = about.st_mode, about.st_mtime, hash(text)
    return found


def left(place):
    """The processes below this one, and all others that were started in a folder of the grader's."""
    found = set(apart._processes())
    for number in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.fsencode(place) in Path("/proc", number, "environ").read_bytes():
                found.add(int(number))
    return found


def started(place, running):
    """What is left of processes that were started since others were running; those may start processes of their own."""
    return {number for number in left(place) - running if parent_of(number) not in running}


def parent_of(number):
    with contextlib.suppress(OSError):
        return int(Path("/proc", str(number), "stat").read_bytes().rpartition(b")")[2].split()[1])
    return None


def command_of(number):
    with contextlib.suppress(OSError):
        return Path("/proc", str(number), "cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def nothing_left(outside, place):
    """In this block a folder does not change; at its end no process and no file is left."""
    before, running = contents(outside), left(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        yield patch
    assert not started(place, running)
    assert contents(outside) == before
    assert list(place.iterdir()) == []


@pytest.fixture(scope="module", params=sandboxes("bwrap", ""))
def graded(request, needs, tmp_path_factory):
    """The table by student."""
    needs(request.param)
    outside, place = tmp_path_factory.mktemp("teacher"), tmp_path_factory.mktemp("places")
    (outside / "secret").write_text("of the teacher")
    hostile.submit(outside / "submitted", outside, request.param)
    with nothing_left(outside, place) as patch:
        patch.setattr(apart, "MEMORY", 512 << 20)
        patch.setattr(apart, "DISK", 256 << 20)
        grades = grading.grade(outside / "submitted", seconds=60.0, cell_seconds=1.0, sandbox=request.param)
    rows = grading.table(grades)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: dict(zip(rows[0], row)) for row in rows[1:]}


@on_linux
@slow
def test_honest_submissions_keep_their_points(graded):
    for student in (*hostile.HONEST, r"\udcff\n\x1b[31m", "answers twice"):
        assert graded[student]["sum"] == "3" and graded[student]["notes"] == "", graded[student]


@on_linux
@slow
def test_hostile_submissions_get_the_points_of_their_answers(graded):
    cells = hostile.CELLS | hostile.FORGERIES
    most = {student: points for student, (*_, points) in cells.items() if student in graded}
    found = {student: graded[student]["sum"] for student in most}
    assert hostile.ALSO_WITHOUT_SANDBOX <= most.keys()
    assert found == {student: found[student] if points is None else str(points) for student, points in most.items()}
    assert all("cannot be read" in graded[student]["notes"] for student in hostile.FILES)


@on_linux
@slow
def test_the_table_says_what_was_too_much_and_in_plain_letters(graded):
    for student, words in {
        "leaves": "its process ended early", "forks": " more than ",  # processes, or memory: whichever is seen first
        "uses up memory with its children": "0.5 GB of memory", "answers with 8 MB": "the answer is too long",
        "raises colours": r"stopped with ValueError: <b>\x1b[31m",
    }.items():
        assert student not in graded or words in graded[student]["notes"]
    assert not any("\x1b" in text or "\n" in text for row in graded.values() for text in row.values())


@on_linux
@slow
def test_a_sandbox_hides_and_protects_everything_else(graded):
    """An intruder that succeeds says so by its name."""
    for student in hostile.INTRUDERS.keys() & graded.keys():
        assert graded[student]["name in the notebook"] == "" and graded[student]["sum"] == "3", graded[student]


@on_linux
@slow
@pytest.mark.parametrize("sandbox", sandboxes("bwrap", "unshare", ""))
def test_what_never_ends_is_ended(tmp_path, needs, sandbox):
    needs(sandbox)
    outside, place = tmp_path / "teacher", tmp_path / "places"
    outside.mkdir()
    place.mkdir()
    for student, source in hostile.ENDLESS.items() if sandbox == "bwrap" else ():
        hostile.write(outside / student, hostile.notebook(source))
    hostile.write(outside / "daemons", hostile.notebook(hostile.DAEMON, hostile.ENDLESS["catches everything"]))
    with nothing_left(outside, place):
        grades = grading.grade(outside, seconds=3.0, cell_seconds=1.0, sandbox=sandbox)
    assert {grade.said for grade in grades} == {"not done after 3 seconds"}


@on_linux
def test_more_processes_than_allowed_are_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "PROCESSES", 5)
    hostile.write(tmp_path / "forks", hostile.notebook(hostile.CELLS["forks"][0].replace("150", "10")))
    (first, _) = grading.grade(tmp_path, seconds=60.0)
    assert first.said == "it started more than 5 processes"


@on_linux
def test_the_processes_of_a_grader_that_is_killed_end(tmp_path):
    hostile.write(tmp_path / "endless", hostile.notebook(hostile.ENDLESS["catches everything"]))
    command = [sys.executable, "-m", "minigrad_course.grading", str(tmp_path)]
    place = tmp_path / "places"
    place.mkdir()
    environment, running = {**os.environ, "TMPDIR": str(place)}, left(place)
    grader = subprocess.Popen(command, cwd=hostile.ROOT, env=environment, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not any(b"--apart" in command_of(number) for number in started(f"HOME={place}", running)):
        assert time.monotonic() < end
        time.sleep(0.1)
    grader.kill()
    grader.wait()
    end = time.monotonic() + 60
    while started(f"HOME={place}", running):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_process_ends_when_the_one_that_gave_its_order_is_gone():
    """Also where no signal says so: a process of a sandbox may start while its parent is killed."""
    endless = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    order = {"unit": "00_start", "cells": [[endless, "", False]], "cell_seconds": 600, "key": "k", "seconds": 600}
    command = [sys.executable, "-m", "minigrad_course.grading", "--apart"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.stdin.close()
        assert process.wait(60) == 1
    finally:
        process.kill()


def test_a_folder_is_too_large_where_it_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(bytes(200_000))
    (tmp_path / "folder").mkdir()
    assert apart._size(tmp_path) == 200_000 + apart.ENTRY
    assert apart._size(tmp_path / "nowhere") == 0

    def scandir(path):
        raise PermissionError(path)

    monkeypatch.setattr(apart.os, "scandir", scandir)
    assert apart._size(tmp_path) > apart.DISK


def test_only_lines_with_the_key_count():
    others = b'}\n\xff\n["k"]\n{"key": 1}\n{"key": ["k"]}\n{"key": "other k"}\n' + b"[" * 10**5 + b'"k"\n'
    assert list(apart._lines(others + b'{"key": "k", "a": 1}', "k")) == [{"key": "k", "a": 1}]


def test_a_process_is_ended_where_the_system_has_no_groups(monkeypatch):
    monkeypatch.delattr(apart.os, "killpg", raising=False)
    before = set(apart._processes())
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    apart._end(process, before)
    assert process.returncode not in (0, None)


def test_a_process_is_run_where_the_system_cannot_fork(monkeypatch, tmp_path):
    monkeypatch.delattr(apart.os, "fork", raising=False)
    assert apart.run_apart("this", {}, 60.0, "", tmp_path) == ([], "its process ended early")


@on_linux
def test_a_process_whose_parent_has_ended_already_ends():
    command = "from minigrad.distributed.guard import ends_with_parent\nends_with_parent()()\nprint('it runs')"
    run = subprocess.run([sys.executable, "-c", command], cwd=hostile.ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")


def test_nothing_is_limited_where_the_system_has_no_limits(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert apart._limit(1.0) is None


def test_processes_are_not_seen_and_options_not_set_where_the_system_has_none(monkeypatch):
    monkeypatch.setattr(apart.os.path, "isdir", lambda path: False)
    monkeypatch.setattr(apart.ctypes, "CDLL", lambda name: object())
    assert apart._processes() == {} and apart._control(apart.ADOPT, 0) is None


@pytest.mark.slow
def test_the_best_sandbox_that_works_is_used(monkeypatch, tmp_path):
    monkeypatch.setattr(apart, "_within", lambda name, place, hidden: [f"/nowhere/{name}"] if name == "bwrap" else [])
    assert apart.sandbox_for(tmp_path) == "unshare"
    monkeypatch.setattr(apart, "_within", lambda *args: ["/nowhere"])
    assert apart.sandbox_for(tmp_path) == ""
