"""Kernels written by users, and the patterns of operations that they replace."""
