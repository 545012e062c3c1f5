"""Traced functions: a graph, its program, its gradient, and where its inputs are found."""
