"""The page for users of PyTorch, NumPy or JAX: names, from the table of hints, and habits.

Each habit is a function below, whose docstring is its part of the page; its example is run as a test.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import NamedTuple

import minigrad as mg
from minigrad.support.synonyms import Synonym, synonyms

LIBRARIES = {"torch": "torch", "numpy": "np", "jax": "jnp"}
PLACES = {
    "minigrad": "Functions",
    "minigrad.nn": "Layers, `mg.nn`",
    "minigrad.optim": "Optimizers, `mg.optim`",
    "minigrad.random": "Random numbers, `mg.random`",
    "x": "Methods and attributes of a tensor `x`",
    "model": "Methods of a module `model`",
    "=": "Keyword arguments",
}
HABITS: list[Callable[[], None]] = []


def habit(function: Callable[[], None]) -> Callable[[], None]:
    """Add a habit to the page."""
    HABITS.append(function)
    return function


@habit
def cutting() -> None:
    """`split(x, 2)` makes two parts, not parts of size 2

    As in NumPy and JAX, the number is the number of parts, and a list has the positions of the cuts. In PyTorch, the
    number is the size of each part, and a list has all sizes.

    ```python
    torch.split(torch.arange(6), 2)  # three parts of size 2
    torch.split(torch.arange(6), [2, 1, 3])
    ```

    >>> x = mg.arange(6)
    >>> [part.tolist() for part in mg.split(x, 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in mg.split(x, [2, 3])]
    [[0, 1], [2], [3, 4, 5]]
    """


@habit
def padding() -> None:
    """`pad(x, [1, 1])` pads all dimensions

    As in NumPy and JAX, a pair holds for every dimension, and a list of pairs has one for each dimension, the first one
    first. In PyTorch, the numbers begin with the last dimension, and dimensions without numbers stay.

    ```python
    torch.nn.functional.pad(torch.ones(2, 2), [1, 1])  # shape (2, 4)
    ```

    >>> mg.pad(mg.ones((2, 2)), [1, 1]).shape
    (4, 4)
    >>> mg.pad(mg.ones((2, 2)), [(0, 0), (1, 1)]).shape
    (2, 4)
    """


@habit
def classes() -> None:
    """`cross_entropy` has the classes last

    In PyTorch, the classes are dimension 1: (N, C, L). Here they are the last dimension of any number of dimensions:
    (N, L, C). If sizes show the mistake, it is an error with a hint. If the number of classes is the length, so that
    both orders fit, it is a warning, once for each line.

    ```python
    loss = torch.nn.functional.cross_entropy(logits, targets)  # logits (N, C, L), targets (N, L)
    ```

    >>> logits, targets = mg.zeros((8, 5, 7)), mg.zeros((8, 7), dtype=mg.int64)  # 5 classes
    >>> mg.cross_entropy(mg.moveaxis(logits, 1, -1), targets).item()
    1.609...
    """


@habit
def deviation() -> None:
    """`std` and `var` divide by n

    As in NumPy and JAX. PyTorch divides by n - 1; `correction=1` does it here.

    ```python
    torch.tensor([1.0, 3.0]).std()  # 1.4142
    ```

    >>> x = mg.asarray([1.0, 3.0])
    >>> x.std().item(), x.std(correction=1).item()
    (1.0, 1.414...)
    """


@habit
def largest() -> None:
    """`x.max(1)` returns only the values

    As in NumPy and JAX. In PyTorch it returns the positions too; here `argmax` does, and `topk` returns both.
    `mg.sort` and `mg.argsort` are separate in the same way.

    ```python
    values, indices = torch.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)
    ```

    >>> x = mg.asarray([[1.0, 5.0], [7.0, 2.0]])
    >>> x.max(1).tolist(), x.argmax(1).tolist()
    ([5.0, 7.0], [1, 0])
    """


@habit
def random_numbers() -> None:
    """Under `vmap`, all examples share one random number

    A function under `mg.vmap` draws once for all examples, as PyTorch does with `randomness="same"`; PyTorch's default
    is an error. JAX draws from a key for each example. Draw outside, and pass a number for each example.

    ```python
    keys = jax.random.split(jax.random.key(0), 3)
    jax.vmap(lambda x, key: x + jax.random.uniform(key))(jnp.zeros(3), keys)
    ```

    >>> same = mg.vmap(lambda x: x + mg.random.uniform())(mg.zeros(3))
    >>> len(set(same.tolist()))
    1
    >>> different = mg.vmap(lambda x, noise: x + noise)(mg.zeros(3), mg.random.uniform(3))
    >>> len(set(different.tolist()))
    3
    """


@habit
def random_state() -> None:
    """Generators have a state

    `mg.random` draws from a default generator, as in PyTorch. JAX's functions take a key, which a program splits. Here
    a `Generator(seed)` of your own takes the place of the key, and goes on by itself, in a jitted function too.

    ```python
    key, part = jax.random.split(jax.random.key(0))
    jax.random.normal(part, (2,))
    ```

    >>> generator = mg.random.Generator(0)
    >>> generator.normal(2).shape, generator.uniform(2, low=1.0, high=2.0).shape
    ((2,), (2,))
    """


@habit
def sizes() -> None:
    """`x.size` is a number, and `zeros` takes one shape

    As in NumPy and JAX, `x.size` counts the elements, without parentheses; PyTorch's `x.size()` is `x.shape`. A shape
    is one argument.

    ```python
    torch.zeros(2, 3).size(1)
    ```

    >>> x = mg.zeros((2, 3))
    >>> x.shape[1], x.size
    (3, 6)
    """


@habit
def repeating() -> None:
    """`repeat` repeats elements

    As in NumPy and JAX. PyTorch's `x.repeat` is `mg.tile`, and its `repeat_interleave` is `mg.repeat`.

    ```python
    torch.tensor([1, 2]).repeat(2)  # 1, 2, 1, 2
    ```

    >>> mg.repeat(mg.asarray([1, 2]), 2).tolist(), mg.tile(mg.asarray([1, 2]), 2).tolist()
    ([1, 1, 2, 2], [1, 2, 1, 2])
    """


@habit
def updates() -> None:
    """An update of parameters stands under `no_grad`, not on `.data`

    `p.data` is the raw NumPy array, and cannot be replaced, because views, the history and compiled programs refer to
    the tensor.

    ```python
    p.data -= 0.1 * p.grad
    ```

    >>> p = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> (p * p).sum().backward()
    >>> with mg.no_grad():
    ...     p -= 0.1 * p.grad
    >>> p.tolist()
    [0.8..., 1.6...]
    """


@habit
def writes() -> None:
    """Tensors can be changed in place, in `jit` too

    JAX's arrays cannot be changed; `x.at[i].set(v)` makes a new one. Here `x[i] = v` changes the tensor and its views,
    as in PyTorch and NumPy, and gradients take the change into account.

    ```python
    x = x.at[0].set(1.0)
    ```

    >>> f = mg.jit(lambda x: write(x.copy()))
    >>> def write(x):
    ...     x[0] = 1.0
    ...     return x
    >>> f(mg.zeros(3)).tolist()
    [1.0, 0.0, 0.0]
    """


@habit
def number_types() -> None:
    """A float is a float32

    NumPy makes float64 of Python's floats. Here they become float32, as in PyTorch and JAX. A NumPy array keeps its
    dtype.

    ```python
    np.asarray([1.0]).dtype  # float64
    ```

    >>> import numpy as np
    >>> mg.asarray([1.0]).dtype, mg.asarray(np.asarray([1.0])).dtype
    (dtype('float32'), dtype('float64'))
    """


@habit
def shape_first() -> None:
    """The shape is the first argument of random numbers

    As in JAX, after its key. In NumPy it is the last one. The others have names here, so that `normal(0, 1, 5)` is an
    error and not an empty tensor.

    ```python
    np.random.normal(0.0, 0.1, 5)
    np.random.uniform(-1, 1, (3, 2))
    ```

    >>> mg.random.normal(5, mean=0.0, std=0.1).shape, mg.random.uniform((3, 2), low=-1, high=1).shape
    ((5,), (3, 2))
    """


@habit
def numbers_in_jit() -> None:
    """`jit` traces again for each new Python number

    In JAX, a number among the arguments is an array. Here it is part of the kind of the call, as a string is, so that
    `if n > 3` and `range(n)` work. Make a tensor of a number that changes, such as a count of steps.

    ```python
    step = jax.jit(lambda x, n: x * (1 - 0.9**n))  # traced once
    ```

    >>> step = mg.jit(lambda x, n: x * (1 - 0.9**n))
    >>> for n in range(1, 4):
    ...     y = step(mg.ones(2), mg.asarray(n))
    >>> len(step.traces)
    1
    """


@habit
def changes_in_jit() -> None:
    """A function under `jit` changes tensors, and no other objects

    In JAX, a change of an attribute happens once, while the function is traced, and leaves a tracer in it. Here it is
    a `TraceError`. Return the new value, or put the old one back, as methods made pure do:

    ```python
    def pure(params, x):
        model.params = params
        return model(x)
    ```

    >>> class Model:
    ...     def __init__(self):
    ...         self.params = {"w": mg.ones(2)}
    ...     def __call__(self, x):
    ...         return (self.params["w"] * x).sum()
    >>> model = Model()
    >>> def pure(params, x):
    ...     own, model.params = model.params, params
    ...     result = model(x)
    ...     model.params = own
    ...     return result
    >>> mg.jit(mg.grad(pure))(model.params, mg.ones(2))["w"].tolist()
    [1.0, 1.0]
    """


@habit
def containers() -> None:
    """Containers are tuples, lists, dicts and modules

    A `NamedTuple` too, so it is the class for a state. An object of any other class, a dataclass for example, is not
    looked into: `mg.grad` finds no tensor in it, and `jit` compares its identity.

    ```python
    @flax.struct.dataclass
    class State:
        m: jax.Array
    ```

    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     m: mg.Tensor
    >>> states = mg.tree_map(lambda p: State(p * 0), {"w": mg.ones(2)})
    >>> states["w"].m.tolist()
    [0.0, 0.0]
    """


@habit
def masks() -> None:
    """A mask is a `where`, not a product with infinity

    `0 * inf` is nan. A JAX program may use it all the same, because XLA makes a selection of the product under `jit`.

    ```python
    scores = scores + (mask == 0) * float("-inf")
    ```

    >>> mask, scores = mg.asarray([True, False]), mg.asarray([1.0, 2.0])
    >>> mg.where(mask, scores, float("-inf")).tolist()
    [1.0, -inf]
    """


@habit
def devices() -> None:
    """A device is its name

    `mg.device("cuda")` is a block that makes new tensors there.

    ```python
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    ```

    >>> device = "cuda" if "cuda" in mg.available_devices() else "cpu"
    >>> model = mg.nn.Linear(2, 3).to(device)
    """


@habit
def offloading() -> None:
    """A block computes on another device

    `with mg.offload("cuda"):` moves the inputs of each operation there and its result back. The backward pass of an
    operation runs where the operation ran. Tensors stay where they are, so the code in the block does not change. Put
    the block into a jitted function: there, a value moves at most once in each direction, and stays on the device while
    only the block uses it. In eager mode, each operation moves its values.

    `mg.trace(f, x).offloading("cuda")` is a table of what moving each part of a function would gain, by a model of the
    devices and of the link between them, and `mg.viz.timeline(f, x, devices="cuda")` draws them.

    ```python
    h = torch.tanh(x.to("cuda") @ w.to("cuda")).to("cpu")
    ```

    >>> @mg.jit
    ... def f(x, w):
    ...     with mg.offload("cpu:1"):
    ...         h = mg.tanh(x @ w)
    ...     return h.sum()
    >>> f(mg.zeros((2, 3)), mg.ones((3, 4))).item()
    0.0
    """


@habit
def written_as_json() -> None:
    """`json.dumps` takes a function for tensors

    As for arrays of the other libraries: an object cannot say how `json` writes it.

    ```python
    json.dumps({"loss": loss.item(), "w": w.tolist()})
    ```

    >>> import json
    >>> json.dumps({"loss": mg.asarray(0.5), "w": mg.ones(2)}, default=mg.Tensor.tolist)
    '{"loss": 0.5, "w": [1.0, 1.0]}'
    """


class Row(NamedTuple):
    """A row of a table: the names in other libraries, and what to write here."""

    names: str
    here: str
    why: str


def tables() -> dict[str, list[Row]]:
    """The table of each place.  A name with several meanings has one row."""
    found: dict[str, dict[str, list[Synonym]]] = {place: {} for place in PLACES}
    for each in synonyms():
        if not _is_there(each):
            found[each.place].setdefault(each.name, []).append(each)
    return {place: [_row(alike) for alike in rows.values()] for place, rows in found.items()}


def _is_there(synonym: Synonym) -> bool:
    """Whether minigrad has the name, with the same meaning."""
    room = importlib.import_module(synonym.place) if synonym.place.startswith("minigrad") else {
        "x": mg.Tensor, "model": mg.nn.Module}.get(synonym.place)
    return room is not None and hasattr(room, synonym.name)


def _row(alike: list[Synonym]) -> Row:
    names = dict.fromkeys(spelled(library, each.foreign) for each in alike for library in each.libraries)
    here = dict.fromkeys(each.here for each in alike)
    return Row(", ".join(names), " or ".join(f"`{each}`" if "leave" not in each else each for each in here),
               " or ".join(each.why for each in alike if each.why))


def spelled(library: str, foreign: str) -> str:
    """The name as it is written with a library.

    >>> spelled("numpy", "torch.dot"), spelled("jax", "np.dot"), spelled("jax", "jax.lax"), spelled("jax", "x.at")
    ('np.dot', 'jnp.dot', 'jax.lax', 'x.at')
    """
    root, dot, name = foreign.partition(".")
    return foreign if root in ("x", "model", "jax") or not dot else f"{LIBRARIES[library]}.{name}"


def part(function: Callable[[], None]) -> list[str]:
    """The part of the page about a habit."""
    text = inspect.getdoc(function) or ""
    title, _, rest = text.partition("\n\n")
    words, mark, example = rest.partition(">>> ")
    before, fence, code = words.partition("```python\n")
    return [
        "", f"### {title}", "", before.strip(), "", "Elsewhere:", "", (fence + code).strip(), "", "Here:", "",
        f"```pycon\n{mark}{example.strip()}\n```",
    ]


def page() -> str:
    """The page in Markdown."""
    lines = [
        "# Coming from PyTorch, NumPy or JAX",
        "",
        "Arrays have the names of the Python array API standard, which NumPy and JAX share. Training has the names of",
        "PyTorch, and transformations those of JAX. In minigrad each thing has one name. A program with PyTorch's",
        "names runs as it is with `from minigrad.compat import torch`: see [your PyTorch program,",
        "seen](pytorch.html). If you write the name of another library, the error says what to write here; for a",
        "misspelt name, it says which is near:",
        "",
        "```text",
        "MissingNameError: minigrad has no 'cat'",
        "  Hint: mg.concat([x, y])",
        "```",
        "",
        "## Habits that mean something else here",
    ]
    for each in HABITS:
        lines += part(each)
    lines += ["", "## Names", "", "Names that are the same are left out. Errors take their hints from these tables."]
    for place, rows in tables().items():
        lines += ["", f"### {PLACES[place]}", "", "| elsewhere | here | |", "|---|---|---|"]
        lines += [f"| `{row.names}` | {row.here} | {row.why} |" for row in rows]
    return "\n".join(lines) + "\n"
