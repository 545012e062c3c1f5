"""minigrad: a machine-learning framework that shows how frameworks work.

>>> import minigrad as mg
>>> x = mg.asarray([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
Tensor([2., 4.], shape=(2,), dtype=float32, device=cpu)

Arrays have the names of the Python array API standard, training those of PyTorch, transformations those of JAX.  The
rooms, each of which imports only the rooms before it: `support` (errors, files), `core` (what a computation is),
`arguments` (their checks), `devices` (where it runs), `ops` (operations), `autodiff` (derivatives), `control` (branches
and loops), `compile`, `scripting`, `nn`, `optim`, `data`, `io`, `distributed` and `train`.
"""

from __future__ import annotations

from os.path import abspath as _abspath
from typing import TYPE_CHECKING

__path__ = [*map(_abspath, __path__)]  # after `sys.path.insert(0, "..")` too, files have one name each

from . import autodiff, devices, linalg, random
from .autodiff import (
    checkpoint,
    custom_vjp,
    grad,
    gradcheck,
    gradients,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)
from .control import cond, fori_loop, scan, while_loop
from .core.absent import missing as _missing
from .core.debug import debug_nans, live_graphs
from .core.dtypes import *
from .core.mode import enable_grad, is_grad_enabled, no_grad, record, scope
from .core.programs import PROGRAMS as _PROGRAMS
from .core.programs import eager_programs
from .core.replay import replay
from .core.tensor import Tensor
from .core.tree import tree_map
from .devices import as_device, available_devices, device
from .devices.compiled import Provider as _Provider
from .ops.bits import *
from .ops.comparison import *
from .ops.contract import *
from .ops.convolution import *
from .ops.creation import *
from .ops.effects import *
from .ops.elementary import *
from .ops.elementwise import *
from .ops.functional import *
from .ops.index import *
from .ops.interop import from_dlpack
from .ops.joining import *
from .ops.losses import *
from .ops.namespace import *
from .ops.normalization import *
from .ops.ordering import *
from .ops.pooling import *
from .ops.positions import *
from .ops.reduce import *
from .ops.resampling import *
from .ops.segments import *
from .ops.special import *
from .ops.statistics import *
from .ops.transfer import offload, to_device
from .ops.view import *
from .ops.windows import *
from .support.context import watch_cells
from .support.errors import *

if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"
watch_cells()
del _abspath


def _eager_kernels() -> Any:
    from .eager import kernels  # brings the compiler

    return kernels


_Provider.load = _eager_kernels


def _load_compiler() -> None:
    from .eager import calls, updates  # they set the functions of `_PROGRAMS`


_PROGRAMS.load = _load_compiler

# Loaded when they are first used: `import minigrad` stays light.  Type checkers read `__init__.pyi`.
_COMPILER = "GuardWarning", "RetraceWarning", "graph", "jit", "profile", "trace"
_SAVE = "compile.save"
_LATER = {
    **dict.fromkeys(_COMPILER, "compile"), "script": "scripting", "kernel": "compile.user_kernels",
    "ProgramError": _SAVE, "load_program": _SAVE,
    **{room: room for room in (
        "compat", "data", "distributed", "distributions", "examples", "io", "nn", "optim", "train", "viz",
    )},
}
# Rooms and names that have a different place, or that only this file needs.
_INTERNAL = {"TYPE_CHECKING", "annotations", "arguments", "control", "core", "ops", "support", "watch_cells"}
__all__ = sorted([name for name in {*globals(), *_LATER} - _INTERNAL if name[0] != "_"])


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        _missing(__name__, name)
    room = _LATER[name]
    module = import_module(f"minigrad.{room}")
    found = globals()[name] = module if room == name else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
