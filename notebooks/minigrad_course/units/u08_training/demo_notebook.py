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
# # 08 · Training
#
# A model has a life: data comes in, the first weights are drawn, training changes them step by step, the result is measured, stored, and used. A framework has a
# part for each stage, and each part keeps something. This notebook asks **what each of them keeps**, because what is forgotten there goes wrong without an
# error message. You need [unit 00](00_start.ipynb).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad import nn

course.begin("08_training")

# %% [markdown]
# ## A step of Adam
#
# Adam is the optimizer that most models are trained with. Two weights have very different gradients: 1000 and 0.001. Plain descent, w − lr · g, would move the
# first a million times as far as the second. **How many times as far does Adam move it, in its first step?**

# %% name="first-step" tags=["question"]
first_step = ...

course.check("first_step")

# %% name="adam-steps" jupyter={"outputs_hidden": true}
w = mg.asarray([1.0, 1.0], requires_grad=True)
optimizer = mg.optim.Adam([w], lr=0.1)
loss = (w * mg.asarray([1000.0, 0.001])).sum()
loss.backward()
optimizer.step()
print("the gradients:", w.grad.tolist())
print("the weights: ", [round(each, 4) for each in w.tolist()])

# %% [markdown]
# The optimizer divides each gradient by its own size. For this it keeps two numbers for each weight, from step to step. Optimizers, loaders, layers: they all
# have a **state**, and the rest of this notebook goes through them.
#
# ## What a module holds
#
# A `Module` is an object whose attributes are tensors and other modules. A tensor that requires a gradient is a *parameter*: training changes it. Here is a network
# for digits, pictures of 8 × 8 = 64 numbers. **How many numbers does it learn?**

# %% name="network"
def network():
    mg.random.seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


network()[0], network()[1], network()[2]

# %% name="learned" tags=["question"]
learned = ...

course.check("learned")

# %% name="parameters" jupyter={"outputs_hidden": true}
for name, parameter in network().named_parameters():
    print(f"{name:9} {parameter.shape!s:9} {parameter.size:5}")

# %% [markdown]
# ## The first weights
#
# They are drawn at random, and their *spread* (the root of their mean square) decides whether a deep network can learn. Take ten layers of 100 inputs and 100
# outputs. The input has spread 1, and the weights have spread 0.05. Each output is a sum of 100 products. **What is the spread after the tenth layer?**

# %% name="spread" tags=["question"]
spread = ...

course.check("spread")

# %% [markdown]
# The picture runs ten layers. Move the slider. Choose relu and tanh as well. **Without **activation** (a function between two layers), which setting keeps the spread near 1?**

# %% name="spreads" jupyter={"outputs_hidden": true}
from minigrad_course.units.u08_training.spreads import spreads

spreads()

# %% name="keeps" tags=["question"]
keeps = ...

course.check("keeps")

# %% [markdown]
# ## A step of training
#
# The loss for digits is the *cross entropy*: −log of the share that the network gives to the right digit. An untrained network gives each of the ten digits about
# the same share. **About how large is its loss?**

# %% name="chance" tags=["question"]
chance = ...

course.check("chance")

# %% [markdown]
# A training step has four phases: **batch** (take a batch), **forward** (compute the loss), **backward** (compute the gradients) and **update**. The picture opens at the
# end of the training. Move the slider to its left end, and step through the phases with **next**: you see the batch with what the network reads, the weights, their
# gradients, and the loss.

# %% name="training-stepper" jupyter={"outputs_hidden": true}
model = network()
optimizer = mg.optim.Adam(model.parameters(), lr=0.03)
images, labels = mg.data.digits()[0].arrays
batches = mg.data.DataLoader(mg.data.TensorDataset(images.reshape(-1, 64), labels), batch_size=16, shuffle=True, seed=0)
mg.viz.training(model, optimizer, nn.CrossEntropyLoss(), batches)

# %% [markdown]
# **In which phase do the weights change?** The name of the phase, in quotation marks.

# %% name="phase" tags=["question"]
phase = ...

course.check("phase")

# %% [markdown]
# `backward()` *adds* to `.grad`, because a value may be used several times. So a training step begins with `optimizer.zero_grad()`. Suppose that it is forgotten: w is 1,
# the loss is 3 · w, and lr is 0.1. **What is w after two steps?**

# %% name="forgotten" tags=["question"]
forgotten = ...

course.check("forgotten")

# %% name="two-steps" jupyter={"outputs_hidden": true}
for clears in (True, False):
    w = mg.asarray(1.0, requires_grad=True)
    descent = mg.optim.SGD([w], lr=0.1)
    for _ in range(2):
        if clears:
            descent.zero_grad()
        (3 * w).backward()
        descent.step()
    print("with zero_grad:" if clears else "without:", round(w.item(), 4))

# %% [markdown]
# ## What an optimizer keeps
#
# With *momentum*, each weight has a velocity v, which is 0 at first. In each step v becomes β · v + g, and w loses lr · v. The gradient g is 1 in every step, and β is
# 0.9. **Towards which number does v grow?**

# %% name="top-speed" tags=["question"]
top_speed = ...

course.check("top_speed")

# %% name="velocities" jupyter={"outputs_hidden": true}
v = 0.0
for step in range(1, 61):
    v = 0.9 * v + 1
    if step in (1, 2, 5, 10, 20, 60):
        print(f"step {step:2}  v = {v:.3f}")

# %% [markdown]
# ## A training that is stopped
#
# A training is stopped after 20 steps, and continued the next day from a file. The file has the weights, the random numbers and the place in the epoch. Adam
# begins anew. Count the losses from the restart: loss 1 is the first. **Which loss is the first that differs from those of a training without a stop?**

# %% name="first-difference" tags=["question"]
first_difference = ...

course.check("first_difference")

# %% [markdown]
# The picture continues the same training with everything, and with one part left out. Here the steps are counted from the beginning, so loss 1 is that of step 21.
# Choose each part: which one does the most damage, and which does damage late?

# %% name="resuming" jupyter={"outputs_hidden": true}
from minigrad_course.units.u08_training.resuming import resuming

resuming()

# %% [markdown]
# ## Two modes
#
# Batch norm shifts and scales each number by the mean and the spread of the batch. It also keeps running means of both, for later, when pictures come one by one.
# `model.eval()` switches to them. This network reads nearly all of 360 test digits:

# %% name="with-norm"
mg.random.seed(0)
normed = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
optimizer = mg.optim.AdamW(normed.parameters(), lr=0.01)
for x, y in [batch for _ in range(4) for batch in mg.data.DataLoader(batches.dataset, 64, shuffle=True, seed=1)]:
    optimizer.zero_grad()
    mg.cross_entropy(normed(x), y).backward()
    optimizer.step()

tests, answers = mg.data.digits()[1].arrays
tests, answers = mg.asarray(tests.reshape(-1, 64)), mg.asarray(answers)
normed.eval()
with mg.no_grad():
    right = (normed(tests).argmax(1) == answers).sum().item()
print("more than 330 of 360 are right:", right > 330)

# %% [markdown]
# Now `model.eval()` is forgotten. With mixed batches this network still reads about as many. But the test pictures come **sorted**: first a batch with all zeros, then
# one with all ones, and so on. **About how many of the 360 does it read right?**

# %% name="sorted-pictures" tags=["question"]
sorted_pictures = ...

course.check("sorted_pictures")

# %% name="sorted" jupyter={"outputs_hidden": true}
from copy import deepcopy

careless = deepcopy(normed).train()
found = []
with mg.no_grad():
    for digit in range(10):
        same_digit = tests[answers == digit]
        found.append((careless(same_digit).argmax(1) == digit).sum().item())
print("fewer than 70 of 360 are right:", sum(found) < 70)

# %% [markdown]
# No error came. With mixed batches the mistake would not have been seen.
#
# ## Data that is not clean
#
# Data comes as tables (*structured*), and as pictures and text (*unstructured*). Some of it is damaged. **How many of these seven texts does Python's `float()` refuse?**
#
# `"71.3"`, `" 71.3 "`, `"1e3"`, `"n/a"`, `"nan"`, `"inf"`, `""`

# %% name="refused" tags=["question"]
refused = ...

course.check("refused")

# %% name="floats" jupyter={"outputs_hidden": true}
for text in ("71.3", " 71.3 ", "1e3", "n/a", "nan", "inf", ""):
    try:
        print(f"{text!r:9} {float(text)}")
    except ValueError as error:
        print(f"{text!r:9} refused: {error}")

# %% [markdown]
# What should a loader do with a damaged item? minigrad's stops, says which item it is and why, and can go on afterwards:

# %% name="a-bad-item"
readings = ["71.5", "55.5", "n/a", "39.5"]
loader = iter(mg.data.DataLoader(mg.data.Mapped(readings, float)))
for _ in readings:
    try:
        print(next(loader).tolist())
    except mg.data.DataError as error:
        print(str(error).splitlines()[0])

# %% [markdown]
# In [the exercise](exercises/08_training_exercise.ipynb) you write the parts: a training step, momentum and Adam, two loaders, a checkpoint, an evaluation, and a file
# that another program runs. Your optimizers train the digits beside minigrad's.
