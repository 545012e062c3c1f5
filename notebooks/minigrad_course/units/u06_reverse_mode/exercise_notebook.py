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
# # 06 · Reverse mode: write the walk
#
# Do [06 · Reverse mode](../06_reverse_mode.ipynb) first. Here you write the engine: first the order, then the walk. Then minigrad runs on your engine.

# %% name="begin"
import minigrad as mg
import minigrad_course as course
from minigrad_course import made_from

course.begin("06_reverse_mode", student="")

# %% [markdown]
# A **node** is the recipe of a value. `y.node` is the node of y, and `made_from(node)` lists the nodes that a node was made from, once for each use. The
# node of y was made from `a`, which is a product too, and from `a * a`:

# %% name="nodes"
x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a + a * a
[node.name for node in made_from(y.node)]

# %% [markdown]
# ## 1 · The order
#
# `backward_order(result)` returns a **list of all nodes** that the node `result` was made from, beginning with `result` itself. Each node comes after
# **all** nodes that were made from it. Any such order is right.
#
# The check tries small programs, a program that doubles a value forty times, and a chain of 10,000 operations. (There are several ways. Each node
# has a number, `node.serial`: a node that was made later has a higher number.)

# %% name="backward_order"
def backward_order(result):
    ### BEGIN SOLUTION
    found = {result}
    to_visit = [result]
    while to_visit:
        for source in made_from(to_visit.pop()):
            if source not in found:
                found.add(source)
                to_visit.append(source)
    return sorted(found, key=lambda node: node.serial, reverse=True)
    ### END SOLUTION

# %% name="check-backward-order"
course.check("backward_order")

# %% [markdown]
# ## 2 · The walk
#
# `walk_back(result, gradients, passes_back)` puts the gradient of every node into the dictionary `gradients`. The dictionary already holds the seed:
# `{result: 1}`, or another number than 1. A node without any contribution yet is *not in the dictionary*; it does not have a 0.
#
# `passes_back(node, g)` applies the gradient rules of a node whose gradient is g. It returns pairs: *a node that it was made from*, and *the contribution
# to that node*. For `a * a` it returns two pairs with the same node.

# %% name="walk_back"
def walk_back(result, gradients, passes_back):
    ### BEGIN SOLUTION
    for node in backward_order(result):
        if node not in gradients:
            continue
        for source, value in passes_back(node, gradients[node]):
            if source in gradients:
                gradients[source] = gradients[source] + value
            else:
                gradients[source] = value
    ### END SOLUTION

# %% name="check-walk-back"
course.check("walk_back")

# %% [markdown]
# Watch it at work, right or wrong: the picture shows each number that your function puts into the dictionary.

# %% name="picture"
with course.backward(walk_back):
    picture = mg.viz.step(y)
picture

# %% [markdown]
# ## 3 · Your walk is the engine
#
# Inside this `with`, minigrad uses your walk instead of its own: it trains the digits with one walk for each batch of each epoch.

# %% name="digits"
with course.backward(walk_back) as mine:
    trained = course.train_digits(mine)
trained

# %% [markdown]
# ## 4 · Your own engine

# %% name="task-clipped-walk"
course.task("clipped_walk")

# %% name="clipped_walk"
def clipped_walk(result, gradients, passes_back):
    ### BEGIN SOLUTION
    for node in backward_order(result):
        if node not in gradients:
            continue
        g = gradients[node]
        if node.name == "multiply":
            g = mg.clip(g, -0.75, 0.75)
        for source, value in passes_back(node, g):
            gradients[source] = gradients[source] + value if source in gradients else value
    ### END SOLUTION

# %% name="check-clipped-walk"
course.check("clipped_walk")

# %% [markdown]
# ## 5 · Several outputs {further}
#
# One walk fixes one number. `jacobian(f, x)` returns a list with one row for each number of `y = f(x)`: row i is the gradient of `y[i]`, which is in
# `x.grad` after `y.backward(seed)` with the right seed. (y has `y.size` numbers; x is a leaf, and may have a `.grad` from before.)

# %% name="jacobian"
def jacobian(f, x):
    ### BEGIN SOLUTION
    rows = []
    y = f(x)
    for i in range(y.size):
        seed = [0.0] * y.size
        seed[i] = 1.0
        x.grad = None
        y.backward(mg.asarray(seed), retain_graph=True)
        rows.append(x.grad)
    return rows
    ### END SOLUTION

# %% name="check-jacobian"
course.check("jacobian")

# %% name="task-weighted"
course.task("weighted")

# %% name="weighted"
weighted = ...  # three numbers, in brackets
### BEGIN SOLUTION
weighted = [-1, -2, 0]
### END SOLUTION

# %% name="check-weighted"
course.check("weighted")

# %% [markdown]
# ## 6 · Three broken engines

# %% name="task-broken"
course.task("broken")

# %% [markdown]
# Step through each engine, and for comparison through minigrad's own, `mg.viz.step(y)`. Look at three things: the number in a box when the box sends; whether
# a contribution comes to the box afterwards; and whether each contribution agrees with the measured slope (✓ or ✗).

# %% name="engines"
task = course.task("broken")
x = mg.asarray(task.x, requires_grad=True)
w = mg.asarray(task.w, requires_grad=True)
a = 2 * x
b = a * w
y = a + b * b

with course.backward(task.engine("A")):
    picture = mg.viz.step(y)
picture

# %% name="engine-b"
with course.backward(task.engine("B")):
    picture = mg.viz.step(y)
picture

# %% name="engine-c"
with course.backward(task.engine("C")):
    picture = mg.viz.step(y)
picture

# %% name="broken"
broken = {"A": ..., "B": ..., "C": ...}  # "lost", "order" or "stale"
### BEGIN SOLUTION
broken = {"A": "order", "B": "lost", "C": "stale"}
### END SOLUTION

# %% name="check-broken"
course.check("broken")

# %% [markdown]
# ## Your framework so far
#
# Rules, recorder, order and walk: with these, a framework learns. Everything that you have written, in the engine's place at once:

# %% name="my-framework"
course.my_framework()

# %% name="progress"
course.progress()
