"""Passes: each makes a graph into a better one that computes the same."""
