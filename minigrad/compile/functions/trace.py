"""Parts of a trace: its results, and what must not be in them, histories that end, and the hooks that were seen."""

from __future__ import annotations

from collections import deque
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ...autodiff.reverse import HOOKS
from ...core.node import FREED, topological_order
from ...core.tensor import Tensor, wrap
from ...core.tree import is_container
from ...core.view import Step
from ...support.errors import TraceError
from ..tracing.tracer import Captured, Pending, Tracer
from .tensor_guards import Location


class Result(NamedTuple):
    """A tensor that the function returns: a view, by `chain`, of output `number` or of the tensor at `place`.

    A result that is not `linked` was detached: it has no history.  One that stands for an `array` is returned as one.
    """

    number: int
    place: Location | None
    chain: tuple[Step, ...]
    linked: bool = True
    array: bool = False


def as_captured(entry: Captured) -> Tensor:
    """The stand-in in its first state."""
    tensor = wrap(entry.first, entry.tensor.device)
    tensor.node, tensor.tracked = entry.leaf, True
    return tensor


def without_spent_history(tensor: Tensor) -> Tensor:
    """The tensor; without its history if a backward pass has freed that."""
    if not tensor.tracked or not any(node.saved is FREED for node in topological_order([tensor.node])):
        return tensor
    return wrap(tensor._data, tensor.device)


def hooks_seen(tracer: Tracer) -> list[list[Any]]:
    """Take the hooks of the captured tensors out of the trace, which has run them; refuse new ones."""
    found = []
    for entry in tracer.captured.values():
        if entry.leaf is not None:
            inside, outside = HOOKS.pop(entry.leaf, []), HOOKS.get(entry.tensor.node, [])
            if inside != outside:
                raise TraceError(
                    f"jit: a hook is registered on a tensor from outside, of shape {entry.tensor.shape}, or removed",
                    expect="a hook stays on its tensor, and each call would add one",
                    hint="register it outside, or on a tensor that is made inside",
                )
            found.append(list(outside))
    return found


def refuse_hidden(result: Any, tracer: Tracer, inside: str = "", depth: int = 0) -> None:
    """Refuse results that hold tensors in objects that jit does not look into."""
    if isinstance(result, Tensor):
        if inside and result._data.__class__ is Pending and result._data.trace is tracer:
            raise TraceError(
                f"jit: the function returns a {inside} that holds tensors, and jit does not look into it",
                expect="tensors, numbers, and tuples, lists, dicts and modules of them",
                hint="return the tensors, and build the object outside",
            )
    elif isinstance(result, (list, tuple, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            refuse_hidden(part, tracer, inside, depth)
    elif isinstance(result, (set, frozenset, deque)):
        for part in result:
            refuse_hidden(part, tracer, type(result).__name__, depth)
    elif depth < 3 and hasattr(result, "__dict__") and not isinstance(result, (type, ModuleType, FunctionType)):
        name = inside or ("" if is_container(result) else type(result).__name__)
        for part in vars(result).values():
            refuse_hidden(part, tracer, name, depth + 1)
