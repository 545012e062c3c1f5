"""The pictures of the further page on fusion, which are those of unit 11."""

from __future__ import annotations

from .u11_fusion import blocks

__all__ = ["blocks"]
