"""Functions that are called before and after a module's `forward`, until they are removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BEFORE, AFTER = "before", "after"


class Hooks:
    """The hooks of one module, in the order in which they were added."""

    def __init__(self) -> None:
        self.added: list[Handle] = []

    def add(self, when: str, hook: Callable[..., Any]) -> Handle:
        """Add a hook, which is called from now on."""
        handle = Handle(self, when, hook)
        self.added.append(handle)
        return handle

    def before(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments for `forward`, after the hooks."""
        for handle in list(self.added):
            changed = handle.hook(module, args) if handle.when == BEFORE else None
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args

    def after(self, module: Any, args: tuple[Any, ...], output: Any) -> Any:
        """The output for the module's caller, after the hooks."""
        for handle in list(self.added):
            changed = handle.hook(module, args, output) if handle.when == AFTER else None
            output = output if changed is None else changed
        return output


class Handle:
    """A hook that was added: `handle.remove()` removes it, and so does the end of a `with` block."""

    def __init__(self, hooks: Hooks, when: str, hook: Callable[..., Any]) -> None:
        self.hooks, self.when, self.hook = hooks, when, hook

    def remove(self) -> None:
        """Remove the hook.  A second removal does nothing."""
        if self in self.hooks.added:
            self.hooks.added.remove(self)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
