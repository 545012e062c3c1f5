"""minigrad: see how machine-learning frameworks work, in a library that does.

>>> import minigrad as mg
>>> x = mg.asarray([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
Tensor([2., 4.], shape=(2,), dtype=float32, device=cpu)
"""
from .core.mode import no_grad, enable_grad, record, is_grad_enabled, scope
from .core.dtypes import *
from .core.tensor import Tensor
from .core.errors import *
from .core.debug import debug_nans, live_graphs
from .core.replay import Gone, replay
from .devices import *
from .ops.elementwise import *
from .ops.view import *
from .ops.reduce import *
from .ops.creation import *
from .ops.index import *
from .ops.contract import diagonal, einsum, matmul, outer, tensordot, trace, vecdot
from .ops.elementary import *
from .ops.ordering import *
from .ops.interop import from_dlpack
from .ops.namespace import *
from .ops.transfer import to_device
from .ops.functional import *
from . import autodiff, linalg, nn, optim, random
from .autodiff import (
    checkpoint, custom_vjp, grad, gradcheck, gradients, hessian, hvp, jacobian, jvp, value_and_grad, vjp, vmap,
)  # fmt: skip
