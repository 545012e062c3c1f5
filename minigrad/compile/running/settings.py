"""Settings: how a graph is compiled, and how its program runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ...core.override import overridable
from .backends import has_machine_code
from .executors import turns
from .order import Schedule
from .plan import Plan, one_by_one
from .targets import HOST, Target


@dataclass(frozen=True)
class Settings:
    """How a graph is compiled for a target, and how its program runs.

    `backend` names what runs the kernels, and `executor` which steps run at the same time; None: as the environment
    says.  `donate` names outputs, by number, that may be stored in place of an input.  `without` names passes and rules
    to leave out.  With `any_layout`, results need not be in row-major order.
    """

    target: Target = HOST
    backend: str | None = None
    executor: str | None = None
    donate: Mapping[int, int] = field(default_factory=dict)
    without: str | Collection[str] = ()
    any_layout: bool = False

    @property
    def left_out(self) -> list[str]:
        """The passes and rules to leave out, with those that do not pay on the target."""
        named = [self.without] if isinstance(self.without, str) else self.without
        return [*named, *self.target.without, *([] if self.any_layout else ["result_layouts"])]

    def resolved(self) -> Settings:
        """These settings, with the executor that the environment names, and a target that fits the backend.

        >>> Settings().resolved().executor
        'serial'
        """
        executor = self.executor or os.environ.get("MINIGRAD_EXECUTOR") or "serial"
        return replace(self, executor=executor, target=self.target.on_backend(self.backend))

    @property
    def in_blocks(self) -> bool:
        """Whether kernels may run on a part of the rows at a time, together with products: as machine code of a CPU."""
        return self.target.threads and has_machine_code(self.backend)

    @overridable
    def turns(self, plan: Plan) -> list[list[int]]:
        """The numbers of the steps in the order of a run, in lists of steps that run at the same time."""
        if self.executor is None or self.executor == "serial" or not self.target.threads:
            return one_by_one(plan)
        return [[step.number for step in turn] for turn in turns(Schedule(plan), self.executor)]


USUAL = Settings()
