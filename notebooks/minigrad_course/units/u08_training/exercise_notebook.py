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
# # 08 · Training: your own trainer
#
# Do [08 · Training](../08_training.ipynb) first. Here you write the parts of a training, from the first step to the file that another program runs.

# %% name="begin"
import math

import minigrad as mg
import minigrad_course as course

course.begin("08_training", student="")

# %% [markdown]
# ## 1 · One step
#
# `training_step(model, optimizer, images, labels)` makes one step of a training and **returns the loss**. The loss is `mg.cross_entropy(model(images), labels)`.
# The optimizer has two methods, `zero_grad()` and `step()`. The order matters.

# %% name="training_step"
def training_step(model, optimizer, images, labels):
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    loss = mg.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss
    ### END SOLUTION

# %% name="check-training-step"
course.check("training_step")

# %% [markdown]
# ## 2 · The first weights

# %% name="task-scale"
course.task("scale")

# %% name="scale"
scale = ...  # one number, or a formula with math.sqrt
### BEGIN SOLUTION
scale = math.sqrt(2 / 288)
### END SOLUTION

# %% name="check-scale"
course.check("scale")

# %% [markdown]
# ## 3 · Momentum

# %% name="task-momentum"
course.task("momentum")

# %% name="momentum"
def momentum(w, g, v):
    ### BEGIN SOLUTION
    yours = course.task("momentum")
    v = yours.beta * v + g
    return w - yours.lr * v, v
    ### END SOLUTION

# %% name="check-momentum"
course.check("momentum")
### BEGIN HIDDEN TESTS
course.check("momentum", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Adam

# %% name="task-adam"
course.task("adam")

# %% name="roots"
mg.sqrt(mg.asarray([4.0, 9.0])) + 0.5

# %% name="adam"
def adam(w, g, m, v, t):
    ### BEGIN SOLUTION
    yours = course.task("adam")
    m = yours.beta1 * m + (1 - yours.beta1) * g
    v = yours.beta2 * v + (1 - yours.beta2) * g * g
    m_corrected, v_corrected = m / (1 - yours.beta1**t), v / (1 - yours.beta2**t)
    step = yours.lr * m_corrected / (mg.sqrt(v_corrected) + yours.eps)
    return w - step - yours.lr * yours.decay * w, m, v
    ### END SOLUTION

# %% name="check-adam"
course.check("adam")
### BEGIN HIDDEN TESTS
course.check("adam", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Both train the digits
#
# An optimizer of minigrad is a class with an `update` method. This one calls your function for each parameter, and minigrad keeps the values for you:
#
# ```python
# def update(self, group):
#     for i, w, g, m, v in group.moving("m", "v"):
#         w[...], m[...], v[...] = adam(w, g, m, v, t)
# ```
#
# `race` trains a network with your momentum, your Adam, minigrad's own with the same numbers, and plain descent. The first picture has the curves; **momentum** and
# **Adam** show the 360 test digits before and after.

# %% name="race"
course.task("adam").race(momentum, adam)

# %% [markdown]
# Break a rule on purpose, for example without the correction, run both cells again, and put it right. Is a wrong Adam easy to see in the curve?
#
# ## 6 · A table with bad lines {further}

# %% name="task-read-rows"
course.task("read_rows")

# %% name="lines"
course.task("read_rows").lines

# %% [markdown]
# `line.split(",")` cuts a line into fields, `enumerate(lines, 1)` counts from 1, and `math.isfinite` refuses nan and inf:

# %% name="finite"
[(text, float(text), math.isfinite(float(text))) for text in ("71.3", "nan", "inf")]

# %% name="read_rows"
def read_rows(lines):
    ### BEGIN SOLUTION
    sign = next(each for each in ",;|" if each in lines[0])
    names = lines[0].split(sign)
    rows, left_out = [], {}
    for number, line in enumerate(lines[1:], 2):
        fields = line.split(sign)
        try:
            if len(fields) != len(names):
                raise ValueError(f"{len(fields)} fields, not {len(names)}")
            row = [float(field) for field in fields]
            if not all(map(math.isfinite, row)):
                raise ValueError("a number is not finite")
            rows.append(row)
        except ValueError as error:
            left_out[number] = str(error)
    return rows, left_out
    ### END SOLUTION

# %% name="check-read-rows"
course.check("read_rows")
### BEGIN HIDDEN TESTS
course.check("read_rows", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Pictures and text with bad items {further}
#
# A *dataset* is anything with a length and items by number: `len(dataset)`, and `dataset[index]` with index from 0. An item may be a picture, a text, a recording. Loading
# a damaged one raises an error, and it can be any error. `usable(dataset)` returns two things: the **list of the numbers of all items that can be loaded**, in order; and
# **left_out**, a dictionary from the number of each other item to the reason, in words.

# %% name="usable"
def usable(dataset):
    ### BEGIN SOLUTION
    good, left_out = [], {}
    for index in range(len(dataset)):
        try:
            dataset[index]
            good.append(index)
        except Exception as error:
            left_out[index] = f"{type(error).__name__}: {error}"
    return good, left_out
    ### END SOLUTION

# %% name="check-usable"
course.check("usable")

# %% [markdown]
# Here are 1,437 pictures of digits, each a file of its own. Twelve are damaged. A training on the others:

# %% name="train-on-files"
course.task("usable").train(usable)

# %% [markdown]
# ## 8 · What a checkpoint must hold {further}
#
# `training` is a training with four parts: `training.model` (with dropout), `training.optimizer` (Adam), `training.schedule` (which lowers the rate from time to time) and
# `training.loader` (which shuffles the pictures, and is in the middle of an epoch). `checkpoint_parts(training)` returns **a dictionary of those that a checkpoint must
# hold**, from names of your choice to the objects. The check stops a training after 20 steps, saves your parts with `mg.io.save_checkpoint`, loads them into a new training, and
# compares its losses with those of a training that was never stopped. (The state of the random numbers is always saved.)

# %% name="checkpoint_parts"
def checkpoint_parts(training):
    ### BEGIN SOLUTION
    return {
        "model": training.model, "optimizer": training.optimizer, "schedule": training.schedule, "loader": training.loader,
    }
    ### END SOLUTION

# %% name="check-checkpoint-parts"
course.check("checkpoint_parts")

# %% [markdown]
# ## 9 · Which part was lost? {further}

# %% name="task-lost"
course.task("lost")

# %% name="lost-table"
course.task("lost").table

# %% name="lost"
lost = {"A": ..., "B": ..., "C": ...}  # "optimizer", "random" or "loader"
### BEGIN SOLUTION
lost = {"A": "loader", "B": "optimizer", "C": "random"}
### END SOLUTION

# %% name="check-lost"
course.check("lost")

# %% [markdown]
# ## 10 · An evaluation that leaves no trace {further}
#
# `read_digits(model, images)` returns **the digit that the model reads in each picture**: the place of the largest of its ten scores, `scores.argmax(1)`. The model has dropout and
# batch norm. It may be in the middle of a training, so it is **left as it was**: in the same mode (`model.training` says which), with the same running means, and nothing is
# recorded for a backward pass. `model.eval()`, `model.train(True)`, `model.train(False)` and `with mg.no_grad():` are what you need.

# %% name="read_digits"
def read_digits(model, images):
    ### BEGIN SOLUTION
    before = model.training
    model.eval()
    with mg.no_grad():
        scores = model(images)
    model.train(before)
    return scores.argmax(1)
    ### END SOLUTION

# %% name="check-read-digits"
course.check("read_digits")

# %% [markdown]
# ## 11 · A file that another program runs
#
# ONNX is a format for models. `mg.io.export_onnx(model, path, images)` writes one, with the pictures as an example of the input, and `onnxruntime`, a program of Microsoft's, runs it
# without minigrad. (If they are not installed: `python3 course add onnx`, or skip this part. No points depend on it.)
#
# Two programs should compute the same. `compared(model, images, path, run)` writes the model to `path`, runs the file with `run(path, images.numpy())`, which returns a NumPy
# array, and returns **the largest difference** from the outputs of `model(images)`: one number. The model has dropout, so mind the mode.

# %% name="compared"
def compared(model, images, path, run):
    ### BEGIN SOLUTION
    model.eval()
    mg.io.export_onnx(model, path, images)
    ours = model(images).detach().numpy()
    return abs(run(path, images.numpy()) - ours).max()
    ### END SOLUTION

# %% name="check-compared"
course.check("compared")

# %% [markdown]
# ## Your framework so far
#
# Everything that you have written, in the engine's place at once, and now the loop and the optimizer are yours too:

# %% name="my-framework"
course.my_framework()

# %% name="progress"
course.progress()
