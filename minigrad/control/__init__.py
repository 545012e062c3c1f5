"""Branches and loops on tensors: Python in eager mode, one node each in a graph."""

from ..arguments.public import public
from .flow import cond, fori_loop, scan, while_loop

__all__ = ["cond", "fori_loop", "scan", "while_loop"]

public(__all__, globals())
