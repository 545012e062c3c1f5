"""Unit 06: reverse mode.  The order, the walk, what is kept, outputs of several numbers, and three broken engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from ...autodiff import reverse
from ...core.errors import GradError
from ...core.node import Leaf, Node, topological_order
from ...core.tensor import Tensor
from ...ops.creation import asarray
from ...ops.elementwise import tanh
from ..feedback import Wrong, written
from ..unit import ROUNDS, FunctionTask, Misconception, Prediction, Seed, Unit, ValueTask, mistake
from ..walk_tasks import MICROGRAD, BackwardOrder, ClippedWalk, WalkBack, leaf, numbers
from ..walking import Passes, impatient, made_from

UNIT = Unit(
    number=6,
    name="reverse_mode",
    title="Reverse mode: one walk back",
    question="Thirty doublings make 2³⁰ paths from y back to x. How many contributions does backward() compute?",
    minutes=90,
    outcomes={
        "why": "say what reverse mode fixes, what it computes, and why one walk is enough for all inputs",
        "order": "give an order to go back in, and find the damage that a wrong one does",
        "walk": "write the walk that accumulates gradients, and run it as the engine of a framework",
        "kept": "tell what is kept for the way back, how much that is, and when it is let go",
        "seeds": "take gradients of an output of several numbers, one walk for each that is fixed",
        "diagnose": "tell a lost accumulation, a wrong order and a stale value by what they do",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "The chain rule adds up over all paths, so the way back takes as long as there are paths.",
            f"{MICROGRAD}/issues/91, {MICROGRAD}/issues/81: engines that walk every path. C. Olah: Calculus on "
            "Computational Graphs (2015), https://colah.github.io/posts/2015-08-Backprop/",
            "paths",
        ),
        Misconception(
            "No topological order is needed: go on to each input at once, depth first.",
            ", ".join(f"{MICROGRAD}/{thread}" for thread in (
                "issues/96", "issues/68", "issues/67", "issues/21", "pull/64", "pull/23", "issues/91", "issues/2")),
            "two_ways",
        ),
        Misconception(
            "A gradient can be added to in place, for it is nobody else's.",
            "It was somebody else's in a framework too: https://github.com/Oneflow-Inc/oneflow/pull/9497",
            "walk_back",
        ),
        Misconception(
            "backward() can be called as often as one likes.",
            "https://discuss.pytorch.org/t/6795: one of the forum's most read threads",
            "again",
        ),
        Misconception(
            "backward() of several numbers gives the derivative of each.",
            "https://discuss.pytorch.org/t/116079, https://forums.fast.ai/t/pytorch-gradient-runtimeerror/99118",
            "from_ones",
        ),
    ),
    seeds=(
        Seed("002: fix one output ℓ over ℝ", "walks"),
        Seed("002: compute partial derivatives ∂ℓ/∂y for each value y", "walk_back"),
        Seed("002: need to do this by going backward through the computation", "backward_order"),
        Seed("002: backpropagation engine, one of the core components", "walk_back"),
        Seed("001: how to compute gradients automatically: the chain rule", "paths"),
        Seed("001: the gradient function takes inputs, output and the gradient of the output", "kept"),
        Seed("000: memory size", "kept"),
    ),
)  # fmt: skip


# Questions of the notebook --------------------------------------------------------------------------------------------


@UNIT.task
class Paths(Prediction):
    """Thirty times y = y + y: how many contributions does backward() compute?"""

    name = "paths"
    outcome = "why"
    example = "1000"
    otherwise = "there are 30 additions. Each is visited once: to how many inputs does an addition pass something back?"

    def right(self) -> int:
        return 60

    def explained(self) -> str:
        return "two for each addition: it waits until both uses have reported, adds them, and passes one number on."

    @mistake("that is the number of paths. But what comes to a value is added first, and one number is passed on")
    def every_path(self) -> int:
        return 2**30

    @mistake(
        "that is nearly the number of paths. But what comes to a value is added first, and one number is passed "
        "on"
    )
    def every_path_and_back(self) -> int:
        return 2**31

    @mistake("each of the 30 additions passes back to both of its inputs, which are the same value")
    def one_each(self) -> int:
        return 30

    @mistake("the seed is where the walk begins, and not a contribution: nobody computes it")
    def with_seed(self) -> int:
        return 61

    @mistake("there are 31 values, but it is the 30 additions that pass back, each to both inputs")
    def values(self) -> int:
        return 31


@UNIT.task
class TwoWays(Prediction):
    """The impatient engine on y = a * a + a, and on y = a + a * a: what is ∂x?"""

    name = "two_ways"
    outcome = "order"
    example = "5, 5"
    otherwise = "it visits inputs from left to right. In a + a * a, what has come to a when a is visited?"

    def right(self) -> tuple[float, float]:
        return 10, 2

    def explained(self) -> str:
        return "on the first it is right by luck: a * a stands on the left. An engine must not depend on that."

    @mistake("a + a * a is the same number, but not the same walk: a is the left one, and visited first")
    def both_right(self) -> tuple[float, float]:
        return 10, 10

    @mistake("in a * a + a the product is on the left: it is visited first, and a after all of its three came")
    def both_wrong(self) -> tuple[float, float]:
        return 2, 2

    @mistake("the other way round: in which of the two is a on the left, and visited before a * a?")
    def turned(self) -> tuple[float, float]:
        return 2, 10

    @mistake("close: when a is visited too early, only the 1 of the sum has come to it, and x is given twice that")
    def accumulates_later(self) -> tuple[float, float]:
        return 10, 5


@UNIT.task
class Kept(Prediction):
    """100 operations on 1,000 floats (4 kB each time): how many kB are kept for the way back?"""

    name = "kept"
    outcome = "kept"
    example = "[400, 400, 400]"
    otherwise = "one number for each: h + 1, tanh(h), relu(h). What does the gradient rule of each need to know?"

    def right(self) -> list[float]:
        return [0, 400, 100]

    def explained(self) -> str:
        return (
            "the rule of a sum reads nothing, that of tanh its output; relu wants to know only where h > 0: a "
            "byte for each."
        )

    @mistake("the gradient of a sum is passed on as it is. What would it need h for?")
    def everything(self) -> list[float]:
        return [400, 400, 400]

    @mistake("something is kept: tanh passes back g · (1 − out²). And relu?")
    def nothing(self) -> list[float]:
        return [0, 0, 0]

    @mistake("the first two are right. For relu, is h itself needed, or something that takes less room?")
    def floats_for_relu(self) -> list[float]:
        return [0, 400, 400]

    @mistake("a bit for each would do, but NumPy's truth values take a byte")
    def bits_for_relu(self) -> list[float]:
        return [0, 400, 12.5]

    @mistake("tanh passes back g · (1 − out²): the output is enough, the input is not kept besides")
    def inputs_too(self) -> list[float]:
        return [0, 800, 400]

    @mistake("tanh passes back g · (1 − out²): the output is enough, the input is not kept besides")
    def inputs_of_both(self) -> list[float]:
        return [0, 800, 800]

    @mistake("relu passes back g where h > 0 and 0 elsewhere: it must remember where")
    def nothing_for_relu(self) -> list[float]:
        return [0, 400, 0]

    @mistake("one after the other is needed on the way back, so all are kept until then, not the last one only")
    def last_only(self) -> list[float]:
        return [0, 4, 1]


@UNIT.task
class Again(Prediction):
    """Of which of the three can backward() be called a second time?"""

    name = "again"
    outcome = "kept"
    example = '["tanh"]'
    otherwise = 'a list of some of "add", "tanh" and "relu"'

    def read(self, answer: Any) -> Any:
        if isinstance(answer, str):
            answer = [answer]
        names = answer if isinstance(answer, list | tuple | set) else []
        return sorted(str(each).strip().lower() for each in names)

    def right(self) -> list[str]:
        return ["add"]

    def explained(self) -> str:
        return "what was kept is let go after the first time; additions had kept nothing."

    @mistake("after the first time what was kept is let go, to have the memory back. Of which was nothing kept?")
    def all_of_them(self) -> list[str]:
        return ["add", "relu", "tanh"]

    @mistake("relu had kept something too, if only a byte for each: that is gone after the first time")
    def add_and_relu(self) -> list[str]:
        return ["add", "relu"]

    @mistake("what tanh had kept is let go after the first time. Of which was nothing kept?")
    def tanh_only(self) -> list[str]:
        return ["tanh"]

    @mistake("both had kept something, which is let go after the first time. Of which was nothing kept?")
    def those_that_kept(self) -> list[str]:
        return ["relu", "tanh"]

    @mistake("where nothing was kept, nothing is missing the second time")
    def none(self) -> list[str]:
        return []


@UNIT.task
class FromOnes(Prediction):
    """y = W @ x has two numbers. y.backward(mg.ones(2)): what is x.grad?"""

    name = "from_ones"
    outcome = "seeds"
    example = "[1, 2, 3]"
    otherwise = "with the seed [1, 0] x.grad is the first row of W, with [0, 1] the second. And with [1, 1]?"

    def right(self) -> list[float]:
        return [5, 7, 9]

    def explained(self) -> str:
        return "the rows of W, added: the gradient of y[0] + y[1]. A walk back is of one number."

    @mistake("that has the shape of W. x.grad has the shape of x, three numbers")
    def jacobian(self) -> list[list[float]]:
        return [[1, 2, 3], [4, 5, 6]]

    @mistake("that is the first row, the gradient of y[0] alone. The seed has a 1 for y[1] too")
    def first(self) -> list[float]:
        return [1, 2, 3]

    @mistake("that is the second row, the gradient of y[1] alone. The seed has a 1 for y[0] too")
    def second(self) -> list[float]:
        return [4, 5, 6]

    @mistake("these are the values of y at x = [1, 1, 1]; x.grad has three numbers")
    def values(self) -> list[float]:
        return [6, 15]

    @mistake("x.grad was cleared before: what the walk from [1, 0] had left is not in it")
    def not_cleared(self) -> list[float]:
        return [6, 9, 12]

    @mistake("added, not averaged")
    def mean(self) -> list[float]:
        return [2.5, 3.5, 4.5]


@UNIT.task
class Walks(Prediction):
    """2,410 weights, 10 scores, one loss: how many walks for the gradient of the loss, and for those of all scores?"""

    name = "walks"
    outcome = "why"
    example = "3, 3"
    otherwise = (
        "a walk fixes one number, and finds its derivative by every value before it. How many numbers are "
        "fixed?"
    )

    def right(self) -> tuple[int, int]:
        return 1, 10

    def explained(self) -> str:
        return (
            "one for each number that is fixed, whatever the number of weights. By differences it would take "
            "2,411 runs."
        )

    @mistake("a walk does not go to one weight: it passes all of them. What has to be fixed is the output")
    def one_per_weight(self) -> tuple[int, int]:
        return 2410, 24100

    @mistake("a walk is of one number. Of the ten scores, each has to be fixed once")
    def one_for_all(self) -> tuple[int, int]:
        return 1, 1

    @mistake("the other way round: first the loss, then the ten scores")
    def turned(self) -> tuple[int, int]:
        return 10, 1

    @mistake("the number of weights does not count: a walk passes all of them. How many numbers are fixed?")
    def of_the_weights(self) -> tuple[int, int]:
        return 1, 2410

    @mistake("the loss is one number, whatever it was made from")
    def ten_for_the_loss(self) -> tuple[int, int]:
        return 10, 10


# The exercise ---------------------------------------------------------------------------------------------------------


UNIT.task(BackwardOrder)
UNIT.task(WalkBack)
UNIT.task(ClippedWalk)


@UNIT.task
class Jacobian(FunctionTask):
    """`jacobian(f, x)` lists the gradients of the numbers of f(x), one row for each."""

    name = "jacobian"
    points = 0
    minutes = 10
    outcome = "seeds"
    otherwise = "row i is what x.grad is after y.backward(seed), with 1 at place i of the seed and 0 elsewhere"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        w = asarray([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
        yield (lambda x: w @ x), leaf(1.0, 2.0, -1.0)
        yield (lambda x: tanh(w @ x)), leaf(0.1, 0.2, -0.3)
        yield (lambda x: x * x), leaf(1.0, 2.0, 3.0)
        yield (lambda x: x + x.sum()), leaf(1.0, 2.0)

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def plain(f: Any, x: Tensor) -> Any:
            x.grad = None
            found = answer(f, x)
            return None if found is None else np.array([numbers(row) for row in found])

        try:
            return super().check(plain, rounds)
        except GradError as error:
            if "has its shape" in str(error):
                problem = "a seed has as many numbers as y, and this one has not"
                raise Wrong(self.name, problem, "one row for each number of y: y.size, and not x.size") from None
            if "a second time" not in str(error):
                raise
            hint = (
                "keep it for the next row, y.backward(seed, retain_graph=True), or compute y = f(x) anew for "
                "each row"
            )
            raise Wrong(self.name, "after the first row, what y had kept for the way back is gone", hint) from None

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        if all(np.shape(yours) == np.shape(self.right(*args)) and np.allclose(yours, self.right(*args), atol=0.05)
               for args, yours, _ in found):  # fmt: skip
            return "near, as differences are. y.backward(seed) gives it as it is, one row at a time"
        return super()._hint(found)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> str | None:
        return "it returned None, not a list of rows" if yours is None else super().judge(yours, args)

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"jacobian(f, {written(args[1])})"

    def _rows(self, f: Any, x: Tensor, seeds: Any) -> list[Tensor]:
        y = f(x)
        return [reverse.gradients(y, x, asarray(seed), retain_graph=True) for seed in seeds(y.size)]

    def right(self, f: Any, x: Tensor) -> Any:
        return np.array([row.numpy() for row in self._rows(f, x, lambda n: np.eye(n, dtype=np.float32))])

    @mistake("x.grad is added to, not replaced: every row holds the rows before it too. x.grad = None before each")
    def rows_added_up(self, f: Any, x: Tensor) -> Any:
        return np.cumsum(self.right(f, x), axis=0)

    @mistake("every row is x.grad itself, the same tensor, which holds the sum in the end. Keep a copy, and begin anew")
    def the_same_tensor(self, f: Any, x: Tensor) -> Any:
        rows = self.right(f, x)
        return np.array([rows.sum(axis=0)] * len(rows))

    @mistake("a seed of ones asks for the gradient of the sum of all numbers. Row i is that of number i alone")
    def from_ones(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x).sum(axis=0)

    @mistake("turned: row i is the gradient of number i of the output, and has as many numbers as x has")
    def transposed(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x).T

    @mistake("those are the numbers of f(x) by the same number of x only; each depends on the others of x too")
    def diagonal(self, f: Any, x: Tensor) -> Any:
        return np.diag(np.diag(self.right(f, x)))


@UNIT.task
class Weighted(ValueTask):
    """`y = W @ x`. What is x.grad after y.backward(seed)?"""

    name = "weighted"
    minutes = 4
    outcome = "seeds"
    example = "[1, 2, 3]"
    otherwise = "the seed's first number times the first row of W, its second times the second row, added"

    def vary(self, draw: random.Random) -> None:
        self.matrix = [[draw.randint(1, 4) for _ in range(3)], [draw.randint(5, 9) for _ in range(3)]]
        self.seed = [draw.choice([2, 3]), draw.choice([-1, -2])]

    def text(self) -> str:
        return (
            f"`W = {self.matrix}`, x has three numbers, and `y = W @ x` has two. **What is `x.grad` after "
            f"`y.backward(mg.asarray({[float(x) for x in self.seed]}))`?** Work it out before you let minigrad do so."
        )

    def right(self) -> list[int]:
        (p, q), (one, two) = self.seed, self.matrix
        return [p * a + q * b for a, b in zip(one, two)]

    def explained(self) -> str:
        return f"the number that was fixed is {self.seed[0]} · y[0] + ({self.seed[1]}) · y[1]: the seed says which."

    @mistake("that is what a seed of ones gives. Yours weighs the two rows")
    def from_ones(self) -> list[int]:
        return [a + b for a, b in zip(*self.matrix)]

    @mistake("the seed's second number counts too, with its sign")
    def first_only(self) -> list[int]:
        return [self.seed[0] * a for a in self.matrix[0]]

    @mistake("mind the sign of the seed's second number")
    def without_sign(self) -> list[int]:
        return [self.seed[0] * a - self.seed[1] * b for a, b in zip(*self.matrix)]

    @mistake("that is one row for each output. x.grad has the shape of x: the two are added")
    def rows(self) -> list[list[int]]:
        return [[weight * a for a in row] for weight, row in zip(self.seed, self.matrix)]

    @mistake("the seed weighs the rows of W, one for each number of y, and is not multiplied by y")
    def times_y(self) -> list[int]:
        return [weight * sum(row) for weight, row in zip(self.seed, self.matrix)]


# Break it -------------------------------------------------------------------------------------------------------------


def lost(result: Node, gradients: Any, passes_back: Passes) -> None:
    """Forgets what came before."""
    for node in reversed(topological_order([result])):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = value


def stale(result: Node, gradients: Any, passes_back: Passes) -> None:
    """Reads values that somebody has changed since: here, those that a * w was computed from."""
    for node in reversed(topological_order([result])):
        if node not in gradients:
            continue
        for source, value in passes_back(node, gradients[node]):
            changed = node.name == "multiply" and isinstance(source, Leaf) and len(made_from(node)) == 2
            value = value * 0.25 if changed else value
            gradients[source] = gradients[source] + value if source in gradients else value


BUGS: dict[str, Callable[..., None]] = {"lost": lost, "order": impatient, "stale": stale}


@UNIT.task
class Broken(ValueTask):
    """Three engines, each with one bug: which is which?"""

    name = "broken"
    points = 3
    minutes = 15
    outcome = "diagnose"
    example = '{"A": "lost", "B": "order", "C": "stale"}'
    otherwise = 'one of "lost", "order" and "stale" for each of "A", "B" and "C"'

    def vary(self, draw: random.Random) -> None:
        self.x, self.w = draw.choice([1.0, 2.0, 3.0]), draw.choice([0.5, 1.5, -0.5])
        bugs = list(BUGS)
        draw.shuffle(bugs)
        self.bugs = dict(zip("ABC", bugs))

    def text(self) -> str:
        return (
            f"Three engines go back through `y = a + b * b`, where `a = 2 * x`, `b = a * w`, x = {self.x:g}, w = "
            f"{self.w:g}. Each "
            'has one bug: A, B, C. **Which is which?** `"lost"`: what comes second takes the place of what came first. '
            '`"order"`: something is sent on too early. `"stale"`: a rule reads a value that has been changed since.'
        )

    def given(self) -> dict[str, Any]:
        return {"x": self.x, "w": self.w, "engine": self.engine}

    def engine(self, letter: str) -> Callable[..., None]:
        """One of the three."""
        if letter not in self.bugs:
            raise KeyError(f"the engines are called A, B and C, not {letter!r}")
        bug = BUGS[self.bugs[letter]]

        def engine(result: Node, gradients: Any, passes_back: Passes) -> None:
            bug(result, gradients, passes_back)

        engine.__name__ = f"engine_{letter}"
        return engine

    def right(self) -> dict[str, str]:
        return self.bugs

    def explained(self) -> str:
        return "a framework has tests for each of the three; a student of yours has your eyes."

    SIGNS: ClassVar[dict[str, str]] = {
        "lost": "is there a box that is given something twice, where no step says that the two are added?",
        "order": "is there a box that sends on, and is given something afterwards?",
        "stale": "is there a step where rule and finite differences do not agree (✗)?",
    }

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if isinstance(answer, dict):
            answer = {key: each.strip().lower() if isinstance(each, str) else each for key, each in answer.items()}
        if not isinstance(answer, dict) or set(answer) != set(self.bugs) or not set(answer.values()) <= set(BUGS):
            raise Wrong(self.name, f"your answer {written(answer)} is of another form", self.otherwise)
        wrong = [letter for letter in self.bugs if answer[letter] != self.bugs[letter]]
        if not wrong:
            return self.explained()
        letter = wrong[0]
        raise Wrong(
            self.name, f"{len(wrong)} of 3 are not right, {letter} is one of them",
            f'you say "{answer[letter]}" of {letter}: {self.SIGNS[answer[letter]]}',
        )  # fmt: skip
