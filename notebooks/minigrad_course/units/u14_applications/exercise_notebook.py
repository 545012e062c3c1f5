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
# # 14 · One abstraction, many applications: four missing pieces
#
# Do [14 · One abstraction, many applications](../14_applications.ipynb) first. This is the capstone of the course: four programs, each with a missing piece, a
# **floor** for each score, and a report in the end.

# %% name="begin"
import numpy as np

import minigrad as mg
import minigrad_course as course

course.begin("14_applications", student="")

# %% [markdown]
# The score always counts data that your piece has not seen: test digits, names that were held out, the other members of the club, new episodes. A floor can be
# reached by luck, so the check compares your piece with the text first, and then trains. Below each check, a cell trains the program with your piece, in about a
# second, and shows what happens: run it with wrong pieces too.
#
# ## 1 · Digits: a gradient without a loss

# %% name="task-scores-grad"
course.task("scores_grad")

# %% name="scores_grad"
def scores_grad(scores, targets):
    ### BEGIN SOLUTION
    s = 0.1
    chances = mg.softmax(scores, axis=-1)
    return (chances - ((1 - s) * targets + s / 10)) / len(scores)
    ### END SOLUTION

# %% name="check-scores-grad"
course.check("scores_grad")

# %% name="digits"
course.task("scores_grad").train(scores_grad)

# %% [markdown]
# ## 2 · Names: what a language model may see

# %% name="task-names-loss"
course.task("names_loss")

# %% [markdown]
# `np.arange(12)[:, None]` is a column of the places i, and `np.arange(12)` a row of the places j: comparing them gives a mask.

# %% name="mask-example"
i, j = np.arange(4)[:, None], np.arange(4)
mg.asarray((i == j).astype(int))

# %% name="names_loss"
def names_loss(model, text):
    ### BEGIN SOLUTION
    i, j = np.arange(12)[:, None], np.arange(12)
    mask = (j <= i) & (j > i - 6)
    scores = model(text[:, :-1], mask)
    return mg.cross_entropy(scores.reshape(-1, 27), text[:, 1:].reshape(-1))
    ### END SOLUTION

# %% name="check-names-loss"
course.check("names_loss")

# %% name="names"
course.task("names_loss").train(names_loss)

# %% [markdown]
# Now leave the mask out on purpose (`mask = np.ones((12, 12), dtype=bool)`), and run the cell of your function and the training again. Look at the loss, the score
# and the names. Then put it right.
#
# ## 3 · The club: messages

# %% name="task-club-loss"
course.task("club_loss")

# %% name="club_loss"
def club_loss(network, pairs, labels, known):
    ### BEGIN SOLUTION
    matrix = np.eye(34)
    matrix[pairs[:, 0], pairs[:, 1]] = 1
    matrix[pairs[:, 1], pairs[:, 0]] = 1
    degree = matrix.sum(1)
    matrix = matrix / np.sqrt(degree[:, None] * degree)
    scores = network(mg.asarray(matrix, dtype=mg.float32))
    known = mg.asarray(known)
    return mg.cross_entropy(scores[known], labels[known])
    ### END SOLUTION

# %% name="check-club-loss"
course.check("club_loss")

# %% name="club"
course.task("club_loss").train(club_loss)

# %% [markdown]
# ## 4 · The pole: which pushes were good? {further}

# %% name="task-pole-loss"
course.task("pole_loss")

# %% name="pole_loss"
def pole_loss(log_chances, stood):
    ### BEGIN SOLUTION
    returns, ahead = np.zeros(stood.shape), 0
    for t in reversed(range(len(stood))):
        returns[t] = ahead = stood[t] + 0.96 * ahead
    weights = (returns - returns[stood > 0].mean()) * stood
    return -(log_chances * mg.asarray(weights, dtype=mg.float32)).sum() / stood.sum()
    ### END SOLUTION

# %% name="check-pole-loss"
course.check("pole_loss")

# %% name="pole"
course.task("pole_loss").train(pole_loss)

# %% [markdown]
# Turn the sign round on purpose, train, and look at the poles. Then put it right.
#
# ## 5 · One line, eight rooms

# %% name="task-line-rooms"
course.task("line_rooms")

# %% name="line_rooms"
line_rooms = ...  # eight letters, in quotation marks
### BEGIN SOLUTION
line_rooms = "DECBFGAH"
### END SOLUTION

# %% name="check-line-rooms"
course.check("line_rooms")

# %% [markdown]
# ## 6 · The report
#
# Three sentences, for a reader who has not seen this notebook: what the four programs **share**, where they **differ**, and what the four scores **do not say**.

# %% name="sentences"
sentences = ...  # ["...", "...", "..."]
### BEGIN SOLUTION
sentences = [
    "All four programs run the same four lines in each step, on the same primitives.",
    "They differ in their data, in their model, and in one piece of a few lines.",
    "The score of the club counts 32 members, so one member more is 3 percent.",
]
### END SOLUTION

# %% name="check-sentences"
course.check("sentences")

# %% name="report"
page = course.task("sentences").report(sentences)
print(page.table())
page  # page.save("capstone.html") writes it to a file, to print or to hand in

# %% [markdown]
# Your four graphs, with what they share:

# %% name="shared"
course.task("sentences").report(sentences).picture()

# %% [markdown]
# ## Your framework trains a GPT
#
# Everything that you have written in this course, in the engine's place at once, trains the small GPT. (Where MPI is installed, the Message Passing Interface of unit 13, `course.my_framework("names", ranks=4)` trains it on four
# processes, and your ring of unit 13 adds up their gradients.)

# %% name="my-framework"
course.my_framework("names")

# %% name="progress"
course.progress()
