"""Unit 06: the backward pass as the student writes it: the order, and the pass itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
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
from ...orders import NodeOrder, WalkTask
from ...programs import ORDERS
from ...tasks import ROUNDS, mistake
from ...walking import Gradients, Passes, add, impatient, made_from, pass_on  # noqa: F401  (in the texts)
from .about import UNIT

IN_PLACE = UNIT.words["in_place"]
SENT_TWICE = UNIT.words["sent_twice"]


class BackwardOrder(NodeOrder):
    name = "backward_order"


class WalkBack(WalkTask):
    name = "walk_back"
    orders = ORDERS
    most_sent = calls = 0  # the most times that one node passed something back, and how often all did
    seeds: ClassVar[Sequence[float]] = (1.5,)  # gradients of the result: not 1, with which students begin by habit
    begins_with = 1.5

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        for seed in self.seeds:
            self.begins_with = seed
            said = super().check(answer, rounds)
        return f"{said}, which took {self.calls:,} calls of passes_back."

    def run(self, function: Callable[..., Any], result: Tensor) -> Any:
        seed = asarray(np.full(result.shape, self.begins_with, dtype=np.float32))
        gradients = Gradients(result.node, seed)
        try:
            with no_grad():
                function(result.node, gradients, gradients.passes_back)
            self.most_sent = max(gradients.times.values(), default=0)
            self.calls = sum(gradients.times.values())
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
            for source, value in passes_back(node, gradients[node]):
                add(gradients, source, value)

    def _in_order(self, result: Node, gradients: Any) -> Iterator[Node]:
        return (node for node in self.order(result) if node in gradients)

    @mistake
    def sent_twice(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        pass_on(result, gradients[result], gradients, passes_back)
        for source in made_from(result):
            self.sent_twice.program(self, source, gradients, passes_back)

    @mistake
    def layers(self, result: Node, gradients: Any, passes_back: Passes) -> None:
        queue = [result]
        for node in queue:
            pass_on(node, gradients[node], gradients, passes_back)
            queue += [source for source in dict.fromkeys(made_from(node)) if source not in queue]



class ClippedWalk(WalkBack):
    """`clipped_walk` is a `walk_back` that clips some gradients before it passes them on."""

    name = "clipped_walk"
    mistakes = ()
    seeds = (1.5, -1.5)  # both ends of the clip count

    def vary(self, draw: random.Random) -> None:
        self.op, self.most = draw.choice(["multiply", "add"]), draw.choice([0.25, 0.5, 0.75])

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
            for source, value in passes_back(node, self.clipped(node, gradients[node])):
                add(gradients, source, value)



def numbers(value: Any) -> Any:
    """A gradient in a form that can be compared by ==."""
    return value.detach().numpy().tolist() if isinstance(value, Tensor) else value
