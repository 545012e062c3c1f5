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
# # 04 · Computational graphs: record and sort
#
# Do [04 · Computational graphs](../04_graphs.ipynb) first. Here you write a graph by hand, then the two functions that an engine needs, and train a GPT with them.

# %% name="begin"
import minigrad as mg
import minigrad_course as course
from minigrad.core.node import Node
from minigrad_course import inputs_of

course.begin("04_graphs", student="")

# %% [markdown]
# ## 1 · A graph by hand

# %% name="task-typed-graph"
course.task("typed_graph")

# %% [markdown]
# For example, `a = x * w` and then `y = a - 1` is `{"a": ("multiply", "x", "w"), "y": ("subtract", "a", 1)}`.

# %% name="typed_graph"
typed_graph = {
    "y": ...,
}
### BEGIN SOLUTION
typed_graph = {
    "a1": ("multiply", "w", "x"),
    "h1": ("add", "a1", "x"),
    "a2": ("multiply", "w", "h1"),
    "h2": ("add", "a2", "x"),
    "y": ("subtract", "h2", 4),
}
### END SOLUTION

# %% name="check-typed-graph"
course.check("typed_graph")

# %% [markdown]
# This draws what you wrote, right or wrong:

# %% name="drawn"
course.task("typed_graph").draw(typed_graph)

# %% [markdown]
# ## 2 · Compute and record
#
# Whenever a program multiplies, adds, or does anything else with tensors, the engine calls one function. You write it: `emit(op, inputs)`.
#
# - `inputs` is a list of tensors and plain numbers. For `2 * a` it is `[2, a]`.
# - A tensor x has a value, `x.data`, and a node, `x.node`. A plain number has neither: use it as it is. `isinstance(x, mg.Tensor)` says which one x is.
# - `op.compute(values)` computes the operation: it takes a list of values, and returns the value of the result.
# - The **edges** of the new node are a list, too: the nodes of the inputs, and the numbers.
#
# Return two things: **the value of the result, and the edges**. (The engine puts both into a new tensor.)

# %% name="emit"
def emit(op, inputs):
    ### BEGIN SOLUTION
    values = [x.data if isinstance(x, mg.Tensor) else x for x in inputs]
    edges = [x.node if isinstance(x, mg.Tensor) else x for x in inputs]
    return op.compute(values), edges
    ### END SOLUTION

# %% name="check-emit"
course.check("emit")

# %% [markdown]
# Inside this `with`, your function is the engine. Type a program of your own, and look at the graph that you recorded:

# %% name="recorded"
with course.emitter(emit) as mine:
    x = mg.asarray(2.0, requires_grad=True)
    a = 3 * x
    y = a * a - mg.tanh(a)
    picture = mg.viz.graph(y)

print(mine)
picture

# %% [markdown]
# ## 3 · The order
#
# `topological_order(result)` returns a **list of all nodes** that the node `result` was made from, and `result` itself. Each node comes **after all of its inputs**. Any
# such order is right.
#
# `inputs_of(node)` lists the nodes among the inputs of a node, once for each use. Each node also has a number, `node.serial`: a node that was made later has a higher number.
# The check tries small programs, a program that doubles a value forty times, and a chain of 10,000 operations.

# %% name="nodes-of-y"
x = mg.asarray(2.0, requires_grad=True)
y = x * x + mg.tanh(x)
[(node.name, node.serial < y.node.serial) for node in inputs_of(y.node)]

# %% name="topological_order"
def topological_order(result):
    ### BEGIN SOLUTION
    found = {result}
    to_visit = [result]
    while to_visit:
        for node in inputs_of(to_visit.pop()):
            if node not in found:
                found.add(node)
                to_visit.append(node)
    return sorted(found, key=lambda node: node.serial)
    ### END SOLUTION

# %% name="check-topological-order"
course.check("topological_order")

# %% [markdown]
# ## 4 · Both in the engine
#
# A small GPT learns first names, letter by letter. Your `emit` computes and records every operation of every step, and your order leads every backward pass. The
# picture shows the loss, and names that the GPT made up before and after 100 steps.

# %% name="train-gpt"
with course.emitter(emit) as mine, course.node_order(topological_order) as order:
    learned = course.train_names()

print(mine)
print(order)
learned

# %% [markdown]
# And this is the graph of one of the steps, as you recorded it:

# %% name="gpt-graph"
with course.emitter(emit), course.node_order(topological_order):
    picture = course.train_names(steps=1).graph
picture

# %% [markdown]
# Does the order matter so much? In this one, a node is listed when it is first met, and the list is turned round. It is the most frequent order in first
# engines. Look at the loss:

# %% name="first-met"
def first_met(result):
    found, to_visit = [], [result]
    while to_visit:
        node = to_visit.pop()
        if node not in found:
            found.append(node)
            to_visit += inputs_of(node)
    return found[::-1]


with course.node_order(first_met):
    spoiled = course.train_names()
spoiled

# %% [markdown]
# The backward pass goes through this list from its end. Some nodes pass their gradients back before these are complete. Nothing stops with an error, but the
# numbers are wrong. (Unit 06 acts this out.)
#
# ## 5 · Equal graphs {further}
#
# `same_graph(one, other)` gets two nodes, and returns True if their graphs are equal: the same operations, the same numbers, and the same arrows. A node has a `name`,
# such as `"multiply"`, and `inputs`: nodes and plain numbers. The leaves, such as x, have the name `"leaf"` and no inputs.

# %% name="inputs"
node = (2 * mg.asarray(3.0, requires_grad=True)).node
for each in node.inputs:
    print(each.name if isinstance(each, Node) else each)

# %% [markdown]
# Mind what is shared. `h * h` has one node with two arrows. `(x * 2) * (x * 2)` has two nodes, although they look the same. When your function meets a
# node again, what must be true of its partner?

# %% name="same_graph"
def same_graph(one, other):
    ### BEGIN SOLUTION
    there, back = {}, {}

    def same(a, b):
        if not isinstance(a, Node) or not isinstance(b, Node):
            return not isinstance(a, Node) and not isinstance(b, Node) and a == b
        if a in there or b in back:
            return there.get(a) is b and back.get(b) is a
        there[a], back[b] = b, a
        if a.name != b.name or len(a.inputs) != len(b.inputs):
            return False
        return all(same(p, q) for p, q in zip(a.inputs, b.inputs))

    return same(one, other)
    ### END SOLUTION

# %% name="check-same-graph"
course.check("same_graph")

# %% [markdown]
# Ten steps of the training leave ten graphs. How many *different* ones?

# %% name="different"
different = []
for node in course.train_names(steps=10).nodes:
    if not any(same_graph(node, known) for known in different):
        different.append(node)

len(different)

# %% [markdown]
# So a framework could record one step, and run its graph for all the others: that is graph mode, in unit 10.
#
# ## 6 · One wrong arrow

# %% name="task-moved"
course.task("moved")

# %% name="moved-board"
course.task("moved").board

# %% name="moved"
moved = (..., ..., ...)  # the box where the arrow ends, the number of the input, the box where it should begin
### BEGIN SOLUTION
moved = ("d", 0, "a")
### END SOLUTION

# %% name="check-moved"
course.check("moved")

# %% [markdown]
# ## Your framework so far
#
# Everything that you have written, in the engine's place at once:

# %% name="my-framework"
course.my_framework()

# %% name="progress"
course.progress()
