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
# # 15 · Rounding

# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("15_rounding")

# %%
exact_sum = ...

course.check("exact_sum")

# %% name="sum"
mg.round(mg.asarray([1.5, 2.5, 3.5]))

# %%
halves = ...

course.check("halves")

# %%
grid_numbers = ...

course.check("grid_numbers")
