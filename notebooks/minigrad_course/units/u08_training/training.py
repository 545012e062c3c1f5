"""Unit 08: a race of optimizers on the digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from minigrad import optim
from minigrad.data import digits
from minigrad.viz.flipbook import Flipbook

from ...session import SESSION
from ...views.readings import Reader, readers
from .updating import Rule, train_with


def race(rules: Mapping[Any, Callable[..., Any]]) -> Flipbook:
    """Train with plain descent, with each student's rule, and with the library's optimizers for the same numbers."""
    plain = train_with("descent", partial(optim.SGD, lr=next(iter(rules)).lr))
    found, said = [Reader("descent, no momentum", plain.losses, plain.before, plain.after)], []
    for task, rule in rules.items():
        yours = train_with(task.name, partial(Rule, rule=rule, kept=task.kept, counted=task.counted))
        reference = train_with(task.name, task.reference)
        for name, each in ((f"your {task.name}", yours), (f"minigrad's {task.name}", reference)):
            found.append(Reader(name, each.losses, each.before, each.after))
        apart = float(np.abs(np.subtract(yours.losses, reference.losses)).max())
        where = "on the curve of minigrad's" if apart < 1e-3 else f"up to {apart:.2g} away from the curve of minigrad's"
        said.append(f"your {task.name} reads {yours.right} of {yours.shown}, {where}")
    title = f"{SESSION.author}: {'; '.join(said)}; descent without momentum reads {plain.right}"
    images, labels = digits()[1].arrays
    return readers(title, images.reshape(-1, 8, 8), labels, found)
