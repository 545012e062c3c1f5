"""The functions that the notebooks of the course call: checks that explain, progress, the student's code in the engine.

from .counting import Passes, kept_bytes, kept_over_time, most_bytes
from .digits import Trained, train_digits
from .letters import Learned, train_names
from ..viz.lessons.costs import costs, sizes
from .kernels import erf, exp, languages, log, sqrt, tanh, where
from .operators import operator
from .session import begin, check, keep, progress, report, task
from .swapping import backward, compiler_pass, dispatcher, emitter, forward_rule, node_order, rule, scheduler, swap
from .walking import impatient, inputs_of, kept_bytes, made_from
from .guarding import guard
from .one_run import by_example

__all__ = [
    "Learned", "Passes", "Trained", "backward", "begin", "by_example", "check", "compiler_pass", "dispatcher", "emitter", "forward_rule", "guard", "impatient", "inputs_of", "keep", "kept_bytes", "kept_over_time", "made_from", "most_bytes", "node_order", "progress", "report", "rule", "scheduler", "swap", "task", "train_digits", "train_names",
]
