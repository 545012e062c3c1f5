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
# # 12 · Parallelism and offloading: a scheduler and a placement
#
# Do [12 · Parallelism and offloading](../12_parallelism.ipynb) first. Here you write the scheduler, and it runs in the executor of the engine.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("12_parallelism", student="")

# %% [markdown]
# ## 1 · Hand out jobs

# %% name="task-best-order"
course.task("best_order")

# %% name="board"
course.task("best_order").board

# %% name="best_order"
best_order = ...  # ["...", "...", ...]
### BEGIN SOLUTION
best_order = ["D", "B", "E", "C", "A", "F"]
### END SOLUTION

# %% name="check-best-order"
course.check("best_order")

# %% [markdown]
# ## 2 · The longest chain
#
# A job is urgent if a long chain begins with it. Jobs come as two dictionaries: `costs[job]` is the time of a job, and `after[job]` lists the jobs that it waits for. **Each job
# comes after all jobs that it waits for.**

# %% name="jobs"
costs = {"a": 2, "b": 3, "c": 5, "d": 4, "e": 2, "f": 4}
after = {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["b", "c"], "f": ["d"]}

for job in reversed(list(costs)):
    print(job, "takes", costs[job], "and waits for", after[job])

# %% [markdown]
# `longest_chains(costs, after)` returns a dictionary: **for each job the time of the longest chain that begins with it**, its own time included. Here that is
# `{"a": 9, "b": 5, "c": 7, "d": 8, "e": 2, "f": 4}`. One way: go through the jobs from the last to the first. When you come to a job, the chains of all jobs that wait for
# it are complete. `found.get(job, 0)` is what is stored for a job, or 0.

# %% name="longest_chains"
def longest_chains(costs, after):
    ### BEGIN SOLUTION
    later = dict.fromkeys(costs, 0)
    found = {}
    for job in reversed(list(costs)):
        found[job] = costs[job] + later[job]
        for before in after[job]:
            later[before] = max(later[before], found[job])
    return found
    ### END SOLUTION

# %% name="check-longest-chains"
course.check("longest_chains")

# %% [markdown]
# ## 3 · A list scheduler
#
# `list_schedule(costs, after, workers)` returns who does what when: **for each job the number of the worker, from 0, and the time when it begins**,
# `{"a": (0, 0), "d": (1, 0), "c": (0, 2), ...}`. The rules:
#
# - a job begins when all jobs that it waits for have ended, or later;
# - a worker does one job at a time;
# - no worker is idle while a job is ready;
# - of several ready jobs, the one with **the longest chain** goes first.
#
# One way is a clock. At the time `now`, hand out jobs as long as a worker is free and a job is ready. Then set `now` to the next moment at which a job ends, and
# repeat. You need: `ends[job]`, when a job ends, and `free[worker]`, when a worker is free.
#
# `max(jobs, key=chains.get)` is the job with the largest entry in `chains`. `min(times)` is the next of some times. `all(... for each in after[job])` asks about all jobs before.

# %% name="list_schedule"
def list_schedule(costs, after, workers):
    ### BEGIN SOLUTION
    chains = longest_chains(costs, after)
    free = [0] * workers
    now, ends, found = 0, {}, {}
    while len(found) < len(costs):
        ready = [job for job in costs if job not in found and all(ends.get(each, now + 1) <= now for each in after[job])]
        idle = [worker for worker in range(workers) if free[worker] <= now]
        if ready and idle:
            job = max(ready, key=chains.get)
            found[job] = (idle[0], now)
            ends[job] = free[idle[0]] = now + costs[job]
        else:
            now = min(time for time in ends.values() if time > now)
    return found
    ### END SOLUTION

# %% name="check-list-schedule"
course.check("list_schedule")
### BEGIN HIDDEN TESTS
course.check("list_schedule", hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Your scheduler and real training steps
#
# Three training steps of the examples, an MLP, a CNN and a GPT, as the compiler leaves them: dozens of kernels and products. Above is what minigrad's executor does:
# it finishes one *level* of the graph before it begins the next. Below is your schedule. Choose the network, and move the slider for workers.

# %% name="real-steps"
course.task("list_schedule").networks(list_schedule)

# %% [markdown]
# Where is your schedule shorter? And why are eight workers no better than two? The dashed line is the critical path: two workers reach it already, because in these
# networks rarely more than two steps are ready at the same time. Then it hardly matters which one goes first: choose `min` in place of `max` in your scheduler, run its cell,
# and look again. (Put it right afterwards.) The levels lose time for another reason: each waits for the slowest step of the level before.
#
# And now for real. In this cell, your scheduler decides in which order the executor runs the steps of a compiled training step, and which run at the same time in two
# threads. The program trains a network for digits. The buttons show the loss, the digits before and after, and **what the two threads really did on your machine**.

# %% name="training"
course.task("list_schedule").train(list_schedule, workers=2)

# %% [markdown]
# In the model, your turns are faster than one step at a time. On the machine they may be slower: a step takes some 10 µs, and to wake up a thread takes longer than that.
# A scheduler is as good as its costs. That is why minigrad runs steps one by one unless you ask for more: `mg.jit(f, executor="parallel")`.
#
# ## 5 · A placement

# %% name="task-my-placement"
course.task("my_placement")

# %% name="placements"
course.task("my_placement").show()

# %% name="my_placement"
my_placement = ...  # ["...", "..."]
### BEGIN SOLUTION
my_placement = ["matmul_1", "tanh_1", "sum_2"]
### END SOLUTION

# %% name="check-my-placement"
course.check("my_placement")

# %% name="mine"
course.task("my_placement").show(my_placement)

# %% [markdown]
# How did you beat the compiler? Its search moves one operation, or all, as long as that gains. From its best placement, each single move makes things worse: two operations must move
# together. A search that goes only downhill stops in the first valley.
#
# ## 6 · The program {further}

# %% name="task-offloaded"
course.task("offloaded")

# %% name="example-block"
x = mg.ones(3)
with mg.offload("cpu:1"):
    y = mg.exp(x) + 1  # computed on cpu:1
print(y.device, y.tolist())

# %% name="offloaded"
def offloaded(x, u, v):
    ### BEGIN SOLUTION
    with mg.offload("cpu:1"):
        part = mg.cos(u @ v).sum(0)
    return mg.tanh(x).sum(0) + part
    ### END SOLUTION

# %% name="check-offloaded"
course.check("offloaded")

# %% name="progress"
course.progress()
