"""The course's side of the notebooks: checks that explain, progress, and the student's code in the real engine.

`begin` a unit, `check` what was written, look at `progress`, print a `report`; `rule`, `backward`, `compiler_pass` and
`scheduler` put a student's function into the engine for the length of a `with` block, and `train_digits` shows that it
works there.  `unit.py` says what units and tasks are, `units/` declares them.
"""

from .digits import Trained, train_digits
from .session import begin, check, keep, progress, report, task
from .swapping import backward, compiler_pass, rule, scheduler, swap
from .walking import impatient, kept_bytes, made_from

__all__ = [
    "begin", "task", "check", "progress", "report", "keep",
    "rule", "backward", "compiler_pass", "scheduler", "swap",
    "Trained", "train_digits", "made_from", "kept_bytes", "impatient",
]
