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
# Twenty minutes about one number. You need nothing but multiplication; the few words that you need are explained here.
#
# **Shift+Enter** or the button **▶** above runs a cell and goes to the next one. Run all cells from the top, also on another day, when old results still stand below them. You
# can change every cell, and run it as often as you like: nothing can break.

# %% name="program"
import minigrad as mg
import minigrad_course as course

course.begin("00_start")

x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
y.item()

# %% [markdown]
# ## A question first
#
# Now **x becomes 1.01. By about how much does y rise?**
#
# Say a number before you compute anything: a guess that turns out to be wrong is worth more than none. Replace the dots by your guess, and run the
# cell.

# %% name="rise" tags=["question"]
rise = ...

course.check("rise")

# %% [markdown]
# Now measure it.

# %% name="measure" jupyter={"outputs_hidden": true}
def f(x):
    a = 2 * x
    return a * a + a


print("x rises by 0.01, and y")
print("by", round(f(1.01) - f(1.0), 4))

# %% [markdown]
# How many times as much is the second number? That factor stands nowhere in the program. Where does it come from?
#
# ## Look
#
# The next cell makes a picture of the three lines. It shows the values x, a, `a * a` and y, each of which has a second box. The second box is empty
# at first. It is for the answer to one question: *if this value grows a little, how many times as fast does y grow?* That number is called the
# **gradient** of the value, and ∂a is the gradient of a.
#
# Step to the end with **next**, and look only at the box **∂a**.

# %% name="step"
x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
picture = mg.viz.step(y)
picture  # to share it: picture.save("shared_value.html", says="A value that is used several times gets its gradient in parts.")

# %% [markdown]
# Which numbers did you see in the box ∂a, from the first to the last? Write them in brackets, with commas between them.

# %% name="numbers" tags=["question"]
numbers = ...

course.check("numbers")

# %% [markdown]
# Now press **back** until ∂a is empty again. Would it be right to show a 0 there, `"yes"` or `"no"`?

# %% name="empty" tags=["question"]
empty = ...

course.check("empty")

# %% [markdown]
# ## Now you are the engine
#
# Press **more** in the picture, and turn on **act it out**. Now nothing happens until you click the box of a gradient: then it *sends on* to the values that its value
# was made from.
#
# 1. Click **∂y**. It sends 1 to each of the two values that were added. So a 1 comes to ∂a.
# 2. Be impatient: click **∂a** at once.
#
# Now ∂a and ∂x are red. What does **∂x** show, and what would be right? (Two numbers, with a comma between them.)

# %% name="early" tags=["question"]
early = ...

course.check("early")

# %% [markdown]
# Press **rewind one**, and find an order in which nothing turns red. Which boxes did you click, from the first to the last? Write the names in
# brackets, each in quotation marks: `["y", ...]`. The box of `a * a` has no name of its own: write `"a * a"`.

# %% name="order" tags=["question"]
order = ...

course.check("order")

# %% [markdown]
# You have just done by hand what trains every neural network. It has four rules:
#
# 1. Begin with 1 at y.
# 2. A box sends its gradient on to each value that its own value was made from, times how fast its value follows that one.
# 3. Contributions to the same box are **added**.
# 4. A box sends only when **all** its contributions have come: *order matters*.
#
# In a program it is one line, `y.backward()`, which finds the order for you.

# %% name="backward" jupyter={"outputs_hidden": true}
x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
y.backward()
print("∂x is")
print(x.grad.item())

# %% [markdown]
# One thing was not explained: rule 2, for a product. In [the exercise](exercises/00_start_exercise.ipynb) you write that rule, watch it at work in this
# picture, and teach a program to read digits with it.
