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
# # 11 · Optimising graphs, and fusion
#
# A graph that is recorded first and run later can be **rewritten** in between: that is the second phase of graph mode. This notebook follows a program
# through the compiler: rules of algebra, merging, fusion into kernels, loops, machine code. At each stage it counts three things: **launches, bytes
# moved, and the peak of memory**. You need to know what a graph of operations is, and that a gradient adds operations to it
# ([unit 05](05_gradient_functions.ipynb)).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad import nn

course.begin("11_fusion")

# %% [markdown]
# ## A race
#
# The gradient of `h / (1 + exp(-h))`, and a step of gradient descent, for a million numbers. In eager mode each operation reads its inputs from memory and
# writes its result back. As one program, the numbers travel once. **How many times as fast is the program on your machine: about 2, 5 or 25 times?**

# %% name="race-won-by" tags=["question"]
race_won_by = ...

course.check("race_won_by")

# %% name="race" tags=["nbval-ignore-output"] jupyter={"outputs_hidden": true}
from minigrad_course.units.u11_fusion.racing import race


def update(h):
    return h - 0.1 * mg.grad(lambda h: (h / (1 + mg.exp(-h))).sum())(h)


picture = race(update, mg.ones(1_000_000))
picture  # to share it: picture.save("race.html", says="The same computation node by node and as one program: what moves, and how long it took on my machine.")

# %% [markdown]
# Move the slider from the left: both lanes carry blocks at the same speed. Below them are the times that were measured here. (A busy machine gives noisy
# times: run the cell again.) The rest of this unit says how a compiler comes from the upper lane to the lower one, and why it may not always do so.
#
# ## A rule of algebra
#
# A compiler reads `x + 0.0`. Adding zero changes nothing, so it could delete the operation. Or `x - 0.0`. It may do so only if **no number changes, not
# even in one bit**. For floats, one of the two may be deleted. **Which one: x + 0.0 or x - 0.0?**

# %% name="which-zero" tags=["question"]
which_zero = ...

course.check("which_zero")

# %% name="zeros" jupyter={"outputs_hidden": true}
import numpy as np

x = mg.asarray([1.5, 0.0, -0.0])
with np.errstate(divide="ignore"):
    for name, value in {"x": x, "x + 0.0": x + 0.0, "x - 0.0": x - 0.0}.items():
        print(f"{name:8}", value.tolist(), "and one divided by it:", (1 / value).tolist())

# %% [markdown]
# A float has a zero with a minus sign, and 1 / x shows the difference. A widely used compiler deleted the wrong one, and minus infinity came out where plus
# infinity was right ([PyTorch 189799](https://github.com/pytorch/pytorch/issues/189799)). minigrad's rules are a table of equations, each exact for all
# numbers of the kinds that it names. These have a sum or a difference on the left:

# %% name="table"
from minigrad.compile.rewriting.passes import rule_names

for equation, holds in rule_names().items():
    left = equation.partition("->")[0]
    if "->" in equation and ("+" in left or " - " in left):
        print(f"{equation:32} {holds}")

# %% [markdown]
# ## What the passes do to a training step
#
# A *pass* is a function from a graph to a graph: `simplify` applies the algebra, `fold_views` joins transpositions and reshapes, `common` merges
# equal operations, `dead` removes what makes no difference, `pick_rows` and `positions` prepare for fusion. Here is a training step: a network for digits, its gradients,
# the update by AdamW. (A graph also has nodes that compute nothing: inputs, constants and views. The log below counts all nodes; launches are operations that compute.)

# %% name="step"
mg.random.seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = mg.optim.AdamW(model.parameters(), lr=3e-3)


@mg.jit
def step(images, labels):
    optimizer.zero_grad()
    loss = mg.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


images, labels = mg.ones((64, 64)), mg.zeros(64, dtype=mg.int64)
recorded = step.cost(images, labels).eager
print("as recorded:", recorded.launches, "operations that compute something")

# %% [markdown]
# **How many are left after all passes: about half, a few fewer, or more?** Write "half", "fewer" or "more".

# %% name="after-passes" tags=["question"]
after_passes = ...

course.check("after_passes")

# %% name="passes" jupyter={"outputs_hidden": true}
log = step.passes(images, labels)
for run in log.runs:
    if run.changed:
        print(f"{run.name:12} {len(run.before)} → {len(run.after)} nodes: ", dict(run.counts().most_common(3)))

cost = step.cost(images, labels)
print()
for name, count in {"as recorded": cost.eager, "after the passes": cost.after_passes, "fused": cost.program}.items():
    print(f"{name:17} {count.launches:3} launches, {count.bytes / 1e6:4.1f} MB moved")
print(f"peak of memory: {cost.eager_peak / 1e6:.1f} MB node by node, {cost.memory.total / 1e6:.1f} MB fused")

# %% [markdown]
# In a program that was written with care, algebra finds little. Fusion saves most. The passes still matter, because they prepare it.
#
# The program of the race is smaller, so it can be looked at. Choose **stages**, and press → from pass to pass. Lines that end are struck
# out, and new lines are marked. A click on a line shows what becomes of it. The page **kernels** draws the result.

# %% name="slider"
mg.viz.fusion(update, mg.ones(1000))

# %% [markdown]
# ## Merging what is the same
#
# `common` merges operations that compute the same from the same inputs (*common subexpression elimination*, CSE). `mg.sin(x * 2) + mg.cos(2 * x) +
# mg.sin(x * 3)` takes 8 operations. **How many are left?**

# %% name="twins-left" tags=["question"]
twins_left = ...

course.check("twins_left")

# %% name="twins-merged" jupyter={"outputs_hidden": true}
print(mg.jit(lambda x: mg.sin(x * 2) + mg.cos(2 * x) + mg.sin(x * 3)).passes(mg.ones(5)).last)

# %% [markdown]
# This program needs `exp(x)` at its beginning and at its end. Five matrix products lie between. Merging saves one exponential of an array of 262 kB.
# **Is the peak of memory then lower, the same, or higher?**

# %% name="merged-peak" tags=["question"]
merged_peak = ...

course.check("merged_peak")

# %% name="peak" jupyter={"outputs_hidden": true}
from minigrad.compile.look.cost import Cost
from minigrad.compile.running.program import Program


def twice(x, w):
    h = mg.exp(x) @ w
    for _ in range(4):
        h = mg.tanh(h) @ w
    return h + mg.exp(x)


graph = mg.trace(twice, mg.ones((256, 256)), mg.ones((256, 256)))
for without in ["common"], []:
    cost = Cost(Program(graph, without=without, backend="numpy"))
    words = "computed twice" if without else "merged"
    moved, peak = cost.program.bytes / 1e6, cost.memory.total / 1e3
    print(f"{words:15} {moved:.2f} MB moved, {cost.program.flops:,} operations, {peak:.0f} kB in use")

# %% [markdown]
# Merging keeps a value for longer. It is the reverse of *checkpointing*, which computes a value again to save memory. In JAX, `checkpoint` has an option
# `prevent_cse` for this reason ([JAX 13999](https://github.com/jax-ml/jax/issues/13999)).
#
# ## Fusion
#
# `mg.tanh(x) * 2 + 1`, for a million numbers of 4 bytes. Node by node each operation reads 4 MB and writes 4 MB: 24 MB. **How many MB does the fused
# kernel move?**

# %% name="fused-megabytes" tags=["question"]
fused_megabytes = ...

course.check("fused_megabytes")

# %% [markdown]
# Node by node, these are 3 million operations: a tanh, a product, a sum for each number. **How many million does the fused kernel compute?**

# %% name="fused-operations" tags=["question"]
fused_operations = ...

course.check("fused_operations")

# %% name="chain" jupyter={"outputs_hidden": true}
cost = mg.jit(lambda x: mg.tanh(x) * 2 + 1).cost(mg.ones(1_000_000))
for name, launches, read, written, operations, peak in cost.sums():
    print(f"{name:13} {launches} launches, {read} read, {written} written, {operations} operations, peak {peak}")

# %% [markdown]
# Fusion leaves the arithmetic as it is. It saves traffic, launches and room, and for most operations the traffic takes the time.
#
# In this view, choose **move operations**. On this board, operations can be dragged. The compiler's own rules answer. Drag the product,
# `multiply_1`, alone into a new kernel. **Why is that refused: "circle", "rows" or "library"?**

# %% name="board"
mg.viz.fusion(lambda x: mg.tanh(x) * 2 + 1, mg.ones(1000))

# %% name="dragged-alone" tags=["question"]
dragged_alone = ...

course.check("dragged_alone")

# %% [markdown]
# ## What is not fused, and why
#
# minigrad's loops go through memory row by row. `x - x.max(-1, keepdims=True)` subtracts from each row its largest number. The compiler makes one kernel of
# it: it reads a row, finds the largest number, and goes over the row again while it is still in the cache. **How many kernels does x - x.max(0) take,** with
# the largest number of each column?

# %% name="by-columns" tags=["question"]
by_columns = ...

course.check("by_columns")

# %% name="rows-and-columns" jupyter={"outputs_hidden": true}
x = mg.ones((256, 256))
functions = {
    "x - x.max(-1, keepdims=True)": lambda x: x - x.max(-1, keepdims=True),
    "x - x.max(0)": lambda x: x - x.max(0),
    "softmax(x), by rows": lambda x: mg.softmax(x, axis=-1),
    "softmax(x), by columns": lambda x: mg.softmax(x, axis=0),
}
for name, function in functions.items():
    program = mg.jit(function).cost(x).program
    print(f"{name:30} launches: {program.launches}   kB moved: {program.bytes // 1000}")

# %% [markdown]
# (A compiler for GPUs can give each column to other threads, and fuse that too.) So a program has **sub-graphs** that become kernels, with borders between
# them. The reasons are few: a library computes one of the two (`matmul`), the reader needs other positions than those that were just computed, rows have
# different lengths, a result is not complete yet. In the view, click a kernel: beside it are the reasons why it is not one with others.

# %% name="borders"
def with_borders(x, w):
    a = mg.exp(mg.tanh(x).T + x)
    return (a / a.sum()) @ w


mg.viz.fusion(with_borders, mg.ones((64, 64)), mg.ones((64, 64)))

# %% [markdown]
# ## Softmax, from the graph to machine code
#
# Six operations, one kernel. Page through the graph, the kernels, the loops and the machine code of your own processor. Lines with `exp` are marked.
# **How many loops go over a row?**

# %% name="descent"
course.task("softmax_passes").descent(mg.softmax, mg.ones((64, 32)))

# %% name="softmax-passes" tags=["question"]
softmax_passes = ...

course.check("softmax_passes")

# %% [markdown]
# The loops read the row three times, from the cache. On many processors the machine code reads a short row once, and keeps it in registers: LLVM unrolls
# the loops. Each stage knows less about your program and more about the machine.
#
# In [the exercise](exercises/11_fusion_exercise.ipynb) you break rules and write some, write the pass that merges, train the digits with your passes in the
# compiler, and make the compiler fuse what it refuses.
