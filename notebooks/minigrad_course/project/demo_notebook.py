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
# # The project: a question of your own
#
# This is the starter. It runs as it is, with a small example in each section: replace them one by one. The page "The project" of the site has the rubric; `project_primitive.ipynb`,
# `project_newton.ipynb` and `project_diffusion.ipynb` are finished projects. Plan for 10 to 15 hours: 2 for the question and the prediction, 5 for the program and its tests, 3 for the measurement
# and the picture, 2 for the report.

# %% name="begin"
import numpy as np

import minigrad as mg
import minigrad_course as course
from minigrad_course.counting import fastest
from minigrad_course.views.costs import quickest

course.begin("project", student="")

# %% [markdown]
# ## 1 · Your framework
#
# What you have written in the course, by name. Use it, or replace a part of it with a better one. `course.my_framework()` shows what all of it does together.

# %% name="pieces" tags=["nbval-ignore-output"]
mine = course.my_pieces()
print(", ".join(mine) or "No function of yours has passed its check yet: the engine does all of it.")
course.my_framework() if mine else None

# %% [markdown]
# ## 2 · Question and prediction
#
# One question that a number answers. Write down the number that you expect **before** you write the program, and why.

# %% name="project"
project = {
    "question": "How many times as few kernels does x³ need as one operation, with its gradient?",
    "prediction": "3 times as few: x * x * x is two products, and each product has a gradient with two more",
    "measured": "...",
    "failed": "...",
    "help": "...",  # an assistant, a classmate, a paper: what you asked, and what you kept of the answer
}

# %% [markdown]
# ## 3 · The program
#
# Short functions, each with a sentence that says what it returns. Where a function of yours can take the engine's place, let it: `course.backward`, `course.rule`, `course.scheduler`,
# `course.compiler_pass` (see `help(course)`).

# %% name="program"
@mg.custom_vjp
def cube(x):
    return x**3


@cube.defines
def _(x):
    return x**3, x  # the result, and what the gradient needs


@cube.gradient
def _(x, g):
    return (3 * x * x * g,)


# %% [markdown]
# ## 4 · The tests
#
# Against a formula or NumPy, in float64. The gradient against finite differences. Every mode: eager, `mg.jit`, `mg.vmap`. Inputs where it breaks: empty, 0-d, nan, a view.

# %% name="tests"
x = mg.asarray([-1.5, 0.0, 2.0], dtype=mg.float64)
for f in (cube, mg.jit(cube), mg.vmap(cube)):
    assert np.allclose(f(x).numpy(), x.numpy() ** 3)
assert mg.gradcheck(cube, [x], order=2)
assert cube(mg.zeros((2, 0))).shape == (2, 0) and np.isnan(cube(mg.asarray(float("nan"))).item())
print("all tests passed")

# %% [markdown]
# ## 5 · The measurement
#
# A ratio of two ways to do the same. Counts first, because they are the same on every machine. Then times, which `fastest` measures in turns.

# %% name="counts"
def product(x):
    return x * x * x


def gradient(f):
    return mg.grad(lambda x: f(x).sum())


def counted(f, x):
    """The kernels that f launches in eager mode, and the kB that they read and write."""
    kernels = quickest(f, x, runs=1)
    return len(kernels), sum(each.bytes for each in kernels) / 1000


points = mg.ones(100_000)
for name, f in (("x * x * x", product), ("cube", cube)):
    kernels, moved = counted(gradient(f), points)
    print(f"{name:10} {kernels:2} kernels, {moved:,.0f} kB")

# %% name="times" tags=["nbval-ignore-output"]
ways = [gradient(product), gradient(cube)]
slow, fast = fastest([lambda way=way: way(points) for way in ways], 20)
print(f"{slow / fast:.1f} times as fast on this machine")

# %% [markdown]
# ## 6 · The picture
#
# One picture that shows the answer without the text. `picture.save("project.html")` writes it to a file.

# %% name="figure"
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page


def figure(title, words, lines, what, **options):
    drawing = Drawing(760, 300)
    curves(drawing, (0, 0, 610, 280), lines, what, **options)
    return Flipbook(title, [[Page(drawing, words)]], words=words)


sizes = [10, 100, 1_000, 10_000]
lines = {
    name: [(size, counted(gradient(f), mg.ones(size))[1]) for size in sizes]
    for name, f in (("x * x * x", product), ("cube", cube))
}
picture = figure("Bytes of a cube and its gradient", "The cube moves fewer bytes, at every size.", lines,
                 "kB read and written, by numbers", log_across=True)
picture

# %% [markdown]
# ## 7 · What failed
#
# What did not work, why, and how you know. Then complete the form, and check it:

# %% name="form"
project |= {
    "measured": "1.25 times as few kernels, 1.6 times as few bytes",
    "failed": "My prediction was wrong: the sum and its gradient take kernels too, the same for both, and I had not counted them.",
    "help": "none",
}

# %% name="check-project"
course.check("project", project)

# %% [markdown]
# Hand in this notebook, in which all cells have been run from the top, and the picture. `python3 course grade` lists whether the form is complete; your teacher grades by the rubric.
