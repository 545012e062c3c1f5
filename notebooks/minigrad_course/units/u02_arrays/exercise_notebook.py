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
# # 02 · Arrays: memory, versions, and views of your own
#
# Do [02 · Arrays](../02_arrays.ipynb) first. Here you predict what a program changes, repair a damaged gradient, and write the views of the library by strides.

# %% name="begin"
import minigrad as mg
import minigrad_course as course
from minigrad_course.units.u02_arrays.memory_maps import memory_map

course.begin("02_arrays", student="")

# %% [markdown]
# ## 1 · Who changes?

# %% name="task-who-changes"
course.task("who_changes")

# %% name="who_changes"
who_changes = ...  # the names in quotation marks, in brackets
### BEGIN SOLUTION
who_changes = ["c", "e", "h"]
### END SOLUTION

# %% name="check-who-changes"
course.check("who_changes")

# %% [markdown]
# Step through your program here, after your answer:

# %% name="your-program"
memory_map(course.task("who_changes").code)

# %% [markdown]
# ## 2 · Versions

# %% name="task-versions"
course.task("versions")

# %% name="versions"
versions = (..., [...])  # the version, and the names in quotation marks
### BEGIN SOLUTION
versions = (2, ["p", "r"])
### END SOLUTION

# %% name="check-versions"
course.check("versions")

# %% [markdown]
# `memory_map(course.task("versions").code + "\np.sum().backward()")` shows what each operation has kept, and whether p stops.
#
# ## 3 · Repair it {further}
#
# To save memory, this loop reads each batch into the same buffer. The losses are added, and one backward pass follows. Run the cell:

# %% name="broken"
def broken(w, buffer, batches):
    losses = []
    for batch in batches:
        buffer[:] = mg.asarray(batch)
        losses.append((w * buffer).sum())
    return sum(losses)


w = mg.asarray([1.0, 2.0], requires_grad=True)
loss = broken(w, mg.zeros(2), [[3.0, 4.0], [5.0, -6.0]])
try:
    loss.backward()
except mg.MinigradError as error:
    print(error)

# %% [markdown]
# Read the error: which value was needed, which line used it, which line changed it? Write `refilled(w, buffer, batches)`: the same losses and the right gradient. Each batch must
# still be read into the buffer, because other parts of the program look there.

# %% name="refilled"
def refilled(w, buffer, batches):
    ### BEGIN SOLUTION
    losses = []
    for batch in batches:
        buffer[:] = mg.asarray(batch)
        losses.append((w * buffer.copy()).sum())
    return sum(losses)
    ### END SOLUTION

# %% name="check-refilled"
course.check("refilled")

# %% [markdown]
# ## 4 · A table by strides

# %% name="task-view-of"
course.task("view_of")

# %% name="view_of"
view_of = ((..., ...), (..., ...), ...)  # shape, strides, offset
### BEGIN SOLUTION
view_of = ((3, 2), (1, 8), 1)
### END SOLUTION

# %% name="check-view-of"
course.check("view_of")

# %% [markdown]
# ## 5 · Transposed
#
# From here on you write what the library does. A view is described by two tuples: `shape` and `strides`, with a number for each axis. Strides count numbers, not bytes.
#
# `transposed(shape, strides, axes)` returns the **shape and the strides** of the same array with its axes in another order: new axis i is the old axis `axes[i]`. With axes = (1, 0), rows and
# columns change places.

# %% name="transposed"
def transposed(shape, strides, axes):
    ### BEGIN SOLUTION
    return tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes)
    ### END SOLUTION

# %% name="check-transposed"
course.check("transposed")

# %% [markdown]
# ## 6 · Broadcasted
#
# An array is to be read with the shape `target`, as if it were repeated. Shapes are aligned at their **ends**:
#
# | shape | target | is repeated |
# |---|---|---|
# | (3,) | (4, 3) | along the new first axis |
# | (4, 1) | (4, 3) | along the axis of size 1 |
# | () | (2, 3) | along both new axes |
#
# `broadcasted(shape, strides, target)` returns the **strides**, one for each axis of `target`.

# %% name="broadcasted"
def broadcasted(shape, strides, target):
    ### BEGIN SOLUTION
    new = len(target) - len(shape)
    return (0,) * new + tuple(0 if size == 1 else stride for size, stride in zip(shape, strides))
    ### END SOLUTION

# %% name="check-broadcasted"
course.check("broadcasted")

# %% [markdown]
# ## 7 · Windows
#
# `windowed(shape, strides, axis, size, step)` describes all windows of `size` numbers along one `axis`. The next window begins `step` numbers further. Only whole windows count. 7 numbers, windows of 3:
#
# | step | windows begin at | shape |
# |---|---|---|
# | 1 | 0, 1, 2, 3, 4 | (5, 3) |
# | 2 | 0, 2, 4 | (3, 3) |
#
# At `axis` stands the **number of windows** now, and a **new last axis** has the numbers of one window. Return the shape and the strides.

# %% name="windowed"
def windowed(shape, strides, axis, size, step):
    ### BEGIN SOLUTION
    count = (shape[axis] - size) // step + 1
    return (
        (*shape[:axis], count, *shape[axis + 1 :], size),
        (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis]),
    )
    ### END SOLUTION

# %% name="check-windowed"
course.check("windowed")
### BEGIN HIDDEN TESTS
course.check("windowed", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · A convolution
#
# A *filter* is a small picture of what to look for. A **convolution** multiplies it with each window, number by number, and adds the products: where the sum is large, the window looks like the filter.
# `pictures` has shape (n, 8, 8), `filters` has shape (k, 3, 3), and `mg.windows(pictures, 3, axis=(1, 2))` has shape (n, 6, 6, 3, 3). The result has shape (n, 6, 6, k).
# Any program is right. With `reshape`, **one matrix product** is enough for all pictures and filters. Other sizes than 8 are possible: read them from `.shape`.

# %% name="convolve"
def convolve(pictures, filters):
    ### BEGIN SOLUTION
    windows = mg.windows(pictures, 3, axis=(1, 2))
    n, rows, columns = windows.shape[:3]
    return windows.reshape(n, rows, columns, 9) @ filters.reshape(-1, 9).T
    ### END SOLUTION

# %% name="check-convolve"
course.check("convolve")

# %% [markdown]
# ## 9 · Everything reads through your strides
#
# Inside this `with`, the library asks your three functions for the strides of each transposed, broadcast or windowed array. First a look at four digits. (`reshape` of the windows is the only copy.)

# %% name="see"
engine = course.task("windowed")

with engine.views(transposed, broadcasted, windowed) as mine:
    picture = course.task("convolve").see(convolve)

print(mine)
picture

# %% [markdown]
# Then a network: a convolution of 3 × 3 and a linear layer. It learns to read digits in a few seconds. Forward and backward pass use your views.

# %% name="train"
with engine.views(transposed, broadcasted, windowed) as mine:
    trained = engine.train(mine)

trained

# %% [markdown]
# Break `windowed` on purpose: let the stride from window to window be 0. Run its cell and the two cells above, and compare the pictures and the digits read. Then let the stride
# inside a window be twice as large: this is refused. Which window reads too far? Put it right in the end.

# %% name="progress"
course.progress()
