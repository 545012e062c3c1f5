"""Tasks whose answer is an order of nodes, and functions that go over nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from minigrad.core.node import Leaf, Node, topological_order
from minigrad.core.tensor import Tensor
from minigrad.support.table import counted

from .compare import Difference
from .feedback import Wrong, written
from .programs import LARGE, PROGRAMS, QUESTIONS, VALUES, by_number
from .tasks import ROUNDS, FunctionTask, mistake
from .walking import LostPatience, made_from, patience

MICROGRAD = "https://github.com/karpathy/micrograd"
LISTED_TWICE = "a node is listed once for each use: remember which nodes you have visited"


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
        return (f"{self.explained() or ''} Tried on {len([*PROGRAMS, *LARGE])} programs; on {title}, yours visits "
                f"{counted(QUESTIONS - self.limit.left, 'node')}.").strip()

    def called(self, node: Node) -> str:
        """The name of a node in messages."""
        return self.values.get(node) or (node.name if node.op is not None else "a leaf")

    def _tried(self, answer: Callable[..., Any], title: str, result: Tensor) -> Any:
        try:
            with patience(QUESTIONS) as self.limit:
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


class NodeOrder(WalkTask):
    """A function that lists a node and all nodes that it was made from: inputs first, or with `backward`, users first.

    Every such order is right, whichever way it was found.
    """

    backward: ClassVar[bool] = False
    otherwise = "go through the list by hand, for the program named: is each node there once, and in its right place?"
    too_often = (
        "it visits the same nodes again and again: a is used twice, so its inputs are visited twice, their inputs four "
        "times ... Remember which nodes you have visited, in a set"
    )

    def cases(self, draw: random.Random) -> Iterator[tuple[Node]]:
        yield from [(program().node,) for program in PROGRAMS.values()]

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
                if self.backward and at[source] < at[node]:
                    return f"{self.called(source)} stands before {self.called(node)}, which uses it"
                if not self.backward and at[node] < at[source]:
                    return f"{self.called(node)} stands before {self.called(source)}, one of its inputs"
        return None

    def hint(self, failed: list[tuple[str, Tensor, Any]]) -> str | None:
        known = super().hint(failed)
        words, _, found = failed[0]
        if known != self.otherwise:
            return known
        if found is None:
            return "`return` the list. sort() and reverse() change a list and give back None; sorted() gives a new one"
        if "is not a node" in words:
            return "the nodes themselves, not their names, and not the numbers that are inputs too"
        if "more than once" in words:
            return LISTED_TWICE
        if "stands before" in words:
            lists = [(result, found[::-1]) for _, result, found in failed]
            if all(self.problem(result, turned) is None for result, turned in lists):
                return "each stands on the wrong side of the nodes that use it: turn the list round"
            if all(set(found) == set(self.right(result.node)) for _, result, found in failed):
                last = "the latest first" if self.backward else "the earliest first"
                return f"all are there, in a wrong order. A set has no order. Sort by `node.serial`, {last}"
        return known

    def solution(self) -> Any:
        return self.right

    def right(self, result: Node) -> list[Node]:
        return self.turned(by_number(result))

    def turned(self, found: list[Node]) -> list[Node]:
        """A list that begins at the result, in the direction of the task."""
        return found if self.backward else found[::-1]

    @mistake("that begins at the result. The inputs come first: turn the list round")
    def other_way(self, result: Node) -> list[Node]:
        return self.right(result)[::-1]

    @mistake(
        "a node is listed when it is first met, before the inputs that it waits for. List a node when all of its "
        "inputs are listed",
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
        return self.turned(found)

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
        return self.turned(found)

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
        return self.turned(found)

    @mistake("the result itself belongs in the list too")
    def without_result(self, result: Node) -> list[Node]:
        return [node for node in self.right(result) if node is not result]

    @mistake("the leaves belong in the list too: everything begins with them")
    def without_leaves(self, result: Node) -> list[Node]:
        return [node for node in self.right(result) if made_from(node)]

    @mistake(LISTED_TWICE)
    def once_for_each_use(self, result: Node) -> list[Node]:
        found = [result]
        for node in found:
            if len(found) < 1000:
                found += made_from(node)
        return self.turned(found)
