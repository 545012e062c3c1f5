"""The open project that closes the course: its form, its starter, and three finished examples.

What a good project is says its page, `lectures/project.md`, with the rubric.
"""

from __future__ import annotations

import re
from typing import Any

from ..answers import number_in
from ..feedback import Wrong
from ..tasks import ROUNDS, ValueTask
from ..unit import Annex

PROJECT = Annex(
    number=98,
    name="project",
    title="The project: a question of your own",
    question="What would you like to know that no unit has answered?",
    minutes=750,
    outcomes={"project": "answer a question of your own with a program, a measurement and a picture"},
    prerequisites=("11_fusion",),
)
PARTS = ("question", "prediction", "measured", "failed", "help")
LEAST = 12  # words on what failed
YES_OR_NO = {"is", "are", "does", "do", "can", "will", "has", "would", "should"}


@PROJECT.task
class Project(ValueTask):
    """The facts of a project, in a form that a reader finds at once.  Only a person can judge what they say."""

    name, mistakes = "project", ()

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if not isinstance(answer, dict) or not all(isinstance(each, str) for each in answer.values()):
            raise self.misformed(answer)
        if missing := [part for part in PARTS if not answer.get(part, "").strip(" .")]:
            raise Wrong(self.name, f"nothing stands under {', '.join(missing)}", self.otherwise)
        if not answer["question"].strip().endswith("?"):
            raise Wrong(self.name, "the question does not end with a question mark", self.advice["question"])
        if answer["question"].split()[0].lower() in YES_OR_NO:
            raise Wrong(self.name, "the question can be answered by yes or no", self.advice["question"])
        for part in ("prediction", "measured"):
            if not re.search(r"\d", answer[part]) and not any(map(number_in, re.findall(r"\w+", answer[part]))):
                raise Wrong(self.name, f"there is no number under {part}", self.advice[part])
        if len(answer["failed"].split()) < LEAST:
            raise Wrong(self.name, f"fewer than {LEAST} words on what failed", self.advice["failed"])
        return "the form is complete. Only a person can judge what it says: the rubric is on the page of the project."
