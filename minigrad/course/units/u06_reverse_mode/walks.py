"""Unit 06: what a student writes of the walk back, the order and the walk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from ....autodiff import reverse
from ....core.mode import no_grad
from ....core.node import Leaf, Node, topological_order
from ....core.tensor import Tensor
from ....ops.creation import asarray
from ....ops.reduce import clip
from ....support.errors import MutationError
from ...compare import same
from ...feedback import Wrong, written
from ...unit import ROUNDS, FunctionTask, mistake
from ...walking import Gradients, LostPatience, Passes, add, impatient, made_from, pass_on, patience
from .programs import LARGE, ORDERS, PROGRAMS, QUESTIONS, VALUES, by_number

MICROGRAD = "https://github.com/karpathy/micrograd"
EARLY = (
    "a node sends on before everything has come to it: a is used by the sum and by the product, and both have "
    "something for it. Go by your backward_order, not from a node to its inputs"
)
IN_PLACE = (
    "`+=` changes a tensor where it lies, and a sum passes the *same* tensor back to both of its inputs: the other "
    "one's gradient has changed too. Make a new one: gradients[source] = gradients[source] + value"
)
PUT_DOWN_TWICE = "a node is put down once for each use: remember which have been visited"
SENT_TWICE = "a node that is reached twice sends on twice, the second time what it had sent already as well"


class WalkTask(FunctionTask):
    """A walk over nodes, tried on one program after the other: the first that goes wrong is told."""

    seconds: ClassVar[float] = 20.0
    orders: ClassVar[tuple[Callable[[Node], list[Node]], ...]] = (by_number,)  # right ones, that a mistake may go by
    order: Callable[[Node], list[Node]] = staticmethod(by_number)  # that known mistakes go by at the moment
    values: dict[Node, str] = {}
    too_often: ClassVar[str]  # said of what asks about nodes again and again
    too_deep = (
        "this chain is 10,000 operations long, and a function that calls itself once for each goes deeper than Python "
        "lets it. Keep the nodes that are still to be visited in a list, and take them from there in a loop"
    )

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        for programs in (PROGRAMS, LARGE):
            failed = []
            for title, program in programs.items():
                result = program()
                self.values = dict(zip(topological_order([result.node]), VALUES.get(title, "").split(", ")))
                found = self._tried(answer, title, result)
                problem = self.problem(result, found)
                if problem is not None:
                    failed.append((f"{title}: {problem}", result, found))
            if failed:
                raise Wrong(self.name, failed[0][0], self.hint(failed))
        return f"on {', '.join([*PROGRAMS, *LARGE])}"

    def called(self, node: Node) -> str:
        """What a node of the program at hand is called in messages."""
        return self.values.get(node) or (node.name if node.op is not None else "a leaf")

    def _tried(self, answer: Callable[..., Any], title: str, result: Tensor) -> Any:
        try:
            with patience(QUESTIONS):
                return self.run(answer, result)
        except LostPatience:
            endless = len(topological_order([result.node])) < 10
            hint = "its loop does not end: does what it takes from become empty?" if endless else self.too_often
            raise Wrong(self.name, f"{title}: it asked about nodes {QUESTIONS:,} times", hint) from None
        except RecursionError:
            raise Wrong(self.name, f"{title}: it went too deep", self.too_deep) from None

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        """What a student's function, or a known mistake, makes of a program, in a form that can be compared."""
        raise NotImplementedError

    def problem(self, result: Tensor, found: Any) -> str | None:
        """What is wrong with it, in a line."""
        raise NotImplementedError

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        """The hint of the mistake that explains whatever failed, in whichever right order it goes."""
        for known in self.mistakes:
            for order in self.orders:
                self.order = order
                if all(self._makes(known, result, found) for _, result, found in failed):
                    return known.hint
        return self.otherwise

    def _makes(self, known: Any, result: Tensor, found: Any) -> bool:
        try:
            with patience(QUESTIONS):
                return bool(self.run(self.wrong(known), result) == found)
        except (Exception, LostPatience):
            return False


class BackwardOrder(WalkTask):
    """`backward_order(result)` lists the nodes that a result was made from, each after all that were made from it."""

    name = "backward_order"
    points = 0  # they are the same for everybody; the walk with a clip is not
    minutes = 15
    outcome = "order"
    otherwise = "go through the list by hand, for the program named: is each node there once, after all that use it?"
    too_often = (
        "it comes to the same nodes again and again: a is used twice, so what a was made from is visited twice, what "
        "that was made from four times ... Remember which nodes you have visited, in a set"
    )

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        found = function(result.node)
        return list(found) if hasattr(found, "__iter__") else found

    def problem(self, result: Tensor, found: Any) -> str | None:
        if not isinstance(found, list):
            return f"it returned {written(found)}, not a list of nodes"
        wanted = topological_order([result.node])
        strange = [each for each in found if not isinstance(each, Node)]
        if strange:
            return f"{written(strange[0])} is not a node"
        if len(set(found)) < len(found):
            return f"{self.called(next(node for node in found if found.count(node) > 1))} is in the list more than once"
        at = {node: i for i, node in enumerate(found)}
        missing = [node for node in wanted if node not in at and (node.op is not None or isinstance(node, Leaf))]
        if missing:
            return f"{self.called(missing[-1])} is not in the list"
        for node in reversed(wanted):
            for source in made_from(node):
                if at[source] < at[node]:
                    uses = f"{self.called(node)}, which was made from it and will pass back to it"
                    return f"{self.called(source)} stands before {uses}"
        return None

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        known = super().hint(failed)
        words, _, found = failed[0]
        if known != self.otherwise:
            return known
        if found is None:
            return "`return` the list. sort() and reverse() change a list and give back None; sorted() gives a new one"
        if "is not a node" in words:
            return "the nodes themselves, not what they are called"
        if "more than once" in words:
            return PUT_DOWN_TWICE
        if "stands before" in words:
            lists = [(result, found[::-1]) for _, result, found in failed]
            if all(self.problem(result, turned) is None for result, turned in lists):
                return "each stands before what was made from it: turn the list round"
            if all(set(found) == set(self.right(result.node)) for _, result, found in failed):
                return (
                    "all are there, in an order that is not right. A set has none. `node.serial` says when a node was "
                    "made: go by it, the latest first"
                )
        return known

    def solution(self) -> Any:
        return self.right

    def right(self, result: Node) -> list[Node]:
        found = {result}
        stack = [result]
        while stack:
            for source in made_from(stack.pop()):
                if source not in found:
                    found.add(source)
                    stack.append(source)
        return sorted(found, key=lambda node: node.serial, reverse=True)

    @mistake("that is the order of the way there. The way back begins at the result: turn the list round")
    def forward(self, result: Node) -> list[Node]:
        return self.right(result)[::-1]

    @mistake(
        "a node is put in the list when it is first met, and what it was made from right after it: a node that uses "
        "the same thing may come later. Put a node down when all that *it was made from* are down, then turn the list "
        "round",
        source=f"{MICROGRAD}/issues/96",
    )
    def when_first_met(self, result: Node) -> list[Node]:
        found: list[Node] = []

        def visit(node: Node) -> None:
            if node not in found:
                found.append(node)
                for source in made_from(node):
                    visit(source)

        visit(result)
        return found

    @mistake(
        "layer by layer: a node stands as near to the result as its shortest path, but it has to wait for its longest. "
        "In a + a * a, a is one step away, and two",
    )
    def layers(self, result: Node) -> list[Node]:
        found = [result]
        for node in found:
            for source in made_from(node):
                if source not in found:
                    found.append(source)
        return found

    @mistake(
        "the nodes still to be visited are taken from the end of the list as they come, and put down at once: that is "
        "an order in which some stand before a node that uses them. `node.serial` says when a node was made",
    )
    def stack_as_it_comes(self, result: Node) -> list[Node]:
        found, stack = [], [result]
        while stack:
            node = stack.pop()
            if node not in found:
                found.append(node)
                stack += made_from(node)
        return found

    @mistake("the result itself belongs in the list, at its beginning")
    def without_result(self, result: Node) -> list[Node]:
        return self.right(result)[1:]

    @mistake("the leaves belong in the list too: it is their gradients that people want")
    def without_leaves(self, result: Node) -> list[Node]:
        return [node for node in self.right(result) if made_from(node)]

    @mistake(PUT_DOWN_TWICE)
    def once_for_each_use(self, result: Node) -> list[Node]:
        found = [result]
        for node in found:
            if len(found) < 1000:
                found += made_from(node)
        return found


class WalkBack(WalkTask):
    """`walk_back(result, gradients, passes_back)` puts the gradient of every node into the dictionary `gradients`."""

    name = "walk_back"
    points = 0
    minutes = 20
    outcome = "walk"
    otherwise = "look at it: with course.backward(walk_back): mg.viz.step(y). Which is the first number that is wrong?"
    too_often = (
        "the sum over all paths is right, but there are 2⁴⁰ of them. Let a node wait until everything has come to it, "
        "and pass on once: your backward_order is such an order"
    )
    orders = ORDERS
    most_sent = 0  # how often one node passed something back
    begins_with = 1.5  # the gradient of the result: not 1, for somebody may begin with that by habit

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        seed = asarray(np.full(result.shape, self.begins_with, dtype=np.float32))
        gradients = Gradients(result.node, seed)
        try:
            with no_grad():
                function(result.node, gradients, gradients.passes_back)
            self.most_sent = max(gradients.times.values(), default=0)
        except KeyError as error:
            node = error.args[0] if error.args else None
            if isinstance(node, Node):
                raise Wrong(
                    self.name, f"the gradient of {self.called(node)} is asked for before anything has come to it",
                    "begin at the result, which has one; and a node that nothing has come to yet is not in the "
                    "dictionary: `if source in gradients`",
                ) from None
            raise
        except MutationError:
            raise Wrong(self.name, "a gradient was changed in place that others look at", IN_PLACE) from None
        return {node: numbers(value) for node, value in gradients.items()}

    def problem(self, result: Tensor, found: Any) -> str | None:
        order = topological_order([result.node])
        with no_grad():
            seed = asarray(np.float32(self.begins_with))
            right = reverse.exhaust(reverse.walk([result.node], [seed], order, retain=True, announced=False))
        if len(found) == 1 and found.get(result.node) is not None and made_from(result.node):
            return "nothing was put into the dictionary `gradients`"
        for node in reversed(order):
            if node not in right:
                continue
            if node not in found:
                if isinstance(node, Leaf):
                    return f"{self.called(node)} has no gradient in the end"
                continue
            ours = right[node].numpy()
            if found[node] != ours.tolist() and not same(np.asarray(found[node]), ours):
                yours = written(np.asarray(found[node]))
                return f"the gradient of {self.called(node)} is {yours} in the end, and should be {written(ours)}"
        return None

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        if all("nothing was put" in words for words, _, _ in failed):
            return (
                "gradients[source] = ... puts something in. Another dictionary, `gradients = {}`, is not the one that "
                "you were given"
            )
        sent = self.most_sent  # by what the student wrote: the known mistakes are run below
        known = super().hint(failed)
        return SENT_TWICE if known == self.otherwise and sent > 1 else known

    def solution(self) -> Any:
        return self.right

    def right(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, gradients[node], gradients, passes_back)

    def _in_order(self, result: Node, gradients: Any) -> Iterator[Node]:
        return (node for node in self.order(result) if node in gradients)

    @mistake("what comes to a node a second time takes the place of the first, and should be added to it")
    def overwritten(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                gradients[source] = value

    @mistake(EARLY, source=f"{MICROGRAD}/issues/68")
    def impatient(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        impatient(result, gradients, passes_back)

    @mistake("passes_back has multiplied by g already: what it gives is what comes, and is only added")
    def times_g_again(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                value = gradients[node] * value
                add(gradients, source, value)

    @mistake(SENT_TWICE, source=f"{MICROGRAD}/pull/64")
    def sent_twice(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        def visit(node: Node) -> None:
            pass_on(node, gradients[node], gradients, passes_back)
            for source in made_from(node):
                visit(source)

        visit(result)

    @mistake(EARLY)
    def layers(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        queue = [result]
        for node in queue:
            for source, value in passes_back(node, gradients[node]):
                add(gradients, source, value)
                if source not in queue:
                    queue.append(source)

    @mistake(IN_PLACE, source="https://github.com/Oneflow-Inc/oneflow/pull/9497")
    def in_place(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                if source in gradients:
                    gradients[source] += value
                else:
                    gradients[source] = value

    @mistake(
        "a + a passes back to a twice, and a dictionary of what is passed back keeps one of the two: use the pairs"
    )
    def a_dictionary(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in dict(passes_back(node, gradients[node])).items():
                add(gradients, source, value)

    @mistake("a node passes back *its own* gradient, times something: passes_back(node, gradients[node])")
    def always_the_seed(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, gradients[result], gradients, passes_back)

    @mistake(
        "the gradient of the result is in the dictionary when you begin, and it is not always 1: leave it as it is"
    )
    def begins_with_one(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        gradients[result] = asarray(np.float32(1.0))
        self.right(result, gradients, passes_back)

    @mistake("the result passes back, and then nobody else does: go on with the nodes that something has come to")
    def one_step(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        pass_on(result, gradients[result], gradients, passes_back)


class ClippedWalk(WalkBack):
    """`clipped_walk` is a `walk_back` that clips some gradients before it passes them on."""

    name = "clipped_walk"
    points = 3
    minutes = 8
    mistakes = ()
    otherwise = "take your walk_back, and change what is given to passes_back, for these nodes only"

    def vary(self, draw: random.Random) -> None:
        self.op, self.most = draw.choice(["multiply", "add"]), draw.choice([0.25, 0.5, 0.75])

    def text(self) -> str:
        return (
            f"Write `clipped_walk(result, gradients, passes_back)`: like your `walk_back`, but what a node called "
            f'`"{self.op}"` is given to pass back is its *complete* gradient g **clipped** to between −{self.most} and '
            f"{self.most}: `passes_back(node, mg.clip(g, -{self.most}, {self.most}))`. (`node.name` says what a node "
            "is called. This is how frameworks keep gradients from exploding.)"
        )

    def clipped(self, node: Node, g: Tensor) -> Tensor:
        return clip(g, -self.most, self.most) if node.name == self.op else g

    def problem(self, result: Tensor, found: Any) -> str | None:
        right = self.run(self.right, result)
        leaves = [node for node in topological_order([result.node]) if isinstance(node, Leaf)]
        for leaf in leaves:
            if leaf not in found or not same(np.asarray(found[leaf]), np.asarray(right[leaf])):
                yours = written(np.asarray(found[leaf])) if leaf in found else "missing"
                return f"the gradient of a leaf is {yours} in the end, and should be {written(np.asarray(right[leaf]))}"
        return None

    def _makes(self, known: Any, result: Tensor, found: Any) -> bool:
        wrong = self.run(self.wrong(known), result)
        return all(wrong.get(leaf) == value for leaf, value in found.items() if isinstance(leaf, Leaf))

    def right(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, self.clipped(node, gradients[node]), gradients, passes_back)

    @mistake("that is your walk_back as it was: nothing is clipped")
    def nothing_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        super().right(result, gradients, passes_back)

    @mistake("every node's gradient is clipped, and only those of the one kind should be: look at node.name")
    def all_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, clip(gradients[node], -self.most, self.most), gradients, passes_back)

    @mistake("each part is clipped as it comes. It is the complete gradient that should be, when the node passes back")
    def parts_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                value = self.clipped(source, value)
                add(gradients, source, value)

    @mistake("what the node passes back is clipped; it should be what has come to it")
    def clipped_afterwards(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                value = self.clipped(node, value)
                add(gradients, source, value)


def numbers(value: Any) -> Any:
    """A gradient in a form that can be compared by ==."""
    return value.detach().numpy().tolist() if isinstance(value, Tensor) else value
