"""Saved programs: written to files, read back and verified."""
