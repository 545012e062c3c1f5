"""The exam questions as Moodle XML: all of them, each with its own answer, which graders alone see."""

from xml.etree import ElementTree as xml

import pytest

from lectures.site import moodle
from minigrad_course.unit import units


def test_every_question_has_its_answer_and_every_unit_its_category():
    asked = moodle.questions()
    root = xml.fromstring(moodle.quiz(asked).encode())
    essays = root.findall("question[@type='essay']")
    categories = [each.findtext("category/text") for each in root.findall("question[@type='category']")]
    assert len(essays) == len(asked) >= 3 * len(units()) and len(categories) == len(units())
    assert all(each.findtext("questiontext/text") and each.findtext("graderinfo/text") for each in essays)
    names = [each.findtext("name/text") for each in essays]
    assert names[0] == "00.1" and len(set(names)) == len(names)
    first = essays[0]
    assert "Which contributions does a get" in first.findtext("questiontext/text")
    assert "24.0" in first.findtext("graderinfo/text") and "24.0" not in first.findtext("questiontext/text")


def test_the_command_writes_the_file_and_says_where_to_import_it(tmp_path, capsys):
    moodle.main([str(tmp_path / "exam.xml")])
    assert xml.parse(tmp_path / "exam.xml").getroot().tag == "quiz"
    assert "Import" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="usage"):
        moodle.main([])
