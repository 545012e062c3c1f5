"""Saved programs: what is written to a file, and what is read back and verified."""
