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
# # 09 · What eager costs: fuse gelu by hand
#
# Do [09 · What eager costs](../09_eager_costs.ipynb) first. Here you predict bytes, write kernels, and put them into the engine.

# %% name="begin"
from math import pi

import minigrad as mg
import minigrad_course as course
from minigrad_course import costs, erf, exp, languages, operator, sqrt, tanh
from minigrad_course.units.u09_eager_costs import train_gpt

course.begin("09_eager_costs", student="")

# %% [markdown]
# ## 1 · Bytes, before the run

# %% name="task-eager-bytes"
course.task("eager_bytes")

# %% name="eager_bytes"
eager_bytes = ...  # MB
### BEGIN SOLUTION
eager_bytes = 28.8
### END SOLUTION

# %% name="check-eager-bytes"
course.check("eager_bytes")

# %% [markdown]
# Then run it: `costs` counts what your formula reads and writes. Put your own formula and size here.

# %% name="count-yours"
def formula(x):
    return mg.tanh(x * 2) + 1


costs(formula, mg.ones(500_000))

# %% [markdown]
# ## 2 · gelu in one kernel
#
# A kernel is a function of **one place** i. It reads numbers of its inputs, computes in registers, and writes one number of its output:
#
# ```python
# def twice(i, x, out):
#     a = x[i]          # read
#     out[i] = a + a    # compute, write
# ```
#
# It returns nothing. For one number there are `+ - * / **`, and `erf`, `exp`, `tanh`, `sqrt` from the first cell (not those of `mg.`, which work on tensors).

# %% name="one-number"
print(erf(0.5), exp(1.0), tanh(1.0), sqrt(2.0), pi)

# %% [markdown]
# Write gelu(x) = x · (1 + erf(x / √2)) / 2. As five operations it moves 44 bytes for each number. As one kernel, 8 are enough.

# %% name="gelu"
def gelu(i, x, out):
    ### BEGIN SOLUTION
    a = x[i]
    out[i] = a * (1 + erf(a / sqrt(2))) / 2
    ### END SOLUTION

# %% name="check-gelu"
course.check("gelu")

# %% [markdown]
# Look at what the back-ends make of it. C has one load, one store, and a register for each value between them.

# %% name="your-languages"
languages(gelu)

# %% [markdown]
# ## 3 · And its gradient
#
# An engine cannot look into your kernel, so the gradient is yours to write too, as a second kernel. (PyTorch has `gelu` and `gelu_backward`, for this reason.)
# `gelu_backward(i, g, x, dx)` reads `g[i]`, the gradient of the output, and `x[i]`, and writes `dx[i]`, the gradient of x.
#
# gelu is a product: x times Φ, where Φ = (1 + erf(x / √2)) / 2. The slope of erf(z) is 2/√π · exp(−z²).
# Here z is x / √2. You need the rule of a product, and the chain rule for z.

# %% name="gelu_backward"
def gelu_backward(i, g, x, dx):
    ### BEGIN SOLUTION
    a = x[i]
    phi = (1 + erf(a / sqrt(2))) / 2
    dx[i] = g[i] * (phi + a * exp(-a * a / 2) / sqrt(2 * pi))
    ### END SOLUTION

# %% name="check-gelu-backward"
course.check("gelu_backward")

# %% [markdown]
# ## 4 · Two operators more
#
# Inside this `with`, `gelu` and `gelu_backward` are operators of minigrad, with your kernels. `mg.gelu`, and every layer that calls it, uses them:

# %% name="register"
x = mg.ones(1_000_000, requires_grad=True)

with operator("gelu", gelu, gelu_backward) as mine:
    picture = costs(mg.gelu, x)

picture

# %% [markdown]
# Press **time**, and compare with the five operations in the demo notebook. It is faster than the bytes explain: eager mode computes erf by some thirty small
# steps of NumPy, and your kernel keeps these in registers too.
#
# In the examples there is a small GPT, which learns first names letter by letter. Each of its layers calls gelu. First predict:

# %% name="task-step-bytes"
course.task("step_bytes")

# %% name="step_bytes"
step_bytes = ...  # MB
### BEGIN SOLUTION
step_bytes = 48
### END SOLUTION

# %% name="check-step-bytes"
course.check("step_bytes")

# %% [markdown]
# Now the GPT, with your two operators. The page **bytes** shows one training step without and with them, kernel by kernel. **time** measures both on your machine.
# **training** shows how the GPT learns with your kernels, and the names that it makes up. (It takes 5 to 20 seconds.)

# %% name="gpt"
with operator("gelu", gelu, gelu_backward) as mine:
    trained = train_gpt(mine)
trained

# %% [markdown]
# Your kernels take about a quarter of the bytes and of the kept memory away from the whole step. The time of gelu itself falls by more than that of the step:
# the other 700 kernels are as they were. (A busy machine gives noisy times: run it again.)
#
# Now break `gelu_backward` on purpose: leave out its second part, run its cell and the cell of the GPT again. Would you have found the mistake by looking at the loss? A
# network learns around many wrong gradients. That is why rules are checked by finite differences (unit 05), and not by a training. Then leave out `g[i]`. Then put
# it right.
#
# ## 5 · Your own activation {further}

# %% name="task-swish"
course.task("swish")

# %% name="swish"
def swish(i, x, out):
    ### BEGIN SOLUTION
    a = x[i]
    out[i] = a / (1 + exp(-0.8 * a))
    ### END SOLUTION

# %% name="check-swish"
course.check("swish")

# %% name="task-swish-backward"
course.task("swish_backward")

# %% name="swish_backward"
def swish_backward(i, g, x, dx):
    ### BEGIN SOLUTION
    s = 1 / (1 + exp(-0.8 * x[i]))
    dx[i] = g[i] * (s + x[i] * 0.8 * s * (1 - s))
    ### END SOLUTION

# %% name="check-swish-backward"
course.check("swish_backward")
### BEGIN HIDDEN TESTS
course.check("swish_backward", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# It can take gelu's place in the GPT: `with operator("gelu", swish, swish_backward) as mine:`. Does it still learn?
#
# ## 6 · The price

# %% name="task-kernels-needed"
course.task("kernels_needed")

# %% name="kernels_needed"
kernels_needed = ...
### BEGIN SOLUTION
kernels_needed = 12800
### END SOLUTION

# %% name="check-kernels-needed"
course.check("kernels_needed")

# %% [markdown]
# ## 7 · The other way: compose softmax
#
# A composite needs no kernel and no gradient, and runs on every device. `softmax(x)` turns each **row** of a table into positive numbers that sum to 1:
# exp(x) / sum(exp(x)). Two things to know:
#
# - exp(1000) is too large for a float. Subtract the largest number of the row first: the result is the same.
# - `x.max(axis=-1)` drops the axis. `x.max(axis=-1, keepdims=True)` keeps it, with one number for each row, which then fits to x.
#
# Use `mg.exp`, `.max`, `.sum` and arithmetic.

# %% name="softmax"
def softmax(x):
    ### BEGIN SOLUTION
    powers = mg.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
    ### END SOLUTION

# %% name="check-softmax"
course.check("softmax")

# %% name="task-softmax-bytes"
course.task("softmax_bytes")

# %% name="softmax_bytes"
softmax_bytes = ...  # MB
### BEGIN SOLUTION
softmax_bytes = 32
### END SOLUTION

# %% name="check-softmax-bytes"
course.check("softmax_bytes")

# %% name="costs-of-softmax"
costs(softmax, mg.ones((1000, 500)))

# %% [markdown]
# ## 8 · Compose layer norm

# %% name="task-norm"
course.task("norm")

# %% name="norm"
def norm(x, weight, bias):
    ### BEGIN SOLUTION
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / mg.sqrt(variance + 0.2) * weight + bias
    ### END SOLUTION

# %% name="check-norm"
course.check("norm")
### BEGIN HIDDEN TESTS
course.check("norm", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# How many kernels does it take? Count in your code first, then run it. (PyTorch has one kernel for this, `native_layer_norm`, and one for its gradient.)

# %% name="costs-of-norm"
costs(norm, mg.ones((1000, 500)), mg.ones(500), mg.zeros(500))

# %% name="progress"
course.progress()
