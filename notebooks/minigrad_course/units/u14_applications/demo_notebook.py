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
# # 14 · One abstraction, many applications
#
# A reader of digits, a language model, a graph network, a player of a game: DNN, LM, GNN, deep RL. This notebook runs all four on one engine, counts what they
# share, and follows one line of code from its source to its result. You need to know what a gradient rule does ([unit 05](05_gradient_functions.ipynb)) and
# what fusion is ([unit 11](11_fusion.ipynb)).

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("14_applications")

# %% [markdown]
# ## Four programs
#
# - **digits**: two layers and a relu read handwritten digits;
# - **names**: a small GPT, with attention, writes first names letter by letter;
# - **club**: messages go along the ties of a karate club, until each of its 34 members is on one of two sides;
# - **pole**: a policy pushes a cart to the left or right, and learns from how long the pole on it stands.
#
# Each has a training step: forward pass, backward pass, an update by Adam. The library has 84 primitives. **How many of them do the four training steps need
# together?**

# %% name="needed" tags=["question"]
primitives_needed = ...

course.check("primitives_needed")

# %% [markdown]
# **And how many of these does each of the four need, so that they are in all four graphs?**

# %% name="common" tags=["question"]
primitives_shared = ...

course.check("primitives_shared")

# %% name="shared-counted" jupyter={"outputs_hidden": true}
steps, uses = course.task("primitives_needed").steps(), course.task("primitives_needed").uses()
print(f"{'':14}" + "".join(f"{name:>8}" for name in steps))
for primitive, counts in uses.items():
    print(f"{primitive:14}" + "".join(f"{count or '':>8}" for count in counts))
print(f"\n{len(uses)} primitives, {sum(all(counts) for counts in uses.values())} of them in all four")

# %% [markdown]
# The graphs, side by side. Each dot is a node of a training step; inputs are above. The lit nodes are computed by a primitive that all four share. Click a
# primitive below to light its nodes. (The number on a tile says how many of the four programs use it.)

# %% name="constellations" jupyter={"outputs_hidden": true}
picture = course.task("primitives_needed").picture()
picture  # to share it: picture.save("one_abstraction.html", says="A language model, a graph network and a game: the lit nodes are computed by the same primitives.")

# %% [markdown]
# That is what a *unified abstraction* is: tensors, primitives, nodes, gradient rules. There is no part of the engine for language, for graphs, or for games. So
# whatever improves the engine improves all four: a faster kernel, a pass of the compiler, another device. What fusion does to each:

# %% name="fused"
print(f"{'':8}{'nodes':>8}{'launches':>10}{'fused':>8}")
for name, step in steps.items():
    print(f"{name:8}{step.nodes:8}{step.launches:10}{step.fused:8}")

# %% [markdown]
# And this is the step, the same for all four. Only `learn` differs:

# %% name="step"
import inspect

from minigrad_course.units.u14_applications.programs import Application

print(inspect.getsource(Application.step))

# %% [markdown]
# ## One line
#
# Now the other direction: not many programs, but one line, followed down.

# %% name="line"
def line(x, w):
    return mg.tanh(x @ w) * 2


# %% [markdown]
# **How many operations does this line record?**

# %% name="nodes" tags=["question"]
line_nodes = ...

course.check("line_nodes")

# %% [markdown]
# Both x and w require a gradient. The result passes its gradient back. **How many gradient rules run?**

# %% name="rules" tags=["question"]
line_rules = ...

course.check("line_rules")

# %% [markdown]
# The line is compiled by `mg.jit`. **How many launches does a call of it take?**

# %% name="launches" tags=["question"]
line_launches = ...

course.check("line_launches")

# %% [markdown]
# Page through all stages. What belongs to `tanh` is marked. Beside the name of each stage stands the **room** of the library in which it happens: the folder of
# its source.

# %% name="journey" jupyter={"outputs_hidden": true}
course.task("line_launches").journey(line, mg.ones((4, 3)), mg.ones((3, 8)), of="tanh")

# %% [markdown]
# Your line names no device and no language. It became three nodes, four steps of a backward pass, a call of a library and one loop, and text in three languages.
# Each line of the four programs above goes the same way.
#
# ## A loss that measures nothing
#
# The fourth program differs in one respect. A policy has no right answers to compare with: it plays, and makes the pushes more likely after which the pole stood
# for longer than usual. It learns to keep the pole upright five times as long. **What does its loss do meanwhile: "falls", "rises" or "neither"?**

# %% name="curve" tags=["question"]
policy_curve = ...

course.check("policy_curve")

# %% name="policy" jupyter={"outputs_hidden": true}
import numpy as np

run = course.task("policy_curve").train()
upright, losses = run.program.stood, run.losses
print("steps upright, last rounds against first rounds: at least doubled:", sum(upright[-5:]) > 2 * sum(upright[:5]))
changes = np.diff(losses)
print("the loss has fallen in nearly all of the rounds:", (changes < 0).mean() > 0.8)
print("the loss has risen in nearly all of the rounds:", (changes > 0).mean() > 0.8)

# %% [markdown]
# (The curves differ a little from machine to machine, because a game goes another way after the first rounding. `run.picture` shows them, in a cell of your own.) A
# loss is a number whose gradient is useful. Whether it *measures* anything is another question: look at the score, on data that the program has not seen.
#
# In [the exercise](exercises/14_applications_exercise.ipynb), each of the four programs lacks a piece. You write the pieces, reach four floors, and print a report.
