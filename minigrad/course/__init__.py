"""The functions that the notebooks of the course call: checks that explain, progress, the student's code in the engine.

`begin` starts a unit, `check` checks an answer, `progress` and `report` show the results.  `rule`, `backward`,
`compiler_pass` and `scheduler` put a student's function into the engine for a `with` block, `operator` adds a primitive
with the student's kernels, and `train_digits` trains a network with it.  `costs` and `sizes` count and measure.
`unit.py` and `tasks.py` define units and tasks, `units/` declares them.
"""

from ..viz.lessons.costs import costs, sizes
from .digits import Trained, train_digits
from .kernels import erf, exp, languages, log, sqrt, tanh, where
from .operators import operator
from .session import begin, check, keep, progress, report, task
from .swapping import backward, compiler_pass, rule, scheduler, swap
from .walking import impatient, kept_bytes, made_from

__all__ = [
    "begin", "task", "check", "progress", "report", "keep",
    "rule", "backward", "compiler_pass", "scheduler", "swap", "operator",
    "costs", "sizes", "languages", "erf", "exp", "log", "sqrt", "tanh", "where",
    "Trained", "train_digits", "made_from", "kept_bytes", "impatient",
]
