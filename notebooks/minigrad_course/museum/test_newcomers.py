"""Wrong repairs that classmates would try in the museum, unusual right ones, and the words that they get."""

import pytest

from tests.course.running import said_to

WEIGHTS, ROOT = "def make_weights():\n    ", "def root(x):\n    "
TRAIN = "def clear_gradients(loss_of, optimizer):\n    "


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('visiting_order = "y c b a"', "✓"),
        ('visiting_order = ["y", "c", "b", "a", "x"]', "✓"),
        ('visiting_order = ["x", "a", "b", "c", "y"]', "each once"),
        ('visiting_order = ["y", "b", "a", "c", "b", "a"]', "each once"),
        ('visiting_order = ["a", "b", "c", "y"]', "order of the forward pass"),
        ("keep_flags = (1, 1, 0)", "✓"),
        ("keep_flags = [True]", "in the form of the first one"),
        ("keep_flags = [True, True, True]", "a call that never comes"),
        ('stopped = "A, C"', "✓"),
        ('stopped = {"c", "a"}', "✓"),
        ('stopped = ["A", "C", "D"]', "so it is in PyTorch"),
        ('stopped = ["A", "F"]', "some of the names A, B, C, D, E"),
        ('carrying_arrows = ["F", "D", "A"]', "✓"),
        ('carrying_arrows = "FDA"', "some of the names"),
        ('carrying_arrows = ["F"]', "detach() does not change h"),
        ("carrying_arrows = []", "∂w is 0, not 12"),
        ('carrying_arrows = ["A", "B", "D", "F"]', "∂w is 12, by another way"),
        ('carrying_arrows = ["A", "B", "E", "F"]', "nothing goes back from d to h"),
        ('carrying_arrows = ["A", "C", "F", "G"]', "k was computed under no_grad"),
        ('stopped = ["D"]', "makes a new array"),
        ('stopped = ["C"]', "A writes to c itself"),
        ('stopped = ["A", "E"]', "E writes to no array"),
        ('sees_the_write = ["a", "b", "c", "f", "g"]', "✓"),
        ('sees_the_write = ["a"]', "still the broken one"),
        ('sees_the_write = ["g"]', "a view is another shape"),
        ('sees_the_write = ["b", "c", "f", "g"]', "✓"),
        ("body_runs = [1, 0, 1, 0, 0]", "so it is in JAX"),
        ("body_runs = [True, False, True, False, True]", "✓"),
        ("body_runs = 3", "in the form of the first one"),
        ('different_numbers = {"by_numpy": 1, "by_minigrad": 4.0}', "✓"),
        ('different_numbers = {"by_numpy": 1}', "in the form of the first one"),
        ('timed_lines = "synchronize start run synchronize stop"', "✓"),
        ('timed_lines = ["start", "run", "synchronize", "stop"]', "the earlier kernel too"),
        ('timed_lines = ["start", "run", "synchronize", "stop", "synchronize"]', "counts the earlier kernel too"),
        ('timed_lines = ["start", "run", "stop", "synchronize", "synchronize"]', "still the broken one"),
        ('timed_lines = ["run", "start", "stop"]', "once each and in this order"),
        ('switches = {"dropout": "model.eval()", "batch_norm": "EVAL", "graph": "mg.no_grad()"}', "✓"),
        ('switches = {"dropout": "train", "batch_norm": "eval", "graph": "no_grad"}', 'each is "eval" or "no_grad"'),
        ('after_fusion = {"kernels": 1, "operations": 3, "MB": 24}', "stay in registers"),
        ('after_fusion = {"kernels": 1, "operations": 3, "MB": 8.0}', "✓"),
        ("factors = [3 / 10, 3 / 10, 3 / 10, 1 / 10]", "✓"),
        ("factors = [0.25] * 4", "three times as much"),
        ('after_fusion = {"kernels": 2, "operations": 3, "MB": 16}', "all three are in one kernel"),
        ("factors = [1, 1, 1, 1 / 3]", "in the right proportion"),
        ("factors = 0.25", "in the form of the first one"),
        ('two_sums = {"one_by_one": 1, "in_pairs": 0}', "✓"),
        ('two_sums = {"one_by_one": 0, "in_pairs": 0}', "0 + 1 needs no rounding"),
    ],
)
def test_repairs_by_values(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("make_weights", WEIGHTS + "w = mg.ones(3) * 0.1\n    w.requires_grad = True\n    return w", "✓"),
        ("make_weights", WEIGHTS + "return (mg.ones(3) * 0.1).requires_grad_()", "x.requires_grad = True"),
        ("make_weights", WEIGHTS + "return (mg.ones(3) * 0.1).detach()", "no tensor that requires"),
        ("make_weights", WEIGHTS + "w = mg.ones(3, requires_grad=True) * 0.1\n    w.retain_grad()\n    return w",
         "still not a leaf"),
        ("make_weights", WEIGHTS + "w = mg.ones(3, requires_grad=True) * 0.1\n    print(w)", "`return w`"),
        ("make_weights", WEIGHTS + "return mg.ones(3, requires_grad=True)", "its values are 1"),
        ("make_weights", WEIGHTS + "return mg.full(3, 0.2, requires_grad=True)", "w is [0.2, 0.2, 0.2] and a leaf"),
        ("make_weights", WEIGHTS + "return mg.full(1, 0.1, requires_grad=True)", "hold 0.1 three times"),
        ("root", ROOT + "return mg.where(x < 1.0, x, mg.sqrt(mg.maximum(x, 1.0)))", "✓"),
        ("root", ROOT + "return mg.where(x < 1.0, x, mg.sqrt(mg.where(x < 1.0, 0.0, x)))", "✓"),
        ("root", ROOT + "mg.where(x < 1.0, x, mg.sqrt(x))", "your function returns None"),
        ("root", ROOT + "return mg.where(x < 1.0, x, mg.sqrt(mg.maximum(x, 0.0)))", "Hint: keep the outer"),
        ("root", ROOT + "return mg.where(x < 1.0, x, mg.sqrt(x + 1e-9))", "right at 0"),
        ("root", ROOT + "return mg.sqrt(mg.where(x < 1.0, 1.0, x))", "the branch for x < 1 is gone"),
        ("root", ROOT + "if x < 1:\n        return x\n    return mg.sqrt(x)", "stopped with"),
        ("clear_gradients", TRAIN + "for i in range(20):\n        loss_of().backward()\n        optimizer.step()\n"
         "        optimizer.zero_grad()", "✓"),
        ("clear_gradients", TRAIN + "optimizer.zero_grad()\n    for i in range(20):\n        loss_of().backward()\n"
         "        optimizer.step()", "still the broken one"),
        ("clear_gradients", TRAIN + "for i in range(20):\n        loss = loss_of()\n        loss.backward()\n"
         "        optimizer.zero_grad()\n        optimizer.step()", "does not move at all"),
    ],
)
def test_repairs_by_code(name, code, words):
    assert words in said_to(code, name)


def test_the_hint_of_the_root_excludes_no_right_repair():
    assert "infinite" not in said_to(ROOT + "return mg.where(x < 1.0, x, mg.sqrt(x))", "root")
