"""Derivatives: the walk backwards, forward mode, and the transformations made of them."""

from .reverse import Contribution, gradients, walk

__all__ = ["Contribution", "gradients", "walk"]
