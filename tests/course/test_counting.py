"""Costs of answers: bytes and passes as the engine has them, limits, and plans within a budget."""


import pytest

import minigrad as mg
from minigrad.core.node import topological_order
from minigrad.viz.kept import Unit, peak, play, read_tape
from minigrad_course.counting import Passes, kept_bytes, kept_over_time, most_bytes
from minigrad_course.feedback import Wrong
from minigrad_course.tasks import ValueTask
from minigrad_course.units.u07_forward_and_memory.budget_tasks import Limit, PlanTask, within


def chain(operation, count, plan=()):
    """A chain of operations, of which the plan puts the first ones into checkpoints of these sizes."""
    h = mg.ones(1000, requires_grad=True)

    def part(size):
        def run(h):
            for _ in range(size):
                h = operation(h)
            return h

        return run

    for size in plan:
        h = mg.checkpoint(part(size))(h)
    return part(count - sum(plan))(h)


def segments(plan):
    ends = [sum(plan[: i + 1]) for i in range(len(plan))]
    return [range(end - size, end) for end, size in zip(ends, plan)]


@pytest.mark.parametrize("plan", [(), (4, 3), (4, 3, 2), (1,) * 9, (10,), (5, 5)])
@pytest.mark.parametrize("operation", [mg.tanh, lambda h: h * h, mg.relu, lambda h: mg.tanh(h * 1.5)])
def test_the_engine_keeps_what_the_view_computes(operation, plan):
    with mg.record():
        whole = chain(operation, 10)
    tape = read_tape(topological_order([whole.node]))
    size = len(topological_order([whole.node])) // 10
    nodes = list(tape.needs)
    tape = tape._replace(units=[Unit(str(i), nodes[i * size : (i + 1) * size]) for i in range(10)])
    history = play(tape, segments(plan))
    real = chain(operation, 10, plan)
    assert kept_bytes(real) == history[10].bytes
    assert most_bytes(real) == peak(history)


def test_nothing_is_kept_after_the_backward_pass_and_no_gradient_changes():
    x = mg.ones(4, requires_grad=True)
    times = kept_over_time((mg.tanh(x) * mg.exp(x)).sum())
    assert times[-1] == 0 and max(times) == 32 and x.grad is None


def test_data_and_parameters_are_not_counted_and_shared_arrays_once():
    w = mg.ones((4, 4), requires_grad=True)
    h = mg.tanh(mg.ones((2, 4)) @ w)
    assert kept_bytes(h) == 32 and kept_bytes(h @ w) == 32
    assert kept_bytes(mg.ones(3)) == 0


def test_the_first_limit_that_is_exceeded_is_reported_with_its_hint():
    limits = [Limit("kept at once", 4000, 4000), Limit("layers computed again", 9, 7, "fewer", str)]
    with pytest.raises(Wrong) as refused:
        within("plan", limits)
    assert str(refused.value) == (
        "✗ plan: too much: layers computed again\n  Expected: at most 7\n  Got: 9\n  Hint: fewer")
    assert within("plan", limits[:1]) == "4 kB kept at once, of 4 kB"


class Groups(PlanTask):
    """A plan whose first group has at most two blocks."""

    name, count, best, block = "groups", 5, [2, 3], "step"

    def limits(self, plan):
        return [Limit("steps in the first group", max(plan[:1], default=0), 2, "cut it", str)]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([3], "too much: steps in the first group\n  Expected: at most 2\n  Got: 3\n  Hint: cut it"),
        ("2, 3", "has another form"),
        (True, "has another form"),
        ([2, 2.5], "has another form"),
        ([2, 0], "a group without a step"),
        ([2, 4], "lists 6 steps, and there are 5\n  Hint: sizes, not places"),
    ],
)
def test_a_plan_in_another_form_or_beyond_a_limit_is_wrong(answer, says):
    with pytest.raises(Wrong) as refused:
        Groups().check(answer)
    assert says in str(refused.value)


@pytest.mark.parametrize("answer", [[2, 3], (1, 1), 2, [], mg.asarray([2, 1])])
def test_every_plan_within_the_limits_is_right(answer):
    assert Groups().check(answer).endswith("steps in the first group, of 2")


class Fixed(ValueTask):
    """The same for all students."""

    name, right_value, why = "fixed", 12, "six times two"
    wrong_values = ((6, "and times two?"), ([1, 2], "one number"))


def test_a_task_with_fixed_values_knows_why_and_its_mistakes():
    task = Fixed()
    assert task.check(12) == "six times two" and task.solution() == 12
    for value, hint in Fixed.wrong_values:
        with pytest.raises(Wrong) as refused:
            task.check(value)
        assert refused.value.hint == hint


def test_passes_of_both_modes_are_counted():
    with Passes(lambda x: x * x) as square:
        mg.jvp(square, (mg.ones(2),), (mg.ones(2),))
        x = mg.ones(2, requires_grad=True)
        square(x).sum().backward()
        mg.jacobian(square)(x)
    assert (square.forward, square.backward) == (1, 2)
    square(x).sum().backward()
    assert square.backward == 2  # after the block nothing is counted
