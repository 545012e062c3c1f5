"""Unit 06: the backward pass as the student writes it: the order, and the pass itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from minigrad.autodiff import reverse
from minigrad.core.mode import no_grad
from minigrad.core.node import Leaf, Node, topological_order
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.reduce import clip
from minigrad.support.errors import MutationError

from ...compare import Difference, difference
from ...feedback import Wrong
from ...orders import MICROGRAD, NodeOrder, WalkTask
from ...programs import ORDERS
from ...tasks import mistake
from ...walking import Gradients, Passes, add, impatient, made_from, pass_on

EARLY = (
    "a node passes its gradient back before the gradient is complete: a is used by the sum and by the product, and "
    "both contribute to it. Follow your backward_order; do not go from a node straight to its inputs"
)
IN_PLACE = (
    "`+=` changes a tensor in place, and a sum passes the *same* tensor back to both of its inputs: the gradient of "
    "the other input has changed too. Make a new one: gradients[source] = gradients[source] + value"
)
SENT_TWICE = "a node that is reached twice passes back twice, and the second time it repeats its first contribution"


class BackwardOrder(NodeOrder):
    """`backward_order(result)` lists the result and the nodes it was made from, each after all nodes that use it."""

    name = "backward_order"
    points = 0  # the same for all students; the walk with a clip is not
    minutes = 15
    outcome = "order"
    backward = True
    hints: ClassVar[dict[str, str]] = {
        "other_way": "that is the order of the forward pass. The backward pass begins at the result: turn the list "
        "round",
        "when_first_met":
            "a node is listed when it is first met, and its inputs right after it: a node that uses the same input may "
            "come later. List a node when all of *its inputs* are listed, then turn the list round",
        "without_result": "the result itself belongs in the list, at its beginning",
        "without_leaves": "the leaves belong in the list too: training needs their gradients",
    }


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
