"""Unit 02: which names change, a damaged gradient and its repair, and a convolution."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray, ones, zeros
from minigrad.support.errors import GradError, MutationError
from minigrad.support.table import counted

from ...arrays import ADVICE, array
from ...compare import Difference, difference, plain
from ...counting import launches
from ...feedback import Wrong, written
from ...forms import names_in, parts_of
from ...tasks import ROUNDS, FunctionTask, Mistake, ValueTask
from .about import UNIT
from .training import see


class Named(NamedTuple):
    """An expression that gets a name, whether the last line changes its numbers, and why."""

    code: str
    changes: bool
    why: str


EXPRESSIONS = (
    Named("a", True, "it is another name for the same array"),
    Named("a.T", True, "the transposed array is a view: the same buffer with other strides"),
    Named("a[:, 1]", True, "a column is a view, and reads one number of each changed row"),
    Named("a.reshape(-1)", True, "the numbers are in the order of memory, so this reshape is a view"),
    Named("a[::-1]", True, "it reads the same rows from the last to the first: a view"),
    Named("a[2]", True, "a row is a view, and this row is among the changed ones"),
    Named("a + 0", False, "an operation computes a new array, even if it adds 0"),
    Named("a.copy()", False, "a copy has a buffer of its own"),
    Named("a[[1, 2]]", False, "a list of rows makes a copy: any rows in any order have no constant step"),
    Named("a.T.reshape(-1)", False, "no constant step leads through these numbers, so this reshape is a copy"),
    Named("a[0]", False, "it shares the buffer, but the last line writes into the rows 1 and 2 only"),
)
LETTERS = "cdefgh"


@UNIT.task
class WhoChanges(ValueTask):
    """A program of names, views and copies: which names have other numbers after its last line?"""

    name = "who_changes"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        yes = draw.sample([each for each in EXPRESSIONS if each.changes], 3)
        no = draw.sample([each for each in EXPRESSIONS if not each.changes], 3)
        self.named = draw.sample(yes + no, 6)

    def code(self) -> str:
        """The program."""
        lines = ["a = mg.arange(12).reshape(3, 4)", "b = a[1:]"]
        lines += [f"{letter} = {each.code}" for letter, each in zip(LETTERS, self.named)]
        return "\n".join([*lines, "b += 100"])

    def given(self) -> dict[str, Any]:
        return {"code": self.code()}

    def right(self) -> list[str]:
        return [letter for letter, each in zip(LETTERS, self.named) if each.changes]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given = _letters(answer)
        if given is None or not set(given) <= set("ab" + LETTERS):
            raise self.misformed(answer)
        for letter, each in zip(LETTERS, self.named):
            if (letter in given) != each.changes:
                verb = "changes" if each.changes else "does not change"
                raise Wrong(self.name, f"{letter} = {each.code} {verb}", each.why)
        return self.explained()


def _letters(answer: Any) -> list[str] | None:
    """Names in an answer, in small letters."""
    names = names_in(answer)
    return None if names is None else [name.lower() for name in names]


# ---- a damaged gradient ----------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A line of a program on x, and what it does: whether it writes into the buffer, or whether its node keeps it."""

    code: str
    acts: bool
    why: str


KEEPING = (Step("w * x", True, "the rule of a product needs the other input, so the node keeps x"),
           Step("x * w", True, "the rule of a product needs the other input, so the node keeps x"),
           Step("w @ x", True, "the rule of a matrix product needs both inputs, so the node keeps x"))
PASSING = (Step("w + x", False, "the rule of a sum passes g on: its node keeps nothing"),
           Step("w - x", False, "the rule of a difference passes g and −g on: its node keeps nothing"))
WRITING = (Step("x += 1", True, ""), Step("x[0] = 7.0", True, ""), Step("v *= 2", True, ""))
READING = (Step("u = x + 1", False, "x + 1 makes a new array"), Step("u = x[0] * 2", False, "it only reads x"))


@UNIT.task
class Versions(ValueTask):
    """A program that writes into x between its operations: the version at the end, and the gradients that stop."""

    name = "versions"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        made = [draw.choice(KEEPING), draw.choice(PASSING), draw.choice(KEEPING)]
        draw.shuffle(made)
        between = draw.sample(WRITING, 2)
        last = draw.choice(READING)
        between.insert(draw.choice([0, 1, 2]), last)
        self.made, self.between = made, between

    def lines(self) -> list[str]:
        """The program."""
        lines = ["x = mg.asarray([2.0, 3.0])", "v = x[1:]", "w = mg.asarray([1.0, 4.0], requires_grad=True)"]
        for name, each, event in zip("pqr", self.made, self.between):
            lines += [f"{name} = {each.code}", event.code]
        return lines

    def listed(self) -> str:
        """The list in the text."""
        return "\n".join(self.lines())

    def given(self) -> dict[str, Any]:
        return {"code": "\n".join(self.lines())}

    def right(self) -> tuple[int, list[str]]:
        stops = [name for i, (name, each) in enumerate(zip("pqr", self.made))
                 if each.acts and any(event.acts for event in self.between[i:])]
        return sum(event.acts for event in self.between), stops

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        version, names = parts_of(answer, 2)
        names = _letters(names)
        if type(version) is not int or names is None or not set(names) <= set("pqr"):
            raise self.misformed(answer)
        right, stops = self.right()
        if version != right:
            raise Wrong(self.name, f"{version} is not the version", self._version(version))
        for i, (name, each) in enumerate(zip("pqr", self.made)):
            if (name in names) != (name in stops):
                verb = "stops" if name in stops else "does not stop"
                raise Wrong(self.name, f"{name} = {each.code} {verb}", self._why(i, each))
        return self.explained()

    def _version(self, version: int) -> str:
        through_view = any(event.code.startswith("v") for event in self.between)
        if version == self.right()[0] - 1 and through_view:
            return "v is a view of x: to write into v is to write into the buffer of x"
        if version == 3:
            return "a line that makes a new array, or only reads, does not write into the buffer: it counts nothing"
        return "each line that writes into the buffer adds 1: +=, *=, x[0] = …, and the same through a view"

    def _why(self, i: int, each: Step) -> str:
        if not each.acts:
            return each.why
        if any(event.acts for event in self.between[i:]):
            return f"{each.why}, and the buffer is written to after this line"
        return "it kept x, but no line after it writes into the buffer: the version is still the same"


SHARES = UNIT.words["shares"]
SHARING = {"detach": SHARES, "[:]": SHARES, ".T": SHARES, "reshape": SHARES, "view": SHARES}
KEPT = UNIT.words["kept"]
LOST = UNIT.words["lost"]
TWICE = UNIT.words["twice"]
EARLY = "that is the first batch: is the `return` inside the loop?"
UNFILLED = UNIT.words["unfilled"]
NUMBER = UNIT.words["number"]
RETURNED: dict[type, str] = {
    type(None): "is there a `return`? return sum(losses)",
    list: "that is the list of losses. Return their sum: sum(losses)",
}


def code_of(function: Any) -> str:
    """The source of a student's function, where there is one."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


@UNIT.task
class Refilled(FunctionTask):
    name = "refilled"
    advice = ADVICE | {"'numpy.ndarray' object": "tensors have copy() too: buffer.copy()"}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield [1.0, 2.0], [[3.0, 4.0], [5.0, -6.0]]
        yield [2.0, -1.0, 0.5], [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0], [4.0, 4.0, -4.0]]

    def parameters(self) -> list[str]:
        return ["w", "batches"]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def tried(w: Any, batches: Any) -> Any:
            weights, buffer = asarray(w, requires_grad=True), zeros(len(w))
            loss = answer(weights, buffer, [list(each) for each in batches])
            if not isinstance(loss, Tensor):
                hint = next((hint for kind, hint in RETURNED.items() if isinstance(loss, kind)), NUMBER)
                raise Wrong(self.name, f"it returned {written(loss)}, not a tensor", hint)
            self._backward(answer, loss)
            if not np.array_equal(plain(buffer), np.asarray(batches[-1])):
                problem = f"the buffer holds {written(buffer)} at the end, not the last batch {written(batches[-1])}"
                early = np.array_equal(plain(buffer), np.asarray(batches[0]))
                raise Wrong(self.name, problem, EARLY if early else UNFILLED)
            if weights.grad is None:
                raise Wrong(self.name, "w.grad is None", "the losses have lost their history: no detach() of them")
            return float(loss.item()), plain(weights.grad)

        return super().check(tried, rounds)

    def _backward(self, answer: Any, loss: Tensor) -> None:
        try:
            loss.backward()
        except MutationError as error:
            changed = str(error).splitlines()[0]
            code = code_of(answer).replace("buffer[:] =", "")
            hint = next((hint for part, hint in SHARING.items() if part in code), KEPT)
            raise Wrong(self.name, f"loss.backward() stopped: {changed}", hint) from None
        except GradError as error:
            problem = f"loss.backward() stopped: {str(error).splitlines()[0]}"
            raise Wrong(self.name, problem, TWICE if "second time" in problem else LOST) from None

    def wrong(self, known: Any) -> Any:
        factors = super().wrong(known)

        def made(w: Any, *more: Any) -> Any:
            for buffer in more[:-1]:
                buffer[:] = asarray(more[-1][-1])
            return (asarray(w) * asarray(factors(w, more[-1]))).sum()

        return made

    def right(self, w: Any, batches: Any) -> Any:
        total = np.sum(batches, axis=0)
        return float(np.dot(w, total)), total

    def solution(self) -> Any:
        def refilled(w: Tensor, buffer: Tensor, batches: Any) -> Tensor:
            losses = []
            for batch in batches:
                buffer[:] = asarray(batch)
                losses.append((w * buffer.copy()).sum())
            return sum(losses)  # type: ignore[return-value]

        return refilled

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return difference(yours, self.right(*args), ["the sum of the losses", "w.grad"])

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return np.allclose(yours[1], known.program(self, *args))


# ---- a convolution ---------------------------------------------------------------------------------------------------


def responses(pictures: Any, filters: Any) -> Any:
    """The sum of products of each filter with each window: pictures (n, 8, 8) to (n, 6, 6, k)."""
    windows = np.lib.stride_tricks.sliding_window_view(plain(pictures), filters.shape[1:], axis=(1, 2))
    return np.einsum("nijab,kab->nijk", windows, plain(filters))


def columns(filters: Any) -> Any:
    """The filters that a student uses who reshapes to (9, k): each is a column."""
    return plain(filters).reshape(9, -1).T.reshape(filters.shape)


PRODUCTS = {  # a part of an error in a student's convolution -> the hint
    "do not go together": "the last axis of the windows must have 9 numbers, and the filters shape (9, k)",
    "matmul: shapes": "`@` uses the last two axes: reshape the windows to (n, 6, 6, 9), and the filters to (k, 9)",
    "do not fit into shape": "the windows become (n, 6, 6, 9), the filters (k, 9). Other pictures have another number "
    "of windows, and there may be 1 filter: take n, the sizes and k from .shape",
    "axis": "mg.windows(pictures, 3, axis=(1, 2)) slides along rows and columns, not along the pictures",
}


@UNIT.task
class Convolve(FunctionTask):
    name = "convolve"
    advice = PRODUCTS | ADVICE | PRODUCTS  # its own hints first

    def given(self) -> dict[str, Any]:
        return {"see": see}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        for size, many in ((2, 5, 5), 1), ((1, 8, 8), 4), ((3, 4, 6), 2):
            yield array(draw, size).astype("float32"), array(draw, (many, 3, 3)).astype("float32")

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        many = launches(answer, ones((1, 8, 8)), ones((4, 3, 3)))
        known = ("NumPy computes all, and the engine records nothing", "It is one product for all pictures and filters")
        rest = known[many] if many < len(known) else "One matrix product is enough"
        return f"your program launches {counted(many, 'kernel')}. {rest}."
    def right(self, pictures: Any, filters: Any) -> Any:
        return responses(pictures, filters)
