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
# # 06 · Reverse mode
#
# Fix one number ℓ that a program computed. Reverse mode finds ∂ℓ/∂y for **every** value y that ℓ was made from, in one backward pass. This
# notebook asks why the pass goes backward, in which order, what it must keep, and what happens where the output is not one number. You need
# [unit 00](00_start.ipynb), where you went back through `a * a + a` by hand.

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("06_reverse_mode")

# %% [markdown]
# ## How much work is it?
#
# Thirty doublings. There are 2³⁰ paths from y back to x, about a billion: every `+` is a fork. The chain rule says: multiply along each path, and
# add over all paths.

# %% name="doublings"
def doublings():
    x = mg.asarray(1.0, requires_grad=True)
    y = x
    for _ in range(30):
        y = y + y
    return x, y


x, y = doublings()
y.item()

# %% name="paths-asked"
course.task("paths")

# %% name="paths" tags=["question"]
paths = ...

course.check("paths")

# %% [markdown]
# `backward()` is a loop over `mg.autodiff.walk`, which yields every contribution. Count them for the thirty doublings, and see what x gets:

# %% name="count" jupyter={"outputs_hidden": true}
x, y = doublings()
count = sum(1 for step in mg.autodiff.walk([y.node], [mg.ones(())], retain=True))
y.backward()
print("contributions, and what x gets:")
print(count, x.grad.item())

# %% [markdown]
# All the billion paths are in the gradient of x, but the engine did not walk them one by one: the contributions to a value are **added first, and
# passed on once**. Everything in this unit follows from the word *first*.
#
# ## Why the order matters
#
# Many people who write their first engine leave the order out. Their engine goes from a node straight on, left input first, to each input that it has
# not visited yet. That saves one line. It has been proposed to [one well-known teaching engine](https://github.com/karpathy/micrograd/issues/68) at
# least eight times. Here it is called `course.impatient`. It runs on two programs that compute the same number:
#
# ```python
# y = a * a + a
# y = a + a * a
# ```
#
# With `a = 3 * x` and x = 1, ∂x should be 21. **What does the impatient engine compute, on the first and on the second?**

# %% name="two-ways" tags=["question"]
two_ways = ...

course.check("two_ways")

# %% name="impatient" jupyter={"outputs_hidden": true}
def first(x):
    a = 3 * x
    return a * a + a


def second(x):
    a = 3 * x
    return a + a * a


print("by the impatient engine:")
with course.backward(course.impatient):
    for program in first, second:
        x = mg.asarray(1.0, requires_grad=True)
        program(x).backward()
        print(program.__name__, x.grad.item())

# %% [markdown]
# Now you are the impatient engine. Turn on **act it out**, under **more**, click ∂y, then ∂a, and go on. What happens to the contributions of the product, which come to
# a when a has already sent? Then **rewind**, and find the order in which nothing turns red.

# %% name="act-it-out"
x = mg.asarray(1.0, requires_grad=True)
a = 3 * x
y = a + a * a
picture = mg.viz.step(y)
picture  # to share it: picture.save("act_it_out.html", says='Send a gradient on before all of it has come, and what follows is wrong: act it out, under "more".')

# %% [markdown]
# A **topological order** of a graph has every node after all the nodes that it was made from. Turned round, it has every node after all the nodes that
# *use* it. The real engine gets it almost for nothing: a node is made after its inputs and has a serial number, so it is enough to sort by that number.
# These are lines of `minigrad/core/node.py` and `minigrad/autodiff/reverse.py`:
#
# ```python
#     return sorted(found, key=_serial)
#     ...
#     for node in reversed(order):
# ```
#
# ## What is kept for the backward pass
#
# A rule may need numbers from the forward pass: the rule of `tanh` is g · (1 − out²). These numbers are **kept** until the backward pass has used them.
# Here are chains of operations on 1,000 floats, 4 kB each time.

# %% name="three-chains"
def chain(operation):
    h = mg.ones(1000, requires_grad=True)
    for _ in range(course.task("kept").operations):
        h = operation(h)
    return h


operations = {"add": lambda h: h + 1, "tanh": mg.tanh, "relu": mg.relu}

# %% name="kept-asked"
course.task("kept")

# %% name="kept" tags=["question"]
kept = ...

course.check("kept")

# %% name="kept-bytes" jupyter={"outputs_hidden": true}
print("kB:")
for name, operation in operations.items():
    print(name, course.kept_bytes(chain(operation)) / 1000)

# %% [markdown]
# This fills the memory of a GPU in training, but not in use. So the kept numbers are freed as soon as the backward pass has used them. A second `backward()` through the
# same graph works only where nothing was kept. These operations are not in the chains:

# %% name="again-asked"
course.task("again")

# %% name="again" tags=["question"]
again = ...

course.check("again")

# %% name="twice" jupyter={"outputs_hidden": true}
print("the second time:")
for letter, line in course.task("again").lines.items():
    total = eval(line, {"mg": mg, "h": mg.ones(1000, requires_grad=True)}).sum()
    total.backward()
    try:
        total.backward()
        print(letter, line, "again")
    except mg.GradError as error:
        print(letter, line, str(error).partition(",")[0])

# %% [markdown]
# ## When the output is not one number
#
# Reverse mode fixes **one** output. If y has two numbers, you must say which one, or how much of each: that is the **seed**.

# %% name="two-numbers"
start = course.task("from_ones").start
W = mg.asarray([[1.0, 2.0, 3.0], [start, start + 1.0, start + 2.0]])


def gradient(*seed):
    x = mg.asarray([1.0, 1.0, 1.0], requires_grad=True)
    y = W @ x
    y.backward(*seed)
    return x.grad.tolist()


try:
    gradient()
except mg.GradError as error:
    print(str(error).partition("\n  Line")[0])

# %% name="one-row"
gradient(mg.asarray([1.0, 0.0]))

# %% name="from-ones-asked"
course.task("from_ones")

# %% name="from-ones" tags=["question"]
from_ones = ...

course.check("from_ones")

# %% name="ones" jupyter={"outputs_hidden": true}
print("x.grad:")
print(gradient(mg.ones(2)))

# %% name="walks-asked"
course.task("walks")

# %% name="walks" tags=["question"]
walks = ...

course.check("walks")

# %% [markdown]
# That is why training goes backward: there is one loss, and there are millions of weights. In [the exercise](exercises/06_reverse_mode_exercise.ipynb) you
# write the order and the walk, put them in place of minigrad's own, and train the digits with them. Then you find out what is wrong with three
# broken engines.
