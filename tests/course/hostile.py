"""Submissions that try to stop, deceive or outlive the grader, or to reach what is not theirs.

`{outside}` in a cell is a folder of the teacher's, with the submissions in it.
"""

import json
import os
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
NAME = "00_start_exercise.ipynb"
HONEST = ("ada", "jürgen 'j' \"q\"", "zoë")
TASKS = ("gradient_of_a", "mixed_grad")  # a value and a function of unit 00
RIGHT = "gradient_of_a = -20", "def mixed_grad(g, out, a, b):\n    return g * (3 * b + 6), g * 3 * a"
OPEN = "gradient_of_a = ...", "def mixed_grad(g, out, a, b):\n    raise NotImplementedError"
ALL, NONE = 3, 0  # points


def notebook(*own, answers=RIGHT, student=""):
    """A notebook of unit 00: the student's own cells, then the answers, each with its check."""
    begin = f'import minigrad_course as course\ncourse.begin("00_start", student={student!r})'
    cells = [nbformat.v4.new_code_cell(source) for source in (begin, *own)]
    for task, answer in zip(TASKS, answers):
        for grade_id, source, checks in ((task, answer, False), (f"check-{task}", f'course.check("{task}")', True)):
            about = {"nbgrader": {"grade_id": grade_id, "grade": checks}}
            cells.append(nbformat.v4.new_code_cell(source, metadata=about))
    return nbformat.v4.new_notebook(cells=cells)


def to_every_file(data):
    """A cell that writes bytes to all open files, and so to the grader's too."""
    return f"""
import os
for number in range(1, 64):
    try:
        os.write(number, {data!r})
    except OSError:
        pass
"""


def line(task, **more):
    return json.dumps({"task": task, **more}).encode() + b"\n"


FORGED = b"\n" + b"".join(line(task, said="", value=-20) for task in TASKS) + line("", name="forged")
PATCHED = """
import gc
for names in gc.get_objects():
    if type(names) is dict and "carry_out" in names:
        names["_said"] = lambda *args: ""
course.check = lambda *args, **more: print("right")
"""
CATCHING = """
import time
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
"""
DAEMON = """
import os, subprocess, time
subprocess.Popen(["sleep", "600"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
"""
DEEP = """
import os, pathlib
pathlib.Path("link").symlink_to("{outside}")
for _ in range(1500):
    os.mkdir("x" * 20)
    os.chdir("x" * 20)
pathlib.Path("link").symlink_to("{outside}/secret")
os.chmod(".", 0o500)
"""
YES = """
class Yes(float):
    __eq__ = __le__ = __ge__ = __lt__ = __bool__ = lambda *args: True
    __hash__ = None
    def tolist(self): return self
"""

# What a notebook of right answers does first -> its points.
CELLS = {
    "endless": ("while True:\n    pass", ALL),
    "exits": ("import sys\nsys.exit(1)", ALL),
    "leaves": ("import os\nos._exit(0)", NONE),
    "prints 300 MB": ("for _ in range(300):\n    print('x' * (1 << 20))", ALL),
    "writes 1 GB": ("file = open('big', 'wb')\nfor _ in range(64):\n    file.write(bytes(1 << 24))", ALL),
    "takes 20 GB": ("numbers = bytes(20 << 30)", ALL),
    "leaves a thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()", ALL),
    "deletes its folder": ("import os, shutil\nshutil.rmtree(os.getcwd())", None),
    "writes a bracket": (to_every_file(b"}\n"), None),
    "writes other types": (to_every_file(line([1], said={}) + line({}, value={"dict": [[[1]]]}) + b"7\n"), None),
    "writes no text": (to_every_file(b"\xff\n"), None),
    "writes 16 MB": (to_every_file(b"7\n").replace("b'7\\n'", "b'7\\n' * (1 << 23)"), None),
    "writes deep lines": (to_every_file(b"[" * 100_000 + b"\n"), None),
    "puts pipes and links into its folder": (
        "import os\nfor number, name in enumerate(['results.jsonl', 'grades.csv', *os.listdir()]):\n"
        "    if os.path.exists(name):\n        os.rename(name, f'{name}.old')\n"
        "    [os.mkfifo, lambda to: os.symlink('/dev/zero', to)][number % 2](name)", ALL),
    "becomes another program": ("import os\nos.execv('/bin/sleep', ['sleep', '600'])", NONE),
    "closes all files": ("import os\nos.closerange(0, 64)", NONE),
    "leaves daemons": (DAEMON, ALL),
    "forks": ("import os\nfor _ in range(150):\n    if os.fork() == 0:\n        break" + CATCHING, NONE),
    "makes many files": ("i = 0\nwhile i := i + 1:\n    open(str(i), 'w').close()", None),
    "uses up memory with its children": (
        "import os\nfor _ in range(4):\n    if os.fork() == 0:\n"
        "        numbers = bytearray(os.urandom(1)) * (100 << 20)\n        break" + CATCHING, NONE),
    "crashes": ("import ctypes\nctypes.string_at(0)", NONE),
    "leaves a deep folder": (DEEP, None),
    "reads the keyboard": ("import sys\nsys.stdin.read()\ninput('?')", ALL),
    "has a long name": ('course.begin("00_start", student="\\ud800\\x1b[31m" + "x" * 10_000_000)', None),
    "has a formula as name": ('course.begin("00_start", student="=cmd|\' /C calc\'!A0")', None),
}
# The same with answers that are open or wrong.
FORGERIES = {
    "prints a line": ('print(\'{"task": "gradient_of_a", "said": ""}\', "passed")', OPEN, NONE),
    "forges lines": (to_every_file(FORGED) + "\nos._exit(0)", OPEN, NONE),
    "patches the checker": (PATCHED, (OPEN[0], "mixed_grad = 0"), 2),  # a function is checked where the notebook runs
    "answers yes": (YES, ("gradient_of_a = Yes()", OPEN[1]), NONE),
    "answers without end": ("", ("gradient_of_a = []\ngradient_of_a.append(gradient_of_a)", OPEN[1]), NONE),
    "answers 10 ** 5000": ("", ("gradient_of_a = 10 ** 5000", OPEN[1]), NONE),
    "answers with 8 MB": ("", ("gradient_of_a = 'x' * (8 << 20)", OPEN[1]), NONE),
    "raises colours": ("", (OPEN[0], "def mixed_grad(*args):\n    raise ValueError('<b>\\x1b[31m\\n=1+2')"), NONE),
}
# These end at the limit of the notebook only.
ENDLESS = {
    "catches everything": CATCHING,
    "ignores the alarm": "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True:\n    pass",
    "stops": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
}
# Only a sandbox stops these.  Each says by its name what it could do.
INTRUDERS = {
    "ends the grader": "import os\nos.kill(os.getppid(), 9)",
    "reads others": "import os\nname = 'read' * os.path.exists('{outside}/secret')",
    "lists others": "import os\nname = ''.join(os.listdir('{outside}/submitted'))",
    "changes others": "import pathlib\npathlib.Path('{outside}/secret').write_text('mine')\nname = 'changed'",
    "makes the secret readable": "import os\nos.chmod('{outside}/secret', 0o777)\nname = 'changed'",
    "changes the course": "import minigrad\nopen(minigrad.__file__, 'a').close()\nname = 'changed'",
    "leaves a file": "open('{outside}/left', 'w').close()\nname = 'left'",
    "raises its limits": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40,) * 2)\nname = 'raised'",
    "finds the grader": "import os\nname = 'found' * (len(list(filter(str.isdecimal, os.listdir('/proc')))) > 9)",
}
# These touch nothing but their own folder and processes, so that they may run on a developer's machine.
ALSO_WITHOUT_SANDBOX = {
    "endless", "leaves", "leaves a thread", "deletes its folder", "writes a bracket", "writes no text",
    "puts pipes and links into its folder", "leaves daemons", "forks", "leaves a deep folder", "forges lines",
}
# Not notebooks.  Each gets the path of its file, and makes something there.
FILES = {
    "is not JSON": lambda path: path.write_text("{"),
    "is not text": lambda path: path.write_bytes(b"\xff"),
    "is a list": lambda path: path.write_text("[1]"),
    "has a number of cells": lambda path: path.write_text('{"cells": 5}'),
    "has numbers as code": lambda path: path.write_text('{"cells": [{"cell_type": "code", "source": [1]}]}'),
    "is deep": lambda path: path.write_text("[" * 200_000),
    "is large": lambda path: path.write_text(" " * (21 << 20)),
    "is a folder": lambda path: path.mkdir(),
    "is a link to itself": lambda path: path.symlink_to(path),
    "is a device": lambda path: path.symlink_to("/dev/zero"),
    "is a pipe": lambda path: os.mkfifo(path),
    "is another's": lambda path: path.symlink_to(path.parents[1] / "ada" / path.name),
}


def write(folder, content):
    """Write a submission into the folder of a student."""
    folder.mkdir()
    nbformat.write(content, folder / NAME)


def submit(folder, outside, sandbox):
    """Write a folder for each of these submissions, between those of honest students.

    Without a sandbox these are only the ones that depend on it; the limits are the same everywhere.
    """
    folder.mkdir()
    for student in HONEST:
        write(folder / student, notebook())
    for student, (source, *answers, _) in (CELLS | FORGERIES).items():
        if sandbox or student in ALSO_WITHOUT_SANDBOX:
            content = notebook(source.replace("{outside}", str(outside)), answers=answers[0] if answers else RIGHT)
            write(folder / student, content)
    for student, source in INTRUDERS.items() if sandbox else ():
        begin = 'course.begin("00_start", student=globals().get("name", ""))'
        write(folder / student, notebook(source.replace("{outside}", str(outside)), begin))
    for student, make in FILES.items():
        (folder / student).mkdir()
        make(folder / student / NAME)
    twice = notebook()
    twice.cells += notebook(answers=OPEN).cells
    write(folder / "answers twice", twice)
    write(Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n\x1b[31m")), notebook())
    deep = folder.joinpath("is in a deep folder", *["x"] * 400)
    deep.mkdir(parents=True)
    nbformat.write(notebook(), deep / NAME)
