"""Fusion: from a graph to a partition, which says for each group of nodes why it is one kernel."""
