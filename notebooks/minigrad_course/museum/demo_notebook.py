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
# # The museum of misconceptions
#
# Fifteen questions that people asked in public. Each has a picture that is drawn from a wrong belief, and the picture contradicts itself in one place.
# **Change the answer in the cell until the picture is right.** Each wrong repair has its own hint; the right picture is computed by the library.
# Points are not given. Begin anywhere: a repaired picture names the notebooks that say more. `course.progress()` shows which pictures you have repaired.

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("museum")

# %% [markdown]
# ## 1 · A node that sends too early

# %% name="task-visiting-order"
course.task("visiting_order")

# %% name="visiting-order"
visiting_order = ["y", "b", "a", "c"]

course.check("visiting_order")

# %% [markdown]
# ## 2 · Gradients of all steps together

# %% name="task-clear-gradients"
course.task("clear_gradients")

# %% name="clear-gradients"
def clear_gradients(loss_of, optimizer):
    for _ in range(20):
        loss = loss_of()
        loss.backward()
        optimizer.step()


course.check("clear_gradients")

# %% [markdown]
# ## 3 · What the first backward() frees

# %% name="task-keep-flags"
course.task("keep_flags")

# %% name="keep-flags"
keep_flags = [False, False, False]

course.check("keep_flags")

# %% [markdown]
# ## 4 · What a write in place spoils

# %% name="task-stopped"
course.task("stopped")

# %% name="stopped"
stopped = ["A", "B", "C", "D", "E"]

course.check("stopped")

# %% [markdown]
# ## 5 · Where detach and no_grad cut

# %% name="task-carrying-arrows"
course.task("carrying_arrows")

# %% name="carrying-arrows"
carrying_arrows = ["A", "B", "C", "D", "E", "F", "G"]

course.check("carrying_arrows")

# %% [markdown]
# ## 6 · Six names, how many arrays?

# %% name="task-sees-the-write"
course.task("sees_the_write")

# %% name="sees-the-write"
sees_the_write = []

course.check("sees_the_write")

# %% [markdown]
# ## 7 · The name on the wrong box

# %% name="task-make-weights"
course.task("make_weights")

# %% name="make-weights"
def make_weights():
    w = mg.ones(3, requires_grad=True) * 0.1
    return w


course.check("make_weights")

# %% [markdown]
# ## 8 · When the Python code runs

# %% name="task-body-runs"
course.task("body_runs")

# %% name="body-runs"
body_runs = [1, 1, 1, 1, 1]

course.check("body_runs")

# %% [markdown]
# ## 9 · Random numbers in a trace

# %% name="task-different-numbers"
course.task("different_numbers")

# %% name="different-numbers"
different_numbers = {"by_numpy": 4, "by_minigrad": 4}

course.check("different_numbers")

# %% [markdown]
# ## 10 · A clock that does not wait

# %% name="task-timed-lines"
course.task("timed_lines")

# %% name="timed-lines"
timed_lines = ["start", "run", "stop", "synchronize"]

course.check("timed_lines")

# %% [markdown]
# ## 11 · Two switches

# %% name="task-switches"
course.task("switches")

# %% name="switches"
switches = {"dropout": "no_grad", "batch_norm": "no_grad", "graph": "no_grad"}

course.check("switches")

# %% [markdown]
# ## 12 · What fusion makes less

# %% name="task-after-fusion"
course.task("after_fusion")

# %% name="after-fusion"
after_fusion = {"kernels": 1, "operations": 1, "MB": 24}

course.check("after_fusion")

# %% [markdown]
# ## 13 · Sum or mean of four workers

# %% name="task-factors"
course.task("factors")

# %% name="factors"
factors = [1, 1, 1, 1]

course.check("factors")

# %% [markdown]
# ## 14 · The same numbers, two sums

# %% name="task-two-sums"
course.task("two_sums")

# %% name="two-sums"
two_sums = {"one_by_one": 2, "in_pairs": 2}

course.check("two_sums")

# %% [markdown]
# ## 15 · A branch that is not chosen

# %% name="task-root"
course.task("root")

# %% name="root"
def root(x):
    return mg.where(x < 1.0, x, mg.sqrt(x))


course.check("root")
