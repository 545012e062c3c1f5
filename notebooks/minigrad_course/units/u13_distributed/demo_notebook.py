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
# # 13 · Distributed execution
#
# A data centre has 100,000s of machines, and petabytes of data to train on. This notebook lets several workers train one network: they add up their
# gradients in a **ring**. You act the ring out, count its bytes, look at what may go wrong, and predict how long a step takes on thousands of workers.
# You need [unit 05](05_gradient_functions.ipynb): each batch gives a gradient, and the optimizer takes a step.

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("13_distributed")

# %% [markdown]
# ## Why more than one machine?
#
# A fast disk gives 1 GB a second. A petabyte (PB) is a million GB: text, pictures and clicks of a large company, for example. One machine
# needs 11.6 days to read it once.

# %% name="task-read-together"
course.task("read_together")

# %% name="read-together" tags=["question"]
read_together = ...

course.check("read_together")

# %% [markdown]
# In **data-parallel** training each worker has a copy of the network and reads its own part of every batch. Then the workers add up their gradients, so that all
# take the same step. An **all-reduce** is this sum: before it each worker has an array, and after it each worker has the sum of all arrays.
#
# One worker could add up everything. It would be the bottleneck: with 1,000 workers it receives 999 arrays. In a **ring**, each worker sends to the next one only.
# The array is cut into n **chunks**, one for each of n workers, and all workers send at the same time. It takes 2 (n − 1) rounds, and in each a worker sends one
# chunk.

# %% name="task-more-sent"
course.task("more_sent")

# %% name="more-sent" tags=["question"]
more_sent = ...

course.check("more_sent")

# %% name="bytes" jupyter={"outputs_hidden": true}
network = mg.distributed.Machine(latency=20e-6, bandwidth=10e9)

print("workers, and MB that each sends for an array of 100 MB:")
for workers in (2, 4, 32, 1000, 100_000):
    print(f"{workers:>7,}", round(network.ring(100e6, workers).bytes / 1e6, 3))

# %% [markdown]
# ## Act it out
#
# Three workers, three chunks. The little marks in a chunk show which workers' numbers are in it. A receiver **adds** what comes to its own chunk. **Click a chunk to
# make it the one that its worker sends**, in round 1 or in round 2. Red: a worker's numbers are counted twice. Every choice can be taken back.

# %% name="act-it-out"
course.task("second_round").act_out()

# %% [markdown]
# Leave round 1 as it is: worker r sends chunk r. **Which chunks must workers 0, 1 and 2 send in round 2, so that each chunk is complete in one worker?**

# %% name="second-round" tags=["question"]
second_round = ...

course.check("second_round")

# %% [markdown]
# That was the first half, the **reduce-scatter**: each chunk is complete, but in one worker only. In the second half, the **all-gather**, the complete chunks go
# round.

# %% name="task-rounds"
course.task("rounds")

# %% name="rounds" tags=["question"]
rounds = ...

course.check("rounds")

# %% [markdown]
# Here minigrad's own ring sums real arrays, in a thread for each worker. Go through the rounds, and compare the ring with one worker that adds up everything:

# %% name="ring"
picture = mg.viz.cluster(4)
picture  # to share it: picture.save("ring.html", says="Four workers add up their arrays in a ring: each sends to one neighbour, and none waits for all."), or as a film: picture.save("ring.gif")

# %% [markdown]
# ## Does it train as one process does?
#
# One process trains with batches of 64 images. Now 4 ranks (so the workers are called in MPI, the Message Passing Interface, by which processes send each other arrays) do the same steps, each with 16 of the 64 images, and an all-reduce
# of the gradients. The loss of a batch is a mean over its images. Five ways to do it:
#
# | way | what the 4 ranks do |
# |---|---|
# | `mean` | gradients are averaged |
# | `sum` | gradients are summed |
# | `seeds` | gradients are averaged, but each rank draws its own first weights |
# | `norm` | gradients are averaged; the network has a batch norm, and each rank normalises its own 16 images |
# | `whole` | gradients are averaged, but the data are not divided: all ranks read the same 16 images |
#
# One of them has the loss curve of one process. **A different one has the loss curve of one process whose rate is four times as large. Which one?** A list of names.

# %% name="same-curve" tags=["question"]
same_curve = ...

course.check("same_curve")

# %% name="ways" jupyter={"outputs_hidden": true}
task = course.task("same_curve")

print("4 ranks, beside one process with the same rate, and with a rate four times as large:")
for way in task.ways:
    said = ["the same curve" if task.compared(way, faster) else "another curve" for faster in (1, 4)]
    print(f"{way:>5}: {said[0]:16} {said[1]}")

# %% [markdown]
# `mg.distributed.DataParallel` averages, gives all ranks the weights of rank 0, and lets batch norm see the whole batch; `DataLoader(..., shard=comm)` divides the
# data.
#
# ## Overlap
#
# The network need not be idle while the backward pass computes. Gradients are collected in **buckets**, and a bucket is sent as soon as it is full. Suppose that the
# first layer has nine tenths of all parameters. **Which part of the sending can happen while backward computes: "nearly all", "about half" or "hardly any"?**

# %% name="first-bucket" tags=["question"]
first_bucket = ...

course.check("first_bucket")

# %% name="task-overlapped-step"
course.task("overlapped_step")

# %% name="overlapped-step" tags=["question"]
overlapped_step = ...

course.check("overlapped_step")

# %% name="with-overlap" jupyter={"outputs_hidden": true}
task = course.task("overlapped_step")
step = mg.distributed.Step.even(4, task.forward / 1000, task.backward / 1000, gradients=40e6, bucket=10e6)
hall = mg.distributed.Machine(latency=0, bandwidth=15e9 / task.each)

print("ms, without and with overlap:")
for overlap in (False, True):
    print(round(1000 * mg.distributed.step_time(step, hall, 4, overlap=overlap, algorithm="ring").seconds, 1))

# %% [markdown]
# ## Thousands of workers
#
# There are no thousands of workers here, so this is a **model**: what it assumes stands below its curves. A step computes for 150 ms and has 1 GB of gradients, in
# buckets of 25 MB. A message takes 20 µs before its first byte arrives: the **latency**. Move the slider, and look at one step too.

# %% name="scaling"
step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
what_if = {"no overlap": {"overlap": False}, "random delays": {"jitter": 0.02}}
course.task("best_bucket").scaled(step, network, what_if, workers=(1, 4, 32, 256, 1024))

# %% [markdown]
# From 32 to 1,024 workers a step takes about 6 times as long. The bytes are nearly the same. What has grown is the number of messages: 2,046 for each bucket, instead of 62.
# **Which size of the buckets makes a step on 1,024 workers shortest: 5, 25, 100 or 500 MB?** In quotation marks.

# %% name="best-bucket" tags=["question"]
best_bucket = ...

course.check("best_bucket")

# %% name="larger-buckets" jupyter={"outputs_hidden": true}
print("ms a step on 1,024 workers, by the size of a bucket:")
for megabytes in (5, 25, 100, 500):
    time = mg.distributed.step_time(step, network, 1024, bucket=megabytes * 1e6)
    print(f"{megabytes:>4} MB:", round(1000 * time.seconds))

# %% [markdown]
# With buckets of 5 MB the model takes a *tree*: half of the workers send to the other half, half of these to the rest, and so on, and the sum comes back in the same way. It has fewer
# messages than a ring, which would need 8.4 s.
#
# Now **stragglers**, workers that are slower than the others.

# %% name="task-one-slow"
course.task("one_slow")

# %% name="one-slow" tags=["question"]
one_slow = ...

course.check("one_slow")

# %% name="delays" jupyter={"outputs_hidden": true}
print("ms, one slow worker of 1,000:")
task = course.task("one_slow")
machine = mg.distributed.Machine(latency=0, bandwidth=1e15, slow=1, slowdown=1 + task.percent / 100)
print(round(task.usual * machine.slowest(1000), 1))
print("ms, all equal, each with 100 and a delay at random, of 1 % in the mean; workers:")
for workers in (1, 10, 100, 1000, 10_000):
    slowest = mg.distributed.Machine(latency=0, bandwidth=1e15, jitter=0.01).slowest(workers)
    print(f"{workers:>6,}: {100 * slowest:.1f}")

# %% [markdown]
# Even if all machines are equal, the slowest of many is slow.
#
# ## Memory: who keeps what?
#
# AdamW keeps two numbers for each parameter, its **state**. In data-parallel training all workers keep the same state, which is a waste. A **sharded optimizer** divides it:
# each worker updates its part of the parameters, and an all-gather gives the new parameters to all.

# %% name="task-sharded-gb"
course.task("sharded_gb")

# %% name="sharded-gb" tags=["question"]
sharded_gb = ...

course.check("sharded_gb")

# %% name="sharded" jupyter={"outputs_hidden": true}
def bytes_of_state(comm):
    w = mg.ones((500, 500), requires_grad=True)
    optimizer = mg.distributed.ShardedOptimizer(mg.optim.AdamW, [w], comm)
    (w * w).sum().backward()
    optimizer.step()
    entries = optimizer.inner.state_dict()["state"].values()
    return w.nbytes, sum(value.nbytes for entry in entries for value in entry.values() if value.ndim)


print("bytes of the parameters and of the state, in each of n workers:")
for workers in (1, 2, 4):
    print(workers, mg.distributed.ThreadCommunicators(workers).run(bytes_of_state)[0])

# %% [markdown]
# In [the exercise](exercises/13_distributed_exercise.ipynb) you plan a ring, write it, and train the digits with it: on 4 processes that exchange messages.
