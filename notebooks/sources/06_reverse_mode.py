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
# Fix one number ℓ that a program computed. Reverse mode finds ∂ℓ/∂y for **every** value y that ℓ was made from, in one walk backward. This
# notebook asks why it must go backward, in which order, what it has to keep, and what happens where the output is not one number. You need
# [unit 00](00_start.ipynb), where you walked back through `a * a + a` by hand.

# %% name="setup"
import minigrad as mg
from minigrad import course

# %% [markdown]
# ## How much work is it?
#
# Thirty doublings. From y back to x lead 2³⁰ paths, about a billion: at every `+` one can go left or right. The chain rule says: multiply along each
# path, and add up over all of them.

# %% name="doublings"
x = mg.asarray(1.0, requires_grad=True)
y = x
for _ in range(30):
    y = y + y
y.item()

# %% [markdown]
# **How many contributions** (numbers passed from an operation to one of its inputs) **does `y.backward()` compute?**

# %% name="paths" tags=["question"]
paths = ...

course.check("paths")

# %% [markdown]
# `backward()` is a loop over `mg.autodiff.walk`, which gives every contribution as it is made. Count them, and see what x gets:

# %% name="count" jupyter={"outputs_hidden": true}
count = sum(1 for step in mg.autodiff.walk([y.node], [mg.ones(())], retain=True))
y.backward()
print("contributions, and what x gets:")
print(count, x.grad.item())

# %% [markdown]
# All billion paths are in that number. Nobody walked them: what comes to a value is **added first and passed on once**. Everything in this unit follows
# from the word *first*.
#
# ## Why the order matters
#
# Many people who write their first engine leave the order out. Theirs goes from a node straight on, left input first, to each that it has not visited yet:
# one line less. It has been proposed to [one well-known teaching engine](https://github.com/karpathy/micrograd/issues/68) at least eight times. It is here too:
# `course.impatient`. It runs on two programs that compute the same number:
#
# ```python
# y = a * a + a
# y = a + a * a
# ```
#
# With `a = 2 * x` and x = 1, ∂x should be 10. **What does the impatient engine say, on the first and on the second?**

# %% name="two-ways" tags=["question"]
two_ways = ...

course.check("two_ways")

# %% name="impatient" jupyter={"outputs_hidden": true}
def first(x):
    a = 2 * x
    return a * a + a


def second(x):
    a = 2 * x
    return a + a * a


print("by the impatient engine:")
with course.backward(course.impatient):
    for program in first, second:
        x = mg.asarray(1.0, requires_grad=True)
        program(x).backward()
        print(program.__name__, x.grad.item())

# %% [markdown]
# Act it out. **more ▾**, **act it out**: click ∂ y, then ∂ a as the impatient engine does, and go on as it does: what does it do about the product's
# contributions, which come to a when a has been sent already? Then **rewind**, and find the order in which nothing turns red.

# %% name="act-it-out"
x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a + a * a
mg.viz.step(y)

# %% [markdown]
# A **topological order** of the graph, turned round, is one in which each node comes after all the nodes that use it. The real engine has it almost for
# nothing: a node is made after its inputs, and each bears the number of its making, so to sort by that number is enough. These are two lines of
# `minigrad/core/node.py` and `minigrad/autodiff/reverse.py`:
#
# ```python
#     return sorted(found, key=_serial)
#     for node in reversed(order):
# ```
#
# ## What is kept for the way back
#
# A rule may need the numbers of the way there: that of `tanh` is g · (1 − out²). Whatever a rule asks for has to be **kept** until the walk comes by. Here are
# 100 operations one after the other, on 1,000 floats: 4 kB each.

# %% name="three-chains"
def chain(operation):
    h = mg.ones(1000, requires_grad=True)
    for _ in range(100):
        h = operation(h)
    return h


chains = {"add": chain(lambda h: h + 1), "tanh": chain(mg.tanh), "relu": chain(mg.relu)}

# %% [markdown]
# **How many kB does each keep?** Three numbers in brackets, for add, tanh, relu. (relu(h) is h where h > 0, and 0 elsewhere.)

# %% name="kept" tags=["question"]
kept = ...

course.check("kept")

# %% name="kept-bytes" jupyter={"outputs_hidden": true}
print("kB:")
print({name: course.kept_bytes(h) / 1000 for name, h in chains.items()})

# %% [markdown]
# This is what fills a GPU's memory in training, and not in use. So it is let go as soon as the walk has been by. **Of which of the three can `backward()` be
# called a second time?** A list of names.

# %% name="again" tags=["question"]
again = ...

course.check("again")

# %% name="twice" jupyter={"outputs_hidden": true}
print("the second time:")
for name, h in chains.items():
    total = h.sum()
    total.backward()
    try:
        total.backward()
        print(name, "again")
    except mg.GradError as error:
        print(name, str(error).partition(",")[0])

# %% [markdown]
# ## When the output is not one number
#
# Reverse mode fixes **one** output. If y has two numbers, one has to say which, or how much of each: that is the seed.

# %% name="two-numbers"
W = mg.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x = mg.asarray([1.0, 1.0, 1.0], requires_grad=True)
y = W @ x
try:
    y.backward()
except mg.GradError as error:
    print(str(error).partition("\n  Line")[0])

# %% name="one-row"
y.backward(mg.asarray([1.0, 0.0]), retain_graph=True)
x.grad.tolist()

# %% [markdown]
# That is the first row of W: y[0] was fixed. **What is `x.grad` after `y.backward(mg.ones(2))`**, if it is cleared before?

# %% name="from-ones" tags=["question"]
from_ones = ...

course.check("from_ones")

# %% name="ones" jupyter={"outputs_hidden": true}
x.grad = None
y.backward(mg.ones(2))
print("x.grad:")
print(x.grad.tolist())

# %% [markdown]
# A network has 2,410 weights and gives 10 scores, from which one loss is made. **How many walks does the gradient of the loss take? And how many the
# gradients of all ten scores?** Two numbers.

# %% name="walks" tags=["question"]
walks = ...

course.check("walks")

# %% [markdown]
# So that is why training goes backward: one loss, millions of weights. In [the exercise](exercises/06_reverse_mode_exercise.ipynb) you write the order and the walk, put
# them in the place of minigrad's own, and train the digits with them; then you find out what is wrong with three broken engines.
