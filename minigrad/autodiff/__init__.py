"""Derivatives: the walk backwards, forward mode, and the transformations made of them."""

from ..arguments.public import public
from .batching import vmap
from .checkpointing import checkpoint
from .custom import custom_vjp
from .forward import jvp
from .gradient_check import gradcheck
from .reverse import Contribution, gradients, walk
from .transforms import grad, hessian, hvp, jacobian, value_and_grad, vjp

__all__ = [
    "Contribution", "checkpoint", "custom_vjp", "grad", "gradcheck", "gradients", "hessian", "hvp", "jacobian", "jvp",
    "value_and_grad", "vjp", "vmap", "walk",
]

public(
    __all__, globals(),
    eager=("checkpoint", "custom_vjp", "grad", "gradcheck", "hessian", "jacobian", "value_and_grad", "vjp", "vmap"),
)
