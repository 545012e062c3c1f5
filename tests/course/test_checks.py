"""The feedback of checks: the fault, its place and a hint; the student's line in errors; the time limit."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.support import files
from minigrad_course import limits, session
from minigrad_course.compare import difference
from minigrad_course.feedback import NotWritten, Stopped, Wrong, stopped
from minigrad_course.limits import TimeIsUp, at_most
from minigrad_course.results import FILE, Progress, report_page
from minigrad_course.session import SESSION
from minigrad_course.tasks import FunctionTask
from tests.course.answers import ANSWERS
from tests.course.running import ROOT, Notebook

RIGHT = "def mul_grad(g, out, a, b):\n    return g * b, g * a\n"


@pytest.fixture
def notebook():
    here = Notebook()
    here.run("import minigrad_course as course")
    return here


def says(notebook, *cells, check="mul_grad"):
    for cell in cells:
        notebook.run(cell)
    notebook.run(f"course.check({check!r})")
    return notebook.said[-1]


# ---- wrong, and where ------------------------------------------------------------------------------------------------


def test_feedback_says_what_is_wrong_where_and_gives_a_hint(notebook):
    assert says(notebook, "def mul_grad(g, out, a, b): return g * a, g * b") == (
        "✗ mul_grad: the gradient of a is wrong\n"
        "  Expected: -10.0, by finite differences\n"
        "  Got: 15.0\n"
        "  in mul_grad(g=5.0, out=-6.0, a=3.0, b=-2.0)\n"
        "  Hint: swapped: when a rises, the product changes b times as fast, so b belongs to the gradient of a"
    )


def test_an_unknown_mistake_gets_the_general_hint(notebook):
    said = says(notebook, "def mul_grad(g, out, a, b): return g * b * 1.01, g * a")
    assert "Expected: -10.0, by finite differences\n  Got: -10.1\n" in said and "Hint: let a rise by 0.01" in said


def test_difference_names_the_first_wrong_entry():
    yours, right = np.zeros((3, 2)), np.zeros((3, 2))
    yours[1, 0] = -1.2654
    assert str(difference(yours, right, "gradient of input 0", "by finite differences")) == (
        "gradient of input 0 is wrong at (1, 0)\n"
        "  Expected: 0.0, by finite differences\n"
        "  Got: -1.2654 (1 of 6 entries differ)"
    )


@pytest.mark.parametrize(
    ("yours", "right", "says"),
    [
        (np.zeros(3), np.zeros((3, 1)), ("the result has the wrong shape", "(3, 1)", "(3,)")),
        ("many", 2.0, ("the result is wrong", "2.0", "'many', of type str")),
        (None, 2.0, ("the result is wrong", "2.0", "None")),
        (1.0, (1.0, 2.0), ("the result is wrong", "2 values, with a comma between them", "one value, 1.0")),
        ((1.0,), (1.0, 2.0), ("the result is wrong", "2 values", "1 value")),
        ({"a": 1.0}, {"a": 1.0, "b": 2.0}, ("the result is wrong", "entries for a, b", "entries for a")),
        ({"a": 1.0, "c": 1.0}, {"a": 1.0}, ("the result is wrong", "entries for a", "entries for a, c")),
        ({"a": 2.0}, {"a": 1.0}, ("the result for a is wrong", "1.0", "2.0")),
        (np.nan, 1.0, ("the result is wrong", "1.0", "nan")),
        ("left", "right", ("the result is wrong", "'right'", "'left'")),
        ([[1], [2, 3]], 2.0, ("the result is wrong", "2.0", "[[1], [2, 3]], of type list")),
        (np.zeros(2), True, ("the result is wrong", "True", "[0.0, 0.0]")),
        (np.array([]), None, ("the result is wrong", "None", "[]")),
        (np.bool_(False), True, ("the result is wrong", "True", "False")),
        (np.array(True), True, None),
        (True, 1.0, None),
        (np.float32(0.1), 0.1, None),
        (np.nan, np.nan, None),
    ],
)
def test_difference_of_answers_of_all_kinds(yours, right, says):
    assert difference(yours, right) == says


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.task)
def test_hints_fit_answers_of_real_students(notebook, answer):
    said = says(notebook, answer.cell, check=answer.task)
    assert said.startswith("✗")
    assert answer.hint in said if answer.hint else "Hint" not in said


# ---- not written, not readable, not ending ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["raise NotImplementedError()", "pass", "...", '"What it is."', "# ?\n    pass"])
def test_a_stub_is_not_written_yet(notebook, body):
    said = says(notebook, f"def mul_grad(g, out, a, b):\n    {body}")
    assert said.startswith("○ mul_grad: not written yet")
    assert SESSION.progress.tasks == {}  # not counted as a try


def test_an_answer_without_return_is_wrong(notebook):
    said = says(notebook, "def mul_grad(g, out, a, b): g * b, g * a")
    assert "  Expected: 2 values\n  Got: None: is there a `return`?" in said


def test_check_of_a_cell_that_was_not_run_says_so(notebook):
    said = says(notebook)
    assert said == "○ mul_grad: there is no mul_grad here yet\n  Hint: run the cell that defines it"


def test_check_of_an_unreadable_cell_shows_the_line(notebook):
    said = says(notebook, "def mul_grad(g, out, a, b)\n    return g * b, g * a")
    assert said.startswith("✗ mul_grad: stopped with SyntaxError: expected ':'\n  line 1 of the cell: def mul_grad(g,")
    assert said.splitlines()[2].strip() == "^" and "brackets, colons" in said


def test_the_newest_version_counts_although_an_older_one_is_there(notebook):
    """If the old answer were checked, changes would seem to have no effect."""
    said = says(notebook, RIGHT, "def mul_grad(g, out, a, b):\n    return g * (b")
    assert "line 2 of the cell: return g * (b" in said


@pytest.mark.parametrize(
    ("body", "what", "hint"),
    [
        ("q = 1 / (a - a)\n    return q", "ZeroDivisionError", None),
        ("return f * b, f * a", "NameError: name 'f' is not defined", "run the cell that defines"),
        ("return g.sum(1, 2, 3), 0", "AttributeError", None),
        ("return mul_grad(g, out, a, b)", "RecursionError", "without end"),
    ],
)
def test_an_exception_is_shown_at_the_students_line(notebook, body, what, hint):
    said = says(notebook, f"def mul_grad(g, out, a, b):\n    {body}")
    assert f"✗ mul_grad: stopped with {what}" in said
    assert f"line 2 of the cell: {body.splitlines()[0]}" in said
    assert "notebooks/minigrad_course" not in said and (hint is None or hint in said)


def test_check_explains_a_wrong_number_of_parameters(notebook):
    assert "called with the parameters of the stub" in says(notebook, "def mul_grad(g, a, b): return g * b, g * a")


def test_an_error_of_minigrads_own_keeps_its_way_out(notebook):
    said = says(notebook, "import minigrad as mg", "def mul_grad(g, out, a, b): return mg.ones(2) + mg.ones(3), 0")
    assert "stopped with ShapeError: add: shapes (2,) and (3,)" in said and "line 1 of the cell" in said


def test_a_task_s_own_hint_stands_in_the_place_of_the_library_s():
    with pytest.raises(mg.ShapeError) as raised:
        mg.ones(2) + mg.ones(3)
    assert "Hint:" in str(raised.value)
    said = str(stopped("x", raised.value, {"do not broadcast": "sum first"}, "x([1, 2])"))
    assert "stopped with ShapeError" in said and "\n  in x([1, 2])" in said
    assert re.findall("Hint: (.*)", said) == ["sum first"]


@pytest.mark.slow
def test_check_stops_a_loop_without_end(notebook, monkeypatch):
    monkeypatch.setattr(session._task("mul_grad").__class__, "seconds", 0.2)
    loop = "def mul_grad(g, out, a, b):\n    while True:\n        a = a + 1"
    said = says(notebook, loop)
    assert said.startswith("✗ mul_grad: not done after 0.2 seconds\n  line ") and "of the cell: " in said
    assert said.endswith("does each turn of the loop come closer to its end? (Ctrl-C stops a program)")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no signals for that")
def test_a_signal_ends_what_takes_too_long_so_that_sleep_ends_too():
    with at_most(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.slow
def test_a_limit_inside_of_a_limit_leaves_the_outer_one():
    with pytest.raises(TimeIsUp), at_most(0.05):
        with at_most(60):
            pass
        while True:
            pass
    with pytest.raises(TimeIsUp), at_most(0.05), at_most(60):
        while True:
            pass


@pytest.mark.slow
def test_time_is_up_in_a_loop_that_catches_everything():
    caught = 0
    with pytest.raises(TimeIsUp), at_most(0.1):
        while True:
            try:
                while True:
                    pass
            except TimeIsUp:
                caught += 1
                if caught == 2:
                    raise


def test_time_is_up_in_a_thread_and_where_there_are_no_signals():
    outcome = []

    def work():
        try:
            with limits._by_thread(0.1):
                while True:
                    pass
        except TimeIsUp:
            outcome.append("up")
        with at_most(60):
            outcome.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert outcome == ["up", "done"]


PROFILED = """
import sys
from minigrad_course.limits import TimeIsUp, _by_thread
try:
    with _by_thread(0.05):
        while True:
            pass
except TimeIsUp:
    sys.setprofile(lambda *_: None)
    (lambda: print("called"))()
"""


@pytest.mark.slow
def test_a_profiler_works_after_time_was_up():
    """In Python 3.11, an asynchronous exception that is withdrawn makes the interpreter check for it for ever."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "called\n", done.stderr


def test_time_limit_leaves_no_timer_behind():
    with at_most(0.05):
        pass
    time.sleep(0.1)


def test_a_value_in_place_of_a_function_is_refused(notebook):
    assert "is 3, but it should be a function" in says(notebook, "mul_grad = 3")


def test_check_of_a_value_that_is_missing_says_its_form(notebook):
    said = says(notebook, "gradient_of_a = ...", check="gradient_of_a")
    assert "○ gradient_of_a: not answered yet" in said and "in the form gradient_of_a = 7" in said


def test_a_prediction_is_noted_once_and_never_refused(notebook):
    said = says(notebook, "rise = 0.01", check="rise")
    assert said.startswith("○ rise: noted, 0.01. The answer turns out to be larger.\n  x rises by 0.01.")
    assert "✓ rise" in says(notebook, "rise = 0.1", check="rise")
    assert SESSION.progress.tasks["rise"]["first"] == "0.01"


def test_check_of_an_unknown_name_suggests_a_task(notebook):
    notebook.run("course.begin('00_start')")
    assert "there is no task of that name" in says(notebook, check="mul_grda") and "mul_grad" in notebook.said[-1]
    notebook.run("course.begin('00_strat')")
    assert "there is no such unit\n  Hint: one of 00_start" in notebook.said[-1]


def test_a_notebook_shows_the_words_alone():
    with pytest.raises(Wrong) as wrong:
        course.check("mul_grad", lambda g, out, a, b: (g * a, g * b))
    assert wrong.value._render_traceback_() == str(wrong.value).splitlines()
    with pytest.raises(NotWritten):
        course.check("mul_grad", lambda g, out, a, b: None)
    with pytest.raises(Stopped):
        course.check("mul_grad", lambda g, out, a, b: 1 / 0)


# ---- variants --------------------------------------------------------------------------------------------------------


def test_a_public_answer_is_the_answer_to_another_question(notebook):
    task = session._task("mixed_grad")
    public = f"def mixed_grad(g, out, a, b):\n    return g * ({task.k} * b + {task.m}), g * {task.k} * a"
    assert "✓" in says(notebook, public, check="mixed_grad")
    refused = 0
    for student in ("Ada", "Grace", "Edsger"):
        SESSION.progress.student = student
        refused += "✗" in says(notebook, public, check="mixed_grad")
    assert refused >= 2


def test_a_variant_is_the_same_each_time_and_shows_no_answer():
    SESSION.progress.student = "Ada"
    one, other = course.task("mixed_grad"), course.task("mixed_grad")
    assert one._repr_markdown_() == other._repr_markdown_() and "out = " in one._repr_markdown_()
    for name in ("solution", "right", "k"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(one, name)


class Twice(FunctionTask):
    """Twice a number."""

    name = "twice"

    def cases(self, draw):
        yield (draw.randrange(100),)

    def right(self, x):
        return 2 * x


def test_checks_have_hidden_rounds_with_more_cases():
    called = []
    Twice().check(lambda x: called.append(x) or 2 * x, rounds=10)
    assert len(called) == 10 and len(set(called)) > 3


# ---- progress --------------------------------------------------------------------------------------------------------


def test_progress_shows_the_tasks_of_this_unit_first(notebook):
    notebook.run("course.begin('04_graphs')")
    shown = str(course.progress()).splitlines()
    assert shown[0].startswith("04_graphs: 0 of") and shown[1].startswith("  ○ ")
    others = [line for line in shown if not line.startswith(" ")][1:]
    assert len(others) > 14 and shown[-len(others) :] == others  # one line for each other part


def test_progress_is_kept_in_the_workspace(notebook, tmp_path, monkeypatch):
    inside = tmp_path / "exercises"
    inside.mkdir()
    monkeypatch.chdir(inside)
    (tmp_path / FILE).touch()
    notebook.run("course.begin('00_start', 'Ada <b>')")
    assert says(notebook, "def mul_grad(g, out, a, b): return 0, 0").startswith("✗")
    assert "✓" in says(notebook, RIGHT)
    notebook.run("course.begin('00_start')")  # another kernel, another day
    assert SESSION.student == "Ada <b>"
    assert SESSION.progress.tasks["mul_grad"]["tries"] == 2
    assert "✓ mul_grad" in str(course.progress()) and "2 tries" in str(course.progress())
    page = course.report().read_text(encoding="utf-8")
    assert "Ada &lt;b&gt;" in page and "return g * b, g * a" in page and "<td>✓</td><td>mul_grad</td>" in page


def test_progress_of_a_passed_task_stays_passed(notebook):
    says(notebook, RIGHT)
    says(notebook, "def mul_grad(g, out, a, b): return 0, 0")
    assert SESSION.progress.passed("mul_grad") and SESSION.progress.tasks["mul_grad"]["tries"] == 1


def test_progress_is_not_written_without_a_workspace(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook.run("course.begin('00_start')")
    assert "course.keep()" in notebook.said[-1]
    says(notebook, RIGHT)
    assert list(tmp_path.iterdir()) == []
    notebook.run("course.keep()")
    assert Progress(tmp_path / FILE).passed("mul_grad")


def test_progress_of_two_notebooks_at_once_is_complete(tmp_path):
    task = session._task("mul_grad")
    one, other = Progress(tmp_path / FILE), Progress(tmp_path / FILE)
    one.note(task, True)
    other.note(session._task("mixed_grad"), True)
    assert Progress(tmp_path / FILE).passed("mul_grad") and Progress(tmp_path / FILE).passed("mixed_grad")


ENTRIES = """
import sys
from pathlib import Path
from types import SimpleNamespace
from minigrad.support import files
from minigrad_course.results import Progress
files.os.fsync = lambda _: None  # this is about the lock; the disk takes most of the time
progress = Progress(Path(sys.argv[1]))
for number in range(100):
    task = SimpleNamespace(name=f"{sys.argv[2]}{number}", points=1, student="Ada")
    progress.note(task, True, source="x")
    progress.note(SimpleNamespace(name="shared", points=1, student="Ada"), False)
"""


def entering(path, name, code=ENTRIES):
    command = [sys.executable, "-c", code, str(path), name]
    return subprocess.Popen(command, cwd=ROOT)


@pytest.mark.slow
def test_progress_of_two_processes_at_once_is_complete(tmp_path):
    path = tmp_path / FILE
    processes = [entering(path, name) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    tasks = Progress(path).tasks
    assert tasks.pop("shared") == {"tries": 200}
    assert sorted(tasks) == sorted(f"{name}{number}" for name in ("one", "two") for number in range(100))


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_process_leaves_no_lock_and_no_damage(tmp_path):
    path = tmp_path / FILE
    Progress(path).note(session._task("mul_grad"), True)
    kill = "import os\nfrom minigrad.support import files\nfiles.os.replace = lambda *_: os.kill(os.getpid(), 9)\n"
    assert entering(path, "killed", kill + ENTRIES).wait() == -signal.SIGKILL
    Progress(path).note(session._task("mixed_grad"), True)
    assert set(Progress(path).tasks) == {"mul_grad", "mixed_grad"}
    assert sorted(each.name for each in tmp_path.iterdir()) == [f".{FILE}.lock", FILE]


@pytest.mark.parametrize(
    "damage", ["{ torn", "[1]", '{"tasks": 3}', '{"tasks": {"a": 3}}', '{"tasks": {"a": {"tries": "x"}}}', "\xff\xfe"]
)
def test_a_damaged_file_is_kept_and_reported(notebook, tmp_path, monkeypatch, damage):
    monkeypatch.chdir(tmp_path)
    damaged = damage.encode("latin-1")
    for _ in range(2):  # the second file does not overwrite the first
        (tmp_path / FILE).write_bytes(damaged)
        notebook.run("course.begin('00_start', 'Ada')")
        assert "! course-progress.json was damaged. It is kept as course-progress.unreadable" in notebook.said[-1]
    assert "✓ mul_grad" in says(notebook, RIGHT) and Progress(tmp_path / FILE).passed("mul_grad")
    kept = ["course-progress.unreadable (2).json", "course-progress.unreadable.json"]
    assert [(tmp_path / name).read_bytes() for name in kept] == [damaged] * 2


def test_damage_while_a_notebook_is_open_loses_nothing_that_the_kernel_has(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).touch()
    notebook.run("course.begin('00_start', 'Ada')")
    says(notebook, RIGHT)
    (tmp_path / FILE).write_text("{ torn")
    assert "was damaged" in says(notebook, "numbers = [1, 3, 5]", check="numbers")
    (tmp_path / FILE).unlink()
    assert "✓" in says(notebook, "rise = 0.1", check="rise")
    assert set(Progress(tmp_path / FILE).tasks) == {"mul_grad", "numbers", "rise"}


def test_progress_keeps_entries_of_other_versions(tmp_path):
    (tmp_path / FILE).write_text('{"student": "Ada", "tasks": {"later": {"tries": 1, "new": 2}}, "version": 9}')
    Progress(tmp_path / FILE).note(session._task("mul_grad"), True)
    stored = json.loads((tmp_path / FILE).read_text())
    assert stored["version"] == 9 and stored["tasks"]["later"] == {"tries": 1, "new": 2}


def test_a_check_answers_although_its_file_cannot_be_written(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).touch()
    notebook.run("course.begin('00_start', 'Ada')")
    with monkeypatch.context() as full:

        def refuse(*_):
            raise OSError(28, "No space left on device")

        full.setattr(files.os, "fsync", refuse)
        assert says(notebook, "def mul_grad(g, out, a, b): return 0, 0").startswith("✗ mul_grad")
        said = says(notebook, RIGHT)
    assert "cannot be written: No space left on device. The kernel keeps it" in said and "✓ mul_grad" in said
    assert SESSION.progress.tasks["mul_grad"]["tries"] == 2
    assert "progress" not in says(notebook, "rise = 0.1", check="rise")
    known = Progress(tmp_path / FILE)
    assert known.passed("rise") and known.passed("mul_grad") and known.tasks["mul_grad"]["tries"] == 2


def test_a_folder_with_the_name_of_the_file_is_named(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).mkdir()
    notebook.run("course.begin('00_start', 'Ada')")
    assert "! course-progress.json cannot be read: [Errno" in notebook.said[-1]
    assert "✓ mul_grad" in says(notebook, RIGHT)
    notebook.run("course.keep('nowhere')")
    assert "! progress is not saved: nowhere" in notebook.said[-1] and "no folder nowhere" in notebook.said[-1]


def test_a_report_of_nothing_is_a_page():
    table = report_page(Progress()).partition("<footer>")[0]
    assert "0 of" in table and "✓" not in table and "✗" not in table
