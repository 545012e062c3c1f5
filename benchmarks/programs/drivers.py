"""What a driver is: data, sizes and the training step of a program from a public repository, which stays as it is.

A driver gives `step, batch`: `batch()` makes the arguments of one step, `step(*batch())` trains once and gives the
loss.  A script runs as a whole, with its own arguments, until it has called `backward` often enough.
"""
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CLONES = Path(os.environ.get("PROGRAMS", "clones"))


@dataclass
class Program:
    name: str
    repository: str
    files: list[str]
    make: Callable
    script: bool = False
    changed: int = 0


PROGRAMS: dict[str, Program] = {}


def program(repository, files, folder="", edits=()):
    """Register a driver of files of a repository; `folder` of the clone is importable.

    `edits` are (file, old text, new text): lines that minigrad refuses, changed in both runs alike, and counted.
    """

    def add(make):
        def ready():
            here = CLONES / repository.replace("/", "+")
            if edits:
                here = Path(shutil.copytree(here, tempfile.mkdtemp() + "/edited"))
            for path, old, new in edits:
                text = (here / path).read_text("utf-8")
                assert text.count(old) == 1, (path, old)
                (here / path).write_text(text.replace(old, new), "utf-8")
            sys.path[:0] = [str(here / each) for each in folder.split()] + [str(here)]
            return make()

        PROGRAMS[make.__name__] = Program(make.__name__, repository, files.split(), ready, changed=len(edits))
        return make

    return add


def script(name, repository, path, arguments="", files="", before=lambda: None):
    """Register a script that is run as it is."""

    def run():
        before()
        whole = (CLONES / repository.replace("/", "+") / path).resolve()
        sys.argv = [str(whole), *arguments.split()]
        sys.path.insert(0, str(whole.parent))
        os.chdir(tempfile.mkdtemp())
        os.makedirs("a/b")
        os.chdir("a/b")
        runpy.run_path(str(whole), run_name="__main__")

    PROGRAMS[name] = Program(name, repository, [path, *files.split()], run, True)
