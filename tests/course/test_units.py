"""Units are complete.  Tasks accept right answers, refuse known mistakes with a hint, and recognise a stub."""

import contextlib
import dataclasses
import io
import re
import subprocess
import sys
import tokenize

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad_course.authoring import build, template
from minigrad_course.compare import same
from minigrad_course.feedback import Feedback, Misused, NotWritten, Wrong
from minigrad_course.results import Progress
from minigrad_course.session import SESSION
from minigrad_course.tasks import Bet, FunctionTask, GradientTask, ValueTask
from minigrad_course.unit import names_in_use, parts, units
from tests.course.running import run_notebook, stored

UNITS = list(units().values())
TASKS = [task for part in parts().values() for task in part.tasks.values()]
STUDENTS = ["", "李"]
MORE_STUDENTS = ["Ada", "Grace Hopper"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_a_unit_has_its_form(unit):
    assert template.problems(unit) == []


def test_names_of_tasks_are_unique():
    names = [task.name for task in TASKS]
    assert len(names) == len(set(names)) and len({unit.number for unit in UNITS}) == len(UNITS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"question": "Guess."}, "question mark"),
        ({"outcomes": {"meaning": "..."}}, "too little"),
        ({"outcomes": {"meaning": "say what a gradient is"}}, "is not an outcome of the unit"),
        ({"minutes": 3}, "the unit only 3"),
        ({"misconceptions": ()}, "no misconception"),
        ({"prerequisites": ("07_forward",)}, "is not an earlier unit"),
        ({"name": "nowhere"}, "lecture is missing: 00_nowhere.md"),
        ({"title": "Finish"}, "does not begin with"),
    ],
)
def test_problems_names_what_is_wrong_with_a_unit(change, says):
    unit = dataclasses.replace(units()["00_start"], **change)
    assert any(says in problem for problem in template.problems(unit))


def test_a_reference_to_a_missing_place_is_reported():
    unit = units()["00_start"]
    moved = [each._replace(met_in="nowhere") for each in unit.seeds[:1]]
    changed = dataclasses.replace(unit, seeds=tuple(moved))
    assert any("'nowhere', which is neither" in problem for problem in template.problems(changed))


# ---- tasks ---------------------------------------------------------------------------------------------------------


def feedback_on(task, student, answer, **options):
    """The feedback on an answer of a new student: the printed text, or the refusal; and whether the task is passed."""
    SESSION.progress = Progress()
    SESSION.progress.student = student
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            course.check(task.name, answer, **options)
    except Wrong as refused:
        return refused, SESSION.progress.passed(task.name)
    return printed.getvalue(), SESSION.progress.passed(task.name)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize(
    "students", [pytest.param(STUDENTS, id="two"), pytest.param(MORE_STUDENTS, marks=pytest.mark.long, id="more")])
def test_the_solution_is_right_for_all_students(task, students):
    feedback = {student: feedback_on(task, student, task(student).solution(), hidden=True) for student in students}
    refused = {student: text for student, (text, passed) in feedback.items()
               if not passed or f"{'○' if issubclass(task, Bet) else '✓'} {task.name}: " not in str(text)}
    assert refused == {}


def test_a_bet_is_one_of_its_choices():
    bets = [task for task in TASKS if issubclass(task, Bet)]
    assert bets
    for task in bets:
        assert all("The next cell measures it" in str(feedback_on(task, "", each)[0]) for each in task.choices)
        with pytest.raises(Misused, match="is not among the choices"):
            task("").check(1234567)


def results(task, known):
    """The answer of a student with a known mistake: a value, or the results for all cases."""
    wrong = task.wrong(known)
    return wrong if task.kind == "value" else [wrong(*args) for args in task._all_cases(1)]


def met(cls):
    """The mistakes of a task: its own, and the common ones that give different results here, all of them wrong."""
    found, task = [], cls()
    right = task.right() if task.kind == "value" else None
    for known in cls.mistakes:
        if known.name in cls.hints or known.name in vars(cls):
            found.append(known)
        elif task.kind == "value":
            wrong = task.wrong(known)
            if not (wrong is None or any(same(wrong, other) for other in [right, *[task.wrong(k) for k in found]])):
                found.append(known)
        elif not any(same(results(task, known), results(task, other)) for other in found):
            found.append(known)
    return found


def misjudged(task, mistakes, student):
    """A line for each of these mistakes of a task that does not get its own hint."""
    variant = task(student)
    for known in mistakes:
        feedback, passed = feedback_on(task, student, variant.wrong(known))
        hint = variant.words(known)
        if isinstance(feedback, Wrong):
            right, got = feedback.hint == hint and not passed, f"was refused with {feedback.hint!r}"
        else:
            right, got = not task.strict and hint in feedback, f"got {feedback!r}"
        if not right:
            yield f"{known.name}: {student or 'a student without a name'} {got}, not with {hint!r}"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_known_mistakes_get_their_own_hints(task):
    mistakes = met(task)
    wrong = [line for student in ("", "Ada") for line in misjudged(task, mistakes, student)]
    assert not wrong, "\n".join([f"{task.name}:", *wrong])


def test_words_for_a_mistake_that_is_not_a_common_one_are_refused():
    with pytest.raises(mg.DeclarationError, match="Strange: hints names sloppy, which is not a common mistake"):
        type("Strange", (ValueTask,), {"hints": {"sloppy": "be careful"}})


class Area(FunctionTask):
    """The area of a triangle."""

    name = "area"
    slips = {"doubled": (" / 2", ""), "added": ("a * b", "(a + b)")}
    hints = {"doubled": "half of the rectangle", "added": "multiply"}

    def cases(self, draw):
        yield 3.0, 5.0

    def right(self, a, b):
        return a * b / 2


@pytest.mark.parametrize(("wrong", "hint"), [
    (lambda a, b: a * b, "half of the rectangle"), (lambda a, b: (a + b) / 2, "multiply"), (lambda a, b: a, None),
])
def test_a_slip_of_the_right_program_is_a_known_mistake(wrong, hint):
    with pytest.raises(Wrong) as refused:
        Area().check(wrong)
    assert refused.value.hint == hint


def test_a_slip_must_be_in_the_right_program_once():
    slips = {"minus": ("a - b", "a + b")}
    task = type("Triangle", (Area,), {"slips": slips, "hints": {"minus": "no"}, "__module__": __name__})()
    with pytest.raises(mg.DeclarationError, match=r"Triangle\.right: 'a - b' of a slip is there 0 times, not once"):
        task.wrong(task.mistakes[0])(3.0, 5.0)


class Sum(GradientTask):
    """The gradient rule of `out = 2 * a + b`."""

    name = "sum_grad"

    def forward(self, a, b):
        return 2 * a + b

    def cases(self, draw):
        yield 3.0, self.forward(1.0, 5.0), 1.0, 5.0


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda g, out, a, b: (g, 2 * g), "swapped: the gradient of a comes first, and the gradient of b last"),
        (lambda g, out, a, b: (2.0, 1.0), "g is missing"),
        (lambda g, out, a, b: 3 * g, "you added the gradients. Each input has its own gradient"),
        (lambda g, out, a, b: 2 * g, "that is the gradient of a. Return the gradient of b too"),
        (lambda g, out, a, b: (g, g), "that is the rule of a sum"),
        (lambda g, out, a, b: out, "that is the result itself, not its slope"),
    ],
)
def test_a_rule_of_a_new_unit_knows_the_common_mistakes(wrong, hint):
    with pytest.raises(Wrong) as refused:
        Sum().check(wrong)
    assert refused.value.hint.startswith(hint)


# Lines of a unit's Python.  Empty lines and lines of text (docstrings, hints with their `@mistake`, comments) do not
# count.
LINES_OF_A_UNIT = 1200
TEXT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END",
        "ENDMARKER"}


def lines_of_code(path):
    """The number of lines of a file with a token that is neither text, nor a bracket, nor the name of a text."""
    with open(path, encoding="utf-8") as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    silent = {*"()[]{},@", "mistake", "Seed", "Misconception"}
    lines, texts = set(), 0  # since Python 3.12, what stands in an f-string is tokens between two others
    for each in tokens:
        kind = tokenize.tok_name[each.type]
        texts += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if not texts and kind not in TEXT and kind != "FSTRING_END" and each.string not in silent:
            lines.add(each.start[0])
    return len(lines)


def test_lines_of_code_counts_no_texts(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""A module."""\n\nx = (\n    "a text", f"{1}"\n)  # three\n@mistake("hint")\nx = 2\n')
    assert lines_of_code(path) == 2


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_a_unit_is_small(unit):
    files = build.FOLDERS[unit.key].glob("*.py")
    written = [path for path in files if "_notebook" not in path.name and "test_" not in path.name]
    assert sum(map(lines_of_code, written)) <= LINES_OF_A_UNIT


# ---- notebooks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_student_copy_is_the_one_that_the_master_makes(unit):
    there = template.files(unit.key)
    made = build.exercise(there["exercise source"])
    assert there["exercise"].read_bytes() == made.encode(), "run: python -m minigrad_course.authoring.build"
    for mark in ("### BEGIN", "### END", "HIDDEN"):
        assert mark not in made


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_master_passes_its_own_checks(unit):
    errors, here = run_notebook(build.read(template.files(unit.key)["exercise source"]))
    assert errors == {}
    assert all(SESSION.progress.passed(name) for name, task in unit.tasks.items() if task.strict), here.said


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_student_copy_fails_kindly(unit):
    errors, _ = run_notebook(stored(template.files(unit.key)["exercise"]))
    name = unit.key.partition("_")[2]
    for task in [name for name, task in unit.tasks.items() if task.strict]:
        error = errors.pop(f"{name}-check-{task.replace('_', '-')}")
        assert isinstance(error, NotWritten) and re.search(rf"○ {task}: not (written|answered) yet", str(error))
    for error in errors.values():  # stubs of values, and cells that use them
        assert isinstance(error, Feedback | NotImplementedError)


@pytest.mark.parametrize("path", sorted(build.COURSE.rglob("*_notebook.py")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_sources_are_as_jupytext_writes_them(path):
    """A change in JupyterLab then changes only its own lines of the file."""
    text = path.read_text(encoding="utf-8")
    again = build.jupytext.writes(build.jupytext.reads(text, "py:percent"), "py:percent")
    cells = again[again.index("# %%") :]
    assert text.endswith(cells)


@pytest.mark.slow
def test_a_unit_is_loaded_when_it_begins():
    """In a browser, the import of all units takes seconds, and that of the compiler too."""
    code = "import sys\nimport minigrad_course as course\ncourse.begin('00_start')\nmul_grad = 3\ncourse.task('rise')\n"
    code += "print(*[name for name in sys.modules if name.startswith('minigrad')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name.split(".") for name in done.stdout.split()]
    units = {name[2] for name in loaded if name[:2] == ["minigrad_course", "units"] and len(name) > 2}
    assert units == {"u00_start"}
    assert not {name[1] for name in loaded if name[0] == "minigrad" and len(name) > 1} & {"io", "train"}


def test_the_key_of_a_part_is_that_of_its_module():
    assert [part.key for part in parts().values()] == list(parts())
    assert {"rise", "mul_grad"} <= names_in_use() and len(parts().used()) == len(parts())
