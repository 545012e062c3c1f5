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
# # 03 · Devices and dispatch
#
# A GPU cannot run NumPy. It has its own memory, and it needs its own function for every operation. This notebook counts these functions, and asks where arrays
# are, who chooses the function that runs, and what a device a hundred times as fast is worth. You need [unit 00](00_start.ipynb).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad.core.primitive import P

course.begin("03_devices")

# %% [markdown]
# ## A new chip
#
# A function that computes one operation on one kind of hardware is called a **kernel**. The simplest library has a copy of NumPy for each kind of
# hardware: a **table** with a row for each operation, a column for each device, and a kernel in each place. How large is the table here?

# %% name="count"
operations, rules = len(P), sum(len(op.rules) for op in P)
print(operations, "operations,", rules, "gradient rules")
for devices in 2, 3, 4:
    print(devices, "kinds of hardware, a function for each rule too:", devices * (operations + rules))

# %% [markdown]
# A new chip arrives, and its column is empty. Only what moves numbers is there: views, copies, filling memory with one value. You want to **train** a network
# on it: two layers with `tanh`, which read digits; loss, backward pass, steps of the **optimizer**, which changes the weights. **How many functions must you write?** Guess.

# %% name="new-chip" tags=["question"]
new_chip = ...

course.check("new_chip")

# %% name="needed" jupyter={"outputs_hidden": true}
from collections import Counter

from minigrad.compile.look.watching import watching

model = mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.Tanh(), mg.nn.Linear(32, 10))
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
images, targets = mg.zeros((16, 64)), mg.zeros((16, 10))

with watching() as calls:
    loss = ((model(images) - targets) ** 2).sum() / 16
    loss.backward()
    optimizer.step()
computed = Counter(call.op.name for call in calls if call.op.kind in ("elementwise", "reduce", "contract"))
print(len(computed), "operations:", dict(sorted(computed.items())))

# %% [markdown]
# In the exercise you write these functions, and a network learns on a chip of your own.
#
# ## An array is on one device

# %% name="device-of-x-asked"
course.task("device_of_x")

# %% name="device-of-x" tags=["question"]
device_of_x = ...

course.check("device_of_x")

# %% [markdown]
# Another program. **What are `y[0]` and `z[0]` after these lines?** Two numbers, in brackets.
#
# ```python
# x = mg.ones(3)
# y = x.to("cpu:1")
# z = x.to("cpu")
# x[0] = 5
# ```

# %% name="copied" tags=["question"]
copied = ...

course.check("copied")

# %% name="copies" jupyter={"outputs_hidden": true}
x = mg.ones(3)
y = x.to("cpu:1")
z = x.to("cpu")
x[0] = 5
print("x on", x.device, x.tolist())
print("y on", y.device, y.tolist())
print("z on", z.device, z.tolist(), "the same tensor as x" if z is x else "another tensor")

# %% [markdown]
# `x.to(device)` returns a **tensor** (an array on a device), and `model.to(device)` is different: it puts new arrays into the model itself. This difference costs beginners hours
# ([PyTorch](https://github.com/pytorch/pytorch/issues/14068), [accelerate](https://github.com/huggingface/accelerate/issues/2251)).
#
# ## Dispatch
#
# When an operation is called, the library looks where the inputs are. If all are on one device, it calls that device's kernel. This choice is called **dispatch**. If
# they are on two devices, it raises an exception.

# %% name="mixed-asked"
course.task("mixed")

# %% name="mixed" tags=["question"]
mixed = ...

course.check("mixed")

# %% name="mix" jupyter={"outputs_hidden": true}
a, b = mg.ones(3), mg.ones(3, device="cpu:1")
for letter, line in course.task("mixed").lines.items():
    try:
        print(letter, "runs on", eval(line).device)
    except mg.DeviceError as error:
        print(letter, "stops:", str(error).splitlines()[0])

# %% [markdown]
# Why does the library not copy by itself? PyTorch was [asked for it](https://github.com/pytorch/pytorch/issues/25587), and refused: a copy costs more than most
# operations, so it should stand in the program where one can see it.
#
# Choose one call after the other of this small program. The picture shows the way from its line to the kernel that the device has for the operation.

# %% name="dispatched-here"
def program():
    x = mg.ones(3)
    y = mg.tanh(x) * 2
    z = y.to("cpu:1")
    return (z + 1).sum()


mg.viz.bench(program)

# %% [markdown]
# ## Gradients

# %% name="backward-kernels-asked"
course.task("backward_kernels")

# %% name="backward-kernels" tags=["question"]
backward_kernels = ...

course.check("backward_kernels")

# %% name="backward-on-cpu1" jupyter={"outputs_hidden": true}
x = mg.asarray([0.5, -1.0], device="cpu:1", requires_grad=True)
y = mg.sigmoid(x)
with watching() as calls:
    y.backward(mg.ones(2, device="cpu:1"))
print([(call.op.name, str(call.device)) for call in calls if call.op.kind == "elementwise"])

# %% [markdown]
# A rule is a small program of operations, and each of them is dispatched again. So a device that has the kernels of the forward pass mostly has those of the
# backward pass. It also means: **if a kernel is wrong, gradients are wrong as well.** Here is a `multiply` for `"cpu:1"` that returns twice the product.
# The new kernel has a star in the table.

# %% name="wrong-kernel"
def double_multiply(x, y):
    return 2 * x * y


with mg.devices.register_kernel("multiply", "cpu:1", double_multiply):
    print(mg.devices.kernels("cpu", "cpu:1")["multiply"])
    for device in "cpu", "cpu:1":
        x = mg.asarray([0.5], device=device, requires_grad=True)
        mg.tanh(x).backward(mg.ones(1, device=device))
        print(device, "gradient of tanh at 0.5:", round(x.grad.item(), 3))

# %% [markdown]
# ## What a fast device is worth

# %% name="by-way-of-chip-asked"
course.task("by_way_of_chip")

# %% name="by-way-of-chip" tags=["question"]
by_way_of_chip = ...

course.check("by_way_of_chip")

# %% [markdown]
# These are honest proportions: the wire between a GPU and a CPU is about as fast as the CPU's own memory. What changes if a program makes a thousand additions in a row, and
# the arrays **stay** on the chip between them? The exercise has this question with numbers of yours.
#
# ## One function at a time, then streams
#
# On a CPU, a line has finished its work when the next line begins: one function runs at a time. A GPU has a **queue**. Python puts a kernel into the queue, which is a
# **launch**, and goes on with the next line while the GPU works.

# %% name="called-asked"
course.task("called")

# %% name="called" tags=["question"]
called = ...

course.check("called")

# %% [markdown]
# `y.item()` and `print(y)` need the result, so they wait for it. `mg.as_device("cuda").synchronize()` waits for all work. Where such a line was missing, whole
# [tables of benchmarks](https://github.com/TristanBilot/mlx-benchmark/pull/21) were wrong.
#
# A **stream** is one such queue. A GPU has several, and also engines that copy while kernels run. Here are three batches: each is copied to the device, a
# kernel computes, and the result is copied back.

# %% name="queue"
picture = course.task("overlapped").queue()
picture  # to share it: picture.save("queue.html", says="A device has queues: copies and kernels may run at the same time.")

# %% [markdown]
# Let a kernel take 100 µs. With one stream the device is done after 905 µs. **When is it done with three streams?**

# %% name="overlapped" tags=["question"]
overlapped = ...

course.check("overlapped")

# %% [markdown]
# Where a kernel takes 50 µs, the copies set the pace; where it takes 200 µs, the kernels do. Streams help as far as different engines work at the same time.
#
# ## If you have a GPU
#
# This cell uses it through CuPy, which is a copy of NumPy for NVIDIA's GPUs. Without one it uses `"cpu:1"`. The program is the same, and so are the results.

# %% name="gpu"
there = "cuda" if "cuda" in mg.devices.available_devices() else "cpu:1"
x = mg.asarray([0.5, -1.0], device=there, requires_grad=True)
y = mg.tanh(x).sum()
y.backward()
print("on that device:", y.device == there and x.grad.device == there)
print("gradients:", [round(value, 3) for value in x.grad.tolist()])

# %% [markdown]
# In [the exercise](exercises/03_devices_exercise.ipynb) you write the dispatcher of this library, a kernel, and a device of your own, on which a network learns. You
# see what it did, what was copied, and what that costs.
