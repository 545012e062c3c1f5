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
# # 13 · Distributed execution: write the ring
#
# Do [13 · Distributed execution](../13_distributed.ipynb) first. Here you plan a ring, write it, and it trains the digits on 4 ranks.

# %% name="begin"
import numpy as np

import minigrad_course as course

course.begin("13_distributed", student="")

# %% [markdown]
# ## 1 · A plan

# %% name="task-ring-plan"
course.task("ring_plan")

# %% name="ring_plan"
ring_plan = [
    [..., ..., ..., ...],
    [..., ..., ..., ...],
    [..., ..., ..., ...],
]
### BEGIN SOLUTION
ring_plan = [[2, 3, 0, 1], [3, 0, 1, 2], [0, 1, 2, 3]]
### END SOLUTION

# %% [markdown]
# Look at it, right or wrong; rounds with dots are left out. The slider goes back too:

# %% name="look-at-plan"
course.task("ring_plan").act(ring_plan)

# %% name="check-ring-plan"
course.check("ring_plan")

# %% [markdown]
# ## 2 · Bytes

# %% name="task-bytes-sent"
course.task("bytes_sent")

# %% name="bytes_sent"
bytes_sent = ...  # MB
### BEGIN SOLUTION
bytes_sent = 192.0
### END SOLUTION

# %% name="check-bytes-sent"
course.check("bytes_sent")

# %% [markdown]
# ## 3 · The first half
#
# All ranks run the same function, each with its own `comm` and its own `chunks`:
#
# | | |
# |---|---|
# | `comm.rank`, `comm.size` | the number r of this rank, from 0, and the number n of ranks |
# | `sending = comm.start_send(x, to)` | begins to send the array x to rank `to`; the array must not change before `sending.wait()` |
# | `comm.send(x, to)` | the same, and waits until x is received |
# | `y = comm.recv(source, like)` | waits for the next message of rank `source`; `like` is an array of the same shape |
#
# A cable leads from rank r to rank (r + 1) % n only. `chunks` is a list of n arrays. They are views of one array, so **write into them**: `chunks[i] += y`, or
# `chunks[i][...] = y`.
#
# `reduce_scatter(comm, chunks)` takes n − 1 rounds. **Afterwards chunk r of rank r is the sum of the chunks r of all ranks**; the other chunks may hold anything.
# It returns nothing. Here is what a view is: adding to a chunk changes the array.

# %% name="views"
x = np.arange(8.0)
chunks = np.array_split(x, 4)
chunks[1] += 100
print(x)

# %% [markdown]
# (Plan it for 4 ranks first: which chunk does rank 0 send in round 1, if chunk r is to be complete in rank r? And then?)

# %% name="reduce_scatter"
def reduce_scatter(comm, chunks):
    ### BEGIN SOLUTION
    n, r = comm.size, comm.rank
    for step in range(1, n):
        sending = comm.start_send(chunks[(r - step) % n], (r + 1) % n)
        mine = chunks[(r - step - 1) % n]
        mine += comm.recv((r - 1) % n, mine)
        sending.wait()
    ### END SOLUTION

# %% name="check-reduce-scatter"
course.check("reduce_scatter")

# %% [markdown]
# See what it does on 4 ranks, right or wrong:

# %% name="look-at-first-half"
course.task("reduce_scatter").show(reduce_scatter)

# %% [markdown]
# ## 4 · The second half
#
# Now chunk r of rank r is complete. `all_gather(comm, chunks)` sends the complete chunks around, in n − 1 rounds. **Afterwards all chunks are complete in all ranks.**

# %% name="all_gather"
def all_gather(comm, chunks):
    ### BEGIN SOLUTION
    n, r = comm.size, comm.rank
    for step in range(n - 1):
        sending = comm.start_send(chunks[(r - step) % n], (r + 1) % n)
        mine = chunks[(r - step - 1) % n]
        mine[...] = comm.recv((r - 1) % n, mine)
        sending.wait()
    ### END SOLUTION

# %% name="check-all-gather"
course.check("all_gather")

# %% [markdown]
# ## 5 · Four ranks train the digits
#
# `train` writes your two functions to a file and starts 4 **processes** that read it, by `python -m minigrad.distributed -n 4`. Each trains with
# `mg.distributed.DataParallel` on its 16 images of every 64; below it, all gradients go through your ring. Then one process trains on all 64 images. (Where MPI is not
# installed, 4 threads take the place of the processes.) The pictures: both loss curves, the digits before and after, and the model of `mg.viz.cluster`, with the latency and the
# bandwidth that were measured between your ranks. It takes up to half a minute. A ring that waits for ever is stopped after 40 seconds.

# %% name="training"
course.task("all_gather").train(reduce_scatter, all_gather)

# %% [markdown]
# In the picture "thousands", all workers share one batch of 64 images: with more workers each has less to compute, and the messages are as many as before. The dashed curve
# gives each worker a batch of its own. The gradients of this network are only 10 kB: for such short messages a tree of workers is faster than a ring, and the model
# takes the faster of the two.
#
# Break the ring on purpose: let `reduce_scatter` replace instead of add, run its cell and the training again, and look at the curve. Put it right afterwards.
#
# ## 6 · Other cables {further}

# %% name="task-other-ring"
course.task("other_ring")

# %% name="other_ring"
def other_ring(comm, x):
    ### BEGIN SOLUTION
    n, stride = comm.size, 2
    to, source = (comm.rank + stride) % n, (comm.rank - stride) % n
    place = [i * stride % n for i in range(n)].index(comm.rank)
    chunks = np.array_split(x, n)
    for step in range(1, 2 * n - 1):
        late = step >= n  # in the second half
        sent = chunks[(place - step) % n]
        mine = chunks[(place - step - 1) % n]
        sending = comm.start_send(sent, to)
        got = comm.recv(source, mine)
        sending.wait()
        mine[...] = got if late else np.multiply(mine, got)
    ### END SOLUTION

# %% name="check-other-ring"
course.check("other_ring")
### BEGIN HIDDEN TESTS
course.check("other_ring", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · The time of a step

# %% name="task-slow-step"
course.task("slow_step")

# %% name="slow_step"
slow_step = ...  # ms
### BEGIN SOLUTION
slow_step = 284.0
### END SOLUTION

# %% name="check-slow-step"
course.check("slow_step")

# %% [markdown]
# ## 8 · Memory

# %% name="task-worker-memory"
course.task("worker_memory")

# %% name="worker_memory"
worker_memory = ...  # GB
### BEGIN SOLUTION
worker_memory = 8.25
### END SOLUTION

# %% name="check-worker-memory"
course.check("worker_memory")

# %% name="progress"
course.progress()
