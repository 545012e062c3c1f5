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
# A compiler may replace an operation by a cheaper one only if **no number changes, not even in one bit**. The algebra of school is not enough for floats. Two
# rules, in minigrad's notation:

# %% name="task-which-zero"
course.task("which_zero")

# %% name="which-zero" tags=["question"]
which_zero = ...

course.check("which_zero")

# %% name="zeros" jupyter={"outputs_hidden": true}
task, inf, nan = course.task("which_zero"), float("inf"), float("nan")
print(f"{'x':>6}", *[f"{rule:>28}" for rule in task.rules])
for x in (1.5, 5.0, 0.0, -0.0, inf, nan):
    print(f"{x:6}", *[f"{'{} and {}'.format(*task.both(rule, x)):>28}" for rule in task.rules])

# %% [markdown]
# A float has a zero with a minus sign, and 1 / x shows the difference. A widely used compiler deleted `x + 0.0`, and minus infinity came out where plus
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
# equal operations, `dead` removes what makes no difference, `pick_rows` and `positions` prepare for fusion (and may add operations). Here is a training step: a network for digits, its gradients,
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
# Fusion will leave 21 launches, about an eighth. **Which part of the bytes is left: "eighth", "third" or "nearly all"?**

# %% name="bytes-left" tags=["question"]
bytes_left = ...

course.check("bytes_left")

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
# out, and new lines are marked. A click on a line shows what becomes of it. The page **as written → fused** draws the result.

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
# A program needs `exp(x)` at its beginning and at its end, and matrix products lie between. Merging saves an exponential. What does it cost?

# %% name="task-merged-peak"
course.task("merged_peak")

# %% name="merged-peak" tags=["question"]
merged_peak = ...

course.check("merged_peak")

# %% name="peak" jupyter={"outputs_hidden": true}
def twice(x, w):
    h = mg.exp(x) @ w
    for _ in range(4):
        h = mg.tanh(h @ w) * mg.sin(h @ w.T)
    return h + mg.exp(x)


def once(x, w):
    first = mg.exp(x)
    h = first @ w
    for _ in range(4):
        h = mg.tanh(h @ w) * mg.sin(h @ w.T)
    return h + first


size = course.task("merged_peak").size
for words, function in {"computed twice": twice, "merged": once}.items():
    cost = mg.jit(function).cost(mg.ones((size, size)), mg.ones((size, size)))
    print(f"{words:15} {cost.eager.flops:,} operations, peak {cost.eager_peak / 1e3:.0f} kB node by node")

# %% [markdown]
# Merging keeps a value for longer. It is the reverse of *checkpointing*, which computes a value again to save memory. In JAX, `checkpoint` has an option
# `prevent_cse` for this reason ([JAX 13999](https://github.com/jax-ml/jax/issues/13999)).
#
# ## Fusion
#
# Your chain of operations:

# %% name="task-fused-megabytes"
course.task("fused_megabytes")

# %% name="fused-megabytes" tags=["question"]
fused_megabytes = ...

course.check("fused_megabytes")

# %% name="task-fused-operations"
course.task("fused_operations")

# %% name="fused-operations" tags=["question"]
fused_operations = ...

course.check("fused_operations")

# %% name="chain" jupyter={"outputs_hidden": true}
cost = course.task("fused_megabytes").cost
for name, launches, read, written, operations, peak in cost.sums():
    print(f"{name:13} launches {launches}, {read} read, {written} written, {operations} operations, peak {peak}")

# %% [markdown]
# Fusion leaves the arithmetic as it is. It saves traffic, launches and room, and for most operations the traffic takes the time.
#
# In this view, choose **move operations**. On this board, operations can be dragged. The compiler's own rules answer: try `multiply_1` alone in a new kernel. It is
# refused, because the two kernels would wait for each other.

# %% name="board"
mg.viz.fusion(lambda x: mg.tanh(x) * 2 + 1, mg.ones(1000))

# %% name="task-dragged-out"
course.task("dragged_out")

# %% name="dragged-out" tags=["question"]
dragged_out = ...

course.check("dragged_out")

# %% [markdown]
# ## What is not fused, and why
#
# minigrad's loops go through memory row by row. `x - x.max(-1, keepdims=True)` subtracts from each row its largest number. The compiler makes one kernel of
# it: it reads a row, finds the largest number, and goes over the row again while it is still in the cache. A reduction over other axes is another matter.

# %% name="task-by-columns"
course.task("by_columns")

# %% name="by-columns" tags=["question"]
by_columns = ...

course.check("by_columns")

# %% name="rows-and-columns" jupyter={"outputs_hidden": true}
x = mg.ones((256, 256))
functions = {
    "x - x.max(-1, keepdims=True)": lambda x: x - x.max(-1, keepdims=True),
    course.task("by_columns").code: course.task("by_columns").function,
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
# ## From the graph to machine code
#
# `softmax` has six operations, one kernel, and three loops over a row: the largest number, the sum of the exponentials, the quotients. Yours is another program by rows.

# %% name="task-softmax-passes"
course.task("softmax_passes")

# %% name="softmax-passes" tags=["question"]
softmax_passes = ...

course.check("softmax_passes")

# %% [markdown]
# Page through the graph, the kernels, the loops and the machine code of your own processor:

# %% name="descent" jupyter={"outputs_hidden": true}
course.task("softmax_passes").descent()

# %% [markdown]
# Each loop reads a row from the cache, or from a scratch row. Where a row is short, LLVM may unroll a loop and keep numbers in registers; which loops, depends on the
# processor. Each stage knows less about your program and more about the machine.
#
# In [the exercise](exercises/11_fusion_exercise.ipynb) you write a compiler in some 40 lines, rules and fusion. It compiles a training step, and you measure it
# against minigrad's. Then you make the compiler fuse what it refuses.
