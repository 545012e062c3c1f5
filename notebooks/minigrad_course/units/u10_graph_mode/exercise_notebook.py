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
# # 10 · Graph mode: a guard, a loop, and a bug
#
# Do [10 · Graph mode](../10_graph_mode.ipynb) first. Here you write the guard that decides whether a trace may be used again, and it runs in the engine.

# %% name="begin"
import minigrad as mg
import minigrad_course as course
from minigrad_course import by_example

course.begin("10_graph_mode", student="")

# %% [markdown]
# ## 1 · Which calls run Python?

# %% name="task-second-call"
course.task("second_call")

# %% name="second_call"
second_call = ...  # a list of numbers
### BEGIN SOLUTION
second_call = [1, 2, 6, 7]
### END SOLUTION

# %% name="check-second-call"
course.check("second_call")

# %% [markdown]
# ## 2 · The baked-in branch

# %% name="task-baked-branch"
course.task("baked_branch")

# %% name="baked_branch"
baked_branch = ...  # three numbers, in brackets
### BEGIN SOLUTION
baked_branch = [9.0, 9.0, 9.0]
### END SOLUTION

# %% name="check-baked-branch"
course.check("baked_branch")

# %% [markdown]
# ## 3 · A guard
#
# When a function is traced, the engine calls `guard(values)`. `values` is a dictionary of what the function reads by name, `{"rate": 0.0}` for example. Your
# `guard` notes what is in it, and returns a function `holds`. Before each later run the engine calls `holds()`: **True if everything is as it was
# when the trace was made, False if anything has changed.** After False the function is traced anew, with a new guard.
#
# `values` is *alive*: when a name gets another value, the entry in this dictionary changes too. So `guard` must note a copy. This cell makes
# two kinds of copies and then changes an entry of the list. Its last line compares two numbers of different types:

# %% name="alive"
import copy

rates = [0.0, 0.5]
values = {"rates": rates}
shallow, deep = dict(values), copy.deepcopy(values)
rates[1] = 0.1
print("the dictionary:", values)
print("a copy of it:  ", shallow)
print("a deep copy:   ", deep)
one, number = 1, 1.0
print("equal:", one == number, "  of one type:", type(one) is type(number))

# %% [markdown]
# `holds` has no parameters: it uses the names of the function around it. For equal values of the same types the trace is still right. But a graph for the
# integer 1 differs from a graph for the number 1.0, and from a graph for True.

# %% name="guard"
def guard(values):
    ### BEGIN SOLUTION
    def described(now):
        return {name: (type(value), value) for name, value in now.items()}

    noted = described(copy.deepcopy(values))

    def holds():
        return described(values) == noted

    return holds
    ### END SOLUTION

# %% name="check-guard"
course.check("guard")

# %% [markdown]
# ## 4 · Your guard in the engine
#
# A network that reads digits. Its step reads the global name `rate`: 0 in step 1, for a warm-up, then 0.5, and 0.1 from step 45 on. `step` runs three times through the same training:
# in eager mode, jitted with a guard that always says True, and jitted with **your** guard, which replaces all of minigrad's guards.

# %% name="network"
task = course.task("guard")
model = task.network()
rate = 0.0


def step(images, labels):
    loss = mg.cross_entropy(model(images), labels)
    loss.backward()
    with mg.no_grad():
        for weight in model.parameters():
            weight -= rate * weight.grad
            weight.grad = None
    return loss


def set_rate(value):
    global rate
    rate = value


# %% name="saved"
picture = task.train(guard, step, model, set_rate)
print(picture)
picture

# %% [markdown]
# Each dashed line is a trace, with its reason. Without a guard, the network learns with the rate 0, which is in its graph. Now break your guard on purpose in two ways:
# once with `noted = values`, once with `return False` in `holds`. Each time, run the guard's cell and the cell above again. Which break costs time, and which the
# training? Then put the guard right.
#
# ## 5 · A loop, by script and by trace {further}
#
# Write `grow(x)`: double x while it is less than 10.0, and return it. In the check `mg.script` reads your source, so write it with a `while` on the tensor itself.
# (No `.item()`, no `float(x)`: these need a value while there is none.)

# %% name="grow"
def grow(x):
    ### BEGIN SOLUTION
    while x < 10.0:
        x = x * 2
    return x
    ### END SOLUTION

# %% name="check-grow"
course.check("grow")

# %% name="task-loop-difference"
course.task("loop_difference")

# %% name="loop_difference"
loop_difference = (..., ...)  # by script, by trace
### BEGIN SOLUTION
loop_difference = (12.0, 3.0)
### END SOLUTION

# %% name="check-loop-difference"
course.check("loop_difference")

# %% [markdown]
# Look at both graphs, and try both, `by_example(grow, mg.asarray(...))` and `mg.jit(mg.script(grow))`. Then explain the difference:

# %% name="both"
try:
    print(by_example(grow, mg.asarray(3.0)).graph)
    print(mg.jit(mg.script(grow)).graph(mg.asarray(3.0)))
except Exception as error:
    print("write grow first:", repr(error))

# %% name="task-why-loop"
course.task("why_loop")

# %% name="why_loop"
why_loop = ...  # a letter, in quotation marks
### BEGIN SOLUTION
why_loop = "A"
### END SOLUTION

# %% name="check-why-loop"
course.check("why_loop")

# %% [markdown]
# ## 6 · A bug that only graph mode has

# %% name="task-only-graph"
course.task("only_graph")

# %% [markdown]
# For example, A, with a check. Before the change both modes agree:

# %% name="four"
task = course.task("only_graph")
x = mg.asarray([0.5, 1.0])
A = mg.jit(task.f("A"), check=True)
print(A(x))
task.change("A")
# now print A(x) again; then do the same with B, C and D

# %% name="only_graph"
only_graph = (..., ...)  # the letter and the name of the node, both in quotation marks
### BEGIN SOLUTION
only_graph = ("B", "subtract")
### END SOLUTION

# %% name="check-only-graph"
course.check("only_graph")

# %% name="progress"
course.progress()
