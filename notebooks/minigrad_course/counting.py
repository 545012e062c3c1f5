"""Counts what an answer costs: bytes that are kept for a backward pass, passes of both modes, and seconds.

The bytes are those of the arrays that the engine's nodes store.  Data and parameters are not counted, because they
exist without a backward pass too.  An array that several rules need counts once.  Numbers that were computed without
a gradient, such as masks, are known to be no data only inside `mg.record()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from inspect import unwrap
from time import perf_counter
from typing import Any

from minigrad.autodiff import reverse
from minigrad.autodiff.checkpointing import Segment
from minigrad.autodiff.forward import Forward
from minigrad.compile.look.watching import watching
from minigrad.core.clock import buffer_of
from minigrad.core.mode import current_mode, switch
from minigrad.core.node import Constant, Leaf, Node, topological_order
from minigrad.core.override import overriding
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import ones_like
from minigrad.support.table import counted
from minigrad.viz.kept import maker_of
from minigrad.viz.steps import saved_by


def launches(function: Callable[..., Any], *args: Any) -> int:
    """How many kernels a function launches that compute something: a view is not a launch.

    >>> launches(lambda x: mg.tanh(x.T) + 1, mg.ones((2, 3)))
    2
    """
    with watching(frames=False, keep=False) as calls:
        function(*args)
    return sum(call.op.kind != "view" for call in calls)


def kept_bytes(result: Tensor) -> int:
    """How many bytes are kept for the backward pass of a tensor.

    >>> h = mg.ones(1000, requires_grad=True)
    >>> kept_bytes(mg.tanh(h)), kept_bytes(h + 1)
    (4000, 0)
    >>> kept_bytes(mg.checkpoint(lambda h: mg.tanh(mg.tanh(h)))(2 * h))
    4000
    """
    return sum(_arrays(topological_order([result.node] if result.tracked else [])).values())


def most_bytes(loss: Tensor) -> int:
    """The most bytes that are kept at once, from the forward pass to the end of the backward pass, which is run."""
    return max(kept_over_time(loss))


def kept_over_time(loss: Tensor) -> list[int]:
    """The bytes that are kept after each operation of the forward pass, and after each step of the backward pass.

    The backward pass is run, and changes no `.grad`.

    >>> h = mg.ones(1000, requires_grad=True)
    >>> kept_over_time(mg.tanh(mg.tanh(h)).sum())
    [4000, 8000, 8000, 8000, 8000, 4000, 0]
    """
    order = topological_order([loss.node])
    nodes = [node for node in order if node.op is not None]
    return [*_forward(nodes), *_backward(nodes, loss)]


def _forward(nodes: Sequence[Node]) -> Iterator[int]:
    kept: dict[int, int] = {}
    for node in nodes:
        kept |= _arrays([node])
        yield sum(kept.values())


def _backward(nodes: Sequence[Node], loss: Tensor) -> Iterator[int]:
    """The bytes before each node passes back, when a checkpoint has computed its values again, and at the end."""
    seen: dict[Node, Any] = {}
    held: dict[Node, dict[int, int]] = {}
    users: Counter[int] = Counter()
    sizes: dict[int, int] = {}

    def bytes_now() -> int:
        for node in nodes:
            if node not in seen or seen[node] is not node.saved:
                users.subtract(held.get(node, {}).keys())
                seen[node], held[node] = node.saved, _arrays([node])
                users.update(held[node].keys())
                sizes.update(held[node])
        return sum(sizes[key] for key, many in users.items() if many)

    last = None
    with switch(grad=False):
        for step in reverse.walk([loss.node], [ones_like(loss)]):
            if step.node is not last:
                last = step.node
                yield bytes_now()
    yield bytes_now()


def _arrays(nodes: Sequence[Node]) -> dict[int, int]:
    """The arrays that nodes keep, by the identity of their memory, with their bytes."""
    found = {}
    for node in nodes:
        for source, value in node.saved.incoming.items() if isinstance(node.saved, Segment) else saved_by(node):
            if not isinstance(maker_of(source), Leaf | Constant):
                owner = buffer_of(value)
                found[id(owner)] = owner.nbytes
    return found


class Passes:
    """A function in whose block its passes are counted: those of forward mode, and the engine's backward passes.

    >>> with Passes(lambda x: x * x) as square:
    ...     change = mg.jvp(square, (mg.asarray(3.0),), (mg.asarray(1.0),))
    >>> square
    <1 pass of forward mode, 0 backward passes>
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.forward, self.backward = function, 0, 0
        self._block = ExitStack()

    def __repr__(self) -> str:
        forward, backward = (counted(many, "pass", "passes") for many in (self.forward, self.backward))
        return f"<{forward} of forward mode, {backward.replace(' ', ' backward ')}>"

    def __enter__(self) -> Passes:
        self._block.enter_context(overriding(reverse.walk, self._walk))
        return self

    def __exit__(self, *stopped: Any) -> None:
        self._block.close()

    def __call__(self, *args: Any) -> Any:
        self.forward += isinstance(current_mode().interpreter, Forward)
        return self.function(*args)

    def _walk(self, *args: Any, **options: Any) -> Any:
        self.backward += 1
        return unwrap(reverse.walk)(*args, **options)


def fastest(ways: Sequence[Callable[[], Any]], runs: int) -> list[float]:
    """The seconds of the fastest run of each way.  They run in turns, because the machine may be busy.

    >>> [seconds > 0 for seconds in fastest([lambda: sum(range(10)), lambda: max(range(10))], 2)]
    [True, True]
    """
    best = [float("inf")] * len(ways)
    for _ in range(runs):
        for i, way in enumerate(ways):
            begin = perf_counter()
            way()
            best[i] = min(best[i], perf_counter() - begin)
    return best
