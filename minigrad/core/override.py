"""Overrides: in a block, another function runs in place of one of the engine's.

An override belongs to the thread or the asyncio task that entered the block, and ends with the block, as a mode does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from inspect import unwrap
from typing import Any, TypeVar

from ..support.context import Block, switched_variable

F = TypeVar("F", bound=Callable[..., Any])

OVERRIDES: ContextVar[Mapping[Any, Any]] = switched_variable("minigrad overrides", {})
OVERRIDABLE: set[Any] = set()  # the functions declared with @overridable


class overriding(Block):
    """A block in which `replacement` is used for `key`: an overridable or composed function, a pass, a primitive.

    For a primitive, `replacement` is a function from its `Plan` to another.  Primitives and composed functions look for
    it only under an interpreter: `with overriding(P.tanh, change), switch(interpreter=Eager()): ...`.

    >>> @overridable
    ... def greeting():
    ...     return "hello"
    >>> with overriding(greeting, lambda: "good morning"):
    ...     greeting()
    'good morning'
    >>> greeting()
    'hello'
    """

    variable = OVERRIDES

    def __init__(self, key: Any, replacement: Any) -> None:
        self.key, self.replacement = unwrap(key) if callable(key) else key, replacement

    def value(self) -> Mapping[Any, Any]:
        return {**OVERRIDES.get(), self.key: self.replacement}


def override_of(key: Any) -> Any:
    """The replacement for `key` in this thread's blocks; None if there is none."""
    return OVERRIDES.get().get(key)


def overridable(function: F) -> F:
    """Declare a function that a block may replace (`overriding`)."""
    OVERRIDABLE.add(function)

    @wraps(function)
    def current(*args: Any, **options: Any) -> Any:
        return (OVERRIDES.get().get(function) or function)(*args, **options)

    return current  # type: ignore[return-value]
