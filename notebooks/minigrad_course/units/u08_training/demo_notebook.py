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
# first a million times as far as the second. Adam moves both by lr, in its first step:

# %% name="adam-first"
pair = mg.asarray([1.0, 1.0], requires_grad=True)
adam = mg.optim.Adam([pair], lr=0.1)
(pair * mg.asarray([1000.0, 0.001])).sum().backward()
adam.step()
print("the gradients:", pair.grad.tolist())
print("the weights: ", [round(each, 4) for each in pair.tolist()])

# %% [markdown]
# Then comes a second step, in which both gradients are **0**. **How far does Adam move the first weight: "not at all", "less than lr", "lr" or "more than lr"?**

# %% name="second-step" tags=["question"]
second_step = ...

course.check("second_step")

# %% name="adam-steps" jupyter={"outputs_hidden": true}
pair = mg.asarray([1.0, 1.0], requires_grad=True)
adam = mg.optim.Adam([pair], lr=0.1)
for gradients in ([1000.0, 0.001], [0.0, 0.0]):
    before = pair.tolist()
    adam.zero_grad()
    (pair * mg.asarray(gradients)).sum().backward()
    adam.step()
    moved = [round((old - new) / 0.1, 2) for old, new in zip(before, pair.tolist())]
    print("the gradients:", gradients, "- moved by, in parts of lr:", moved)

# %% [markdown]
# The optimizer divides each gradient by its own size. For this it keeps two numbers for each weight, from step to step. Optimizers, loaders, layers: they all
# have a **state**, and the rest of this notebook goes through them.
#
# ## What a module holds
#
# A `Module` is an object whose attributes are tensors and other modules. A tensor that requires a gradient is a *parameter*: training changes it. Here is a network
# for digits, pictures of 8 × 8 = 64 numbers:

# %% name="network"
def network():
    mg.random.seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


network()[0], network()[1], network()[2]

# %% [markdown]
# Yours has another width. A Tanh is between its two layers too:

# %% name="task-learned"
course.task("learned")

# %% name="learned" tags=["question"]
learned = ...

course.check("learned")

# %% name="parameters" jupyter={"outputs_hidden": true}
hidden = course.task("learned").hidden
for name, parameter in nn.Sequential(nn.Linear(64, hidden), nn.Tanh(), nn.Linear(hidden, 10)).named_parameters():
    print(f"{name:9} {parameter.shape!s:9} {parameter.size:5}")

# %% [markdown]
# ## The first weights
#
# They are drawn at random, and their *spread* (the root of their mean square) decides whether a deep network can learn. Take ten layers of 100 inputs and 100
# outputs. The input has spread 1. Each output is a sum of 100 products.

# %% name="task-spread"
course.task("spread")

# %% name="spread" tags=["question"]
spread = ...

course.check("spread")

# %% [markdown]
# The picture runs ten layers. Move the slider. Choose relu and tanh as well: an **activation** is a function between two layers.

# %% name="spreads" jupyter={"outputs_hidden": true}
from minigrad_course.units.u08_training.spreads import spreads

spreads()

# %% name="task-keeps"
course.task("keeps")

# %% name="keeps" tags=["question"]
keeps = ...

course.check("keeps")

# %% [markdown]
# ## A step of training
#
# The loss of a network that chooses is the *cross entropy*: −log of the share that it gives to the right answer. An untrained network gives each answer about the
# same share.

# %% name="task-chance"
course.task("chance")

# %% name="chance" tags=["question"]
chance = ...

course.check("chance")

# %% [markdown]
# A training step has four phases: **batch** (take a batch), **forward** (compute the loss), **backward** (compute the gradients) and **update**. The picture opens at the
# end of the training. Move the slider to its left end, and step through the phases with **next**: you see the batch with what the network reads, the weights, their
# gradients, and the loss.

# %% name="training-stepper" jupyter={"outputs_hidden": true}
model = nn.Sequential(nn.Flatten(), *network())
optimizer = mg.optim.Adam(model.parameters(), lr=0.03)
batches = mg.data.DataLoader(mg.data.digits()[0], batch_size=16, shuffle=True, seed=0)
picture = mg.viz.training(model, optimizer, nn.CrossEntropyLoss(), batches)
picture  # to share it: picture.save("training.html", says="A network learns to read digits: a batch, forward, backward, an update, and again.")

# %% [markdown]
# The weights change in the update. **In which phase do the numbers beside them change, their gradients?** The name of the phase, in quotation marks.

# %% name="phase" tags=["question"]
phase = ...

course.check("phase")

# %% [markdown]
# `backward()` *adds* to `.grad`, because a value may be used several times. So a training step begins with `optimizer.zero_grad()`. Suppose that it is forgotten:

# %% name="task-forgotten"
course.task("forgotten")

# %% name="forgotten" tags=["question"]
forgotten = ...

course.check("forgotten")

# %% name="two-steps" jupyter={"outputs_hidden": true}
task = course.task("forgotten")
for clears in (True, False):
    w = mg.asarray(float(task.start), requires_grad=True)
    descent = mg.optim.SGD([w], lr=0.1)
    for _ in range(2):
        if clears:
            descent.zero_grad()
        (task.slope * w).backward()
        descent.step()
    print("with zero_grad:" if clears else "without:", round(w.item(), 4))

# %% [markdown]
# ## What an optimizer keeps
#
# With *momentum*, each weight has a velocity v, which is 0 at first. In each step v becomes β · v + g, and w loses lr · v.

# %% name="task-top-speed"
course.task("top_speed")

# %% name="top-speed" tags=["question"]
top_speed = ...

course.check("top_speed")

# %% name="velocities" jupyter={"outputs_hidden": true}
v, beta = 0.0, course.task("top_speed").beta
for step in range(1, 401):
    v = beta * v + 1
    if step in (1, 2, 5, 10, 20, 60, 400):
        print(f"step {step:3}  v = {v:.3f}")

# %% [markdown]
# ## A training that is stopped
#
# A training is stopped after 20 steps, and continued the next day from a file: with its weights, its optimizer, its rate (**learning rate**), its random numbers, and the place
# in the epoch. But one of them is forgotten.

# %% name="task-first-difference"
course.task("first_difference")

# %% name="first-difference" tags=["question"]
first_difference = ...

course.check("first_difference")

# %% [markdown]
# The picture continues a training with everything, and with one part left out. Here the steps are counted from the beginning, so loss 1 is that of step 21.
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
normed = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
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
# Now `model.eval()` is forgotten. With mixed batches this network still reads about as many. But the test pictures come **sorted**, with a few digits in each batch.
# (With one digit in each batch it reads 43 of 360.)

# %% name="task-sorted-pictures"
course.task("sorted_pictures")

# %% name="sorted-pictures" tags=["question"]
sorted_pictures = ...

course.check("sorted_pictures")

# %% name="sorted" jupyter={"outputs_hidden": true}
from copy import deepcopy

careless = deepcopy(normed).train()
together, found = course.task("sorted_pictures").together, 0
with mg.no_grad():
    for first in range(0, 10, together):
        batch = mg.asarray([i for i, digit in enumerate(answers.tolist()) if first <= digit < first + together])
        found += (careless(tests[batch]).argmax(1) == answers[batch]).sum().item()
print(f"{together} digits in a batch, right: about", round(found / 20) * 20)

# %% [markdown]
# No error came. With mixed batches the mistake would not have been seen.
#
# ## Data that is not clean
#
# Data comes as tables (*structured*), and as pictures and text (*unstructured*). Some of it is damaged.

# %% name="task-refused"
course.task("refused")

# %% name="refused" tags=["question"]
refused = ...

course.check("refused")

# %% name="floats" jupyter={"outputs_hidden": true}
for text in course.task("refused").texts:
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
