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
# # 09 · What eager costs
#
# In eager mode every line runs when Python reaches it. That is easy to follow, and it has a price: each operation **reads** its inputs from memory,
# **computes**, and **writes** its result back to memory. This notebook counts the bytes, measures the time on your machine, and asks what a library can do
# about it. You need [unit 00](00_start.ipynb) and [unit 05](05_gradient_functions.ipynb).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad_course import costs, languages, sizes, tanh
from minigrad_course.units.u09_eager_costs import registers

course.begin("09_eager_costs")

# %% [markdown]
# ## Read, compute, write
#
# gelu is an activation function, much used in language models: x · (1 + erf(x / √2)) / 2. minigrad computes it by five operations:
#
# ```python
# a = x * 0.707
# b = mg.erf(a)
# c = b * 0.5
# d = c + 0.5
# y = x * d
# ```

# %% name="task-gelu-bytes"
course.task("gelu_bytes")

# %% name="moved-by-gelu" tags=["question"]
gelu_bytes = ...

course.check("gelu_bytes")

# %% [markdown]
# Count them while they run. The button **time** shows the same kernels, measured on your machine: the thin bar below each is the time that the memory of your
# machine needs for these bytes, at best. (A *kernel* is the function that computes an operation on one kind of device. Arrays that fit into a cache may arrive faster
# than from memory.)

# %% name="costs-of-gelu" jupyter={"outputs_hidden": true}
costs(mg.gelu, mg.ones(course.task("gelu_bytes").size * 250_000))

# %% [markdown]
# **Which kernel is far from the speed of memory?** Write the name at the left of its bar, in quotation marks.

# %% name="far-from-memory" tags=["question"]
by_arithmetic = ...

course.check("by_arithmetic")

# %% [markdown]
# The others spend their time on waiting for numbers: a processor multiplies two numbers far faster than it fetches them from memory. The table beside the
# measured bars says how many operations your processor can do while one byte arrives: often 3 to 20. (These limits are measured once. If the machine was busy
# then, they are too small: restart the kernel.) This comparison is called a **roofline**: an operation is *bound* by dispatch, by memory, or by arithmetic.
#
# ## In memory, or in a register
#
# a, b, c and d are written to memory by one kernel, and read again by the next one. If one kernel computed two operations, the value between them could stay
# in a **register**, a place inside the processor. Click the values, or use the sliders:

# %% name="choose-registers"
registers()

# %% [markdown]
# **If one of the four values must be in memory, whichever it is, how many MB are moved?**

# %% name="least-with-one" tags=["question"]
one_in_memory = ...

course.check("one_in_memory")

# %% [markdown]
# With all four in registers, gelu is one kernel, which reads 4 MB and writes 4 MB: the operations are **fused**. You will write this kernel in the exercise.
#
# ## In place
#
# `x *= 2` writes the result over x: no new array. It reads 4 MB and writes 4 MB, if x has 4 MB. And with two arrays?

# %% name="task-in-place"
course.task("in_place")

# %% name="multiplied-in-place" tags=["question"]
in_place = ...

course.check("in_place")

# %% name="costs-in-place" jupyter={"outputs_hidden": true}
def add(x, y):
    x += y


numbers = course.task("in_place").size * 250_000
costs(add, mg.ones(numbers), mg.ones(numbers))

# %% [markdown]
# In place saves the memory of a new array, but not the way from memory and back. (The authors of PyTorch's compiler once
# [counted such bytes once](https://github.com/pytorch/pytorch/pull/97057) instead of twice.)
#
# ## Dispatch
#
# The bytes are one price. The other: before a kernel runs, Python calls the library, the library looks for the kernel of this operation on this device, checks
# shapes and types, and makes the array for the result. This is **dispatch**.

# %% name="task-small"
course.task("small")

# %% name="small-arrays" tags=["question"]
small = ...

course.check("small")

# %% [markdown]
# Press **time**. Up to where is the line flat?

# %% name="all-sizes" jupyter={"outputs_hidden": true}
sizes(lambda x: x + 1)

# %% [markdown]
# Left of the bend, an operation costs one dispatch, however few numbers it has: fewer operations are faster. Right of the bend it costs its bytes: fewer trips
# are faster. Fusing helps on both sides.
#
# ## And the size
#
# Some values must also stay in memory, because the backward pass needs them. Of the five operations of gelu, erf keeps its input a, and the last
# product keeps its inputs x and d. A fused gelu keeps x alone. (Below, x is computed, as in a network. Data and parameters do not count: they are kept anyway.)

# %% name="kept-by-gelu"
x = mg.ones(1_000_000, requires_grad=True) + 1
print("MB of x, and MB that gelu keeps for its backward pass:")
print(round(x.nbytes / 1e6), round(course.kept_bytes(mg.gelu(x)) / 1e6))

# %% [markdown]
# So fusing improves three things: dispatch, memory **bandwidth** (bytes moved), and memory **size** (bytes kept).
#
# ## Primitives and composites
#
# minigrad has a few **primitives**, which have kernels and gradient rules. All other functions are **composites**: they call primitives. softmax is one of these, and takes 6
# operations. **How many does log_softmax take, which is x − largest − log(sum of exp(x − largest))?**

# %% name="count-softmax" tags=["question"]
in_softmax = ...

course.check("in_softmax")

# %% [markdown]
# Open the box:

# %% name="open-softmax" jupyter={"outputs_hidden": true}
mg.viz.graph(mg.log_softmax, mg.ones((2, 3)))

# %% [markdown]
# Composites are cheap to write: a formula, and the gradient comes by itself. Primitives are cheap to run. A library that has no compiler can only make a
# composite fast by **adding a primitive**: a person writes its kernel for each kind of device, and its gradient.
#
# Think this through. minigrad has 36 primitives that work element by element. Chains of two of them are 36 · 36 = 1,296. **A fused kernel for each chain of three (the same may
# come again): how many are these?**

# %% name="chains-of-two" tags=["question"]
pairs = ...

course.check("pairs")

# %% name="minigrads-table" jupyter={"outputs_hidden": true}
from minigrad.core.primitive import P
from minigrad.ops.composite import COMPOSED

print(len(P), "primitives,", sum(op.kind == "elementwise" for op in P), "of them element by element")
print(sum(bool(op.rules) for op in P), "have gradient rules")
print(len(COMPOSED), "composites")

# %% [markdown]
# PyTorch went this way for years: addmm (a product and a sum), gelu, log_softmax, layer norm, attention, and whole optimizers are kernels written by hand. PyTorch 2.13
# declares 2,584 operators. **About how many of them are variants of others, in place (`gelu_`) or with `out=`: 90, 300 or 900?**

# %% name="pytorchs-operators" tags=["question"]
pytorch = ...

course.check("pytorch")

# %% name="pytorchs-table" jupyter={"outputs_hidden": true}
from minigrad_course.units.u09_eager_costs.demo import PYTORCH, VERSION

print("PyTorch", VERSION)
for name, count in PYTORCH.items():
    print(f"{name:10} {count}")

# %% [markdown]
# The numbers are from the two files in which PyTorch declares its operators; `python3 course bench operators`
# counts them where PyTorch is installed. It is not fusion alone: many operators are variants of a name, in place
# (`gelu_`), with `out=`, or for a gradient (`gelu_backward`). But everything multiplies: **operations × variants × devices × gradients**. In 2020 there were
# [1,364](https://blog.ezyang.com/2020/05/a-brief-taxonomy-of-pytorch-operators-by-shape-behavior/), in 2021
# [2,055](https://dev-discuss.pytorch.org/t/373), and a new kind of device needs kernels for hundreds of them before a model runs. The other way out is a
# compiler, which fuses by itself: unit 11.
#
# ## One program, several languages
#
# A kernel is not written in Python. Here is a function of **one place** i, which reads `x[i]`, computes and writes `out[i]`. It runs once, and minigrad records
# what it does with `x[i]`. Then it is printed in the language that a device needs. Python is the **front-end** language, C, LLVM and CUDA are **back-end**
# languages; C is there to be read, LLVM runs on your processor, CUDA on GPUs of NVIDIA.

# %% name="languages"
def gated(i, x, out):
    a = x[i]
    out[i] = a * tanh(a)


picture = languages(gated)
picture  # to share it: picture.save("three_languages.html", says="One function of one place, printed for three machines.")

# %% [markdown]
# Compare: where is the loop, in Python, in C, in CUDA? Triton, JAX's Pallas and Numba are front-ends of this kind. In
# [the exercise](exercises/09_eager_costs_exercise.ipynb) you write gelu and its gradient in this way, and put them into the engine: two operators more, and a GPT
# that moves a quarter fewer bytes.
