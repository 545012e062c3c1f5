"""The guide lists the functions of a first call in their order."""

import inspect
import re
import sys
from pathlib import Path

import minigrad as mg
from minigrad import compile as compiler

ROOM = Path(compiler.__file__).parent
GUIDE = ROOM.parents[1] / "CONTRIBUTING.md"


def listed():
    """The files and functions of the list."""
    return re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", GUIDE.read_text("utf-8"), re.M)


def entered(call):
    """The functions of the compiler that a call enters, in order of the first entry: the file and the line of each."""
    found = {}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOM)):
            found.setdefault((Path(code.co_filename).relative_to(ROOM).as_posix(), code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [*found]


def place(file, name):
    """The file and the line of a function."""
    found = sys.modules[f"minigrad.compile.{file.removesuffix('.py').replace('/', '.')}"]
    for part in name.split("."):
        found = getattr(found, part)
    return file, inspect.unwrap(found).__code__.co_firstlineno


def test_the_functions_of_a_first_call_are_listed_in_order():
    x, f = mg.asarray([0.5, 1.25, 7.75]), mg.jit(lambda x: mg.sum(mg.tanh(x * x) / 7.0625))
    order = entered(lambda: f(x))
    places = [place(*row) for row in listed()]
    assert [order.index(each) for each in places] == sorted(map(order.index, places)) and len(places) > 15


def test_the_functions_of_a_second_call_are_listed():
    x, f = mg.asarray([0.5, 1.25]), mg.jit(lambda x: mg.tanh(x) * 3)
    f(x)
    order = entered(lambda: f(x))
    kept = [row for row in listed() if place(*row) in order]
    assert kept == [
        ("jitted.py", "Jitted.__call__"), ("functions/recording.py", "Recording.run"),
        ("running/program.py", "Program.__call__"), ("running/frame.py", "Frame.run"),
    ]
