"""Titles: a stage of the compiler says which program it belongs to, and prints together with its gradient's stage."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

T = TypeVar("T", bound="Titled")


class Titled:
    """A stage with a `title` that names its program; `gradient` is the same stage of the gradient's program.

    Both are empty unless a call kept values for its gradient and the gradient was computed.
    """

    title = ""
    gradient: Any = None

    def titled(self: T, title: str, gradient: T | None = None) -> T:
        """A copy with a title, to be printed together with its gradient."""
        new = copy(self)
        vars(new).update(title=title, gradient=gradient)
        return new

    def listing(self) -> str:
        """The text of this stage alone."""
        raise NotImplementedError

    def __str__(self) -> str:
        own = f"{self.title}:\n{self.listing()}" if self.title else self.listing()
        return own if self.gradient is None else f"{own}\n\n{self.gradient}"
