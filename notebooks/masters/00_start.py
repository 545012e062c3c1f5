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
# # 00 · Start: your turn
#
# You have seen the five contributions of the example. Here you guess one number, follow an impatient engine, and write
# your first gradient rule, which then runs in the picture and teaches a network to read digits.
#
# Put your name between the quotes: the numbers of the tasks depend on it. A check tells you what is wrong and where; try as
# often as you like.

# %% name="name"
student = ""

# %% name="begin"
import minigrad as mg
from minigrad import course

course.begin("00_start", student)

# %% [markdown]
# ## 1 · A guess
#
# $x$ is 1, $a = 2x$, and $y = a^2 + a$. So $a$ is 2 and $y$ is 6. Now $x$ goes from 1 to 1.01. **By how much does y rise?**
#
# Write a guess, without computing it. It is noted; nothing is lost if it is wrong.

# %% nbgrader={"grade": false, "grade_id": "rise", "locked": false, "schema_version": 3, "solution": true, "task": false}
rise = ...  # your guess, a number
### BEGIN SOLUTION
rise = 0.1
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-rise", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
course.check("rise")

# %% [markdown]
# ## 2 · Too early
#
# The gradient of `a` came in parts, because `y` uses `a` more than once. What if somebody does not wait for all of them?

# %% name="task-too-early"
course.task("too_early")

# %% nbgrader={"grade": false, "grade_id": "too_early", "locked": false, "schema_version": 3, "solution": true, "task": false}
too_early = ...  # a number
### BEGIN SOLUTION
too_early = 2.0
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-too-early", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
course.check("too_early")

# %% [markdown]
# ## 3 · Your first gradient rule
#
# An operation has a *gradient rule*: given the gradient `g` of its result, it says what goes back to each input. For the
# product of `a` and `b`: write what goes back to `a`, and what goes back to `b`. With a = 3, b = -2 and g = 5 you can try on
# paper first: if `a` grows by a little, how much does `a * b` grow, and how much the end, which goes 5 times as far?

# %% nbgrader={"grade": false, "grade_id": "mul_grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mul_grad(g, out, a, b):
    """What a * b passes back to a, and what to b, when the gradient of out = a * b is g."""
    ### BEGIN SOLUTION
    return g * b, g * a
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-mul-grad", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
course.check("mul_grad")

# %% [markdown]
# ## 4 · In the engine
#
# minigrad now takes *your* function for the gradient of every product, in the block below: first in the picture that you
# know, then in a network that learns to read digits, where it is called some hundred times.

# %% name="picture"
with course.rule("multiply", mul_grad):
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    y = a * a + a
    picture = mg.viz.step(y)
picture

# %% name="digits"
with course.rule("multiply", mul_grad) as mine:
    trained = course.train_digits(mine)
trained

# %% [markdown]
# ## 5 · One that is yours alone

# %% name="task-mixed-grad"
course.task("mixed_grad")

# %% nbgrader={"grade": false, "grade_id": "mixed_grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mixed_grad(g, out, a, b):
    """What your own operation passes back to a, and what to b."""
    ### BEGIN SOLUTION
    return g * (3 * b + 6), g * 3 * a
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check-mixed-grad", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
course.check("mixed_grad")
### BEGIN HIDDEN TESTS
course.check("mixed_grad", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## How far you are

# %% name="progress"
print(course.progress())
