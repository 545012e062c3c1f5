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
# # 10 · Graph mode
#
# Eager mode computes each operation when Python reaches its line. **Graph mode** only *manifests* it: the operation is noted as a node of a graph, without a
# value. Later the whole graph is optimised and computed. This notebook asks what such a graph holds, what it has lost, and how a framework
# finds out that it is out of date. You need [unit 00](00_start.ipynb): nodes and operations.

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad_course import by_example

course.begin("10_graph_mode")

# %% [markdown]
# ## A learning rate that stays
#
# One step of gradient descent on w²/2, whose gradient is w. Many trainings begin with a **warm-up**, or end with smaller steps: the rate changes.
#
# `by_example(step, w)` **traces** the function: it runs `step` once, and records the operations. Each later call repeats these operations with a new w, and
# nothing else. (PyTorch's `torch.jit.trace` works in this way.)

# %% name="freeze"
def step(w):
    return w - rate * w


rate = course.task("frozen_rate").first
frozen_step = by_example(step, mg.asarray(8.0))
rate = 0.5
frozen_step

# %% name="task-frozen-rate"
course.task("frozen_rate")

# %% name="frozen-rate" tags=["question"]
frozen_rate = ...

course.check("frozen_rate")

# %% name="three-steps" jupyter={"outputs_hidden": true}
w = mg.asarray(float(course.task("frozen_rate").start))
for _ in range(3):
    w = frozen_step(w)
print(w.item())
print(frozen_step.graph)

# %% [markdown]
# Where the source has the name `rate`, the graph has a number: it was **baked in**. Nothing is wrong with any line of this program, and no error is
# raised. Learning rates that stayed as they were in the first step have been filed as bugs of
# [TensorFlow](https://github.com/tensorflow/tensorflow/issues/31323), and frozen global names as questions to
# [JAX](https://github.com/jax-ml/jax/issues/1348). In the exercise you write the part of a framework that prevents this. First: what happens when?
#
# ## Manifest now, compute later
#
# When an operation is called, a framework can do one of two things.
#
# - **eager**: manifest the node, *and compute its value* at once;
# - **graph**: just manifest the node. Something must be called later to compute it.
#
# In `with mg.graph():` minigrad does the second. Reading a value (by `item()`, `tolist()`, an `if`) computes it.

# %% name="manifest"
x = mg.ones(3)
with mg.graph() as recording:
    y = (x * 2 + 1).sum()
    print(y)
    print(recording.recorded(y))
    print(y.item())

# %% [markdown]
# `mg.print` is an operation like a sum: it is recorded, and prints when the graph is computed. Python's own `print` prints when Python reaches it. **Which lines
# does this print, and in which order?** A list of four texts.
#
# ```python
# x = mg.ones(3)
# with mg.graph():
#     mg.print("one")
#     y = x * 2
#     print("two")
#     y.sum().item()
#     mg.print("three")
#     print("four")
#     (y + 1).sum().item()
# ```

# %% name="printed-order" tags=["question"]
printed_order = ...

course.check("printed_order")

# %% name="order" jupyter={"outputs_hidden": true}
x = mg.ones(3)
with mg.graph():
    mg.print("one")
    y = x * 2
    print("two")
    y.sum().item()
    mg.print("three")
    print("four")
    (y + 1).sum().item()

# %% [markdown]
# Now both modes with the same lines. Choose **stages**, and step with → and ←. The first stage is eager mode. All others are graph mode, and the last one is a
# **second call**.

# %% name="both-modes"
def gate(x):
    h = mg.tanh(x * 2 + 1)
    return h * h * 1.0


mg.viz.fusion(gate, mg.asarray([0.5, -0.5, 1.0]))

# %% [markdown]
# The stages are numbered. **Which stage is the first in which graph mode has computed a number?**

# %% name="first-number" tags=["question"]
first_number = ...

course.check("first_number")

# %% [markdown]
# Until then there is no value to look at: that is the price of the two phases. What they buy: the product with 1.0 is gone, and one kernel does the work of five. Eager
# mode is to graph mode as an **interpreted** language is to a **compiled** one.
#
# ## The second call
#
# `@mg.jit` is an *annotation*: the function below it is traced when it is called, with placeholders instead of values, and its graph becomes a program. In a
# later call the program runs. **How many lines do these five calls print?**
#
# ```python
# @mg.jit
# def doubled(x):
#     print("Python runs")
#     return x * 2
#
# doubled(mg.ones(3))
# doubled(mg.ones(3) * 7)
# doubled(mg.ones((3, 1)))
# doubled(mg.asarray([1, 2, 3]))
# doubled(mg.zeros(3))
# ```

# %% name="python-runs" tags=["question"]
python_runs = ...

course.check("python_runs")

# %% name="five-calls" jupyter={"outputs_hidden": true}
@mg.jit
def doubled(x):
    print("Python runs")
    return x * 2


for x in mg.ones(3), mg.ones(3) * 7, mg.ones((3, 1)), mg.asarray([1, 2, 3]), mg.zeros(3):
    doubled(x)
print(doubled.traces)

# %% [markdown]
# `traces` lists why Python ran. A trace is for one *kind* of arguments: shapes, types, and the values of Python numbers.
#
# What does it cost? Ten calls of a function on your machine. In calls 4 and 8 the argument has another length. **How many times as long as the quickest call does the
# first call take: about 5, 50 or 5000 times?**

# %% name="first-call-costs" tags=["question"]
first_call_costs = ...

course.check("first_call_costs")

# %% name="ten-calls" tags=["nbval-ignore-output"] jupyter={"outputs_hidden": true}
from minigrad_course.units.u10_graph_mode.calls import ten_calls

x, y, z = mg.ones(50_000), mg.ones(60_000), mg.ones(70_000)
ten_calls(lambda x: mg.tanh(x * 2 + 1) * x, [[each] for each in (x, x, x, y, x, y, x, z, z, x)])

# %% [markdown]
# Each step of this axis is a factor of ten. A trace is a spike: it runs Python, rewrites the graph, and compiles it. It pays if many calls reuse it. (If each call has a new
# length, no call does.)
#
# And the names that a function reads?

# %% name="guarded"
rate = 0.0
jitted_step = mg.jit(step)
w = jitted_step(mg.asarray(8.0))
rate = 0.5
for _ in range(3):
    w = jitted_step(w)
print(w.item())
print(jitted_step.traces)

# %% [markdown]
# The right answer. minigrad keeps **guards** with each trace: conditions under which it may be used again. Before each run it compares `rate` with the
# number in the graph. `torch.compile` does this too; `jax.jit`, and `tf.function` for Python's globals, do not: their manuals advise against such
# names.
#
# ## One function, three ways
#
# Clip a gradient: if it is longer than `limit`, make it as long as `limit`. This `if` depends on the numbers in a tensor.

# %% name="clip"
limit = 1.0


def clip(g):
    length = (g * g).sum().sqrt()
    if length > limit:
        g = g * (limit / length)
    return g


long, short = mg.asarray([3.0, 4.0]), mg.asarray(course.task("small_gradient").short)
print(clip(long), clip(short))

# %% [markdown]
# `short` is shorter than the limit: nothing is to be done. Now **trace** `clip` by the example `long`: for each operation of this one run, a node is put into a graph. Call
# the line `def clip(g):` line 1, so that `return g` is line 5. **How many nodes do the lines 2, 3, 4 and 5 put in?** Four numbers, in brackets.

# %% name="clip-nodes" tags=["question"]
clip_nodes = ...

course.check("clip_nodes")

# %% name="task-small-gradient"
course.task("small_gradient")

# %% name="small-gradient" tags=["question"]
small_gradient = ...

course.check("small_gradient")

# %% [markdown]
# Now **be the tracer**: click the lines of `clip` in the order in which Python runs them. Each puts its nodes into the graph. At the end, run the graph with `short`.

# %% name="be-the-tracer" jupyter={"outputs_hidden": true}
from minigrad_course.units.u10_graph_mode.be_the_tracer import be_the_tracer

picture = be_the_tracer(clip, long, short)
picture  # to share it: picture.save("be_the_tracer.html", says="A trace has one path: click the lines of clip, then run the graph with other numbers.")

# %% [markdown]
# There is no `if` in the graph. The example has decided it, for ever. (`by_example` and `torch.jit.trace` do the same. The latter warns you, for a branch like this one, but
# not for a changed global name.)
#
# Any small function will do. Change this one, or write one with a loop, and be its tracer too:

# %% name="your-function"
def size(x):
    if x < 0.0:
        return -x
    return x


be_the_tracer(size, -2.0, -7.0, 3.0)

# %% [markdown]
# A **script** reads the source of the function instead of running it: `mg.script`, and `torch.jit.script`. An **annotation** such as `@mg.jit` traces too, but
# with placeholders, which have no values. **What does each of the three give for a *long* gradient, [6, 8], in the order script, trace by example, annotation? Write
# `"right"`, `"wrong"` or `"error"` for each.**

# %% name="three-ways" tags=["question"]
three_ways = ...

course.check("three_ways")

# %% name="all-three" jupyter={"outputs_hidden": true}
scripted = mg.jit(mg.script(clip))
longer = mg.asarray([6.0, 8.0])
print("script:    ", scripted(longer), scripted(short))
print("trace:     ", by_example(clip, long)(longer), by_example(clip, long)(short))
try:
    mg.jit(clip)(short)
except mg.TraceError as error:
    print("annotation:", str(error).splitlines()[0])

# %% [markdown]
# In the script's graph, the `if` is a box, `cond`, with a graph for each answer. Click it: it opens. (If the length is not greater than the limit, nothing is to be done: that graph is
# empty, and g goes through.)

# %% name="script-graph"
mg.viz.graph(scripted, short, budget=6)

# %% [markdown]
# | | reads | in minigrad | elsewhere | gets wrong |
# |---|---|---|---|---|
# | **annotation** | each call; traces when a guard fails | `@mg.jit` | `torch.compile`, `tf.function`, `jax.jit` | what no guard sees. An `if` on a tensor is an error (`@mg.jit`, `jax.jit`), or cuts the graph in two (`torch.compile`) |
# | **script** | the source | `mg.script` | `torch.jit.script`, AutoGraph in `tf.function` | what it cannot read: code without source, Python that has no graph |
# | **trace** | one run | `by_example` | `torch.jit.trace` | everything that is not an operation: branches, loops, names |
#
# ## A loop
#
# `halve` goes on until x is at most 1.

# %% name="halving"
def halve(x):
    while x > 1.0:
        x = x / 2
    return x


print(halve(mg.asarray(12.0)), halve(mg.asarray(100.0)))

# %% name="task-divisions"
course.task("divisions")

# %% name="divisions" tags=["question"]
divisions = ...

course.check("divisions")

# %% name="two-graphs" jupyter={"outputs_hidden": true}
print(by_example(halve, mg.asarray(float(course.task("divisions").start))).graph)
print()
print(mg.jit(mg.script(halve)).graph(mg.asarray(12.0)))

# %% [markdown]
# ## Why it is harder to debug
#
# In eager mode an error stops at its line, and a print shows a value. In a graph both come too late, or too early: while Python runs there are no values, and
# when there are values, no Python runs. Five tools help.
#
# **The line.** An index out of range is found when the graph is computed. The message names the line that *recorded* the node:

# %% name="line"
try:
    with mg.graph():
        y = mg.ones(3) * 2
        z = y[mg.asarray([0, 7])]
        print("recorded: no error yet")
        z.sum().item()
except mg.IndexingError as error:
    print(str(error).splitlines()[0])
    print(error.__notes__[0].partition(" at ")[0], "by the line", error.__notes__[0].partition("  ")[2])

# %% [markdown]
# **Node values.** Every node has a name in the printed graph, and its value can be computed:

# %% name="values"
values = scripted.values(long)
print(list(values.named())[:4])
print(values["sqrt_1"].item())

# %% [markdown]
# **Prints that are operations.** `mg.print` prints in each run, also inside a branch or a loop:

# %% name="prints"
@mg.jit
@mg.script
def talking(x):
    while x > 1.0:
        x = x / 2
        mg.print("x is {x}", x=x)
    return x


talking(mg.asarray(6.0)).item()

# %% [markdown]
# **A hunt.** Shares that add up to 1, as softmax makes them: exp(x) / exp(x).sum(). For x = 1000 they are nan. **Which operation makes the first nan: `exp`, `sum`,
# `divide` or `max`?**

# %% name="shares"
import numpy as np


@mg.jit
def largest_share(x):
    e = mg.exp(x)
    return (e / e.sum()).max()


with np.errstate(all="ignore"):
    print(largest_share(mg.asarray([1000.0, 0.0])).item())

# %% name="nan-maker" tags=["question"]
nan_maker = ...

course.check("nan_maker")

# %% name="hunt" jupyter={"outputs_hidden": true}
try:
    with mg.debug_nans(), np.errstate(all="ignore"):
        largest_share(mg.asarray([1000.0, 0.0]))
except mg.NanError as error:
    print(str(error).partition(", made at")[0], "made a nan;", str(error).splitlines()[1].strip())

# %% [markdown]
# **A check.** `mg.jit(f, check=True)` also runs the function in eager mode in each call, and names the first node that differs. It finds what no guard sees:
# here, an environment variable.

# %% name="check"
import os


def scaled(x):
    return mg.tanh(x) * float(os.environ["SCALE"])


os.environ["SCALE"] = "1"
checked = mg.jit(scaled, check=True)
checked(mg.ones(2))
os.environ["SCALE"] = "3"
try:
    checked(mg.ones(2))
except mg.CheckError as error:
    print(str(error).partition("Got: ")[2].partition(", made at")[0], "is the first node that differs")

# %% [markdown]
# ## Which framework does what
#
# | | how a program runs | a graph is made by |
# |---|---|---|
# | TensorFlow 1 (2015) | graph: you build it, `session.run` computes it | your program, node by node |
# | PyTorch (2017) | eager | later: `torch.jit.trace`, `torch.jit.script` (2018), `torch.compile` (2023) |
# | JAX (2018) | eager, one operation at a time | `jax.jit`, a trace with placeholders |
# | TensorFlow 2 (2019) | eager | `tf.function`: a trace, after AutoGraph has rewritten `if` and `while` |
# | minigrad | eager | `mg.graph`, `mg.jit`, `mg.script` |
#
# The classic distinction was: TensorFlow builds graphs, PyTorch computes at once. Today all of them do both. (`torch.jit.trace` and `torch.jit.script` still work, and are
# deprecated in favour of `torch.compile` and `torch.export`.)
#
# In [the exercise](exercises/10_graph_mode_exercise.ipynb) you find a baked-in branch, and write the guard that was missing at the beginning. It saves a network that
# would learn nothing.
