"""A student's framework: what passed its check, collected in a file, and in the engine's place all at once."""

import ast
import json
from functools import cache

import pytest

import minigrad_course as course
from minigrad_course.authoring import build
from minigrad_course.feedback import Misused, NotWritten
from minigrad_course.framework import on_ranks, training
from minigrad_course.framework.collected import FILE as NAME
from minigrad_course.framework.collected import collected
from minigrad_course.framework.pieces import COMPILED, EAGER, JOBS, Clock
from minigrad_course.results import FILE, Progress
from minigrad_course.session import SESSION, opened
from minigrad_course.source_code import run_code, source_of
from minigrad_course.unit import parts, units
from tests.distributed.test_ranks import needs_mpi

VALUES = ("my_rules", "gpt_plan")


@cache
def solutions():
    """What each right answer uses, from the imports and the functions of all exercises with their solutions."""
    found = {}
    for key in units():
        names = {"__name__": "notebook"}
        cells = [cell.source for cell in build.read(build.source_of(key, build.EXERCISE)).cells
                 if cell.cell_type == "code"]
        run_code("\n".join(part for cell in cells for part in kept(cell)), names)
        for name, task in parts()[key].tasks.items():
            if task.kind == "function":
                found[name] = source_of(names[name])._asdict()
            elif name in VALUES:
                found[name] = {"head": [f"{name} = {names[name]!r}"], "code": {}}
    return found


def kept(cell):
    """The imports, functions and plain values of a cell."""
    for each in ast.parse(cell).body:
        is_value = isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") in VALUES
        if isinstance(each, ast.Import | ast.ImportFrom | ast.FunctionDef) or is_value:
            yield ast.get_source_segment(cell, each)


def passed(*names, changed=(), progress=None):
    """Record right answers, or wrong ones as if they were right; all if no name is given."""
    progress = progress or SESSION.progress
    for name in names or solutions():
        progress.tasks[name] = {"tries": 1, "passed": "today", "uses": dict(changed).get(name, solutions()[name])}
    return progress


def uses(source, name):
    names = {"__name__": "notebook"}
    run_code(source, names)
    return source_of(names[name])._asdict()


def test_all_pieces_of_the_course_train_as_the_engine_does(tmp_path, monkeypatch):
    SESSION.progress = Progress(tmp_path / FILE)
    passed()
    framework = course.my_framework()
    assert framework.apart < 1e-3 and "the losses are those of minigrad alone" in repr(framework)
    assert framework.path == tmp_path / NAME and framework.path.read_text() == framework.file.text
    whole = {job for job, (mine, every) in framework.jobs.items() if mine == every}
    assert whole == set(JOBS) - {"rules", "passes", "sums"}
    assert all(0 < mine < every for job, (mine, every) in framework.jobs.items() if job not in whole)
    assert 0.1 < framework.run.share < 1
    assert {each for piece in (*EAGER, *COMPILED) for each in piece.tasks} <= set(framework.file.names)
    monkeypatch.syspath_prepend(tmp_path)
    assert __import__("my_framework").walk_back.__name__ == "walk_back"


def test_one_piece_is_a_framework_already():
    passed("mul_grad")
    framework = course.my_framework()
    assert framework.path is None and framework.file.names == ["mul_grad"]
    assert {job for job, (mine, _) in framework.jobs.items() if mine} == {"rules"} and framework.apart < 1e-3
    assert not framework.jobs.keys() & {"guards", "passes", "turns"}
    assert str(framework).startswith("you: 1 piece\n") and "gradients by rules" in framework.table()


@pytest.mark.parametrize("name, source", [
    ("mul_grad", "def mul_grad(g, out, a, b):\n    return g * a, g * b\n"),
    ("adam", "def adam(w, g, m, v, t):\n    return w - 0.01 * g, m, v\n"),
    ("softmax", "def softmax(x):\n    return x / x.sum(axis=-1, keepdims=True)\n"),
])
def test_a_wrong_piece_is_seen_in_the_losses(name, source):
    passed(name, changed={name: uses(f"import minigrad as mg\n{source}", name)})
    framework = course.my_framework()
    assert framework.apart > 1e-3 or not framework.apart == framework.apart
    assert "from those of minigrad alone" in repr(framework)


def test_a_piece_that_needs_another_waits_for_it():
    passed("gelu", "transposed", "broadcasted")
    framework = course.my_framework()
    assert not any(mine for mine, _ in framework.jobs.values())
    assert framework.file.names == ["transposed", "broadcasted", "gelu"]


def test_two_notebooks_may_have_helpers_of_the_same_name():
    rule = "def half(x):\n    return x / 2\ndef mul_grad(g, out, a, b):\n    return half(2 * g) * b, g * a\n"
    other = "half = 0.5\ndef sigmoid_grad(g, out, x):\n    return g * out * (1 - out) * (half + half)\n"
    first, second = uses(rule, "mul_grad"), uses(other, "sigmoid_grad")
    passed("mul_grad", "sigmoid_grad", changed={"mul_grad": first, "sigmoid_grad": second})
    file = collected(SESSION.progress)
    found = file.loaded()
    assert "half_05 = 0.5" in file.text and "half_05 + half_05" in file.text and file.text.count("def half(") == 1
    assert found["mul_grad"](1.0, 6.0, 2.0, 3.0) == (3.0, 2.0) and found["sigmoid_grad"](4.0, 0.5, 0.0) == 1.0


def test_a_helper_that_is_a_task_is_written_once():
    passed("backward_order", "walk_back")
    assert collected(SESSION.progress).text.count("def backward_order(") == 1
    older = uses(solutions()["backward_order"]["code"]["backward_order"].replace("found", "seen")
                 + solutions()["walk_back"]["code"]["walk_back"], "walk_back")
    passed("walk_back", changed={"walk_back": older})
    text = collected(SESSION.progress).text
    assert "def backward_order(" in text and "def backward_order_06(" in text and "in backward_order_06(result)" in text


def test_an_answer_of_an_older_course_has_no_source_and_is_named():
    passed("mul_grad", "add_grad", changed={"add_grad": {}})
    framework = course.my_framework()
    assert framework.file.missing == ["add_grad"] and "without add_grad: check it again" in repr(framework)


def test_a_check_keeps_what_an_answer_uses(capsys):
    run_code("import minigrad_course as course\nfactor = 1.0\ndef times(g, x):\n    return factor * g * x\n"
             "def mul_grad(g, out, a, b):\n    return times(g, b), times(g, a)\ncourse.check('mul_grad')\n", {})
    kept = opened().tasks["mul_grad"]["uses"]
    assert list(kept["code"]) == ["times", "mul_grad"] and "factor = 1.0" in kept["head"]
    assert course.my_framework().apart < 1e-3


def test_what_cannot_be_done_is_said():
    with pytest.raises(NotWritten, match="no function of yours has passed"):
        course.my_framework()
    with pytest.raises(Misused, match='write "digits" or "names"'):
        course.my_framework("poems")


def test_ranks_need_mpi(monkeypatch):
    passed("mul_grad")
    monkeypatch.setattr("minigrad_course.framework.missing", lambda: "mpi4py")
    with pytest.raises(Misused, match="mpi4py is not installed"):
        course.my_framework("names", ranks=4)


def test_the_names_are_learned_by_all_pieces(monkeypatch):
    monkeypatch.setattr(training, "STEPS", 3)
    pieces = training.Pieces("", collected(passed(), VALUES).loaded())
    run = training.by_pieces(pieces, training.NAMES)
    assert run.losses == pytest.approx(training.by_engine(pieces, training.NAMES), abs=1e-3)
    assert run.jobs["layers"][0] == run.jobs["layers"][1]


@needs_mpi
@pytest.mark.long
def test_four_ranks_train_with_the_ring():
    passed("reduce_scatter", "all_gather", "walk_back", "adam")
    framework = course.my_framework(ranks=4)
    steps = framework.jobs["steps"][1]
    assert framework.jobs["sums"] == (steps, steps) and framework.apart < 1e-3


def test_the_clock_tells_whose_time_it_is(monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr("minigrad_course.framework.pieces.perf_counter", lambda: next(times))
    clock = Clock()
    engines = clock.engines(lambda: None)
    clock.yours(engines)()
    assert clock.seconds[True] == 2 and clock.seconds[False] == 2
    clock.begin()
    assert clock.share() == 0.0


def test_the_picture_shows_every_room_and_page():
    passed("mul_grad", "adam")
    book = course.my_framework().picture
    drawn = book.pages[0][0].drawing.to_svg("rooms")
    assert all(what in drawn for what, _ in JOBS.values()) and "mul_grad" in drawn and "adam" in drawn
    assert [page.name for page in book.pages[0]] == ["rooms", "curves", "before and after"]
    assert book.text().count("\n") > 10


def test_ranks_read_an_order(tmp_path, monkeypatch):
    """The script of a rank, run in this process on one rank."""
    passed("mul_grad")
    file = collected(SESSION.progress)
    order, result = tmp_path / "order", tmp_path / "result"
    order.write_text(json.dumps({"student": "", "text": file.text, "names": file.names, "program": "digits"}))
    on_ranks.main(str(order), str(result))
    assert len(json.loads(result.read_text())["losses"]) == len(training.DIGITS.batches())
