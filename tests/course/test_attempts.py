"""Sessions of students in a real shell: checks take the newest answer and accept a repaired one."""

import contextlib
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from minigrad_course import attempts, session
from minigrad_course.attempts import Attempts
from minigrad_course.results import Progress
from minigrad_course.session import SESSION

RIGHT = "def mul_grad(g, out, a, b):\n    return g * b, g * a"
SWAPPED = "def mul_grad(g, out, a, b):\n    return g * a, g * b"
CHECK = "course.check('mul_grad')"
NUMBERS = "course.check('numbers')"


class Student:
    """A student at a notebook, whose cells run as JupyterLab runs them."""

    def __init__(self, shell):
        self.shell = shell
        self("import minigrad_course as course")

    def __call__(self, *cells):
        """Run cells and return the text of the last one."""
        for cell in cells:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                result = self.shell.run_cell(cell, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        return printed.getvalue() if error is None else f"{type(error).__name__}: {error}"


@pytest.fixture
def student(monkeypatch):
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    fresh = Attempts()
    for module in (attempts, session):
        monkeypatch.setattr(module, "notebook_shell", lambda: shell)
        monkeypatch.setattr(module, "ATTEMPTS", fresh)
    monkeypatch.setattr(SESSION, "progress", Progress())
    attempts.watch_cells()
    return Student(shell)


# ---- a repaired answer is not refused --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [
        # the cell that failed is repaired, and checked in the same cell
        ["numbers = [1, 3, 5", f"numbers = [1, 3, 5]\n{NUMBERS}"],
        ["numbers = [1, 3, five]", f"numbers = [1, 3, 5]\n{NUMBERS}"],
        ["numbers = [1, 3, five]", f"early = [2, 10]; numbers = [1, 3, 5]; {NUMBERS}"],
        ["numbers = [1, 3, five]", f"for numbers in ([0], [1, 3, 5]): pass\n{NUMBERS}"],
        ["numbers = [1, 3, five]", f"if True:\n    numbers = [1, 3, 5]\n    {NUMBERS}"],
        # the failed cell only reads the answer
        ["numbers = [1, 3, 5]", "print(numbers[7])", NUMBERS],
        ["numbers = [1, 3, 5]", "print(numbers", NUMBERS],
        ["numbers = [1, 3, 5]", "squares = [n * missing for n in numbers]", NUMBERS],
        # the cell failed after it had made the answer
        ["numbers = [1, 3, 5]\n1 / 0", NUMBERS],
        ["numbers = [1, 3, 5]\nraise KeyboardInterrupt", NUMBERS],
        ["numbers = [0]", "numbers = [1, 3, 5]; 1 / 0", NUMBERS],
        ["numbers = [0]", "numbers = [1, 3, 5]", "numbers = [1, 3, 5]\nassert numbers == [0]", NUMBERS],
        ["for numbers in ([1, 3, 5],):\n    1 / 0", NUMBERS],
        # repaired in a different way
        ["numbers = five", "numbers, more = [1, 3, 5], 2", NUMBERS],
        ["numbers = five", "for numbers in ([1, 3, 5],):\n    pass", NUMBERS],
        ["numbers = five", "print(numbers := [1, 3, 5])", NUMBERS],
        ["numbers = five", "[numbers := [1, 3, n] for n in (4, 5)]", NUMBERS],
        ["numbers = five", "import contextlib\nwith contextlib.nullcontext([1, 3, 5]) as numbers:\n    pass", NUMBERS],
        ["numbers = five", "def find():\n    global numbers\n    numbers = [1, 3, 5]", "find()", NUMBERS],
        ["numbers = five", "globals()['numbers'] = [1, 3, 5]", NUMBERS],
        ["numbers = five", "%%time\nnumbers = [1, 3, 5]", NUMBERS],
        ["numbers = five", "%time numbers = [1, 3, 5]", NUMBERS],
        ["numbers = five", "%%capture\nnumbers = [1, 3, 5]", NUMBERS],
        ["numbers = five", "numbers: list = [1, 3, 5]", NUMBERS],
        ["numbers = [1, 3]", "numbers = five", "numbers += [5]", NUMBERS],
        ["numbers = five", "match [1, 3, 5]:\n    case numbers:\n        pass", NUMBERS],
        ["numbers = five", "numbers = [1, 3, 5]", "numbers[0] = 1", "print(five)", NUMBERS],
    ],
)
def test_an_answer_that_is_there_is_checked(student, cells):
    assert student(*cells).startswith("✓ numbers: right"), cells


def test_an_answer_that_was_waited_for_is_checked(student):
    cells = ["numbers = five", "import asyncio\nnumbers = await asyncio.sleep(0, [1, 3, 5])", NUMBERS]
    with ThreadPoolExecutor(1) as pool:  # a browser may already run an event loop in this thread
        assert pool.submit(student, *cells).result().startswith("✓ numbers: right")


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT.replace("):", ")"), f"{RIGHT}\n{CHECK}"],
        [f"import functools\n@missing\n{RIGHT}", f"import functools\n@functools.cache\n{RIGHT}", CHECK],
        [f"{RIGHT}\nprint(mul_grad(1, 2))", CHECK],
        [RIGHT.replace("mul_grad", "mine"), "mul_grad = yours", "mul_grad = mine", CHECK],
        [SWAPPED, "def mul_grad(", RIGHT, "def helper(", CHECK],
        [RIGHT, "%%timeit -n1 -r1\nmul_grad = 3", CHECK],
    ],
)
def test_a_function_that_is_there_is_checked(student, cells):
    assert student(*cells).startswith("✓ mul_grad: right"), cells


# ---- an older answer is never checked instead of the newest ----------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("numbers = [1, 3, five]", "the cell of your answer stopped with NameError: name 'five'"),
        ("numbers = [1, 3, 5] / 0", "the cell of your answer stopped with TypeError"),
        ("1 / 0\nnumbers = [1, 3, 5]", "the cell of your answer stopped with ZeroDivisionError"),
        ("numbers = (\n    1 / 0\n)", "the cell of your answer stopped with ZeroDivisionError"),
        ("early, numbers = 1, 2 / 0", "the cell of your answer stopped with ZeroDivisionError"),
        ("for numbers in 1 / 0: pass", "the cell of your answer stopped with ZeroDivisionError"),
        ("import nowhere as numbers", "the cell of your answer stopped with ModuleNotFoundError"),
        ("with nowhere as numbers: pass", "the cell of your answer stopped with NameError"),
        ("print(numbers := 1 / 0)", "the cell of your answer stopped with ZeroDivisionError"),
        ("%%time\nlater = 1\nnumbers = 1 / 0", "the cell of your answer stopped with ZeroDivisionError"),
        ("later = 1\n%time numbers = 1 / 0", "the cell of your answer stopped with ZeroDivisionError"),
        ("%%capture\nnumbers = 1 / 0", "the cell of your answer stopped with ZeroDivisionError"),
        ("raise KeyboardInterrupt\nnumbers = [1]", "the cell of your answer was interrupted"),
        ("raise NotImplementedError()\nnumbers = [1]", "○ numbers: not written yet"),
        ("course.check('mul_grad')\nnumbers = [1]", "the cell of your answer stopped at a check above it"),
        ("numbers = [1, 3, 5", "✗ numbers: stopped with SyntaxError"),
        ("early, numbers = [1 3", "✗ numbers: stopped with SyntaxError"),
    ],
)
@pytest.mark.parametrize("between", [[], ["print('something else')", "1 / 0"]])
def test_an_older_answer_is_not_checked(student, cell, words, between):
    assert words in student("numbers = [0]", cell, *between, NUMBERS)


def test_a_decorator_that_fails_leaves_the_older_function(student):
    assert "stopped with NameError" in student(SWAPPED, f"@missing\n{RIGHT}", CHECK)


def test_a_repair_below_the_check_does_not_count_yet(student):
    assert "stopped with NameError" in student("numbers = five", f"{NUMBERS}\nnumbers = [1, 3, 5]")


def test_cells_that_are_run_out_of_order_count_in_the_order_of_running(student):
    first, second = "numbers = [1, 3, 5]", "numbers = five"
    assert "✓" in student(second, first, NUMBERS)
    assert "stopped with NameError" in student(second, NUMBERS)
    assert "✓" in student(first, NUMBERS)


def test_a_name_that_was_deleted_is_not_there(student):
    assert "there is no numbers here yet" in student("numbers = [1, 3, 5]", "del numbers", NUMBERS)
    assert "✓" in student("numbers = five", "numbers = [1, 3, 5]", NUMBERS)
    assert "there is no numbers here yet" in student("numbers = five", "numbers = 1\ndel numbers", NUMBERS)


# ---- a name that is misspelled ---------------------------------------------------------------------------------------


def test_a_newer_function_of_nearly_the_same_name_is_named(student):
    said = student(SWAPPED, RIGHT.replace("mul_grad", "mul_gard"), CHECK)
    assert "Hint: mul_gard is newer and was not checked. If it is your answer, rename it to mul_grad" in said
    assert "Got: 15.0" in said and "mul_grad" not in SESSION.progress.tasks
    said = student(f"{RIGHT.replace('mul_grad', 'mul_gradd')}\n{CHECK}")
    assert "mul_gradd is newer" in said
    assert "swapped" in student(SWAPPED, CHECK)  # now this is the newest
    assert SESSION.progress.tasks["mul_grad"]["tries"] == 1


def test_a_right_answer_stays_right_beside_a_newer_name(student):
    said = student(RIGHT, SWAPPED.replace("mul_grad", "mul_grad2"), CHECK)
    assert said.startswith("✓ mul_grad: right") and "mul_grad2 is newer and was not checked." in said


@pytest.mark.parametrize(
    "other",
    [
        "mul_gard = 3",  # not a function
        "mixed_grad = mul_grad",  # the name of another task
        "del mul_gard",
        "other = lambda g, out, a, b: 1",
    ],
)
def test_names_that_differ_much_are_not_taken_for_misspelled(student, other):
    said = student(RIGHT.replace("mul_grad", "mul_gard"), SWAPPED, other, CHECK)
    assert "newer" not in said and "swapped" in said


def test_a_helper_that_the_answer_calls_is_not_taken_for_the_answer(student):
    calls = "def mul_grad(g, out, a, b):\n    return mul_grads(g, out, a, b)"
    assert "newer" not in student(calls, SWAPPED.replace("mul_grad", "mul_grads"), CHECK)


def test_a_value_of_nearly_the_same_name_is_named(student):
    assert "number is newer and was not checked" in student("numbers = [0]", "number = [1, 3, 5]", NUMBERS)


def test_values_are_not_kept_alive(student):
    student("class Big: pass\nimport weakref\nbig = Big()\ngone = weakref.ref(big)", "del big")
    assert student("print(gone())") == "None\n"
