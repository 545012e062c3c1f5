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
# # 05 · Gradient functions
#
# An engine contains no calculus. For each operation it has a **gradient function**, also called a *rule*, which a person wrote. This notebook puts single
# operations on a bench. What does a rule need? What does it return, and what where no answer is right? You need [unit 00](00_start.ipynb): the one final number y
# grows ∂x times as fast as x.

# %% name="setup"
import math

import minigrad as mg
import minigrad_course as course

course.begin("05_gradient_functions")

# %% [markdown]
# ## A line with a kink in it
#
# relu(x) is x where x is positive, and 0 elsewhere. minimum(x, 0) is x where x is negative, and 0 elsewhere. Each curve has a corner at 0, called a **kink**.
# Their sum is x, for every x:

# %% name="program"
def f(x):
    return mg.relu(x) + mg.minimum(x, 0.0)


print([f(mg.asarray(value)).item() for value in (-2.0, -0.5, 0.0, 0.5, 2.0)])

# %% [markdown]
# So f is a straight line, and its slope is 1 everywhere. Yours has a steeper slope:

# %% name="same-function-asked"
course.task("same_function")

# %% name="same-function" tags=["question"]
same_function = ...

course.check("same_function")

# %% name="at-zero" jupyter={"outputs_hidden": true}
factor = course.task("same_function").factor
print("the gradients of relu + minimum, relu - relu, and of the product alone, at 0:")
for function in f, lambda x: mg.relu(x) - mg.relu(-x), lambda x: x:
    x = mg.asarray(0.0, requires_grad=True)
    function(factor * x).backward()
    print(x.grad.item())

# %% [markdown]
# The three compute the same numbers, and their gradients at 0 differ. The engine does not see a function: it sees **operations**, and each operation brings
# its own rule. (Reports of such differences are filed as bugs of [JAX](https://github.com/jax-ml/jax/issues/37821) and
# [PyTorch](https://github.com/pytorch/pytorch/issues/184572).) So this unit is about one operation at a time.
#
# ## What a rule gets, and what it returns
#
# A rule gets three things: the **inputs** of the operation, its **output** `out`, and `g`, the **gradient of the output**. It returns one gradient for each
# input: how many times as fast the final number grows as this input. Here is tanh, with its declaration in minigrad:
#
# ```python
# @elementwise(expr="tanh(x)", formula=r"\tanh x", local={"x": r"1 - \tanh^2 x"},
#              x=lambda g, out: multiply(g, subtract(1.0, multiply(out, out))))
# ```
#
# The last line is the rule: g · (1 − out²). Its parameters say what it needs: g and out.

# %% name="from-output-asked"
course.task("from_output")

# %% name="from-output" tags=["question"]
from_output = ...

course.check("from_output")

# %% [markdown]
# On the bench you change x and g, and see what the rule returns. The last column is measured: tanh is computed a little to the right and a little to
# the left of x, and the difference is divided by the distance (*finite differences*).

# %% name="bench-tanh"
picture = mg.viz.bench(mg.tanh)
picture  # to share it: picture.save("tanh.html", says="A gradient rule is a small function: move x and g, and see what it returns.")

# %% [markdown]
# Move x to its right end, 3, and the gradient to 1. **What does tanh pass back?**

# %% name="flat" tags=["question"]
flat = ...

course.check("flat")

# %% [markdown]
# ## The chain rule is a relay

# %% name="chained-asked"
course.task("chained")

# %% name="chained" tags=["question"]
chained = ...

course.check("chained")

# %% name="relay" jupyter={"outputs_hidden": true}
factor, out = course.task("chained").factor, course.task("chained").out
x = mg.asarray(math.atanh(out) / factor, requires_grad=True)  # so that tanh(factor · x) is out
h = factor * x
h.retain_grad()
y = mg.tanh(h)
y.backward()
print("y, ∂h, ∂x:")
print([round(value.item(), 3) for value in (y, h.grad, x.grad)])

# %% [markdown]
# ## Broadcasting needs a sum

# %% name="bias-asked"
course.task("bias")

# %% name="bias" tags=["question"]
bias = ...

course.check("bias")

# %% name="bias-grad" jupyter={"outputs_hidden": true}
X = mg.zeros((course.task("bias").rows, 3))
b = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
(X + b).sum().backward()
print("b.grad:")
print(b.grad.tolist())

# %% [markdown]
# A value that is used several times gets the sum of its contributions: that was unit 00. Broadcasting uses a value several times. On the bench, the one
# number b is added to three numbers. Choose a gradient of 1 for all of them, then for one of them:

# %% name="bench-broadcast"
def add_to_three(b):
    return mg.asarray([1.0, 2.0, 3.0]) + b


mg.viz.bench(add_to_three, b=(-1, 1))

# %% [markdown]
# ## Matrix gradients by shapes
#
# `out = X @ W` is a matrix product: X is (4, 3), W is (3, 2), so out is (4, 2), and its gradient g too. ∂X has the shape of X, and is a matrix product of g and
# W, one of them transposed (`.T` swaps rows and columns). **Which product?** Write it as text.

# %% name="by-shapes" tags=["question"]
by_shapes = ...

course.check("by_shapes")

# %% name="shapes" jupyter={"outputs_hidden": true}
X = mg.asarray([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 1.0]], requires_grad=True)
W = mg.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
out = X @ W
g = mg.asarray([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 1.0]])
out.backward(g)
print("X.grad, and g @ W.T:")
print(X.grad.tolist())
print((g @ W.T).tolist())

# %% [markdown]
# You need not learn the rule of a matrix product by heart. Write down the shapes, all different, and only one product fits.
#
# ## Measured slopes

# %% name="at-the-kink-asked"
course.task("at_the_kink")

# %% name="at-the-kink" tags=["question"]
at_the_kink = ...

course.check("at_the_kink")

# %% [markdown]
# Move the slider over 0: the bench marks the place where rule and measurement differ.

# %% name="bench-relu"
mg.viz.bench(mg.relu)

# %% [markdown]
# So a check of a rule stays away from kinks. It also needs a good step h. The slope of tanh at 1 is 1 − tanh(1)². People also measure **from one side**:
# (tanh(1 + h) − tanh(1)) / h, which runs the function once less. h is 10⁻ⁿ. **Which n comes closest to the slope: 5, 8 or 11?**

# %% name="step" tags=["question"]
step = ...

course.check("step")

# %% name="steps" jupyter={"outputs_hidden": true}
def digits(slope):
    return round(-math.log10(abs(slope - (1 - math.tanh(1) ** 2))))


print("h, and the digits that are right: from one side, from both")
for n in range(1, 16):
    h = 10.0**-n
    one = digits((math.tanh(1 + h) - math.tanh(1)) / h)
    both = digits((math.tanh(1 + h) - math.tanh(1 - h)) / (2 * h))
    print(f"1e-{n:<2}", f"{'*' * one:12}", "*" * both)

# %% [markdown]
# Where h is large, the bend of the curve is in the way; where h is tiny, rounding is. From both sides the bends nearly cancel, so that a larger h will do. In [the exercise](exercises/05_gradient_functions_exercise.ipynb) you
# write four rules, and train a network that uses nothing else for these operations. Then you write the check, and find the wrong rule among five.
