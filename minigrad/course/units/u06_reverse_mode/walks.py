"""Unit 06: the backward pass as the student writes it: the order, and the pass itself."""

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
from ...compare import Difference, difference
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, mistake
from ...walking import Gradients, LostPatience, Passes, add, impatient, made_from, pass_on, patience
from .programs import LARGE, ORDERS, PROGRAMS, QUESTIONS, VALUES, by_number

MICROGRAD = "https://github.com/karpathy/micrograd"
EARLY = (
    "a node passes its gradient back before the gradient is complete: a is used by the sum and by the product, and "
    "both contribute to it. Follow your backward_order; do not go from a node straight to its inputs"
)
IN_PLACE = (
    "`+=` changes a tensor in place, and a sum passes the *same* tensor back to both of its inputs: the gradient of "
    "the other input has changed too. Make a new one: gradients[source] = gradients[source] + value"
)
PUT_DOWN_TWICE = "a node is listed once for each use: remember which nodes you have visited"
SENT_TWICE = "a node that is reached twice passes back twice, and the second time it repeats its first contribution"


class WalkTask(FunctionTask):
    """A function that goes over nodes, tried on several programs.  The first wrong result is reported."""

    seconds: ClassVar[float] = 20.0
    orders: ClassVar[tuple[Callable[[Node], list[Node]], ...]] = (by_number,)  # right orders; a mistake may follow any
    order: Callable[[Node], list[Node]] = staticmethod(by_number)  # the order that known mistakes follow
    values: dict[Node, str] = {}
    too_often: ClassVar[str]  # the hint where it visits the same nodes again and again
    too_deep = (
        "this chain is 10,000 operations long, and a function that calls itself once for each goes deeper than Python "
        "allows. Keep the nodes that are still to be visited in a list, and take them from the list in a loop"
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
        """The name of a node in messages."""
        return self.values.get(node) or (node.name if node.op is not None else "a leaf")

    def _tried(self, answer: Callable[..., Any], title: str, result: Tensor) -> Any:
        try:
            with patience(QUESTIONS):
                return self.run(answer, result)
        except LostPatience:
            endless = len(topological_order([result.node])) < 10
            hint = "its loop does not end: does the list become empty?" if endless else self.too_often
            raise Wrong(self.name, f"{title}: it visited nodes {QUESTIONS:,} times", hint) from None
        except RecursionError:
            raise Wrong(self.name, f"{title}: it went too deep", self.too_deep) from None

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        """The result of a student's function, or of a known mistake, in a form that can be compared."""
        raise NotImplementedError

    def problem(self, result: Tensor, found: Any) -> Difference | str | None:
        """What is wrong with the result."""
        raise NotImplementedError

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        """The hint of the mistake that explains every failure, in one of the right orders."""
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
    """`backward_order(result)` lists the result and the nodes it was made from, each after all nodes that use it."""

    name = "backward_order"
    points = 0  # the same for all students; the walk with a clip is not
    minutes = 15
    outcome = "order"
    otherwise = "go through the list by hand, for the program named: is each node there once, after all that use it?"
    too_often = (
        "it visits the same nodes again and again: a is used twice, so its inputs are visited twice, their inputs four "
        "times ... Remember which nodes you have visited, in a set"
    )

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        found = function(result.node)
        return list(found) if hasattr(found, "__iter__") else found

    def problem(self, result: Tensor, found: Any) -> Difference | str | None:
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
                    return f"{self.called(source)} stands before {self.called(node)}, which uses it"
        return None

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        known = super().hint(failed)
        words, _, found = failed[0]
        if known != self.otherwise:
            return known
        if found is None:
            return "`return` the list. sort() and reverse() change a list and give back None; sorted() gives a new one"
        if "is not a node" in words:
            return "the nodes themselves, not their names"
        if "more than once" in words:
            return PUT_DOWN_TWICE
        if "stands before" in words:
            lists = [(result, found[::-1]) for _, result, found in failed]
            if all(self.problem(result, turned) is None for result, turned in lists):
                return "each stands before the nodes that use it: turn the list round"
            if all(set(found) == set(self.right(result.node)) for _, result, found in failed):
                return "all are there, in a wrong order. A set has no order. Sort by `node.serial`, the latest first"
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

    @mistake("that is the order of the forward pass. The backward pass begins at the result: turn the list round")
    def forward(self, result: Node) -> list[Node]:
        return self.right(result)[::-1]

    @mistake(
        "a node is listed when it is first met, and its inputs right after it: a node that uses the same input may "
        "come later. List a node when all of *its inputs* are listed, then turn the list round",
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
        "layer by layer: a node stands where its shortest path puts it, but it has to wait for its longest path. In "
        "a + a * a, a is one step away, and two",
    )
    def layers(self, result: Node) -> list[Node]:
        found = [result]
        for node in found:
            for source in made_from(node):
                if source not in found:
                    found.append(source)
        return found

    @mistake(
        "the next node is taken from the end of the list and listed at once: some nodes then stand before a node that "
        "uses them. `node.serial` says when a node was made",
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

    @mistake("the leaves belong in the list too: training needs their gradients")
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
        "the sum over all paths is right, but there are 2⁴⁰ paths. Let a node wait until its gradient is complete, and "
        "pass it back once: your backward_order is such an order"
    )
    orders = ORDERS
    most_sent = 0  # the most times that one node passed something back
    begins_with = 1.5  # the gradient of the result: not 1, because some students begin with 1 by habit

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
                    self.name, f"it reads the gradient of {self.called(node)} before any contribution has come",
                    "begin at the result, which has a gradient. A node without contributions is not in the dictionary: "
                    "`if source in gradients`",
                ) from None
            raise
        except MutationError:
            raise Wrong(self.name, "a gradient was changed in place, and another node uses it", IN_PLACE) from None
        return {node: numbers(value) for node, value in gradients.items()}

    def problem(self, result: Tensor, found: Any) -> Difference | str | None:
        order = topological_order([result.node])
        with no_grad():
            seed = asarray(np.float32(self.begins_with))
            right = reverse.exhaust(reverse.walk([result.node], [seed], order, retain=True, yields=False))
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
            called = f"the gradient of {self.called(node)}"
            if found[node] != ours.tolist() and (problem := difference(found[node], ours, called)):
                return problem
        return None

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        if all("nothing was put" in words for words, _, _ in failed):
            return (
                "gradients[source] = ... puts something in. Another dictionary, `gradients = {}`, is not the one that "
                "your function was given"
            )
        sent = self.most_sent  # by the student's function: the known mistakes run below
        known = super().hint(failed)
        return SENT_TWICE if known == self.otherwise and sent > 1 else known

    def solution(self) -> Any:
        return self.right

    def right(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, gradients[node], gradients, passes_back)

    def _in_order(self, result: Node, gradients: Any) -> Iterator[Node]:
        return (node for node in self.order(result) if node in gradients)

    def _sent(self, result: Node, gradients: Any, passes_back: Passes) -> Iterator[tuple[Node, Node, Any]]:
        """Each contribution of a backward pass in a right order: the node, its input, the value."""
        for node in self._in_order(result, gradients):
            for source, value in passes_back(node, gradients[node]):
                yield node, source, value

    @mistake("a second contribution replaces the first; it should be added to it")
    def overwritten(self, *args: Any) -> None:
        for _, source, value in self._sent(*args):
            args[1][source] = value

    @mistake(EARLY, source=f"{MICROGRAD}/issues/68")
    def impatient(self, *args: Any) -> None:
        impatient(*args)

    @mistake("passes_back has multiplied by g already: only add its values")
    def times_g_again(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node, source, value in self._sent(result, gradients, passes_back):
            add(gradients, source, gradients[node] * value)

    @mistake(SENT_TWICE, source=f"{MICROGRAD}/pull/64")
    def sent_twice(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        pass_on(result, gradients[result], gradients, passes_back)
        for source in made_from(result):
            self.sent_twice.program(self, source, gradients, passes_back)

    @mistake(EARLY)
    def layers(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        queue = [result]
        for node in queue:
            pass_on(node, gradients[node], gradients, passes_back)
            queue += [source for source in dict.fromkeys(made_from(node)) if source not in queue]

    @mistake(IN_PLACE, source="https://github.com/Oneflow-Inc/oneflow/pull/9497")
    def in_place(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for _, source, value in self._sent(result, gradients, passes_back):
            if source in gradients:
                gradients[source] += value
            else:
                gradients[source] = value

    @mistake("a + a passes back to a twice, and a dictionary of the pairs keeps one of the two: go over the pairs")
    def a_dictionary(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            for source, value in dict(passes_back(node, gradients[node])).items():
                add(gradients, source, value)

    @mistake("a node passes back *its own* gradient, times something: passes_back(node, gradients[node])")
    def always_the_seed(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, gradients[result], gradients, passes_back)

    @mistake(
        "the gradient of the result is in the dictionary at the beginning, and it is not always 1: do not change it"
    )
    def begins_with_one(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        gradients[result] = asarray(np.float32(1.0))
        self.right(result, gradients, passes_back)

    @mistake("only the result passes back: go on with the nodes that have contributions")
    def one_step(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        pass_on(result, gradients[result], gradients, passes_back)


class ClippedWalk(WalkBack):
    """`clipped_walk` is a `walk_back` that clips some gradients before it passes them on."""

    name = "clipped_walk"
    points = 3
    minutes = 8
    mistakes = ()
    otherwise = "take your walk_back, and change the second argument of passes_back, for these nodes only"

    def vary(self, draw: random.Random) -> None:
        self.op, self.most = draw.choice(["multiply", "add"]), draw.choice([0.25, 0.5, 0.75])

    def text(self) -> str:
        return (
            f"Write `clipped_walk(result, gradients, passes_back)`: like your `walk_back`, but a node with the name "
            f'`"{self.op}"` passes back its *complete* gradient g **clipped** to between −{self.most} and {self.most}: '
            f"`passes_back(node, mg.clip(g, -{self.most}, {self.most}))`. (The name is `node.name`. Clipping keeps "
            "gradients from exploding.)"
        )

    def clipped(self, node: Node, g: Tensor) -> Tensor:
        return clip(g, -self.most, self.most) if node.name == self.op else g

    def problem(self, result: Tensor, found: Any) -> Difference | str | None:
        right = self.run(self.right, result)
        leaves = [node for node in topological_order([result.node]) if isinstance(node, Leaf)]
        problems = [difference(found.get(leaf), np.asarray(right[leaf]), "the gradient of a leaf") for leaf in leaves]
        return next(filter(None, problems), None)

    def _makes(self, known: Any, result: Tensor, found: Any) -> bool:
        wrong = self.run(self.wrong(known), result)
        return all(wrong.get(leaf) == value for leaf, value in found.items() if isinstance(leaf, Leaf))

    def right(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, self.clipped(node, gradients[node]), gradients, passes_back)

    @mistake("that is your walk_back without a change: nothing is clipped")
    def nothing_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        super().right(result, gradients, passes_back)

    @mistake("the gradient of every node is clipped, but only one kind of nodes should be: look at node.name")
    def all_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node in self._in_order(result, gradients):
            pass_on(node, clip(gradients[node], -self.most, self.most), gradients, passes_back)

    @mistake("each contribution is clipped. Clip the complete gradient, when the node passes it back")
    def parts_clipped(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for _, source, value in self._sent(result, gradients, passes_back):
            add(gradients, source, self.clipped(source, value))

    @mistake("the contributions that the node passes back are clipped; clip the gradient of the node")
    def clipped_afterwards(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        for node, source, value in self._sent(result, gradients, passes_back):
            add(gradients, source, self.clipped(node, value))


def numbers(value: Any) -> Any:
    """A gradient in a form that can be compared by ==."""
    return value.detach().numpy().tolist() if isinstance(value, Tensor) else value
