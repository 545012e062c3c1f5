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
# # 03 · Devices and dispatch: a chip of your own
#
# Do [03 · Devices and dispatch](../03_devices.ipynb) first. Here you write the function that chooses kernels, and then kernels.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("03_devices", student="")

# %% [markdown]
# ## 1 · Which line stops?

# %% name="task-stops"
course.task("stops")

# %% name="stops"
stops = (..., ...)  # the number of the line, and the number of copies before it
### BEGIN SOLUTION
stops = (6, 2)
### END SOLUTION

# %% name="check-stops"
course.check("stops")

# %% [markdown]
# ## 2 · The dispatcher
#
# `dispatch(op, inputs, table)` is called before each operation. `op` is its name, such as `"add"`. `inputs` is a list of tensors and Python numbers. `table` has
# a dictionary for each device, with its kernels: `table["cpu:1"]["add"]` is the kernel of `add` on `cpu:1`.
#
# - All tensors are on one device: return that device's kernel (the function itself, without calling it).
# - The tensors are on two devices: **raise** an exception, whose message names both devices.
# - A Python number is on no device.
# - The device has no such kernel: let the error happen.
#
# These lines show what you need. `x.device` may be used as a key of the table.

# %% name="tensors"
x = mg.ones(2, device="cpu:1")
for value in x, 2.0:
    print(isinstance(value, mg.Tensor), getattr(value, "device", "no device"))

# %% name="dispatch"
def dispatch(op, inputs, table):
    ### BEGIN SOLUTION
    devices = {x.device for x in inputs if isinstance(x, mg.Tensor)}
    if len(devices) > 1:
        raise ValueError(f"{op}: its inputs are on {devices}")
    return table[devices.pop()][op]
    ### END SOLUTION

# %% name="check-dispatch"
course.check("dispatch")

# %% [markdown]
# Inside this `with`, your function chooses every kernel of minigrad. A network learns to read digits:

# %% name="dispatched"
with course.dispatcher(dispatch) as mine:
    picture = course.train_digits()

print(mine)
picture

# %% [markdown]
# And a mix raises your exception, with your words:

# %% name="your-exception"
with course.dispatcher(dispatch):
    try:
        mg.ones(2) + mg.ones(2, device="cpu:1")
    except Exception as error:
        print(type(error).__name__, error)

# %% [markdown]
# ## 3 · A kernel

# %% name="task-coarse-matmul"
course.task("coarse_matmul")

# %% [markdown]
# With steps of 1/10 it goes like this:

# %% name="steps"
import numpy as np

x = np.array([0.33, -1.26, 2.0], dtype="float32")
print(x * 10, np.round(x * 10), np.round(x * 10) / 10)

# %% name="coarse_matmul"
def coarse_matmul(x, y):
    ### BEGIN SOLUTION
    steps = course.task("coarse_matmul").steps
    return np.round(x * steps) / steps @ (np.round(y * steps) / steps)
    ### END SOLUTION

# %% name="check-coarse-matmul"
course.check("coarse_matmul")
### BEGIN HIDDEN TESTS
course.check("coarse_matmul", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In this block, `cpu:1` uses your kernel. The star in the table marks a kernel that a user registered.

# %% name="register"
with mg.devices.register_kernel("matmul", "cpu:1", coarse_matmul):
    print(mg.devices.kernels("cpu", "cpu:1")["matmul"])

# %% [markdown]
# Three networks read 360 digits. The first was trained on `cpu` and reads there. The second is the same network, which reads on `cpu:1`, with coarse products. The third was also
# **trained** on `cpu:1`. **Before you run the cell: how many digits does each of them read?**

# %% name="readings"
with mg.devices.register_kernel("matmul", "cpu:1", coarse_matmul):
    picture = course.task("coarse_matmul").read()

picture

# %% [markdown]
# A trained network reads well with coarse numbers. So why does the third network learn so little? The backward pass uses the same kernel. The gradients that it multiplies are mostly
# smaller than half a step, so they are rounded to 0. Real chips of this kind use numbers with fixed steps for reading, and numbers with an exponent for training.
#
# ## 4 · A device of your own
#
# Your chip begins with an empty column. What moves numbers and computes nothing is there already, as `moves`. Write the **seven kernels** that compute, as
# functions on NumPy arrays. A function of NumPy is a kernel too: `np.add`, for example, without brackets. One kernel needs more: `sum` gets attributes as keywords,
#
#     sum(x, axis=(1,), keepdims=False, dtype=None)

# %% name="seven"
needed, moves = course.task("chip_kernels").needed, course.task("chip_kernels").moves
print("to write:", *needed)
print("there already:", *moves)

# %% name="chip_kernels"
def chip_sum(x, axis, keepdims, dtype):
    ### BEGIN SOLUTION
    return x.sum(axis=axis, keepdims=keepdims, dtype=dtype)
    ### END SOLUTION


chip_kernels = {"matmul": ..., "sum": chip_sum}  # and the others
### BEGIN SOLUTION
chip_kernels = {
    "matmul": np.matmul, "add": np.add, "tanh": np.tanh, "subtract": np.subtract, "multiply": np.multiply,
    "sum": chip_sum, "divide": np.divide,
}
### END SOLUTION

# %% name="check-chip-kernels"
course.check("chip_kernels")

# %% [markdown]
# ## 5 · The meter
#
# The next function makes a function and returns it, as `doubled` does here. `*values` are all inputs, however many there are, and `**attrs` are attributes such as `axis`. With the same stars,
# both are handed on to the kernel:

# %% name="doubled"
def doubled(kernel):
    def run(*values, **attrs):
        return 2 * kernel(*values, **attrs)

    return run


doubled(np.add)(1, 2), doubled(np.sum)([1, 2], axis=0)

# %% name="task-metered"
course.task("metered")

# %% name="metered"
def metered(op, kernel, bill):
    ### BEGIN SOLUTION
    def run(*values, **attrs):
        result = kernel(*values, **attrs)
        size = sum(value.nbytes for value in (*values, result) if isinstance(value, np.ndarray))
        bill[op] += 6 + size / 125
        return result

    return run
    ### END SOLUTION

# %% name="check-metered"
course.check("metered")

# %% [markdown]
# ## 6 · A network learns on your chip
#
# A device is a class with a table of kernels. This is the whole of it:

# %% name="device"
from collections import Counter

from minigrad.devices import Device, register_device

bill = Counter()


class Chip(Device):
    def make_kernels(self):
        mine = {op: metered(op, kernel, bill) for op, kernel in chip_kernels.items()}
        return moves | mine


register_device("chip", Chip)
x = mg.asarray([0.5, -1.0], device="chip", requires_grad=True)
mg.tanh(x).sum().backward()
print(x.grad, "on", x.grad.device)
print(dict(bill))

# %% [markdown]
# An operation that is not in your table stops, with a hint:

# %% name="no-kernel"
try:
    mg.exp(x)
except mg.DeviceError as error:
    print(error)

# %% [markdown]
# Now the network. Its weights and each batch are copied to `chip`, and the losses are copied back. You wrote the kernels, but not one gradient function.

# %% name="train"
bill.clear()
picture = course.task("chip_kernels").train("chip")
print(f"your meter: {sum(bill.values()) / 1000:,.0f} ms;", *[f"{op} {cost / 1000:,.0f}" for op, cost in bill.most_common()])
picture

# %% [markdown]
# Here is one step of this training. **The chip computes a hundred times as fast as the CPU. Is a step a hundred times as fast?** Move the slider over the size of a batch.

# %% name="at-work"
course.task("chip_kernels").at_work("chip")

# %% [markdown]
# The picture is a model, in which a launch takes 5 µs. The same step was measured on a real GPU, an H100 with CuPy, where a launch takes about 15 µs: with 16 pictures it took 4 times as
# long as on the CPU beside it, and with 1,437 pictures still twice as long. This network is too small for that GPU.
#
# ## 7 · When is it worth it? {further}
#
# First measure your own machine. If it has no GPU, a copy to `cpu:1` shows what moving numbers costs. The next task has numbers of its own.

# %% name="measured"
from time import perf_counter

there = mg.as_device("cuda" if "cuda" in mg.devices.available_devices() else "cpu:1")
x = mg.ones(4_000_000)
y = x.to(there)


def quickest(function):
    times = []
    for _ in range(9):
        begin = perf_counter()
        function()
        there.synchronize()
        times.append(perf_counter() - begin)
    return f"{1000 * min(times):.2f} ms"


print("4 million numbers: added on cpu in", quickest(lambda: x + x))
print(f"copied to {there} in", quickest(lambda: x.to(there)))
print(f"added on {there} in", quickest(lambda: y + y))

# %% name="task-additions"
course.task("additions")

# %% name="additions"
additions = ...
### BEGIN SOLUTION
additions = 10
### END SOLUTION

# %% name="check-additions"
course.check("additions")

# %% name="progress"
course.progress()
