# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · Gradient functions: four rules and a check
#
# Do [05 · Gradient functions](../05_gradient_functions.ipynb) first. Here you write the rules, for arrays of numbers, and they run in the engine.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("05_gradient_functions", student="")

# %% [markdown]
# ## 1 · A rule that reads its output
#
# `out = sigmoid(x)` is 1 / (1 + exp(−x)). Its slope is exp(−x) / (1 + exp(−x))². `sigmoid_grad(g, out, x)` returns the gradient of x. All three are arrays of
# one shape, and `*`, `+` and `-` work place by place. There is a shorter form of the slope, **made of out alone**: then x need not be kept. The check says what
# your rule reads.

# %% name="sigmoid_grad"
def sigmoid_grad(g, out, x):
    ### BEGIN SOLUTION
    return g * out * (1 - out)
    ### END SOLUTION

# %% name="check-sigmoid-grad"
course.check("sigmoid_grad")

# %% [markdown]
# ## 2 · Broadcasting, by hand

# %% name="task-bias-gradient"
course.task("bias_gradient")

# %% name="bias_gradient"
bias_gradient = ...  # three numbers, in brackets
### BEGIN SOLUTION
bias_gradient = [23, 25, 15]
### END SOLUTION

# %% name="check-bias-gradient"
course.check("bias_gradient")

# %% [markdown]
# ## 3 · The rule of a sum
#
# `out = a + b`. a has the shape of out. b may have another one: it is repeated until it fits. If out has shape (2, 3), b may be
#
# | b | shape | is repeated |
# |---|---|---|
# | a table | (2, 3) | not at all |
# | a row | (3,) | downwards, along axis 0 |
# | a column | (2, 1) | to the right, along axis 1 |
# | one number | () | everywhere |
#
# `add_grad(g, out, a, b)` returns **two gradients, that of a and that of b, each with the shape of its input.** This is what you need to sum:

# %% name="sums"
g = mg.asarray([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])

for sum_of_g in g, g.sum(0), g.sum(1), g.sum(1, keepdims=True), g.sum():
    print(sum_of_g.shape, sum_of_g.ndim, sum_of_g.tolist())

# %% name="add_grad"
def add_grad(g, out, a, b):
    ### BEGIN SOLUTION
    to_b = g
    while to_b.ndim > b.ndim:
        to_b = to_b.sum(0)
    for axis, size in enumerate(b.shape):
        if size == 1:
            to_b = to_b.sum(axis, keepdims=True)
    return g, to_b
    ### END SOLUTION

# %% name="check-add-grad"
course.check("add_grad")

# %% [markdown]
# ## 4 · The rule of a matrix product
#
# `out = a @ b`, with a of shape (2, 3) and b of shape (3, 4), for example. `matmul_grad(g, out, a, b)` returns the gradients of a and b. Write down the shapes of a,
# b and g, and of a.T, b.T and g.T. `p @ q` is the matrix product, and `p.shape` is the shape.
#
# **b may also be a vector**, of shape (3,). Then out and g are vectors too, of shape (2,), and one of the two products does not fit. Which one, and what has the
# shape of a instead? (`g.reshape(-1, 1)` is a column of g, and `*` broadcasts.)

# %% name="matmul_grad"
def matmul_grad(g, out, a, b):
    ### BEGIN SOLUTION
    to_a = g @ b.T if b.ndim == 2 else g.reshape(-1, 1) * b
    return to_a, a.T @ g
    ### END SOLUTION

# %% name="check-matmul-grad"
course.check("matmul_grad")

# %% [markdown]
# ## 5 · A rule with a kink

# %% name="task-maximum-grad"
course.task("maximum_grad")

# %% [markdown]
# A comparison returns an array of True and False, and in a product True counts as 1 and False as 0:

# %% name="comparisons"
a = mg.asarray([1.0, 5.0, 2.0])
b = mg.asarray([3.0, 4.0, 2.0])
print((a > b).tolist(), (a == b).tolist())
print((10.0 * (a > b)).tolist(), (10.0 * (a == b)).tolist())

# %% name="maximum_grad"
def maximum_grad(g, out, a, b):
    ### BEGIN SOLUTION
    share = 0.9
    return g * (a > b) + share * g * (a == b), g * (b > a) + (1 - share) * g * (a == b)
    ### END SOLUTION

# %% name="check-maximum-grad"
course.check("maximum_grad")
### BEGIN HIDDEN TESTS
course.check("maximum_grad", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · All four in the engine
#
# A network that reads digits needs just these operations: `hidden = maximum(images @ W + row, 0)`, then `sigmoid(hidden @ V + last)`. Inside this `with`, minigrad uses
# your four rules instead of its own. The picture shows the loss of each of 80 steps, and 360 other digits, before and after.

# %% name="network"
with (
    course.rule("sigmoid", sigmoid_grad),
    course.rule("add", add_grad),
    course.rule("matmul", matmul_grad),
    course.rule("maximum", maximum_grad) as mine,
):
    picture = course.task("maximum_grad").train()

print(mine)
picture

# %% [markdown]
# Break one rule on purpose, for example with `-g` in `sigmoid_grad`, run both cells again, and put it right.
#
# ## 7 · Check a rule
#
# How do you know that a rule is right? `gradcheck(f, rule, x, g)` measures, and returns **the largest difference** between the rule and the measurement, one
# number. Here `f(x)` is an operation of one NumPy array x, and `rule(g, f(x), x)` is its rule.
#
# For each place i of x: nudge `x[i]` alone by h = 1e-5, up and down. Each time compute f. Multiply the change of f by g, and add all its places
# (`np.sum`): that is how much the final number changes. Divide by 2h. (The number i of the rule's result should be the same.) A copy
# leaves x as it was:

# %% name="copies"
import numpy as np

x = np.array([1.0, 2.0, 3.0])
nudged = x.copy()
nudged[1] += 0.5
print(x, nudged, np.sum(nudged - x))

# %% name="gradcheck"
def gradcheck(f, rule, x, g):
    ### BEGIN SOLUTION
    h = 1e-5
    by_rule = rule(g, f(x), x)
    largest = 0.0
    for i in range(len(x)):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        measured = np.sum((f(up) - f(down)) * g) / (2 * h)
        largest = max(largest, abs(by_rule[i] - measured))
    return largest
    ### END SOLUTION

# %% name="check-gradcheck"
course.check("gradcheck")

# %% [markdown]
# ## 8 · One wrong rule among five

# %% name="task-wrong-rule"
course.task("wrong_rule")

# %% [markdown]
# For example, `gradcheck(task.f("A"), task.rule("A"), task.x, task.g("A"))` checks A:

# %% name="five"
task = course.task("wrong_rule")
gradcheck(task.f("A"), task.rule("A"), task.x, task.g("A"))

# %% name="wrong_rule"
wrong_rule = (..., ...)  # the letter in quotation marks, and the largest difference
### BEGIN SOLUTION
wrong_rule = ("E", 4.0)
### END SOLUTION

# %% name="check-wrong-rule"
course.check("wrong_rule")

# %% name="progress"
course.progress()
