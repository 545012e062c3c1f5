# %% [markdown] id="title"
# # 00 · Start
#
# Fifteen minutes about one number. You need no words from anywhere else: the few that you need are here. **Shift+Enter** runs a cell and
# goes on to the next.

# %% id="program"
import minigrad as mg
from minigrad import course

x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
y

# %% [markdown] id="question"
# ## A question first
#
# Now **x becomes 1.01. By about how much does y rise?**
#
# Say a number before you compute anything. A guess that turns out wrong is worth more than none: you will remember why. Put yours in place of
# `None` and run the cell.

# %% id="rise"
my_guess = None

course.check("00/rise", my_guess)

# %% [markdown] id="measure-it"
# Now measure it. You may change the numbers, here and everywhere else: nothing can break.

# %% id="measure" reveals
def f(x):
    a = 2 * x
    return a * a + a


(f(1.01) - f(1.0)) / 0.01

# %% [markdown] id="where-from"
# So y rises **ten times as fast** as x. But there is no ten in the program. Where does it come from?
#
# ## Look
#
# Run the next cell for a picture of the three lines of the program. **Blue** boxes are the values, from top to bottom as they were made. Each has an
# **orange** box beside it, still empty, for the answer to one question: *how many times as fast does y rise as this value does?* That number is the
# value's **gradient**. The picture writes ∂a for the gradient of a.
#
# Press **next** eight times. Do no more than look at one box, **∂ a**.

# %% id="step"
mg.viz.step(y)

# %% [markdown] id="what-came"
# Write down what you saw in the box ∂ a, from the first number to the last.

# %% id="saw"
my_numbers = [None]

course.check("00/numbers", my_numbers)

# %% [markdown] id="empty-question"
# Go **back** to the beginning of the orange part: ∂ a is empty. Would it be right to show a 0 there? Answer `"yes"` or `"no"`.

# %% id="empty"
zero_would_be_right = None

course.check("00/empty", zero_would_be_right)

# %% [markdown] id="act-it-out"
# ## Now you are the engine
#
# In the picture, press **more ▾**, then **act it out**. From now on nothing happens unless you click an orange box: it then *sends on* to the values
# that it was made from.
#
# 1. Click **∂ y**. Something has come to ∂ a: 1.
# 2. Be impatient: click **∂ a** at once.
#
# Box ∂ x turns red. What does it show, and what would be right?

# %% id="early"
it_shows, right_is = None, None

course.check("00/early", (it_shows, right_is))

# %% [markdown] id="order-matters"
# Press **rewind one** and find an order in which nothing turns red. Which boxes did you click, from first to last? The box of `a * a`, which has no
# name in the program, is called `"multiply"`.

# %% id="order"
my_order = ["y"]

course.check("00/order", my_order)

# %% [markdown] id="the-rules"
# You have just done by hand what trains every neural network. Its rules are four:
#
# 1. Begin with 1 at y.
# 2. A box passes on its own gradient, times how fast it follows what it was made from.
# 3. What comes to the same box is **added**: here 1, then 3, then 5.
# 4. A box sends on only when **everything** has come to it: *order matters*.
#
# In a program it is one line, and it knows the order by itself:

# %% id="backward"
y.backward()
x.grad

# %% [markdown] id="next"
# One thing you took on trust: rule 2 for a product. In [the exercise](00_start_exercise.ipynb) you write it yourself, see it at work in this picture, and
# teach a program to read digits with it.
