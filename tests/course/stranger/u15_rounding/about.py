"""Unit 15: its question, outcomes, misconceptions and seeds are in `texts.en.toml`."""

from __future__ import annotations

from ...unit import unit

UNIT = unit(__file__, __name__)
