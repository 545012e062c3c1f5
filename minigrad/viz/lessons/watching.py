"""What the views of kernels share: the kernels that a function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compile.look.watching import Call, watching
from ...core.programs import programs_run
from ...support.errors import MinigradError
from ..exhibit import check_function


def without_programs() -> str:
    """A sentence for views that show eager mode operation by operation, where it runs programs otherwise."""
    return " Eager mode runs composed functions as programs; here they run operation by operation." * programs_run()


def calls_of(view: str, function: Callable[..., Any], args: tuple[Any, ...], example: str, hint: str) -> list[Call]:
    """The kernels that a function runs."""
    check_function(view, function, example)
    with watching() as calls:
        function(*args)
    if not calls:
        raise MinigradError(
            f"{view}: no operation ran", expect="a function that computes with tensors", hint=hint
        )
    return calls
