"""Right answers in other words, and what a half-right answer hears."""

import re

import numpy as np
import pytest

from minigrad_course.answers import in_numbers, number_in, other_shape, right_parts
from minigrad_course.feedback import Feedback, Misused, Wrong
from minigrad_course.predicting import Formula
from minigrad_course.tasks import FunctionTask, GradientTask, Prediction, ValueTask
from minigrad_course.unit import units
from tests.course.running import said_to


@pytest.mark.parametrize(("text", "number"), [
    ("none", 0), ("None.", 0), ("Zero", 0), ("never", 0), ("once", 1), ("twice", 2), ("twelve", 12), ("fifteen", 15),
    ("twenty-one", 21), ("a hundred", 100), ("two million", 2e6), ("10²", 100), ("a tenth", 0.1), ("half", 0.5),
    ("log 10", np.log(10)), ("ln(10)", np.log(10)), ("1 / sqrt(100)", 0.1), ("10^3", 1000), ("64 · 64", 4096),
    ("2 times 3", 6), ("minus five", -5), ("infinity", np.inf), ("3 / 0", None), ("9**9**9**9", None),
    ("__import__('os')", None), ("a lot", None), ("", None), ("True", None), ("(1, 2)", None), ("e", None),
    ("about 160", 160), ("~ 5", 5),
    ("2(3)", None), ("-" * 100_000 + "1", None), ("1 + " * 60_000 + "1", None), ("sixteen", 16),
])
def test_a_number_is_read_from_words_and_formulas(text, number):
    found = number_in(text)
    assert found is None if number is None else found == pytest.approx(number)


class Count(ValueTask):
    """How many?"""

    name, right_value, example = "count", 0, "7"


class Guess(Prediction):
    """How many?"""

    name, right_value, example = "guess", 10, "7"


class Pair(Prediction):
    """Which two?"""

    name, right_value = "pair", (2, 10)


class Letters(Prediction):
    """Which of them, in any order?"""

    name, right_value, any_order = "letters", ["B", "E"], True


def test_words_are_right_where_a_number_is_right():
    assert Count().check("none") is None and Guess().check("ten") is None and Pair().check(["twice", 10.0]) is None
    assert in_numbers("once", "once") == "once" and in_numbers(["2"], [2]) == ["2"]


@pytest.mark.parametrize("answer", ["a lot", "infinitely many"])
def test_a_text_that_is_no_number_is_another_form_and_is_not_noted(answer):
    with pytest.raises(Misused, match="another form") as refused:
        Guess().check(answer)
    assert refused.value.hint == "a number, such as 7"


@pytest.mark.parametrize(("answer", "words"), [
    (3, "larger"), (11, "smaller"), ("three", "larger"), (float("nan"), "different"),
])
def test_a_prediction_hears_in_which_direction_it_is_wrong(answer, words):
    assert Guess().turned_out(answer) == f"The answer turns out to be {words}."


@pytest.mark.parametrize(("task", "answer", "says"), [
    (Pair, (2, 3), "Part 1 of 2 is right."), (Pair, (5, 10), "Part 2 of 2 is right."), (Pair, (1, 1), ""),
    (Pair, 3, ""), (Letters, ["B", "C"], "1 of yours is right, 1 too many, 1 missing."),
    (Letters, ["B"], "1 of yours is right, 0 too many, 1 missing."), (Letters, ["A"], ""),
    (Letters, ["A", "B", "C", "E"], "2 of yours are right, 2 too many, 0 missing."),
])
def test_a_half_right_prediction_hears_which_half(task, answer, says):
    assert task().turned_out(answer) == f"The answer turns out to be different. {says}".strip()


class Square(GradientTask):
    """The rule of a square."""

    name = "square_grad"

    def forward(self, a):
        return a * a

    def cases(self, draw):
        a = np.array([1.0, 2.0])
        yield np.array([1.0, 3.0]), a * a, a


class Double(FunctionTask):
    """Twice x."""

    name, otherwise = "double", "add x to itself"

    def cases(self, draw):
        yield (np.array([1.0, 3.0]),)

    def right(self, x):
        return 2 * x


def in_place(x):
    x *= 2
    return x


@pytest.mark.parametrize(("answer", "hint"), [
    (lambda x: (2 * x,), "right, in a tuple"), (lambda x: -2 * x, "minus the right result. add x"),
    (lambda x: 6 * x, "3 times the right result. add x"), (lambda x: x, "0.5 times the right result"),
    (lambda x: x * x, "^add x to itself"), (lambda x: 0 * x, "^add x to itself"), (lambda x: "x", "^add x to itself"),
])
def test_a_wrong_result_hears_what_it_has_to_do_with_the_right_one(answer, hint):
    with pytest.raises(Wrong) as refused:
        Double().check(answer)
    assert re.search(hint, refused.value.hint)


def test_a_function_may_write_into_its_arguments_and_a_rule_may_not():
    def rule(g, out, a):
        g *= 2 * a
        return [g]

    assert Double().check(in_place) is None
    with pytest.raises(Wrong, match="it writes into g"):
        Square().check(rule)


@pytest.mark.parametrize("answer", ["1 and none", "one, zero", {"first": 1, "second": "none"}])
def test_several_numbers_are_read_from_words_and_names(answer):
    assert in_numbers(answer, (1, 0)) == [1, 0]


@pytest.mark.parametrize(("answer", "right"), [("the same", [1, 2]), ([1, 2], 3), ((1, 2, 3), 3)])
def test_an_answer_of_another_form_is_told_apart_from_a_wrong_one(answer, right):
    assert other_shape(answer, right) and other_shape([1.0], [1, 2]) is None and other_shape(4, 3) is None


def test_parts_are_counted_from_one():
    assert right_parts([1, 2, 3, 4], [1, 0, 3, 4]) == "Parts 1, 3 and 4 of 4 are right."
    assert "Part 1 of 2 is right" in said_to("early = 2, 3", "early")


def test_none_is_no_answer_and_the_hint_says_what_is():
    assert "write 0" in said_to("arrows = None", "arrows")


@pytest.mark.parametrize(("answer", "is_right"), [
    ("g @ W.T", True), ("(W @ g.T).T", True), ("g @ W.transpose()", True), ("np.dot(g, W.T)", True), ("g @ W", False),
    ("g@W.T", True), (3, False), ("np.random.rand(4, 3)", False),
])
def test_a_formula_that_means_the_same_is_right(answer, is_right):
    task = units()["05_gradient_functions"].tasks["by_shapes"]()
    assert isinstance(task, Formula) and (task.read(answer) == task.right_value) is is_right
    with pytest.raises(Feedback, match="a formula, as text"):
        task.read("the first")


class Drawn(ValueTask):
    """A variant from the texts."""

    name, draws, formula = "drawn", {"lines": [8, 12], "work": [80, 120]}, "lines * (work + 5)"


def test_a_variant_is_drawn_from_lists_and_its_right_answer_is_a_formula():
    found = {Drawn(student).right() for student in map(str, range(30))}
    assert found == {680, 1000, 1020, 1500} and Drawn("Ada").right() == Drawn("Ada").right()


class Doubled(ValueTask):
    """Twice a number of the student's."""

    name, formula, draws = "doubled", "2 * k", {"k": [7]}
    otherwise, written_mistakes = "two times {k}", [["k + 2", "{k} + 2 is a sum"]]


@pytest.mark.parametrize(("answer", "hint"), [(9, "7 + 2 is a sum"), (1, "two times 7")])
def test_hints_have_the_numbers_of_the_student(answer, hint):
    with pytest.raises(Wrong) as refused:
        Doubled().check(answer)
    assert refused.value.hint == hint and Doubled().given() == {"k": 7}
