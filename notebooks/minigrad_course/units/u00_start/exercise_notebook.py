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
# # 00 · Start: the rule of a product
#
# Do [00 · Start](../00_start.ipynb) first. Here you write the rule that was not explained there.
#
# Write your name between the quotes: your results will bear it, and the tasks will have their own numbers for you. Then run the cell.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("00_start", student="")

# %% [markdown]
# ## By hand

# %% name="task-gradient-of-a"
course.task("gradient_of_a")

# %% nbgrader={"grade": false, "grade_id": "gradient_of_a", "locked": false, "schema_version": 3, "solution": true, "task": false}
gradient_of_a = ...  # a number
### BEGIN SOLUTION
gradient_of_a = -20
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-gradient-of-a", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
course.check("gradient_of_a")

# %% [markdown]
# ## The rule
#
# Now write the rule for every product, and for both factors. If `out = a * b` and y grows g times as fast as `out`, `mul_grad` returns **two numbers:
# the gradient of a, then the gradient of b.** Replace the line that raises an error.

# %% nbgrader={"grade": false, "grade_id": "mul_grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mul_grad(g, out, a, b):
    ### BEGIN SOLUTION
    return g * b, g * a
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-mul-grad", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
course.check("mul_grad")

# %% [markdown]
# ## In the engine
#
# Inside this `with`, minigrad calls your rule for every product, instead of its own. You know the picture. Step until the product `a * a` sends something
# back: the number comes from your function. The picture compares it with the measured slope (✓ or ✗). To see a ✗, swap the two numbers in your
# function, run it and this cell again, and find the **one** step that goes wrong.

# %% name="picture"
with course.rule("multiply", mul_grad):
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    y = a * a + a
    picture = mg.viz.step(y)
picture

# %% [markdown]
# The same function, called hundreds of times: a network of 2,410 numbers looks at 1,437 handwritten digits, and changes its numbers a little along the
# gradients, so that it reads the digits better. Then it reads 360 other digits. (Guessing reads about 36 of them. If you swap the two numbers of
# `mul_grad`, the network is not better than guessing: try it, and swap them back.)

# %% name="digits"
with course.rule("multiply", mul_grad) as mine:
    trained = course.train_digits(mine)
trained

# %% [markdown]
# ## Your own rule

# %% name="task-mixed-grad"
course.task("mixed_grad")

# %% nbgrader={"grade": false, "grade_id": "mixed_grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mixed_grad(g, out, a, b):
    ### BEGIN SOLUTION
    return g * (3 * b + 6), g * 3 * a
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-mixed-grad", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
course.check("mixed_grad")
### BEGIN HIDDEN TESTS
course.check("mixed_grad", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# You have written a *gradient function*: it takes the **inputs** of an operation, its **output**, and the **gradient of the output**. A framework is a
# table of such functions, and one walk that applies them. You write the walk in [unit 06](../06_reverse_mode.ipynb).

# %% [markdown]
# ## Your framework
#
# One function of a framework is yours now. `course.my_framework()` collects in `my_framework.py` all functions of yours that passed their checks, puts them into the engine together, and
# trains a network. The picture shows how much of each room of the library is yours. Run it again after any unit.

# %% name="my-framework"
course.my_framework()

# %% name="progress"
course.progress()
