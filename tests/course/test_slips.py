"""Slips of right programs: the tool makes them, and lists those that get no hint yet."""

import pytest

from minigrad_course.authoring.slips import slips_of, without_hint
from minigrad_course.tasks import FunctionTask
from minigrad_course.unit import units


class Trapezium(FunctionTask):
    """The area of a trapezium."""

    name = "trapezium"
    otherwise = "draw it first"
    written_mistakes = [["/ 2", "", "half of it"], ["a + b", "a - b", "the sides are added"]]

    def cases(self, draw):
        yield 3.0, 5.0, 7.0

    def right(self, a, b, height):
        return (a + b) * height / 2


def test_each_operator_part_and_number_is_a_slip():
    found = dict.fromkeys(slip for _, slip in slips_of("def f(x, y):\n    return -x, y < 2\n"))
    assert list(found) == ["(y < 2, -x)", "x", "y <= 2", "3"]


def test_a_slip_is_listed_if_no_hint_explains_it():
    found = without_hint(Trapezium)
    assert "a + b → a" in found and "2 → 3" in found
    assert not {"a + b → a - b", "(a + b) * height / 2 → (a + b) * height"} & {*found}


# Slips that get no hint on purpose: they are rare, or `otherwise` says all there is to say.
UNEXPLAINED = {
    "00_start": set(),
    "01_why_frameworks": {"whole_gradient: count * each → count / each"},
    "02_arrays": set(), "03_devices": set(),
    "04_graphs": {"typed_graph: self.ended(2, self.positive) → self.ended(self.positive, 2)"},
    "06_reverse_mode": set(),
    "07_forward_and_memory": {"kept_list: 0 → 1"},
    "05_gradient_functions": {
        "bias_gradient: one + two → one - two", "maximum_grad: 1 - self.share → 1 + self.share",
        "maximum_grad: 1 → 2", "gradcheck: by_rule - measured → by_rule + measured",
        "gradcheck: by_rule - measured → measured",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("key", UNEXPLAINED)
def test_slips_of_a_unit_have_hints(key):
    """After a change of the tasks: `python -m minigrad_course.authoring.slips UNIT` lists what is new."""
    found = {f"{task.name}: {line}" for task in units()[key].tasks.values() for line in without_hint(task)}
    assert found == UNEXPLAINED[key]
