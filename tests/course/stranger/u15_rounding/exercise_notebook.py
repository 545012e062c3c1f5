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
# # 15 · Rounding: your turn

# %% name="name"
student = ""

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("15_rounding", student)

# %% name="task-to-steps"
course.task("to_steps")

# %% name="to_steps"
def to_steps(x):
    ### BEGIN SOLUTION
    return mg.round(x / 0.2) * 0.2
    ### END SOLUTION

# %% name="check-to-steps"
course.check("to_steps")
