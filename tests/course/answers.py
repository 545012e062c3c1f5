"""Wrong answers of students, each with words of the hint that it should get, or None where no hint would be right.

`origin` names the source of an answer.  Teachers add the answers that students handed in, unchanged, and remove those
that were only guessed.  A wrong answer without a fitting hint shows that a hint is missing.
"""

from typing import NamedTuple


class Answer(NamedTuple):
    """A cell that a student wrote for a task."""

    task: str
    cell: str
    hint: str | None
    origin: str


TRIED = "an author's guess at what a beginner writes; not handed in yet"
MICROGRAD = "how the chain rule is written in micrograd's tutorials, where rules change .grad in place"
BROADCAST = "the bug of engines that did not sum: https://github.com/deeplearning4j/nd4j/issues/2424"
ZEROS = "what a compiler did: https://github.com/pytorch/pytorch/issues/189799"

ANSWERS = [
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return a * g, b * g", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return b, a", "g is missing", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return [b * g, a * g][::-1]", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return b * g + a * g", "you added", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return g * out / b, g * out / a", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    a.grad += b * g\n    b.grad += a * g", ".grad", MICROGRAD),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    out = a * b\n    return out", "not its slope", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    print(b * g, a * g)", "return", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return g * b, g * a", "numbers of its own", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return 3 * b * g, 3 * a * g", "used twice", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return 3 * b + 6, 3 * a", "g is missing", TRIED),
    Answer("gradient_of_a", "gradient_of_a = -5", "g times as fast as the product", TRIED),
    Answer("gradient_of_a", "gradient_of_a = 8", "that is for b", TRIED),
    Answer("gradient_of_a", "gradient_of_a = 20", "mind the sign", TRIED),
    Answer("gradient_of_a", "gradient_of_a = -0.2", "by how much y changes", TRIED),
    Answer("gradient_of_a", "gradient_of_a = '-20'", "without the quotation marks", TRIED),
    Answer("sigmoid_grad", "def sigmoid_grad(g, out, x):\n    return out * (1 - out)", "g is missing", TRIED),
    Answer("sigmoid_grad", "def sigmoid_grad(g, out, x):\n    return g * x * (1 - x)", "uses the output", TRIED),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g", "b was repeated here", BROADCAST),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g.sum(0)", "axis 0 always", TRIED),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g.sum()", "to one number", TRIED),
    Answer("matmul_grad", "def matmul_grad(g, out, a, b):\n    return b.T, a.T", "multiplied by g", TRIED),
    Answer("matmul_grad", "def matmul_grad(g, out, a, b):\n    return g * b, g * a", "matrix product is `@`", TRIED),
    Answer("maximum_grad", "def maximum_grad(g, out, a, b):\n    return g * (a >= b), g * (b > a)", ">=", TRIED),
    Answer("bias_gradient", "bias_gradient = [1, 1, 1]", "each number of b is used once", TRIED),
    Answer("breaks", 'breaks = {"A": "holds", "B": "holds", "C": 0.0, "D": 1.0}', "zero has a sign", TRIED),
    Answer("breaks", 'breaks = {"A": 0.0, "B": "holds", "C": 0.0, "D": 1.0}', "not ordinary", TRIED),
    Answer("my_rules", 'my_rules = ["x + 0 -> x"]', "with the sign of zero", ZEROS),
    Answer("my_rules", 'my_rules = ["-(x - y) -> y - x"]', "with the sign of zero", TRIED),
    Answer("my_rules", 'my_rules = ["-(-x) -> x"]', "A sign can move out of a product", TRIED),
    Answer("merge_same", "def merge_same(nodes):\n    return {n: n for n in nodes}", "nothing is merged", TRIED),
    Answer("my_kernels", 'my_kernels = [["exp_1", "sum_1", "divide_1"]]', "known only after all of a", TRIED),
    Answer("my_kernels", 'my_kernels = [["exp_1", "sum_1"], ["divide_1"]]', "What if both compute it?", TRIED),
    Answer("why_not_fused", 'why_not_fused = {"A": "rows", "B": "rows", "C": "rows"}', "Are these counts", TRIED),
    Answer("one_kernel", "import minigrad as mg\ndef one_kernel(x):\n    return mg.sin(x)[::-1] * x", "is free", TRIED),
    Answer("row_loops", "import minigrad as mg\ndef row_loops(x, v):\n    return mg.exp(x) @ v", "still there", TRIED),
]
