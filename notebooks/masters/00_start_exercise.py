# %% [markdown] id="title"
# # 00 · Start: what a product passes back
#
# Do [00 · Start](00_start.ipynb) first. Here you write the one rule that was taken on trust there. Write your name, so that what you make
# can bear it, then run the cell.

# %% id="name"
import minigrad as mg
from minigrad import course

my_name = ""

course.begin("00", my_name)

# %% [markdown] id="by-hand-question"
# ## By hand
#
# `out = a * b`, and its gradient g has come: y rises g times as fast as out does. In the cell above you were given three numbers g, a and b of your
# own. **How many times as fast as a does y rise?** In other words: a rises by 0.01. By how much does out rise then, and by how much y?

# %% id="by-hand" nbgrader={"grade": false, "grade_id": "by-hand", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
g, a, b = course.numbers("00/by-hand")
gradient_of_a = g * b
### END SOLUTION

# %% id="by-hand-check" nbgrader={"grade": true, "grade_id": "by-hand-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
course.check("00/by-hand", gradient_of_a)

# %% [markdown] id="rule"
# ## The rule
#
# Now for every product, and for both of its factors. `mul_grad` is given g, the gradient of the product; `out`, the product; and the factors a and b. It
# returns two numbers: the gradient of a, then the gradient of b.

# %% id="mul-grad" nbgrader={"grade": false, "grade_id": "mul-grad", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mul_grad(g, out, a, b):
    ### BEGIN SOLUTION
    return g * b, g * a
    ### END SOLUTION

# %% id="mul-grad-check" nbgrader={"grade": true, "grade_id": "mul-grad-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
course.check("00/mul-grad", mul_grad)

# %% [markdown] id="yours"
# ## Your rule in the engine
#
# Inside the next `with`, minigrad has no rule of its own for products: it calls yours. It is the same picture as before. Step to where `a * a` passes back,
# and look under *by the rule*: that is your function. Below, minigrad compares what you return with the measured slope.

# %% id="picture"
with course.rule("multiply", mul_grad):
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    y = a * a + a
    picture = mg.viz.step(y)
picture

# %% [markdown] id="swapped-question"
# Suppose somebody returned the two the wrong way round, `return g * a, g * b`. What would this program say of x: what would `∂ x` be, instead of 10?
# Work it out in the picture: there are three products' contributions; which of them would change?

# %% id="swapped" nbgrader={"grade": false, "grade_id": "swapped", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
gradient_of_x = 5
### END SOLUTION

# %% id="swapped-check" nbgrader={"grade": true, "grade_id": "swapped-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
course.check("00/swapped", gradient_of_x)

# %% [markdown] id="train"
# ## It reads digits
#
# 1,437 pictures of handwritten digits, a network of 4,810 numbers that knows nothing, and your rule in every product on the way back.

# %% id="digits"
course.train_digits(rule=mul_grad)

# %% [markdown] id="end"
# What you have met: every operation comes with a *gradient function* of three things, its **inputs**, its **output**, and the **gradient of the output**. A
# framework is a large table of them and one walk back that puts them together. The table is unit 05; the walk you write in
# [unit 06](06_reverse_mode.ipynb).
