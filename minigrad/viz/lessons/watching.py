"""Moved to `viz/watched.py`."""

from ..watched import calls_of, without_programs  # noqa: F401
