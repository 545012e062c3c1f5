"""The functions that the notebooks of the course call: checks that explain, progress, the student's code in the engine.

`begin` starts a unit, `check` checks an answer, `progress` and `report` show the results.  `swap` and the functions
beside it put a student's function into the engine for a `with` block, `operator` adds a primitive with the student's
kernels, and `train_digits` and `train_names` train networks with them.  `costs`, `Passes` and the functions beside them
count and measure.  `unit.py` and `tasks.py` define units and tasks, `units/` declares them, and `texts.py`
reads what they say.
"""

from importlib import import_module
from typing import Any

from minigrad.support.source import add_package

from .session import begin, check, keep, progress, report, task

__all__ = [
    "begin", "task", "check", "progress", "report", "keep", "my_framework", "my_pieces",
    "emitter", "node_order", "rule", "forward_rule", "dispatcher", "backward", "guard", "compiler_pass",
    "scheduler", "swap", "operator", "erf", "exp", "log", "sqrt", "tanh", "where",
    "Trained", "train_digits", "Learned", "train_names", "by_example",
    "costs", "sizes", "languages", "Passes", "kept_bytes", "kept_over_time", "most_bytes",
    "inputs_of", "made_from", "impatient",
]

add_package(__name__, __file__)  # errors name lines of the student, not of the course

# A module is imported when one of its names is first used, so that a notebook does not wait for views and the compiler.
# Type checkers read `__init__.pyi`.
_MODULES = {
    ".interpreting": ("emitter", "dispatcher"),
    ".swapping": ("node_order", "rule", "forward_rule", "backward", "compiler_pass", "scheduler", "swap"),
    ".digits": ("Trained", "train_digits"), ".letters": ("Learned", "train_names"),
    ".counting": ("Passes", "kept_bytes", "kept_over_time", "most_bytes"), ".views.costs": ("costs", "sizes"),
    ".framework": ("my_framework", "my_pieces"), ".walking": ("inputs_of", "made_from", "impatient"),
    ".units.u09_eager_costs.operators": ("operator",),
    ".units.u09_eager_costs.kernels": ("erf", "exp", "log", "sqrt", "tanh", "where", "languages"),
    ".units.u10_graph_mode.student_guards": ("guard",), ".units.u10_graph_mode.one_run": ("by_example",),
}
_LATER = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"minigrad_course has no {name!r}")
    globals()[name] = found = getattr(import_module(_LATER[name], __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
