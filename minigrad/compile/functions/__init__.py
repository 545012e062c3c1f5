"""Traced functions: a graph, its program, its gradient, and where to find its inputs."""
