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
# # 01 · Why frameworks: a gradient by hand
#
# Do [01 · Why frameworks](../01_why_frameworks.ipynb) first. Here you are the backpropagation engine, once. Then the activation changes.

# %% name="begin"
import numpy as np

import minigrad_course as course

course.begin("01_why_frameworks", student="")

# %% [markdown]
# ## 1 · Backward, by hand
#
# This network has two more weights: the **biases** b and c, which are added to each row. The forward part stands below. Go backward through it, the last line first. You need these rules; g is what has come to the output. (Unit 05 says where they come from.)
#
# | line | what its inputs get |
# |---|---|
# | `out = A @ B` | A gets `g @ B.T`, B gets `A.T @ g` |
# | `out = A + row` | A gets `g`, the row gets `g.sum(0)` |
# | `out = np.tanh(z)` | z gets `g * (1 - out * out)` |
#
# Two steps are given: `do` is the gradient of the scores `h @ V + c`, and dV follows by the first rule. **Compute dc, then dh, then dz, then dW and db.** Each gradient has the shape of
# what it belongs to.

# %% name="mlp_grad"
def mlp_grad(x, t, W, b, V, c):
    z = x @ W + b
    h = np.tanh(z)
    e = np.exp(h @ V + c)
    p = e / e.sum(1, keepdims=True)

    do = (p - t) / len(x)
    dV = h.T @ do
    ### BEGIN SOLUTION
    dc = do.sum(0)
    dh = do @ V.T
    dz = dh * (1 - h * h)
    dW = x.T @ dz
    db = dz.sum(0)
    ### END SOLUTION
    return dW, db, dV, dc

# %% name="check-mlp-grad"
course.check("mlp_grad")

# %% [markdown]
# Now your function takes the place of the engine's backward pass: the forward pass and the **optimizer**, which changes the weights by their gradients, are minigrad's, all gradients are yours. The two curves lie on each other.

# %% name="by-hand"
course.task("mlp_grad").train(mlp_grad)

# %% [markdown]
# ## 2 · Another activation

# %% name="task-swapped-grad"
course.task("swapped_grad")

# %% name="swapped_grad"
def swapped_grad(x, t, W, b, V, c):
    ### BEGIN SOLUTION
    z = x @ W + b
    h, slope = {
        "relu": lambda: (np.maximum(z, 0), z > 0),
        "silu": lambda: (z / (1 + np.exp(-z)), (1 + z / (1 + np.exp(z))) / (1 + np.exp(-z))),
        "sin": lambda: (np.sin(z), np.cos(z)),
        "atan": lambda: (np.arctan(z), 1 / (1 + z * z)),
    }[course.task("swapped_grad").activation]()
    e = np.exp(h @ V + c)
    p = e / e.sum(1, keepdims=True)

    do = (p - t) / len(x)
    dV = h.T @ do
    dc = do.sum(0)
    dh = do @ V.T
    dz = dh * slope
    dW = x.T @ dz
    db = dz.sum(0)
    return dW, db, dV, dc
    ### END SOLUTION

# %% name="check-swapped-grad"
course.check("swapped_grad")
### BEGIN HIDDEN TESTS
course.check("swapped_grad", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# What did it take? These are the lines in which your two functions differ:

# %% name="changed"
print(course.task("swapped_grad").changes(mlp_grad, swapped_grad))

# %% [markdown]
# In the network of the framework it was one word. Now train with your activation, 150 steps: by the engine, by your function, and with the forward line changed but the other one
# **forgotten**. The fourth network has another student's activation, and the same forgotten line.

# %% name="compare"
course.task("swapped_grad").compare(swapped_grad)

# %% [markdown]
# In which of the last two would you have noticed the mistake? It is the same one. relu and silu grow without end, and 1 − h² with them; sin and atan are so close to tanh that the wrong slope hardly
# matters. So a count of digits cannot tell whether a gradient is right.
#
# ## 3 · On four machines
#
# A data-parallel system can run your gradient on several machines: `map`. Each machine has a part of the pictures, of **any size**, and returns a pair: how many pictures it has, and the gradient of the
# *mean* loss of its pictures. `whole_gradient(parts)` is the `reduce`: from a list of such pairs it computes the gradient of the mean loss of **all** pictures.

# %% name="whole_gradient"
def whole_gradient(parts):
    ### BEGIN SOLUTION
    total = sum(count * gradient for count, gradient in parts)
    return total / sum(count for count, gradient in parts)
    ### END SOLUTION

# %% name="check-whole-gradient"
course.check("whole_gradient")

# %% [markdown]
# Four workers, with 1,000, 300, 100 and 37 pictures, run your `mlp_grad`, and your `whole_gradient` combines what they return:

# %% name="four"
course.task("whole_gradient").train(mlp_grad, whole_gradient)

# %% [markdown]
# (Libraries got this wrong for years: see [transformers, issue 24725](https://github.com/huggingface/transformers/issues/24725).)
#
# ## 4 · Two lines, three layers

# %% name="task-stack-counts"
course.task("stack_counts")

# %% name="stack_counts"
stack_counts = ...  # four numbers, in brackets
### BEGIN SOLUTION
stack_counts = [4, 4, 0, 5]
### END SOLUTION

# %% [markdown]
# Where your number is right, the layer lights up. Change the numbers until all four do:

# %% name="my-stack"
course.task("stack_counts").stack(stack_counts)

# %% name="check-stack-counts"
course.check("stack_counts")

# %% [markdown]
# ## 5 · A faster processor

# %% name="task-step-gain"
course.task("step_gain")

# %% name="step_gain"
step_gain = ...  # a number
### BEGIN SOLUTION
step_gain = 2.33
### END SOLUTION

# %% name="check-step-gain"
course.check("step_gain")

# %% [markdown]
# And on this machine? How much of a real step is Python? Try other sizes of a batch, 4 or 1,000 pictures:

# %% name="measure"
for batch in 4, 64, 1000:
    print(course.task("step_gain").measure(batch))

# %% name="progress"
course.progress()
