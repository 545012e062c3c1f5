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
# # 07 · Forward mode, and memory
#
# Unit 06 went backward, and read numbers that the forward pass had kept. This notebook counts these numbers, in bytes. It shows a way to compute derivatives that keeps
# nothing, and what this way costs. Then it throws most of the kept numbers away, computes them a second time, and gets the same gradients. You need
# [unit 06](06_reverse_mode.ipynb).

# %% name="setup"
import numpy as np

import minigrad as mg
import minigrad_course as course
from minigrad.examples.names_gpt import GPT, rows_of
from minigrad_course.units.u07_forward_and_memory.tangents import moving

course.begin("07_forward_and_memory")

# %% [markdown]
# ## A bill
#
# A small GPT learns first names, letter by letter. It has four blocks, and each step of its training reads many names at once:

# %% name="gpt"
known, _ = mg.data.names()
alphabet = mg.data.Alphabet(known)
rows = mg.asarray(rows_of(known[:64], alphabet))
mg.random.seed(0)
model = GPT(len(alphabet), width=32, heads=4, layers=4, dropout=0.0)

print("weights:", sum(weight.nbytes for weight in model.parameters()) / 1e6, "MB")

# %% name="step-keeps-asked"
course.task("step_keeps")

# %% name="step-keeps" tags=["question"]
step_keeps = ...

course.check("step_keeps")

# %% name="bill" jupyter={"outputs_hidden": true}
print("names, and MB that are kept:")
for names in (1, course.task("step_keeps").names):
    print(names, course.kept_bytes(model.loss(mg.asarray(rows_of(known[:names], alphabet)))) / 1e6)

# %% [markdown]
# People are surprised by this bill on real GPUs, too: [*why cost 2500+ MB when training but the model only 5MB
# big?*](https://github.com/forresti/SqueezeNet/issues/28) Is there a way to keep less? There are two. The first one changes the direction.
#
# ## Derivatives that ride along

# %% name="speed-asked"
course.task("speed")

# %% name="speed" tags=["question"]
speed = ...

course.check("speed")

# %% [markdown]
# The speed of a value is its **tangent**. Forward mode computes with pairs: each value and its tangent. `mg.jvp` runs a function on such pairs:

# %% name="jvp" jupyter={"outputs_hidden": true}
given = course.task("speed")
value, tangent = mg.jvp(lambda x: x * x, (mg.asarray(float(given.at)),), (mg.asarray(float(given.by)),))
print("value and tangent:")
print(value.item(), tangent.item())

# %% [markdown]
# Every operation has a rule for tangents. For tanh it is dx · (1 − out²), the slope times the tangent of the input. An operation with two inputs adds what each
# of them contributes. Compare:
#
# | | forward mode, `mg.jvp` | reverse mode, `backward` |
# |---|---|---|
# | begins with | tangents of the inputs | the gradient of the output |
# | goes | with the program | backward through the program |
# | one pass gives | how **all outputs** move when the inputs move in one direction | how **one output** moves with all inputs |
#
# What does forward mode keep for later? Here is a chain of 100 tanh on 1,000 floats, which are 4 kB each time:

# %% name="chain"
def chain(h, operations=100):
    for _ in range(operations):
        h = mg.tanh(h)
    return h


x = mg.ones(1000, requires_grad=True)
value, tangent = mg.jvp(chain, (mg.ones(1000),), (mg.ones(1000),))
print("kB in reverse mode, and in forward mode:")
print(course.kept_bytes(chain(x)) / 1000, course.kept_bytes(tangent) / 1000)

# %% [markdown]
# Forward mode keeps **nothing**: a tangent is computed together with its value, and no backward pass will read either. So why are networks trained by backward passes?
#
# ## Passes, counted

# %% name="weight-passes-asked"
course.task("weight_passes")

# %% name="weight-passes" tags=["question"]
weight_passes = ...

course.check("weight_passes")

# %% [markdown]
# Both ways for a smaller one, with 12 weights. `passes` counts:

# %% name="both-ways" jupyter={"outputs_hidden": true}
points = mg.asarray([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])


def loss(weights):
    return (mg.tanh(points @ weights.reshape(3, 4)) ** 2).sum()


weights = mg.asarray([0.1 * i for i in range(12)], requires_grad=True)
loss(weights).backward()

passes, gradient = 0, []
for direction in np.eye(12, dtype="f"):
    value, tangent = mg.jvp(loss, (weights.detach(),), (mg.asarray(direction),))
    gradient.append(tangent.item())
    passes += 1

print("passes of forward mode, and of reverse mode:")
print(passes, 1)
print("the same gradient:", np.allclose(gradient, weights.grad.numpy()))

# %% name="spot-passes-asked"
course.task("spot_passes")

# %% name="spot-passes" tags=["question"]
spot_passes = ...

course.check("spot_passes")

# %% [markdown]
# The view has a picture of 24 × 24 numbers. The right picture is the tangent of the left one: 576 derivatives from one pass. Where it is blue, a number grows; where it is orange, it shrinks. Turn the angle.

# %% name="spot"
row = mg.linspace(-1.5, 1.5, 24)
across, down = row.reshape(1, 24), row.reshape(24, 1)


def spot(angle):
    dx, dy = across - mg.cos(angle), down - mg.sin(angle)
    return mg.exp(-6 * (dx * dx + dy * dy))


moving(spot)

# %% [markdown]
# The choice is not a matter of taste: users who took the wrong mode have run out of memory [with
# reverse mode](https://github.com/jax-ml/jax/issues/215) and [with forward mode](https://github.com/jax-ml/jax/issues/719). A network has many
# weights and one loss, so it is trained in reverse mode, and must pay the bill.
#
# ## Reading the bill

# %% name="shared-asked"
course.task("shared")

# %% name="shared" tags=["question"]
shared = ...

course.check("shared")

# %% name="by-line" jupyter={"outputs_hidden": true}
x, W = mg.ones((64, 10)), mg.ones((10, 250), requires_grad=True)
print("kB that are kept after each line:")
p = x @ W
print("x @ W    ", course.kept_bytes(p) / 1000)
h = mg.tanh(p)
print("tanh(p)  ", course.kept_bytes(h) / 1000)
y = h * h
print("h * h    ", course.kept_bytes(y) / 1000)

# %% [markdown]
# ## Compute it twice
#
# The second way to keep less: throw numbers away, and compute them again when the backward pass needs them. `mg.checkpoint(f)` returns the same function,
# but only the **inputs** of f are kept. When the backward pass comes to f, it computes f a second time.

# %% name="one-checkpoint-asked"
course.task("one_checkpoint")

# %% name="one-checkpoint" tags=["question"]
one_checkpoint = ...

course.check("one_checkpoint")

# %% name="checkpointed" jupyter={"outputs_hidden": true}
operations = course.task("one_checkpoint").operations
everything = mg.checkpoint(lambda h: chain(h, operations))(mg.ones(1000, requires_grad=True))
print("kB after the forward pass, and at most:")
print(course.kept_bytes(everything) / 1000, course.most_bytes(everything) / 1000)

# %% [markdown]
# Nothing was saved: the backward pass computes the whole chain again, at once. (PyTorch users [have reported this](https://github.com/pytorch/pytorch/issues/78731), too.)

# %% name="ten-checkpoints-asked"
course.task("ten_checkpoints")

# %% name="ten-checkpoints" tags=["question"]
ten_checkpoints = ...

course.check("ten_checkpoints")

# %% name="parts" jupyter={"outputs_hidden": true}
operations = course.task("ten_checkpoints").operations


def in_parts(parts):
    """The chain in equal parts: checkpoints, apart from the last part."""
    h = mg.ones(1000, requires_grad=True)
    for _ in range(parts - 1):
        h = mg.checkpoint(lambda h: chain(h, operations // parts))(h)
    return chain(h, operations // parts)


print("parts: arrays that are kept at most")
for parts in [parts for parts in range(1, operations + 1) if operations % parts == 0]:
    most = course.most_bytes(in_parts(parts)) // 4000
    print(f"{parts:5}", "▪" * (most // 2), most)

# %% [markdown]
# With few parts, a part is large; with many parts, their inputs add up. The best is near the square root of the number of operations, and each operation is computed at most twice. This idea is
# from a [paper of 2016](https://arxiv.org/abs/1604.06174).
#
# ## The GPT again
#
# The chart shows what is held in memory over time: forward through the GPT, then back. Each layer is a part of the GPT; click it for its arrays, and for how long they are held. The
# slider goes from **eager mode**, as one call really ran, over the numbers of checkpoints to the fused program.

# %% name="tape"
picture = mg.viz.memory(model.loss, rows)
picture  # to share it: picture.save("tape.html", says="What a GPT keeps for its backward pass, and what checkpoints save: move the slider.")

# %% [markdown]
# Move the slider, and read the sentence: `at most` is the most that is kept at any time, and a share of the forward pass is `computed again`. **With how
# many checkpoints is `at most` below 4 MB, and as little as possible computed again?**

# %% name="slider" tags=["question"]
slider = ...

course.check("slider")

# %% [markdown]
# One worry is left. Dropout multiplies by random numbers. When a checkpoint computes a block again, does dropout draw other ones? The block in the next cell has two layers
# with dropout between them, and 2,112 gradients. **How many of the gradients change** when the block goes into a checkpoint?

# %% name="with-dropout" tags=["question"]
with_dropout = ...

course.check("with_dropout")

# %% name="dropout" jupyter={"outputs_hidden": true}
def gradients(wrap):
    mg.random.seed(7)
    block = mg.nn.Sequential(mg.nn.Linear(32, 32), mg.nn.Dropout(0.5), mg.nn.Linear(32, 32))
    wrap(block)(mg.ones((4, 32))).sum().backward()
    return np.concatenate([weight.grad.numpy().reshape(-1) for weight in block.parameters()])


one, two = gradients(lambda block: block), gradients(mg.checkpoint)
print("numbers, and how many of them change:")
print(one.size, int((one != two).sum()))

# %% [markdown]
# A node is a recipe: it stores which random numbers it drew. Where a framework forgets this, [the training goes wrong
# silently](https://github.com/openai/guided-diffusion/issues/167). In [the exercise](exercises/07_forward_and_memory_exercise.ipynb) you write a rule of forward mode, and
# then the function that runs a GPT by a plan of checkpoints. You find a plan that stays within a budget of bytes, and train with it.
