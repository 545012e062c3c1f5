"""Machine code on disk: damaged files are ignored, and no function raises an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.compile.codegen import disk_cache

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_saved_code_is_found(cache):
    assert disk_cache.load("k") is None
    disk_cache.save(["k"], b"code")
    assert disk_cache.load("k") == b"code"
    assert [path.name for path in cache.iterdir()] == ["k"]


def test_several_names_share_a_file(cache):
    disk_cache.save(["a"], b"before")
    disk_cache.save(["k", "a", "b"], b"code" * 100)
    assert {disk_cache.load(name) for name in "kab"} == {b"code" * 100}
    assert len({path.stat().st_ino for path in cache.iterdir()}) == 1


def test_without_links_the_first_name_has_the_code(cache, monkeypatch):
    def refused(*args):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refused)
    disk_cache.save(["k", "a"], b"code")
    assert disk_cache.load("k") == b"code" and disk_cache.load("a") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 64])
def test_damaged_entry_is_ignored(cache, damage):
    disk_cache.save(["k"], b"code")
    (cache / "k").write_bytes(damage)
    assert disk_cache.load("k") is None
    disk_cache.save(["k"], b"code")
    assert disk_cache.load("k") == b"code"


def test_truncated_entry_is_ignored(cache):
    disk_cache.save(["k"], b"code" * 100)
    whole = (cache / "k").read_bytes()
    (cache / "k").write_bytes(whole[:-1])
    assert disk_cache.load("k") is None


def test_cache_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("MINIGRAD_CACHE", "off")
    disk_cache.save(["k"], b"code")
    assert disk_cache.folder() is None and disk_cache.load("k") is None


def test_a_folder_that_cannot_be_made_is_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path / "file" / "cache"))
    disk_cache.save(["k"], b"code")
    assert disk_cache.load("k") is None


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    disk_cache.save(["k"], b"code")
    assert list(cache.iterdir()) == []


def test_oldest_entries_are_removed(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "LIMIT", 1000)
    for number in range(5):
        disk_cache.save([f"k{number}"], bytes(168))
        os.utime(cache / f"k{number}", (number, number))
    disk_cache.load("k0")  # used last, so it is not the oldest
    disk_cache.save(["k5"], bytes(168))
    left = {path.name for path in cache.iterdir()}
    assert {"k0", "k5"} <= left and "k1" not in left
    assert sum(path.stat().st_size for path in cache.iterdir()) <= 1000


def test_the_size_of_the_cache_is_looked_at_once_in_a_while(cache, monkeypatch):
    looks = []
    monkeypatch.setattr(disk_cache, "_shrink", looks.append)
    monkeypatch.setattr(disk_cache, "LIMIT", 64_000)
    for number in range(20):
        disk_cache.save([f"k{number}"], bytes(100))
    assert len(looks) == 2, "first, and after a thousand bytes"


def test_an_entry_that_another_process_deletes_is_not_an_error(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "LIMIT", 0)
    cache.mkdir()
    (cache / "a").symlink_to(cache / "gone")  # listed, but its target is missing
    disk_cache.save(["k"], b"code")
    assert [path.name for path in cache.iterdir()] == ["a"]


@pytest.mark.slow
def test_cache_is_shared_by_two_processes(cache):
    program = "import minigrad as mg; print(mg.jit(lambda x: (x * 3).tanh())(mg.ones(7)).tolist())"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIGRAD_CACHE": str(cache)}
    both = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    results = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0] and results[0] == results[1] != ""
    saved = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert saved
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE)
    assert {path.name for path in cache.iterdir()} == {path.name for path in saved}
