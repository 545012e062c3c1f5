"""Kernels: the loop language, and a printer for each target."""
