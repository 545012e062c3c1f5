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
# # 00 · Start
#
# Fifteen minutes about one number, twenty if you take your time. You need no words from anywhere else: the few that you need are here.
# **Shift+Enter** runs a cell and goes on to the next. Run all of them, from the top; on another day too, when results of the last time stand below them.

# %% name="program"
import minigrad as mg
from minigrad import course

x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
y.item()

# %% [markdown]
# ## A question first
#
# Now **x becomes 1.01. By about how much does y rise?**
#
# Say a number before you compute anything: a guess that turns out wrong is worth more than none. Put yours in the place of the dots, and run the
# cell.

# %% name="rise" tags=["question"]
rise = ...

course.check("rise")

# %% [markdown]
# Now measure it. Change the numbers as you like, here and everywhere else: nothing can break.

# %% name="measure" jupyter={"outputs_hidden": true}
def f(x):
    a = 2 * x
    return a * a + a


print("x rises by 0.01, and y")
print("by", round(f(1.01) - f(1.0), 4))

# %% [markdown]
# The second number is how many times as much? That number stands nowhere in the program. Where does it come from?
#
# ## Look
#
# The next cell makes a picture of the three lines. The **blue** boxes are the values, from top to bottom as they were made (x, which is made of
# nothing, is green). Each has an **orange** box beside it, still empty, for the answer to one question: *how many times as fast as this value
# does y rise?* That number is called the value's **gradient**; the picture writes **∂ a** for the gradient of a. (*scalar* means: one number.)
#
# Press **next** eight times, and look at one box only: **∂ a**.

# %% name="step"
mg.viz.step(y)

# %% [markdown]
# Which numbers did you see in the box ∂ a, from the first to the last? Write them in brackets, with commas between.

# %% name="numbers" tags=["question"]
numbers = ...

course.check("numbers")

# %% [markdown]
# Now press **back** until ∂ a is empty again. Would it be right to show a 0 there, `"yes"` or `"no"`?

# %% name="empty" tags=["question"]
empty = ...

course.check("empty")

# %% [markdown]
# ## Now you are the engine
#
# In the picture press **more ▾**, then **act it out**. From now on nothing happens unless you click an orange box: then it *sends on* to the values that it
# was made from.
#
# 1. Click **∂ y**. It sends 1 to each of the two values that were added. So a 1 has come to ∂ a.
# 2. Be impatient: click **∂ a** at once.
#
# Now ∂ a and ∂ x are red. What does **∂ x** show, and what would be right? (Two numbers, with a comma between.)

# %% name="early" tags=["question"]
early = ...

course.check("early")

# %% [markdown]
# Press **rewind one**, and find an order in which nothing turns red. Which boxes did you click, from the first to the last? The value `a * a` has no name
# in the program; its box is called `"multiply"`. Write the names in brackets, each in quotation marks: `["y", ...]`.

# %% name="order" tags=["question"]
order = ...

course.check("order")

# %% [markdown]
# What you have just done by hand trains every neural network. It has four rules:
#
# 1. Begin with 1 at y.
# 2. A box passes on its own gradient, times how fast it follows what it was made from.
# 3. What comes to the same box is **added**.
# 4. A box sends on only when **everything** has come to it: *order matters*.
#
# In a program it is one line, which finds the order by itself. (It uses up what was kept for it: to run it again, run the first cell again before.)

# %% name="backward" jupyter={"outputs_hidden": true}
y.backward()
print("∂ x is")
print(x.grad.item())

# %% [markdown]
# One thing you took on trust: rule 2, for a product. In [the exercise](exercises/00_start_exercise.ipynb) you write it yourself, see it at work in this same
# picture, and teach a program to read digits with it.
