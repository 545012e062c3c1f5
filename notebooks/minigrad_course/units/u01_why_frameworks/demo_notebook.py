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
# # 01 · Why frameworks
#
# A neural network is a few matrix products. Twelve lines of NumPy can train one. Then why is there PyTorch, TensorFlow or JAX, with millions of lines? In this
# notebook you change **one** line of such a program, and look at what happens. Then you test three kinds of systems with small programs, and look at what one line
# of code does inside a framework. You need [unit 00](00_start.ipynb).

# %% name="setup"
import numpy as np

import minigrad as mg
import minigrad_course as course

course.begin("01_why_frameworks")

# %% [markdown]
# ## A gradient by hand
#
# This function trains nothing yet. It computes the gradients of a network that reads handwritten digits: `x` has a picture in each row, 64 numbers, and `t` has a 1 at the
# right digit. W and V are the weights. The first part goes **forward**: to the share `p` that each of the ten digits gets. The second part goes **backward**, as you
# did in unit 00, and a person wrote it. `dz` is the gradient of `z`. You need not follow each line now: in the exercise you will write them yourself.

# %% name="gradient"
def gradient(x, t, W, V):
    z = x @ W
    h = np.tanh(z)
    e = np.exp(h @ V)
    p = e / e.sum(1, keepdims=True)

    do = (p - t) / len(x)
    dV = h.T @ do
    dz = (do @ V.T) * (1 - h * h)
    dW = x.T @ dz
    return dW, dV

# %% [markdown]
# The slope of tanh is 1 − h². Now we want another activation, the sigmoid: `h = 1 / (1 + np.exp(-z))`, whose slope is h · (1 − h). **How many lines of `gradient` have to
# change?**

# %% name="lines-to-change" tags=["question"]
lines_to_change = ...

course.check("lines_to_change")

# %% [markdown]
# Suppose that you change the first of these lines, and forget the other one: the forward pass is that of the sigmoid, the backward pass still that of tanh. So the gradient of W
# is wrong. The network trains for 60 steps, and then it is tested with 360 digits that it has not seen. With the right gradient it reads 281 of them.
#
# **How many does it read with the wrong gradient?** Choose one: `"an error"`, `"none"`, `"fewer"`, `"as many"`, `"more"`.

# %% name="forgotten-line" tags=["question"]
forgotten_line = ...

course.check("forgotten_line")

# %% name="both" jupyter={"outputs_hidden": true}
def one_line_forgotten(x, t, W, V):
    z = x @ W
    h = 1 / (1 + np.exp(-z))
    e = np.exp(h @ V)
    p = e / e.sum(1, keepdims=True)

    do = (p - t) / len(x)
    dz = (do @ V.T) * (1 - h * h)  # forgotten
    return x.T @ dz, h.T @ do


def both_lines_changed(x, t, W, V):
    z = x @ W
    h = 1 / (1 + np.exp(-z))
    e = np.exp(h @ V)
    p = e / e.sum(1, keepdims=True)

    do = (p - t) / len(x)
    dz = (do @ V.T) * (h * (1 - h))
    return x.T @ dz, h.T @ do


train = course.task("forgotten_line").train
print("digits read, of 360:")
for function in one_line_forgotten, both_lines_changed:
    print(train(function).right, function.__name__)

# %% [markdown]
# No error, and the wrong gradient is *ahead*. Train for 200 steps instead, and look at the losses:

# %% name="later" jupyter={"outputs_hidden": true}
course.task("forgotten_line").beside(
    one_line_forgotten=train(one_line_forgotten, 200), both_lines_changed=train(both_lines_changed, 200)
)

# %% [markdown]
# A wrong gradient is not an error: it is a number like any other. It can look like success for a while. This happened in real libraries:
# [darknet](https://github.com/pjreddie/darknet/pull/96) had a softmax whose backward pass passed the gradient on unchanged.
#
# In a framework, the activation is one word: `mg.tanh` becomes `mg.sigmoid`. The backward pass follows from the forward pass, so there is no second line to forget. And it finds
# out which of the two functions is right:

# %% name="one-word" jupyter={"outputs_hidden": true}
images, labels = (mg.asarray(each[:100]) for each in mg.data.digits()[0].arrays)
W, V = (mg.asarray(np.random.default_rng(0).normal(size=size), requires_grad=True) for size in [(64, 32), (32, 10)])
x = images.reshape(100, 64).astype(W.dtype)

mg.cross_entropy(mg.sigmoid(x @ W) @ V, labels).backward()

arrays = x.numpy(), np.eye(10)[labels.numpy()], W.detach().numpy(), V.detach().numpy()
for function in one_line_forgotten, both_lines_changed:
    dW, dV = function(*arrays)
    print(function.__name__, "computes dW as the engine does:", np.allclose(dW, W.grad.numpy()))

# %% [markdown]
# ## Three kinds of systems
#
# Machine learning grew by three factors: **algorithms** (networks), **hardware** (GPUs and TPUs, 10 to 100 times as fast as a CPU), and **data** (petabytes, in data centres with
# 100,000s of machines). For each there was a kind of system before there were frameworks. The first kind are **libraries of layers**, such as Caffe (Theano
# is often named with it, although it has automatic differentiation). Here is one, complete:

# %% name="library"
class Dense:
    def __init__(self, inputs, outputs):
        self.W = np.random.default_rng(0).normal(size=(inputs, outputs)) / inputs**0.5

    def forward(self, x):
        self.x = x  # for the backward pass
        return x @ self.W

    def backward(self, g):
        self.dW = self.x.T @ g
        return g @ self.W.T


class Tanh:
    def forward(self, x):
        self.out = np.tanh(x)
        return self.out

    def backward(self, g):
        return g * (1 - self.out * self.out)


class Chain:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, g):
        for layer in reversed(self.layers):
            g = layer.backward(g)
        return g


Chain(Dense(64, 32), Tanh(), Dense(32, 10)).forward(np.ones((5, 64))).shape

# %% [markdown]
# A layer brings its own backward pass, written by hand. Caffe has such functions in C++ for the CPU, and others for the GPU. Suppose that there are more kinds of
# processors:

# %% name="new-layer-asked"
course.task("new_layer")

# %% name="new-layer" tags=["question"]
new_layer = ...

course.check("new_layer")

# %% [markdown]
# The second kind are **data-parallel systems**, such as Spark (and Giraph, for graphs). Data lies in parts on many machines. `map` runs a function on each part, `reduce`
# combines the results:

# %% name="parts"
class Parts:
    def __init__(self, parts):
        self.parts = parts

    def map(self, f):
        return Parts([f(part) for part in self.parts])

    def reduce(self, f):
        total = self.parts[0]
        for part in self.parts[1:]:
            total = f(total, part)
        return total


print(Parts([[1, 2], [3], [4, 5, 6]]).map(sum).reduce(lambda a, b: a + b))

# %% [markdown]
# Six small programs try what a system can do:
#
# 1. make a network of two layers and run it
# 2. compute the gradient of a function of yours, x / (1 + exp(−x)), without its formula
# 3. read three lines of text in JSON, of which one is damaged, and keep the two others
# 4. save the weights of a network, load them into another, and get the same result (training, then **inference**)
# 5. add two arrays on another processor
# 6. add numbers that lie on three machines
#
# **Which of them run on the library of layers, as it stands above? Which on the data-parallel system?** Write `"yes"` or `"no"` for each of the six, in brackets.

# %% name="layers-row" tags=["question"]
layers_row = ...

course.check("layers_row")

# %% name="parallel-row" tags=["question"]
parallel_row = ...

course.check("parallel_row")

# %% [markdown]
# The next cell runs all 18 programs. Where you predicted the result, its place has a green frame. Below each result stands what the table of the lecture *Machine Learning Frameworks* (L. Mai) says: ✓ yes, ~ partly, × no. (The table calls
# the columns neural networks, automatic differentiation, un/semi-structured data management, training & inference, heterogeneous processors, distributed execution.)

# %% name="board" jupyter={"outputs_hidden": true}
course.task("layers_row").board(Chain, Dense, Tanh, Parts)

# %% [markdown]
# Where do the table and the programs disagree, and who is right? Caffe is larger than our library. And what would "data management" have to mean, so that the table is right for Spark? A table
# is a claim. A program can test it.
#
# ## The same layer twice
#
# Can a library of layers be used more freely?

# %% name="twice-in-chain-asked"
course.task("twice_in_chain")

# %% name="twice-in-chain" tags=["question"]
twice_in_chain = ...

course.check("twice_in_chain")

# %% name="twice" jupyter={"outputs_hidden": true}
layer, x, turns = Dense(3, 3), np.array([[1.0, 2.0, -1.0]]), course.task("twice_in_chain").turns

chain = Chain(*[layer, Tanh()] * turns)
chain.backward(np.ones_like(chain.forward(x)))
print("first row of dW, by the library:  ", layer.dW[0].round(3).tolist())

W, h = mg.asarray(layer.W, requires_grad=True), mg.asarray(x)
for _ in range(turns):
    h = mg.tanh(h @ W)
h.sum().backward()
print("first row of dW, by the framework:", W.grad.numpy()[0].round(3).tolist())

# %% [markdown]
# The framework records what was computed, not which layers there are. So a loop, a branch or a weight that is used twice is nothing special: the program is plain Python. This
# is what is meant by **flexibility**. Set `turns` to 10: no other line changes. Set it to 1: both agree.
#
# ## What a framework consists of
#
# Four **core components**: **L** a library for numerical linear algebra, **H** hardware support, **B** a backpropagation engine, **N** a library for networks. Which line uses
# which?
#
# | | line |
# |---|---|
# | A | `x @ W` |
# | B | `x.to("cpu:1")` |
# | C | `loss.backward()` |
# | D | `nn.Linear(64, 32)` |

# %% name="components" tags=["question"]
components = {"A": ..., "B": ..., "C": ..., "D": ...}

course.check("components")

# %% [markdown]
# Seen from above, they are three layers:
#
# * the **front end**, or programming abstraction: what you write, in Python
# * the **execution engine**: it *records* the operations of the forward pass, and calls a *gradient rule* for each step back
# * the **hardware runtime**: it *launches* a *kernel* for each operation, on the processor where the arrays are
#
# Take these three lines. x is data, W and b are weights.
#
# ```python
# y = mg.exp(mg.tanh(x @ W + b)).sum()
# y.backward()
# optimizer.step()
# ```
#
# **How many operations does the engine record in line 1? How many in line 2? And how many gradient rules does line 2 call?** Three numbers, in brackets.

# %% name="line-counts" tags=["question"]
line_counts = ...

course.check("line_counts")

# %% [markdown]
# The next cell runs the three lines, and counts. A right prediction lights its place.

# %% name="stack" jupyter={"outputs_hidden": true}
picture = course.task("line_counts").stack()
picture  # to share it: picture.save("stack.html", says="Three lines of Python, and what runs in the layers of a framework below them.")

# %% [markdown]
# ## Two languages
#
# You write Python, but the numbers are computed in another language. Here is the path of one line, from function to function. Read down to the last level. **Which one is not Python?**
# Write the small words above its name, for example `"your line"`.

# %% name="one-line"
x = mg.ones((2, 3))
mg.viz.bench(lambda: mg.tanh(x))

# %% name="last-python" tags=["question"]
last_python = ...

course.check("last_python")

# %% [markdown]
# Python is the **front-end language**: easy to write, slow to run. The **back-end languages** are C, C++ and CUDA. Frameworks differ in the front end (PyTorch, TensorFlow, JAX), and call the
# same libraries below.
#
# ## What size gains, and what it does not
#
# First the data:

# %% name="petabyte-asked"
course.task("petabyte")

# %% name="petabyte" tags=["question"]
petabyte = ...

course.check("petabyte")

# %% [markdown]
# Now the processor. A TPU computes matrix products 100 times as fast. How many times as fast is a training step, of which these products were a part? Choose the share:

# %% name="gains" jupyter={"outputs_hidden": true}
print("share of the products, and the gain:")
for share in 0.5, 0.6, 0.9, 0.99, 1.0:
    print(f"{share:4.0%}  {1 / (1 - share + share / 100):6.2f}")

# %% [markdown]
# So a framework must care for **all** of a step: data, Python, launches, copies. That is what the next units are about.
#
# ## To read
#
# * *Deep Learning with PyTorch: A 60 Minute Blitz*, <https://pytorch.org/tutorials/beginner/deep_learning_60min_blitz.html>
# * M. Abadi and others, *TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems* (2015), <https://arxiv.org/abs/1603.04467>
# * A. Paszke and others, *PyTorch: An Imperative Style, High-Performance Deep Learning Library* (2019), <https://arxiv.org/abs/1912.01703>
#
# The Blitz begins with a **tensor** (an array that records how it was made), then lets the engine differentiate. The same lines run here, with another name for the library. Change `Q` to a function of your own, and run it
# again:

# %% name="blitz" tags=["change"] jupyter={"outputs_hidden": true}
a = mg.asarray([2.0, 3.0], requires_grad=True)
b = mg.asarray([6.0, 4.0], requires_grad=True)
Q = 3 * a**3 - b**2
Q.backward(gradient=mg.asarray([1.0, 1.0]))
print(a.grad.tolist(), (9 * a**2).tolist())
print(b.grad.tolist(), (-2 * b).tolist())

# %% [markdown]
# In [the exercise](exercises/01_why_frameworks_exercise.ipynb) you write the gradient by hand, train with it, and swap the activation.
