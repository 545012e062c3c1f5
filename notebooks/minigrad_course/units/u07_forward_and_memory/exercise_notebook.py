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
# # 07 · Forward mode, and memory: a rule, and a plan
#
# Do [07 · Forward mode, and memory](../07_forward_and_memory.ipynb) first. Here you write a rule of forward mode and a Jacobian, and then train a GPT in less than
# half of the memory.

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("07_forward_and_memory", student="")

# %% [markdown]
# ## 1 · A rule for tangents
#
# `mul_jvp(a, b, da, db)` returns the tangent of `a * b`: how fast the product moves when a moves at a speed of da, and b at a speed of db.
# (A rectangle with the sides a and b may help: when both sides grow a little, which two strips are added?)

# %% name="mul_jvp"
def mul_jvp(a, b, da, db):
    ### BEGIN SOLUTION
    return da * b + a * db
    ### END SOLUTION

# %% name="check-mul-jvp"
course.check("mul_jvp")

# %% [markdown]
# In this `with`, minigrad uses your rule for every product in forward mode. Each of the 24 pictures takes three products of arrays, and your rule moves them.
# Turn the angle. (Break your rule, for example with a minus, run both cells again, and see what the tangent does. Then put it right.)

# %% name="your-spot"
row = mg.linspace(-1.5, 1.5, 24)
across, down = row.reshape(1, 24), row.reshape(24, 1)


def spot(angle):
    dx, dy = across - mg.cos(angle), down - mg.sin(angle)
    return mg.exp(-6 * (dx * dx + dy * dy))


with course.forward_rule("multiply", mul_jvp) as mine:
    picture = course.task("mul_jvp").moving(spot)

print(mine)
picture

# %% [markdown]
# ## 2 · By hand

# %% name="task-direction"
course.task("direction")

# %% name="direction"
direction = ...
### BEGIN SOLUTION
direction = 279
### END SOLUTION

# %% name="check-direction"
course.check("direction")

# %% [markdown]
# ## 3 · A Jacobian, column by column {further}
#
# The Jacobian of f at x has a row for each number of f(x) and a column for each number of x. Unit 06 computed its rows by backward passes. `columns(f, x)` computes its
# **columns by forward mode**: `mg.jvp(f, (x,), (v,))` returns f(x) and its tangent when x moves along v. x is a tensor of `x.size` numbers. Return a matrix. These may help:

# %% name="tools"
v = mg.zeros(3)
v[1] = 1.0
print(v.tolist())

left, right = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])
print(mg.stack([left, right]).tolist(), mg.stack([left, right], axis=1).tolist())

# %% name="columns"
def columns(f, x):
    ### BEGIN SOLUTION
    found = []
    for j in range(x.size):
        v = mg.zeros(x.size)
        v[j] = 1.0
        found.append(mg.jvp(f, (x,), (v,))[1])
    return mg.stack(found, axis=1)
    ### END SOLUTION

# %% name="check-columns"
course.check("columns")

# %% [markdown]
# ## 4 · Passes, predicted {further}

# %% name="task-fewest-passes"
course.task("fewest_passes")

# %% name="fewest_passes"
fewest_passes = [..., ..., ..., ...]
### BEGIN SOLUTION
fewest_passes = [1, 1, 4, 1]
### END SOLUTION

# %% name="check-fewest-passes"
course.check("fewest_passes")

# %% [markdown]
# Both ways, counted: your columns, and rows by reverse mode, for a function of 4 numbers that returns 200.

# %% name="counted"
W = mg.random.normal((200, 4))


def f(x):
    return mg.tanh(W @ x)


def rows(f, x):
    value, back = mg.vjp(f, x)
    return mg.stack([back(one)[0] for one in mg.eye(value.size)])


for way in columns, rows:
    with course.Passes(f) as counted:
        way(counted, mg.asarray([0.1, 0.2, 0.3, 0.4]))
    print(way.__name__, counted)

# %% [markdown]
# ## 5 · What is kept, line by line {further}

# %% name="task-kept-list"
course.task("kept_list")

# %% name="kept_list"
kept_list = [..., ..., ..., ..., ..., ...]
### BEGIN SOLUTION
kept_list = [0, 320, 0, 80, 320, 0]
### END SOLUTION

# %% name="check-kept-list"
course.check("kept_list")

# %% [markdown]
# ## 6 · A plan on a picture

# %% name="task-chain-plan"
course.task("chain_plan")

# %% [markdown]
# Click a dotted line between two layers to cut there. The layers between two cuts are one checkpoint, and the layers behind the last cut have none. The curve below shows
# what is kept over time, and the table shows your plan as a list.

# %% name="chain-picture"
course.task("chain_plan").picture()

# %% name="chain_plan"
chain_plan = ...  # a list of sizes
### BEGIN SOLUTION
chain_plan = [4, 3, 2]
### END SOLUTION

# %% name="check-chain-plan"
course.check("chain_plan")

# %% [markdown]
# ## 7 · Run blocks by a plan
#
# `run_blocks(blocks, x, plan)` runs all blocks, one after the other, and returns the last result. blocks is a list of functions. plan is a list of sizes: with
# `[2, 3]`, blocks 0 and 1 run in one checkpoint, blocks 2, 3 and 4 in another, and the rest without a checkpoint. `mg.checkpoint(f)` returns a function, which you
# call with x. This makes one function of several blocks:

# %% name="in-a-row"
def in_a_row(blocks):
    def run(x):
        for block in blocks:
            x = block(x)
        return x

    return run


print(in_a_row([mg.sin, mg.cos, mg.exp][0:2])(mg.asarray(1.0)))

# %% name="run_blocks"
def run_blocks(blocks, x, plan):
    ### BEGIN SOLUTION
    at = 0
    for size in plan:
        x = mg.checkpoint(in_a_row(blocks[at : at + size]))(x)
        at += size
    return in_a_row(blocks[at:])(x)
    ### END SOLUTION

# %% name="check-run-blocks"
course.check("run_blocks")

# %% [markdown]
# ## 8 · A GPT within a budget

# %% name="task-gpt-plan"
course.task("gpt_plan")

# %% name="gpt-picture"
course.task("gpt_plan").picture()

# %% name="gpt_plan"
gpt_plan = ...  # a list of sizes
### BEGIN SOLUTION
gpt_plan = [2, 2]
### END SOLUTION

# %% name="check-gpt-plan"
course.check("gpt_plan")

# %% [markdown]
# Now it counts. The GPT is trained twice for 12 steps, from the same weights, on the same names: without checkpoints, and by **your run_blocks with your plan**. The
# bytes in the picture are counted in the engine itself. This takes some seconds.

# %% name="train"
course.task("gpt_plan").train(run_blocks, gpt_plan)

# %% name="progress"
course.progress()
