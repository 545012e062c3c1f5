"""Lowering: from a group of nodes to a kernel in the loop language."""
