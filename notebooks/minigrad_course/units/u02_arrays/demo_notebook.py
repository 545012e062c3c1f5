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
# # 02 · Arrays
#
# Below every framework lies a library for **numerical linear algebra**: NumPy, or something like it. This notebook asks what the library does better than
# Python, what a call costs, where arrays are in memory, and what happens when a program writes into them. You need [unit 00](00_start.ipynb).

# %% name="setup"
import minigrad as mg
import minigrad_course as course
from minigrad_course.units.u02_arrays import crossings, strides
from minigrad_course.units.u02_arrays.memory_maps import memory_map

course.begin("02_arrays")

# %% [markdown]
# ## Five times the numbers
#
# A picture of a digit has 8 × 8 = 64 numbers. A *window* is a part of 3 × 3 numbers. There are 36 of them, because a window can begin at 6 rows and at
# 6 columns. `mg.windows` makes one array of all windows:

# %% name="all-windows"
picture = mg.asarray(mg.data.digits()[1].arrays[0][0].reshape(8, 8))
windows = mg.windows(picture, 3, axis=(0, 1))

print("picture", picture.shape, picture.size, "numbers")
print("windows", windows.shape, windows.size, "numbers")

# %% [markdown]
# 64 numbers have become 324, and the library has copied none of them: `windows` reads the numbers of `picture` where they are.

# %% name="window-numbers-asked"
course.task("window_numbers")

# %% name="window-numbers" tags=["question"]
window_numbers = ...

course.check("window_numbers")

# %% [markdown]
# At the end of the exercise, your own array of windows runs in the library, and a network reads digits with it. To get there, we need to know what an array is. And
# first: why is there a library at all?
#
# ## What the library is for
#
# A product of two 64 × 64 matrices needs 64 · 64 · 64 = 262,144 multiplications. `a @ b` calls **BLAS** for them, a collection of functions that people have
# tuned for each processor since 1979. **About how many times as long do loops in Python take: "3", "30" or "3000"?**

# %% name="loop-times" tags=["question"]
loop_times = ...

course.check("loop_times")

# %% name="library-calls-asked"
course.task("library_calls")

# %% name="library-calls" tags=["question"]
library_calls = ...

course.check("library_calls")

# %% [markdown]
# The arithmetic is the same in all four ways. Guess which takes longest, then press **time**: it shows what your machine has needed.

# %% name="ladder" jupyter={"outputs_hidden": true}
crossings.ladder()

# %% [markdown]
# Thousands of calls of an optimised function take longer than loops in Python, or about as long: each **call** has a price. One call that does all the work gains the most. The
# library works on several numbers with one instruction, and multiplies blocks that fit into the fast memory next to the processor.
#
# So is the library quicker for small arrays too? One number is added to one number, then 10 to 10, and so on. Who is quicker for one number? Press **time**:

# %% name="race"
crossings.race()

# %% [markdown]
# ## There and back
#
# A call leaves the interpreter, which runs Python. The library, which is machine code, computes. Then control returns to the line that called. Here is this
# back and forth for a small function, measured on your machine. Change the function: make the matrices larger or smaller.

# %% name="there-and-back"
a, b = mg.ones((200, 200)), mg.ones((200, 200))


def program():
    c = a @ b
    d = mg.tanh(c)
    return d.sum()


crossing = crossings.there_and_back(program)
crossing  # to share it: crossing.save("there_and_back.html", says="Python calls, the library computes, and control comes back: measured on my machine.")

# %% name="clock-asked"
course.task("clock")

# %% name="clock" tags=["question"]
clock = ...

course.check("clock")

# %% [markdown]
# (On a GPU the answer is different: see unit 03.)
#
# ## Names are not arrays

# %% name="same-buffer-asked"
course.task("same_buffer")

# %% name="same-buffer" tags=["question"]
same_buffer = ...

course.check("same_buffer")

# %% [markdown]
# The **memory map** runs a program line by line. It shows names, the views that they refer to, and the **buffers**, where the numbers are. Step through it. Then
# write a program of your own: one statement in each line.

# %% name="map" jupyter={"outputs_hidden": true}
first, added = course.task("same_buffer").first, course.task("same_buffer").added
memory_map(f"""
a = mg.asarray([{first}, {first + 1}, {first + 2}])
b = a
c = a[1:]
d = a + 0
c += {added}
""")

# %% [markdown]
# The **version** of a buffer counts the lines that have written into it. You will need it soon.

# %% name="rebound-asked"
course.task("rebound")

# %% name="rebound" tags=["question"]
rebound = ...

course.check("rebound")

# %% name="rebinding" jupyter={"outputs_hidden": true}
first, factor = course.task("rebound").first, course.task("rebound").factor

a = mg.asarray([first, 1])
b = a
b = b * factor
print(f"after b = b * {factor}, a is", a.tolist())

a = mg.asarray([first, 1])
b = a
b *= factor
print(f"after b *= {factor}, a is", a.tolist())

# %% [markdown]
# ## One buffer, many shapes
#
# Memory is one long row. A table in it is a rule for reading: a **shape**, and for each axis a **stride**, which is how far the next number is. The number at row i
# and column j is at `offset + i · (stride of the rows) + j · (stride of the columns)`. On the bench, the view has 3 × 3 numbers, and the buffer holds 0, 1, 2 …, so that
# each number is its own place.

# %% name="bench"
strides.bench()

# %% [markdown]
# Turn the table round, so that its first row is 0, 3, 6 and its second row is 1, 4, 7. **Which two steps do that?** The step to the next row first.

# %% name="turned-strides" tags=["question"]
turned_strides = ...

course.check("turned_strides")

# %% [markdown]
# So `.T` moves no number, and takes the same time for nine numbers and for nine million. Try other steps, also 0. And then:

# %% name="owned-bytes-asked"
course.task("owned_bytes")

# %% name="owned-bytes" tags=["question"]
owned_bytes = ...

course.check("owned_bytes")

# %% [markdown]
# One number can fill a table of a million places in the same way. Which of them does `table += 1` change?

# %% name="broadcast" jupyter={"outputs_hidden": true}
table = mg.broadcast_to(mg.asarray(1.0), (1000, 1000))
print("shape", table.shape, "strides", table.numpy().strides)

try:
    table += 1
except mg.MinigradError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# PyTorch of 2017 did not stop here: a 1 that was broadcast to 4 × 5 places [became 21](https://github.com/pytorch/pytorch/issues/4664), because 1 was added 20 times to
# the same number.
#
# A reading rule with one stride for each axis cannot read everything.

# %% name="copies-asked"
course.task("copies")

# %% name="copies" tags=["question"]
copies = ...

course.check("copies")

# %% name="which-copy" jupyter={"outputs_hidden": true}
memory_map("a = mg.arange(12).reshape(3, 4)\n" + course.task("copies").program)

# %% [markdown]
# ## A damaged gradient

# %% name="changed-in-between-asked"
course.task("changed_in_between")

# %% name="changed-in-between" tags=["question"]
changed_in_between = ...

course.check("changed_in_between")

# %% name="damaged" jupyter={"outputs_hidden": true}
memory_map("""
x = mg.asarray([2.0, 3.0])
w = mg.asarray([1.0, 4.0], requires_grad=True)
p = w * x
q = w + x
x += 1
q.sum().backward()
p.sum().backward()
""")

# %% [markdown]
# Here p is a product, and q is a sum. The product noted the version of the buffer that it kept. The sum kept nothing, so its gradient is right. Without versions, the gradient of p would be [3, 4]: that of another
# function, and no message. Other ways to write into memory behind the engine's back have [given such gradients](https://github.com/pytorch/pytorch/issues/6990).
#
# Try this one too, a line each: `w = mg.asarray([1.0, 2.0], requires_grad=True)`, `h = w * 3`, `y = h * h`, `h += 1`. Here h has a history. Does minigrad write
# into its buffer? Is the gradient of y damaged?
#
# In [the exercise](exercises/02_arrays_exercise.ipynb) you predict which names change, repair a loop with a damaged gradient, and write the views of the library: transposed arrays,
# broadcasting, windows. A network then learns to read digits through your windows.
