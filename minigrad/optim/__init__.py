"""Optimizers, which change parameters by their gradients; clipping, schedules of rates, averages."""

from ..arguments.public import public
from . import lr_scheduler
from .adam import Adam, AdamW, Lion
from .adaptive import Adadelta, Adagrad, RMSprop
from .clipping import clip_grad_norm, clip_grad_value
from .ema import EMA
from .groups import Group
from .lbfgs import LBFGS
from .muon import Muon
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "Optimizer", "Group", "SGD", "Adam", "AdamW", "Lion", "RMSprop", "Adagrad", "Adadelta", "Muon", "LBFGS",
    "clip_grad_norm", "clip_grad_value", "EMA", "lr_scheduler",
]

public(__all__, globals())
public(lr_scheduler.__all__, vars(lr_scheduler))
