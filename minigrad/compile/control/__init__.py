"""Branches and loops as nodes, with their gradients: `Tracer.flow` and `Function.rules`."""
