"""A student's function in the place of one of the engine's own, for as long as a `with` block lasts.

It can be the order of the nodes, a gradient rule, the backward pass, a pass of the compiler, the scheduler of programs,
or any function that is declared `@overridable`; `interpreting.py` has functions for every operation.  It is the same
engine as outside the block: training, views and pictures run the student's code.  An override belongs to the thread
that entered the block (`core/override.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from inspect import unwrap
from typing import Any

from minigrad.autodiff import forward, reverse
from minigrad.autodiff.visits import after_hooks
from minigrad.compile.rewriting import passes
from minigrad.compile.running.plan import Plan as ProgramPlan
from minigrad.compile.running.schedule import Schedule, ScheduledStep
from minigrad.compile.running.targets import Settings
from minigrad.core.emit import Eager
from minigrad.core.mode import current_mode, switch
from minigrad.core.node import FREED, Leaf, Node, topological_order
from minigrad.core.override import OVERRIDABLE, overriding
from minigrad.core.primitive import OUT, P, Plan, Rule
from minigrad.core.programs import opened_order
from minigrad.core.tensor import Tensor, as_tensor
from minigrad.ops.creation import zeros_like
from minigrad.ops.view import broadcast_to
from minigrad.support.errors import MinigradError

from .feedback import Misused, at_its_line, written
from .session import SESSION
from .walking import Gradients, Passes


def whose(function: str) -> str:
    """The name of a student's function in pictures.

    >>> whose("mul_grad")
    'your mul_grad'
    """
    return f"{SESSION.student}'s {function}" if SESSION.student else f"your {function}"


class Swapped:
    """A student's function in the engine, and how often it was called."""

    def __init__(self, name: str) -> None:
        self.name, self.calls = name, 0

    def __repr__(self) -> str:
        times = "once" if self.calls == 1 else f"{self.calls:,} times"
        return f"<{self.name} in the engine, called {times}>"


def swap(original: Any, replacement: Any) -> overriding:
    """Let `replacement` run in the place of a function of the engine that is declared `@overridable`.

    >>> from minigrad.autodiff import reverse
    >>> def walk(*args, **options):
    ...     raise SystemError("no backward pass today")
    >>> with swap(reverse.walk, walk):
    ...     mg.asarray(1.0, requires_grad=True).backward()
    Traceback (most recent call last):
    SystemError: no backward pass today
    """
    if unwrap(original) not in OVERRIDABLE:
        name = getattr(original, "__name__", written(original))
        raise Misused(name, "this function cannot be replaced", "declare it with @overridable (core/override.py)")
    return overriding(original, replacement)


@contextmanager
def node_order(function: Callable[[Node], list[Node]]) -> Iterator[Swapped]:
    """Let `function(result)` list a node and the nodes it was made from: for backward passes, pictures and replays.

    >>> from minigrad_course import inputs_of
    >>> def by_serial(result):
    ...     found = {result}
    ...     for _ in range(10):
    ...         found |= {source for node in found for source in inputs_of(node)}
    ...     return sorted(found, key=lambda node: node.serial)
    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> with node_order(by_serial) as mine:
    ...     (x * x).backward()
    >>> x.grad.item(), mine
    (6.0, <by_serial in the engine, called once>)
    """
    swapped = Swapped(function.__name__)

    def ordered(roots: Any) -> list[Node]:
        swapped.calls += 1
        with overriding(topological_order, unwrap(topological_order)):  # the function may call the engine's own
            found = [function(root) for root in roots]
        for each in found:
            if not isinstance(each, list | tuple) or not all(isinstance(node, Node) for node in each):
                raise Misused(swapped.name, f"returned {written(each)}", "return a list of nodes")
        return list(dict.fromkeys(node for each in found for node in each))

    with overriding(topological_order, ordered):
        yield swapped


@contextmanager
def rule(
    primitive: str, function: Callable[..., Any], where: Callable[..., bool] | None = None
) -> Iterator[Swapped]:
    """Let `function(g, out, *inputs)` return the gradients of all inputs of a primitive.

    With `where`, it does so where `where(out, *inputs)` is true, and the engine's own rules serve the other operations.

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
    reads, everything = (OUT, *range(len(op.inputs))), (True,) * (len(op.inputs) + 1)

    def of_input(index: int, own: Callable[..., Any]) -> Callable[..., Any]:
        def one(g: Tensor, out: Tensor, *rest: Any) -> Any:
            inputs, read = rest[: len(op.inputs)], rest[len(op.inputs) :]
            if where is not None and not where(out, *inputs):
                return own(g, *read)
            swapped.calls += 1
            found = function(g, out, *inputs)
            found = (found,) if len(inputs) == 1 and not isinstance(found, tuple | list) else found
            if not isinstance(found, tuple | list) or len(found) != len(op.inputs):
                problem = f"returned {written(found)}, but {primitive} has {len(op.inputs)} inputs"
                raise Misused(swapped.name, problem, "return one gradient for each input")
            return _of_shape(found[index], inputs[index], out.shape, swapped.name)

        one.by = whose(swapped.name)  # type: ignore[attr-defined]  # for the stepper
        return one

    def plan(own: Plan) -> Plan:
        rules = [Rule(r.index, of_input(r.index, r.function), (*reads, *r.reads), None) for r in own.rules]
        return Plan(tuple(rules), everything)

    # An interpreter of its own: the quick forms of operations, which keep their plans, serve plain eager mode only.
    with overriding(op, plan), switch(interpreter=current_mode().interpreter or Eager()):
        yield swapped


@contextmanager
def forward_rule(primitive: str, function: Callable[..., Any]) -> Iterator[Swapped]:
    """Let `function(*inputs, *tangents)` return the tangent of the result of a primitive, in forward mode.

    >>> def mul_jvp(a, b, da, db):
    ...     return da * b + a * db
    >>> with forward_rule("multiply", mul_jvp) as mine:
    ...     value, change = mg.jvp(lambda x: x * x, (mg.asarray(3.0),), (mg.asarray(2.0),))
    >>> change.item(), mine
    (12.0, <mul_jvp in the engine, called once>)
    """
    own, swapped = forward.pushed_forward, Swapped(function.__name__)

    def pushed(op: Any, primals: list[Any], tangents: list[Any], out: Tensor, attrs: dict[str, Any]) -> Any:
        if op is not P[primitive] or all(tangent is None for tangent in tangents):
            return unwrap(own)(op, primals, tangents, out, attrs)
        swapped.calls += 1
        inputs = [as_tensor(each) for each in primals]
        moves = [zeros_like(each) if tangent is None else tangent for each, tangent in zip(inputs, tangents)]
        with at_its_line(swapped.name):  # otherwise the error would be that of the operation that it belongs to
            found = function(*inputs, *moves)
        return _of_shape(found, out, out.shape, swapped.name, "tangent")

    with swap(own, pushed):
        yield swapped


def _of_shape(value: Any, source: Tensor, shape: tuple[int, ...], name: str, what: str = "gradient") -> Tensor:
    """A gradient of the input's shape; or of the result's, which the engine sums: there a number is for all places."""
    try:
        found = as_tensor(value)
        if found.shape == source.shape:
            return found
        return broadcast_to(found, broadcast_to(source, shape).shape)
    except MinigradError:
        raise Misused(name, f"returned {written(value)}, which is not a {what} of shape {source.shape}") from None


@contextmanager
def backward(function: Callable[[Node, Any, Passes], Any]) -> Iterator[Swapped]:
    """Let `function(result, gradients, passes_back)` be the backward pass.

    Its arguments are the node to begin at, a dictionary `{result: its gradient}`, which it fills with the gradients of
    all other nodes, and `passes_back(node, g)`, which returns the contributions of a node with gradient g, as pairs of
    an input and a value.  A picture made in the block shows each number that is put in, right or wrong.

    >>> from minigrad_course import made_from
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
        yields: bool = True, also: Any = (),
    ) -> Generator[reverse.Contribution, Any, dict[Node, Tensor]]:
        swapped.calls += 1
        if len(roots) != 1:
            raise Misused(swapped.name, f"starts from one output, but there are {len(roots)}")
        opened_order(roots)  # a call that ran as one program becomes its operations
        gradients = Gradients(roots[0], cotangents[0])
        try:
            function(roots[0], gradients, gradients.passes_back)
        except KeyError as error:
            if not (error.args and isinstance(error.args[0], Node)):
                raise
            early = f"reads the gradient of {error.args[0].name} before any contribution has come"
            raise Misused(swapped.name, early) from None
        if yields:
            yield from gradients.events
        if not retain:
            for node in topological_order(roots):
                node.saved = None if node.saved is None else FREED
        leaves = {node for node in gradients if isinstance(node, Leaf)}
        targets = {*also, *(leaves if wanted is None else wanted)}
        return {node: after_hooks(node, g.copy()) for node, g in gradients.items() if node in targets}

    with overriding(reverse.walk, walk):
        yield swapped


@contextmanager
def compiler_pass(name: str, function: Callable[..., Any]) -> Iterator[Swapped]:
    """Let `function(graph, note)` be one of the compiler's passes, `simplify` or `common` for example."""
    known = {each.name: each for each in passes.PASSES}
    if name not in known:
        raise Misused(name, "there is no pass of that name", "one of " + ", ".join(known))
    swapped = Swapped(function.__name__)

    def run(graph: Any, note: Any) -> Any:
        swapped.calls += 1
        return function(graph, note)

    with overriding(known[name].function, run):
        yield swapped


@contextmanager
def scheduler(function: Callable[[Sequence[ScheduledStep]], list[list[int]]]) -> Iterator[Swapped]:
    """Let `function(steps)` return the order of a program's steps, as lists of numbers: a list runs at the same time.

    >>> def one_by_one(steps):
    ...     return [[step.number] for step in steps]
    >>> with scheduler(one_by_one) as mine:
    ...     mg.jit(lambda x: (x @ x).sum())(mg.ones((2, 2))).item()
    8.0
    >>> mine.calls
    1
    """
    swapped = Swapped(function.__name__)

    def turns(settings: Settings, plan: ProgramPlan) -> list[list[int]]:
        swapped.calls += 1
        steps = Schedule(plan).steps
        levels = [list(level) for level in function(steps)]
        problem = unsound(steps, levels)
        if problem:
            raise Misused(swapped.name, problem)
        return levels

    with overriding(Settings.turns, turns):
        yield swapped


def in_lists(ordered: Sequence[ScheduledStep], most: int) -> list[list[int]]:
    """Steps for `scheduler`: neighbours that do not wait for each other are a list, of at most so many steps.

    A step with an effect is alone.
    """
    found: list[list[ScheduledStep]] = []
    for step in ordered:
        last = found[-1] if found else []
        waits = {each.number for each in last} & set(step.after) or any(each.has_effect for each in (step, *last))
        if last and len(last) < most and not waits:
            last.append(step)
        else:
            found.append([step])
    return [[step.number for step in each] for each in found]


def unsound(steps: Sequence[ScheduledStep], levels: Sequence[Sequence[int]]) -> str | None:
    """What is wrong with an order of steps: a step is missing, runs twice, or runs before a step that it waits for."""
    position = {number: at for at, level in enumerate(levels) for number in level}
    if sorted(number for level in levels for number in level) != list(range(len(steps))):
        return "does not run every step exactly once"
    for step in steps:
        for before in step.after:
            if position[before] >= position[step.number]:
                return f"runs {step.name} before or together with {steps[before].name}, which it waits for"
    return None
