"""Made by `python -m tests.typing_stub`; a test compares it with the package."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .compile import Jitted
from . import autodiff as autodiff, devices as devices, linalg as linalg, random as random
from .autodiff import checkpoint as checkpoint, custom_vjp as custom_vjp, gradcheck as gradcheck, gradients as gradients, hvp as hvp, jvp as jvp, vjp as vjp
from .control import cond as cond, fori_loop as fori_loop, while_loop as while_loop
from .core.debug import debug_nans as debug_nans, live_graphs as live_graphs
from .core.dtypes import *
from .core.mode import enable_grad as enable_grad, is_grad_enabled as is_grad_enabled, no_grad as no_grad, record as record, scope as scope
from .core.programs import eager_programs as eager_programs
from .core.replay import replay as replay
from .core.tensor import Tensor as Tensor
from .core.tree import tree_map as tree_map
from .devices import as_device as as_device, available_devices as available_devices, device as device
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
from .ops.interop import from_dlpack as from_dlpack
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
from .ops.transfer import offload as offload, to_device as to_device
from .ops.view import *
from .ops.windows import *
from .support.errors import *
from .compile import GuardWarning as GuardWarning
from .compile import RetraceWarning as RetraceWarning
from .compile import graph as graph
from .compile import profile as profile
from .compile import trace as trace
from .scripting import script as script
from .compile.user_kernels import kernel as kernel
from .compile.save import ProgramError as ProgramError
from .compile.save import load_program as load_program
from . import compat as compat
from . import data as data
from . import distributed as distributed
from . import distributions as distributions
from . import examples as examples
from . import io as io
from . import nn as nn
from . import optim as optim
from . import train as train
from . import viz as viz

__version__: str

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Self = TypeVar("_Self")
_Rest = ParamSpec("_Rest")

class _Jitted(Jitted, Generic[_P, _R]):
    @overload
    def __get__(self, instance: None, owner: type | None = ...) -> _Jitted[_P, _R]: ...
    @overload
    def __get__(
        self: _Jitted[Concatenate[_Self, _Rest], _R], instance: _Self, owner: type | None = ...
    ) -> _Jitted[_Rest, _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

@overload
def jit(function: Callable[_P, _R], *, static: Any = ..., disable: builtins.bool = ..., executor: str | None = ..., check: builtins.bool = ...) -> _Jitted[_P, _R]: ...
@overload
def jit(function: None = ..., *, static: Any = ..., disable: builtins.bool = ..., executor: str | None = ..., check: builtins.bool = ...) -> Callable[[Callable[_P, _R]], _Jitted[_P, _R]]: ...

_Carry = TypeVar("_Carry")
_Row = TypeVar("_Row")

def grad(function: Callable[_P, Any], argnums: int | Sequence[int] = ..., has_aux: builtins.bool = ..., allow_unused: builtins.bool = ...) -> Callable[_P, Any]: ...
def value_and_grad(function: Callable[_P, _R], argnums: int | Sequence[int] = ..., has_aux: builtins.bool = ..., allow_unused: builtins.bool = ...) -> Callable[_P, tuple[_R, Any]]: ...
def jacobian(function: Callable[_P, _R], argnums: int = ..., mode: str = ...) -> Callable[_P, _R]: ...
def hessian(function: Callable[_P, Any], argnums: int = ...) -> Callable[_P, Any]: ...
def vmap(function: Callable[_P, _R], in_axes: Any = ..., out_axes: int = ...) -> Callable[_P, _R]: ...
def scan(f: Callable[[Any, Any], tuple[_Carry, _Row]], init: Any, xs: Any = ..., length: int | None = ..., reverse: builtins.bool = ...) -> tuple[_Carry, _Row]: ...
