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
# Each has a training step: forward pass, backward pass, an update by Adam. The library has 84 primitives. **Which of the four steps needs the most of them:
# "digits", "names", "club" or "pole"?**

# %% name="most" tags=["question"]
most_primitives = ...

course.check("most_primitives")

# %% name="shared-counted" jupyter={"outputs_hidden": true}
steps, uses = course.task("most_primitives").steps(), course.task("most_primitives").uses()
print(f"{'':14}" + "".join(f"{name:>8}" for name in steps))
for primitive, counts in uses.items():
    print(f"{primitive:14}" + "".join(f"{count or '':>8}" for count in counts))
needs = [sum(map(bool, counts)) for counts in zip(*uses.values())]
print(f"{'primitives':14}" + "".join(f"{count:8}" for count in needs))
print(f"\n{len(uses)} primitives together, {sum(all(counts) for counts in uses.values())} of them in all four")

# %% [markdown]
# The graphs, side by side. Each dot is a node of a training step; inputs are above. The lit nodes are computed by a primitive that all four share. Click a
# primitive below to light its nodes. (The number on a tile says how many of the four programs use it.)

# %% name="constellations" jupyter={"outputs_hidden": true}
picture = course.task("most_primitives").picture()
picture  # to share it: picture.save("one_abstraction.html", says="A language model, a graph network and a game: the lit nodes are computed by the same primitives.")

# %% [markdown]
# That is what a *unified abstraction* is: tensors, primitives, nodes, gradient rules. There is no part of the engine for language, for graphs, or for games. Does
# it hold for a program that was not among the four?

# %% name="task-fifth"
course.task("fifth_program")

# %% name="fifth" tags=["question"]
fifth_program = ...

course.check("fifth_program")

# %% name="fifth-counted" jupyter={"outputs_hidden": true}
print("not among those of the four:", course.task("fifth_program").new())

# %% [markdown]
# So whatever improves the engine improves all of them: a faster kernel, a pass of the compiler, another device. What fusion does to each of the four:

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
# Now the other direction: not many programs, but one line, followed down. x has the shape (4, 3), w has (3, 8), and b has (8,). The line is your own.

# %% name="task-nodes"
course.task("line_nodes")

# %% name="nodes" tags=["question"]
line_nodes = ...

course.check("line_nodes")

# %% name="task-rules"
course.task("line_rules")

# %% name="rules" tags=["question"]
line_rules = ...

course.check("line_rules")

# %% name="task-launches"
course.task("line_launches")

# %% name="launches" tags=["question"]
line_launches = ...

course.check("line_launches")

# %% [markdown]
# Page through all stages. What belongs to the matrix product is marked. Beside the name of each stage stands the **room** of the library in which it happens: the
# folder of its source.

# %% name="journey" jupyter={"outputs_hidden": true}
course.task("line_launches").journey(of="matmul")

# %% [markdown]
# Your line names no device and no language. It became nodes, a backward pass, a call of a library and loops, and text in three languages. Each line of the four
# programs above goes the same way.
#
# ## A loss that measures nothing
#
# The fourth program differs in one respect. A policy has no right answers to compare with: it plays, and makes the pushes more likely after which the pole stood
# for longer than usual. It learns to keep the pole upright five times as long. **In how many of its rounds is the loss smaller than in the round before: "nearly
# all", "about half" or "nearly none"?**

# %% name="curve" tags=["question"]
policy_curve = ...

course.check("policy_curve")

# %% name="policy" jupyter={"outputs_hidden": true}
import numpy as np

run = course.task("policy_curve").train()
upright, losses = run.program.stood, run.losses
print("steps upright, last rounds against first rounds: at least doubled:", sum(upright[-5:]) > 2 * sum(upright[:5]))
falls = (np.diff(losses) < 0).mean()
print("rounds in which the loss falls: between 40 % and 60 %:", 0.4 < falls < 0.6)

# %% [markdown]
# (The curves differ a little from machine to machine, because a game goes another way after the first rounding. `run.picture` shows them, in a cell of your own.) A
# loss is a number whose gradient is useful. Whether it *measures* anything is another question: look at the score, on data that the program has not seen.
#
# In [the exercise](exercises/14_applications_exercise.ipynb), each of the four programs lacks a piece. You write the pieces, reach four floors, and print a report.
