"""What the views of kernels share: the kernels that a function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..compile.look.watching import Call, watching
from ..devices.registry import DEVICES
from ..support.errors import MinigradError
from .exhibit import check_function


def calls_of(
    view: str, function: Callable[..., Any], args: tuple[Any, ...], example: str, hint: str,
    named: Mapping[str, Any] | None = None,
) -> list[Call]:
    """The kernels that a function runs; `named` are its keyword arguments.

    >>> [call.op.name for call in calls_of("bench", mg.tanh, (mg.ones(2),), "", "")]
    ['tanh']
    """
    check_function(view, function, example)
    devices = len(DEVICES)
    with watching() as calls:
        function(*args, **(named or {}))
    for name in [*DEVICES][devices:]:
        raise MinigradError(f"{view}: {name} was first used in this call, which did not show its kernels",
                            hint="the same call again shows them")
    if not calls:
        raise MinigradError(
            f"{view}: no operation ran", expect="a function that computes with tensors", hint=hint
        )
    return calls
