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
    "08_training": {
        "read_rows: 1 → 2", "momentum: beta * v → beta / v", "momentum: beta * v → beta",
    },
    "09_eager_costs": {
        "gelu: x * (1 + erf(x / ROOT_2)) / 2 → 2", "gelu: x * (1 + erf(x / ROOT_2)) → 1 + erf(x / ROOT_2)",
        "kernels_needed: 2 * self.devices * self.operations**2 → 2 * self.devices / self.operations ** 2",
        "kernels_needed: 2 * self.devices → 2 / self.devices",
    },
    "10_graph_mode": {"loop_difference: 2 → 3", "small_gradient: each / self.size → self.size"}, "11_fusion": {
        "fused_megabytes: self.cost.program.bytes // 1_000_000 → 1000000", "fused_megabytes: 1_000_000 → 1000001",
        "fused_operations: self.cost.program.flops // 1_000_000 → 1000000",
    },
    "12_parallelism": {"longest_chains: 0 → 1", "fourth_worker: 3 → 4"},
    "13_distributed": {
        "reduce_scatter: r + self.first - i - 1 → 1", "all_gather: r + self.first - i - 1 → 1",
        "other_ring: n - 1 → 1", *[f"other_ring: {slip}" for k in (1, 2) for slip in (
            # `otherwise` says how to derive the numbers of the chunks.
            f"p - {k} - i + half → p - {k} - i - half", f"p - {k} - i + half → p - {k} - i",
            f"p - {k} - i + half → half",
            f"p - {k} - i → p - {k} + i", f"p - {k} - i → p - {k}", f"p - {k} - i → i",
            f"p - {k} → p + {k}", f"p - {k} → p", f"p - {k} → {k}")],
        "bytes_sent: 2 * (self.workers - 1) / self.workers → self.workers",
        "bytes_sent: 2 * (self.workers - 1) → 2 / (self.workers - 1)",
        "bytes_sent: 2 * (self.workers - 1) → self.workers - 1",
        "worker_memory: 2 + self.KINDS[self.optimizer] / self.workers → 2 - self.KINDS[self.optimizer] / self.workers",
    },
    "14_applications": {
        "club_loss: degree[:, None] * degree → degree[:, None] / degree",
        "pole_loss: (returns - returns[stood > 0].mean()) * stood → (returns - returns[stood > 0].mean()) / stood",
        "pole_loss: log_chances * asarray(weights.astype(np.float32)) → "
        "log_chances / asarray(weights.astype(np.float32))",
    },
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
