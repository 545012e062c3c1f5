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
# # 04 · Computational graphs
#
# While a program runs, a framework writes down what it computes: a **graph**. Gradients, compilers and most pictures of this course begin there. This
# notebook asks what a program leaves in its graph, and what it does not. You need Python and [unit 00](00_start.ipynb).

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("04_graphs")

# %% [markdown]
# ## What is left of a program
#
# This program has a function, a loop and an `if`. (`h.item()` is the number in h, which Python can compare.)

# %% name="program"
w = mg.asarray(3.0, requires_grad=True)


def scaled(h):
    return w * h


def program(x, rounds=2):
    h = x
    for _ in range(rounds):
        h = scaled(h) + x
    if h.item() > 0:
        y = h * h
    else:
        y = h - 1
    return y


x = mg.asarray(2.0, requires_grad=True)
y = program(x)
y.item()

# %% name="in-the-graph-asked"
course.task("in_the_graph")

# %% name="in-the-graph" tags=["question"]
in_the_graph = ...

course.check("in_the_graph")

# %% name="nodes-asked"
course.task("nodes")

# %% name="nodes" tags=["question"]
nodes = ...

course.check("nodes")

# %% name="picture" jupyter={"outputs_hidden": true}
x = mg.asarray(2.0, requires_grad=True)
mg.viz.graph(program(x, course.task("nodes").rounds), names={"x": x, "w": w})

# %% [markdown]
# Click a box of the picture: it shows the line that made the node. One line, `return w * h`, made two nodes.
#
# How did the framework get this? When Python reaches `w * h`, it calls a function of the library. That function does three things: it **computes** the
# product, **wraps** it in a new tensor, and **records** a node: the operation, and the nodes of its inputs. Nothing else is written down:
# the library is not called for Python's own work.
#
# ## A name is not a node
#
# Four lines, and one name:

# %% name="arrows-asked"
course.task("arrows")

# %% name="arrows" tags=["question"]
arrows = ...

course.check("arrows")

# %% name="one-name" jupyter={"outputs_hidden": true}
x = mg.asarray(3.0, requires_grad=True)
y = x
y = y * y
y = y + y
y = eval(course.task("arrows").last)
mg.viz.graph(y, names={"x": x})

# %% [markdown]
# A name is a label that Python moves from one value to the next. No arrow leads back, because a value is never
# computed from itself or from a later value: such a graph is called **directed** and **acyclic**.

# %% name="kept-nodes-asked"
course.task("kept_nodes")

# %% name="kept-nodes" tags=["question"]
kept_nodes = ...

course.check("kept_nodes")

# %% name="running-total" jupyter={"outputs_hidden": true}
from minigrad.core.node import topological_order


def added_up(number_of):
    x = mg.asarray(2.0, requires_grad=True)
    total = mg.zeros(())
    for _ in range(course.task("kept_nodes").rounds):
        h = w * x
        loss = h * h
        total = total + number_of(loss)
    return total


total = added_up(lambda loss: loss)
print("from the sum of the losses:")
print(sum(node.op is not None for node in topological_order([total.node])))
total = added_up(lambda loss: loss.item())
print("from the sum of their numbers:")
print(0 if total.node is None else len(topological_order([total.node])))

# %% [markdown]
# A node keeps its inputs alive, they keep theirs, and so on. A running total of losses therefore keeps the graphs of all rounds, and training runs out of
# memory: a common fault ([here](https://github.com/google/brax/pull/152), [and here](https://github.com/rballester/tntorch/pull/19)). `loss.item()` is a plain number without a graph.
#
# ## Five programs
#
# All five compute (w · x + b)².

# %% name="five"
def A(x, w, b):
    h = w * x + b
    return h * h


def B(image, weight, offset):
    def affine(value):
        return weight * value + offset

    for layer in [affine]:
        image = layer(image)
    result = image
    return result * result


def C(x, w, b):
    return (w * x + b) * (w * x + b)


def D(x, w, b):
    h = x * w + b
    return h * h


def E(x, w, b):
    h = w * x + b
    _spare = h * 100
    return h * h


programs = {"A": A, "B": B, "C": C, "D": D, "E": E}
[function(*map(mg.asarray, (2.0, 3.0, 1.0))).item() for function in programs.values()]

# %% [markdown]
# Two graphs are **equal** if they have the same operations, and the same arrows to the same inputs. The names of values do not count. **Which of B, C, D and E have
# the same graph as A?** A list of letters.

# %% name="same" tags=["question"]
same = ...

course.check("same")

# %% name="listings" jupyter={"outputs_hidden": true}
for name, function in programs.items():
    print(f"{name}:", course.task("same").listing(function, x=2.0, w=3.0, b=1.0))

# %% [markdown]
# In these lists, v1, v2 and v3 are the values, in the order in which they are computed. Three spellings of a program, A, B and E, leave one graph. In C the same mathematics leaves another one: the value is *computed* twice, so it *is* there
# twice. A compiler may find out that both are equal (unit 11). Equal numbers are not enough for that: one framework
# [took two parameters with equal values for one](https://github.com/tinygrad/tinygrad/issues/9597), and doubled their gradients.
#
# ## One program, several graphs
#
# Now the other way round: one program, which runs for the eleven values x = −5, −4, ..., 5. **How many different graphs do the eleven runs leave?**

# %% name="f"
def f(x):
    if x.item() > 2:
        h = x * x
        return h + x
    if x.item() < -2:
        return x * -1
    return x + 1

# %% name="graphs" tags=["question"]
graphs = ...

course.check("graphs")

# %% [markdown]
# Move the slider. Then change f, with a third `if` or with `for i in range(int(x.item()))`, and run both cells again.

# %% name="runs" jupyter={"outputs_hidden": true}
picture = course.task("graphs").runs(f, range(-5, 6))
picture  # to share it: picture.save("one_run.html", says="A graph says what one run did: move the slider, and the same program leaves another graph.")

# %% [markdown]
# So a graph says what *one run* did. If a graph is kept and run again for another x, it may be the graph of the wrong branch
# (such a case is PyTorch's [issue 21774](https://github.com/pytorch/pytorch/issues/21774)). Unit 10 is about this.
#
# ## An order
#
# A graph has no lines and no line numbers. To compute it again, an engine needs an order. Click the boxes in any order that you like, also in wrong ones: what turns a box red?

# %% name="board"
course.task("an_order").board

# %% [markdown]
# **Write an order that begins with a, in which no box turns red**: all five names. (The names are labels, and the alphabet is not an order of computing.)

# %% name="an-order" tags=["question"]
an_order = ...

course.check("an_order")

# %% [markdown]
# An order in which every node comes after its inputs is a **topological order**. minigrad gets one almost for nothing: it numbers the nodes while it
# records them, and a node is always recorded after its inputs. So it sorts by number.
#
# ## A real one
#
# Here is one training step of a small **language model** (a GPT: it says how probable each next letter is) that learns first names. Open and close its parts; find `add` at the end of a block, where a value
# takes a short cut.

# %% name="gpt"
course.train_names(steps=1).graph

# %% [markdown]
# In [the exercise](exercises/04_graphs_exercise.ipynb) you write the function that computes and records every operation, and the one that finds the order. Then this GPT
# is trained with your two functions in the engine.
