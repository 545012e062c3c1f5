"""Kinds of predictions: options, printed lines, constants as known mistakes; and a trace by example."""

from typing import ClassVar

import pytest

import minigrad as mg
from minigrad_course import by_example
from minigrad_course.feedback import Misused, Wrong
from minigrad_course.predicting import Choice, Printed
from minigrad_course.source_code import Program
from minigrad_course.tasks import Prediction, ValueTask


class Maker(Choice):
    """Which?"""

    name, right_value = "maker", "multiply"
    options = {"log": "an infinity", "multiply": "", "sum": "it passes it on"}


class Guess(Maker, Prediction):
    """Which?"""

    name = "guess"


@pytest.mark.parametrize(("answer", "read"), [
    ("about", "about half"), ("hardly any of it", "hardly any"), ("500 MB", "500"), (500, "500"), (500.0, "500"),
    ("all or half", "all or half"), (None, None),
])
def test_an_option_is_read_with_words_and_units_beside_it(answer, read):
    class Sizes(Choice):
        name, right_value = "sizes", "500"
        options: ClassVar = {"5": "few", "500": "", "about half": "no", "hardly any": "no"}

    assert Sizes().read(answer) == read


def test_an_option_is_read_without_case_and_spaces():
    assert Maker().check("  MULTIPLY ") is None and Maker.example == '"log"'


@pytest.mark.parametrize(("answer", "hint"), [("log", "an infinity"), ("Sum", "it passes it on")])
def test_each_wrong_option_has_its_hint(answer, hint):
    with pytest.raises(Wrong) as refused:
        Maker().check(answer)
    assert refused.value.hint == hint


@pytest.mark.parametrize(("task", "kind"), [(Maker, Wrong), (Guess, Misused)])
def test_what_is_not_an_option_is_answered_with_the_options(task, kind):
    with pytest.raises(kind) as refused:
        task().check(3)
    assert refused.value.hint == 'one of "log", "multiply", "sum"'


class Lines(Printed):
    """What is printed?"""

    name, program = "lines", "for word in 'one', 'Two':\n    print(word)"
    wrong_values = ((["one", "Two", "three"], "there is no third"),)


@pytest.mark.parametrize("answer", [["one", "Two"], ("ONE", " two "), "one\ntwo", "one, two"])
def test_printed_lines_are_accepted_in_several_forms(answer):
    assert Lines().check(answer) is None


@pytest.mark.parametrize(
    ("answer", "hint"), [(["one", "Two", "three"], "there is no third"), (["Two", "one"], "the other way round")])
def test_wrong_values_come_before_the_common_mistakes(answer, hint):
    with pytest.raises(Wrong) as refused:
        Lines().check(answer)
    assert refused.value.hint == hint


def test_wrong_values_keep_the_common_mistakes_of_values():
    assert Lines.mistakes[0].hint == "there is no third"
    assert {known.name for known in ValueTask.mistakes} < {known.name for known in Lines.mistakes}


def test_a_program_is_users_code_to_the_engine():
    program = Program("scale = 2.0\n\ndef f(x):\n    return x * scale\n", "scale = 5.0")
    f = mg.jit(program.function)
    assert f(mg.ones(())).item() == 2
    program.run()
    assert f(mg.ones(())).item() == 5 and f.traces[1] == "scale was 2.0 and is 5.0"


def test_a_trace_by_example_repeats_the_operations_of_the_example():
    weight = mg.asarray(3.0, requires_grad=True)

    def f(x):
        return x * weight + mg.asarray([1.0, 2.0]) if x.sum() > 0 else -x

    frozen = by_example(f, mg.ones(2))
    assert [node.name for node in frozen.graph.nodes] == ["multiply", "add"]
    assert frozen(mg.asarray([-1.0, -2.0])).tolist() == [-2.0, -4.0] and not frozen(mg.ones(2)).requires_grad
    with mg.no_grad():
        weight += 1  # a weight is used where it is, as an input
    assert frozen(mg.ones(2)).tolist() == [5.0, 6.0]


def doubled(x):
    x *= 2
    return x


def doubled_and_summed(x):
    y = x
    x += y
    return x.sum() + y.sum()


def row_by_row(x):
    x[0] = x[1] * 3
    x[1:] -= 1
    return x * 2


def through_a_view(x):
    first = x[0]
    first *= 5
    x @= mg.asarray([[0.0, 1.0], [1.0, 0.0]])
    return first + x


def into_a_new_one(x):
    table = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    zeros = mg.zeros(2)
    table[0] += x[1]
    zeros[...] = table[0]
    return zeros * x


WRITES = [doubled, doubled_and_summed, row_by_row, through_a_view, into_a_new_one, lambda x: doubled(x.T)]


@pytest.mark.parametrize("function", WRITES)
def test_writes_are_operations_of_a_trace_by_example(function):
    example, x = mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.asarray([[5.0, -6.0], [0.5, 8.0]])
    frozen = by_example(function, example)
    for each in (example, x, x * 2):
        before = each.copy()
        assert frozen(each).tolist() == function(each.copy()).tolist() and each.tolist() == before.tolist()


def test_a_loop_that_writes_in_place_is_unrolled():
    def grow(x):
        while x < 10.0:
            x *= 2
        return x

    assert by_example(grow, mg.asarray(4.0))(mg.asarray(0.75)).item() == 3.0
    assert [node.name for node in by_example(grow, mg.asarray(4.0)).graph.nodes] == ["multiply", "multiply"]


def test_a_write_to_a_tensor_from_outside_is_refused():
    total = mg.zeros(2)

    def add(x):
        total[0] += x.sum()
        return total

    with pytest.raises(mg.ConversionError, match="changes a tensor in place that it was not given"):
        by_example(add, mg.ones(2))
    assert total.tolist() == [0, 0]


def test_a_function_that_returns_no_tensor_has_no_trace_by_example():
    def three(x):
        return 3

    with pytest.raises(mg.ConversionError, match="by_example: three returns 3"):
        by_example(three, mg.ones(2))
