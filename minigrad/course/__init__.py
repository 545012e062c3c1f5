"""The functions that the notebooks of the course call: checks that explain, progress, the student's code in the engine.

`begin` starts a unit, `check` checks an answer, `progress` and `report` show the results.  `rule`, `backward`, `guard`,
`compiler_pass` and `scheduler` put a student's function into the engine for a `with` block, and `train_digits` trains a
network with it.  `by_example` traces a function as `torch.jit.trace` does.  `unit.py` and `tasks.py` define units and
tasks, `units/` declares them.
"""

from .digits import Trained, train_digits
from .guarding import guard
from .one_run import by_example
from .session import begin, check, keep, progress, report, task
from .swapping import backward, compiler_pass, rule, scheduler, swap
from .walking import impatient, kept_bytes, made_from

__all__ = [
    "begin", "task", "check", "progress", "report", "keep",
    "rule", "backward", "guard", "compiler_pass", "scheduler", "swap",
    "by_example", "Trained", "train_digits", "made_from", "kept_bytes", "impatient",
]
