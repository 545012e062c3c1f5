"""What each line of a function puts into a graph: a run by an example, watched line by line."""

from __future__ import annotations

import ast
import inspect
import sys
from bisect import bisect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from textwrap import dedent
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from minigrad.core.clock import tick
from minigrad.core.node import Node
from minigrad.core.tensor import Tensor, wrap
from minigrad.ops.creation import asarray
from minigrad.support.errors import MinigradError
from minigrad.support.source import parsed
from minigrad.viz.graphs import check_length
from minigrad.viz.naming import names_in_code
from minigrad.viz.numbers import Summary
from minigrad.viz.scene import Scene, scene_of

from .one_run import by_example

MOST, BOXES = 40, 80  # lines to click, and operations, at most
PARTS = ast.stmt | ast.excepthandler
WORDS = {ast.If: "if", ast.While: "while", ast.For: "for", ast.Match: "match", ast.Return: "return"}


class Source:
    """The lines of a function.  `starts` has the first line of the statement that a line is in, `above` the statement
    around it, and `words` its word in Python.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        target = inspect.unwrap(getattr(function, "__func__", function))
        try:
            lines, self.first = inspect.getsourcelines(target)
            self.code, self.name = target.__code__, target.__name__
        except (OSError, TypeError, AttributeError):
            raise unknown_lines() from None
        self.lines = dedent("".join(lines)).expandtabs(4).splitlines()
        self.starts, self.above, self.words = dict[int, int](), dict[int, int](), dict[int, str]()
        self._read()
        places = {self.starts.get(line - self.first + 1) for _, _, line in self.code.co_lines() if line}
        self.clickable = sorted(line for line in places if line)

    def _read(self) -> None:
        """Read the statements; a lambda is one line to click."""
        try:
            tree = parsed("\n".join(self.lines)).body[0]
        except SyntaxError:  # a lambda among the arguments of a call
            tree = None
        if not isinstance(tree, ast.FunctionDef):
            self.starts = dict.fromkeys(range(1, len(self.lines) + 1), 1)
            return
        for each in [node for node in ast.walk(tree) if isinstance(node, PARTS) and node is not tree]:
            self.starts |= dict.fromkeys(range(each.lineno, (each.end_lineno or 0) + 1), each.lineno)
            inner = {node.lineno for node in ast.walk(each) if isinstance(node, PARTS)} - {each.lineno}
            self.above |= dict.fromkeys(inner, each.lineno)
            self.words[each.lineno] = WORDS.get(type(each), "")

    def decider(self, line: int, ran: Collection[int]) -> int | None:
        """The statement that ran, and decided whether a line runs."""
        found = self.above.get(line)
        return found if found is None or found in ran else self.decider(found, ran)

    def watched(self, function: Callable[..., Any], seen: list[tuple[int, int]]) -> Callable[..., Any]:
        """The function, which adds to `seen` each statement and when it begins.  Calls in it are not watched."""
        entered = False

        def at_line(frame: Any, event: str, _: Any) -> Any:
            line = self.starts.get(frame.f_lineno - self.first + 1)
            if event == "line" and line is not None and (not seen or seen[-1][0] != line):
                seen.append((line, tick()))
            return at_line

        def at_call(frame: Any, event: str, _: Any) -> Any:
            nonlocal entered
            if entered or frame.f_code is not self.code:
                return None
            entered = True
            return at_line

        def run(*args: Any) -> Any:
            before = sys.gettrace()
            sys.settrace(at_call)
            try:
                return function(*args)
            finally:
                sys.settrace(before)

        run.__name__ = self.name
        return run


def unknown_lines() -> MinigradError:
    """The error for a function whose lines cannot be watched."""
    return MinigradError(
        "the lines of this function are not known", expect="a function that a cell or a file defines with `def`"
    )


class Step(NamedTuple):
    """A statement that ran, and the nodes that it put into the graph."""

    line: int
    nodes: list[Node]


class Call(NamedTuple):
    """A call: what the graph computes for the arguments, or why it stops; what the function returns, and its lines."""

    args: str
    values: Mapping[Node, Summary]
    error: str
    right: Summary
    agrees: bool
    path: list[int]


class Recording:
    """One run by an example, line by line; and other calls, by the graph of this run and by the function.

    >>> def sign(x):
    ...     if x.sum() > 0:
    ...         return x * 2
    ...     return -x
    >>> recording = Recording(sign, [mg.asarray(3.0)], [[mg.asarray(-1.0)]])
    >>> [(step.line, [node.name for node in step.nodes]) for step in recording.steps]
    [(2, []), (3, ['multiply'])]
    >>> print(recording.verdict(recording.others[0]))
    the graph returns −2, and sign returns 1. At line 2, these numbers go another way: the trace has one path, that of \
the example.
    """

    def __init__(
        self, function: Callable[..., Any], example: Sequence[Tensor], others: Sequence[Sequence[Tensor]]
    ) -> None:
        self.source = Source(function)
        self.function = function if isinstance(function, FunctionType | MethodType) else inspect.unwrap(function)
        seen = list[tuple[int, int]]()
        self.traced = by_example(self.source.watched(self.function, seen), *example)
        if not seen:
            raise unknown_lines()
        if len(seen) > MOST:
            raise MinigradError(
                f"{self.source.name} runs {len(seen):,} lines in this call", expect=f"at most {MOST} to click",
                hint="an example for which its loops end sooner",
            )
        self.nodes = [node for node in self.traced.graph.nodes if node.op is not None]
        check_length(len(self.nodes), BOXES)
        (self.result,) = self.traced.graph.outputs
        homes = [bisect([time for _, time in seen], node.serial) - 1 for node in self.nodes]
        self.steps = [
            Step(line, [node for node, home in zip(self.nodes, homes) if home == i]) for i, (line, _) in enumerate(seen)
        ]
        self.example, *self.others = [self._call(args) for args in (example, *others)]

    def _call(self, args: Sequence[Tensor]) -> Call:
        seen = list[tuple[int, int]]()
        right = asarray(self.source.watched(self.function, seen)(*[each.copy() for each in args])).detach().numpy()
        found, error = dict[Node, Any](), ""
        try:
            values = self.traced.values(*args).items()
            found = {node: wrap(value, node.device).numpy() for node, value in values if not isinstance(value, tuple)}
        except MinigradError as stopped:
            error = str(stopped).partition("\n")[0].partition(", made at")[0]
        ours = found.get(self.result)
        agrees = ours is not None and ours.shape == right.shape and np.allclose(ours, right, equal_nan=True)
        said = ", ".join([Summary.of(each.detach().numpy()).short() for each in args])
        shown = {node: Summary.of(value) for node, value in found.items()}
        return Call(said, shown, error, Summary.of(right), bool(agrees), [line for line, _ in seen])

    def verdict(self, call: Call) -> str:
        """What the graph computes in another call, whether it is right, and why not."""
        right = f"{self.source.name} returns {call.right.short()}"
        if call.error:
            return f"the graph stops: {call.error}. {right}."
        found = f"the graph returns {call.values[self.result].short()}"
        if call.agrees:
            return f"{found}, which is right for these numbers."
        pairs = [*zip_longest(self.example.path, call.path)]
        parted = next((i for i, (here, there) in enumerate(pairs) if here != there), 0)
        if not parted:
            why = "The same lines ran: what Python computed or chose on them is fixed in the graph."
        else:
            where = f"At line {pairs[parted - 1][0]}, these numbers go another way"
            why = f"{where}: the trace has one path, that of the example."
        return f"{found}, and {right}. {why}"

    def scene(self, call: Call) -> Scene:
        """The graph, with the values of a call."""
        used = {source for node in self.nodes for source in node.sources} | {self.result}
        nodes = [*[node for node in self.traced.graph.inputs if node in used], *self.nodes]
        given = dict(zip(self.traced.graph.inputs, inspect.signature(self.function).parameters))
        found = scene_of(nodes, [self.result], names_in_code(nodes) | given, call.values)
        return Scene(tuple([replace(box, lines=box.lines[-1:]) for box in found.boxes]), found.edges)  # no shapes
