"""Answers of real newcomers to unit 00, in addition to the declared mistakes: each gets feedback that helps."""

import pytest

import minigrad_course as course
from tests.course.running import said_to


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("rise = 0.1004", "✓"),
        ("rise = 0.1", "✓"),
        ("rise = 1/10", "✓"),
        ("rise = 0.5", "put 1.01 in place of 1.0"),
        ("rise = 0", "put 1.01 in place of 1.0"),
        ('rise = "a bit"', "a number, such as 0.01"),
        ("rise = None", "not answered yet"),
        ("numbers = [1, 3, 5]", "✓"),
        ("numbers = (1, 3, 5)", "✓"),
        ("numbers = 1, 3, 5", "✓"),
        ("numbers = 5", "numbers, such as [1, 2]"),
        ('numbers = "one, three, five"', "✓"),
        ("early = 2", "numbers, such as"),
        ('order = "y -> a*a -> a"', "✓"),
        ('order = ["dy", "d(a^2)", "da"]', "✓"),
        ('rise = "one tenth"', "✓"),
        ("numbers = [1, 2, 3]", "look only at the box"),
        ('empty = "No."', "✓"),
        ("empty = False", "✓"),
        ("empty = True", "0 is an answer"),
        ('empty = "maybe"', 'write "yes" or "no"'),
        ("early = [2, 10]", "✓"),
        ("early = (10, 2)", "the other way round"),
        ('order = ["y", "multiply", "a", "x"]', "✓"),
        ('order = ["∂y", "∂(a · a)", "∂a"]', "✓"),
        ('order = ["y", "a * a", "a"]', "✓"),
        ('order = "y, multiply, a"', "✓"),
        ("y = a = mg.ones(())\norder = [y, a]", "in quotation marks"),
        ('order = ["x", "a", "multiply", "y"]', 'each of "y", "a * a" and "a" once'),
        ('rise = "0.1"', "without the quotation marks"),
        ("rise = 0,1", "with a point, not a comma: 0.1"),
        ("rise = [0.1]", "one number, without brackets"),
        ("numbers = [1, 1, 3, 3, 5]", "each number once"),
        ("numbers = [1, 1, 3, 3, 5, 5]", "each number once"),
        ("numbers = [1, 1, 2, 3]", "your answer has 4 numbers"),
        ("numbers = [1, 3.02, 5.04]", "Put 1.0 back"),
        ('numbers = ["1", "3", "5"]', "without quotation marks"),
        ('numbers = "1, 3, 5"', "without the quotation marks"),
        ("numbers = {1, 3, 5}", "which keep the order"),
        ("empty = 0", 'write "yes" or "no"'),
        ('empty = "no, because nothing has come"', "✓"),
        ('early = "2, 10"', "without the quotation marks"),
        ('early = "2", "10"', "without quotation marks"),
        ('order = ["Y", "Multiply", "A"]', "✓"),
        ('order = ["y" "multiply" "a"]', "a comma after each"),
        ('order = {"y", "multiply", "a"}', "in brackets"),
        ("gradient_of_a = [-20]", "without brackets"),
    ],
)
def test_feedback_on_questions_of_the_start(answer, words):
    assert words in said_to(answer, answer.split("\n")[-1].partition(" ")[0])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [g * b, g * a]", "✓"),
        ("to_a = g * b\n    to_b = g * a\n    return to_a, to_b", "✓"),
        ("return b * g, a * g", "✓"),
        ("return g * b g * a", "Python cannot read this line"),
        ("return (g * b), (g * a", "Python cannot read this line"),
        ("print(g * b, g * a)", "only the value after `return`"),
        ("g = g * b\n    return g, g * a", "the g that the first line has changed"),
        ("return g * out / a, g * out / b", "no need to divide"),
        ("return (g * b if a else 0.0), g * a", "is there an `if`?"),
        ("return -g * b, -g * a", "minus the right result"),
        ("h = 1e-3\n    return ((a + h) * b - a * b) / h * g, g * a", "launches 7 kernels, and minigrad's own rule 2"),
        ("return g * (a + b)", "you added the gradients"),
        ("return -10, 15", "right for one example only"),
        ("return b * g, b * g", "let a rise by 0.01"),
        ("return grad * b, grad * a", "spelled in the same way"),
        ("return gb, ga", "write the sign between"),
        ("return g(b), g(a)", "to multiply, write the sign"),
        ("return 5b, 3a", "write the sign between"),
        ("if a > 0:\n        return g * b, g * a", "is there a `return`?"),
        ("a = g * b\n    b = g * a\n    return a, b", "give your result another name"),
        ("return (g * b),\n    return (g * a)", "after the comma"),
        ("return int(g * b), int(g * a)", "that is rounded"),
        ("return round(g * b), round(g * a)", "that is rounded"),
        ("return str(g * b), str(g * a)", "numbers, not text"),
        ('return f"{g * b}, {g * a}"', "numbers, not text"),
        ('return {"a": g * b, "b": g * a}', "with a comma between"),
        ("import numpy as np\n    return np.array([g * b, g * a])", "with a comma between"),
        ("yield g * b\n    yield g * a", "not yield"),
    ],
)
def test_feedback_on_the_rule_of_a_product(body, words):
    assert words in said_to(f"def mul_grad(g, out, a, b):\n    {body}", "mul_grad")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return g * 3 * a, g * (3 * b + 6)", "swapped"),
        ("return g * (out / a), g * 3 * a", "no need to divide"),
        ("return g * 3 * (b + 6), g * 3 * a", "is 6 * a alone: 3 belongs to the first part"),
        ("return g * (3 * b + 6), 3 * a", "g is missing in the gradient of b"),
        ("return g * (3 * a + 6), g * 3 * b", "swapped in the product"),
        ("return g * (3 * b + 6 * a), g * 3 * a", "a itself does not stay"),
        ("return g * 3 * b + 6 * a, g * 3 * a", "no a"),
        ("return 3 * a * b + 6 * a", "that is out itself"),
        ("return g * (3 * b + 6)\n    return g * 3 * a", "Return the gradient of b too"),
        ("return g * 3 * b, g * 6, g * 3 * a", "added to one number"),
    ],
)
def test_feedback_on_the_students_own_rule(body, words):
    assert words in said_to(f"def mixed_grad(g, out, a, b):\n    {body}", "mixed_grad")


def test_feedback_on_a_function_by_another_name():
    said = said_to("def mul_gard(g, out, a, b):\n    return g * b, g * a", "mul_grad")
    assert "do you mean mul_gard?" in said
    assert 'course.check("rise")?' in said_to("rise = 0.1", "Rise")


def test_feedback_on_a_function_that_is_not_indented():
    assert "four spaces further to the right" in said_to("def mul_grad(g, out, a, b):\nreturn g * b, g * a", "mul_grad")


@pytest.mark.parametrize("wrong", [lambda g, out, a, b: (g * a, g * b), lambda g, out, a, b: (b, a)])
def test_a_wrong_rule_reads_no_digits(wrong):
    """A wrong rule must not train as well as the right one."""
    with course.rule("multiply", wrong) as mine:
        trained = course.train_digits(mine, 2)
    assert trained.right < 0.3 * trained.shown
