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
# # 11 · Optimising graphs, and fusion: a compiler in 40 lines
#
# Do [11 · Optimising graphs, and fusion](../11_fusion.ipynb) first. Here you write a compiler of your own, rules and fusion, in some 40 lines. It compiles a training step, and you measure it against minigrad's.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("11_fusion", student="")

# %% [markdown]
# ## 1 · Rules for a gradient
#
# A programmer does not write two minus signs in a row. Autodiff does: each gradient rule adds its own operations, without looking at the others.

# %% name="task-my-rules"
course.task("my_rules")

# %% name="gradient"
print(course.task("my_rules").gradient)
course.task("my_rules").gradient

# %% [markdown]
# A rule is an equation in quotation marks, for example `"x - 0 -> x"`. The left side is found in the graph, in either order of a sum or a product, and the right
# side takes its place. `course.task("my_rules").after(["..."])` returns the gradient that your rules leave.

# %% name="my_rules"
my_rules = ...  # equations in brackets: ["... -> ...", "... -> ..."]
### BEGIN SOLUTION
my_rules = ["-x * y -> -(x * y)", "-x / y -> -(x / y)"]
### END SOLUTION

# %% name="check-my-rules"
course.check("my_rules")

# %% [markdown]
# ## 2 · Kernels within a budget

# %% name="task-my-kernels"
course.task("my_kernels")

# %% name="kernels"
course.task("my_kernels").view

# %% [markdown]
# Write down the kernels that you found: a list for each, with the names of the picture.

# %% name="my_kernels"
my_kernels = ...  # [["...", "..."], ["..."]]
### BEGIN SOLUTION
my_kernels = [["exp_1", "sum_1"], ["exp_1", "divide_1"]]
### END SOLUTION

# %% name="check-my-kernels"
course.check("my_kernels")

# %% [markdown]
# ## 3 · Your compiler, and the league
#
# Now let a program find the kernels. `my_fusion(operations, possible)` gets the names of a program's operations, each after those that it reads. It returns a
# **list of kernels, each a list of names**, with as few kernels as it can.
#
# `possible(kernels)` says whether the compiler can make these kernels. An operation that is not in the list yet counts as a kernel of its own, so you can ask at any
# time. A list changes by `kernel.append(name)` and `kernel.pop()`.

# %% name="my_fusion"
def my_fusion(operations, possible):
    ### BEGIN SOLUTION
    kernels = []
    for name in operations:
        for kernel in reversed(kernels):
            kernel.append(name)
            if possible(kernels):
                break
            kernel.pop()
        else:
            kernels.append([name])
    return kernels
    ### END SOLUTION

# %% name="check-my-fusion"
course.check("my_fusion")

# %% [markdown]
# Your rules and your fusion are a compiler now: they take the places of minigrad's in a training step of the network for digits. (minigrad still traces the step, and writes the
# loops of each kernel.) **The league** compares three ways: node by node, your compiler, and minigrad's. Launches and bytes are counted, and the time is measured on this machine.

# %% name="league"
simplify = course.task("my_rules").as_pass(my_rules)
league = course.task("my_fusion").league(my_fusion, simplify=simplify)
print(league.table())
league

# %% [markdown]
# Can it be beaten? Try the oldest kernel first in place of the newest, or another order of the operations, and run both cells again. Which of the three numbers changes? minigrad's fusion chooses by the
# bytes that each choice moves; yours has only the answer yes or no.

# %% [markdown]
# ## 4 · Change the program
#
# A compiler keeps what your program says. You may say it differently. Large speed-ups in practice are changes of this kind, such as FlashAttention: a person wrote the same mathematics in a form that
# fits into one kernel.

# %% name="task-one-kernel"
course.task("one_kernel")

# %% name="one_kernel"
def one_kernel(x):
    ### BEGIN SOLUTION
    return mg.sin(x[::-1]) * x
    ### END SOLUTION

# %% name="check-one-kernel"
course.check("one_kernel")

# %% [markdown]
# ## 5 · Numbers that break rules {further}

# %% name="task-breaks"
course.task("breaks")

# %% name="both"
inf, nan = float("inf"), float("nan")
task = course.task("breaks")
print(task.both("A", 2.5), task.both("B", 2.5), task.both("C", 2.5), task.both("D", 2.5))

# %% name="breaks"
breaks = {"A": ..., "B": ..., "C": ..., "D": ...}  # a number each, or "holds"
### BEGIN SOLUTION
breaks = {"A": -0.0, "B": "holds", "C": 0.0, "D": inf}
### END SOLUTION

# %% name="check-breaks"
course.check("breaks")

# %% [markdown]
# ## 6 · A pass that merges {further}
#
# `merge_same(nodes)` gets the nodes of a graph, each after its inputs. It returns a dictionary: **for each node the node that takes its place**, which is the node
# itself, or an earlier node that computes the same. Nodes look like this:

# %% name="nodes"
def example(x):
    return (x * 2).sum(0) + (x * 2).sum(1) + mg.asarray([1.0, 2.0])


for node in mg.trace(example, mg.ones((2, 2))).nodes:
    print(node.name, [getattr(x, "name", x) for x in node.inputs], node.attrs, "a constant" if node.op is None else "")

# %% [markdown]
# - Inputs are nodes and plain numbers. Nodes can be the keys of a dictionary.
# - `attrs` is a dictionary, which cannot be part of a key; `str(node.attrs)` can.
# - Python says `0.0 == -0.0` and `2 == 2.0`; `repr` tells them apart: `[x if hasattr(x, "name") else repr(x) for x in node.inputs]`.
# - A constant (`node.op is None`) has no inputs and no attrs, and its numbers cannot be seen here. It stays.
# - Two nodes whose inputs are twins may be twins as well. If `now` is your dictionary, `now.get(x, x)` is the node that takes the place of x, or x itself.
# - If `first` is another dictionary, `first.setdefault(key, node)` returns what is stored for the key; if nothing is, it stores the node and returns it.

# %% name="merge_same"
def merge_same(nodes):
    ### BEGIN SOLUTION
    first, now = {}, {}
    for node in nodes:
        inputs = [now.get(x, x) for x in node.inputs]
        inputs = tuple([x if hasattr(x, "name") else repr(x) for x in inputs])
        key = node.name, inputs, str(node.attrs)
        now[node] = node if node.op is None else first.setdefault(key, node)
    return now
    ### END SOLUTION

# %% name="check-merge-same"
course.check("merge_same")
### BEGIN HIDDEN TESTS
course.check("merge_same", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Your passes compile a training step {further}
#
# A network for the digits, in which layer norm and SiLU are written out by hand. Inside this `with`, your rules join the compiler's table, and your pass
# takes the place of its `common`. The step is compiled once, then it trains the network. The first picture shows what the step takes after each pass; the
# buttons *before* and *after* above it show which digits the network reads.

# %% name="training"
simplify = course.task("my_rules").as_pass(my_rules)
common = course.task("merge_same").as_pass(merge_same)
with course.compiler_pass("simplify", simplify) as first, course.compiler_pass("common", common) as second:
    picture = course.task("merge_same").train()

print(first, second)
picture

# %% [markdown]
# `simplify` with your rules and your `common` take away ten of 82 operations and more than a tenth of the traffic, **as long as the step runs node by node**.
# Fused, an operation less in a kernel saves no launch and no byte: it ran in registers, between others. To see it, run the cell again with the passes of
# minigrad alone (`picture = course.task("merge_same").train()` without the `with`): without your rules there is one operation more before fusion, and the last
# row is the same. Fusion changed what an optimisation is worth.
#
# Your whole compiler in the league, with the pass that merges:

# %% name="league-of-three"
course.task("my_fusion").league(my_fusion, simplify=course.task("my_rules").as_pass(my_rules), common=common)

# %% [markdown]
# Break your pass on purpose: write `node.shape` in place of the inputs in your key, and run its cell and the training again. The step becomes cheaper still.
# Look at the digits, and put your pass right.
#
# And a GPT? Here is a training step of the example `names_gpt`, two blocks with attention. What does your pass find in it?

# %% name="gpt"
from minigrad.examples.names_gpt import GPT
from minigrad_course.units.u11_fusion.savings import stages_of, table_of

model = GPT(27, 32, heads=4, layers=2, dropout=0.0)
optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3)


@mg.jit
def step(rows):
    optimizer.zero_grad()
    loss = model.loss(rows)
    loss.backward()
    optimizer.step()
    return loss


rows = mg.zeros((64, 13), dtype=mg.int64)
with course.compiler_pass("common", course.task("merge_same").as_pass(merge_same)):
    log, cost = step.passes(rows), step.cost(rows)
    print(table_of(stages_of(log, cost)))

for fired in log.fired:
    if fired.rule == "merged by you":
        print(fired.node.name, fired.node.shape)

# %% [markdown]
# Each block makes the mask of its attention anew (`arange`, `less`, ...). In each of five layer norms, the gradient of a square d · d is g · d, twice: once for
# each factor. The example does not contain these twins: they come from composed functions and from gradient rules. Mind the last column as well: the passes
# look at launches and bytes, not at how long a value is kept, and the peak may rise.

# %% [markdown]
# ## 8 · A product without the library {further}

# %% name="task-row-loops"
course.task("row_loops")

# %% name="row_loops"
def row_loops(x, v):
    ### BEGIN SOLUTION
    return (mg.exp(x) * v).sum(-1)
    ### END SOLUTION

# %% name="check-row-loops"
course.check("row_loops")

# %% [markdown]
# This change is not exact: the library adds in another order, so the last digits may differ. That is why a compiler does not make it.

# %% [markdown]
# ## 9 · Why not fused? {further}

# %% name="task-why-not-fused"
course.task("why_not_fused")

# %% name="why_not_fused"
why_not_fused = {"A": ..., "B": ..., "C": ...}
### BEGIN SOLUTION
why_not_fused = {"A": "library", "B": "rows", "C": "elsewhere"}
### END SOLUTION

# %% name="check-why-not-fused"
course.check("why_not_fused")

# %% [markdown]
# ## Your framework so far
#
# Everything that you have written, in the engine's place at once. The last row is the compiler's:

# %% name="my-framework"
course.my_framework()

# %% name="progress"
course.progress()
