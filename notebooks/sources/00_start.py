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
# Fifteen minutes, one example, numbers only. Run each cell with Shift-Enter.
#
# $x$ is 1. From it we make $a = 2x$, and from that $y = a^2 + a$. So $a = 2$ and $y = 6$. Before you go on, guess: **if x becomes
# 1.01, by about how much does y rise?** A little more than 0.01, twice as much, ten times as much?

# %% name="guess"
def y_of(x):
    a = 2 * x
    return a * a + a


print(f"y goes from {y_of(1.0):g} to {y_of(1.01):.4f}")

# %% [markdown]
# Ten times as far as x. That number, how many times faster than x the result moves, is the *gradient* of y with respect to x.
# Here it took two runs to find one gradient, and it is only nearly 10. The library finds it in one go, for everything that y was
# made from, by going backward.

# %% name="example"
import minigrad as mg

x = mg.asarray(1.0, requires_grad=True)
a = 2 * x
y = a * a + a
mg.viz.step(y)

# %% [markdown]
# Press → (or the button ›) and watch three things: which line of code is being undone, what is passed back, and what `a` shows. Its
# gradient is "not yet", then 1, then 3, then 5: `y` uses `a` three times, once in `+ a` and twice in `a * a`, and each use has its
# part. Only then does `a` pass it on to `x`, times 2.

# %% name="gradients"
y.backward(retain_graph=True)
print("gradient of x:", x.grad.item())
for step in mg.autodiff.walk([y.node], [mg.ones(())]):
    print(f"{step.node.name:8} passes {step.value.item():g} to input {step.index}")

# %% [markdown]
# What if `a` passes on what it has too early, when only the 1 of `+ a` has come? Then `x` shows 2 · 1 = 2 instead of 10. So *order
# matters*: a value may pass its gradient on only when all who used it have been heard.
#
# Now it is your turn: open `exercises/00_start.ipynb`.
