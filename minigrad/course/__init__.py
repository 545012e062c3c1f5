"""The functions that the notebooks of the course call: checks that explain, progress, the student's code in the engine.

`begin` starts a unit, `check` checks an answer, `progress` and `report` show the results.  `rule`, `forward_rule`,
`backward`, `compiler_pass` and `scheduler` put a student's function into the engine for a `with` block, and
`train_digits` trains a network with it.  `kept_bytes` and `most_bytes` count what is kept for a backward pass.
`unit.py` and `tasks.py` define units and tasks, `units/` declares them.
"""

from .counting import Passes, kept_bytes, kept_over_time, most_bytes
from .digits import Trained, train_digits
from .session import begin, check, keep, progress, report, task
from .swapping import backward, compiler_pass, forward_rule, rule, scheduler, swap
from .walking import impatient, made_from

__all__ = [
    "begin", "task", "check", "progress", "report", "keep",
    "rule", "forward_rule", "backward", "compiler_pass", "scheduler", "swap",
    "Trained", "train_digits", "made_from", "impatient", "kept_bytes", "kept_over_time", "most_bytes", "Passes",
]
