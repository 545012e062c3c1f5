"""The steps of a backward pass, recorded while it runs: what each operation passes back to each of its inputs.

The walk is the one that `backward()` runs to its end.  Here every contribution is recorded and checked by finite
differences, with the numbers before and after it is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.checkpointing import Segment
from ..autodiff.reverse import seeds, walk
from ..autodiff.visits import pulled, read
from ..core.emit import EAGER, constant
from ..core.mode import record, switch
from ..core.node import Node
from ..core.primitive import OUT, P
from ..core.programs import opened_order
from ..core.replay import recompute, sources
from ..core.tensor import Tensor, wrap
from ..devices import CPU
from ..ops.view import unbroadcast
from ..support.errors import Gone
from .numbers import Summary
from .phases import readers_of

CHECKED = 10_000  # numbers: contributions to larger tensors are not checked by finite differences
NEAR = 1e-4  # how far apart, relatively, a rule (in float32) and finite differences (in float64) may be
ROUNDED = 3e-7  # the share of summands, and of a result, by which float32 may be off
MATRIX, FEW_NODES = 256, 100  # numbers of a matrix of derivatives, and nodes of a graph, for which they are worked out
NUMBERS = 20_000  # in the values of a pass whose walk is recorded too, at most


class Step(NamedTuple):
    """One event of a backward pass.

    `kind` is "seed" (the result's own gradient is 1), "pass" (`node` passes `value` to its input `index`), or "sum"
    (what came to `target` before and `value` are added).  `total` is the gradient of `target` after the step.
    `needs` are the nodes whose values the rule read.  `matrix` holds the derivatives of each number of the result by
    each number of the input, where there are few: with it, any other gradient can be passed back as well.  `made` are
    the nodes of the pass's own operations, where they were recorded: of the gradient that is passed back, of the
    contribution, and of what was there.
    """

    kind: str
    target: Node
    node: Node | None
    index: int | None  # type: ignore[assignment]  # of the input; a tuple has a method of that name
    value: Summary
    before: Summary | None
    total: Summary
    check: Check | None = None
    needs: tuple[Node, ...] = ()
    matrix: Any = None
    made: tuple[Node | None, ...] = ()


class Check(NamedTuple):
    """A contribution along a random direction, by the rule and by finite differences.

    At a kink the slopes of its two sides differ, and there are two: the least and the largest sum of those of all
    results.  A rule may give either, or one between them.
    """

    by_rule: float
    by_differences: tuple[float, ...]
    agrees: bool


class Recording(NamedTuple):
    """A backward pass: its nodes in the order in which they were made, summaries of known values, and its steps.

    `missing` says why some values are not known.  `small` are the values of few numbers.  `large` says why the
    operations of the walk were not recorded, or nothing.
    """

    nodes: list[Node]
    values: dict[Node, Summary]
    missing: str
    steps: list[Step]
    small: dict[Node, Any]
    large: str


def record_steps(result: Tensor, cotangent: Tensor | None = None) -> Recording:
    """Record every step of the backward pass of a tensor.  Nothing is changed: `backward()` can still be called.

    Of a small pass, the operations that the walk runs are recorded as well.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> [(step.kind, step.value.short()) for step in record_steps(x * x).steps]
    [('seed', '1'), ('pass', '3'), ('pass', '3'), ('sum', '3')]
    """
    with switch(grad=False), np.errstate(all="ignore"):  # of infinities and nan the program's own run has warned
        start = seeds([result], [cotangent], "step")
        (root,), nodes = history_of([result.node])
        values, small, missing = values_of(nodes)
        seed = Summary.of(start[0].numpy())
        count = sum(node.size for node in nodes if not isinstance(node.dtype, tuple))
        large = f"the pass has {count:,} numbers in its values, and a page computes at most {NUMBERS:,} again"
        large *= count > NUMBERS
        traced = not large
        made: tuple[Node | None, ...] = (None, _node_of(start[0]), None) if traced else ()
        steps = [Step("seed", root, None, None, seed, None, seed, made=made)]
        reached = {root}
    with switch(grad=traced, record_all=traced), np.errstate(all="ignore"):  # the walk is recorded
        for node, index, g, value, so_far in walk([root], start, retain=True):
            if node not in reached:
                reached.add(node)
                steps += _parts(node, steps)
            target = node.inputs[index]
            reached.add(target)
            came = Summary.of(_array(value))
            before = None if so_far is None else Summary.of(_array(so_far))
            step = Step(
                "pass", target, node, index, came, before, before or came,
                _checked(node, index, g, _array(value), small), _needed(node, index),
                _derivatives(node, index, g) if len(nodes) <= FEW_NODES else None,
                tuple(map(_node_of, (g, value, so_far))) if traced else (),
            )
            steps.append(step)
            if so_far is not None:
                total = Summary.of(_array(so_far) + _array(value))
                steps.append(step._replace(kind="sum", total=total, check=None, needs=(), matrix=None))
    return Recording(nodes, values, missing, steps, small, large)


def _node_of(tensor: Tensor | list[Tensor] | None) -> Node | None:
    """The node of a tensor, if it is one."""
    return (tensor.node or constant(tensor)) if isinstance(tensor, Tensor) else None


def _array(tensor: Tensor) -> Any:
    return on_host(tensor._data, tensor)


def history_of(results: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The nodes of results, with the jitted functions in their history written out, and that history in order."""
    order = recorded_order(results)
    if all(node.op is not P.call for node in order):
        return [*results], order
    from .unfolded import unfolded  # brings the compiler, which other histories do not need

    found = unfolded(results)
    return found, opened_order(found)


def recorded_order(results: Sequence[Node]) -> list[Node]:
    """The history of results in order, with what library functions make of data before a gradient flows."""
    with record():
        return opened_order(results)


def _parts(whole: Node, steps: Sequence[Step]) -> list[Step]:
    """What is passed back to an operation with several results: the walk does not yield these contributions."""
    found: dict[Node, Step] = {}
    for step in steps:
        if step.target.op is P.project and step.target.inputs[0] is whole:
            part = step.total._replace(cells="")  # the heat map of one part is not that of all
            found[step.target] = Step("pass", whole, step.target, 0, part, None, part)
    return list(found.values())


def _rule(node: Node, index: int) -> Any:
    return next(rule for rule in node.plan.rules if rule.index == index)


def _needed(node: Node, index: int) -> tuple[Node, ...]:
    """The nodes whose values the rule of an input reads."""
    found = [node if slot == OUT else node.inputs[slot] for slot in _rule(node, index).reads if slot >= OUT]
    return tuple(dict.fromkeys([each for each in found if isinstance(each, Node)]))


def _derivatives(node: Node, index: int, g: Tensor) -> Any:
    """The rule applied to each number of the gradient alone, where there are few: a row for each."""
    target = node.inputs[index]
    if isinstance(node.dtype, tuple) or isinstance(target.dtype, tuple) or not 0 < target.size * g.size <= MATRIX:
        return None
    rule = _rule(node, index)
    rows = []
    for unit in np.eye(g.size, dtype=_array(g).dtype):
        given = wrap(node.device.from_numpy(unit.reshape(g.shape)), node.device)
        value = pulled(rule, given, lambda slot: read(node, slot, False, index))
        rows.append(unbroadcast(value, target.shape).numpy().reshape(-1).tolist())
    return rows


def values_of(nodes: Sequence[Node]) -> tuple[dict[Node, Summary], dict[Node, Any], str]:
    """Summaries of the values of nodes, the small values themselves, and why others are not known.

    Known are the values that were saved for the backward pass, and the values that can be computed again from them.
    """
    values: dict[Node, Any] = {}
    missing = ""
    for node in nodes:
        values |= {at: value for at, value in saved_by(node) if value is not None and not isinstance(at.dtype, tuple)}
    users = readers_of(nodes)
    for node in nodes:
        if node.op is None and node not in values:
            try:
                values |= sources([node, *users.get(node, ())])
            except Gone as gone:
                missing = str(gone)
    able: set[Node] = set(values)
    runnable = []
    for node in nodes:
        if node.op is not None and node not in able and able.issuperset(node.sources):
            runnable.append(node)
            able.add(node)
    summaries, small = dict[Node, Summary](), dict[Node, Any]()
    computed = ((node, value) for node, _, value in recompute(runnable, values) if not isinstance(node.dtype, tuple))
    for node, value in chain([*values.items()], computed):
        array = on_host(value, node)
        summaries[node] = Summary.of(array)
        if array.size <= CHECKED:
            small[node] = array
    return summaries, small, missing


def saved_by(node: Node) -> list[tuple[Node, Any]]:
    """The arrays that a node saved, each with the node that computed it; None for those that a checkpoint computes."""
    slots = (*node.inputs, node)
    if isinstance(node.saved, Segment):
        kept = zip(slots, node.plan.keep or ())
        return [(source, None) for source, needed in kept if needed and isinstance(source, Node)]
    if not isinstance(node.saved, tuple):
        return []
    found = []
    for source, value in zip(slots, node.saved):
        values = value if isinstance(value, tuple) else (value,)
        found += [(source, v) for v in values if isinstance(source, Node) and hasattr(v, "nbytes")]
    return found


def on_host(value: Any, node: Node | Tensor) -> Any:
    """The array of a value that is on the device of a node or a tensor."""
    return np.asarray(wrap(value, node.device).numpy())


def _checked(node: Node, index: int, g: Any, value: Any, values: dict[Node, Any]) -> Check | None:
    """(f(x + εd) - f(x - εd)) · g / 2ε beside value · d, in float64; None where the comparison has no meaning."""
    target = node.inputs[index]
    if not values.keys() >= {node, *node.sources} or node.op.kind == "structural":  # type: ignore[union-attr]
        return None
    if node.op is P.astype:  # which rounds small differences
        return None
    inputs = [_in_float64(values[source]) if isinstance(source, Node) else source for source in node.inputs]
    direction = np.random.default_rng(target.size).standard_normal(target.shape) if target.shape else np.float64(1)
    width = 1e-6 * max(1.0, float(np.abs(inputs[index]).max(initial=0.0)))

    def moved(by: float) -> Any:
        there = [*inputs]
        there[index] = inputs[index] + by * direction
        return _in_float64(EAGER.compute(node.op, there, node.attrs, CPU))  # type: ignore[arg-type]

    below, here, above = moved(-width), moved(0.0), moved(width)
    g = _in_float64(_array(g))
    changes = [(b - a) * g / width for a, b in ((below, here), (here, above))]
    sides = [float(least_or_most(*changes).sum()) for least_or_most in (np.minimum, np.maximum)]
    by_rule, middle = float((_in_float64(value) * direction).sum()), sum(sides) / 2
    noise = ROUNDED * float(np.abs([*changes, here * g]).sum())
    near = noise + NEAR * max(abs(by_rule), abs(middle))
    slopes = sides if sides[1] - sides[0] > 100 * near else [middle]
    agrees = slopes[0] - near <= by_rule <= slopes[-1] + near
    return Check(by_rule, tuple(slopes), agrees) if math.isfinite(by_rule + middle + near) else None


def _in_float64(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
