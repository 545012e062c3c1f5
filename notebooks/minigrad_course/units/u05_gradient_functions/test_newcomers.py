"""Answers of real newcomers to unit 05, in addition to the declared mistakes: each gets feedback that helps."""

import pytest

import minigrad_course as course
from minigrad_course.unit import units
from tests.course.running import said_to

FOUR_RULES = {
    "the slope by the exponential": (
        "sigmoid_grad(g, out, x)", "return g * mg.exp(-x) / (1 + mg.exp(-x)) ** 2",
        "It reads g, x. It takes 8 kernels",
    ),
    "in brackets": ("sigmoid_grad(g, out, x)", "return (g * out * (1 - out),)", "It reads g, out. It takes 3 kernels"),
    "in place": ("sigmoid_grad(g, out, x)", "g *= out * (1 - out)\n    return g", "writes into g"),
    "with PyTorch's names": ("sigmoid_grad(g, out, x)", "return g * torch.sigmoid(x)", "NameError"),
    "multiplied without a sign": ("sigmoid_grad(g, out, x)", "return g * out(1 - out)", "write the sign"),
    "summed": ("sigmoid_grad(g, out, x)", "return (g * out * (1 - out)).sum()", "no sum"),
    "the slope of the input": ("sigmoid_grad(g, out, x)", "return g * x * (1 - x)", "uses the output"),
    "the value": ("sigmoid_grad(g, out, x)", "return g * out", "one factor is missing"),
    "sums a row, and a column without its axis": (
        "add_grad(g, out, a, b)",
        "if b.shape == g.shape:\n        return g, g\n    if b.ndim == 2:\n        return g, g.sum(1)\n"
        "    return g, g.sum(0) if b.ndim else g.sum()", "keepdims=True",
    ),
    "compares lengths": (
        "add_grad(g, out, a, b)",
        "if b.ndim == 1:\n        return g, g.sum(0)\n    if b.ndim == 0:\n        return g, g.sum()\n    return g, g",
        "In a column",
    ),
    "by reshaping": (
        "add_grad(g, out, a, b)",
        "if b.shape == g.shape:\n        return g, g\n    if b.ndim == 2:\n        return g, g.sum(1, keepdims=True)\n"
        "    return g, g.sum(0) if b.ndim else g.sum()", "✓",
    ),
    "one gradient": ("add_grad(g, out, a, b)", "return g", "Return the gradient of b too"),
    "torch's sum_to_size": ("add_grad(g, out, a, b)", "return g, g.sum_to_size(b.shape)", "sum_to_size"),
    "torch's dim": ("add_grad(g, out, a, b)", "return g, g.sum(dim=0)", "g.sum(axis=0)"),
    "torch's keepdim": ("add_grad(g, out, a, b)", "return g, g.sum(0, keepdim=True)", "with an s"),
    "reshapes": ("add_grad(g, out, a, b)", "return g, g.reshape(b.shape)", "reshape adds nothing"),
    "ones": ("add_grad(g, out, a, b)", "return 1, 1", "g is missing"),
    "a product": ("add_grad(g, out, a, b)", "return g * b, g * a", "the rule of a product"),
    "torch's t": ("matmul_grad(g, out, a, b)", "return g @ b.t(), a.t() @ g", ".T, without brackets"),
    "the inputs": ("matmul_grad(g, out, a, b)", "return b, a", "without g"),
    "which": ("maximum_grad(g, out, a, b)", "return a > b, b > a", "g is missing"),
    "place by place": ("matmul_grad(g, out, a, b)", "return g * b.T, a.T * g", "The matrix product is `@`"),
    "the wrong side": ("matmul_grad(g, out, a, b)", "return b.T @ g, g @ a.T", "write down the shapes"),
    "not turned": ("matmul_grad(g, out, a, b)", "return g @ b, a @ g", "write down the shapes"),
    "turned twice": ("matmul_grad(g, out, a, b)", "return b @ g.T, g.T @ a", "transposed shape"),
    "with mg.matmul": ("matmul_grad(g, out, a, b)", "return mg.matmul(g, b.T), mg.matmul(a.T, g)", "nothing to turn"),
    "a table of vectors": (
        "matmul_grad(g, out, a, b)",
        "return (g @ b.T if b.ndim == 2 else g.reshape(-1, 1) * b), a.T @ g", "It reads g, a, b. It takes 2 kernels"),
    "a column of the vector": (
        "matmul_grad(g, out, a, b)", "return (g @ b.T if b.ndim == 2 else b.reshape(-1, 1) * g), a.T @ g",
        "a[i, j] · b[j]",
    ),
    "at a tie, a alone": (
        "maximum_grad(g, out, a, b)", "return g * (a > b) + SHARE * g * (a == b), g * (b > a)", "∂a is right"),
    "shares everywhere": ("maximum_grad(g, out, a, b)", "return g * SHARE, g * (1 - SHARE)", "in every place"),
    "shares beside": (
        "maximum_grad(g, out, a, b)", "return g * (a > b) + SHARE * g, g * (b > a) + (1 - SHARE) * g",
        "for a tie alone",
    ),
    "the smaller, with shares": (
        "maximum_grad(g, out, a, b)",
        "t = (a == b)\n    return g * ((a < b) + SHARE * t), g * ((b < a) + (1 - SHARE) * t)",
        "the smaller input gets g",
    ),
    "if": ("maximum_grad(g, out, a, b)", "if a > b:\n        return g, 0 * g\n    return 0 * g, g", "decide once"),
    "both at a tie": ("maximum_grad(g, out, a, b)", "return g * (a >= b), g * (b >= a)", "both get all of g"),
    "by the output": ("maximum_grad(g, out, a, b)", "return g * (out == a), g * (out == b)", "both get all of g"),
    "in halves": (
        "maximum_grad(g, out, a, b)", "t = 0.5 * (a == b)\n    return g * ((a > b) + t), g * ((b > a) + t)", "equally"),
    "smaller": ("maximum_grad(g, out, a, b)", "return g * (a < b), g * (b < a)", "the smaller input gets g"),
    "with where": (
        "maximum_grad(g, out, a, b)",
        "s = mg.where(a > b, 1.0, mg.where(a == b, SHARE, 0.0))\n    return g * s, g * (1 - s)", "✓",
    ),
}


@pytest.mark.parametrize("which", FOUR_RULES)
def test_feedback_on_rules_of_arrays(which):
    head, body, words = FOUR_RULES[which]
    share = units()["05_gradient_functions"].tasks["maximum_grad"]("").share
    assert words in said_to(f"def {head}:\n    {body.replace('SHARE', str(share))}", head.partition("(")[0])


LOOP = (
    "h, big, by = 1e-5, 0.0, rule(g, f(x), x)\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n"
    "        u[i] += h\n        d[i] -= h\n        m = np.sum((f(u) - f(d)) * g) / (2 * h)\n"
    "        big = max(big, {})\n    return big")
CHECKS = {
    "from one side": (
        "h, y = 1e-6, f(x)\n    r = rule(g, y, x)\n    big = 0\n    for i in range(len(x)):\n        z = x.copy()\n"
        "        z[i] += h\n        big = max(big, abs(r[i] - ((f(z) - y) * g).sum() / h))\n    return big", "✓"),
    "far from one side": (
        "h, y = 0.1, f(x)\n    r = rule(g, y, x)\n    big = 0\n    for i in range(len(x)):\n        z = x.copy()\n"
        "        z[i] += h\n        big = max(big, abs(r[i] - ((f(z) - y) * g).sum() / h))\n    return big",
        "h = 1e-5"),
    "leaves its nudges": (
        "big = 0\n    for i in range(len(x)):\n        y = f(x)\n        x[i] += 1e-6\n"
        "        big = max(big, abs(rule(g, y, x)[i] - ((f(x) - y) * g).sum() / 1e-6))\n    return big",
        "nudge a copy"),
    "all together": (
        "h = 1e-6\n    n = (f(x + h) - f(x - h)) * g / (2 * h)\n    return abs(rule(g, f(x), x) - n).max()",
        "nudge x[i] alone"),
    "goes over the numbers": ("for i in x:\n        x.copy()[i] += 1", "for i in range(len(x))"),
    "returns the slopes": ("return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5", "one number"),
    "number by number": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        n = (f(u)[i] - f(d)[i]) * g[i] / (2 * h)\n"
        "        big = max(big, abs(rule(g, f(x), x)[i] - n))\n    return big", "a single number"),
    "says whether": ("return True", "not whether it is small"),
    "returns after the first": (
        "for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += 1e-5\n        d[i] -= 1e-5\n"
        "        return abs(rule(g, f(x), x)[i] - np.sum((f(u) - f(d)) * g) / 2e-5)", "inside the loop"),
    "without brackets": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        big = max(big, abs(rule(g, f(x), x)[i] - np.sum((f(u) - f(d)) * g) / 2 * h))\n"
        "    return big", "with brackets"),
    "forgets g": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        big = max(big, abs(rule(g, f(x), x)[i] - np.sum(f(u) - f(d)) / (2 * h)))\n"
        "    return big", "multiply the change of f by g"),
    "another order": ("return rule(x, f(x), g)[0]", "h = 1e-5"),
    "without abs": (LOOP.format("by[i] - m"), "without abs"),
    "without abs, turned": (LOOP.format("m - by[i]"), "without abs"),
    "squares": (LOOP.format("(by[i] - m) ** 2"), "the square of the difference"),
    "relative": (LOOP.format("abs(by[i] - m) / abs(m)"), "do not divide it by the slope"),
    "always 0": ("return 0.0", "0 for a wrong rule too"),
    "a tensor": (LOOP.format("abs(by[i] - m)").replace("return big", "return mg.asarray(big)"), "✓"),
    "h too small": (LOOP.format("abs(by[i] - m)").replace("1e-5", "1e-12"), "h = 1e-5"),
    "with the mean": (LOOP.format("abs(by[i] - m)").replace("np.sum", "np.mean"), "np.mean divides"),
    "prints": (LOOP.format("abs(by[i] - m)").replace("return big", "print(big)"), "only the value after `return`"),
    "a rule without g": (LOOP.format("abs(by[i] - m)").replace("rule(g", "rule(1"), "give the rule g itself"),
}


@pytest.mark.parametrize("which", CHECKS)
def test_feedback_on_gradient_checks(which):
    body, words = CHECKS[which]
    assert words in said_to(f"import numpy as np\ndef gradcheck(f, rule, x, g):\n    {body}", "gradcheck")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("same_function = 4", "never sees the function"),
        ("same_function = 2.0", "✓"),
        ("same_function = 0", "minimum is at its kink too"),
        ("same_function = 0.5", "one rule is left"),
        ("from_output = 0.19", "And g?"),
        ("from_output = 0.95", "✓"),
        ("flat = 0.00987", "✓"),
        ("flat = 0.01", "✓"),
        ("flat = 0.995", "that is the output"),
        ("chained = 5.36", "not added"),
        ("chained = 5 * (1 - 0.8 ** 2)", "✓"),
        ("bias = [1, 1, 1]", "each use sends a 1"),
        ("bias = 18", "everything in one number"),
        ("bias = mg.asarray([6.0, 6.0, 6.0])", "✓"),
        ('by_shapes = "g@W.T"', "✓"),
        ('by_shapes = "g @ W"', "do not go together"),
        ('by_shapes = "X"', ".T turns"),
        ('by_shapes = "∂X = g · Wᵀ"', "✓"),
        ('by_shapes = "g @ W^T"', "✓"),
        ('by_shapes = "g times W"', "a formula, as text"),
        ("bias = 6", "each of the three is 6"),
        ("at_the_kink = 0", "(0.4 − 0) / 0.2"),
        ("at_the_kink = 4/2", "✓"),
        ("step = 11", "16 digits"),
        ("step = 5", "from both sides"),
        ("step = 1e-8", "write n alone"),
        ("step = 8", "✓"),
        ("bias_gradient = 5", "column by column"),
        ('wrong_rule = "A"', "has another form"),
        ('wrong_rule = ("F", 1.0)', "has another form"),
    ],
)
def test_questions_of_gradient_functions(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_a_letter_of_a_right_rule_is_not_the_wrong_rule():
    task = units()["05_gradient_functions"].tasks["wrong_rule"]("")
    right, largest = task.right()
    other = next(letter for letter in "ABCDE" if letter != right)
    assert "should be near 0" in said_to(f'wrong_rule = ("{other}", 0.5)', "wrong_rule")
    for number in (largest + 1, "float('nan')"):
        assert "is not its largest difference" in said_to(f'wrong_rule = ("{right}", {number})', "wrong_rule")
    assert "✓" in said_to(f'wrong_rule = ("{right}", mg.asarray({largest}))', "wrong_rule")
    assert "✓" in said_to(f'wrong_rule = ["{right.lower()}", {largest}]', "wrong_rule")


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_one_of_five_rules_is_wrong_and_four_are_right(student):
    """Also the amount that the wrong rule is off by is large enough to be seen."""
    tasks = units()["05_gradient_functions"].tasks
    task, check = tasks["wrong_rule"](student), tasks["gradcheck"]("")
    off = {each: check.right(task.forward(each), task.rule(each), task.x, task.gradient(each)) for each in "ABCDE"}
    assert off.pop(task.right()[0]) > 0.05 and max(off.values()) < 1e-6


@pytest.mark.slow
def test_a_network_learns_by_the_four_rules_and_not_by_a_wrong_one():
    tasks = units()["05_gradient_functions"].tasks
    train = tasks["maximum_grad"]("").given()["train"]

    def matmul_grad(g, out, a, b):
        return g @ b.T, a.T @ g

    def summed(g, out, a, b):
        return g, g.sum(0)

    with course.rule("matmul", matmul_grad) as mine, course.rule("add", summed):
        assert train().right > 300 and mine.calls > 0
    with course.rule("sigmoid", lambda g, out, x: out * (1 - out)):
        assert train().right < 100
