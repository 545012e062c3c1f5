"""Saved programs: graphs written to files, checked when they are read, and compiled."""
