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
# # 12 · Parallelism and offloading
#
# A graph says what waits for what, and nothing else. So an **execution engine** (the layer that launches operations) may launch a whole part of it **as one**, run what does not wait **at the same
# time**, and send a part to **another processor**. This notebook counts what each of these saves, and what stands in the way. You need to know what a compiled
# program is ([unit 10](10_graph_mode.ipynb)), what fusion does ([unit 11](11_fusion.ipynb)), and what a device is ([unit 03](03_devices.ipynb)).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad import nn

course.begin("12_parallelism")

# %% [markdown]
# ## Less to do
#
# Nine jobs, and minutes that they take. I waits for A. E, F, G and H wait for D. All others wait for nothing.
#
# | job | A | B | C | D | E | F | G | H | I |
# |---|---|---|---|---|---|---|---|---|---|
# | takes | 3 | 2 | 2 | 2 | 4 | 4 | 4 | 4 | 9 |
# | waits for | | | | | D | D | D | D | A |
#
# The rule: whenever a worker is free, it takes **the first job of the list that is ready**. Three workers are done after 12 minutes.

# %% name="task-fourth-worker"
course.task("fourth_worker")

# %% name="fourth-worker" tags=["question"]
fourth_worker = ...

course.check("fourth_worker")

# %% [markdown]
# The slider sets the number of workers. Look at three of them, and for the moment at which I begins.

# %% name="workers" jupyter={"outputs_hidden": true}
course.task("fourth_worker").gantt

# %% [markdown]
# This is an *anomaly* of [list scheduling](http://i.stanford.edu/TR/CS-TR-72-310.html), described by R. L. Graham in 1966. No worker was lazy, and all kept to the
# rule. On the jobs of the table, a fourth worker makes it later too: 15 minutes. **Less work and more hardware help only if the work is handed out in a good order.**
# You will write a scheduler that does so.
#
# ## Launching
#
# First, one worker, and a cost that no kernel contains: **starting** it. In eager mode Python starts each kernel. Here is one training step of a small network
# for digits: three layers, six tensors of parameters, AdamW.

# %% name="step"
mg.random.seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = mg.optim.AdamW(model.parameters(), lr=3e-3)


def train(images, labels):
    optimizer.zero_grad()
    loss = mg.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


step = mg.jit(train)
images, labels = mg.ones((64, 64)), mg.zeros(64, dtype=mg.int64)

# %% [markdown]
# **How many kernels does Python start for one call of train: about 16, 50 or 160?**

# %% name="eager-launches" tags=["question"]
eager_launches = ...

course.check("eager_launches")

# %% [markdown]
# `@mg.jit` (as `@tf.function`, or `torch.jit.trace`) discovers the sub-graph: here the whole step. Fusion leaves 21 launches of it, kernels and products. Python starts something 3 times only:
# two stretches of machine code, and between them a check of the labels. And the forward pass alone, `model(images)`? It has 16 kernels, and 6 after fusion. **How many
# times does Python start something for it: 16, 6 or 1?**

# %% name="program-starts" tags=["question"]
program_starts = ...

course.check("program_starts")

# %% name="counts" jupyter={"outputs_hidden": true}
forward = mg.jit(lambda images: model(images))
print("the forward pass:", str(course.task("program_starts").starts(forward, images)).strip("<>"))
course.task("program_starts").starts(step, images, labels)

# %% [markdown]
# What does that cost? Below the two bars are the lanes of the step on your machine, in eager mode and as a program, on one axis (zoom with the keys W and S, click a kernel). Eager mode takes many times as long, for two reasons:
# Python starts each kernel (it finds the kernel, checks shapes, makes the result and the node), and each kernel writes to memory what the next one reads (unit 11).
#
# A GPU makes it worse: it computes faster, and starting a kernel takes as long as before. That is why frameworks record hundreds of launches and start them as one
# ([CUDA graphs in MXNet](https://github.com/apache/mxnet/pull/19142), [in vLLM](https://github.com/vllm-project/vllm/pull/1926)).
#
# ## What waits for what

# %% name="task-thousand-workers"
course.task("thousand_workers")

# %% name="thousand-workers" tags=["question"]
thousand_workers = ...

course.check("thousand_workers")

# %% name="diamond" jupyter={"outputs_hidden": true}
course.task("thousand_workers").gantt

# %% [markdown]
# The longest chain is the **critical path**. Two numbers bound the time T of a schedule in which no worker is idle while a job is ready:
#
# - T is **at least** the critical path, and at least work / workers;
# - T is **at most** work / workers + critical path. (Graham proved it: while a worker is idle, the critical path gets shorter.)
#
# Now the training step. Its jobs are the kernels and matrix products of the program. **With two workers it is how many times as fast: "2", "1.7", "1.4" or "1"?**

# %% name="two-workers" tags=["question"]
two_workers = ...

course.check("two_workers")

# %% [markdown]
# In this picture, move the slider for workers, and click a bar: it says what the step waits for. The line below a bar says that it is on the critical path. A step's length
# is given in bytes, as the memory traffic that takes as long. That is a model, so it is dashed, and the same on all machines. With `workers=2` in place of `runs=0`, the lanes above it show what your machine measures. (The check of the labels is a step too.)

# %% name="schedule" jupyter={"outputs_hidden": true}
picture = mg.viz.timeline(step, images, labels, runs=0)
picture  # to share it: picture.save("two_workers.html", says="A training step on several workers: click a bar to see what it waits for.")

# %% [markdown]
# The forward pass is a chain. In the backward pass each layer but the first has two products that do not wait for each other, ∂W and ∂x, and as soon as ∂W is there, the update of W
# can run.
# That is all the parallelism there is **between** operations. There is more **inside** of an operation, where threads share the rows of a matrix, and more
# between the pictures of a batch (unit 13).
#
# ## Another processor
#
# A chip, `cpu:1`, is a hundred times as fast as the processor. A link of 2 GB a second leads to it. `mg.tanh(u @ v).sum(0)` multiplies two thin tables, 1,000 × 8
# and 8 × 1,000. The product has a million numbers, 4 MB. Here, the three operations take 0.4, 0.8 and 0.4 ms, and on the chip a
# hundredth. But 4 MB take 2 ms to cross the link. The model computes what moving **one** operation gains:

# %% name="one-by-one"
print("alone on the chip, each gains (in microseconds):")
for name, gain in course.task("together").gains().items():
    print(f"{name:9} {gain:,}")

# %% [markdown]
# Each of the three is faster there, and each alone makes the whole slower. Now all three run there. **How many kB cross the link together?**

# %% name="together" tags=["question"]
together = ...

course.check("together")

# %% name="all-three" jupyter={"outputs_hidden": true}
course.task("together").picture()

# %% [markdown]
# So the unit of offloading is a **sub-graph**, not an operation. What counts is which values cross its border.
#
# In a program you say it with a block. It computes its operations on another device, and moves what must move:

# %% name="block"
def blocked(u, v):
    with mg.offload("cpu:1"):
        table = u @ v
        sums, largest = mg.tanh(table).sum(0), table.max(0)
    return sums * largest


u, v = mg.ones((1000, 8)), mg.ones((8, 1000))

# %% [markdown]
# **How many transfers has the compiled program?**

# %% name="transfers" tags=["question"]
transfers = ...

course.check("transfers")

# %% name="moves" jupyter={"outputs_hidden": true}
recorded, program = mg.trace(blocked, u, v), mg.jit(blocked).program(u, v)
print("as recorded:", [node.name for node in recorded.nodes].count("to_device"), "transfers")
print("compiled:   ", [node.name for node in program.final.nodes].count("to_device"), "transfers")

# %% [markdown]
# Operation by operation, each moves its inputs there and its result back. The compiler sees the whole, and removes a transfer back that is followed by the same transfer
# again.
#
# In [the exercise](exercises/12_parallelism_exercise.ipynb) you hand out jobs yourself, write the scheduler, look at its **Gantt chart** (a row for each worker, a bar for each job) for an MLP, a CNN and a GPT, run it in the
# executor, and find a placement that beats the compiler's.
