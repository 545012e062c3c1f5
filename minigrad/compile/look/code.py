"""The kernels of a program as text: what the backend compiles, or C where NumPy runs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ..loops.ir import Kernel
from ..nodes.graph import Titled
from ..running.plan import Blocked, Launch
from ..running.program import Program
from ..running.targets import source


class Code(Titled):
    """The text of each kernel of a program, by its name; equal kernels are shown once."""

    def __init__(self, program: Program, printed: Callable[[Kernel], str] = source) -> None:
        self.steps, self.printed = program.plan.steps, printed

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The texts, by the names of the kernels that run first."""
        launches = [step.launch if isinstance(step, Blocked) else step for step in self.steps]
        found = {self.printed(each.kernel): each.name for each in reversed(launches) if isinstance(each, Launch)}
        return {name: text for text, name in reversed(found.items())}

    def listing(self) -> str:
        """All texts, each below the name of its kernel."""
        return "\n".join([f"{name}:\n{text}" for name, text in self.kernels.items()])
