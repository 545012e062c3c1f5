"""Seeing a computation: pictures of graphs."""

from .graphs import graph, shown
from .picture import Picture

__all__ = ["Picture", "graph", "shown"]
