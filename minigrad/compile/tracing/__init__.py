"""Tracing: from a Python function to a graph, and what the trace depends on."""
