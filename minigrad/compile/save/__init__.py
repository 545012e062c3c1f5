"""Saved programs: graphs written to files, checked when they are read, and compiled."""

from ...arguments.public import public
from .codec import ProgramError
from .read import LoadedProgram, load_program

__all__ = ["LoadedProgram", "ProgramError", "load_program"]

public(("ProgramError", "load_program"), globals())
