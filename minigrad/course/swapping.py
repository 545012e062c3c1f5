"""A student's function in the place of the engine's own, for as long as a `with` block lasts.

What is put in: a gradient rule, the walk back, a pass of the compiler, the scheduler of programs, or any function at
all.  The engine is the one that everybody uses: what runs in the block, pictures included, runs the student's code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import viz  # noqa: F401 - it holds the walk: loaded in a block, it would hold the student's for ever
from ..autodiff import reverse
from ..compile.rewriting import passes
from ..compile.running.order import Schedule, ScheduledStep
from ..compile.running.plan import Plan as ProgramPlan
from ..compile.running.program import Executable
from ..core.node import FREED, Leaf, Node, topological_order
from ..core.primitive import OUT, P, Plan, Rule
from ..core.tensor import Tensor, as_tensor
from ..ops.view import broadcast_to
from ..support.errors import MinigradError
from .feedback import Misused, written
from .session import SESSION
from .walking import Gradients, Passes


def whose(function: str) -> str:
    """How a function of the student's is called in pictures.

    >>> whose("mul_grad")
    'your mul_grad'
    """
    return f"{SESSION.student}'s {function}" if SESSION.student else f"your {function}"


class Swapped:
    """What stands in the engine: whose it is, and how often it was called."""

    def __init__(self, name: str) -> None:
        self.name, self.calls = name, 0

    def __repr__(self) -> str:
        times = "once" if self.calls == 1 else f"{self.calls:,} times"
        return f"<{self.name} in the engine, called {times}>"


@contextmanager
def swap(original: Any, replacement: Any) -> Iterator[None]:
    """Put one function in the place of another wherever minigrad holds it by name.

    >>> from minigrad.autodiff import reverse
    >>> def walk(*args, **options):
    ...     raise SystemError("nobody home")
    >>> with swap(reverse.walk, walk):
    ...     mg.asarray(1.0, requires_grad=True).backward()
    Traceback (most recent call last):
    SystemError: nobody home
    """
    originals = (original, getattr(original, "__wrapped__", original))  # a room calls its own without the checks
    holders = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "minigrad" and not name.startswith("minigrad.course"):
            held = [(key, value) for key, value in vars(module).items() if any(value is each for each in originals)]
            holders += [(module, key, value) for key, value in held]
    try:
        for module, key, _ in holders:
            setattr(module, key, replacement)
        yield
    finally:
        for module, key, held in holders:
            setattr(module, key, held)


@contextmanager
def rule(primitive: str, function: Callable[..., Any]) -> Iterator[Swapped]:
    """Let `function(g, out, *inputs)` be the gradient rule of all inputs of a primitive: a gradient for each.

    >>> def mul_grad(g, out, a, b):
    ...     return g * b, g * a
    >>> with rule("multiply", mul_grad) as mine:
    ...     x = mg.asarray(3.0, requires_grad=True)
    ...     (x * x).backward()
    >>> x.grad.item(), mine
    (6.0, <mul_grad in the engine, called 2 times>)
    """
    op = P[primitive]
    swapped = Swapped(function.__name__)
    reads = (OUT, *range(len(op.inputs)))

    def of_input(index: int) -> Callable[..., Any]:
        def one(g: Tensor, out: Tensor, *inputs: Any) -> Any:
            swapped.calls += 1
            found = function(g, out, *inputs)
            if not isinstance(found, tuple | list) or len(found) != len(op.inputs):
                what = f"gave {written(found)}, and {primitive} has {len(op.inputs)} inputs: a gradient for each"
                raise Misused(swapped.name, what)
            return _of_shape(found[index], out.shape, swapped.name)

        one.by = whose(swapped.name)  # type: ignore[attr-defined]  # for the stepper
        return one

    def plan(mask: int, count: int) -> Any:
        kept = _plan(mask, count)
        return Plan(tuple(Rule(r.index, of_input(r.index), reads, None) for r in kept.rules), everything)

    everything, _plan = (True,) * (len(op.inputs) + 1), op._make_plan
    known = dict(op.plans)
    try:
        op.plans.clear()
        object.__setattr__(op, "_make_plan", plan)
        yield swapped
    finally:
        object.__delattr__(op, "_make_plan")
        op.plans.clear()
        op.plans.update(known)


def _of_shape(value: Any, shape: tuple[int, ...], name: str) -> Tensor:
    """What a student's rule gave as a gradient: a number counts for every place."""
    try:
        found = as_tensor(value)
        return found if found.shape == shape else broadcast_to(found, shape)
    except MinigradError:
        raise Misused(name, f"gave {written(value)}, which is no gradient of shape {shape}") from None


@contextmanager
def backward(function: Callable[[Node, Any, Passes], Any]) -> Iterator[Swapped]:
    """Let `function(result, gradients, passes_back)` be the walk back.

    It is given the node to begin at, a dictionary `{result: its gradient}` to put the gradients of all other nodes
    into, and `passes_back(node, g)`: what a node passes back when its gradient is g, as pairs of a node that it was
    made from and a contribution.  A picture made in the block shows each number that is put in, right or wrong.

    >>> from minigrad.course import made_from
    >>> def of_a_chain(result, gradients, passes_back):
    ...     node = result
    ...     while made_from(node):
    ...         ((source, value),) = passes_back(node, gradients[node])
    ...         gradients[source], node = value, source
    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> with backward(of_a_chain) as mine:
    ...     (2 * x + 1).backward()
    >>> x.grad.item(), mine
    (2.0, <of_a_chain in the engine, called once>)
    """
    swapped = Swapped(function.__name__)

    def walk(
        roots: Sequence[Node], cotangents: Sequence[Tensor], wanted: Any = None, retain: bool = False,
        announced: bool = True, also: Any = (),
    ) -> Generator[reverse.Contribution, Any, dict[Node, Tensor]]:
        swapped.calls += 1
        if len(roots) != 1:
            raise Misused(swapped.name, f"goes back from one output, and there are {len(roots)}")
        gradients = Gradients(roots[0], cotangents[0])
        try:
            function(roots[0], gradients, gradients.passes_back)
        except KeyError as error:
            if not (error.args and isinstance(error.args[0], Node)):
                raise
            early = f"asks for the gradient of {error.args[0].name} before anything has come to it"
            raise Misused(swapped.name, early) from None
        if announced:
            yield from gradients.events
        if not retain:
            for node in topological_order(roots):
                node.saved = None if node.saved is None else FREED
        leaves = {node for node in gradients if isinstance(node, Leaf)}
        targets = {*also, *(leaves if wanted is None else wanted)}
        return {node: g.copy() for node, g in gradients.items() if node in targets}

    with swap(reverse.walk, walk):
        yield swapped


@contextmanager
def compiler_pass(name: str, function: Callable[..., Any]) -> Iterator[Swapped]:
    """Let `function(graph, note)` be one of the compiler's passes, `simplify` or `common` for example."""
    names = [each.name for each in passes.PASSES]
    if name not in names:
        raise Misused(name, "there is no pass of that name", "one of " + ", ".join(names))
    swapped, at = Swapped(function.__name__), names.index(name)
    ours = passes.PASSES[at]

    def run(graph: Any, note: Any, without: frozenset[str]) -> Any:
        swapped.calls += 1
        return function(graph, note)

    try:
        passes.PASSES[at] = passes.Pass(name, run, last=ours.last)
        yield swapped
    finally:
        passes.PASSES[at] = ours


@contextmanager
def scheduler(function: Callable[[Sequence[ScheduledStep]], list[list[int]]]) -> Iterator[Swapped]:
    """Let `function(steps)` say in which order a program's steps run: lists of numbers, those of a list together.

    >>> def one_by_one(steps):
    ...     return [[step.number] for step in steps]
    >>> with scheduler(one_by_one) as mine:
    ...     mg.jit(lambda x: (x @ x).sum())(mg.ones((2, 2))).item()
    8.0
    >>> mine.calls
    1
    """
    swapped = Swapped(function.__name__)

    def turns(program: Executable, plan: ProgramPlan) -> list[list[int]]:
        swapped.calls += 1
        steps = Schedule(plan).steps
        levels = [list(level) for level in function(steps)]
        problem = unsound(steps, levels)
        if problem:
            raise Misused(swapped.name, problem)
        return levels

    ours = Executable.turns
    try:
        Executable.turns = turns  # type: ignore[method-assign, assignment]
        yield swapped
    finally:
        Executable.turns = ours  # type: ignore[method-assign]


def unsound(steps: Sequence[ScheduledStep], levels: Sequence[Sequence[int]]) -> str | None:
    """What is wrong with an order of steps: one that is missing, twice there, or runs before what it waits for."""
    position = {number: at for at, level in enumerate(levels) for number in level}
    if sorted(number for level in levels for number in level) != list(range(len(steps))):
        return "does not run every step exactly once"
    for step in steps:
        for before in step.after:
            if position[before] >= position[step.number]:
                return f"runs {step.name} before or beside {steps[before].name}, which it waits for"
    return None
