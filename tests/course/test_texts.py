"""The texts of units: a mistake in a file is reported with its line, and a translation is a file."""

import sys
import types

import pytest

import minigrad as mg
from lectures.site.browser.archives import shipped
from minigrad_course import texts
from minigrad_course.authoring import template
from minigrad_course.tasks import FunctionTask, Prediction, mistake
from minigrad_course.unit import Unit, unit, units

TEXTS = template.TEXTS.format(number=3, title="Devices")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a unit with the texts that a new unit begins with, whose module is `mine`."""
    (tmp_path / "u03_devices").mkdir()
    module = types.ModuleType("mine")
    module.__file__ = str(tmp_path / "u03_devices" / "about.py")
    monkeypatch.setitem(sys.modules, "mine", module)
    texts.texts_in.cache_clear()
    (tmp_path / "u03_devices" / "texts.en.toml").write_text(TEXTS, encoding="utf-8")
    return tmp_path / "u03_devices"


def made(folder):
    return unit(str(folder / "about.py"), "mine")


def test_thetexts_in_a_new_unit_make_a_unit_with_a_task(folder):
    new = made(folder)
    assert (new.key, new.title, new.prerequisites) == ("03_devices", "Devices", ("00_start",))
    task = new.tasks["first_guess"]
    assert issubclass(task, Prediction) and task().text() == "How many ...?" and task().right() == 3
    assert [known.program(task()) for known in task.mistakes[:2]] == [2, 4]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "Devices"', "title = Devices", r"Invalid value \(at line 3"),
        ("minutes = 60\n", "", "line 1: minutes is missing"),
        ("minutes = 60", "minutes = 60\nminuts = 60", "line 6: minuts is not a part of a unit"),
        ("met_in", "meet_in", r"line 12: misconceptions: .*unexpected keyword argument 'meet_in'"),
        ('example = "10"', "example = 10", "line 25: example should be a text, not 10"),
        ("[2, ", "[2], [", r"line 27: a wrong answer should be \[answer, hint\]"),
        ("wrong = [\n    [2, \"...\"],\n    [4, \"...\"],\n]", "mistakes = [[\"2\"]]", "line 27: a mistake should be"),
        ("wrong = [\n    [2, \"...\"],\n    [4, \"...\"],\n]", "mistakes = [[\"a\", \"b\", \"c\", \"...\"]]",
         "line 27: a mistake should be .*, not .'a', 'b', 'c', '...'"),
        ("right = 3", "rigt = 3", "line 26: a task has no rigt: right"),
        ('otherwise = "..."', '[tasks.first_guess.hints]\nturned = "a"\nsloppy = "b"',
         "line 34: first_guess: hints names sloppy"),
        ('otherwise = "..."', "[tasks.first_guess.hints]\nturned = 3", "line 33: turned should be a text"),
    ],
)
def test_a_mistake_in_the_texts_is_reported_with_its_line(folder, old, new, says):
    assert old in TEXTS
    (folder / "texts.en.toml").write_text(TEXTS.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(mg.DeclarationError, match=f"^u03_devices/texts.en.toml.*{says}"):
        made(folder)


def test_a_unit_without_texts_is_refused(folder):
    (folder / "texts.en.toml").unlink()
    with pytest.raises(mg.DeclarationError, match=r"u03_devices has no texts\.en\.toml"):
        made(folder)


def whole(self, x):
    """A wrong program."""
    return x


def test_a_class_gets_the_hints_of_its_methods(folder):
    table = '\n[tasks.half]\ntext = "The half, {how}."\n\n[tasks.half.hints]\nwhole = "that is the whole"\n'
    (folder / "texts.en.toml").write_text(TEXTS + table, encoding="utf-8")
    body = {"name": "half", "__module__": "mine", "how": "exactly", "whole": mistake(whole)}
    task = type("Half", (FunctionTask,), body)
    assert task().text() == "The half, exactly." and task.mistakes[0].hint == "that is the whole"
    with pytest.raises(mg.DeclarationError, match="hints has no words for the mistake part"):
        type("Half", (FunctionTask,), {**body, "part": mistake(whole)._replace(name="part")})
    with pytest.raises(mg.DeclarationError, match="Half in mine has template too"):
        type("Half", (FunctionTask,), {**body, "template": "..."})


GERMAN = """
title = "Geräte"
question = "Wie viele ...?"

[outcomes]
first = "Geräte benutzen"

[tasks.first_guess]
text = "Wie viele ...?"
right = 3
wrong = [
    [4, "eins zu viel"],
]
"""


def in_german(folder, monkeypatch, text=GERMAN):
    (folder / "texts.de.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv(texts.LANGUAGE, "de")
    return made(folder)


def test_a_translation_is_a_file_beside_the_texts(folder, monkeypatch):
    new = in_german(folder, monkeypatch)
    task = new.tasks["first_guess"]()
    assert (new.title, new.outcomes["first"], task.text()) == ("Geräte", "Geräte benutzen", "Wie viele ...?")
    assert [known.hint for known in task.mistakes[:2]] == ["...", "eins zu viel"]
    monkeypatch.setenv(texts.LANGUAGE, "fr")
    assert made(folder).tasks["first_guess"]().text() == "How many ...?"


def test_what_a_translation_lacks_is_english_and_is_named(folder, monkeypatch):
    new = in_german(folder, monkeypatch)
    assert new.tasks["first_guess"].why == "..." and new.minutes == 60
    assert set(new.texts.missing) == {
        "misconceptions.belief", "seeds.idea", "tasks.first_guess.wrong.[2]", "tasks.first_guess.why",
        "tasks.first_guess.otherwise",
    }
    monkeypatch.setattr(template, "files", lambda key: {"demo source": folder / "demo_notebook.py"})
    assert "texts.de.toml lacks tasks.first_guess.why" in template.untranslated(new)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("text =", "txt =", "line 9: txt is not in texts.en.toml"),
        ("tasks.first_guess", "tasks.second_guess", "line 8: second_guess is not in texts.en.toml"),
        ("right = 3", "right = 4", "line 10: right is 4 here, and 3 in texts.en.toml"),
        ("[4,", "[5,", r"line 11: texts.en.toml has no row \[5\]"),
        ("title =", "prerequisites = []\ntitle =", "line 2: prerequisites has 0 parts here, and 1 in English"),
    ],
)
def test_a_key_that_the_english_texts_lack_is_reported_with_its_line(folder, monkeypatch, old, new, says):
    with pytest.raises(mg.DeclarationError, match=f"^u03_devices/texts.de.toml, {says}"):
        in_german(folder, monkeypatch, GERMAN.replace(old, new, 1))


def test_texts_are_read_once(folder):
    assert texts.texts_of(folder) is texts.texts_of(folder)


def test_a_task_of_the_texts_without_kind_and_class_is_reported(folder):
    (folder / "texts.en.toml").write_text(TEXTS.replace('kind = "Prediction"\n', ""), encoding="utf-8")
    problems = template._about(made(folder))
    assert "task first_guess of the texts has neither a kind nor a class" in problems


def test_tasks_have_the_order_of_the_texts():
    for each in units().values():
        assert isinstance(each, Unit) and list(each.tasks) == [name for name in each.texts.tasks if name in each.tasks]


def test_the_wheel_has_thetexts_in_each_unit():
    names = shipped()
    assert all(f"minigrad_course/units/u{key}/texts.en.toml" in names for key in units())
    assert "minigrad_course/texts.en.toml" in names
